//! How workers reach each other: a mailbox for each, read between two batches in the order in which messages
//! were left.
//!
//! Most messages are rare: they wake their worker at once ([`Mailbox::send`]). What is published may be much,
//! and it is posted while locks are held: then the poster's batch ends first, and one wake-up is for all that
//! it has posted ([`Mailboxes::post`], [`Mailboxes::announce`]). A worker looks into its own mailbox before
//! it runs what it has received, too: so whoever knows that something was published, and asks, sees it first.
//!
//! A worker may be slower than all others that have something for its clients: messages, invalidations, lines
//! of MONITOR. A mailbox that holds much of these is *congested*, and whoever would make more of them waits
//! as long as there is one (`dispatch`). A mailbox is congested also when its messages would come to much
//! once every client has its copy, together with what the worker has not offered the kernel yet.
use crate::core::session::Unblock;
use crate::core::tracking::Invalidation;
use crate::state::pubsub::Publication;
use std::collections::VecDeque;
use std::hint::cold_path;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From so many bytes on a mailbox is congested, until it holds half of that.
const CONGESTED_BYTES: usize = 8 << 20;
/// The same for bytes that are owed to all of its clients together: as many as one subscriber may be owed by
/// default. The more it is, the more messages leave together.
const CONGESTED_OWED_BYTES: usize = 32 << 20;
/// Fewer bytes than this that wait in the engine count as none.
const WAITING_BYTES_MIN: usize = 1 << 20;
/// How many bytes are taken out at a time, so that they are sent before the next ones are looked at.
const TAKEN_BYTES: usize = 1 << 20;

/// What one thread asks of a worker. Clients are named by their ids, because they may be gone by the time the
/// message is read; then it is about nobody.
pub(crate) enum Message {
    /// The listeners have changed: accept from those in `Server::listening`.
    Listen,
    /// Serve this connection.
    Adopt(net::Accepted),
    /// The users have changed: close the clients that listen to what their users may not hear any more.
    UsersChanged,
    /// `client-output-buffer-limit` has changed: judge the clients that are owed replies anew.
    OutputLimitsChanged,
    /// Show these lines to the clients that watch, which are so many.
    Feed(Arc<[u8]>, usize),
    /// Send this to the clients that listen to its channel.
    Published(Arc<Publication>),
    /// Tell these clients that what they have read is no longer true.
    Invalidated(Invalidation),
    /// Tell the client with this id of these keys, an array or null, which another client tracks (REDIRECT).
    Redirected(u64, Arc<[u8]>),
    /// The client with this id was killed.
    Killed(u64),
    /// The request of the client with this id, which waited for a key, has this reply.
    Served(u64, Vec<u8>),
    /// The waiting of the client with this id was ended.
    Unblocked(u64, Unblock),
    /// A session that was lent has come back (`lent.rs`).
    Returned,
}

impl Message {
    /// Its part of the bytes by which congestion is judged.
    fn bytes(&self) -> usize {
        match self {
            Message::Published(publication) => publication.bytes(),
            Message::Invalidated(invalidation) => invalidation.bytes(),
            Message::Feed(bytes, _) | Message::Redirected(_, bytes) => size_of::<Message>() + bytes.len(),
            _ => 0,
        }
    }

    /// Whether clients are sent something: they are told of something, or have waited and are answered.
    fn is_for_clients(&self) -> bool {
        match self {
            Message::Feed(..)
            | Message::Published(_)
            | Message::Invalidated(_)
            | Message::Redirected(..)
            | Message::Served(..)
            | Message::Unblocked(..) => true,
            Message::Listen
            | Message::Adopt(_)
            | Message::UsersChanged
            | Message::OutputLimitsChanged
            | Message::Killed(_)
            | Message::Returned => false,
        }
    }

    /// About how many bytes clients get of it all together, where these may be many.
    fn owed_bytes(&self) -> usize {
        match self {
            Message::Published(publication) => publication.owed_bytes(),
            Message::Invalidated(invalidation) => invalidation.owed_bytes(),
            Message::Feed(bytes, watchers) => bytes.len().saturating_mul(*watchers),
            _ => self.bytes(),
        }
    }
}

/// One worker's mailbox: what other threads want it to do, and the means to wake it.
pub(crate) struct Mailbox {
    waker: net::Waker,
    inbox: Mutex<Inbox>,
    /// Whether anything is in it: a load, for the worker whose box it is.
    has_mail: AtomicBool,
    /// How many mailboxes are congested: one count for all.
    congested: Arc<AtomicUsize>,
    /// Connections that it serves or has been given.
    pub(crate) connections: AtomicUsize,
}

#[derive(Default)]
struct Inbox {
    messages: VecDeque<Message>,
    /// The sum of `Message::bytes` over them, by which congestion is judged.
    bytes: usize,
    /// The sum of `Message::owed_bytes` over them.
    owed_bytes: usize,
    /// What the worker had delivered and not offered the kernel when it last called `note_waiting`.
    waiting_bytes: usize,
    is_congested: bool,
}

