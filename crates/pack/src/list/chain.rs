//! The leaves of a list in order: the first and the last held directly, those between in a tree by rank.
//!
//! ```text
//!      head          middle: Tree<ByRank>           tail
//!    +-------+   +------------+------------+     +-------+
//!    | block |   | block, block, ..., block |    | block |
//!    +-------+   +------------+------------+     +-------+
//!     open        open to the depth, then compressed   open
//! ```
//!
//! Lists are pushed and popped at their ends, millions of times for each look inside; held like this, an end
//! is one pointer away whatever the length, and the tree is touched once a leaf. Between calls: no leaf is
//! empty, the tree has leaves only where head and tail are both there, and a list of one leaf has it as its
//! head.
//!
//! Compression follows structure, not time: when a leaf comes or goes, [`Chain::settle`] opens the leaves
//! within the depth of either end and compresses the one that has just left it. Leaves further in stay as
//! they are: an edit in the middle compresses the leaf again that it opened.

use crate::list::compressed;
use crate::list::leaf;
use crate::list::limits::Limits;
use crate::memory::arena::Moves;
use crate::memory::block::Block;
use crate::tree::end::End;
use crate::tree::node;
use crate::tree::order::ByRank;
use crate::tree::{Node, Path, Tree};
use std::ops::ControlFlow;

impl node::Leaf for Block {
    fn is_sole(&self) -> bool {
        Block::is_sole(self)
    }

    fn allocated_bytes(&self) -> usize {
        Block::allocated_bytes(self)
    }
}

/// Where a leaf is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Head,
    Middle(Path),
    Tail,
}

/// A leaf at an end, and how many elements it has.
#[derive(Clone)]
pub(crate) struct EndLeaf {
    pub(crate) block: Block,
    pub(crate) count: u32,
}

impl EndLeaf {
    /// Counts the elements of a leaf that is not empty.
    pub(crate) fn new(block: Block) -> EndLeaf {
        debug_assert!(leaf::count(&block) > 0 && !compressed::is_compressed(&block));
        let count = leaf::count(&block) as u32;
        EndLeaf { block, count }
    }
}

#[derive(Clone)]
pub(crate) struct Chain {
    head: Option<EndLeaf>,
    tail: Option<EndLeaf>,
    middle: Tree<ByRank, Block>,
}

impl Chain {
    /// Without leaves. Allocates nothing.
    pub(crate) const fn new() -> Chain {
        Chain { head: None, tail: None, middle: Tree::new() }
    }

    /// How many elements.
    pub(crate) fn len(&self) -> u64 {
        end_count(&self.head) + self.middle.total() + end_count(&self.tail)
    }

    /// About how many bytes the leaves take.
    pub(crate) fn bytes_about(&self) -> u64 {
        self.ends_bytes() + self.middle.leaf_bytes_about()
    }

    /// The same with the nodes above them, as far as some more of them tell. Leaves of a list take about the
    /// same, however long its elements are, so it is leaves that are counted.
    pub(crate) fn allocated_about(&self) -> u64 {
        let middle = self.middle.sample(&mut |block| (block.allocated_bytes() as i64, 1));
        self.ends_bytes() + middle.bytes()
    }

    fn ends_bytes(&self) -> u64 {
        let ends = [&self.head, &self.tail].into_iter().flatten();
        ends.map(|end| end.block.allocated_bytes() as u64).sum()
    }

    /// Of how many of so many leaves between head and tail this chain is the only owner. If there are none
    /// between, all count if nobody else holds head and tail.
    pub(crate) fn count_sole(&self, samples: u64) -> u64 {
        let mut ends = [&self.head, &self.tail].into_iter().flatten();
        if self.has_middle() || ends.all(|end| end.block.is_sole()) {
            self.middle.count_sole(samples)
        } else {
            0
        }
    }

    /// Whether there are leaves between head and tail.
    pub(crate) fn has_middle(&self) -> bool {
        !self.middle.is_empty()
    }

    /// How many levels there are, leaves included.
    pub(crate) fn height(&self) -> u32 {
        match &self.tail {
            Some(_) => self.middle.height() as u32 + 1,
            None => u32::from(self.head.is_some()),
        }
    }

