//! Memory from the system and back: extents of 4 MB (tiny ones in a build with checks), aligned to their
//! size, and mappings of any size for large blocks.

use std::ptr;

/// Whether this is a build with checks (`checks.rs`).
pub(super) const HAS_CHECKS: bool = cfg!(any(debug_assertions, feature = "checked"));
/// The size and alignment of an extent. A build with checks has tiny ones, so that they fill, close, empty
/// and go all the time.
pub(super) const EXTENT: usize = if HAS_CHECKS { 256 << 10 } else { 4 << 20 };
pub(super) const PAGE: usize = 4 << 10;
/// Pages go back so many bytes at a time. While the system takes pages it holds a lock that others need to
/// map memory: unmapping 4 MB in one call stopped workers for a millisecond, this much takes some 30
/// microseconds.
const CHUNK: usize = 256 << 10;

/// Maps an extent of zero bytes; null where the system refuses.
pub(super) fn map() -> *mut u8 {
    // Twice the size holds an aligned extent; what lies around it is given back at once.
    // SAFETY: a new anonymous mapping touches nobody's memory.
    let raw = unsafe {
        libc::mmap(
            ptr::null_mut(),
            EXTENT * 2,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if raw == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    let before = raw.align_offset(EXTENT);
    // SAFETY: both ranges lie in the mapping made above and nobody knows of them yet.
    unsafe {
        if before > 0 {
            libc::munmap(raw, before);
        }
        libc::munmap(raw.byte_add(before + EXTENT), EXTENT - before);
        raw.byte_add(before).cast()
    }
}

/// Gives an extent back.
///
/// # Safety
/// `extent` came from [`map`] and nothing in it is used any more.
pub(super) unsafe fn unmap(extent: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { unmap_pages(extent, EXTENT) };
}

/// Gives the whole pages between two addresses back; they read as zeros from now on. Returns how many bytes
/// that were.
///
/// # Safety
/// The range lies in one extent and nobody relies on its bytes.
pub(super) unsafe fn discard(from: *mut u8, to: *mut u8) -> usize {
    let first = (from as usize).next_multiple_of(PAGE);
    let end = to as usize & !(PAGE - 1);
    if first >= end {
        return 0;
    }
    for chunk in (first..end).step_by(CHUNK) {
        let bytes = CHUNK.min(end - chunk);
        // SAFETY: whole pages inside the caller's range.
        unsafe { libc::madvise(chunk as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
    }
    end - first
}

/// Maps zero bytes, at least `size`; null where the system refuses.
pub(super) fn map_pages(size: usize) -> *mut u8 {
    // SAFETY: a new anonymous mapping touches nobody's memory.
    let raw = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size.next_multiple_of(PAGE),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if raw == libc::MAP_FAILED { ptr::null_mut() } else { raw.cast() }
}

/// # Safety
/// `block` came from [`map_pages`] or [`remap_pages`] with this `size` and is not used any more.
pub(super) unsafe fn unmap_pages(block: *mut u8, size: usize) {
    let bytes = size.next_multiple_of(PAGE);
    // SAFETY: the caller's promise. Without its pages a mapping is gone at once, whatever its size.
    let done = unsafe {
        discard(block, block.byte_add(bytes));
        libc::munmap(block.cast(), bytes)
    };
    debug_assert_eq!(done, 0);
}

/// Grows or shrinks a mapping, moving its pages where there is no room; null, and nothing done, where the
/// system refuses.
///
/// # Safety
/// As [`unmap_pages`]; on success only the new address is valid.
pub(super) unsafe fn remap_pages(block: *mut u8, from: usize, to: usize) -> *mut u8 {
    let (from, to) = (from.next_multiple_of(PAGE), to.next_multiple_of(PAGE));
    // SAFETY: the caller's promise.
    let raw = unsafe { libc::mremap(block.cast(), from, to, libc::MREMAP_MAYMOVE) };
    if raw == libc::MAP_FAILED { ptr::null_mut() } else { raw.cast() }
}
