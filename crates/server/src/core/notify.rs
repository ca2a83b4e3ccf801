//! Keyspace notifications: events of keys, published to whoever listens to the channels for them.
//!
//! ```text
//! SET k v in database 0, with `notify-keyspace-events` KEA:
//!     __keyspace@0__:k      "set"
//!     __keyevent@0__:set    "k"
//! ```
//!
//! Nothing is published of keys that are flushed or change their database, as in Redis.
//!
//! An event is published when it has happened, before the key's shard is let go: so the events of a key come
//! in their order, whoever caused them.
use crate::core::mailbox::{Mailboxes, Message};
use crate::state::pubsub::{PubSub, Topic};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use store::{Classes, Told};

/// Publishes events of keys.
pub(crate) struct Notifier {
    pubsub: Arc<PubSub>,
    mailboxes: Arc<Mailboxes>,
    /// `notify-keyspace-events`
    classes: AtomicU32,
}

impl Notifier {
    /// One that publishes nothing yet.
    pub(crate) fn new(pubsub: Arc<PubSub>, mailboxes: Arc<Mailboxes>) -> Notifier {
        Notifier { pubsub, mailboxes, classes: AtomicU32::new(Classes::NONE.0) }
    }

    /// From here on events of these classes are published.
    pub(crate) fn obey(&self, classes: Classes) {
        self.classes.store(classes.0, Relaxed);
    }

    /// Publishes these events, those whose classes are named by `notify-keyspace-events`. While no class is,
    /// or nobody listens to anything, it costs two loads.
    pub(crate) fn hear(&self, told: &[Told]) {
        let classes = Classes(self.classes.load(Relaxed));
        if classes == Classes::NONE || !self.pubsub.is_heard() {
            return;
        }
        for Told { db, key, event, .. } in told {
            if event.name.is_empty() || event.class == Classes::NONE || !classes.has(event.class) {
                continue;
            }
            if classes.has(Classes::KEYSPACE) {
                self.publish(
                    &[format!("__keyspace@{db}__:").as_bytes(), key].concat(),
                    event.name.as_bytes(),
                );
            }
            if classes.has(Classes::KEYEVENT) {
                self.publish(format!("__keyevent@{db}__:{}", event.name).as_bytes(), key);
            }
        }
    }

    fn publish(&self, channel: &[u8], message: &[u8]) {
        self.pubsub.publish(Topic::Channel, channel, message, |worker, publication| {
            self.mailboxes.post(worker, Message::Published(Arc::clone(publication)));
        });
    }
}
