//! One stripe of the arena: extents cut into blocks that touch each other, so that neighbours can merge.
//!
//! ```text
//! extent   [ header 56 B | block | block | ... | block | end mark 8 B ]
//! ```
//!
//! What a block looks like is said in `heads.rs`, which reads and changes them; here is which block is taken,
//! how it merges with its neighbours when it is freed, and what is counted. All of it happens under the
//! stripe's lock, which lends [`Inner`] and with it the heads.

use super::bins::Bins;
use super::checks;
use super::directory::{self, HALF, Word};
use super::extent::{self, EXTENT};
use super::heads::{BLOCK_MIN, Block, FIRST, HEAD, Heads, Pages, WHOLE};
use super::lock::{Mutex, MutexGuard};
#[cfg(test)]
use std::collections::BTreeMap;
use std::ptr;
use std::sync::{PoisonError, TryLockError};

pub(super) const ALIGN: usize = 16;
/// Free blocks from this size on give their pages back.
const PURGE_MIN: usize = 16 << 10;
/// Empty extents that a stripe keeps for what comes next.
const EMPTY_KEPT: usize = 1;
/// How many dirty blocks are looked for at a time.
const PURGE_BATCH: usize = 8;

/// The block that a request of `size` bytes takes.
pub(super) const fn block_bytes(size: usize) -> usize {
    let block = (size + HEAD).next_multiple_of(16);
    if block < BLOCK_MIN { BLOCK_MIN } else { block }
}

/// At the start of each extent.
#[repr(C)]
struct Header {
    owner: *const Stripe,
    next: *mut Header,
    previous: *mut Header,
}

const _: () = assert!(size_of::<Header>() <= FIRST);

/// What the arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes mapped from the system, touched or not.
    pub mapped_bytes: usize,
    /// Of these, what has pages, to the grain of a page: all but new extents and free blocks whose pages were
    /// given back.
    pub resident_bytes: usize,
    /// Bytes in blocks that are in use, heads included.
    pub used_bytes: usize,
    /// Bytes in free blocks that are too short for a purge: their pages stay resident.
    pub hole_bytes: usize,
}

/// One stripe, its free blocks counted one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StripeStats {
    pub usage: Usage,
    pub free_blocks: usize,
    pub free_bytes: usize,
    /// Of the free bytes, those in blocks whose pages the system has.
    pub given_back_bytes: usize,
    /// The largest free block.
    pub largest_bytes: usize,
}

/// One lock, its extents and their free blocks; on cache lines of its own.
#[repr(align(128))]
pub(super) struct Stripe {
    /// Which of the arena's stripes it is; `directory::STRIPES` for one of a test's own.
    number: usize,
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub(super) heads: Heads,
    pub(super) bins: Bins,
    extents: *mut Header,
    extent_count: usize,
    /// Extents of which all is free.
    pub(super) empty_count: usize,
    used_bytes: usize,
    /// Bytes in free blocks whose pages were given back.
    purged_bytes: usize,
    /// Bytes in free blocks that are too short for a purge.
    hole_bytes: usize,
    /// Bytes freed since the last purge found nothing more to do.
    freed_bytes: usize,
}

// SAFETY: the pointers lead to memory that the stripe alone owns, and are followed under its lock only.
unsafe impl Send for Inner {}

/// The stripe that `payload` was allocated from.
///
/// # Safety
/// `payload` came from [`Stripe::alloc`] and is live.
pub(super) unsafe fn owner(payload: *mut u8) -> &'static Stripe {
    let header = payload.map_addr(|a| a & !(EXTENT - 1)).cast::<Header>();
    // SAFETY: a live block lies in a mapped extent whose header was written when it was mapped; stripes are
    // static.
    unsafe { &*(*header).owner }
}

impl Stripe {
    pub(super) const fn new(number: usize) -> Stripe {
        let inner = Mutex::new(Inner {
            // SAFETY: they lie behind this lock, and are asked for the stripe's own blocks.
            heads: unsafe { Heads::new() },
            bins: Bins::new(),
            extents: ptr::null_mut(),
            extent_count: 0,
            empty_count: 0,
            used_bytes: 0,
            purged_bytes: 0,
            hole_bytes: 0,
            freed_bytes: 0,
        });
        Stripe { number, inner }
    }

