//! Clients that do not read their replies.
//!
//! ```text
//! Open --- more unsent than its allowance ---> Paused --- all has left ---> Open
//!   \                                            |
//!    \--- over an output limit ---> Closing <----/
//!
//! Paused --- nothing has left for a while ---> Open, with twice the allowance
//! ```
//!
//! A paused client is neither read from nor served, so one that pipelines without end takes no more memory
//! than its allowance. But there are clients that send all of a pipeline before they read the first reply; to
//! wait for them would be to wait for ever. So when a client has read nothing between two looks, its
//! allowance becomes twice what is unsent, and it is served again. As in Redis only
//! `client-output-buffer-limit` closes it. A client whose reply is written in pieces (`pieces.rs`) gets no
//! more than it reads. For it the limits also count what was pushed and is sent after that reply, and a value
//! that is kept in memory for that reply alone.
use super::pieces::Unfinished;
use super::table::{Connection, Flow};
use super::{REPLY_BYTES_KEPT, Worker};
use crate::core::client_line::line_of;
use crate::core::dispatch::Executor;
use crate::core::modes::Modes;
use crate::core::server::Server;
use crate::core::session::ClientRecord;
use crate::state::config::OutputLimit;
use crate::state::counters::Counters;
use base::Millis;
use net::{CloseWhen, ConnId, Engine};
use resp::Reply;
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;

/// How many bytes may wait unsent for a client at first.
pub(super) const ALLOWANCE_BYTES: usize = 1 << 20;

/// What to do with a client that is owed something, by `client-output-buffer-limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Fine,
    /// It is over the soft limit, not yet for too long.
    Watch,
    Close,
}

impl Worker<'_> {
    /// Sends what has been replied, and looks at what the client has left unread.
    pub(super) fn send(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if self.reply.out.is_empty() {
            cold_path();
            return self.note_sent(id, self.engine.unsent_bytes(id));
        }
        count_sent(&connection.session.record, self.executor.counters(), self.reply.out.len());
        let unsent_bytes = self.engine.send_at_once(id, &mut self.reply.out);
        if self.reply.out.capacity() > REPLY_BYTES_KEPT {
            cold_path();
            self.reply.out = Vec::new();
        }
        self.note_sent(id, unsent_bytes);
    }

    /// Has a client with much unsent looked at after the next poll, which hands replies to the kernel: what
    /// is left then is what the client has not read.
    fn note_sent(&mut self, id: ConnId, unsent_bytes: usize) {
        if unsent_bytes >= self.executor.output_bound().look_bytes() {
            cold_path();
            if let Some(connection) = self.table.at(id) {
                let owed_bytes = unsent_bytes + connection.unfinished_bytes();
                connection.session.record.note_output_buffer(owed_bytes, self.executor.counters());
            }
            self.look_later(id);
        }
    }

    /// Puts a client on the list of those that are looked at after the next poll.
    pub(super) fn look_later(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id).filter(|connection| !connection.is_looked_at) {
            connection.is_looked_at = true;
            self.sent.push(id);
        }
    }

    /// Looks at the clients on that list. Called after a poll has sent what it could.
    pub(super) fn look_at_sent(&mut self) {
        while let Some(id) = self.sent.pop() {
            if let Some(connection) = self.table.at(id) {
                connection.is_looked_at = false;
                self.look_at(id);
            }
        }
    }

    /// The limits have changed: a client that is owed something may be over them, though nothing more is sent
    /// to it.
    pub(super) fn look_at_owed(&mut self) {
        self.executor.refresh_config();
        let ids: Vec<ConnId> = self.table.iter().map(|connection| connection.id).collect();
        for id in ids {
            let is_writing = self.table.at(id).is_some_and(|connection| connection.unfinished.is_some());
            if is_writing || self.engine.unsent_bytes(id) > 0 {
                self.look_at(id);
            }
        }
    }

    /// Judges a client with unsent replies: closes it, pauses it, or lets it be.
    fn look_at(&mut self, id: ConnId) {
        let unsent_bytes = self.engine.unsent_bytes(id);
        let Some(connection) = self.table.at(id) else { return };
        let owed_bytes = unsent_bytes + connection.unfinished_bytes();
        connection.session.record.note_output_buffer(owed_bytes, self.executor.counters());
        let limits = &self.executor.config().client_output_buffer;
        let is_subscribed = connection.session.modes.has(Modes::SUBSCRIBED);
        let limit = if is_subscribed { limits.pubsub } else { limits.normal };
        let owed_bytes = unsent_bytes + connection.unfinished.as_deref().map_or(0, Unfinished::owed_bytes);
        let verdict = judge(connection, owed_bytes, limit, self.executor.steady());
        if verdict == Verdict::Close {
            return self.close_for_its_output(id, owed_bytes);
        }
        let may_pause = match connection.flow {
            // What a client that listens does not read is messages, which pausing would not stop.
            Flow::Open | Flow::Busy => !is_subscribed,
            Flow::Writing => true,
            Flow::Paused | Flow::Parked | Flow::Lent | Flow::Closing => false,
        };
        if may_pause && unsent_bytes > connection.allowance_bytes {
            self.pause(id, unsent_bytes);
        } else if verdict == Verdict::Watch {
            self.watch(id);
        }
    }

    /// Neither reads from a client nor serves it until it has read what is unsent.
    pub(super) fn pause(&mut self, id: ConnId, unsent_bytes: usize) {
        let Some(connection) = self.table.at(id) else { return };
        connection.flow = Flow::Paused;
        connection.unsent_before_bytes = unsent_bytes;
        self.engine.pause(id);
        self.watch(id);
    }

    fn watch(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if !connection.is_watched {
            connection.is_watched = true;
            self.cron.watched.push(id);
        }
    }

    /// Everything unsent has been handed to the kernel: a paused client is served again.
    pub(super) fn drained(&mut self, id: ConnId) {
        self.look_at(id);
        if self.table.at(id).is_some_and(|connection| connection.flow == Flow::Paused) {
            self.unpause(id);
        }
    }

    pub(super) fn unpause(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        connection.flow = if connection.unfinished.is_some() { Flow::Writing } else { Flow::Busy };
        self.again.push_back(id);
    }

    /// Looks again at those who were paused or over their soft limit.
    pub(super) fn look_at_watched(&mut self) {
        for id in std::mem::take(&mut self.cron.watched) {
            let Some(connection) = self.table.at(id) else { continue };
            connection.is_watched = false;
            if let Some(unfinished) = connection.unfinished.as_deref_mut() {
                unfinished.weigh();
            }
            let unsent_bytes = self.engine.unsent_bytes(id);
            if unsent_bytes == 0 {
                // As a rule the engine has told so. If it has not, the client is not to wait for ever.
                self.drained(id);
                continue;
            }
            if connection.flow == Flow::Paused {
                let has_read = unsent_bytes < connection.unsent_before_bytes;
                connection.unsent_before_bytes = unsent_bytes;
                if !has_read && connection.unfinished.is_some() {
                    // The client may want to send all of its requests before it reads.
                    self.engine.resume(id);
                } else if !has_read {
                    connection.allowance_bytes =
                        connection.allowance_bytes.max(unsent_bytes.saturating_mul(2));
                    self.unpause(id);
                }
            }
            self.look_at(id);
            self.keep_watching(id);
        }
    }

    fn keep_watching(&mut self, id: ConnId) {
        if self.table.at(id).is_some_and(|connection| connection.flow == Flow::Paused) {
            self.watch(id);
        }
    }

    #[cold]
    pub(super) fn close_for_its_query_buffer(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id) {
            self.server.stats.query_limit_disconnections.fetch_add(1, Relaxed);
            let record = &connection.session.record;
            let line = line_of(record, &self.server.registry, self.executor.steady().0);
            self.server.log.warning(&format!(
                "Client {line} has sent more than client-query-buffer-limit allows and is closed"
            ));
        }
        self.close(id, CloseWhen::Now);
    }
}

