//! A build with checks: debug builds, and any other with the feature `checked`. It finds a broken heap soon after it broke, and
//! breaks it more often.
//!
//! * Extents are tiny (`extent.rs`): they fill, close, empty and go all the time, and walks meet blocks that come and go.
//! * Freed bytes are poisoned, and looked at when they are taken again: whoever wrote to them meanwhile is found, and whoever
//!   reads them gets no valid address.
//! * An extent that is walked over is verified as a whole before and after each piece of the walk.
//!
//! A broken heap ends in a panic that says what is wrong where.

use super::directory;
use super::extent::EXTENT;
use super::stripe::{FIRST, Free, end_of};

/// Whether this build has them.
pub(super) const ARE_ON: bool = cfg!(any(debug_assertions, feature = "checked"));

/// Read as an address it is none; read as a length it is too large for any block.
const POISON: u64 = 0xD5D5_D5D5_D5D5_D5D5;

/// What of a free block is neither head, links nor foot.
///
/// # Safety
/// `block` is whole, and its stripe's lock is held.
unsafe fn interior(block: *mut Free) -> (*mut u64, usize) {
    // SAFETY: the caller's promise; a block is at least as long as head, links and foot.
    unsafe {
        let first = block.byte_add(size_of::<Free>());
        (first.cast(), (end_of(block).addr() - 8 - first.addr()) / 8)
    }
}

/// Poisons a block that is being freed.
///
/// # Safety
/// `block` is whole, nobody uses it any more, and its stripe's lock is held.
pub(super) unsafe fn poison(block: *mut Free) {
    if ARE_ON {
        // SAFETY: the caller's promise.
        unsafe {
            let (first, words) = interior(block);
            std::slice::from_raw_parts_mut(first, words).fill(POISON);
        }
    }
}

/// Poisons what two free blocks had where they touched, once they are one: a foot, a head and two links.
///
/// # Safety
/// As [`poison`]: `border`, where the second began, lies in a free block.
pub(super) unsafe fn poison_border(border: *mut Free) {
    if ARE_ON {
        // SAFETY: the caller's promise: a foot ends before the border, and a free block's head and links begin at it.
        unsafe { border.byte_sub(8).cast::<[u64; 4]>().write([POISON; 4]) };
    }
}

/// Nobody wrote to a free block while it was free. Pages that were given back, or never touched, are zeros.
///
/// # Safety
/// `block` is whole, and free or just taken, and its stripe's lock is held.
pub(super) unsafe fn check_poison(block: *mut Free) {
    if ARE_ON {
        // SAFETY: the caller's promise.
        let words = unsafe {
            let (first, words) = interior(block);
            std::slice::from_raw_parts(first, words)
        };
        let at = words.iter().position(|word| *word != POISON && *word != 0);
        assert_eq!(at.map(|at| (&raw const words[at], words[at])), None, "freed memory was written to");
    }
}

/// Walks an extent: blocks touch, flags agree, no two free blocks touch, sums are right, `cursor` stands on a block if it
/// stands in this extent. The bytes in use.
///
/// # Safety
/// `base` is a mapped extent whose stripe is locked.
pub(super) unsafe fn verify_extent(base: *mut u8, cursor: *mut Free) -> usize {
    let (mut used, mut before_in_use) = (0, true);
    let mut is_cursor_met = cursor.addr() & !(EXTENT - 1) != base.addr();
    let word = directory::of(base.addr());
    // SAFETY: blocks touch each other from FIRST to the end mark; each size is looked at before it is relied on.
    unsafe {
        let mut block = base.add(FIRST).cast::<Free>();
        loop {
            is_cursor_met |= block == cursor;
            assert_eq!((*block).is_behind_used(), before_in_use, "what a block says of the one before");
            let size = (*block).size();
            if size == 0 {
                break;
            }
            assert!(block.addr() + size <= base.addr() + EXTENT - 8, "a block ends beyond its extent");
            let in_use = (*block).is_in_use();
            assert!(in_use || before_in_use, "two free blocks touch");
            if in_use {
                used += size;
            } else {
                assert_eq!(*end_of(block).byte_sub(8).cast::<u64>() as usize, size, "a free block's foot");
                assert!(word.is_special() || !(*block).is_loose(), "a free block nobody finds");
            }
            before_in_use = in_use;
            block = end_of(block);
        }
        assert_eq!(block.addr() - base.addr(), EXTENT - 8, "blocks end before their extent");
    }
    assert!(is_cursor_met, "the walk stands in the midst of a block");
    assert_eq!(used, word.used_bytes(), "bytes in use of an extent");
    used
}