    /// Gives the stripe its number, before it serves anybody.
    pub(super) const fn set_number(&mut self, number: usize) {
        self.number = number;
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics under the lock but assertions about a broken heap, after which the process ends.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock, for a request of the program. None while this thread panics and the lock is taken: it may
    /// have been taken by this very thread, and the report of the panic needs memory all the same.
    #[inline]
    fn lock_to_serve(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => self.lock_unless_panicking(),
        }
    }

    #[cold]
    fn lock_unless_panicking(&self) -> Option<MutexGuard<'_, Inner>> {
        (!std::thread::panicking()).then(|| self.lock())
    }

    /// Memory of at least `size` bytes, or null where the system has none or the thread
    /// [panics](Stripe::lock_to_serve).
    pub(super) fn alloc(&'static self, size: usize) -> *mut u8 {
        let Some(mut inner) = self.lock_to_serve() else { return ptr::null_mut() };
        let inner = &mut *inner;
        let wanted = block_bytes(size);
        let Some(block) = inner.bins.find(&inner.heads, wanted).or_else(|| inner.grow(self)) else {
            return ptr::null_mut();
        };
        // SAFETY: `block` is in the bins and large enough.
        unsafe { inner.take(block, wanted) }
    }

    /// # Safety
    /// `payload` came from `alloc` of this stripe and is live; it is not used again. It is lost where the
    /// thread [panics](Stripe::lock_to_serve).
    pub(super) unsafe fn free(&self, payload: *mut u8) {
        if let Some(mut inner) = self.lock_to_serve() {
            // SAFETY: the caller's promise.
            unsafe { inner.put_back(Block::of_payload(payload), Pages::Kept) };
        }
    }

    /// Grows or shrinks where it is; false where the neighbour is in the way, or the thread
    /// [panics](Stripe::lock_to_serve).
    ///
    /// # Safety
    /// `payload` came from `alloc` of this stripe and is live.
    pub(super) unsafe fn resize(&self, payload: *mut u8, size: usize) -> bool {
        let wanted = block_bytes(size);
        let Some(mut inner) = self.lock_to_serve() else { return false };
        let inner = &mut *inner;
        // SAFETY: the caller's promise; the block behind is whole, and nobody's if it is free.
        unsafe {
            let block = Block::of_payload(payload);
            let (have, word) = (inner.heads.size(block), directory::of(block.addr()));
            if wanted > have {
                let after = inner.heads.after(block);
                if inner.heads.is_in_use(after) || have + inner.heads.size(after) < wanted {
                    return false;
                }
                inner.discount(block, word);
                inner.withdraw(after);
                checks::check_poison(&inner.heads, after);
                inner.heads.set_used(after);
                inner.heads.join(block, after);
            } else {
                inner.discount(block, word);
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
        for block in inner.bins.at_least(&inner.heads, 0) {
            // SAFETY: blocks in the bins are free and whole, and stay so under the lock.
            let (size, pages) = unsafe { (inner.heads.size(block), inner.heads.pages(block)) };
            stats.free_blocks += 1;
            stats.free_bytes += size;
            stats.given_back_bytes += if pages == Pages::GivenBack { size } else { 0 };
            stats.largest_bytes = stats.largest_bytes.max(size);
        }
        stats
    }

    pub(super) fn is_purge_due(&self) -> bool {
        let inner = self.lock();
        inner.freed_bytes >= PURGE_MIN || inner.empty_count > EMPTY_KEPT
    }

    /// Unmaps empty extents and gives the pages of other large free blocks back, `budget` of them together at
    /// most. Meanwhile the lock is free: extents are forgotten first, and blocks are in use.
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
            blocks[..count].iter().for_each(|dirty| self.give_back(dirty));
            done += count;
        }
        done
    }

    /// The first half of a purge: takes large free blocks that have pages, at most `count` of them.
    pub(super) fn take_dirty(&self, count: usize) -> ([Dirty; PURGE_BATCH], usize) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let (mut blocks, mut found) = ([const { Dirty(None) }; PURGE_BATCH], 0);
        if inner.freed_bytes < PURGE_MIN {
            return (blocks, 0);
        }
        // SAFETY: blocks in the bins are free and whole; no two of them touch, so that taking one leaves the
        // others.
        unsafe {
            for block in inner.bins.with_pages(&inner.heads, PURGE_MIN).take(count) {
                let (first, bytes) = inner.heads.interior(block);
                blocks[found] = Dirty(Some((block, first, bytes)));
                found += 1;
            }
            for (block, ..) in blocks[..found].iter().filter_map(|dirty| dirty.0) {
                inner.take(block, inner.heads.size(block));
                inner.part(block);
            }
        }
        if found < count {
            inner.freed_bytes = 0;
        }
        (blocks, found)
    }

    /// The second half: gives the pages of a block back, and then the block, without the lock in between.
    pub(super) fn give_back(&self, dirty: &Dirty) {
        let Some((block, first, bytes)) = dirty.0 else { return };
        // SAFETY: the block was taken, so its bytes are ours; its head, which changes when its neighbours do,
        // is under the lock.
        unsafe {
            extent::discard(first, first.add(bytes));
            self.lock().put_back(block, Pages::GivenBack);
        }
    }
}

