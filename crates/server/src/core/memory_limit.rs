//! `maxmemory`: how much memory the data may take, when that is counted, and how room is made.
//!
//! ```text
//! counted = used_memory - buffers of clients and of the event loops
//!                       - garbage: what the background thread has yet to free
//!                       - held: what only a snapshot that is being written has still (pack::counted)
//!
//!                  over the limit                  under the target, or all the rest
//!                                                  claimed by other workers
//! not counting ---------------------> making room ------------------------------------> not counting
//!      |  \                              |     \
//!      |   this worker has allocated     |      no time left: the command runs, and every
//!      |   half of its share of what     |      worker goes on making room at its turns
//!      |   is left: it counts            no key may go: the command is refused (OOM)
//! ```
//!
//! What a snapshot holds comes back when it is written, and evicting more would not make it less: so a
//! process takes more than the limit meanwhile, as one that forks does.
//!
//! Garbage beyond a tenth of the limit is no reason to evict or to refuse, because it is on its way to be
//! freed; commands that need memory wait for it.
//!
//! Where every key may be evicted, holes between the data that no allocation fits into count too, as far as
//! they are more than usual ([`store::counted_holes`]), so that it is the memory of the process that stays
//! below the limit. Where only keys with a deadline may go they do not count: these lie among others that
//! stay, each that goes leaves another hole, and all of them would go for it. No command is refused because
//! of holes: that would not make them fewer. How many bytes they have is looked up ten times a second, and
//! by each worker after a certain number of new bytes (`HOLES_STRIDE_PART`), because within a tenth of a
//! second a cache may grow beyond its limit.
//!
//! Counting means adding up the counters of all threads. That is cheap enough to need no thread of its own,
//! and too dear for every command. So each worker notes how much it may allocate before it must count again:
//! its share of half of what is left. Until then a command pays for one load, and without `maxmemory` for one
//! test.
//!
//! Most evictions happen before the limit is reached. A little below it begins a zone in which every command
//! that writes a key first evicts some of the keys beside it in memory
//! ([`Keyspace::evict_beside`](store::Keyspace::evict_beside)), the more readily the nearer the limit is. So
//! a full cache stays somewhere in the zone, where as many bytes are evicted as are written. Making room is
//! for what this does not keep below the limit: values that grow in one place, commands of many keys,
//! policies that look for deadlines.
//!
//! Workers make room at the same time. Each first claims a part of the excess and leaves to the others what
//! they have claimed, so that together they evict what one alone would have. The target lies a little under
//! the limit, so that not every command has to evict.
use crate::core::server::Server;
use crate::state::clock::Stopwatch;
use crate::state::config::Config;
use base::Millis;
use base::hash::Hash;
use pack::counted;
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;
use store::{Beside, Eviction, Evictor, Garbage, Outcome, Policy, Weight, counted_holes};

/// What does not count against `maxmemory` though it is in use: mem_not_counted_for_evict.
pub(crate) fn uncounted_bytes(server: &Server) -> u64 {
    let garbage = garbage_beyond(server, server.config().maxmemory_bytes);
    beside_bytes(server).saturating_sub(garbage) + held_bytes(counted::used_bytes() as u64)
}

/// What only snapshots hold, of so many bytes in all. They hold no more than there was when they began.
fn held_bytes(used_bytes: u64) -> u64 {
    counted::held_bytes().min(used_bytes / 2)
}

/// Buffers of clients, of the journal and of the append-only file, and what is about to be freed.
fn beside_bytes(server: &Server) -> u64 {
    let journal = server.journal.held_bytes() as u64 + server.append.room_bytes.load(Relaxed);
    server.counters.buffer_bytes() + journal + server.background.pending_bytes()
}

/// The bytes that count against `maxmemory`, without holes: the data, and what the server itself takes.
fn counted_bytes(server: &Server) -> u64 {
    let used_bytes = counted::used_bytes() as u64;
    used_bytes.saturating_sub(beside_bytes(server) + held_bytes(used_bytes))
}

