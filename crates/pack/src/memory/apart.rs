//! A payload that lies in a block of its own (`map/tagged/payload.rs`), without some first bytes that are not
//! its content, to be edited where it lies. A map lends it to the code of whatever lies there; what that code
//! needs of it, and of a buffer, is [`Pliable`].
use crate::memory::block::Block;

/// Bytes that grow and shrink in the middle.
pub trait Pliable {
    /// The bytes.
    fn bytes(&self) -> &[u8];
    /// The same, to be edited.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// Replaces the `removed` bytes at `at` by `inserted` others and lends these to be filled.
    fn gap(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8];
}

impl Pliable for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }

    fn gap(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        let len = self.len();
        assert!(at <= len && removed <= len - at, "gap {at}+{removed} of {len}");
        if inserted > removed {
            self.resize(len + inserted - removed, 0);
        }
        self.copy_within(at + removed..len, at + inserted);
        self.truncate(len - removed + inserted);
        &mut self[at..at + inserted]
    }
}

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

    /// [`Pliable::gap`], before `more` bytes are asked for.
    pub(crate) fn gap_before(
        &mut self,
        at: usize,
        removed: usize,
        inserted: usize,
        more: usize,
    ) -> &mut [u8] {
        self.block.gap_tightly(self.from + at, removed, inserted, more)
    }
}

impl Pliable for Apart<'_> {
    fn bytes(&self) -> &[u8] {
        &self.block[self.from..]
    }

    /// A block that is shared is copied first.
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block.make_mut()[self.from..]
    }

    fn gap(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        self.gap_before(at, removed, inserted, 0)
    }
}
