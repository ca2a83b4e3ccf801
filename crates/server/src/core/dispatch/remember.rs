//! What is noted of the reads of a client that tracks keys (`core/tracking`), or that wants to leave no trace
//! of them (CLIENT NO-TOUCH). Others pay one test for both.
use super::Executor;
use crate::core::modes::Modes;
use crate::core::registry::Row;
use crate::core::session::{ClientRecord, Session};
use crate::core::tracking::Origin;
use crate::core::tracking::tracker::TrackingFlags;
use base::hash::Hash;
use command::{Acl, Flags};
use resp::Args;
use std::cell::RefCell;
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{Key, Told, View};

/// The client that is served, where it tracks keys.
#[derive(Default)]
pub(super) struct Reader {
    record: Option<Arc<ClientRecord>>,
    /// The keys that its present command reads. They are remembered behind it: what it changes itself, as
    /// PFCOUNT does and whatever finds a key past its deadline, is told to those who had read it before.
    keys: RefCell<Vec<Hash>>,
}

impl Reader {
    pub(super) fn of(record: Option<Arc<ClientRecord>>) -> Reader {
        Reader { record, keys: RefCell::default() }
    }
}

/// Whether the client of a session tracks keys and says which of its reads are remembered (CLIENT CACHING).
/// What it says is about the moment at which a request is received.
pub(super) fn chooses_reads(session: &Session) -> bool {
    let flags = session.record.tracker.get().map(|tracker| tracker.flags());
    flags.is_some_and(|flags| flags.has(TrackingFlags::OPTIN) || flags.has(TrackingFlags::OPTOUT))
}

