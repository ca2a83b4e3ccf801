//! A shard while it is locked, and what may be known of it without its lock: how many keys each database has
//! there.
//!
//! DBSIZE asks all shards. Taking 256 locks for it costs ten times what the rest of the request does, so
//! whoever changes the number of keys publishes it before the lock goes. A client that was answered, or told
//! by another that was, then finds its own changes counted.
//!
//! ```text
//! Lengths   first:  [AtomicU64]             database 0, one count a shard: a DBSIZE adds up 2 KB
//!           others: [OnceLock<[AtomicU64]>] the same for each of the others, made when it first has a key
//! ```
//!
//! On the path of every request: a shard that was only read costs one test more, one that was written a
//! comparison.
use crate::keyspace::shard::Shard;
use std::hint::cold_path;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, OnceLock};

pub(crate) struct Lengths {
    first: Box<[AtomicU64]>,
    others: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Lengths {
    pub(crate) fn new(shards: usize, databases: u16) -> Lengths {
        let others = usize::from(databases).saturating_sub(1);
        Lengths { first: zeros(shards), others: (0..others).map(|_| OnceLock::new()).collect() }
    }

    /// The keys of a database in all shards.
    pub(crate) fn sum(&self, db: u16) -> u64 {
        // The counts are read one after the other: keys that other threads add and remove meanwhile may be
        // counted or not, but each count is one that its shard has had.
        self.of(db).map_or(0, sum)
    }

    /// The shard that holds key number `nth` of a database, if keys are numbered shard by shard. None beyond
    /// the last.
    pub(crate) fn shard_of_nth(&self, db: u16, nth: u64) -> Option<usize> {
        let mut left = nth;
        self.of(db)?.iter().position(|len| {
            let len = len.load(Ordering::Acquire);
            let is_here = left < len;
            left = left.saturating_sub(len);
            is_here
        })
    }

    fn of(&self, db: u16) -> Option<&[AtomicU64]> {
        match db {
            0 => Some(&self.first),
            n => self.others.get(usize::from(n) - 1)?.get().map(|lengths| &lengths[..]),
        }
    }

    fn publish(&self, shard: usize, db: u16, len: u64) {
        let lengths = match db {
            0 => &self.first,
            n => self.others[usize::from(n) - 1].get_or_init(|| zeros(self.first.len())),
        };
        lengths[shard].store(len, Ordering::Release);
    }
}

/// Adds up four sums side by side, because each addition of a single sum would wait for the one before.
fn sum(lengths: &[AtomicU64]) -> u64 {
    let (fours, rest) = lengths.as_chunks::<4>();
    let mut sums = [0; 4];
    for four in fours {
        for (sum, len) in sums.iter_mut().zip(four) {
            *sum += len.load(Ordering::Acquire);
        }
    }
    sums.iter().sum::<u64>() + rest.iter().map(|len| len.load(Ordering::Acquire)).sum::<u64>()
}

fn zeros(shards: usize) -> Box<[AtomicU64]> {
    (0..shards).map(|_| AtomicU64::new(0)).collect()
}

/// A shard whose lock is held. There is no other way to a shard.
pub(crate) struct Locked<'k> {
    shard: MutexGuard<'k, Shard>,
    lengths: &'k Lengths,
}

impl<'k> Locked<'k> {
    #[inline]
    pub(crate) fn new(shard: MutexGuard<'k, Shard>, lengths: &'k Lengths) -> Locked<'k> {
        Locked { shard, lengths }
    }

    #[cold]
    fn publish_others(&mut self) {
        let (shard, lengths) = (self.shard.index as usize, self.lengths);
        self.shard.for_each_changed_length(|db, len| lengths.publish(shard, db, len));
    }
}

impl Deref for Locked<'_> {
    type Target = Shard;

    #[inline]
    fn deref(&self) -> &Shard {
        &self.shard
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Shard {
        &mut self.shard
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // Nearly always only database 0 has changed, or none.
        if let Some(len) = self.shard.changed_length() {
            self.lengths.first[self.shard.index as usize].store(len, Ordering::Release);
        }
        if self.shard.has_lent_others() {
            cold_path();
            self.publish_others();
        }
    }
}
