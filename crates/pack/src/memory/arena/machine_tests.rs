//! A state machine: random operations on a stripe beside a naive twin, which is a map of live ranges and what
//! they hold. After each step every head, foot, link, bin and directory word of the stripe is looked at
//! (`Stripe::check`), and what is in use must be what the twin says.
//!
//! One thread alone is compared block by block. Several threads each have a twin of their own, hand blocks to
//! each other, and take turns with the walk over an extent; under `cfg(shuttle)` a scheduler chooses at each
//! lock who goes on, so that a failure comes again from its printed schedule. `cargo xtask arena SECONDS`
//! runs all of it for long.

use super::SERVED_MAX;
use super::closing::Walk;
use super::extent::EXTENT;
use super::lock::{Mutex, thread};
use super::stripe::{Dirty, Stripe, block_bytes};
use base::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A live block: its length, and the word that it is full of.
#[derive(Clone, Copy, Debug)]
struct Owned {
    payload: *mut u8,
    len: usize,
    mark: u64,
}

// SAFETY: who has an `Owned` owns its bytes.
unsafe impl Send for Owned {}

impl Owned {
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the block is live, this long, and belongs to `self`.
        unsafe { std::slice::from_raw_parts_mut(self.payload, self.len) }
    }

    fn fill(mut self) {
        let mark = self.mark.to_le_bytes();
        self.bytes().chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&mark[..chunk.len()]));
    }

    fn check(mut self, len: usize) {
        let mark = self.mark.to_le_bytes();
        let is_whole = self.bytes()[..len].chunks(8).all(|chunk| *chunk == mark[..chunk.len()]);
        assert!(is_whole, "a live block's bytes changed: {self:?}");
    }

    fn base(&self) -> usize {
        self.payload.expose_provenance() & !(EXTENT - 1)
    }
}

/// The walk over an extent, of which there is one at a time in a stripe, and which extents are closed.
#[derive(Default)]
struct Walker {
    /// Of the extent under way, and whether it is being closed.
    walked: Option<(usize, bool)>,
    closed: BTreeSet<usize>,
}

impl Walker {
    fn goes_on(&mut self, walk: Walk) {
        if walk == Walk::Done
            && let Some((base, true)) = self.walked.take()
        {
            self.closed.insert(base);
        }
    }
}

/// What threads share.
struct Common {
    stripe: &'static Stripe,
    walker: Mutex<Walker>,
    handed: Mutex<Vec<Owned>>,
}

/// One thread: its twin and what it has taken for a purge.
struct Machine {
    common: Arc<Common>,
    random: Random,
    twin: BTreeMap<usize, Owned>,
    dirty: Vec<Dirty>,
    /// What is preferred for a while, so that extents fill and empty.
    mood: Mood,
}

#[derive(Clone, Copy)]
enum Mood {
    Grow,
    Mix,
    Shrink,
}

impl Machine {
    fn new(common: &Arc<Common>, seed: u64) -> Machine {
        Machine {
            common: Arc::clone(common),
            random: Random::new(seed),
            twin: BTreeMap::new(),
            dirty: Vec::new(),
            mood: Mood::Mix,
        }
    }

    fn len(&mut self) -> usize {
        let limit = match self.random.below(100) {
            0..30 => 120,
            30..80 => 3_000,
            80..97 => 20_000,
            _ => SERVED_MAX,
        };
        1 + self.random.below(limit as u64) as usize
    }

    fn any(&mut self) -> Option<Owned> {
        let count = self.twin.len() as u64;
        (count > 0)
            .then(|| self.random.below(count) as usize)
            .and_then(|at| self.twin.values().nth(at).copied())
    }

    fn step(&mut self) {
        if self.random.below(150) == 0 {
            self.mood = [Mood::Grow, Mood::Mix, Mood::Shrink, Mood::Shrink][self.random.below(4) as usize];
        }
        let (come, go) = match self.mood {
            Mood::Grow => (40, 55),
            Mood::Mix => (25, 50),
            Mood::Shrink => (8, 50),
        };
        match self.random.below(100) {
            n if n < come => self.allocate(),
            n if n < go => self.free(),
            0..70 => self.resize(),
            70..75 => self.hand_over(),
            75..82 => self.begin_walk(),
            82..90 => self.walk(),
            90..92 => self.evacuate(),
            92..95 => self.take_dirty(),
            95..98 => self.give_back(),
            98 => drop(self.common.stripe.purge(self.random.below(4) as usize + 1)),
            _ => drop(self.common.stripe.stats()),
        }
    }

