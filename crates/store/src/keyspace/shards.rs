//! All shards: which locks are taken, and in which order. A key's shard is the top bits of its hash.
//!
//! One key is the path of nearly every request: hash, lock one mutex, hand out a view; nothing is allocated.
//! Several keys lock their shards in ascending order, each once, so no two workers can wait for each other
//! (`keys.rs`).
//!
//! ```text
//! Keyspace   dues: [AtomicI64]  when each shard next has something to expire; read without its lock
//!            soonest            the least of them, or less: the one word that every turn of a worker reads
//!            lengths            how many keys each shard has; likewise (`locked.rs`)
//!            cells: [Cell]      one mutex and shard each, on cache lines of their own
//! ```
//!
//! A panic under a shard's lock may leave it half edited, so whoever meets a poisoned mutex panics as well:
//! the process stops.
use crate::eviction::uses::Uses;
use crate::expiry::notes::NEVER_DUE;
use crate::expiry::supply::Supply;
use crate::keyspace::arrivals::{Arrival, Arrivals};
use crate::keyspace::ears::Listening;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::guards::Guards;
use crate::keyspace::locked::{Lengths, Locked};
use crate::keyspace::seeds::Seeds;
use crate::keyspace::shard::Shard;
use crate::keyspace::stats::ShardStats;
use crate::value::Value;
use crate::{Key, Settings, View};
use base::Millis;
use base::hash::{Hash, SHARD_BITS_MAX, Seed};
use base::permutation::Permutation;
use base::random::Random;
use pack::counted::Holder;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Before all deadlines: the time that the commands of a file are given, so that each key is there until the
/// file says that it went. What the clock shows meanwhile is in [`Keyspace::set_replay_clock`].
pub const BEFORE_ALL: Millis = Millis(1);

#[derive(Clone, Copy, Debug)]
pub struct KeyspaceOptions {
    /// There are 2^shard_bits shards (2^8 by default, one in some tests).
    pub shard_bits: u32,
    pub databases: u16,
    pub seed: Seed,
}

/// Where the seeds of the shards' random numbers come from.
pub(crate) enum Draws<'d> {
    /// Derived from this secret seed, so clients cannot predict them.
    By(&'d Seed),
    At(&'d mut Random),
}

impl Draws<'_> {
    fn seed(&mut self, shard: u32) -> u64 {
        match self {
            Draws::By(seed) => seed.hash(&shard.to_le_bytes()).0,
            Draws::At(random) => random.next_u64(),
        }
    }
}

/// A shard on cache lines of its own: two workers on neighbouring shards do not slow each other. Two lines,
/// because processors fetch them in pairs.
#[repr(align(128))]
struct Cell(Mutex<Shard>);

pub struct Keyspace {
    cells: Box<[Cell]>,
    pub(crate) listening: Listening,
    pub(crate) dues: Box<[AtomicI64]>,
    /// A time that is not later than any of `dues`.
    pub(crate) soonest: AtomicI64,
    /// Whether any key has a deadline, for policies by which only such keys may go.
    pub(crate) supply: Supply,
    pub(crate) lengths: Lengths,
    pub(crate) uses: Uses,
    pub(crate) arrivals: Arc<Arrivals>,
    pub(crate) shard_bits: u32,
    databases: u16,
    pub(crate) seeds: Seeds,
    /// Whether keys past their deadline stay in memory, though no command sees them; see
    /// [`Keyspace::rest_expiry`].
    pub(crate) is_expiry_resting: AtomicBool,
    /// The shard at which the next call of `expire` begins, after one that ran out of budget.
    pub(crate) expire_turn: AtomicUsize,
    /// What the clock shows to commands for which time stands still; see [`Keyspace::set_replay_clock`].
    pub(crate) replay_clock: AtomicI64,
    /// In a keyspace that shares all keys of a database with another.
    pub(crate) holder: Option<Holder>,
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        if self.holder.is_some() {
            Holder::letting_go(|| drop(std::mem::take(&mut self.cells)));
        }
    }
}

