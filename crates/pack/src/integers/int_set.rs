//! A set of integers: a tree ordered by value whose leaves are Elias-Fano codes (`int_leaf.rs`). A million
//! random members below 2^40 take about three bytes each, consecutive ones a third of a byte.
//!
//! A full leaf is split in the middle. Where the new member is the greatest of all (or the least), it begins
//! a leaf of its own instead: members that rise, as identifiers do, leave full leaves behind. Cloning costs
//! one increment.
//!
//! Merging goes by [`Cursor`]: it steps from member to member, and jumps to the first at or above a value, in
//! the leaf it is in if that can be, so that two sets are merged in the time of the smaller one where it is
//! much smaller, and of a walk where not.
//!
//! On the path of every request: no allocation but a leaf's own, no formatting, no clock.
use crate::code::elias_fano::{EliasFano, Spot};
use crate::integers::int_leaf::{COUNT_MAX, IntLeaf};
use crate::memory::arena::Moves;
use crate::tree::order::ByValue;
use crate::tree::stats::Stats;
use crate::tree::{Path, Tree};
use base::random::Random;

#[derive(Clone)]
pub struct IntSet {
    tree: Tree<ByValue, IntLeaf>,
    len: u64,
}

impl IntSet {
    /// An empty set allocates nothing.
    pub const fn new() -> IntSet {
        IntSet { tree: Tree::new(), len: 0 }
    }

    /// The set of values that ascend, in full leaves of about the same size.
    pub fn of_sorted(values: &[i64]) -> IntSet {
        debug_assert!(values.is_sorted_by(|a, b| a < b), "members ascend");
        let count = values.len().div_ceil(COUNT_MAX);
        let leaf = |index: usize| {
            let part = &values[values.len() * index / count..values.len() * (index + 1) / count];
            (part[0], IntLeaf::of(part))
        };
        IntSet { tree: Tree::of_leaves((0..count).map(leaf).collect()), len: values.len() as u64 }
    }

