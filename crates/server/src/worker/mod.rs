//! One worker thread: its event loop, its connections, its batches.
//!
//! ```text
//! poll -> receive from every connection that has something -> parse all -> prefetch all keys
//!      -> [gate] execute request by request -> one send for each connection -> messages, timers -> poll
//! ```
//!
//! Requests of all connections that one poll reported form one batch, so that the memory their keys lie in is
//! asked for before the first of them runs. So even clients that wait for each reply profit, if there are
//! many of them. On the path of every request, with `batch` and `dispatch`.
//!
//! The files of this folder by the part of a connection's life that they hold: `accept` lets it in and closes
//! it, `table` has its state, `batch` receives and parses, `input` holds what has arrived and not run,
//! `pieces` writes long replies, `push` and `invalidate` send what a client did not ask for, `slow_readers`
//! and `output` deal with clients that do not read, `park`, `block` and `receive_while_waiting` with requests
//! that have to wait, `held` with replies that wait for the disk, `lent` with requests that run on other
//! threads, `rounds` with who waits for whom, `disconnected` with the requests that a client had sent before
//! its connection broke. Beside requests, `cron` does what is due ten times a second, with `peaks`,
//! `spare_processor` and `client_eviction`.
mod accept;
mod batch;
mod block;
mod client_eviction;
mod cron;
mod disconnected;
mod held;
mod input;
mod invalidate;
mod lent;
mod output;
mod park;
mod peaks;
mod pieces;
mod push;
mod receive_while_waiting;
mod rounds;
mod script_thread;
mod slow_readers;
mod spare_processor;
mod table;

use crate::core::client_line::line_of;
use crate::core::dispatch::{Executor, Look, Request};
use crate::core::error::PROTOCOL_ERROR;
use crate::core::lent::{Lent, Returned};
use crate::core::mailbox::{Mailbox, Message};
use crate::core::modes::Modes;
use crate::core::server::Server;
use crate::core::session::{After, ClientRecord, QueryBuffer, Session};
use crate::core::subscriptions::Subscriptions;
use crate::state::clock::{Clock, Stopwatch};
use crate::state::counters::Counters;
use base::Millis;
use batch::{Batch, ENTRY_AHEAD, LEAF_AHEAD, MOVED_BYTES, Parsed, Rest, Turn};
use block::Waits;
use cron::Cron;
use disconnected::Disconnected;
use held::Held;
use net::{CloseWhen, ConnId, Engine, Event, Tick, Wait};
use park::Parked;
use pieces::Unfinished;
use resp::{Args, Limits, ProtocolError, Reply};
use rounds::Round;
pub(crate) use script_thread::ScriptThread;
use std::collections::{BTreeMap, VecDeque};
use std::hint::cold_path;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;
use store::{Arrival, Garbage};
use table::{Connection, Flow, Table};

/// Buffers of a batch that take more than this are given back as soon as it has run; smaller ones ten times a
/// second.
const ROOM_BYTES_KEPT: usize = 4 << 20;
/// A reply buffer that has grown beyond this is not kept.
const REPLY_BYTES_KEPT: usize = 1 << 20;
/// How long a worker sleeps before a command that waits for memory is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(1);
/// How long clients are given to read their last replies when the server stops.
const WIND_UP: Duration = Duration::from_millis(1000);

/// What a client that has gone still listens to.
type Leaving = (Arc<ClientRecord>, ConnId, Box<Subscriptions>);

/// When a client is sent what it was told, in the middle of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tells {
    Nothing,
    /// Before a request: [`push::is_due_before`].
    Before,
    /// Behind a request that has told it: [`After::Tell`].
    Behind,
}

