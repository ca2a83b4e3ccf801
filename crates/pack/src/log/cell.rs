//! Cells: values one after another, each with one byte in front that says what kind of value it is, and often
//! how long.
//!
//! ```text
//! 00..6f   a string of so many bytes, which follow
//! 70..77   an integer of 1 to 8 bytes, little endian, two's complement
//! 78       a string: its length as a varint, then its bytes
//! 80..ff   nothing follows: the integers 0 to 127
//! ```
//!
//! `abc`, `5`, `1000`: `03 61 62 63 | 85 | 71 e8 03`. A string costs one byte more than its text up to 111
//! bytes, an integer at most one more than its shortest form. Text that reads as an integer is always kept as
//! one, so equal values have equal cells.
use crate::code::short_int::{int_len, read_int};
use crate::code::varint::{read_varint, varint_len, write_varint};
use base::Item;

const STRING_MAX: usize = 0x6F;
const INT: u8 = 0x70;
const LONG: u8 = 0x78;
const SMALL: u8 = 0x80;

/// How long the cell of a text of `len` bytes is at most; just so long where it is written as text.
pub(crate) fn len_max(len: usize) -> usize {
    if len <= STRING_MAX { len + 1 } else { 1 + varint_len(len) + len }
}

/// How long the cell of a value is.
pub(crate) fn len(item: Item<'_>) -> usize {
    match item {
        Item::Int(0..=127) => 1,
        Item::Int(n) => 1 + int_len(n),
        Item::Bytes(bytes) => len_max(bytes.len()),
    }
}

/// Writes one cell at the start of `to`, which has room for [`len_max`]; returns its length.
pub(crate) fn write(to: &mut [u8], item: Item<'_>) -> usize {
    debug_assert!(!to.is_empty());
    match item {
        Item::Int(n @ 0..=127) => {
            to[0] = SMALL | n as u8;
            1
        }
        Item::Int(n) => {
            let len = int_len(n);
            debug_assert!((1..=8).contains(&len));
            to[0] = INT + len as u8 - 1;
            to[1..=len].copy_from_slice(&n.to_le_bytes()[..len]);
            1 + len
        }
        Item::Bytes(bytes) => write_string(to, bytes),
    }
}

/// Writes a cell of text, even if the text reads as an integer.
pub(crate) fn write_string(to: &mut [u8], bytes: &[u8]) -> usize {
    let head = if bytes.len() <= STRING_MAX {
        to[0] = bytes.len() as u8;
        1
    } else {
        to[0] = LONG;
        1 + write_varint(&mut to[1..], bytes.len())
    };
    debug_assert!(head + bytes.len() <= len_max(bytes.len()), "{head} and {}", bytes.len());
    to[head..head + bytes.len()].copy_from_slice(bytes);
    head + bytes.len()
}

/// The value of the cell at the start of `from`, and the cell's length.
#[inline]
pub(crate) fn read(from: &[u8]) -> (Item<'_>, usize) {
    match from[0] {
        head @ SMALL.. => (Item::Int(i64::from(head & 0x7F)), 1),
        head if usize::from(head) <= STRING_MAX => {
            let end = 1 + usize::from(head);
            (Item::Bytes(&from[1..end]), end)
        }
        LONG => {
            let (len, bytes) = read_varint(&from[1..]);
            let end = 1 + bytes + len;
            (Item::Bytes(&from[1 + bytes..end]), end)
        }
        head => {
            debug_assert!((INT..LONG).contains(&head), "no cell begins with {head:#x}");
            let end = 2 + usize::from(head - INT);
            (Item::Int(read_int(&from[1..end])), end)
        }
    }
}

/// The text of a cell that [`write_string`] wrote, and the cell's length.
#[inline]
pub(crate) fn read_string(from: &[u8]) -> (&[u8], usize) {
    match read(from) {
        (Item::Bytes(bytes), len) => (bytes, len),
        (Item::Int(_), _) => unreachable!("the caller wrote text here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_in_the_opener_is_true() {
        let mut out = [0; 16];
        let mut at = 0;
        for value in [&b"abc"[..], b"5", b"1000"] {
            at += write(&mut out[at..], Item::classify(value));
        }
        assert_eq!(out[..at], [0x03, 0x61, 0x62, 0x63, 0x85, 0x71, 0xE8, 0x03]);
    }

    #[test]
    fn what_is_written_is_read() {
        let long = vec![b'x'; 70_000];
        let texts: [&[u8]; 12] = [
            b"",
            b"a",
            b"127",
            b"128",
            b"-1",
            b"-129",
            b"9223372036854775807",
            b"-9223372036854775808",
            b"007",
            &long[..111],
            &long[..112],
            &long,
        ];
        for text in texts {
            let item = Item::classify(text);
            let mut out = vec![0xEE; len_max(text.len())];
            let len = write(&mut out, item);
            assert_eq!(read(&out), (item, len));
            let len = write_string(&mut out, text);
            assert_eq!(read_string(&out), (text, len));
        }
    }
}
