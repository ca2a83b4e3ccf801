//! A sequence of byte strings, ordered by rank: the list.
//!
//! Leaves hold packed integers or packed strings (`leaf.rs`), open or compressed (`compressed.rs`), in a
//! chain whose ends are at hand (`chain.rs`). This file decides what goes into which leaf. A leaf takes what
//! `list-max-listpack-size` allows, its header and its block's included; an element that is larger gets a
//! leaf of its own. Pushes fill a leaf to the last byte before the next is started. An insert into a full
//! leaf splits it there, and neighbours join when together they fill no more than three quarters.
//!
//! A push or pop changes the leaf at that end and a count: no walk, no decoding, no allocation but once a
//! leaf. Reading by index walks the tree and adds up lengths within one leaf. Cloning costs one increment for
//! each end and one for the tree.

use crate::list::chain::{Chain, Location};
use crate::list::compressed;
use crate::list::leaf::{self, Full, Leaf, Start, part_of_span};
use crate::memory::arena::Moves;
use crate::memory::block::{self, Block};
use crate::tree::stats::{Kind, Stats};
use base::Item;
use std::ops::{ControlFlow, Range};

pub use crate::list::limits::{Codec, Fill, Limits};
pub use crate::tree::end::End;

/// In a list of at least so many leaves, new leaves at the ends begin at full size, and keep their room when
/// they lose elements: it is small compared with the rest.
const LONG_LEAVES: u64 = 16;
/// A leaf at an end of a shorter list that has lost elements gives back its room where it is one part in so
/// many. So a list that is a queue, or is cut to a length, takes little more than one that was just built,
/// and five bytes are copied for one that goes. Where elements are long, of [`LONG_BYTES`] and more, a few of
/// them are all of the list, and seven are copied for one: that is little beside what else is done with it.
const SPARSE_PART: usize = 6;
const SPARSE_PART_OF_LONG: usize = 8;
const LONG_BYTES: usize = 128;
/// Smaller leaves stay as they are.
const SPARSE_BYTES_MIN: usize = 256;

#[derive(Clone)]
pub struct Seq {
    chain: Chain,
}

/// What DEBUG OBJECT tells of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    pub leaves: u64,
    pub compressed: u64,
    /// Bytes of all leaves when opened.
    pub uncompressed_bytes: u64,
}

impl Default for Seq {
    fn default() -> Seq {
        Seq::new()
    }
}

impl Seq {
    /// An empty list. Allocates nothing.
    pub fn new() -> Seq {
        Seq { chain: Chain::new() }
    }

