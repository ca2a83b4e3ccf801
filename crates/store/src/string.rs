//! Strings: native integers where the text is one, bytes inside the keyspace entry, or behind one pointer where long.
use crate::{Key, View, WrongType};
use base::{Item, Millis};

/// What a write does to the key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Clear,
    Keep,
    At(Millis),
}

/// The name that OBJECT ENCODING gives afterwards (the bytes are stored the same way).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// int, embstr or raw by content, as SET does.
    Auto,
    /// embstr or raw by length, never int (INCRBYFLOAT).
    Text,
    /// raw (APPEND, SETRANGE).
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    WrongType,
    NotAnInteger,
    Overflow,
}

#[allow(unused_variables)]
impl View<'_> {
    pub fn string(&mut self, key: &Key<'_>) -> Result<Option<Item<'_>>, WrongType> {
        todo!()
    }
    /// Replaces whatever the key held, of any type.
    pub fn put_string(&mut self, key: &Key<'_>, value: &[u8], form: Form, expiry: Expiry) {
        todo!()
    }
    /// INCRBY: the sum, stored; a missing key counts as 0; the deadline stays.
    pub fn add(&mut self, key: &Key<'_>, delta: i64) -> Result<i64, AddError> {
        todo!()
    }
    /// Appends, creating the key; the new length.
    pub fn append(&mut self, key: &Key<'_>, tail: &[u8]) -> Result<u64, WrongType> {
        todo!()
    }
    /// Overwrites from `offset`, padding with zero bytes, creating the key; the new length. `bytes` is not empty.
    pub fn set_range(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> Result<u64, WrongType> {
        todo!()
    }
}
