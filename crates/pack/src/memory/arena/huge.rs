//! Huge pages under extents that are full.
//!
//! A look-up at random in much data misses not only the caches but also the processor's table of addresses,
//! and then walks the page tables, on a virtual machine those of the host too. With pages of 2 MB instead of
//! 4 KB an entry of that table reaches 512 times as far. Systems offer them in two ways. Handed out when
//! memory is first touched they make each extent that is begun resident at once, and what is given back comes
//! again by itself: bytes for speed. Here they are used in the other way: once every page of a half extent is
//! resident, the half is *united*, its bytes copied by the kernel into one huge page (`MADV_COLLAPSE`, Linux
//! 6.1), so it costs no byte. Programs that snapshot by fork are told to avoid huge pages, because the
//! child's copies are as large; nothing forks here.
//!
//! ```text
//! small   -> united   [`unite`], when the extent is nearly full and no page of the half is missing
//! united  -> small    when pages of a free block in it are given back: the kernel takes the page apart
//! ```
//!
//! Uniting copies 2 MB, which takes some 0.7 ms, for a thread in the background while processors are idle;
//! while requests come it is rare. Two more things keep it from being felt:
//!
//! * Whoever faults in a mapping waits while pages of it are united, and the kernel makes one mapping of
//!   extents that are neighbours, those that are being filled among them. So a full extent is set apart
//!   first: `MADV_DONTFORK`, which means nothing to a program that does not fork, keeps the kernel from
//!   joining it with others than its like.
//! * A huge page that no program had before may have to be found by the host of a virtual machine, which
//!   takes ten times as long. So one is taken and left again just before: what was left last is given first
//!   ([`warm`]).
//!
//! `cargo xtask bench speed` with a peer `off=sardine --port {port} --worker-threads 1 --huge-pages no` shows
//! what it is worth. Where the kernel knows no such call or forbids huge pages nothing is tried again.

use super::directory::{self, HALF, STRIPES, Word};
use super::extent::{self, EXTENT, HAS_CHECKS, PAGE};
use super::stripe::Stripe;
use super::stripes::STRIPE;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// What the processor's huge pages are: half an extent. Where extents are tiny no page is that small: all is
/// done but the kernel's part.
const HUGE: usize = 2 << 20;
const PAGES: usize = HALF / PAGE;
const _: () = assert!(HALF == HUGE || HAS_CHECKS);

/// An extent with fewer bytes in use is not united, because its holes are worth giving back.
const FULL_BYTES: usize = EXTENT / 8 * 7;
/// Extents looked at in one go.
const LOOKS_MAX: usize = 128;

/// Whether the last call of [`unite`] did not get through all extents.
static IS_LEFT: AtomicBool = AtomicBool::new(false);
/// Whether the kernel refused: then nothing is tried again.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);
/// The address of the extent at which the next call goes on.
static CURSOR: AtomicUsize = AtomicUsize::new(0);

/// What the kernel made of a half extent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    United,
    /// Pages of it are missing, or the kernel has no huge page just now.
    NotYet,
    Refused,
}

/// Whether [`unite`] may find something to do: an extent was begun since it last went through all, so others
/// are full.
pub fn is_unite_due() -> bool {
    (IS_LEFT.load(Relaxed) || directory::has_grown()) && !IS_REFUSED.load(Relaxed)
}

/// Bytes that lie in huge pages.
pub fn huge_bytes() -> usize {
    let mut count = 0;
    directory::for_each(&mut |_, word| count += (0..2).filter(|half| word.is_united(*half)).count());
    count * HALF
}

/// Unites at most `budget` halves of full extents, and returns how many. Each takes about a millisecond.
pub fn unite(budget: usize) -> usize {
    IS_LEFT.store(false, Relaxed);
    directory::forget_growth();
    let extents = candidates();
    let mut done = 0;
    for (at, (base, word)) in extents.iter().enumerate() {
        for half in (0..2).filter(|half| !word.is_united(*half)) {
            if done >= budget || at >= LOOKS_MAX {
                CURSOR.store(*base, Relaxed);
                IS_LEFT.store(true, Relaxed);
                return done;
            }
            done += usize::from(unite_half(*base, half, word));
        }
    }
    done
}

