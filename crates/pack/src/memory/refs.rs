//! How many owners a node, a leaf or a value outside a leaf has: one counter in front of each, and the only
//! protocol by which owners come, go and find out that they are alone. A clone of a tree is one
//! [`Refs::retain`].
//!
//! | step | taken by | ordering |
//! |---|---|---|
//! | [`retain`](Refs::retain) | an owner | relaxed |
//! | [`release`](Refs::release) | the owner that goes | release; for the last, an acquire fence behind it |
//! | [`is_sole`](Refs::is_sole) | an owner | acquire |
//!
//! `retain` orders nothing: the new owner has its pointer from the old one, and what hands it to another
//! thread (a lock, a queue) orders the two. `release` says that all this owner read and wrote comes before
//! whatever is done by one who sees the smaller count. Two look at it: the last owner, whose fence puts the
//! end of the object behind everything that the others did; and an owner that finds itself alone, whose edit
//! in place comes after all that former owners read.
//!
//! Only an owner can make another. So one that finds itself alone, while nobody else can borrow its handle,
//! stays alone, and may edit or free what it owns without a further look at the counter.
//!
//! A count never wraps: beyond [`REFS_MAX`] owners `retain` refuses, and its caller makes a copy. It adds
//! first and takes back what was too much; for that moment the other half of the range is there, one for each
//! thread that does it at the same time.
//!
//! `refs_interleavings.rs` goes through every order of these steps on two and three threads, and every value
//! that the orderings let a thread read (loom). On the path of every write: no allocation, no lock.
use super::atomic::{AtomicU32, Ordering, fence};

/// As many owners as can be counted.
pub(crate) const REFS_MAX: u32 = u32::MAX / 2;

/// A count of owners. Whoever makes one is the first.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Refs(AtomicU32);

impl Refs {
    /// One owner: the caller.
    #[inline]
    pub(crate) fn one() -> Refs {
        Refs(AtomicU32::new(1))
    }

    /// Counts one owner more; false where there are as many as can be counted, and then nothing has changed.
    #[inline]
    #[must_use]
    pub(crate) fn retain(&self) -> bool {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        debug_assert!(before > 0, "who makes another owner is one");
        if before < REFS_MAX {
            return true;
        }
        self.0.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Counts one owner less; true if it was the last, who then frees what was owned.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        let before = self.0.fetch_sub(1, Ordering::Release);
        if before > 1 {
            return false;
        }
        assert!(before == 1, "an owner goes that was never counted");
        fence(Ordering::Acquire);
        true
    }

    /// Whether there is no owner but the caller. The answer lasts while nobody else can borrow the caller's
    /// handle (`&mut`); for others it is a hint.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        self.0.load(Ordering::Acquire) == 1
    }

    /// Whether there is one owner beside the caller. The answer lasts while both are the caller's to say.
    #[inline]
    pub(crate) fn are_two(&self) -> bool {
        self.0.load(Ordering::Acquire) == 2
    }

    /// Counts so many owners more, or (a negative number, wrapped) no longer.
    #[cfg(test)]
    pub(crate) fn pretend(&self, more: u32) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}