    fn add(&mut self, block: Owned) {
        let (start, end) = (block.payload.addr(), block.payload.addr() + block.len);
        let before = self.twin.range(..=start).next_back();
        assert!(
            before.is_none_or(|(_, other)| other.payload.addr() + other.len <= start),
            "two blocks overlap"
        );
        assert!(self.twin.range(start..end).next().is_none(), "two blocks overlap");
        assert!(start.is_multiple_of(16) && start % EXTENT + block.len < EXTENT, "{block:?}");
        block.fill();
        self.twin.insert(start, block);
    }

    fn allocate(&mut self) {
        let (len, mark) = (self.len(), self.random.next_u64());
        // Nobody closes anything meanwhile.
        let walker = self.common.walker.lock().unwrap();
        let block = Owned { payload: self.common.stripe.alloc(len), len, mark };
        let is_closed = walker.closed.contains(&block.base()) && self.common.stripe.is_closed(block.base());
        assert!(!is_closed, "allocated in a closed extent");
        drop(walker);
        self.add(block);
    }

    fn free(&mut self) {
        let Some(block) = self.any() else { return };
        self.twin.remove(&block.payload.addr());
        block.check(block.len);
        self.release(block);
    }

    fn release(&self, block: Owned) {
        // SAFETY: it came from this stripe, and its only owner lets go of it.
        unsafe { self.common.stripe.free(block.payload) };
    }

    fn resize(&mut self) {
        let (Some(block), len) = (self.any(), self.len()) else { return };
        // SAFETY: the block is live, and ours.
        if unsafe { self.common.stripe.resize(block.payload, len) } {
            self.twin.remove(&block.payload.addr());
            block.check(block.len.min(len));
            let mark = self.random.next_u64();
            self.add(Owned { len, mark, ..block });
        }
    }

    /// Gives a block to whoever takes it, or takes one.
    fn hand_over(&mut self) {
        let common = Arc::clone(&self.common);
        let mut handed = common.handed.lock().unwrap();
        if self.random.below(2) == 0 {
            let Some(block) = self.any() else { return };
            self.twin.remove(&block.payload.addr());
            handed.push(block);
        } else if let Some(block) = handed.pop() {
            drop(handed);
            block.check(block.len);
            self.add(block);
        }
    }

    fn begin_walk(&mut self) {
        let Some(block) = self.any() else { return };
        let (stripe, mut walker) = (self.common.stripe, self.common.walker.lock().unwrap());
        if walker.walked.is_some() {
            return;
        }
        let closed: Vec<usize> = walker.closed.iter().copied().collect();
        if !closed.is_empty() && self.random.below(3) > 0 {
            let base = closed[self.random.below(closed.len() as u64) as usize];
            walker.closed.remove(&base);
            if stripe.begin_reopen(base) {
                walker.walked = Some((base, false));
            }
        } else if stripe.begin_close(block.base()) {
            // What was closed, emptied and went may be in use again at the same place.
            walker.closed.remove(&block.base());
            walker.walked = Some((block.base(), true));
        }
    }

    fn walk(&mut self) {
        let mut walker = self.common.walker.lock().unwrap();
        if walker.walked.is_some() {
            let blocks = 1 + self.random.below(30) as usize;
            let walk = self.common.stripe.walk(blocks);
            walker.goes_on(walk);
        }
        let stripe = self.common.stripe;
        walker.closed.retain(|base| stripe.is_closed(*base));
    }

    /// Moves what this thread has out of the extents that are closed.
    fn evacuate(&mut self) {
        let mut walker = self.common.walker.lock().unwrap();
        while walker.walked.is_some() {
            let walk = self.common.stripe.walk(50);
            walker.goes_on(walk);
        }
        let closed = walker.closed.clone();
        drop(walker);
        let moved: Vec<Owned> = self.twin.values().filter(|p| closed.contains(&p.base())).copied().collect();
        for block in moved {
            block.check(block.len);
            self.twin.remove(&block.payload.addr());
            let fresh = Owned { payload: self.common.stripe.alloc(block.len), ..block };
            self.add(fresh);
            self.release(block);
        }
    }

    fn take_dirty(&mut self) {
        let (dirty, count) = self.common.stripe.take_dirty(1 + self.random.below(3) as usize);
        self.dirty.extend(dirty.into_iter().take(count));
    }

    fn give_back(&mut self) {
        if !self.dirty.is_empty() {
            let dirty = self.dirty.swap_remove(self.random.below(self.dirty.len() as u64) as usize);
            self.common.stripe.give_back(&dirty);
        }
    }

