//! How many bits are set in many bytes.
//!
//! Counting the bits of a word takes a dozen instructions where the processor has none for it, so lanes are
//! first added up bit by bit, in columns of binary digits, and only the sixteens are counted (Harley and
//! Seal; Muła, Kurz and Lemire, "Faster population counts using AVX2 instructions"). With vectors of 32 bytes
//! that is also faster than the instruction which counts one word. On processors that have an instruction for
//! counting whole vectors, that is the fastest.
//!
//! | a megabyte that the caches hold, by | time |
//! |---|---|
//! | the instruction for a word | 1 |
//! | columns, 16 bytes at a time (what every x86-64 can) | 1.4 |
//! | columns, 32 bytes at a time | 0.5 |
//! | vectors that are counted | 0.3 |
use crate::code::wide::widened;

/// Words side by side, as the compiler keeps them in vector registers.
type Lane = [u64; 4];
const LANE_BYTES: usize = size_of::<Lane>();
/// How many lanes are added up before anything is counted.
const LANES: usize = 16;

/// How many bits are set in all of `bytes`.
pub fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq,avx2,popcnt")]
        fn by_vectors(bytes: &[u8]) -> u64 {
            by_words(bytes)
        }
        if crate::code::wide::has_vector_popcnt() {
            // SAFETY: the processor was just asked for the last two, and one that has them has the others.
            return unsafe { by_vectors(bytes) };
        }
    }
    by_best_columns(bytes)
}

widened! { fn by_best_columns(bytes: &[u8]) -> u64 = by_columns }

#[inline(always)]
fn by_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from(u64::from_le_bytes(*word).count_ones())).sum::<u64>() + by_bytes(rest)
}

#[inline(always)]
fn by_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}

#[inline(always)]
fn by_columns(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<{ LANES * LANE_BYTES }>();
    let mut columns = Columns::default();
    let mut sixteens = 0;
    for block in blocks {
        sixteens += weight(&columns.add(block));
    }
    16 * sixteens + columns.weight() + by_words(rest)
}

/// For every bit of a lane a number of four binary digits. Each digit of all these numbers is kept in one
/// lane.
#[derive(Default)]
struct Columns {
    ones: Lane,
    twos: Lane,
    fours: Lane,
    eights: Lane,
}

impl Columns {
    /// Adds 16 lanes. Returns the carry, each bit of which counts 16. It works half by half, so that few
    /// values are live at a time and all fit the registers.
    #[inline(always)]
    fn add(&mut self, block: &[u8; LANES * LANE_BYTES]) -> Lane {
        let (halves, _) = block.as_chunks::<{ 8 * LANE_BYTES }>();
        let (a, b) = (self.add_8(&halves[0]), self.add_8(&halves[1]));
        add(&mut self.eights, a, b)
    }

    #[inline(always)]
    fn add_8(&mut self, block: &[u8; 8 * LANE_BYTES]) -> Lane {
        let (halves, _) = block.as_chunks::<{ 4 * LANE_BYTES }>();
        let (a, b) = (self.add_4(&halves[0]), self.add_4(&halves[1]));
        add(&mut self.fours, a, b)
    }

    #[inline(always)]
    fn add_4(&mut self, block: &[u8; 4 * LANE_BYTES]) -> Lane {
        let (lanes, _) = block.as_chunks::<LANE_BYTES>();
        let a = add(&mut self.ones, lane(&lanes[0]), lane(&lanes[1]));
        let b = add(&mut self.ones, lane(&lanes[2]), lane(&lanes[3]));
        add(&mut self.twos, a, b)
    }

    #[inline(always)]
    fn weight(&self) -> u64 {
        8 * weight(&self.eights) + 4 * weight(&self.fours) + 2 * weight(&self.twos) + weight(&self.ones)
    }
}

#[inline(always)]
fn lane(bytes: &[u8; LANE_BYTES]) -> Lane {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Adds two lanes to a digit. Returns the carry, each bit of which counts twice as much.
#[inline(always)]
fn add(column: &mut Lane, a: Lane, b: Lane) -> Lane {
    let mut carry = [0; 4];
    for (i, (sum, carry)) in column.iter_mut().zip(&mut carry).enumerate() {
        let half = *sum ^ a[i];
        *carry = *sum & a[i] | half & b[i];
        *sum = half ^ b[i];
    }
    carry
}

#[inline(always)]
fn weight(lane: &Lane) -> u64 {
    lane.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn every_version_counts_what_counting_bytes_counts() {
        let mut random = Random::new(3);
        let all: Vec<u8> = (0..5000).map(|_| random.next_u64() as u8).collect();
        for len in (0..700).chain([1023, 1024, 1025, 2048, 4095, 4999]) {
            for start in [0, 1, 7] {
                let bytes = &all[start..(start + len).min(all.len())];
                let expected = by_bytes(bytes);
                assert_eq!(count_ones(bytes), expected, "{len} from {start}");
                assert_eq!(by_best_columns(bytes), expected, "{len} from {start}, columns");
                assert_eq!(by_columns(bytes), expected, "{len} from {start}, portable columns");
            }
        }
        assert_eq!(count_ones(&[0xFF; 3000]), 24_000);
    }
}