/// Extents that are full and not united as a whole, those that were passed over last first.
fn candidates() -> Vec<(usize, &'static Word)> {
    let mut found = Vec::new();
    directory::for_each(&mut |base, word| {
        let is_small = !(word.is_united(0) && word.is_united(1));
        if is_small && word.used_bytes() >= FULL_BYTES && !word.is_special() && word.stripe() < STRIPES {
            found.push((base, word));
        }
    });
    let cursor = CURSOR.load(Relaxed);
    let first = found.iter().position(|(base, _)| *base >= cursor).unwrap_or(0);
    found.rotate_left(first);
    found
}

fn unite_half(base: usize, half: usize, word: &Word) -> bool {
    match collapse(base + half * HALF) {
        Outcome::United => {
            // Words change under their stripe's lock. Meanwhile the extent may have gone, and another's may
            // be in its place.
            let number = word.stripe();
            if let Some(mut inner) = STRIPE.get(number).map(Stripe::lock)
                && word.is_mapped()
                && word.stripe() == number
            {
                word.set_united(&mut inner.heads, half, true);
            }
            true
        }
        Outcome::NotYet => false,
        Outcome::Refused => {
            IS_REFUSED.store(true, Relaxed);
            false
        }
    }
}

/// Puts half an extent of whole pages into one huge page, if none of them is missing: the kernel would fill
/// the gaps.
fn collapse(address: usize) -> Outcome {
    let start = address as *mut libc::c_void;
    let mut residence = [0_u8; PAGES];
    // SAFETY: the kernel writes one byte a page of the range, which is what there is room for; it reads and
    // writes no byte of the range itself, and says so when the range is not mapped any more.
    let known = unsafe { libc::mincore(start, HALF, residence.as_mut_ptr()) };
    if known != 0 || residence.iter().any(|page| page & 1 == 0) {
        return Outcome::NotYet;
    }
    if HALF < HUGE {
        return Outcome::United;
    }
    warm();
    let extent = (address & !(EXTENT - 1)) as *mut libc::c_void;
    // SAFETY: the calls change no byte of the range, only the pages that hold them, and what a child would
    // see.
    let done = unsafe {
        libc::madvise(extent, EXTENT, libc::MADV_DONTFORK);
        libc::madvise(start, HALF, libc::MADV_COLLAPSE)
    };
    if done == 0 {
        return Outcome::United;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EINVAL) => Outcome::Refused,
        _ => Outcome::NotYet,
    }
}

/// Takes a huge page and leaves it again, so that the next one to be given is at hand.
fn warm() {
    let extent = extent::map();
    if extent.is_null() {
        return;
    }
    // SAFETY: the extent was just mapped, so nobody else knows of it or relies on its bytes.
    unsafe {
        libc::madvise(extent.cast(), HALF, libc::MADV_HUGEPAGE);
        extent.write_volatile(0);
        extent::unmap(extent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::arena::{stripe, stripes::own_stripe};

    fn is_united(block: &*mut u8) -> bool {
        directory::find(block.addr()).is_some_and(|word| word.is_united(block.addr() % EXTENT / HALF))
    }

    #[test]
    fn full_extents_are_united_and_keep_their_bytes_until_pages_go_back() {
        const BYTES: usize = 5_000;
        let stripe = own_stripe();
        let blocks: Vec<*mut u8> = (0..4_000).map(|_| stripe.alloc(BYTES)).collect();
        for (at, block) in blocks.iter().enumerate() {
            // SAFETY: the block is this test's and this long.
            unsafe { block.write_bytes(at as u8, BYTES) };
        }
        while is_unite_due() && unite(3) > 0 {}
        let united = blocks.iter().filter(|block| is_united(block)).count();
        assert!(IS_REFUSED.load(Relaxed) || united >= 2_000, "{united}");
        for (at, block) in blocks.iter().enumerate() {
            // SAFETY: as above; it is freed once.
            unsafe {
                assert!(std::slice::from_raw_parts(*block, BYTES).iter().all(|byte| *byte == at as u8));
                stripe::owner(*block).free(*block);
            }
        }
        while stripe.purge(8) > 0 {}
        let left = blocks.iter().filter(|block| is_united(block)).count();
        assert!(left <= 1_000, "what was given back is in small pages again, not {left}");
    }
}
