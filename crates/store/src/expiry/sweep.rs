//! Expiry: on access (`keyspace/view.rs` and the value APIs treat a key past its deadline as gone), and by the clock, here.
//!
//! The wheel of a shard does not hold keys. Every leaf of the keyspace carries a *note*, and every item of the wheel names a
//! range of places in hash order. No address, so leaves stay free to split, merge and move without telling anyone.
//!
//! | note | meaning |
//! |---|---|
//! | `u64::MAX` | no entry of the leaf has a deadline |
//! | 2 and up | no entry's deadline is earlier, and every place of the leaf lies in the range of an item due at just this time |
//! | `UNSURE` (0) | two leaves with different notes merged |
//! | `ASKED` (1) | as `UNSURE`, and every place of the leaf lies in the range of an item that is due at once (since the beginning of time) |
//!
//! Of a hash the earliest deadline of its fields counts as well; fields that are due go, the key with the last of them. A large hash has
//! a wheel of its own (`hash/tree.rs`), which works by the same rules ([`DeadlineNotes`]).
//!
//! When a key gets a deadline earlier than its leaf's note, the leaf's range is scheduled for it and the note lowered. A later
//! deadline costs nothing. When an item fires, the leaves that overlap its range *and whose note has come* are swept: what is due is removed, the rest
//! gives the new note and its new item. A leaf whose note was raised meanwhile is passed by, so a key that is refreshed all the time is
//! looked at once per fired item, not once per refresh.
//!
//! When a leaf splits, the half that has nothing due at the note gets its own note and its own item at once (`Notes` below): about
//! two entries are looked at for each that is inserted. If halves kept the note of the whole, the first deadline in a
//! shard would sweep all its leaves: with a million keys that was 100 ms of work in the first moments, and a p99 of 40 ms.
//!
//! Why a merge of different notes must not take the smaller one: entries that come later, with later deadlines, would
//! rely on its item, which covers only one of the two old ranges; if the leaf splits again, the other half waits for an item that never comes.
//! `UNSURE` instead makes the next deadline in that leaf ask for a sweep of the whole leaf, which sets it right.
use crate::entry::{Meta, Value};
use crate::expiry::fields::sweep_fields;
use crate::expiry::wheel::{Item, Step, Wheel};
use crate::hash::api::fields_due;
use crate::keyspace::shard::{Db, Volatile, discard};
use crate::keyspace::shards::NEVER_DUE;
use crate::{Deadline, Garbage, Keyspace, ShardStats};
use base::Millis;
use pack::map::{
    Entry, Form, Found, LeafPlace, Map, Notes, Occupied, OrderRange, Removed, Sweep, Sweeper, Sweeping,
    Vacant,
};
use std::sync::atomic::{AtomicI64, Ordering};

const UNSURE: u64 = 0;
const ASKED: u64 = 1;
const FIRST_NOTE: u64 = 2;
pub(crate) const NO_DEADLINE: u64 = u64::MAX;

/// A sweep goes over about so many leaves and entries at a time, so that an item whose one leaf has become thousands
/// does not hold its shard for long.
const LOOKS_PER_SWEEP: u64 = 512;
/// The same where one key has to go before its time.
const LOOKS_PER_EVICTION: u64 = 64;
/// Looking at so many entries counts like removing one.
const LOOKS_PER_REMOVAL: u64 = 16;
/// So many items of a wheel are looked through at a time for those that no leaf needs, which counts like removing so many keys.
pub(crate) const ITEMS_PER_TIDYING: usize = 64;
const TIDYING_COST: u64 = 16;
/// An item whose range has become so many leaves counts as needed.
const LEAVES_PER_ITEM: usize = 4;

pub(crate) fn note_of(Millis(ms): Millis) -> u64 {
    u64::try_from(ms).unwrap_or(0).max(FIRST_NOTE)
}

/// Always before [`NEVER_DUE`]: something waits.
fn time_of(note: u64) -> i64 {
    i64::try_from(note).unwrap_or(NEVER_DUE).min(NEVER_DUE - 1)
}

/// An entry of a map, present or to come, in its leaf.
pub(crate) trait InLeaf {
    fn place(&self) -> LeafPlace;
    fn note(&mut self, note: u64);
}

impl<V: Clone, F: Form> InLeaf for Occupied<'_, V, F> {
    fn place(&self) -> LeafPlace {
        self.leaf()
    }
    fn note(&mut self, note: u64) {
        self.set_note(note);
    }
}

impl<V: Clone, F: Form> InLeaf for Vacant<'_, V, F> {
    fn place(&self) -> LeafPlace {
        self.leaf()
    }
    fn note(&mut self, note: u64) {
        self.set_note(note);
    }
}

