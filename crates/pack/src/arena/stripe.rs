//! One stripe of the arena: extents cut into blocks that touch each other, so that neighbours can merge.
//!
//! ```text
//! extent   [ header 56 B | block | block | ... | block | end mark 8 B ]
//! in use   [ head u64: size | flags ][ payload, aligned to 16 ................... ]
//! free     [ head u64: size | flags ][ next ][ previous ][ ... ][ foot u64: size ]
//! flags    bit 0: this block is in use; bit 1: the block before it is in use; bit 2: its pages were given back;
//!          bit 3: it is free and in no bin, since its extent is closed (`closing.rs`)
//! ```
//!
//! A block is a multiple of 16 bytes, its head included, and starts 8 bytes before a multiple of 16. Example: a request of
//! 700 bytes takes a block of 720 (head 8, payload 712): head = `D3 02 00 00 00 00 00 00` (720 | in use | before in
//! use). Only a free block has a foot; a block finds a free one before it by that foot, one after it by its own size.
//! No two free blocks touch. Cost: 8 bytes a block and 4 on average for the grain.

use super::bins::Bins;
use super::checks;
use super::directory::{self, Word};
use super::extent::{self, EXTENT};
use super::huge::{self, HALF};
use super::{StripeStats, Usage};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const HEAD: usize = 8;
pub(super) const ALIGN: usize = 16;
/// Head, two links, foot.
const BLOCK_MIN: usize = 32;
/// Where the first block of an extent starts.
pub(super) const FIRST: usize = 56;
/// Free blocks from this size on give their pages back.
const PURGE_MIN: usize = 16 << 10;
/// Empty extents that a stripe keeps for what comes next.
const EMPTY_KEPT: usize = 1;
/// How many dirty blocks are looked for at a time.
const PURGE_BATCH: usize = 8;

const IN_USE: u64 = 1;
const BEFORE_IN_USE: u64 = 2;
const PURGED: u64 = 4;
const LOOSE: u64 = 8;
const FLAGS: u64 = 15;

/// The block that a request of `size` bytes takes.
pub(super) const fn block_bytes(size: usize) -> usize {
    let block = (size + HEAD).next_multiple_of(16);
    if block < BLOCK_MIN { BLOCK_MIN } else { block }
}

/// A block seen as a free one: links follow the head.
#[repr(C)]
pub(super) struct Free {
    head: u64,
    next: *mut Free,
    previous: *mut Free,
}

impl Free {
    pub(super) fn size(&self) -> usize {
        (self.head & !FLAGS) as usize
    }

    pub(super) fn is_in_use(&self) -> bool {
        self.head & IN_USE != 0
    }

    /// The block before it is in use.
    pub(super) fn is_behind_used(&self) -> bool {
        self.head & BEFORE_IN_USE != 0
    }

    /// Its pages were given back.
    pub(super) fn is_purged(&self) -> bool {
        self.head & PURGED != 0
    }

    /// A free block, as tests of the bins make one.
    #[cfg(test)]
    pub(super) fn set_free(&mut self, size: usize, is_purged: bool) {
        self.head = size as u64 | if is_purged { PURGED } else { 0 };
    }

    /// Free, and in no bin.
    pub(super) fn is_loose(&self) -> bool {
        self.head & (IN_USE | LOOSE) == LOOSE
    }

    pub(super) fn set_loose(&mut self) {
        self.head |= LOOSE;
    }

    pub(super) fn set_binned(&mut self) {
        self.head &= !LOOSE;
    }

    pub(super) fn next(&self) -> *mut Free {
        self.next
    }

    /// Becomes the head of a list before `next`.
    ///
    /// # Safety
    /// `next` is null or a free block that heads a list.
    pub(super) unsafe fn link(&mut self, next: *mut Free) {
        self.next = next;
        self.previous = ptr::null_mut();
        if !next.is_null() {
            // SAFETY: the caller's promise.
            unsafe { (*next).previous = self };
        }
    }

    /// Becomes the tail of a list behind `previous`.
    ///
    /// # Safety
    /// `previous` is null or a free block that ends a list.
    pub(super) unsafe fn link_behind(&mut self, previous: *mut Free) {
        self.next = ptr::null_mut();
        self.previous = previous;
        if !previous.is_null() {
            // SAFETY: the caller's promise.
            unsafe { (*previous).next = self };
        }
    }

    /// Leaves its list; what came before it and after it.
    ///
    /// # Safety
    /// The neighbours in the list are free blocks or null.
    pub(super) unsafe fn unlink(&mut self) -> (*mut Free, *mut Free) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.next.is_null() {
                (*self.next).previous = self.previous;
            }
            if !self.previous.is_null() {
                (*self.previous).next = self.next;
            }
        }
        (self.previous, self.next)
    }
}