/// Says in the log that a limit just set is below what counts already: who typed `100` for `100mb` should not
/// have to find out from missing keys.
pub(crate) fn warn_of_low_limit(server: &Server, limit_bytes: u64) {
    let counted_bytes = counted_bytes(server);
    if limit_bytes > 0 && limit_bytes < counted_bytes {
        server.log.warning(&format!(
            "WARNING: maxmemory is set to {limit_bytes} bytes now, and {counted_bytes} are in use: keys will be \
             evicted, or writes refused, as maxmemory-policy says."
        ));
    }
}

/// Garbage on its way to be freed may take this part of the limit beside the data.
const GARBAGE_PART: u64 = 10;

/// By how many bytes there is more garbage than that. No key is evicted because of these bytes, since they
/// are about to become free.
fn garbage_beyond(server: &Server, limit_bytes: u64) -> u64 {
    match limit_bytes {
        0 => 0,
        limit_bytes => server.background.pending_bytes().saturating_sub(limit_bytes / GARBAGE_PART),
    }
}

/// Whether a command may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// Memory is still short and more keys may be evicted, but this command has evicted for long enough: it
    /// runs, and workers go on evicting later.
    Later,
    /// Memory is short until garbage is freed that is on its way: the command has to wait.
    Garbage,
    /// Memory is short, and no key may be evicted.
    None,
}

/// One worker's view of the limit.
pub(crate) struct MemoryLimit<'s> {
    server: &'s Server,
    evictor: Evictor,
    /// What it has evicted and not handed to the background thread yet.
    garbage: Vec<Garbage>,
    /// `maxmemory`; 0 for none.
    limit_bytes: u64,
    eviction: Eviction,
    /// How long one command may evict, by `maxmemory-eviction-tenacity`.
    patience_ns: u64,
    /// When to count again: at this value of the thread's own counter of allocated bytes.
    count_at: i64,
    /// Bytes that commands have brought since this worker last looked the holes up, and the thread's own
    /// counter of allocated bytes then.
    arrived_bytes: u64,
    holes_seen_at: i64,
    /// After how many bytes they are looked up again.
    holes_stride_bytes: u64,
    /// From how many counted bytes on a command evicts keys beside the one that it writes; the limit itself
    /// where the policy does not do that.
    zone_start: u64,
}

/// A worker allocates at most so much before it counts again, however much is left.
const STRIDE_BYTES_MAX: u64 = 1 << 20;
/// How much each worker evicts beyond what is needed: this part of the limit, between these bounds.
const ADVANCE_PART: u64 = 4096;
const ADVANCE_BYTES: std::ops::RangeInclusive<u64> = 256..=(16 << 10);
/// The zone's part of the limit, between these bounds.
const ZONE_PART: u64 = 512;
const ZONE_BYTES: std::ops::RangeInclusive<u64> = 1024..=(1 << 20);
/// What an entry takes beside the text of its key and value, about.
const ENTRY_BYTES: usize = 8;
/// The holes are looked up whenever this part of the limit has come to a worker, between these bounds. That
/// takes each of the arena's locks once, less than a microsecond in all.
const HOLES_STRIDE_PART: u64 = 256;
const HOLES_STRIDE_BYTES: std::ops::RangeInclusive<u64> = (32 << 10)..=(1 << 20);
/// How much a worker claims at a time.
const CLAIM_BYTES: i64 = 64 << 10;
/// How many keys are evicted between two looks at the clock.
const KEYS_PER_LOOK: u32 = 16;
/// Where so many bytes are to be freed several keys are taken from each leaf that is looked at.
const SEVERAL_BYTES: i64 = 2048;
/// How many expired keys are removed before any other has to go.
const EXPIRED_BUDGET: usize = 256;

