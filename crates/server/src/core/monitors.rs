//! Who watches with MONITOR, and what they are shown: every command that any client runs.
//!
//! ```text
//! a call ends --- dispatch: is anybody watching? ---> a line in the worker's feed
//! a batch ends --- the feed, as a message ---> each worker that serves a watcher --- its watchers' sockets
//! ```
//!
//! Whether somebody watches is asked once for all of a connection's requests, not for each. While somebody
//! does, every call takes the way through dispatch that slow calls take anyway (`Executor::look`); otherwise
//! nothing is paid. Lines of one worker are in the order in which its commands ran; those of several workers
//! come batch by batch. The thread of scripts has a feed of its own, so a worker sends its lines before it
//! lends a session to that thread. A client that watches is shown its own calls between its replies.
//!
//! A thousand clients that watch get a thousand copies of each line. So lines that come to much for all of
//! them together end a turn, and more of them are sent before the batch ends. They count as so much in the
//! mailboxes: while that has not left, whoever would add to it waits (`mailbox`).
use super::address::{Side, append_address};
use super::mailbox::Message;
use super::modes::Modes;
use super::redact;
use super::registry::Row;
use super::server::Server;
use super::session::{ClientRecord, Session};
use crate::state::config::quoted;
use command::Flags;
use resp::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines of which all who watch have so many bytes together end a turn.
const TURN_BYTES: usize = 2 << 20;
/// So many are sent before the batch ends. Lines that are sent together leave in fewer and longer pieces.
const SENT_BYTES: usize = 8 << 20;

/// The clients that watch.
#[derive(Default)]
pub(crate) struct Monitors {
    /// How many, so that nobody takes the lock while there are none.
    count: AtomicUsize,
    /// (worker, client id)
    watchers: Mutex<BTreeSet<(usize, u64)>>,
}

impl Monitors {
    /// Whether anybody watches: a load.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count() > 0
    }

    /// How many watch.
    fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// This client watches from here on. Returns whether it did not before.
    pub(crate) fn add(&self, record: &ClientRecord) -> bool {
        let mut watchers = self.watchers();
        let is_new = watchers.insert((record.worker, record.id));
        self.count.store(watchers.len(), Relaxed);
        drop(watchers);
        record.details().is_monitor = true;
        is_new
    }

    /// This client does not watch any more, if it did.
    pub(crate) fn remove(&self, record: &ClientRecord) {
        if self.is_any() {
            let mut watchers = self.watchers();
            watchers.remove(&(record.worker, record.id));
            self.count.store(watchers.len(), Relaxed);
            drop(watchers);
            record.details().is_monitor = false;
        }
    }

    /// The ids of one worker's clients that watch.
    pub(crate) fn of_worker(&self, worker: usize) -> Vec<u64> {
        self.watchers().range((worker, 0)..=(worker, u64::MAX)).map(|(_, client)| *client).collect()
    }

    fn watchers(&self) -> MutexGuard<'_, BTreeSet<(usize, u64)>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines that one worker's commands have made and that were not sent yet.
#[derive(Default)]
pub(crate) struct Feed {
    lines: Vec<u8>,
    /// How long they were when they ended a turn.
    ended: usize,
}

impl Feed {
    /// Appends a line for a call. Commands that administer the server are shown to nobody, nor are secrets.
    pub(crate) fn add(&mut self, row: &Row, args: &Args<'_>, session: &Session, time_us: i64) {
        if !(row.flags.has(Flags::ADMIN) || row.flags.has(Flags::SKIP_MONITOR)) {
            self.add_line(row, args, session, time_us);
        }
    }

    /// Appends a line for a request that runs a script: before it runs, because its commands follow.
    pub(crate) fn add_script(&mut self, row: &Row, args: &Args<'_>, session: &Session, time_us: i64) {
        self.add_line(row, args, session, time_us);
    }

    fn add_line(&mut self, row: &Row, args: &Args<'_>, session: &Session, time_us: i64) {
        let (seconds, microseconds) = (time_us / 1_000_000, time_us % 1_000_000);
        // A vector takes whatever is written.
        let _ = write!(self.lines, "+{seconds}.{microseconds:06} [{} ", session.db);
        match session.modes.has(Modes::SCRIPT) {
            true => self.lines.extend_from_slice(b"lua"),
            false => append_source(&session.record.peer, &mut self.lines),
        }
        self.lines.push(b']');
        for arg in redact::public(row, args) {
            self.lines.push(b' ');
            self.lines.extend_from_slice(&quoted(arg));
        }
        self.lines.extend_from_slice(b"\r\n");
    }

    /// How long the lines are that wait to be sent.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Takes back the lines beyond this length: what they show is undone.
    pub(crate) fn cut(&mut self, len: usize) {
        self.lines.truncate(len);
        self.ended = self.ended.min(len);
    }

    /// Whether there are no lines to send.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Whether what has come since lines last ended a turn is enough to end another.
    pub(crate) fn ends_turn(&mut self, monitors: &Monitors) -> bool {
        let ends = (self.lines.len() - self.ended).saturating_mul(monitors.count()) >= TURN_BYTES;
        if ends {
            self.ended = self.lines.len();
        }
        ends
    }

    /// Whether they are to be sent before the batch ends.
    pub(crate) fn is_much(&self, monitors: &Monitors) -> bool {
        self.lines.len().saturating_mul(monitors.count()) >= SENT_BYTES
    }

    /// Sends the lines to the workers of all who watch, and begins anew. One copy of them is shared by all.
    #[cold]
    pub(crate) fn send(&mut self, server: &Server) {
        let lines: Arc<[u8]> = std::mem::take(self).lines.into();
        let mut watchers: BTreeMap<usize, usize> = BTreeMap::new();
        for (worker, _) in server.monitors.watchers().iter() {
            *watchers.entry(*worker).or_default() += 1;
        }
        for (worker, count) in watchers {
            server.mailboxes[worker].send(Message::Feed(Arc::clone(&lines), count));
        }
    }
}

/// Appends the client as a line shows it: its address, or the path of the Unix socket.
fn append_source(peer: &net::Peer, out: &mut Vec<u8>) {
    match peer {
        net::Peer::Tcp { .. } => append_address(peer, Side::Theirs, out),
        net::Peer::Unix { path } => {
            let _ = write!(out, "unix:{}", path.display());
        }
    }
}
