//! The types of values in dump files: what a value is and how it is laid out, in one byte.

/// A type of value. Types of modules are not read, nor those that only test versions of Redis wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    String = 0,
    List = 1,
    Set = 2,
    /// Scores are texts.
    ZSetText = 3,
    Hash = 4,
    /// Scores are doubles.
    ZSet = 5,
    HashZipmap = 9,
    ListZiplist = 10,
    SetInts = 11,
    ZSetZiplist = 12,
    HashZiplist = 13,
    /// A chain of ziplists.
    ListZiplists = 14,
    /// Redis 5: without the first id, the greatest deleted id, the number of entries ever added, and the
    /// numbers of entries that groups have read.
    Stream = 15,
    HashListpack = 16,
    ZSetListpack = 17,
    /// A chain of listpacks and of long elements.
    ListListpacks = 18,
    /// Redis 7.0.
    Stream2 = 19,
    SetListpack = 20,
    /// Redis 7.2: with the times at which consumers were last given something.
    Stream3 = 21,
    /// Valkey 9: fields, values and deadlines.
    TimedHashValkey = 22,
    /// Redis 7.4: deadlines, fields and values.
    TimedHash = 24,
    TimedHashListpack = 25,
}

impl Type {
    /// The type that has this number in a file of this version; None for a type that cannot be read.
    pub(crate) fn of(number: u8, version: u16) -> Option<Type> {
        Some(match number {
            0 => Type::String,
            1 => Type::List,
            2 => Type::Set,
            3 => Type::ZSetText,
            4 => Type::Hash,
            5 => Type::ZSet,
            9 => Type::HashZipmap,
            10 => Type::ListZiplist,
            11 => Type::SetInts,
            12 => Type::ZSetZiplist,
            13 => Type::HashZiplist,
            14 => Type::ListZiplists,
            15 => Type::Stream,
            16 => Type::HashListpack,
            17 => Type::ZSetListpack,
            18 => Type::ListListpacks,
            19 => Type::Stream2,
            20 => Type::SetListpack,
            21 => Type::Stream3,
            // Redis's test versions wrote other hashes under this number.
            22 if version >= super::version::VERSION_VALKEY => Type::TimedHashValkey,
            24 => Type::TimedHash,
            25 => Type::TimedHashListpack,
            _ => return None,
        })
    }
}