impl<'s> MemoryLimit<'s> {
    /// For one worker; `seed` decides which keys are looked at for eviction.
    pub(crate) fn new(server: &'s Server, seed: u64, config: &Config) -> MemoryLimit<'s> {
        let mut limit = MemoryLimit {
            server,
            evictor: Evictor::new(seed),
            garbage: Vec::new(),
            limit_bytes: 0,
            eviction: Eviction::default(),
            patience_ns: 0,
            count_at: i64::MIN,
            arrived_bytes: 0,
            holes_seen_at: 0,
            holes_stride_bytes: 0,
            zone_start: 0,
        };
        limit.obey(config);
        limit
    }

    /// The configuration has changed.
    pub(crate) fn obey(&mut self, config: &Config) {
        self.limit_bytes = config.maxmemory_bytes;
        self.eviction = config.store.eviction;
        self.patience_ns = patience_ns(config.maxmemory_tenacity);
        self.count_again();
        let stride = self.limit_bytes / HOLES_STRIDE_PART;
        self.holes_stride_bytes = stride.clamp(*HOLES_STRIDE_BYTES.start(), *HOLES_STRIDE_BYTES.end());
        self.arrived_bytes = self.holes_stride_bytes;
        let zone = (self.limit_bytes / ZONE_PART).clamp(*ZONE_BYTES.start(), *ZONE_BYTES.end());
        let zone = if self.eviction.policy.evicts_beside() { zone.max(2 * self.advance()) } else { 0 };
        self.zone_start = self.limit_bytes.saturating_sub(zone);
    }

    /// Somebody else may have allocated much: what this worker was left is not to be relied on.
    pub(crate) fn count_again(&mut self) {
        self.count_at = i64::MIN;
    }

    /// Whether there is a limit at all.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.limit_bytes != 0
    }

    /// Whether it is time to count, `coming_bytes` being about to be added.
    #[inline]
    pub(crate) fn is_due(&self, coming_bytes: u64) -> bool {
        counted::thread_bytes().saturating_add_unsigned(coming_bytes) >= self.count_at
    }

    /// Counts, and tells whether a request that adds `coming_bytes` would be refused: memory is over the
    /// limit while no key may be evicted, or no eviction could make room. Nothing is removed, so the caller
    /// may hold shards.
    pub(crate) fn refuses(&self, coming_bytes: u64) -> bool {
        let may_evict = self.eviction.policy != Policy::NoEviction || self.server.keyspace.expiry_rests();
        self.is_set()
            && (coming_bytes > self.limit_bytes
                || !may_evict && counted_bytes(self.server) > self.limit_bytes)
    }

    /// Counts, and where memory is in the zone makes some room beside the key that is about to be written, of
    /// which `beside` is the database and the hash. False if that is not enough: then
    /// [`MemoryLimit::make_room`] follows. The caller is inside its worker's gate and holds no shard.
    pub(crate) fn make_room_beside(
        &mut self,
        now: Millis,
        coming_bytes: u64,
        beside: Option<(u16, Hash)>,
    ) -> bool {
        self.look_for_holes(coming_bytes);
        let counts = self.held_bytes() + coming_bytes;
        let garbage = garbage_beyond(self.server, self.limit_bytes);
        if counts + garbage > self.limit_bytes || self.server.pressure.is_noted() {
            return false;
        }
        let excess_bytes = counts.saturating_sub(self.zone_start);
        if let Some((db, hash)) = beside
            && excess_bytes > 0
            && !self.server.keyspace.expiry_rests()
        {
            // From the middle of the zone on it is as urgent as can be.
            let middle = (self.limit_bytes - self.zone_start).div_ceil(2);
            let urgent = u64::from(Beside::URGENT);
            let urgency = (excess_bytes * urgent / middle).clamp(1, urgent) as u32;
            let coming_bytes = coming_bytes as usize + ENTRY_BYTES;
            let beside = Beside { db, hash, coming_bytes, excess_bytes, urgency };
            let keyspace = &self.server.keyspace;
            keyspace.evict_beside(&mut self.evictor, now, &self.eviction, &beside, &mut self.garbage);
            self.server.background.free(&mut self.garbage);
        }
        self.schedule_count(counts);
        true
    }

