//! What a shard counts.
use crate::event::Event;
use std::ops::AddAssign;

/// Counters of one shard, or summed over all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardStats {
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    /// Fields of hashes that expired.
    pub expired_fields: u64,
    pub evicted: u64,
    /// Changes to the data since start (`rdb_changes_since_last_save` counts from a save).
    pub dirty: u64,
    /// What `lazyfreed_objects` shows (`lazyfree.rs`).
    pub lazyfreed: u64,
}

impl ShardStats {
    /// A key is gone, because of its deadline or before it. What to tell of it.
    pub(crate) fn count_gone(&mut self, is_past: bool) -> Event {
        self.expired += u64::from(is_past);
        self.evicted += u64::from(!is_past);
        if is_past { Event::EXPIRED } else { Event::EVICTED }
    }
}

impl AddAssign for ShardStats {
    fn add_assign(&mut self, other: ShardStats) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.expired += other.expired;
        self.expired_fields += other.expired_fields;
        self.evicted += other.evicted;
        self.dirty += other.dirty;
        self.lazyfreed += other.lazyfreed;
    }
}
