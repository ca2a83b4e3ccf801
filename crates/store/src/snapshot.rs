//! A value as it was at one moment, for whoever reads it for longer than its key can be locked.
//!
//! A value outside its entry gets one more owner, whatever its size, and is copied only as far as the key is
//! written meanwhile. A value inside is copied, which is some hundred bytes. So taking one costs about a
//! lookup. It holds on to the value: memory of a key that is deleted meanwhile is free when the last snapshot
//! of it has gone.
//!
//! [`Frozen`](crate::Frozen) is the same for all keys at once.
use crate::keyspace::seeds::Seeds;
use crate::keyspace::shard::{is_heavy, value_bytes};
use crate::keyspace::taken::Taken;
use crate::kind::Kind;
use crate::value::{Parts, Value, string_value};
use crate::{Hash, Key, List, Set, Stream, View, ZSet};
use base::hash::Seed;
use base::{Item, Millis};
use pack::SOLE_SAMPLES;

/// A snapshot of one value.
pub struct Snapshot {
    value: Taken,
    /// The seed that its elements are hashed with, if they are.
    seed: Seed,
    now: Millis,
}

/// A value that nobody changes while it is borrowed.
#[derive(Clone, Copy)]
pub struct ValueRef<'v> {
    parts: Parts<'v>,
    seed: &'v Seed,
    now: Millis,
}

impl<'v> ValueRef<'v> {
    /// `seed` is the one that its elements are hashed with.
    pub(crate) fn new(parts: Parts<'v>, seed: &'v Seed, now: Millis) -> ValueRef<'v> {
        ValueRef { parts, seed, now }
    }

    /// What type it is of.
    pub fn kind(&self) -> Kind {
        self.parts.0.shape().kind()
    }

    /// The set; None where the value is of another type.
    pub fn set(&self) -> Option<Set<'v>> {
        let (meta, inline, outside) = self.parts;
        Set::of(meta, inline, outside, self.seed).ok()
    }

    /// The hash; None where the value is of another type. Fields that were past their deadline when the
    /// snapshot was taken are absent, and the others do not expire.
    pub fn hash(&self) -> Option<Hash<'v>> {
        Hash::of(self.parts, self.seed, self.now).ok()
    }

    /// Whether it is a hash whose fields are all past their deadlines, which is as good as gone.
    pub fn is_over(&self) -> bool {
        self.hash().is_some_and(|hash| hash.live_len() == 0)
    }

    /// The sorted set; None where the value is of another type.
    pub fn zset(&self) -> Option<ZSet<'v>> {
        ZSet::of(self.parts, self.seed).ok()
    }

    /// The list; None where the value is of another type.
    pub fn list(&self) -> Option<List<'v>> {
        let (meta, inline, outside) = self.parts;
        List::of(meta, inline, outside).ok()
    }

    /// The stream; None where the value is of another type.
    pub fn stream(&self) -> Option<&'v Stream> {
        match self.parts.2 {
            Some(Value::Stream(stream)) => Some(stream),
            _ => None,
        }
    }

    /// The string; None where the value is of another type.
    pub fn string(&self) -> Option<Item<'v>> {
        let (meta, inline, outside) = self.parts;
        string_value(meta, inline, outside).ok()
    }
}

impl Snapshot {
    /// The value, to read.
    pub fn value(&self) -> ValueRef<'_> {
        ValueRef::new(self.value.parts(), &self.seed, self.now)
    }

    /// About how many bytes the value takes.
    pub fn bytes(&self) -> usize {
        size_of::<Snapshot>() + self.inline_bytes()
    }

    /// How many of these bytes the snapshot has allocated for itself: the copy of what lay inside the entry.
    pub fn inline_bytes(&self) -> usize {
        self.value.parts().1.len()
    }

    /// About how many bytes dropping it would free at this moment, if that may take a while; otherwise 0.
    /// Where the key was written meanwhile, a look at some leaves of the value tells what part of it nobody
    /// else holds any more.
    pub fn burden_bytes(&self) -> u64 {
        let alone = self.value.outside().filter(|value| !value.is_shared());
        alone.map_or(0, |value| {
            let bytes = value_bytes(value);
            let sole =
                value.collection().map_or(SOLE_SAMPLES, |collection| collection.count_sole(SOLE_SAMPLES));
            if is_heavy(value, bytes) { (bytes * sole / SOLE_SAMPLES).max(1) } else { 0 }
        })
    }
}

impl View<'_> {
    /// The value of `key` as it is now; None where there is no such key. O(1), but for the bytes inside the
    /// entry.
    pub fn snapshot(&mut self, key: &Key<'_>) -> Option<Snapshot> {
        let (seeds, now) = (self.seeds(), self.now());
        let value = self.copy(key)?;
        let seed = *seeds.of_elements(value.kind());
        Some(Snapshot { value, seed, now })
    }
}

impl Seeds {
    /// The seed that elements of values of this type are hashed with, if they are.
    pub(crate) fn of_elements(&self, kind: Kind) -> &Seed {
        match kind {
            Kind::Hash => &self.fields,
            Kind::ZSet => &self.scores,
            Kind::Set | Kind::String | Kind::List | Kind::Stream => &self.members,
        }
    }
}