    /// Makes room for `coming_bytes` if there is none. The caller is inside its worker's gate and holds no
    /// shard.
    #[cold]
    pub(crate) fn make_room(&mut self, now: Millis, coming_bytes: u64) -> Room {
        if !self.is_set() {
            // There was one when the caller came to the gate.
            return Room::Enough;
        }
        if coming_bytes > self.limit_bytes {
            // No eviction could make room for it.
            return Room::None;
        }
        if self.server.keyspace.expiry_rests() {
            // While CLIENT PAUSE lasts no key is removed.
            return Room::Enough;
        }
        let mut room = Room::Enough;
        if self.held_bytes() + coming_bytes > self.limit_bytes {
            room = self.evict(now, coming_bytes);
        }
        let counts = counted_bytes(self.server);
        let is_over = counts > self.limit_bytes;
        let garbage = garbage_beyond(self.server, self.limit_bytes);
        self.server.pressure.note(is_over, self.server.clock.steady_us());
        self.schedule_count(self.held_bytes() + garbage);
        if !is_over && counts + garbage > self.limit_bytes {
            return Room::Garbage;
        }
        // A command is not refused because of what it is about to add: as in Redis, only what is in use
        // before it counts.
        if room == Room::None && !is_over { Room::Enough } else { room }
    }

    /// Looks the holes up if enough has come since the last time: what this thread holds more than then, and
    /// what commands have brought. The latter matters in the zone, where the thread holds about the same.
    fn look_for_holes(&mut self, coming_bytes: u64) {
        if !self.counts_holes() {
            return;
        }
        self.arrived_bytes += coming_bytes;
        let grown_bytes = counted::thread_bytes().saturating_sub(self.holes_seen_at);
        if self.arrived_bytes.saturating_add_signed(grown_bytes.max(0)) >= self.holes_stride_bytes {
            cold_path();
            self.server.pressure.note_holes();
            self.arrived_bytes = 0;
            self.holes_seen_at = counted::thread_bytes();
        }
    }

    /// Whether every key may be evicted: then some of the holes count.
    fn counts_holes(&self) -> bool {
        matches!(self.eviction.policy, Policy::AllkeysLru | Policy::AllkeysLfu | Policy::AllkeysRandom)
    }

    /// The bytes that count against the limit, with those of holes that do.
    fn held_bytes(&self) -> u64 {
        let holes = match self.counts_holes() {
            true => counted_holes(self.limit_bytes, self.server.pressure.hole_bytes()),
            false => 0,
        };
        counted_bytes(self.server) + holes
    }

    /// By how many bytes memory is over `target`, without what other workers are about to free.
    fn excess(&self, target: u64, coming_bytes: u64) -> i64 {
        let counts = self.held_bytes() + coming_bytes;
        let claimed = self.server.pressure.claimed_bytes();
        counts as i64 - claimed - i64::try_from(target).unwrap_or(i64::MAX)
    }

    /// Decides when to count again, `counts` being what counts now.
    fn schedule_count(&mut self, counts: u64) {
        let left = self.zone_start.checked_sub(counts);
        let stride = |left: u64| (left / (2 * self.workers())).min(STRIDE_BYTES_MAX);
        let count_at = |left| counted::thread_bytes().saturating_add_unsigned(stride(left));
        // In the zone and over the limit every command counts, whatever this thread frees meanwhile.
        self.count_at = left.map_or(i64::MIN, count_at);
    }

    fn workers(&self) -> u64 {
        self.server.mailboxes.len().max(1) as u64
    }

    /// How much is evicted beyond what is needed, over all workers.
    fn advance(&self) -> u64 {
        let each = (self.limit_bytes / ADVANCE_PART).clamp(*ADVANCE_BYTES.start(), *ADVANCE_BYTES.end());
        each * self.workers()
    }

