//! Who listens to which channel: what PUBLISH finds its receivers in.
//!
//! ```text
//! registry, of all workers                              audience, of one worker
//! channel -> how many listen on each worker             channel -> which of its connections listen
//! pattern -> the same, indexed by its literal parts     pattern -> the same
//! ```
//!
//! A publisher looks the channel up in the registry, while nobody else can publish to that channel, and
//! posts one message to each worker that has receivers; the worker finds the connections. So a channel's
//! messages are in one order for all who listen, and each publisher's messages are in its own order for
//! everybody, whatever the channels.
//!
//! Between the moment when a message is posted and the one when its worker delivers it connections of that
//! worker may begin to listen. The message is not for them: the reply to PUBLISH did not count them, and they
//! may know that it came before. So every subscription has a number that grows, and a message carries the
//! number of the last subscription that it is for.
//!
//! Order of locks: a part of the channels, then the patterns; while an audience is locked no other of these
//! locks is taken. A publisher holds the first two while it posts, so the locks of mailboxes come behind
//! them.
mod audience;
mod few;
mod patterns;
mod space;

use audience::Audience;
use net::ConnId;
use patterns::Patterns;
use resp::{Protocol, Reply};
use space::Space;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What a client may listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// SUBSCRIBE
    Channel,
    /// PSUBSCRIBE: all channels that a pattern matches.
    Pattern,
    /// SSUBSCRIBE: a name space of its own, without patterns.
    Shard,
}

/// A name of a channel or pattern, shared by all who have to know it.
pub(crate) type Name = Arc<[u8]>;

/// What a connection listens to.
pub(crate) struct Joined {
    pub(crate) name: Name,
    /// Nobody did when it began.
    pub(crate) is_first: bool,
}

/// See the file's opener.
pub(crate) struct PubSub {
    channels: Space,
    shards: Space,
    patterns: RwLock<Patterns>,
    /// How many patterns there are, so that nobody takes the lock while there are none.
    pattern_count: AtomicUsize,
    /// The number of the last subscription.
    last: AtomicU64,
    /// One for each worker, which alone takes its lock.
    audiences: Box<[Mutex<Audience>]>,
}

/// A message on its way to the workers that have receivers.
pub(crate) struct Publication {
    /// Where it was published: a channel, or a channel of a shard.
    topic: Topic,
    channel: Name,
    message: Vec<u8>,
    /// The message as subscribers of the channel get it in RESP2; RESP3 has another first byte.
    text: Vec<u8>,
    /// Patterns that match the channel, in the order in which they came.
    patterns: Vec<Name>,
    /// The last subscription, by number, that gets the message; later ones do not.
    last: u64,
    /// How many receive it on each worker that has receivers, on average.
    receivers: usize,
}

impl Publication {
    /// About how many bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        const OWN_BYTES: usize = 128;
        OWN_BYTES + self.message.len() + self.text.len() + self.patterns.len() * size_of::<Name>()
    }

    /// About how many bytes the receivers of one worker get together.
    pub(crate) fn owed_bytes(&self) -> usize {
        const HEADERS_BYTES: usize = 32;
        let own_bytes = self.text.len().max(HEADERS_BYTES + self.channel.len() + self.message.len());
        self.receivers.saturating_mul(own_bytes)
    }
}

/// How many bytes of messages are sent together at most.
const TOGETHER_BYTES: usize = 64 << 10;

impl Publication {
    /// Whether this message may be sent together with those of a run that begins with `first` and has
    /// `run_bytes`: it has the receivers that they have.
    pub(crate) fn goes_with(&self, first: &Publication, run_bytes: usize) -> bool {
        Arc::ptr_eq(&self.channel, &first.channel)
            && (self.topic, self.last) == (first.topic, first.last)
            && self.patterns.is_empty()
            && first.patterns.is_empty()
            && run_bytes + self.text.len() <= TOGETHER_BYTES
    }
}

/// Messages as clients get them, one behind the other, written once for each protocol.
pub(crate) struct Pushes {
    resp2: Vec<u8>,
    resp3: Vec<u8>,
    /// Where each message begins.
    starts: Vec<usize>,
}

