//! A block: one reference-counted, growable run of bytes behind a thin pointer. Every leaf is one block.
//!
//! ```text
//! +--------+--------+--------+----------------------+-----------+
//! | refs   | len    | size   | len bytes of content | room      |
//! | u32    | u32    | u32    |                      |           |
//! +--------+--------+--------+----------------------+-----------+
//! |<------------------------- size ---------------------------->|
//! ```
//!
//! A block of the 3 bytes `abc` in an allocation of 16: `01000000 03000000 10000000 616263 00`.
//!
//! Cloning a block costs one increment. The only owner edits in place; one of several gets a copy first.
//! Growth goes to the allocator's next size class and no further: a leaf is small, so a copy now and then is
//! cheaper than the room that doubling would leave empty. Cost: 12 bytes and the rounding.
use crate::memory::arena::Moves;
use crate::memory::counted::count_copied;
use crate::memory::refs::Refs;
use crate::memory::shared::POINTER_BYTES;
use crate::memory::{alloc, arena};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};

#[repr(C)]
struct Header {
    refs: Refs,
    len: u32,
    size: u32,
}

/// Bytes of an allocation that are not content.
pub(crate) const HEADER_BYTES: usize = size_of::<Header>();
const _: () = assert!(HEADER_BYTES == 12);
const _: () = assert!(size_of::<Option<Block>>() == 8);

pub(crate) struct Block(NonNull<Header>);

// SAFETY: the content is bytes, changed only by a sole owner; the count is atomic.
unsafe impl Send for Block {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for Block {}

impl Block {
    /// An empty block with room for at least `capacity` bytes.
    pub(crate) fn with_capacity(capacity: usize) -> Block {
        Block::of_size(alloc::rounded(HEADER_BYTES + capacity))
    }

    /// An empty block in an allocation of `size` bytes, which is a rounded size.
    fn of_size(size: usize) -> Block {
        debug_assert!(size >= HEADER_BYTES, "a block has a header");
        let header = Header {
            refs: Refs::one(),
            len: 0,
            size: u32::try_from(size).expect("a block holds less than 4 GB"),
        };
        let memory = alloc::allocate(size).cast::<Header>();
        // SAFETY: the allocation is fresh, large enough and aligned to 8.
        unsafe { memory.write(header) };
        Block(memory)
    }

    /// A block of these bytes that will not grow: without the room of a growth step.
    pub(crate) fn fitting(bytes: &[u8]) -> Block {
        let mut block = Block::of_size(alloc::rounded_least(HEADER_BYTES + bytes.len()));
        // SAFETY: fresh, ours alone, and as long as `bytes` behind the header.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), block.start(), bytes.len());
            block.set_len(bytes.len());
        }
        block
    }

    pub(crate) fn from_slice(bytes: &[u8]) -> Block {
        let mut block = Block::with_capacity(bytes.len());
        block.extend(bytes);
        block
    }

    /// `front`, zeros, `back`: at least `gap` zeros, and as many as fill the allocation.
    pub(crate) fn spread(front: &[u8], gap: usize, back: &[u8]) -> Block {
        let size = alloc::rounded_for_entries(HEADER_BYTES + front.len() + gap + back.len());
        Block::spread_over(size, front, back)
    }

    /// The same without the room of a growth step.
    pub(crate) fn spread_tightly(front: &[u8], gap: usize, back: &[u8]) -> Block {
        let size = alloc::rounded_least(HEADER_BYTES + front.len() + gap + back.len());
        Block::spread_over(size, front, back)
    }

    fn spread_over(size: usize, front: &[u8], back: &[u8]) -> Block {
        let mut block = Block::of_size(size);
        let capacity = block.capacity();
        let gap = capacity - front.len() - back.len();
        debug_assert!(front.len() + gap + back.len() == capacity, "the three parts fill the block");
        // SAFETY: fresh and ours alone; the three parts are `capacity` bytes together.
        unsafe {
            ptr::copy_nonoverlapping(front.as_ptr(), block.start(), front.len());
            ptr::write_bytes(block.start().add(front.len()), 0, gap);
            ptr::copy_nonoverlapping(back.as_ptr(), block.start().add(front.len() + gap), back.len());
            block.set_len(capacity);
        }
        block
    }

    pub(crate) fn capacity(&self) -> usize {
        self.size() - HEADER_BYTES
    }

    /// What the block costs: header, content, room, and what the allocator adds.
    pub(crate) fn allocated_bytes(&self) -> usize {
        alloc::footprint(self.size())
    }

    fn size(&self) -> usize {
        self.header().size as usize
    }

