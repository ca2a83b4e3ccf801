//! The integers that fuzzers of sets and maps of them use: near others, far from them, at both ends of the
//! range, scattered, and in runs that go on from one to the next.
#[derive(Default)]
pub(super) struct Integers {
    run: i64,
}

impl Integers {
    /// The integer that `kind`, of 4 bits, and a word choose.
    pub(super) fn choose(&mut self, kind: u8, word: i64) -> i64 {
        match kind {
            0..=5 => word,
            6..=8 => word << 30,
            9 => i64::MIN + word,
            10 => i64::MAX - word,
            11 => word.wrapping_mul(-0x61C8_8646_80B5_83EB),
            _ => {
                self.run += 1 + word % 3;
                self.run
            }
        }
    }
}
