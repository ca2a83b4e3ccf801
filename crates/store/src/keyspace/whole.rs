//! Work on the whole keyspace. The caller (dispatch) holds every worker's lock where the command says so;
//! each method locks shard by shard.
//!
//! A SCAN cursor is a position in hash order, so it means the same whatever splits, merges, flushes or fills
//! the trees meanwhile, and the server keeps nothing for it:
//!
//! ```text
//! bit 47..32  shard     bit 31..0  place in the shard's tree     0 is the beginning and the end
//! ```
//!
//! Clients see it hidden by [`Keyspace::key_cursors`], so that it tells them nothing of hashes.
use crate::Deadline;
use crate::Keyspace;
use crate::entry::Meta;
use crate::expiry::notes::NEVER_DUE;
use crate::expiry::timer::Volatile;
use crate::keyspace::ears::Teller;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::{Db, discard, kind, scan_leaf, visit_live};
use crate::kind::Kind;
use base::Millis;
use base::random::Random;
use pack::map::Entry;
use pack::stats::Stats;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

/// Where a SCAN stands: 0 at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanStep {
    pub next_cursor: u64,
}

/// How many keys and hashes of a database have deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    pub keys: u64,
    /// The mean time to live of these keys; 0 where their mean deadline has passed.
    pub ttl_mean_ms: i64,
    /// Hashes of which some field has a deadline.
    pub hashes: u64,
}

/// A call of SCAN looks at no more than this many shards or leaves beyond its count: empty ones are cheap,
/// but there may be 65,536.
const EMPTY_STEPS_MAX: u64 = 1024;

impl Keyspace {
    /// Keys in `db`, those not yet removed past their deadline included, as DBSIZE counts. Takes no lock.
    pub fn len(&self, db: u16) -> u64 {
        self.lengths.sum(db)
    }

    /// Whether [`Keyspace::len`] is 0.
    pub fn is_empty(&self, db: u16) -> bool {
        self.len(db) == 0
    }

    /// Whether uses of keys may be recorded: then a key has to be read where it is.
    pub fn keeps_uses(&self) -> bool {
        self.uses.is_kept()
    }

    /// How many keys and hashes of `db` have deadlines. Locks only the shards in which some have.
    pub fn deadlines(&self, db: u16, now: Millis) -> Deadlines {
        let of_shard = |index| self.shard(index).db(db).map_or(Volatile::default(), |db| db.volatile);
        let has_any = |index: &usize| self.dues[*index].load(Ordering::Relaxed) != NEVER_DUE;
        let shards = (0..self.shards()).filter(has_any);
        let sum = shards.map(of_shard).fold(Volatile::default(), Volatile::sum);
        let mean = match sum.keys {
            0 => 0,
            keys => sum.deadlines_ms / i128::from(keys) - i128::from(now.0),
        };
        Deadlines {
            keys: sum.keys,
            ttl_mean_ms: i64::try_from(mean.max(0)).unwrap_or(i64::MAX),
            hashes: sum.hashes,
        }
    }

    /// How many keys of `db` have a deadline, and their mean time to live in milliseconds.
    pub fn volatile(&self, db: u16, now: Millis) -> (u64, i64) {
        let Deadlines { keys, ttl_mean_ms, .. } = self.deadlines(db, now);
        (keys, ttl_mean_ms)
    }

    /// Hashes in `db` of which some field has a deadline.
    pub fn timed_hashes(&self, db: u16) -> u64 {
        self.deadlines(db, Millis(0)).hashes
    }

    /// Visits about `count` keys of `db` from `cursor` on, of which those past their deadline are shown
    /// without a kind. Any u64 is accepted as a cursor. A key that is there from the call with 0 to the call
    /// that answers 0 is visited at least once.
    pub fn scan(
        &self,
        db: u16,
        now: Millis,
        cursor: u64,
        count: u64,
        visit: &mut dyn FnMut(&[u8], Option<Kind>),
    ) -> ScanStep {
        let mut shard = cursor >> 32 & (self.shards() as u64 - 1);
        let mut place = cursor as u32;
        let (mut seen, mut steps) = (0, 0);
        while shard < self.shards() as u64 && seen < count && steps < count.saturating_add(EMPTY_STEPS_MAX) {
            steps += 1;
            let guard = self.shard(shard as usize);
            let step = guard.db(db).map(|db| scan_leaf(db, &self.seeds.keys, now, place, visit));
            match step {
                Some((leaf, Some(next))) => {
                    seen += leaf;
                    place = next;
                }
                Some((leaf, None)) => {
                    seen += leaf;
                    (shard, place) = (shard + 1, 0);
                }
                None => (shard, place) = (shard + 1, 0),
            }
        }
        let is_done = shard >= self.shards() as u64;
        ScanStep { next_cursor: if is_done { 0 } else { shard << 32 | u64::from(place) } }
    }

    /// Removes those of these keys that are past their deadline, unless expiry rests.
    pub fn remove_overdue(&self, db: u16, now: Millis, keys: &[Vec<u8>], garbage: &mut Vec<Garbage>) {
        if self.expiry_rests() {
            return;
        }
        for key in keys {
            let hash = self.hash(key);
            let mut shard = self.shard_of(hash);
            let mut teller = Teller::new(self, &shard);
            teller.db = db;
            let (db, stats, _) = shard.open(db);
            let Entry::Occupied(entry) = db.map.entry(&self.seeds.keys, hash, key) else { continue };
            if Db::is_overdue(&entry.found(), now) {
                db.volatile.forget(Meta(entry.meta()), entry.inline(), entry.outside());
                teller.note(key, stats.count_gone(true));
                discard(entry.discard(), garbage);
                teller.tell();
            }
        }
    }

