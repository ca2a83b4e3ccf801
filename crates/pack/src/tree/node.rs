//! An inner node: marks and children, reference-counted and copied on write. Knows its level, so that it can
//! be cloned and dropped by itself; a drop recurses no deeper than the tree is high.
//!
//! ```text
//! +------+-------+-------+-------+-----+-------------------+---------------------+
//! | refs | level | count | slots | pad | marks, slots of   | children, slots of  |
//! | u32  | u8    | u8    | u8    | u8  | them (u32 or u64) | them (8 bytes each) |
//! +------+-------+-------+-------+-----+-------------------+---------------------+
//! ```
//!
//! Two leaves by hash, the second from place 0x80000000 on: `01000000 01 02 02 00 | 00000000 00000080 | leaf
//! leaf`, 32 bytes.
//!
//! A node has room for as many children as its allocation holds, so a tree of two leaves does not pay for a
//! full node. Cost: 12 bytes a child by hash, 16 by rank, and the rounding. Level 1 is right above the
//! leaves.
use crate::memory::arena::Moves;
use crate::memory::counted::count_copied;
use crate::memory::prefetch::prefetch;
use crate::memory::refs::Refs;
use crate::memory::{alloc, arena, twins};
use crate::tree::order::Order;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU8, Ordering};

/// At most so many children a node.
pub(crate) const FANOUT: usize = 128;

/// A node with fewer children looks for a neighbour to join.
pub(crate) const FANOUT_MIN: usize = FANOUT / 4;

#[repr(C)]
pub(super) struct Header {
    pub(super) refs: Refs,
    level: u8,
    count: u8,
    slots: u8,
    /// A [`Pair`]. Atomic, because the thread that moves values to other extents may look at a node whose
    /// value is kept, where that was edited by who is alone and has let go of its shard.
    pair: AtomicU8,
}

/// Whether there is another version of a node for a moment: see `memory/twins.rs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Pair {
    None = 0,
    /// It has a twin.
    Old = 1,
    Twin = 2,
}
const HEADER_BYTES: usize = size_of::<Header>();
const _: () = assert!(HEADER_BYTES == 8 && FANOUT <= u8::MAX as usize);

/// A leaf of a tree: a thin handle whose clone is O(1) and shares the content, and that copies it before an
/// edit. Its drop gives up one reference.
pub(crate) trait Leaf: Clone {
    /// Whether nobody else holds the content, at this moment.
    fn is_sole(&self) -> bool;

    /// What its memory costs, rounding included.
    fn allocated_bytes(&self) -> usize;
}

/// A leaf or an inner node. The level tells which.
pub(crate) union Child<O: Order, L: Leaf> {
    leaf: ManuallyDrop<L>,
    inner: ManuallyDrop<Inner<O, L>>,
}

impl<O: Order, L: Leaf> Child<O, L> {
    pub(crate) const THIN: () = assert!(size_of::<L>() == 8 && size_of::<Child<O, L>>() == 8);

    pub(crate) fn of_leaf(leaf: L) -> Child<O, L> {
        const { Self::THIN };
        Child { leaf: ManuallyDrop::new(leaf) }
    }

    pub(crate) fn of_inner(inner: Inner<O, L>) -> Child<O, L> {
        Child { inner: ManuallyDrop::new(inner) }
    }

    /// # Safety
    /// The child is a leaf.
    pub(crate) unsafe fn leaf(&self) -> &L {
        // SAFETY: the caller's promise.
        unsafe { &self.leaf }
    }

    /// # Safety
    /// The child is a leaf.
    pub(crate) unsafe fn leaf_mut(&mut self) -> &mut L {
        // SAFETY: the caller's promise.
        unsafe { &mut self.leaf }
    }

    /// # Safety
    /// The child is a leaf.
    pub(crate) unsafe fn into_leaf(self) -> L {
        // SAFETY: the caller's promise.
        ManuallyDrop::into_inner(unsafe { self.leaf })
    }

    /// # Safety
    /// The child is an inner node.
    pub(crate) unsafe fn inner(&self) -> &Inner<O, L> {
        // SAFETY: the caller's promise.
        unsafe { &self.inner }
    }