impl Pushes {
    fn of<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Pushes {
        let mut pushes = Pushes { resp2: Vec::new(), resp3: Vec::new(), starts: Vec::new() };
        for text in texts {
            pushes.starts.push(pushes.resp2.len());
            pushes.resp2.extend_from_slice(text);
        }
        pushes
    }

    /// All of them in this protocol. RESP3 has another mark in front of each.
    pub(crate) fn text(&mut self, protocol: Protocol) -> &[u8] {
        if protocol == Protocol::Resp2 {
            return &self.resp2;
        }
        if self.resp3.is_empty() {
            self.resp3.clone_from(&self.resp2);
            self.starts.iter().for_each(|start| self.resp3[*start] = b'>');
        }
        &self.resp3
    }
}

impl PubSub {
    /// Nobody listens.
    pub(crate) fn new(workers: usize) -> PubSub {
        PubSub {
            channels: Space::default(),
            shards: Space::default(),
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            audiences: (0..workers).map(|_| Mutex::default()).collect(),
        }
    }

    /// This connection listens from here on; it must not have listened already. Returns the name to keep.
    pub(crate) fn subscribe(&self, topic: Topic, name: &[u8], (worker, conn): (usize, ConnId)) -> Joined {
        let number = || self.last.fetch_add(1, Relaxed) + 1;
        let (joined, number) = match topic {
            Topic::Channel => self.channels.add(name, worker, number),
            Topic::Shard => self.shards.add(name, worker, number),
            Topic::Pattern => {
                let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
                let joined = patterns.add(name, worker);
                self.pattern_count.store(patterns.len(), Relaxed);
                (joined, number())
            }
        };
        self.audience(worker).add(topic, &joined.name, conn, number);
        joined
    }

    /// This connection, which listened, does so no more.
    pub(crate) fn unsubscribe(&self, topic: Topic, name: &Name, (worker, conn): (usize, ConnId)) {
        self.audience(worker).remove(topic, name, conn);
        match topic {
            Topic::Channel => self.channels.remove(name, worker),
            Topic::Shard => self.shards.remove(name, worker),
            Topic::Pattern => {
                let mut patterns = self.patterns.write().unwrap_or_else(PoisonError::into_inner);
                patterns.remove(name, worker);
                self.pattern_count.store(patterns.len(), Relaxed);
            }
        }
    }

    /// Whether anybody listens to any channel or pattern: two loads.
    pub(crate) fn is_heard(&self) -> bool {
        self.channels.len() > 0 || self.pattern_count.load(Relaxed) > 0
    }

    /// Hands a message to `post` for each worker that has receivers, and returns how many these are: a client
    /// counts for its channel and for each of its patterns that match. `post` is called under locks.
    pub(crate) fn publish(
        &self,
        topic: Topic,
        channel: &[u8],
        message: &[u8],
        mut post: impl FnMut(usize, &Arc<Publication>),
    ) -> u64 {
        let space = if topic == Topic::Shard { &self.shards } else { &self.channels };
        let has_patterns = topic == Topic::Channel && self.pattern_count.load(Relaxed) > 0;
        if space.len() == 0 && !has_patterns {
            return 0;
        }
        let part = space.part(channel);
        let patterns = has_patterns.then(|| self.patterns.read().unwrap_or_else(PoisonError::into_inner));
        let listed = part.get_key_value(channel);
        let mut matching = Vec::new();
        if let Some(patterns) = &patterns {
            patterns.find(channel, &mut matching);
        }
        if listed.is_none() && matching.is_empty() {
            return 0;
        }
        let mut count = 0;
        let mut workers = vec![false; self.audiences.len()];
        let receivers = listed.map(|(_, receivers)| receivers).into_iter();
        for (worker, receivers) in
            receivers.chain(matching.iter().map(|p| p.receivers)).flat_map(|r| r.iter())
        {
            count += u64::from(receivers);
            workers[worker] = true;
        }
        let hearing = workers.iter().filter(|hears| **hears).count().max(1);
        let publication = Arc::new(Publication {
            receivers: (count as usize).div_ceil(hearing),
            topic,
            channel: listed.map_or_else(|| channel.into(), |(name, _)| Arc::clone(name)),
            message: if matching.is_empty() { Vec::new() } else { message.to_vec() },
            text: if listed.is_some() { text(topic, None, channel, message) } else { Vec::new() },
            patterns: matching.iter().map(|pattern| Arc::clone(pattern.name)).collect(),
            last: self.last.load(Relaxed),
        });
        for (worker, _) in workers.iter().enumerate().filter(|(_, hears)| **hears) {
            post(worker, &publication);
        }
        count
    }

