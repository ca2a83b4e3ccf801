//! What the keyspace writes into the entries of its map: 7 bits of meta and a payload.
//!
//! ```text
//! meta      bit 6..2  shape of the value
//!           bit 1..0  width of the deadline: 0 none, 1 five bytes, 2 eight bytes
//! payload   [deadline: 0, 5 or 8 bytes][value]
//!
//! deadline  5 bytes: milliseconds since 1970 less 2^40, little endian: 2004-11-03 to 2039-09-07
//!           8 bytes: milliseconds since 1970 as a signed number, little endian: any other
//! value     Int*:   the shortest of 1 to 8 bytes, little endian, two's complement
//!           Bytes*: the bytes
//!           List*:  an image (`pack::image`)
//!           *Hash:  an image (`pack::pairs`)
//!           SetOfInts, SetInOrder, SetAsTable: an image (`pack::set_image`)
//!           ZSet*:  an image (`pack::sorted::image`)
//!           Long, ListTree, HashTree, SetOutside, ZSetTree, Stream: nothing; the value lies outside, behind
//!           the entry's pointer
//! ```
//!
//! Example: `SET k 1000 PXAT 1800000000000` gives meta `0x01` (Int, five bytes of deadline) and the payload
//! `00 50 5c 18 a3 | e8 03`. Without the deadline: meta `0x00`, payload `e8 03`.
//!
//! This file is on the path of every request, and nothing here allocates. `value.rs` says what the values
//! are.
use crate::expiry::deadline::Deadline;
use crate::kind::Kind;
use base::Millis;

/// A string of more bytes lies outside its entry, where it is edited in place. A shorter one is edited in a
/// buffer, which is two short copies; what would lie around it outside is 76 bytes more.
pub(crate) const INLINE_BYTES_MAX: usize = 2048;

/// What a value is, where it lies, and the name that OBJECT ENCODING gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Shape {
    /// An integer: "int".
    Int = 0,
    /// The text of an integer that Redis would hold as text: "embstr".
    IntText = 1,
    /// The same after an edit of the text: "raw".
    IntRaw = 2,
    /// "embstr" or "raw", by length.
    Bytes = 3,
    /// "raw" at any length.
    BytesRaw = 4,
    /// A string outside.
    Long = 5,
    /// A list inside the entry that goes by "listpack".
    Listpack = 6,
    /// A list inside the entry that goes by "quicklist".
    Quicklist = 7,
    /// A list outside.
    ListTree = 8,
    /// A hash inside the entry.
    Hash = 9,
    /// A hash inside the entry, of which some field has or had a deadline.
    TimedHash = 10,
    /// A hash outside.
    HashTree = 11,
    /// A set inside the entry that goes by "intset": its image is of integers.
    SetOfInts = 13,
    /// A set inside the entry that goes by "listpack": its image is of items.
    SetInOrder = 14,
    /// A set inside the entry that goes by "hashtable": its image is of items.
    SetAsTable = 15,
    /// A set outside.
    SetOutside = 16,
    /// A sorted set inside the entry that goes by "listpack".
    ZSetListpack = 18,
    /// A sorted set inside the entry that goes by "skiplist".
    ZSetSkiplist = 19,
    /// A sorted set outside.
    ZSetTree = 20,
    /// A stream, which is always outside.
    Stream = 22,
}

impl Shape {
    const ALL: [Shape; 20] = [
        Shape::Int,
        Shape::IntText,
        Shape::IntRaw,
        Shape::Bytes,
        Shape::BytesRaw,
        Shape::Long,
        Shape::Listpack,
        Shape::Quicklist,
        Shape::ListTree,
        Shape::Hash,
        Shape::TimedHash,
        Shape::HashTree,
        Shape::SetOfInts,
        Shape::SetInOrder,
        Shape::SetAsTable,
        Shape::SetOutside,
        Shape::ZSetListpack,
        Shape::ZSetSkiplist,
        Shape::ZSetTree,
        Shape::Stream,
    ];

    /// The shape of each number that five bits can say. Each type has a range of numbers.
    const BY_NUMBER: [Option<Shape>; 32] = {
        let mut table = [None; 32];
        let mut index = 0;
        while index < Shape::ALL.len() {
            table[Shape::ALL[index] as usize] = Some(Shape::ALL[index]);
            index += 1;
        }
        table
    };

    pub(crate) fn kind(self) -> Kind {
        match self as u8 {
            ..=5 => Kind::String,
            6..=8 => Kind::List,
            9..=12 => Kind::Hash,
            13..=17 => Kind::Set,
            18..=21 => Kind::ZSet,
            _ => Kind::Stream,
        }
    }

    /// Whether the value lies behind the entry's pointer.
    pub(crate) fn is_outside(self) -> bool {
        matches!(
            self,
            Shape::Long
                | Shape::ListTree
                | Shape::HashTree
                | Shape::SetOutside
                | Shape::ZSetTree
                | Shape::Stream
        )
    }
}

