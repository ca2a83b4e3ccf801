//! Clients whose command waits (`core/blocking.rs`): when their time is over, and when somebody ends the wait
//! before.
use super::Worker;
use crate::core::error;
use crate::core::session::{After, Session, Unblock, Waiting};
use base::Millis;
use net::ConnId;
use std::collections::BTreeSet;

/// Connections whose command waits and has an end, by when that is: (milliseconds, connection).
#[derive(Default)]
pub(super) struct Waits(BTreeSet<(i64, ConnId)>);

impl Waits {
    /// A command begins to wait; one that waits without end is not kept here.
    pub(super) fn add(&mut self, id: ConnId, waiting: &Waiting) {
        self.0.extend(waiting.until.map(|until| (until.0, id)));
    }

    /// The command of this connection waits no longer.
    pub(super) fn remove(&mut self, id: ConnId, waiting: &Waiting) {
        if let Some(until) = waiting.until {
            self.0.remove(&(until.0, id));
        }
    }

    /// INFO's clients_in_timeout_table.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// When the first of these waits is over.
    pub(super) fn due(&self) -> Option<Millis> {
        self.0.first().map(|(until_ms, _)| Millis(*until_ms))
    }
}

/// How a waiting ends.
#[derive(Clone, Copy)]
enum Ending<'r> {
    /// Its request was answered.
    Served(&'r [u8]),
    /// Its time is over, or somebody has ended it.
    Unblocked(Unblock),
}

impl Worker<'_> {
    /// Answers those whose time is over.
    pub(super) fn end_waits(&mut self) {
        let now = self.executor.steady();
        while let Some((until_ms, id)) = self.waits.0.first().copied()
            && until_ms <= now.0
        {
            self.waits.0.pop_first();
            let is_ours = self.table.at(id).is_some_and(|c| c.session.record.end_waiting());
            // Otherwise CLIENT UNBLOCK was first, and its message is on the way.
            if is_ours {
                self.end_wait(id, Ending::Unblocked(Unblock::Timeout));
            }
        }
    }

    /// CLIENT UNBLOCK has taken the waiting of this client away, unless the client has left since.
    pub(super) fn unblock(&mut self, client: u64, how: Unblock) {
        if let Some(id) = self.ids.get(&client).copied() {
            self.end_wait(id, Ending::Unblocked(how));
        }
    }

    /// The request of this client waited for a key, and has been answered.
    pub(super) fn answer_waiting(&mut self, client: u64, reply: &[u8]) {
        if let Some(id) = self.ids.get(&client).copied() {
            self.end_wait(id, Ending::Served(reply));
        }
    }

    /// Ends the wait of a connection that is being closed: from here on nobody may take anything out of a key
    /// for it, though it stays in the queues until the engine has let go of it.
    pub(super) fn end_its_wait(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id).filter(|connection| connection.session.waiting.is_some())
        {
            connection.session.record.end_waiting();
        }
    }

    /// Ends a session's wait, so that nobody serves it afterwards, and takes it out of the queues of the keys
    /// that its command waits for.
    pub(super) fn leave_queues(&self, session: &Session, waiting: &Waiting) {
        session.record.end_waiting();
        if let Some(waiter) = &waiting.waiter {
            session.record.note_waiter(0, self.executor.counters());
            self.server.key_events.waiters.remove(&self.server.keyspace, waiter);
        }
    }

    /// The disk has what this connection's client wrote: its WAITAOF is answered, or will be when its time is
    /// over, where it waits for replicas too. Not `has_it`: there is no append-only file any more, which is
    /// an error for who has asked for it.
    pub(super) fn end_wait_for_disk(&mut self, id: ConnId, has_it: bool) {
        let Some(connection) = self.table.at(id) else { return };
        let Some(waiting) = &mut connection.session.waiting else { return };
        let Some(mut local) = waiting.local.take() else { return };
        if !has_it && !local.is_asked {
            return;
        }
        if !has_it {
            local.reply = [b"-", error::no_append_only_file().text(), b"\r\n"].concat();
        }
        if has_it && !local.is_all {
            waiting.late_reply = Some(local.reply);
        } else if connection.session.record.end_waiting() {
            self.end_wait(id, Ending::Served(&local.reply));
        }
    }

    /// Answers the command that waited, and lets its client go on.
    fn end_wait(&mut self, id: ConnId, how: Ending<'_>) {
        let Some(connection) = self.table.at(id) else { return };
        let Some(waiting) = connection.session.waiting.take() else { return };
        connection.session.after = After::Next;
        self.executor.end_late_request(&connection.session);
        if let Some(waiter) = &waiting.waiter {
            connection.session.record.note_waiter(0, self.executor.counters());
            self.server.key_events.waiters.remove(&self.server.keyspace, waiter);
        }
        self.waits.remove(id, &waiting);
        self.held.remove(id, &waiting);
        if self.server.journal.is_on() {
            // Whoever has served it did so by a record that was taken before. Any other ending depends on
            // nothing but what its own client wrote.
            let is_served = waiting.waiter.is_some() && matches!(how, Ending::Served(_));
            self.hold(id, if is_served { self.server.journal.taken() } else { 0 });
        }
        let Some(connection) = self.table.at(id) else { return };
        self.reply.protocol = connection.protocol;
        // The bound that was left from before is another client's.
        self.reply.bound(usize::MAX);
        // Who serves the clients that wait for a key counts that itself.
        if let Ending::Served([b'-', text @ ..]) = how
            && waiting.waiter.is_none()
        {
            self.executor.note_unblocked(&connection.session, text.trim_ascii_end());
        }
        match how {
            _ if waiting.is_mute => {}
            Ending::Served(reply) => self.reply.append(reply),
            Ending::Unblocked(Unblock::Timeout) => match &waiting.late_reply {
                Some(reply) => self.reply.append(reply),
                None => command::Wait::late(&mut self.reply),
            },
            Ending::Unblocked(Unblock::Error) => {
                self.executor.note_unblocked(&connection.session, error::UNBLOCKED.as_bytes());
                self.reply.error(error::UNBLOCKED);
            }
        }
        self.send(id);
        self.unpark_one(id);
    }
}