    /// # Safety
    /// The child is an inner node.
    pub(crate) unsafe fn inner_mut(&mut self) -> &mut Inner<O, L> {
        // SAFETY: the caller's promise.
        unsafe { &mut self.inner }
    }

    /// # Safety
    /// The child is an inner node.
    pub(crate) unsafe fn into_inner(self) -> Inner<O, L> {
        // SAFETY: the caller's promise.
        ManuallyDrop::into_inner(unsafe { self.inner })
    }

    /// # Safety
    /// `level` is the child's: 0 for a leaf.
    pub(crate) unsafe fn share(&self, level: usize) -> Child<O, L> {
        // SAFETY: the level tells which of the two it is.
        unsafe {
            match level {
                0 => Child { leaf: self.leaf.clone() },
                _ => Child { inner: self.inner.clone() },
            }
        }
    }

    /// Whether both are pointers to the same leaf or node.
    pub(crate) fn is(&self, other: &Child<O, L>) -> bool {
        const { Self::THIN };
        // SAFETY: whatever they are, they are a pointer each.
        let address = |child| unsafe { std::mem::transmute_copy::<Child<O, L>, usize>(child) };
        address(self) == address(other)
    }

    /// # Safety
    /// `level` is the child's: 0 for a leaf. The child is not used again.
    pub(crate) unsafe fn release(&mut self, level: usize) {
        // SAFETY: the level tells which of the two it is.
        unsafe {
            match level {
                0 => ManuallyDrop::drop(&mut self.leaf),
                _ => ManuallyDrop::drop(&mut self.inner),
            }
        }
    }
}

pub(crate) struct Inner<O: Order, L: Leaf> {
    pub(super) head: NonNull<Header>,
    owns: PhantomData<(O::Mark, L)>,
}

// SAFETY: several threads may read the leaves and the last one drops them; marks are Send + Sync; edits need
// a sole owner.
unsafe impl<O: Order, L: Leaf + Send + Sync> Send for Inner<O, L> {}
// SAFETY: as above.
unsafe impl<O: Order, L: Leaf + Send + Sync> Sync for Inner<O, L> {}

impl<O: Order, L: Leaf> Inner<O, L> {
    /// An empty node with room for at least `count` children.
    pub(crate) fn with_room(level: usize, count: usize) -> Inner<O, L> {
        let slots = slots_for::<O::Mark>(count);
        let header = Header {
            refs: Refs::one(),
            level: level as u8,
            count: 0,
            slots: slots as u8,
            pair: AtomicU8::new(Pair::None as u8),
        };
        assert!(level > 0 && level < 256 && count <= FANOUT);
        let head = alloc::allocate(node_bytes::<O::Mark>(slots)).cast::<Header>();
        // SAFETY: fresh, large enough, aligned to 8.
        unsafe { head.write(header) };
        Inner { head, owns: PhantomData }
    }

    pub(crate) fn level(&self) -> usize {
        self.header().level as usize
    }

    pub(crate) fn count(&self) -> usize {
        self.header().count as usize
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count() == FANOUT
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        alloc::footprint(alloc::rounded(node_bytes::<O::Mark>(self.slots())))
    }

    pub(crate) fn used_bytes(&self) -> usize {
        node_bytes::<O::Mark>(self.count())
    }

    pub(crate) fn marks(&self) -> &[O::Mark] {
        // SAFETY: the first `count` marks are initialised; nobody edits while a shared reference lives.
        unsafe { std::slice::from_raw_parts(self.marks_start(), self.count()) }
    }

    pub(crate) fn children(&self) -> &[Child<O, L>] {
        // SAFETY: the first `count` children are initialised.
        unsafe { std::slice::from_raw_parts(self.children_start(), self.count()) }
    }

    /// Asks for the cache line where a child lies, if there is such a child.
    #[inline(always)]
    pub(crate) fn prefetch_child(&self, slot: usize) {
        prefetch(self.children_start().wrapping_add(slot).cast());
    }

    /// Whether nobody else holds this node, or has children in common with it.
    pub(crate) fn is_sole(&self) -> bool {
        self.header().refs.is_sole() && self.pair() == Pair::None
    }

    /// Whether the child at `slot` is to be reached from here only, as far as this node is.
    #[inline(always)]
    pub(crate) fn is_sole_parent(&self, slot: usize) -> bool {
        self.is_sole() || self.is_sole_twin_parent(slot)
    }

