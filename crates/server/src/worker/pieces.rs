//! Replies that are written piece by piece: what a command has left to be written (`resp::Remainder`) is
//! written as the client reads.
//!
//! ```text
//! Open --- a command leaves a remainder ---> Writing --- more unsent than its allowance ---> Paused
//!   ^                                        |  ^                                               |
//!   \---- all is written, what follows runs -/  \------------------ all has left ---------------/
//! ```
//!
//! A connection that is being written to has turns like one with many requests: of about a millisecond, or of
//! one piece. Nothing else of its requests runs and nothing is received. So a reply of any length takes one
//! piece of memory beyond the allowance, and nobody waits for it longer than for anything else. The allowance
//! does not grow, whatever the client does. But a client may want to send all of its requests before it reads
//! the first reply. So while a client is paused and reads nothing, its further requests are received and
//! kept, up to `client-query-buffer-limit`.
use super::script_thread::ScriptThread;
use super::slow_readers::{ALLOWANCE_BYTES, count_sent};
use super::table::Flow;
use super::{Worker, note};
use crate::core::dispatch::Executor;
use crate::core::lent::{KeptRequest, Lent, Returned, lend};
use crate::core::server::Server;
use crate::core::session::{ClientRecord, Session};
use crate::state::counters::Counters;
use net::{ConnId, Engine};
use resp::{Args, Enough, Remainder, Reply};
use std::hint::cold_path;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use store::Garbage;

/// Elements that are written between two looks at the time.
const ELEMENTS_AT_ONCE: u64 = 64;
/// Bytes that are written between two sends.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// A remainder that takes more than this by itself is freed in the background, as is one whose value nobody
/// else has any more.
const FREED_AT_ONCE_BYTES: usize = 64 << 10;

/// A reply that is being written piece by piece, and the request that it answers.
pub(super) struct Unfinished {
    remainder: Box<dyn Remainder>,
    /// For the logs.
    request: KeptRequest,
    /// What the command itself took, and what it and the pieces have taken by now.
    first_ticks: u64,
    ticks: u64,
    reply_bytes: usize,
    /// Some of it has been sent from where it lay.
    was_ready: bool,
    /// Bytes of memory that only this reply keeps of the value that it reads from, when that was last looked
    /// at.
    held_bytes: usize,
    /// What was pushed meanwhile (`push`): it is sent behind the reply.
    pushed: Vec<u8>,
}

impl Unfinished {
    fn new(
        remainder: Box<dyn Remainder>,
        request: KeptRequest,
        ticks: u64,
        reply_bytes: usize,
    ) -> Unfinished {
        Unfinished {
            remainder,
            request,
            first_ticks: ticks,
            ticks,
            reply_bytes,
            was_ready: false,
            held_bytes: 0,
            pushed: Vec::new(),
        }
    }

    /// A reply that is written elsewhere; its command has taken so many ticks here.
    pub(super) fn to_come(ticks: u64) -> Unfinished {
        Unfinished::new(Box::new(Nothing), KeptRequest::default(), ticks, 0)
    }

    /// That reply has come; it has taken so many ticks there.
    pub(super) fn arrive(&mut self, request: KeptRequest, reply: Box<dyn Remainder>, ticks: u64) {
        (self.request, self.remainder) = (request, reply);
        self.ticks += ticks;
    }

    /// What was pushed meanwhile.
    pub(super) fn into_pushed(self) -> Vec<u8> {
        self.pushed
    }

    /// Keeps a push, which is sent after the reply.
    pub(super) fn push_behind(&mut self, bytes: &[u8]) {
        self.pushed.extend_from_slice(bytes);
    }

    /// Looks how much of the value nobody else has any more, because its key was deleted or written
    /// meanwhile. That takes some hundred cache misses, so it is not done for every piece.
    pub(super) fn weigh(&mut self) {
        self.held_bytes = self.remainder.burden_bytes() as usize;
    }

    /// What waits to be sent behind the reply, and what is kept in memory for it alone, in bytes.
    pub(super) fn owed_bytes(&self) -> usize {
        self.pushed.len() + self.held_bytes + self.remainder.bytes()
    }