    /// Whether nobody else holds this block. Only for `&mut` owners is the answer more than a hint.
    #[inline]
    pub(crate) fn is_sole(&self) -> bool {
        self.header().refs.is_sole()
    }

    /// Whether two handles name one block.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Block) -> bool {
        self.0 == other.0
    }

    /// Where the block lies, for a prefetch.
    pub(crate) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast::<u8>()
    }

    /// The content, to be edited: copied first where it is shared.
    #[inline]
    pub(crate) fn make_mut(&mut self) -> &mut [u8] {
        if !self.is_sole() {
            self.unshare();
        }
        // SAFETY: we are the only owner, and `&mut self` keeps it so.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len()) }
    }

    #[cold]
    fn unshare(&mut self) {
        *self = count_copied(|| Block::from_slice(self));
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let at = self.len();
        self.splice(at, 0, bytes);
    }

    /// Gives the block other content. It stays where it is if it is ours alone and of a size that fits.
    pub(crate) fn assign(&mut self, bytes: &[u8]) {
        if !self.is_sole() {
            *self = count_copied(|| Block::fitting(bytes));
        } else if !self.fits(bytes.len()) {
            *self = Block::fitting(bytes);
        } else {
            // SAFETY: we are the only owner, and the allocation has room for so many bytes.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), self.start(), bytes.len());
                self.set_len(bytes.len());
            }
        }
    }

    /// Replaces the `removed` bytes at `at` by `inserted`.
    pub(crate) fn splice(&mut self, at: usize, removed: usize, inserted: &[u8]) {
        self.gap(at, removed, inserted.len()).copy_from_slice(inserted);
    }

    /// Replaces the `removed` bytes at `at` by `inserted` zeros and lends them to be filled. The block grows
    /// by the least step there is, and moves to a smaller allocation once a quarter would be empty.
    pub(crate) fn gap(&mut self, at: usize, removed: usize, inserted: usize) -> &mut [u8] {
        self.gap_in((at, removed, inserted), Block::fits, Block::with_capacity)
    }

    /// The same without the room of a growth step: the block grows to what is needed, and `more` bytes that
    /// the caller asks for next, and moves once a sixth would be empty.
    pub(crate) fn gap_tightly(
        &mut self,
        at: usize,
        removed: usize,
        inserted: usize,
        more: usize,
    ) -> &mut [u8] {
        let least = |len| alloc::rounded_least(HEADER_BYTES + len + more);
        let fits = |block: &Block, len| len + more <= block.capacity() && least(len) * 6 >= block.size() * 5;
        self.gap_in((at, removed, inserted), fits, |len| Block::of_size(least(len)))
    }

    #[inline(always)]
    fn gap_in(
        &mut self,
        (at, removed, inserted): (usize, usize, usize),
        fits: impl FnOnce(&Block, usize) -> bool,
        fresh: impl FnOnce(usize) -> Block,
    ) -> &mut [u8] {
        let old_len = self.len();
        assert!(at <= old_len && removed <= old_len - at, "gap {at}+{removed} of {old_len}");
        let len = old_len - removed + inserted;
        if self.is_sole() && fits(self, len) && len <= self.capacity() {
            let tail = old_len - at - removed;
            // SAFETY: sole owner; both tails lie within the capacity, since `old_len` and `len` do.
            unsafe {
                // Leaves grow and shrink at their end: a call that copies or fills nothing costs as much as
                // one that does.
                if tail > 0 {
                    let from = self.start().add(at + removed);
                    ptr::copy(from, self.start().add(at + inserted), tail);
                }
                if inserted > 0 {
                    ptr::write_bytes(self.start().add(at), 0, inserted);
                }
                self.set_len(len);
            }
        } else if self.is_sole() {
            self.rebuild(at, removed, inserted, fresh(len));
        } else {
            count_copied(|| self.rebuild(at, removed, inserted, fresh(len)));
        }
        // SAFETY: sole owner now; `at + inserted` is at most `len`, all of it initialised.
        unsafe { std::slice::from_raw_parts_mut(self.start().add(at), inserted) }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        assert!(len <= self.len(), "a block is cut, not stretched");
        self.gap(len, self.len() - len, 0);
    }

    /// Whether content of `len` bytes would lie in a smaller allocation.
    pub(crate) fn is_larger_than_for(&self, len: usize) -> bool {
        alloc::rounded(HEADER_BYTES + len) < self.size()
    }

    /// The same for content that [`Block::spread_tightly`] lays out.
    pub(crate) fn is_larger_than_tight(&self, len: usize) -> bool {
        alloc::rounded_least(HEADER_BYTES + len) < self.size()
    }

    /// The same for content that [`Block::spread`] lays out.
    pub(crate) fn is_larger_than_for_entries(&self, len: usize) -> bool {
        alloc::rounded_for_entries(HEADER_BYTES + len) < self.size()
    }

    /// Moves the block to another allocation if its extent is being emptied ([`arena::is_evacuating`]). A
    /// shared block stays, because others know its address. `moves` is told what was done.
    pub(crate) fn relocate(&mut self, moves: &mut Moves) {
        if !arena::is_evacuating(self.address()) || !self.is_sole() {
            return moves.note(false, 0);
        }
        moves.note(true, self.size());
        let _beside = arena::beside(self.address());
        let mut fresh = Block::of_size(self.size());
        // SAFETY: fresh, ours alone, and as large as the old one.
        unsafe {
            ptr::copy_nonoverlapping(self.start(), fresh.start(), self.len());
            fresh.set_len(self.len());
        }
        *self = fresh;
    }

    /// Gives back all room, also that of a growth step.
    pub(crate) fn shrink_to_fit(&mut self) {
        if alloc::rounded_least(HEADER_BYTES + self.len()) < self.size() {
            *self = Block::fitting(self);
        }
    }

    /// The handle as bytes, which own it from here on. The lowest bit is 0.
    pub(crate) fn into_bytes(self) -> [u8; POINTER_BYTES] {
        let address = ManuallyDrop::new(self).0.as_ptr().expose_provenance() as u64;
        debug_assert!(address.is_multiple_of(2), "a block is aligned");
        address.to_le_bytes()
    }

    /// # Safety
    /// The bytes came from [`Block::into_bytes`], and own a handle that this takes over.
    pub(crate) unsafe fn from_bytes(bytes: [u8; POINTER_BYTES]) -> Block {
        let pointer = std::ptr::with_exposed_provenance_mut(u64::from_le_bytes(bytes) as usize);
        // SAFETY: the caller promises that the address is that of a block, never null.
        Block(unsafe { NonNull::new_unchecked(pointer) })
    }

    /// Drops this handle. If it was the last one, `last` is called with the content before the block is
    /// freed.
    pub(crate) fn drop_with(self, last: impl FnOnce(&[u8])) {
        let block = ManuallyDrop::new(self);
        if block.is_sole() || block.header().refs.release() {
            last(&block);
            // SAFETY: nobody else holds the block: ours was the only reference, or the last to be released.
            unsafe { block.free() };
        }
    }

    fn fits(&self, len: usize) -> bool {
        let room = self.capacity();
        len <= room && alloc::rounded(HEADER_BYTES + len) * 4 > self.size() * 3
    }

    /// Does the edit of [`Block::gap`] in `fresh`, an empty block.
    fn rebuild(&mut self, at: usize, removed: usize, inserted: usize, mut fresh: Block) {
        let tail = self.len() - at - removed;
        let len = at + inserted + tail;
        debug_assert!(at + removed <= self.len(), "what is rebuilt lies within the content");
        assert!(len <= fresh.capacity(), "the fresh block holds what is written to it");
        // SAFETY: the fresh block is ours alone and has room for `len`; the ranges read lie within the old
        // content.
        unsafe {
            ptr::copy_nonoverlapping(self.start(), fresh.start(), at);
            ptr::write_bytes(fresh.start().add(at), 0, inserted);
            let from = self.start().add(at + removed);
            ptr::copy_nonoverlapping(from, fresh.start().add(at + inserted), tail);
            fresh.set_len(len);
        }
        *self = fresh;
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: the header lives as long as any handle does.
        unsafe { self.0.as_ref() }
    }

    /// The first byte of the content.
    #[inline]
    fn start(&self) -> *mut u8 {
        // SAFETY: the content begins right behind the header, within the allocation.
        unsafe { self.0.as_ptr().cast::<u8>().add(HEADER_BYTES) }
    }

    /// # Safety
    /// The caller is the only owner, and `len` bytes of the content are initialised.
    unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.capacity());
        // SAFETY: sole owner, so nobody reads the header meanwhile.
        unsafe { (*self.0.as_ptr()).len = len as u32 };
    }

    /// Another handle of this block; None where it has as many owners as can be counted.
    #[inline]
    pub(crate) fn another(&self) -> Option<Block> {
        self.header().refs.retain().then(|| Block(self.0))
    }

    /// Counts so many owners more, or no longer.
    #[cfg(test)]
    pub(crate) fn pretend_owners(&self, more: u32) {
        self.header().refs.pretend(more);
    }

    /// # Safety
    /// No handle is used after this.
    unsafe fn free(&self) {
        debug_assert!(self.len() <= self.capacity(), "a block's length lies within its allocation");
        // SAFETY: allocated with this size; unused from here on.
        unsafe { alloc::free(self.0.cast::<u8>(), self.size()) };
    }
}