const _: () = {
    const fn is_shared_between_threads<T: Send + Sync>() {}
    const fn is_sent_between_threads<T: Send>() {}
    is_shared_between_threads::<Keyspace>();
    is_sent_between_threads::<Garbage>();
    is_sent_between_threads::<Value>();
};

impl Keyspace {
    /// A keyspace without keys. Its seed decides how names hash and what is drawn at random, so it is to be
    /// secret in a server.
    pub fn new(options: KeyspaceOptions) -> Keyspace {
        // Clients see random choices, so these come from a seed that tells nothing of the others.
        let draws = options.seed.derive("draws");
        Keyspace::with(options.databases, options.shard_bits, Seeds::of(&options.seed), Draws::By(&draws))
    }

    /// The same with these seeds.
    pub(crate) fn with(databases: u16, shard_bits: u32, seeds: Seeds, mut draws: Draws<'_>) -> Keyspace {
        assert!(shard_bits <= SHARD_BITS_MAX, "a shard's number takes at most 16 bits");
        let shards = 1 << shard_bits;
        Keyspace {
            cells: (0..shards).map(|index| Cell(Mutex::new(Shard::new(index, draws.seed(index))))).collect(),
            listening: Listening::default(),
            dues: (0..shards).map(|_| AtomicI64::new(NEVER_DUE)).collect(),
            soonest: AtomicI64::new(NEVER_DUE),
            supply: Supply::new(),
            lengths: Lengths::new(shards as usize, databases),
            uses: Uses::new(),
            arrivals: Arc::default(),
            shard_bits,
            databases,
            seeds,
            is_expiry_resting: AtomicBool::new(false),
            expire_turn: AtomicUsize::new(0),
            replay_clock: AtomicI64::new(BEFORE_ALL.0),
            holder: None,
        }
    }

    /// Offers the buffer of a request that is about to run to whoever stores `text`, a part of it, until the
    /// arrival ends. The buffer comes back at once where that is too short, or too little of the whole.
    pub fn offer(&self, buffer: Vec<u8>, text: Range<usize>) -> Result<Arrival, Vec<u8>> {
        self.arrivals.offer(buffer, text)
    }

    /// Sets what the clock shows to the commands of a file, whose time is [`BEFORE_ALL`]: lifetimes that
    /// count from the present begin there.
    pub fn set_replay_clock(&self, clock: Millis) {
        self.replay_clock.store(clock.0, Ordering::Relaxed);
    }

    /// How many databases there are; they are numbered from 0.
    pub fn databases(&self) -> u16 {
        self.databases
    }

    /// The seed that names of keys are hashed with.
    pub fn seed(&self) -> &Seed {
        &self.seeds.keys
    }

    /// How clients see the cursors of [`Keyspace::scan`].
    pub fn key_cursors(&self) -> &Permutation {
        &self.seeds.cursors.keys
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.cells.len()
    }

