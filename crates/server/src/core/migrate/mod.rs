//! MIGRATE: keys go to another server, and are deleted here when that has taken them.
//!
//! ```text
//! all gates: the values of the keys get one more owner each, and the keys are held back (`state/moving.rs`)
//! a thread of its own: connects, sends, reads the answers
//! all gates: what the other server has taken is deleted, and the keys are held back no longer
//! ```
//!
//! So no worker waits for the other server, and whoever names one of the keys waits as in Redis. What does
//! not name its keys goes on: FLUSHALL, eviction, what a client was waiting for. A key that such a thing has
//! changed meanwhile is not deleted, and the reply says so.
//!
//! The thread is none of those that run long requests, because it may wait for the whole timeout.
mod target;

pub(crate) use target::Target;

use crate::core::dispatch::run_alone;
use crate::core::error;
use crate::core::server::Server;
use crate::core::session::Session;
use crate::state::config::Config;
use crate::state::moving::Socket;
use crate::state::pause::Held;
use crate::state::watched::{Mark, Spot};
use base::Millis;
use base::hash::Set;
use command::Done;
use disk::rdb::{self, Form};
use resp::Reply;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use store::{Deadline, Snapshot};
use target::{Answer, Answers, Failure, Parcel, Step};

/// Those who watch keys are told apart by a number; clients' begin at 1.
static WATCHERS: AtomicU64 = AtomicU64::new(u64::MAX / 2);

/// A key on its way.
struct Moved {
    name: Vec<u8>,
    value: Snapshot,
    deadline: Deadline,
    /// Set when somebody changes the key.
    mark: Mark,
}

/// Keys on their way, and where to.
pub(crate) struct Migration {
    server: Arc<Server>,
    config: Arc<Config>,
    db: u16,
    keys: Vec<Moved>,
    watcher: u64,
    target: Target,
    /// COPY: they stay here too.
    copies: bool,
}

/// What has become of the keys.
#[derive(Default, PartialEq)]
struct Outcome {
    /// The target has them: their places in [`Migration::keys`].
    taken: Vec<usize>,
    /// The first error that the target has answered.
    refused: Option<String>,
}

impl Migration {
    /// Takes these keys, as far as they are there; None where none is. The caller holds all gates.
    pub(crate) fn begin(
        server: &Server,
        (db, now): (u16, Millis),
        names: &[&[u8]],
        (target, copies): (Target, bool),
    ) -> Option<Migration> {
        let (keyspace, config) = (&server.keyspace, server.config());
        let watcher = WATCHERS.fetch_add(1, Relaxed);
        let mut keys: Vec<Moved> = Vec::new();
        let mut seen: Set<&[u8]> = Set::default();
        for name in names.iter().copied() {
            let hash = keyspace.hash(name);
            let (mut view, key) = keyspace.lock_one_hashed(db, now, &config.store, name, hash);
            view.count_lookups();
            let is_there = view.exists(&key) && seen.insert(name);
            let value = view.snapshot(&key).filter(|value| is_there && !value.value().is_over());
            let Some(value) = value else { continue };
            let deadline = view.deadline(&key).unwrap_or(Deadline::Never);
            let mark = Mark::default();
            let spot = Spot { shard: keyspace.shard_number(hash), db, key: name };
            server.key_events.watched.add(spot, (watcher, &mark), false);
            view.open_ear(&key);
            keys.push(Moved { name: name.to_vec(), value, deadline, mark });
        }
        if keys.is_empty() {
            return None;
        }
        server.moving.begin(db, keys.iter().map(|moved| moved.name.as_slice()));
        Some(Migration { server: server.shared(), config, db, keys, watcher, target, copies })
    }

    /// Sends them, on a thread that may wait.
    pub(crate) fn carry_out(self, session: &mut Session, reply: &mut Reply) -> Done {
        let mut outcome = Outcome::default();
        let sent = self.send(&mut outcome);
        let is_changed = !self.copies && !outcome.taken.is_empty() && self.delete(session, &outcome);
        drop(self);
        match (sent, outcome.refused) {
            (Err(failure), _) => return Err(error::migration_failed(step_word(failure.step))),
            (Ok(()), Some(text)) => return Err(error::migration_refused(&text)),
            (Ok(()), None) if is_changed => return Err(error::migration_overtaken()),
            (Ok(()), None) => reply.ok(),
        }
        Ok(())
    }

