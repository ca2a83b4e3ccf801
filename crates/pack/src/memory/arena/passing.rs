//! Small blocks that do not stay: what the interpreter of scripts takes and gives back, many in a moment.
//!
//! It is told from the rest of the program by asking for blocks that are aligned to 16 bytes. They come from
//! the C library, and a thread keeps what it has freed in a list for each size, a megabyte in all. The C
//! library's own such lists hold seven blocks each, and Lua's collector frees thousands at a time.
//!
//! ```text
//! first of a size --> | next | ... | --> | next | ... | --> null
//! ```
use crate::memory::prefetch::prefetch;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// Who asks for this alignment gets such blocks, up to the size.
pub(super) const ALIGN: usize = 16;
pub(super) const SIZE_MAX: usize = 512;
/// How many bytes a thread keeps.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Sizes are multiples of [`ALIGN`].
const SIZES: usize = SIZE_MAX / ALIGN + 1;

/// What a thread keeps: the first free block of each size.
struct Kept {
    firsts: [Cell<*mut u8>; SIZES],
    bytes: Cell<usize>,
}

thread_local!(static KEPT: Kept = const { Kept::new() });

impl Kept {
    const fn new() -> Kept {
        Kept { firsts: [const { Cell::new(ptr::null_mut()) }; SIZES], bytes: Cell::new(0) }
    }

    /// A block that was kept, or null.
    #[inline]
    fn take(&self, layout: Layout) -> *mut u8 {
        let first = &self.firsts[layout.size() / ALIGN];
        let block = first.get();
        if !block.is_null() {
            // SAFETY: a block that is kept is ours, and begins with the pointer to the next (`keep`).
            let next = unsafe { block.cast::<*mut u8>().read() };
            // Freed some time ago, and written to as soon as it is asked for.
            prefetch(next);
            first.set(next);
            self.bytes.set(self.bytes.get() - layout.size());
        }
        block
    }

    /// Keeps a block, if there is room.
    ///
    /// # Safety
    /// The block came from [`System`] with this layout, and nobody uses it any more.
    #[inline]
    unsafe fn keep(&self, block: *mut u8, layout: Layout) -> bool {
        let bytes = self.bytes.get() + layout.size();
        if bytes > KEPT_BYTES_MAX {
            return false;
        }
        // SAFETY: the block is ours, aligned, and at least as long as a pointer.
        unsafe { block.cast::<*mut u8>().write(self.firsts[layout.size() / ALIGN].replace(block)) };
        self.bytes.set(bytes);
        true
    }

    /// Gives all that is kept back.
    fn give_up(&self) {
        for size in 1..SIZES {
            let layout = rounded(size * ALIGN);
            loop {
                let block = self.take(layout);
                if block.is_null() {
                    break;
                }
                // SAFETY: it came from there with this layout (`keep`).
                unsafe { System.dealloc(block, layout) };
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Gives what this thread keeps back to the C library. After an interpreter has shrunk, each such block may
/// be the only one in its page.
pub(super) fn give_up() {
    // A thread that is ending has given it back.
    let _ = KEPT.try_with(Kept::give_up);
}

/// What is asked of the C library for a block of `size` bytes.
#[inline]
fn rounded(size: usize) -> Layout {
    debug_assert!(size > 0 && size <= SIZE_MAX);
    // SAFETY: the alignment is a power of two, and the size far smaller than the address space.
    unsafe { Layout::from_size_align_unchecked(size.next_multiple_of(ALIGN), ALIGN) }
}

/// Whether a block serves both sizes.
#[inline]
pub(super) fn is_same(size: usize, other: usize) -> bool {
    size.div_ceil(ALIGN) == other.div_ceil(ALIGN)
}

/// A block of at least `size` bytes, of one and [`SIZE_MAX`] at most; null where there is no memory.
#[inline]
pub(super) fn alloc(size: usize) -> *mut u8 {
    let layout = rounded(size);
    // The thread may be ending, and have given back what it kept.
    let block = KEPT.try_with(|kept| kept.take(layout)).unwrap_or(ptr::null_mut());
    // SAFETY: the layout has a size.
    if block.is_null() { unsafe { System.alloc(layout) } } else { block }
}

/// # Safety
/// The block came from [`alloc`] with a size that [is the same](is_same), and nobody uses it any more.
#[inline]
pub(super) unsafe fn free(block: *mut u8, size: usize) {
    let layout = rounded(size);
    // SAFETY: it came from the C library with this layout.
    let is_kept = KEPT.try_with(|kept| unsafe { kept.keep(block, layout) });
    if is_kept != Ok(true) {
        // SAFETY: the same.
        unsafe { System.dealloc(block, layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_bytes() -> usize {
        KEPT.with(|kept| kept.bytes.get())
    }

    #[test]
    fn a_freed_block_serves_the_next_request_of_its_size_and_no_other() {
        let block = alloc(40);
        // SAFETY: allocated above.
        unsafe { free(block, 40) };
        assert_eq!(kept_bytes(), 48);
        let (other, again) = (alloc(49), alloc(33));
        assert_eq!((again, kept_bytes()), (block, 0));
        assert_ne!(other, block);
        // SAFETY: allocated above; sizes up to the next multiple of 16 are the same.
        unsafe {
            free(other, 64);
            free(again, 48);
        }
        assert!(is_same(33, 48) && !is_same(48, 49));
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a thread that ends")]
    fn no_more_than_a_megabyte_is_kept_and_an_ending_thread_keeps_nothing() {
        let count = 2 * KEPT_BYTES_MAX / SIZE_MAX;
        let thread = std::thread::spawn(move || {
            let blocks: Vec<usize> = (0..count).map(|_| alloc(SIZE_MAX).expose_provenance()).collect();
            // SAFETY: allocated above.
            let give = |block: &usize| unsafe { free(ptr::with_exposed_provenance_mut(*block), SIZE_MAX) };
            blocks.iter().for_each(give);
            kept_bytes()
        });
        assert_eq!(thread.join().unwrap(), KEPT_BYTES_MAX);
    }
}