    /// The leaf at an end.
    #[inline]
    pub(crate) fn end_mut(&mut self, end: End) -> Option<&mut EndLeaf> {
        match end {
            End::Tail if self.tail.is_some() => self.tail.as_mut(),
            _ => self.head.as_mut(),
        }
    }

    /// Adds a leaf at an end. The one that was there goes into the tree, but in a list of one leaf, where it
    /// becomes the other end.
    pub(crate) fn add_end(&mut self, end: End, block: Block, limits: &Limits) {
        let new = EndLeaf::new(block);
        let Some(head) = self.head.take() else {
            self.head = Some(new);
            return;
        };
        match (end, self.tail.take()) {
            (End::Head, None) => (self.head, self.tail) = (Some(new), Some(head)),
            (End::Tail, None) => (self.head, self.tail) = (Some(head), Some(new)),
            (End::Head, tail) => {
                (self.head, self.tail) = (Some(new), tail);
                self.add_middle(End::Head, head);
            }
            (End::Tail, Some(tail)) => {
                (self.head, self.tail) = (Some(head), Some(new));
                self.add_middle(End::Tail, tail);
            }
        }
        self.settle(limits);
    }

    /// Removes the leaf at an end, and returns it.
    pub(crate) fn remove_end(&mut self, end: End, limits: &Limits) -> Option<EndLeaf> {
        let removed = match end {
            End::Tail if self.tail.is_some() => {
                let next = self.take_middle(End::Tail);
                std::mem::replace(&mut self.tail, next)
            }
            _ => {
                let next = self.take_middle(End::Head).or_else(|| self.tail.take());
                std::mem::replace(&mut self.head, next)
            }
        };
        self.settle(limits);
        removed
    }

    /// Puts the leaf that was at an end into the tree, next to that end: it grows no more, so it gives back
    /// its room.
    fn add_middle(&mut self, end: End, leaf: EndLeaf) {
        debug_assert!(self.head.is_some() && self.tail.is_some());
        let EndLeaf { mut block, count } = leaf;
        if leaf::slack_bytes(&block) > block.len() / 64 {
            leaf::seal(&mut block);
        }
        match (end, self.middle.last()) {
            (_, None) => drop(self.middle.plant(u64::from(count), block)),
            (End::Tail, Some(mut last)) => self.middle.insert_after(&mut last, u64::from(count), block),
            (End::Head, _) => self.insert_first(u64::from(count), block),
        }
    }

    /// Puts a leaf in front of the tree. A tree only inserts behind a leaf, so the first leaf is inserted
    /// there once more, and the new one replaces it.
    fn insert_first(&mut self, count: u64, block: Block) {
        let mut first = self.middle.first().expect("the caller found a last leaf");
        let old_count = self.middle.mark(&first);
        let old = std::mem::replace(self.middle.leaf_mut(&first), block);
        self.middle.set_mark(&first, count);
        self.middle.insert_after(&mut first, old_count, old);
    }

    /// The leaf of the tree next to an end, opened.
    fn take_middle(&mut self, end: End) -> Option<EndLeaf> {
        let path = match end {
            End::Head => self.middle.first()?,
            End::Tail => self.middle.last()?,
        };
        let mut block = self.middle.remove(&path);
        if compressed::is_compressed(&block) {
            block = compressed::open(&block);
        }
        Some(EndLeaf::new(block))
    }

    /// The leaf that has element `index`, and where in it.
    pub(crate) fn find(&self, index: u64) -> Option<(Location, usize)> {
        let head = end_count(&self.head);
        if index < head {
            return Some((Location::Head, index as usize));
        }
        let rest = index - head;
        if rest < self.middle.total() {
            let (path, at) = self.middle.seek(rest)?;
            return Some((Location::Middle(path), at as usize));
        }
        let rest = rest - self.middle.total();
        (rest < end_count(&self.tail)).then_some((Location::Tail, rest as usize))
    }

