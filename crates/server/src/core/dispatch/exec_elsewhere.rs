//! EXEC of requests of which some take long. All of the queue runs on another thread, on values with one more
//! owner each, as one request that writes does (`writing`), and takes its place as one step.
//!
//! The keys that the client watches may have changed until then: EXEC answers null where they have, and
//! nothing of it is seen. One that only reads has its place where its keys were shared, as a request that
//! reads has (`elsewhere`): nobody waits for it, and it runs once.
//!
//! A queue runs where it is if a request of it needs more than its keys, if its user may not send a request
//! of it any more, or if somebody is shown every request (MONITOR); also if its client leaves no trace
//! (CLIENT NO-TOUCH), or tracks keys and reads one that the queue changes: what it is told of then depends on
//! which comes first.
use super::Executor;
use super::elsewhere::{RESTLESS_ONE_IN, Reading, long_at_once};
use super::exec::{Handler, Plan};
use super::remember::chooses_reads;
use super::writing::TRIES_MAX;
use crate::core::lent::{Lent, Turn, Work};
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::queue::Queue;
use crate::core::queue_elsewhere::{Outcome, QueueElsewhere, SharedQueue, Step};
use crate::core::registry::{Row, Run};
use crate::core::session::{Session, WatchedKey};
use crate::core::written_elsewhere::{Committed, Hold};
use base::hash::Hash;
use command::{Access, Call, DataRun, Done, Flags, LONG_STEPS};
use net::Meter;
use resp::{Args, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Before, Garbage, Key, Made, View};

impl<'s> Executor<'s> {
    /// The values of a queue's keys, whose shards the view holds, if it takes long and may run elsewhere.
    pub(super) fn share_queue<'k>(
        &self,
        session: &Session,
        (queue, plan): (&'k Queue, &Plan),
        view: &mut View<'k>,
    ) -> Option<SharedQueue> {
        let stays = !self.leaves_trace
            || self.keeps_sessions
            || self.is_alone
            || self.attempt.is_some()
            || self.runs_scripts();
        let is_shown = self.server.monitors.is_any() || !session.reply_mode.answers();
        if stays || is_shown {
            return None;
        }
        let steps = self.steps_of_queue(session.db, (queue, plan), view)?;
        if steps < LONG_STEPS && self.server.restless.draw(RESTLESS_ONE_IN) != Some(0) {
            return None;
        }
        let is_allowed = !session.modes.has(Modes::RESTRICTED) || self.permits_all(session, queue);
        let is_noted = session.modes.has(Modes::TRACKING);
        if !is_allowed || is_noted && (chooses_reads(session) || self.reads_what_it_changes((queue, plan))) {
            return None;
        }
        view.begin_anew();
        let keys = keys_of_queue(session.db, (queue, plan), view);
        let (before, aside) = view.take_along(&keys);
        Some(SharedQueue { before, aside, names: keys.iter().map(|key| key.bytes().to_vec()).collect() })
    }

    /// Whether the rules of the user let all requests run. They are looked at once, as those of a request are
    /// that runs elsewhere by itself.
    pub(super) fn permits_all(&self, session: &Session, queue: &Queue) -> bool {
        queue.iter().all(|queued| {
            let row = self.server.registry.row(queued.row);
            let reads_further = match row.run {
                Run::Data(DataRun::KeysOrAll(ways)) => {
                    permission::check_options(session, row, ways, &queued.args).is_err()
                }
                _ => false,
            };
            permission::check(&session.user, row, &queued.args).is_ok() && !reads_further
        })
    }

    /// Whether a request of the queue reads a key that another changes.
    fn reads_what_it_changes(&self, (queue, plan): (&Queue, &Plan)) -> bool {
        let (mut read, mut changed) = (BTreeSet::new(), BTreeSet::new());
        for (queued, (_, keys)) in queue.iter().zip(plan.steps()) {
            let only_reads = self.server.registry.row(queued.row).flags.has(Flags::READONLY);
            let names = plan.keys()[keys].iter().map(|(at, _)| queued.args.at(*at as usize));
            if only_reads { read.extend(names) } else { changed.extend(names) }
        }
        !read.is_disjoint(&changed)
    }