    #[cold]
    fn is_sole_twin_parent(&self, slot: usize) -> bool {
        self.is_sole_twin() && twins::has_replaced(self.head.cast(), slot)
    }

    /// The address of a child: to be written to only if this node and all above it have one owner.
    #[inline(always)]
    pub(crate) fn child_address(&self, slot: usize) -> *mut Child<O, L> {
        assert!(slot < self.count(), "a child that is not there");
        // SAFETY: within the allocation.
        unsafe { self.children_start().add(slot) }
    }

    /// The marks, to be edited: the node is copied first where it is shared.
    pub(crate) fn marks_mut(&mut self) -> &mut [O::Mark] {
        if !self.is_sole() {
            self.become_twin_or_sole();
        }
        // SAFETY: sole owner, and marks are in common with nobody; the first `count` are initialised.
        unsafe { std::slice::from_raw_parts_mut(self.marks_start(), self.count()) }
    }

    /// A child, to be edited or replaced, and its mark: the node is copied first where it is shared.
    #[inline(always)]
    pub(crate) fn child_mut(&mut self, slot: usize) -> (&mut O::Mark, &mut Child<O, L>) {
        assert!(slot < self.count(), "a child that is not there");
        if !self.is_sole() {
            self.own_child(slot);
        }
        // SAFETY: sole owner of the node and of this child; both are initialised, and do not overlap.
        unsafe { (&mut *self.marks_start().add(slot), &mut *self.children_start().add(slot)) }
    }

    /// Marks and children, to be edited: the node is copied first where it is shared.
    pub(crate) fn make_mut(&mut self) -> (&mut [O::Mark], &mut [Child<O, L>]) {
        self.unshare();
        // SAFETY: sole owner; the first `count` of both are initialised, and they do not overlap.
        unsafe {
            let marks = std::slice::from_raw_parts_mut(self.marks_start(), self.count());
            (marks, std::slice::from_raw_parts_mut(self.children_start(), self.count()))
        }
    }

    pub(crate) fn insert(&mut self, index: usize, mark: O::Mark, child: Child<O, L>) {
        let count = self.count();
        assert!(index <= count && count < FANOUT, "insert {index} of {count}");
        self.unshare();
        if count == self.slots() {
            self.refit(count + 1);
        }
        // SAFETY: sole owner, and there is room for `count + 1`.
        unsafe {
            insert_at(self.marks_start(), count, index, mark);
            insert_at(self.children_start(), count, index, child);
        }
        self.set_count(count + 1);
    }

    pub(crate) fn remove(&mut self, index: usize) -> (O::Mark, Child<O, L>) {
        let count = self.count();
        assert!(index < count, "remove {index} of {count}");
        self.unshare();
        // SAFETY: sole owner; `index` is initialised, and not read again after the count has shrunk.
        let removed = unsafe {
            (remove_at(self.marks_start(), count, index), remove_at(self.children_start(), count, index))
        };
        self.set_count(count - 1);
        self.refit_if_sparse();
        removed
    }

    /// Cuts off the children from `at` on, as a node of their own.
    pub(crate) fn split_off(&mut self, at: usize) -> Inner<O, L> {
        let moved = self.count() - at;
        assert!(at > 0 && moved > 0, "both halves of a split have children");
        self.unshare();
        let mut right = Inner::with_room(self.level(), moved);
        debug_assert!(right.slots() >= moved && right.level() == self.level());
        // SAFETY: both are ours alone; `right` has room; what is moved is not read again behind the smaller
        // count.
        unsafe { self.copy_to(at, moved, &mut right) };
        right.set_count(moved);
        self.set_count(at);
        self.refit_if_sparse();
        right
    }

    /// Appends all children of `right`, whose own mark is `mark`.
    pub(crate) fn join(&mut self, mark: O::Mark, mut right: Inner<O, L>) {
        let (count, more) = (self.count(), right.count());
        assert!(count + more <= FANOUT && self.level() == right.level() && more > 0);
        self.unshare();
        right.unshare();
        if count + more > self.slots() {
            self.refit(count + more);
        }
        right.make_mut().0[0] = O::joined(mark, right.marks()[0]);
        // SAFETY: both are ours alone; there is room; `right` forgets its children by the count of zero.
        unsafe { right.copy_to(0, more, self) };
        right.set_count(0);
        self.set_count(count + more);
    }