/// A wheel and the notes of the leaves that it is for: the keyspace's, or those of one hash's fields.
pub(crate) trait DeadlineNotes {
    /// Puts an item into the wheel.
    fn schedule(&mut self, due: u64, range: OrderRange);

    /// The entry falls due at a time that `note_of` made.
    fn arm(&mut self, entry: &mut impl InLeaf, note: u64) {
        let leaf = entry.place();
        match leaf.note {
            UNSURE => {
                entry.note(ASKED);
                self.schedule(FIRST_NOTE, leaf.range);
            }
            ASKED => {}
            old if note < old => {
                entry.note(note);
                self.schedule(note, leaf.range);
            }
            _ => {}
        }
    }

    /// The note of half a leaf, of which the entries fall due at these times.
    fn note_half(&mut self, leaf: LeafPlace, dues: &mut dyn Iterator<Item = u64>) -> u64 {
        if leaf.note < FIRST_NOTE {
            return leaf.note;
        }
        let earliest = dues.min().unwrap_or(NO_DEADLINE);
        debug_assert!(earliest >= leaf.note, "no entry is due before its leaf's note");
        if earliest > leaf.note && earliest != NO_DEADLINE {
            self.schedule(earliest, leaf.range);
        }
        earliest
    }
}

/// What a change of a deadline touches besides the entry.
pub(crate) struct Timer<'s> {
    pub(crate) now: Millis,
    /// The byte of uses of new entries.
    pub(crate) birth: Option<u8>,
    pub(crate) wheel: &'s mut Option<Box<Wheel>>,
    pub(crate) volatile: &'s mut Volatile,
    pub(crate) due: &'s AtomicI64,
    pub(crate) soonest: &'s AtomicI64,
}

impl Timer<'_> {
    /// The entry's deadline goes from `old` to `new`.
    #[inline]
    pub(crate) fn change(&mut self, entry: &mut impl InLeaf, old: Deadline, new: Deadline) {
        if old == new {
            return;
        }
        self.volatile.remove(old);
        self.volatile.add(new);
        if let Deadline::At(at) = new {
            self.arm(entry, note_of(at));
        }
    }

    /// Something of the entry beside its own deadline falls due: fields of a hash.
    pub(crate) fn arm_for(&mut self, entry: &mut Entry<'_, Value>, due: u64) {
        match entry {
            Entry::Occupied(entry) => self.arm(entry, due),
            Entry::Vacant(entry) => self.arm(entry, due),
        }
    }
}

impl DeadlineNotes for Timer<'_> {
    fn schedule(&mut self, due: u64, range: OrderRange) {
        let now = note_of(self.now);
        let wheel = self.wheel.get_or_insert_with(|| Box::new(Wheel::new(now)));
        wheel.schedule(Item { due, range });
        let due = if wheel.is_untidy() { due.min(now) } else { due };
        Keyspace::publish_due(self.due, self.soonest, time_of(due));
    }
}

impl Notes<Value> for Timer<'_> {
    fn after_split(&mut self, leaf: LeafPlace, entries: &mut dyn Iterator<Item = Found<'_, Value>>) -> u64 {
        self.note_half(leaf, &mut entries.map(|found| earliest_of(&found)))
    }

    fn birth(&self) -> Option<u8> {
        self.birth
    }
}

/// Whether some leaf may rely on this item: one in its range that has its time as its note, or a note that does not tell.
pub(crate) fn is_needed<V: Clone, F: Form>(map: &Map<V, F>, item: Item) -> bool {
    let mut at = item.range.first;
    for _ in 0..LEAVES_PER_ITEM {
        let Some(crowd) = map.crowd(at) else { return false };
        let LeafPlace { note, range } = crowd.place();
        if note < FIRST_NOTE || note == item.due {
            return true;
        }
        match range.last.checked_add(1).filter(|next| *next <= item.range.last) {
            Some(next) => at = next,
            None => return false,
        }
    }
    true
}

fn earliest_of(found: &Found<'_, Value>) -> u64 {
    let meta = Meta(found.meta);
    let own = match meta.deadline(found.inline) {
        Deadline::Never => NO_DEADLINE,
        Deadline::At(at) => note_of(at),
    };
    own.min(fields_due(meta, found.inline, found.outside))
}