impl Deref for Block {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes are initialised, and nobody edits while a shared reference lives.
        unsafe { std::slice::from_raw_parts(self.start(), self.header().len as usize) }
    }
}

impl Clone for Block {
    fn clone(&self) -> Block {
        self.another().unwrap_or_else(|| Block::from_slice(self))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.header().refs.release() {
            // SAFETY: ours was the last reference.
            unsafe { self.free() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::refs::REFS_MAX;
    use base::random::Random;

    #[test]
    fn a_clone_keeps_its_bytes_when_the_original_is_edited() {
        let mut block = Block::from_slice(b"hello");
        let snapshot = block.clone();
        assert!(block.is_same(&snapshot) && !block.is_sole());
        block.make_mut()[0] = b'j';
        block.splice(5, 0, b" world");
        assert_eq!((&block[..], &snapshot[..]), (&b"jello world"[..], &b"hello"[..]));
        assert!(block.is_sole() && snapshot.is_sole());
    }

    #[test]
    fn a_sole_owner_edits_where_the_block_lies() {
        let mut block = Block::from_slice(b"0123456789");
        let address = block.address();
        block.splice(3, 2, b"ab");
        block.splice(0, 1, b"");
        assert_eq!(&block[..], b"12ab56789");
        assert_eq!(block.address(), address);
    }

    #[test]
    fn random_edits_agree_with_a_vector() {
        let mut random = Random::new(7);
        let mut block = Block::with_capacity(0);
        let mut model: Vec<u8> = Vec::new();
        let mut held: Vec<(Block, Vec<u8>)> = Vec::new();
        for step in 0..20_000u32 {
            let at = random.below(model.len() as u64 + 1) as usize;
            let removed = random.below((model.len() - at).min(40) as u64 + 1) as usize;
            let inserted: Vec<u8> = (0..random.below(45)).map(|i| (u64::from(step) + i) as u8).collect();
            block.splice(at, removed, &inserted);
            model.splice(at..at + removed, inserted.iter().copied());
            assert_eq!(&block[..], &model[..], "step {step}");
            assert!(block.capacity() >= block.len());
            if step.is_multiple_of(50) {
                model.truncate(random.below(model.len() as u64 + 1) as usize);
                model.extend(inserted);
                block.assign(&model);
            }
            if model.len() > 3000 {
                block.truncate(10);
                model.truncate(10);
                assert!(block.allocated_bytes() < 64, "a cut block gives memory back");
            }
            if random.below(8) == 0 {
                held.push((block.clone(), model.clone()));
            }
            if held.len() > 20 {
                let (old, then) = held.swap_remove(random.below(20) as usize);
                assert_eq!(&old[..], &then[..], "a held clone changed");
            }
        }
    }

    #[test]
    fn growth_by_small_steps_wastes_less_than_a_size_class() {
        let mut block = Block::with_capacity(0);
        for _ in 0..3000 {
            block.extend(b"x");
            assert!(block.size() <= alloc::rounded(HEADER_BYTES + block.len()));
        }
    }

    #[test]
    fn one_owner_more_than_can_be_counted_gets_a_copy() {
        let block = Block::from_slice(b"x");
        block.pretend_owners(REFS_MAX - 2);
        let last = block.clone();
        let copy = block.clone();
        assert!(last.is_same(&block) && !copy.is_same(&block));
        assert_eq!((&copy[..], copy.is_sole(), block.another().is_none()), (&b"x"[..], true, true));
        drop(last);
        assert!(block.clone().is_same(&block), "there is room again");
        block.pretend_owners(0_u32.wrapping_sub(REFS_MAX - 2));
        assert!(block.is_sole());
    }

    #[test]
    fn only_the_last_owner_runs_the_hook() {
        let block = Block::from_slice(b"x");
        let second = block.clone();
        let mut runs = 0;
        block.drop_with(|_| runs += 1);
        assert_eq!(runs, 0);
        second.drop_with(|content| {
            assert_eq!(content, b"x");
            runs += 1;
        });
        assert_eq!(runs, 1);
    }

    #[test]
    fn handles_are_dropped_on_other_threads() {
        let block = Block::from_slice(&[7; 1000]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let mine = block.clone();
                scope.spawn(move || {
                    for _ in 0..1000 {
                        let mut copy = mine.clone();
                        assert_eq!(copy[999], 7);
                        copy.make_mut()[999] = 8;
                    }
                });
            }
        });
        assert!(block.is_sole());
    }
}