    /// The leaf that has element `index`, to be read, and where in it.
    #[inline]
    pub(crate) fn element(&self, index: u64) -> Option<(&Block, usize)> {
        let head = end_count(&self.head);
        if let Some(rest) = index.checked_sub(head)
            && rest < self.middle.total()
        {
            let (block, at) = self.middle.leaf_at_rank(rest)?;
            return Some((block, at as usize));
        }
        let (location, at) = self.find(index)?;
        Some((self.block(&location), at))
    }

    /// The leaf at a location of this chain, open or compressed. O(1).
    #[inline]
    pub(crate) fn block(&self, location: &Location) -> &Block {
        match location {
            Location::Middle(path) => self.middle.leaf(path),
            Location::Head => &self.head.as_ref().expect("a location comes from this chain").block,
            Location::Tail => &self.tail.as_ref().expect("a location comes from this chain").block,
        }
    }

    /// The leaf at a location of this chain, to be edited. [`Chain::recount`] must be called if the number of
    /// elements changes.
    pub(crate) fn block_mut(&mut self, location: &Location) -> &mut Block {
        match location {
            Location::Middle(path) => self.middle.leaf_mut(path),
            Location::Head => &mut self.head.as_mut().expect("a location comes from this chain").block,
            Location::Tail => &mut self.tail.as_mut().expect("a location comes from this chain").block,
        }
    }

    /// Counts the elements of a leaf anew, after an edit of its block.
    pub(crate) fn recount(&mut self, location: &Location) {
        let count = leaf::count(self.block(location)) as u32;
        debug_assert!(count > 0, "no leaf is empty");
        match location {
            Location::Middle(path) => self.middle.set_mark(path, u64::from(count)),
            Location::Head => self.head.as_mut().expect("a location comes from this chain").count = count,
            Location::Tail => self.tail.as_mut().expect("a location comes from this chain").count = count,
        }
    }

    /// Puts a leaf behind another. Returns the location of that other, which may have changed.
    pub(crate) fn insert_after(&mut self, location: Location, block: Block) -> Location {
        let count = leaf::count(&block) as u64;
        debug_assert!(count > 0, "no leaf is empty");
        match location {
            Location::Middle(mut path) => {
                self.middle.insert_after(&mut path, count, block);
                Location::Middle(path)
            }
            Location::Head if self.tail.is_none() => {
                self.tail = Some(EndLeaf::new(open(block)));
                Location::Head
            }
            Location::Head => {
                match self.middle.is_empty() {
                    true => drop(self.middle.plant(count, block)),
                    false => self.insert_first(count, block),
                }
                Location::Head
            }
            Location::Tail => {
                let new = EndLeaf::new(open(block));
                let old = self.tail.replace(new).expect("a location comes from this chain");
                self.add_middle(End::Tail, old);
                Location::Middle(self.middle.last().expect("just added"))
            }
        }
    }

    /// Removes a leaf.
    pub(crate) fn remove(&mut self, location: &Location, limits: &Limits) {
        match location {
            Location::Head => drop(self.remove_end(End::Head, limits)),
            Location::Tail => drop(self.remove_end(End::Tail, limits)),
            Location::Middle(path) => {
                self.middle.remove(path);
                self.settle(limits);
            }
        }
    }

    /// The leaf after this one towards an end.
    pub(crate) fn next(&self, location: &Location, towards: End) -> Option<Location> {
        let far = match towards {
            End::Head => Location::Head,
            End::Tail if self.tail.is_some() => Location::Tail,
            End::Tail => return None,
        };
        if *location == far {
            return None;
        }
        let path = match (location, towards) {
            (Location::Middle(path), End::Tail) => self.path_after(*path),
            (Location::Middle(path), End::Head) => self.path_before(*path),
            (_, End::Tail) => self.middle.first(),
            (_, End::Head) => self.middle.last(),
        };
        Some(path.map_or(far, Location::Middle))
    }

    fn path_after(&self, mut path: Path) -> Option<Path> {
        self.middle.next(&mut path).then_some(path)
    }

    fn path_before(&self, mut path: Path) -> Option<Path> {
        self.middle.prev(&mut path).then_some(path)
    }

