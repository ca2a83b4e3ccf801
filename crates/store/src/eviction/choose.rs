//! Eviction: which keys go when memory is short, and how such a key is found without looking at all of them.
//!
//! The keyspace's leaves are ordered by hash, so the entries of any one leaf are a fair sample of all keys. A
//! [`Evictor`] looks over two or three random leaves, some eighty candidates for a few cache misses, and
//! takes the entry that the policy can spare best. Where only keys with a deadline may go and few have one,
//! leaves are drawn from the timing wheels (`rare.rs`); for the nearest deadline the wheels are asked
//! outright (`Db::evict_soonest`).
//!
//! An evicted entry gives all its bytes back at once ([`pack::map::Map::evict`]): the room that an ordinary
//! removal leaves in its leaf would mean evicting several per cent of all keys before anything is free.
use crate::Keyspace;
use crate::entry::Meta;
use crate::eviction::beside::Seen;
use crate::eviction::policy::{Eviction, Policy};
use crate::eviction::pool::Pool;
use crate::eviction::rare::note_gone;
use crate::eviction::uses::{Tracking, Uses};
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{NEVER_DUE, NO_DEADLINE};
use crate::keyspace::ears::Teller;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::{Db, Shard, discard};
use crate::value::Value;
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use pack::map::{Crowd, Found};
use std::sync::atomic::Ordering;

/// Holes between the data do not count up to this part of the limit, but at least up to [`HOLES_FREE_MIN`],
/// because there are always some. At most [`HOLES_COUNTED_PART`] of the limit is counted, however many holes
/// there are.
const HOLES_FREE_PART: u64 = 32;
const HOLES_FREE_MIN: u64 = 1 << 20;
const HOLES_COUNTED_PART: u64 = 20;

/// What counts against the limit of the arena's [holes](pack::arena::Usage::hole_bytes), where keys may go
/// for it. A limit on the data alone is passed by what the process really takes: while a cache fills, its
/// growing leaves leave 7% of it in holes that are too short for any of them; once keys go as others come the
/// holes join, are given back, and 3% are left.
pub fn counted_holes(limit_bytes: u64, hole_bytes: u64) -> u64 {
    let free_bytes = (limit_bytes / HOLES_FREE_PART).max(HOLES_FREE_MIN);
    hole_bytes.saturating_sub(free_bytes).min(limit_bytes / HOLES_COUNTED_PART)
}

/// What came of looking for a key to evict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Key,
    /// No key may go.
    Nothing,
}

/// So many candidates are looked at for each of `maxmemory-samples`. In Redis each candidate costs a cache
/// miss; here the many candidates of a leaf cost a few. They must come from more than one leaf: if the best
/// of one leaf always went, each leaf would be a cache of its own, and a leaf that by chance gets more keys
/// than others would keep them for a shorter time.
const CANDIDATES_PER_SAMPLE: usize = 16;
/// A leaf with candidates counts for at least so many, and one without for one, because where not many keys
/// may go it is the leaves that take time. The best of ten candidates from as many leaves is about as good as
/// that of the five that Redis draws and those that it has kept: one of the tenth that was not used for
/// longest.
const CANDIDATES_PER_LEAF: usize = 8;
/// Where few keys may go those that were met and not taken are kept, as by Redis, and half the leaves are
/// enough.
const CANDIDATES_PER_RARE_LEAF: usize = CANDIDATES_PER_SAMPLE;
/// A leaf that was found by one of the few keys counts for so many if that has gone, or only fields of hashes
/// wait there: these may be everywhere, and to tell takes as long as to look over a leaf.
const CANDIDATES_PER_VAIN_LEAF: usize = CANDIDATES_PER_RARE_LEAF / 4;
/// Of a leaf with few keys that may go, one is looked for, from the newest on: such keys come and go beside
/// others that stay. One leaf in so many is looked over whole, for those behind the first.
const WHOLE_LEAVES: u64 = 4;
/// At least so many leaves are tried before a search gives up, even where there are fewer shards.
const LEAVES_MIN: usize = 8;
/// At most so many leaves in a row are looked at to find one with a deadline.
const LEAVES_WALKED: usize = 16;

/// What one thread keeps to find keys to evict: its random generator, and the candidate of the present
/// search.
pub struct Evictor {
    pub(crate) random: Random,
    best: Candidate,
    seen: usize,
    pool: Pool,
    pub(crate) seen_beside: Seen,
}

