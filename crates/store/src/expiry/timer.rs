//! What has to be updated besides the entry when a deadline changes: the wheel, the sums over deadlines, and
//! the time at which the shard is next due.
use crate::entry::Meta;
use crate::expiry::deadline::Deadline;
use crate::expiry::notes::{DeadlineNotes, InLeaf, NO_DEADLINE, due_of, note_of, time_of};
use crate::expiry::supply::Supply;
use crate::expiry::wheel::{Item, Wheel};
use crate::hash::due::fields_due;
use crate::kind::Kind;
use crate::value::Value;
use base::Millis;
use pack::map::{Entry, Found, LeafNote, Notes, OrderRange};
use std::sync::atomic::{AtomicI64, Ordering};

/// Sums over the keys that have a deadline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Volatile {
    pub(crate) keys: u64,
    pub(crate) deadlines_ms: i128,
    /// Hashes of which some field has a deadline, whether or not they have one themselves.
    pub(crate) hashes: u64,
}

impl Volatile {
    pub(crate) fn add(&mut self, deadline: Deadline) {
        if let Deadline::At(Millis(ms)) = deadline {
            self.keys += 1;
            self.deadlines_ms += i128::from(ms);
        }
    }

    pub(crate) fn remove(&mut self, deadline: Deadline) {
        if let Deadline::At(Millis(ms)) = deadline {
            self.keys -= 1;
            self.deadlines_ms -= i128::from(ms);
        }
    }

    /// Takes an entry that goes out of the sums, with its deadline and those of its fields.
    pub(crate) fn forget(&mut self, meta: Meta, payload: &[u8], outside: Option<&Value>) {
        self.remove(meta.deadline(payload));
        if meta.shape().kind() == Kind::Hash {
            self.count_hash(fields_due(meta, payload, outside) != NO_DEADLINE, false);
        }
    }

    /// Counts a hash by whether some of its fields had a deadline before an edit, and have one after it.
    pub(crate) fn count_hash(&mut self, was_timed: bool, is_timed: bool) {
        self.hashes += u64::from(is_timed);
        self.hashes -= u64::from(was_timed);
    }

    pub(crate) fn sum(self, other: Volatile) -> Volatile {
        Volatile {
            keys: self.keys + other.keys,
            deadlines_ms: self.deadlines_ms + other.deadlines_ms,
            hashes: self.hashes + other.hashes,
        }
    }
}

/// What has to be updated when a deadline changes, lent by a shard for one edit.
pub(crate) struct Timer<'s> {
    pub(crate) now: Millis,
    /// The byte that a new entry gets to record its uses, where uses are tracked.
    pub(crate) birth: Option<u8>,
    /// Whether new entries come in the order of their places.
    pub(crate) is_in_order: bool,
    /// Of the database, made when a key first gets a deadline.
    pub(crate) wheel: &'s mut Option<Box<Wheel>>,
    pub(crate) volatile: &'s mut Volatile,
    /// When this shard is next due, and when any shard is: read without a lock.
    pub(crate) due: &'s AtomicI64,
    pub(crate) soonest: &'s AtomicI64,
    pub(crate) supply: &'s Supply,
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
            self.supply.note_key();
            self.arm(entry, note_of(at));
        }
    }

    /// Something in the entry besides the key's own deadline falls due at `due`: fields of a hash.
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
        publish_due(self.due, self.soonest, time_of(due));
    }
}

impl Notes<Value> for Timer<'_> {
    fn after_split(&mut self, leaf: LeafNote, entries: &mut dyn Iterator<Item = Found<'_, Value>>) -> u64 {
        self.note_half(leaf, &mut entries.map(|found| earliest_of(&found)))
    }

    fn birth(&self) -> Option<u8> {
        self.birth
    }

    fn is_in_order(&self) -> bool {
        self.is_in_order
    }
}

/// Publishes that something in this shard falls due at `at`, if that is earlier than what was published.
/// Called under the shard's lock.
fn publish_due(due: &AtomicI64, soonest: &AtomicI64, at: i64) {
    if at < due.load(Ordering::Relaxed) {
        due.store(at, Ordering::Relaxed);
        // `Release` makes the store above visible to the thread that computes the soonest time anew.
        soonest.fetch_min(at, Ordering::AcqRel);
    }
}

pub(crate) fn earliest_of(found: &Found<'_, Value>) -> u64 {
    let meta = Meta(found.meta);
    due_of(meta.deadline(found.inline)).min(fields_due(meta, found.inline, found.outside))
}
