//! The arena: where leaves live. A best-fit allocator with coalescing for blocks of 128 bytes to 1 MB, and
//! for smaller ones whose owner asks for them ([`SMALL_ALIGN`]). A general allocator keeps what else is
//! smaller, but for what the interpreter of scripts asks for (`passing.rs`); what is larger has a
//! mapping of its own (`mappings.rs`).
//!
//! # Why not the general allocator alone
//!
//! A leaf grows by a few dozen bytes at a time and is split when it is full, and because hashes are uniform
//! the leaves of a keyspace do so nearly in step. A size-class allocator then pays twice. It rounds each leaf
//! up to its class (8% of the bytes with four classes a doubling), and when the leaves move on to the next
//! class the slabs of the last one stay behind, sparsely filled. `arena_bytes` in bench/ grows a million
//! entries of 84 bytes that way: their leaves hold 84.5 bytes an entry, mimalloc and jemalloc take 112 and
//! 121, this arena 88.6. For entries of 21 bytes the four figures are 21.5, 29.0, 30.0 and 21.7.
//!
//! Here free neighbours merge at once, whatever their sizes, so that what one generation of leaves leaves
//! behind serves the next, and a request takes the smallest hole that fits, to the grain of 16 bytes.
//!
//! # Layout
//!
//! Memory comes from the system in extents of 4 MB (a build with checks has tiny ones, `checks.rs`), aligned
//! to their size, so that a block finds its extent by masking its address. An extent belongs to one of 16
//! stripes; each has its own lock, and a thread allocates from the stripe that it was dealt (`stripes.rs`),
//! so the lock is contended only when another thread frees. Where a block lies is told by its address; how
//! long it is by its header (see `stripe.rs` for the bytes). Sizes decide who serves: `GlobalAlloc` hands the
//! layout back on free, so no look-up is needed to tell the arena's blocks from the others.
//!
//! # Giving memory back
//!
//! [`purge`] unmaps extents that are free as a whole, but for one a stripe, and gives the pages of other free
//! blocks of 16 KB and more back. The server calls it from its freeing thread, some at a time: unmapping an
//! extent takes about a millisecond, for which neither the thread that happens to free its last block nor one
//! that waits for the stripe's lock should have to pay. A block with a mapping of its own goes back
//! some calls after it was freed, and grows without a copy.
//!
//! That helps where neighbours went together. After many deletions at random every extent still holds
//! something, and the blocks themselves must move: `evacuation.rs` chooses extents and closes them,
//! `closing.rs` says what that means for their blocks, `directory.rs` knows how full each is.
//!
//! The other way round, extents that are full become huge pages (`huge.rs`).
//!
//! Buffers are served as leaves are: a general allocator kept 10 to 30 MB of them after clients had loaded
//! lists by long pipelines, a third of the lists' own bytes.

mod bins;
mod checks;
mod closing;
mod directory;
mod evacuation;
mod extent;
mod heads;
mod huge;
mod lock;
#[cfg(test)]
mod machine_tests;
mod mappings;
mod passing;
mod stripe;
mod stripes;

pub use evacuation::{
    Evacuation, Moves, Progress, Stubborn, beside, is_evacuating, relocate_box, relocate_vec,
};
pub(crate) use heads::HEAD;
pub use huge::{huge_bytes, is_unite_due, unite};
use mappings::MAPPINGS;
use std::alloc::{GlobalAlloc, Layout};
use stripe::Stripe;
pub use stripe::{StripeStats, Usage};
use stripes::{STRIPE, own_stripe};

/// The smallest and largest request that a stripe serves.
pub(crate) const SERVED_MIN: usize = 128;
const SERVED_MAX: usize = extent::EXTENT / 4;

/// Whoever wants a small block from a stripe, so that it can move, asks for this alignment, since hardly
/// anybody else does. The block is aligned to 16 all the same; so are those of the C library, which serves
/// where the arena is not installed. Miri's are aligned as they were asked for.
pub const SMALL_ALIGN: usize = if cfg!(miri) { stripe::ALIGN } else { 2 };

/// The bytes that a request of `size` really gets from a stripe: asking for this much costs no more.
pub const fn usable_bytes(size: usize) -> usize {
    if size > SERVED_MAX { size } else { stripe::block_bytes(size) - heads::HEAD }
}

/// What a block of `size` costs in a stripe, its header included.
pub const fn footprint_bytes(size: usize) -> usize {
    if size > SERVED_MAX { size } else { stripe::block_bytes(size) }
}