/// Counts this many bytes of replies as sent, when they are handed to the engine.
pub(super) fn count_sent(record: &ClientRecord, counters: &Counters, bytes: usize) {
    counters.bytes_out.add(bytes as u64);
    counters.writes.add(1);
    record.bytes_out.store(record.bytes_out.load(Relaxed) + bytes as u64, Relaxed);
}

/// Sends what a batch has replied so far, and bounds what follows. Where a setting bounds it, nothing leaves
/// before all of the batch is known to fit. Returns how many bytes are unsent.
pub(super) fn send_early(
    (engine, server): (&mut dyn Engine, &Server),
    executor: &mut Executor<'_>,
    connection: &Connection,
    reply: &mut Reply,
) -> usize {
    let (bound, record) = (executor.output_bound(), &connection.session.record);
    count_sent(record, executor.counters(), reply.out.len());
    let unsent_bytes = match bound.is_set() {
        true => engine.send(connection.id, &mut reply.out),
        false => engine.send_at_once(connection.id, &mut reply.out),
    };
    executor.lap();
    reply.bound((bound.least(server, record).0 as usize).saturating_sub(unsent_bytes));
    unsent_bytes
}

/// Compares what a client is owed with the limits. It remembers since when the client is over the soft one.
fn judge(connection: &mut Connection, owed_bytes: usize, limit: OutputLimit, now: Millis) -> Verdict {
    let is_over = |max: u64| max > 0 && owed_bytes as u64 >= max;
    if is_over(limit.hard_bytes) {
        return Verdict::Close;
    }
    if !is_over(limit.soft_bytes) {
        connection.over_soft_limit_since_ms = None;
        return Verdict::Fine;
    }
    let since = *connection.over_soft_limit_since_ms.get_or_insert(now.0);
    let is_too_long = now.0 - since > i64::from(limit.soft_s) * 1000;
    if is_too_long { Verdict::Close } else { Verdict::Watch }
}
