//! What the server does when something happens to a key: every change, expiry, eviction and flush comes
//! through here, while the key's shard is locked (`store::Listener`).
use crate::core::notify::Notifier;
use crate::core::tracking::{Origin, Tracking};
use crate::core::waiters::Waiters;
use crate::state::journal::Journal;
use crate::state::watched::Watched;
use base::Millis;
use std::sync::Arc;
use store::{Keyspace, Listener, Told};

/// Those who are told what happens to keys: clients that wait for keys, listen, watch, or keep copies.
pub(crate) struct KeyEvents {
    pub(crate) waiters: Waiters,
    pub(crate) notifier: Notifier,
    pub(crate) watched: Watched,
    pub(crate) tracking: Tracking,
}

impl KeyEvents {
    /// Nobody listens yet.
    pub(crate) fn new(shards: usize, notifier: Notifier, tracking: Tracking) -> KeyEvents {
        KeyEvents { waiters: Waiters::new(shards), notifier, watched: Watched::new(shards), tracking }
    }

    /// Tells the clients that keep copies, publishes these events, and marks the clients that watch the keys.
    /// `origin` is who caused the events. Clients that wait for the keys are not served here: dispatch does
    /// that (`dispatch/serve.rs`).
    pub(crate) fn hear(&self, told: &[Told], origin: Origin<'_>) {
        self.tracking.hear(told, origin);
        self.notifier.hear(told);
        self.watched.hear(told);
    }
}

/// What the keyspace calls when something happens to keys outside a command on them: expiry, eviction,
/// FLUSHALL, SWAPDB.
pub(crate) struct KeyListener {
    pub(crate) events: Arc<KeyEvents>,
    pub(crate) journal: Arc<Journal>,
}

impl Listener for KeyListener {
    /// Clients that wait cannot be served here, while shards are locked: their keys are noted as ready, and
    /// a worker serves them when the shards are let go.
    fn hear(&self, told: &[Told]) {
        if self.journal.is_on() {
            self.journal.record_gone(told);
        }
        self.events.hear(told, Origin::NOBODY);
        if self.events.waiters.is_any() {
            self.events.waiters.make_ready(self.events.waiters.awaited(told));
        }
    }

    fn flush(&self, keyspace: &Keyspace, flushed: Option<u16>) {
        self.events.watched.flush(keyspace, flushed);
        self.events.tracking.flush();
        self.events.waiters.make_all_ready(|db| flushed.is_none_or(|flushed| flushed == db));
    }

    fn swap(&self, keyspace: &Keyspace, (a, b): (u16, u16), now: Millis) {
        self.events.watched.swap(keyspace, a, b, now);
        // In this order, as they are named.
        for swapped in [a, b] {
            self.events.waiters.make_all_ready(|db| db == swapped);
        }
    }
}