/// At the start of each extent.
#[repr(C)]
struct Header {
    owner: *const Stripe,
    next: *mut Header,
    previous: *mut Header,
}

const _: () = assert!(size_of::<Header>() <= FIRST && FIRST % 16 == 8);

/// One lock, its extents and their free blocks; on cache lines of its own.
#[repr(align(128))]
pub(super) struct Stripe(Mutex<Inner>);

pub(super) struct Inner {
    pub(super) bins: Bins,
    extents: *mut Header,
    extent_count: usize,
    /// Extents of which all is free.
    pub(super) empty_count: usize,
    used_bytes: usize,
    /// In free blocks whose pages were given back.
    purged_bytes: usize,
    /// Bytes freed since the last purge found nothing more to do.
    freed_bytes: usize,
    /// The next block of a walk over an extent (`closing.rs`); null where none goes on.
    pub(super) cursor: *mut Free,
}

// SAFETY: the pointers lead to memory that the stripe alone owns, and are followed under its lock only.
unsafe impl Send for Inner {}

/// The stripe that `payload` was allocated from.
///
/// # Safety
/// `payload` came from [`Stripe::alloc`] and is live.
pub(super) unsafe fn owner(payload: *mut u8) -> &'static Stripe {
    let header = payload.map_addr(|a| a & !(EXTENT - 1)).cast::<Header>();
    // SAFETY: a live block lies in a mapped extent whose header was written when it was mapped; stripes are static.
    unsafe { &*(*header).owner }
}

