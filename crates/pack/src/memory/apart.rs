//! A payload that lies in a block of its own (`map/tagged/payload.rs`), without some first bytes that are not
//! its content, to be edited where it lies. A map lends it to the code of whatever lies there.
use crate::memory::block::Block;

/// The bytes of a block from some byte on.
pub struct Apart<'b> {
    block: &'b mut Block,
    from: usize,
}

impl<'b> Apart<'b> {
    pub(crate) fn new(block: &'b mut Block, from: usize) -> Apart<'b> {
        debug_assert!(from <= block.len(), "content begins within its block");
        Apart { block, from }
    }

    /// The content.
    pub fn bytes(&self) -> &[u8] {
        &self.block[self.from..]
    }

    /// The content, to be edited. A block that is shared is copied first.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block.make_mut()[self.from..]
    }

    /// [`Block::gap_tightly`] of the content.
    pub(crate) fn gap(&mut self, at: usize, removed: usize, inserted: usize, more: usize) -> &mut [u8] {
        self.block.gap_tightly(self.from + at, removed, inserted, more)
    }
}
