//! What the keyspace writes into the entries of its map: 7 bits of meta and a payload.
//!
//! ```text
//! meta      bit 6..2  shape of the value     bit 1..0  width of the deadline: 0 none, 1 five bytes, 2 eight bytes
//! payload   [deadline: 0, 5 or 8 bytes][value]
//!
//! deadline  5 bytes: milliseconds since 1970 less 2^40, little endian: 2004-11-03 to 2039-09-07
//!           8 bytes: milliseconds since 1970 as a signed number, little endian: any other
//! value     Int*:   the shortest of 1 to 8 bytes, little endian, two's complement
//!           Bytes*: the bytes
//!           List*:  an image (`pack::seq::image`)
//!           *Hash:  an image (`pack::pairs`)
//!           SetOfInts, SetInOrder, SetAsTable: an image (`pack::set_image`)
//!           ZSet*:  an image (`pack::sorted::image`)
//!           Long, ListTree, HashTree, SetOutside, ZSetTree, Stream: nothing; the value lies outside, behind the entry's pointer
//! ```
//!
//! Example: `SET k 1000 PXAT 1800000000000` gives meta `0x01` (Int, five bytes of deadline) and the payload
//! `00 50 5c 18 a3 | e8 03`. Without the deadline: meta `0x00`, payload `e8 03`.
//!
//! Text that reads as an integer is stored as one, whatever name OBJECT ENCODING has to give: the shape keeps the name apart
//! from the bytes. This file is on the path of every request: nothing here allocates, but for values that lie outside.
use crate::hash::api::HashName;
use crate::hash::tree::HashTree;
use crate::list::tree::ListTree;
use crate::outside::Outside;
use crate::set::image::Image;
use crate::set::tree::SetTree;
use crate::stream::api::Stream;
use crate::zset::api::ZSetTree;
use crate::{Deadline, Form, Kind, WrongType};
use base::{Item, Millis};
use pack::map::Shared;
use pack::short_int::{int_len, read_int};

/// A string of more bytes lies outside its entry. An entry of this size is still moved by one short `memcpy` when its
/// neighbours change; beyond it the pointer and the allocator's rounding are small against the value.
pub(crate) const INLINE_BYTES_MAX: usize = 512;

/// Redis keeps a string of at most so many bytes in one allocation with its header, and says so.
const EMBSTR_BYTES_MAX: usize = 44;

/// A value that lies outside its entry.
#[derive(Clone)]
pub(crate) enum Value {
    Str(Vec<u8>),
    List(ListTree),
    Set(SetTree),
    Hash(HashTree),
    ZSet(ZSetTree),
    Stream(Box<Stream>),
}
/// Every value outside takes the room of the largest kind, so a kind with much to keep boxes the rest.
const _: () = assert!(size_of::<Value>() <= 80);

/// What the value is, where it lies, and which name it goes by.
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
    /// The same, of which some field has had a deadline.
    TimedHash = 10,
    /// A hash outside.
    HashTree = 11,
    /// A set inside the entry that goes by "intset": its image is of integers.
    SetOfInts = 13,
    /// One that goes by "listpack": its image is of items.
    SetInOrder = 14,
    /// One that goes by "hashtable": the same.
    SetAsTable = 15,
    /// A set outside.
    SetOutside = 16,
    /// A sorted set inside the entry that goes by "listpack".
    ZSetListpack = 18,
    /// One that goes by "skiplist".
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

    /// By number, which five bits hold; types have ranges of them.
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

/// The 7 bits.
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

    /// The value behind the deadline.
    pub(crate) fn value(self, payload: &[u8]) -> &[u8] {
        &payload[self.deadline_len()..]
    }

    /// Whether the key that this entry holds is gone at `now`.
    pub(crate) fn is_overdue(self, payload: &[u8], now: Millis) -> bool {
        self.is_volatile() && self.deadline(payload).is_past(now)
    }
}

const BIAS_MS: i64 = 1 << 40;

/// A deadline as the payload begins with it.
pub(crate) struct Stamp {
    bytes: [u8; 8],
    /// The code in meta.
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

