//! Closing an extent, so that it empties: its free blocks leave the bins, and what is freed in it afterwards
//! comes into none. Nothing is allocated there any more; whoever owns a block in it may move it elsewhere
//! (`evacuation.rs`).
//!
//! ```text
//!          close, step by step          the last block is freed
//!   open ----------------------> closed ------------------------> open, one free block, which a purge unmaps
//!     ^                             |
//!     +-----------------------------+
//!          reopen, step by step
//! ```
//!
//! Both walk over the blocks in order of address, some at a time under the stripe's lock: an extent of
//! 128-byte blocks has 30,000. Between two steps blocks come and go. When the block at which the walk stands
//! becomes part of another, by a merge or because the one before it grows, the walk goes back to the start of
//! that one; an extent that is walked over or closed says so in its word, for those who free in it.

use super::checks;
use super::directory::{self, Word};
use super::extent::HAS_CHECKS;
use super::heads::{Block, FIRST, WHOLE};
use super::stripe::{Inner, Stripe};
use std::ptr;

/// Where a walk over an extent stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    GoesOn,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Closed,
    Open,
}

impl Stripe {
    /// Begins to close the extent at `base`; false where it no longer belongs to this stripe, is empty, or is
    /// closed already.
    pub(super) fn begin_close(&self, base: usize) -> bool {
        let mut inner = self.lock();
        let Some(word) = self.own_word(&inner, base) else { return false };
        if word.is_special() || word.used_bytes() == 0 {
            return false;
        }
        word.set_closed(&mut inner.heads, true);
        inner.begin_walk(base, word);
        true
    }

    /// Begins to open a closed extent again; false where it has emptied meanwhile.
    pub(super) fn begin_reopen(&self, base: usize) -> bool {
        let mut inner = self.lock();
        let Some(word) = self.own_word(&inner, base).filter(|word| word.is_closed()) else { return false };
        word.set_closed(&mut inner.heads, false);
        inner.begin_walk(base, word);
        true
    }

    /// Goes over some more blocks.
    pub(super) fn walk(&self, blocks: usize) -> Walk {
        let mut inner = self.lock();
        let Some(base) = inner.heads.cursor().map(Block::extent) else { return Walk::Done };
        inner.verify(base);
        let walk = (0..blocks).map(|_| inner.step()).find(|walk| *walk == Walk::Done);
        inner.verify(base);
        walk.unwrap_or(Walk::GoesOn)
    }

    /// Whether nothing is allocated in the extent at `base`.
    #[cfg(test)]
    pub(super) fn is_closed(&self, base: usize) -> bool {
        let inner = self.lock();
        self.own_word(&inner, base).is_some_and(Word::is_closed)
    }

    /// The word of the extent at `base`, if that is mapped and belongs to this stripe.
    fn own_word(&self, inner: &Inner, base: usize) -> Option<&'static Word> {
        let word = directory::find(base).filter(|word| word.is_mapped())?;
        (word.stripe() == self.number() && inner.has(base)).then_some(word)
    }
}

impl Inner {
    fn begin_walk(&mut self, base: usize, word: &Word) {
        assert!(self.heads.cursor().is_none(), "one walk at a time");
        word.set_walked(&mut self.heads, true);
        // SAFETY: the extent is mapped, and its first block begins here.
        unsafe {
            let first = Block::at(ptr::with_exposed_provenance_mut(base + FIRST));
            self.heads.set_cursor(Some(first));
        }
    }

    /// Brings one block in line with what its extent shall be.
    fn step(&mut self) -> Walk {
        let Some(block) = self.heads.cursor() else { return Walk::Done };
        let word = directory::of(block.addr());
        // SAFETY: the cursor stands on a block of a mapped extent or on its end mark.
        unsafe {
            if self.heads.size(block) == 0 {
                self.end_walk(word);
                return Walk::Done;
            }
            let after = self.heads.after(block);
            self.heads.set_cursor(Some(after));
            let wanted = if word.is_closed() { Wanted::Closed } else { Wanted::Open };
            let (is_free, is_loose) = (!self.heads.is_in_use(block), self.heads.is_loose(block));
            match wanted {
                Wanted::Closed if is_free && !is_loose => {
                    self.bins.remove(&mut self.heads, block);
                    self.heads.set_loose(block, true);
                }
                Wanted::Open if is_loose => {
                    self.heads.set_loose(block, false);
                    self.bins.insert(&mut self.heads, block);
                }
                _ => {}
            }
        }
        Walk::GoesOn
    }

    /// Checks the extent as a whole, in a build with checks.
    fn verify(&self, base: *mut u8) {
        if HAS_CHECKS {
            // SAFETY: an extent that is walked over stays mapped while the lock is held.
            unsafe { checks::verify_extent(&self.heads, base) };
        }
    }

    fn end_walk(&mut self, word: &Word) {
        word.set_walked(&mut self.heads, false);
        // SAFETY: it stands nowhere.
        unsafe { self.heads.set_cursor(None) };
    }

