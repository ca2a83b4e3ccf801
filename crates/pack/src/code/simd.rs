//! Sixteen bytes at a time: finding a tag, and adding up lengths. On the path of every lookup.
//!
//! Two operations on a group of 16 bytes, for each instruction set one small file-private module: SSE2, which
//! every x86-64 has, and portable words. The portable twin is always compiled and tested against the other.

/// Bytes in a group.
pub(crate) const LANES: usize = 16;

pub(crate) type Group = [u8; LANES];

/// A bit for each lane whose byte is `tag`: lane 0 is the lowest bit.
#[inline(always)]
pub(crate) fn matches(tags: &Group, tag: u8) -> u32 {
    native::matches(tags, tag)
}

/// The sum of the first `count` lanes.
#[inline(always)]
pub(crate) fn sum_first(lanes: &Group, count: usize) -> u32 {
    debug_assert!(count <= LANES);
    native::sum_first(lanes, count)
}

#[cfg(target_arch = "x86_64")]
use sse2 as native;

#[cfg(not(target_arch = "x86_64"))]
use portable as native;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use super::{Group, LANES};
    use std::arch::x86_64::*;

    /// The 16 bytes from 16 - n on are n bytes of ones, then zeros.
    static ONES_THEN_ZEROS: [u8; 2 * LANES] = {
        let mut bytes = [0; 2 * LANES];
        let mut lane = 0;
        while lane < LANES {
            bytes[lane] = 0xFF;
            lane += 1;
        }
        bytes
    };

    #[inline(always)]
    pub(super) fn matches(tags: &Group, tag: u8) -> u32 {
        // SAFETY: SSE2 is part of x86-64; the load is of 16 bytes, unaligned.
        unsafe {
            let tags = _mm_loadu_si128(tags.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(tags, _mm_set1_epi8(tag as i8))) as u32
        }
    }

    #[inline(always)]
    pub(super) fn sum_first(lanes: &Group, count: usize) -> u32 {
        // SAFETY: as above; the window begins at 0 to 16 and is 16 bytes of 32.
        unsafe {
            let mask = _mm_loadu_si128(ONES_THEN_ZEROS.as_ptr().add(LANES - count.min(LANES)).cast());
            sum_vector(_mm_and_si128(mask, _mm_loadu_si128(lanes.as_ptr().cast())))
        }
    }

    #[inline(always)]
    fn sum_vector(lanes: __m128i) -> u32 {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let halves = _mm_sad_epu8(lanes, _mm_setzero_si128());
            let high = _mm_unpackhi_epi64(halves, halves);
            _mm_cvtsi128_si32(_mm_add_epi32(halves, high)) as u32
        }
    }
}

#[cfg_attr(target_arch = "x86_64", cfg(test))]
mod portable {
    use super::Group;

    pub(super) fn matches(tags: &Group, tag: u8) -> u32 {
        tags.iter().enumerate().fold(0, |bits, (lane, byte)| bits | (u32::from(*byte == tag) << lane))
    }

    pub(super) fn sum_first(lanes: &Group, count: usize) -> u32 {
        lanes[..count].iter().map(|byte| u32::from(*byte)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn the_native_operations_agree_with_the_portable_ones() {
        let mut random = Random::new(3);
        for _ in 0..5000 {
            // Few distinct bytes, so that tags repeat.
            let spread = [2, 7, 256][random.below(3) as usize];
            let lanes: Group = std::array::from_fn(|_| 255 - random.below(spread) as u8);
            let tag = 255 - random.below(spread) as u8;
            assert_eq!(matches(&lanes, tag), portable::matches(&lanes, tag), "{lanes:?} {tag}");
            for count in 0..=LANES {
                assert_eq!(sum_first(&lanes, count), portable::sum_first(&lanes, count), "{lanes:?} {count}");
            }
        }
        assert_eq!(sum_first(&[255; LANES], LANES), 4080);
    }
}
