//! Records of one size in the order of their ids. Consumers of a stream have one for each entry that they
//! were given and have yet to acknowledge.
//!
//! A leaf is records back to back, nothing else: its length tells their number. One with two bytes of
//! payload, `ab`, for the id 5-1:
//!
//! ```text
//! 05 00 00 00 00 00 00 00 | 01 00 00 00 00 00 00 00 | 61 62
//! ```
//!
//! Cost: 16 bytes and the payload, and the rounding of a leaf of up to 64 records. Each operation is one
//! descent and a search by halves; records that come in the order of their ids leave full leaves behind. A
//! clone is one increment.
use crate::code::quarters::first_not_before;
use crate::code::words::u64_at;
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::order::{ById, Id};
use crate::tree::stats::Stats;
use crate::tree::{Path, Tree};
use std::ops::ControlFlow;

const ID_BYTES: usize = 16;
const LEAF_RECORDS_MAX: usize = 64;

/// Records with a payload of `N` bytes each.
#[derive(Clone)]
pub struct Records<const N: usize> {
    tree: Tree<ById, Block>,
    len: u64,
}

impl<const N: usize> Default for Records<N> {
    fn default() -> Records<N> {
        Records::new()
    }
}

impl<const N: usize> Records<N> {
    const RECORD_BYTES: usize = ID_BYTES + N;