    /// A block was freed, and merged, in an extent that is closed or walked over.
    ///
    /// # Safety
    /// As for `offer`, which has done all but the bin.
    #[cold]
    pub(super) unsafe fn offer_special(&mut self, block: Block, word: &Word) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.heads.size(block) == WHOLE {
                // Nothing is left to be moved: the extent is opened again, so that a purge finds it.
                if self.heads.cursor().is_some_and(|cursor| cursor.extent() == block.extent()) {
                    self.end_walk(word);
                }
                word.set_closed(&mut self.heads, false);
                self.empty_count += 1;
            } else if word.is_closed() {
                return self.heads.set_loose(block, true);
            }
            self.bins.insert(&mut self.heads, block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::extent::EXTENT;
    use base::random::Random;

    fn fill(stripe: &'static Stripe, random: &mut Random, blocks: usize) -> Vec<*mut u8> {
        (0..blocks).map(|_| stripe.alloc(20 + random.below(3000) as usize)).collect()
    }

    fn free(stripe: &Stripe, block: *mut u8) {
        // SAFETY: it came from this stripe, and its owner has let go of it.
        unsafe { stripe.free(block) };
    }

    fn extent_of(block: *mut u8) -> usize {
        block.expose_provenance() & !(EXTENT - 1)
    }

    #[test]
    fn nothing_is_allocated_in_a_closed_extent_and_it_opens_when_it_is_empty() {
        let (stripe, mut random) = (Stripe::private(), Random::new(1));
        let mut blocks = fill(stripe, &mut random, 4000);
        let base = extent_of(blocks[0]);
        assert!(stripe.begin_close(base) && !stripe.begin_close(base));
        while stripe.walk(100) == Walk::GoesOn {}
        stripe.check();
        let mut fresh = fill(stripe, &mut random, 4000);
        assert!(fresh.iter().all(|block| extent_of(*block) != base));
        let (inside, outside): (Vec<_>, Vec<_>) = blocks.drain(..).partition(|b| extent_of(*b) == base);
        inside.into_iter().for_each(|block| free(stripe, block));
        assert!(!directory::of(base).is_special(), "an empty extent is open");
        stripe.check();
        fresh.extend(outside);
        fresh.into_iter().for_each(|block| free(stripe, block));
        while stripe.purge(4) > 0 {}
        stripe.check();
        assert_eq!(stripe.usage().mapped_bytes, EXTENT);
        assert_eq!(stripe.usage().resident_bytes, EXTENT - WHOLE);
    }

    #[test]
    fn a_block_that_grows_over_the_one_at_which_a_walk_stands_takes_the_walk_back_to_its_start() {
        for is_reopened in [false, true] {
            let stripe = Stripe::private();
            let blocks: Vec<*mut u8> = (0..8).map(|_| stripe.alloc(1_000)).collect();
            let base = extent_of(blocks[0]);
            assert!(stripe.begin_close(base));
            if is_reopened {
                while stripe.walk(100) == Walk::GoesOn {}
                assert!(stripe.begin_reopen(base));
            }
            free(stripe, blocks[3]);
            // Three blocks were looked at: the walk stands on the free one.
            assert_eq!(stripe.walk(3), Walk::GoesOn);
            // SAFETY: the block is live; it is as long as is written once it has grown.
            unsafe {
                assert!(stripe.resize(blocks[2], 1_900));
                blocks[2].write_bytes(0x41, 1_900);
            }
            stripe.check();
            while stripe.walk(1) == Walk::GoesOn {
                stripe.check();
            }
            // SAFETY: as above.
            let bytes = unsafe { std::slice::from_raw_parts(blocks[2], 1_900) };
            assert!(bytes.iter().all(|byte| *byte == 0x41), "the walk wrote into a client's bytes");
            [0, 1, 2, 4, 5, 6, 7].into_iter().for_each(|at| free(stripe, blocks[at]));
            stripe.check();
        }
    }

    #[test]
    fn extents_close_and_open_in_steps_while_blocks_come_and_go() {
        for seed in crate::model::seeds(30) {
            let (stripe, mut random) = (Stripe::private(), Random::new(seed));
            let mut live = fill(stripe, &mut random, 3000);
            let mut walk = Walk::Done;
            for step in 0..6000 {
                match random.below(8) {
                    0..3 => live.push(stripe.alloc(20 + random.below(3000) as usize)),
                    3..6 if !live.is_empty() => {
                        free(stripe, live.swap_remove(random.below(live.len() as u64) as usize));
                    }
                    6 if !live.is_empty() => {
                        let at = live[random.below(live.len() as u64) as usize];
                        // SAFETY: the block is live; what it holds is nobody's business here.
                        unsafe { stripe.resize(at, 20 + random.below(3000) as usize) };
                    }
                    _ if walk == Walk::Done && !live.is_empty() => {
                        let base = extent_of(live[random.below(live.len() as u64) as usize]);
                        if stripe.begin_close(base) || stripe.begin_reopen(base) {
                            walk = Walk::GoesOn;
                        }
                    }
                    _ => walk = stripe.walk(random.below(200) as usize),
                }
                if step % 500 == 0 {
                    stripe.check();
                    stripe.purge(2);
                }
            }
            while stripe.walk(1000) == Walk::GoesOn {}
            live.into_iter().for_each(|block| free(stripe, block));
            stripe.check();
            while stripe.purge(8) > 0 {}
            assert_eq!(stripe.usage().mapped_bytes, EXTENT, "seed {seed}");
        }
    }
}
