//! Room in a leaf whose entries come one after another in the order of their places: it is taken at once, and
//! what is left of it given back when the next leaf begins. And the room that a leaf gives back as it
//! shrinks.
use super::kind::Kind;
use super::{Draft, Tagged, len_of};
use crate::map::form::Form;
use crate::memory::arena;
use crate::memory::block::Block;
use crate::memory::shared::Shared;

impl<V: Clone, F: Form> Tagged<V, F> {
    /// Whether the leaf would be filled too far with this entry: to more than two thirds of the entries that
    /// it may have (for keys whole groups of tags), or three quarters of the bytes. So the next inserts do
    /// not split every leaf.
    pub(crate) fn is_filled_with(&self, draft: &Draft<'_>, outside: Option<&Shared<V>>) -> bool {
        let (count, bytes) = (self.count() + 1, self.bytes_with(draft, outside));
        count > 1 && (count > F::COUNT_MAX * 2 / 3 || bytes > F::BYTES_MAX * 3 / 4)
    }

    /// Whether the entry can be added without a move of what is there.
    pub(crate) fn has_room_for(&self, draft: &Draft<'_>, outside: Option<&Shared<V>>) -> bool {
        self.bytes_with(draft, outside) <= self.block.len()
    }

    /// Takes room for as much as the leaf is filled with.
    pub(crate) fn take_room(&mut self) {
        self.unshare();
        if self.block.len() < F::BYTES_MAX * 3 / 4 {
            self.respread(F::BYTES_MAX * 3 / 4);
        }
    }

    /// Gives back all room, also that of a growth step.
    pub(crate) fn seal(&mut self) {
        let wanted = self.wanted_bytes();
        if self.block.is_sole() && self.block.is_larger_than_tight(wanted) {
            let (front, back) = (&self.block[..Kind::of(&self.block).front_bytes()], self.back_bytes());
            let block = Block::spread_tightly(front, wanted - front.len() - back.len(), back);
            // The references have moved with the bytes, so the old block goes as mere bytes.
            *self.block = block;
        }
    }

    /// Moves to a block with fewer bytes of content. Whoever evicts goes through all leaves: those of another
    /// thread's stripe stay there, where the smaller block may lie in what larger ones have left.
    fn respread_beside(&mut self, len: usize) {
        let _beside = arena::beside(self.block.address());
        self.respread(len);
    }

    /// Moves to a smaller block once an eighth is empty.
    pub(super) fn shrink(&mut self) {
        let wanted = self.wanted_bytes();
        if (self.block.len() - wanted) * 8 >= self.block.len() && self.block.is_larger_than_for(wanted) {
            self.respread_beside(wanted);
        }
    }

    /// Gives back what room there is beyond `kept_bytes`, an eighth or not: for whoever removes in order to
    /// free memory.
    pub(crate) fn fit(&mut self, kept_bytes: usize) {
        let wanted = self.wanted_bytes() + kept_bytes;
        if self.block.is_sole() && self.block.is_larger_than_for_entries(wanted) {
            self.respread_beside(wanted);
        }
    }

    fn bytes_with(&self, draft: &Draft<'_>, outside: Option<&Shared<V>>) -> usize {
        let kind = Kind::of(&self.block);
        let len = len_of::<F>(draft, outside.is_some());
        kind.with(len).front_bytes() + kind.sum_before(&self.block, kind.count) + len
    }
}
