//! How much memory is in use: an allocator that counts what it hands out and passes every request on.
//!
//! Counting must cost next to nothing, so each thread has a counter of its own, on its own cache line, and
//! adds to it with a plain load and store. There is room for [`OWN`] threads; those that come later share one
//! counter and pay for a locked addition. A block may be freed by another thread than the one that allocated
//! it, so a single counter may be negative; only their sum means anything.
//!
//! What is counted is what a block costs, not what was asked for: its head and the grain of its size.
//!
//! While somebody holds all data as it was at one moment (a [`Holder`]: a snapshot), memory is in use that
//! nobody else needs any more: the old nodes of which commands have made copies, and values that were
//! deleted. How much that is, is known from both ends: it grows by what is copied, and by what should have
//! become free when it was dropped and did not; it falls by what becomes free when the holder lets go. It is
//! an estimate (two holders may hold the same; a copied value may have two owners that live), and none where
//! nobody holds.
use crate::memory::arena;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Holds all data as it was at one moment, as long as it lives.
#[derive(Debug)]
pub struct Holder(());

static HOLDERS: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicI64 = AtomicI64::new(0);

impl Holder {
    /// Begins to hold.
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Holder {
        HOLDERS.fetch_add(1, Relaxed);
        Holder(())
    }

    /// Runs `free`, by which the holder lets go of some of what it holds.
    pub fn letting_go<R>(free: impl FnOnce() -> R) -> R {
        let before = thread_bytes();
        let result = free();
        HELD.fetch_sub((before - thread_bytes()).max(0), Relaxed);
        result
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if HOLDERS.fetch_sub(1, Relaxed) == 1 {
            HELD.store(0, Relaxed);
        }
    }
}

/// Whether anybody holds all data.
#[inline]
pub fn has_holders() -> bool {
    HOLDERS.load(Relaxed) > 0
}

/// About how many bytes are in use only because somebody holds all data.
#[inline]
pub fn held_bytes() -> u64 {
    HELD.load(Relaxed).max(0) as u64
}

/// Drops what takes about so many bytes. What does not become free is held by somebody.
pub fn drop_of<T>(bytes: u64, value: T) {
    if !has_holders() {
        return drop(value);
    }
    let before = thread_bytes();
    drop(value);
    let (bytes, freed) = (bytes as i64, before - thread_bytes());
    // Less than that is the grain of the estimate.
    if freed < bytes / 2 {
        add_held(bytes - freed.max(0));
    }
}

/// So many bytes more are only held, by what this thread has done.
fn add_held(bytes: i64) {
    HELD.fetch_add(bytes, Relaxed);
    add_to(&ADDED, bytes);
}

/// Threads with a counter of their own.
const OWN: usize = 127;

#[repr(align(128))]
struct Slot(AtomicI64);

type Slots = [Slot; OWN + 1];

static SLOTS: Slots = [const { Slot(AtomicI64::new(0)) }; OWN + 1];
/// What each thread has added to [`HELD`] since the process began.
static ADDED: Slots = [const { Slot(AtomicI64::new(0)) }; OWN + 1];
/// How many threads have been dealt a counter.
static DEALT: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static STARTUP: AtomicUsize = AtomicUsize::new(0);
static COPIED: AtomicU64 = AtomicU64::new(0);

/// Counts what `A` hands out. Declare it once, as the global allocator.
pub struct Counted<A>(pub A);

/// Bytes in use now, by everything in the process that allocates through [`Counted`]; 0 where nothing does.
pub fn used_bytes() -> usize {
    let dealt = DEALT.load(Relaxed).min(OWN + 1);
    let used = SLOTS[..dealt].iter().map(|s| s.0.load(Relaxed)).sum::<i64>().max(0) as usize;
    PEAK.fetch_max(used, Relaxed);
    used
}

/// What this thread has allocated less what it has freed: alone it means nothing, but its change over some
/// work is what that work added to [`used_bytes`]. Costs one load.
#[inline]
pub fn thread_bytes() -> i64 {
    SLOTS[own_slot()].0.load(Relaxed)
}

/// The same less what only holders of all data have by this thread's doing: its change over some work is what
/// that work added to what is needed, whatever holders let go meanwhile.
pub fn thread_needed_bytes() -> i64 {
    thread_bytes() - ADDED[own_slot()].0.load(Relaxed)
}

