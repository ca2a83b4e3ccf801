//! How a tight leaf begins: its kind and its count, in 2 bytes or 5. A tight leaf is a short list inside its
//! keyspace entry ([`crate::list::image`]), or what a codec compresses ([`crate::list::compressed`]): without
//! room, and with nothing in its header that follows from its length.
//!
//! ```text
//! 0  kind, bit 6: the count has 4 bytes    1  count (1 byte, or 4, little endian)    then the rest
//! ```
//!
//! Three strings begin with `01 03`, 300 integers with `42 2c 01 00 00`.
use crate::code::words::u32_at;

const LONG_COUNT: u8 = 1 << 6;
/// The greatest count of one byte.
const SHORT_COUNT_MAX: usize = u8::MAX as usize;

/// How many bytes kind and count take.
pub(crate) const fn head_len(count: usize) -> usize {
    if count <= SHORT_COUNT_MAX { 2 } else { 5 }
}

/// The count of a tight leaf and where what follows it begins.
#[inline]
pub(crate) fn read_count(bytes: &[u8]) -> (usize, usize) {
    if bytes[0] & LONG_COUNT == 0 { (usize::from(bytes[1]), 2) } else { (u32_at(bytes, 1) as usize, 5) }
}

/// Appends `kind` and `count`.
pub(crate) fn write_count(kind: u8, count: usize, target: &mut Vec<u8>) {
    debug_assert!(kind & LONG_COUNT == 0 && count <= u32::MAX as usize, "kind {kind:#x}, {count} elements");
    if count <= SHORT_COUNT_MAX {
        target.extend_from_slice(&[kind, count as u8]);
    } else {
        target.push(kind | LONG_COUNT);
        target.extend_from_slice(&(count as u32).to_le_bytes());
    }
}

/// Gives a tight leaf another count, for which [`is_short_count`] says yes.
pub(crate) fn rewrite_count(bytes: &mut [u8], count: usize) {
    assert!(bytes[0] & LONG_COUNT == 0 && count <= SHORT_COUNT_MAX, "a count of one byte");
    bytes[1] = count as u8;
}

/// Whether the count of a tight leaf takes one byte, and would if it were this one.
pub(crate) fn is_short_count(bytes: &[u8], count: usize) -> bool {
    bytes[0] & LONG_COUNT == 0 && count <= SHORT_COUNT_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_takes_one_byte_or_four_and_comes_back() {
        for count in [0, 1, 3, 254, 255, 256, 300, 70_000, u32::MAX as usize] {
            let mut head = Vec::new();
            write_count(2, count, &mut head);
            assert_eq!((head.len(), read_count(&head)), (head_len(count), (count, head_len(count))));
        }
        let mut head = Vec::new();
        write_count(2, 300, &mut head);
        assert_eq!(head, [0x42, 0x2C, 1, 0, 0]);
    }
}
