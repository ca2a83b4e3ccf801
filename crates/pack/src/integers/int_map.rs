//! A map of integers to integers: a tree ordered by key whose leaves are two columns (`paired.rs`).
//! Consecutive keys with values near each other take two or three bytes an element; random ones of 64 bits,
//! about fifteen.
//!
//! A full leaf is split in the middle. Where the new key is the greatest of all (or the least), it begins a
//! leaf of its own instead: keys that rise leave full leaves behind. Cloning costs one increment.
//!
//! On the path of every request: no allocation but a leaf's own, no formatting, no clock.
use crate::integers::paired::{self, COUNT_MAX, Paired, Room};
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::order::ByValue;
use crate::tree::stats::Stats;
use crate::tree::{Path, Tree};
use base::random::Random;
use std::ops::ControlFlow;

#[derive(Clone)]
pub struct IntMap {
    tree: Tree<ByValue, Block>,
    len: u64,
}

impl IntMap {
    /// An empty map allocates nothing.
    pub const fn new() -> IntMap {
        IntMap { tree: Tree::new(), len: 0 }
    }

    /// The map of keys that ascend, each with its value, in full leaves of about the same size.
    pub fn of_sorted(pairs: &[(i64, i64)]) -> IntMap {
        debug_assert!(pairs.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
        let count = pairs.len().div_ceil(COUNT_MAX);
        let leaf = |index: usize| {
            let part = &pairs[pairs.len() * index / count..pairs.len() * (index + 1) / count];
            let (keys, values): (Vec<i64>, Vec<i64>) = part.iter().copied().unzip();
            (keys[0], paired::build(&keys, &values, Room::Above))
        };
        IntMap { tree: Tree::of_leaves((0..count).map(leaf).collect()), len: pairs.len() as u64 }
    }

    /// How many keys there are.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The value of a key. One descent, and a search by quarters in the leaf.
    #[inline]
    pub fn get(&self, key: i64) -> Option<i64> {
        let leaf = Paired::open(self.tree.leaf_at(key)?);
        leaf.find(key).map(|index| leaf.value(index))
    }

    /// Gives a key that is there a value, in one descent. Returns the one that it had; None, and nothing is
    /// changed, where the key is not there.
    pub fn replace(&mut self, key: i64, value: i64) -> Option<i64> {
        let path = self.tree.seek(key)?;
        let leaf = Paired::open(self.tree.leaf(&path));
        let index = leaf.find(key)?;
        let old = leaf.value(index);
        if old != value {
            paired::set_value(self.tree.leaf_mut(&path), index, value);
        }
        Some(old)
    }

    /// Gives a key a value. Returns the one that it had; None for a new key.
    pub fn insert(&mut self, key: i64, value: i64) -> Option<i64> {
        let old = self.replace(key, value);
        if old.is_none() {
            self.add(key, value);
        }
        old
    }

    /// Adds a key that is not there.
    pub fn add(&mut self, key: i64, value: i64) {
        let Some(path) = self.tree.seek(key) else {
            self.tree.plant(key, paired::build(&[key], &[value], Room::Above));
            debug_assert_eq!(self.len, 0);
            self.len = 1;
            return;
        };
        let leaf = Paired::open(self.tree.leaf(&path));
        let index = leaf.position(key);
        debug_assert!(index == leaf.count() || leaf.key(index) != key, "the key is new");
        self.len += 1;
        if leaf.count() < COUNT_MAX {
            paired::insert(self.tree.leaf_mut(&path), index, key, value);
        } else {
            self.split(path, index, key, value);
        }
    }

    /// Removes a key, and returns its value; None where it was not there.
    pub fn remove(&mut self, key: i64) -> Option<i64> {
        let path = self.tree.seek(key)?;
        let leaf = Paired::open(self.tree.leaf(&path));
        let (index, count) = (leaf.find(key)?, leaf.count());
        let value = leaf.value(index);
        debug_assert!(self.len >= count as u64);
        self.len -= 1;
        if count == 1 {
            self.tree.remove(&path);
        } else {
            paired::remove(self.tree.leaf_mut(&path), index);
            if count - 1 < COUNT_MAX / 4 {
                self.join(path);
            }
        }
        Some(value)
    }

    /// Every key with its value, in order.
    pub fn for_each(&self, visit: &mut dyn FnMut(i64, i64)) {
        self.tree.for_each_leaf(&mut |leaf| {
            Paired::open(leaf).elements(0).for_each(|(key, value)| visit(key, value));
        });
    }

    /// As [`IntMap::for_each`], until told to stop.
    pub fn visit(&self, visit: &mut dyn FnMut(i64, i64) -> ControlFlow<()>) -> ControlFlow<()> {
        self.tree.visit_leaves(&mut |leaf| {
            Paired::open(leaf).elements(0).try_for_each(|(key, value)| visit(key, value))
        })
    }

    /// Visits the keys from `from` on with their values until told to stop.
    pub fn visit_from(
        &self,
        from: i64,
        visit: &mut dyn FnMut(i64, i64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Some(mut path) = self.tree.seek(from) else { return ControlFlow::Continue(()) };
        let mut first = Paired::open(self.tree.leaf(&path)).position(from);
        loop {
            let leaf = Paired::open(self.tree.leaf(&path));
            leaf.elements(first).try_for_each(|(key, value)| visit(key, value))?;
            if !self.tree.next(&mut path) {
                return ControlFlow::Continue(());
            }
            first = 0;
        }
    }

    /// Visits the keys from `from` on that share a leaf. Returns where to go on, None at the end. A key that
    /// stays is visited by a walk from `i64::MIN` to None once, whatever splits and joins happen between the
    /// calls.
    pub fn scan(&self, from: i64, visit: &mut dyn FnMut(i64, i64)) -> Option<i64> {
        let mut path = self.tree.seek(from)?;
        let mut first = Paired::open(self.tree.leaf(&path)).position(from);
        if first == Paired::open(self.tree.leaf(&path)).count() {
            if !self.tree.next(&mut path) {
                return None;
            }
            first = 0;
        }
        Paired::open(self.tree.leaf(&path)).elements(first).for_each(|(key, value)| visit(key, value));
        self.tree.next(&mut path).then(|| Paired::open(self.tree.leaf(&path)).key(0))
    }

    /// A key chosen uniformly, and its value; None in an empty map.
    pub fn random(&self, random: &mut Random) -> Option<(i64, i64)> {
        let count = |leaf: &Block| Paired::open(leaf).count();
        let (leaf, index) = self.tree.draw_element(random, COUNT_MAX, count)?;
        let leaf = Paired::open(leaf);
        Some((leaf.key(index), leaf.value(index)))
    }

    /// The least key.
    pub fn first(&self) -> Option<i64> {
        self.tree.first().map(|path| Paired::open(self.tree.leaf(&path)).key(0))
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`), leaf by leaf from the one
    /// that covers `from` on. Stops once `moves` says that `effort` was made, and returns where to go on,
    /// None at the end.
    pub fn relocate(&mut self, from: i64, effort: u64, moves: &mut Moves) -> Option<i64> {
        let path = self.tree.seek(from)?;
        let next = self.tree.relocate_from(path, effort, moves, Block::relocate)?;
        Some(Paired::open(self.tree.leaf(&next)).key(0))
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.tree.count_sole(samples)
    }

    /// About how many bytes its leaves and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        let weigh = |leaf: &Block| (leaf.allocated_bytes() as i64, Paired::open(leaf).count());
        self.tree.sample(&mut { weigh }).of_entries(self.len()).unsigned_abs()
    }

    /// What MEMORY LAYOUT tells: nodes, elements and bytes. Looks at each leaf.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.tree.height() as u32, ..Stats::default() };
        self.tree.add_stats(&mut stats, |stats, leaf| {
            let (count, used) = (Paired::open(leaf).count(), block::HEADER_BYTES + leaf.len());
            stats.ints.add(count as u64, used, leaf.allocated_bytes());
        });
        stats
    }

    /// Puts an element into a full leaf, which becomes two.
    #[cold]
    fn split(&mut self, mut path: Path, index: usize, key: i64, value: i64) {
        let leaf = Paired::open(self.tree.leaf(&path));
        let is_last = index == COUNT_MAX && self.tree.last() == Some(path);
        let is_first = index == 0 && self.tree.first() == Some(path);
        let (mut keys, mut values) = leaf.unzip();
        keys.insert(index, key);
        values.insert(index, value);
        let (at, room) = match () {
            () if is_last => (COUNT_MAX, Room::Above),
            () if is_first => (1, Room::Below),
            () => (keys.len() / 2, Room::Around),
        };
        let ((left_keys, right_keys), (left_values, right_values)) = (keys.split_at(at), values.split_at(at));
        let mut halves =
            [paired::build(left_keys, left_values, room), paired::build(right_keys, right_values, room)];
        match () {
            () if is_last => halves[0].shrink_to_fit(),
            () if is_first => halves[1].shrink_to_fit(),
            () => {}
        }
        let [left, right] = halves;
        *self.tree.leaf_mut(&path) = left;
        self.tree.insert_after(&mut path, keys[at], right);
    }

    /// Joins a leaf that has become small with a neighbour under the same parent, if that is small too.
    fn join(&mut self, path: Path) {
        let count = |leaf: &Block| Paired::open(leaf).count();
        self.tree.join_neighbour(
            &path,
            |both| (count(both.left) + count(both.right) <= COUNT_MAX * 3 / 4).then_some(()),
            |left, right, ()| {
                let (a, b) = (Paired::open(left), Paired::open(&right));
                let (keys, values): (Vec<i64>, Vec<i64>) = a.elements(0).chain(b.elements(0)).unzip();
                *left = paired::build(&keys, &values, Room::Around);
            },
        );
    }
}

impl Default for IntMap {
    fn default() -> IntMap {
        IntMap::new()
    }
}

#[cfg(test)]
#[path = "int_map_properties.rs"]
mod properties;
