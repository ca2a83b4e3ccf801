//! Blocks with a mapping of their own: what is larger than a stripe serves.
//!
//! A fresh page costs a fault, in which the system fills it with zeros: for a block of some megabytes that
//! takes several times as long as writing to it once. So a mapping that is freed is kept for about a second,
//! with its pages, for whoever needs as much next. A cache of large values whose keys are written again and
//! again has its pages already then, and so have the buffers that the values arrive in.
//!
//! Any of them serves: one that is longer than it has to be is divided, one that is shorter grows, to twice
//! its length at most. What is kept is bounded, and [`Mappings::purge`] gives it back when nobody has asked
//! for it.
//!
//! ```text
//! free --> kept --- asked for soon ---> in use
//!           \------ nobody asks ------> the system
//! ```
use super::SERVED_MAX;
use super::extent::{self, PAGE};
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many mappings are kept, how long each may be, and all together.
const COUNT_MAX: usize = 16;
const LEN_MAX: usize = 12 << 20;
const SUM_MAX: usize = 16 << 20;
/// No more is copied at once.
const COPIED_MAX: usize = 4 << 20;
/// So many rounds one is kept that nobody asks for. A call of [`Mappings::purge`] is a round; the server
/// makes ten a second.
const ROUNDS: u64 = 10;

/// A mapping that nobody uses. Its bytes are what they were.
#[derive(Clone, Copy)]
struct Mapping {
    first: *mut u8,
    len: usize,
    /// The round in which it was freed.
    freed: u64,
}

// SAFETY: nobody else knows of the pages.
unsafe impl Send for Mapping {}

/// The mappings that are kept, the one that was freed last at the end.
struct Kept {
    mappings: [Option<Mapping>; COUNT_MAX],
    count: usize,
    len: usize,
    round: u64,
}

/// Who gives out mappings, and keeps those that come back.
pub(super) struct Mappings(Mutex<Kept>);

/// Those of the process.
pub(super) static MAPPINGS: Mappings = Mappings::new();

impl Kept {
    fn iter(&self) -> impl Iterator<Item = (usize, &Mapping)> {
        self.mappings.iter().enumerate().filter_map(|(at, mapping)| Some((at, mapping.as_ref()?)))
    }

    /// What is to be given back where another of this length needs its place: of the one that was freed first
    /// as much as is needed, or all of it where too little would be left.
    fn make_room(&mut self, len: usize) -> Option<Mapping> {
        let excess = (self.len + len).saturating_sub(SUM_MAX);
        if self.count < COUNT_MAX && excess == 0 {
            return None;
        }
        match self.mappings[0].as_mut() {
            Some(first) if self.count < COUNT_MAX && first.len > excess + SERVED_MAX => {
                first.len -= excess;
                self.len -= excess;
                // SAFETY: the end lies in the mapping, which is ours.
                let end = unsafe { first.first.add(first.len) };
                Some(Mapping { first: end, len: excess, freed: first.freed })
            }
            _ => self.take(0),
        }
    }

    fn put(&mut self, first: *mut u8, len: usize) {
        self.mappings[self.count] = Some(Mapping { first, len, freed: self.round });
        (self.count, self.len) = (self.count + 1, self.len + len);
    }

    fn take(&mut self, at: usize) -> Option<Mapping> {
        let mapping = self.mappings[at].take()?;
        self.mappings[at..self.count].rotate_left(1);
        (self.count, self.len) = (self.count - 1, self.len - mapping.len);
        Some(mapping)
    }

    /// The one that serves best for `len` bytes: one of about that length, else one that is longer, else one
    /// of at least half of it. Of several as near as each other the one that was freed last.
    fn find(&self, len: usize) -> Option<usize> {
        self.nearest(len, len..=len + len / 4)
            .or_else(|| self.nearest(len, len - len / 8..=len))
            .or_else(|| self.nearest(len, len..=usize::MAX))
            .or_else(|| self.nearest(len, len.div_ceil(2)..=len))
    }

    /// Of those of such lengths the one that comes nearest to `len` bytes.
    fn nearest(&self, len: usize, lens: RangeInclusive<usize>) -> Option<usize> {
        let those = self.iter().filter(|(_, mapping)| lens.contains(&mapping.len));
        those.min_by_key(|(at, mapping)| (mapping.len.abs_diff(len), COUNT_MAX - at)).map(|(at, _)| at)
    }

    /// The first that was freed so many rounds ago.
    fn take_old(&mut self, rounds: u64) -> Option<Mapping> {
        let (at, _) = self.iter().find(|(_, mapping)| self.round - mapping.freed >= rounds)?;
        self.take(at)
    }
}