impl Inbox {
    /// This one was taken out.
    fn discount(&mut self, message: &Message) {
        self.bytes -= message.bytes();
        self.owed_bytes = self.owed_bytes.saturating_sub(message.owed_bytes());
    }

    /// Decides whether the mailbox is congested, and counts it among those that are.
    fn judge(&mut self, congested: &AtomicUsize) {
        let owed_bytes = self.owed_bytes.saturating_add(self.waiting_bytes);
        let (bytes_max, owed_max) = match self.is_congested {
            true => (CONGESTED_BYTES / 2, CONGESTED_OWED_BYTES / 2),
            false => (CONGESTED_BYTES - 1, CONGESTED_OWED_BYTES - 1),
        };
        let is_congested = self.bytes > bytes_max || owed_bytes > owed_max;
        if is_congested != self.is_congested {
            cold_path();
            self.is_congested = is_congested;
            match is_congested {
                true => congested.fetch_add(1, Ordering::Relaxed),
                false => congested.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }
}

impl Mailbox {
    /// Leaves a message and wakes the worker. It costs a lock and, if the worker sleeps, a system call: not
    /// for the path of every request.
    pub(crate) fn send(&self, message: Message) {
        self.leave(message);
        self.waker.wake();
    }

    /// Ends the worker's sleep without a message: what it sleeps for may have changed.
    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    /// Whether there is anything in it.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    fn leave(&self, message: Message) {
        let mut inbox = self.inbox();
        inbox.bytes += message.bytes();
        inbox.owed_bytes = inbox.owed_bytes.saturating_add(message.owed_bytes());
        inbox.messages.push_back(message);
        self.has_mail.store(true, Ordering::Release);
        if !inbox.is_congested {
            inbox.judge(&self.congested);
        }
    }

    /// The worker whose box this is has delivered what it has taken out, and so many bytes of what it has
    /// delivered were not offered to the kernel yet: only then less is owed to clients. To be called after
    /// [`Mailboxes::take`], and from then on as long as it returns true.
    pub(crate) fn note_waiting(&self, bytes: usize, was_much: bool) -> bool {
        let is_much = bytes >= WAITING_BYTES_MIN;
        if is_much || was_much || self.congested.load(Ordering::Relaxed) > 0 {
            cold_path();
            let mut inbox = self.inbox();
            inbox.waiting_bytes = if is_much { bytes } else { 0 };
            inbox.judge(&self.congested);
        }
        is_much
    }

    /// Messages were taken out.
    fn note_taken(&self, inbox: &mut Inbox) {
        if inbox.messages.is_empty() {
            inbox.messages.shrink_to(MESSAGES_KEPT);
            self.has_mail.store(false, Ordering::Release);
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The mailboxes of all workers, by their indexes.
pub(crate) struct Mailboxes {
    boxes: Box<[Mailbox]>,
    /// Something was posted, and its worker has perhaps not been woken.
    is_posted: AtomicBool,
    congested: Arc<AtomicUsize>,
}

impl Deref for Mailboxes {
    type Target = [Mailbox];

    fn deref(&self) -> &[Mailbox] {
        &self.boxes
    }
}

impl Mailboxes {
    /// Empty ones. A waker ends the sleep of the worker whose box it is for.
    pub(crate) fn new(wakers: impl Iterator<Item = net::Waker>) -> Mailboxes {
        let congested: Arc<AtomicUsize> = Arc::default();
        let new = |waker| Mailbox {
            waker,
            inbox: Mutex::default(),
            has_mail: false.into(),
            congested: Arc::clone(&congested),
            connections: AtomicUsize::new(0),
        };
        let boxes = wakers.map(new).collect();
        Mailboxes { boxes, is_posted: false.into(), congested }
    }

    /// How many threads run commands: the workers, and that of scripts, which has no mailbox.
    pub(crate) fn executors(&self) -> usize {
        self.boxes.len() + 1
    }

    /// Leaves a message and wakes nobody: [`Mailboxes::announce`] has to follow when locks are let go.
    pub(crate) fn post(&self, worker: usize, message: Message) {
        self.boxes[worker].leave(message);
        self.is_posted.store(true, Ordering::Release);
    }

    /// Whether some worker's mailbox holds so much that nobody should add to it: a load.
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.congested.load(Ordering::Relaxed) > 0
    }

    /// Counts one more mailbox, or one less, as congested: for tests.
    pub(crate) fn pretend_congested(&self, is_congested: bool) {
        match is_congested {
            true => self.congested.fetch_add(1, Ordering::Relaxed),
            false => self.congested.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// Wakes the workers to whom something was posted, whoever did; each calls this after its batch. Its own
    /// mailbox a worker looks into anyway before it sleeps.
    #[inline]
    pub(crate) fn announce(&self, own: usize) {
        if self.is_posted.load(Ordering::Relaxed) {
            cold_path();
            self.announce_posted(own);
        }
    }

    #[inline(never)]
    fn announce_posted(&self, own: usize) {
        if self.is_posted.swap(false, Ordering::AcqRel) {
            let others = self.boxes.iter().enumerate().filter(|(worker, _)| *worker != own);
            others.filter(|(_, mailbox)| mailbox.has_mail()).for_each(|(_, mailbox)| mailbox.wake());
        }
    }

    /// Moves messages from this worker's mailbox to `into`, about a megabyte at a time. A mailbox that is
    /// congested stays so until [`Mailbox::note_waiting`] is called.
    pub(crate) fn take(&self, worker: usize, into: &mut Vec<Message>) {
        let mailbox = &self.boxes[worker];
        let mut inbox = mailbox.inbox();
        let before = inbox.bytes;
        while before - inbox.bytes < TAKEN_BYTES
            && let Some(message) = inbox.messages.pop_front()
        {
            inbox.discount(&message);
            into.push(message);
        }
        mailbox.note_taken(&mut inbox);
    }

    /// The same in the middle of a batch, and only of what clients are sent, in its order: a client that has
    /// waited is answered before it is told of what came later. The rest stays for the end of the batch, and
    /// so does what was told after users have changed, since who listens may not hear it any more.
    pub(crate) fn take_for_clients(&self, worker: usize, into: &mut Vec<Message>) {
        let mailbox = &self.boxes[worker];
        let mut inbox = mailbox.inbox();
        let is_change = |message: &Message| matches!(message, Message::UsersChanged);
        let end = inbox.messages.iter().position(is_change).unwrap_or(inbox.messages.len());
        let mut rest = inbox.messages.split_off(end);
        for message in std::mem::take(&mut inbox.messages) {
            if message.is_for_clients() {
                inbox.discount(&message);
                into.push(message);
            } else {
                inbox.messages.push_back(message);
            }
        }
        inbox.messages.append(&mut rest);
        mailbox.note_taken(&mut inbox);
    }
}

/// Room for so many messages is kept.
const MESSAGES_KEPT: usize = 1 << 10;

impl std::fmt::Debug for Mailboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mailboxes({})", self.boxes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::EngineKind;

    #[test]
    fn whatever_may_be_much_congests_a_mailbox_however_it_is_left_there() {
        let bytes: Arc<[u8]> = vec![b'x'; 1 << 20].into();
        let invalidation = || Invalidation { keys: Some(Arc::clone(&bytes)), clients: vec![1], target: 0 };
        let make = |kind| match kind {
            0 => Message::Feed(Arc::clone(&bytes), 1),
            1 => Message::Redirected(1, Arc::clone(&bytes)),
            _ => Message::Invalidated(invalidation()),
        };
        for kind in 0..3 {
            let engines: Vec<_> = (0..2).map(|_| net::open(EngineKind::Epoll).unwrap().engine).collect();
            let boxes = Mailboxes::new(engines.iter().map(|engine| engine.waker()));
            for posts in [true, false] {
                let mut count = 0;
                while !boxes.is_congested() {
                    match posts {
                        true => boxes.post(1, make(kind)),
                        false => boxes[1].send(make(kind)),
                    }
                    count += 1;
                    assert!(count < 100, "it is never congested");
                }
                let mut taken = Vec::new();
                while boxes[1].has_mail() {
                    boxes.take(1, &mut taken);
                }
                assert!(boxes.is_congested(), "it is not known whether they were delivered");
                assert_eq!(taken.len(), count);
                assert!(!boxes[1].note_waiting(0, false));
                assert!(!boxes.is_congested(), "all was taken");
            }
        }
    }

    #[test]
    fn lines_congest_a_mailbox_by_what_all_who_watch_get() {
        let engine = net::open(EngineKind::Epoll).unwrap().engine;
        let boxes = Mailboxes::new(std::iter::once(engine.waker()));
        let lines: Arc<[u8]> = vec![b'x'; 1 << 10].into();
        boxes[0].send(Message::Feed(Arc::clone(&lines), CONGESTED_OWED_BYTES >> 11));
        assert!(!boxes.is_congested());
        boxes[0].send(Message::Feed(lines, CONGESTED_OWED_BYTES >> 11));
        assert!(boxes.is_congested());
    }

    #[test]
    fn what_waits_for_the_kernel_congests_a_mailbox_until_half_of_it_has_left() {
        let engine = net::open(EngineKind::Epoll).unwrap().engine;
        let boxes = Mailboxes::new(std::iter::once(engine.waker()));
        let much = boxes[0].note_waiting(CONGESTED_OWED_BYTES - 1, false);
        assert!(much && !boxes.is_congested());
        boxes[0].note_waiting(CONGESTED_OWED_BYTES, much);
        assert!(boxes.is_congested());
        boxes[0].note_waiting(CONGESTED_OWED_BYTES / 2 + 1, much);
        assert!(boxes.is_congested());
        boxes[0].note_waiting(CONGESTED_OWED_BYTES / 2, much);
        assert!(!boxes.is_congested());
        boxes[0].note_waiting(CONGESTED_OWED_BYTES, much);
        assert!(!boxes[0].note_waiting(0, much) && !boxes.is_congested());
    }
}
