//! The clock hand: a walk round and round over all leaves that keeps the bytes right which record how entries
//! are used. It replaces codes of the LRU clock that are to be free again, or lowers counters; after a change
//! of policy it sets all bytes to 0.
//!
//! It is moved from two sides. The clock moves it (`Keyspace::tend_uses`, ten times a second) so that a round
//! takes 40 seconds, or what `lfu-decay-time` says. Evictions move it by a leaf for every few of them: a
//! cache whose keys are all replaced within a second uses up 64 codes in that time, and needs them back as
//! soon. If the hand is late and no code is free, the present code goes on for longer: times are told apart
//! less finely then, but stay in order.
//!
//! What is counted before the round after a change of policy has passed is lost, so that round is not spread
//! over time: a thousand leaves are passed before the next command, and who may take long goes through the
//! others at once (`Keyspace::end_change_of_uses`).
//!
//! Cost: a thousand leaves are passed in some tenths of a millisecond; twenty million keys take 0.2% of one
//! processor.
use crate::Eviction;
use crate::eviction::lru_clock::{CODES, LruClock, Replacements, UNKNOWN, micros, none_replaced};
use crate::eviction::uses::{Tracking, Uses};
use crate::keyspace::shard::Shard;
use crate::keyspace::shards::Keyspace;
use base::Millis;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// A new code begins at the latest after so long.
const TICK_MS: i64 = 1000;
/// A new code also begins when one key in so many was evicted.
const TICKS_PER_TURNOVER: u64 = 64;
/// When fewer codes than this are free, a round begins that frees [`REPLACED`] codes: more than are given out
/// meanwhile.
pub(crate) const FREE_WANTED: usize = 80;
pub(crate) const REPLACED: usize = 56;
const ROUND_MS: i64 = 40_000;
/// Over so many leaves the hand moves at most in one call by the clock.
const LEAVES_PER_CALL: u64 = 2048;
/// So many are passed by the call that has seen a change of policy: a fraction of a millisecond.
const LEAVES_AT_CHANGE: u64 = 1024;
/// So many leaves are passed before others may have the hand.
const LEAVES_PER_HOLD: u64 = 256;
/// The hand moves over one leaf for so many evictions.
const EVICTIONS_PER_LEAF: u64 = 8;

pub(crate) struct Hand {
    clock: LruClock,
    /// What the bytes mean, or meant when uses were last kept.
    meaning: Tracking,
    round: Option<Round>,
    last_tick: Millis,
    /// The time up to which counters have been lowered, a whole number of periods after the first.
    last_decay: Option<Millis>,
    /// The number of keys in all databases, at most about a second old.
    keys: u64,
    /// The round that is going on is the one after a change of policy.
    is_changing: bool,
    /// How often that has begun.
    changes: u64,
}

/// One round over all leaves.
struct Round {
    becomes: Replacements,
    is_met: [bool; CODES],
    /// The codes that were in use when the round began, without the one that was given out then. No entry has
    /// got one of these since but through [`Round::outlives`]; codes that are not among these are not freed.
    known: Vec<u8>,
    began: Millis,
    length_ms: i64,
    shard: usize,
    db: u16,
    place: u32,
}

impl Round {
    fn new(becomes: Replacements, known: Vec<u8>, began: Millis, length_ms: i64) -> Round {
        Round { becomes, is_met: [false; CODES], known, began, length_ms, shard: 0, db: 0, place: 0 }
    }

    /// Passes one leaf; false at the end of the round.
    fn step(&mut self, keyspace: &Keyspace) -> bool {
        let (becomes, is_met) = (&self.becomes, &mut self.is_met);
        let mut pass = |uses: &mut [u8]| {
            for byte in uses {
                *byte = becomes[usize::from(*byte)];
                is_met[usize::from(*byte)] = true;
            }
        };
        while self.shard < keyspace.shards() {
            let mut shard = keyspace.shard(self.shard);
            if let Some((db, next)) = pass_leaf(&mut shard, self.db, self.place, &mut pass) {
                (self.db, self.place) = next.map_or((db + 1, 0), |place| (db, place));
                return true;
            }
            (self.shard, self.db, self.place) = (self.shard + 1, 0, 0);
        }
        false
    }