impl Mappings {
    const fn new() -> Mappings {
        Mappings(Mutex::new(Kept { mappings: [None; COUNT_MAX], count: 0, len: 0, round: 0 }))
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of at least `size` bytes, with whatever they were before; null where the system refuses.
    pub(super) fn alloc(&self, size: usize) -> *mut u8 {
        let len = size.next_multiple_of(PAGE);
        let taken = {
            let mut kept = self.kept();
            kept.find(len).and_then(|at| kept.take(at))
        };
        let Some(taken) = taken else { return extent::map_pages(len) };
        // SAFETY: the mapping was kept, so it is ours; where it cannot grow it is kept on.
        unsafe {
            let block = self.resized(taken.first, taken.len, len);
            if !block.is_null() {
                return block;
            }
            self.free(taken.first, taken.len);
        }
        extent::map_pages(len)
    }

    /// As [`Mappings::alloc`], all zeros.
    pub(super) fn alloc_zeroed(&self, size: usize) -> *mut u8 {
        extent::map_pages(size)
    }

    /// # Safety
    /// `block` came from these with this size, and nobody uses it any more.
    pub(super) unsafe fn free(&self, block: *mut u8, size: usize) {
        let len = size.next_multiple_of(PAGE);
        let kept_len = len.min(LEN_MAX);
        if kept_len < len {
            // SAFETY: the caller's promise; what is kept lies before it.
            unsafe { extent::unmap_pages(block.add(kept_len), len - kept_len) };
        }
        let next = || {
            let mut kept = self.kept();
            let first = kept.make_room(kept_len);
            if first.is_none() {
                kept.put(block, kept_len);
            }
            first
        };
        // SAFETY: a mapping that was kept is ours.
        std::iter::from_fn(next).for_each(|first| unsafe { extent::unmap_pages(first.first, first.len) });
    }

    /// Resizes a block, and moves it where there is no room; null, and nothing done, where the system
    /// refuses.
    ///
    /// # Safety
    /// As [`Mappings::free`]; on success only the new address is valid.
    pub(super) unsafe fn resize(&self, block: *mut u8, from: usize, to: usize) -> *mut u8 {
        let (len, wanted) = (from.next_multiple_of(PAGE), to.next_multiple_of(PAGE));
        // To copy what there is takes less than the faults of as many fresh pages.
        if wanted >= len + len / 2
            && from <= COPIED_MAX
            && let Some(taken) = self.take_longer(wanted)
        {
            // SAFETY: what is kept is ours, and can be made shorter; both are disjoint, and `block` has
            // `from` bytes.
            unsafe {
                let longer = self.resized(taken.first, taken.len, wanted);
                ptr::copy_nonoverlapping(block, longer, from);
                self.free(block, from);
                return longer;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { self.resized(block, len, wanted) }
    }

    /// One that has pages for all of `len` bytes.
    fn take_longer(&self, len: usize) -> Option<Mapping> {
        let mut kept = self.kept();
        let at = kept.nearest(len, len..=usize::MAX)?;
        kept.take(at)
    }

    /// Resizes a mapping of whole pages. What a shorter one has too many is kept where it is long enough to
    /// serve somebody else. Null, and nothing done, where the system refuses.
    ///
    /// # Safety
    /// As [`Mappings::resize`].
    unsafe fn resized(&self, first: *mut u8, len: usize, wanted: usize) -> *mut u8 {
        if wanted >= len {
            // SAFETY: the caller's promise.
            return if wanted == len { first } else { unsafe { extent::remap_pages(first, len, wanted) } };
        }
        let rest_len = len - wanted;
        // SAFETY: the rest lies in the caller's mapping, and nobody uses it any more.
        unsafe {
            let rest = first.add(wanted);
            if rest_len > SERVED_MAX {
                self.free(rest, rest_len)
            } else {
                extent::unmap_pages(rest, rest_len)
            }
        }
        first
    }

    /// Whether anything is kept, so that rounds count.
    pub(super) fn is_purge_due(&self) -> bool {
        self.kept().count > 0
    }

    /// A round: gives mappings that nobody has asked for back to the system, `budget` of them at most.
    /// Returns how many.
    pub(super) fn purge(&self, budget: usize) -> usize {
        self.kept().round += 1;
        self.give_back(budget, ROUNDS)
    }

    /// Gives all back that are kept, whenever they were freed.
    pub(super) fn purge_all(&self) {
        self.give_back(COUNT_MAX, 0);
    }

    fn give_back(&self, budget: usize, rounds: u64) -> usize {
        let old = || self.kept().take_old(rounds);
        let given = std::iter::from_fn(old).take(budget);
        // SAFETY: a mapping that was kept is ours.
        given.map(|mapping| unsafe { extent::unmap_pages(mapping.first, mapping.len) }).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    const MB: usize = 1 << 20;

    fn fill(block: *mut u8, size: usize, byte: u8) {
        // SAFETY: tests call it with blocks of this size.
        unsafe { block.write_bytes(byte, size) };
    }

    fn holds(block: *mut u8, size: usize, byte: u8) -> bool {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|b| *b == byte)
    }

    #[test]
    fn what_was_freed_serves_again_with_its_pages() {
        let own = Mappings::new();
        let block = own.alloc(3 * MB);
        fill(block, 3 * MB, 7);
        // SAFETY: it came from `alloc` with this size.
        unsafe { own.free(block, 3 * MB) };
        assert_eq!(own.kept().len, 3 * MB);
        let again = own.alloc(3 * MB - 5);
        assert!(again == block && holds(again, 3 * MB - 5, 7), "the same pages");
        let zeros = own.alloc_zeroed(3 * MB);
        assert!(holds(zeros, 3 * MB, 0));
        // SAFETY: as above.
        unsafe {
            own.free(again, 3 * MB - 5);
            own.free(zeros, 3 * MB);
        }
        own.purge_all();
        assert_eq!(own.kept().len, 0);
    }

    #[test]
    fn a_longer_one_is_divided_and_a_shorter_one_grows() {
        let own = Mappings::new();
        let block = own.alloc(5 * MB);
        fill(block, 5 * MB, 1);
        // SAFETY: here and below: blocks of this file with their sizes, used no more.
        unsafe { own.free(block, 5 * MB) };
        let first = own.alloc(3 * MB);
        assert_eq!((first, own.kept().len), (block, 2 * MB), "the rest serves others");
        let second = own.alloc(3 * MB);
        assert_eq!(own.kept().len, 0, "2 MB have grown to 3");
        assert!(holds(second, 2 * MB, 1));
        fill(second, 3 * MB, 2);
        assert!(holds(first, 3 * MB, 1));
        // SAFETY: see above.
        unsafe {
            own.free(first, 3 * MB);
            own.free(second, 3 * MB);
        }
        let small = own.alloc(MB + 1);
        assert_eq!(own.kept().len, 5 * MB - PAGE, "one of them is divided");
        // SAFETY: see above.
        unsafe { own.free(small, MB + 1) };
        own.purge_all();
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let own = Mappings::new();
        let blocks: Vec<*mut u8> = (0..COUNT_MAX + 9).map(|_| own.alloc(2 * MB)).collect();
        let huge = own.alloc(LEN_MAX + MB);
        // SAFETY: here and below: blocks of this file with their sizes, used no more.
        blocks.into_iter().for_each(|block| unsafe { own.free(block, 2 * MB) });
        assert_eq!(own.kept().len, SUM_MAX);
        // SAFETY: see above. It takes the place of those that were freed first, and is not kept as a whole.
        unsafe { own.free(huge, LEN_MAX + MB) };
        assert_eq!(own.kept().len, SUM_MAX);
        let again = own.alloc(LEN_MAX);
        assert_eq!((again, own.kept().len), (huge, SUM_MAX - LEN_MAX));
        // SAFETY: see above.
        unsafe { own.free(again, LEN_MAX) };
        let count = 1 + (SUM_MAX - LEN_MAX) / (2 * MB);
        assert_eq!((1..ROUNDS).map(|_| own.purge(COUNT_MAX)).sum::<usize>(), 0, "for some rounds");
        assert_eq!((own.purge(2), own.purge(COUNT_MAX), own.kept().len), (2, count - 2, 0));
        assert!(!own.is_purge_due());
    }

    #[test]
    fn blocks_keep_their_bytes_through_any_sequence_of_edits() {
        let own = Mappings::new();
        for seed in crate::model::seeds(4) {
            let mut random = Random::new(seed);
            let mut live: Vec<(*mut u8, usize, u8)> = Vec::new();
            for _ in 0..200 {
                let size = MB + 1 + random.below(3 * MB as u64) as usize;
                let byte = random.below(256) as u8;
                match random.below(3) {
                    0 if live.len() < 10 => live.push((own.alloc(size), size, byte)),
                    kind if !live.is_empty() => {
                        let at = random.below(live.len() as u64) as usize;
                        let (block, before, old) = live.swap_remove(at);
                        assert!(holds(block, before, old));
                        if kind == 1 {
                            // SAFETY: it is live with this size, and not used any more.
                            unsafe { own.free(block, before) };
                            continue;
                        }
                        // SAFETY: it is live with this size.
                        let block = unsafe { own.resize(block, before, size) };
                        assert!(holds(block, before.min(size), old));
                        live.push((block, size, byte));
                    }
                    _ => continue,
                }
                let (block, size, byte) = live[live.len() - 1];
                fill(block, size, byte);
            }
            for (block, size, byte) in live {
                assert!(holds(block, size, byte));
                // SAFETY: it is live with this size, and not used any more.
                unsafe { own.free(block, size) };
            }
        }
        own.purge_all();
    }
}