/// One worker. It stays on its thread, so nothing in it needs a lock; what others may see is in `server`.
pub(crate) struct Worker<'s> {
    server: &'s Server,
    index: usize,
    /// Where other threads leave messages for it. It looks there once a turn and before each batch.
    mailbox: &'s Mailbox,
    /// epoll or io_uring: the sockets.
    engine: Box<dyn Engine>,
    /// The connections, by the index that the engine gave them.
    table: Table,
    executor: Executor<'s>,
    batch: Batch<'s>,
    /// Connections that can go on without receiving anything: whole requests of theirs wait, or the rest of a
    /// reply.
    again: VecDeque<ConnId>,
    round: Round,
    /// Connections to which much was sent since the last poll.
    sent: Vec<ConnId>,
    /// Connections that CLIENT PAUSE holds back.
    parked: Parked,
    /// Connections whose command waits, by when its time is over.
    waits: Waits,
    /// Connections that are gone and have sent requests that are still to run.
    disconnected: Disconnected,
    /// Connections to which nothing is sent before the disk has what they wrote.
    held: Held,
    /// Takes requests that run scripts, with their sessions.
    scripts: Arc<ScriptThread>,
    /// Sessions that were lent come back through it.
    returned: Returned,
    /// Those that have come back, and whose request has written what cannot be put in its place yet.
    #[allow(clippy::vec_box, reason = "they come in boxes, and go on in them")]
    uncommitted: Vec<Box<Lent>>,
    /// One of these runs in parts, and goes on at the next turn.
    has_parts_left: bool,
    /// Replies to the connection that is served; empty between two of them.
    reply: Reply,
    /// What is pushed to a connection; empty between two of them.
    push_room: Vec<u8>,
    /// Messages of other threads; empty but while they are read.
    mail: Vec<Message>,
    /// The users for which it was last looked who listens to what he may not.
    listeners_seen: u64,
    /// Much of what was delivered waited for its turn to be sent when that was looked at last.
    has_much_waiting: bool,
    /// Subscriptions of clients that have gone, to be ended.
    leaving: Vec<Leaving>,
    cron: Cron,
    /// When the next key expires.
    expire_due: Option<Millis>,
    garbage: Vec<Garbage>,
    /// Memory is over its limit, and there are keys to evict: the worker does not sleep.
    is_relieving: bool,
    /// Some command waits for memory that is being freed: the worker sleeps for a moment only.
    is_retrying: bool,
    /// Whether the turn of a connection is interrupted to send its client what it was told.
    tells: Tells,
    /// Connections by client id, for messages.
    ids: BTreeMap<u64, ConnId>,
    clock: &'s Clock,
}

impl<'s> Worker<'s> {
    /// A worker without connections; the engine has its listeners already.
    pub(crate) fn new(
        server: &'s Server,
        index: usize,
        engine: Box<dyn Engine>,
        scripts: Arc<ScriptThread>,
    ) -> Worker<'s> {
        let executor = Executor::new(server, index);
        Worker {
            server,
            index,
            mailbox: &server.mailboxes[index],
            engine,
            table: Table::default(),
            batch: Batch::default(),
            again: VecDeque::new(),
            round: Round::new(executor.meter()),
            executor,
            sent: Vec::new(),
            parked: Parked::default(),
            waits: Waits::default(),
            disconnected: Disconnected::default(),
            held: Held::default(),
            scripts,
            returned: Returned::default(),
            uncommitted: Vec::new(),
            has_parts_left: false,
            reply: Reply::new(resp::Protocol::Resp2),
            push_room: Vec::new(),
            mail: Vec::new(),
            listeners_seen: 0,
            has_much_waiting: false,
            leaving: Vec::new(),
            cron: Cron::default(),
            expire_due: None,
            garbage: Vec::new(),
            is_relieving: false,
            is_retrying: false,
            tells: Tells::Nothing,
            ids: BTreeMap::new(),
            clock: &server.clock,
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Vec::new();
        self.executor.set_now(self.clock.moment(self.executor.moment()));
        while !self.server.is_stopping() {
            let wait = self.wait();
            if let Err(error) = self.engine.poll(wait, &mut events) {
                self.server.fail(&format!("worker {} cannot wait for events: {error}", self.index));
                return;
            }
            self.executor.set_now(self.clock.moment(self.executor.moment()));
            self.round.begin(self.executor.meter().read());
            self.handle(&mut events);
            self.serve();
            self.tend();
            self.count_turn(self.round.start);
        }
        self.wind_up(events);
    }

