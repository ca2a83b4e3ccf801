//! Words of 16, 32 and 64 bits anywhere in a run of bytes, little endian, and how many bits or bytes a number
//! needs.
//!
//! Leaves are read on every kind of processor in the same order of bytes. Each load is one instruction where
//! the length is known, and two comparisons where it is not: an offset beyond the end is a bug and ends in a
//! panic.

/// The word of 16 bits that begins at `bytes[at]`.
#[inline(always)]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(*bytes[at..].first_chunk().expect("2 bytes from there on"))
}

/// The word of 32 bits that begins at `bytes[at]`.
#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("4 bytes from there on"))
}

/// The word of 64 bits that begins at `bytes[at]`.
#[inline(always)]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes from there on"))
}

/// How many bits hold `n`: 0 for 0, 64 for the greatest.
#[inline]
pub(crate) fn bits_of(n: u64) -> u32 {
    u64::BITS - n.leading_zeros()
}

/// How many bytes hold `n`: 0 for 0, 8 for the greatest.
#[inline]
pub(crate) fn bytes_of(n: u64) -> usize {
    bits_of(n).div_ceil(8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_lowest_byte_first_wherever_they_begin() {
        let bytes = [9, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(u16_at(&bytes, 1), 0x0201);
        assert_eq!(u32_at(&bytes, 1), 0x0403_0201);
        assert_eq!(u64_at(&bytes, 1), 0x0807_0605_0403_0201);
    }

    #[test]
    fn a_number_needs_as_many_bits_as_its_highest_one_and_whole_bytes_of_them() {
        assert_eq!((bits_of(0), bytes_of(0)), (0, 0));
        for bit in 0..64 {
            let n = 1 << bit;
            assert_eq!((bits_of(n), bytes_of(n)), (bit + 1, bit as usize / 8 + 1));
            assert_eq!(bits_of(n | (n - 1)), bit + 1);
        }
    }
}
