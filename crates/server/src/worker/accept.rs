//! Who is let in, and which worker serves them; how a connection begins and ends.
use super::Worker;
use super::input::Input;
use super::slow_readers::ALLOWANCE_BYTES;
use super::table::{Connection, Flow};
use crate::core::client_line::line_of;
use crate::core::dispatch::Stays;
use crate::core::error;
use crate::core::mailbox::Message;
use crate::core::modes::Modes;
use crate::core::server::Server;
use crate::core::session::{ClientRecord, QueryBuffer, Session, Way};
use crate::state::acl::User;
use crate::state::config::Config;
use net::{Accepted, CloseWhen, ConnId, Peer, SocketOptions};
use resp::{Parser, Protocol};
use std::io::{ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

impl Worker<'_> {
    /// Listens at the present listeners: CONFIG SET has changed them.
    pub(super) fn listen(&mut self) {
        self.engine.stop_listening();
        for listener in self.server.listening.all() {
            if let Err(error) = self.engine.listen(listener) {
                self.server.log.warning(&format!("worker {} cannot listen: {error}", self.index));
            }
        }
    }

    /// Logs that the system has no descriptor or memory for a client that waits to be let in.
    #[cold]
    pub(super) fn note_refused(&self, error: &std::io::Error) {
        let why = crate::state::config::reason(error);
        let text = format!("Accepting client connection: accept: {why}");
        self.server.log.warning_seldom(&self.server.warnings.accepting, &text);
    }

    /// Logs why a client's TLS handshake has failed; the engine closes the connection.
    #[cold]
    pub(super) fn note_unsecured(&mut self, id: ConnId, error: &std::io::Error) {
        let Some(connection) = self.table.at(id) else { return };
        let (addr, laddr) = connection.session.record.addresses();
        let why = match error.kind() {
            ErrorKind::UnexpectedEof => "the client has closed the connection".to_owned(),
            ErrorKind::TimedOut => "the handshake has taken too long".to_owned(),
            _ => crate::state::config::reason(error),
        };
        let text = format!("Error accepting a client connection: {why} (addr={addr} laddr={laddr})");
        self.server.log.warning_seldom(&self.server.warnings.handshakes, &text);
    }

    /// Lets a client in and gives it to the worker with the fewest connections, or tells it why it may not.
    pub(super) fn accept(&mut self, accepted: Accepted) {
        let server = self.server;
        let config = self.executor.config();
        server.log.verbose_of(|| accepted_line(&accepted.peer));
        let text = if connections(server) >= config.maxclients as usize {
            Some(error::TOO_MANY_CLIENTS)
        } else {
            server.stats.connections_received.fetch_add(1, Relaxed);
            // A client with TLS is told by its worker, after the handshake.
            let is_told = !accepted.is_secure
                && is_denied(config, server.accounts.users().default_user(), &accepted.peer);
            is_told.then_some(error::PROTECTED)
        };
        if let Some(text) = text {
            server.stats.connections_rejected.fetch_add(1, Relaxed);
            return turn_away(accepted, text);
        }
        let chosen = server.restless.draw(server.mailboxes.len()).unwrap_or_else(|| least_loaded(server));
        server.mailboxes[chosen].connections.fetch_add(1, AcqRel);
        if chosen == self.index {
            self.adopt(accepted);
        } else {
            server.mailboxes[chosen].send(Message::Adopt(accepted));
        }
    }

    /// Serves a connection from here on; it has been counted as this worker's.
    pub(super) fn adopt(&mut self, accepted: Accepted) {
        let config = self.executor.config();
        let options = SocketOptions { keepalive_s: config.tcp_keepalive_s };
        let (fd, peer) = (accepted.fd.as_raw_fd(), accepted.peer.clone());
        let is_secure = accepted.is_secure;
        let is_denied = is_secure && is_denied(config, self.server.accounts.users().default_user(), &peer);
        let (log, warnings) = (&self.server.log, &self.server.warnings);
        if let Err(error) = accepted.set_up(options) {
            // The client is served with those options of its socket unset.
            let why = crate::state::config::reason(&error);
            log.warning_seldom(&warnings.options, &format!("Cannot set up a client's socket: {why}"));
        }
        let id = match self.hand_over(accepted) {
            Ok(id) => id,
            // The process has no room for the connection, or no TLS any more: the socket is closed.
            Err(error) => {
                let why = crate::state::config::reason(&error);
                log.warning_seldom(&warnings.adopting, &format!("Cannot serve a new client: {why}"));
                self.server.mailboxes[self.index].connections.fetch_sub(1, AcqRel);
                return;
            }
        };
        let record = self.record(fd, peer, is_secure);
        record.note_tls(self.engine.tls_bytes(id), self.executor.counters());
        self.server.clients().insert(record.id, Arc::clone(&record));
        self.ids.insert(record.id, id);
        self.table.insert(connection(id, Session::new(id, record, self.executor.users_now())));
        if is_denied {
            self.server.stats.connections_rejected.fetch_add(1, Relaxed);
            self.engine.send(id, &mut error::PROTECTED.as_bytes().to_vec());
            self.close(id, CloseWhen::Flushed);
        }
    }

    /// Gives a socket to the engine, with TLS where it came by the port for that.
    fn hand_over(&mut self, accepted: Accepted) -> std::io::Result<ConnId> {
        if !accepted.is_secure {
            return self.engine.adopt(accepted);
        }
        match self.server.tls.current() {
            Some(tls) => self.engine.adopt_with(accepted, &tls),
            // TLS was switched off after the client had been let in.
            None => Err(ErrorKind::ConnectionAborted.into()),
        }
    }

    /// What other workers will see of the new connection.
    fn record(&self, fd: i32, peer: Peer, is_secure: bool) -> Arc<ClientRecord> {
        let id = self.server.next_client_id.fetch_add(1, Relaxed);
        let way = Way { peer, fd, worker: self.index, is_secure };
        Arc::new(ClientRecord::new(id, way, self.executor.steady()))
    }

    /// Applies changed users to clients that listen: they may have no turn in which the change would be seen.
    #[cold]
    pub(super) fn look_at_listeners(&mut self) {
        let version = self.executor.users_now().version();
        if std::mem::replace(&mut self.listeners_seen, version) == version {
            // One look is for all changes until it begins.
            return;
        }
        let mut hear_too_much = Vec::new();
        for Connection { id, session, .. } in self.table.iter_mut() {
            if session.modes.has(Modes::SUBSCRIBED) && self.executor.obey_users(session) == Stays::No {
                hear_too_much.push(*id);
            }
        }
        // At once: what was published behind the change may be the next message here.
        hear_too_much.into_iter().for_each(|id| self.close(id, CloseWhen::Now));
    }

    /// CLIENT KILL has marked this client.
    pub(super) fn close_killed(&mut self, client: u64) {
        if let Some(id) = self.ids.get(&client) {
            self.close(*id, CloseWhen::Now);
        }
    }

    /// Closes a connection, at once or when its replies have left. Nothing more of it runs; the engine
    /// reports when it has let go of it.
    pub(super) fn close(&mut self, id: ConnId, when: CloseWhen) {
        if let Some(connection) = self.table.at(id) {
            connection.flow = Flow::Closing;
            connection.session.record.is_closing.store(when == CloseWhen::Flushed, Relaxed);
            let bytes = connection.input.take().0;
            connection.parser = Parser::new();
            connection.session.record.note_query_buffer(QueryBuffer::default(), self.executor.counters());
            self.free_bytes(bytes);
            self.engine.close(id, when);
            self.give_up_pieces(id);
            self.end_subscriptions(id);
            self.end_its_wait(id);
        }
    }

    /// The engine has let go of a connection. What it brought before may still be in the batch.
    pub(super) fn forget(&mut self, id: ConnId) {
        if self.table.at(id).is_some_and(|connection| connection.is_in_batch) {
            self.serve();
        }
        self.give_up_pieces(id);
        self.end_subscriptions(id);
        let Some(connection) = self.table.remove(id) else { return };
        self.cron.forget(id);
        if connection.has_ended || connection.flow != Flow::Closing {
            let (server, now_ms) = (self.server, self.executor.steady().0);
            let line = || line_of(&connection.session.record, &server.registry, now_ms);
            server.log.verbose_of(|| format!("Client closed connection {}", line()));
        }
        if let Some(waiting) = &connection.session.waiting {
            self.waits.remove(id, waiting);
            self.held.remove(id, waiting);
        }
        let record = &connection.session.record;
        record.note_query_buffer(QueryBuffer::default(), self.executor.counters());
        record.note_output_buffer(0, self.executor.counters());
        record.note_tls(0, self.executor.counters());
        if connection.session.is_lent() {
            return self.disconnected.await_return(connection);
        }
        self.keep_last_requests(connection);
    }

    /// The connection is no client any more: neither listed nor counted.
    pub(super) fn deregister(&mut self, connection: &mut Connection) {
        self.free_bytes(connection.input.take().0);
        self.end_subscriptions_of(connection);
        if let Some(waiting) = &connection.session.waiting {
            self.leave_queues(&connection.session, waiting);
        }
        connection.session.unwatch(self.server);
        let record = &connection.session.record;
        record.forget_queue(self.executor.counters());
        record.forget_names(self.executor.counters());
        if let Some(tracker) = record.tracker.get() {
            self.server.key_events.tracking.disconnect(&self.server.keyspace, tracker);
            record.note_tracking(self.executor.counters());
        }
        self.ids.remove(&record.id);
        self.server.monitors.remove(record);
        self.server.clients().remove(&record.id);
        self.server.mailboxes[self.index].connections.fetch_sub(1, AcqRel);
    }
}