    /// How many steps all requests take, as far as is known before the first has run; None if one needs more
    /// than its keys.
    fn steps_of_queue<'k>(
        &self,
        db: u16,
        (queue, plan): (&'k Queue, &Plan),
        view: &mut View<'k>,
    ) -> Option<u64> {
        let (mut steps, mut reply) = (0_u64, Reply::new(resp::Protocol::Resp2));
        let mut filled = Filled::default();
        for (queued, (handler, keys)) in queue.iter().zip(plan.steps()) {
            let Handler::Data(_) = handler else { return None };
            let row = self.server.registry.row(queued.row);
            if asks_for_more(row, &queued.args) {
                return None;
            }
            let key = |(at, hash): &(u32, Hash)| view.key(db, queued.args.at(*at as usize), *hash);
            let keys = plan.keys()[keys].iter().map(key);
            let keys: Vec<Key<'k>> = keys.map(|key| filled.what_is_in(key)).collect();
            if let Some(long) = long_at_once(row, &queued.args) {
                view.begin_anew();
                let work = (long.work)(&mut Call::new(view, queued.args, &keys, &mut reply));
                steps = steps.saturating_add(work.unwrap_or(0));
            }
            if keys.len() > 1 && puts_whole_values(row) {
                filled.note(&keys, view);
            }
        }
        Some(steps.saturating_add(plan.words()))
    }

