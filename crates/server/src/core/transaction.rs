//! A session's transaction, from MULTI until it is run or given up.
//!
//! ```text
//! MULTI ---> open --- a request ---> queued; or refused: then it is broken ---> open
//!              \--- EXEC ------> its requests run as one step (`dispatch/exec.rs`); a broken one is given up
//!               \--- DISCARD, RESET, the client leaves ---> given up
//! ```
//!
//! What a client watches (`state/watched.rs`) is forgotten when its transaction ends, however it does.
use crate::core::modes::Modes;
use crate::core::queue::{Queue, Room};
use crate::core::server::Server;
use crate::core::session::{ClientRecord, Session, WatchedKey, Watching};
use crate::state::counters::Counters;
use crate::state::watched::{Mark, Spot};
use base::Millis;
use base::hash::Hash;
use command::Flags;
use resp::Args;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// `counters` are always those of the session's own worker.
impl Session {
    /// MULTI. The queue is one that has run before, where there is one; what that takes is noted with the
    /// first request. False where a transaction is open already.
    pub(crate) fn begin_transaction(&mut self, room: &mut Room) -> bool {
        if self.modes.has(Modes::TRANSACTION) {
            return false;
        }
        self.modes.set(Modes::TRANSACTION);
        self.queue = Some(room.take());
        self.record.queued.store(0, Relaxed);
        true
    }

    /// Keeps a request for EXEC.
    pub(crate) fn enqueue(
        &mut self,
        row: (usize, Flags),
        (hash, args): (Option<Hash>, &Args<'_>),
        counters: &Counters,
    ) {
        // EXEC will refuse a queue that is broken, or whose watched keys have changed: nothing more is kept
        // for it.
        let is_kept = |queue: &&mut Queue| !queue.is_broken && !self.record.is_watch_broken();
        let Some(queue) = self.queue.as_deref_mut().filter(is_kept) else { return };
        queue.push(row, hash, args);
        self.record.note_queue(queue, counters);
    }

    /// Keeps requests for EXEC that came together: so many, with these arguments of all of them. False, and
    /// nothing has happened, where they have to be kept one by one, because nothing more is kept or because
    /// this much may not be.
    pub(crate) fn enqueue_run(
        &mut self,
        (args, count): (&Args<'_>, usize),
        requests: impl Iterator<Item = ((usize, Flags), Option<Hash>, usize)>,
        bytes_max: u64,
        counters: &Counters,
    ) -> bool {
        let Some(queue) = self.queue.as_deref_mut() else { return false };
        let bytes = (queue.request_bytes() + args.framed_bytes_from(0)) as u64;
        let is_kept = !queue.is_broken && !self.record.is_watch_broken() && bytes <= bytes_max;
        if !is_kept || !queue.push_run((args, count), requests) {
            return false;
        }
        self.record.note_queue(queue, counters);
        true
    }

    /// A request was refused while the transaction is open.
    pub(crate) fn break_transaction(&mut self) {
        if let Some(queue) = self.queue.as_deref_mut() {
            queue.is_broken = true;
        }
    }

    /// EXEC takes what is queued. CLIENT LIST goes on showing it until [`ClientRecord::forget_queue`].
    pub(crate) fn take_queue(&mut self) -> Option<Box<Queue>> {
        self.modes.clear(Modes::TRANSACTION);
        self.queue.take()
    }

    /// After [`Session::take_queue`]: it has not run.
    pub(crate) fn put_queue_back(&mut self, queue: Box<Queue>) {
        self.modes.set(Modes::TRANSACTION);
        self.queue = Some(queue);
    }

    /// Gives up what is queued. False where no transaction is open.
    pub(crate) fn give_up_transaction(&mut self, server: &Server) -> bool {
        let queue = self.take_queue();
        self.record.forget_queue(&server.counters.0[self.record.worker]);
        if queue.is_some() {
            self.unwatch(server);
        }
        queue.is_some()
    }

    /// WATCH of these keys, at this time. Locks the shard of each. Once a key that the client watches has
    /// changed, EXEC answers null whatever else is watched: then no more keys are.
    pub(crate) fn watch<'n>(
        &mut self,
        server: &Server,
        names: impl ExactSizeIterator<Item = &'n [u8]>,
        now: Millis,
    ) {
        let (config, db, keyspace) = (server.config(), self.db, &server.keyspace);
        let mark = self.record.watch_mark.get_or_init(Mark::default);
        let Watching(keys) = &mut **self.watching.get_or_insert_default();
        keys.reserve(names.len().min(RESERVED_MAX));
        let mut bytes = self.record.watched_bytes.load(Relaxed);
        for name in names {
            if self.record.is_watch_broken() {
                break;
            }
            let hash = keyspace.hash(name);
            let (mut view, key) = keyspace.lock_one_hashed(db, now, &config.store, name, hash);
            let spot = Spot { shard: keyspace.shard_number(hash), db, key: name };
            if server.key_events.watched.add(spot, (self.record.id, mark), view.is_overdue(&key)) {
                view.open_ear(&key);
                keys.push(WatchedKey { db, key: name.into(), hash });
                bytes += watched_bytes(name);
            }
        }
        self.record.note_watched(keys.len() as u64, bytes, &server.counters.0[self.record.worker]);
    }

    /// The client watches nothing any more. Locks the shard of each key that it has watched.
    pub(crate) fn unwatch(&mut self, server: &Server) {
        let Some(watching) = self.watching.take() else { return };
        for WatchedKey { db, key, hash } in &watching.0 {
            let spot = Spot { shard: server.keyspace.shard_number(*hash), db: *db, key };
            server.key_events.watched.remove(spot, self.record.id);
            server.keyspace.close_ear_of(*hash);
        }
        // Nobody marks it from here on.
        if let Some(mark) = self.record.watch_mark.get() {
            mark.store(false, Relaxed);
        }
        self.record.note_watched(0, 0, &server.counters.0[self.record.worker]);
    }

    /// Whether a key that the client watches has changed, or is past its deadline since. `is_overdue` tells
    /// the latter. The caller keeps all of these keys as they are: it holds their shards, or all gates.
    pub(crate) fn has_stale_watch(&self, server: &Server, is_overdue: impl Fn(&WatchedKey) -> bool) -> bool {
        let was_overdue = |watched: &WatchedKey| {
            let shard = server.keyspace.shard_number(watched.hash);
            let spot = Spot { shard, db: watched.db, key: &watched.key };
            server.key_events.watched.was_overdue(spot, self.record.id)
        };
        self.record.is_watch_broken()
            || self.watching.iter().flat_map(|all| &all.0).any(|key| is_overdue(key) && !was_overdue(key))
    }

    /// How many bytes of requests are queued.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.as_deref().map_or(0, Queue::request_bytes)
    }

