//! Blocks and their heads: the one type that reads and changes a block's head, foot and links, and with them
//! the flag that the neighbour keeps of it.
//!
//! ```text
//! in use   [ head u64: size | flags ][ payload, aligned to 16 ................... ]
//! free     [ head u64: size | flags ][ next ][ previous ][ ... ][ foot u64: size ]
//! flags    bit 0: this block is in use; bit 1: the block before it is in use;
//!          bit 2: its pages were given back;
//!          bit 3: it is free and in no bin, since its extent is closed (`closing.rs`)
//! ```
//!
//! A block is a multiple of 16 bytes, its head included, and starts 8 bytes before a multiple of 16. Example:
//! a request of 700 bytes takes a block of 720 (head 8, payload 712): head = `D3 02 00 00 00 00 00 00` (720 |
//! in use | before in use). Only a free block has a foot; a block finds a free one before it by that foot,
//! one after it by its own size. No two free blocks touch. Cost: 8 bytes a block and 4 on average for the
//! grain.
//!
//! # Why a type of its own
//!
//! The owner of a block may not even read its head: others change a flag of it when they take or free the
//! block before. So heads are reached through [`Heads`] only, of which each stripe has one, behind its lock:
//! without the lock the compiler knows no way to a head. And because a walk over an extent stands on a block
//! between two of its steps, [`Heads`] holds its cursor too: [`Heads::join`], the only way in which a block
//! becomes part of another, moves it.
//!
//! # A broken heap
//!
//! Whoever writes beyond a block's end changes heads and links, and may choose what they become. So a link is
//! followed only if the block that it leads to points back, and a foot only if the head that it leads to
//! agrees; else the process ends with a report ([`broken`]). docs/decisions/a-broken-heap.md says what that
//! costs.

use super::extent::EXTENT;
use std::ptr::NonNull;

pub(crate) const HEAD: usize = 8;
const FOOT: usize = 8;
/// Where the first block of an extent starts: behind what its stripe keeps there, and 8 bytes before a
/// multiple of 16.
pub(super) const FIRST: usize = 56;
/// The free block that fills a whole extent, up to the end mark.
pub(super) const WHOLE: usize = EXTENT - FIRST - HEAD;
const _: () = assert!(FIRST % 16 == 8 && WHOLE.is_multiple_of(16));
/// Head, two links, foot.
pub(super) const BLOCK_MIN: usize = 32;

const IN_USE: u64 = 1;
const BEHIND_USED: u64 = 2;
const PURGED: u64 = 4;
const LOOSE: u64 = 8;
const FLAGS: u64 = 15;

/// The address of a block, or of an extent's end mark, which is a head of size 0 that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Block(NonNull<Raw>);

/// What a free block begins with.
#[repr(C)]
struct Raw {
    head: u64,
    next: Option<Block>,
    previous: Option<Block>,
}

const _: () = assert!(size_of::<Raw>() + FOOT == BLOCK_MIN);

/// Whether the system has the pages of a free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Kept,
    GivenBack,
}

/// The heads of one stripe's blocks, and where the walk over one of its extents stands.
///
/// In what follows a block is *whole* when it is one now, or an end mark, in a mapped extent of the stripe
/// that these heads are of.
pub(super) struct Heads {
    cursor: Option<Block>,
}

/// Ends the process, because the heap is not as the arena left it. Whoever changed it may have chosen what is
/// there now, so none of it is followed.
#[cold]
#[inline(never)]
pub(super) fn broken(what: &'static str, block: Block) -> ! {
    panic!("the heap is broken: {what} at {:p}", block.0)
}

impl Block {
    /// # Safety
    /// `address` is not null.
    pub(super) unsafe fn at(address: *mut u8) -> Block {
        // SAFETY: the caller's promise.
        Block(unsafe { NonNull::new_unchecked(address.cast()) })
    }

    /// # Safety
    /// `payload` is that of a block in use.
    pub(super) unsafe fn of_payload(payload: *mut u8) -> Block {
        debug_assert!(payload.addr().is_multiple_of(16), "a payload is aligned");
        // SAFETY: the caller's promise: the head lies before it.
        unsafe { Block::at(payload.sub(HEAD)) }
    }

    /// What lies behind the head.
    pub(super) fn payload(self) -> *mut u8 {
        self.0.as_ptr().cast::<u8>().wrapping_add(HEAD)
    }

    pub(super) fn addr(self) -> usize {
        self.0.as_ptr().addr()
    }

    /// The start of the extent that it lies in.
    pub(super) fn extent(self) -> *mut u8 {
        self.0.as_ptr().map_addr(|address| address & !(EXTENT - 1)).cast()
    }

    /// # Safety
    /// The address so many bytes behind this one lies in the same extent.
    unsafe fn behind(self, bytes: usize) -> Block {
        // SAFETY: the caller's promise.
        Block(unsafe { self.0.byte_add(bytes) })
    }
}

/// Reading the head of one whole block.
impl Heads {
    /// # Safety
    /// They stay behind the lock of one stripe, and only its blocks are asked for.
    pub(super) const unsafe fn new() -> Heads {
        Heads { cursor: None }
    }