    /// How many members there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `value` is a member. One descent and a search in the leaf, which decodes nothing.
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        self.tree.leaf_at(value).is_some_and(|leaf| leaf.read().seek(value).is_found)
    }

    /// Adds a member. Returns whether it was not there before.
    pub fn insert(&mut self, value: i64) -> bool {
        let Some(path) = self.tree.seek(value) else {
            self.tree.plant(value, IntLeaf::of(&[value]));
            debug_assert_eq!(self.len, 0);
            self.len = 1;
            return true;
        };
        let leaf = self.tree.leaf(&path).read();
        let spot = leaf.seek(value);
        if spot.is_found {
            return false;
        }
        if leaf.count() < COUNT_MAX {
            self.tree.leaf_mut(&path).insert(spot, value);
        } else {
            self.split(path, spot, value);
        }
        self.len += 1;
        true
    }

    /// Removes a member, and returns whether it was there.
    pub fn remove(&mut self, value: i64) -> bool {
        let Some(path) = self.tree.seek(value) else { return false };
        let spot = self.tree.leaf(&path).read().seek(value);
        if !spot.is_found {
            return false;
        }
        self.len -= 1;
        let leaf = self.tree.leaf_mut(&path);
        debug_assert!(leaf.count() as u64 <= self.len + 1);
        if leaf.count() == 1 {
            self.tree.remove(&path);
        } else {
            leaf.remove(spot);
            if leaf.is_under() {
                self.join(path);
            }
        }
        true
    }

    /// Every member, in order.
    pub fn for_each(&self, visit: &mut dyn FnMut(i64)) {
        self.tree.for_each_leaf(&mut |leaf| leaf.read().for_each(&mut *visit));
    }

    /// Visits the members from `from` on that share a leaf. Returns where to go on, None at the end. A member
    /// that stays in the set is visited by a walk from `i64::MIN` to None once, whatever splits and joins
    /// happen between the calls.
    pub fn scan(&self, from: i64, visit: &mut dyn FnMut(i64)) -> Option<i64> {
        let mut cursor = self.cursor_from(from);
        let mut last = cursor.value()?;
        let path = cursor.current.map(|current| current.path);
        while let Some(value) = cursor.value()
            && cursor.current.map(|current| current.path) == path
        {
            visit(value);
            last = value;
            cursor.step();
        }
        // If another member follows, the last one is not `i64::MAX`.
        cursor.value().map(|_| last + 1)
    }

    /// A member chosen uniformly; None where there is none.
    pub fn random(&self, random: &mut Random) -> Option<i64> {
        let (leaf, index) = self.tree.draw_element(random, COUNT_MAX, IntLeaf::count)?;
        Some(leaf.read().get(index))
    }

    /// The least member.
    pub fn first(&self) -> Option<i64> {
        self.tree.first().map(|path| self.tree.leaf(&path).read().first())
    }

    /// The greatest member.
    pub fn last(&self) -> Option<i64> {
        self.tree.last().map(|path| self.tree.leaf(&path).read().last())
    }

    /// A walk over all members, at the first.
    pub fn cursor(&self) -> Cursor<'_> {
        self.cursor_from(i64::MIN)
    }

    /// A walk that begins at the first member that is not less than `value`.
    pub fn cursor_from(&self, value: i64) -> Cursor<'_> {
        let mut cursor =
            Cursor { set: self, current: None, ahead: [0; AHEAD_MAX], at: 0, len: 0, reach: AHEAD_MIN };
        cursor.descend(value);
        cursor
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`), leaf by leaf from the one
    /// that covers `from` on. Stops once `moves` says that `effort` was made, and returns where to go on,
    /// None at the end.
    pub fn relocate(&mut self, from: i64, effort: u64, moves: &mut Moves) -> Option<i64> {
        let path = self.tree.seek(from)?;
        let next = self.tree.relocate_from(path, effort, moves, IntLeaf::relocate)?;
        Some(self.tree.leaf(&next).read().first())
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        self.tree.leaf_bytes_about()
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.tree.count_sole(samples)
    }

    /// About how many bytes its leaves and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        let sample = self.tree.sample(&mut |leaf| (leaf.allocated_bytes() as i64, leaf.count()));
        sample.of_entries(self.len()).unsigned_abs()
    }

    /// What MEMORY LAYOUT tells: nodes, members and bytes. Looks at each leaf.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.tree.height() as u32, ..Stats::default() };
        self.tree.add_stats(&mut stats, |stats, leaf| {
            stats.ints.add(leaf.count() as u64, leaf.used_bytes(), leaf.allocated_bytes());
        });
        stats
    }

    /// Puts `value` into a full leaf, which becomes two.
    #[cold]
    fn split(&mut self, mut path: Path, spot: Spot, value: i64) {
        let mut values = self.tree.leaf(&path).read().values();
        assert!(values.len() == COUNT_MAX && spot.index <= COUNT_MAX, "{} members", values.len());
        values.insert(spot.index, value);
        let at = if spot.index == COUNT_MAX && self.tree.last() == Some(path) {
            COUNT_MAX
        } else if spot.index == 0 && self.tree.first() == Some(path) {
            1
        } else {
            values.len() / 2
        };
        *self.tree.leaf_mut(&path) = IntLeaf::of(&values[..at]);
        self.tree.insert_after(&mut path, values[at], IntLeaf::of(&values[at..]));
    }

    /// Joins a leaf that has become small with a neighbour under the same parent, if that is small too.
    fn join(&mut self, path: Path) {
        self.tree.join_neighbour(
            &path,
            |both| both.left.can_join(both.right).then_some(()),
            |left, right, ()| {
                let mut values = left.read().values();
                right.read().for_each(|value| values.push(value));
                *left = IntLeaf::of(&values);
            },
        );
    }
}

impl Default for IntSet {
    fn default() -> IntSet {
        IntSet::new()
    }
}

impl FromIterator<i64> for IntSet {
    fn from_iter<I: IntoIterator<Item = i64>>(values: I) -> IntSet {
        let mut set = IntSet::new();
        for value in values {
            set.insert(value);
        }
        set
    }
}

/// A walk over the members in order. It is at one of them, or behind the last.
///
/// It decodes some members ahead: few where it jumps from one to a distant one, more and more where it goes
/// from member to member, which then costs little more than the decoding of a whole leaf.
#[derive(Clone)]
pub struct Cursor<'s> {
    set: &'s IntSet,
    /// The leaf that the members decoded come from; None behind the last.
    current: Option<Current<'s>>,
    ahead: [i64; AHEAD_MAX],
    /// Of the members decoded, which the walk is at, and how many there are: it is at one of them unless it
    /// is behind the last of all.
    at: usize,
    len: usize,
    /// How many are decoded next.
    reach: usize,
}

#[derive(Clone, Copy)]
struct Current<'s> {
    path: Path,
    leaf: EliasFano<'s>,
    /// Behind the members decoded.
    behind: Spot,
}

/// How many members are decoded at once behind a jump, and at most.
const AHEAD_MIN: usize = 2;
const AHEAD_MAX: usize = 32;

/// A jump over fewer members than this is one from member to member.
const NEAR: usize = 8;

impl<'s> Cursor<'s> {
    /// The member at which the walk is; None behind the last.
    #[inline]
    pub fn value(&self) -> Option<i64> {
        (self.at < self.len).then(|| self.ahead[self.at])
    }

    /// On to the next member.
    #[inline]
    pub fn step(&mut self) {
        self.pass(1);
    }

    /// On to the first member that is not less than `value`; never back.
    #[inline]
    pub fn seek(&mut self, value: i64) {
        self.at += self.ahead().iter().take_while(|member| **member < value).count();
        if self.at >= self.len {
            self.jump(value);
        }
    }

    /// The members decoded from the one on at which the walk is; none only behind the last of all.
    #[inline]
    pub fn ahead(&self) -> &[i64] {
        &self.ahead[self.at.min(self.len)..self.len]
    }

    /// On over so many of the members that are [`ahead`](Cursor::ahead).
    #[inline]
    pub fn pass(&mut self, count: usize) {
        self.at += count;
        debug_assert!(self.at <= self.len, "{} of {} members", self.at, self.len);
        if self.at >= self.len {
            self.go_on();
        }
    }

    /// Beyond the members that are ahead, to the first one that is not less than `value`, which is greater
    /// than all of them.
    pub fn jump(&mut self, value: i64) {
        debug_assert!(self.ahead().iter().all(|member| *member < value), "a walk never goes back");
        let Some(mut current) = self.current else { return };
        if self.reach == AHEAD_MAX {
            // Where jumps are short, decoding what follows costs less than a search.
            (self.len, current.behind) = current.leaf.decode(current.behind, &mut self.ahead);
            self.at = self.ahead[..self.len].iter().take_while(|member| **member < value).count();
            self.current = Some(current);
            if self.at < self.len {
                return;
            }
        }
        match current.leaf.find_from(value) {
            Some((spot, _)) => {
                let is_near = spot.index - current.behind.index < NEAR;
                self.reach = if is_near { (self.reach * 2).min(AHEAD_MAX) } else { AHEAD_MIN };
                self.decode(Current { behind: spot, ..current });
            }
            None => self.descend(value),
        }
    }

    fn descend(&mut self, value: i64) {
        self.reach = AHEAD_MIN;
        (self.current, self.at, self.len) = (None, 0, 0);
        let Some(path) = self.set.tree.seek(value) else { return };
        self.enter(path, value);
        if self.current.is_none() {
            self.enter_next(path, value);
        }
    }

    /// To the first member behind those decoded.
    fn go_on(&mut self) {
        let Some(current) = self.current else { return };
        self.reach = (self.reach * 2).min(AHEAD_MAX);
        self.decode(current);
        if self.len == 0 {
            self.current = None;
            self.enter_next(current.path, i64::MIN);
        }
    }

    fn enter_next(&mut self, mut path: Path, value: i64) {
        if self.set.tree.next(&mut path) {
            self.enter(path, value);
        }
    }

    /// Goes to the first member of a leaf that is not less than `value`, if it has one.
    fn enter(&mut self, path: Path, value: i64) {
        let leaf = self.set.tree.leaf(&path).read();
        if let Some((spot, _)) = leaf.find_from(value) {
            self.decode(Current { path, leaf, behind: spot });
        }
    }

    /// Decodes the members behind `current`, and goes to the first of them.
    fn decode(&mut self, mut current: Current<'s>) {
        (self.len, current.behind) = current.leaf.decode(current.behind, &mut self.ahead[..self.reach]);
        self.at = 0;
        self.current = Some(current);
    }
}

#[cfg(test)]
#[path = "int_set_properties.rs"]
mod properties;
