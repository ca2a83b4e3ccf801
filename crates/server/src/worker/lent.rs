//! Connections whose session is lent: a request of theirs takes long and runs on another thread
//! (`core/lent.rs`).
//!
//! ```text
//! Open --- a request takes long ---> Lent --- it has run ---> Writing --- all is written ---> Busy
//!                                     |\--- the client is killed ---> Closing --- it has run ---> gone
//!                                      \--- it would wait for its keys ---> Parked
//! ```
//!
//! What such a request has written there takes its place before anything else is done, also when the client
//! has gone: its request had begun before (`core/dispatch/writing.rs`).
//!
//! The reply is written piece by piece like any other that is long (`pieces`), for the worker must not be
//! held up by sending much at once either. What is pushed meanwhile comes behind it: a client hears that a
//! key has changed after it was told what the key had held.
//!
//! When a client has disconnected meanwhile, what it had sent before is run when the session is back, as
//! `disconnected` says.
use super::Worker;
use super::held::holds_any;
use super::table::Flow;
use crate::core::lent::{Lent, lend};
use crate::core::session::Session;
use crate::core::written_elsewhere::Committed;
use net::ConnId;
use resp::{Enough, Remainder, Reply};
use std::ops::ControlFlow;
use store::Garbage;

/// A reply that takes more and is not wanted any more is freed in the background.
const FREED_AT_ONCE_BYTES: u64 = 64 << 10;

impl Worker<'_> {
    /// Takes in the sessions that have come back.
    pub(super) fn take_back_all(&mut self) {
        while let Some(lent) = self.returned.next() {
            self.commit(lent);
        }
    }

    /// Tries again what could not be committed when it came back.
    pub(super) fn commit_late(&mut self) {
        for lent in std::mem::take(&mut self.uncommitted) {
            self.commit(lent);
        }
    }

    /// What a session's request has written elsewhere takes its place, and the session is back.
    fn commit(&mut self, mut lent: Box<Lent>) {
        match self.executor.commit(&mut lent) {
            Committed::Done => self.take_back(*lent),
            Committed::Later => {
                self.uncommitted.push(lent);
                self.is_retrying = true;
            }
            Committed::Partly => {
                self.uncommitted.push(lent);
                self.has_parts_left = true;
            }
            Committed::Anew if lent.is_for_scripts() => {
                self.scripts.lend(self.server, lent, &self.returned);
            }
            Committed::Anew => lend(self.server, lent, &self.returned, self.executor.meter()),
        }
    }

    /// A session comes back, with the reply to its request.
    fn take_back(&mut self, lent: Lent) {
        let Lent { session, request, mut reply, is_mute, done, ticks, .. } = lent;
        let id = session.conn;
        self.executor.note_return(&session, ticks, &done);
        if session.waiting.is_none() {
            self.executor.end_late_request(&session);
        }
        if self.table.at(id).is_none() {
            self.take_back_disconnected(session);
            return self.discard(reply);
        }
        if holds_any(self.server) {
            // What it has changed there, as what it would have changed here.
            self.hold(id, session.records_end);
        }
        let connection = self.table.at(id).expect("it was there just now");
        connection.session.take_back(session);
        connection.protocol = reply.protocol;
        let (Flow::Lent, Some(unfinished)) = (connection.flow, connection.unfinished.as_deref_mut()) else {
            self.end_its_wait(id);
            return self.discard(reply);
        };
        if let Some(waiting) = &mut connection.session.waiting {
            waiting.is_mute = is_mute;
            return self.wait_behind(id);
        }
        if let Err(error) = done {
            reply.error(error.text());
        }
        if is_mute {
            reply.cut(0);
        }
        unfinished.arrive(request, Box::new(Arrived::new(reply)), ticks);
        connection.flow = Flow::Writing;
        self.again.push_back(id);
    }

    /// A request has begun to wait for its keys (`park`). What was pushed meanwhile is sent before its reply.
    #[cold]
    fn wait_behind(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        connection.flow = Flow::Parked;
        if let Some(pushed) = connection.unfinished.take().map(|unfinished| unfinished.into_pushed()) {
            self.push(id, &pushed);
        }
        self.park(id);
    }

    /// Frees a reply that nobody wants, in the background if it is long.
    fn discard(&self, mut reply: Reply) {
        let rest = reply.take_remainder();
        let bytes = reply.out.capacity() as u64 + rest.as_ref().map_or(0, |rest| rest.burden_bytes());
        if bytes > FREED_AT_ONCE_BYTES {
            self.server.background.free(&mut vec![Garbage::of_bytes(bytes, (reply.out, rest))]);
        }
    }

    /// Frees a buffer that nobody wants, in the background if it is large.
    pub(super) fn free_bytes(&self, bytes: Vec<u8>) {
        if bytes.capacity() as u64 > FREED_AT_ONCE_BYTES {
            let garbage = Garbage::of_bytes(bytes.capacity() as u64, bytes);
            self.server.background.free(&mut vec![garbage]);
        }
    }

    /// The session of a connection that has gone comes back: nobody wants the reply.
    fn take_back_disconnected(&mut self, session: Session) {
        let Some(mut connection) = self.disconnected.take_awaiting(session.conn) else { return };
        connection.session.take_back(session);
        if connection.flow == Flow::Lent {
            let waits = connection.session.waiting.is_some();
            connection.flow = if waits { Flow::Parked } else { Flow::Busy };
        }
        self.keep_last_requests(connection);
    }
}

/// A reply that was written elsewhere, and what the command has left to be written behind it.
struct Arrived {
    text: Vec<u8>,
    /// How much of it is written.
    written: usize,
    rest: Option<Box<dyn Remainder>>,
    /// It has passed what the client may be owed.
    is_full: bool,
}

impl Arrived {
    fn new(mut reply: Reply) -> Arrived {
        let (is_full, rest) = (reply.is_full(), reply.take_remainder());
        Arrived { text: reply.out, written: 0, rest, is_full }
    }
}

impl Remainder for Arrived {
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()> {
        if self.is_full {
            reply.give_up();
            return ControlFlow::Break(());
        }
        let left = &self.text[self.written..];
        if left.is_empty()
            && let Some(rest) = &mut self.rest
        {
            return rest.write(reply, enough);
        }
        let piece = left.len().min(enough.bytes.saturating_sub(reply.out.len()).max(1));
        reply.append(&left[..piece]);
        self.written += piece;
        match piece == left.len() && self.rest.is_none() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Arrived>() + self.text.capacity() + self.rest.as_ref().map_or(0, |rest| rest.bytes())
    }

    fn burden_bytes(&self) -> u64 {
        self.rest.as_ref().map_or(0, |rest| rest.burden_bytes())
    }
}
