//! What a client is sent that it did not ask for at this moment: messages of the channels that it listens to,
//! and the lines of MONITOR. All of it goes one way, behind whatever the client is owed: replies that have
//! not left, and the rest of a reply that is being written in pieces. Nobody waits for it as for a reply, and
//! there may be thousands to send it to: so it leaves in turn, some connections at each poll
//! (`Engine::send_in_turn`).
//!
//! A client that does not read is not paused for that, because pausing stops only what it asks for. It is
//! closed when it is over the limits of its class (`client-output-buffer-limit`): over the hard one at once,
//! before it is given more; over the soft one when its time is over, though it sends nothing
//! (`slow_readers`).
use super::slow_readers::count_sent;
use super::table::{Connection, Flow};
use super::{Leaving, Worker, held};
use crate::core::call::ServerRun;
use crate::core::dispatch::Request;
use crate::core::mailbox::Mailbox;
use crate::core::modes::Modes;
use crate::core::registry::Run;
use crate::core::server::Server;
use crate::core::session::Session;
use crate::core::subscriptions::{Subscriptions, drop_subscription};
use crate::state::pubsub::Publication;
use command::Flags;
use net::ConnId;
use std::hint::cold_path;
use std::sync::Arc;

/// How many subscriptions of clients that have gone are ended between two batches.
const ENDED_AT_ONCE: usize = 1 << 10;

impl Worker<'_> {
    /// Sends bytes that this client did not ask for now.
    pub(super) fn push(&mut self, id: ConnId, bytes: &[u8]) {
        let Some(connection) = self.table.at(id) else { return };
        if connection.flow == Flow::Closing {
            return;
        }
        if let Some(unfinished) = connection.unfinished.as_deref_mut() {
            cold_path();
            // What is kept behind a reply is not sent by the next poll, so it counts as owed in any case.
            unfinished.push_behind(bytes);
            let owed_bytes = unfinished.owed_bytes() + self.engine.unsent_bytes(id);
            return self.look_at_pushed(id, owed_bytes);
        }
        count_sent(&connection.session.record, self.executor.counters(), bytes.len());
        self.push_room.extend_from_slice(bytes);
        let unsent_bytes = self.engine.send_in_turn(id, &mut self.push_room);
        if unsent_bytes >= self.executor.output_bound().look_bytes() {
            cold_path();
            self.look_at_pushed(id, unsent_bytes);
        }
    }

    /// Closes a client at once if it is owed more than its hard limit, though the kernel was offered what
    /// waits for its turn. The other limits are looked at after the next poll.
    #[cold]
    fn look_at_pushed(&mut self, id: ConnId, owed_bytes: usize) {
        let Some(connection) = self.table.at(id) else { return };
        let record = &connection.session.record;
        let bytes_max = self.executor.output_bound().least(self.server, record).0;
        if owed_bytes as u64 >= bytes_max {
            let before = self.engine.unsent_bytes(id);
            self.engine.try_now(id);
            let owed_bytes = owed_bytes - before + self.engine.unsent_bytes(id);
            if owed_bytes as u64 >= bytes_max {
                return self.close_for_its_output(id, owed_bytes);
            }
        }
        self.look_later(id);
    }

    /// Sends lines to the clients that watch (MONITOR).
    pub(super) fn feed(&mut self, lines: &[u8]) {
        for client in self.server.monitors.of_worker(self.index) {
            if let Some(id) = self.ids.get(&client).copied() {
                self.push(id, lines);
            }
        }
    }

    /// Sends messages to those of this worker's clients that listen: those that go together at once.
    pub(super) fn deliver(&mut self, publications: &[Arc<Publication>]) {
        let server = self.server;
        server.pubsub.deliver(self.index, publications, |receivers, pushes| {
            for id in receivers {
                let Some(connection) = self.table.at(*id) else { continue };
                let protocol = connection.protocol;
                self.push(*id, pushes.text(protocol));
            }
        });
    }

    /// In the middle of a connection's turn, between two of its requests: sends all clients what they have
    /// been told until now, or until users have changed, this one behind the replies of its turn so far. What
    /// this client's own requests have caused is told when the gate is left, and others may come in: whether
    /// its turn goes on is to be asked behind this. `records_end` is where the worker's records ended before
    /// the turn.
    pub(super) fn tell_first(&mut self, id: ConnId, records_end: u64) {
        self.executor.end();
        held::keep_back_early(
            (&mut *self.engine, self.server),
            id,
            (records_end, self.executor.end_of_records()),
        );
        self.send(id);
        if let Some(connection) = self.table.at(id) {
            // HELLO may have changed it in this turn.
            connection.protocol = self.reply.protocol;
        }
        let mut mail = std::mem::take(&mut self.mail);
        self.server.mailboxes.take_for_clients(self.index, &mut mail);
        self.heed(mail);
        if let Some(connection) = self.table.at(id) {
            // Clients that have waited were answered, each in its own protocol.
            self.reply.protocol = connection.protocol;
        }
        self.executor.begin();
        // None of this is the next request's time.
        self.executor.lap();
    }

    /// The connection is closed or has gone: it listens to nothing more.
    pub(super) fn end_subscriptions(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        if let Some(left) = take_subscriptions(connection) {
            cold_path();
            self.leaving.push(left);
            self.end_some_subscriptions();
        }
    }

    /// Ends the subscriptions of a connection that is out of the table: its last requests may have subscribed
    /// again.
    pub(super) fn end_subscriptions_of(&mut self, connection: &mut Connection) {
        self.leaving.extend(take_subscriptions(connection));
    }

    /// A client may listen to a million channels: the registry forgets them some at a time.
    pub(super) fn end_some_subscriptions(&mut self) {
        for _ in 0..ENDED_AT_ONCE {
            let Some((record, id, subscriptions)) = self.leaving.last_mut() else { return };
            match Subscriptions::pop(subscriptions) {
                Some(subscription) => drop_subscription(self.server, record, *id, subscription),
                None => drop(self.leaving.pop()),
            }
        }
    }
}

/// Whether something waits to be told to this worker's clients that has to be sent before this request runs,
/// because its session may hear less behind it: a message that PUBLISH has counted the client for, or what it
/// tracks.
#[inline]
pub(super) fn is_due_before(
    (server, mailbox): (&Server, &Mailbox),
    session: &Session,
    request: &Request<'_, '_>,
) -> bool {
    if !session.modes.has(Modes::HEARS) {
        return false;
    }
    cold_path();
    let hears_less = request.admitted().is_some_and(|row| match row.run {
        Run::Server(ServerRun::Queue) => session.has_queued(Flags::HEARS_LESS),
        _ => row.flags.has(Flags::HEARS_LESS),
    });
    hears_less && (mailbox.has_mail() || server.key_events.tracking.is_unsettled())
}

/// Takes what a connection listens to; None if that is nothing.
fn take_subscriptions(connection: &mut Connection) -> Option<Leaving> {
    let subscriptions = connection.session.subscriptions.take()?;
    connection.session.note_subscriptions(connection.protocol);
    Some((Arc::clone(&connection.session.record), connection.id, subscriptions))
}
