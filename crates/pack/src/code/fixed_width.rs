//! Columns of codes: unsigned numbers of 0 to 8 bytes each, all of one column equally wide, little endian,
//! back to back.
//!
//! Code `i` of a column lies `i * width` bytes behind its first, so that columns in which the codes rise are
//! searched without being decoded. 1, 300, 500 in a column of width 2: `01 00 2c 01 f4 01`. A column of width
//! 0 takes no bytes, and all of its codes are 0. What a code means is up to the leaf: a distance from a base
//! ([`crate::integers::paired`]), a level of a score ([`crate::code::score`]), a place
//! ([`crate::sorted::placed`]).
//!
//! A code is read and written as a whole word and masked, which costs less than a copy of a length that is
//! known only when it runs. On the path of every lookup in a sorted set or a map of integers.
use crate::code::quarters::count_before;
use crate::code::words::u64_at;

/// The widest code.
const WORD: usize = size_of::<u64>();

/// Whether `code` can be written in `width` bytes, 0 to 8.
#[inline]
pub(crate) fn fits(code: u64, width: usize) -> bool {
    width == WORD || code >> (8 * width) == 0
}

/// The greatest code of `width` bytes, 0 to 8.
#[inline]
pub(crate) fn code_max(width: usize) -> u64 {
    u64::MAX.checked_shr(u64::BITS - 8 * width as u32).unwrap_or(0)
}

/// The code of `width` bytes, 0 to 8, that begins at `bytes[at]`.
#[inline(always)]
pub(crate) fn read_code(bytes: &[u8], at: usize, width: usize) -> u64 {
    debug_assert!(width <= WORD && at + width <= bytes.len(), "{width} bytes at {at} of {}", bytes.len());
    match bytes.get(at..at + WORD) {
        Some(word) if width < WORD => u64_at(word, 0) & ((1 << (8 * width)) - 1),
        Some(word) => u64_at(word, 0),
        None => read_last_code(bytes, at, width),
    }
}

/// As [`read_code`], so near the end of the bytes that a load of a whole word would reach beyond them.
#[cold]
fn read_last_code(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; WORD];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(word)
}

/// Writes `code` as `width` bytes at `bytes[at]`; it [fits] them. What follows stays as it is.
#[inline]
pub(crate) fn write_code(bytes: &mut [u8], at: usize, width: usize, code: u64) {
    debug_assert!(fits(code, width), "{code} in {width} bytes");
    match bytes.get_mut(at..at + WORD) {
        // What follows the code is read and written back: cheaper than a copy whose length is not known.
        Some(word) if width < WORD => {
            let old = u64_at(word, 0);
            let kept = old & !((1 << (8 * width)) - 1);
            word.copy_from_slice(&(kept | code).to_le_bytes());
        }
        _ => bytes[at..at + width].copy_from_slice(&code.to_le_bytes()[..width]),
    }
}

/// How many of the `count` codes from `bytes[at]` on are below `limit`. The codes rise. Costs two or three
/// loads for each factor of four in `count`.
#[inline]
pub(crate) fn count_below(bytes: &[u8], at: usize, width: usize, count: usize, limit: u64) -> usize {
    if count == 0 {
        return 0;
    }
    assert!(at + count * width <= bytes.len(), "{count} codes of {width} bytes at {at}");
    let codes = &bytes[at..];
    match width {
        1 => below::<1>(codes, count, limit),
        2 => below::<2>(codes, count, limit),
        3 => below::<3>(codes, count, limit),
        4 => below::<4>(codes, count, limit),
        5 => below::<5>(codes, count, limit),
        6 => below::<6>(codes, count, limit),
        7 => below::<7>(codes, count, limit),
        8 => below::<8>(codes, count, limit),
        // Codes of width 0 are all 0.
        _ => {
            if limit > 0 {
                count
            } else {
                0
            }
        }
    }
}

/// The search in codes of a width that is known while compiling. Codes of 3, 5, 6 or 7 bytes are read as
/// whole words where these do not reach beyond the end of the bytes: nearly always something follows the
/// codes.
#[inline]
fn below<const WIDTH: usize>(bytes: &[u8], count: usize, limit: u64) -> usize {
    if !WIDTH.is_power_of_two() && bytes.len() >= count * WIDTH + WORD - WIDTH {
        let mask = (1 << (8 * WIDTH)) - 1;
        return count_before(count, |index| {
            debug_assert!(index < count);
            // SAFETY: a search asks for nothing beyond the end (tested there), and the last word ends within
            // the bytes.
            let word = unsafe { bytes.get_unchecked(index * WIDTH..index * WIDTH + WORD) };
            u64_at(word, 0) & mask < limit
        });
    }
    let codes = &bytes.as_chunks::<WIDTH>().0[..count];
    count_before(count, |index| {
        debug_assert!(index < count);
        let mut word = [0; WORD];
        // SAFETY: a search asks for nothing beyond the end (tested there).
        word[..WIDTH].copy_from_slice(unsafe { codes.get_unchecked(index) });
        u64::from_le_bytes(word) < limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn a_code_fits_where_it_is_no_greater_than_the_greatest() {
        for width in 0..=WORD {
            assert!(fits(code_max(width), width));
            assert!(width == WORD || !fits(code_max(width) + 1, width));
        }
        assert_eq!((code_max(0), code_max(1), code_max(WORD)), (0, 255, u64::MAX));
    }

    #[test]
    fn counting_codes_agrees_with_a_plain_search() {
        let mut random = Random::new(7);
        for _ in 0..2000 {
            let (width, count) = (random.below(9) as usize, random.below(130) as usize);
            let mask = code_max(width);
            let mut codes: Vec<u64> = (0..count).map(|_| random.next_u64() & mask).collect();
            codes.sort_unstable();
            let mut bytes = vec![9; 3 + count * width];
            for (index, code) in codes.iter().enumerate() {
                write_code(&mut bytes, 3 + index * width, width, *code);
            }
            for limit in codes.iter().copied().chain([0, 1, mask, u64::MAX, random.next_u64() & mask]) {
                let expected = codes.partition_point(|code| *code < limit);
                assert_eq!(count_below(&bytes, 3, width, count, limit), expected);
                // Where something follows, as nearly always.
                let longer = [&bytes[..], &[7; 8]].concat();
                assert_eq!(count_below(&longer, 3, width, count, limit), expected);
            }
        }
    }
}