    /// INFO's figures of the event loop.
    fn count_turn(&self, start: Tick) {
        let counters = self.executor.counters();
        counters.turns.add(1);
        counters.turn_ticks.add(self.executor.meter().read().since(start));
        counters.timed_waits.store(self.waits.count(), Relaxed);
    }

    /// How long to sleep. This is computed from the time at which the turn began, so what has become due
    /// during the turn ends the sleep at once.
    fn wait(&mut self) -> Wait {
        if self.mailbox.has_mail() || !self.leaving.is_empty() || self.may_let_go() {
            return Wait::Not;
        }
        if std::mem::take(&mut self.has_parts_left) {
            return Wait::Not;
        }
        if std::mem::take(&mut self.is_retrying) {
            // The freeing thread may need this processor.
            return Wait::at_most(RETRY_PAUSE);
        }
        if !self.again.is_empty() || !self.disconnected.is_empty() || self.is_relieving {
            return Wait::Not;
        }
        self.clock.sleep_until(self.executor.now(), self.next_due())
    }

    /// Handles what was left from before a poll, then what the poll has brought.
    fn handle(&mut self, events: &mut Vec<Event>) {
        if self.has_much_waiting {
            cold_path();
            self.note_waiting();
        }
        self.look_at_sent();
        self.let_go();
        self.executor.leave_former_tail();
        if !self.uncommitted.is_empty() {
            cold_path();
            self.commit_late();
        }
        self.relieve_clients();
        self.take_up_some();
        self.serve();
        self.run_last_requests();
        for event in &*events {
            if let Event::Readable(id) = event {
                self.table.prefetch(*id);
            }
        }
        for event in events.drain(..) {
            match event {
                Event::Readable(id) => self.receive(id),
                Event::Accepted(accepted) => self.accept(accepted),
                Event::Refused(error) => self.note_refused(&error),
                Event::Drained(id) => self.drained(id),
                Event::Unsecured(id, error) => self.note_unsecured(id, &error),
                Event::Gone(id) => self.forget(id),
                Event::Woken => self.read_messages(),
            }
        }
    }

    /// `maxmemory-clients`: looked at after a poll, when what could be sent was sent.
    fn relieve_clients(&self) {
        let config = self.executor.config();
        let limit_bytes = config.maxmemory_clients.limit_for_clients(config.maxmemory_bytes);
        if limit_bytes != 0 {
            client_eviction::relieve(self.server, limit_bytes, self.executor.steady().0);
        }
    }

    /// Does what other threads have asked for.
    fn read_messages(&mut self) {
        let mut mail = std::mem::take(&mut self.mail);
        self.server.mailboxes.take(self.index, &mut mail);
        self.heed(mail);
    }

    /// Does what these messages say.
    fn heed(&mut self, mut mail: Vec<Message>) {
        let mut messages = mail.drain(..).peekable();
        while let Some(message) = messages.next() {
            match message {
                Message::Adopt(accepted) => self.adopt(accepted),
                Message::Feed(lines, _) => self.feed(&lines),
                Message::Listen => self.listen(),
                Message::UsersChanged => self.look_at_listeners(),
                Message::OutputLimitsChanged => self.look_at_owed(),
                Message::Killed(client) => self.close_killed(client),
                Message::Served(client, reply) => self.answer_waiting(client, &reply),
                Message::Unblocked(client, how) => self.unblock(client, how),
                Message::Returned => self.take_back_all(),
                Message::Published(first) => {
                    let mut run_bytes = first.bytes();
                    let mut run = vec![first];
                    while let Some(Message::Published(next)) = messages.next_if(|message| {
                        matches!(message, Message::Published(next) if next.goes_with(&run[0], run_bytes))
                    }) {
                        run_bytes += next.bytes();
                        run.push(next);
                    }
                    self.deliver(&run);
                }
                Message::Invalidated(invalidation) => self.invalidate(&invalidation),
                Message::Redirected(client, keys) => self.invalidate_instead(client, &keys),
            }
        }
        drop(messages);
        self.mail = mail;
        self.note_waiting();
    }