/// What the log says of a new connection.
fn accepted_line(peer: &Peer) -> String {
    match peer {
        Peer::Tcp { peer, .. } => format!("Accepted {peer}"),
        Peer::Unix { path } => format!("Accepted connection to {}", path.display()),
    }
}

fn connection(id: ConnId, session: Session) -> Connection {
    Connection {
        id,
        session,
        protocol: Protocol::Resp2,
        parser: Parser::new(),
        input: Input::default(),
        flow: Flow::Open,
        is_in_batch: false,
        is_watched: false,
        is_looked_at: false,
        has_ended: false,
        allowance_bytes: ALLOWANCE_BYTES,
        unsent_before_bytes: 0,
        over_soft_limit_since_ms: None,
        unfinished: None,
    }
}

/// All workers' connections, and those that are on their way to one.
fn connections(server: &Server) -> usize {
    server.mailboxes.iter().map(|mailbox| mailbox.connections.load(Acquire)).sum()
}

/// The worker with the fewest connections.
fn least_loaded(server: &Server) -> usize {
    let load = |index: &usize| server.mailboxes[*index].connections.load(Acquire);
    (0..server.mailboxes.len()).min_by_key(load).unwrap_or(0)
}

/// Protected mode: while the default user needs no password only clients on this machine are served.
fn is_denied(config: &Config, default_user: &User, peer: &Peer) -> bool {
    let is_local = match peer {
        Peer::Unix { .. } => true,
        Peer::Tcp { peer, .. } => peer.ip().to_canonical().is_loopback(),
    };
    config.is_protected && default_user.is_nopass() && !is_local
}

