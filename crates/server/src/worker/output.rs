//! The end of clients that are owed more than their bound (`core/output_bound.rs`).
//!
//! `resp::Reply` holds its buffer's room to the bound and leaves out what does not fit. Then the client is
//! closed at once, with nothing more sent to it; what its command changed stays changed. Redis does the same
//! when a buffer passes the hard limit.
use super::Worker;
use crate::core::client_line::line_of;
use crate::core::output_bound::Excess;
use net::{CloseWhen, ConnId};
use std::sync::atomic::Ordering::Relaxed;

/// How many bytes a client that is not authenticated may be owed.
const UNAUTHENTICATED_BYTES_MAX: usize = 16 << 10;

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

    /// Drops the replies to a client that has not given the password if too many bytes of them wait; the
    /// caller then closes it. Redis allows such a client what fits into the client's own static buffer. Its
    /// requests run one by one, and this is asked after each.
    #[cold]
    pub(super) fn limit_unauthenticated(&mut self, id: ConnId) {
        let owed_bytes = self.reply.out.len() + self.engine.unsent_bytes(id);
        let Some(connection) = self.table.at(id) else { return };
        let is_unauthenticated = connection.session.must_log_in(self.executor.users());
        if is_unauthenticated && owed_bytes > UNAUTHENTICATED_BYTES_MAX {
            self.reply.give_up();
        }
    }

    /// Closes a client that is owed so many bytes, counts it, and says in the log which bound it has passed.
    #[cold]
    pub(super) fn close_for_its_output(&mut self, id: ConnId, owed_bytes: usize) {
        let Some(connection) = self.table.at(id) else { return };
        let record = &connection.session.record;
        record.note_output_buffer(owed_bytes, self.executor.counters());
        let line = line_of(record, &self.server.registry, self.executor.steady().0);
        // A client that is about to be closed counts no more: `maxmemory-clients` must close no other for it.
        record.note_output_buffer(0, self.executor.counters());
        let excess = match connection.session.must_log_in(self.executor.users()) {
            true => Excess::Output,
            false => self.executor.output_bound().least(self.server, record).1,
        };
        let stats = &self.server.stats;
        match excess {
            Excess::Output => {
                stats.output_limit_disconnections.fetch_add(1, Relaxed);
                self.server.log.warning(&format!(
                    "Client {line} scheduled to be closed ASAP for overcoming of output buffer limits."
                ));
            }
            Excess::Machine => {
                stats.output_limit_disconnections.fetch_add(1, Relaxed);
                self.server.log.warning(&format!(
                    "Client {line} is closed: its replies would take over half of the memory that is free."
                ));
            }
            Excess::Clients => {
                stats.clients_evicted.fetch_add(1, Relaxed);
                self.server.log.notice(&format!("Evicting client: {line}"));
            }
        }
        self.close(id, CloseWhen::Now);
    }
}