    /// Makes room down to the target, claim by claim.
    fn evict(&mut self, now: Millis, coming_bytes: u64) -> Room {
        let target = self.limit_bytes.saturating_sub(self.advance());
        let watch = Stopwatch::start();
        self.expire(now);
        // At least one key, whatever others have claimed: so the command learns whether any may be evicted.
        let mut least = 1;
        loop {
            let mine = self.excess(target, coming_bytes).min(CLAIM_BYTES).max(least);
            if mine <= 0 {
                return Room::Enough;
            }
            least = 0;
            self.server.pressure.claim(mine);
            let room = self.free(mine, now, &watch);
            self.server.pressure.claim(-mine);
            self.server.background.free(&mut self.garbage);
            if room != Room::Enough {
                return room;
            }
        }
    }

    /// Removes keys whose time has come before any other has to go.
    fn expire(&mut self, now: Millis) {
        if self.server.keyspace.soonest_due().is_some_and(|due| due <= now) {
            self.server.keyspace.expire(now, EXPIRED_BUDGET, &mut self.garbage);
            self.server.background.free(&mut self.garbage);
        }
    }

    /// Evicts keys until this thread has freed so many bytes.
    fn free(&mut self, wanted_bytes: i64, now: Millis, watch: &Stopwatch) -> Room {
        // A leaf that a snapshot holds is copied first, which takes nothing that counts.
        let start = counted::thread_needed_bytes();
        let mut keys = 0;
        loop {
            let left = wanted_bytes - (start - counted::thread_needed_bytes()) - weight(&self.garbage);
            if left <= 0 {
                return Room::Enough;
            }
            let (keyspace, evictor, garbage) = (&self.server.keyspace, &mut self.evictor, &mut self.garbage);
            let several = match left >= SEVERAL_BYTES {
                true => keyspace.evict_several(evictor, now, &self.eviction, left as u64, garbage),
                false => 0,
            };
            if several == 0 && keyspace.evict(evictor, now, &self.eviction, garbage) == Outcome::Nothing {
                return Room::None;
            }
            let looked = keys / KEYS_PER_LOOK;
            keys += several.max(1);
            if keys / KEYS_PER_LOOK != looked && watch.elapsed_ns() >= self.patience_ns {
                return Room::Later;
            }
        }
    }
}

/// How many bytes freeing these pieces will give back, as far as that is known.
fn weight(garbage: &[Garbage]) -> i64 {
    let bytes = |piece: &Garbage| match piece.weight() {
        Weight::Bytes(bytes) => bytes as i64,
        Weight::Keys(_) => 0,
    };
    garbage.iter().map(bytes).sum()
}

/// How long one command may take to evict: half a millisecond by default, without end at 100.
fn patience_ns(tenacity: u32) -> u64 {
    match tenacity {
        0..=10 => 50_000 * u64::from(tenacity),
        11..=99 => (500_000.0 * 1.15_f64.powi(tenacity as i32 - 10)) as u64,
        _ => u64::MAX,
    }
}

/// Hands the keys of a flushed database to the background thread, with an estimate of what they take: their
/// share of all that counts.
pub(crate) fn free_flushed(server: &Server, garbage: &mut Vec<Garbage>) {
    if !garbage.is_empty() {
        cold_path();
        free_all(server, garbage);
    }
}

#[inline(never)]
fn free_all(server: &Server, garbage: &mut Vec<Garbage>) {
    let keys = |piece: &Garbage| match piece.weight() {
        Weight::Keys(keys) => keys,
        Weight::Bytes(_) => 0,
    };
    let gone: u64 = garbage.iter().map(keys).sum();
    if gone > 0 {
        let left: u64 = (0..server.keyspace.databases()).map(|db| server.keyspace.len(db)).sum();
        let data = counted_bytes(server).saturating_sub(counted::startup_bytes() as u64);
        server.background.free_keys(garbage, data / (gone + left).max(1));
    } else {
        server.background.free(garbage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_tenacity_from_none_to_endless() {
        assert_eq!([0, 1, 10].map(patience_ns), [0, 50_000, 500_000]);
        assert!((500_000..600_000).contains(&patience_ns(11)));
        assert!(patience_ns(99) > 60_000_000_000 && patience_ns(100) == u64::MAX);
    }
}