    /// Gives this reference up as a drop does, with a `pause` behind each leaf that goes with it. A node that
    /// others hold is theirs, with all that is below it.
    pub(crate) fn let_go(mut self, pause: &mut dyn FnMut()) {
        if !self.is_sole() {
            return;
        }
        let below = self.level() - 1;
        while let Some(last) = self.count().checked_sub(1) {
            // SAFETY: sole owner, and stays so; the child is initialised, and not read again behind the
            // smaller count.
            let mut child = unsafe { self.children_start().add(last).read() };
            self.set_count(last);
            if below > 0 {
                // SAFETY: the level says that it is an inner node.
                unsafe { child.into_inner() }.let_go(pause);
            } else {
                // SAFETY: the level says that it is a leaf, which is released once.
                unsafe { child.release(0) };
                pause();
            }
        }
    }

    fn unshare(&mut self) {
        if !self.is_sole() {
            self.become_sole();
        }
    }

    #[cold]
    pub(super) fn become_sole(&mut self) {
        if self.is_sole_twin() {
            self.settle();
        } else {
            *self = count_copied(|| self.copied());
        }
    }

    /// A node of its own with the same children, which both share.
    fn copied(&self) -> Inner<O, L> {
        if self.pair() == Pair::Twin {
            self.settle();
        }
        let mut copy: Inner<O, L> = Inner::with_room(self.level(), self.count());
        for (index, (mark, child)) in self.marks().iter().zip(self.children()).enumerate() {
            // SAFETY: `copy` has room for `count`; the child's level is one below ours.
            unsafe {
                copy.marks_start().add(index).write(*mark);
                copy.children_start().add(index).write(child.share(self.level() - 1));
            }
            copy.set_count(index + 1);
        }
        copy
    }

    /// Moves to an allocation with room for `count` children.
    fn refit(&mut self, count: usize) {
        let mut fresh = Inner::with_room(self.level(), count);
        let held = self.count();
        // SAFETY: both are ours alone (every caller has unshared); the old node forgets its children.
        unsafe { self.copy_to(0, held, &mut fresh) };
        fresh.set_count(held);
        self.set_count(0);
        *self = fresh;
    }

    /// Moves the node to another allocation if its extent is being emptied ([`arena::is_evacuating`]). A
    /// shared node stays, because others know its address. `moves` is told what was done.
    pub(crate) fn relocate(&mut self, moves: &mut Moves) {
        let address = self.head.as_ptr().cast::<u8>();
        if arena::is_evacuating(address) && self.is_sole() {
            let _beside = arena::beside(address);
            self.refit(self.slots());
            moves.note(true, self.allocated_bytes());
        }
    }

    /// Counts so many owners more, or no longer.
    #[cfg(test)]
    pub(crate) fn pretend_owners(&self, more: u32) {
        self.header().refs.pretend(more);
    }

    fn refit_if_sparse(&mut self) {
        let wanted = slots_for::<O::Mark>(self.count().max(1));
        if wanted * 4 <= self.slots() * 3 {
            self.refit(self.count().max(1));
        }
    }

