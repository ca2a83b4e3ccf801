//! Room for what commands are about to add, by `maxmemory`, and what keeps eviction going between them
//! (`core/memory_limit.rs`).
use super::{Executor, Look, Request};
use crate::core::memory_limit::Room;
use crate::core::modes::Modes;
use crate::core::session::Session;
use crate::state::latency;
use crate::state::pause::Held;
use base::hash::Hash;
use std::hint::cold_path;

impl Executor<'_> {
    /// Whether there is memory for what this request may add, after keys were evicted if need be. A request
    /// adds about as many bytes as its arguments have.
    #[inline(never)]
    pub(super) fn room_for(&mut self, db: u16, request: &Request<'_, '_>) -> Room {
        self.room_for_bytes(request.args.bytes_from(1), request.hash.map(|hash| (db, hash)))
    }

    /// Whether there is memory for so many bytes; `beside` is where keys may go for it first.
    #[inline]
    pub(super) fn room_for_bytes(&mut self, coming_bytes: u64, beside: Option<(u16, Hash)>) -> Room {
        if !self.memory_limit.is_due(coming_bytes)
            || self.memory_limit.make_room_beside(self.now.wall, coming_bytes, beside)
        {
            return Room::Enough;
        }
        self.evict(coming_bytes)
    }

    /// Evicts until there is room for so many bytes, and tells the latency monitor how long that took.
    fn evict(&mut self, coming_bytes: u64) -> Room {
        let start = self.meter.read();
        let room = self.memory_limit.make_room(self.now.wall, coming_bytes);
        let time_ns = self.meter.ns(self.meter.read().since(start));
        self.server.latency.note(&self.config, latency::EVICTION_CYCLE, time_ns, self.now.wall.0 / 1000);
        room
    }

    /// Has the keyspace age its records of when keys were used, for LRU and LFU; the first worker calls this
    /// ten times a second.
    pub(crate) fn tend_uses(&mut self) {
        self.begin();
        if !self.is_shut_out {
            self.tend_records();
        }
        self.end();
    }

    /// Whether the command that runs on the server does so without a shard. One of a transaction that is not
    /// alone, or of a script, does not.
    #[inline]
    pub(super) fn holds_no_shard(&self, session: &Session) -> bool {
        let is_held = session.modes.has(Modes::SCRIPT) || self.attempt.is_some();
        !session.modes.has(Modes::EXECUTING) || self.is_alone && !is_held
    }

    /// A policy that notes when keys are used has to begin before the next command. This waits for shards, so
    /// whoever calls it holds none.
    #[inline]
    pub(super) fn heed_policy(&mut self) {
        if std::mem::take(&mut self.is_policy_new) {
            cold_path();
            self.tend_records();
        }
    }

    /// Keeps the records of uses right. What takes long after a change of policy is the background thread's.
    fn tend_records(&self) {
        if self.server.keyspace.tend_uses(self.now.wall, &self.config.store.eviction) {
            self.server.background.end_change_of_uses();
        }
    }

    /// Between batches: evicts for a moment where memory is over its limit. Returns whether there is more to
    /// do.
    pub(crate) fn relieve(&mut self, look: Look) -> bool {
        if !self.memory_limit.is_set() || (look == Look::WhenDue && !self.memory_limit.is_due(0)) {
            return false;
        }
        if self.server.persistence.is_loading() {
            return false;
        }
        self.begin();
        // While CLIENT PAUSE holds writes back no key is evicted.
        let room = match self.held {
            Held::Nothing if !self.is_shut_out => self.evict(0),
            Held::Nothing | Held::Writes | Held::Everything => Room::Enough,
        };
        self.end();
        room == Room::Later
    }
}
