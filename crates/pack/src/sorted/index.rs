//! The member index of a sorted set: for the hash of each member its score, in a tree by place. Finding a
//! member is one descent here and one in the tree by score for every candidate, of which there is nearly
//! always one.
//!
//! While members are few, places are kept in 16 bits ([`Grain`]): one lookup in eight has a second candidate
//! where there are [`COARSE_MAX`]. The index is then built anew with whole places, once: a walk over so many
//! members, half a millisecond. From there on leaves split without anybody looking at a member, since the
//! places they keep are whole.
use crate::memory::arena::Moves;
use crate::memory::block::Block;
use crate::sorted::placed::{self, Entry, Grain, Placed};
use crate::tree::order::{ByHash, OrderRange};
use crate::tree::stats::Stats;
use crate::tree::{Path, Tree};

/// An index of more members keeps their places whole.
pub(crate) const COARSE_MAX: u64 = 8192;

/// How many entries a leaf gets when a whole index is built.
const BUILT_COUNT: usize = placed::COUNT_MAX * 3 / 4;

#[derive(Clone)]
pub(crate) struct Index {
    tree: Tree<ByHash, Block>,
    grain: Grain,
}

/// Where an entry of the index is. Valid until the next edit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    path: Path,
    /// The places that its leaf covers.
    range: OrderRange,
    at: usize,
}

impl Index {
    /// An index of these members, in any order.
    pub(crate) fn of(mut entries: Vec<Entry>) -> Index {
        let grain = if entries.len() as u64 > COARSE_MAX { Grain::Fine } else { Grain::Coarse };
        let shift = grain.shift();
        entries.iter_mut().for_each(|entry| entry.place = entry.place >> shift << shift);
        entries.sort_unstable_by_key(|entry| entry.place);
        let mut rest = &entries[..];
        let (mut first, mut leaves) = (0, Vec::new());
        while !rest.is_empty() {
            let at = chunk_end(rest);
            let (chunk, others) = rest.split_at(at);
            let last = others.first().map_or(u32::MAX, |entry| entry.place - 1);
            let leaf = placed::build(chunk, OrderRange { first, last }, grain);
            leaves.push((first, leaf));
            (rest, first) = (others, last.wrapping_add(1));
        }
        Index { tree: Tree::of_leaves(leaves), grain }
    }

    pub(crate) fn grain(&self) -> Grain {
        self.grain
    }

    /// Calls `is_it` with the score of each member at this place and the number of members there, until it
    /// returns something.
    #[inline(always)]
    pub(crate) fn find<R>(
        &self,
        place: u32,
        mut is_it: impl FnMut(f64, usize) -> Option<R>,
    ) -> Option<(Spot, R)> {
        let (path, range, block) = self.tree.seek_leaf(place)?;
        let leaf = Placed::open(block);
        let here = leaf.at(place);
        if here.is_empty() {
            return None;
        }
        let (mut at, mut score) = (here.start, leaf.score(here.start));
        loop {
            if let Some(found) = is_it(score, here.len()) {
                return Some((Spot { path, range, at }, found));
            }
            at += 1;
            if at == here.end {
                return None;
            }
            score = score_of_another(block, at);
        }
    }

    /// The leaf that covers a place.
    pub(crate) fn leaf_at(&self, place: u32) -> Option<&Block> {
        self.tree.leaf_at(place)
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        let Some((path, range)) = self.tree.seek(entry.place) else {
            let leaf = placed::build(&[self.coarsened(entry)], OrderRange::ALL, self.grain);
            self.tree.plant(0, leaf);
            return;
        };
        debug_assert!((range.first..=range.last).contains(&entry.place), "the leaf covers the place");
        let leaf = self.tree.leaf_mut(&path);
        placed::insert(leaf, range, entry);
        if Placed::open(leaf).count() > placed::COUNT_MAX {
            self.split(entry.place);
        }
    }

    fn coarsened(&self, entry: Entry) -> Entry {
        let shift = self.grain.shift();
        Entry { place: entry.place >> shift << shift, ..entry }
    }

    /// Removes an entry with this place and this score, of which there must be one.
    pub(crate) fn remove(&mut self, entry: Entry) {
        let is_it = |score: f64, _| (score.to_bits() == entry.score.to_bits()).then_some(());
        let (spot, ()) = self.find(entry.place, is_it).expect("every member has its place in the index");
        self.remove_at(&spot);
    }

    pub(crate) fn remove_at(&mut self, spot: &Spot) {
        let leaf = self.tree.leaf_mut(&spot.path);
        placed::remove(leaf, spot.at);
        let count = Placed::open(leaf).count();
        if count == 0 {
            self.tree.remove(&spot.path);
        } else if count < placed::COUNT_MAX / 4 {
            self.join(spot.range);
        }
    }

