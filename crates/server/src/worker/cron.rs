//! What happens without a request: expiry, idle clients, clients that do not read, and the rates that INFO
//! shows.
//!
//! A worker that has nothing to do sleeps. Only the first always wakes ten times a second, for the rates and
//! for memory; the others tick while they have clients to watch or, with `timeout`, any clients, while they
//! have compiled libraries of functions, which may go, and once or twice after they have been busy, to give
//! back what their batches took and their engines keep to send from.
//!
//! Expiry is on time because every worker, before it sleeps, looks when the next key is due. One of them at a
//! time holds the watch for it ([`ExpiryWatch`](crate::state::expiry_watch::ExpiryWatch)): the first to see
//! that a key is due earlier than the watch says.
use super::Worker;
use super::peaks::Peaks;
use super::spare_processor::SpareProcessor;
use super::table::Flow;
use crate::core::dispatch::Look;
use crate::core::output_bound::output_bytes_max;
use crate::core::persistence::{append, save_if_due};
use crate::core::server::Server;
use crate::core::session::ClientRecord;
use crate::state::latency::EXPIRE_CYCLE;
use base::Millis;
use net::{CloseWhen, ConnId};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

/// The time from one tick to the next: there are ten in a second.
const TICK_MS: i64 = 100;
/// After this many ticks the system is asked anew how much memory is free.
const FREE_MEMORY_TICKS: u32 = 10;
/// A turn of the journal may take so many ticks before writers wait for it.
const LATE_TICKS: u32 = 10;
/// Every connection is looked at once in this time.
const IDLE_ROUND_MS: i64 = 1000;
/// While a script runs for long nothing expires; it is tried again after this time.
const SHUT_OUT_PAUSE_MS: i64 = 50;
/// A key is removed so long after its deadline. A client that counts the same time by itself (a lock that it
/// holds, with CLIENT TRACKING) comes to its end before it is told that its key has gone.
const EXPIRE_AFTER_MS: i64 = 5;
/// How many keys one turn removes; the others go at the next turns, so that clients do not wait.
const EXPIRE_BUDGET: usize = 256;

/// What the ticks of one worker remember.
#[derive(Default)]
pub(super) struct Cron {
    /// Clients that are paused or over their soft output limit.
    pub(super) watched: Vec<ConnId>,
    last_tick_ms: i64,
    ticks: u32,
    /// Where the round over idle connections stands.
    idle_cursor: usize,
    /// For connections with unsent replies: how many bytes had left at the last look.
    draining: BTreeMap<ConnId, u64>,
    rates: Rates,
    peaks: Peaks,
    /// The turn of the journal that is under way, and for how many ticks it has been.
    journal_turn: Option<u64>,
    journal_ticks: u32,
    spare_processor: SpareProcessor,
    /// Of scripts and libraries, at the last tick.
    generations: (u64, u64),
}

/// When a key with this deadline is removed.
fn removed_at(deadline: Millis) -> Millis {
    Millis(deadline.0.saturating_add(EXPIRE_AFTER_MS))
}

