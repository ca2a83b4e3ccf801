//! What a hash keeps for one field: the value, and the field's deadline where it has one.
//!
//! ```text
//! meta      bit 5  the value is an integer     bit 6  there is a deadline   (the others: `pack::fields`)
//! payload   [deadline: 5 or 11 bytes][value]
//!
//! deadline  5 bytes:  milliseconds since 1970 less 2^40, little endian: 2004-11-03 to 2039-09-07
//!           11 bytes: five of FF, then milliseconds since 1970 in 6 bytes, little endian: any other up to
//!           the year 10889
//! value     an integer in 1 to 8 bytes, or text; text of more than 512 bytes lies outside, behind the
//!           entry's pointer
//! ```
//!
//! The value `1000` with the deadline 1800000000000 is meta `60` and `00 50 5C 18 A3 E8 03`. Inside the
//! keyspace entry of a small hash the deadline has the same bytes, as the mark of a pair (`pack::pairs`).
use crate::expiry::deadline::Deadline;
use base::{Item, Millis};
use pack::map::{Found, Shared};
use pack::short_int::{ShortInt, read_int};

const INT: u8 = 1 << 5;
const TIMED: u8 = 1 << 6;

/// Text of more bytes lies outside.
const INLINE_BYTES_MAX: usize = 512;

const BIAS_MS: u64 = 1 << 40;
const SHORT_BYTES: usize = 5;
const LONG_BYTES: usize = 11;
const ESCAPE: [u8; SHORT_BYTES] = [0xFF; SHORT_BYTES];
/// The last deadline that a field may have: 48 bits less two, as in Redis.
pub(crate) const DEADLINE_MAX_MS: u64 = (1 << 48) - 2;

/// A field's deadline as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    bytes: [u8; LONG_BYTES],
    len: u8,
}

impl Mark {
    pub(crate) fn new(deadline: Deadline) -> Mark {
        let mut mark = Mark { bytes: [0xFF; LONG_BYTES], len: 0 };
        if let Deadline::At(Millis(ms)) = deadline {
            let ms = u64::try_from(ms).unwrap_or(0).min(DEADLINE_MAX_MS);
            match ms.checked_sub(BIAS_MS).filter(|short| *short < BIAS_MS - 1) {
                Some(short) => {
                    mark.bytes[..SHORT_BYTES].copy_from_slice(&short.to_le_bytes()[..SHORT_BYTES]);
                    mark.len = SHORT_BYTES as u8;
                }
                None => {
                    mark.bytes[SHORT_BYTES..].copy_from_slice(&ms.to_le_bytes()[..LONG_BYTES - SHORT_BYTES]);
                    mark.len = LONG_BYTES as u8;
                }
            }
        }
        mark
    }

    /// The deadline's bytes; None where there is no deadline.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        (self.len > 0).then(|| &self.bytes[..usize::from(self.len)])
    }

    /// The deadline that some bytes begin with, and how many of them it takes.
    pub(crate) fn read(bytes: &[u8]) -> (Deadline, usize) {
        let mut wide = [0; 8];
        if bytes[..SHORT_BYTES] != ESCAPE {
            wide[..SHORT_BYTES].copy_from_slice(&bytes[..SHORT_BYTES]);
            return (Deadline::At(Millis((u64::from_le_bytes(wide) + BIAS_MS) as i64)), SHORT_BYTES);
        }
        wide[..LONG_BYTES - SHORT_BYTES].copy_from_slice(&bytes[SHORT_BYTES..LONG_BYTES]);
        (Deadline::At(Millis(u64::from_le_bytes(wide) as i64)), LONG_BYTES)
    }
}

/// A field's value and deadline, as they are read.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'f> {
    pub(crate) value: Item<'f>,
    pub(crate) deadline: Deadline,
}

