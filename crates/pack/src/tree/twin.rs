//! The twin of an inner node, which borrows the children that it has in common with the old one: see
//! `memory/twins.rs` for what that is good for.
use super::node::{Child, Inner, Leaf, Pair};
use super::order::Order;
use crate::memory::twins;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

impl<O: Order, L: Leaf> Inner<O, L> {
    /// The root of a tree that was copied. While that is for an edit of a value that is kept, it may have a
    /// twin.
    pub(crate) fn note_copied(&self) {
        twins::note_root(self.head.cast());
    }

    /// Makes this node one that is not shared, whose children may be in common with an old one.
    #[cold]
    pub(super) fn become_twin_or_sole(&mut self) {
        if self.is_sole_twin() {
            return;
        }
        // Two owners: the tree that is kept, and this one.
        let may_have_twin = self.pair() == Pair::None && self.header().refs.are_two();
        if may_have_twin && twins::take_root(self.head.cast()) && twins::has_room() {
            *self = self.twin();
        } else {
            self.become_sole();
        }
    }

    /// Makes the child at `slot` one that this node owns, in a node that is not shared.
    #[cold]
    pub(super) fn own_child(&mut self, slot: usize) {
        self.become_twin_or_sole();
        if self.pair() == Pair::None || twins::replace(self.head.cast(), slot) {
            return;
        }
        let below = self.level() - 1;
        // SAFETY: a twin with one owner. The level says what the child is. What was in the slot is the old
        // node's; the slot gets an owner of its own.
        unsafe {
            let place = self.children_start().add(slot);
            let child = match below > 0 && (*place).inner().is_sole() && twins::has_room() {
                true => Child::of_inner((*place).inner().twin()),
                false => (*place).share(below),
            };
            place.write(child);
        }
    }

    /// A node with the same children, none of which it owns. The caller sees to it that nobody else can reach
    /// this node, except by what is kept.
    fn twin(&self) -> Inner<O, L> {
        let count = self.count();
        let mut twin: Inner<O, L> = Inner::with_room(self.level(), count);
        // SAFETY: the twin has room for `count`, and is ours alone. It is marked before anybody may drop it.
        unsafe {
            ptr::copy_nonoverlapping(self.marks_start(), twin.marks_start(), count);
            ptr::copy_nonoverlapping(self.children_start(), twin.children_start(), count);
        }
        twin.set_count(count);
        twin.set_pair(Pair::Twin);
        self.set_pair(Pair::Old);
        twins::note_pair(self.head.cast(), twin.head.cast(), Inner::<O, L>::settle_at);
        twin
    }

    /// Makes this twin an owner of all its children.
    pub(super) fn settle(&self) {
        let (old, _, replaced) = twins::part(self.head.cast());
        for slot in (0..self.count()).filter(|slot| replaced >> slot & 1 == 0) {
            // SAFETY: the child is at its level, and is the old node's; what is written is our own. Another
            // thread may be reading the pointer, so it is not written where it is the same, as it is unless
            // the child had too many owners.
            unsafe {
                let place = self.children_start().add(slot);
                let ours = (*place).share(self.level() - 1);
                if !ours.is(&*place) {
                    place.write(ours);
                }
            }
        }
        // SAFETY: the old node lives: had it gone, there would be no pair.
        unsafe { Self::at(old) }.set_pair(Pair::None);
        self.set_pair(Pair::None);
    }

    /// # Safety
    /// A twin of this type lies there.
    unsafe fn settle_at(twin: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { Self::at(twin) }.settle();
    }

    /// The last owner of this node goes. What the other one needs of its children is that one's from here on;
    /// the others go, and this node has none.
    #[cold]
    pub(super) fn leave_pair(&mut self) {
        let (old, twin, replaced) = twins::part(self.head.cast());
        let other = if old == self.head.cast() { twin } else { old };
        // SAFETY: the other one lives, or it would have left the pair.
        unsafe { Self::at(other) }.set_pair(Pair::None);
        let (below, count) = (self.level() - 1, self.count());
        self.forget_children();
        for slot in (0..count).filter(|slot| replaced >> slot & 1 == 1) {
            // SAFETY: of what was replaced each of the two has its own, which is at its level, and is
            // released once.
            unsafe { (*self.children_start().add(slot)).release(below) };
        }
    }

    /// The node that lies there, without being an owner of it.
    ///
    /// # Safety
    /// A node of this type lies there, and lives for as long as what is returned is used.
    unsafe fn at(head: NonNull<u8>) -> ManuallyDrop<Inner<O, L>> {
        ManuallyDrop::new(Inner::of_head(head.cast()))
    }
}