    /// Gives an entry another score.
    pub(crate) fn set_score(&mut self, spot: &Spot, score: f64) {
        placed::set_score(self.tree.leaf_mut(&spot.path), spot.range, spot.at, score);
    }

    fn split(&mut self, place: u32) {
        let Some((mut path, range)) = self.tree.seek(place) else { return };
        if let Some((cut, right)) = placed::split(self.tree.leaf_mut(&path), range) {
            debug_assert!(cut <= place || cut > range.first, "both halves cover something");
            self.tree.insert_after(&mut path, cut, right);
        }
    }

    /// Joins the leaf that covers `range` with a neighbour under the same parent if both are small.
    fn join(&mut self, range: OrderRange) {
        let Some((path, _)) = self.tree.seek(range.first) else { return };
        let count = |leaf: &Block| Placed::open(leaf).count();
        self.tree.join_neighbour(
            &path,
            |pair| {
                let fits = count(pair.left) + count(pair.right) <= placed::COUNT_MAX * 3 / 4;
                fits.then(|| pair.range())
            },
            |left, right, range| *left = placed::joined(left, &right, range),
        );
    }

    /// About `count` entries of one leaf from the place `from` on, and the place to go on from, None at the
    /// end. Entries of the same place are never separated.
    pub(crate) fn scan(&self, from: u32, count: usize) -> Option<(Vec<Entry>, Option<u32>)> {
        let (path, range) = self.tree.seek(from)?;
        let leaf = Placed::open(self.tree.leaf(&path));
        let shift = self.grain.shift();
        let from = from >> shift << shift;
        let (mut entries, mut next) = (Vec::new(), range.last.checked_add(1));
        for entry in leaf.entries().filter(|entry| entry.place >= from) {
            let is_new_place = entries.last().is_some_and(|last: &Entry| last.place != entry.place);
            if is_new_place && entries.len() >= count {
                next = Some(entry.place);
                break;
            }
            entries.push(entry);
        }
        Some((entries, next))
    }

    /// Moves what lies in extents that are being emptied, from the leaf that covers `from` on; the place to
    /// go on from.
    pub(crate) fn relocate(&mut self, from: u32, effort: u64, moves: &mut Moves) -> Option<u32> {
        let (path, _) = self.tree.seek(from)?;
        let next = self.tree.relocate_from(path, effort, moves, Block::relocate)?;
        Some(self.tree.range(&next).first)
    }

    pub(crate) fn bytes_about(&self) -> u64 {
        self.tree.leaf_bytes_about()
    }

    /// About how many bytes it takes for so many members. Looks at some of its leaves.
    pub(crate) fn allocated_about(&self, members: u64) -> u64 {
        let weigh = |leaf: &Block| (leaf.allocated_bytes() as i64, Placed::open(leaf).count());
        self.tree.sample(&mut { weigh }).of_entries(members).unsigned_abs()
    }

    pub(crate) fn add_stats(&self, stats: &mut Stats) {
        self.tree.add_stats(stats, |stats, leaf| {
            let used = crate::memory::block::HEADER_BYTES + leaf.len();
            stats.placed.add(Placed::open(leaf).count() as u64, used, leaf.allocated_bytes());
        });
    }

    /// Every entry, leaves in order.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut all = Vec::new();
        self.tree.for_each_leaf(&mut |leaf| all.extend(Placed::open(leaf).entries()));
        all
    }
}

/// The score of a further candidate. Out of line, because nearly always the first candidate is the right one.
#[cold]
#[inline(never)]
fn score_of_another(leaf: &Block, at: usize) -> f64 {
    Placed::open(leaf).score(at)
}

/// How many of these entries go into the next leaf. Entries of the same place are never separated.
fn chunk_end(entries: &[Entry]) -> usize {
    if entries.len() <= BUILT_COUNT {
        return entries.len();
    }
    let last = entries[BUILT_COUNT - 1].place;
    BUILT_COUNT + entries[BUILT_COUNT..].iter().take_while(|entry| entry.place == last).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::collections::BTreeSet;

    /// The leaf behind it takes over its range, and begins behind that.
    #[test]
    fn the_first_leaf_may_become_empty_and_its_places_be_taken_again() {
        let entry = |place: u64| Entry { place: place as u32, score: 1.0 };
        for seed in 0..20 {
            let (mut random, mut index, mut twin) =
                (Random::new(seed), Index::of(Vec::new()), BTreeSet::new());
            for turn in 0..5000 {
                let is_growing = turn < 1500;
                let place = random.below(1 << 16) << 16;
                match random.below(10) < if is_growing { 9 } else { 1 } {
                    true if twin.insert(place) => index.insert(entry(place)),
                    true => {}
                    false => twin.pop_first().into_iter().for_each(|first| index.remove(entry(first))),
                }
            }
            assert!(index.entries().iter().map(|entry| u64::from(entry.place)).eq(twin));
        }
    }
}