impl Worker<'_> {
    /// When this worker has to do something even if nobody asks.
    pub(super) fn next_due(&self) -> Option<Millis> {
        let tick = self.ticks().then_some(Millis(self.cron.last_tick_ms + TICK_MS));
        let steady = sooner(sooner(tick, self.waits.due()), self.unpark_due());
        let now = self.executor.moment();
        let measured = steady.map(|due| now.wall_at(due));
        let is_mine = self.server.expiry_watch.offer(self.index, self.expire_due);
        let expire = self.expire_due.filter(|_| is_mine && self.may_expire());
        sooner(measured, expire)
    }

    /// Whether this worker has anything to do ten times a second.
    fn ticks(&self) -> bool {
        let is_timing = self.executor.config().timeout_s > 0 && !self.table.is_empty();
        let counters = self.executor.counters();
        let has_room = counters.batch_bytes.load(Relaxed) > 0 || counters.spare_bytes.load(Relaxed) > 0;
        let has_more = has_room || self.executor.has_leftovers();
        self.index == 0 || is_timing || has_more || !self.cron.watched.is_empty()
    }

    /// Does what is to be done ten times a second, if its time has come.
    pub(super) fn run_cron(&mut self) {
        let now = self.executor.steady();
        let Some(elapsed_ms) = tick(self.cron.last_tick_ms, now.0).filter(|_| self.ticks()) else { return };
        self.cron.last_tick_ms = now.0;
        if self.server.is_cron_paused.load(Relaxed) {
            return;
        }
        if self.index == 0 {
            self.cron.rates.sample(self.server, elapsed_ms);
            self.cron.peaks.sample(self.server, now);
            self.cron.ticks = self.cron.ticks.wrapping_add(1);
            if self.cron.ticks.is_multiple_of(FREE_MEMORY_TICKS) {
                self.server.output_bytes_max.store(output_bytes_max(), Relaxed);
            }
            save_if_due(self.server, self.executor.config(), self.executor.now());
            append::rewrite_if_due(self.server, self.executor.config());
            self.look_at_journal();
            self.look_at_scripts();
            self.server.moving.close_idle(self.server.clock.steady_up());
            self.executor.tend_uses();
            if self.executor.config().maxmemory_bytes > 0 {
                self.server.pressure.note_holes();
            }
            self.is_relieving |= self.executor.relieve(Look::Now);
            // So that `used_memory_peak` misses no more than what comes and goes between two ticks.
            pack::counted::used_bytes();
            self.server.background.purge();
            let (workers, page_us) = (self.server.mailboxes.len(), self.server.background.page_us());
            let pages = self.cron.spare_processor.pages(elapsed_ms, workers, page_us);
            // Whoever loads wants the processors, also where others leave few of them. While a snapshot is
            // written its thread does, and what it holds cannot move.
            let is_saving =
                self.server.persistence.saves.running().is_some() || self.server.append.is_rewriting();
            let is_wanted = is_saving || self.server.persistence.is_loading();
            if pages > 0 && !is_wanted && self.executor.config().huge_pages {
                self.server.background.unite(pages);
            }
            if !is_saving {
                self.server.background.defrag(&self.executor.config().defrag);
            }
        }
        self.give_room_back();
        self.executor.clear_leftovers();
        self.engine.free_spare();
        self.look_at_watched();
        self.close_idle(now, elapsed_ms);
    }

    /// When all scripts or libraries have gone, each thread ends its interpreters.
    fn look_at_scripts(&mut self) {
        let scripts = &self.server.scripts;
        let generations = (scripts.cache.generation(), scripts.libraries.generation());
        if std::mem::replace(&mut self.cron.generations, generations) != generations {
            self.scripts.poke();
            self.server.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        }
    }

    /// A disk that takes more than a second, where replies do not wait for it, has writers wait.
    fn look_at_journal(&mut self) {
        let turn = self.server.journal.present_turn();
        let is_same = turn.is_some() && turn == self.cron.journal_turn;
        self.cron.journal_ticks = if is_same { self.cron.journal_ticks + 1 } else { 0 };
        self.cron.journal_turn = turn;
        let is_late = self.cron.journal_ticks >= LATE_TICKS && !self.server.append.holds_replies();
        if is_late && self.cron.journal_ticks == LATE_TICKS {
            self.server.append.delays.fetch_add(1, Relaxed);
        }
        self.server.journal.note_late(is_late);
    }

    /// Whether keys past their deadline are removed. While an append-only file is loaded it says itself when
    /// they went.
    fn may_expire(&self) -> bool {
        self.server.expires.load(Relaxed) && !self.server.persistence.is_loading()
    }

    /// Removes some keys past their deadline, whichever worker's commands set it; the others go at the next
    /// turns, so that clients do not wait.
    pub(super) fn expire(&mut self) {
        let keyspace = &self.server.keyspace;
        let now = self.executor.now();
        self.expire_due = keyspace.soonest_due().map(removed_at);
        if self.expire_due.is_none_or(|due| due > now) || !self.may_expire() {
            return;
        }
        self.executor.begin();
        if self.executor.is_shut_out() {
            self.executor.end();
            // The script may take long, and this worker is not to run in circles until then.
            self.expire_due = Some(Millis(now.0 + SHUT_OUT_PAUSE_MS));
            return;
        }
        self.executor.lap();
        let overdue = Millis(now.0 - EXPIRE_AFTER_MS);
        self.expire_due = keyspace.expire(overdue, EXPIRE_BUDGET, &mut self.garbage).map(removed_at);
        let time_ns = net::Meter::new().ns(self.executor.lap());
        self.executor.end();
        let counters = self.executor.counters();
        counters.expire_ns.add(time_ns);
        counters.expire_stops.add(u64::from(self.expire_due.is_some_and(|due| due <= now)));
        self.server.latency.note(self.executor.config(), EXPIRE_CYCLE, time_ns, now.0 / 1000);
        self.server.background.free(&mut self.garbage);
    }

    /// `timeout`: closes clients that have been idle for longer, also those that are being closed and do not
    /// read their last replies. A client that reads is not idle, nor one that listens to channels or watches
    /// with MONITOR, or whose command waits. A part of all connections is looked at each time, and all within
    /// a second.
    fn close_idle(&mut self, now: Millis, elapsed_ms: i64) {
        let timeout_ms = i64::from(self.executor.config().timeout_s) * 1000;
        if timeout_ms == 0 {
            return;
        }
        let room = self.table.room();
        let part = room * elapsed_ms.clamp(0, IDLE_ROUND_MS) as usize / IDLE_ROUND_MS as usize + 1;
        let first = if self.cron.idle_cursor < room { self.cron.idle_cursor } else { 0 };
        self.cron.idle_cursor = first + part;
        let is_idle = |record: &ClientRecord| now.0 - record.last_active_ms.load(Relaxed) > timeout_ms;
        let mut idle = Vec::new();
        for connection in self.table.part(first, part) {
            let (id, record) = (connection.id, &connection.session.record);
            if self.cron.has_read(id, record, self.engine.unsent_bytes(id)) {
                record.last_active_ms.store(now.0, Relaxed);
            }
            if is_idle(record) && connection.flow != Flow::Parked && !is_listening(record) {
                idle.push(id);
            }
        }
        for id in idle {
            self.server.log.verbose("Closing idle client");
            self.close(id, CloseWhen::Now);
        }
    }
}