    /// Has the worker lend the session for this queue.
    pub(super) fn lend_queue(&mut self, session: &mut Session, queue: Box<Queue>, shared: SharedQueue) {
        let SharedQueue { before, aside, names } = shared;
        let step = |queued: crate::core::queue::Queued<'_>, handler: Handler, keys| {
            let row = self.server.registry.row(queued.row);
            let Handler::Data(run) = handler else { unreachable!("such a queue is not shared") };
            Step { run, only_reads: row.flags.has(Flags::READONLY), keys }
        };
        let steps = queue.iter().zip(self.plan.steps());
        let steps = steps.map(|(queued, (handler, keys))| step(queued, handler, keys)).collect();
        let mut elsewhere = Box::new(QueueElsewhere {
            steps,
            keys: self.plan.keys().to_vec(),
            before,
            made: Made::default(),
            effects: self.wanted_effects(),
            outcomes: Vec::new(),
            tries: 0,
            hold: None,
            names,
            queue,
        });
        // What a client that tracks keys is told of depends on whether it had read them before.
        if !elsewhere.only_reads() || session.modes.has(Modes::TRACKING) {
            let names = elsewhere.names.clone();
            elsewhere.hold = Some(Hold::new(self.server.shared(), session.db, names));
        }
        // What is told of its look-ups comes with the rest of what it has done.
        let reading = self.reading(aside, self.server.registry.row(0));
        self.lend(session, elsewhere.work(reading, self.meter));
    }

    /// A queue has run elsewhere: what it has done takes its place, or it is to run again.
    pub(super) fn commit_queue(&mut self, lent: &mut Lent, mut elsewhere: Box<QueueElsewhere>) -> Committed {
        self.attend(&lent.session);
        let (start, records, db) = (self.meter.read(), self.end_of_records(), lent.session.db);
        let (config, keyspace) = (Arc::clone(&self.config), &self.server.keyspace);
        let hashes: Vec<Hash> = elsewhere.names.iter().map(|name| keyspace.hash(name)).collect();
        let watched = lent.session.watching.iter().flat_map(|all| &all.0).map(|watched| watched.hash);
        let locked = hashes.iter().copied().chain(watched);
        let mut view = keyspace.lock_shards_of(self.now.wall, &config.store, locked);
        let has_its_place = elsewhere.has_its_place();
        let QueueElsewhere { names, before, made, effects, tries, steps, keys: all_keys, .. } =
            &mut *elsewhere;
        let all = names.iter().zip(&hashes);
        let keys: Vec<Key<'_>> = all.map(|(name, hash)| view.key(db, name, *hash)).collect();
        let is_overdue = |watched: &WatchedKey| view.has_overdue(watched.db, &watched.key, watched.hash);
        let is_stale = !has_its_place && lent.session.has_stale_watch(self.server, is_overdue);
        let is_unheard = self.recorder.is_on() && effects.is_none();
        if is_stale {
            lent.reply.cut(0);
            lent.reply.null_array();
            self.let_go(view);
        } else if !has_its_place && (is_unheard || !view.is_still(&keys, before)) {
            *tries += 1;
            if *tries <= TRIES_MAX {
                let (now_before, aside) = view.take_along(&keys);
                self.let_go(view);
                let outdated = (std::mem::replace(before, now_before), std::mem::take(made));
                *effects = self.wanted_effects();
                let reading = self.reading(aside, self.server.registry.row(0));
                lent.begin_anew(elsewhere.work_anew(reading, self.meter, outdated));
                return Committed::Anew;
            }
            self.let_go(view);
            return self.run_queue_here(lent, *elsewhere);
        } else {
            let recording = self.recorder.begin(&self.server.journal, db, &view);
            let made = std::mem::take(made);
            view.accept(&keys, if has_its_place { made.only_what_it_counted() } else { made });
            if let (Some(recording), Some((effects, _))) = (recording, effects.take()) {
                self.recorder.end_made(recording, &self.server.journal, &mut view, effects);
            }
            // Last, because what is told takes with it what was asked of the view's end.
            let read = steps.iter().filter(|step| step.only_reads).flat_map(|step| step.keys.clone());
            self.note_reads(&mut view, read.map(|place| all_keys[place].1));
            self.let_go(view);
            self.count_queue(&lent.session, &elsewhere);
        }
        self.note_queue_records(lent, records);
        lent.ticks += self.meter.read().since(start);
        self.end_queue(&mut lent.session, *elsewhere);
        Committed::Done
    }

    /// It has run elsewhere in vain so often that it runs here.
    fn run_queue_here(&mut self, lent: &mut Lent, elsewhere: QueueElsewhere) -> Committed {
        let records = self.end_of_records();
        lent.session.put_queue_back(elsewhere.queue);
        self.free_made(elsewhere.before, elsewhere.made);
        lent.reply.cut(0);
        let keeps = std::mem::replace(&mut self.keeps_sessions, true);
        let start = self.meter.read();
        lent.done = self.exec(&mut lent.session, &mut lent.reply);
        lent.ticks += self.meter.read().since(start);
        self.keeps_sessions = keeps;
        self.note_queue_records(lent, records);
        Committed::Done
    }

    fn note_queue_records(&self, lent: &mut Lent, before: u64) {
        if self.end_of_records() != before {
            lent.session.records_end = self.end_of_records();
        }
    }

    /// Counts the requests of a queue that has run.
    fn count_queue(&self, session: &Session, elsewhere: &QueueElsewhere) {
        for (queued, outcome) in elsewhere.queue.iter().zip(&elsewhere.outcomes) {
            let row = self.server.registry.row(queued.row);
            let counters = &self.counters.commands[row.number];
            if let Some(error) = &outcome.error {
                counters.failed.add(1);
                self.counters.count_error(error.text());
            }
            counters.count(outcome.ticks, self.tracked);
            self.report(session, row, (outcome.ticks, queued.args, outcome.reply_bytes));
        }
    }

    /// EXEC has ended, and what it had queued with it.
    fn end_queue(&mut self, session: &mut Session, elsewhere: QueueElsewhere) {
        session.record.forget_queue(self.counters);
        session.unwatch(self.server);
        let QueueElsewhere { queue, before, made, .. } = elsewhere;
        self.queue_room.keep(queue);
        self.free_made(before, made);
    }

    fn free_made(&self, before: Before, made: Made) {
        let mut garbage: Vec<Garbage> = before.into_garbage().chain(made.into_garbage()).collect();
        if !garbage.is_empty() {
            self.server.background.free(&mut garbage);
        }
    }
}

/// Whether a request needs what is only known where its keys are: another database, or how a key was used.
fn asks_for_more(row: &Row, args: &Args<'_>) -> bool {
    // COPY has two keys, and names another database by an option of two words.
    let stays = row.keys.len() > 1 && args.len() < 5;
    row.flags.has(Flags::TELLS_USE) || row.flags.has(Flags::OTHER_DATABASES) && !stays
}

/// Whether a command overwrites a key by what it makes of others. LMOVE and its like move one element.
fn puts_whole_values(row: &Row) -> bool {
    let overwrites = |spec: &command::KeySpec| spec.access.has(Access::OW);
    row.keys.iter().any(overwrites) && !row.keys.iter().all(overwrites)
}

