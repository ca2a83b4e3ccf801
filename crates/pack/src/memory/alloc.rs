//! Where blocks and nodes get their memory: the one place that knows how an allocation is rounded.
//!
//! Leaves are allocated at nearly their content's size, so rounding is the main loss of the whole tree. The
//! arena (`arena/`) serves up to 1 MB, exact to 16 bytes; a node grows by a fraction of its size, so that not
//! every insert moves it. Whoever grows a block asks [`rounded`] first, and then uses all that it gets.
//!
//! What is smaller than the arena's usual blocks asks for it by its alignment: what lies there can be moved
//! when its neighbours have gone, and the general allocator's bytes cannot.
use crate::memory::arena;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Every allocation is aligned so, whatever was asked for ([`arena::SMALL_ALIGN`]).
const ALIGN: usize = 8;

/// Growth steps for each doubling beyond [`FINE_MAX`], where blocks are few and large.
const COARSE_STEPS_PER_DOUBLING: usize = 4;

/// Growth steps for each doubling of what the arena serves. More waste less, and move leaves more often: a
/// step should hold more than one entry.
const STEPS_PER_DOUBLING: usize = 16;

/// Leaves beyond this size have entries that are larger than a growth step.
const LARGE: usize = 4 << 10;

/// The least step of what the arena serves.
const STEP_MIN: usize = 32;

/// Sizes up to this grow in steps of 16 bytes.
const SMALL_MAX: usize = arena::usable_bytes(arena::SERVED_MIN - 8);
/// Sizes up to this grow in fine steps.
const FINE_MAX: usize = (32 << 10) - HEAD_BYTES;

/// What the allocation of a rounded size costs beyond that size, where leaves are large. Blocks of the arena
/// are multiples of 16, their head included, so what one may use ends this much before a multiple.
pub(crate) const HEAD_BYTES: usize = arena::HEAD;

/// The size to allocate for content of `size` bytes that may grow: the next growth step, as the allocator
/// rounds it. All of it may be used.
pub(crate) fn rounded(size: usize) -> usize {
    if size <= SMALL_MAX {
        return arena::usable_bytes(size);
    }
    if size > FINE_MAX {
        return size.next_multiple_of(doubling_below(size) / COARSE_STEPS_PER_DOUBLING);
    }
    let block = size.max(arena::SERVED_MIN) + HEAD_BYTES;
    let step = (doubling_below(block) / STEPS_PER_DOUBLING).max(STEP_MIN);
    block.next_multiple_of(step) - HEAD_BYTES
}

/// The size to allocate for content of `size` bytes that will not grow: what the allocator rounds it to
/// anyway.
pub(crate) fn rounded_least(size: usize) -> usize {
    match size {
        ..=SMALL_MAX => arena::usable_bytes(size),
        size if size <= FINE_MAX => arena::usable_bytes(size.max(arena::SERVED_MIN)),
        _ => rounded(size),
    }
}

/// The size to allocate for a leaf of entries that needs `size` bytes. A large leaf moves with every entry
/// that comes, whatever the growth step, so it takes no more than it needs.
pub(crate) fn rounded_for_entries(size: usize) -> usize {
    if size > LARGE { rounded_least(size) } else { rounded(size) }
}

/// The greatest power of two less than `size`.
fn doubling_below(size: usize) -> usize {
    debug_assert!(size > 1, "no power of two is less than {size}");
    1 << (size - 1).ilog2()
}

/// What an allocation of `size` bytes, itself a rounded size, costs.
pub(crate) fn footprint(size: usize) -> usize {
    arena::footprint_bytes(size)
}

/// Memory for `size` bytes, not initialised, to be given back by [`free`] with the same size.
pub(crate) fn allocate(size: usize) -> NonNull<u8> {
    let layout = layout(size);
    // SAFETY: the layout's size is not zero (asserted there).
    let memory = unsafe { alloc(layout) };
    debug_assert!(memory.addr().is_multiple_of(ALIGN), "what is allocated is aligned");
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
/// `memory` came from [`allocate`] with this `size`, and nobody uses it any more.
pub(crate) unsafe fn free(memory: NonNull<u8>, size: usize) {
    debug_assert!(memory.addr().get().is_multiple_of(ALIGN), "what is freed was allocated here");
    // SAFETY: the caller promises the size, so this is the layout that it was allocated with.
    unsafe { dealloc(memory.as_ptr(), layout(size)) }
}

fn layout(size: usize) -> Layout {
    assert!(size > 0, "an allocation of nothing");
    let align = if size < arena::SERVED_MIN { arena::SMALL_ALIGN } else { ALIGN };
    Layout::from_size_align(size, align).expect("a node is far smaller than the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_loses_bytes_and_is_stable() {
        for size in 1..100_000 {
            let round = rounded(size);
            assert!(round >= size && round < size + size / 4 + STEP_MIN, "{size} -> {round}");
            assert_eq!(rounded(round), round, "{size}");
            let least = rounded_least(size);
            assert!(size <= least && least <= round && rounded_least(least) == least, "{size} -> {least}");
            let served = round <= FINE_MAX;
            assert!(!served || arena::usable_bytes(round) == round, "{round} leaves bytes unused");
            assert_eq!(
                footprint(round),
                if served { round + HEAD_BYTES } else { round.max(footprint(round)) }
            );
        }
        assert_eq!((rounded(1000), rounded(1400)), (1016, 1400));
    }
}
