//! Forms of entries: one tagged leaf (`tagged/`), several ways to lay out what it holds.
//!
//! | form | entry | used for |
//! |---|---|---|
//! | [`Keys`] | meta, key length, key, payload, pointer | the keyspace |
//! | [`Fields`](super::fields::Fields) | meta, kind and length in a byte; field, payload, pointer | hashes |
//! | [`Members`] | the member | sets |
//!
//! A form says what an entry is looked for by (a [`Name`]), and how it is read and written; tags, lengths,
//! notes, uses, splits and joins are the leaf's, the same for all. The first byte of an entry is the same for
//! every form that has one: bit 7 says that the entry ends in a pointer, some of the others are the caller's.
//! On the path of every request: all of it is resolved while compiling.
//!
//! ```text
//! Keys     +--------------------+------------+-----+----------------+--------------------+
//!          | meta: 7 bits of    | key length | key | inline payload | pointer, 8 bytes,  |
//!          | the caller's, bit 7| LEB128     |     |                | if bit 7 of meta   |
//!          +--------------------+------------+-----+----------------+--------------------+
//!
//! Members  +--------+
//!          | member |      its length is the leaf's, so there is nothing else
//!          +--------+
//! ```
//!
//! The key `ab` with meta 3 and the payload `xyz` is `03 02 6162 78797A`; the member `ab` is `6162`. Cost
//! beside the leaf's tag and length: 2 bytes a key of up to 127 bytes; nothing a member.
use crate::code::probe::equal;
use crate::code::varint::{read_varint, varint_len, write_varint};
use base::hash::{Hash, Seed};

/// The bit of an entry's first byte that says that a pointer follows.
pub(crate) const OUTSIDE: u8 = 0x80;

/// What an entry is looked for by: the bytes that stand for its key, and what these bytes are where the form
/// asks (else 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'n> {
    pub(crate) code: u8,
    pub(crate) bytes: &'n [u8],
}

impl<'n, T: AsRef<[u8]> + ?Sized> From<&'n T> for Name<'n> {
    #[inline(always)]
    fn from(key: &'n T) -> Name<'n> {
        Name { code: 0, bytes: key.as_ref() }
    }
}

/// An entry taken apart, but for the pointer that it may end in.
pub struct Read<'l> {
    pub(crate) meta: u8,
    pub(crate) name: Name<'l>,
    /// The payload, and the pointer behind it.
    pub(crate) rest: &'l [u8],
}

/// A way to lay out entries.
pub trait Form: Send + Sync + 'static {
    /// A leaf with more entries than this is split.
    const COUNT_MAX: usize;
    /// A leaf of more bytes than this is split, unless it holds one entry.
    const BYTES_MAX: usize;
    /// A payload of more bytes lies in a block of its own, behind the entry's pointer.
    const PAYLOAD_INSIDE_MAX: usize = usize::MAX;
    /// Which bits of the first byte are the caller's; 0 where an entry has no such byte, and never a pointer.
    const META: u8;

    /// Whether the entry that these bytes are has this name.
    fn is(entry: &[u8], name: Name<'_>) -> bool;
    fn read(entry: &[u8]) -> Read<'_>;
    /// How many bytes an entry of this name has before its payload.
    fn head_len(name: Name<'_>) -> usize;
    /// Writes the bytes before the payload, and returns how many they are. `meta` has only bits of the
    /// caller.
    fn write_head(entry: &mut [u8], meta: u8, name: Name<'_>) -> usize;
    /// The hash that a name's place and tag come from.
    fn hash(seed: &Seed, name: Name<'_>) -> Hash;
}

/// The keyspace's form.
pub struct Keys;

impl Form for Keys {
    const COUNT_MAX: usize = 48;
    const BYTES_MAX: usize = 8192;
    const PAYLOAD_INSIDE_MAX: usize = 520;
    const META: u8 = !OUTSIDE;

    #[inline(always)]
    fn is(entry: &[u8], name: Name<'_>) -> bool {
        let (len, head) = read_varint(&entry[1..]);
        len == name.bytes.len() && &entry[1 + head..1 + head + len] == name.bytes
    }

    #[inline(always)]
    fn read(entry: &[u8]) -> Read<'_> {
        let (len, head) = read_varint(&entry[1..]);
        let (key, rest) = entry[1 + head..].split_at(len);
        Read { meta: entry[0] & !OUTSIDE, name: Name { code: 0, bytes: key }, rest }
    }

    fn head_len(name: Name<'_>) -> usize {
        1 + varint_len(name.bytes.len()) + name.bytes.len()
    }

    fn write_head(entry: &mut [u8], meta: u8, name: Name<'_>) -> usize {
        debug_assert!(meta & OUTSIDE == 0, "the leaf says what lies outside");
        entry[0] = meta;
        let at = 1 + write_varint(&mut entry[1..], name.bytes.len());
        entry[at..at + name.bytes.len()].copy_from_slice(name.bytes);
        at + name.bytes.len()
    }

    #[inline(always)]
    fn hash(seed: &Seed, name: Name<'_>) -> Hash {
        seed.hash(name.bytes)
    }
}

/// A set's form: no meta, no payload, nothing outside.
pub struct Members;

impl Form for Members {
    const COUNT_MAX: usize = 192;
    const BYTES_MAX: usize = 4096;
    const META: u8 = 0;

    #[inline(always)]
    fn is(entry: &[u8], name: Name<'_>) -> bool {
        entry.len() == name.bytes.len() && equal(entry, name.bytes)
    }

    #[inline(always)]
    fn read(entry: &[u8]) -> Read<'_> {
        Read { meta: 0, name: Name { code: 0, bytes: entry }, rest: &[] }
    }

    fn head_len(name: Name<'_>) -> usize {
        name.bytes.len()
    }

    fn write_head(entry: &mut [u8], _: u8, name: Name<'_>) -> usize {
        debug_assert_eq!(entry.len(), name.bytes.len(), "there is nothing but the member");
        entry[..name.bytes.len()].copy_from_slice(name.bytes);
        name.bytes.len()
    }

    #[inline(always)]
    fn hash(seed: &Seed, name: Name<'_>) -> Hash {
        seed.hash(name.bytes)
    }
}

#[cfg(test)]
#[path = "form_properties.rs"]
mod properties;
