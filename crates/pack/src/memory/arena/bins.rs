//! Bins: the free blocks of one stripe by size, and a bitmap of the bins that hold any. Sizes up to 4 KB have
//! a bin each (grain 16 bytes), larger ones 32 bins a doubling. Finding the smallest hole that fits is a few
//! words of bitmap.
//!
//! In a bin, blocks whose pages were given back stand behind all others. So memory that is there is used
//! first, and whoever looks for pages to give back sees only blocks that have some: after 60% of 5 GB went
//! there were 70,000 that had none.

use super::extent::EXTENT;
use super::heads::{Block, Heads, Pages, broken};

/// Sizes below this have a bin of their own.
const EXACT_MAX: usize = 4 << 10;
const EXACT: usize = EXACT_MAX / 16;
/// Doublings from 4 KB to the extent's size, 32 bins each.
const COUNT: usize = EXACT + (EXTENT / EXACT_MAX).ilog2() as usize * 32 + 1;
const WORDS: usize = COUNT.div_ceil(64);
/// How many blocks of a bin with several sizes are looked at before the next bin is taken.
const TRIES: usize = 8;

pub(super) struct Bins {
    first: [Option<Block>; COUNT],
    last: [Option<Block>; COUNT],
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
        Bins { first: [None; COUNT], last: [None; COUNT], filled: [0; WORDS] }
    }

    /// Puts a free block in.
    ///
    /// # Safety
    /// `block` is whole, free and in no bin.
    pub(super) unsafe fn insert(&mut self, heads: &mut Heads, block: Block) {
        // SAFETY: the caller's promise; the first and the last of a bin are in it.
        unsafe {
            let bin = bin_of(heads.size(block));
            match heads.pages(block) {
                Pages::GivenBack => {
                    heads.link(self.last[bin], block, None);
                    self.last[bin] = Some(block);
                    self.first[bin] = self.first[bin].or(Some(block));
                }
                Pages::Kept => {
                    heads.link(None, block, self.first[bin]);
                    self.first[bin] = Some(block);
                    self.last[bin] = self.last[bin].or(Some(block));
                }
            }
            self.filled[bin / 64] |= 1 << (bin % 64);
        }
    }

    /// Takes a block out.
    ///
    /// # Safety
    /// `block` is in a bin of these, and its size is what it was when it was put in.
    pub(super) unsafe fn remove(&mut self, heads: &mut Heads, block: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            let bin = bin_of(heads.size(block));
            let (previous, next) = heads.unlink(block);
            if next.is_none() {
                self.expect(self.last[bin], block);
                self.last[bin] = previous;
            }
            if previous.is_none() {
                self.expect(self.first[bin], block);
                self.first[bin] = next;
                if next.is_none() {
                    self.filled[bin / 64] &= !(1 << (bin % 64));
                }
            }
        }
    }

    /// Stops the process if a block that says it is the end of a bin's list is not.
    fn expect(&self, end: Option<Block>, block: Block) {
        if end != Some(block) {
            broken("a free block's size or links", block);
        }
    }

    /// The smallest block of at least `size` bytes, nearly (among large ones a bin holds sizes 3% apart). It
    /// stays in its bin.
    pub(super) fn find(&self, heads: &Heads, size: usize) -> Option<Block> {
        let bin = bin_of(size);
        if size >= EXACT_MAX {
            if let Some(block) = self.list(heads, bin).take(TRIES).find(|b| size_of_free(heads, *b) >= size) {
                return Some(block);
            }
            return self.next_filled(bin + 1).and_then(|b| self.first[b]);
        }
        self.next_filled(bin).and_then(|b| self.first[b])
    }

    /// Free blocks of at least `size` bytes, largest bins last.
    pub(super) fn at_least(&self, heads: &Heads, size: usize) -> impl Iterator<Item = Block> {
        let first = bin_of(size);
        (first..COUNT)
            .flat_map(move |bin| self.list(heads, bin))
            .filter(move |b| size_of_free(heads, *b) >= size)
    }

    /// Free blocks of at least `size` bytes, a bin's least, whose pages were not given back.
    pub(super) fn with_pages(&self, heads: &Heads, size: usize) -> impl Iterator<Item = Block> {
        let first = bin_of(size);
        // SAFETY: blocks in a bin are free and whole.
        let has_pages = |block: &Block| unsafe { heads.pages(*block) } == Pages::Kept;
        (first..COUNT).flat_map(move |bin| self.list(heads, bin).take_while(has_pages))
    }

    fn list<'a>(&self, heads: &'a Heads, bin: usize) -> impl Iterator<Item = Block> + use<'a> {
        // SAFETY: blocks in a bin are whole.
        std::iter::successors(self.first[bin], |block| unsafe { heads.next(*block) })
    }

    /// Checks that every list is linked rightly, that its blocks have the sizes of its bin, that those
    /// without pages come last, and that the bitmap says whether it is empty.
    #[cfg(test)]
    pub(super) fn check(&self, heads: &Heads, visit: &mut dyn FnMut(Block, usize)) {
        for bin in 0..COUNT {
            let (mut last, mut pages) = (None, Pages::Kept);
            for block in self.list(heads, bin) {
                // SAFETY: blocks in a bin are whole.
                let (size, has) = unsafe { (heads.size(block), heads.pages(block)) };
                assert_eq!(bin_of(size), bin);
                assert!(pages == Pages::Kept || has == Pages::GivenBack, "pages behind none");
                visit(block, size);
                (last, pages) = (Some(block), has);
            }
            assert_eq!(self.last[bin], last);
            assert_eq!(self.filled[bin / 64] >> (bin % 64) & 1 == 1, last.is_some());
        }
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

fn size_of_free(heads: &Heads, block: Block) -> usize {
    // SAFETY: only called for blocks in a bin, which are free and whole.
    unsafe { heads.size(block) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_without_pages_stand_behind_all_others_whatever_comes_and_goes() {
        const BYTES: usize = 20_480;
        let mut random = base::random::Random::new(1);
        let mut memory = vec![[0_u64; BYTES / 8 + 1]; 64];
        // SAFETY: nobody else knows of the memory.
        let mut heads = unsafe { Heads::new() };
        let mut bins = Bins::new();
        // SAFETY: the memory is ours, and as long as a block and an end mark.
        let blocks: Vec<Block> =
            memory.iter_mut().map(|m| unsafe { heads.lay_out(m.as_mut_ptr().cast(), BYTES) }).collect();
        let mut inside = [false; 64];
        for _ in 0..20_000 {
            let index = random.below(64) as usize;
            let block = blocks[index];
            inside[index] = !inside[index];
            // SAFETY: the block is whole; whether it is in a bin is kept beside it.
            unsafe {
                if inside[index] {
                    let pages = if random.below(2) == 0 { Pages::GivenBack } else { Pages::Kept };
                    heads.set_free(block, pages);
                    bins.insert(&mut heads, block);
                } else {
                    bins.remove(&mut heads, block);
                }
                let is_purged = |block| heads.pages(block) == Pages::GivenBack;
                let all: Vec<bool> = bins.at_least(&heads, BYTES).map(is_purged).collect();
                assert_eq!(all.len(), inside.iter().filter(|is_in| **is_in).count());
                assert!(all.is_sorted());
                assert_eq!(bins.with_pages(&heads, 16_384).count(), all.iter().filter(|p| !**p).count());
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
