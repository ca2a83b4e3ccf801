//! How much a client may be owed: a bound on its replies while they are made, and the end of those who pass it.
//!
//! The bound is the least of the hard limit of `client-output-buffer-limit`, `maxmemory-clients`, and, because both are
//! unlimited unless somebody sets them, half of the memory that the machine has free: a reply that takes all of it would end the
//! process, not the client. What already waits unsent counts. `resp::Reply` holds its buffer's room to the bound and leaves out
//! what does not fit; then the client is closed at once, with nothing more sent to it, and what its command changed stays
//! changed. Redis does the same when a buffer passes the hard limit.
use super::Worker;
use crate::commands::client::list::line_of;
use crate::commands::info::free_memory_bytes;
use crate::core::session::ClientRecord;
use crate::core::shared::Shared;
use crate::state::config::Config;
use net::{CloseWhen, ConnId};
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;

/// What a client may be owed however little memory is free, so that a crowded machine serves small replies.
const OUTPUT_BYTES_MIN: u64 = 64 << 20;

/// What a client that has not said the password may be owed.
const UNAUTHENTICATED_BYTES_MAX: usize = 16 << 10;

/// Whose bound it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// `client-output-buffer-limit`
    Output,
    /// `maxmemory-clients`
    Clients,
    /// Free memory.
    Machine,
}

/// The bounds that settings make; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct OutputBound {
    hard_bytes: u64,
    clients_bytes: u64,
}

impl OutputBound {
    pub(crate) fn of(config: &Config) -> OutputBound {
        OutputBound {
            hard_bytes: config.client_output_buffer.normal.hard_bytes,
            clients_bytes: config.maxmemory_clients.bytes(config.maxmemory_bytes),
        }
    }

    /// Whether a setting makes one.
    #[inline]
    pub(super) fn is_set(self) -> bool {
        self != OutputBound::default()
    }

    /// How many bytes of replies may be made for a client now. `unsent_bytes` is asked for only where a setting makes a bound:
    /// otherwise more than a little waits only for those who are judged after each poll.
    #[inline]
    pub(super) fn room_bytes(
        self,
        shared: &Shared,
        record: &ClientRecord,
        unsent_bytes: impl FnOnce() -> usize,
    ) -> usize {
        if !self.is_set() {
            return shared.output_bytes_max.load(Relaxed) as usize;
        }
        cold_path();
        (self.least(shared, record).0 as usize).saturating_sub(unsent_bytes())
    }

    /// The bound, and whose it is.
    #[cold]
    pub(super) fn least(self, shared: &Shared, record: &ClientRecord) -> (u64, Excess) {
        let mut least = (shared.output_bytes_max.load(Relaxed), Excess::Machine);
        if self.clients_bytes > 0 && self.clients_bytes < least.0 && !record.details().is_spared {
            least = (self.clients_bytes, Excess::Clients);
        }
        if self.hard_bytes > 0 && self.hard_bytes <= least.0 {
            least = (self.hard_bytes, Excess::Output);
        }
        least
    }
}

/// Half of what is free, so that two clients at once are no end of the process.
pub(crate) fn output_bytes_max() -> u64 {
    free_memory_bytes().map_or(u64::MAX, |free| (free / 2).max(OUTPUT_BYTES_MIN))
}

impl Worker<'_> {
    /// The client's reply has passed its bound: none of it is sent.
    #[cold]
    pub(super) fn close_for_its_reply(&mut self, id: ConnId) {
        let reply_bytes = self.reply.out.len();
        self.reply.cut(0);
        self.reply.out = Vec::new();
        let owed_bytes = self.engine.unsent_bytes(id) + reply_bytes;
        self.close_for_its_output(id, owed_bytes);
    }

    /// Replies to a client that has not said the password may wait as far as Redis has room for them in the client itself.
    /// Such a client's requests run one by one, and this is asked after each.
    #[cold]
    pub(super) fn limit_stranger(&mut self, id: ConnId) {
        let owed_bytes = self.reply.out.len() + self.engine.unsent_bytes(id);
        let Some(connection) = self.table.at(id) else { return };
        let is_stranger = connection.session.must_log_in(self.executor.config());
        if is_stranger && owed_bytes > UNAUTHENTICATED_BYTES_MAX {
            self.reply.give_up();
        }
    }

    #[cold]
    pub(super) fn close_for_its_output(&mut self, id: ConnId, owed_bytes: usize) {
        let Some(connection) = self.table.at(id) else { return };
        let record = &connection.session.record;
        record.note_output_buffer(owed_bytes, self.executor.counters());
        let line = line_of(record, &self.shared.registry, self.executor.steady().0);
        // What is closed is nobody's load any more: `maxmemory-clients` must close no other for it.
        record.note_output_buffer(0, self.executor.counters());
        let excess = match connection.session.must_log_in(self.executor.config()) {
            true => Excess::Output,
            false => self.executor.output_bound().least(self.shared, record).1,
        };
        let stats = &self.shared.stats;
        match excess {
            Excess::Output => {
                stats.output_limit_disconnections.fetch_add(1, Relaxed);
                self.shared.log.warning(&format!(
                    "Client {line} scheduled to be closed ASAP for overcoming of output buffer limits."
                ));
            }
            Excess::Machine => {
                stats.output_limit_disconnections.fetch_add(1, Relaxed);
                self.shared.log.warning(&format!(
                    "Client {line} is closed: its replies would take over half of the memory that is free."
                ));
            }
            Excess::Clients => {
                stats.clients_evicted.fetch_add(1, Relaxed);
                self.shared.log.notice(&format!("Evicting client: {line}"));
            }
        }
        self.close(id, CloseWhen::Now);
    }
}
