//! Where bytes come from.
use super::Broken;

/// Bytes one after another.
pub(crate) trait Source {
    /// The next `len` bytes; they are lent until the next call.
    fn take(&mut self, len: u64) -> Result<&[u8], Broken>;
    /// The offset of the byte that comes next.
    fn at(&self) -> u64;
}

/// A source whose bytes are all in memory.
pub(crate) struct Slice<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Slice<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Slice<'b> {
        Slice { bytes, at: 0 }
    }
}

impl Source for Slice<'_> {
    fn take(&mut self, len: u64) -> Result<&[u8], Broken> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = usize::try_from(len).ok().and_then(|len| rest.get(..len));
        let taken = taken.ok_or(Broken { what: "the value ends too early", at: self.at() })?;
        self.at += taken.len();
        Ok(taken)
    }

    fn at(&self) -> u64 {
        self.at as u64
    }
}
