//! Every order in which a few threads can take the steps of `refs.rs`, and every value that the orderings let
//! them read: loom runs each test once for each of these. So a step whose ordering is too weak fails here,
//! though no processor at hand may ever show it.
//!
//! The file is compiled once more, over loom's atomics, and counts the owners of a [`Body`] that behaves as a
//! block does: who is not alone copies before an edit, and the last owner frees. Loom refuses two accesses to
//! the content of which none comes before the other and one writes; a body that is read, edited or freed
//! after its end is found by what freeing leaves in it.

mod atomic {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering, fence};
}
#[path = "refs.rs"]
#[expect(clippy::duplicate_mod, reason = "once over the processor's atomics, once over loom's")]
#[allow(dead_code, reason = "the steps are gone through, not the questions")]
mod refs;

use loom::cell::UnsafeCell;
use loom::thread;
use refs::{REFS_MAX, Refs};
use std::sync::Arc;

/// What freeing leaves.
const FREED: u32 = u32::MAX;

struct Body {
    refs: Refs,
    content: UnsafeCell<u32>,
    /// A node owns what lies below it.
    child: UnsafeCell<Option<Owner>>,
}

// SAFETY: loom lets one thread go on at a time, and looks at each access to the two cells.
unsafe impl Send for Body {}
// SAFETY: as above.
unsafe impl Sync for Body {}

/// A handle. The `Arc` only keeps the memory until the end of the run, and loom knows nothing of it: no
/// access is ordered by it.
struct Owner(Arc<Body>);

impl Owner {
    fn new(content: u32, child: Option<Owner>) -> Owner {
        let (content, child) = (UnsafeCell::new(content), UnsafeCell::new(child));
        Owner(Arc::new(Body { refs: Refs::one(), content, child }))
    }

    fn another(&self) -> Owner {
        assert!(self.0.refs.retain(), "there is room for more owners");
        Owner(self.0.clone())
    }

    fn read(&self) -> u32 {
        // SAFETY: loom refuses a write at the same time.
        let content = self.0.content.with(|content| unsafe { *content });
        assert_ne!(content, FREED, "read after its end");
        content
    }

    fn write(&mut self, new: u32) {
        self.unshare();
        self.put(new);
    }

    /// As a node is unshared: the copy owns the same child.
    fn unshare(&mut self) {
        if !self.0.refs.is_sole() {
            // SAFETY: loom refuses a write at the same time.
            let child = self.0.child.with(|child| unsafe { &*child }.as_ref().map(Owner::another));
            *self = Owner::new(self.read(), child);
        }
    }

    /// Writes to the child, as an edit of a leaf does: the node above it is unshared first.
    fn write_below(&mut self, new: u32) {
        self.unshare();
        // SAFETY: loom refuses any other access at the same time.
        self.0.child.with_mut(|child| unsafe { &mut *child }.as_mut().expect("a node").write(new));
    }

    fn read_below(&self) -> u32 {
        // SAFETY: loom refuses a write at the same time.
        self.0.child.with(|child| unsafe { &*child }.as_ref().expect("a node").read())
    }

    fn put(&self, new: u32) {
        // SAFETY: loom refuses any other access at the same time.
        let old = self.0.content.with_mut(|content| unsafe { content.replace(new) });
        assert_ne!(old, FREED, "changed after its end");
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // One failure is enough to be told of.
        if !std::thread::panicking() && self.0.refs.release() {
            self.put(FREED);
            // SAFETY: loom refuses any other access at the same time.
            drop(self.0.child.with_mut(|child| unsafe { &mut *child }.take()));
        }
    }
}

#[test]
fn the_last_owner_to_go_frees_after_all_others_have_read() {
    loom::model(|| {
        let first = Owner::new(7, None);
        let body = first.0.clone();
        let others = [first.another(), first.another()];
        let threads = others.map(|owner| thread::spawn(move || assert_eq!(owner.read(), 7)));
        assert_eq!(first.read(), 7);
        drop(first);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // SAFETY: all threads have ended.
        assert_eq!(body.content.with(|content| unsafe { *content }), FREED);
    });
}

#[test]
fn an_edit_is_seen_by_its_owner_alone() {
    loom::model(|| {
        let mut first = Owner::new(7, None);
        let second = first.another();
        let reader = thread::spawn(move || assert_eq!(second.read(), 7));
        first.write(8);
        assert_eq!(first.read(), 8);
        reader.join().unwrap();
        first.write(9);
        assert_eq!(first.read(), 9);
    });
}

#[test]
fn two_owners_edit_and_neither_sees_the_other() {
    loom::model(|| {
        let mut first = Owner::new(7, None);
        let mut second = first.another();
        let other = thread::spawn(move || {
            assert_eq!(second.read(), 7);
            second.write(8);
            assert_eq!(second.read(), 8);
        });
        first.write(9);
        assert_eq!(first.read(), 9);
        other.join().unwrap();
    });
}

#[test]
fn owners_come_on_one_thread_while_another_edits() {
    loom::model(|| {
        let first = Owner::new(7, None);
        let mut second = first.another();
        let other = thread::spawn(move || {
            let third = first.another();
            drop(first);
            assert_eq!(third.read(), 7);
        });
        second.write(8);
        assert_eq!(second.read(), 8);
        other.join().unwrap();
    });
}

#[test]
fn who_is_alone_with_a_node_knows_who_shares_what_lies_below() {
    loom::model(|| {
        let mut first = Owner::new(0, Some(Owner::new(7, None)));
        let mut second = first.another();
        let other = thread::spawn(move || {
            second.write_below(8);
            assert_eq!(second.read_below(), 8);
        });
        first.write_below(9);
        assert_eq!(first.read_below(), 9);
        other.join().unwrap();
    });
}

#[test]
fn no_more_owners_come_than_can_be_counted_and_none_is_lost() {
    loom::model(|| {
        let first = Owner::new(7, None);
        // Room for one more.
        first.0.refs.pretend(REFS_MAX - 2);
        let body = first.0.clone();
        let come = move |body: Arc<Body>| {
            let is_counted = body.refs.retain();
            if is_counted {
                drop(Owner(body));
            }
            is_counted
        };
        let threads = [body.clone(), body.clone()].map(|body| thread::spawn(move || come(body)));
        let counted = threads.map(|thread| thread.join().unwrap());
        assert!(counted[0] || counted[1], "the room was for one");
        assert!(come(body), "there is room again");
        first.0.refs.pretend(0_u32.wrapping_sub(REFS_MAX - 2));
        assert!(first.0.refs.is_sole());
    });
}