/// A block that was taken to give its pages back: its address, the first byte between its links and its foot,
/// and how many bytes there are from that one on.
pub(super) struct Dirty(Option<(Block, *mut u8, usize)>);

// SAFETY: who has a block has its bytes.
unsafe impl Send for Dirty {}

impl Inner {
    fn usage(&self) -> Usage {
        let mapped_bytes = self.extent_count * EXTENT;
        Usage {
            mapped_bytes,
            resident_bytes: mapped_bytes - self.purged_bytes,
            used_bytes: self.used_bytes,
            hole_bytes: self.hole_bytes,
        }
    }

    /// The headers of all extents.
    fn headers(&self) -> impl Iterator<Item = *mut Header> + use<> {
        let first = (!self.extents.is_null()).then_some(self.extents);
        std::iter::successors(first, |header| {
            // SAFETY: headers are linked while their extents are mapped.
            let next = unsafe { (**header).next };
            (!next.is_null()).then_some(next)
        })
    }

    /// Whether an extent in whose word this stripe's number stands is this stripe's: stripes of tests share a
    /// number.
    pub(super) fn has(&self, base: usize) -> bool {
        cfg!(not(test)) || self.headers().any(|header| header.addr() == base)
    }

    /// Maps one more extent: one free block, in its bin.
    fn grow(&mut self, owner: &'static Stripe) -> Option<Block> {
        let base = extent::map();
        if base.is_null() {
            return None;
        }
        if !directory::enter(&mut self.heads, base.addr(), owner.number) {
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
            let block = self.heads.lay_out(base.add(FIRST), WHOLE);
            self.offer(block, Pages::GivenBack, directory::of(base.addr()));
            Some(block)
        }
    }

    /// Takes a free block of at least `wanted` bytes out of the bins and cuts it to size; its payload.
    ///
    /// # Safety
    /// `block` is in the bins and at least `wanted` bytes long.
    unsafe fn take(&mut self, block: Block, wanted: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe {
            let word = directory::of(block.addr());
            self.withdraw(block);
            // If the block has no pages, its rest has none either, but for its first page.
            let pages = self.heads.pages(block);
            self.heads.set_used(block);
            if let Some(rest) = self.heads.split(block, wanted) {
                self.offer(rest, pages, word);
            }
            self.count(block, word);
            checks::check_poison(&self.heads, block);
            block.payload()
        }
    }

    /// Cuts a block in use down to `wanted` bytes and frees the rest, where that is worth a block.
    ///
    /// # Safety
    /// `block` is in use and at least `wanted` bytes long, in the extent of `word`.
    unsafe fn trim(&mut self, block: Block, wanted: usize, word: &Word) {
        // SAFETY: the caller's promise; the rest is whole and nobody's.
        unsafe {
            if let Some(rest) = self.heads.split(block, wanted) {
                self.release(rest, Pages::Kept, word);
            }
        }
    }

    /// # Safety
    /// `block` is in use, and from now on is not.
    unsafe fn put_back(&mut self, block: Block, pages: Pages) {
        // SAFETY: the caller's promise.
        unsafe {
            let word = directory::of(block.addr());
            self.discount(block, word);
            if pages == Pages::Kept {
                self.freed_bytes += self.heads.size(block);
            }
            self.release(block, pages, word);
        }
    }

    /// Frees a block, merges it with free neighbours and puts the whole into its bin.
    ///
    /// # Safety
    /// `block` is whole and in use, in the extent of `word`, and nobody uses it any more.
    unsafe fn release(&mut self, mut block: Block, mut pages: Pages, word: &Word) {
        // SAFETY: the caller's promise; free neighbours are whole, and in no bin once they are withdrawn.
        unsafe {
            let after = self.heads.after_used(block);
            if pages == Pages::Kept {
                checks::poison(&self.heads, block);
            }
            if !self.heads.is_in_use(after) {
                self.withdraw(after);
                self.heads.join(block, after);
                checks::poison_border(after);
                pages = Pages::Kept;
            }
            if let Some(before) = self.heads.free_before(block) {
                self.withdraw(before);
                self.heads.join(before, block);
                checks::poison_border(block);
                block = before;
                pages = Pages::Kept;
            }
            self.offer(block, pages, word);
        }
    }