    /// The code to be given to an entry, in place of this one, so that it is still in use after the round:
    /// the hand may have passed the entry's leaf.
    fn outlives(&mut self, code: u8) -> u8 {
        if !self.known.contains(&code) {
            return code;
        }
        let stays = self.becomes[usize::from(code)];
        self.is_met[usize::from(stays)] = true;
        stays
    }

    /// Whether no entry has this code any more, now that the round is over.
    fn has_ended(&self, code: u8) -> bool {
        let index = usize::from(code);
        self.known.contains(&code) && (self.becomes[index] != code || !self.is_met[index])
    }

    /// Whether the hand is as far as it should be. That of a round that is not spread over time always is: it
    /// is the affair of [`Keyspace::end_change_of_uses`].
    fn is_on_time(&self, keyspace: &Keyspace, now: Millis) -> bool {
        if self.length_ms == 0 {
            return true;
        }
        let due = (now.0 - self.began.0).max(0) as f64 / self.length_ms as f64;
        let passed = self.shard as f64 + f64::from(self.place) / f64::from(u32::MAX);
        passed / keyspace.shards() as f64 > due
    }
}

/// Passes the leaf at that place of a database; if that has none, the first one of the next that has. Returns
/// which database it was, and where its next leaf is; None where no database has any.
fn pass_leaf(
    shard: &mut Shard,
    mut db: u16,
    mut place: u32,
    pass: &mut dyn FnMut(&mut [u8]),
) -> Option<(u16, Option<u32>)> {
    loop {
        let (number, found) = shard.db_from(db)?;
        if number > db {
            place = 0;
        }
        if !found.map.is_empty() {
            return Some((number, found.map.visit_uses(place, pass)));
        }
        (db, place) = (number + 1, 0);
    }
}

impl Hand {
    pub(crate) fn new() -> Hand {
        Hand {
            clock: LruClock::new(),
            meaning: Tracking::Off,
            round: None,
            last_tick: Millis(i64::MIN),
            last_decay: None,
            keys: 0,
            is_changing: false,
            changes: 0,
        }
    }

    /// Begins a round, or a new code, if the time or the number of evictions calls for it.
    fn tend(&mut self, keyspace: &Keyspace, now: Millis, eviction: &Eviction) {
        let meaning = keyspace.uses.tracking(eviction.policy);
        if self.meaning != meaning {
            self.change_meaning(meaning, now, &keyspace.uses);
        }
        match meaning {
            Tracking::Recency => self.tick_if_due(keyspace, now),
            Tracking::Frequency => self.decay_if_due(now, eviction),
            Tracking::Off => {}
        }
    }

    /// The policy has changed, and with it the meaning of the bytes. If they had one before, a round begins
    /// that sets all of them to 0; until it has passed, each counts as used now. That frees no code:
    /// those of before mean nothing any more, so they are free at once, and entries that the hand has passed
    /// may have got any of the codes that began since.
    fn change_meaning(&mut self, meaning: Tracking, now: Millis, uses: &Uses) {
        if self.meaning != Tracking::Off {
            self.round = Some(Round::new(Box::new([0; CODES]), Vec::new(), now, 0));
            self.is_changing = true;
            self.changes += 1;
            if meaning == Tracking::Recency {
                self.clock.retire(|_| true);
                (0..=u8::MAX).for_each(|code| uses.note_began(code, micros(now)));
            }
        }
        (self.meaning, self.last_decay) = (meaning, Some(now));
    }

    fn tick_if_due(&mut self, keyspace: &Keyspace, now: Millis) {
        let uses = &keyspace.uses;
        let is_turning = uses.evicted.load(Relaxed) > self.keys / TICKS_PER_TURNOVER;
        let is_late = now.0.saturating_sub(self.last_tick.0) >= TICK_MS || now < self.last_tick;
        if !is_turning && !is_late {
            return;
        }
        uses.evicted.store(0, Relaxed);
        self.last_tick = now;
        if let Some((code, began_us)) = self.clock.tick(now) {
            uses.begin(code, began_us);
        }
        if is_late || self.keys == 0 {
            self.keys = (0..keyspace.databases()).map(|db| keyspace.len(db)).sum();
        }
        if self.round.is_none() && self.clock.free() < FREE_WANTED {
            let becomes = self.clock.plan(now, REPLACED);
            let in_use = self.clock.in_use();
            let known = in_use[..in_use.len() - 1].to_vec();
            self.round = Some(Round::new(becomes, known, now, ROUND_MS));
        }
    }

