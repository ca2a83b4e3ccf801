//! The last requests of a client that is gone: those that it had sent when its connection broke.
//!
//! ```text
//! served --- its connection has gone ---> on the list --- all has run, or none of it may ---> forgotten
//!                                          ^      \
//!                                           \------ its turn is over, or memory has to be freed first
//! ```
//!
//! A client may send requests and close its socket without reading the answers. Redis runs all that one read
//! brings, up to 16 KB, before it can notice. Here a connection that has sent much takes turns with others,
//! so it may be gone before all of that has run. Then the rest of it goes on taking turns. Commands that only
//! read are left out, because nobody gets their replies; in a transaction they run, because one that is
//! refused makes EXEC refuse all. What has arrived beyond 16 KB is dropped, as in Redis. So are all requests
//! of a client that the server closed, or whose request waits for something else than memory. Until its last
//! request has run the connection counts as a client.
use super::batch::{Rest, Turn};
use super::table::{Connection, Flow};
use super::{Parsed, Worker, limits};
use crate::core::dispatch::Request;
use crate::core::lent::{KeptRequest, Lent};
use crate::core::modes::Modes;
use crate::core::session::After;
use command::Flags;
use net::ConnId;
use resp::{Parser, Reply};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// How many bytes Redis reads from a client at a time.
const READ_BYTES: usize = 16 << 10;
/// How many disconnected clients have a turn before connected ones are served.
const TURNS_IN_A_ROW: usize = 4;

/// Connections that are gone, each with the requests that it had sent. The first has the next turn.
#[derive(Default)]
pub(super) struct Disconnected {
    turns: VecDeque<Box<Connection>>,
    /// Those whose session is lent (`lent`). Its return ends what is known of them, or is followed by their
    /// turn.
    lent: BTreeMap<ConnId, Box<Connection>>,
}

impl Disconnected {
    /// Whether none of them wants a turn.
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Keeps a connection until its session comes back.
    pub(super) fn await_return(&mut self, connection: Box<Connection>) {
        self.lent.insert(connection.id, connection);
    }

    /// The connection whose session has come back.
    pub(super) fn take_awaiting(&mut self, id: ConnId) -> Option<Box<Connection>> {
        self.lent.remove(&id)
    }
}

/// Whether requests are left to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Later,
    /// When the session is back.
    Lent,
    Done,
}

impl Worker<'_> {
    /// Takes over a connection that has gone and is in no batch.
    pub(super) fn keep_last_requests(&mut self, mut connection: Box<Connection>) {
        let is_served = !matches!(connection.flow, Flow::Parked | Flow::Closing);
        if !is_served || connection.input.is_empty() {
            return self.deregister(&mut connection);
        }
        let all = connection.input.truncate(READ_BYTES);
        self.free_bytes(all);
        // The old parser may have read beyond that, in a request that was not complete.
        connection.parser = Parser::new();
        self.disconnected.turns.push_back(connection);
    }

    /// Gives some disconnected clients a turn, between two batches.
    pub(super) fn run_last_requests(&mut self) {
        for _ in 0..self.disconnected.turns.len().min(TURNS_IN_A_ROW) {
            let Some(mut connection) = self.disconnected.turns.pop_front() else { return };
            match self.run_disconnected(&mut connection) {
                Progress::Later => self.disconnected.turns.push_back(connection),
                Progress::Lent => self.disconnected.await_return(connection),
                Progress::Done => self.deregister(&mut connection),
            }
        }
    }

    /// One turn: its requests run until its time is over, or until none is left that may.
    #[cold]
    fn run_disconnected(&mut self, connection: &mut Connection) -> Progress {
        if connection.session.record.is_killed.load(Acquire) {
            return Progress::Done;
        }
        debug_assert!(self.batch.turns.is_empty(), "its room is free");
        let mut turn = Turn::of_input(connection.id);
        self.executor.counters().serving.store(connection.session.record.id, Relaxed);
        self.executor.keep_sessions(true);
        self.executor.begin();
        self.executor.start_turn(&mut connection.session, connection.input.len());
        let progress = loop {
            let limits = limits(&self.executor, connection);
            self.batch.parse(&mut turn, connection, self.server, &limits);
            let (executed, progress) = self.execute_disconnected(&turn, connection);
            self.batch.advance(&mut turn, executed);
            match (progress, &turn.rest) {
                (Some(progress), _) => break progress,
                (None, Rest::Unparsed) if self.executor.is_turn_over() => break Progress::Later,
                (None, Rest::Unparsed) => {}
                (None, Rest::Unfinished { .. } | Rest::Wrong(_)) => break Progress::Done,
            }
        };
        self.executor.end();
        self.executor.keep_sessions(false);
        self.batch.keep_requests(&turn, connection);
        self.batch.clear();
        self.reply.cut(0);
        self.reply.bound(usize::MAX);
        progress
    }

    /// Runs what is parsed and does more than read. Returns how many requests that took, and why not all of
    /// them have run.
    fn execute_disconnected(
        &mut self,
        turn: &Turn,
        connection: &mut Connection,
    ) -> (usize, Option<Progress>) {
        let Worker { batch, executor, reply, is_retrying, server, scripts, returned, .. } = self;
        reply.protocol = connection.protocol;
        // Nobody receives the replies, so they are not written.
        reply.bound(0);
        let bytes = batch.bytes(turn, &connection.input);
        let mut first_span = turn.first_span;
        for (index, request) in batch.requests[turn.requests.clone()].iter().enumerate() {
            let Parsed { row, hash, framing, spans_end, .. } = *request;
            let request = Request { row, hash, framing, args: batch.args(first_span..spans_end, bytes) };
            first_span = spans_end;
            let only_reads = row.is_none_or(|row| row.flags.has(Flags::READONLY));
            if only_reads && !connection.session.modes.has(Modes::TRANSACTION) {
                continue;
            }
            if executor.must_wait(&connection.session, &request) {
                return (index, Some(Progress::Done));
            }
            executor.execute(&mut connection.session, &request, reply);
            reply.cut(0);
            connection.protocol = reply.protocol;
            match std::mem::replace(&mut connection.session.after, After::Next) {
                After::Next => {}
                After::Tell | After::Yield => return (index + 1, Some(Progress::Later)),
                After::Retry => {
                    *is_retrying = true;
                    return (index, Some(Progress::Later));
                }
                After::Elsewhere => {
                    // A script: nothing else is done elsewhere for it.
                    connection.session.after = After::Elsewhere;
                    let (mut reply, session) = (Reply::new(reply.protocol), connection.session.lend());
                    reply.bound(0);
                    let request = KeptRequest::of(&request.args);
                    let lent = Lent::new(executor.take_errand(), session, request, reply);
                    scripts.lend(server, Box::new(lent), returned);
                    connection.flow = Flow::Lent;
                    return (index + 1, Some(Progress::Lent));
                }
                After::Wait | After::Close | After::Abort | After::Overflow => {
                    return (index + 1, Some(Progress::Done));
                }
            }
        }
        (turn.requests.len(), None)
    }
}