    /// Without records. Allocates nothing.
    pub const fn new() -> Records<N> {
        Records { tree: Tree::new(), len: 0 }
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The payload of the record `id`. One descent and a search by halves.
    pub fn get(&self, id: Id) -> Option<[u8; N]> {
        let leaf = self.tree.leaf(&self.tree.seek(id)?);
        Self::search(leaf, id).ok().map(|index| Self::payload(leaf, index))
    }

    /// The record with the least id.
    pub fn first(&self) -> Option<(Id, [u8; N])> {
        let leaf = self.tree.leaf(&self.tree.first()?);
        Some((Self::id(leaf, 0), Self::payload(leaf, 0)))
    }

    /// The record with the greatest id.
    pub fn last(&self) -> Option<(Id, [u8; N])> {
        let leaf = self.tree.leaf(&self.tree.last()?);
        let index = Self::count(leaf) - 1;
        Some((Self::id(leaf, index), Self::payload(leaf, index)))
    }

    /// Puts a record in, or in the place of the one that has this id, which is returned.
    pub fn insert(&mut self, id: Id, payload: [u8; N]) -> Option<[u8; N]> {
        let Some(path) = self.tree.seek(id) else {
            self.tree.plant(id, Block::from_slice(&Self::record(id, &payload)[..Self::RECORD_BYTES]));
            self.len += 1;
            return None;
        };
        match Self::search(self.tree.leaf(&path), id) {
            Ok(index) => {
                let leaf = self.tree.leaf_mut(&path);
                let old = Self::payload(leaf, index);
                let at = index * Self::RECORD_BYTES + ID_BYTES;
                leaf.make_mut()[at..at + N].copy_from_slice(&payload);
                Some(old)
            }
            Err(index) => {
                self.insert_at(path, index, id, &payload);
                self.len += 1;
                None
            }
        }
    }

    fn insert_at(&mut self, mut path: Path, index: usize, id: Id, payload: &[u8; N]) {
        let record = Self::record(id, payload);
        let record = &record[..Self::RECORD_BYTES];
        let leaf = self.tree.leaf_mut(&path);
        let count = Self::count(leaf);
        assert!(index <= count && count <= LEAF_RECORDS_MAX, "record {index} of {count}");
        if count < LEAF_RECORDS_MAX {
            return leaf.splice(index * Self::RECORD_BYTES, 0, record);
        }
        // Behind the last record of a full leaf the new one begins a leaf; elsewhere the full leaf is halved.
        if index == count {
            return self.tree.insert_after(&mut path, id, Block::from_slice(record));
        }
        debug_assert!(id < Self::id(leaf, index), "{id:?} before record {index}");
        let half = count / 2 * Self::RECORD_BYTES;
        let mut right = Block::from_slice(&leaf[half..]);
        leaf.truncate(half);
        let at = index * Self::RECORD_BYTES;
        match at.checked_sub(half) {
            Some(at) if at > 0 => right.splice(at, 0, record),
            _ => leaf.splice(at, 0, record),
        }
        let mark = Self::id(&right, 0);
        self.tree.insert_after(&mut path, mark, right);
    }

    /// Takes the record `id` out and returns its payload; None where it is not there.
    pub fn remove(&mut self, id: Id) -> Option<[u8; N]> {
        let path = self.tree.seek(id)?;
        let index = Self::search(self.tree.leaf(&path), id).ok()?;
        let leaf = self.tree.leaf_mut(&path);
        let old = Self::payload(leaf, index);
        debug_assert!(self.len >= Self::count(leaf) as u64);
        self.len -= 1;
        if Self::count(leaf) == 1 {
            self.tree.remove(&path);
            return Some(old);
        }
        leaf.splice(index * Self::RECORD_BYTES, Self::RECORD_BYTES, b"");
        if Self::count(leaf) < LEAF_RECORDS_MAX / 4 {
            self.join(path);
        }
        Some(old)
    }

    /// Joins a leaf that has become small with a neighbour, if that is small too.
    fn join(&mut self, path: Path) {
        self.tree.join_neighbour(
            &path,
            |pair| {
                let count = Self::count(pair.left) + Self::count(pair.right);
                (count <= LEAF_RECORDS_MAX * 3 / 4).then_some(())
            },
            |left, right, ()| {
                debug_assert!(Self::id(left, 0) < Self::id(&right, 0), "records rise");
                left.extend(&right);
            },
        );
    }

    /// Visits records from the first at or behind `from` on, until told to stop.
    pub fn visit(&self, from: Id, visit: &mut dyn FnMut(Id, [u8; N]) -> ControlFlow<()>) {
        let Some(mut path) = self.tree.seek(from) else { return };
        loop {
            let leaf = self.tree.leaf(&path);
            let start = Self::search(leaf, from).unwrap_or_else(|index| index);
            for index in start..Self::count(leaf) {
                if visit(Self::id(leaf, index), Self::payload(leaf, index)).is_break() {
                    return;
                }
            }
            if !self.tree.next(&mut path) {
                return;
            }
        }
    }

    /// Adds what MEMORY LAYOUT tells of records to `stats`.
    pub fn add_stats(&self, stats: &mut Stats) {
        self.tree.add_stats(stats, |stats, leaf| {
            let used_bytes = block::HEADER_BYTES + leaf.len();
            stats.records.add(Self::count(leaf) as u64, used_bytes, leaf.allocated_bytes());
        });
    }

    /// About how many bytes its leaves and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        let sample = self.tree.sample(&mut |leaf| (leaf.allocated_bytes() as i64, Self::count(leaf)));
        sample.of_entries(self.len()).unsigned_abs()
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        self.tree.leaf_bytes_about()
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.tree.count_sole(samples)
    }

    /// Moves what lies in extents that are being emptied. All in one go: records are few beside what they are
    /// records of.
    pub fn relocate(&mut self, moves: &mut Moves) {
        if let Some(first) = self.tree.first() {
            self.tree.relocate_from(first, u64::MAX, moves, Block::relocate);
        }
    }

    fn count(leaf: &[u8]) -> usize {
        debug_assert!(leaf.len().is_multiple_of(Self::RECORD_BYTES), "{} bytes of records", leaf.len());
        leaf.len() / Self::RECORD_BYTES
    }

    fn id(leaf: &[u8], index: usize) -> Id {
        let at = index * Self::RECORD_BYTES;
        Id { ms: u64_at(leaf, at), seq: u64_at(leaf, at + 8) }
    }