    fn decay_if_due(&mut self, now: Millis, eviction: &Eviction) {
        let period_ms = i64::from(eviction.lfu_decay_min) * 60_000;
        let last = *self.last_decay.get_or_insert(now);
        if period_ms == 0 || self.round.is_some() || now.0 - last.0 < period_ms {
            return;
        }
        let periods = u8::try_from((now.0 - last.0) / period_ms).unwrap_or(u8::MAX);
        self.last_decay = Some(Millis(last.0 + i64::from(periods) * period_ms));
        let mut becomes = none_replaced();
        becomes.iter_mut().for_each(|byte| *byte = byte.saturating_sub(periods));
        self.round = Some(Round::new(becomes, Vec::new(), now, period_ms.min(ROUND_MS)));
    }

    /// Moves on by one leaf, if a round is going on.
    fn step(&mut self, keyspace: &Keyspace) -> bool {
        let Some(round) = &mut self.round else { return false };
        if round.step(keyspace) {
            return true;
        }
        if self.meaning == Tracking::Recency {
            self.clock.retire(|code| round.has_ended(code));
        }
        (self.round, self.is_changing) = (None, false);
        false
    }
}

/// How often somebody who may not wait for the hand tries to take it, and how often before others may run.
const HAND_TRIES: u32 = 300;
const HAND_SPINS: u32 = 200;

impl Keyspace {
    /// Keeps the records of uses right; to be called ten times a second. Does nothing if no uses are
    /// recorded. Returns whether [`Keyspace::end_change_of_uses`] is to be called.
    pub fn tend_uses(&self, now: Millis, eviction: &Eviction) -> bool {
        if self.uses.tracking(eviction.policy) == Tracking::Off {
            return false;
        }
        let mut hand = self.uses.hand.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = hand.changes;
        hand.tend(self, now, eviction);
        if hand.changes != changes {
            let _ = (0..LEAVES_AT_CHANGE).all(|_| hand.step(self));
        }
        for _ in 0..LEAVES_PER_CALL {
            if hand.round.as_ref().is_none_or(|round| round.is_on_time(self, now)) || !hand.step(self) {
                break;
            }
        }
        hand.is_changing
    }

    /// After a change of policy: goes through all leaves, to set what was recorded under the old one to 0,
    /// until that is done or the policy changes again. It takes a shard for one leaf at a time, but is long:
    /// a tenth of a second for some million keys.
    pub fn end_change_of_uses(&self) {
        let hand = || self.uses.hand.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = hand().changes;
        let goes_on = || {
            let mut hand = hand();
            (0..LEAVES_PER_HOLD).all(|_| hand.is_changing && hand.changes == changes && hand.step(self))
        };
        while goes_on() {
            std::thread::yield_now();
        }
    }

    /// A key was evicted, and no shard is held.
    pub(crate) fn note_eviction(&self, now: Millis, eviction: &Eviction) {
        let before = self.uses.evicted.fetch_add(1, Relaxed);
        if !before.is_multiple_of(EVICTIONS_PER_LEAF) || self.uses.tracking(eviction.policy) == Tracking::Off
        {
            return;
        }
        if let Some(mut hand) = self.try_hand() {
            hand.tend(self, now, eviction);
            hand.step(self);
        }
    }

    /// The code of a use in the past. Others who recall one, as where a file is loaded by all workers, are
    /// waited for. The caller may hold a shard that whoever moves the hand waits for, so after some tries it
    /// is the present code.
    pub(crate) fn recall_use(&self, used_us: i64, now: Millis) -> u8 {
        let again = |n| {
            if n >= HAND_SPINS {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
            self.try_hand()
        };
        let Some(mut hand) = self.try_hand().or_else(|| (0..HAND_TRIES).find_map(again)) else {
            return self.uses.now();
        };
        if self.uses.now() == UNKNOWN
            && let Some((code, began_us)) = hand.clock.tick(now)
        {
            // Nothing was recorded before.
            self.uses.begin(code, began_us);
        }
        let (code, began_us) = hand.clock.recall(used_us, now);
        self.uses.note_began(code, began_us);
        hand.round.as_mut().map_or(code, |round| round.outlives(code))
    }

    fn try_hand(&self) -> Option<MutexGuard<'_, Hand>> {
        match self.uses.hand.try_lock() {
            Ok(hand) => Some(hand),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(hand)) => Some(hand.into_inner()),
        }
    }
}
