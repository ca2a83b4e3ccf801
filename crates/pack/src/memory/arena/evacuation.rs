//! Evacuation: which extents are to be emptied, so that the system can have them back.
//!
//! After many deletions blocks lie scattered, each extent a little full, and merging neighbours does not
//! help: hardly an extent is free as a whole. An evacuation chooses the extents that hold least, as many as
//! the holes of the others can take in, and closes them (`closing.rs`). Then the owner of the data goes
//! through all of it and moves what [`is_evacuating`]: allocates anew, copies, frees. What is left when that
//! is done (blocks of owners who do not move theirs) stays where it is, and [`Evacuation::reopen`] makes the
//! holes around it useful again.
//!
//! Blocks stay within their stripe ([`beside`]). Otherwise the thread that moves would gather all data in its
//! own stripe.

use super::closing::Walk;
use super::directory::{self, STRIPES, Word};
use super::extent::EXTENT;
use super::stripes::{STRIPE, own_stripe_cell};
use base::random::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// So many percent of the holes in extents that stay are planned to be filled; a hole seldom has just the
/// length of a block.
const FILLED_PERCENT: usize = 85;
/// An extent with more of it in use, in percent, is not worth moving.
const SPARSE_PERCENT: usize = 90;

/// Whether there is an [`Evacuation`].
static IS_UNDER_WAY: AtomicBool = AtomicBool::new(false);

/// An evacuation under way, of which there is one at a time. Dropped, it opens what it has closed.
#[derive(Debug)]
pub struct Evacuation {
    /// The chosen extents, and the index of the first that is yet to be closed or, later, reopened.
    extents: Vec<Chosen>,
    next: usize,
    /// The stripe in which a walk over an extent is under way.
    walking: Option<usize>,
    /// Extents that were found not to have emptied.
    left: usize,
}

/// An extent, and what was in use of it when it was chosen.
#[derive(Clone, Copy, Debug)]
struct Chosen {
    base: usize,
    stripe: usize,
    used_bytes: usize,
}

/// Extents that did not become empty though everything movable was moved. They are not tried again until
/// something in them was freed.
#[derive(Debug, Default)]
pub struct Stubborn(BTreeMap<usize, usize>);

/// What the owner of data has looked at and moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    pub moved: u64,
    pub stayed: u64,
    pub moved_bytes: u64,
}

/// Copying so many bytes takes about as long as looking at a block that is in no cache.
const BYTES_PER_LOOK: u64 = 512;
/// Allocating a block, freeing the old one and writing its address takes as long as so many looks.
const LOOKS_PER_MOVE: u64 = 2;

impl Moves {
    /// Counts one more block of so many bytes, which was moved or only looked at.
    pub fn note(&mut self, has_moved: bool, bytes: usize) {
        if has_moved {
            self.moved += 1;
            self.moved_bytes += bytes as u64;
        } else {
            self.stayed += 1;
        }
    }

    /// How much work that was, in blocks looked at.
    pub fn effort(&self) -> u64 {
        self.stayed + self.moved * (1 + LOOKS_PER_MOVE) + self.moved_bytes / BYTES_PER_LOOK
    }
}

/// Whether work is left for another call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    More,
    Done,
}

/// Whether the block at this address should move. A hint: it costs a load or two and is never unsafe to ask.
#[inline]
pub fn is_evacuating(address: *const u8) -> bool {
    directory::find(address.addr()).is_some_and(Word::is_closed)
}

/// While this lives, the thread allocates from the stripe that `address` belongs to.
pub fn beside(address: *const u8) -> Beside {
    let stripe = directory::find(address.addr()).map_or(STRIPES, Word::stripe);
    own_stripe_cell(|own| {
        let before = own.get();
        if stripe < STRIPES {
            own.set(stripe);
        }
        Beside { before }
    })
}

/// See [`beside`].
#[derive(Debug)]
pub struct Beside {
    before: usize,
}

impl Drop for Beside {
    fn drop(&mut self) {
        own_stripe_cell(|own| own.set(self.before));
    }
}

/// Moves the content of `vec` to another allocation, if the old one lies in an extent that is being emptied.
/// Returns whether it did.
pub fn relocate_vec<T: Copy>(vec: &mut Vec<T>) -> bool {
    let address = vec.as_ptr().cast::<u8>();
    if vec.capacity() == 0 || !is_evacuating(address) {
        return false;
    }
    let _beside = beside(address);
    let mut fresh = Vec::with_capacity(vec.capacity());
    fresh.extend_from_slice(vec);
    debug_assert!(fresh.as_ptr() != vec.as_ptr(), "both are allocated while one is copied");
    *vec = fresh;
    true
}

/// As [`relocate_vec`], for one value in its box.
pub fn relocate_box<T>(boxed: Box<T>) -> Box<T> {
    let address = (&raw const *boxed).cast::<u8>();
    if !is_evacuating(address) {
        return boxed;
    }
    let _beside = beside(address);
    Box::new(*boxed)
}

