//! Bins: the free blocks of one stripe by size, and a bitmap of the bins that hold any. Sizes up to 4 KB have a bin each
//! (grain 16 bytes), larger ones 32 bins a doubling. Finding the smallest hole that fits is a few words of bitmap.

use super::stripe::Free;

/// Sizes below this have a bin of their own.
const EXACT_MAX: usize = 4 << 10;
const EXACT: usize = EXACT_MAX / 16;
/// Doublings from 4 KB to the extent's 4 MB, 32 bins each.
const COUNT: usize = EXACT + 10 * 32 + 1;
const WORDS: usize = COUNT.div_ceil(64);
/// How many blocks of a bin with several sizes are looked at before the next bin is taken.
const TRIES: usize = 8;

pub(super) struct Bins {
    heads: [*mut Free; COUNT],
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
        Bins { heads: [std::ptr::null_mut(); COUNT], filled: [0; WORDS] }
    }

    /// Puts a free block in.
    ///
    /// # Safety
    /// `block` is free, has its size set and is in no bin.
    pub(super) unsafe fn insert(&mut self, block: *mut Free) {
        // SAFETY: the block is free, so its links are ours; so is the head, which is in this bin.
        unsafe {
            let bin = bin_of((*block).size());
            let head = self.heads[bin];
            (*block).link(head);
            self.heads[bin] = block;
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
            let next = (*block).unlink();
            if self.heads[bin] == block {
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
    fn bins_rise_with_sizes_and_all_sizes_have_one() {
        let mut last = 0;
        for size in (32..=4 << 20).step_by(16) {
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
