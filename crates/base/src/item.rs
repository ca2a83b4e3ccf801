//! One value as it comes out of a packed leaf: bytes lent from the leaf, or a native integer whose decimal
//! text is the value. Callers that only forward it never build the text of an integer they do not send.

/// A string value, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    Bytes(&'a [u8]),
    Int(i64),
}

impl<'a> Item<'a> {
    /// `value` as it is stored: an integer if it is the canonical text of an `i64`. Costs one pass over a
    /// text of at most 20 bytes, and a look at the first byte of most others.
    #[inline]
    pub fn classify(value: &'a [u8]) -> Item<'a> {
        if !matches!(value, [b'-' | b'0'..=b'9', ..]) {
            return Item::Bytes(value);
        }
        match crate::text::parse_i64(value) {
            Some(n) => Item::Int(n),
            None => Item::Bytes(value),
        }
    }

    /// The length of the text in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Item::Bytes(b) => b.len(),
            Item::Int(n) => crate::text::i64_len(*n),
        }
    }

    /// Whether the text has no bytes, which is never so of an integer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text, written into `scratch` where it is an integer.
    #[inline]
    pub fn text<'s>(&'s self, scratch: &'s mut crate::text::I64Text) -> &'s [u8] {
        match self {
            Item::Bytes(b) => b,
            Item::Int(n) => scratch.format(*n),
        }
    }

    /// Appends the text to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let mut scratch = crate::text::I64Text::new();
        out.extend_from_slice(self.text(&mut scratch));
    }
}