impl Stripe {
    pub(super) const fn new() -> Stripe {
        Stripe(Mutex::new(Inner {
            bins: Bins::new(),
            extents: ptr::null_mut(),
            extent_count: 0,
            empty_count: 0,
            used_bytes: 0,
            purged_bytes: 0,
            freed_bytes: 0,
            cursor: ptr::null_mut(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics under the lock but assertions about a broken heap, after which the process ends.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Memory of at least `size` bytes, or null.
    pub(super) fn alloc(&'static self, size: usize) -> *mut u8 {
        let mut inner = self.lock();
        let wanted = block_bytes(size);
        let Some(block) = inner.bins.find(wanted).or_else(|| inner.grow(self)) else {
            return ptr::null_mut();
        };
        // SAFETY: `block` is in the bins and large enough.
        unsafe { inner.take(block, wanted) }
    }

    /// # Safety
    /// `payload` came from `alloc` of this stripe and is live; it is not used again.
    pub(super) unsafe fn free(&self, payload: *mut u8) {
        // SAFETY: the caller's promise: its head lies before it.
        unsafe { self.put_back(payload.sub(HEAD).cast::<Free>(), Pages::Kept) };
    }

    /// # Safety
    /// `block` is in use, and from now on is not.
    unsafe fn put_back(&self, block: *mut Free, pages: Pages) {
        let mut inner = self.lock();
        // SAFETY: the caller's promise.
        unsafe {
            let word = directory::of(block.addr());
            inner.discount(block, word);
            match pages {
                Pages::Kept => inner.freed_bytes += (*block).size(),
                Pages::GivenBack => (*block).head |= PURGED,
            }
            inner.release(block, word);
        }
    }

    /// Grows or shrinks where it is; false where the neighbour is in the way.
    ///
    /// # Safety
    /// `payload` came from `alloc` of this stripe and is live.
    pub(super) unsafe fn resize(&self, payload: *mut u8, size: usize) -> bool {
        let wanted = block_bytes(size);
        let mut inner = self.lock();
        // SAFETY: the caller's promise: its head lies before it, and blocks touch each other up to the end mark.
        unsafe {
            let block = payload.sub(HEAD).cast::<Free>();
            let (have, word) = ((*block).size(), directory::of(block.addr()));
            let after = block.byte_add(have);
            if wanted > have && ((*after).head & IN_USE != 0 || have + (*after).size() < wanted) {
                return false;
            }
            inner.discount(block, word);
            if wanted > have {
                inner.withdraw(after);
                checks::check_poison(after);
                inner.leave(after, block);
                set_size(block, have + (*after).size());
                (*end_of(block)).head |= BEFORE_IN_USE;
            }
            inner.trim(block, wanted, word);
            inner.count(block, word);
        }
        true
    }

    pub(super) fn usage(&self) -> Usage {
        self.lock().usage()
    }

    pub(super) fn stats(&self) -> StripeStats {
        let inner = self.lock();
        let mut stats = StripeStats { usage: inner.usage(), ..StripeStats::default() };
        for block in inner.bins.at_least(0) {
            // SAFETY: blocks in the bins are free and whole, and stay so under the lock.
            let (size, is_purged) = unsafe { ((*block).size(), (*block).head & PURGED != 0) };
            stats.free_blocks += 1;
            stats.free_bytes += size;
            stats.given_back_bytes += if is_purged { size } else { 0 };
            stats.largest_bytes = stats.largest_bytes.max(size);
        }
        stats
    }

    pub(super) fn is_purge_due(&self) -> bool {
        let inner = self.lock();
        inner.freed_bytes >= PURGE_MIN || inner.empty_count > EMPTY_KEPT
    }

    /// Unmaps empty extents and gives the pages of other large free blocks back, `budget` of them together at most.
    /// Meanwhile the lock is free: extents are forgotten first, and blocks are in use.
    pub(super) fn purge(&self, budget: usize) -> usize {
        let mut done = 0;
        while done < budget {
            let Some(extent) = self.lock().take_empty() else { break };
            // SAFETY: nothing of it is in use, and the stripe has forgotten it.
            unsafe { extent::unmap(extent) };
            done += 1;
        }
        while done < budget {
            let (blocks, count) = self.take_dirty(PURGE_BATCH.min(budget - done));
            if count == 0 {
                break;
            }
            for block in &blocks[..count] {
                // SAFETY: taken, a block is ours but for its head, which changes under the lock when neighbours come and go, so
                // its end was looked up there. Links and foot are written when it is put back.
                unsafe {
                    extent::discard(block.first, block.end);
                    self.put_back(block.block, Pages::GivenBack);
                }
            }
            done += count;
        }
        done
    }

    /// Takes large free blocks that have pages, at most `count` of them.
    fn take_dirty(&self, count: usize) -> ([Dirty; PURGE_BATCH], usize) {
        let mut inner = self.lock();
        let (mut blocks, mut found) = ([const { Dirty::NONE }; PURGE_BATCH], 0);
        if inner.freed_bytes < PURGE_MIN {
            return (blocks, 0);
        }
        // SAFETY: blocks in the bins are free and whole; no two of them touch, so that taking one leaves the others.
        unsafe {
            for block in inner.bins.with_pages(PURGE_MIN).take(count) {
                blocks[found].block = block;
                found += 1;
            }
            for dirty in &mut blocks[..found] {
                let block = dirty.block;
                inner.take(block, (*block).size());
                part(block);
                dirty.first = block.byte_add(size_of::<Free>()).cast();
                dirty.end = end_of(block).byte_sub(8).cast();
            }
        }
        if found < count {
            inner.freed_bytes = 0;
        }
        (blocks, found)
    }
}

/// What a block that is put back still has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pages {
    Kept,
    GivenBack,
}

/// A block that was taken to give its pages back: those between two addresses.
struct Dirty {
    block: *mut Free,
    first: *mut u8,
    end: *mut u8,
}

impl Dirty {
    const NONE: Dirty = Dirty { block: ptr::null_mut(), first: ptr::null_mut(), end: ptr::null_mut() };
}

/// Notes that pages of `block` go back: a huge page that it lies in is one no more.
///
/// # Safety
/// `block` is whole, and its stripe's lock is held.
unsafe fn part(block: *mut Free) {
    // SAFETY: the caller's promise.
    let last = unsafe { block.addr() + (*block).size() - 1 };
    let word = directory::of(block.addr());
    for half in block.addr() % EXTENT / HALF..=last % EXTENT / HALF {
        word.set_united(half, false);
    }
}

/// The block behind `block`, or the extent's end mark.
///
/// # Safety
/// `block` is whole.
pub(super) unsafe fn end_of(block: *mut Free) -> *mut Free {
    // SAFETY: blocks touch each other up to the end mark.
    unsafe { block.byte_add((*block).size()) }
}

/// # Safety
/// `block` is a block's place.
unsafe fn set_size(block: *mut Free, size: usize) {
    debug_assert!(size >= BLOCK_MIN && size.is_multiple_of(16) && size < EXTENT);
    // SAFETY: the caller's promise.
    unsafe { (*block).head = size as u64 | ((*block).head & FLAGS) };
}

/// The free block that fills a whole extent.
pub(super) const WHOLE: usize = EXTENT - FIRST - 8;

impl Inner {
    fn usage(&self) -> Usage {
        let mapped_bytes = self.extent_count * EXTENT;
        Usage { mapped_bytes, resident_bytes: mapped_bytes - self.purged_bytes, used_bytes: self.used_bytes }
    }

    /// Maps one more extent: one free block, in its bin.
    fn grow(&mut self, owner: &'static Stripe) -> Option<*mut Free> {
        let base = extent::map();
        if base.is_null() {
            return None;
        }
        if !directory::enter(base.addr(), super::number_of(owner)) {
            // SAFETY: nobody knows of the extent.
            unsafe { extent::unmap(base) };
            return None;
        }
        // SAFETY: the extent is new, zeroed and ours: header, one free block, the end mark.
        unsafe {
            let header = base.cast::<Header>();
            header.write(Header { owner, next: self.extents, previous: ptr::null_mut() });
            if !self.extents.is_null() {
                (*self.extents).previous = header;
            }
            self.extents = header;
            self.extent_count += 1;
            let block = base.add(FIRST).cast::<Free>();
            (*block).head = WHOLE as u64 | BEFORE_IN_USE | PURGED;
            (*end_of(block)).head = IN_USE;
            self.offer(block, directory::of(base.addr()));
            huge::note_growth();
            Some(block)
        }
    }

    /// Takes a free block of at least `wanted` bytes out of the bins and cuts it to size; its payload.
    ///
    /// # Safety
    /// `block` is in the bins and at least `wanted` bytes long.
    unsafe fn take(&mut self, block: *mut Free, wanted: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            debug_assert!((*block).size() >= wanted && (*block).head & IN_USE == 0);
            let word = directory::of(block.addr());
            self.withdraw(block);
            let purged = (*block).head & PURGED;
            (*block).head = (*block).head & !PURGED | IN_USE;
            (*end_of(block)).head |= BEFORE_IN_USE;
            let rest = self.cut(block, wanted);
            if let Some(rest) = rest {
                // What is left of a block without pages has none but its first.
                (*rest).head |= purged;
                self.offer(rest, word);
            }
            self.count(block, word);
            checks::check_poison(block);
            block.byte_add(HEAD).cast()
        }
    }

    /// Cuts a block in use down to `wanted` bytes and frees the rest, where that is worth a block.
    ///
    /// # Safety
    /// `block` is in use and at least `wanted` bytes long, in the extent of `word`.
    unsafe fn trim(&mut self, block: *mut Free, wanted: usize, word: &Word) {
        // SAFETY: the caller's promise; the rest is whole and in no bin.
        unsafe {
            if let Some(rest) = self.cut(block, wanted) {
                self.release(rest, word);
            }
        }
    }

    /// Splits a block in use; the second part is free, in no bin, and the block behind it knows.
    ///
    /// # Safety
    /// As `trim`.
    unsafe fn cut(&mut self, block: *mut Free, wanted: usize) -> Option<*mut Free> {
        // SAFETY: the caller's promise: both parts lie in the block.
        unsafe {
            let rest_bytes = (*block).size() - wanted;
            if rest_bytes < BLOCK_MIN {
                return None;
            }
            set_size(block, wanted);
            let rest = end_of(block);
            (*rest).head = rest_bytes as u64 | BEFORE_IN_USE;
            Some(rest)
        }
    }

    /// Frees a block, merges it with free neighbours and puts the whole into its bin.
    ///
    /// # Safety
    /// `block` is whole, ours and in no bin, in the extent of `word`.
    unsafe fn release(&mut self, mut block: *mut Free, word: &Word) {
        // SAFETY: neighbours in use are told by the flags; a free one before has a foot; all free ones are in the bins.
        unsafe {
            let after = end_of(block);
            let mut size = (*block).size();
            let mut purged = (*block).head & PURGED;
            if purged == 0 {
                checks::poison(block);
            }
            if (*after).head & IN_USE == 0 {
                self.withdraw(after);
                size += (*after).size();
                checks::poison_border(after);
                self.leave(after, block);
                purged = 0;
            }
            if (*block).head & BEFORE_IN_USE == 0 {
                let before_bytes = *block.byte_sub(8).cast::<u64>() as usize;
                let border = block;
                block = block.byte_sub(before_bytes);
                debug_assert!((*block).size() == before_bytes && (*block).head & IN_USE == 0);
                self.withdraw(block);
                size += before_bytes;
                checks::poison_border(border);
                self.leave(border, block);
                purged = 0;
            }
            // No two free blocks touch, so the one before this is in use.
            (*block).head = size as u64 | BEFORE_IN_USE | purged;
            self.offer(block, word);
        }
    }

    /// A block is part of another from now on: a walk that stands on it goes back to the other's start.
    fn leave(&mut self, block: *mut Free, into: *mut Free) {
        if self.cursor == block {
            self.cursor = into;
        }
    }

    /// Makes a free block findable: foot, the neighbour's flag, bin. In a closed extent nobody shall find it.
    ///
    /// # Safety
    /// `block` is whole, free, merged and in no bin, in the extent of `word`.
    unsafe fn offer(&mut self, block: *mut Free, word: &Word) {
        // SAFETY: the caller's promise.
        unsafe {
            let end = end_of(block);
            *end.byte_sub(8).cast::<u64>() = (*block).size() as u64;
            (*end).head &= !BEFORE_IN_USE;
            if (*block).head & PURGED != 0 {
                self.purged_bytes += (*block).size();
            }
            if word.is_special() {
                return self.offer_special(block, word);
            }
            if (*block).size() == WHOLE {
                self.empty_count += 1;
            }
            self.bins.insert(block);
        }
    }

    /// Takes a free block out of its bin, if it is in one.
    ///
    /// # Safety
    /// `block` is whole and free, as [`Inner::offer`] left it.
    unsafe fn withdraw(&mut self, block: *mut Free) {
        // SAFETY: the caller's promise.
        unsafe {
            let size = (*block).size();
            if (*block).head & PURGED != 0 {
                self.purged_bytes -= size;
            }
            if (*block).head & LOOSE != 0 {
                return (*block).set_binned();
            }
            if size == WHOLE {
                self.empty_count -= 1;
            }
            self.bins.remove(block);
        }
    }

    /// The block is in use from now on.
    ///
    /// # Safety
    /// `block` is whole, in the extent of `word`.
    unsafe fn count(&mut self, block: *mut Free, word: &Word) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { (*block).size() };
        self.used_bytes += bytes;
        word.add_used(bytes);
    }

    /// The block is in use no more.
    ///
    /// # Safety
    /// `block` is whole, in the extent of `word`, and was counted with this size.
    unsafe fn discount(&mut self, block: *mut Free, word: &Word) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { (*block).size() };
        self.used_bytes -= bytes;
        word.take_used(bytes);
    }

    /// An empty extent that is one too many, for the caller to unmap.
    fn take_empty(&mut self) -> Option<*mut u8> {
        if self.empty_count <= EMPTY_KEPT {
            return None;
        }
        let block = self.bins.at_least(WHOLE).next()?;
        // SAFETY: the block is in a bin, and it is its extent's only one.
        unsafe {
            self.withdraw(block);
            Some(self.forget_extent(block))
        }
    }

    /// The extent of `block`, which the stripe does not hold any more.
    ///
    /// # Safety
    /// `block` is the one block of its extent, free and in no bin.
    unsafe fn forget_extent(&mut self, block: *mut Free) -> *mut u8 {
        // SAFETY: nothing of the extent is in use or in a bin; the header's neighbours are headers or null.
        unsafe {
            let base = block.byte_sub(FIRST);
            let header = base.cast::<Header>();
            let (next, previous) = ((*header).next, (*header).previous);
            if previous.is_null() {
                self.extents = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            self.extent_count -= 1;
            directory::of(base.addr()).leave();
            base.cast()
        }
    }
}

#[cfg(test)]
impl Stripe {
    /// A stripe of a test's own. Kept for ever, where a leak detector sees it.
    pub(super) fn private() -> &'static Stripe {
        static KEPT: Mutex<Vec<&'static Stripe>> = Mutex::new(Vec::new());
        let stripe: &'static Stripe = Box::leak(Box::new(Stripe::new()));
        KEPT.lock().unwrap().push(stripe);
        stripe
    }

    /// Walks every extent: blocks touch, flags agree, no two free blocks touch, sums are right.
    pub(super) fn check(&self) {
        let inner = self.lock();
        let (mut used, mut extents, mut header) = (0, 0, inner.extents);
        while !header.is_null() {
            // SAFETY: headers are linked while their extents are mapped.
            unsafe {
                used += checks::verify_extent(header.cast(), inner.cursor);
                header = (*header).next;
            }
            extents += 1;
        }
        assert_eq!((used, extents), (inner.used_bytes, inner.extent_count));
        inner.check_bins();
    }
}

#[cfg(test)]
impl Inner {
    /// Nothing in a bin lies in a closed extent.
    fn check_bins(&self) {
        for block in self.bins.at_least(BLOCK_MIN) {
            let word = directory::of(block.addr());
            assert!(!word.is_closed() || word.is_walked(), "a closed extent's block is found");
            // SAFETY: blocks in the bins are free and whole.
            assert!(!unsafe { (*block).is_loose() });
        }
    }
}