    /// Makes a block free and findable. In a closed extent nobody shall find it.
    ///
    /// # Safety
    /// `block` is whole, nobody's, and in no bin, in the extent of `word`; its neighbours are in use.
    unsafe fn offer(&mut self, block: Block, pages: Pages, word: &Word) {
        // SAFETY: the caller's promise.
        unsafe {
            self.heads.set_free(block, pages);
            let size = self.heads.size(block);
            if pages == Pages::GivenBack {
                self.purged_bytes += size;
            }
            if size < PURGE_MIN {
                self.hole_bytes += size;
            }
            if word.is_special() {
                return self.offer_special(block, word);
            }
            if size == WHOLE {
                self.empty_count += 1;
            }
            self.bins.insert(&mut self.heads, block);
        }
    }

    /// Takes a free block out of its bin, if it is in one.
    ///
    /// # Safety
    /// `block` is whole and free, as [`Inner::offer`] left it.
    unsafe fn withdraw(&mut self, block: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let size = self.heads.size(block);
            if self.heads.pages(block) == Pages::GivenBack {
                self.purged_bytes -= size;
            }
            if size < PURGE_MIN {
                self.hole_bytes -= size;
            }
            if self.heads.is_loose(block) {
                return self.heads.set_loose(block, false);
            }
            if size == WHOLE {
                self.empty_count -= 1;
            }
            self.bins.remove(&mut self.heads, block);
        }
    }

    /// Counts a block that is in use from now on.
    ///
    /// # Safety
    /// `block` is whole, in the extent of `word`.
    unsafe fn count(&mut self, block: Block, word: &Word) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.heads.size(block) };
        self.used_bytes += bytes;
        word.add_used(&mut self.heads, bytes);
    }

    /// Takes a block that is not in use any more off the counts.
    ///
    /// # Safety
    /// `block` is whole, in the extent of `word`, and was counted with this size.
    unsafe fn discount(&mut self, block: Block, word: &Word) {
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.heads.size(block) };
        self.used_bytes -= bytes;
        word.take_used(&mut self.heads, bytes);
    }

    /// Notes that pages of `block` are given back, which takes apart the huge page that it may lie in.
    ///
    /// # Safety
    /// `block` is whole.
    unsafe fn part(&mut self, block: Block) {
        // SAFETY: the caller's promise.
        let last = unsafe { block.addr() + self.heads.size(block) - 1 };
        let word = directory::of(block.addr());
        for half in block.addr() % EXTENT / HALF..=last % EXTENT / HALF {
            word.set_united(&mut self.heads, half, false);
        }
    }

    /// An empty extent that is one too many, for the caller to unmap.
    fn take_empty(&mut self) -> Option<*mut u8> {
        if self.empty_count <= EMPTY_KEPT {
            return None;
        }
        let block = self.bins.at_least(&self.heads, WHOLE).next()?;
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
    unsafe fn forget_extent(&mut self, block: Block) -> *mut u8 {
        let base = block.extent();
        let header = base.cast::<Header>();
        // SAFETY: nothing of the extent is in use or in a bin; the header's neighbours are headers or null.
        unsafe {
            let (next, previous) = ((*header).next, (*header).previous);
            if previous.is_null() {
                self.extents = next;
            } else {
                (*previous).next = next;
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
        }
        self.extent_count -= 1;
        self.heads.forget(base);
        directory::of(base.addr()).leave(&mut self.heads);
        base
    }
}

/// Functions for tests.
#[cfg(test)]
impl Stripe {
    /// A stripe of a test's own. Kept for ever unless it [ends](Stripe::end), where a leak detector sees it.
    pub(super) fn private() -> &'static Stripe {
        let stripe: &'static Stripe = Box::leak(Box::new(Stripe::new(directory::STRIPES)));
        KEPT.lock().expect("nothing fails under it").push(stripe);
        stripe
    }

    /// # Safety
    /// Nothing of it is in use, and it is asked for nothing any more.
    pub(super) unsafe fn end(&'static self) {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let next = |inner: &Inner| inner.bins.at_least(&inner.heads, WHOLE).next();
        while let Some(block) = next(inner) {
            // SAFETY: the block is in a bin, and its extent's only one.
            unsafe {
                inner.withdraw(block);
                extent::unmap(inner.forget_extent(block));
            }
        }
        assert_eq!(inner.extent_count, 0, "an extent is in use");
        drop(guard);
        KEPT.lock().expect("nothing fails under it").retain(|kept| !ptr::eq(*kept, self));
        // SAFETY: it came from a box, and the caller gives up the last reference.
        drop(unsafe { Box::from_raw(ptr::from_ref(self).cast_mut()) });
    }

    /// Checks everything: each extent, each bin, and that both agree.
    pub(super) fn check(&self) {
        let inner = self.lock();
        let (mut used, mut purged, mut holes, mut extents) = (0, 0, 0, 0);
        let mut free = BTreeMap::new();
        for header in inner.headers() {
            // SAFETY: the extent is mapped while the stripe has it.
            unsafe {
                let word = directory::of(header.addr());
                assert!(word.is_mapped() && ptr::eq((*header).owner, self));
                assert_eq!(word.stripe(), self.number);
                used += checks::verify_extent(&inner.heads, header.cast());
                let found = inner.check_free(header.cast(), word, &mut free);
                (purged, holes) = (purged + found.0, holes + found.1);
            }
            extents += 1;
        }
        let counted = (inner.used_bytes, inner.purged_bytes, inner.hole_bytes, inner.extent_count);
        assert_eq!((used, purged, holes, extents), counted);
        inner.check_bins(free);
    }

    /// The blocks that are in use: their sizes by the addresses of their payloads.
    pub(super) fn blocks_in_use(&self) -> BTreeMap<usize, usize> {
        let inner = self.lock();
        let mut blocks = BTreeMap::new();
        for header in inner.headers() {
            // SAFETY: the extent is mapped while the stripe has it.
            unsafe {
                checks::for_each(&inner.heads, header.cast(), &mut |block| {
                    if inner.heads.is_in_use(block) {
                        blocks.insert(block.payload().addr(), inner.heads.size(block));
                    }
                });
            }
        }
        blocks
    }
}

