//! One worker thread: its event loop, its connections, its batches.
//!
//! ```text
//! poll -> receive from every connection that has something -> parse all -> prefetch all keys
//!      -> [gate] execute request by request -> one send for each connection -> letters, timers -> poll
//! ```
//!
//! Requests of all connections that one poll reported form one batch, so that the memory their keys lie in is asked for
//! before the first of them runs: even clients that wait for each reply profit, if there are many. On the path of every
//! request, with `batch` and `dispatch`.
mod accept;
mod batch;
mod block;
mod calm;
mod cron;
mod flow;
mod park;
mod peaks;
mod table;

use crate::client::memory;
use crate::clock::{Clock, Stopwatch};
use crate::config::Config;
use crate::counters::Counters;
use crate::dispatch::{Executor, Look, Request};
use crate::session::After;
use crate::shared::{Letter, Shared};
use base::Millis;
use batch::{Batch, Parsed, Rest, Turn};
use block::Waits;
use cron::Cron;
use net::{CloseWhen, ConnId, Engine, Event, Tick, Wait};
use park::Parked;
use resp::{Limits, Parser, Reply};
use std::collections::BTreeMap;
use std::hint::cold_path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;
use store::Garbage;
use table::{Connection, Flow, Table};

/// Replies are sent when they are this many bytes, even in the middle of a batch.
const SEND_BYTES: usize = 256 << 10;
/// How many requests ahead of the one that runs the leaf of their key is asked for, and then the key's entry in it:
/// enough to hide the memory's latency twice, few enough that what arrives is still in the first-level cache when its
/// request runs.
const LEAF_AHEAD: usize = 16;
const ENTRY_AHEAD: usize = 8;
/// A reply buffer that has grown beyond this is not kept.
const REPLY_BYTES_KEPT: usize = 1 << 20;
/// How long clients are given to read their last replies when the server stops.
const WIND_UP: Duration = Duration::from_millis(1000);

/// What a connection takes without its buffers.
pub(crate) const CONNECTION_BYTES: usize = size_of::<Connection>();

pub(crate) struct Worker<'s> {
    shared: &'s Shared,
    index: usize,
    engine: Box<dyn Engine>,
    table: Table,
    executor: Executor<'s>,
    batch: Batch<'s>,
    /// Connections with something kept that can go on without receiving.
    again: Vec<ConnId>,
    /// Connections to which much was sent since the last poll.
    sent: Vec<ConnId>,
    parked: Parked,
    waits: Waits,
    reply: Reply,
    cron: Cron,
    /// When the next key expires.
    expire_due: Option<Millis>,
    garbage: Vec<Garbage>,
    /// Memory is over its limit, and there are keys to evict.
    is_relieving: bool,
    /// Connections by client id.
    ids: BTreeMap<u64, ConnId>,
    clock: &'s Clock,
}

