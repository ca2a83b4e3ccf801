//! All shards: who locks what, in which order. A key's shard is the top bits of its hash.
use crate::{Key, Settings, View};
use base::Millis;
use base::hash::Seed;

#[derive(Clone, Copy, Debug)]
pub struct KeyspaceOptions {
    /// 2^shard_bits shards (8 by default, 0 in one of the tests' replays).
    pub shard_bits: u32,
    pub databases: u16,
    pub seed: Seed,
}

/// Counters of one shard, or summed over all.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShardStats {
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    /// Changes to the data since start (`rdb_changes_since_last_save` counts from a save).
    pub dirty: u64,
    /// Values handed to the background.
    pub lazyfreed: u64,
}

/// Something large that left the keyspace; dropping it is the work. `Send`, so that a background thread can drop it.
pub struct Garbage(#[allow(dead_code)] Box<dyn std::any::Any + Send>);

pub struct Keyspace(());

#[allow(unused_variables)]
impl Keyspace {
    pub fn new(options: KeyspaceOptions) -> Keyspace {
        todo!()
    }
    pub fn databases(&self) -> u16 {
        todo!()
    }
    pub fn seed(&self) -> &Seed {
        todo!()
    }
    /// Locks the shards of `keys` in ascending order and hands out a token a key, in the order given (duplicates
    /// allowed). One key is the fast path and allocates nothing. `keys` may be empty.
    pub fn lock<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        keys: &[&'k [u8]],
    ) -> (View<'k>, Vec<Key<'k>>) {
        todo!()
    }
    pub fn lock_one<'k>(
        &'k self,
        db: u16,
        now: Millis,
        settings: &'k Settings,
        key: &'k [u8],
    ) -> (View<'k>, Key<'k>) {
        todo!()
    }
    /// Asks the processor for what the next command on this key will read. Locks the key's shard for an instant.
    pub fn prefetch(&self, db: u16, key: &[u8]) {
        todo!()
    }
    /// Sum over all shards.
    pub fn stats(&self) -> ShardStats {
        todo!()
    }
    pub fn reset_stats(&self) {
        todo!()
    }
    /// Removes what is due in shards `first, first + step, ...` at `now`, at most about `budget` keys in all, oldest
    /// first. Returns when to call again (None: nothing volatile waits) and what must be freed.
    pub fn expire(
        &self,
        now: Millis,
        first: usize,
        step: usize,
        budget: usize,
        garbage: &mut Vec<Garbage>,
    ) -> Option<Millis> {
        todo!()
    }
}