    /// All that is in use is in the twin, or was taken to be purged.
    fn compare(&self) {
        let mut blocks = self.common.stripe.blocks_in_use();
        for dirty in &self.dirty {
            assert!(blocks.remove(&dirty.payload().addr()).is_some(), "a block that was taken is free");
        }
        let handed = self.common.handed.lock().unwrap();
        let live = self.twin.values().chain(handed.iter());
        let expected: BTreeMap<usize, usize> = live.map(|block| (block.payload.addr(), block.len)).collect();
        assert!(blocks.keys().eq(expected.keys()), "what is in use is not what is live");
        for (size, len) in blocks.values().zip(expected.values()) {
            assert!(
                (block_bytes(*len)..block_bytes(*len) + 32).contains(size),
                "{len} bytes in a block of {size}"
            );
        }
    }

    /// Whatever goes on ends, and all goes back.
    fn end(mut self) {
        while !self.dirty.is_empty() {
            self.give_back();
        }
        for block in std::mem::take(&mut self.twin).into_values() {
            block.check(block.len);
            self.release(block);
        }
    }
}

/// Names the seed if what it begins fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the seed was {}", self.0);
        }
    }
}

fn common() -> Arc<Common> {
    Arc::new(Common {
        stripe: Stripe::private(),
        walker: Mutex::new(Walker::default()),
        handed: Mutex::new(Vec::new()),
    })
}

/// When all machines have ended nothing is left but what a stripe keeps.
fn close(common: &Common) {
    let stripe = common.stripe;
    while stripe.walk(1_000) == Walk::GoesOn {}
    for block in std::mem::take(&mut *common.handed.lock().unwrap()) {
        block.check(block.len);
        // SAFETY: nobody else has it.
        unsafe { stripe.free(block.payload) };
    }
    stripe.check();
    assert_eq!(stripe.usage().used_bytes, 0);
    while stripe.purge(8) > 0 {}
    stripe.check();
    assert!(stripe.usage().mapped_bytes <= EXTENT, "empty extents go back");
    // SAFETY: nothing is in use, and nobody asks it for anything any more.
    unsafe { stripe.end() };
}

#[cfg(not(shuttle))]
fn alone(seed: u64, steps: usize) {
    let _named = Named(seed);
    let common = common();
    let mut machine = Machine::new(&common, seed);
    for _ in 0..steps {
        machine.step();
        common.stripe.check();
        machine.compare();
    }
    machine.end();
    close(&common);
}

/// So many threads; each looks at all of the stripe now and then.
fn together(seed: u64, threads: u64, steps: usize, check_each: u64) {
    let common = common();
    let run = |number: u64| {
        let common = Arc::clone(&common);
        move || {
            let mut machine = Machine::new(&common, seed << 8 | number);
            for _ in 0..steps {
                machine.step();
                if machine.random.below(check_each) == 0 {
                    common.stripe.check();
                }
            }
            machine.end();
        }
    };
    #[allow(clippy::disallowed_methods, reason = "threads that all end here")]
    let others: Vec<_> = (1..threads).map(|number| thread::spawn(run(number))).collect();
    run(0)();
    others.into_iter().for_each(|thread| thread.join().expect("the machine runs to its end"));
    close(&common);
}

/// Seeds to try: a few from `ARENA_SEED` on, or as many as fit into `ARENA_SECONDS`.
fn seeds(few: u64) -> impl Iterator<Item = u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, seconds) = (number("ARENA_SEED").unwrap_or(1), number("ARENA_SECONDS").unwrap_or(0));
    #[expect(clippy::disallowed_methods, reason = "a test that runs as long as it is told to")]
    let start = std::time::Instant::now();
    let few = crate::model::seeds(few).end;
    (first..).take_while(move |seed| *seed < first + few || start.elapsed().as_secs() < seconds)
}

#[cfg(not(shuttle))]
#[test]
fn a_stripe_and_its_naive_twin_agree_after_every_step() {
    for seed in seeds(20) {
        alone(seed, 2_000);
    }
}

#[cfg(not(shuttle))]
#[test]
fn a_stripe_is_whole_while_threads_allocate_free_walk_and_purge() {
    for seed in seeds(6) {
        let _named = Named(seed);
        together(seed, 4, 3_000, 16);
    }
}

/// Under schedulers that choose at every lock who goes on: at random, and with few changes of turn at places
/// that matter.
#[cfg(shuttle)]
#[test]
fn a_stripe_is_whole_whoever_goes_on_at_each_lock() {
    use shuttle::scheduler::{PctScheduler, RandomScheduler};
    for seed in seeds(20) {
        let _named = Named(seed);
        let round = move || together(seed, 3, 60, 4);
        let config = shuttle::Config::default;
        shuttle::Runner::new(RandomScheduler::new_from_seed(seed, 30), config()).run(round);
        shuttle::Runner::new(PctScheduler::new_from_seed(seed, 3, 30), config()).run(round);
    }
}