    /// By a connection that is kept, or a new one. One that is kept may have ended meanwhile: before anything
    /// was answered it is tried once more.
    fn send(&self, outcome: &mut Outcome) -> Result<(), Failure> {
        let is_secure = self.config.tls_cluster;
        if let Some(socket) = self.server.moving.take_socket(&self.target.name, is_secure) {
            match self.send_by(socket, outcome) {
                Err(failure) if !failure.is_timeout && *outcome == Outcome::default() => {}
                done => return done,
            }
        }
        let socket = match is_secure {
            true => self.target.connect_with(self.server.tls.current())?,
            false => self.target.connect()?,
        };
        self.send_by(socket, outcome)
    }

    fn send_by(&self, mut socket: Socket, outcome: &mut Outcome) -> Result<(), Failure> {
        let greetings = self.target.greet(&mut socket)?;
        let now = self.server.clock.now();
        let mut sent = Vec::new();
        for (index, moved) in self.keys.iter().enumerate() {
            let ttl_ms = match moved.deadline {
                Deadline::Never => 0,
                // It has passed meanwhile.
                Deadline::At(at) if at < now => continue,
                Deadline::At(at) => (at.0 - now.0).max(1),
            };
            let form = Form { version: rdb::VERSION_WRITTEN, compresses: self.config.store.rdb_compresses };
            let payload = rdb::dump(moved.value.value(), &self.config.store, form);
            self.target.send(&mut socket, &Parcel { key: &moved.name, ttl_ms, payload })?;
            sent.push(index);
        }
        let mut answers = Answers::of(&mut socket);
        let mut greeted = None;
        for _ in 0..greetings {
            greeted = greeted.or(answers.next()?);
        }
        for index in sent {
            outcome.note(index, greeted.clone().or(answers.next()?));
        }
        drop(answers);
        socket.db = outcome.refused.is_none().then_some(self.target.db);
        self.server.moving.keep_socket(socket, self.server.clock.steady_up());
        Ok(())
    }

    /// Deletes what the target has, unless it was changed meanwhile: then returns true. Like all that writes
    /// it waits for the end of a pause (CLIENT PAUSE).
    fn delete(&self, session: &mut Session, outcome: &Outcome) -> bool {
        const PAUSED: Duration = Duration::from_millis(10);
        loop {
            match self.try_to_delete(session, outcome) {
                Some(was_changed) => return was_changed,
                None => std::thread::sleep(PAUSED),
            }
        }
    }

    /// The same; None while a pause holds writes back.
    fn try_to_delete(&self, session: &mut Session, outcome: &Outcome) -> Option<bool> {
        let is_changed = |index: &&usize| self.keys[**index].mark.load(Acquire);
        let (server, mut was_changed) = (&self.server, Some(false));
        run_alone(server, session.record.worker, |alone| {
            if server.is_stopping() {
                return;
            }
            if server.pause.held(server.clock.steady_up()) != Held::Nothing {
                was_changed = None;
                return;
            }
            let name_of = |index: &usize| self.keys[*index].name.as_slice();
            let is_there = |name: &[u8]| server.keyspace.deadline_of(self.db, name).is_some();
            let is_lost = |index: &usize| is_changed(&index) && is_there(name_of(index));
            was_changed = Some(outcome.taken.iter().any(is_lost));
            let gone = outcome.taken.iter().filter(|index| !is_changed(index));
            let end = alone.delete(self.db, &gone.map(name_of).collect::<Vec<_>>());
            session.records_end = end.max(session.records_end);
        });
        was_changed
    }
}

/// The keys are held back no longer, whatever has become of them.
impl Drop for Migration {
    fn drop(&mut self) {
        let keyspace = &self.server.keyspace;
        for Moved { name, .. } in &self.keys {
            let spot = Spot { shard: keyspace.shard_number(keyspace.hash(name)), db: self.db, key: name };
            self.server.key_events.watched.remove(spot, self.watcher);
            keyspace.close_ear(name);
        }
        self.server.moving.end(self.db, self.keys.iter().map(|moved| moved.name.as_slice()));
    }
}

impl Outcome {
    fn note(&mut self, index: usize, answer: Answer) {
        match answer {
            None => self.taken.push(index),
            Some(text) => drop(self.refused.get_or_insert(text)),
        }
    }
}

fn step_word(step: Step) -> &'static str {
    match step {
        Step::Connecting => "connecting to the client",
        Step::Writing => "writing to target instance",
        Step::Reading => "reading to target instance",
    }
}
