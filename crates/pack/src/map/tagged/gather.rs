//! A leaf made of all its entries at once: they are gathered first, so that the leaf is allocated in its size
//! and each entry is written to its place.
use super::kind::{Kind, NOTE_BYTES};
use super::{Draft, NOTE_NONE, Tagged, entry_len, laid_out, len_of, write_entry};
use crate::map::form::Form;
use crate::memory::block::Block;
use crate::memory::shared::Shared;
use std::marker::PhantomData;

/// The entries of a leaf to be. References to values outside that are not made a leaf are leaked.
pub(crate) struct Gathered<V, F: Form> {
    /// Tag and length of each entry.
    lanes: Vec<(u8, u32)>,
    /// The entries, back to back.
    bytes: Vec<u8>,
    kind: Kind,
    owns: PhantomData<(Shared<V>, F)>,
}

/// How many entries of these lengths there are, and the content of a leaf of all of them.
pub(crate) fn leaf_bytes(entries: impl Iterator<Item = usize>) -> (usize, usize) {
    let (kind, bytes) = entries.fold((Kind::EMPTY, 0), |(kind, bytes), len| (kind.with(len), bytes + len));
    (kind.count, kind.front_bytes() + bytes)
}

impl<V: Clone, F: Form> Gathered<V, F> {
    pub(crate) fn new() -> Gathered<V, F> {
        Gathered { lanes: Vec::new(), bytes: Vec::new(), kind: Kind::EMPTY, owns: PhantomData }
    }

    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The content of the leaf that the entries would make, with one of `more` bytes.
    pub(crate) fn leaf_bytes_with(&self, more: usize) -> usize {
        self.kind.with(more).front_bytes() + self.bytes.len() + more
    }

    /// How many bytes an entry takes, tag and length not counted.
    pub(crate) fn entry_len(draft: &Draft<'_>, outside: Option<&Shared<V>>) -> usize {
        len_of::<F>(draft, outside.is_some())
    }

    /// Adds an entry. The caller makes sure that no two have one key.
    pub(crate) fn push(&mut self, draft: &Draft<'_>, outside: Option<Shared<V>>) {
        debug_assert!(draft.birth.is_none(), "a map that is built has no uses");
        let (draft, pointer) = &laid_out::<V, F>(draft, outside);
        let (start, len) = (self.bytes.len(), entry_len::<F>(draft, *pointer));
        self.bytes.resize(start + len, 0);
        write_entry::<F>(&mut self.bytes[start..], draft, *pointer);
        self.lanes.push((draft.tag, u32::try_from(len).expect("an entry has less than 4 GB")));
        self.kind = self.kind.with(len);
        self.kind.has_outside |= pointer.is_some();
    }

    /// The leaf of these entries, in the order in which they came. None are left.
    pub(crate) fn take(&mut self) -> Tagged<V, F> {
        let kind = std::mem::replace(&mut self.kind, Kind::EMPTY);
        debug_assert_eq!(kind.count, self.count());
        let mut leaf: Tagged<V, F> = Tagged::of_block(Block::spread_tightly(
            &NOTE_NONE.to_le_bytes(),
            kind.front_bytes() - NOTE_BYTES + self.bytes.len(),
            &[],
        ));
        let block = leaf.block.make_mut();
        debug_assert!(kind.front_bytes() + self.bytes.len() <= block.len());
        let (mut from, mut to) = (0, block.len());
        for (index, (tag, len)) in self.lanes.iter().enumerate() {
            let len = *len as usize;
            kind.set_lane(block, index, *tag, len);
            block[to - len..to].copy_from_slice(&self.bytes[from..from + len]);
            (from, to) = (from + len, to - len);
        }
        assert!(kind.front_bytes() <= to, "the leaf has room for all it is made of");
        kind.store(block);
        leaf.check();
        self.lanes.clear();
        self.bytes.clear();
        leaf
    }
}
