//! Which entries of one map are in all of some other maps, or in none of them: intersections and differences,
//! leaf by leaf.
//!
//! All maps of one seed are in the same order, by hash, and their leaves keep the same tags. So the entries
//! of a leaf can only be in those leaves of another map that cover the same places, and their tags say where
//! in these they may be: nothing is hashed, and no tree is walked but once a leaf. Where the other map has
//! far more leaves, each entry is looked up by its hash instead.
//!
//! ```text
//! this map      |      leaf       |       leaf        |      leaf      |
//! another            leaf       |     leaf     |       leaf     |   leaf
//!                                ^^^^^^^^^^^^   ^^^^^^^^^^^^^^   the entries of the second leaf are in these
//! ```
use crate::map::Map;
use crate::map::form::{Form, Name};
use crate::map::tagged::{ByTag, Listed, Tagged};
use crate::tree::order::OrderRange;
use base::hash::Seed;
use std::ops::ControlFlow;

/// Which entries pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Those that all other maps have.
    Common,
    /// Those that no other map has.
    Rest,
}

/// The leaves of another map are listed by tag if at most so many of them cover the places of one leaf.
const LISTED_MAX: usize = 4;

/// A list is made only if there is at least one lookup for so many entries of it.
const LISTED_SHARE: usize = 8;

impl<V: Clone, F: Form> Map<V, F> {
    /// Visits the names of the entries that pass, in hash order of leaves, until told to stop. All maps are
    /// of `seed`.
    pub fn sift(
        &self,
        seed: &Seed,
        others: &[&Map<V, F>],
        pass: Pass,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut sieves: Vec<Sieve<'_, V, F>> = others.iter().map(|map| Sieve::new(map)).collect();
        let (mut entries, mut from) = (Vec::with_capacity(F::COUNT_MAX), Some(0));
        while let Some((leaf, range)) = from.and_then(|from| self.leaf_from(from)) {
            entries.clear();
            leaf.list(&mut entries);
            for sieve in &mut sieves {
                sieve.sift(seed, range, pass, &mut entries);
            }
            for (_, name) in &entries {
                visit(name.bytes)?;
            }
            from = range.last.checked_add(1);
        }
        ControlFlow::Continue(())
    }
}

/// One of the other maps, and its leaves that are listed.
struct Sieve<'m, V: Clone, F: Form> {
    map: &'m Map<V, F>,
    leaves: Vec<&'m Tagged<V, F>>,
    /// The lists of these leaves, and perhaps of others behind them.
    lists: Vec<List<'m, V, F>>,
}

/// A leaf, if any yet, and its entries by tag.
struct List<'m, V, F: Form> {
    leaf: Option<&'m Tagged<V, F>>,
    by_tag: Box<ByTag>,
}

impl<'m, V: Clone, F: Form> Sieve<'m, V, F> {
    fn new(map: &'m Map<V, F>) -> Sieve<'m, V, F> {
        Sieve { map, leaves: Vec::new(), lists: Vec::new() }
    }

    /// Drops the entries that do not pass this map. All of them are of one leaf, which covers `range`.
    fn sift(&mut self, seed: &Seed, range: OrderRange, pass: Pass, entries: &mut Vec<Listed<'_>>) {
        let passes = |is_there: bool| is_there == (pass == Pass::Common);
        if self.reach(range) && self.list(entries.len()) {
            entries.retain(|(tag, name)| passes(self.is_listed(*tag, *name)));
        } else if let [only] = self.leaves[..] {
            entries.retain(|(tag, name)| passes(only.find(*tag, *name).is_some()));
        } else {
            entries.retain(|(_, name)| passes(self.map.find(F::hash(seed, *name), *name).is_some()));
        }
    }

    /// Finds the leaves that cover `range`, and returns whether they are few enough to be listed.
    fn reach(&mut self, range: OrderRange) -> bool {
        self.leaves.clear();
        let mut from = range.first;
        while let Some((leaf, covered)) = self.map.leaf_from(from) {
            if self.leaves.len() == LISTED_MAX {
                self.leaves.clear();
                return false;
            }
            debug_assert!(covered.first <= from && from <= covered.last, "the leaf covers the place");
            self.leaves.push(leaf);
            match covered.last.checked_add(1) {
                Some(next) if next <= range.last => from = next,
                _ => break,
            }
        }
        true
    }

    /// Makes the lists of these leaves if that pays for so many lookups and is possible, and returns whether
    /// it did.
    fn list(&mut self, lookups: usize) -> bool {
        for (index, leaf) in self.leaves.iter().enumerate() {
            let is_it = |list: &List<'_, V, F>| list.leaf.is_some_and(|listed| std::ptr::eq(listed, *leaf));
            if let Some(at) = self.lists.iter().position(is_it) {
                self.lists.swap(index, at);
                continue;
            }
            if lookups * LISTED_SHARE < leaf.count() {
                return false;
            }
            if index == self.lists.len() {
                self.lists.push(List { leaf: None, by_tag: Box::new(ByTag::new()) });
            }
            let list = &mut self.lists[index];
            list.leaf = list.by_tag.fill(leaf).then_some(leaf);
            if list.leaf.is_none() {
                return false;
            }
        }
        true
    }

    #[inline]
    fn is_listed(&self, tag: u8, name: Name<'_>) -> bool {
        debug_assert!(self.leaves.len() <= self.lists.len(), "each leaf has its list");
        self.leaves.iter().zip(&self.lists).any(|(leaf, list)| list.by_tag.has(leaf, tag, name))
    }
}

#[cfg(test)]
#[path = "sift_properties.rs"]
mod properties;