    /// The hash of a key, as [`Keyspace::lock_one_hashed`] and [`Keyspace::prefetch_hashed`] want it: a batch
    /// hashes each key once.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> Hash {
        self.seeds.keys.hash(key)
    }

    /// Which shard this key lies in.
    pub fn shard_of_key(&self, key: &[u8]) -> usize {
        self.shard_number(self.hash(key))
    }

    /// Which shard keys of this hash lie in.
    pub fn shard_number(&self, hash: Hash) -> usize {
        hash.shard(self.shard_bits)
    }

    /// The shards that somebody holds at this moment, for a crash report.
    pub fn locked(&self) -> Vec<usize> {
        let is_locked = |cell: &Cell| matches!(cell.0.try_lock(), Err(TryLockError::WouldBlock));
        (0..self.cells.len()).filter(|index| is_locked(&self.cells[*index])).collect()
    }

    #[inline]
    pub(crate) fn shard(&self, index: usize) -> Locked<'_> {
        let shard = self.cells[index].0.lock().expect("a panic under a shard's lock stops the process");
        Locked::new(shard, &self.lengths)
    }

    /// Whether something may be past its deadline in the shard of this hash, which the caller holds.
    pub(crate) fn is_due(&self, hash: Hash, now: Millis) -> bool {
        self.dues[hash.shard(self.shard_bits)].load(Ordering::Relaxed) <= now.0
    }

    pub(crate) fn shard_of(&self, hash: Hash) -> Locked<'_> {
        self.shard(hash.shard(self.shard_bits))
    }

    /// Locks a shard; None where another thread holds its lock.
    #[inline]
    pub(crate) fn try_shard(&self, index: usize) -> Option<Locked<'_>> {
        Some(Locked::new(self.try_lock(index)?, &self.lengths))
    }

    /// Locks the shard of a hash for a look that changes nothing; None where another thread holds its lock.
    #[inline]
    fn glance(&self, hash: Hash) -> Option<impl Deref<Target = Shard>> {
        self.try_lock(hash.shard(self.shard_bits))
    }

    #[inline]
    fn try_lock(&self, index: usize) -> Option<MutexGuard<'_, Shard>> {
        match self.cells[index].0.try_lock() {
            Ok(shard) => Some(shard),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(_)) => panic!("a panic under a shard's lock stops the process"),
        }
    }

    /// Locks the shard of one key and hands out a view of it: one hash, one mutex, no allocation.
    #[inline]
    pub fn lock_one<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        key: &'k [u8],
    ) -> (View<'k>, Key<'k>) {
        self.lock_one_hashed(db, now, settings, key, self.hash(key))
    }

    /// As [`Keyspace::lock_one`], for a key whose [`Keyspace::hash`] is known.
    #[inline]
    pub fn lock_one_hashed<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        key: &'k [u8],
        hash: Hash,
    ) -> (View<'k>, Key<'k>) {
        debug_assert_eq!(hash, self.hash(key), "the hash is the key's own");
        let guards = Guards::One(self.shard(hash.shard(self.shard_bits)));
        (View::new(self, guards, now, settings), Key::new(key, hash, 0, db))
    }

    /// No more keys come in hash order to the shard of this hash ([`View::expect_order`]).
    pub fn end_order(&self, db: u16, hash: Hash) {
        self.shard(hash.shard(self.shard_bits)).open(db).0.map.seal_leaf(u32::MAX);
    }

    /// Asks the processor for what the next command on this key will read. Locks the key's shard for an
    /// instant; where another worker holds it, that worker is about to have fetched much of it anyway.
    pub fn prefetch(&self, db: u16, key: &[u8]) {
        self.prefetch_hashed(db, self.hash(key));
    }

    /// Asks for the shard that keys of this hash lie in, before all other steps.
    #[inline]
    pub fn prefetch_shard(&self, hash: Hash) {
        pack::prefetch_value(&self.cells[hash.shard(self.shard_bits)]);
    }

    /// The first step of prefetching: asks for the leaf in which a key of this hash lies. Locks the shard
    /// only if nobody holds it.
    #[inline(never)]
    pub fn prefetch_hashed(&self, db: u16, hash: Hash) {
        if let Some(shard) = self.glance(hash)
            && let Some(db) = shard.db(db)
        {
            db.map.prefetch(hash);
        }
    }

    /// The second step of prefetching, some requests after the first: asks for the key's entry, now that its
    /// leaf has come.
    #[inline(never)]
    pub fn prefetch_entry_hashed(&self, db: u16, hash: Hash) {
        if let Some(shard) = self.glance(hash)
            && let Some(db) = shard.db(db)
        {
            db.map.prefetch_entry(hash);
        }
    }

    /// The counters, summed over all shards, each of which is locked for that.
    pub fn stats(&self) -> ShardStats {
        let mut sum = ShardStats::default();
        (0..self.shards()).for_each(|index| sum += self.shard(index).stats);
        sum
    }

    /// Sets all counters to 0 but `dirty`, by which changes since a save are counted (CONFIG RESETSTAT).
    pub fn reset_stats(&self) {
        for index in 0..self.shards() {
            let stats = &mut self.shard(index).stats;
            *stats = ShardStats { dirty: stats.dirty, ..ShardStats::default() };
        }
    }

    /// Counts changes made by a command on the whole keyspace; [`View::dirty`] is for those on keys.
    pub fn dirty(&self, changes: u64) {
        self.shard(0).stats.dirty += changes;
    }
}
