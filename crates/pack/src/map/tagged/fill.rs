//! A new leaf made of entries of others, bit for bit: where a leaf is split, joined, or laid out anew.
use super::kind::Kind;
use super::{Slot, Tagged};
use crate::map::form::Form;

/// Fills a new leaf with entries of other leaves, which give up the references in these entries.
pub(super) struct Filler<'l> {
    leaf: &'l mut [u8],
    /// What is filled so far.
    pub(super) kind: Kind,
    start: usize,
    /// Where the uses begin once all has come.
    uses_start: usize,
}

impl<'l> Filler<'l> {
    /// Begins to fill `leaf`, which is empty, has room for `count` entries, and can say their lengths.
    pub(super) fn of<V, F: Form>(leaf: &'l mut Tagged<V, F>, count: usize) -> Filler<'l> {
        let kind = Kind::of(&leaf.block);
        let leaf = leaf.block.make_mut();
        Filler { kind, start: leaf.len(), uses_start: Kind { count, ..kind }.uses().start, leaf }
    }

    pub(super) fn take<V, F: Form>(&mut self, from: &Tagged<V, F>, slots: impl Iterator<Item = Slot>) {
        let (theirs, uses) = (Kind::of(&from.block), from.uses());
        for slot in slots {
            if self.kind.has_uses {
                let byte = uses.get(slot.index).copied().unwrap_or(0);
                self.leaf[self.uses_start + self.kind.count] = byte;
            }
            debug_assert!(slot.len <= self.start, "a new leaf has room for all it is made of");
            self.start -= slot.len;
            self.kind.set_lane(self.leaf, self.kind.count, from.block[theirs.tag_at(slot.index)], slot.len);
            self.leaf[self.start..self.start + slot.len].copy_from_slice(from.entry(slot));
            self.kind.count += 1;
        }
        assert!(self.kind.front_bytes() <= self.start, "a new leaf has room for all it is made of");
        self.kind.store(self.leaf);
    }
}
