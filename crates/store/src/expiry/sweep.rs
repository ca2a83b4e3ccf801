//! Expiry: on access (`keyspace/view.rs` and the value APIs treat a key past its deadline as gone), and by
//! the clock, here. The rules that deadlines wait by are in `notes.rs`.
use crate::Keyspace;
use crate::entry::Meta;
use crate::event::Event;
use crate::expiry::fields::sweep_fields;
use crate::expiry::notes::{ITEMS_PER_TIDYING, NEVER_DUE, NO_DEADLINE, due_of, is_needed, note_of, time_of};
use crate::expiry::reaper::{Dues, Fate, Reaper};
use crate::expiry::timer::Volatile;
use crate::expiry::wheel::{Item, Wheel};
use crate::hash::due::fields_due;
use crate::keyspace::ears::Teller;
use crate::keyspace::garbage::Garbage;
use crate::keyspace::locked::Locked;
use crate::keyspace::shard::{Db, discard};
use crate::keyspace::stats::ShardStats;
use crate::value::Value;
use base::Millis;
use pack::map::{Found, Keys, OrderRange, Removed, Sweeping};
use std::sync::atomic::Ordering;

/// A sweep looks at about so many entries at a time.
const LOOKS_PER_SWEEP: u64 = 512;
/// The same where one key has to go before its time.
const LOOKS_PER_EVICTION: u64 = 64;
const TIDYING_COST: u64 = 16;

/// What a sweep does to the keys of a database: it removes those that are due, prunes hashes of which fields
/// are due, and where `evicts` is set it evicts one key.
struct KeyDues<'s, 'k> {
    clock: Millis,
    /// Where `evicts` is set, one key whose deadline is not later than this time is evicted.
    now: Millis,
    evicts: bool,
    volatile: &'s mut Volatile,
    stats: &'s mut ShardStats,
    garbage: &'s mut Vec<Garbage>,
    teller: &'s mut Teller<'k>,
    /// The earliest deadline of a field that stays in the leaf being looked at, and of a key.
    earliest_field: u64,
    earliest_key: u64,
    /// Leaves in which fields of a hash fall due before any key, each with the time at which its first key
    /// does. Used only for evictions.
    hidden: Vec<Item>,
    /// Whether the entry that is removed next is a hash which lost its last field, and so counts neither as
    /// expired nor as evicted.
    is_emptied: bool,
}

impl<'s, 'k> KeyDues<'s, 'k> {
    /// A sweep that removes what is due by the clock, and evicts nothing.
    fn new(
        now: Millis,
        volatile: &'s mut Volatile,
        stats: &'s mut ShardStats,
        garbage: &'s mut Vec<Garbage>,
        teller: &'s mut Teller<'k>,
    ) -> KeyDues<'s, 'k> {
        KeyDues {
            clock: now,
            now,
            evicts: false,
            volatile,
            stats,
            garbage,
            teller,
            earliest_field: NO_DEADLINE,
            earliest_key: NO_DEADLINE,
            hidden: Vec::new(),
            is_emptied: false,
        }
    }
}

impl Dues<Value, Keys> for KeyDues<'_, '_> {
    fn judge(&mut self, found: &Found<'_, Value>, removals: u64) -> Fate {
        let meta = Meta(found.meta);
        let deadline = meta.deadline(found.inline);
        if deadline.is_past(self.clock) {
            return Fate::Goes;
        }
        if self.evicts && deadline.is_past(self.now) && removals == 0 {
            return Fate::Evicted;
        }
        let (own, fields) = (due_of(deadline), fields_due(meta, found.inline, found.outside));
        self.earliest_key = self.earliest_key.min(own);
        if fields <= note_of(self.clock) {
            return Fate::Prunes(own);
        }
        self.earliest_field = self.earliest_field.min(fields);
        Fate::Stays(own.min(fields))
    }

    fn prune(&mut self, entry: &mut Sweeping<'_, Value>) -> (Fate, u64) {
        let mut names = self.teller.wanted_names();
        let swept = sweep_fields(entry, self.clock, self.volatile, (self.garbage, &mut names));
        self.stats.expired_fields += swept.removed;
        if swept.removed > 0 {
            self.teller.note_fields(entry.found().key, names);
        }
        self.is_emptied = swept.is_empty;
        self.earliest_field = self.earliest_field.min(swept.due);
        (if swept.is_empty { Fate::Goes } else { Fate::Stays(swept.due) }, swept.removed)
    }

