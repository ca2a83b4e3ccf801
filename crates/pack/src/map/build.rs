//! A map made of all its entries at once, leaf by leaf, where ordinary inserts would grow leaves and split
//! them. Entries come in the order of their places, and a leaf is begun anew when the last is filled to about
//! three quarters, so that the next inserts do not split every leaf. Entries that share a place share a leaf.
//!
//! A map whose entries all fit one leaf can keep them in any order; so small hashes answer in the order in
//! which their fields came.
use super::form::{Form, Name};
use super::tagged::{Draft, Gathered, Tagged, leaf_bytes, tail_len};
use super::{Map, Shared};
use crate::memory::block;
use crate::tree::Tree;
use base::hash::Hash;

pub struct MapBuilder<V: Clone, F: Form> {
    open: Gathered<V, F>,
    /// The place of the first entry of the leaf that is being filled, and of the last one.
    first: u32,
    last: u32,
    /// Leaves that are filled, with the place of the first entry of each.
    leaves: Vec<(u32, Tagged<V, F>)>,
    len: u64,
    fill: Fill,
}

/// When a leaf is full.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Never: entries come in any order, and the caller has seen that they fit one leaf.
    OneLeaf,
    ThreeQuarters,
}

impl Fill {
    /// How to fill leaves with entries of so many bytes ([`MapBuilder::entry_bytes`]).
    pub fn of<F: Form>(entries: impl Iterator<Item = usize>) -> Fill {
        let (count, bytes) = leaf_bytes(entries);
        let fits = count <= F::COUNT_MAX && (block::HEADER_BYTES + bytes <= F::BYTES_MAX || count < 2);
        if fits { Fill::OneLeaf } else { Fill::ThreeQuarters }
    }
}

impl<V: Clone, F: Form> MapBuilder<V, F> {
    /// How many bytes an entry takes, tag and length not counted.
    pub fn entry_bytes(name: Name<'_>, payload_bytes: usize, has_outside: bool) -> usize {
        F::head_len(name) + tail_len::<F>(payload_bytes, has_outside)
    }

    pub fn new(fill: Fill) -> MapBuilder<V, F> {
        MapBuilder { open: Gathered::new(), first: 0, last: 0, leaves: Vec::new(), len: 0, fill }
    }

    /// Adds an entry: its hash, the caller's bits, its name, its payload, and what lies outside. Its place is
    /// not before that of the last one, and no other has its name.
    pub fn push<'n>(
        &mut self,
        hash: Hash,
        key: impl Into<Name<'n>>,
        (meta, inline): (u8, &[u8]),
        outside: Option<Shared<V>>,
    ) {
        let draft = Draft { tag: hash.tag(), meta, name: key.into(), inline, birth: None };
        let place = hash.order();
        if self.fill == Fill::ThreeQuarters && self.open.count() > 0 {
            debug_assert!(self.last <= place, "entries come in the order of their places");
            let bytes = self.open.leaf_bytes_with(Gathered::<V, F>::entry_len(&draft, outside.as_ref()));
            let is_full = self.open.count() >= F::COUNT_MAX * 3 / 4 || bytes > F::BYTES_MAX * 3 / 4;
            if is_full && self.last != place {
                self.close();
            }
        }
        if self.open.count() == 0 {
            self.first = place;
        }
        self.open.push(&draft, outside);
        self.last = place;
        self.len += 1;
    }

    fn close(&mut self) {
        // The first leaf covers all that is before the second.
        let first = if self.leaves.is_empty() { 0 } else { self.first };
        self.leaves.push((first, self.open.take()));
    }

    /// The map of all that came.
    pub fn finish(mut self) -> Map<V, F> {
        if self.open.count() > 0 {
            self.close();
        }
        debug_assert!(self.fill == Fill::ThreeQuarters || self.leaves.len() < 2);
        Map { tree: Tree::of_leaves(self.leaves), len: self.len }
    }
}

#[cfg(test)]
#[path = "build_properties.rs"]
mod properties;
