//! A command that writes, run on a keyspace beside ([`View::aside`]) because it takes long: what was under
//! its keys, and what it has made of them.
//!
//! ```text
//! View::take_along   the shards are locked: the values get one more owner each, for the keyspace beside,
//!                    and another one, so that nobody can change them without it being seen
//! View::made         beside: which keys the command has changed, and what it has told and counted
//! View::is_still     the shards are locked again: has anybody changed a key meanwhile?
//! View::accept       no: what was made takes its place, one store for each key
//! ```
//!
//! A value outside its entry cannot change while somebody else owns it: whoever writes to it makes another,
//! with another address. So two addresses tell whether it is the same. A value inside is compared.
use crate::keyspace::garbage::Garbage;
use crate::keyspace::shard::Db;
use crate::keyspace::stats::ShardStats;
use crate::keyspace::taken::Taken;
use crate::value::Parts;
use crate::{Key, Keyspace, View, event::Told};

/// What was under the keys of a command, each by its place among them.
pub struct Before(Vec<Option<Taken>>);

impl Before {
    /// What of it nobody else has any more, to be freed in the background.
    pub fn into_garbage(self) -> impl Iterator<Item = Garbage> {
        self.0.into_iter().flatten().filter_map(Taken::into_garbage)
    }
}

/// What a command has made of its keys beside the keyspace.
#[derive(Default)]
pub struct Made {
    /// The keys that it has changed, by their places.
    values: Vec<(usize, Option<Taken>)>,
    told: Vec<Told>,
    counted: ShardStats,
}

impl Made {
    /// Whether the command has counted a change.
    pub fn is_change(&self) -> bool {
        self.counted.dirty > 0
    }

    /// Whether there is anything to do where the command's keys are.
    pub fn is_nothing(&self) -> bool {
        self.values.is_empty() && self.told.is_empty() && self.counted == ShardStats::default()
    }
}

impl View<'_> {
    /// What is under these keys, and a keyspace beside that has it too. Keys and fields of hashes past their
    /// deadlines are removed before.
    pub fn take_along(&mut self, keys: &[Key<'_>]) -> (Before, Keyspace) {
        keys.iter().for_each(|key| drop(self.look_hash(key)));
        self.remove_overdue();
        let before = keys.iter().map(|key| self.share(key)).collect();
        let beside = self.aside(keys);
        beside.hear_as(self.keyspace);
        (Before(before), beside)
    }

    fn share(&mut self, key: &Key<'_>) -> Option<Taken> {
        self.peek_live(key)?;
        self.copy(key)
    }

    /// The parts of a value that is not past its deadline.
    fn peek_live(&self, key: &Key<'_>) -> Option<Parts<'_>> {
        let found = self.peek(key).filter(|found| !Db::is_overdue(found, self.now()))?;
        Some((crate::entry::Meta(found.meta), found.inline, found.outside))
    }

    /// Whether what is under each of these keys is what was there.
    pub fn is_still(&self, keys: &[Key<'_>], before: &Before) -> bool {
        keys.len() == before.0.len() && keys.iter().zip(&before.0).all(|(key, value)| self.is(key, value))
    }

    fn is(&self, key: &Key<'_>, value: &Option<Taken>) -> bool {
        match (self.peek_live(key), value) {
            (None, None) => true,
            (Some((meta, inline, outside)), Some(value)) => {
                let (its_meta, its_inline, its_outside) = value.parts();
                meta == its_meta && inline == its_inline && is_one(outside, its_outside)
            }
            _ => false,
        }
    }

    /// What the command has done in this keyspace, which is beside that of its keys.
    pub fn made(&mut self, keys: &[Key<'_>], before: &Before) -> Made {
        let told = self.take_told();
        let mut counted = ShardStats::default();
        self.counts().for_each(|(_, counts)| counted += counts);
        let mut values = Vec::new();
        for (place, (key, value)) in keys.iter().zip(&before.0).enumerate() {
            let is_first = || !keys[..place].iter().any(|earlier| earlier.bytes() == key.bytes());
            if !self.is(key, value) && is_first() {
                values.push((place, self.take(key)));
            }
        }
        Made { values, told, counted }
    }

    /// Puts what a command has made in the place of what was there before, which nobody has changed. What it
    /// has told is told when the view ends.
    pub fn accept(&mut self, keys: &[Key<'_>], made: Made) {
        let Made { values, mut told, counted } = made;
        for (place, value) in values {
            match value {
                Some(value) => self.put_taken(&keys[place], value),
                None => drop(self.remove(&keys[place])),
            }
        }
        // What the command has told says all of it.
        drop(self.take_told());
        for told in &mut told {
            told.shard = self.keyspace.shard_of_key(&told.key) as u32;
        }
        if let Some(key) = keys.first() {
            *self.stats(key) += counted;
        }
        self.tell_all(told);
    }
}

/// Whether both are the same value, or neither is there.
fn is_one<T>(a: Option<&T>, b: Option<&T>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        _ => false,
    }
}
