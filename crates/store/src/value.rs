//! A value: what lies outside an entry, how a string is encoded, and how any value is read from the parts of
//! its entry.
//!
//! Text that reads as an integer is stored as one, whatever name OBJECT ENCODING has to give: the name is in
//! the shape, not in the bytes. This file is on the path of every request: nothing here allocates, but for
//! values that lie outside.
use crate::arrived::Arrived;
use crate::entry::{INLINE_BYTES_MAX, Meta, Shape};
use crate::hash::name::HashName;
use crate::hash::tree::HashTree;
use crate::key_info::VALUE_BYTES;
use crate::kind::WrongType;
use crate::list::tree::ListTree;
use crate::outside::Outside;
use crate::set::image::Image;
use crate::set::tree::SetTree;
use crate::stream::tree::Stream;
use crate::zset::tree::ZSetTree;
use base::Item;
use pack::map::Shared;
use pack::short_int::{int_len, read_int};

/// Redis names a string of at most so many bytes "embstr", because it lies in one allocation with its header.
pub(crate) const EMBSTR_BYTES_MAX: usize = 44;

/// A value that lies outside its entry. Cloning a collection is O(1) and shares its leaves; cloning a string
/// copies it.
#[derive(Clone)]
pub(crate) enum Value {
    Str(Vec<u8>),
    /// A string as well, in the buffer of its request.
    Arrived(Arrived),
    List(ListTree),
    Set(SetTree),
    Hash(HashTree),
    ZSet(ZSetTree),
    Stream(Box<Stream>),
}
const _: () = assert!(size_of::<Value>() as u64 == VALUE_BYTES);

/// A type that is the content of one variant of [`Value`].
pub(crate) trait Variant: Sized {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self: Box<Self>) -> Value;
}

macro_rules! variants {
    ($($variant:ident($type:ty) from $boxed:ident as $stored:expr;)*) => {$(
        impl Variant for $type {
            #[inline]
            fn of(value: &Value) -> Option<&$type> {
                if let Value::$variant(found) = value { Some(found) } else { None }
            }

            #[inline]
            fn of_mut(value: &mut Value) -> Option<&mut $type> {
                if let Value::$variant(found) = value { Some(found) } else { None }
            }

            fn into_value(self: Box<$type>) -> Value {
                let $boxed = self;
                Value::$variant($stored)
            }
        }
    )*};
}

variants! {
    List(ListTree) from tree as *tree;
    Set(SetTree) from tree as *tree;
    Hash(HashTree) from tree as *tree;
    ZSet(ZSetTree) from tree as *tree;
    Stream(Stream) from stream as stream;
}

impl Value {
    /// The value as a collection; None for a string.
    pub(crate) fn collection(&self) -> Option<&dyn Outside> {
        match self {
            Value::Str(_) | Value::Arrived(_) => None,
            Value::List(tree) => Some(tree),
            Value::Hash(tree) => Some(tree),
            Value::Set(members) => Some(members),
            Value::ZSet(set) => Some(set),
            Value::Stream(stream) => Some(&**stream),
        }
    }

    pub(crate) fn collection_mut(&mut self) -> Option<&mut dyn Outside> {
        match self {
            Value::Str(_) | Value::Arrived(_) => None,
            Value::List(tree) => Some(tree),
            Value::Hash(tree) => Some(tree),
            Value::Set(members) => Some(members),
            Value::ZSet(set) => Some(set),
            Value::Stream(stream) => Some(&mut **stream),
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Value::Str(text) => Some(text),
            Value::Arrived(arrived) => Some(arrived.text()),
            _ => None,
        }
    }

    /// The text of a string, to be edited. What stood around it goes.
    pub(crate) fn text_mut(&mut self) -> Option<&mut Vec<u8>> {
        if let Value::Arrived(arrived) = self {
            *self = Value::Str(arrived.take_text());
        }
        if let Value::Str(text) = self { Some(text) } else { None }
    }

    /// Bytes of memory that the text of a string takes.
    pub(crate) fn text_room_bytes(&self) -> Option<usize> {
        match self {
            Value::Str(text) => Some(text.capacity()),
            Value::Arrived(arrived) => Some(arrived.room_bytes()),
            _ => None,
        }
    }
}

/// Which name OBJECT ENCODING gives a string that is written. The bytes are stored in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// int, embstr or raw by content, as SET does.
    Auto,
    /// embstr or raw by length, never int (INCRBYFLOAT).
    Text,
    /// raw (APPEND, SETRANGE).
    Raw,
}

/// The parts of an entry, as a value API reads them.
pub(crate) type Parts<'v> = (Meta, &'v [u8], Option<&'v Value>);

/// A string as it is to be stored.
pub(crate) enum Encoded<'v> {
    Int {
        shape: Shape,
        bytes: [u8; 8],
        len: usize,
    },
    Inline {
        shape: Shape,
        bytes: &'v [u8],
    },
    Long {
        bytes: &'v [u8],
    },
    /// A string that lies outside already, which the key becomes an owner of.
    Outside {
        value: &'v Shared<Value>,
    },
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
            Encoded::Long { .. } | Encoded::Outside { .. } => Shape::Long,
        }
    }

    /// The part that lies inside the entry.
    pub(crate) fn inline(&self) -> &[u8] {
        match self {
            Encoded::Int { bytes, len, .. } => &bytes[..*len],
            Encoded::Inline { bytes, .. } => bytes,
            Encoded::Long { .. } | Encoded::Outside { .. } => &[],
        }
    }

    /// The part that lies outside the entry; None where there is none.
    pub(crate) fn outside(&self) -> Option<Shared<Value>> {
        match self {
            Encoded::Long { bytes } => Some(Shared::new(Value::Str(bytes.to_vec()))),
            Encoded::Outside { value } => Some((*value).clone()),
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
        (Shape::Long, Some(value)) => value.text().map(Item::Bytes).ok_or(WrongType),
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
    use crate::entry::Stamp;
    use crate::expiry::deadline::Deadline;
    use base::Millis;

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
}
