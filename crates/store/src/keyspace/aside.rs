//! Some of the data as it was at one moment, in a keyspace of its own: for a command that takes long. It runs
//! there as it would here, on another thread, while writes go on here. What a command makes there is put in
//! its place here by `made.rs`.
//!
//! ```text
//! View::aside           the keys of a command: each value gets one more owner, O(1) whatever its size
//! Keyspace::share_with  one database: each shard's tree gets one more owner, O(shards)
//! ```
//!
//! Names hash as they do here, so positions, cursors and the order of elements are the same. Nothing expires
//! there: what is past its deadline is absent, as ever, and stays. What a command counts there, its hits and
//! misses, is added to ours by [`Keyspace::count_lookups_of`]. A value that both have is copied as far as it
//! is written here, and what is removed here is freed when the other keyspace goes.
use crate::event::{Classes, Listener};
use crate::eviction::uses::Uses;
use crate::keyspace::shards::Draws;
use crate::{Key, Keyspace, View};
use base::random::Random;
use pack::counted::Holder;
use std::sync::atomic::Ordering::Relaxed;

/// How much there is of a value, as far as that is known at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Elements of a collection, also those past their deadline; 1 of a string, 0 where there is no key. A
    /// small collection counts as one element for each two bytes that it takes.
    pub elements: u64,
    /// About how many bytes it takes.
    pub bytes: u64,
}

/// Whether it is asked how many bytes a value takes, too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weighs {
    Yes,
    No,
}

impl Extent {
    /// About how many bytes one of its elements takes.
    pub fn element_bytes(&self) -> u64 {
        self.bytes / self.elements.max(1)
    }
}

impl Keyspace {
    /// A keyspace for [`Keyspace::share_with`]. It takes a while to make where there are many shards.
    pub fn empty_aside(&self, random: &mut Random) -> Keyspace {
        let mut aside = self.beside(self.shard_bits, random);
        aside.holder = Some(Holder::new());
        aside
    }

    /// Shares all keys of one database with an empty keyspace. The caller makes sure that no command is half
    /// done: the shards are locked one after the other.
    pub fn share_with(&self, aside: &Keyspace, db: u16) {
        for index in 0..self.shards() {
            let map = self.shard(index).db(db).filter(|db| !db.map.is_empty()).map(|db| db.map.clone());
            if let Some(map) = map {
                aside.shard(index).open(db).0.map = map;
            }
        }
    }

    /// An empty keyspace in which names hash as they do here, and nothing expires.
    fn beside(&self, shard_bits: u32, random: &mut Random) -> Keyspace {
        let mut aside = Keyspace::with(self.databases(), shard_bits, self.seeds, Draws::At(random));
        aside.uses = Uses::beside();
        aside.rest_expiry();
        if self.classes().has(Classes::KEYMISS) {
            aside.listening.classes.store(Classes::KEYMISS.0, Relaxed);
        }
        aside
    }

    /// Adds the hits and misses that were counted in a keyspace which was made of this one.
    pub fn count_lookups_of(&self, aside: &Keyspace) {
        let counted = aside.stats();
        let stats = &mut self.shard(0).stats;
        stats.hits += counted.hits;
        stats.misses += counted.misses;
    }

    /// Names whoever is told of keys that a command looks for in vain, if that is wanted: in a keyspace that
    /// was made of another, nothing else happens to keys.
    pub fn tell_misses_to(&mut self, listener: impl FnOnce() -> Box<dyn Listener>) {
        if self.classes() != Classes::NONE {
            self.listen(listener());
        }
    }
}