    /// Tells how much of what was delivered waits for its turn to be sent.
    fn note_waiting(&mut self) {
        self.has_much_waiting = self.mailbox.note_waiting(self.engine.in_turn_bytes(), self.has_much_waiting);
    }

    /// Receives what waits for a connection into the batch.
    fn receive(&mut self, id: ConnId) {
        let is_long = |connection: &Connection| connection.input.len() >= MOVED_BYTES;
        if self.table.at(id).is_some_and(|connection| connection.is_in_batch || is_long(connection)) {
            self.serve();
        }
        let Some(connection) = self.table.at(id) else { return };
        match connection.flow {
            Flow::Open => {}
            Flow::Parked => {
                if self.receive_while_waiting(id) {
                    self.close(id, CloseWhen::Now);
                }
                return;
            }
            // It is read from again when what has arrived before has run.
            Flow::Busy | Flow::Writing => return self.engine.pause(id),
            Flow::Lent => {
                if self.receive_while_waiting(id) {
                    self.end_while_waiting(id);
                }
                return;
            }
            Flow::Paused if connection.unfinished.is_some() => {
                if self.receive_while_waiting(id) {
                    self.end_while_waiting(id);
                }
                return;
            }
            Flow::Paused | Flow::Closing => return,
        }
        // The record comes into the cache while the kernel receives.
        pack::prefetch_value(&connection.session.record.id);
        let is_long = is_long(connection);
        if connection.input.stays() {
            cold_path();
            // Room that the kernel is about to fill, which may take its time, is a buffer from here on.
            connection.input.make_room();
            note_input(connection, self.executor.counters());
        }
        match self.batch.receive(&mut *self.engine, connection, self.round.receive_bytes()) {
            Ok(count) => {
                count_received(connection, self.executor.counters(), count);
                // A command of this batch may ask how much memory counts for `maxmemory`; buffers do not.
                if !connection.input.is_empty() {
                    cold_path();
                    note_input(connection, self.executor.counters());
                }
            }
            Err(_) => {
                cold_path();
                self.close(id, CloseWhen::Now);
            }
        }
        if self.batch.is_full() || is_long {
            cold_path();
            self.serve();
        }
    }

    /// Goes on with some of the connections of which something is kept, or which have not been written all of
    /// a reply (`rounds`).
    fn take_up_some(&mut self) {
        let mut taken = 0;
        for _ in 0..self.again.len() {
            if taken == rounds::LEFT_IN_A_ROW {
                break;
            }
            let Some(id) = self.again.pop_front() else { break };
            let Some(connection) = self.table.at(id) else { continue };
            match connection.flow {
                Flow::Busy if !connection.is_in_batch => self.batch.resume(connection),
                Flow::Writing => self.write_more(id),
                _ => continue,
            }
            taken += 1;
        }
    }

    /// Parses, prefetches, executes and answers all that was received.
    fn serve(&mut self) {
        if self.batch.turns.is_empty() {
            return;
        }
        if self.mailbox.has_mail() {
            cold_path();
            // What was published before these requests were sent comes before their replies.
            self.read_messages();
        }
        // Taken and put back: their room is the next batch's.
        let mut turns = std::mem::take(&mut self.batch.turns);
        turns.iter_mut().for_each(|turn| self.parse(turn));
        self.prefetch(0);
        if self.executor.counters().batch_bytes.load(Relaxed) <= self.batch.received_room_bytes() as u64 {
            cold_path();
            // More room than any batch had since it was last given back. A command of this one may ask how
            // much memory counts for `maxmemory`, which the room of batches does not.
            self.note_room();
        }
        self.executor.begin();
        turns.iter_mut().for_each(|turn| self.answer(turn));
        self.batch.turns = turns;
        self.executor.end();
        let room = self.note_room();
        self.batch.clear();
        if room > ROOM_BYTES_KEPT {
            cold_path();
            self.give_room_back();
        }
    }

    /// Notes in the counters how much memory batches take, and returns it.
    fn note_room(&self) -> usize {
        let room = self.batch.room_bytes() + self.reply.out.capacity() + self.executor.room_bytes();
        self.executor.counters().batch_bytes.store(room as u64, Relaxed);
        room
    }