#[cfg(test)]
static KEPT: std::sync::Mutex<Vec<&'static Stripe>> = std::sync::Mutex::new(Vec::new());

#[cfg(test)]
impl Inner {
    /// Free blocks of an extent are as they were left; those that must be in a bin are added to `free`. The
    /// bytes of those without pages, and of those that are too short for a purge.
    ///
    /// # Safety
    /// `base` is a mapped extent of this stripe.
    unsafe fn check_free(
        &self,
        base: *mut u8,
        word: &Word,
        free: &mut BTreeMap<usize, usize>,
    ) -> (usize, usize) {
        let (is_walked, is_closed) = (word.is_walked(), word.is_closed());
        let (mut purged, mut holes) = (0, 0);
        // SAFETY: the caller's promise.
        unsafe {
            checks::for_each(&self.heads, base, &mut |block| {
                if self.heads.is_in_use(block) {
                    return;
                }
                checks::check_poison(&self.heads, block);
                if self.heads.pages(block) == Pages::GivenBack {
                    checks::check_given_back(&self.heads, block);
                    purged += self.heads.size(block);
                }
                holes += Some(self.heads.size(block)).filter(|size| *size < PURGE_MIN).unwrap_or(0);
                if self.heads.is_loose(block) {
                    assert!(is_walked || is_closed, "a free block nobody finds");
                } else {
                    assert!(is_walked || !is_closed, "a closed extent's block is found");
                    free.insert(block.addr(), self.heads.size(block));
                }
            });
        }
        (purged, holes)
    }

    /// Each block that must be in a bin is in one, once, and nothing else is; what is counted of them is
    /// true.
    fn check_bins(&self, mut free: BTreeMap<usize, usize>) {
        let mut empty = 0;
        self.bins.check(&self.heads, &mut |block, size| {
            assert_eq!(free.remove(&block.addr()), Some(size), "a bin's block is not free");
            empty += usize::from(size == WHOLE);
        });
        assert!(free.is_empty(), "free blocks in no bin: {free:?}");
        assert_eq!(empty, self.empty_count);
    }
}

/// What tests ask of a block that a purge has taken.
#[cfg(test)]
impl Dirty {
    pub(super) fn payload(&self) -> *mut u8 {
        self.0.map_or(ptr::null_mut(), |(block, ..)| block.payload())
    }
}
