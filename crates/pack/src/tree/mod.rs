//! The tree itself: a copy-on-write B+ tree over any kind of leaf, in any [`Order`]. It knows where leaves
//! are and keeps marks right; what is in a leaf, when it splits and when two of them join is the business of
//! its owner.
//!
//! A [`Path`] names a leaf by the child taken at each level. Every edit walks the path from the root and
//! copies the nodes on it that a clone shares (their other children are then shared one level further down),
//! so a clone is never disturbed and costs one increment. Edits that add or remove leaves say what becomes of
//! the path.
//!
//! `build.rs` makes a tree of all its leaves, `descent.rs` has the way from the root to a leaf, `seek.rs`
//! what is looked for on it in each order, `join.rs` what becomes of neighbours that have become small,
//! `twin.rs` how a tree that is kept for a moment is edited, `sample.rs` what few leaves tell of all.
//!
//! Three rules hold between calls: every inner node has a child; every inner node but the root had a
//! neighbour too full to be joined with when it last fell under [`node::FANOUT_MIN`]; a root that is an inner
//! node has two children or more.
mod build;
mod descent;
pub(crate) mod end;
mod join;
pub(crate) mod node;
pub(crate) mod order;
pub(crate) mod sample;
mod seek;
pub mod stats;
mod twin;

use crate::memory::arena::Moves;
use base::random::Random;
use node::{Child, FANOUT, Inner, Leaf};
use order::Order;
use stats::Stats;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;

/// No tree has more levels: a node below the root has 32 children on the average at the worst, so a tree of
/// so many levels has 2^36 leaves, which take terabytes with their nodes.
pub(crate) const HEIGHT_MAX: usize = 9;

/// [`Tree::draw_element`] gives up after so many draws and takes the first element. So many fail in a row
/// only in a tree of nearly empty nodes.
const DRAWS_MAX: usize = 1000;

/// The way to a leaf: which child at each level, level 1 being right above the leaves. Each level has a byte
/// of one number, which stays in a register: bytes in memory that are written one by one and then read as a
/// whole make the processor wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path(u64);
const _: () = assert!(HEIGHT_MAX - 1 <= size_of::<Path>() && FANOUT <= u8::MAX as usize);