/// What a request costs, whoever serves it. The C library's blocks have the grain and the head of the
/// arena's.
pub(crate) const fn cost(layout: Layout) -> usize {
    match tier(layout) {
        Tier::Stripe => footprint_bytes(layout.size()),
        Tier::Mapping => layout.size().next_multiple_of(extent::PAGE),
        Tier::General | Tier::Passing => stripe::block_bytes(layout.size()),
    }
}

/// Sums over all stripes.
pub fn usage() -> Usage {
    STRIPE.iter().map(Stripe::usage).fold(Usage::default(), |sum, u| Usage {
        mapped_bytes: sum.mapped_bytes + u.mapped_bytes,
        resident_bytes: sum.resident_bytes + u.resident_bytes,
        used_bytes: sum.used_bytes + u.used_bytes,
        hole_bytes: sum.hole_bytes + u.hole_bytes,
    })
}

/// Each stripe in turn. Nothing is allocated in a stripe while it is looked at.
pub fn stripes() -> impl Iterator<Item = StripeStats> {
    STRIPE.iter().map(Stripe::stats)
}

/// Whether [`purge`] may find something to do.
pub fn is_purge_due() -> bool {
    MAPPINGS.is_purge_due() || STRIPE.iter().any(Stripe::is_purge_due)
}

/// Gives pages of free blocks back to the system, at most `budget` blocks a stripe, so that a caller with
/// work to do is not held up. Returns how many blocks gave pages.
pub fn purge(budget: usize) -> usize {
    MAPPINGS.purge(budget) + STRIPE.iter().map(|s| s.purge(budget)).sum::<usize>()
}

/// Gives back what [`purge`] would keep for some calls more, and does what [`trim`] does.
pub fn purge_kept() {
    MAPPINGS.purge_all();
    give_up_passing();
    trim();
}

/// Gives back to the C library the small blocks that this thread keeps for its interpreter: some 20,000 at
/// most.
pub fn give_up_passing() {
    passing::give_up();
}

/// Gives back the pages of small blocks that were freed to the C library. That takes a while where there are
/// many.
pub fn trim() {
    // SAFETY: it looks at nothing but the library's own free blocks, under its locks.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Memory of a stripe: this thread's own, but while it panics with that one's lock in its hands, whichever
/// has its lock free.
#[inline]
fn serve(size: usize) -> *mut u8 {
    let block = own_stripe().alloc(size);
    if block.is_null() { serve_panic(size) } else { block }
}

#[cold]
fn serve_panic(size: usize) -> *mut u8 {
    if !std::thread::panicking() {
        return std::ptr::null_mut();
    }
    STRIPE
        .iter()
        .map(|stripe| stripe.alloc(size))
        .find(|block| !block.is_null())
        .unwrap_or(std::ptr::null_mut())
}

/// Panics while the lock of this thread's stripe is held, as a broken heap does: whether that is reported can
/// be tried with it.
pub fn panic_under_lock() -> ! {
    let _inner = own_stripe().lock();
    // The message is longer than what the general allocator serves, so that writing it takes memory of a
    // stripe.
    panic!("{:0200}: the arena was told to panic under its lock", 0)
}

/// The allocator: the arena for the sizes that leaves have, `A` for the rest.
pub struct Arena<A>(pub A);

/// Who serves a request: a function of its layout, which is handed back on free.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    General,
    /// See `passing.rs`.
    Passing,
    Stripe,
    Mapping,
}

const fn tier(layout: Layout) -> Tier {
    match layout.size() {
        ..SERVED_MIN if layout.align() == SMALL_ALIGN => Tier::Stripe,
        ..=passing::SIZE_MAX if layout.align() == passing::ALIGN => Tier::Passing,
        SERVED_MIN..=SERVED_MAX if layout.align() <= stripe::ALIGN => Tier::Stripe,
        size if size > SERVED_MAX && layout.align() <= extent::PAGE => Tier::Mapping,
        _ => Tier::General,
    }
}

