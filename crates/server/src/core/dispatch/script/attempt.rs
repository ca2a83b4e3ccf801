//! What a script has done so far, so that it can be taken back.
//!
//! Workers run scripts themselves, because most take microseconds, and another thread would have to be woken
//! for each. But a script may take for ever, and its commands may do what cannot be taken back. So a worker
//! attempts it:
//!
//! ```text
//! worker: run it --- it ends within PATIENCE_NS ---> commit: who listens is told, its calls are counted
//!             \--- it takes longer, or publishes, flushes, ... ---> undo: all is as before --- Errand --->
//!                                                                   the thread of scripts runs it
//! ```
//!
//! Before a command writes, what is under its keys is kept: one more owner for a value, whatever its size.
//! What happened to keys, and what the statistics count, is held back until the script has ended.
use super::Executor;
use crate::core::call::ServerRun;
use crate::core::registry::{Row, Run};
use crate::core::waiters::Ready;
use base::hash::Hash;
use command::{DataRun, Flags, Scope};
use net::Tick;
use resp::Args;
use std::cell::RefCell;
use std::collections::BTreeMap;
use store::{Event, Garbage, Key, ShardStats, Taken, Told, View};

/// How long a worker attempts a script.
pub(super) const PATIENCE_NS: u64 = 1_000_000;

/// See the file's opener.
pub(in crate::core::dispatch) struct Attempt {
    /// When it is given up.
    patience_ticks: u64,
    began: Tick,
    /// What was under the keys that it has written to.
    kept: BTreeMap<(u16, Hash, Box<[u8]>), Option<Taken>>,
    /// What the shards had counted that it has looked into, each with the name of a key there.
    counts: RefCell<BTreeMap<usize, (Box<[u8]>, ShardStats)>>,
    deferred: RefCell<Deferred>,
    /// Calls of commands: the row's number, the ticks, and what came of it.
    calls: Vec<(u32, u64, Fate)>,
    /// Texts of errors that are to be counted.
    errors: Vec<Vec<u8>>,
    /// Where the worker's records stood.
    mark: usize,
}

/// What came of the call of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Ran,
    Failed,
    Rejected,
}

/// What is done when the script has ended.
#[derive(Default)]
struct Deferred {
    told: Vec<Told>,
    garbage: Vec<Garbage>,
}

impl Attempt {
    /// Puts off what a command leaves to be done.
    pub(in crate::core::dispatch) fn defer(&self, told: Vec<Told>, garbage: Vec<Garbage>) {
        let mut deferred = self.deferred.borrow_mut();
        deferred.told.extend(told);
        deferred.garbage.extend(garbage);
    }

    /// These keys are about to be looked up.
    pub(in crate::core::dispatch) fn note_counts(&self, view: &View<'_>, keys: &[Key<'_>]) {
        let mut noted = self.counts.borrow_mut();
        for (shard, counts) in view.counts() {
            let Some(key) = keys.iter().find(|key| view.is_in(key, shard)) else { continue };
            noted.entry(shard).or_insert_with(|| (key.bytes().into(), counts));
        }
    }

    /// Whether it has taken too long.
    pub(super) fn is_over(&self, now: Tick) -> bool {
        now.since(self.began) >= self.patience_ticks
    }
}

/// Whether a command can be taken back, or does nothing but read.
pub(super) fn is_undoable(row: &Row, args: &Args<'_>) -> bool {
    let has = |flag| row.flags.has(flag);
    match row.run {
        Run::Data(_) if has(Flags::OTHER_DATABASES) => false,
        Run::Data(DataRun::Keys(_) | DataRun::Blocking(_) | DataRun::Long(_)) => true,
        Run::Data(DataRun::KeysOrAll(ways)) => !(ways.needs_all)(args),
        Run::Data(DataRun::Whole(Scope::Shared, _) | DataRun::LongWhole(..)) => !has(Flags::WRITE),
        Run::Data(DataRun::Whole(Scope::Exclusive, _) | DataRun::Container) => false,
        Run::Server(ServerRun::Anywhere(_) | ServerRun::Shared(_)) => {
            !(has(Flags::ADMIN) || has(Flags::PUBSUB) || has(Flags::MAY_REPLICATE) || has(Flags::WRITE))
        }
        Run::Server(_) => false,
    }
}