    /// Deadline and value as one payload; `scratch` is used where there is a deadline.
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

/// A string as it is to be stored.
pub(crate) enum Encoded<'v> {
    Int { shape: Shape, bytes: [u8; 8], len: usize },
    Inline { shape: Shape, bytes: &'v [u8] },
    Long { bytes: &'v [u8] },
}

impl<'v> Encoded<'v> {
    pub(crate) fn new(value: &'v [u8], form: Form) -> Encoded<'v> {
        match (Item::classify(value), form) {
            (Item::Int(n), Form::Auto) => Encoded::int(n, Shape::Int),
            (Item::Int(n), Form::Text) => Encoded::int(n, Shape::IntText),
            (Item::Int(n), Form::Raw) => Encoded::int(n, Shape::IntRaw),
            (Item::Bytes(bytes), _) if bytes.len() > INLINE_BYTES_MAX => Encoded::Long { bytes },
            (Item::Bytes(bytes), Form::Raw) => Encoded::Inline { shape: Shape::BytesRaw, bytes },
            (Item::Bytes(bytes), _) => Encoded::Inline { shape: Shape::Bytes, bytes },
        }
    }

    pub(crate) fn int(n: i64, shape: Shape) -> Encoded<'static> {
        Encoded::Int { shape, bytes: n.to_le_bytes(), len: int_len(n) }
    }

    pub(crate) fn shape(&self) -> Shape {
        match self {
            Encoded::Int { shape, .. } | Encoded::Inline { shape, .. } => *shape,
            Encoded::Long { .. } => Shape::Long,
        }
    }

    /// What lies inside the entry.
    pub(crate) fn inline(&self) -> &[u8] {
        match self {
            Encoded::Int { bytes, len, .. } => &bytes[..*len],
            Encoded::Inline { bytes, .. } => bytes,
            Encoded::Long { .. } => &[],
        }
    }

    /// What lies outside.
    pub(crate) fn outside(&self) -> Option<Shared<Value>> {
        match self {
            Encoded::Long { bytes } => Some(Shared::new(Value::Str(bytes.to_vec()))),
            _ => None,
        }
    }
}

/// The string that an entry holds.
pub(crate) fn string_value<'e>(
    meta: Meta,
    payload: &'e [u8],
    outside: Option<&'e Value>,
) -> Result<Item<'e>, WrongType> {
    match (meta.shape(), outside) {
        (Shape::Int | Shape::IntText | Shape::IntRaw, _) => Ok(Item::Int(read_int(meta.value(payload)))),
        (Shape::Bytes | Shape::BytesRaw, _) => Ok(Item::Bytes(meta.value(payload))),
        (Shape::Long, Some(Value::Str(bytes))) => Ok(Item::Bytes(bytes)),
        _ => Err(WrongType),
    }
}

/// OBJECT ENCODING's name.
pub(crate) fn encoding(meta: Meta, payload: &[u8], outside: Option<&Value>) -> &'static str {
    match meta.shape() {
        Shape::Int => "int",
        Shape::IntText => "embstr",
        Shape::Bytes if meta.value(payload).len() <= EMBSTR_BYTES_MAX => "embstr",
        Shape::IntRaw | Shape::Bytes | Shape::BytesRaw | Shape::Long => "raw",
        Shape::Listpack => "listpack",
        Shape::Quicklist => "quicklist",
        shape @ (Shape::Hash | Shape::TimedHash) => HashName::of_image(shape, meta.value(payload)).text(),
        shape @ (Shape::SetOfInts | Shape::SetInOrder | Shape::SetAsTable) => {
            Image::of(shape, &[]).map_or("hashtable", |image| image.name.text())
        }
        Shape::ZSetListpack => "listpack",
        Shape::ZSetSkiplist => "skiplist",
        Shape::ListTree | Shape::HashTree | Shape::SetOutside | Shape::ZSetTree | Shape::Stream => {
            outside.and_then(Value::collection).map_or("quicklist", Outside::encoding)
        }
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
    fn the_example_in_the_opener_is_true() {
        let stamp = Stamp::new(Deadline::At(Millis(1_800_000_000_000)));
        let value = Encoded::new(b"1000", Form::Auto);
        let mut scratch = Vec::new();
        assert_eq!(stamp.payload(value.inline(), &mut scratch), [0x00, 0x50, 0x5c, 0x18, 0xa3, 0xe8, 0x03]);
        assert_eq!(Meta::new(value.shape(), &stamp), Meta(0x01));
    }

    #[test]
    fn integers_take_the_shortest_of_one_to_eight_bytes() {
        let cases: [(i64, usize); 12] = [
            (0, 1),
            (-1, 1),
            (127, 1),
            (-128, 1),
            (128, 2),
            (-129, 2),
            (32_767, 2),
            (32_768, 3),
            (1 << 40, 6),
            (i64::MAX, 8),
            (i64::MIN, 8),
            ((1 << 55) - 1, 7),
        ];
        for (n, len) in cases {
            let encoded = Encoded::int(n, Shape::Int);
            assert_eq!(encoded.inline().len(), len, "{n}");
            assert_eq!(read_int(encoded.inline()), n);
        }
    }

    #[test]
    fn only_canonical_text_becomes_an_integer() {
        for text in ["007", "+1", " 1", "1 ", "-0", "", "9223372036854775808", "1.0"] {
            assert_eq!(Encoded::new(text.as_bytes(), Form::Auto).shape(), Shape::Bytes, "{text:?}");
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
