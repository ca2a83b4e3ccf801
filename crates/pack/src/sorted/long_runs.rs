//! Members that share their score with many others, by hash: what lets a walk by hash find them
//! ([`crate::sorted`]).
//!
//! A run, all members of one score, is kept by hash when it has more than [`LONG_MAX`] members, and no longer
//! when it has fewer than [`LONG_MIN`]. Between the two nothing changes, so that a run whose length goes up
//! and down is not put in and taken out again and again, each time by a walk over so many members. Cost: the
//! member and 4 bytes, in sets of long runs alone.
use crate::map::{Entry, Map};
use crate::memory::arena::Moves;
use crate::tree::stats::Stats;
use base::hash::{Hash, Seed};

pub(crate) const LONG_MAX: u64 = 256;
pub(crate) const LONG_MIN: u64 = 128;

#[derive(Clone, Default)]
pub(crate) struct LongRuns(Map<()>);

impl LongRuns {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, hash: Hash, member: &[u8]) -> bool {
        self.0.find(hash, member).is_some()
    }

    /// Adds a member. Nothing happens if it is there already.
    pub(crate) fn insert(&mut self, seed: &Seed, member: &[u8]) {
        if let Entry::Vacant(entry) = self.0.entry(seed, seed.hash(member), member) {
            entry.insert(0, &[], None, &mut ());
        }
    }

    /// Removes a member, and returns whether it was there.
    pub(crate) fn remove(&mut self, seed: &Seed, member: &[u8]) -> bool {
        self.0.remove(seed, seed.hash(member), member).is_some()
    }

    /// Visits every member whose place lies between `first` and `last`, both included.
    pub(crate) fn for_each_in(&self, seed: &Seed, first: u32, last: u32, visit: &mut dyn FnMut(&[u8])) {
        let mut from = Some(first);
        while let Some(at) = from.filter(|at| *at <= last) {
            from = self.0.scan(seed, at, &mut |found| {
                if (at..=last).contains(&seed.hash(found.key).order()) {
                    visit(found.key);
                }
            });
        }
    }

    pub(crate) fn relocate(&mut self, from: u32, effort: u64, moves: &mut Moves) -> Option<u32> {
        self.0.relocate(from, effort, moves, &mut |_, _, _| {})
    }

    pub(crate) fn allocated_about(&self) -> u64 {
        self.0.allocated_about(&|_| 0).unsigned_abs()
    }

    pub(crate) fn stats(&self) -> Stats {
        self.0.stats()
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }
}