    fn removed(&mut self, key: &[u8], removed: Removed<Value>) {
        let meta = Meta(removed.meta);
        self.volatile.forget(meta, &removed.inline, removed.outside.as_deref());
        let is_past = meta.deadline(&removed.inline).is_past(self.clock);
        let event =
            if std::mem::take(&mut self.is_emptied) { Event::DEL } else { self.stats.count_gone(is_past) };
        self.teller.note(key, event);
        discard(removed.outside, self.garbage);
    }

    fn leaf_ends(&mut self, range: OrderRange) {
        let fields = std::mem::replace(&mut self.earliest_field, NO_DEADLINE);
        let key = std::mem::replace(&mut self.earliest_key, NO_DEADLINE);
        if self.evicts && fields < key && key != NO_DEADLINE {
            self.hidden.push(Item { due: key, range });
        }
    }
}

/// Takes the item that is due first, of those in the wheel and the hidden leaves.
fn take_soonest(wheel: &mut Wheel, hidden: &mut Vec<Item>) -> Option<Item> {
    let index = (0..hidden.len()).min_by_key(|index| hidden[*index].due);
    match (wheel.take_soonest(), index) {
        (Some(item), Some(index)) if hidden[index].due < item.due => {
            wheel.schedule(item);
            Some(hidden.swap_remove(index))
        }
        (None, Some(index)) => Some(hidden.swap_remove(index)),
        (item, _) => item,
    }
}

impl Db {
    /// Removes what is due, until `budget` is used up. Returns when to come again.
    pub(crate) fn expire(
        &mut self,
        now: Millis,
        budget: &mut u64,
        stats: &mut ShardStats,
        garbage: &mut Vec<Garbage>,
        teller: &mut Teller<'_>,
    ) -> i64 {
        let Some(wheel) = &mut self.wheel else { return NEVER_DUE };
        let dues = KeyDues::new(now, &mut self.volatile, stats, garbage, teller);
        Reaper::new(wheel, dues).run(&mut self.map, now, budget, LOOKS_PER_SWEEP);
        while *budget > 0 && wheel.is_untidy() {
            wheel.tidy(ITEMS_PER_TIDYING, |item| is_needed(&self.map, item));
            *budget = budget.saturating_sub(TIDYING_COST);
        }
        self.next_due()
    }

    /// Evicts the key that is due first; false if no key has a deadline. Fields of hashes wait in the same
    /// wheel, and are not evicted: the items that stand for them are kept aside and put back in the end, so
    /// that each is taken out once. A key that lies in such a leaf waits under the same item as the field; it
    /// is looked for at its own deadline.
    pub(crate) fn evict_soonest(
        &mut self,
        now: Millis,
        stats: &mut ShardStats,
        garbage: &mut Vec<Garbage>,
        teller: &mut Teller<'_>,
    ) -> bool {
        let Some(wheel) = self.wheel.as_deref_mut().filter(|_| self.volatile.keys > 0) else { return false };
        let keys = self.volatile.keys;
        let (mut later, mut hidden) = (Vec::new(), Vec::new());
        while self.volatile.keys == keys
            && let Some(item) = take_soonest(wheel, &mut hidden)
        {
            let mut fresh = Wheel::new(note_of(now));
            let dues = KeyDues::new(now, &mut self.volatile, stats, garbage, teller);
            let dues = KeyDues { now: Millis(time_of(item.due)), evicts: true, ..dues };
            let mut reaper = Reaper::new(&mut fresh, dues);
            let rest = self.map.sweep(item.range, item.due, LOOKS_PER_EVICTION, &mut reaper);
            hidden.append(&mut reaper.dues.hidden);
            if let Some(range) = rest {
                wheel.schedule(Item { due: item.due, range });
            }
            while let Some(next) = fresh.take_soonest() {
                if next.due > item.due {
                    wheel.schedule_again(next);
                } else if !later.contains(&next) {
                    later.push(next);
                }
            }
        }
        later.into_iter().for_each(|item| wheel.schedule_again(item));
        self.volatile.keys < keys
    }

    /// When something in this database is next due, in milliseconds: at once where the wheel should be
    /// tidied.
    pub(crate) fn next_due(&self) -> i64 {
        let Some(wheel) = &self.wheel else { return NEVER_DUE };
        let due = if wheel.is_untidy() { Some(0) } else { wheel.next_due() };
        due.map_or(NEVER_DUE, time_of)
    }
}

