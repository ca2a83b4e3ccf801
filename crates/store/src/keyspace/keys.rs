//! The keys of a command that names several: locking their shards, and prefetching the memory that the keys
//! lie in.
//!
//! ```text
//! prefetch each key's shard -> lock the shards in ascending order, each once
//!   -> prefetch each key's leaf -> prefetch each key's entry -> run the command
//! ```
//!
//! A batch asks for the first key of each request some requests ahead. The others are asked for here, all of
//! them before the first is looked up, so that ten keys wait for memory about as long as two. On the path of
//! every request with several keys: up to four keys in one shard (COPY, RENAME, LMOVE) allocate nothing, in
//! two shards once.
use crate::keyspace::guards::Guards;
use crate::{Key, Keyspace, Settings, View};
use base::Millis;
use base::hash::Hash;
use std::ops::Deref;

/// Up to so many keys of one command are kept without an allocation.
const FEW: usize = 4;
/// Up to so many words with a bit for each shard are kept without an allocation.
const FEW_WORDS: usize = 4;

/// One token for each key, in the order in which the keys were given.
pub struct Keys<'k> {
    few: [Key<'k>; FEW],
    /// All keys, if there are more than [`FEW`].
    many: Vec<Key<'k>>,
    len: usize,
}

impl<'k> Deref for Keys<'k> {
    type Target = [Key<'k>];

    #[inline]
    fn deref(&self) -> &[Key<'k>] {
        if self.len <= FEW { &self.few[..self.len] } else { &self.many }
    }
}

impl<'k> Keys<'k> {
    /// Keys whose shards are not locked yet.
    fn new(db: u16, names: impl ExactSizeIterator<Item = (&'k [u8], Hash)>) -> Keys<'k> {
        let len = names.len();
        let mut keys = Keys { few: [Key::new(&[], Hash(0), 0, db); FEW], many: Vec::new(), len };
        let tokens = names.map(|(name, hash)| Key::new(name, hash, 0, db));
        if len <= FEW {
            keys.few.iter_mut().zip(tokens).for_each(|(key, token)| *key = token);
        } else {
            keys.many.extend(tokens);
        }
        keys
    }

    fn as_mut(&mut self) -> &mut [Key<'k>] {
        if self.len <= FEW { &mut self.few[..self.len] } else { &mut self.many }
    }
}

impl Keyspace {
    /// Locks the shards of these keys in ascending order and hands out one token for each key, in the order
    /// given. A key may come twice, and there may be none. Each name comes with its [`Keyspace::hash`]. For a
    /// single key [`Keyspace::lock_one`] is cheaper.
    pub fn lock<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        names: impl ExactSizeIterator<Item = (&'k [u8], Hash)>,
    ) -> (View<'k>, Keys<'k>) {
        let mut keys = Keys::new(db, names);
        debug_assert!(keys.iter().all(|key| key.hash == self.hash(key.bytes())), "the hash is the key's own");
        keys.iter().for_each(|key| self.prefetch_shard(key.hash));
        let guards = self.guards(keys.as_mut());
        if keys.len > 1 {
            prefetch(&guards, &keys);
        }
        (View::new(self, guards, now, settings), keys)
    }

    /// As [`Keyspace::lock`], for names without their hashes.
    #[cfg(test)]
    pub(crate) fn lock_named<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        names: &[&'k [u8]],
    ) -> (View<'k>, Keys<'k>) {
        self.lock(db, now, settings, names.iter().map(|name| (*name, self.hash(name))))
    }

    /// Locks the shards of keys with these hashes in ascending order, each once, for several commands that
    /// run one after the other. [`View::key`] hands out their keys.
    pub fn lock_shards_of<'k>(
        &'k self,
        now: Millis,
        settings: &'k Settings,
        hashes: impl Iterator<Item = Hash>,
    ) -> View<'k> {
        View::new(self, self.guards_of(hashes), now, settings)
    }

    /// Locks the shards of keys with these hashes in ascending order, each once.
    pub(crate) fn guards_of(&self, hashes: impl Iterator<Item = Hash>) -> Guards<'_> {
        self.guards_of_shards(hashes.map(|hash| self.shard_number(hash)))
    }

