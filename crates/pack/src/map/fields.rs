//! The form of a hash's entries: a field, what the caller keeps for it, and one byte for all that is to be
//! known of them.
//!
//! ```text
//! +---------+--------------------+-------+----------------+--------------------+
//! | header  | length of a long   | field | inline payload | pointer, 8 bytes,  |
//! |         | field, LEB128      |       |                | if bit 7           |
//! +---------+--------------------+-------+----------------+--------------------+
//!
//! header    bit 7     the entry ends in a pointer
//!           bit 6, 5  the caller's
//!           bit 4..0  the field:  0..=21   text of so many bytes
//!                                 22       longer text, its length follows
//!                                 23..=30  an integer of 1 to 8 bytes, little endian
//! ```
//!
//! The field `ab` with the payload `xyz` and nothing of the caller's is `02 6162 78797A`; the field `1000`
//! with the payload `05` is `18 E803 05`.
//!
//! A field that reads as an integer is stored as one, and no other text reads as that integer. So two fields
//! are the same if their headers and bytes are; the hash is that of the text. Cost beside the leaf's tag and
//! length: one byte, two where the field is longer than 21 bytes. Limits: those of the leaf.
use crate::code::short_int::{ShortInt, read_int};
use crate::code::varint::{read_varint, varint_len, write_varint};
use crate::map::form::{Form, Name, OUTSIDE, Read};
use base::Item;
use base::hash::{Hash, Seed};
use base::text::I64Text;

const TEXT_MAX: u8 = 21;
const LONG: u8 = TEXT_MAX + 1;
/// The header of an integer of n bytes is this plus n.
const INT: u8 = LONG;
const CODE: u8 = 0x1F;
const _: () = assert!(INT + 8 <= CODE);

/// A hash's form.
pub struct Fields;

/// A field to look for, as an entry would hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'f> {
    Text(&'f [u8]),
    Int(ShortInt),
}

impl<'f> Field<'f> {
    /// The field of this text: an integer where the text reads as one.
    #[inline]
    pub fn new(text: &'f [u8]) -> Field<'f> {
        Field::of(Item::classify(text))
    }

    /// The field of an element that was classified before.
    #[inline]
    pub fn of(item: Item<'f>) -> Field<'f> {
        match item {
            Item::Bytes(text) => Field::Text(text),
            Item::Int(n) => Field::Int(ShortInt::new(n)),
        }
    }

    /// What a map finds it by. Costs nothing: the bytes are those of the field.
    #[inline]
    pub fn name(&self) -> Name<'_> {
        match self {
            Field::Text(text) if text.len() <= usize::from(TEXT_MAX) => {
                Name { code: text.len() as u8, bytes: text }
            }
            Field::Text(text) => Name { code: LONG, bytes: text },
            Field::Int(int) => Name { code: INT + int.as_bytes().len() as u8, bytes: int.as_bytes() },
        }
    }
}

/// The field of an entry, from the meta and the key that it was found with.
#[inline]
pub fn field_of(meta: u8, key: &[u8]) -> Item<'_> {
    if meta & CODE > LONG { Item::Int(read_int(key)) } else { Item::Bytes(key) }
}

/// A leaf with more entries than this is split.
pub const LEAF_LEN_MAX: u64 = 192;

impl Form for Fields {
    const COUNT_MAX: usize = LEAF_LEN_MAX as usize;
    const BYTES_MAX: usize = 4096;
    const META: u8 = !(OUTSIDE | CODE);

    #[inline(always)]
    fn is(entry: &[u8], name: Name<'_>) -> bool {
        if entry[0] & CODE != name.code {
            return false;
        }
        if name.code == LONG {
            return is_long(entry, name.bytes);
        }
        &entry[1..1 + name.bytes.len()] == name.bytes
    }

    #[inline(always)]
    fn read(entry: &[u8]) -> Read<'_> {
        let meta = entry[0] & !OUTSIDE;
        let code = meta & CODE;
        let (start, len) = match code {
            LONG => {
                let (len, head) = read_varint(&entry[1..]);
                (1 + head, len)
            }
            code if code > INT => (1, usize::from(code - INT)),
            code => (1, usize::from(code)),
        };
        let (bytes, rest) = entry[start..].split_at(len);
        Read { meta, name: Name { code, bytes }, rest }
    }

    fn head_len(name: Name<'_>) -> usize {
        let len = name.bytes.len();
        1 + len + if name.code == LONG { varint_len(len) } else { 0 }
    }

    fn write_head(entry: &mut [u8], meta: u8, name: Name<'_>) -> usize {
        debug_assert!(meta & (OUTSIDE | CODE) == 0, "the field and the leaf have the other bits");
        debug_assert!(name.code <= INT + 8, "a code of {}", name.code);
        let len = name.bytes.len();
        entry[0] = meta | name.code;
        let start = 1 + if name.code == LONG { write_varint(&mut entry[1..], len) } else { 0 };
        entry[start..start + len].copy_from_slice(name.bytes);
        start + len
    }

    #[inline]
    fn hash(seed: &Seed, name: Name<'_>) -> Hash {
        match name.code > LONG {
            true => seed.hash(I64Text::new().format(read_int(name.bytes))),
            false => seed.hash(name.bytes),
        }
    }
}

#[cold]
fn is_long(entry: &[u8], text: &[u8]) -> bool {
    let (len, head) = read_varint(&entry[1..]);
    len == text.len() && &entry[1 + head..1 + head + len] == text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: Seed = Seed::new(5, 6);

    fn written(text: &[u8], meta: u8, payload: &[u8]) -> Vec<u8> {
        let field = Field::new(text);
        let mut entry = vec![0; Fields::head_len(field.name())];
        assert_eq!(Fields::write_head(&mut entry, meta, field.name()), entry.len());
        entry.extend_from_slice(payload);
        entry
    }

    #[test]
    fn the_examples_in_the_opener_are_true() {
        assert_eq!(written(b"ab", 0, b"xyz"), b"\x02abxyz");
        assert_eq!(written(b"1000", 0, &[5]), [0x18, 0xE8, 3, 5]);
    }

    #[test]
    fn every_field_is_read_as_it_was_written_and_is_no_other() {
        let mut texts: Vec<Vec<u8>> = [0, 1, 20, 21, 22, 127, 128, 300].map(|len| vec![b'f'; len]).to_vec();
        texts.extend(["0", "-1", "127", "128", "007", "-0", "1000000", "9223372036854775807"].map(Vec::from));
        for text in &texts {
            let entry = written(text, 0x60, b"pay");
            let read = Fields::read(&entry);
            assert_eq!((read.meta & Fields::META, read.rest), (0x60, &b"pay"[..]));
            assert_eq!(field_of(read.meta, read.name.bytes), Item::classify(text));
            assert_eq!(Fields::hash(&SEED, read.name), SEED.hash(text));
            for other in &texts {
                assert_eq!(Fields::is(&entry, Field::new(other).name()), other == text);
            }
        }
    }
}