impl<'s> Executor<'s> {
    /// What is done from here on may be taken back.
    pub(super) fn begin_attempt(&mut self) {
        // So that lookups are prepared closely.
        self.is_plain = false;
        self.attempt = Some(Box::new(Attempt {
            patience_ticks: self.meter.ticks(PATIENCE_NS),
            began: self.meter.read(),
            kept: BTreeMap::new(),
            counts: RefCell::default(),
            deferred: RefCell::default(),
            calls: Vec::new(),
            errors: Vec::new(),
            mark: self.recorder.mark(),
        }));
    }

    /// Keeps what is under the keys of a command that is about to write.
    pub(super) fn keep_keys(&mut self, db: u16, row: &Row, args: &Args<'_>) {
        let Some(mut attempt) = self.attempt.take() else { return };
        row.extract_keys(args, &mut self.positions);
        let keyspace = &self.server.keyspace;
        for position in &self.positions {
            let name = args.at(*position as usize);
            let hash = keyspace.hash(name);
            let place = (db, hash, Box::from(name));
            if attempt.kept.contains_key(&place) {
                continue;
            }
            let (mut view, key) = keyspace.lock_one_hashed(db, self.now.wall, &self.config.store, name, hash);
            attempt.note_counts(&view, &[key]);
            attempt.kept.insert(place, view.keep(&key));
        }
        self.attempt = Some(attempt);
    }

    /// The script has ended: what it has done is done.
    pub(super) fn commit_attempt(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        let Attempt { deferred, calls, errors, .. } = *attempt;
        let Deferred { told, mut garbage } = deferred.into_inner();
        if !told.is_empty() {
            self.tell(&told);
            let places = self.server.key_events.waiters.awaited(&told);
            self.server.key_events.waiters.make_ready(places.into_iter().map(Ready::for_all).collect());
        }
        if !garbage.is_empty() {
            self.server.background.free(&mut garbage);
        }
        calls.into_iter().for_each(|(row, ticks, fate)| self.count_call(row, ticks, fate));
        errors.iter().for_each(|text| self.counters.count_error(text));
    }

    /// Counts a call of a script's command, when it is certain that it stays.
    pub(super) fn note_call(&mut self, row: &Row, ticks: u64, fate: Fate) {
        match &mut self.attempt {
            Some(attempt) => attempt.calls.push((row.number as u32, ticks, fate)),
            None => self.count_call(row.number as u32, ticks, fate),
        }
    }

    fn count_call(&self, row: u32, ticks: u64, fate: Fate) {
        let counts = &self.counters.commands[row as usize];
        match fate {
            Fate::Rejected => return counts.rejected.add(1),
            Fate::Failed => counts.failed.add(1),
            Fate::Ran => {}
        }
        counts.count(ticks, self.tracked);
    }

    /// Counts an error of a script in the same way.
    pub(super) fn note_error(&mut self, text: &[u8]) {
        match &mut self.attempt {
            Some(attempt) => attempt.errors.push(text.to_vec()),
            None => self.counters.count_error(text),
        }
    }

    /// Takes back what the script has done. Only what has expired meanwhile stays so.
    #[cold]
    pub(super) fn undo_attempt(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        let Attempt { kept, counts, deferred, mark, .. } = *attempt;
        self.recorder.forget_since(mark);
        let Deferred { mut told, mut garbage } = deferred.into_inner();
        let keyspace = &self.server.keyspace;
        told.retain(|told| {
            let has_expired = told.event == Event::EXPIRED || told.event == Event::FIELDS_EXPIRED;
            let place = (told.db, keyspace.hash(&told.key), told.key.clone().into());
            has_expired && !kept.contains_key(&place)
        });
        for ((db, hash, name), value) in kept {
            let (mut view, key) =
                keyspace.lock_one_hashed(db, self.now.wall, &self.config.store, &name, hash);
            view.put_back(&key, value);
            garbage.extend(view.take_garbage());
        }
        for (name, then) in counts.into_inner().into_values() {
            keyspace.lock_one(0, self.now.wall, &self.config.store, &name).0.take_back_counts(&then);
        }
        self.recorder.note_expired(&self.server.journal, &told);
        self.tell(&told);
        self.server.background.free(&mut garbage);
    }
}