#[derive(Default)]
struct Candidate {
    /// The higher, the sooner it goes; 0 is nothing.
    score: u64,
    shard: usize,
    db: u16,
    key: Vec<u8>,
}

impl Candidate {
    fn note(&mut self, score: u64, (shard, db): (usize, u16), key: &[u8]) {
        (self.score, self.shard, self.db) = (score, shard, db);
        self.key.clear();
        self.key.extend_from_slice(key);
    }
}

/// See [`Uses::idle_us`].
const AHEAD_MS: i64 = 1000;

/// The score of a key past its deadline, higher than that of any other: it goes first.
const SCORE_OVERDUE: u64 = u64::MAX;

impl Evictor {
    /// An evictor whose choices follow from `seed`. Each thread that evicts has its own.
    pub fn new(seed: u64) -> Evictor {
        Evictor {
            random: Random::new(seed),
            best: Candidate::default(),
            seen: 0,
            pool: Pool::default(),
            seen_beside: Seen::new(),
        }
    }

    /// A random number below `count`, all with the same chance.
    pub(crate) fn draw(&mut self, count: usize) -> usize {
        self.random.below(count as u64) as usize
    }

    pub(crate) fn draw_hash(&mut self) -> u64 {
        self.random.next_u64()
    }

    /// Looks over one leaf of a database, and says whether it has a key that may go.
    fn look_over(&mut self, sample: &Sample<'_>, search: &Search<'_>) -> bool {
        let (crowd, seen_before) = (sample.crowd, self.seen);
        if search.eviction.policy == Policy::AllkeysRandom {
            if crowd.len() > 0 {
                let index = self.random.below(crowd.len() as u64) as usize;
                self.consider(1, index, sample, search);
            }
            return crowd.len() > 0;
        }
        let uses = crowd.uses();
        let mut look_at = |index: usize| {
            let byte = uses.get(index).copied().unwrap_or(0);
            let score = match search.eviction.policy.tracking() {
                Tracking::Off => self.random.next_u64() >> 1 | 1,
                // Of keys used equally often a random one goes: if the first went, keys that are read in turn
                // would all go just before their next use.
                Tracking::Frequency => search.score(byte) << 32 | self.random.next_u64() >> 32,
                Tracking::Recency => search.score(byte),
            };
            self.consider(score, index, sample, search);
        };
        match search.eviction.policy.is_volatile() {
            true => crowd.having(is_volatile).for_each(&mut look_at),
            // No entry need be read to know whether it may go.
            false => (0..crowd.len()).for_each(&mut look_at),
        }
        let is_any = self.seen > seen_before;
        self.seen = self.seen.max(seen_before + if is_any { CANDIDATES_PER_LEAF } else { 1 });
        is_any
    }

    /// The same for a leaf that was found by one of the few keys that may go.
    pub(crate) fn look_over_rare(&mut self, sample: &Sample<'_>, search: &Search<'_>) -> bool {
        if search.eviction.policy.tracking() == Tracking::Off {
            return self.look_over(sample, search);
        }
        let crowd = sample.crowd;
        let is_whole = sample.is_due || self.random.below(WHOLE_LEAVES) == 0;
        let mut is_any = false;
        let mut meet = |index| {
            is_any = true;
            self.meet(index, sample, search);
        };
        match is_whole {
            true => crowd.having(is_volatile).for_each(&mut meet),
            false => crowd.newest_having(is_volatile).into_iter().for_each(&mut meet),
        }
        self.seen += if is_any { CANDIDATES_PER_RARE_LEAF } else { CANDIDATES_PER_VAIN_LEAF };
        is_any
    }

    /// Keeps this entry in mind.
    fn meet(&mut self, index: usize, sample: &Sample<'_>, search: &Search<'_>) {
        if sample.is_due && deadline(&sample.crowd.at(index)).is_past(search.now) {
            return self.best.note(SCORE_OVERDUE, (sample.shard, sample.db), sample.crowd.at(index).key);
        }
        let rank = search.rank(sample.crowd.uses().get(index).copied().unwrap_or(0));
        if self.pool.wants(rank) {
            self.pool.offer(rank, sample.db, search.seed.hash(sample.crowd.at(index).key));
        }
    }