// SAFETY: blocks are disjoint, of at least the layout's size and alignment (`tier` bounds what is served),
// and stay where they are until freed or resized; requests that are not served go to an allocator that
// promises the same, and the layout, which callers must hand back unchanged, tells on free and resize who
// served it.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Arena<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match tier(layout) {
            Tier::Stripe => serve(layout.size()),
            Tier::Passing => passing::alloc(layout.size()),
            Tier::Mapping => MAPPINGS.alloc(layout.size()),
            // SAFETY: the caller's promise is passed on.
            Tier::General => unsafe { self.0.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match tier(layout) {
            Tier::Stripe | Tier::Passing => {
                // SAFETY: the caller's promise is passed on.
                let block = unsafe { self.alloc(layout) };
                if !block.is_null() {
                    // SAFETY: the block is ours and at least this long.
                    unsafe { block.write_bytes(0, layout.size()) };
                }
                block
            }
            Tier::Mapping => MAPPINGS.alloc_zeroed(layout.size()),
            // SAFETY: the caller's promise is passed on.
            Tier::General => unsafe { self.0.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's block came from `alloc` with this layout, so from this tier.
        unsafe {
            match tier(layout) {
                Tier::Stripe => stripe::owner(block).free(block),
                Tier::Passing => passing::free(block, layout.size()),
                Tier::Mapping => MAPPINGS.free(block, layout.size()),
                Tier::General => self.0.dealloc(block, layout),
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `size`, rounded up to the alignment, does not overflow.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (tier(layout), tier(wanted)) {
            // SAFETY: the block came from a stripe.
            (Tier::Stripe, Tier::Stripe) if unsafe { stripe::owner(block).resize(block, size) } => block,
            (Tier::Passing, Tier::Passing) if passing::is_same(layout.size(), size) => block,
            // SAFETY: the block is a mapping of the layout's size.
            (Tier::Mapping, Tier::Mapping) => unsafe { MAPPINGS.resize(block, layout.size(), size) },
            // SAFETY: the caller's promise is passed on.
            (Tier::General, Tier::General) => unsafe { self.0.realloc(block, layout, size) },
            // SAFETY: `block` is live with `layout`, `wanted` is a valid layout.
            _ => unsafe { self.moved(block, layout, wanted) },
        }
    }
}

impl<A: GlobalAlloc> Arena<A> {
    /// # Safety
    /// `block` is live and was allocated with `from`.
    unsafe fn moved(&self, block: *mut u8, from: Layout, to: Layout) -> *mut u8 {
        // SAFETY: `to` has a size, as every layout passed to an allocator.
        let target = unsafe { self.alloc(to) };
        if !target.is_null() {
            // SAFETY: both are live and disjoint, and at least as long as the shorter.
            unsafe { target.copy_from_nonoverlapping(block, from.size().min(to.size())) };
            // SAFETY: `block` is live with `from` and not used again.
            unsafe { self.dealloc(block, from) };
        }
        target
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;
    use std::alloc::System;

    /// A block that knows what it must contain.
    struct Live {
        block: *mut u8,
        layout: Layout,
        fill: u8,
    }

    fn check(live: &Live) {
        // SAFETY: the block is live and this long.
        let bytes = unsafe { std::slice::from_raw_parts(live.block, live.layout.size()) };
        assert!(bytes.iter().all(|b| *b == live.fill), "a block's bytes changed under it");
        assert_eq!(live.block as usize % live.layout.align(), 0);
    }

    fn paint(live: &Live) {
        // SAFETY: the block is live and this long.
        unsafe { live.block.write_bytes(live.fill, live.layout.size()) };
    }

    fn churn(seed: u64, steps: usize) {
        let arena = Arena(System);
        let mut random = Random::new(seed);
        let mut live: Vec<Live> = Vec::new();
        for _ in 0..steps {
            let limit = match random.below(100) {
                0 => 3_000_000,
                1..=20 => 200,
                21..=70 => 2_000,
                _ => 40_000,
            };
            let size = 1 + random.below(limit) as usize;
            let layout = Layout::from_size_align(size, 8).expect("small");
            match random.below(5) {
                0 | 1 => {
                    // SAFETY: the layout has a size.
                    let block = unsafe { arena.alloc(layout) };
                    live.push(Live { block, layout, fill: random.below(256) as u8 });
                    paint(&live[live.len() - 1]);
                }
                2 if !live.is_empty() => {
                    let gone = live.swap_remove(random.below(live.len() as u64) as usize);
                    check(&gone);
                    // SAFETY: allocated above with this layout.
                    unsafe { arena.dealloc(gone.block, gone.layout) };
                }
                _ if !live.is_empty() => {
                    let index = random.below(live.len() as u64) as usize;
                    let item = &mut live[index];
                    check(item);
                    let kept = item.layout.size().min(size);
                    // SAFETY: allocated above with this layout; `size` is not zero.
                    item.block = unsafe { arena.realloc(item.block, item.layout, size) };
                    item.layout = Layout::from_size_align(kept, 8).expect("small");
                    check(item);
                    item.layout = layout;
                    paint(item);
                }
                _ => {}
            }
            if random.below(500) == 0 {
                purge(8);
            }
        }
        for item in live {
            check(&item);
            // SAFETY: allocated above with this layout.
            unsafe { arena.dealloc(item.block, item.layout) };
        }
    }

    #[test]
    fn blocks_keep_their_bytes_through_any_sequence_of_edits() {
        for seed in crate::model::seeds(20) {
            churn(seed, 4_000);
        }
        STRIPE.iter().for_each(Stripe::check);
    }

    #[test]
    fn threads_free_what_others_allocated() {
        let arena = Arena(System);
        let layout = Layout::from_size_align(1_000, 8).expect("small");
        let (send, receive) = std::sync::mpsc::channel::<usize>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for _ in 0..5_000 {
                    // SAFETY: the layout has a size.
                    send.send(unsafe { Arena(System).alloc(layout) } as usize).expect("the receiver waits");
                }
            });
            for block in receive {
                // SAFETY: allocated by the other thread with this layout, and freed once.
                unsafe { arena.dealloc(block as *mut u8, layout) };
            }
        });
        STRIPE.iter().for_each(Stripe::check);
    }

    /// Four blocks of 1,000 bytes of a stripe, of which the first and the third are free.
    fn holes() -> (&'static Stripe, [*mut u8; 4]) {
        let stripe = Stripe::private();
        let blocks = [(); 4].map(|()| stripe.alloc(1_000));
        // SAFETY: they came from this stripe; what tests write to them afterwards is what they are about.
        [0, 2].into_iter().for_each(|at| unsafe { stripe.free(blocks[at]) });
        (stripe, blocks)
    }

    #[test]
    #[should_panic(expected = "the heap is broken: a free block's next one")]
    fn a_link_that_was_written_over_is_not_followed() {
        let ((stripe, blocks), mut forged) = (holes(), [0_u64; 4]);
        // SAFETY: the block is the stripe's. It was freed last, so it is first in its bin.
        unsafe { blocks[2].cast::<*mut u64>().write(forged.as_mut_ptr()) };
        stripe.alloc(1_000);
    }

    #[test]
    #[should_panic(expected = "the heap is broken: a free block's size or links")]
    fn a_block_whose_size_was_written_over_is_not_taken_out_of_another_bin() {
        let (stripe, blocks) = holes();
        // SAFETY: the block is the stripe's; its head lies before it.
        unsafe { *blocks[2].cast::<u64>().sub(1) += 16 };
        stripe.alloc(1_000);
    }

    #[test]
    #[should_panic(expected = "the heap is broken: a free block's head and foot")]
    fn a_foot_that_was_written_over_is_not_followed() {
        let (stripe, blocks) = holes();
        // SAFETY: the block before the last is free, so its foot lies before the last one's head.
        unsafe {
            *blocks[3].cast::<u64>().sub(2) = 64;
            stripe.free(blocks[3]);
        }
    }

    #[test]
    #[should_panic(expected = "the heap is broken: the head of a block that is freed")]
    fn a_block_is_not_freed_twice() {
        let (stripe, blocks) = holes();
        // SAFETY: it is not, which is what is tested: the heap stays as it is.
        unsafe { stripe.free(blocks[2]) };
    }

    #[test]
    fn a_usable_size_asks_for_itself() {
        for size in (SERVED_MIN..SERVED_MAX - 16).step_by(7) {
            assert!(usable_bytes(size) >= size && usable_bytes(size) < size + 16);
            assert_eq!(usable_bytes(usable_bytes(size)), usable_bytes(size));
        }
    }

    #[test]
    fn a_purge_unmaps_the_empty_extents_but_one() {
        let stripe: &'static Stripe = Stripe::private();
        let blocks: Vec<*mut u8> = (0..64).map(|_| stripe.alloc(extent::EXTENT / 14)).collect();
        let mapped_bytes = stripe.usage().mapped_bytes;
        assert!(mapped_bytes >= 4 * extent::EXTENT);
        for block in blocks {
            // SAFETY: it came from this stripe and is not used again.
            unsafe { stripe.free(block) };
        }
        assert_eq!(stripe.usage().mapped_bytes, mapped_bytes, "whoever frees does not wait for the system");
        let stats = stripe.stats();
        assert_eq!((stats.usage.used_bytes, stats.given_back_bytes), (0, 0));
        assert!(stats.free_bytes <= mapped_bytes && stats.free_bytes > mapped_bytes - 4096, "{stats:?}");
        assert_eq!(stats.free_blocks, mapped_bytes / extent::EXTENT);
        assert!(stripe.is_purge_due());
        while stripe.purge(2) > 0 {
            stripe.check();
        }
        assert_eq!(stripe.usage().mapped_bytes, extent::EXTENT);
        assert_eq!(stripe.stats().given_back_bytes, stripe.stats().free_bytes);
        assert!(!stripe.is_purge_due());
    }
}
