//! What one client listens to. A session has this while it listens to something; `state/pubsub` knows for all
//! workers who listens to which channel.
use crate::core::modes::Modes;
use crate::core::server::Server;
use crate::core::session::{ClientRecord, Session};
use crate::state::counters::Counters;
use crate::state::pubsub::{Joined, Name, Topic};
use resp::{Protocol, Reply};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// About how many bytes a subscription takes, here and with its worker.
const SHARED_BYTES: u64 = 76;
/// The same for the first subscriber of a channel, whose name `state/pubsub` keeps as well; and of a pattern,
/// for which it has an index (370 where it stands alone there, 630 beside one other).
const CHANNEL_BYTES: u64 = 224;
const PATTERN_BYTES: u64 = 480;
/// What of a name is beyond this counts for each subscriber: the first may leave, and the name stays.
const SHORT_NAME_BYTES: u64 = 128;

/// About how many bytes it takes that a client listens to this.
fn bytes_of(topic: Topic, joined: &Joined) -> u64 {
    let name_bytes = joined.name.len() as u64;
    match (joined.is_first, topic) {
        (false, _) => SHARED_BYTES + name_bytes.saturating_sub(SHORT_NAME_BYTES),
        (true, Topic::Channel | Topic::Shard) => CHANNEL_BYTES + name_bytes,
        (true, Topic::Pattern) => PATTERN_BYTES + name_bytes,
    }
}

/// Names, and whether nobody listened to each before ([`Joined`]).
type Names = BTreeMap<Name, bool>;

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Subscriptions {
    channels: Names,
    patterns: Names,
    shards: Names,
    /// Confirmations of the command that runs, which are sent even where CLIENT REPLY has turned replies off.
    unmuted: Vec<u8>,
}

impl Subscriptions {
    fn of(&mut self, topic: Topic) -> &mut Names {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
            Topic::Shard => &mut self.shards,
        }
    }

    /// Takes out any subscription.
    pub(crate) fn pop(&mut self) -> Option<(Topic, Joined)> {
        let topics = [Topic::Channel, Topic::Pattern, Topic::Shard];
        topics.into_iter().find_map(|topic| {
            let (name, is_first) = self.of(topic).pop_first()?;
            Some((topic, Joined { name, is_first }))
        })
    }

    /// The number that a confirmation shows: channels and patterns together, shard channels by themselves.
    fn shown(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel | Topic::Pattern => self.channels.len() + self.patterns.len(),
            Topic::Shard => self.shards.len(),
        }
    }

    fn len(&self) -> usize {
        self.channels.len() + self.patterns.len() + self.shards.len()
    }
}

impl Session {
    /// Subscribes to a channel or pattern, unless it has done so. Returns the number that the confirmation
    /// shows.
    pub(crate) fn subscribe(&mut self, server: &Server, topic: Topic, name: &[u8]) -> usize {
        let own = self.subscriptions.get_or_insert_default();
        if !own.of(topic).contains_key(name) {
            let joined = server.pubsub.subscribe(topic, name, (self.record.worker, self.conn));
            note_bytes(&self.record, server, |bytes| bytes + bytes_of(topic, &joined));
            own.of(topic).insert(joined.name, joined.is_first);
        }
        own.shown(topic)
    }

    /// Ends a subscription, if there is one. Returns the number that the confirmation shows.
    pub(crate) fn unsubscribe(&mut self, server: &Server, topic: Topic, name: &[u8]) -> usize {
        let Some(own) = &mut self.subscriptions else { return 0 };
        if let Some((name, is_first)) = own.of(topic).remove_entry(name) {
            drop_subscription(server, &self.record, self.conn, (topic, Joined { name, is_first }));
        }
        own.shown(topic)
    }

    /// What it listens to, in the order of the names.
    pub(crate) fn subscribed(&self, topic: Topic) -> Vec<Name> {
        let Some(own) = &self.subscriptions else { return Vec::new() };
        let names = match topic {
            Topic::Channel => &own.channels,
            Topic::Pattern => &own.patterns,
            Topic::Shard => &own.shards,
        };
        names.keys().cloned().collect()
    }

    /// The number that a confirmation shows where nothing changes.
    pub(crate) fn shown_subscriptions(&self, topic: Topic) -> usize {
        self.subscriptions.as_ref().map_or(0, |own| own.shown(topic))
    }

    /// Ends all subscriptions: RESET.
    pub(crate) fn unsubscribe_from_all(&mut self, server: &Server) {
        if let Some(mut own) = self.subscriptions.take() {
            while let Some(subscription) = own.pop() {
                drop_subscription(server, &self.record, self.conn, subscription);
            }
        }
        self.note_subscriptions(Protocol::Resp2);
    }

    /// Brings the modes and what others see up to date, after subscriptions or the protocol have changed.
    pub(crate) fn note_subscriptions(&mut self, protocol: Protocol) {
        let counts = self
            .subscriptions
            .as_ref()
            .map_or([0; 3], |own| [own.channels.len(), own.patterns.len(), own.shards.len()]);
        for (cell, count) in self.record.subscriptions.iter().zip(counts) {
            cell.store(count as u32, Relaxed);
        }
        let is_subscribed = counts != [0; 3];
        for (mode, is_on) in [
            (Modes::SUBSCRIBED, is_subscribed),
            (Modes::LISTENS_ONLY, is_subscribed && protocol == Protocol::Resp2),
        ] {
            match is_on {
                true => self.modes.set(mode),
                false => self.modes.clear(mode),
            }
        }
        if self.subscriptions.as_ref().is_some_and(|own| own.len() == 0 && own.unmuted.is_empty()) {
            self.subscriptions = None;
        }
    }

    /// Keeps the reply from byte `start` on if CLIENT REPLY drops it, because it is sent nevertheless.
    pub(crate) fn unmute(&mut self, reply: &mut Reply, start: usize) {
        if !self.reply_mode.answers() {
            let unmuted = &mut self.subscriptions.get_or_insert_default().unmuted;
            unmuted.extend_from_slice(&reply.out[start..]);
        }
    }

    /// Appends to the reply what [`Session::unmute`] has kept.
    pub(crate) fn append_unmuted(&mut self, reply: &mut Reply) {
        if let Some(own) = &mut self.subscriptions {
            reply.append(&std::mem::take(&mut own.unmuted));
            if own.len() == 0 {
                self.subscriptions = None;
            }
        }
    }
}

/// Tells all workers that a subscription has ended, which the client's own set does not have any more.
pub(crate) fn drop_subscription(
    server: &Server,
    record: &ClientRecord,
    conn: net::ConnId,
    (topic, joined): (Topic, Joined),
) {
    server.pubsub.unsubscribe(topic, &joined.name, (record.worker, conn));
    note_bytes(record, server, |bytes| bytes.saturating_sub(bytes_of(topic, &joined)));
}

/// Notes how much memory the subscriptions take, for the client and for the sum of its worker, which alone
/// calls this.
fn note_bytes(record: &ClientRecord, server: &Server, change: impl FnOnce(u64) -> u64) {
    let counters: &Counters = &server.counters.0[record.worker];
    let before = record.subscription_bytes.load(Relaxed);
    let after = change(before);
    record.subscription_bytes.store(after, Relaxed);
    counters.state_bytes.add(after.wrapping_sub(before));
}
