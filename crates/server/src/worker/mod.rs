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
mod cron;
mod flow;
mod table;

use crate::clock::Clock;
use crate::config::Config;
use crate::dispatch::Executor;
use crate::shared::{Letter, Shared};
use base::Millis;
use batch::{Batch, Reach, Rest, Turn};
use cron::Cron;
use net::{CloseWhen, ConnId, Engine, Event};
use resp::{Limits, Parser, Reply};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use table::{Connection, Flow, Table};

/// Replies are sent when they are this many bytes, even in the middle of a batch.
const SEND_BYTES: usize = 256 << 10;
/// A reply buffer that has grown beyond this is not kept.
const REPLY_BYTES_KEPT: usize = 1 << 20;

pub(crate) struct Worker<'s> {
    shared: &'s Shared,
    index: usize,
    engine: Box<dyn Engine>,
    table: Table,
    executor: Executor<'s>,
    batch: Batch<'s>,
    /// Connections with something kept that can go on without receiving.
    again: Vec<ConnId>,
    reply: Reply,
    cron: Cron,
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
            reply: Reply::new(resp::Protocol::Resp2),
            cron: Cron::default(),
            clock: &shared.clock,
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        let mut events = Vec::new();
        while !self.shared.is_stopping() {
            let timeout = self.sleep();
            if let Err(error) = self.engine.poll(timeout, &mut events) {
                self.shared.stop_failed(&format!("worker {} cannot wait for events: {error}", self.index));
                return;
            }
            self.executor.set_now(self.clock.now());
            self.handle(&mut events);
            self.serve();
            self.tend();
        }
        self.wind_up(events);
    }

    fn sleep(&self) -> Option<std::time::Duration> {
        if !self.again.is_empty() {
            return Some(std::time::Duration::ZERO);
        }
        self.clock.sleep_until(self.clock.now(), self.next_due())
    }

    fn handle(&mut self, events: &mut Vec<Event>) {
        for id in std::mem::take(&mut self.again) {
            self.take_up(id);
        }
        for event in events.drain(..) {
            match event {
                Event::Readable(id) => self.receive(id),
                Event::Accepted(accepted) => self.accept(accepted),
                Event::Drained(id) => self.unpause(id),
                Event::Gone(id) => self.forget(id),
                Event::Woken => self.read_letters(),
            }
        }
    }

    fn read_letters(&mut self) {
        for letter in self.shared.posts[self.index].take() {
            match letter {
                Letter::Adopt(accepted) => self.adopt(accepted),
                Letter::Killed(client) => self.close_killed(client),
            }
        }
    }

    /// Receives what waits for a connection into the batch.
    fn receive(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if connection.flow != Flow::Open {
            return;
        }
        match self.batch.receive(&mut *self.engine, connection) {
            Ok(count) => {
                self.shared.counters.0[self.index].bytes_in.add(count as u64);
                let card = &connection.session.card;
                card.bytes_in.store(card.bytes_in.load(Relaxed) + count as u64, Relaxed);
            }
            Err(_) => self.close(id, CloseWhen::Now),
        }
        if self.batch.is_full() {
            self.serve();
        }
    }

    /// Goes on with what a connection has kept.
    fn take_up(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if connection.flow == Flow::Open {
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
        for turn in std::mem::take(&mut self.batch.turns) {
            self.answer(&turn);
        }
        self.executor.end();
        self.batch.clear();
    }

    fn parse(&mut self) {
        let limits = limits(self.executor.config());
        for index in 0..self.batch.turns.len() {
            let id = self.batch.turns[index].id;
            let Some(connection) = self.table.at(id) else { continue };
            let (limits, reach) = match connection.session.is_authenticated {
                true => (limits, Reach::All),
                false => (limits_before_authentication(limits), Reach::One),
            };
            self.batch.parse(index, connection, &self.shared.registry, &limits, reach);
        }
    }
}