    /// Opens the leaves of the tree that are within the depth of either end, and compresses those next to
    /// them.
    pub(crate) fn settle(&mut self, limits: &Limits) {
        debug_assert!(self.head.is_some() || self.tail.is_none(), "a list of one leaf has it as its head");
        debug_assert!(self.tail.is_some() || self.middle.is_empty(), "the tree lies between head and tail");
        if self.middle.is_empty() {
            return;
        }
        for end in [End::Head, End::Tail] {
            if limits.depth > 0 {
                self.settle_from(end, limits);
            }
        }
    }

    fn settle_from(&mut self, end: End, limits: &Limits) {
        let mut reached = match end {
            End::Head => self.middle.first(),
            End::Tail => self.middle.last(),
        };
        for _ in 1..limits.depth {
            let Some(path) = reached else { return };
            self.open_at(&path);
            reached = self.path_towards(path, end);
        }
        if let Some(path) = reached
            && !self.is_near_far_end(path, end, limits.depth)
        {
            self.close_at(&path, limits);
        }
    }

    fn path_towards(&self, path: Path, from: End) -> Option<Path> {
        match from {
            End::Head => self.path_after(path),
            End::Tail => self.path_before(path),
        }
    }

    /// Whether the other end's open leaves reach as far as `path`.
    fn is_near_far_end(&self, path: Path, from: End, depth: u32) -> bool {
        let mut reached = Some(path);
        for _ in 1..depth {
            reached = reached.and_then(|path| self.path_towards(path, from));
        }
        reached.is_none()
    }

    fn open_at(&mut self, path: &Path) {
        if compressed::is_compressed(self.middle.leaf(path)) {
            let block = self.middle.leaf_mut(path);
            *block = compressed::open(block);
        }
    }

    /// Compresses the leaf at `path`, if it is open and that pays.
    pub(crate) fn close_at(&mut self, path: &Path, limits: &Limits) {
        let open = self.middle.leaf(path);
        if compressed::is_compressed(open) || leaf::is_marked_incompressible(open) {
            return;
        }
        match compressed::close(open, limits.codec) {
            Some(closed) => *self.middle.leaf_mut(path) = closed,
            None => leaf::mark_incompressible(self.middle.leaf_mut(path).make_mut()),
        }
    }

    /// Moves what lies in extents that are being emptied, from element `from` on, until `moves` says that
    /// `effort` was made. Returns the element to go on from, None at the end.
    pub(crate) fn relocate(&mut self, from: u64, effort: u64, moves: &mut Moves) -> Option<u64> {
        if from == 0 {
            let ends = self.head.iter_mut().chain(&mut self.tail);
            ends.for_each(|leaf| leaf.block.relocate(moves));
        }
        let before = end_count(&self.head);
        let at = from.saturating_sub(before);
        if at >= self.middle.total() {
            return None;
        }
        let (path, _) = self.middle.seek(at)?;
        let next = self.middle.relocate_from(path, effort, moves, Block::relocate)?;
        Some(before + self.middle.rank(&next))
    }

    /// Whether there are more than `max` leaves. Looks at no more of them.
    pub(crate) fn has_more_leaves_than(&self, max: usize) -> bool {
        let mut left =
            (max + 1).saturating_sub(usize::from(self.head.is_some()) + usize::from(self.tail.is_some()));
        let _ = self.middle.visit_leaves(&mut |_| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        left == 0
    }

    /// Every leaf, head first.
    pub(crate) fn for_each_leaf(&self, visit: &mut dyn FnMut(&Block)) {
        self.head.iter().for_each(|leaf| visit(&leaf.block));
        self.middle.for_each_leaf(visit);
        self.tail.iter().for_each(|leaf| visit(&leaf.block));
    }

    /// Nodes above the leaves: how many, children, bytes used and bytes allocated.
    pub(crate) fn for_each_inner(&self, visit: &mut dyn FnMut(usize, usize, usize)) {
        self.middle.for_each_node(&mut |node| {
            if let Node::Inner(inner) = node {
                visit(inner.count(), inner.used_bytes(), inner.allocated_bytes());
            }
        });
    }
}

#[inline]
fn end_count(end: &Option<EndLeaf>) -> u64 {
    end.as_ref().map_or(0, |leaf| u64::from(leaf.count))
}

fn open(block: Block) -> Block {
    if compressed::is_compressed(&block) { compressed::open(&block) } else { block }
}