    /// Whether some key was found that may go, and enough were looked at.
    pub(crate) fn has_enough(&self, search: &Search<'_>) -> bool {
        (self.best.score > 0 || !self.pool.is_empty()) && self.seen >= search.candidates_wanted()
    }

    /// Makes this entry the candidate if it scores higher than the present one. Of equals the first stays.
    fn consider(&mut self, score: u64, index: usize, sample: &Sample<'_>, search: &Search<'_>) {
        let mut score = score;
        self.seen += 1;
        if score <= self.best.score && !sample.is_due {
            return;
        }
        if sample.is_due && deadline(&sample.crowd.at(index)).is_past(search.now) {
            score = SCORE_OVERDUE;
        }
        if score > self.best.score {
            self.best.note(score, (sample.shard, sample.db), sample.crowd.at(index).key);
        }
    }
}

/// One leaf, and where it is.
pub(crate) struct Sample<'s> {
    crowd: &'s Crowd<'s, Value>,
    shard: usize,
    db: u16,
    /// Whether some entry's deadline may have passed. Then all entries are read; otherwise only those that
    /// could be better than the best so far, because reading one may cost a cache miss, which the byte of
    /// uses does not.
    is_due: bool,
}

impl<'s> Sample<'s> {
    pub(crate) fn new(
        crowd: &'s Crowd<'s, Value>,
        (shard, db): (usize, u16),
        search: &Search<'_>,
    ) -> Sample<'s> {
        Sample { crowd, shard, db, is_due: search.is_due(crowd) }
    }
}

/// Whether an entry of this meta has a deadline.
pub(crate) fn is_volatile(meta: u8) -> bool {
    Meta(meta).is_volatile()
}

pub(crate) fn deadline(found: &Found<'_, Value>) -> Deadline {
    Meta(found.meta).deadline(found.inline)
}

/// What one search goes by.
pub(crate) struct Search<'k> {
    now: Millis,
    pub(crate) eviction: Eviction,
    uses: &'k Uses,
    seed: &'k Seed,
}

impl<'k> Search<'k> {
    pub(crate) fn new(now: Millis, eviction: &Eviction, keyspace: &'k Keyspace) -> Search<'k> {
        Search { now, eviction: *eviction, uses: &keyspace.uses, seed: &keyspace.seeds.keys }
    }

    /// The rank of a key with this byte of uses: the lower, the sooner it goes. Unlike [`Search::score`],
    /// ranks of different moments can be compared.
    #[inline]
    pub(crate) fn rank(&self, byte: u8) -> i64 {
        match self.eviction.policy.tracking() {
            Tracking::Frequency => i64::from(byte),
            _ => self.uses.began_us(byte),
        }
    }

    fn candidates_wanted(&self) -> usize {
        match self.eviction.policy {
            Policy::AllkeysRandom | Policy::VolatileRandom => 1,
            _ => self.eviction.samples as usize * CANDIDATES_PER_SAMPLE,
        }
    }

    /// How many leaves are looked over where each has a key or two that may go.
    pub(crate) fn leaves_wanted(&self) -> usize {
        self.candidates_wanted().div_ceil(CANDIDATES_PER_RARE_LEAF)
    }

    /// How well a key with this byte of uses can be spared, at this moment.
    fn score(&self, byte: u8) -> u64 {
        match self.eviction.policy.tracking() {
            Tracking::Frequency => 1 + u64::from(u8::MAX - byte),
            // If the clock stood still, codes may have been given times a little ahead of it.
            _ => self.uses.idle_us(byte, Millis(self.now.0.saturating_add(AHEAD_MS))) as u64 + 1,
        }
    }

    /// Whether some entry's deadline may have passed.
    fn is_due(&self, crowd: &Crowd<'_, Value>) -> bool {
        i64::try_from(crowd.leaf_note().note).is_ok_and(|note| note <= self.now.0)
    }

    /// How many keys of a database may go.
    fn eligible(&self, db: &Db) -> u64 {
        if self.eviction.policy.is_volatile() { db.volatile.keys } else { db.map.len() }
    }

    /// One of the shard's databases, each with the chance of its share of the keys that may go.
    pub(crate) fn draw_db(&self, shard: &Shard, evictor: &mut Evictor) -> Option<u16> {
        let eligible: u64 = shard.dbs().map(|(_, db)| self.eligible(db)).sum();
        let mut nth = (eligible > 0).then(|| evictor.random.below(eligible))?;
        let found = shard.dbs().find(|(_, db)| {
            let keys = self.eligible(db);
            let is_here = nth < keys;
            nth = nth.saturating_sub(keys);
            is_here
        });
        found.map(|(number, _)| number)
    }

    /// The leaf at this place, or one of those behind it where only keys with a deadline may go and it has
    /// none.
    fn crowd<'d>(&self, db: &'d Db, mut place: u32) -> Option<Crowd<'d, Value>> {
        for _ in 0..LEAVES_WALKED {
            let crowd = db.map.crowd(place)?;
            let leaf = crowd.leaf_note();
            if leaf.note != NO_DEADLINE || !self.eviction.policy.is_volatile() {
                return Some(crowd);
            }
            place = leaf.range.last.wrapping_add(1);
        }
        None
    }
}

