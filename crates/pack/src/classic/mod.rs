//! The compact encodings of Redis, as bytes: what its dump files and DUMP's payloads hold. Sardine keeps its
//! data otherwise, and reads and writes these only where such bytes come in and go out. There are two
//! exceptions: LZF also compresses leaves of lists (`list/compressed.rs`), and the encoding that OBJECT
//! ENCODING names depends on how long a listpack of the elements would be.
//!
//! | file | what it is | read | written |
//! |---|---|---|---|
//! | `listpack.rs` | entries, each with its length behind it: since Redis 5 | yes | yes |
//! | `ziplist.rs` | entries, each with the length of the one before in front: until Redis 6 | yes | no |
//! | `zipmap.rs` | fields and values with short lengths: hashes until Redis 2.4 | yes | no |
//! | `int_set.rs` | sorted integers of one width | yes | yes |
//! | `lzf.rs` | the compression of strings | yes | yes |
//!
//! The bytes come from anybody. Readers check each length against what there is before they use it; they
//! neither panic nor allocate by what a header says.
pub mod int_set;
pub mod listpack;
pub mod lzf;
pub mod ziplist;
pub mod zipmap;

/// Bytes that are not what they are said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What is wrong.
    pub what: &'static str,
    /// At which byte.
    pub at: usize,
}

/// A block of bytes that is being read, and where the reader stands.
pub(crate) struct Bytes<'b> {
    bytes: &'b [u8],
    pub(crate) at: usize,
}

impl<'b> Bytes<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Bytes<'b> {
        Bytes { bytes, at: 0 }
    }

    pub(crate) fn broken(&self, what: &'static str) -> Broken {
        Broken { what, at: self.at }
    }

    /// The next `len` bytes; the reader then stands behind them.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'b [u8], Broken> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(taken) = rest.get(..len) else { return Err(self.broken("ends too early")) };
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| self.broken("ends too early"))
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Result<u8, Broken> {
        let byte = self.bytes.get(self.at).ok_or(Broken { what: "ends too early", at: self.at })?;
        self.at += 1;
        Ok(*byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Broken> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Broken> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// An integer of `width` bytes, the lowest first.
    pub(crate) fn int(&mut self, width: usize) -> Result<i64, Broken> {
        debug_assert!((1..=8).contains(&width), "no integer has {width} bytes");
        let mut text = [0; 8];
        text[..width].copy_from_slice(self.take(width)?);
        let unused_bits = 64 - 8 * width as u32;
        Ok(i64::from_le_bytes(text) << unused_bits >> unused_bits)
    }
}
