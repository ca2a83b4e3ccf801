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
/// How many lanes are added up before anything is counted.
const LANES: usize = 16;
const LANE_BYTES: usize = 32;

/// How many bits are set in all of `bytes`.
pub fn count_ones(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::code::wide;
        if wide::has_vector_popcnt() {
            // SAFETY: the processor was just asked for two of them, and one that has these has the others.
            return unsafe { x86::by_vectors(bytes) };
        }
        if wide::has_avx2() {
            // SAFETY: the processor was just asked for all that this version is compiled for.
            return unsafe { x86::by_avx2_columns(bytes) };
        }
    }
    by_columns::<[u64; 4]>(bytes)
}

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
fn by_columns<L: Lane>(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<{ LANES * LANE_BYTES }>();
    let mut columns = Columns { ones: L::NONE, twos: L::NONE, fours: L::NONE, eights: L::NONE };
    let mut sixteens = L::NONE;
    for block in blocks {
        sixteens = sixteens.plus(columns.add(block).weights());
    }
    16 * sixteens.total() + columns.weight() + by_words(rest)
}

/// Words side by side, as a vector register holds them.
trait Lane: Copy {
    const NONE: Self;
    fn load(bytes: &[u8; LANE_BYTES]) -> Self;
    fn xor(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// How many bits are set in each of its words.
    fn weights(self) -> Self;
    /// The sums of its words and those of the other lane.
    fn plus(self, other: Self) -> Self;
    /// The sum of its words.
    fn total(self) -> u64;
}

/// For every bit of a lane a number of four binary digits. Each digit of all these numbers is kept in one
/// lane.
struct Columns<L> {
    ones: L,
    twos: L,
    fours: L,
    eights: L,
}

impl<L: Lane> Columns<L> {
    /// Adds 16 lanes. Returns the carry, each bit of which counts 16. It works half by half, so that few
    /// values are live at a time and all fit the registers.
    #[inline(always)]
    fn add(&mut self, block: &[u8; LANES * LANE_BYTES]) -> L {
        let (halves, _) = block.as_chunks::<{ 8 * LANE_BYTES }>();
        let (a, b) = (self.add_8(&halves[0]), self.add_8(&halves[1]));
        add(&mut self.eights, a, b)
    }

    #[inline(always)]
    fn add_8(&mut self, block: &[u8; 8 * LANE_BYTES]) -> L {
        let (halves, _) = block.as_chunks::<{ 4 * LANE_BYTES }>();
        let (a, b) = (self.add_4(&halves[0]), self.add_4(&halves[1]));
        add(&mut self.fours, a, b)
    }

    #[inline(always)]
    fn add_4(&mut self, block: &[u8; 4 * LANE_BYTES]) -> L {
        let (lanes, _) = block.as_chunks::<LANE_BYTES>();
        let a = add(&mut self.ones, L::load(&lanes[0]), L::load(&lanes[1]));
        let b = add(&mut self.ones, L::load(&lanes[2]), L::load(&lanes[3]));
        add(&mut self.twos, a, b)
    }

    #[inline(always)]
    fn weight(&self) -> u64 {
        // Without a closure: it would not be compiled for the vectors that it has to do with.
        let (ones, twos) = (self.ones.weights().total(), self.twos.weights().total());
        8 * self.eights.weights().total() + 4 * self.fours.weights().total() + 2 * twos + ones
    }
}

/// Adds two lanes to a digit. Returns the carry, each bit of which counts twice as much.
#[inline(always)]
fn add<L: Lane>(column: &mut L, a: L, b: L) -> L {
    let half = column.xor(a);
    let carry = column.and(a).or(half.and(b));
    *column = half.xor(b);
    carry
}

/// For any processor; the compiler makes vectors of 16 bytes of it where there are some.
impl Lane for [u64; 4] {
    const NONE: [u64; 4] = [0; 4];