impl Evacuation {
    /// Chooses extents; nothing is closed yet. None while another evacuation goes on.
    pub fn plan(stubborn: &Stubborn) -> Option<Evacuation> {
        if IS_UNDER_WAY.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut stripes: [Vec<Chosen>; STRIPES] = Default::default();
        directory::for_each(&mut |base, word| {
            let (stripe, used_bytes) = (word.stripe(), word.used_bytes());
            if stripe < STRIPES && used_bytes > 0 {
                stripes[stripe].push(Chosen { base, stripe, used_bytes });
            }
        });
        let extents = stripes.into_iter().flat_map(|extents| sparsest(extents, stubborn)).collect();
        Some(Evacuation { extents, next: 0, walking: None, left: 0 })
    }

    /// Chooses each extent with a chance of one in `one_in`, whatever it holds: for tests, in which
    /// everything shall move. As [`Evacuation::plan`] otherwise.
    pub fn by_lot(random: &mut Random, one_in: u64) -> Option<Evacuation> {
        if IS_UNDER_WAY.swap(true, Ordering::Acquire) {
            return None;
        }
        let mut extents = Vec::new();
        directory::for_each(&mut |base, word| {
            let (stripe, used_bytes) = (word.stripe(), word.used_bytes());
            if stripe < STRIPES && used_bytes > 0 && random.below(one_in) == 0 {
                extents.push(Chosen { base, stripe, used_bytes });
            }
        });
        Some(Evacuation { extents, next: 0, walking: None, left: 0 })
    }

    /// How many extents were chosen.
    pub fn extents(&self) -> usize {
        self.extents.len()
    }

    /// Their bytes.
    pub fn extent_bytes(&self) -> usize {
        self.extents.len() * EXTENT
    }

    /// What must be moved, as it was when planned.
    pub fn used_bytes(&self) -> usize {
        self.extents.iter().map(|chosen| chosen.used_bytes).sum()
    }

    /// Closes what was chosen, going over `blocks` blocks at most, under the lock of one stripe.
    pub fn close(&mut self, blocks: usize) -> Progress {
        self.advance(blocks, |chosen| STRIPE[chosen.stripe].begin_close(chosen.base))
    }

    /// Ends closing: from now on [`Evacuation::reopen`] is called.
    pub fn rewind(&mut self) {
        while self.walking.is_some() {
            self.advance(usize::MAX, |_| false);
        }
        self.next = 0;
    }

    /// Opens the extents that have not become empty, and adds them to `stubborn`. Goes over `blocks` blocks
    /// at most, as [`Evacuation::close`].
    pub fn reopen(&mut self, blocks: usize, stubborn: &mut Stubborn) -> Progress {
        let mut left = 0;
        let progress = self.advance(blocks, |chosen| {
            let left_bytes = directory::find(chosen.base).map_or(0, Word::used_bytes);
            let is_left = STRIPE[chosen.stripe].begin_reopen(chosen.base);
            if is_left {
                stubborn.0.insert(chosen.base, left_bytes);
                left += 1;
            }
            is_left
        });
        self.left += left;
        progress
    }

    /// How many extents had not emptied when they were opened again.
    pub fn left(&self) -> usize {
        self.left
    }

    fn advance(&mut self, blocks: usize, begin: impl FnOnce(&Chosen) -> bool) -> Progress {
        if let Some(stripe) = self.walking {
            if STRIPE[stripe].walk(blocks) == Walk::Done {
                self.walking = None;
            }
            return Progress::More;
        }
        let Some(chosen) = self.extents.get(self.next) else { return Progress::Done };
        self.next += 1;
        debug_assert!(chosen.stripe < STRIPES && chosen.base.is_multiple_of(EXTENT), "{chosen:?}");
        self.walking = begin(chosen).then_some(chosen.stripe);
        Progress::More
    }
}

impl Drop for Evacuation {
    fn drop(&mut self) {
        self.rewind();
        while self.reopen(usize::MAX, &mut Stubborn::default()) == Progress::More {}
        debug_assert!(self.walking.is_none(), "an evacuation that ends walks no more");
        IS_UNDER_WAY.store(false, Ordering::Release);
    }
}

impl Stubborn {
    /// Forgets all extents, so that they are tried again.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn has(&self, chosen: &Chosen) -> bool {
        self.0.get(&chosen.base).is_some_and(|used_bytes| chosen.used_bytes >= *used_bytes)
    }
}

/// The extents of one stripe that hold least, as many as the others have holes for.
fn sparsest(mut extents: Vec<Chosen>, stubborn: &Stubborn) -> Vec<Chosen> {
    extents.sort_unstable_by_key(|chosen| chosen.used_bytes);
    let mut room: usize = extents.iter().map(|chosen| EXTENT - chosen.used_bytes).sum();
    let mut moved = 0;
    let mut chosen = Vec::new();
    for extent in extents {
        let room_left = room - (EXTENT - extent.used_bytes);
        debug_assert!(extent.used_bytes <= EXTENT, "{} bytes in use of an extent", extent.used_bytes);
        let is_dense = extent.used_bytes > EXTENT / 100 * SPARSE_PERCENT;
        if is_dense || moved + extent.used_bytes > room_left / 100 * FILLED_PERCENT {
            break;
        }
        if stubborn.has(&extent) {
            continue;
        }
        (room, moved) = (room_left, moved + extent.used_bytes);
        chosen.push(extent);
    }
    chosen
}
