//! Shards that stay locked while several commands run, one after the other, each in a view of its own: a
//! script's.
//!
//! ```text
//! hold_shards(numbers) --- view: a command --- view: the next --- dropped: unlocked
//!                     add: one more shard, for who is alone
//!                     try_add: the same beside others, if nobody holds it
//! ```
//!
//! A view lives as long as its locks and as the names of its keys. The names that a script makes live for one
//! command, so its views borrow the locks.
use crate::keyspace::guards::{Guards, Shards};
use crate::keyspace::shard::Shard;
use crate::keyspace::stats::ShardStats;
use crate::{Key, Keyspace, Settings, View};
use base::Millis;
use base::hash::Hash;
use std::cell::Cell;

/// See the file's opener.
pub struct Held<'k> {
    keyspace: &'k Keyspace,
    guards: Guards<'k>,
    /// The shards that were sought last, and their places, which they keep until all are unlocked: commands
    /// of a script are on the same few keys.
    recent: [Cell<Option<(u16, u16)>>; RECENT],
}

/// So many are remembered, each by the lowest bits of its number.
const RECENT: usize = 16;

impl Keyspace {
    /// Locks these shards in ascending order, each once.
    pub fn hold_shards(&self, numbers: impl Iterator<Item = usize>) -> Held<'_> {
        Held { keyspace: self, guards: self.guards_of_shards(numbers), recent: Default::default() }
    }
}

impl<'k> Held<'k> {
    /// Whether the shard of keys with this hash is among them.
    #[inline]
    pub fn has(&self, hash: Hash) -> bool {
        self.find(self.keyspace.shard_number(hash)).is_some()
    }

    /// Locks that shard too, if it is not yet. Waits for it while others are held, so nobody else may do the
    /// same meanwhile: for who is alone.
    pub fn add(&mut self, hash: Hash) {
        if !self.has(hash) {
            self.guards.push(self.keyspace.shard(self.keyspace.shard_number(hash)));
        }
    }

    /// The same beside others. Nobody is waited for, who might wait for one of those that are held: false
    /// where another thread has it locked.
    pub fn try_add(&mut self, hash: Hash) -> bool {
        let shard = self.keyspace.shard_number(hash);
        if self.find(shard).is_none() {
            let Some(locked) = self.keyspace.try_shard(shard) else { return false };
            let place = self.guards.push(locked);
            self.recent[shard % RECENT].set(Some((shard as u16, place as u16)));
        }
        true
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.guards.count() as usize
    }

    /// Unlocks all of them.
    pub fn release(&mut self) {
        self.guards = Guards::none();
        self.recent = Default::default();
    }

    /// What the next command sees of them. [`View::key`] hands out its keys.
    #[inline]
    pub fn view<'v>(&'v mut self, now: Millis, settings: &'v Settings) -> View<'v> {
        let keyspace = self.keyspace;
        View::new(keyspace, Guards::Lent(self), now, settings)
    }

    /// [`Held::view`] and the key of it that a command is about; None where its shard is not among them.
    #[inline]
    pub fn view_of_key<'v>(
        &'v mut self,
        (now, settings): (Millis, &'v Settings),
        (db, name, hash): (u16, &'v [u8], Hash),
    ) -> Option<(View<'v>, Key<'v>)> {
        let guard = self.find(self.keyspace.shard_number(hash))?;
        let key = Key::new(name, hash, guard, db);
        Some((self.view(now, settings), key))
    }

    /// Has a shard count as it did then: lookups and changes since were taken back. As for [`Held::add`].
    pub fn take_back_counts(&mut self, shard: usize, then: &ShardStats) {
        let guard = match self.guards.find(shard) {
            Some(guard) => guard,
            None => self.guards.push(self.keyspace.shard(shard)),
        };
        let stats = &mut self.guards.at_mut(guard).stats;
        let ShardStats { hits, misses, dirty, .. } = *then;
        *stats = ShardStats { hits, misses, dirty, ..*stats };
    }

    /// What the shards have counted, each with its number.
    pub fn counts(&self) -> impl Iterator<Item = (usize, ShardStats)> {
        self.guards.counts()
    }

    /// The same of those that were locked after so many others.
    pub fn counts_from(&self, known: usize) -> impl Iterator<Item = (usize, ShardStats)> {
        self.guards.counts_from(known as u32)
    }
}

impl Shards for Held<'_> {
    #[inline]
    fn at(&self, guard: u32) -> &Shard {
        self.guards.at(guard)
    }

    #[inline]
    fn at_mut(&mut self, guard: u32) -> &mut Shard {
        self.guards.at_mut(guard)
    }

    fn count(&self) -> u32 {
        self.guards.count()
    }

    #[inline]
    fn find(&self, shard: usize) -> Option<u32> {
        let recent = &self.recent[shard % RECENT];
        match recent.get() {
            Some((known, place)) if usize::from(known) == shard => Some(u32::from(place)),
            _ => {
                let place = self.guards.find(shard)?;
                recent.set(Some((shard as u16, place as u16)));
                Some(place)
            }
        }
    }

    fn hold(&mut self, shard: usize) -> Option<u32> {
        self.guards.hold(self.keyspace, shard)
    }
}