    /// Gives back the memory that batches have needed, between two of them: the next one takes it up again.
    fn give_room_back(&mut self) {
        self.batch.give_room_back();
        self.executor.give_room_back();
        self.reply.out = Vec::new();
        (self.push_room, self.mail) = (Vec::new(), Vec::new());
        self.executor.counters().batch_bytes.store(0, Relaxed);
    }

    /// Parses the next requests of a connection's turn.
    fn parse(&mut self, turn: &mut Turn) {
        let Some(connection) = self.table.at(turn.id) else { return };
        let limits = limits(&self.executor, connection);
        self.batch.parse(turn, connection, self.server, &limits);
    }

    /// Asks for the memory that the keys of the first requests from `first` on lie in; `execute` goes on with
    /// those that follow, a fixed number ahead. One request alone would wait for its memory just the same, so
    /// for it nothing is asked.
    fn prefetch(&self, first: usize) {
        let count = self.batch.requests.len() - first;
        if count > 1 {
            let keyspace = &self.server.keyspace;
            (first..first + count.min(LEAF_AHEAD)).for_each(|n| self.batch.prefetch_leaf(n, keyspace));
            (first..first + count.min(ENTRY_AHEAD)).for_each(|n| self.batch.prefetch_entry(n, keyspace));
        }
    }

    /// Executes one connection's requests and sends the replies.
    fn answer(&mut self, turn: &mut Turn) {
        let Some(connection) = self.table.at(turn.id) else { return };
        connection.is_in_batch = false;
        if connection.session.record.is_killed.load(Acquire) || connection.flow == Flow::Closing {
            cold_path();
            return;
        }
        self.executor.counters().serving.store(connection.session.record.id, Relaxed);
        self.reply.protocol = connection.protocol;
        let request_bytes = self.batch.bytes(turn, &connection.input).len();
        if self.round.puts_off(turn, request_bytes, self.executor.meter()) {
            return self.put_off(turn);
        }
        let records_end = self.executor.end_of_records();
        self.executor.start_turn(&mut connection.session, request_bytes);
        let may_be_stored = request_bytes >= Arrival::BYTES_MIN;
        if may_be_stored {
            cold_path();
            self.batch.offer(turn, &mut connection.input, &self.server.keyspace);
        }
        self.execute(turn, records_end);
        if may_be_stored && let Some(connection) = self.table.at(turn.id) {
            cold_path();
            connection.input.end_offer();
        }
        while matches!(turn.rest, Rest::Unparsed) && self.may_go_on(turn) {
            cold_path();
            self.parse(turn);
            self.prefetch(turn.requests.start);
            self.execute(turn, records_end);
        }
        if self.executor.end_of_records() != records_end {
            self.hold(turn.id, self.executor.end_of_records());
        }
        if self.reply.is_full() {
            return self.close_for_its_reply(turn.id);
        }
        let Some(connection) = self.table.at(turn.id) else { return };
        connection.protocol = self.reply.protocol;
        if connection.flow == Flow::Writing {
            cold_path();
            self.send_first_piece(turn.id);
        }
        let Some(connection) = self.table.at(turn.id) else { return };
        let is_cut = !turn.requests.is_empty() || connection.flow.keeps_all();
        if is_cut {
            cold_path();
            self.batch.keep_requests(turn, connection);
        } else {
            self.batch.keep_rest(turn, connection);
            finish(connection, turn, (self.server, &self.executor), &mut self.reply);
        }
        note(connection, turn.executed as u64, self.executor.steady(), self.executor.counters());
        if connection.session.record.is_secure {
            cold_path();
            let bytes = self.engine.tls_bytes(turn.id);
            connection.session.record.note_tls(bytes, self.executor.counters());
        }
        self.send(turn.id);
        self.settle(turn, is_cut);
    }