    /// # Safety
    /// The block is whole.
    #[inline]
    unsafe fn head(&self, block: Block) -> u64 {
        // SAFETY: the caller's promise; heads change under the lock only, which `self` shows to be held.
        unsafe { (*block.0.as_ptr()).head }
    }

    /// # Safety
    /// There is to be a block at this address, and the head is true of it.
    #[inline]
    unsafe fn set_head(&mut self, block: Block, head: u64) {
        // SAFETY: as above.
        unsafe { (*block.0.as_ptr()).head = head };
    }

    /// # Safety
    /// As [`Heads::set_head`].
    #[inline]
    unsafe fn set_flag(&mut self, block: Block, flag: u64, is_set: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            let head = self.head(block);
            self.set_head(block, if is_set { head | flag } else { head & !flag });
        }
    }

    /// Its bytes, the head included; 0 for an end mark.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn size(&self, block: Block) -> usize {
        // SAFETY: the caller's promise.
        unsafe { (self.head(block) & !FLAGS) as usize }
    }

    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn is_in_use(&self, block: Block) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.head(block) & IN_USE != 0 }
    }

    /// Whether the block before it is in use.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn is_behind_used(&self, block: Block) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.head(block) & BEHIND_USED != 0 }
    }

    /// Whether it is free and the system has its pages.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn pages(&self, block: Block) -> Pages {
        // SAFETY: the caller's promise.
        if unsafe { self.head(block) } & PURGED != 0 { Pages::GivenBack } else { Pages::Kept }
    }

    /// Free, and in no bin.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn is_loose(&self, block: Block) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.head(block) & (IN_USE | LOOSE) == LOOSE }
    }

    /// The block behind it, or the extent's end mark.
    ///
    /// # Safety
    /// The block is whole, and no end mark.
    #[inline]
    pub(super) unsafe fn after(&self, block: Block) -> Block {
        // SAFETY: blocks touch each other up to the end mark.
        unsafe { block.behind(self.size(block)) }
    }

    /// The block behind one that is in use, as both say: one that is freed twice, or whose head was written
    /// over, ends the process.
    ///
    /// # Safety
    /// The block was whole when its owner got it.
    #[inline]
    pub(super) unsafe fn after_used(&self, block: Block) -> Block {
        // SAFETY: the caller's promise.
        unsafe {
            let after = self.after(block);
            if self.head(block) & IN_USE == 0 || self.head(after) & BEHIND_USED == 0 {
                broken("the head of a block that is freed", block);
            }
            after
        }
    }

    /// The block before it, if that is free.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn free_before(&self, block: Block) -> Option<Block> {
        // SAFETY: the block before a block that is not behind a used one is free, so it has a foot.
        unsafe {
            if self.is_behind_used(block) {
                return None;
            }
            let bytes = *block.0.as_ptr().byte_sub(FOOT).cast::<u64>() as usize;
            if bytes < BLOCK_MIN || bytes > block.addr() - block.extent().addr() {
                broken("a free block's foot", block);
            }
            let before = Block(block.0.byte_sub(bytes));
            if self.head(before) & !(PURGED | LOOSE) != bytes as u64 | BEHIND_USED {
                broken("a free block's head and foot", before);
            }
            Some(before)
        }
    }

    /// What of a free block holds neither head, links nor foot: its first byte and how many there are.
    ///
    /// # Safety
    /// The block is whole, and no end mark.
    pub(super) unsafe fn interior(&self, block: Block) -> (*mut u8, usize) {
        // SAFETY: a block is at least as long as what is left out.
        unsafe {
            debug_assert!(self.size(block) >= BLOCK_MIN, "a block is long enough to be free");
            (block.behind(size_of::<Raw>()).0.as_ptr().cast(), self.size(block) - BLOCK_MIN)
        }
    }
}

/// Making, changing and joining blocks. Each function keeps the flags of the neighbours right.
impl Heads {
    /// Lays out the room of a new extent, from `first` on: one free block without pages, and the end mark
    /// behind it.
    ///
    /// # Safety
    /// So many bytes and 8 more from `first` on are nobody's.
    pub(super) unsafe fn lay_out(&mut self, first: *mut u8, bytes: usize) -> Block {
        // SAFETY: the caller's promise.
        unsafe {
            let block = Block::at(first);
            debug_assert!(bytes >= BLOCK_MIN && bytes as u64 & FLAGS == 0, "an extent of {bytes} bytes");
            self.set_head(block, bytes as u64 | BEHIND_USED);
            self.set_head(block.behind(bytes), IN_USE | BEHIND_USED);
            self.set_free(block, Pages::GivenBack);
            block
        }
    }

    /// Makes a block free, neither of whose neighbours is free. It is in no bin yet.
    ///
    /// # Safety
    /// The block is whole, and nobody uses it any more.
    #[inline]
    pub(super) unsafe fn set_free(&mut self, block: Block, pages: Pages) {
        // SAFETY: the caller's promise.
        unsafe {
            let size = self.size(block);
            let purged = if pages == Pages::GivenBack { PURGED } else { 0 };
            self.set_head(block, size as u64 | BEHIND_USED | purged);
            let after = block.behind(size);
            *after.0.as_ptr().byte_sub(FOOT).cast::<u64>() = size as u64;
            self.set_flag(after, BEHIND_USED, false);
        }
    }