    /// Calls `post`, which hands on a message that [`PubSub::publish`] had handed to somebody who kept it for
    /// a while: messages of a channel are in one order for everybody.
    pub(crate) fn in_turn(&self, publication: &Publication, post: impl FnOnce()) {
        let _others_wait = self.space(publication.topic).part(&publication.channel);
        post();
    }

    /// Finds the receivers that `worker` has for messages that go together ([`Publication::goes_with`]), and
    /// calls `send` with them and with what they get.
    pub(crate) fn deliver(
        &self,
        worker: usize,
        publications: &[Arc<Publication>],
        mut send: impl FnMut(&[ConnId], &mut Pushes),
    ) {
        let Some(publication) = publications.first() else { return };
        let mut receivers = Vec::new();
        let find = |topic, name: &Name, receivers: &mut Vec<ConnId>| {
            receivers.clear();
            self.audience(worker).find(topic, name, publication.last, receivers);
            !receivers.is_empty()
        };
        let Publication { topic, channel, message, text: own, patterns, .. } = &**publication;
        if !own.is_empty() && find(*topic, channel, &mut receivers) {
            send(&receivers, &mut Pushes::of(publications.iter().map(|publication| &publication.text[..])));
        }
        for pattern in patterns {
            if find(Topic::Pattern, pattern, &mut receivers) {
                let text = text(Topic::Pattern, Some(pattern), channel, message);
                send(&receivers, &mut Pushes::of([&text[..]].into_iter()));
            }
        }
    }

    /// How many channels somebody listens to, or channels of shards, or how many patterns there are.
    pub(crate) fn count(&self, topic: Topic) -> usize {
        match topic {
            Topic::Channel => self.channels.len(),
            Topic::Shard => self.shards.len(),
            Topic::Pattern => self.pattern_count.load(Relaxed),
        }
    }

    /// The names of all channels that somebody listens to, or those of shards, without order.
    pub(crate) fn channels(&self, topic: Topic) -> Vec<Name> {
        self.space(topic).names()
    }

    /// How many clients listen to this very channel.
    pub(crate) fn listeners(&self, topic: Topic, channel: &[u8]) -> u64 {
        let part = self.space(topic).part(channel);
        part.get(channel).map_or(0, |receivers| receivers.iter().map(|(_, count)| u64::from(count)).sum())
    }

    fn space(&self, topic: Topic) -> &Space {
        if topic == Topic::Shard { &self.shards } else { &self.channels }
    }

    fn audience(&self, worker: usize) -> MutexGuard<'_, Audience> {
        self.audiences[worker].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A message as a client gets it in RESP2.
fn text(topic: Topic, pattern: Option<&Name>, channel: &[u8], message: &[u8]) -> Vec<u8> {
    let mut reply = Reply::new(Protocol::Resp2);
    const HEADERS_BYTES: usize = 96;
    reply.out.reserve_exact(HEADERS_BYTES + pattern.map_or(0, |p| p.len()) + channel.len() + message.len());
    reply.push(if pattern.is_some() { 4 } else { 3 });
    reply.bulk(match topic {
        Topic::Channel => b"message",
        Topic::Pattern => b"pmessage",
        Topic::Shard => b"smessage",
    });
    if let Some(pattern) = pattern {
        reply.bulk(pattern);
    }
    reply.bulk(channel);
    reply.bulk(message);
    reply.out
}

#[cfg(test)]
mod tests;
