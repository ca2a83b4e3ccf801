//! Active defragmentation as others see it: whether a round is due, how much of a processor it may take, and
//! the figures that INFO shows of it. `service/defrag.rs` does the work.
use crate::state::config::Defrag as Settings;
use pack::arena;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::MoverStats;

/// What INFO tells, written by the thread that works.
#[derive(Default)]
pub(crate) struct DefragStats {
    /// The share of a processor in use for it, in percent; 0 while nothing is done.
    pub(crate) running_percent: AtomicU64,
    /// How many blocks moved, and how many were looked at and stayed.
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// Keys with a value of their own, likewise.
    pub(crate) key_hits: AtomicU64,
    pub(crate) key_misses: AtomicU64,
    /// Microseconds, by the clock, that all ended rounds took together, and that the round under way has
    /// taken so far (0 while none is).
    pub(crate) total_us: AtomicU64,
    pub(crate) current_us: AtomicU64,
}

impl DefragStats {
    /// CONFIG RESETSTAT
    pub(crate) fn reset(&self) {
        let counters = [&self.hits, &self.misses, &self.key_hits, &self.key_misses, &self.total_us];
        counters.iter().for_each(|counter| counter.store(0, Relaxed));
    }

    /// What the mover did between these two looks at its sums.
    pub(crate) fn add(&self, before: MoverStats, now: MoverStats) {
        self.hits.fetch_add(now.moves.moved - before.moves.moved, Relaxed);
        self.misses.fetch_add(now.moves.stayed - before.moves.stayed, Relaxed);
        self.key_hits.fetch_add(now.keys_moved - before.keys_moved, Relaxed);
        self.key_misses.fetch_add(now.keys_stayed - before.keys_stayed, Relaxed);
    }
}

/// Whether the sums of the arena call for a round. The round itself may still find nothing worth moving.
pub(crate) fn is_defrag_due(settings: &Settings) -> bool {
    settings.is_on && wanted_percent(settings).is_some()
}

/// The share of a processor that what is lost between the data is worth, in percent, if it is worth any. What
/// is lost is the arena's resident bytes less those in use.
pub(crate) fn wanted_percent(settings: &Settings) -> Option<u32> {
    let usage = arena::usage();
    let lost = usage.resident_bytes.saturating_sub(usage.used_bytes);
    settings.effort_percent(usage.used_bytes as u64, lost as u64)
}