/// What a queue will have put under its keys, as far as that is told before it runs: COPY, RENAME and SORT
/// with STORE leave a key about as large as the largest that they name.
#[derive(Default)]
struct Filled<'k>(BTreeMap<&'k [u8], Key<'k>>);

impl<'k> Filled<'k> {
    /// The key whose value is about what this one will have.
    fn what_is_in(&self, key: Key<'k>) -> Key<'k> {
        self.0.get(key.bytes()).copied().unwrap_or(key)
    }

    fn note(&mut self, keys: &[Key<'k>], view: &View<'k>) {
        let sized = keys.iter().map(|key| (view.elements(key), key));
        if let Some((2.., largest)) = sized.max_by_key(|(elements, _)| *elements) {
            self.0.extend(keys.iter().map(|key| (key.bytes(), *largest)));
        }
    }
}

/// All keys of a queue, each once.
fn keys_of_queue<'k>(db: u16, (queue, plan): (&'k Queue, &Plan), view: &View<'k>) -> Vec<Key<'k>> {
    let mut all = BTreeMap::new();
    for (queued, (_, keys)) in queue.iter().zip(plan.steps()) {
        for (at, hash) in &plan.keys()[keys] {
            let name = queued.args.at(*at as usize);
            all.entry(name).or_insert_with(|| view.key(db, name, *hash));
        }
    }
    all.into_values().collect()
}

impl QueueElsewhere {
    /// What the thread does.
    fn work(self: Box<Self>, reading: Reading, meter: Meter) -> Work {
        Box::new(move |turn| self.run(reading, meter, turn))
    }

    /// The same, after it has made something in vain, which the thread frees.
    fn work_anew(self: Box<Self>, reading: Reading, meter: Meter, outdated: (Before, Made)) -> Work {
        Box::new(move |turn| {
            drop(outdated);
            self.run(reading, meter, turn)
        })
    }

    fn run(mut self: Box<Self>, reading: Reading, meter: Meter, turn: Turn<'_>) -> Done {
        let Reading { aside, config, now, .. } = reading;
        let db = turn.session.db;
        let QueueElsewhere { queue, steps, keys, names, before, made, effects, outcomes, .. } = &mut *self;
        let hashes: Vec<Hash> = names.iter().map(|name| aside.hash(name)).collect();
        let mut view = aside.lock_shards_of(now, &config.store, hashes.iter().copied());
        turn.reply.array(queue.len());
        outcomes.clear();
        for (step, queued) in steps.iter().zip(queue.iter()) {
            let key = |(at, hash): &(u32, Hash)| view.key(db, queued.args.at(*at as usize), *hash);
            let keys: Vec<Key<'_>> = keys[step.keys.clone()].iter().map(key).collect();
            let outcome =
                run_step(step, &mut view, (queued.args, &keys, &mut *turn.reply), effects, (db, meter));
            outcomes.push(outcome);
        }
        let all = names.iter().zip(&hashes);
        let all: Vec<Key<'_>> = all.map(|(name, hash)| view.key(db, name, *hash)).collect();
        *made = view.made(&all, before);
        drop(view);
        *turn.queue = Some(self);
        Ok(())
    }
}

/// Runs one request of a queue beside.
fn run_step<'k>(
    step: &Step,
    view: &mut View<'k>,
    (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
    effects: &mut Option<(command::Effects, command::Words)>,
    (db, meter): (u16, Meter),
) -> Outcome {
    let (start, began, changes) = (reply.out.len(), meter.read(), view.changes());
    view.begin_anew();
    if step.only_reads {
        view.count_lookups();
    }
    let telling = effects.as_mut().map(|(effects, words)| {
        effects.begin(db, *words);
        effects
    });
    let mut call = Call::new(view, args, keys, reply).telling(telling);
    let done = (step.run)(&mut call);
    if done.is_ok() {
        call.give_up_waiting();
    }
    drop(call);
    if view.changes() != changes
        && let Some((effects, _)) = effects
    {
        effects.end(args.iter_from(0));
    }
    if let Err(error) = &done {
        reply.error(error.text());
    }
    reply.finish();
    let ticks = meter.read().since(began);
    Outcome { ticks, reply_bytes: reply.out.len() - start, error: done.err() }
}