impl Executor<'_> {
    /// The requests that follow are of this session, or its modes have changed.
    #[inline]
    pub(super) fn attend(&mut self, session: &Session) {
        self.listens = session.modes.has(Modes::HEARS);
        let is_plain = session.leaves_trace && !session.modes.has(Modes::TRACKING);
        if !(is_plain && self.is_plain) {
            cold_path();
            self.is_plain = is_plain;
            self.attend_closely(session);
        }
    }

    #[inline(never)]
    fn attend_closely(&mut self, session: &Session) {
        self.leaves_trace = session.leaves_trace;
        let tracks = session.modes.has(Modes::TRACKING);
        self.reader.record = tracks.then(|| Arc::clone(&session.record));
        self.reader.keys.borrow_mut().clear();
    }

    /// Tells the view what the lookups of this command count as: hits and misses of INFO, uses of a key.
    #[inline]
    pub(super) fn prepare(&self, view: &mut View<'_>, row: &Row, keys: &[Key<'_>]) {
        if row.flags.has(Flags::READONLY) {
            view.count_lookups();
        }
        if !self.is_plain {
            self.prepare_closely(view, row, keys);
        }
    }

    /// A command is about to look these keys up, whose shards are locked.
    #[cold]
    #[inline(never)]
    fn prepare_closely(&self, view: &mut View<'_>, row: &Row, keys: &[Key<'_>]) {
        if !self.leaves_trace {
            view.leave_no_trace();
        }
        let mut read = self.reader.keys.borrow_mut();
        read.clear();
        if self.reader.record.is_some() && row.flags.has(Flags::READONLY) {
            read.extend(keys.iter().map(|key| self.server.keyspace.hash(key.bytes())));
            view.ask_for_end();
        }
    }

    /// Commands that have run elsewhere have read keys with these hashes. Where their client tracks keys they
    /// are remembered when the view is let go, which holds their shards.
    pub(super) fn note_reads(&self, view: &mut View<'_>, keys: impl Iterator<Item = Hash>) {
        if self.reader.record.is_some() {
            let mut read = self.reader.keys.borrow_mut();
            read.clear();
            read.extend(keys);
            view.ask_for_end();
        }
    }

    /// Prepares the look-ups of a request that has waited, whose client has this record.
    pub(super) fn prepare_anew(
        &self,
        view: &mut View<'_>,
        row: &Row,
        keys: &[Key<'_>],
        record: &ClientRecord,
    ) {
        if row.flags.has(Flags::READONLY) {
            view.count_lookups();
            let read: Vec<Hash> = keys.iter().map(|key| self.server.keyspace.hash(key.bytes())).collect();
            self.remember(record, &read);
        }
        if record.details().is_touchless {
            view.leave_no_trace();
        }
    }

    /// A command on the whole keyspace has read these keys of its own, while nobody else runs anything.
    pub(super) fn remember_alone(&mut self, row: &Row, args: &Args<'_>) {
        let Some(record) = self.reader.record.as_deref().filter(|_| row.flags.has(Flags::READONLY)) else {
            return;
        };
        row.extract_keys(args, &mut self.positions);
        let hash_of = |position: &u32| self.server.keyspace.hash(args.at(*position as usize));
        let read: Vec<Hash> = self.positions.iter().map(hash_of).collect();
        self.remember(record, &read);
    }

    /// Remembers reads, in an attempt when it is certain that it stays: before that, what it has changed is
    /// told to nobody, and a key that it changes and then reads would be forgotten again.
    fn remember(&self, record: &ClientRecord, read: &[Hash]) {
        if let Some(attempt) = &self.attempt {
            cold_path();
            return attempt.defer_reads(read);
        }
        if let Some(tracker) = record.tracker.get() {
            let keys_max = self.config.tracking_table_keys_max;
            self.server.key_events.tracking.remember(tracker, read, keys_max);
        }
    }

    /// Tells those who listen, watch or keep copies what the present command did to keys, whose shards are
    /// locked, and remembers what its client has read.
    #[cold]
    pub(super) fn hear(&self, told: &[Told]) {
        self.tell(told);
        self.remember_reader();
    }

    /// Tells those who listen what has happened to keys.
    pub(super) fn tell(&self, told: &[Told]) {
        self.server.key_events.hear(told, self.origin(self.reader.record.as_deref()));
    }

    /// The client that is served, if it tracks keys, has read those of its command.
    pub(super) fn remember_reader(&self) {
        self.remember_keys(&self.reader.keys.borrow());
    }

    /// The client that is served, if it tracks keys, has read these.
    pub(super) fn remember_keys(&self, read: &[Hash]) {
        if let Some(record) = self.reader.record.as_deref() {
            self.remember(record, read);
        }
    }

    /// What the client with this record does is done by it, where it tracks keys, in a batch of this worker.
    pub(super) fn origin<'r>(&self, record: Option<&'r ClientRecord>) -> Origin<'r> {
        let tracker = record.and_then(|record| record.tracker.get()).map(|tracker| &**tracker);
        Origin { worker: self.worker, tracker }
    }

    /// A request that was lent to another thread is back, or has waited for its keys and waits no longer:
    /// what CLIENT CACHING has said was about all that it has read until now.
    pub(crate) fn end_late_request(&self, session: &Session) {
        let row = self.server.registry.row(session.record.last_row.load(Relaxed) as usize);
        self.forget_caching(session, Some(row));
    }

    /// A command has ended, or was refused: CLIENT CACHING was about it, unless it is a subcommand of CLIENT
    /// itself or part of a transaction.
    pub(super) fn forget_caching(&self, session: &Session, row: Option<&Row>) {
        let is_part = session.modes.has(Modes::TRANSACTION) || session.modes.has(Modes::EXECUTING);
        // The only container among the commands about connections.
        let is_client = row.is_some_and(|row| row.acl.has(Acl::CONNECTION) && row.full_name.contains('|'));
        if let Some(tracker) = session.record.tracker.get().filter(|_| !is_part && !is_client) {
            tracker.forget_caching();
        }
    }

    /// After a batch: clients are told what has changed under their prefixes, and the table of what was read
    /// is brought back to its bound.
    #[inline(never)]
    pub(super) fn settle(&mut self) {
        let keys_max = self.config.tracking_table_keys_max;
        self.server.key_events.tracking.settle(
            self.worker,
            &self.server.keyspace,
            keys_max,
            &mut self.random,
        );
    }
}
