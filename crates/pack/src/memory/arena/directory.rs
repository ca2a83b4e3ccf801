//! Which extents there are, by address, and how much of each is in use: one word an extent, found by two
//! loads from tables that stay in the caches, so that an allocation touches no extent but for the block
//! itself.
//!
//! ```text
//! word    bit 31 mapped | bit 30 closed: nothing is allocated in it | bit 29 a walk over its blocks goes on
//!         bits 24..28 the stripe it belongs to ([`STRIPES`]: none of the arena's, in tests)
//!         bits 19, 20 the first and the second half are united (`huge.rs`) | bits 0..18 bytes in use / 16
//! tables  one pointer for each 32 GB of addresses to a page run of words, one an extent: 4 bytes for 4 MB
//! ```
//!
//! Words change under the lock of their extent's stripe only: whoever changes one shows the stripe's
//! [`Heads`], which are behind that lock. They are atomics so that others may read them without: what such a
//! reader sees may be old by a moment, so it decides nothing that must be right.

use super::extent::{self, EXTENT};
use super::heads::Heads;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// How many stripes the arena has; the number of a stripe that is none of them.
pub(super) const STRIPES: usize = 16;
/// Half an extent: what a word says to be united or not.
pub(super) const HALF: usize = EXTENT / 2;

const EXTENT_BITS: u32 = EXTENT.trailing_zeros();
/// A table is for 32 GB.
const TABLE_BITS: u32 = 35 - EXTENT_BITS;
const WORDS: usize = 1 << TABLE_BITS;
/// Addresses of user space have 47 bits, 48 on some processors.
const TABLES: usize = 1 << (48 - EXTENT_BITS - TABLE_BITS);

const MAPPED: u32 = 1 << 31;
const CLOSED: u32 = 1 << 30;
const WALKED: u32 = 1 << 29;
const STRIPE_SHIFT: u32 = 24;
const STRIPE_MASK: u32 = 31;
const _: () = assert!(STRIPES <= STRIPE_MASK as usize);
const UNITED: u32 = 1 << 19;
const GRAIN: usize = 16;
const USED_MASK: u32 = (1 << 19) - 1;
const _: () = assert!(EXTENT / GRAIN <= USED_MASK as usize);

/// What is known of one extent.
pub(super) struct Word(AtomicU32);

type Table = [Word; WORDS];

/// Whether an extent was entered since [`forget_growth`].
static HAS_GROWN: AtomicBool = AtomicBool::new(false);

static TOP: [AtomicPtr<Table>; TABLES] = [const { AtomicPtr::new(ptr::null_mut()) }; TABLES];

/// The word of the extent that holds this address; None where no extent ever was.
#[inline]
pub(super) fn find(address: usize) -> Option<&'static Word> {
    let number = address >> EXTENT_BITS;
    let table = TOP.get(number >> TABLE_BITS)?.load(Ordering::Acquire);
    // SAFETY: a table is zeroed words, and is never given back.
    let table = unsafe { table.as_ref() }?;
    Some(&table[number % WORDS])
}

/// The word of a mapped extent.
#[inline]
pub(super) fn of(address: usize) -> &'static Word {
    find(address).expect("an extent is entered when it is mapped")
}

/// Enters a mapped extent; false where there is no memory for its table, or its address is beyond all tables.
pub(super) fn enter(heads: &mut Heads, base: usize, stripe: usize) -> bool {
    let number = base >> EXTENT_BITS;
    let Some(top) = TOP.get(number >> TABLE_BITS) else { return false };
    if top.load(Ordering::Acquire).is_null() {
        let table = extent::map_pages(size_of::<Table>()).cast::<Table>();
        if table.is_null() {
            return false;
        }
        let entered =
            top.compare_exchange(ptr::null_mut(), table, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if !entered {
            // SAFETY: another thread was first, so nobody has seen this table.
            unsafe { extent::unmap_pages(table.cast(), size_of::<Table>()) };
        }
    }
    of(base).store(heads, MAPPED | (stripe as u32) << STRIPE_SHIFT);
    HAS_GROWN.store(true, Ordering::Relaxed);
    true
}

/// Whether an extent was entered since [`forget_growth`].
pub(super) fn has_grown() -> bool {
    HAS_GROWN.load(Ordering::Relaxed)
}

pub(super) fn forget_growth() {
    HAS_GROWN.store(false, Ordering::Relaxed);
}

/// Every extent that is mapped, by its address.
pub(super) fn for_each(visit: &mut dyn FnMut(usize, &'static Word)) {
    for (high, top) in TOP.iter().enumerate() {
        // SAFETY: a table is zeroed words, and is never given back.
        let Some(table) = (unsafe { top.load(Ordering::Acquire).as_ref() }) else { continue };
        for (low, word) in table.iter().enumerate().filter(|(_, word)| word.is_mapped()) {
            visit((high << TABLE_BITS | low) << EXTENT_BITS, word);
        }
    }
}

impl Word {
    fn load(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    fn store(&self, _locked: &mut Heads, bits: u32) {
        self.0.store(bits, Ordering::Relaxed);
    }

    pub(super) fn is_mapped(&self) -> bool {
        self.load() & MAPPED != 0
    }

    pub(super) fn is_closed(&self) -> bool {
        self.load() & CLOSED != 0
    }

    /// Whether the extent is closed or walked over, so that freeing in it takes more work.
    #[inline]
    pub(super) fn is_special(&self) -> bool {
        self.load() & (CLOSED | WALKED) != 0
    }

    pub(super) fn is_walked(&self) -> bool {
        self.load() & WALKED != 0
    }

    pub(super) fn stripe(&self) -> usize {
        (self.load() >> STRIPE_SHIFT & STRIPE_MASK) as usize
    }

    pub(super) fn used_bytes(&self) -> usize {
        (self.load() & USED_MASK) as usize * GRAIN
    }

    #[inline]
    pub(super) fn add_used(&self, heads: &mut Heads, bytes: usize) {
        self.store(heads, self.load() + (bytes / GRAIN) as u32);
    }

    #[inline]
    pub(super) fn take_used(&self, heads: &mut Heads, bytes: usize) {
        debug_assert!(self.used_bytes() >= bytes, "an extent gives back what it gave");
        self.store(heads, self.load() - (bytes / GRAIN) as u32);
    }

    pub(super) fn set_closed(&self, heads: &mut Heads, is_closed: bool) {
        self.set(heads, CLOSED, is_closed);
    }

    pub(super) fn set_walked(&self, heads: &mut Heads, is_walked: bool) {
        self.set(heads, WALKED, is_walked);
    }

    /// Whether the extent's first (0) or second half (1) lies in one huge page.
    pub(super) fn is_united(&self, half: usize) -> bool {
        self.load() & UNITED << half != 0
    }

    pub(super) fn set_united(&self, heads: &mut Heads, half: usize, is_united: bool) {
        self.set(heads, UNITED << half, is_united);
    }

    /// The extent is about to be unmapped.
    pub(super) fn leave(&self, heads: &mut Heads) {
        self.store(heads, 0);
    }

    fn set(&self, heads: &mut Heads, bit: u32, on: bool) {
        self.store(heads, if on { self.load() | bit } else { self.load() & !bit });
    }
}