    /// Whether EXEC would run a command that has this flag.
    pub(crate) fn has_queued(&self, flag: Flags) -> bool {
        self.queue.as_deref().is_some_and(|queue| !queue.is_broken && queue.has(flag))
    }
}

/// WATCH makes room for so many keys at once.
const RESERVED_MAX: usize = 64;

/// About how many bytes a watched key takes: its name twice, and its places in the lists.
fn watched_bytes(name: &[u8]) -> u64 {
    const PLACES_BYTES: usize = 160;
    (2 * name.len() + PLACES_BYTES) as u64
}

/// Only the connection's worker calls these.
impl ClientRecord {
    /// Shows others how long the queue is and what it takes.
    fn note_queue(&self, queue: &Queue, counters: &Counters) {
        self.queued.store(queue.len() as i64, Relaxed);
        self.note_queue_bytes(queue.room_bytes() as u64, counters);
    }

    /// There is no queue any more.
    pub(crate) fn forget_queue(&self, counters: &Counters) {
        self.queued.store(ClientRecord::NO_TRANSACTION, Relaxed);
        self.note_queue_bytes(0, counters);
    }

    fn note_queue_bytes(&self, bytes: u64, counters: &Counters) {
        note(&self.queue_bytes, bytes, counters);
    }

    fn note_watched(&self, count: u64, bytes: u64, counters: &Counters) {
        self.watched.store(count, Relaxed);
        note(&self.watched_bytes, bytes, counters);
    }
}

/// Brings a figure and its worker's sum up to date.
fn note(cell: &AtomicU64, bytes: u64, counters: &Counters) {
    let before = cell.load(Relaxed);
    if before != bytes {
        cell.store(bytes, Relaxed);
        counters.state_bytes.add(bytes.wrapping_sub(before));
    }
}