    /// Visits every key of `db` that is not past its deadline, until told to stop. Locks one shard at a time.
    pub fn visit(&self, db: u16, now: Millis, visit: &mut dyn FnMut(&[u8], Kind) -> ControlFlow<()>) {
        for index in 0..self.shards() {
            if let Some(db) = self.shard(index).db(db)
                && visit_live(db, now, visit).is_break()
            {
                return;
            }
        }
    }

    /// Visits one key of `db`, chosen uniformly among the live ones; false if there are none. A key past its
    /// deadline is not counted, and another is drawn. If nearly all are (they stay while CLIENT PAUSE lasts),
    /// all keys are walked.
    pub fn random_key(
        &self,
        db: u16,
        now: Millis,
        random: &mut Random,
        visit: &mut dyn FnMut(&[u8], Kind),
    ) -> bool {
        const TRIES_MAX: u32 = 100;
        for _ in 0..TRIES_MAX {
            let keys = self.len(db);
            if keys == 0 {
                return false;
            }
            if self.visit_nth_shard(db, now, random.below(keys), random, visit) {
                return true;
            }
        }
        self.random_of_all(db, now, random, visit)
    }

    /// Chooses by a walk over all live keys: the nth replaces the one chosen before with a chance of 1 in n,
    /// so that in the end each had the same chance.
    #[cold]
    fn random_of_all(
        &self,
        db: u16,
        now: Millis,
        random: &mut Random,
        visit: &mut dyn FnMut(&[u8], Kind),
    ) -> bool {
        let (mut seen, mut chosen) = (0, None);
        self.visit(db, now, &mut |key, kind| {
            seen += 1;
            if random.below(seen) == 0 {
                chosen = Some((key.to_vec(), kind));
            }
            ControlFlow::Continue(())
        });
        chosen.inspect(|(key, kind)| visit(key, *kind)).is_some()
    }

    /// Visits a random key of the shard that holds the `nth` of all keys; false if that key is overdue.
    fn visit_nth_shard(
        &self,
        db: u16,
        now: Millis,
        nth: u64,
        random: &mut Random,
        visit: &mut dyn FnMut(&[u8], Kind),
    ) -> bool {
        let Some(index) = self.lengths.shard_of_nth(db, nth) else { return false };
        let guard = self.shard(index);
        // The shard's keys may have been removed since they were counted.
        let Some(found) = guard.random(db, random) else { return false };
        let is_live = !Db::is_overdue(&found, now);
        if is_live {
            visit(found.key, kind(&found));
        }
        is_live
    }

    /// Empties `db`, or all (None): O(shards), however many keys there are. Returns how many there were, and
    /// the trees that held them, which the caller drops or hands to a background thread. The command counts
    /// the changes ([`Keyspace::dirty`]).
    pub fn flush(&self, db: Option<u16>) -> (u64, Vec<Garbage>) {
        if let Some(listener) = self.listener() {
            listener.flush(self, db);
        }
        let mut garbage = Vec::new();
        let mut keys = 0;
        for index in 0..self.shards() {
            let mut shard = self.shard(index);
            let flushed = shard.flush(db, &mut garbage);
            shard.stats.lazyfreed += flushed;
            keys += flushed;
            self.set_due(index, shard.next_due());
        }
        (keys, garbage)
    }

    /// The deadline of a key that is there, passed or not; None where there is no such key. Locks its shard.
    pub fn deadline_of(&self, db: u16, key: &[u8]) -> Option<Deadline> {
        let hash = self.hash(key);
        let shard = self.shard_of(hash);
        let found = shard.db(db)?.map.find(hash, key)?;
        Some(Meta(found.meta).deadline(found.inline))
    }

    /// Exchanges all keys of two databases, with their deadlines and timing wheels. The due times of shards
    /// stay right, because each is that of all databases of its shard.
    pub fn swap(&self, a: u16, b: u16, now: Millis) {
        if let Some(listener) = self.listener() {
            listener.swap(self, (a, b), now);
        }
        (0..self.shards()).for_each(|index| self.shard(index).swap(a, b));
    }

    /// Sums of all trees of `db`.
    pub fn tree_stats(&self, db: u16) -> Stats {
        let mut sum = Stats::default();
        for index in 0..self.shards() {
            if let Some(db) = self.shard(index).db(db) {
                add_stats(&mut sum, &db.map.stats());
            }
        }
        sum
    }

    /// Bytes that the timing wheels of `db` take, or those of all databases.
    pub fn wheel_bytes(&self, db: Option<u16>) -> u64 {
        let bytes = |db: &Db| db.wheel.as_deref().map_or(0, |wheel| wheel.allocated_bytes());
        let of_shard = |index| match (self.shard(index), db) {
            (shard, Some(db)) => shard.db(db).map_or(0, bytes),
            (shard, None) => shard.dbs().map(|(_, db)| bytes(db)).sum(),
        };
        (0..self.shards()).map(of_shard).sum()
    }
}

fn add_stats(sum: &mut Stats, more: &Stats) {
    let pairs = [
        (&mut sum.inner, &more.inner),
        (&mut sum.tagged, &more.tagged),
        (&mut sum.strings, &more.strings),
        (&mut sum.ints, &more.ints),
        (&mut sum.compressed, &more.compressed),
        (&mut sum.outside, &more.outside),
    ];
    for (sum, more) in pairs {
        sum.nodes += more.nodes;
        sum.entries += more.entries;
        sum.used_bytes += more.used_bytes;
        sum.allocated_bytes += more.allocated_bytes;
    }
    sum.compressed_raw_bytes += more.compressed_raw_bytes;
    sum.height = sum.height.max(more.height);
}