    /// Whether all that was parsed has run, and there is time for more.
    fn may_go_on(&mut self, turn: &Turn) -> bool {
        if turn.is_unauthenticated {
            self.limit_unauthenticated(turn.id);
        }
        turn.requests.is_empty() && !self.executor.is_turn_over() && self.goes_on(turn.id)
    }

    /// Whether further requests of this connection may run in its turn: where users have changed, its next
    /// one begins by their rules.
    fn goes_on(&mut self, id: ConnId) -> bool {
        let version = self.executor.users().version();
        let is_next = |session: &Session| session.after == After::Next && session.users_version == version;
        let goes_on = |c: &mut Connection| is_next(&c.session) && !c.flow.keeps_all();
        !self.reply.is_full() && self.table.at(id).is_some_and(goes_on)
    }

    /// Executes what is parsed, up to a request that has to wait, the end of the connection, or the end of
    /// its turn.
    fn execute(&mut self, turn: &mut Turn, records_end: u64) {
        let mut may_tell = true;
        loop {
            let executed = self.execute_some(turn, records_end, may_tell);
            self.batch.advance(turn, executed);
            let tells = std::mem::replace(&mut self.tells, Tells::Nothing);
            if tells == Tells::Nothing || !self.goes_on(turn.id) {
                return;
            }
            cold_path();
            self.tell_first(turn.id, records_end);
            // What is left is not for clients, or what comes behind that: it is read behind the turn.
            let is_left = tells == Tells::Behind && self.mailbox.has_mail();
            if is_left || !self.goes_on(turn.id) {
                return;
            }
            // Other workers may go on telling it more: it does not wait for that.
            may_tell = executed > 0;
        }
    }

    /// Executes requests without marking them as run in the turn. `records_end` is where the worker's records
    /// ended before it; `may_tell` says that the first of them waits as well until its client has been sent
    /// what was told before. Returns how many have run.
    fn execute_some(&mut self, turn: &mut Turn, records_end: u64, may_tell: bool) -> usize {
        let Worker { table, batch, executor, reply, engine, server, mailbox, .. } = self;
        let Some(connection) = table.at(turn.id).filter(|c| c.flow != Flow::Closing) else { return 0 };
        let bytes = batch.bytes(turn, &connection.input);
        let mut first_span = turn.first_span;
        let (bound, record) = (executor.output_bound(), &connection.session.record);
        let is_subscribed = connection.session.modes.has(Modes::SUBSCRIBED);
        reply.bound(bound.room_bytes(server, (record, is_subscribed), || engine.unsent_bytes(turn.id)));
        reply.may_leave_texts = bound.is_unlimited() && !is_subscribed;
        let requests = &batch.requests[turn.requests.clone()];
        let mut index = 0;
        while let Some(request) = requests.get(index) {
            let number = turn.requests.start + index;
            batch.prefetch_ahead(number, &server.keyspace);
            let Parsed { row, hash, framing, spans_end, end, .. } = *request;
            let spans = first_span..spans_end;
            let request = Request { row, hash, framing, args: batch.args(spans.clone(), bytes) };
            first_span = spans_end;
            if executor.must_wait(&connection.session, &request) {
                connection.flow = Flow::Parked;
                return index;
            }
            if (may_tell || index > 0)
                && push::is_due_before((server, mailbox), &connection.session, &request)
            {
                self.tells = Tells::Before;
                return index;
            }
            let call = executor.execute(&mut connection.session, &request, reply);
            if connection.session.after != After::Next {
                cold_path();
                let Connection { session, unfinished, flow, .. } = connection;
                self.tells = if session.after == After::Tell { Tells::Behind } else { Tells::Nothing };
                let has_run = match session.after {
                    After::Elsewhere => {
                        self.lend_session(turn, (spans, end), call.0);
                        return index + 1;
                    }
                    _ => end_turn((session, unfinished, flow), reply, request.args, call),
                };
                self.is_retrying |= !has_run;
                return index + usize::from(has_run);
            }
            if reply.is_due() {
                cold_path();
                let place = (&mut connection.unfinished, &mut connection.flow);
                if pieces::begin(place, reply, request.args, call) || reply.is_full() {
                    return index + 1;
                }
                let written = (records_end, executor.end_of_records());
                held::keep_back_early((&mut **engine, server), turn.id, written);
                let unsent_bytes =
                    slow_readers::send_early((&mut **engine, server), executor, connection, reply);
                if unsent_bytes > connection.allowance_bytes {
                    return index + 1;
                }
            }
            index += 1;
            if executor.queues_freely(&connection.session) {
                cold_path();
                let next = (number + 1..turn.requests.end, first_span, bytes);
                let count = batch.enqueue_next(executor, &mut connection.session, next, reply);
                if count > 0 {
                    (number + 1..number + 1 + count).for_each(|n| batch.prefetch_ahead(n, &server.keyspace));
                    (index, first_span) = (index + count, batch.requests[number + count].spans_end);
                }
            }
        }
        requests.len()
    }

