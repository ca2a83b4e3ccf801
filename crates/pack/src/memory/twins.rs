//! Nodes of which two versions are there for a moment, of which one is about to go.
//!
//! What a script writes to is kept until the script has ended: its value gets one more owner. A node that is
//! edited then is copied, and each of its children, up to 128, gets one more owner, which goes again when the
//! script has ended. That would be most of what a write to a large collection costs. So the copy is a *twin*:
//! it has the children of the old node, but is no owner of those that both have in common.
//!
//! ```text
//! kept value --- old node     owner of all its children
//! value -------- its twin     owner of those that it has replaced; the others it borrows
//!
//! the old node goes first     the twin becomes the owner of what it has borrowed
//! the twin goes first         the old node is what it was
//! the twin is settled         it becomes one more owner of each, as if it had been copied: before anything
//!                             but a child or a mark is changed
//! ```
//! Which children a twin has replaced is noted here, for each thread by itself: a pair stays on the thread
//! that has made it. Only a value that somebody has announced as kept, and that has no third owner when it is
//! copied, has twins ([`note_kept`]). Whoever has announced some calls [`end_keeping`] before other threads
//! may edit the values or make owners of them, best when what was kept is gone. Others may look whether they
//! are the only owner of a node meanwhile: of one that has a pair nobody is.
//!
//! Requests that keep nothing see of this a flag in the header of a node, beside its count of owners.
use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

/// So many values are announced, and so many pairs are made; what comes then is copied. They are searched one
/// by one.
const VALUES_MAX: usize = 32;
const PAIRS_MAX: usize = 32;

/// An old node, its twin, and which children the twin has replaced.
struct Pair {
    old: NonNull<u8>,
    twin: NonNull<u8>,
    replaced: u128,
    /// Makes the twin the owner of all its children.
    settle: unsafe fn(NonNull<u8>),
}

struct Twins {
    /// Where values lie that are kept.
    values: Vec<NonNull<u8>>,
    /// The roots of trees that only two values have: one that is kept, and its copy.
    roots: Vec<NonNull<u8>>,
    pairs: Vec<Pair>,
}

thread_local! {
    static TWINS: RefCell<Twins> =
        const { RefCell::new(Twins { values: Vec::new(), roots: Vec::new(), pairs: Vec::new() }) };
    /// Whether a value is being copied that is kept.
    static IS_COPYING: Cell<bool> = const { Cell::new(false) };
}

fn with<R>(f: impl FnOnce(&mut Twins) -> R) -> R {
    TWINS.with_borrow_mut(f)
}

/// Somebody keeps this value, to put it back or to let go of it soon, on this thread.
pub(crate) fn note_kept(value: NonNull<u8>) {
    with(|twins| {
        if twins.values.len() < VALUES_MAX {
            twins.values.push(value);
        }
    });
}

/// Copies a value that has two owners by `copy`. If one of them keeps it, the roots of its trees may have
/// twins.
pub(crate) fn copying<R>(value: NonNull<u8>, copy: impl FnOnce() -> R) -> R {
    let is_kept = with(|twins| twins.values.contains(&value));
    IS_COPYING.set(is_kept);
    let copied = copy();
    IS_COPYING.set(false);
    copied
}

/// A tree was copied that has this node for its root.
pub(crate) fn note_root(root: NonNull<u8>) {
    if IS_COPYING.get() {
        with(|twins| twins.roots.push(root));
    }
}

/// Whether this root, which has two owners, may have a twin. It is asked for once.
pub(crate) fn take_root(root: NonNull<u8>) -> bool {
    with(|twins| {
        let place = twins.roots.iter().position(|known| *known == root);
        place.map(|place| twins.roots.swap_remove(place)).is_some()
    })
}

/// Whether one more pair may be made.
pub(crate) fn has_room() -> bool {
    with(|twins| twins.pairs.len() < PAIRS_MAX)
}

/// A node has a twin now. `settle` is told the twin.
pub(crate) fn note_pair(old: NonNull<u8>, twin: NonNull<u8>, settle: unsafe fn(NonNull<u8>)) {
    with(|twins| twins.pairs.push(Pair { old, twin, replaced: 0, settle }));
}

/// Whether a twin has replaced its child at `slot`.
pub(crate) fn has_replaced(twin: NonNull<u8>, slot: usize) -> bool {
    with(|twins| find(twins, twin).replaced >> slot & 1 == 1)
}

/// A twin replaces its child at `slot`. Returns whether it has done so before.
pub(crate) fn replace(twin: NonNull<u8>, slot: usize) -> bool {
    with(|twins| {
        let pair = find(twins, twin);
        let before = pair.replaced >> slot & 1 == 1;
        pair.replaced |= 1 << slot;
        before
    })
}

fn find(twins: &mut Twins, twin: NonNull<u8>) -> &mut Pair {
    twins.pairs.iter_mut().find(|pair| pair.twin == twin).expect("a twin is its thread's")
}

/// There is no pair of this node any more. Returns the old node, its twin, and which children the twin has
/// replaced.
pub(crate) fn part(node: NonNull<u8>) -> (NonNull<u8>, NonNull<u8>, u128) {
    with(|twins| {
        let is_it = |pair: &Pair| pair.twin == node || pair.old == node;
        let place = twins.pairs.iter().position(is_it).expect("a pair is its thread's");
        let Pair { old, twin, replaced, .. } = twins.pairs.swap_remove(place);
        (old, twin, replaced)
    })
}

/// What was announced as kept is kept no longer, or about to go back to its place, and other threads may come
/// to it. The twins that are left become owners of all their children.
pub fn end_keeping() {
    let left = with(|twins| {
        twins.values.clear();
        twins.roots.clear();
        twins.pairs.iter().map(|pair| (pair.twin, pair.settle)).collect::<Vec<_>>()
    });
    for (twin, settle) in left {
        // SAFETY: the pair is there, so the twin is, and is of the type that has made it.
        unsafe { settle(twin) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a pair is its thread's")]
    fn a_node_whose_pair_another_thread_has_made_is_not_taken_for_one_without() {
        part(NonNull::dangling());
    }
}