/// The 7 bits of meta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta(pub(crate) u8);

impl Meta {
    pub(crate) fn new(shape: Shape, stamp: &Stamp) -> Meta {
        Meta((shape as u8) << 2 | stamp.width)
    }

    pub(crate) fn shape(self) -> Shape {
        Shape::BY_NUMBER[usize::from(self.0 >> 2)].expect("an entry's meta has a shape that there is")
    }

    /// Whether the value is a string.
    #[inline]
    pub(crate) fn is_string(self) -> bool {
        self.0 >> 2 <= Shape::Long as u8
    }

    pub(crate) fn is_volatile(self) -> bool {
        self.0 & 3 != 0
    }

    fn deadline_len(self) -> usize {
        [0, 5, 8, 0][usize::from(self.0 & 3)]
    }

    pub(crate) fn deadline(self, payload: &[u8]) -> Deadline {
        let mut bytes = [0; 8];
        match self.0 & 3 {
            1 => {
                bytes[..5].copy_from_slice(&payload[..5]);
                Deadline::At(Millis(i64::from_le_bytes(bytes) + BIAS_MS))
            }
            2 => {
                bytes.copy_from_slice(&payload[..8]);
                Deadline::At(Millis(i64::from_le_bytes(bytes)))
            }
            _ => Deadline::Never,
        }
    }

    /// The part of the payload behind the deadline.
    pub(crate) fn value(self, payload: &[u8]) -> &[u8] {
        &payload[self.deadline_len()..]
    }

    /// The same, to be edited where it lies.
    pub(crate) fn value_mut(self, payload: &mut [u8]) -> &mut [u8] {
        &mut payload[self.deadline_len()..]
    }

    /// Whether the deadline of this entry has passed at `now`.
    pub(crate) fn is_overdue(self, payload: &[u8], now: Millis) -> bool {
        self.is_volatile() && self.deadline(payload).is_past(now)
    }
}

const BIAS_MS: i64 = 1 << 40;

/// A deadline as the payload begins with it.
pub(crate) struct Stamp {
    bytes: [u8; 8],
    /// The width's two bits in meta.
    width: u8,
}

impl Stamp {
    pub(crate) fn new(deadline: Deadline) -> Stamp {
        match deadline {
            Deadline::Never => Stamp { bytes: [0; 8], width: 0 },
            Deadline::At(Millis(ms)) => match ms.checked_sub(BIAS_MS) {
                Some(short @ 0..BIAS_MS) => Stamp { bytes: short.to_le_bytes(), width: 1 },
                _ => Stamp { bytes: ms.to_le_bytes(), width: 2 },
            },
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..Meta(self.width).deadline_len()]
    }

    /// Deadline and value as one payload. Without a deadline that is `value` itself, with one it is written
    /// to `scratch`.
    pub(crate) fn payload<'s>(&self, value: &'s [u8], scratch: &'s mut Vec<u8>) -> &'s [u8] {
        if self.width == 0 {
            return value;
        }
        scratch.clear();
        scratch.extend_from_slice(self.as_bytes());
        scratch.extend_from_slice(value);
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(deadline: Deadline) -> (usize, Deadline) {
        let stamp = Stamp::new(deadline);
        let mut scratch = Vec::new();
        let payload = stamp.payload(b"value", &mut scratch).to_vec();
        let meta = Meta::new(Shape::Bytes, &stamp);
        assert_eq!(meta.value(&payload), b"value");
        assert_eq!(meta.shape(), Shape::Bytes);
        (payload.len() - 5, meta.deadline(&payload))
    }

    #[test]
    fn a_deadline_of_our_time_takes_five_bytes_and_any_other_eight() {
        let cases = [
            (Deadline::Never, 0),
            (Deadline::At(Millis(BIAS_MS)), 5),
            (Deadline::At(Millis(1_800_000_000_000)), 5),
            (Deadline::At(Millis(2 * BIAS_MS - 1)), 5),
            (Deadline::At(Millis(2 * BIAS_MS)), 8),
            (Deadline::At(Millis(BIAS_MS - 1)), 8),
            (Deadline::At(Millis(-1)), 8),
            (Deadline::At(Millis(i64::MIN)), 8),
            (Deadline::At(Millis(i64::MAX)), 8),
        ];
        for (deadline, len) in cases {
            assert_eq!(round_trip(deadline), (len, deadline));
        }
    }

    #[test]
    fn meta_fits_in_seven_bits_for_every_shape_and_width() {
        for shape in Shape::ALL {
            for deadline in [Deadline::Never, Deadline::At(Millis(0)), Deadline::At(Millis(BIAS_MS))] {
                let meta = Meta::new(shape, &Stamp::new(deadline));
                assert!(meta.0 < 128);
                assert_eq!(meta.shape(), shape);
                assert_eq!(meta.is_volatile(), deadline != Deadline::Never);
            }
        }
    }
}
