//! What the server does when something happens to a key: every change, expiry, eviction and flush comes
//! through here, while the key's shard is locked (`store::Listener`).
use crate::core::notify::Notifier;
use crate::core::tracking::{Origin, Tracking};
use crate::core::waiters::{Ready, Waiters};
use crate::state::watched::Watched;
use base::Millis;
use std::sync::Arc;
use store::{Keyspace, Listener, Told};

/// Those to whom it matters what happens to keys.
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

    /// These events have happened, perhaps by the doing of a client that tracks keys: they are published,
    /// those who watch the keys are marked, and those who have read them are told. Those who wait for the
    /// keys are not served by it: whoever runs commands does that (`dispatch/serve.rs`).
    pub(crate) fn hear(&self, told: &[Told], origin: Origin<'_>) {
        self.notifier.hear(told);
        self.watched.hear(told);
        self.tracking.hear(told, origin);
    }
}

/// The keyspace's way to the server.
pub(crate) struct KeyListener(pub(crate) Arc<KeyEvents>);

impl Listener for KeyListener {
    /// Whoever made the change cannot serve those who wait: they are noted, and served when the worker that
    /// did it has let the shards go.
    fn hear(&self, told: &[Told]) {
        self.0.hear(told, None);
        if self.0.waiters.is_any() {
            let places = self.0.waiters.awaited(told);
            self.0.waiters.make_ready(places.into_iter().map(Ready::for_all).collect());
        }
    }

    fn flush(&self, keyspace: &Keyspace, flushed: Option<u16>) {
        self.0.watched.flush(keyspace, flushed);
        self.0.tracking.flush();
        self.0.waiters.make_all_ready(|db| flushed.is_none_or(|flushed| flushed == db));
    }

    fn swap(&self, keyspace: &Keyspace, (a, b): (u16, u16), now: Millis) {
        self.0.watched.swap(keyspace, a, b, now);
        self.0.waiters.make_all_ready(|db| db == a || db == b);
    }
}