    /// Lends the session of a connection, with its request that has these spans and ends there, and has taken
    /// so many ticks.
    #[cold]
    fn lend_session(&mut self, turn: &mut Turn, place: (Range<usize>, usize), ticks: u64) {
        let Worker { table, batch, executor, reply, server, scripts, returned, .. } = self;
        let Some(connection) = table.at(turn.id) else { return };
        connection.input.end_offer();
        let request = batch.take_request(turn, &mut connection.input, place);
        let Connection { session, unfinished, flow, .. } = connection;
        let by = (&**server, executor, (&*scripts, &*returned));
        pieces::begin_elsewhere(by, (session, unfinished, flow), (reply, request, ticks));
    }

    /// Decides what becomes of a connection whose replies are sent: closed, read from again, served again, or
    /// parked.
    fn settle(&mut self, turn: &Turn, is_cut: bool) {
        let Some(connection) = self.table.at(turn.id) else { return };
        let has_more = is_cut || (matches!(turn.rest, Rest::Unparsed) && !connection.input.is_empty());
        let is_over = connection.has_ended && !has_more;
        if connection.session.after >= After::Close || is_over {
            cold_path();
            return match connection.session.after {
                After::Abort => self.close(turn.id, CloseWhen::Now),
                After::Overflow => self.close_for_its_query_buffer(turn.id),
                _ => self.close(turn.id, CloseWhen::Flushed),
            };
        }
        if !connection.input.is_empty() {
            cold_path();
            if connection.input.len() as u64 > self.executor.query_buffer_bytes_max(&connection.session) {
                return self.close_for_its_query_buffer(turn.id);
            }
        }
        match connection.flow {
            Flow::Open if has_more => {
                cold_path();
                connection.flow = Flow::Busy;
                self.again.push_back(turn.id);
            }
            Flow::Busy | Flow::Writing if has_more => self.again.push_back(turn.id),
            Flow::Busy => {
                cold_path();
                connection.flow = Flow::Open;
                self.engine.resume(turn.id);
            }
            Flow::Parked => {
                cold_path();
                self.park(turn.id);
            }
            Flow::Lent => {
                cold_path();
                if !connection.has_ended {
                    self.engine.resume(turn.id);
                }
            }
            // A paused client goes on when it has read its replies.
            _ => {}
        }
    }

    /// Messages, timers, and the end of what clients wait for.
    fn tend(&mut self) {
        if self.mailbox.has_mail() {
            self.read_messages();
        }
        self.end_some_subscriptions();
        self.executor.end_pause();
        self.unpark();
        self.end_waits();
        self.expire();
        self.is_relieving = self.executor.relieve(Look::WhenDue);
        self.run_cron();
    }

    /// The server stops: the listeners are closed first, so that the next server can have the port at once.
    /// Clients that are owed a reply get it if they read within [`WIND_UP`]; of one that is written, or sent,
    /// as its client reads, they get what has been by then.
    fn wind_up(mut self, mut events: Vec<Event>) {
        self.engine.stop_listening();
        let ids: Vec<ConnId> = self.table.iter().map(|connection| connection.id).collect();
        for id in ids {
            self.close(id, CloseWhen::Flushed);
        }
        let watch = Stopwatch::start();
        let is_busy = |this: &Self| !this.table.is_empty() || this.engine.is_listening();
        while is_busy(&self) && watch.elapsed_ns() < WIND_UP.as_nanos() as u64 {
            if self.engine.poll(Wait::at_most(WIND_UP / 20), &mut events).is_err() {
                return;
            }
            self.let_go();
            for event in events.drain(..) {
                if let Event::Gone(id) = event {
                    self.forget(id);
                }
            }
        }
    }
}