impl<'s> Worker<'s> {
    pub(crate) fn new(shared: &'s Shared, index: usize, engine: Box<dyn Engine>) -> Worker<'s> {
        Worker {
            shared,
            index,
            engine,
            table: Table::default(),
            executor: Executor::new(shared, index),
            batch: Batch::default(),
            again: Vec::new(),
            sent: Vec::new(),
            parked: Parked::default(),
            waits: Waits::default(),
            reply: Reply::new(resp::Protocol::Resp2),
            cron: Cron::default(),
            expire_due: None,
            garbage: Vec::new(),
            is_relieving: false,
            ids: BTreeMap::new(),
            clock: &shared.clock,
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Vec::new();
        self.executor.set_now(self.clock.now());
        while !self.shared.is_stopping() {
            let wait = self.wait();
            if let Err(error) = self.engine.poll(wait, &mut events) {
                self.shared.fail(&format!("worker {} cannot wait for events: {error}", self.index));
                return;
            }
            self.executor.set_now(self.clock.now());
            let start = self.executor.meter().read();
            self.handle(&mut events);
            self.serve();
            self.tend();
            self.count_turn(start);
        }
        self.wind_up(events);
    }

    fn count_turn(&self, start: Tick) {
        let counters = self.executor.counters();
        counters.turns.add(1);
        counters.turn_ticks.add(self.executor.meter().read().since(start));
        counters.timed_waits.store(self.waits.count(), Relaxed);
    }

    /// Seen from the time at which the turn began: what has become due since wakes at once.
    fn wait(&self) -> Wait {
        if !self.again.is_empty() || self.is_relieving {
            return Wait::Not;
        }
        self.clock.sleep_until(self.executor.now(), self.next_due())
    }

    fn handle(&mut self, events: &mut Vec<Event>) {
        self.look_at_sent();
        self.relieve_clients();
        for id in std::mem::take(&mut self.again) {
            self.take_up(id);
        }
        self.serve();
        for event in &*events {
            if let Event::Readable(id) = event {
                self.table.prefetch(*id);
            }
        }
        for event in events.drain(..) {
            match event {
                Event::Readable(id) => self.receive(id),
                Event::Accepted(accepted) => self.accept(accepted),
                Event::Drained(id) => self.drained(id),
                Event::Gone(id) => self.forget(id),
                Event::Woken => self.read_letters(),
            }
        }
    }

    /// `maxmemory-clients`: after a poll, when what could be sent was.
    fn relieve_clients(&self) {
        let config = self.executor.config();
        let limit_bytes = config.maxmemory_clients.bytes(config.maxmemory_bytes);
        if limit_bytes != 0 {
            memory::relieve(self.shared, limit_bytes, self.executor.now().0);
        }
    }

    fn read_letters(&mut self) {
        for letter in self.shared.posts[self.index].take() {
            match letter {
                Letter::Adopt(accepted) => self.adopt(accepted),
                Letter::Feed(lines) => self.feed(&lines),
                Letter::Listen => self.listen(),
                Letter::Killed(client) => self.close_killed(client),
                Letter::Unblocked(client, how) => self.unblock(client, how),
            }
        }
    }

    /// Receives what waits for a connection into the batch.
    fn receive(&mut self, id: ConnId) {
        if self.table.at(id).is_some_and(|connection| connection.is_in_batch) {
            self.serve();
        }
        let Some(connection) = self.table.at(id) else { return };
        match connection.flow {
            Flow::Open => {}
            Flow::Parked => return self.receive_parked(id),
            Flow::Paused | Flow::Closing => return,
        }
        // There while the kernel is at work.
        pack::prefetch_value(&connection.session.card.id);
        match self.batch.receive(&mut *self.engine, connection) {
            Ok(count) => count_received(connection, self.executor.counters(), count),
            Err(_) => {
                cold_path();
                self.close(id, CloseWhen::Now);
            }
        }
        if self.batch.is_full() {
            cold_path();
            self.serve();
        }
    }

    /// Goes on with what a connection has kept.
    fn take_up(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if connection.flow == Flow::Open && !connection.is_in_batch {
            self.batch.resume(connection);
        }
    }

    /// Parses, prefetches, executes and answers all that was received.
    fn serve(&mut self) {
        if self.batch.turns.is_empty() {
            return;
        }
        self.parse();
        self.prefetch();
        self.executor.begin();
        // Taken and put back: their room is the next batch's.
        let turns = std::mem::take(&mut self.batch.turns);
        turns.iter().for_each(|turn| self.answer(turn));
        self.batch.turns = turns;
        self.executor.end();
        let buffers = self.batch.room_bytes() + self.reply.out.capacity();
        self.executor.counters().batch_bytes.store(buffers as u64, Relaxed);
        self.batch.clear();
    }

    fn parse(&mut self) {
        for index in 0..self.batch.turns.len() {
            let id = self.batch.turns[index].id;
            let Some(connection) = self.table.at(id) else { continue };
            let limits = limits(self.executor.config(), connection);
            self.batch.parse(index, connection, self.shared, &limits);
        }
    }

    /// Asks for the memory that the first keys of the batch lie in; `execute` goes on, so far ahead. One request alone would
    /// wait for it just the same.
    fn prefetch(&self) {
        let count = self.batch.requests.len();
        if count > 1 {
            let keyspace = &self.shared.keyspace;
            (0..count.min(LEAF_AHEAD)).for_each(|index| self.batch.prefetch_leaf(index, keyspace));
            (0..count.min(ENTRY_AHEAD)).for_each(|index| self.batch.prefetch_entry(index, keyspace));
        }
    }

    /// Executes one connection's requests and sends the replies.
    fn answer(&mut self, turn: &Turn) {
        let Some(connection) = self.table.at(turn.id) else { return };
        connection.is_in_batch = false;
        if connection.session.card.is_killed.load(Acquire) || connection.flow == Flow::Closing {
            cold_path();
            return;
        }
        self.executor.counters().serving.store(connection.session.card.id, Relaxed);
        self.reply.protocol = connection.protocol;
        let executed = self.execute(turn);
        let Some(connection) = self.table.at(turn.id) else { return };
        connection.protocol = self.reply.protocol;
        let is_cut = executed < turn.requests.len() || connection.flow == Flow::Parked;
        if is_cut {
            cold_path();
            self.batch.keep_requests(turn, connection, executed);
            connection.parser = Parser::new();
        } else {
            self.batch.keep_rest(turn, connection);
            finish(connection, turn, &mut self.reply);
        }
        note(connection, executed as u64, self.executor.now(), self.executor.counters());
        self.send(turn.id);
        self.settle(turn, is_cut);
    }

    /// Executes until the end of the turn, or until the connection is to be closed, its client to be waited for, or a
    /// request has to wait; how many requests.
    fn execute(&mut self, turn: &Turn) -> usize {
        let Worker { table, batch, executor, reply, engine, shared, .. } = self;
        let Some(connection) = table.at(turn.id) else { return 0 };
        let bytes = batch.bytes(turn, &connection.kept);
        executor.start_turn(&connection.session, bytes.len());
        for (index, request) in batch.requests[turn.requests.clone()].iter().enumerate() {
            let number = turn.requests.start + index;
            batch.prefetch_leaf(number + LEAF_AHEAD, &shared.keyspace);
            batch.prefetch_entry(number + ENTRY_AHEAD, &shared.keyspace);
            let Parsed { row, hash, .. } = *request;
            let request = Request { row, hash, args: batch.args(request, bytes) };
            if executor.must_wait(&connection.session, &request) {
                connection.flow = Flow::Parked;
                return index;
            }
            executor.execute(&mut connection.session, request, reply);
            match connection.session.after {
                After::Next => {}
                After::Wait => {
                    cold_path();
                    connection.flow = Flow::Parked;
                    return index + 1;
                }
                After::Close => {
                    cold_path();
                    return index + 1;
                }
                After::Abort => {
                    cold_path();
                    reply.out.clear();
                    return index + 1;
                }
            }
            if reply.out.len() >= SEND_BYTES {
                cold_path();
                flow::count_sent(&connection.session.card, executor.counters(), reply.out.len());
                let unsent_bytes = engine.send(turn.id, &mut reply.out);
                executor.lap();
                let is_slow = unsent_bytes > connection.allowance_bytes;
                if is_slow && !matches!(turn.rest, Rest::Wrong(_)) {
                    return index + 1;
                }
            }
        }
        turn.requests.len()
    }

    /// What becomes of a connection whose replies are sent.
    fn settle(&mut self, turn: &Turn, is_cut: bool) {
        let Some(connection) = self.table.at(turn.id) else { return };
        let has_more = is_cut || (matches!(turn.rest, Rest::Unparsed) && !connection.kept.is_empty());
        let is_over = connection.has_ended && !has_more;
        if connection.session.after >= After::Close || is_over {
            cold_path();
            let is_attack = connection.session.after == After::Abort;
            return self.close(turn.id, if is_attack { CloseWhen::Now } else { CloseWhen::Flushed });
        }
        if connection.kept.len() as u64 > self.executor.config().client_query_buffer_bytes_max {
            cold_path();
            return self.close_for_its_query_buffer(turn.id);
        }
        match connection.flow {
            Flow::Open if has_more => {
                cold_path();
                self.again.push(turn.id);
            }
            Flow::Parked => {
                cold_path();
                self.park(turn.id);
            }
            // One that is paused goes on when it has read its replies.
            _ => {}
        }
    }

    /// Timers, and what other workers asked for.
    fn tend(&mut self) {
        self.unpark();
        self.end_waits();
        self.expire();
        self.is_relieving = self.executor.relieve(Look::WhenDue);
        self.run_cron();
    }

    /// The server stops: whoever is owed a reply gets it if it reads soon, and the next server can have the port at once.
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
            for event in events.drain(..) {
                if let Event::Gone(id) = event {
                    self.forget(id);
                }
            }
        }
    }
}