/// A node as a walk over all of them sees it.
pub(crate) enum Node<'t, O: Order, L: Leaf> {
    Inner(&'t Inner<O, L>),
    Leaf(&'t L),
}

/// So many leaves tell about how large the others are.
const WEIGHED_LEAVES: u64 = 4;

/// How many leaves are looked at to tell to a few hundredths what part of a tree nobody else holds.
pub const SOLE_SAMPLES: u64 = 256;

/// A leaf found by [`Tree::held_at`].
pub(crate) enum Held<'t, L: Leaf> {
    Sole(&'t mut L),
    /// A clone shares it, or a node above it.
    Shared(&'t L),
}

pub(crate) struct Tree<O: Order, L: Leaf> {
    /// Initialised unless `height` is 0.
    root: MaybeUninit<Child<O, L>>,
    /// The mark that a parent of the root would keep for it: by rank, the number of elements.
    mark: O::Mark,
    /// Levels, that of the leaves included.
    height: u8,
}

impl<O: Order, L: Leaf> Tree<O, L> {
    /// A tree without leaves. Allocates nothing.
    pub(crate) const fn new() -> Tree<O, L> {
        Tree { root: MaybeUninit::uninit(), mark: O::NONE, height: 0 }
    }

    pub(crate) fn height(&self) -> usize {
        self.height as usize
    }

    /// Whether there is no leaf.
    pub(crate) fn is_empty(&self) -> bool {
        self.height == 0
    }

    /// The mark of the whole: by rank, the number of elements.
    pub(crate) fn total(&self) -> O::Mark {
        self.mark
    }

    /// Puts the first leaf into an empty tree. Costs nothing but the store.
    pub(crate) fn plant(&mut self, mark: O::Mark, leaf: L) -> Path {
        assert!(self.is_empty(), "a tree is planted once");
        self.root.write(Child::of_leaf(leaf));
        self.mark = mark;
        self.height = 1;
        Path::FIRST
    }

    /// The first leaf.
    pub(crate) fn first(&self) -> Option<Path> {
        (!self.is_empty()).then_some(Path::FIRST)
    }

    /// The last leaf.
    pub(crate) fn last(&self) -> Option<Path> {
        self.descend(|inner, _| Some(inner.count() - 1)).map(|(path, _)| path)
    }

    /// Moves to the leaf after this one; false (and the path as it was) at the end.
    pub(crate) fn next(&self, path: &mut Path) -> bool {
        for level in 1..self.height() {
            if path.slot(level) + 1 < self.inner(path, level).count() {
                path.set_slot(level, path.slot(level) + 1);
                (1..level).for_each(|below| path.set_slot(below, 0));
                return true;
            }
        }
        false
    }

    /// Moves to the leaf before this one; false (and the path as it was) at the start.
    pub(crate) fn prev(&self, path: &mut Path) -> bool {
        let Some(level) = (1..self.height()).find(|level| path.slot(*level) > 0) else { return false };
        path.set_slot(level, path.slot(level) - 1);
        let before =
            self.descend(|inner, at| Some(if at < level { inner.count() - 1 } else { path.slot(at) }));
        *path = before.expect("a path comes from a tree that has leaves").0;
        true
    }

    #[inline]
    pub(crate) fn leaf(&self, path: &Path) -> &L {
        // SAFETY: level 0 holds leaves.
        unsafe { self.child(path, 0).leaf() }
    }

    /// The leaf, to be edited: the nodes above it are unshared; the leaf unshares itself.
    pub(crate) fn leaf_mut(&mut self, path: &Path) -> &mut L {
        // SAFETY: level 0 holds leaves.
        unsafe { self.child_mut(path, 0).leaf_mut() }
    }

    /// The leaf, for its owner to move it to another allocation. Moves the nodes above it first, where their
    /// extents are being emptied. None where a clone shares one of these nodes: then nothing below it may
    /// change or move.
    pub(crate) fn relocate(&mut self, path: &Path, moves: &mut Moves) -> Option<&mut L> {
        let leaf = self.descend_mut(0, |inner, level| {
            if !inner.is_sole() {
                moves.note(false, 0);
                return None;
            }
            inner.relocate(moves);
            Some(inner.child_mut(path.slot(level)).1)
        })?;
        // SAFETY: level 0 holds leaves.
        Some(unsafe { leaf.leaf_mut() })
    }

    /// The walk that moves the leaves of a tree, and the nodes above them: hands each leaf to `relocate`,
    /// from the one at `path` on, at least one and until `moves` says that `effort` was made. Returns the
    /// path to go on from, None at the end. Leaves below a node that a clone shares are passed over. The
    /// owner of the tree says by a position that outlives edits (a place, a rank, a value) where the next
    /// step goes on.
    pub(crate) fn relocate_from(
        &mut self,
        mut path: Path,
        effort: u64,
        moves: &mut Moves,
        mut relocate: impl FnMut(&mut L, &mut Moves),
    ) -> Option<Path> {
        loop {
            if let Some(leaf) = self.relocate(&path, moves) {
                relocate(leaf, moves);
            }
            if !self.next(&mut path) {
                return None;
            }
            if moves.effort() >= effort {
                return Some(path);
            }
        }
    }

    /// The leaf's mark.
    pub(crate) fn mark(&self, path: &Path) -> O::Mark {
        if self.height == 1 { self.mark } else { self.inner(path, 1).marks()[path.slot(1)] }
    }

    /// Gives the leaf another mark, and its ancestors theirs.
    pub(crate) fn set_mark(&mut self, path: &Path, new: O::Mark) {
        let old = self.mark(path);
        if self.height == 1 {
            self.mark = new;
            return;
        }
        self.mark = O::moved(self.mark, old, new);
        self.move_marks(path, 2, old, new);
        let slot = path.slot(1);
        self.inner_mut(path, 1).marks_mut()[slot] = new;
    }

    /// Puts a leaf behind the one that `path` names; afterwards `path` names the same leaf as before.
    pub(crate) fn insert_after(&mut self, path: &mut Path, mark: O::Mark, leaf: L) {
        assert!(!self.is_empty(), "a leaf goes behind another");
        let (mut right_mark, mut right) = (mark, Child::of_leaf(leaf));
        // 1 if the path's own child has moved to the right half of the node that was split below, else 0.
        let mut moved = 0;
        for level in 1..self.height() {
            let slot = path.slot(level);
            let (node, half) = (self.inner_mut(path, level), FANOUT / 2);
            if !node.is_full() {
                node.insert(slot + 1, right_mark, right);
                path.set_slot(level, slot + moved);
                self.move_marks(path, level + 1, O::NONE, mark);
                self.mark = O::moved(self.mark, O::NONE, mark);
                return;
            }
            let mut split = node.split_off(half);
            let (into, at) = if slot < half { (node, slot) } else { (&mut split, slot - half) };
            into.insert(at + 1, right_mark, right);
            path.set_slot(level, at + moved);
            moved = usize::from(slot >= half);
            (right_mark, right) = (O::fold(split.marks()), Child::of_inner(split));
            self.cut_mark(path, level + 1, mark, right_mark);
        }
        self.mark = O::moved(self.mark, O::NONE, mark);
        self.grow(right_mark, right);
        path.set_slot(self.height() - 1, moved);
    }

    /// Removes the leaf. No path is valid afterwards. By hash its range goes to the leaf before it, or to the
    /// one after it where it was its parent's first.
    pub(crate) fn remove(&mut self, path: &Path) -> L {
        let old = self.mark(path);
        self.mark = O::moved(self.mark, old, O::NONE);
        if self.height == 1 {
            // SAFETY: the root is a leaf; with a height of 0 it is not read again.
            let leaf = unsafe { self.root.assume_init_read().into_leaf() };
            (self.height, self.mark) = (0, O::NONE);
            return leaf;
        }
        self.move_marks(path, 2, old, O::NONE);
        let (_, child) = self.inner_mut(path, 1).remove(path.slot(1));
        self.mend(path);
        // SAFETY: level 1 has leaves below it.
        unsafe { child.into_leaf() }
    }

    /// Draws a leaf, each with the same chance: at every node one of as many children as a full node has.
    /// None where the node has no such child; the caller then draws again.
    pub(crate) fn draw(&self, random: &mut Random) -> Option<&L> {
        let drawn = self.descend(|inner, level| {
            let slots = if level + 1 == self.height() { inner.count() } else { FANOUT };
            let slot = random.below(slots as u64) as usize;
            (slot < inner.count()).then_some(slot)
        });
        drawn.map(|(_, leaf)| leaf)
    }

    /// Draws an element uniformly: its leaf, and its number there. `count` tells how many elements a leaf
    /// has, and `count_max` is how many a leaf usually may have. None in a tree without leaves.
    pub(crate) fn draw_element(
        &self,
        random: &mut Random,
        count_max: usize,
        count: impl Fn(&L) -> usize,
    ) -> Option<(&L, usize)> {
        // Each element of a full leaf is drawn with the same chance; drawing again where there is none keeps
        // it so.
        for _ in 0..DRAWS_MAX {
            if self.is_empty() {
                return None;
            }
            let Some(leaf) = self.draw(random) else { continue };
            let count = count(leaf);
            let index = random.below(count.max(count_max) as u64) as usize;
            if index < count {
                return Some((leaf, index));
            }
        }
        let first = self.leaf(&self.first()?);
        (count(first) > 0).then_some((first, 0))
    }

    /// Visits every node, parents first, from left to right.
    pub(crate) fn for_each_node(&self, visit: &mut dyn FnMut(Node<'_, O, L>)) {
        let _ = self.visit_nodes(&mut |node| {
            visit(node);
            ControlFlow::Continue(())
        });
    }

    fn visit_nodes(&self, visit: &mut dyn FnMut(Node<'_, O, L>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self.root() {
            Some(root) => visit_below(root, self.height() - 1, visit),
            None => ControlFlow::Continue(()),
        }
    }

    /// Visits every leaf, from left to right.
    pub(crate) fn for_each_leaf(&self, visit: &mut dyn FnMut(&L)) {
        self.for_each_node(&mut |node| {
            if let Node::Leaf(leaf) = node {
                visit(leaf);
            }
        });
    }

    /// Visits every leaf from left to right, until told to stop.
    pub(crate) fn visit_leaves(&self, visit: &mut dyn FnMut(&L) -> ControlFlow<()>) -> ControlFlow<()> {
        self.visit_nodes(&mut |node| match node {
            Node::Leaf(leaf) => visit(leaf),
            Node::Inner(_) => ControlFlow::Continue(()),
        })
    }

    /// Adds all nodes to `stats`, a leaf as `add_leaf` does it.
    pub(crate) fn add_stats(&self, stats: &mut Stats, add_leaf: impl Fn(&mut Stats, &L)) {
        self.for_each_node(&mut |node| match node {
            Node::Inner(inner) => {
                stats.inner.add(inner.count() as u64, inner.used_bytes(), inner.allocated_bytes());
            }
            Node::Leaf(leaf) => add_leaf(stats, leaf),
        });
    }

    /// About what part of the tree nobody else holds at this moment: how many of so many leaves, spread
    /// evenly, have no other owner.
    pub(crate) fn count_sole(&self, samples: u64) -> u64 {
        if self.is_empty() {
            return samples;
        }
        let is_sole = |sample: u64| {
            let sole = self.descend_spread(sample, samples, Inner::is_sole);
            sole.is_some_and(Leaf::is_sole)
        };
        (0..samples).filter(|sample| is_sole(*sample)).count() as u64
    }

    /// About how many bytes its leaves take: what a few of them do, times how many there are about.
    pub(crate) fn leaf_bytes_about(&self) -> u64 {
        let samples = if self.height() > 1 { WEIGHED_LEAVES } else { 1 };
        let weight = |sample: u64| {
            let mut leaves = 1;
            let leaf = self.descend_spread(sample, samples, |inner| {
                leaves *= inner.count() as u64;
                true
            });
            leaf.map_or(0, |leaf| leaf.allocated_bytes() as u64 * leaves)
        };
        (0..samples).map(weight).sum::<u64>() / samples
    }

    /// One of so many leaves that are spread evenly, unless `goes_on` is false of a node above it.
    fn descend_spread(
        &self,
        sample: u64,
        samples: u64,
        mut goes_on: impl FnMut(&Inner<O, L>) -> bool,
    ) -> Option<&L> {
        let mut at = (sample as f64 + 0.5) / samples as f64;
        let found = self.descend(|inner, _| {
            at *= inner.count() as f64;
            let slot = (at as usize).min(inner.count() - 1);
            at -= slot as f64;
            goes_on(inner).then_some(slot)
        });
        found.map(|(_, leaf)| leaf)
    }

    fn root(&self) -> Option<&Child<O, L>> {
        // SAFETY: with a height of 1 and more the root is there.
        (self.height > 0).then(|| unsafe { self.root.assume_init_ref() })
    }

    #[inline]
    fn child(&self, path: &Path, level: usize) -> &Child<O, L> {
        let found = self.descend_to(level, |_, above| Some(path.slot(above)));
        found.expect("a path comes from a tree that has leaves").1
    }

    fn child_mut(&mut self, path: &Path, level: usize) -> &mut Child<O, L> {
        let found = self.descend_mut(level, |inner, above| Some(inner.child_mut(path.slot(above)).1));
        found.expect("nothing ends the way down")
    }

    fn inner(&self, path: &Path, level: usize) -> &Inner<O, L> {
        debug_assert!(level > 0);
        // SAFETY: only level 0 holds leaves.
        unsafe { self.child(path, level).inner() }
    }

    fn inner_mut(&mut self, path: &Path, level: usize) -> &mut Inner<O, L> {
        debug_assert!(level > 0);
        // SAFETY: only level 0 holds leaves.
        unsafe { self.child_mut(path, level).inner_mut() }
    }

    /// Corrects the marks on the way, from the nodes at `level` up: something below them went from `old` to
    /// `new`.
    fn move_marks(&mut self, path: &Path, level: usize, old: O::Mark, new: O::Mark) {
        for level in level..self.height() {
            let slot = path.slot(level);
            let marks = self.inner_mut(path, level).marks_mut();
            marks[slot] = O::moved(marks[slot], old, new);
        }
    }

    /// The node below `level` got a leaf marked `leaf`, and then lost a right half marked `right`.
    fn cut_mark(&mut self, path: &Path, level: usize, leaf: O::Mark, right: O::Mark) {
        if level < self.height() {
            let slot = path.slot(level);
            let marks = self.inner_mut(path, level).marks_mut();
            marks[slot] = O::moved(O::moved(marks[slot], O::NONE, leaf), right, O::NONE);
        }
    }

    /// Puts a new root above the old one and its right half.
    fn grow(&mut self, right_mark: O::Mark, right: Child<O, L>) {
        assert!(self.height() < HEIGHT_MAX, "a tree higher than memory is large");
        let mut root = Inner::with_room(self.height(), 2);
        // SAFETY: the old root is moved, and the field written over below.
        let left = unsafe { self.root.assume_init_read() };
        root.insert(0, O::moved(self.mark, right_mark, O::NONE), left);
        root.insert(1, right_mark, right);
        self.root.write(Child::of_inner(root));
        self.height += 1;
    }
}

impl<O: Order, L: Leaf> Tree<O, L> {
    /// Drops the tree, with a `pause` behind each leaf that goes with it: for whoever is not to be busy, or
    /// to keep others waiting, for as long as all of it takes.
    pub(crate) fn let_go(mut self, pause: &mut dyn FnMut()) {
        if self.height > 1 {
            self.height = 0;
            // SAFETY: the root was initialised, is an inner node of a tree so high, and is not used again:
            // by its height the tree is empty.
            unsafe { self.root.assume_init_read().into_inner() }.let_go(pause);
        }
    }
}

impl<O: Order, L: Leaf> Clone for Tree<O, L> {
    fn clone(&self) -> Tree<O, L> {
        let root = match self.root() {
            // SAFETY: the root's level is one less than the height.
            Some(root) => MaybeUninit::new(unsafe {
                if self.height() > 1 {
                    root.inner().note_copied();
                }
                root.share(self.height() - 1)
            }),
            None => MaybeUninit::uninit(),
        };
        Tree { root, mark: self.mark, height: self.height }
    }
}

impl<O: Order, L: Leaf> Drop for Tree<O, L> {
    fn drop(&mut self) {
        if self.height > 0 {
            // SAFETY: the root is there, its level is one less than the height, and nobody uses it again.
            unsafe { self.root.assume_init_mut().release(self.height as usize - 1) };
        }
    }
}

impl Path {
    const FIRST: Path = Path(0);

    #[inline(always)]
    fn slot(&self, level: usize) -> usize {
        usize::from((self.0 >> Path::shift(level)) as u8)
    }

    /// This path, which has no slot at `level` yet, with one there.
    #[inline(always)]
    fn with_slot(self, level: usize, slot: usize) -> Path {
        debug_assert!(slot < FANOUT && self.slot(level) == 0);
        Path(self.0 | (slot as u64) << Path::shift(level))
    }

    #[inline(always)]
    fn set_slot(&mut self, level: usize, slot: usize) {
        debug_assert!(slot < FANOUT);
        let shift = Path::shift(level);
        self.0 = self.0 & !(0xFF << shift) | (slot as u64) << shift;
    }

    /// Level 0 has no slots: leaves have no children.
    #[inline(always)]
    fn shift(level: usize) -> u32 {
        debug_assert!((1..HEIGHT_MAX).contains(&level));
        8 * (level as u32 - 1)
    }
}

fn visit_below<O: Order, L: Leaf>(
    node: &Child<O, L>,
    level: usize,
    visit: &mut dyn FnMut(Node<'_, O, L>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if level == 0 {
        // SAFETY: level 0 holds leaves.
        return visit(Node::Leaf(unsafe { node.leaf() }));
    }
    // SAFETY: every other level holds inner nodes.
    let inner = unsafe { node.inner() };
    visit(Node::Inner(inner))?;
    inner.children().iter().try_for_each(|child| visit_below(child, level - 1, visit))
}

#[cfg(test)]
mod tests;