    /// Bytes of memory that it takes, without the value that it reads from as long as its key still has it.
    pub(super) fn bytes(&self) -> usize {
        let own_bytes = size_of::<Unfinished>() + self.request.room_bytes();
        own_bytes + self.remainder.bytes() + self.held_bytes + self.pushed.capacity()
    }
}

/// Of a reply that is yet to come.
struct Nothing;

impl Remainder for Nothing {
    fn write(&mut self, _: &mut Reply, _: Enough) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn bytes(&self) -> usize {
        0
    }

    fn burden_bytes(&self) -> u64 {
        0
    }
}

/// Takes up what the command that ran last has left to be written. Returns whether it has left anything.
pub(super) fn begin(
    (unfinished, flow): (&mut Option<Box<Unfinished>>, &mut Flow),
    reply: &mut Reply,
    args: Args<'_>,
    (ticks, reply_bytes): (u64, usize),
) -> bool {
    let Some(remainder) = reply.take_remainder() else { return false };
    *unfinished = Some(Box::new(Unfinished::new(remainder, KeptRequest::of(&args), ticks, reply_bytes)));
    *flow = Flow::Writing;
    true
}

/// Lends the session of a connection, whose request has taken so many ticks here.
pub(super) fn begin_elsewhere(
    (server, executor, (scripts, returned)): (&Server, &mut Executor<'_>, (&Arc<ScriptThread>, &Returned)),
    (session, unfinished, flow): (&mut Session, &mut Option<Box<Unfinished>>, &mut Flow),
    (before, request, ticks): (&Reply, KeptRequest, u64),
) {
    let errand = executor.take_errand();
    let mut reply = Reply::new(before.protocol);
    // What stands before it is owed to the client too.
    reply.bound(before.spare_bytes());
    *flow = Flow::Lent;
    *unfinished = Some(Box::new(Unfinished::to_come(ticks)));
    let lent = Lent::new(errand, session.lend(), request, reply);
    match lent.is_for_scripts() {
        true => scripts.lend(server, Box::new(lent), returned),
        false => lend(server, Box::new(lent), returned, executor.meter()),
    }
}

/// So many bytes are sent in a turn from where they lie.
const SENT_BYTES_MAX: usize = 1 << 20;
/// The kernel takes no more of these for now: so many are queued, so that it tells when it does.
const QUEUED_BYTES: usize = 16 << 10;

/// Sends what is in the reply, and behind it what the rest has ready, as far as the kernel takes it at once.
/// The reply is left with what it has not taken. Returns how many bytes have been sent, and `Break` when all
/// of the rest has been.
fn send_ready(
    (engine, id): (&mut dyn Engine, ConnId),
    (reply, unfinished): (&mut Reply, &mut Unfinished),
    (record, counters): (&ClientRecord, &Counters),
) -> (usize, ControlFlow<()>) {
    let [first, last] = unfinished.remainder.ready();
    if first.is_empty() {
        return (0, ControlFlow::Continue(()));
    }
    let now = &first[..first.len().min(SENT_BYTES_MAX)];
    let last = if now.len() == first.len() { last } else { &[] };
    let sent = engine.send_from(id, &[&reply.out, now, last].map(IoSlice::new));
    if sent > 0 {
        count_sent(record, counters, sent);
    }
    let of_rest = sent.saturating_sub(reply.out.len());
    reply.out.drain(..sent - of_rest);
    unfinished.reply_bytes += of_rest;
    unfinished.was_ready |= of_rest > 0;
    (sent, unfinished.remainder.skip(of_rest))
}

impl Worker<'_> {
    /// A reply has a rest. What is ready of it leaves with the reply; so does what would be its only piece.
    pub(super) fn send_first_piece(&mut self, id: ConnId) {
        let Worker { table, executor, engine, reply, .. } = self;
        let Some(connection) = table.at(id) else { return };
        let Some(unfinished) = connection.unfinished.as_deref_mut() else { return };
        let ready_bytes = unfinished.remainder.ready()[0].len();
        if ready_bytes == 0 {
            return;
        }
        let whose = (&*connection.session.record, executor.counters());
        let (sent, mut flow) = send_ready((&mut **engine, id), (reply, unfinished), whose);
        if sent == 0 && reply.out.len() + ready_bytes <= PIECE_BYTES_MAX {
            let before = reply.out.len();
            flow = unfinished.remainder.write(reply, Enough::MOST);
            unfinished.reply_bytes += reply.out.len() - before;
        }
        if flow.is_break() {
            self.end_pieces(id);
        }
    }

    /// A connection's turn to be written to.
    #[cold]
    pub(super) fn write_more(&mut self, id: ConnId) {
        let Worker { table, executor, engine, reply, server, .. } = self;
        let Some(connection) = table.at(id) else { return };
        let Some(unfinished) = connection.unfinished.as_deref_mut() else { return };
        if connection.session.record.is_killed.load(Acquire) {
            return;
        }
        executor.start_turn(&mut connection.session, unfinished.request.wire_bytes());
        let record = &connection.session.record;
        let (bound, unsent_bytes) =
            (executor.output_bound().least(server, record).0, engine.unsent_bytes(id));
        let allowance_bytes = if unfinished.was_ready { 0 } else { allowance_bytes(bound) };
        if unsent_bytes > allowance_bytes {
            return self.pause(id, unsent_bytes);
        }
        executor.counters().serving.store(record.id, Relaxed);
        reply.protocol = connection.protocol;
        reply.bound((bound as usize).saturating_sub(unsent_bytes));
        let mut enough = Enough { bytes: piece_bytes(bound), elements: ELEMENTS_AT_ONCE };
        let mut ticks = 0;
        let whose = (&**record, executor.counters());
        let (sent, mut flow) = send_ready((&mut **engine, id), (reply, unfinished), whose);
        if unfinished.was_ready {
            enough.bytes = enough.bytes.min(QUEUED_BYTES);
        }
        while flow.is_continue() && sent < SENT_BYTES_MAX {
            flow = unfinished.remainder.write(reply, enough);
            ticks += executor.lap();
            if reply.out.len() >= enough.bytes || executor.is_turn_over() {
                break;
            }
        }
        unfinished.ticks += ticks;
        unfinished.reply_bytes += reply.out.len();
        executor.count_time(record.last_row.load(Relaxed), ticks);
        if flow.is_break() && !reply.is_full() {
            self.end_pieces(id);
            // What it was owed for the reply is noted.
            self.look_later(id);
        }
        if self.reply.is_full() {
            return self.close_for_its_reply(id);
        }
        let Some(connection) = self.table.at(id) else { return };
        note(connection, 0, self.executor.steady(), self.executor.counters());
        self.send(id);
        self.again.push_back(id);
    }

    /// All of the reply is written. What follows it runs at the next turn.
    fn end_pieces(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        let Some(unfinished) = connection.unfinished.take() else { return };
        connection.flow = Flow::Busy;
        let args = unfinished.request.args();
        let ticks = (unfinished.first_ticks, unfinished.ticks);
        self.executor.look_back(&connection.session, ticks, (args, unfinished.reply_bytes));
        self.reply.append(&unfinished.pushed);
        free(self.server, unfinished);
    }

    /// Gives up what has not been written: the connection is closed, or has gone.
    pub(super) fn give_up_pieces(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id)
            && let Some(unfinished) = connection.unfinished.take()
        {
            cold_path();
            free(self.server, unfinished);
        }
    }
}

/// How many bytes may be unsent before no more is written: few enough that a piece still fits below the
/// bound.
fn allowance_bytes(bound: u64) -> usize {
    ALLOWANCE_BYTES.min(bound as usize / 2)
}

/// How many bytes a piece may have under this bound.
fn piece_bytes(bound: u64) -> usize {
    PIECE_BYTES_MAX.min(bound as usize / 4)
}

/// Frees what a reply was written from. The value that it was read from may be large and nobody else's any
/// more, or its snapshots may be many, or the request long: then the background thread frees them.
fn free(server: &Server, unfinished: Box<Unfinished>) {
    let own_bytes = unfinished.remainder.bytes() + unfinished.request.room_bytes();
    let bytes = unfinished.remainder.burden_bytes();
    if bytes > 0 || own_bytes > FREED_AT_ONCE_BYTES {
        let bytes = bytes + own_bytes as u64;
        server.background.free(&mut vec![Garbage::of_bytes(bytes, unfinished)]);
    }
}