impl Cron {
    /// Whether something of what waited for this client has left since the last look.
    fn has_read(&mut self, id: ConnId, record: &ClientRecord, unsent_bytes: usize) -> bool {
        let left = record.bytes_out.load(Relaxed).wrapping_sub(unsent_bytes as u64);
        let before = match unsent_bytes {
            0 => self.draining.remove(&id),
            _ => self.draining.insert(id, left),
        };
        before.is_some_and(|before| before != left)
    }

    /// The connection has gone.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.draining.remove(&id);
    }
}

/// Whether the client receives what others send: messages of channels, or MONITOR's lines.
fn is_listening(record: &ClientRecord) -> bool {
    record.is_subscribed() || record.details().is_monitor
}

/// How long it is since the last tick, if there is to be another.
fn tick(last_ms: i64, now_ms: i64) -> Option<i64> {
    Some(now_ms.saturating_sub(last_ms)).filter(|elapsed_ms| *elapsed_ms >= TICK_MS)
}

/// How fast counters grew in the last samples: a mean over them is what INFO shows.
#[derive(Default)]
struct Rates {
    before: Totals,
    /// The samples of the last 1.6 seconds; a new one overwrites the oldest.
    samples: [Totals; RATE_SAMPLES],
    next: usize,
    /// How often CONFIG RESETSTAT had run.
    resets: u64,
}

const RATE_SAMPLES: usize = 16;

/// Totals, or what they grew by in a second.
#[derive(Clone, Copy, Default)]
struct Totals {
    commands: u64,
    bytes_in: u64,
    bytes_out: u64,
    turns: u64,
    turn_ns: u64,
}

impl Rates {
    /// Takes a sample, some 100 ms after the last one.
    fn sample(&mut self, server: &Server, elapsed_ms: i64) {
        let counters = &server.counters;
        let totals = Totals {
            commands: counters.commands(),
            bytes_in: counters.bytes_in(),
            bytes_out: counters.bytes_out(),
            turns: counters.sum(|worker| &worker.turns),
            turn_ns: counters.turn_time_ns(),
        };
        let before = std::mem::replace(&mut self.before, totals);
        let resets = server.stats.resets.load(Relaxed);
        if resets != self.resets {
            // As if the server had begun just now.
            *self = Rates { before: totals, resets, ..Rates::default() };
            return self.publish(server);
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) * 1000 / elapsed_ms.max(1) as u64;
        self.samples[self.next] = Totals {
            commands: rate(totals.commands, before.commands),
            bytes_in: rate(totals.bytes_in, before.bytes_in),
            bytes_out: rate(totals.bytes_out, before.bytes_out),
            turns: rate(totals.turns, before.turns),
            turn_ns: rate(totals.turn_ns, before.turn_ns),
        };
        self.next = (self.next + 1) % RATE_SAMPLES;
        self.publish(server);
    }

    /// Stores the means where INFO reads them.
    fn publish(&self, server: &Server) {
        let mean = |of: fn(&Totals) -> u64| self.samples.iter().map(of).sum::<u64>() / RATE_SAMPLES as u64;
        server.stats.ops_per_second.store(mean(|t| t.commands), Relaxed);
        server.stats.input_bytes_per_second.store(mean(|t| t.bytes_in), Relaxed);
        server.stats.output_bytes_per_second.store(mean(|t| t.bytes_out), Relaxed);
        let turns = mean(|t| t.turns);
        server.stats.turns_per_second.store(turns, Relaxed);
        server.stats.turn_us.store(mean(|t| t.turn_ns) / turns.max(1) / 1000, Relaxed);
    }
}

/// The sooner of two times. Before each poll several are compared; a walk over a list of them takes longer.
#[inline(always)]
fn sooner(one: Option<Millis>, other: Option<Millis>) -> Option<Millis> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_comes_when_its_time_has_passed() {
        assert_eq!(tick(1_000, 1_099), None);
        assert_eq!(tick(1_000, 1_100), Some(100));
        assert_eq!(tick(0, 1_100), Some(1_100));
    }
}
