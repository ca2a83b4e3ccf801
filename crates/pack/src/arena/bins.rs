//! Bins: the free blocks of one stripe by size, and a bitmap of the bins that hold any. Sizes up to 4 KB have a bin each
//! (grain 16 bytes), larger ones 32 bins a doubling. Finding the smallest hole that fits is a few words of bitmap.
//!
//! In a bin, blocks whose pages were given back stand behind all others. So memory that is there is used first, and whoever looks for
//! pages to give back sees only blocks that have some: after 60% of 5 GB went there were 70,000 that had none.

use super::extent::EXTENT;
use super::stripe::Free;

/// Sizes below this have a bin of their own.
const EXACT_MAX: usize = 4 << 10;
const EXACT: usize = EXACT_MAX / 16;
/// Doublings from 4 KB to the extent's size, 32 bins each.
const COUNT: usize = EXACT + (EXTENT / EXACT_MAX).ilog2() as usize * 32 + 1;
const WORDS: usize = COUNT.div_ceil(64);
/// How many blocks of a bin with several sizes are looked at before the next bin is taken.
const TRIES: usize = 8;

pub(super) struct Bins {
    heads: [*mut Free; COUNT],
    tails: [*mut Free; COUNT],
    filled: [u64; WORDS],
}

/// The bin of blocks of `size` bytes.
const fn bin_of(size: usize) -> usize {
    if size < EXACT_MAX {
        return size / 16;
    }
    let doubling = size.ilog2() as usize;
    EXACT + (doubling - 12) * 32 + ((size >> (doubling - 5)) & 31)
}

impl Bins {
    pub(super) const fn new() -> Bins {
        Bins {
            heads: [std::ptr::null_mut(); COUNT],
            tails: [std::ptr::null_mut(); COUNT],
            filled: [0; WORDS],
        }
    }

    /// Puts a free block in.
    ///
    /// # Safety
    /// `block` is free, has its size set and is in no bin.
    pub(super) unsafe fn insert(&mut self, block: *mut Free) {
        // SAFETY: the block is free, so its links are ours; so is the head, which is in this bin.
        unsafe {
            let bin = bin_of((*block).size());
            if (*block).is_purged() {
                (*block).link_behind(self.tails[bin]);
                self.tails[bin] = block;
                if self.heads[bin].is_null() {
                    self.heads[bin] = block;
                }
            } else {
                let head = self.heads[bin];
                (*block).link(head);
                self.heads[bin] = block;
                if head.is_null() {
                    self.tails[bin] = block;
                }
            }
            self.filled[bin / 64] |= 1 << (bin % 64);
        }
    }

    /// Takes a block out.
    ///
    /// # Safety
    /// `block` is in a bin of these, and its size is what it was when it was put in.
    pub(super) unsafe fn remove(&mut self, block: *mut Free) {
        // SAFETY: a block in a bin is free, and so are its neighbours in the list.
        unsafe {
            let bin = bin_of((*block).size());
            let (previous, next) = (*block).unlink();
            if next.is_null() {
                self.tails[bin] = previous;
            }
            if previous.is_null() {
                self.heads[bin] = next;
                if next.is_null() {
                    self.filled[bin / 64] &= !(1 << (bin % 64));
                }
            }
        }
    }

    /// The smallest block of at least `size` bytes, nearly (among large ones a bin holds sizes 3% apart). It stays in.
    pub(super) fn find(&self, size: usize) -> Option<*mut Free> {
        let bin = bin_of(size);
        if size >= EXACT_MAX {
            if let Some(block) = self.list(bin).take(TRIES).find(|b| size_of_free(*b) >= size) {
                return Some(block);
            }
            return self.next_filled(bin + 1).map(|b| self.heads[b]);
        }
        self.next_filled(bin).map(|b| self.heads[b])
    }

    /// Free blocks of at least `size` bytes, largest bins last.
    pub(super) fn at_least(&self, size: usize) -> impl Iterator<Item = *mut Free> {
        let first = bin_of(size);
        (first..COUNT).flat_map(|bin| self.list(bin)).filter(move |b| size_of_free(*b) >= size)
    }

    /// Free blocks of at least `size` bytes, a bin's least, whose pages were not given back.
    pub(super) fn with_pages(&self, size: usize) -> impl Iterator<Item = *mut Free> {
        let first = bin_of(size);
        // SAFETY: blocks in a bin are free and whole.
        (first..COUNT).flat_map(|bin| self.list(bin).take_while(|b| unsafe { !(**b).is_purged() }))
    }

    fn list(&self, bin: usize) -> impl Iterator<Item = *mut Free> + use<> {
        let head = self.heads[bin];
        std::iter::successors((!head.is_null()).then_some(head), |block| {
            // SAFETY: blocks in a bin are free and linked to free blocks or null.
            let next = unsafe { (**block).next() };
            (!next.is_null()).then_some(next)
        })
    }

    fn next_filled(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.filled.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.filled.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

fn size_of_free(block: *mut Free) -> usize {
    // SAFETY: only called for blocks in a bin, which are free and whole.
    unsafe { (*block).size() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_pages_stand_behind_all_others_whatever_comes_and_goes() {
        let mut random = base::random::Random::new(1);
        let mut memory = vec![[0_u64; 4]; 64];
        let mut bins = Bins::new();
        let mut inside = [false; 64];
        for _ in 0..20_000 {
            let index = random.below(64) as usize;
            let block = memory[index].as_mut_ptr().cast::<Free>();
            inside[index] = !inside[index];
            // SAFETY: the memory is ours and as long as a block's links; whether it is in a bin is kept beside it.
            unsafe {
                if inside[index] {
                    (*block).set_free(20_480, random.below(2) == 0);
                    bins.insert(block);
                } else {
                    bins.remove(block);
                }
                let all: Vec<bool> = bins.at_least(20_480).map(|b| (*b).is_purged()).collect();
                assert_eq!(all.len(), inside.iter().filter(|is_in| **is_in).count());
                assert!(all.is_sorted());
                assert_eq!(bins.with_pages(16_384).count(), all.iter().filter(|p| !**p).count());
            }
        }
    }

    #[test]
    fn bins_rise_with_sizes_and_all_sizes_have_one() {
        let mut last = 0;
        for size in (32..=EXTENT).step_by(16) {
            let bin = bin_of(size);
            assert!(
                bin == last || bin == last + 1 || size == 32,
                "size {size} skips from bin {last} to {bin}"
            );
            assert!(bin < COUNT);
            last = bin;
        }
    }
}