impl<'f> Kept<'f> {
    #[inline]
    pub(crate) fn of(found: &Found<'f, Vec<u8>>) -> Kept<'f> {
        let (deadline, start) = match found.meta & TIMED {
            0 => (Deadline::Never, 0),
            _ => Mark::read(found.inline),
        };
        let value = match found.outside {
            Some(text) => Item::Bytes(text),
            None if found.meta & INT != 0 => Item::Int(read_int(&found.inline[start..])),
            None => Item::Bytes(&found.inline[start..]),
        };
        Kept { value, deadline }
    }

    /// What is kept for a field with an integer value and no deadline.
    #[inline]
    pub(crate) fn endless(value: i64) -> Kept<'static> {
        Kept { value: Item::Int(value), deadline: Deadline::Never }
    }

    /// The deadline of a field, without reading its value.
    pub(crate) fn deadline_of(meta: u8, inline: &[u8]) -> Deadline {
        if meta & TIMED == 0 { Deadline::Never } else { Mark::read(inline).0 }
    }

    /// Whether the value lies outside.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.value, Item::Bytes(text) if text.len() > INLINE_BYTES_MAX)
    }

    pub(crate) fn outside(&self) -> Option<Shared<Vec<u8>>> {
        match self.value {
            Item::Bytes(text) if text.len() > INLINE_BYTES_MAX => Some(Shared::new(text.to_vec())),
            _ => None,
        }
    }

    /// Hands meta and payload to `write`.
    #[inline]
    pub(crate) fn lay_out<R>(&self, write: impl FnOnce(u8, &[u8]) -> R) -> R {
        let int;
        let (meta, bytes) = match self.value {
            Item::Int(n) => {
                int = ShortInt::new(n);
                (INT, int.as_bytes())
            }
            Item::Bytes(text) if text.len() > INLINE_BYTES_MAX => (0, &[][..]),
            Item::Bytes(text) => (0, text),
        };
        match self.deadline {
            Deadline::Never => write(meta, bytes),
            deadline => {
                let mark = Mark::new(deadline);
                let mark = mark.bytes().expect("a deadline has a mark");
                let mut payload = [0; LONG_BYTES + INLINE_BYTES_MAX];
                payload[..mark.len()].copy_from_slice(mark);
                payload[mark.len()..][..bytes.len()].copy_from_slice(bytes);
                write(meta | TIMED, &payload[..mark.len() + bytes.len()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(value: Item<'_>, deadline: Deadline) -> Vec<u8> {
        Kept { value, deadline }.lay_out(|meta, inline| {
            let found = Found { key: b"f", meta, inline, outside: None };
            let kept = Kept::of(&found);
            assert_eq!((kept.value, kept.deadline), (value, deadline));
            assert_eq!(Kept::deadline_of(meta, inline), deadline);
            [&[meta][..], inline].concat()
        })
    }

    #[test]
    fn the_example_in_the_opener_is_true() {
        let deadline = Deadline::At(Millis(1_800_000_000_000));
        assert_eq!(round_trip(Item::Int(1000), deadline), b"\x60\x00\x50\x5C\x18\xA3\xE8\x03");
    }

    #[test]
    fn deadlines_of_our_time_take_five_bytes_and_all_others_eleven() {
        let bias = BIAS_MS as i64;
        for (ms, len) in [
            (bias, 5),
            (2 * bias - 2, 5),
            (2 * bias - 1, 11),
            (bias - 1, 11),
            (1, 11),
            (DEADLINE_MAX_MS as i64, 11),
        ] {
            let deadline = Deadline::At(Millis(ms));
            assert_eq!(Mark::new(deadline).bytes().map(<[u8]>::len), Some(len), "{ms}");
            for value in [Item::Bytes(b""), Item::Bytes(b"value"), Item::Int(-1), Item::Int(i64::MAX)] {
                round_trip(value, deadline);
                round_trip(value, Deadline::Never);
            }
        }
        assert!(Mark::new(Deadline::Never).bytes().is_none());
    }
}
