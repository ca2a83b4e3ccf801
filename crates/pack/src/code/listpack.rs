//! How long values would be in a Redis listpack. Nothing is kept in one here, but users see what follows from
//! it: the name that OBJECT ENCODING answers, and when a node of a list or a stream is full.
//!
//! A listpack is a header of 6 bytes, its entries, and an end byte. An entry is an encoding with the data,
//! then its own length again, backwards:
//!
//! | value | encoding and data | length |
//! |---|---|---|
//! | integer of 7 bits unsigned, 13, 16, 24, 32, 64 bits | 1, 2, 3, 4, 5, 9 | 1 |
//! | string below 64 bytes, 4,096, longer | 1, 2, 5 and the bytes | 1 below 128, 2 below 16,383, 3, 4, 5 |
use base::Item;

/// A listpack without entries.
pub const EMPTY_BYTES: u64 = 7;

/// The bytes of one entry.
#[inline]
pub fn entry_bytes(item: Item<'_>) -> u64 {
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
}