/// No other request of the connection runs behind this one, for now. Returns whether it has run itself:
/// otherwise it is tried again.
#[cold]
fn end_turn(
    (session, unfinished, flow): (&mut Session, &mut Option<Box<Unfinished>>, &mut Flow),
    reply: &mut Reply,
    args: Args<'_>,
    call: (u64, usize),
) -> bool {
    match session.after {
        After::Tell | After::Yield => {
            session.after = After::Next;
            pieces::begin((unfinished, flow), reply, args, call);
        }
        After::Retry => {
            session.after = After::Next;
            return false;
        }
        After::Wait => *flow = Flow::Parked,
        After::Abort | After::Overflow => reply.cut(0),
        After::Next | After::Elsewhere | After::Close => {}
    }
    true
}

/// All that was parsed has run: keeps the beginning of a request, or answers bytes that are none.
fn finish(
    connection: &mut Connection,
    turn: &Turn,
    (server, executor): (&Server, &Executor<'_>),
    reply: &mut Reply,
) {
    match &turn.rest {
        Rest::Unfinished { wanted_bytes } => {
            if !connection.input.is_empty() {
                cold_path();
                connection.input.await_more(*wanted_bytes);
            }
        }
        Rest::Unparsed => {}
        Rest::Wrong(error) if connection.session.after < After::Close => {
            cold_path();
            executor.counters().count_error(PROTOCOL_ERROR);
            note_protocol_error(connection, *error, (server, executor.steady()));
            if connection.session.reply_mode.answers() {
                reply.protocol_error(*error);
            }
            connection.session.after = After::Close;
        }
        Rest::Wrong(_) => {}
    }
}

/// Says in the log what a client has sent that is no request.
fn note_protocol_error(connection: &Connection, error: ProtocolError, (server, now): (&Server, Millis)) {
    server.log.verbose_of(|| {
        let (error, record) = (error.to_string(), &connection.session.record);
        let why = error.strip_prefix("Protocol error: ").unwrap_or(&error);
        let line = line_of(record, &server.registry, now.0);
        format!("Protocol error ({why}) from client: {line}")
    });
}

/// Counts one receive of this many bytes, for the worker and for the client.
fn count_received(connection: &Connection, counters: &Counters, bytes: usize) {
    counters.bytes_in.add(bytes as u64);
    counters.reads.add(u64::from(bytes > 0));
    let record = &connection.session.record;
    record.bytes_in.store(record.bytes_in.load(Relaxed) + bytes as u64, Relaxed);
}

/// Brings what others may see of the connection up to date, once for each turn.
fn note(connection: &Connection, executed: u64, now: Millis, counters: &Counters) {
    let record = &connection.session.record;
    record.commands.store(record.commands.load(Relaxed) + executed, Relaxed);
    record.last_active_ms.store(now.0, Relaxed);
    note_input(connection, counters);
}

/// Notes what is kept of requests that have not run.
fn note_input(connection: &Connection, counters: &Counters) {
    let mut query = QueryBuffer::default();
    if !connection.input.is_empty() {
        cold_path();
        query.len_bytes = connection.input.len();
        query.room_bytes = connection.input.room_bytes();
        query.parsed_bytes = connection.parser.room_bytes();
    }
    connection.session.record.note_query_buffer(query, counters);
}

/// The limits by which this client's requests are parsed: narrower ones before it is authenticated.
fn limits(executor: &Executor<'_>, connection: &Connection) -> Limits {
    Limits {
        bulk_len_bytes_max: executor.config().store.proto_max_bulk_len_bytes,
        is_authenticated: !connection.session.must_log_in(executor.users()),
        ..Limits::default()
    }
}