    /// Locks shards in ascending order, each once.
    pub(crate) fn guards_of_shards(&self, mut shards: impl Iterator<Item = usize>) -> Guards<'_> {
        let Some(first) = shards.next() else { return Guards::none() };
        let Some(other) = shards.find(|shard| *shard != first) else {
            return Guards::One(self.shard(first));
        };
        // A bit for each shard: many keys take no longer than a look at each. As many as there are by default
        // fit here.
        let (mut few, mut many) = ([0_u64; FEW_WORDS], Vec::new());
        let words = self.shards().div_ceil(64);
        let wanted = match words {
            0..=FEW_WORDS => &mut few[..words],
            _ => {
                many.resize(words, 0);
                &mut many[..]
            }
        };
        for shard in [first, other].into_iter().chain(shards) {
            wanted[shard / 64] |= 1 << (shard % 64);
        }
        let count = wanted.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut guards = Vec::with_capacity(count as usize);
        for (at, word) in wanted.iter_mut().enumerate() {
            while *word != 0 {
                guards.push(self.shard(64 * at + word.trailing_zeros() as usize));
                *word &= *word - 1;
            }
        }
        Guards::Many(guards)
    }

    /// Locks the shards of all keys, and tells each key which of the locks is its own.
    fn guards<'k>(&'k self, keys: &mut [Key<'k>]) -> Guards<'k> {
        let shard_of = |key: &Key<'_>| key.hash.shard(self.shard_bits);
        match keys {
            [one] => Guards::One(self.shard(shard_of(one))),
            [left, right] => {
                let (lower, upper) =
                    (shard_of(left).min(shard_of(right)), shard_of(left).max(shard_of(right)));
                if lower == upper {
                    // Each shard is locked once: a thread that locks a mutex which it holds waits for ever.
                    return Guards::One(self.shard(lower));
                }
                (left.guard, right.guard) =
                    (u32::from(shard_of(left) == upper), u32::from(shard_of(right) == upper));
                // Two locks are kept in a vector, because room for both inside would make every view larger.
                Guards::Many([lower, upper].map(|shard| self.shard(shard)).into())
            }
            _ => {
                let mut shards: Vec<usize> = keys.iter().map(shard_of).collect();
                shards.sort_unstable();
                shards.dedup();
                for key in keys {
                    let guard = shards.binary_search(&shard_of(key)).expect("its shard is among them");
                    key.guard = guard as u32;
                }
                Guards::Many(shards.iter().map(|shard| self.shard(*shard)).collect())
            }
        }
    }
}

impl<'k> View<'k> {
    /// Tokens of further keys, in this order. Their shards are locked too, as far as they are not yet, and
    /// stay locked as long as the view. None where another thread holds one of them: to wait for it would be
    /// to wait while holding others, against their order.
    pub fn try_add(
        &mut self,
        db: u16,
        names: impl ExactSizeIterator<Item = &'k [u8]>,
    ) -> Option<Vec<Key<'k>>> {
        let keyspace = self.keyspace;
        let mut keys = Vec::with_capacity(names.len());
        // Where a shard's guard is, once that is known: many keys take no longer than a look at each.
        let mut known = vec![None; if names.len() > FEW { keyspace.shards() } else { 0 }];
        for name in names {
            let hash = keyspace.hash(name);
            let shard = keyspace.shard_number(hash);
            let guard = match known.get(shard).copied().flatten() {
                Some(guard) => guard,
                None => self.guards.hold(keyspace, shard)?,
            };
            known.get_mut(shard).into_iter().for_each(|known| *known = Some(guard));
            keys.push(Key::new(name, hash, guard, db));
        }
        Some(keys)
    }

    /// A key of this name. Its shard must be one of those that [`Keyspace::lock_shards_of`] has locked.
    pub fn key(&self, db: u16, name: &'k [u8], hash: Hash) -> Key<'k> {
        debug_assert_eq!(hash, self.keyspace.hash(name), "the hash is the key's own");
        Key::new(name, hash, self.guards.position(self.keyspace.shard_number(hash)), db)
    }

    /// Prefetches what commands on these keys of a database will read.
    pub fn prefetch(&self, db: u16, hashes: impl Iterator<Item = Hash> + Clone) {
        let map_of = |hash: Hash| {
            let key = Key::new(&[], hash, self.guards.position(self.keyspace.shard_number(hash)), db);
            Some((hash, &self.guards.shard_ref(&key).db(db)?.map))
        };
        hashes.clone().filter_map(map_of).for_each(|(hash, map)| map.prefetch(hash));
        hashes.filter_map(map_of).for_each(|(hash, map)| map.prefetch_entry(hash));
    }
}

/// Prefetches the leaves of all keys, then, as these arrive, their entries.
fn prefetch(guards: &Guards<'_>, keys: &[Key<'_>]) {
    let maps = || keys.iter().filter_map(|key| Some((key.hash, &guards.shard_ref(key).db(key.db)?.map)));
    maps().for_each(|(hash, map)| map.prefetch(hash));
    if keys.len() > 2 {
        maps().for_each(|(hash, map)| map.prefetch_entry(hash));
    }
}
