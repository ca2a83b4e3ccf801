//! What a leaf is edited in: a growable run of bytes. A leaf of a tree lies in a reference-counted [`Block`];
//! a short list or sorted set is edited in a `Vec` that is used again for the next, and then copied into its
//! keyspace entry. The code of a leaf is written once, for any [`Buffer`].

use crate::memory::alloc;
use crate::memory::block::{Block, HEADER_BYTES};

/// A growable run of bytes that holds one leaf.
pub(crate) trait Buffer {
    /// The content.
    fn bytes(&self) -> &[u8];
    /// The content, to be edited. A block that is shared is copied first.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Makes it exactly `len` bytes long and keeps no room behind them. The content up to the shorter length
    /// stays; what is new is unspecified. May copy all of it.
    fn resize(&mut self, len: usize);
    /// The length at or above `len` that an allocation for `len` would have anyway: asking for that much
    /// costs no more.
    fn round_up(len: usize) -> usize;
    /// As [`Buffer::resize`], but a buffer that becomes shorter may keep the room.
    fn set_len(&mut self, len: usize);
    /// Drops the content and holds `content` instead.
    fn replace(&mut self, content: &[u8]);
}

impl Buffer for Block {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }
    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.make_mut()
    }
    fn resize(&mut self, len: usize) {
        let old = self.bytes().len();
        if len > old {
            self.gap(old, 0, len - old);
        } else if len < old {
            self.truncate(len);
            self.shrink_to_fit();
        }
        debug_assert_eq!(self.bytes().len(), len);
    }
    fn round_up(len: usize) -> usize {
        alloc::rounded(HEADER_BYTES + len) - HEADER_BYTES
    }
    #[inline]
    fn set_len(&mut self, len: usize) {
        let old = self.bytes().len();
        if len > old {
            self.gap(old, 0, len - old);
        } else {
            self.truncate(len);
        }
        debug_assert_eq!(self.bytes().len(), len);
    }
    fn replace(&mut self, content: &[u8]) {
        *self = Block::from_slice(content);
    }
}

impl Buffer for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
    fn resize(&mut self, len: usize) {
        Vec::resize(self, len, 0);
    }
    fn round_up(len: usize) -> usize {
        len.next_multiple_of(64)
    }
    fn set_len(&mut self, len: usize) {
        Vec::resize(self, len, 0);
    }
    fn replace(&mut self, content: &[u8]) {
        self.clear();
        self.extend_from_slice(content);
    }
}
