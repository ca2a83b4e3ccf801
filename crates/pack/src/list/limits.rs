//! How large the leaves of a list may get, and which of them are compressed: what the settings of lists say,
//! and what follows from them for the content of a leaf.

use crate::memory::{alloc, block};

/// How large a leaf gets, as `list-max-listpack-size` says: at most so many entries (and 8 KB), or so many
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Entries(u32),
    Bytes(u32),
}

/// How leaves between the ends are compressed: `list-compress-codec`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Lzf,
    Lz4,
    Zstd,
}

/// How leaves are filled and compressed; an edit applies the limits it is given to the leaves it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub fill: Fill,
    /// `list-compress-depth`: so many leaves at each end stay open, 0 = no compression.
    pub depth: u32,
    pub codec: Codec,
}

/// Where entries are counted, bytes still have this limit.
const ENTRIES_BYTES_MAX: usize = 8192;
/// A leaf may always have so many bytes, whatever the setting says, so that it holds at least a header and an
/// element.
const LEAF_BYTES_MIN: usize = 128;
const _: () = assert!(LEAF_BYTES_MIN > block::HEADER_BYTES + alloc::HEAD_BYTES);

impl Limits {
    /// How many bytes a leaf's content may take. The setting counts all of them: the header of the block, and
    /// that of the block's allocation, are taken off.
    #[inline]
    pub(crate) fn len_max(&self) -> usize {
        let bytes = match self.fill {
            Fill::Entries(_) => ENTRIES_BYTES_MAX,
            Fill::Bytes(bytes) => bytes as usize,
        };
        bytes.max(LEAF_BYTES_MIN) - block::HEADER_BYTES - alloc::HEAD_BYTES
    }

    /// How many elements a leaf may have.
    #[inline]
    pub(crate) fn count_max(&self) -> usize {
        match self.fill {
            Fill::Entries(entries) => entries.max(1) as usize,
            Fill::Bytes(_) => usize::MAX,
        }
    }
}