    /// Copies `moved` marks and children from `from` on behind what `to` has.
    ///
    /// # Safety
    /// `to` is another node, has room, and both have one owner; of each copied child only one copy is used
    /// from here on.
    unsafe fn copy_to(&self, from: usize, moved: usize, to: &mut Inner<O, L>) {
        debug_assert!(self.is_sole() && to.is_sole(), "children move between nodes that nobody shares");
        let at = to.count();
        debug_assert!(at + moved <= to.slots() && from + moved <= self.count());
        // SAFETY: the caller's promise.
        unsafe {
            ptr::copy_nonoverlapping(self.marks_start().add(from), to.marks_start().add(at), moved);
            ptr::copy_nonoverlapping(self.children_start().add(from), to.children_start().add(at), moved);
        }
    }

    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lives as long as any handle does.
        unsafe { self.head.as_ref() }
    }

    fn slots(&self) -> usize {
        self.header().slots as usize
    }

    /// Only a sole owner calls this, with as many children as are initialised.
    pub(super) fn set_count(&mut self, count: usize) {
        debug_assert!(self.is_sole(), "a node that others hold does not change");
        debug_assert!(count <= self.slots());
        // SAFETY: `&mut self` of a sole owner: nobody reads the header meanwhile.
        unsafe { (*self.head.as_ptr()).count = count as u8 };
    }

    #[inline]
    pub(super) fn pair(&self) -> Pair {
        match self.header().pair.load(Ordering::Acquire) {
            0 => Pair::None,
            1 => Pair::Old,
            _ => Pair::Twin,
        }
    }

    /// Only the thread that has made a pair calls this. What it has done to the counts of children comes
    /// before, for whoever sees that there is no pair any more.
    pub(super) fn set_pair(&self, pair: Pair) {
        self.header().pair.store(pair as u8, Ordering::Release);
    }

    /// Whether it is a twin that nobody else holds.
    pub(super) fn is_sole_twin(&self) -> bool {
        self.pair() == Pair::Twin && self.header().refs.is_sole()
    }

    /// The children are somebody else's, or are released one by one.
    pub(super) fn forget_children(&mut self) {
        // SAFETY: the caller is the last owner: nobody reads the header meanwhile.
        unsafe { (*self.head.as_ptr()).count = 0 };
    }

    /// The owner of a node, made of where it lies.
    pub(super) fn of_head(head: NonNull<Header>) -> Inner<O, L> {
        Inner { head, owns: PhantomData }
    }

    pub(super) fn marks_start(&self) -> *mut O::Mark {
        // SAFETY: the marks begin right behind the header, within the allocation.
        unsafe { self.head.as_ptr().add(1).cast::<O::Mark>() }
    }

    pub(super) fn children_start(&self) -> *mut Child<O, L> {
        // SAFETY: the children begin behind the marks of all slots, within the allocation, aligned to 8.
        unsafe {
            let after = HEADER_BYTES + marks_bytes::<O::Mark>(self.slots());
            self.head.as_ptr().cast::<u8>().add(after).cast::<Child<O, L>>()
        }
    }
}

impl<O: Order, L: Leaf> Clone for Inner<O, L> {
    fn clone(&self) -> Inner<O, L> {
        match self.header().refs.retain() {
            true => Inner { head: self.head, owns: PhantomData },
            false => self.copied(),
        }
    }
}

impl<O: Order, L: Leaf> Drop for Inner<O, L> {
    fn drop(&mut self) {
        if !self.header().refs.release() {
            return;
        }
        if self.pair() != Pair::None {
            self.leave_pair();
        }
        let below = self.level() - 1;
        for index in 0..self.count() {
            // SAFETY: ours was the last reference; each child is released once, at its level.
            unsafe { (*self.children_start().add(index)).release(below) };
        }
        // SAFETY: allocated with this size, and unused from here on.
        unsafe { alloc::free(self.head.cast::<u8>(), node_bytes::<O::Mark>(self.slots())) };
    }
}

/// # Safety
/// `start` has room for `count + 1` values, `count` of them initialised, and `index <= count`.
unsafe fn insert_at<T>(start: *mut T, count: usize, index: usize, value: T) {
    // SAFETY: the caller's promise.
    unsafe {
        ptr::copy(start.add(index), start.add(index + 1), count - index);
        start.add(index).write(value);
    }
}

/// # Safety
/// `start` has `count` initialised values, and `index < count`; the last is not used again.
unsafe fn remove_at<T>(start: *mut T, count: usize, index: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        let value = start.add(index).read();
        ptr::copy(start.add(index + 1), start.add(index), count - index - 1);
        value
    }
}

/// Children start on a multiple of 8.
fn marks_bytes<M>(slots: usize) -> usize {
    (slots * size_of::<M>()).next_multiple_of(8)
}

fn node_bytes<M>(slots: usize) -> usize {
    HEADER_BYTES + marks_bytes::<M>(slots) + slots * 8
}

/// As many slots as the allocation for `count` children really holds.
fn slots_for<M>(count: usize) -> usize {
    let size = alloc::rounded(node_bytes::<M>(count));
    let mut slots = (size - HEADER_BYTES) / (size_of::<M>() + 8);
    if node_bytes::<M>(slots) > size {
        slots -= 1;
    }
    slots.clamp(count, FANOUT)
}