impl Keyspace {
    /// Removes the key that can be spared best, among some. What must be freed elsewhere goes to `garbage`.
    /// Locks one shard at a time, and prefers those that nobody holds.
    pub fn evict(
        &self,
        evictor: &mut Evictor,
        now: Millis,
        eviction: &Eviction,
        garbage: &mut Vec<Garbage>,
    ) -> Outcome {
        let search = Search::new(now, eviction, self);
        match eviction.policy {
            Policy::NoEviction => Outcome::Nothing,
            policy if policy.is_volatile() && self.supply.is_spent() => Outcome::Nothing,
            Policy::VolatileTtl => self.evict_soonest(now, garbage),
            _ => {
                let outcome = self.find_and_evict(evictor, &search, garbage);
                self.note_eviction(now, eviction);
                outcome
            }
        }
    }

    fn find_and_evict(
        &self,
        evictor: &mut Evictor,
        search: &Search<'_>,
        garbage: &mut Vec<Garbage>,
    ) -> Outcome {
        (evictor.best.score, evictor.seen) = (0, 0);
        evictor.pool.obey(search.eviction.policy);
        let first = evictor.random.below(self.shards() as u64) as usize;
        let mut is_any_held = false;
        for n in 0..self.shards().max(LEAVES_MIN) {
            let index = (first + n) % self.shards();
            let Some(mut shard) = self.try_shard(index) else {
                is_any_held = true;
                continue;
            };
            self.look_for(&mut shard, evictor, search);
            if evictor.has_enough(search) {
                if evictor.best.score > 0 && evictor.best.shard == index {
                    return self.take_best(&mut shard, evictor, search, garbage);
                }
                break;
            }
        }
        let mut taken = self.take_found(evictor, search, garbage);
        if taken.is_none() && is_any_held {
            for index in 0..self.shards() {
                self.look_for(&mut self.shard(index), evictor, search);
            }
            taken = self.take_found(evictor, search, garbage);
        }
        // Where few keys have a deadline, a leaf drawn at random hardly ever holds one, so the wheel names a
        // leaf.
        taken.unwrap_or_else(|| match search.eviction.policy.is_volatile() {
            true => self.evict_soonest(search.now, garbage),
            false => Outcome::Nothing,
        })
    }

    /// Removes the candidate, or else the best of the keys that were kept. None if there is neither.
    fn take_found(
        &self,
        evictor: &mut Evictor,
        search: &Search<'_>,
        garbage: &mut Vec<Garbage>,
    ) -> Option<Outcome> {
        match evictor.best.score {
            0 => self.take_kept(evictor, search, garbage),
            _ => Some(self.take_best(&mut self.shard(evictor.best.shard), evictor, search, garbage)),
        }
    }

    /// Removes the best of the keys that were kept, if one of them may still go. One that was used since it
    /// was met has a worse rank by now, and waits for its turn again.
    fn take_kept(
        &self,
        evictor: &mut Evictor,
        search: &Search<'_>,
        garbage: &mut Vec<Garbage>,
    ) -> Option<Outcome> {
        while let Some(kept) = evictor.pool.take() {
            let mut shard = self.shard_of(kept.hash);
            let Some(crowd) = shard.db(kept.db).and_then(|db| db.map.crowd(kept.hash.order())) else {
                continue;
            };
            let is_it = |index: &usize| {
                crowd.tag(*index) == kept.hash.tag()
                    && is_volatile(crowd.meta(*index))
                    && search.seed.hash(crowd.at(*index).key) == kept.hash
            };
            let Some(index) = (0..crowd.len()).find(is_it) else { continue };
            let rank = search.rank(crowd.uses().get(index).copied().unwrap_or(0));
            if rank > kept.rank {
                evictor.pool.offer(rank, kept.db, kept.hash);
                continue;
            }
            evictor.best.note(1, (shard.index as usize, kept.db), crowd.at(index).key);
            return Some(self.take_best(&mut shard, evictor, search, garbage));
        }
        None
    }