/// Goes through leaves whose time has come, or whose keys have to go before it.
struct Reaper<'s> {
    clock: Millis,
    /// What is due up to here goes before its time, as evicted: so many keys at most.
    now: Millis,
    removals_max: u64,
    wheel: &'s mut Wheel,
    volatile: &'s mut Volatile,
    stats: &'s mut ShardStats,
    garbage: &'s mut Vec<Garbage>,
    /// The earliest deadline of a field that stays in the leaf being visited, and of a key.
    earliest_field: u64,
    earliest_key: u64,
    /// Leaves in which fields of a hash fall due before any key, and when the first key does. Only where keys go before their time.
    hidden: Vec<Item>,
    /// A hash has lost its last field, and is about to go.
    is_emptied: bool,
    looks: u64,
    removals: u64,
}

impl<'s> Reaper<'s> {
    /// One that takes only what is due.
    fn new(
        now: Millis,
        wheel: &'s mut Wheel,
        volatile: &'s mut Volatile,
        stats: &'s mut ShardStats,
        garbage: &'s mut Vec<Garbage>,
    ) -> Reaper<'s> {
        Reaper {
            clock: now,
            now,
            removals_max: 0,
            wheel,
            volatile,
            stats,
            garbage,
            earliest_field: NO_DEADLINE,
            earliest_key: NO_DEADLINE,
            hidden: Vec::new(),
            is_emptied: false,
            looks: 0,
            removals: 0,
        }
    }
}

impl Sweeper<Value> for Reaper<'_> {
    fn visit(&mut self, found: Found<'_, Value>) -> Sweep {
        self.looks += 1;
        let meta = Meta(found.meta);
        let deadline = meta.deadline(found.inline);
        if deadline.is_past(self.clock) {
            return Sweep::Remove;
        }
        if deadline.is_past(self.now) && self.removals < self.removals_max {
            return Sweep::Evict;
        }
        if let Deadline::At(at) = deadline {
            self.earliest_key = self.earliest_key.min(note_of(at));
        }
        let fields_due = fields_due(meta, found.inline, found.outside);
        if fields_due <= note_of(self.clock) {
            return Sweep::Prune;
        }
        self.earliest_field = self.earliest_field.min(fields_due);
        Sweep::Keep
    }

    fn prune(&mut self, entry: &mut Sweeping<'_, Value>) -> Sweep {
        let swept = sweep_fields(entry, self.clock, self.volatile, self.garbage);
        self.stats.expired_fields += swept.removed;
        self.removals += swept.removed;
        self.earliest_field = self.earliest_field.min(swept.due);
        self.is_emptied = swept.verdict == Sweep::Remove;
        swept.verdict
    }

    fn removed(&mut self, _key: &[u8], removed: Removed<Value>) {
        self.removals += 1;
        let meta = Meta(removed.meta);
        self.volatile.forget(meta, &removed.inline, removed.outside.as_deref());
        if !std::mem::take(&mut self.is_emptied) {
            match meta.deadline(&removed.inline).is_past(self.clock) {
                true => self.stats.expired += 1,
                false => self.stats.evicted += 1,
            }
        }
        discard(removed.outside, self.garbage);
    }

    fn renote(&mut self, range: OrderRange) -> u64 {
        let fields = std::mem::replace(&mut self.earliest_field, NO_DEADLINE);
        let key = std::mem::replace(&mut self.earliest_key, NO_DEADLINE);
        let note = fields.min(key);
        if note != NO_DEADLINE {
            self.wheel.schedule(Item { due: note, range });
        }
        if self.removals_max > 0 && fields < key && key != NO_DEADLINE {
            self.hidden.push(Item { due: key, range });
        }
        note
    }
}