/// All whole requests have run: what follows them.
fn finish(connection: &mut Connection, turn: &Turn, reply: &mut Reply) {
    match &turn.rest {
        Rest::Unfinished { wanted_bytes } => batch::reserve(connection, *wanted_bytes),
        Rest::Unparsed => connection.wanted_bytes = 0,
        Rest::Wrong(error) if connection.session.after < After::Close => {
            cold_path();
            reply.protocol_error(*error);
            connection.session.after = After::Close;
        }
        Rest::Wrong(_) => {}
    }
}

fn count_received(connection: &Connection, counters: &Counters, bytes: usize) {
    counters.bytes_in.add(bytes as u64);
    counters.reads.add(u64::from(bytes > 0));
    let card = &connection.session.card;
    card.bytes_in.store(card.bytes_in.load(Relaxed) + bytes as u64, Relaxed);
}

/// What others may see of the batch.
fn note(connection: &Connection, executed: u64, now: Millis, counters: &Counters) {
    let card = &connection.session.card;
    card.commands.store(card.commands.load(Relaxed) + executed, Relaxed);
    card.last_active_ms.store(now.0, Relaxed);
    card.note_query_buffer(connection.kept.len(), counters);
}

fn limits(config: &Config, connection: &Connection) -> Limits {
    Limits {
        bulk_len_bytes_max: config.store.proto_max_bulk_len_bytes,
        is_authenticated: connection.session.is_authenticated,
        ..Limits::default()
    }
}
