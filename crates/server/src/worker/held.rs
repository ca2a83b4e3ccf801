//! Replies to writes that wait for the disk (`appendfsync always`), or for the system where what was written
//! would not outlive the process otherwise (`state/tail.rs`), and clients that wait for the disk by
//! themselves (WAITAOF).
//!
//! A connection that has written is kept back by the engine: whatever is sent to it from then on leaves when
//! the disk has what it wrote, in its order. Its requests go on, and so do all other clients. What a reply
//! waits for is a number of the journal: `state/append_only.rs` knows how far the disk is, and wakes the
//! worker.
use super::Worker;
use crate::core::server::Server;
use crate::core::session::Waiting;
use crate::state::append_only::Phase;
use net::{ConnId, Engine};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{Ordering::SeqCst, fence};

/// See the file's opener.
#[derive(Default)]
pub(super) struct Held {
    /// Connections that are kept back, each until the disk has all records below a number. Those of a
    /// connection ascend, and the last one counts.
    replies: VecDeque<(u64, ConnId)>,
    last: BTreeMap<ConnId, u64>,
    /// The same for connections whose command waits.
    commands: BTreeSet<(u64, ConnId)>,
}

/// Those who wait for records below these numbers, or for fewer, wait no longer.
struct Reached {
    replies: u64,
    /// None: all of them wait.
    commands: Option<u64>,
    /// Else there is to be no append-only file, which is why nobody waits for it.
    has_file: bool,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        self.replies.is_empty() && self.commands.is_empty()
    }

    /// The command of this connection waits no longer.
    pub(super) fn remove(&mut self, id: ConnId, waiting: &Waiting) {
        if let Some(local) = &waiting.local {
            self.commands.remove(&(local.number, id));
        }
    }
}

impl Worker<'_> {
    /// This connection's client has changed something, by records below this number: if the disk is waited
    /// for, nothing is sent to it before. It never waits for less than it does: a session that was lent comes
    /// back with the number of before the turn in which it was.
    #[cold]
    pub(super) fn hold(&mut self, id: ConnId, number: u64) {
        let mut number = number;
        if let Some(connection) = self.table.at(id) {
            number = number.max(connection.session.records_end);
            connection.session.records_end = number;
        }
        let append = &self.server.append;
        if holds_any(self.server) && number > append.answerable() {
            self.engine.keep_back(id);
            if self.held.last.insert(id, number) != Some(number) {
                self.held.replies.push_back((number, id));
            }
            append.note_waiting(self.index, true);
        } else {
            // It may have been kept back early in this turn, and since then the disk got what it wrote, or
            // ceased to be waited for.
            self.engine.let_go(id);
        }
    }

    /// The command of this connection waits for the disk, if it is WAITAOF.
    pub(super) fn hold_command(&mut self, id: ConnId) {
        let waiting = self.table.at(id).and_then(|connection| connection.session.waiting.as_ref());
        if let Some(local) = waiting.and_then(|waiting| waiting.local.as_ref()) {
            self.held.commands.insert((local.number, id));
            self.server.append.note_waiting(self.index, true);
        }
    }

    /// Whether something that was kept may be let go.
    #[inline]
    pub(super) fn may_let_go(&self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let reached = self.reached();
        self.held.replies.front().is_some_and(|(number, _)| *number <= reached.replies)
            || self.held.commands.first().is_some_and(|(number, _)| Some(*number) <= reached.commands)
    }

    /// How far the disk is for those who wait for it.
    fn reached(&self) -> Reached {
        let append = &self.server.append;
        let synced = append.synced();
        let replies = if holds_any(self.server) { append.answerable() } else { u64::MAX };
        let has_file = append.is_wanted();
        let commands = match append.phase() {
            _ if !has_file => Some(u64::MAX),
            Phase::On => Some(synced),
            // Its snapshot is not there yet: then nothing is on the disk. Or it ends, and what is not
            // recorded any more is in the next one.
            Phase::Off | Phase::Beginning | Phase::Ending => None,
        };
        Reached { replies, commands, has_file }
    }

    /// Lets go what the disk has, or all replies if it is not waited for any more.
    pub(super) fn let_go(&mut self) {
        if !self.may_let_go() {
            return;
        }
        let reached = self.reached();
        while let Some((number, id)) = self.held.replies.front().copied()
            && number <= reached.replies
        {
            self.held.replies.pop_front();
            if self.held.last.get(&id) == Some(&number) {
                self.held.last.remove(&id);
                self.engine.let_go(id);
            }
        }
        while let Some((number, id)) = self.held.commands.first().copied()
            && Some(number) <= reached.commands
        {
            self.held.commands.pop_first();
            self.end_wait_for_disk(id, reached.has_file);
        }
        if self.held.is_empty() {
            self.server.append.note_waiting(self.index, false);
        }
    }
}

/// Whether replies to writes are kept: until the disk has these, or, where something is in no tail, until the
/// system has it.
#[inline]
pub(super) fn holds_any(server: &Server) -> bool {
    // The numbers of what was written were taken before: `state/tail.rs` has the other side.
    fence(SeqCst);
    server.append.holds_replies() || server.journal.tail.exposed() > server.append.answerable()
}

/// A connection is about to be sent replies before the end of its turn, in which the worker's records have
/// ended here and there: if it has written, they are kept back already. The turn's end says until when
/// ([`Worker::hold`]).
#[cold]
pub(super) fn keep_back_early(
    (engine, server): (&mut dyn Engine, &Server),
    id: ConnId,
    (before, now): (u64, u64),
) {
    if now != before && holds_any(server) {
        engine.keep_back(id);
    }
}