/// How many bytes were allocated, since the process began, for copies of what a snapshot or another clone
/// still holds: the price of snapshots is by how much it grows while they last.
pub fn copied_bytes() -> u64 {
    COPIED.load(Relaxed)
}

/// Runs `copy`, which copies what somebody else holds too, and counts what that allocates.
#[cold]
pub(crate) fn count_copied<R>(copy: impl FnOnce() -> R) -> R {
    let before = thread_bytes();
    let copied = copy();
    let bytes = (thread_bytes() - before).max(0);
    COPIED.fetch_add(bytes as u64, Relaxed);
    if has_holders() {
        add_held(bytes);
    }
    copied
}

/// The most that [`used_bytes`] ever returned. It is looked up only when somebody asks, so a peak between two
/// calls is missed.
pub fn peak_bytes() -> usize {
    used_bytes();
    PEAK.load(Relaxed)
}

/// To be called when the server is ready: what is in use then is what an empty server needs.
pub fn note_startup() {
    STARTUP.store(used_bytes(), Relaxed);
}

/// What was in use at [`note_startup`].
pub fn startup_bytes() -> usize {
    STARTUP.load(Relaxed)
}

/// What a block for `layout` costs. A function of the layout alone, so that freeing takes back what
/// allocating added.
fn cost(layout: Layout) -> i64 {
    arena::cost(layout) as i64
}

/// The number of this thread's counter.
fn own_slot() -> usize {
    // A cell without a destructor: usable while a thread starts and ends, and never allocates.
    thread_local!(static SLOT: Cell<usize> = const { Cell::new(usize::MAX) });
    let mut index = SLOT.get();
    if index == usize::MAX {
        index = DEALT.fetch_add(1, Relaxed).min(OWN);
        SLOT.set(index);
    }
    index
}

#[inline]
fn add(bytes: i64) {
    add_to(&SLOTS, bytes);
}

/// Adds to this thread's counter of these.
#[inline]
fn add_to(slots: &Slots, bytes: i64) {
    let index = own_slot();
    let counter = &slots[index].0;
    if index < OWN {
        counter.store(counter.load(Relaxed).wrapping_add(bytes), Relaxed);
    } else {
        counter.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every request is passed on unchanged to an allocator that keeps the contract; counting allocates
// nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let block = unsafe { self.0.alloc(layout) };
        if !block.is_null() {
            add(cost(layout));
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let block = unsafe { self.0.alloc_zeroed(layout) };
        if !block.is_null() {
            add(cost(layout));
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        add(-cost(layout));
        // SAFETY: the caller's promise is passed on.
        unsafe { self.0.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let moved = unsafe { self.0.realloc(block, layout, size) };
        if !moved.is_null() {
            // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow.
            let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
            add(cost(wanted) - cost(layout));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::System;

    /// All in one test: the counters are the process's.
    #[test]
    fn what_is_freed_anywhere_is_taken_off_again() {
        let heap = Counted(System);
        let before = used_bytes();
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        // SAFETY: each block is freed once, with the layout that it has by then.
        let block = unsafe { heap.alloc(layout(1000)) };
        assert!(used_bytes() >= before + 1000);
        // SAFETY: as above.
        let block = unsafe { heap.realloc(block, layout(1000), 100_000) } as usize;
        assert!(used_bytes() >= before + 100_000);
        std::thread::scope(|s| {
            // SAFETY: as above.
            s.spawn(|| unsafe { Counted(System).dealloc(block as *mut u8, layout(100_000)) });
        });
        assert_eq!(used_bytes(), before);
        let mine = thread_bytes();
        // SAFETY: as above.
        unsafe { heap.dealloc(heap.alloc(layout(5000)), layout(5000)) };
        assert_eq!(thread_bytes(), mine);
        assert!(peak_bytes() >= before + 100_000);
        std::thread::scope(|s| {
            for _ in 0..OWN + 20 {
                // SAFETY: as above.
                s.spawn(|| unsafe { Counted(System).dealloc(Counted(System).alloc(layout(64)), layout(64)) });
            }
        });
        assert_eq!(used_bytes(), before);
    }
}