    /// Makes a free block that is in no bin one in use.
    ///
    /// # Safety
    /// The block is whole.
    #[inline]
    pub(super) unsafe fn set_used(&mut self, block: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let head = self.head(block);
            self.set_head(block, head & !PURGED | IN_USE);
            let after = self.after(block);
            self.set_flag(after, BEHIND_USED, true);
        }
    }

    /// Marks a free block as one that is in no bin because its extent is closed, or takes that mark away.
    ///
    /// # Safety
    /// The block is whole, free, and in no bin.
    pub(super) unsafe fn set_loose(&mut self, block: Block, is_loose: bool) {
        // SAFETY: the caller's promise.
        unsafe { self.set_flag(block, LOOSE, is_loose) };
    }

    /// Cuts a block in use down to `wanted` bytes, if the rest is long enough for a block. That block, in use
    /// too, is returned.
    ///
    /// # Safety
    /// The block is whole, and at least so long.
    #[inline]
    pub(super) unsafe fn split(&mut self, block: Block, wanted: usize) -> Option<Block> {
        debug_assert!(wanted >= BLOCK_MIN && wanted.is_multiple_of(16));
        // SAFETY: the caller's promise: both parts lie in the block.
        unsafe {
            let head = self.head(block);
            debug_assert!((head & !FLAGS) as usize >= wanted);
            let rest_bytes = (head & !FLAGS) as usize - wanted;
            if rest_bytes < BLOCK_MIN {
                return None;
            }
            self.set_head(block, wanted as u64 | head & FLAGS);
            let rest = block.behind(wanted);
            self.set_head(rest, rest_bytes as u64 | IN_USE | BEHIND_USED);
            Some(rest)
        }
    }

    /// Makes the block behind `block` a part of it. `block` keeps its flags.
    ///
    /// # Safety
    /// Both are whole and in no bin, and nobody uses the second.
    #[inline]
    pub(super) unsafe fn join(&mut self, block: Block, behind: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let head = self.head(block);
            self.set_head(block, head + self.size(behind) as u64);
        }
        if self.cursor == Some(behind) {
            self.cursor = Some(block);
        }
    }
}

/// The doubly linked list of a bin.
impl Heads {
    /// # Safety
    /// The block is whole and in a bin.
    #[inline]
    pub(super) unsafe fn next(&self, block: Block) -> Option<Block> {
        // SAFETY: the caller's promise.
        unsafe {
            let next = (*block.0.as_ptr()).next;
            if let Some(next) = next
                && (*next.0.as_ptr()).previous != Some(block)
            {
                broken("a free block's next one", block);
            }
            next
        }
    }

    /// Puts a block between two that follow each other in a list, or before its first or behind its last.
    ///
    /// # Safety
    /// The block is whole and in no bin, the others are in one.
    #[inline]
    pub(super) unsafe fn link(&mut self, previous: Option<Block>, block: Block, next: Option<Block>) {
        // SAFETY: the caller's promise.
        unsafe {
            (*block.0.as_ptr()).next = next;
            (*block.0.as_ptr()).previous = previous;
            if let Some(next) = next {
                (*next.0.as_ptr()).previous = Some(block);
            }
            if let Some(previous) = previous {
                (*previous.0.as_ptr()).next = Some(block);
            }
        }
    }

    /// Takes a block out of its list. Returns the blocks that were before it and behind it.
    ///
    /// # Safety
    /// The block is whole and in a bin.
    #[inline]
    pub(super) unsafe fn unlink(&mut self, block: Block) -> (Option<Block>, Option<Block>) {
        // SAFETY: the caller's promise; that the neighbours are in the list too is shown by their pointing
        // back.
        unsafe {
            let Raw { next, previous, .. } = *block.0.as_ptr();
            if let Some(next) = next {
                if (*next.0.as_ptr()).previous != Some(block) {
                    broken("a free block's next one", block);
                }
                (*next.0.as_ptr()).previous = previous;
            }
            if let Some(previous) = previous {
                if (*previous.0.as_ptr()).next != Some(block) {
                    broken("a free block's previous one", block);
                }
                (*previous.0.as_ptr()).next = next;
            }
            (previous, next)
        }
    }
}

/// The walk over an extent's blocks (`closing.rs`).
impl Heads {
    /// The block at which the walk stands; None while there is no walk.
    pub(super) fn cursor(&self) -> Option<Block> {
        self.cursor
    }

    /// # Safety
    /// The block, if it is one, is whole.
    pub(super) unsafe fn set_cursor(&mut self, cursor: Option<Block>) {
        self.cursor = cursor;
    }

    /// Called before the extent at `base` is unmapped: asserts that no walk stands in it.
    pub(super) fn forget(&self, base: *mut u8) {
        let is_walked = self.cursor.is_some_and(|block| block.extent() == base);
        assert!(!is_walked, "an extent is unmapped under a walk over it");
    }
}