    /// The list of these elements. Texts that read as integers are integers ([`Item::classify`]). Those of a
    /// single leaf are written in one pass, without room.
    pub fn of_items(items: &[Item<'_>], limits: &Limits) -> Seq {
        let mut seq = Seq::new();
        if fit_one_leaf(items, limits) {
            seq.add_whole_leaf(items, limits);
        } else {
            seq.append_items(items, limits);
        }
        seq
    }

    /// Adds elements behind all others, of which the texts that read as integers are integers. What the last
    /// leaf does not hold makes whole leaves, each written in one pass, without room.
    pub fn append_items(&mut self, items: &[Item<'_>], limits: &Limits) {
        let mut rest = items;
        while let Some((first, others)) = rest.split_first() {
            if self.push_in_leaf(End::Tail, *first, limits) {
                rest = others;
                continue;
            }
            let count = leaf::texts_of_one(rest, limits.len_max()).min(limits.count_max());
            if count == 0 {
                self.push_leaf(End::Tail, *first, limits);
                rest = others;
                continue;
            }
            let (whole, others) = rest.split_at(count);
            self.add_whole_leaf(whole, limits);
            rest = others;
        }
    }

    fn add_whole_leaf(&mut self, items: &[Item<'_>], limits: &Limits) {
        let mut block = Block::with_capacity(0);
        leaf::fill(&mut block, items);
        self.chain.add_end(End::Tail, block, limits);
    }

    /// How many elements there are. Costs nothing.
    #[inline]
    pub fn len(&self) -> u64 {
        self.chain.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds at an end. Text that reads as an integer is kept as one.
    #[inline]
    pub fn push(&mut self, end: End, value: &[u8], limits: &Limits) {
        self.push_item(end, Item::classify(value), limits);
    }

    /// As [`Seq::push`], of an element that was classified before.
    #[inline]
    pub fn push_item(&mut self, end: End, item: Item<'_>, limits: &Limits) {
        if !self.push_in_leaf(end, item, limits) {
            self.push_leaf(end, item, limits);
        }
    }

    /// Adds to the leaf at an end; whether it has room.
    #[inline(always)]
    fn push_in_leaf(&mut self, end: End, item: Item<'_>, limits: &Limits) -> bool {
        if let Some(leaf) = self.chain.end_mut(end)
            && (leaf.count as usize) < limits.count_max()
            && leaf::push(&mut leaf.block, end, item, limits.len_max()).is_ok()
        {
            leaf.count += 1;
            debug_assert_eq!(leaf::count(&leaf.block), leaf.count as usize);
            return true;
        }
        false
    }

    #[cold]
    fn push_leaf(&mut self, end: End, item: Item<'_>, limits: &Limits) {
        let start = if self.is_long() { Start::Whole } else { Start::Small };
        self.chain.add_end(end, new_leaf(end, item, limits, start), limits);
    }

    /// Whether the list has [`LONG_LEAVES`], which is estimated from the length of the larger of the first
    /// leaf and the last.
    fn is_long(&mut self) -> bool {
        if !self.chain.has_middle() {
            return false;
        }
        let len = self.len();
        let first = self.chain.end_mut(End::Head).map_or(1, |leaf| u64::from(leaf.count));
        let last = self.chain.end_mut(End::Tail).map_or(1, |leaf| u64::from(leaf.count));
        len >= LONG_LEAVES * first.max(last)
    }

    /// Removes at one end and lends what was there; None where the list is empty.
    #[inline]
    pub fn pop<R>(&mut self, end: End, limits: &Limits, take: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let leaf = self.chain.end_mut(end)?;
        let taken = leaf::pop(&mut leaf.block, end, take);
        leaf.count -= 1;
        debug_assert_eq!(leaf::count(&leaf.block), leaf.count as usize);
        if leaf.count == 0 {
            self.chain.remove_end(end, limits);
        } else if is_sparse(&leaf.block) {
            self.shrink_end(end);
        }
        Some(taken)
    }

    /// Lends element `index` from the head; None beyond the end. Walks the tree, and opens a leaf that is
    /// compressed.
    #[inline]
    pub fn get<R>(&self, index: u64, look: impl FnOnce(Item<'_>) -> R) -> Option<R> {
        let (block, at) = self.chain.element(index)?;
        Some(compressed::read(block, |leaf| look(leaf.get(at))))
    }

    /// Replaces element `index`, which exists. A leaf that has no room for the new one is split there.
    pub fn set(&mut self, index: u64, value: &[u8], limits: &Limits) {
        let item = Item::classify(value);
        let (location, at) = self.chain.find(index).expect("the element exists");
        let is_smaller = self.edit(location, at..at + 1, Some(item), limits, |block| {
            leaf::set(block, at, item, limits.len_max())
        });
        if is_smaller {
            self.join_beside(index, limits);
        }
    }

    /// Inserts before element `index` (at most `len`).
    pub fn insert(&mut self, index: u64, value: &[u8], limits: &Limits) {
        assert!(index <= self.len(), "insert at {index} of {}", self.len());
        if index == 0 || index == self.len() {
            return self.push(if index == 0 { End::Head } else { End::Tail }, value, limits);
        }
        let item = Item::classify(value);
        let (location, at) = self.chain.find(index).expect("below the length");
        self.edit(location, at..at, Some(item), limits, |block| {
            if leaf::count(block) >= limits.count_max() {
                return Err(Full);
            }
            leaf::insert(block, at, item, limits.len_max())
        });
    }

    /// Removes `count` elements from `index` on (within `len`). Leaves that go as a whole are not looked
    /// into; what is left on either side is joined where both are small. A leaf that loses some at an end of
    /// the list is not, as when they are popped: it will soon be empty, or grow again.
    pub fn remove(&mut self, index: u64, count: u64, limits: &Limits) {
        assert!(index + count <= self.len(), "remove of {count} at {index} of {}", self.len());
        if count == self.len() {
            *self = Seq::new();
            return;
        }
        let is_at_end = index == 0 || index + count == self.len();
        let mut is_leaf_gone = false;
        let mut left = count;
        while left > 0 {
            let (location, at) = self.chain.find(index).expect("within the length");
            let in_leaf = leaf::count(self.chain.block(&location));
            let here = (in_leaf - at).min(left as usize);
            is_leaf_gone |= here == in_leaf;
            self.remove_in_leaf(location, at..at + here, limits);
            left -= here as u64;
        }
        debug_assert!(index <= self.len());
        if count > 0 && (is_leaf_gone || !is_at_end) {
            self.join_around(index, limits);
        }
        for end in [End::Head, End::Tail] {
            if self.chain.end_mut(end).is_some_and(|leaf| is_sparse(&leaf.block)) {
                self.shrink_end(end);
            }
        }
    }

    fn remove_in_leaf(&mut self, location: Location, range: Range<usize>, limits: &Limits) {
        if range.len() == leaf::count(self.chain.block(&location)) {
            return self.chain.remove(&location, limits);
        }
        self.edit(location, range.clone(), None, limits, |block| {
            leaf::remove(block, range, limits.len_max().max(block.len()))
        });
    }

    /// Visits from element `index` towards the tail (or the head, `index` included) until told to stop.
    pub fn visit(&self, index: u64, towards: End, visit: &mut dyn FnMut(u64, Item<'_>) -> ControlFlow<()>) {
        self.visit_leaves(index, towards, |block, at, base| {
            compressed::read(block, |leaf| {
                leaf.visit(at, towards, &mut |index, item| visit(base + index as u64, item))
            })
        });
    }

    /// Visits, of `span` elements from `index` on towards the tail (or the head), those that are `needle`,
    /// until told to stop. They are compared as they are stored: an integer never becomes text.
    pub fn visit_equal(
        &self,
        (index, span): (u64, u64),
        towards: End,
        needle: Item<'_>,
        visit: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) {
        let mut left = span;
        self.visit_leaves(index, towards, |block, at, base| {
            let range = part_of_span(at, towards, left, leaf::count(block));
            left -= range.len() as u64;
            compressed::read(block, |leaf| {
                leaf.visit_equal(range, towards, needle, &mut |index| visit(base + index as u64))
            })?;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    /// Visits the leaves from the one of element `index` on, towards an end, until told to stop: each with
    /// the element of it to begin with, and how many elements are before the leaf.
    #[inline(always)]
    fn visit_leaves(
        &self,
        index: u64,
        towards: End,
        mut visit: impl FnMut(&Block, usize, u64) -> ControlFlow<()>,
    ) {
        let Some((mut location, mut at)) = self.chain.find(index) else { return };
        let mut base = index - at as u64;
        loop {
            let block = self.chain.block(&location);
            let count = leaf::count(block) as u64;
            if visit(block, at, base).is_break() {
                return;
            }
            let Some(next) = self.chain.next(&location, towards) else { return };
            location = next;
            let next_count = leaf::count(self.chain.block(&location));
            (at, base) = match towards {
                End::Tail => (0, base + count),
                End::Head => (next_count - 1, base - next_count as u64),
            };
        }
    }

    /// Replaces `gap` of a leaf by `item`, as `edit` does it where the leaf has room for that; else the leaf
    /// is split around the gap. Returns whether leaves have become smaller, so that some may be joined.
    #[inline(always)]
    fn edit(
        &mut self,
        location: Location,
        gap: Range<usize>,
        item: Option<Item<'_>>,
        limits: &Limits,
        edit: impl FnOnce(&mut Block) -> Result<(), Full>,
    ) -> bool {
        let keeps_count = gap.len() == usize::from(item.is_some());
        let slack = if gap.is_empty() { usize::MAX } else { slack(self.chain.block(&location)) };
        match self.edit_leaf(&location, limits, edit) {
            Ok(()) if keeps_count => {}
            Ok(()) => self.chain.recount(&location),
            Err(Full) => {
                self.split_around(location, gap, item, limits);
                return true;
            }
        }
        self.give_back(&location, slack)
    }

    /// Gives back the room of a leaf that has lost some of what it had, where that is much now: `slack` is
    /// what it had before. Returns whether it did.
    #[inline]
    fn give_back(&mut self, location: &Location, slack_before: usize) -> bool {
        let block = self.chain.block(location);
        let is_middle = matches!(location, Location::Middle(_));
        if slack(block) <= slack_before || !is_sparse(block) || !is_middle && self.is_long() {
            return false;
        }
        leaf::seal(self.chain.block_mut(location));
        true
    }

    /// Edits a leaf where it lies: one that was compressed is opened first, and closed again.
    fn edit_leaf(
        &mut self,
        location: &Location,
        limits: &Limits,
        edit: impl FnOnce(&mut Block) -> Result<(), Full>,
    ) -> Result<(), Full> {
        let block = self.chain.block_mut(location);
        if !compressed::is_compressed(block) {
            return edit(block);
        }
        let mut open = compressed::open(block);
        edit(&mut open)?;
        *block = compressed::close(&open, limits.codec).unwrap_or(open);
        Ok(())
    }

    /// Cuts a leaf around `gap`, drops what is in it, and puts `item` there: at the end of one half if
    /// it fits, or in a leaf of its own.
    #[cold]
    fn split_around(
        &mut self,
        location: Location,
        gap: Range<usize>,
        item: Option<Item<'_>>,
        limits: &Limits,
    ) {
        let old = self.chain.block(&location).clone();
        let was_closed = compressed::is_compressed(&old);
        let mut parts = compressed::read(&old, |leaf| split(leaf, gap));
        if let Some(item) = item {
            put_between(&mut parts, item, limits);
        }
        drop(old);
        let parts = parts.into_iter().flatten().map(|open| match was_closed {
            true => compressed::close(&open, limits.codec).unwrap_or(open),
            false => open,
        });
        self.replace(location, parts.collect(), limits);
    }

    /// Puts `parts`, at least one, in the place of a leaf.
    fn replace(&mut self, location: Location, mut parts: Vec<Block>, limits: &Limits) {
        debug_assert!(parts.iter().all(|part| leaf::count(part) > 0), "no leaf is empty");
        let mut location = location;
        while parts.len() > 1 {
            let part = parts.pop().expect("more than one");
            location = self.chain.insert_after(location, part);
        }
        let mut first = parts.pop().expect("a leaf is replaced by one at least");
        if !matches!(location, Location::Middle(_)) && compressed::is_compressed(&first) {
            first = compressed::open(&first);
        }
        *self.chain.block_mut(&location) = first;
        self.chain.recount(&location);
        self.chain.settle(limits);
    }

    /// Joins the leaf of element `index` with its neighbours where they are small.
    fn join_around(&mut self, index: u64, limits: &Limits) {
        for index in [index, index.saturating_sub(1)] {
            if let Some((location, _)) = self.chain.find(index)
                && let Some(next) = self.chain.next(&location, End::Tail)
            {
                self.join(location, next, limits);
            }
        }
    }

    /// Joins the leaf of element `index` with the one before it and the one behind it, where they are small.
    #[cold]
    fn join_beside(&mut self, index: u64, limits: &Limits) {
        for end in [End::Head, End::Tail] {
            if let Some((here, _)) = self.chain.find(index)
                && let Some(other) = self.chain.next(&here, end)
            {
                let (left, right) = if end == End::Head { (other, here) } else { (here, other) };
                self.join(left, right, limits);
            }
        }
    }

    /// Gives back the room of the leaf at an end, but in a long list.
    #[cold]
    fn shrink_end(&mut self, end: End) {
        if !self.is_long()
            && let Some(leaf) = self.chain.end_mut(end)
        {
            leaf::seal(&mut leaf.block);
        }
    }

    /// Joins two neighbours if both are small.
    fn join(&mut self, left: Location, right: Location, limits: &Limits) {
        let (a, b) = (self.chain.block(&left), self.chain.block(&right));
        let count = leaf::count(a) + leaf::count(b);
        let count_max = limits.count_max().min(leaf::count_max(a, limits.len_max()));
        if open_len(a) + open_len(b) > limits.len_max() * 3 / 4 || count > count_max {
            return;
        }
        let was_closed = compressed::is_compressed(a);
        let Some(joined) = joined(a, b, limits) else { return };
        let closed = if was_closed { compressed::close(&joined, limits.codec) } else { None };
        *self.chain.block_mut(&left) = closed.unwrap_or(joined);
        self.chain.recount(&left);
        self.chain.remove(&right, limits);
    }

    /// Moves what lies in extents that are being emptied (`arena::is_evacuating`), leaf by leaf from the one
    /// that holds element `from` on. Stops once `moves` says that `effort` was made, and returns the element
    /// to go on from, None at the end.
    pub fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        self.chain.relocate(from, effort, moves)
    }

    /// Whether it has more than `max` leaves, in time that grows with `max` only.
    pub fn has_more_leaves_than(&self, max: usize) -> bool {
        self.chain.has_more_leaves_than(max)
    }

    /// Counts the leaves. Looks at each of them.
    pub fn nodes(&self) -> Nodes {
        let mut nodes = Nodes::default();
        self.chain.for_each_leaf(&mut |block| {
            nodes.leaves += 1;
            nodes.compressed += u64::from(compressed::is_compressed(block));
            nodes.uncompressed_bytes += open_len(block) as u64;
        });
        nodes
    }

    /// About how many bytes it takes. Looks at a few leaves.
    pub fn bytes_about(&self) -> u64 {
        self.chain.bytes_about()
    }

    /// How many of so many leaves, spread evenly, nobody else holds at this moment.
    pub fn count_sole(&self, samples: u64) -> u64 {
        self.chain.count_sole(samples)
    }

    /// What MEMORY LAYOUT tells: nodes, elements and bytes by kind. Looks at each leaf.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats { height: self.chain.height(), ..Stats::default() };
        self.chain.for_each_leaf(&mut |block| add_leaf(&mut stats, block));
        self.chain.for_each_inner(&mut |children, used, allocated| {
            add(&mut stats.inner, children, used, allocated);
        });
        stats
    }

    /// About how many bytes its leaves and the nodes above them take. Looks at some of them.
    pub fn allocated_about(&self) -> u64 {
        self.chain.allocated_about()
    }

    /// The bytes of all allocations, rounding included. Looks at each leaf's header.
    pub fn allocated_bytes(&self) -> u64 {
        let mut bytes = 0;
        self.chain.for_each_leaf(&mut |block| bytes += block.allocated_bytes() as u64);
        self.chain.for_each_inner(&mut |_, _, allocated| bytes += allocated as u64);
        bytes
    }
}

/// Whether these elements are one leaf for certain, whatever its kind.
fn fit_one_leaf(items: &[Item<'_>], limits: &Limits) -> bool {
    const ITEM_BYTES: usize = 9;
    const ENTRY_BYTES: usize = 8;
    const HEAD_BYTES: usize = 64;
    let bytes = items.iter().map(|item| item.len().max(ITEM_BYTES) + ENTRY_BYTES).sum::<usize>();
    !items.is_empty() && items.len() <= limits.count_max() && HEAD_BYTES + bytes <= limits.len_max()
}

fn new_leaf(end: End, item: Item<'_>, limits: &Limits, start: Start) -> Block {
    let mut block = Block::with_capacity(0);
    leaf::start(&mut block, end, item, limits.len_max(), start);
    block
}

/// How much of a leaf is room; nothing of one that is compressed.
#[inline]
fn slack(block: &Block) -> usize {
    if compressed::is_compressed(block) { 0 } else { leaf::slack_bytes(block) }
}

/// Whether much of a leaf is room.
#[inline]
fn is_sparse(block: &Block) -> bool {
    let len = block.len();
    if len <= SPARSE_BYTES_MIN {
        return false;
    }
    let slack = slack(block);
    slack > len / SPARSE_PART
        || slack > len / SPARSE_PART_OF_LONG && len - slack >= LONG_BYTES * leaf::count(block)
}

/// The two sides of `gap` as leaves of their own, with room for a third between them; None for a side without
/// elements.
fn split(leaf: Leaf<'_>, gap: Range<usize>) -> [Option<Block>; 3] {
    debug_assert!(gap.start <= gap.end && gap.end <= leaf.count(), "{gap:?} of {}", leaf.count());
    let part = |range: Range<usize>| {
        (!range.is_empty()).then(|| {
            let mut block = Block::with_capacity(0);
            leaf::copy_range(leaf, range, &mut block);
            block
        })
    };
    [part(0..gap.start), None, part(gap.end..leaf.count())]
}

/// Puts `item` between the outer two parts: into the shorter if it has room, else into the longer, else into
/// a leaf of its own.
fn put_between(parts: &mut [Option<Block>; 3], item: Item<'_>, limits: &Limits) {
    let len = |part: &Option<Block>| part.as_ref().map_or(usize::MAX, |block| block.len());
    let sides = [(0, End::Tail), (2, End::Head)];
    let order = if len(&parts[0]) <= len(&parts[2]) { [0, 1] } else { [1, 0] };
    for (index, end) in order.map(|side| sides[side]) {
        if let Some(block) = &mut parts[index]
            && leaf::count(block) < limits.count_max()
            && leaf::push(block, end, item, limits.len_max()).is_ok()
        {
            return;
        }
    }
    parts[1] = Some(new_leaf(End::Tail, item, limits, Start::Small));
}

/// The elements of both leaves in one, if it takes them.
fn joined(left: &Block, right: &Block, limits: &Limits) -> Option<Block> {
    let mut block = Block::with_capacity(0);
    compressed::read(left, |leaf| leaf::copy_range(leaf, 0..leaf.count(), &mut block));
    let mut done = Ok(());
    compressed::read(right, |leaf| {
        leaf.for_each(|item| {
            done = done.and_then(|()| leaf::push(&mut block, End::Tail, item, limits.len_max()));
        })
    });
    debug_assert!(done.is_err() || leaf::count(&block) == leaf::count(left) + leaf::count(right));
    done.ok().map(|()| block)
}

/// How long a leaf is when opened.
fn open_len(block: &Block) -> usize {
    if compressed::is_compressed(block) { compressed::raw_len(block) } else { Leaf::open(block).used_bytes() }
}

fn add_leaf(stats: &mut Stats, block: &Block) {
    let (count, allocated) = (leaf::count(block), block.allocated_bytes());
    if compressed::is_compressed(block) {
        stats.compressed_raw_bytes += compressed::raw_len(block) as u64;
        return add(&mut stats.compressed, count, block::HEADER_BYTES + block.len(), allocated);
    }
    let leaf = Leaf::open(block);
    let kind = match leaf {
        Leaf::Strings(_) => &mut stats.strings,
        Leaf::Ints(_) => &mut stats.ints,
    };
    add(kind, count, block::HEADER_BYTES + leaf.used_bytes(), allocated);
}

fn add(kind: &mut Kind, entries: usize, used: usize, allocated: usize) {
    kind.nodes += 1;
    kind.entries += entries as u64;
    kind.used_bytes += used as u64;
    kind.allocated_bytes += allocated as u64;
}

#[cfg(test)]
#[path = "seq_properties.rs"]
mod properties;