/// Of the wheel, or of leaves that wait in it for something earlier.
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
    ) -> i64 {
        let Some(wheel) = &mut self.wheel else { return NEVER_DUE };
        while *budget > 0 {
            let cost = match wheel.step(note_of(now)) {
                Step::Idle => break,
                Step::Moved => 0,
                Step::Fired(item) => {
                    let mut reaper = Reaper::new(now, wheel, &mut self.volatile, stats, garbage);
                    let rest = self.map.sweep(item.range, note_of(now), LOOKS_PER_SWEEP, &mut reaper);
                    let cost = reaper.removals + reaper.looks / LOOKS_PER_REMOVAL;
                    if let Some(range) = rest {
                        wheel.schedule(Item { due: item.due, range });
                    }
                    cost
                }
            };
            *budget = budget.saturating_sub(cost + 1);
        }
        while *budget > 0 && wheel.is_untidy() {
            wheel.tidy(ITEMS_PER_TIDYING, |item| is_needed(&self.map, item));
            *budget = budget.saturating_sub(TIDYING_COST);
        }
        self.next_due()
    }

    /// Removes the key that is due first, before its time; false if there is none. Fields of hashes wait in the same wheel and do not
    /// go before their time: what was taken out for them is put back in the end, so that it is taken once. The keys in their leaves,
    /// which wait under the same item, are looked for at their own times.
    pub(crate) fn evict_soonest(
        &mut self,
        now: Millis,
        stats: &mut ShardStats,
        garbage: &mut Vec<Garbage>,
    ) -> bool {
        let Some(wheel) = self.wheel.as_deref_mut().filter(|_| self.volatile.keys > 0) else { return false };
        let keys = self.volatile.keys;
        let (mut later, mut hidden) = (Vec::new(), Vec::new());
        while self.volatile.keys == keys
            && let Some(item) = take_soonest(wheel, &mut hidden)
        {
            let mut fresh = Wheel::new(note_of(now));
            let mut reaper = Reaper {
                now: Millis(time_of(item.due)),
                removals_max: 1,
                ..Reaper::new(now, &mut fresh, &mut self.volatile, stats, garbage)
            };
            let rest = self.map.sweep(item.range, item.due, LOOKS_PER_EVICTION, &mut reaper);
            hidden.append(&mut reaper.hidden);
            if let Some(range) = rest {
                wheel.schedule(Item { due: item.due, range });
            }
            while let Some(next) = fresh.take_soonest() {
                if next.due > item.due {
                    wheel.schedule(next);
                } else if !later.contains(&next) {
                    later.push(next);
                }
            }
        }
        later.into_iter().for_each(|item| wheel.schedule(item));
        self.volatile.keys < keys
    }

    /// When something here is next due: at once where the wheel should be tidied.
    pub(crate) fn next_due(&self) -> i64 {
        let Some(wheel) = &self.wheel else { return NEVER_DUE };
        let due = if wheel.is_untidy() { Some(0) } else { wheel.next_due() };
        due.map_or(NEVER_DUE, time_of)
    }
}

impl Keyspace {
    /// A time before which nothing is removed anywhere, if anything is while things stay as they are. It may be too early, and [`Keyspace::expire`]
    /// then finds nothing and corrects it.
    pub fn soonest_due(&self) -> Option<Millis> {
        self.unless_resting(self.soonest.load(Ordering::Relaxed))
    }

    fn unless_resting(&self, due: i64) -> Option<Millis> {
        (due != NEVER_DUE && !self.expiry_rests()).then_some(Millis(due))
    }

    /// From now on a key past its deadline is gone for whoever looks, but stays where it is: no read changes the data. Called
    /// while nobody else works on the keyspace.
    pub fn rest_expiry(&self) {
        self.is_expiry_resting.store(true, Ordering::Relaxed);
    }

    /// Ends that.
    pub fn resume_expiry(&self) {
        self.is_expiry_resting.store(false, Ordering::Relaxed);
    }

    pub fn expiry_rests(&self) -> bool {
        self.is_expiry_resting.load(Ordering::Relaxed)
    }

    /// Finds the soonest anew, and returns it. What is published meanwhile is either seen among the dues or lowers the word afterwards:
    /// it is set aside first, and both sides meet in that one word.
    fn renew_soonest(&self) -> Option<Millis> {
        self.soonest.swap(NEVER_DUE, Ordering::AcqRel);
        let next = self.dues.iter().map(|due| due.load(Ordering::Relaxed)).min().unwrap_or(NEVER_DUE);
        let next = self.soonest.fetch_min(next, Ordering::AcqRel).min(next);
        self.unless_resting(next)
    }

    /// Removes what is due at `now`, at most about `budget` keys in all. Returns when to call again (None: nothing
    /// volatile waits, or expiry rests); what must be freed goes to `garbage`. Locks only shards that have something due, one at a time. Where the
    /// budget ends, the next call goes on, so that no shard waits for ever.
    pub fn expire(&self, now: Millis, budget: usize, garbage: &mut Vec<Garbage>) -> Option<Millis> {
        if self.expiry_rests() {
            return None;
        }
        let turn = self.expire_turn.load(Ordering::Relaxed);
        let mut left = budget as u64;
        for n in 0..self.shards() {
            let index = (turn + n) % self.shards();
            if self.dues[index].load(Ordering::Relaxed) > now.0 {
                continue;
            }
            if left == 0 {
                self.expire_turn.store(index, Ordering::Relaxed);
                break;
            }
            self.expire_shard(index, now, &mut left, garbage);
        }
        self.renew_soonest()
    }

    fn expire_shard(&self, index: usize, now: Millis, budget: &mut u64, garbage: &mut Vec<Garbage>) {
        let mut shard = self.shard(index);
        let (dbs, stats) = shard.dbs_mut();
        let next = dbs.map(|db| db.expire(now, budget, stats, garbage)).min();
        self.dues[index].store(next.unwrap_or(NEVER_DUE), Ordering::Relaxed);
    }
}
