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
use crate::{Key, Keyspace, Usage, View, event::Told};
use std::collections::{BTreeMap, BTreeSet};

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
    /// How keys that it has made were used (RESTORE).
    usages: Vec<(Vec<u8>, Usage)>,
    told: Vec<Told>,
    counted: ShardStats,
}

impl Made {
    /// Whether the command has counted a change.
    pub fn is_change(&self) -> bool {
        self.counted.dirty > 0
    }

    /// What is left of it for a command that has changed no key: what it has told and counted.
    pub fn only_what_it_counted(self) -> Made {
        Made { values: Vec::new(), ..self }
    }

    /// What of it is large, to be freed in the background because it is not wanted.
    pub fn into_garbage(self) -> impl Iterator<Item = Garbage> {
        self.values.into_iter().filter_map(|(_, value)| value?.into_garbage())
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
        for key in keys {
            let _ = self.look_hash(key);
        }
        self.remove_overdue();
        // They have been used now, each once.
        let leaves_trace = self.set_trace(false);
        let before = keys.iter().map(|key| self.share(key)).collect();
        let beside = self.aside(keys);
        self.set_trace(leaves_trace);
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
        let usages = self.aside.take_usages();
        let told = self.take_told();
        let mut counted = ShardStats::default();
        self.counts().for_each(|(_, counts)| counted += counts);
        // A key may be named twice.
        let (mut values, mut taken) = (Vec::new(), BTreeSet::new());
        for (place, (key, value)) in keys.iter().zip(&before.0).enumerate() {
            if !self.is(key, value) && taken.insert(key.bytes()) {
                values.push((place, self.take(key)));
            }
        }
        Made { values, usages, told, counted }
    }

    /// Puts what a command has made in the place of what was there before, which nobody has changed. What it
    /// has told is told when the view ends.
    pub fn accept(&mut self, keys: &[Key<'_>], made: Made) {
        let Made { values, usages, mut told, counted } = made;
        for (place, value) in values {
            match value {
                Some(value) => self.put_in_place(&keys[place], value),
                None => drop(self.remove(&keys[place])),
            }
        }
        let by_name: BTreeMap<&[u8], &Key<'_>> = match usages.is_empty() {
            true => BTreeMap::new(),
            false => keys.iter().map(|key| (key.bytes(), key)).collect(),
        };
        for (name, usage) in &usages {
            let key = by_name.get(&name[..]).expect("a command uses keys that it names");
            self.set_usage(key, *usage);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deadline, Event, KeyspaceOptions, Settings};
    use base::Millis;
    use base::hash::Seed;

    const NOW: Millis = Millis(1000);
    const NAMES: [&[u8]; 3] = [b"large", b"small", b"none"];

    fn keyspace() -> Keyspace {
        let options = KeyspaceOptions { shard_bits: 2, databases: 2, seed: Seed::new(1, 2) };
        let keyspace = Keyspace::new(options);
        add(&keyspace, b"large", 10_000);
        add(&keyspace, b"small", 3);
        keyspace
    }

    fn add(keyspace: &Keyspace, name: &[u8], members: u32) {
        let settings = Settings::default();
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, name);
        let mut set = view.set_or_new(&key).unwrap();
        for member in 0..members {
            set.insert(member.to_string().as_bytes());
        }
    }

    fn lens(keyspace: &Keyspace, now: Millis) -> [Option<u64>; 3] {
        let settings = Settings::default();
        NAMES.map(|name| {
            let (mut view, key) = keyspace.lock_one(0, now, &settings, name);
            view.set(&key).unwrap().map(|set| set.len())
        })
    }

    /// Calls `work` between the time at which the keys are taken along and that at which what was made beside
    /// is to be accepted; whether it was.
    fn make(keyspace: &Keyspace, now: Millis, work: impl FnOnce()) -> bool {
        let settings = Settings::default();
        let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &NAMES);
        let (before, beside) = view.take_along(&keys);
        drop(view);
        let (mut view, keys) = beside.lock_named(0, NOW, &settings, &NAMES);
        view.set_mut(&keys[0]).unwrap().unwrap().remove(b"7");
        view.reduced(&keys[0], 1, Event::set("srem"));
        view.remove(&keys[1]);
        view.changed(&keys[1], 1, Event::DEL);
        view.set_or_new(&keys[2]).unwrap().insert(b"new");
        view.changed(&keys[2], 1, Event::set("sadd"));
        let made = view.made(&keys, &before);
        drop(view);
        work();
        let (mut view, keys) = keyspace.lock_named(0, now, &settings, &NAMES);
        let is_still = view.is_still(&keys, &before);
        if is_still {
            view.accept(&keys, made);
        }
        is_still
    }

    #[test]
    fn what_was_made_beside_takes_its_place_and_is_counted() {
        let keyspace = keyspace();
        keyspace.hear_every_change(true);
        let settings = Settings::default();
        assert!(make(&keyspace, NOW, || assert_eq!(lens(&keyspace, NOW), [Some(10_000), Some(3), None])));
        assert_eq!(lens(&keyspace, NOW), [Some(9_999), None, Some(1)]);
        assert_eq!((keyspace.stats().dirty, keyspace.len(0)), (3, 2));
        let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &NAMES);
        assert!(view.take_told().is_empty(), "it was told when the view before had ended");
        assert_eq!(view.extent(&keys[0]).elements, 9_999);
    }

    #[test]
    fn a_key_that_was_changed_meanwhile_is_seen() {
        let changes: [fn(&Keyspace); 5] = [
            |keyspace| add(keyspace, b"large", 10_001),
            |keyspace| add(keyspace, b"small", 4),
            |keyspace| add(keyspace, b"none", 1),
            |keyspace| drop(keyspace.flush(None)),
            |keyspace| {
                let settings = Settings::default();
                let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"large");
                view.set_deadline(&key, Deadline::At(Millis(5000)));
            },
        ];
        for change in changes {
            let keyspace = keyspace();
            assert!(!make(&keyspace, NOW, || change(&keyspace)));
        }
    }

    #[test]
    fn a_key_whose_deadline_passes_meanwhile_is_not_what_it_was() {
        let (keyspace, settings) = (keyspace(), Settings::default());
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"small");
        view.set_deadline(&key, Deadline::At(Millis(2000)));
        drop(view);
        assert!(!make(&keyspace, Millis(2000), || ()));
        assert!(make(&keyspace, Millis(1999), || ()));
    }
}
