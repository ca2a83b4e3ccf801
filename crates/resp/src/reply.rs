//! Replies: every RESP3 type, with the RESP2 form that Redis falls back to.
use base::Item;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// Appends replies to a buffer that the owner sends and reuses.
pub struct Reply {
    pub out: Vec<u8>,
    pub protocol: Protocol,
}

#[allow(unused_variables)]
impl Reply {
    pub fn new(protocol: Protocol) -> Reply {
        Reply { out: Vec::new(), protocol }
    }
    /// `+OK`
    pub fn ok(&mut self) {
        todo!()
    }
    /// `+text`; no CR or LF in it.
    pub fn simple(&mut self, text: &str) {
        todo!()
    }
    /// `-text`, the code included ("ERR ..."); CR and LF become spaces.
    pub fn error(&mut self, text: &str) {
        todo!()
    }
    pub fn int(&mut self, n: i64) {
        todo!()
    }
    pub fn bulk(&mut self, bytes: &[u8]) {
        todo!()
    }
    pub fn item(&mut self, item: Item<'_>) {
        todo!()
    }
    /// A bulk string made of the number's decimal text.
    pub fn bulk_int(&mut self, n: i64) {
        todo!()
    }
    /// `_` or `$-1`
    pub fn null(&mut self) {
        todo!()
    }
    /// `_` or `*-1`
    pub fn null_array(&mut self) {
        todo!()
    }
    /// The header of an array of `len` replies.
    pub fn array(&mut self, len: usize) {
        todo!()
    }
    /// The header of a map of `pairs` pairs; RESP2: an array of twice as many.
    pub fn map(&mut self, pairs: usize) {
        todo!()
    }
    pub fn set(&mut self, len: usize) {
        todo!()
    }
    /// Out of band data; RESP2: an array.
    pub fn push(&mut self, len: usize) {
        todo!()
    }
    /// An attribute of `pairs` pairs; returns whether it was written (RESP2 has none: then write no pairs).
    pub fn attribute(&mut self, pairs: usize) -> bool {
        todo!()
    }
    /// RESP2: a bulk string of the shortest text that reads back as the same number.
    pub fn double(&mut self, n: f64) {
        todo!()
    }
    /// RESP2: 1 or 0
    pub fn boolean(&mut self, b: bool) {
        todo!()
    }
    /// RESP2: a bulk string
    pub fn big_number(&mut self, digits: &str) {
        todo!()
    }
    /// `ext` has three letters ("txt", "mkd"); RESP2: a bulk string
    pub fn verbatim(&mut self, ext: &str, text: &[u8]) {
        todo!()
    }
    /// A place for an array header whose length is known later.
    pub fn deferred(&mut self) -> Deferred {
        todo!()
    }
    /// Fills it in as an array, set or map header (of `len` elements or pairs).
    pub fn fill_array(&mut self, place: Deferred, len: usize) {
        todo!()
    }
    pub fn fill_set(&mut self, place: Deferred, len: usize) {
        todo!()
    }
    pub fn fill_map(&mut self, place: Deferred, pairs: usize) {
        todo!()
    }
}

/// Where a header is to be inserted.
#[must_use]
pub struct Deferred(#[allow(dead_code)] usize);