    fn payload(leaf: &[u8], index: usize) -> [u8; N] {
        *leaf[index * Self::RECORD_BYTES + ID_BYTES..].first_chunk().expect("a record ends with its payload")
    }

    /// Where the record of `id` is, or (`Err`) would be. The end of the leaf is tried first, because ids
    /// rise.
    fn search(leaf: &[u8], id: Id) -> Result<usize, usize> {
        let count = Self::count(leaf);
        if count > 0 && Self::id(leaf, count - 1) < id {
            return Err(count);
        }
        let index = first_not_before(0..count, |index| Self::id(leaf, index) < id);
        if index < count && Self::id(leaf, index) == id { Ok(index) } else { Err(index) }
    }

    fn record(id: Id, payload: &[u8; N]) -> [u8; RECORD_BYTES_MAX] {
        const { assert!(Self::RECORD_BYTES <= RECORD_BYTES_MAX) };
        let mut record = [0; RECORD_BYTES_MAX];
        record[..8].copy_from_slice(&id.ms.to_le_bytes());
        record[8..16].copy_from_slice(&id.seq.to_le_bytes());
        record[16..16 + N].copy_from_slice(payload);
        record
    }
}

/// The longest record: it is put together on the stack.
const RECORD_BYTES_MAX: usize = 48;

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::collections::BTreeMap;

    type Twin = BTreeMap<Id, [u8; 3]>;

    fn check(records: &Records<3>, twin: &Twin) {
        assert_eq!(records.len(), twin.len() as u64);
        let mut all = Vec::new();
        records.visit(Id::MIN, &mut |id, payload| {
            all.push((id, payload));
            ControlFlow::Continue(())
        });
        assert!(all.iter().copied().eq(twin.iter().map(|(id, payload)| (*id, *payload))));
        assert_eq!(records.first(), twin.first_key_value().map(|(id, payload)| (*id, *payload)));
        assert_eq!(records.last(), twin.last_key_value().map(|(id, payload)| (*id, *payload)));
        let mut stats = Stats::default();
        records.add_stats(&mut stats);
        assert_eq!(stats.records.entries, records.len());
    }

    fn run(seed: u64) {
        let mut random = Random::new(seed);
        let (mut records, mut twin) = (Records::new(), Twin::new());
        let mut held = (records.clone(), twin.clone());
        let spread = 1 + random.below(4000);
        for step in 0..6000_u64 {
            let id = Id { ms: random.below(spread), seq: random.below(3) };
            let rising = Id { ms: spread + step, seq: 0 };
            let payload = [step as u8, (step >> 8) as u8, seed as u8];
            let grows = step % 2000 < 1000;
            match random.below(10) {
                0..=3 if grows => assert_eq!(records.insert(id, payload), twin.insert(id, payload)),
                4..=5 if grows => assert_eq!(records.insert(rising, payload), twin.insert(rising, payload)),
                6 => assert_eq!(records.get(id), twin.get(&id).copied()),
                7 if random.below(50) == 0 => held = (records.clone(), twin.clone()),
                _ => {
                    let behind = twin.range(id..).next().map_or(id, |(id, _)| *id);
                    assert_eq!(records.remove(behind), twin.remove(&behind));
                }
            }
            if step % 500 == 0 {
                check(&records, &twin);
            }
        }
        check(&records, &twin);
        check(&held.0, &held.1);
    }

    #[test]
    fn records_hold_what_an_ordered_map_holds() {
        for seed in 0..20 {
            if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }

    #[test]
    fn records_that_come_in_order_fill_their_leaves() {
        let mut records: Records<20> = Records::new();
        (0..6400).for_each(|ms| assert!(records.insert(Id { ms, seq: 0 }, [0; 20]).is_none()));
        let mut stats = Stats::default();
        records.add_stats(&mut stats);
        assert_eq!(stats.records.nodes, 100);
    }
}