    /// Looks over a leaf of one of the shard's databases.
    fn look_for(&self, shard: &mut Shard, evictor: &mut Evictor, search: &Search<'_>) {
        let Some(number) = search.draw_db(shard, evictor) else { return };
        let Some(db) = shard.db(number) else { return };
        if search.eviction.policy.is_volatile() && db.has_rare_deadlines() {
            return self.look_for_rare((shard, number), evictor, search);
        }
        let place = evictor.draw_hash() as u32;
        if let Some(crowd) = search.crowd(db, place) {
            evictor.look_over(&Sample::new(&crowd, (shard.index as usize, number), search), search);
        }
    }

    /// Removes the candidate. Another thread may have removed it meanwhile, or taken its deadline away, which
    /// counts as done.
    fn take_best(
        &self,
        shard: &mut Shard,
        evictor: &Evictor,
        search: &Search<'_>,
        garbage: &mut Vec<Garbage>,
    ) -> Outcome {
        let Candidate { db, key, .. } = &evictor.best;
        let mut teller = Teller::new(self, shard);
        teller.db = *db;
        let (db, stats, _) = shard.open(*db);
        let (hash, is_volatile_only) = (search.seed.hash(key), search.eviction.policy.is_volatile());
        let may_go = |found: Found<'_, Value>| is_volatile(found.meta);
        if is_volatile_only && !db.map.find(hash, &key[..]).is_some_and(may_go) {
            return Outcome::Key;
        }
        let Some(removed) = db.map.evict(search.seed, hash, key) else { return Outcome::Key };
        let deadline = Meta(removed.meta).deadline(&removed.inline);
        db.volatile.forget(Meta(removed.meta), &removed.inline, removed.outside.as_deref());
        if is_volatile_only {
            note_gone(db, hash.order());
        }
        teller.note(key, stats.count_gone(deadline.is_past(search.now)));
        teller.tell();
        discard(removed.outside, garbage);
        Outcome::Key
    }

    /// Removes the key with the nearest deadline, in the shard that falls due next. If only fields of hashes
    /// wait there, the other shards are tried, those included that seem to have nothing: after that it is
    /// known that no key may go.
    fn evict_soonest(&self, now: Millis, garbage: &mut Vec<Garbage>) -> Outcome {
        let due = |index: usize| self.dues[index].load(Ordering::Relaxed);
        let soonest = (0..self.shards()).min_by_key(|index| due(*index)).unwrap_or(0);
        if due(soonest) != NEVER_DUE && self.evict_soonest_in(soonest, now, garbage) == Some(true) {
            return Outcome::Key;
        }
        let search = self.supply.begin_search();
        let mut order: Vec<(i64, usize)> = (0..self.shards()).map(|index| (due(index), index)).collect();
        order.sort_unstable();
        let mut is_any = false;
        for (_, index) in order {
            match self.evict_soonest_in(index, now, garbage) {
                Some(true) => return Outcome::Key,
                Some(false) => is_any = true,
                None => {}
            }
        }
        if !is_any {
            self.supply.end_search(search);
        }
        Outcome::Nothing
    }

    /// The same in one shard. Returns whether a key has gone; None where none has a deadline.
    fn evict_soonest_in(&self, index: usize, now: Millis, garbage: &mut Vec<Garbage>) -> Option<bool> {
        let mut shard = self.shard(index);
        let mut teller = Teller::new(self, &shard);
        let (dbs, stats) = shard.dbs_mut();
        let volatile = dbs.filter(|(_, db)| db.volatile.keys > 0);
        let (number, db) = volatile.min_by_key(|(_, db)| db.next_due())?;
        teller.db = number;
        let is_evicted = db.evict_soonest(now, stats, garbage, &mut teller);
        teller.tell();
        self.set_due(index, shard.next_due());
        Some(is_evicted)
    }
}
