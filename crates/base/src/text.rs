//! Integers as text and back, exactly as Redis reads and writes them: no sign but `-`, no leading zero, no
//! spaces, the whole of `i64`.

/// `text` as an `i64`, if it is the canonical decimal text of one ("-0", "007", "+1", " 1" are not).
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let s = std::str::from_utf8(text).ok()?;
    let n: i64 = s.parse().ok()?;
    (I64Text::new().format(n) == text).then_some(n)
}

/// The length of the decimal text of `n`.
pub fn i64_len(n: i64) -> usize {
    I64Text::new().format(n).len()
}

/// A buffer that holds the text of any `i64`.
pub struct I64Text([u8; 20]);

impl I64Text {
    #[allow(clippy::new_without_default)]
    pub fn new() -> I64Text {
        I64Text([0; 20])
    }

    /// The decimal text of `n`.
    pub fn format(&mut self, n: i64) -> &[u8] {
        let s = n.to_string();
        self.0[..s.len()].copy_from_slice(s.as_bytes());
        &self.0[..s.len()]
    }
}
