//! Replies of many elements: a command writes the first of them, and leaves the others to be written as the
//! client reads.
//!
//! What is left is read from a snapshot of the value (`store::Snapshot`), so the reply shows the value at the
//! command's moment, its shard is free meanwhile, and memory holds one piece of the reply
//! (`resp::Remainder`). A snapshot is one more owner of leaves and nodes, so whoever writes meanwhile copies
//! one leaf and the nodes above it, whatever the value's size. That is not so of strings, which lie in one
//! block: they are written at once.
//!
//! A reply that is complete before then takes no snapshot. It pays a count and a comparison for each of its
//! elements.
use crate::Call;
use resp::{Enough, Remainder, Reply};
use std::ops::ControlFlow;
use store::{Key, Snapshot, ValueRef};

/// A command writes so many elements itself, which takes some hundred microseconds. Builds with checks stop
/// much sooner, so that every test of these commands also tests the rest of the reply.
const FIRST_ELEMENTS: u64 = if cfg!(debug_assertions) { 20 } else { 16_384 };
const FIRST_BYTES: usize = if cfg!(debug_assertions) { 600 } else { 256 << 10 };

/// [`Enough`] counts elements, each of which may take a search. So many steps of a walk take as long as one
/// search.
const STEPS_AN_ELEMENT: u64 = if cfg!(debug_assertions) { 1 } else { 32 };

/// How much is written before a walk pauses.
pub(crate) struct Share {
    elements: u64,
    left: u64,
    /// How many bytes the reply then has.
    bytes: usize,
}

impl Share {
    /// What a command writes itself of so many elements.
    pub(crate) fn first(elements: u64, reply: &Reply) -> Share {
        // A reply that goes on as the client reads must not run into `client-output-buffer-limit`: its
        // beginning takes half of what is left of it at most.
        let bytes = FIRST_BYTES.min(reply.spare_bytes() / 2);
        Share::new(elements.min(FIRST_ELEMENTS), reply.out.len() + bytes)
    }

    fn new(elements: u64, bytes: usize) -> Share {
        Share { elements, left: elements, bytes }
    }

    /// To be called after each element that was written: `Break` if no other may be.
    #[inline]
    pub(crate) fn wrote(&mut self, reply: &Reply) -> ControlFlow<()> {
        self.left -= 1;
        if self.left == 0 || reply.out.len() >= self.bytes {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// How many elements may be written.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// How many elements have been written.
    pub(crate) fn written(&self) -> u64 {
        self.elements - self.left
    }
}

/// Leaves `left` elements for later. `step` writes a share of them, and goes on where it stopped.
pub(crate) fn leave<F>(call: &mut Call<'_, '_>, key: &Key<'_>, left: u64, step: F)
where
    F: FnMut(ValueRef<'_>, &mut Reply, &mut Share) + Send + 'static,
{
    leave_with(call, key, (left, 0), step);
}

/// As [`leave`], where `step` has allocated `held_bytes`.
pub(crate) fn leave_with<F>(call: &mut Call<'_, '_>, key: &Key<'_>, (left, held_bytes): (u64, usize), step: F)
where
    F: FnMut(ValueRef<'_>, &mut Reply, &mut Share) + Send + 'static,
{
    if left == 0 || call.reply.is_full() {
        return;
    }
    if let Some(value) = call.view.snapshot(key) {
        call.reply.leave(Box::new(Rest { value, left, held_bytes, step }));
    }
}

struct Rest<F> {
    value: Snapshot,
    left: u64,
    held_bytes: usize,
    step: F,
}

impl<F> Remainder for Rest<F>
where
    F: FnMut(ValueRef<'_>, &mut Reply, &mut Share) + Send,
{
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        let elements = enough.elements.max(1).saturating_mul(STEPS_AN_ELEMENT);
        let mut share = Share::new(self.left.min(elements), enough.bytes);
        (self.step)(self.value.value(), reply, &mut share);
        let written = share.written();
        assert!(written > 0, "{} elements are left of a value that does not change", self.left);
        self.left -= written;
        if self.left == 0 || reply.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.held_bytes + self.value.bytes()
    }

    fn burden_bytes(&self) -> u64 {
        self.value.burden_bytes()
    }
}