impl Keyspace {
    /// The earliest time at which something may be due in any shard; None where nothing has a deadline, or
    /// expiry rests. It may be too early: [`Keyspace::expire`] then finds nothing to remove and corrects it.
    /// One load.
    pub fn soonest_due(&self) -> Option<Millis> {
        self.unless_resting(self.soonest.load(Ordering::Relaxed))
    }

    fn unless_resting(&self, due: i64) -> Option<Millis> {
        (due != NEVER_DUE && !self.expiry_rests()).then_some(Millis(due))
    }

    /// From now on no key is removed because of its deadline (CLIENT PAUSE): commands still take it for
    /// absent, but it stays in memory, so that no read changes the data. The caller makes sure that nobody
    /// else works on the keyspace.
    pub fn rest_expiry(&self) {
        self.is_expiry_resting.store(true, Ordering::Relaxed);
    }

    /// Ends what [`Keyspace::rest_expiry`] began.
    pub fn resume_expiry(&self) {
        self.is_expiry_resting.store(false, Ordering::Relaxed);
    }

    /// Whether [`Keyspace::rest_expiry`] is in force. One relaxed load.
    pub fn expiry_rests(&self) -> bool {
        self.is_expiry_resting.load(Ordering::Relaxed)
    }

    /// The caller, which holds this shard's lock, has found out when it is next due. A wheel may say an
    /// earlier time than that of any of its items, and than it said before; so `soonest` follows, because no
    /// deadline behind that time will be published.
    pub(crate) fn set_due(&self, index: usize, due: i64) {
        self.dues[index].store(due, Ordering::Relaxed);
        if due != NEVER_DUE {
            // Not only where it is earlier: whoever computes it anew has to see the store above, or this.
            self.soonest.fetch_min(due, Ordering::AcqRel);
        }
    }

    /// Computes `soonest` anew from the shards' due times. It is set to "never" first: a deadline that a
    /// worker publishes meanwhile is then either seen among the due times, or lowers the new value, because
    /// both sides write it by `fetch_min`.
    fn renew_soonest(&self) -> Option<Millis> {
        self.soonest.swap(NEVER_DUE, Ordering::AcqRel);
        let next = self.dues.iter().map(|due| due.load(Ordering::Relaxed)).min().unwrap_or(NEVER_DUE);
        let next = self.soonest.fetch_min(next, Ordering::AcqRel).min(next);
        self.unless_resting(next)
    }

    /// Removes what is due at `now`, at most about `budget` keys in all. Returns when to call again (None:
    /// nothing volatile waits, or expiry rests); what must be freed goes to `garbage`. Locks only shards that
    /// have something due, one at a time, and waits for none: whoever has it locked may be at the same work,
    /// and come back to it before anybody who waits gets it. Where the budget ends, the next call goes on, so
    /// that no shard waits for ever.
    pub fn expire(&self, now: Millis, budget: usize, garbage: &mut Vec<Garbage>) -> Option<Millis> {
        if self.expiry_rests() {
            return None;
        }
        let turn = self.expire_turn.load(Ordering::Relaxed);
        let (mut left, mut are_all_locked) = (budget as u64, true);
        for n in 0..self.shards() {
            let index = (turn + n) % self.shards();
            if self.dues[index].load(Ordering::Relaxed) > now.0 {
                continue;
            }
            if left == 0 {
                self.expire_turn.store(index, Ordering::Relaxed);
                break;
            }
            if let Some(shard) = self.try_shard(index) {
                self.expire_shard((index, shard), now, &mut left, garbage);
                are_all_locked = false;
            }
        }
        let next = self.renew_soonest();
        // A millisecond later somebody has done it, or it can be done.
        if are_all_locked { next.map(|next| Millis(next.0.max(now.0 + 1))) } else { next }
    }

    fn expire_shard(
        &self,
        (index, mut shard): (usize, Locked<'_>),
        now: Millis,
        budget: &mut u64,
        garbage: &mut Vec<Garbage>,
    ) {
        let mut teller = Teller::new(self, &shard);
        let (dbs, stats) = shard.dbs_mut();
        let expire = |(number, db): (u16, &mut Db)| {
            teller.db = number;
            db.expire(now, budget, stats, garbage, &mut teller)
        };
        let next = dbs.map(expire).min();
        self.set_due(index, next.unwrap_or(NEVER_DUE));
        teller.tell();
    }
}
