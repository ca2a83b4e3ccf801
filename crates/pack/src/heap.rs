//! Where blocks and nodes get their memory: the one place that knows how the allocator rounds.
//!
//! Leaves are allocated at their content's size, so rounding is the main loss of the whole tree. Whoever grows a block
//! asks [`rounded`] first, and then uses all that it gets.
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Every allocation is aligned so.
pub(crate) const ALIGN: usize = 8;

/// Size classes for each doubling: jemalloc and mimalloc both have four.
const CLASSES_PER_DOUBLING: usize = 4;

/// What the allocator really gives to one who asks for `size` bytes.
pub(crate) fn rounded(size: usize) -> usize {
    if size <= 64 {
        return size.next_multiple_of(16);
    }
    let step = (size - 1).ilog2() as usize;
    size.next_multiple_of((1 << step) / CLASSES_PER_DOUBLING)
}

/// Memory for `size` bytes, not initialised, to be given back by [`free`] with the same size.
pub(crate) fn allocate(size: usize) -> NonNull<u8> {
    let layout = layout(size);
    // SAFETY: the layout's size is not zero (asserted there).
    let memory = unsafe { alloc(layout) };
    NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
/// `memory` came from [`allocate`] with this `size`, and nobody uses it any more.
pub(crate) unsafe fn free(memory: NonNull<u8>, size: usize) {
    // SAFETY: by the caller's word, the same layout as it was allocated with.
    unsafe { dealloc(memory.as_ptr(), layout(size)) }
}

fn layout(size: usize) -> Layout {
    assert!(size > 0, "an allocation of nothing");
    Layout::from_size_align(size, ALIGN).expect("a node is far smaller than the address space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_loses_bytes_and_is_stable() {
        for size in 1..100_000 {
            let round = rounded(size);
            assert!(round >= size && round < size + size / 4 + 16, "{size} -> {round}");
            assert_eq!(rounded(round), round);
        }
        assert_eq!(rounded(1025), 1280);
    }
}
