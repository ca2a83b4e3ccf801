//! A sorted set made of all its entries at once: full leaves in one walk, and then the index of all members.
use super::scored::{self, BYTES_MAX, COUNT_MAX};
use super::{Entry, Sorted, index::Index, long_runs::LONG_MAX, placed};
use crate::memory::block::Block;
use crate::tree::Tree;
use crate::tree::order::ScoreMark;
use base::hash::{Hash, Seed};
use base::text::I64Text;

/// Bytes that an entry takes in a leaf beside its member, nearly always: the code of a score, and a length.
const BESIDE_BYTES: usize = 5;

impl Sorted {
    /// The set of entries that are in order. No score is NaN. None where a member is there twice.
    pub fn of_entries(seed: &Seed, entries: &[Entry<'_>]) -> Option<Sorted> {
        let hashes = sorted_hashes(seed, entries);
        if !are_distinct(&hashes, entries) {
            return None;
        }
        let mut leaves = Vec::new();
        let mut rest = entries;
        while !rest.is_empty() {
            let (part, others) = rest.split_at(leaf_len(rest));
            push_leaves(part, &mut leaves);
            rest = others;
        }
        let needs_index = leaves.len() > 1;
        let mut set = Sorted { tree: Tree::of_leaves(leaves), index: None, long_runs: None };
        if needs_index {
            let placed = |(hash, at): &(Hash, u32)| placed::Entry {
                place: hash.order(),
                score: entries[*at as usize].score,
            };
            set.index = Some(Index::of(hashes.iter().map(placed).collect()));
            for run in entries.chunk_by(|a, b| a.score == b.score) {
                if run.len() as u64 > LONG_MAX {
                    set.add_run(seed, run[0].score, run.len() as u64);
                }
            }
        }
        Some(set)
    }
}

/// The hashes of all members in the order of their places, each with the number of its entry.
fn sorted_hashes(seed: &Seed, entries: &[Entry<'_>]) -> Vec<(Hash, u32)> {
    let (mut text, mut digits) = (Vec::new(), I64Text::new());
    let mut hash = |entry: &Entry<'_>| match entry.member.parts() {
        ([], rest) => seed.hash(rest.text(&mut digits)),
        _ => {
            text.clear();
            entry.member.append_to(&mut text);
            seed.hash(&text)
        }
    };
    assert!(u32::try_from(entries.len()).is_ok(), "{} entries are too many at once", entries.len());
    let mut hashes: Vec<(Hash, u32)> = entries.iter().zip(0..).map(|(entry, at)| (hash(entry), at)).collect();
    hashes.sort_unstable_by_key(|(hash, _)| hash.by_place());
    hashes
}

/// Whether no two entries have one member; those would have one hash, and stand side by side.
fn are_distinct(hashes: &[(Hash, u32)], entries: &[Entry<'_>]) -> bool {
    let member = |at: u32| &entries[at as usize].member;
    let is_twice = |one: u32, others: &[(Hash, u32)]| {
        others.iter().any(|(_, other)| member(one).order(member(*other)).is_eq())
    };
    hashes
        .chunk_by(|one, other| one.0 == other.0)
        .all(|alike| (1..alike.len()).all(|behind| !is_twice(alike[behind - 1].1, &alike[behind..])))
}

/// How many of these entries make a leaf, about.
fn leaf_len(entries: &[Entry<'_>]) -> usize {
    let some = &entries[..entries.len().min(COUNT_MAX)];
    let bytes = |entry: &Entry<'_>| entry.member.len() + BESIDE_BYTES;
    if some.iter().map(bytes).sum::<usize>() <= BYTES_MAX {
        return some.len();
    }
    // What long members have in common at their beginning counts once.
    let (mut sum, mut shared) = (bytes(&some[0]), usize::MAX);
    for (count, pair) in (1..).zip(some.windows(2)) {
        shared = shared.min(pair[0].member.common(&pair[1].member.to_vec()));
        sum += bytes(&pair[1]);
        if sum - shared * count > BYTES_MAX {
            return count;
        }
    }
    some.len()
}

/// Makes a leaf of the entries, or several, if that would be too large.
fn push_leaves(entries: &[Entry<'_>], leaves: &mut Vec<(ScoreMark, Block)>) {
    let leaf = scored::block(entries);
    if leaf.len() > BYTES_MAX && entries.len() > 1 {
        let (left, right) = entries.split_at(entries.len() / 2);
        push_leaves(left, leaves);
        return push_leaves(right, leaves);
    }
    leaves.push((ScoreMark { count: entries.len() as u64, least: entries[0].score }, leaf));
}