impl View<'_> {
    /// The values of these keys, in a keyspace of one shard that has nothing else. They count as used.
    pub fn aside(&mut self, keys: &[Key<'_>]) -> Keyspace {
        let random = &mut keys.first().map_or_else(|| Random::new(0), |key| self.random(key));
        let aside = self.keyspace.beside(0, random);
        for key in keys {
            // What is past its deadline is not there, and is removed here when this view ends.
            let value = self.look_hash(key).is_some().then(|| self.copy(key)).flatten();
            if let Some(value) = value {
                let (mut view, _) =
                    aside.lock_one_hashed(key.db, self.now(), self.settings(), key.bytes(), key.hash);
                view.put_taken(&key.alone(), value);
            }
        }
        aside
    }

    /// How much there is of the value of a key. It counts as no lookup. Of a tree a few leaves are looked at.
    pub fn extent(&self, key: &Key<'_>) -> Extent {
        self.measured(key, Weighs::Yes)
    }

    /// [`Extent::elements`] of the value of a key: no leaf is looked at.
    pub fn elements(&self, key: &Key<'_>) -> u64 {
        self.measured(key, Weighs::No).elements
    }

    fn measured(&self, key: &Key<'_>, weighs: Weighs) -> Extent {
        let Some(found) = self.peek(key) else { return Extent::default() };
        match found.outside {
            None => {
                Extent { elements: (found.inline.len() as u64).div_ceil(2), bytes: found.inline.len() as u64 }
            }
            Some(value) if let Some(text) = value.text() => Extent { elements: 1, bytes: text.len() as u64 },
            Some(value) => value.collection().map_or_else(Extent::default, |all| {
                let bytes = if weighs == Weighs::Yes { all.bytes() } else { 0 };
                Extent { elements: all.len(), bytes }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Deadline, KeyspaceOptions, Settings};
    use base::Millis;
    use base::hash::Seed;
    use std::ops::ControlFlow;

    const NOW: Millis = Millis(1000);

    fn keyspace() -> Keyspace {
        Keyspace::new(KeyspaceOptions { shard_bits: 2, databases: 2, seed: Seed::new(1, 2) })
    }

    fn add(keyspace: &Keyspace, db: u16, name: &[u8], members: u32) {
        let settings = Settings::default();
        let (mut view, key) = keyspace.lock_one(db, NOW, &settings, name);
        let mut set = view.set_or_new(&key).unwrap();
        for member in 0..members {
            set.insert(member.to_string().as_bytes());
        }
    }

    fn len(keyspace: &Keyspace, db: u16, name: &[u8]) -> Option<u64> {
        let settings = Settings::default();
        let (mut view, key) = keyspace.lock_one(db, NOW, &settings, name);
        view.set(&key).unwrap().map(|set| set.len())
    }

    fn names(keyspace: &Keyspace, db: u16) -> Vec<Vec<u8>> {
        let mut names = Vec::new();
        keyspace.visit(db, NOW, &mut |name, _| {
            names.push(name.to_vec());
            ControlFlow::Continue(())
        });
        names.sort();
        names
    }

    #[test]
    fn the_keys_of_a_view_stay_what_they_were() {
        let (keyspace, settings) = (keyspace(), Settings::default());
        add(&keyspace, 1, b"large", 10_000);
        add(&keyspace, 1, b"small", 3);
        let all: [&[u8]; 3] = [b"large", b"small", b"none"];
        let (mut view, keys) = keyspace.lock_named(1, NOW, &settings, &all);
        assert_eq!(view.extent(&keys[0]).elements, 10_000);
        assert_eq!(view.extent(&keys[2]), Extent::default());
        let aside = view.aside(&keys);
        drop(view);
        add(&keyspace, 1, b"large", 11_000);
        drop(keyspace.flush(Some(1)));
        assert_eq!(all.map(|name| len(&aside, 1, name)), [Some(10_000), Some(3), None]);
        assert_eq!(len(&aside, 0, b"large"), None);
    }

    #[test]
    fn a_database_stays_what_it_was_and_nothing_expires_in_it() {
        let (keyspace, settings) = (keyspace(), Settings::default());
        for n in 0..500_u32 {
            add(&keyspace, 0, format!("key{n}").as_bytes(), 1);
        }
        let (mut view, key) = keyspace.lock_one(0, Millis(0), &settings, b"key7");
        view.set_deadline(&key, Deadline::At(Millis(500)));
        drop(view);
        let aside = keyspace.empty_aside(&mut Random::new(1));
        keyspace.share_with(&aside, 0);
        drop(keyspace.flush(None));
        add(&keyspace, 0, b"other", 1);
        assert_eq!((aside.len(0), names(&aside, 0).len()), (500, 499), "what is past its deadline stays");
        assert_eq!(len(&aside, 0, b"key7"), None);
        assert_eq!(aside.len(0), 500);
        assert_eq!(names(&keyspace, 0), [b"other".to_vec()]);
    }

    #[test]
    fn lookups_are_counted_where_the_keys_came_from() {
        let (keyspace, settings) = (keyspace(), Settings::default());
        add(&keyspace, 0, b"set", 3);
        let all: [&[u8]; 2] = [b"set", b"none"];
        let (mut view, keys) = keyspace.lock_named(0, NOW, &settings, &all);
        let aside = view.aside(&keys);
        drop(view);
        let (mut view, keys) = aside.lock_named(0, NOW, &settings, &all);
        view.count_lookups();
        assert!(view.set(&keys[0]).unwrap().is_some() && view.set(&keys[1]).unwrap().is_none());
        drop(view);
        assert_eq!((keyspace.stats().hits, keyspace.stats().misses), (0, 0));
        keyspace.count_lookups_of(&aside);
        assert_eq!((keyspace.stats().hits, keyspace.stats().misses), (1, 1));
    }

    #[test]
    fn what_is_drawn_at_random_is_not_the_same_each_time() {
        let (keyspace, settings) = (keyspace(), Settings::default());
        add(&keyspace, 0, b"set", 3);
        let draw = || {
            let (mut view, key) = keyspace.lock_one(0, NOW, &settings, b"set");
            let aside = view.aside(&[key]);
            let (mut view, key) = aside.lock_one(0, NOW, &settings, b"set");
            view.random(&key).next_u64()
        };
        assert_ne!(draw(), draw());
    }
}
