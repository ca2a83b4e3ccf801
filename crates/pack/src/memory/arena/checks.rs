//! A build with checks: debug builds, and any other with the feature `checked`. It finds a broken heap soon
//! after it broke, and breaks it more often.
//!
//! * Extents are tiny (`extent.rs`): they fill, close, empty and go all the time, and walks meet blocks that
//!   come and go.
//! * Freed bytes are poisoned, and looked at when they are taken again: whoever wrote to them meanwhile is
//!   found, and whoever reads them gets no valid address.
//! * An extent that is walked over is verified as a whole before and after each step of the walk.
//!
//! A broken heap ends in a panic that says what is wrong where.

use super::directory;
#[cfg(test)]
use super::extent::PAGE;
use super::extent::{EXTENT, HAS_CHECKS};
use super::heads::{Block, FIRST, Heads};
use std::ptr;

/// What freed bytes are overwritten with. As an address it is not valid, and as a length it is too large for
/// any block.
const POISON: u64 = 0xD5D5_D5D5_D5D5_D5D5;

/// # Safety
/// `block` is whole.
unsafe fn interior(heads: &Heads, block: Block) -> *mut [u64] {
    // SAFETY: the caller's promise.
    let (first, bytes) = unsafe { heads.interior(block) };
    ptr::slice_from_raw_parts_mut(first.cast(), bytes / 8)
}

/// Poisons a block that is being freed.
///
/// # Safety
/// `block` is whole, and nobody uses it any more.
pub(super) unsafe fn poison(heads: &Heads, block: Block) {
    if HAS_CHECKS {
        // SAFETY: the caller's promise.
        unsafe { (*interior(heads, block)).fill(POISON) };
    }
}

/// Poisons the foot, the head and the links that lay between two blocks which have become one.
///
/// # Safety
/// `border`, where the second began, lies in a block of which nobody uses these bytes.
pub(super) unsafe fn poison_border(border: Block) {
    if HAS_CHECKS {
        // SAFETY: the caller's promise.
        unsafe { border.payload().sub(16).cast::<[u64; 4]>().write([POISON; 4]) };
    }
}

/// Checks that nobody wrote to a block while it was free. Pages that were given back, or never touched, read
/// as zeros.
///
/// # Safety
/// `block` is whole, and free or just taken.
pub(super) unsafe fn check_poison(heads: &Heads, block: Block) {
    if HAS_CHECKS {
        // SAFETY: the caller's promise.
        let words = unsafe { &*interior(heads, block) };
        let at = words.iter().position(|word| *word != POISON && *word != 0);
        assert_eq!(at.map(|at| (&raw const words[at], words[at])), None, "freed memory was written to");
    }
}

/// Checks that the whole pages of a free block are zeros, if its head says that they were given back.
///
/// # Safety
/// `block` is whole and free.
#[cfg(test)]
pub(super) unsafe fn check_given_back(heads: &Heads, block: Block) {
    // SAFETY: the caller's promise; pages that were given back read as zeros.
    unsafe {
        let (first, bytes) = heads.interior(block);
        let start = first.addr().next_multiple_of(PAGE) - first.addr();
        let end = ((first.addr() + bytes) & !(PAGE - 1)).saturating_sub(first.addr());
        if start < end {
            let pages = std::slice::from_raw_parts(first.add(start), end - start);
            assert!(pages.iter().all(|byte| *byte == 0), "a block without pages has some");
        }
    }
}

/// Each block of an extent, in order of address.
///
/// # Safety
/// `base` is a mapped extent of the stripe whose heads these are, and none of its blocks goes meanwhile.
#[cfg(test)]
pub(super) unsafe fn for_each(heads: &Heads, base: *mut u8, visit: &mut dyn FnMut(Block)) {
    // SAFETY: blocks touch each other from FIRST to the end mark.
    unsafe {
        let mut block = Block::at(base.add(FIRST));
        while heads.size(block) > 0 {
            visit(block);
            block = heads.after(block);
        }
    }
}

/// Walks an extent: blocks touch, flags agree, no two free blocks touch, feet and sums are right, and a walk
/// that stands in this extent stands on a block. Returns the bytes in use.
///
/// # Safety
/// `base` is a mapped extent of the stripe whose heads these are.
pub(super) unsafe fn verify_extent(heads: &Heads, base: *mut u8) -> usize {
    let (mut used, mut before_in_use) = (0, true);
    let cursor = heads.cursor().filter(|block| block.extent() == base);
    let mut is_cursor_met = cursor.is_none();
    let word = directory::of(base.addr());
    assert!(cursor.is_none() || word.is_walked(), "a walk of which the extent's word does not know");
    // SAFETY: blocks touch each other from FIRST to the end mark; each size is looked at before it is relied
    // on.
    unsafe {
        let mut block = Block::at(base.add(FIRST));
        loop {
            is_cursor_met |= cursor == Some(block);
            assert_eq!(heads.is_behind_used(block), before_in_use, "what a block says of the one before");
            let size = heads.size(block);
            if size == 0 {
                break;
            }
            assert!(block.addr() + size <= base.addr() + EXTENT - 8, "a block ends beyond its extent");
            let in_use = heads.is_in_use(block);
            assert!(in_use || before_in_use, "two free blocks touch");
            let after = heads.after(block);
            if in_use {
                used += size;
            } else {
                // `free_before` also checks the foot.
                assert!(heads.is_behind_used(after) || heads.free_before(after) == Some(block));
                assert!(word.is_special() || !heads.is_loose(block), "a free block nobody finds");
            }
            before_in_use = in_use;
            block = after;
        }
        assert_eq!(block.addr() - base.addr(), EXTENT - 8, "blocks end before their extent");
    }
    assert!(is_cursor_met, "the walk stands in the midst of a block");
    assert_eq!(used, word.used_bytes(), "bytes in use of an extent");
    used
}
