//! What Redis would call a list: "listpack" while it is one block, "quicklist" when it is a chain of them. The name depends on the
//! size that the list would have as a listpack, so every list keeps that size while it is edited; our own bytes are
//! laid out otherwise (`pack::seq`).
//!
//! A listpack is a header of 6 bytes, its entries, and an end byte. An entry is an encoding with the data, then its own length again, backwards:
//!
//! | value | encoding and data | length |
//! |---|---|---|
//! | integer of 7 bits unsigned, 13, 16, 24, 32, 64 bits | 1, 2, 3, 4, 5, 9 | 1 |
//! | string below 64 bytes, below 4,096, longer | 1, 2, 5 and the bytes | 1 below 128, 2 below 16,383, 3, 4, 5 |
//!
//! When the name changes (Redis 8.0, asked): *before* elements are added, if the listpack and the plain text of all that the command adds
//! exceed `list-max-listpack-size`; back again after a removal, if half of that limit suffices. Where the limit is a count, it is
//! the count that is halved. Redis asks for one thing more on the way back, that its chain has become one node; we keep no
//! such chain, so a list that was cut to two small pieces of two nodes is a "listpack" here and a "quicklist" there.
use crate::Fill;
use base::Item;

/// A listpack without entries.
pub(crate) const EMPTY_BYTES: u64 = 7;
/// The smallest entry.
const ENTRY_BYTES_MIN: u64 = 2;
/// Where the limit is a count, a listpack is no larger than this all the same.
const COUNTED_BYTES_MAX: u64 = 8192;

/// The name of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Listpack,
    Quicklist,
}

impl Encoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Encoding::Listpack => "listpack",
            Encoding::Quicklist => "quicklist",
        }
    }
}

/// The bytes of one entry.
pub(crate) fn entry_bytes(item: Item<'_>) -> u64 {
    match item {
        Item::Int(0..=127) => 2,
        Item::Int(-4096..=4095) => 3,
        Item::Int(-0x8000..=0x7FFF) => 4,
        Item::Int(-0x80_0000..=0x7F_FFFF) => 5,
        Item::Int(-0x8000_0000..=0x7FFF_FFFF) => 6,
        Item::Int(_) => 10,
        Item::Bytes(bytes) => string_bytes(bytes.len() as u64),
    }
}

fn string_bytes(len: u64) -> u64 {
    let head = match len {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let body = head + len;
    let back = match body {
        0..128 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    body + back
}

/// Whether a listpack of these sizes is too large.
pub(crate) fn exceeds(fill: Fill, bytes: u64, len: u64) -> bool {
    match fill {
        Fill::Bytes(limit) => bytes > u64::from(limit),
        Fill::Entries(limit) => bytes > COUNTED_BYTES_MAX || len > u64::from(limit),
    }
}

/// Whether a list of these sizes goes back to being a listpack after a removal.
pub(crate) fn fits_half(fill: Fill, bytes: u64, len: u64) -> bool {
    match fill {
        Fill::Bytes(limit) => bytes <= u64::from(limit / 2),
        Fill::Entries(limit) => len <= u64::from(limit / 2),
    }
}

/// Whether `len` elements cannot fit into half the limit, however small they are.
pub(crate) fn is_surely_long(fill: Fill, len: u64) -> bool {
    !fits_half(fill, EMPTY_BYTES + ENTRY_BYTES_MIN * len, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_as_long_as_a_listpack_makes_them() {
        let ints = [
            (0, 2),
            (127, 2),
            (128, 3),
            (-1, 3),
            (-4096, 3),
            (4095, 3),
            (4096, 4),
            (-4097, 4),
            (32_768, 5),
            (1 << 23, 6),
            (1 << 31, 10),
            (i64::MIN, 10),
        ];
        for (n, bytes) in ints {
            assert_eq!(entry_bytes(Item::Int(n)), bytes, "{n}");
        }
        for (len, bytes) in
            [(0, 2), (63, 65), (64, 67), (100, 103), (125, 128), (126, 130), (4095, 4099), (4096, 4103)]
        {
            assert_eq!(string_bytes(len), bytes, "{len}");
        }
    }

    #[test]
    fn the_limits_are_those_that_redis_showed() {
        let fill = Fill::Bytes(8192);
        // The 80th of 100 bytes turns the list into a quicklist; popped down to 39 it is a listpack again.
        assert!(!exceeds(fill, EMPTY_BYTES + 78 * 103 + 100, 79));
        assert!(exceeds(fill, EMPTY_BYTES + 79 * 103 + 100, 80));
        assert!(!fits_half(fill, EMPTY_BYTES + 40 * 103, 40));
        assert!(fits_half(fill, EMPTY_BYTES + 39 * 103, 39));
        let fill = Fill::Entries(5);
        assert!(!exceeds(fill, 100, 5) && exceeds(fill, 100, 6) && exceeds(fill, 8193, 1));
        assert!(!fits_half(fill, 100, 3) && fits_half(fill, 100, 2));
        assert!(!fits_half(Fill::Entries(1), 10, 1));
    }
}