    #[inline(always)]
    fn load(bytes: &[u8; LANE_BYTES]) -> [u64; 4] {
        let (words, _) = bytes.as_chunks::<8>();
        std::array::from_fn(|i| u64::from_le_bytes(words[i]))
    }

    #[inline(always)]
    fn xor(self, other: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|i| self[i] ^ other[i])
    }

    #[inline(always)]
    fn and(self, other: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|i| self[i] & other[i])
    }

    #[inline(always)]
    fn or(self, other: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|i| self[i] | other[i])
    }

    #[inline(always)]
    fn weights(self) -> [u64; 4] {
        self.map(|word| u64::from(word.count_ones()))
    }

    #[inline(always)]
    fn plus(self, other: [u64; 4]) -> [u64; 4] {
        std::array::from_fn(|i| self[i] + other[i])
    }

    #[inline(always)]
    fn total(self) -> u64 {
        self.iter().sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LANE_BYTES, Lane, by_columns, by_words};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512vl,avx512vpopcntdq,avx2,popcnt")]
    pub(super) fn by_vectors(bytes: &[u8]) -> u64 {
        by_words(bytes)
    }

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn by_avx2_columns(bytes: &[u8]) -> u64 {
        by_columns::<Vector>(bytes)
    }

    /// What the compiler makes of four words depends on what surrounds them: it was half as fast in a program
    /// that was optimised as a whole. None is made but in [`by_avx2_columns`].
    #[derive(Clone, Copy)]
    struct Vector(__m256i);

    impl Lane for Vector {
        // SAFETY: all bits zero are a vector.
        const NONE: Vector = Vector(unsafe { std::mem::zeroed() });

        #[inline(always)]
        fn load(bytes: &[u8; LANE_BYTES]) -> Vector {
            // SAFETY: the processor has AVX2; the load is of 32 bytes, unaligned.
            Vector(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
        }

        #[inline(always)]
        fn xor(self, other: Vector) -> Vector {
            // SAFETY: the processor has AVX2.
            Vector(unsafe { _mm256_xor_si256(self.0, other.0) })
        }

        #[inline(always)]
        fn and(self, other: Vector) -> Vector {
            // SAFETY: the processor has AVX2.
            Vector(unsafe { _mm256_and_si256(self.0, other.0) })
        }

        #[inline(always)]
        fn or(self, other: Vector) -> Vector {
            // SAFETY: the processor has AVX2.
            Vector(unsafe { _mm256_or_si256(self.0, other.0) })
        }

        #[inline(always)]
        fn weights(self) -> Vector {
            // SAFETY: the processor has AVX2.
            unsafe {
                // How many bits each half of a byte has, for both halves of the register.
                let ones = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                    0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                ));
                let halves = _mm256_set1_epi8(0x0F);
                let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(self.0, halves));
                let high = _mm256_and_si256(_mm256_srli_epi16(self.0, 4), halves);
                let bytes = _mm256_add_epi8(low, _mm256_shuffle_epi8(ones, high));
                Vector(_mm256_sad_epu8(bytes, _mm256_setzero_si256()))
            }
        }

        #[inline(always)]
        fn plus(self, other: Vector) -> Vector {
            // SAFETY: the processor has AVX2.
            Vector(unsafe { _mm256_add_epi64(self.0, other.0) })
        }

        #[inline(always)]
        fn total(self) -> u64 {
            let mut words = [0u64; 4];
            // SAFETY: the processor has AVX2; the store is of 32 bytes, unaligned.
            unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self.0) };
            words.iter().sum()
        }
    }
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
                assert_eq!(by_columns::<[u64; 4]>(bytes), expected, "{len} from {start}, portable columns");
                #[cfg(target_arch = "x86_64")]
                if crate::code::wide::has_avx2() {
                    // SAFETY: the processor was just asked.
                    let found = unsafe { x86::by_avx2_columns(bytes) };
                    assert_eq!(found, expected, "{len} from {start}, columns");
                }
            }
        }
        assert_eq!(count_ones(&[0xFF; 3000]), 24_000);
    }
}