/// Tells a client why it is closed, unless it speaks TLS and so would not understand. Its socket buffer is
/// empty, so the text fits; what does not fit is not sent, because the worker waits for nobody.
fn turn_away(accepted: Accepted, text: &str) {
    if !accepted.is_secure {
        let _ = std::fs::File::from(accepted.fd).write(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::acl::{Catalog, Rules, Users};
    use crate::state::config::ChannelDefault;

    fn peer(address: &str) -> Peer {
        Peer::Tcp { peer: address.parse().unwrap(), local: "10.0.0.1:6379".parse().unwrap() }
    }

    #[test]
    fn protected_mode_denies_other_machines_until_a_password_is_set() {
        let rules = Rules { catalog: &Catalog::new(Vec::new()), channels: ChannelDefault::None };
        let mut users = Users::new(b"", &rules);
        let mut config = Config { is_protected: true, ..Config::default() };
        let is_denied = |config: &Config, users: &Users, address: &str| {
            is_denied(config, users.default_user(), &peer(address))
        };
        assert!(is_denied(&config, &users, "10.0.0.2:4000"));
        assert!(!is_denied(&config, &users, "127.0.0.1:4000"));
        assert!(!is_denied(&config, &users, "[::1]:4000"));
        assert!(!is_denied(&config, &users, "[::ffff:127.0.0.1]:4000"));
        users.set_default_password(b"secret", &rules);
        assert!(!is_denied(&config, &users, "10.0.0.2:4000"));
        users.set_default_password(b"", &rules);
        config.is_protected = false;
        assert!(!is_denied(&config, &users, "10.0.0.2:4000"));
    }
}
