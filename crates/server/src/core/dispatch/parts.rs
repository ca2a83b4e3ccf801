//! Requests of very many keys (MSET, DEL, MGET of a million). They run in parts, on their session's worker,
//! which serves other clients between two of them.
//!
//! ```text
//! worker: lend the session -- a thread: hash the keys, put them in the order of their shards
//!                          -- worker: begin, under all gates -- a part, a turn of others, a part ... -- the
//! end                                                    \-- somebody takes all gates: the rest at once
//! -----/
//! ```
//!
//! Nobody sees that it is half done. As long as it runs its keys are its own: requests that name one of them
//! are tried again until it has ended (`moving`), but that keys which are only read may be read. So are those
//! that look at keys which they do not name: SCAN, DBSIZE, scripts. They come in before the next one begins.
//! Whoever takes all gates runs what is left of it first (`Server::enter_alone`), so KEYS, a snapshot, a
//! pause or EXEC finds all of it done, or nothing begun. It begins while all gates are held, hence no batch
//! is under way that would not look.
//!
//! Its place among all others is anywhere between its beginning and its end, since no other request has to do
//! with its keys in between. In the journal it is one record: of one that writes whatever is there, at its
//! beginning, so that a key of its own which is evicted meanwhile goes behind it, unless it is still to be
//! overwritten (`Early`); of others, at their end. Clients that wait for a key and name one of its keys are
//! served when it has ended.
//! What happens to its keys is told with each part; who hears of one key and asks for another has to wait
//! too.
use super::alone::run_under_gates;
use super::elsewhere::WIDE_WORDS;
use super::remember::{Reader, chooses_reads};
use super::{Executor, Request};
use crate::core::call::ServerRun;
use crate::core::lent::{Lent, Turn};
use crate::core::modes::Modes;
use crate::core::parted::{Parted, Progress, Stage};
use crate::core::registry::{Row, Run};
use crate::core::session::Session;
use crate::core::written_elsewhere::Committed;
use crate::state::journal::Early;
use crate::state::moving::InParts;
use base::hash::Hash;
use command::{Call, DataRun, Done, Flags, Parts};
use net::Tick;
use resp::{Args, Reply};
use std::sync::atomic::{AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};
use store::Garbage;

/// Keys of a part, and for how long parts run in one turn. Builds with checks run one small part a turn.
const PART_KEYS: usize = if cfg!(debug_assertions) { 5 } else { 32 };
/// A part has no more keys as soon as their new values have so many bytes.
const PART_BYTES: usize = if cfg!(debug_assertions) { 300 } else { 256 << 10 };
const TURN_NS: u64 = if cfg!(debug_assertions) { 0 } else { 200_000 };

impl<'s> Executor<'s> {
    /// Whether a request of so many keys that it takes long may run in parts, by its form and its session.
    pub(super) fn runs_in_parts(&self, session: &Session, row: &Row, args: &Args<'_>) -> bool {
        let is_well_formed = match row.parts {
            Parts::Never => return false,
            Parts::Added | Parts::Listed => true,
            Parts::Pairs | Parts::PairsIfNone(_) => args.len() % 2 == 1,
        };
        is_well_formed && !chooses_reads(session)
    }

    /// Has a thread put the keys of a request in order, which comes back to run in parts.
    pub(super) fn part(&mut self, session: &mut Session, row: &'s Row, run: fn(&mut Call<'_, '_>) -> Done) {
        let server = self.server.this.clone();
        let (keys, parts, number) = (row.keys, row.parts, row.number);
        let writes = row.flags.has(Flags::WRITE);
        let now = self.now.wall;
        let work = move |turn: Turn<'_>| {
            let mut positions = Vec::new();
            command::key_positions(keys, &turn.args, &mut positions);
            let hash = |at: &u32| turn.server.keyspace.hash(turn.args.at(*at as usize));
            let mut keys: Vec<(Hash, u32)> = positions.iter().map(|at| (hash(at), *at)).collect();
            // In the order of their shards; of two that are the same the second stays behind the first.
            keys.sort_by_key(|(hash, at)| (hash.0, *at));
            // Few keys are run in the order in which they are named: so their events are told.
            let is_as_named = turn.args.len() < WIDE_WORDS || matches!(parts, Parts::Listed);
            let order = match is_as_named {
                true => positions,
                false => keys.iter().map(|(_, at)| *at).collect(),
            };
            let place = |(nth, (hash, at)): (usize, (Hash, u32))| {
                let nth = if is_as_named { order.binary_search(&at).unwrap_or(nth) } else { nth };
                (hash, nth as u32)
            };
            let hashes = keys.into_iter().enumerate().map(place).collect();
            let session = &*turn.session;
            let tracks = session.modes.has(Modes::TRACKING).then(|| Arc::clone(&session.record));
            *turn.parts = Some(Arc::new_cyclic(|this| Parted {
                this: this.clone(),
                server,
                worker: session.record.worker,
                db: session.db,
                row: number,
                parts,
                run: if let Parts::PairsIfNone(run) = parts { run } else { run },
                writes,
                now,
                tracks,
                leaves_trace: session.leaves_trace,
                hashes,
                progress: Mutex::new(Progress::new(order, turn.reply)),
                overwritten: AtomicUsize::new(0),
            }));
            Ok(())
        };
        self.lend(session, Box::new(work));
    }

    /// Begins a request that runs in parts, or goes on with it.
    pub(super) fn go_on(&mut self, lent: &mut Lent, parted: Arc<Parted>) -> Committed {
        self.begin();
        let stage = parted.progress().stage;
        let committed = match stage {
            Stage::Waits => self.begin_parts(lent, &parted),
            Stage::Looks | Stage::Runs if self.is_shut_out || !self.server.moving.may_run_part() => {
                Committed::Later
            }
            Stage::Looks | Stage::Runs => self.run_for_a_turn(lent, &parted),
            Stage::Ended => Committed::Done,
        };
        match committed {
            Committed::Done => self.take_back(lent, parted),
            _ => lent.parts = Some(parted),
        }
        self.end();
        committed
    }

    /// It begins if nothing is to be waited for.
    fn begin_parts(&mut self, lent: &mut Lent, parted: &Arc<Parted>) -> Committed {
        if !self.server.moving.may_begin_parts() || parted.writes && !self.may_commit() || self.is_shut_out {
            return Committed::Later;
        }
        let begun = self.alone(|this| {
            let (server, mut progress) = (this.server, parted.progress());
            let is_held = server.pause.word() != 0 || server.persistence.is_loading();
            if server.is_stopping() || parted.writes && is_held {
                return false;
            }
            if !server.moving.begin_parts(parted.db, Arc::clone(parted) as Arc<dyn InParts>) {
                return false;
            }
            progress.request = std::mem::take(&mut lent.request);
            std::mem::swap(&mut progress.reply, &mut lent.reply);
            progress.stage = match parted.parts {
                Parts::PairsIfNone(_) => Stage::Looks,
                _ => Stage::Runs,
            };
            true
        });
        match begun {
            Ok(true) => Committed::Partly,
            _ => Committed::Later,
        }
    }

    fn run_for_a_turn(&mut self, lent: &mut Lent, parted: &Parted) -> Committed {
        let start = self.meter.read();
        let mut progress = parted.progress();
        self.run_parts(parted, &mut progress, Some(start));
        lent.ticks += self.meter.read().since(start);
        match progress.stage {
            Stage::Ended => Committed::Done,
            _ => Committed::Partly,
        }
    }

    /// It has ended: its session gets back what was taken from it.
    fn take_back(&self, lent: &mut Lent, parted: Arc<Parted>) {
        let mut progress = parted.progress();
        lent.request = std::mem::take(&mut progress.request);
        std::mem::swap(&mut progress.reply, &mut lent.reply);
        lent.done = std::mem::replace(&mut progress.done, Ok(()));
        lent.session.records_end = lent.session.records_end.max(progress.records_end);
        let bytes = size_of_val(&parted.hashes[..]) + size_of_val(&progress.order[..]);
        drop(progress);
        self.server.background.free(&mut vec![Garbage::of_bytes(bytes as u64, parted)]);
    }

    /// Runs parts as long as a turn takes that began then; None: all that are left.
    fn run_parts(&mut self, parted: &Parted, progress: &mut Progress, start: Option<Tick>) {
        self.attend_to(parted);
        let turn_ticks = self.meter.ticks(TURN_NS);
        while progress.stage != Stage::Ended {
            self.run_next(parted, progress);
            if start.is_some_and(|start| self.meter.read().since(start) >= turn_ticks) {
                break;
            }
        }
        // Whoever is attended to next is so from the beginning.
        self.is_plain = false;
    }

    /// What is read and changed from here on is so by the client of this request.
    fn attend_to(&mut self, parted: &Parted) {
        self.leaves_trace = parted.leaves_trace;
        self.reader = Reader::of(parted.tracks.clone());
        self.is_plain = parted.leaves_trace && parted.tracks.is_none();
    }

    fn run_next(&self, parted: &Parted, progress: &mut Progress) {
        let is_looking = progress.stage == Stage::Looks;
        if progress.ran == 0 && !is_looking {
            self.begin_to_run(parted, progress);
        }
        let mut answer = Reply::new(progress.reply.protocol);
        answer.bound(progress.reply.spare_bytes());
        let mut is_there = false;
        let done = self.run_keys_of_part(
            parted,
            progress,
            |call| match is_looking {
                true => {
                    is_there = call.keys().iter().any(|key| call.view.exists(key));
                    Ok(())
                }
                false => (parted.run)(call),
            },
            &mut answer,
        );
        if done.is_err() || is_there {
            progress.done = done;
            return self.end_parts(parted, progress);
        }
        if !is_looking {
            gather(parted.parts, progress, answer);
        }
        if progress.ran < progress.order.len() {
            return;
        }
        match is_looking {
            true => (progress.stage, progress.ran) = (Stage::Runs, 0),
            false => self.end_parts(parted, progress),
        }
    }

    /// Before the first part that runs.
    fn begin_to_run(&self, parted: &Parted, progress: &mut Progress) {
        match parted.parts {
            Parts::Listed => progress.reply.array(progress.order.len()),
            Parts::PairsIfNone(_) => progress.sum = 1,
            _ => {}
        }
        if parted.is_early() && self.recorder.is_on() {
            if let Some(this) = parted.this.upgrade() {
                self.server.journal.begin_early(this);
            }
            self.record_parted(parted, progress);
        }
    }

    /// Runs the next part, which is a request of some of the keys.
    fn run_keys_of_part(
        &self,
        parted: &Parted,
        progress: &mut Progress,
        run: impl FnOnce(&mut Call<'_, '_>) -> Done,
        answer: &mut Reply,
    ) -> Done {
        let Progress { stage, request, order, ran, spans, .. } = progress;
        let values = usize::from(parted.is_early());
        let all = &order[*ran..order.len().min(*ran + PART_KEYS)];
        let value_bytes = |at: &u32| request.args().at(*at as usize + values).len();
        let mine = &all[..count_up_to(all.iter().map(value_bytes), PART_BYTES)];
        *ran += mine.len();
        let args = request.some(mine.iter().flat_map(|at| *at as usize..=*at as usize + values), spans);
        let keyspace = &self.server.keyspace;
        let names: Vec<&[u8]> = args.iter_from(1).step_by(1 + values).collect();
        let names = names.into_iter().map(|name| (name, keyspace.hash(name)));
        let (mut view, keys) = keyspace.lock(parted.db, parted.now, &self.config.store, names);
        self.prepare(&mut view, self.server.registry.row(parted.row), &keys);
        let done = run(&mut Call::new(&mut view, args, &keys, answer));
        if parted.is_early() && *stage == Stage::Runs {
            if self.recorder.is_on() && view.has_garbage() {
                // Of old values, which had expired: it is not told, for the record of the new ones is there.
                self.recorder.note_gone(&self.server.journal, &mut view);
            }
            parted.overwritten.store(*ran, Release);
        }
        self.let_go(view);
        done
    }

    /// The last part has run.
    fn end_parts(&self, parted: &Parted, progress: &mut Progress) {
        if progress.done.is_ok() {
            match parted.parts {
                Parts::Added | Parts::PairsIfNone(_) => progress.reply.int(progress.sum),
                Parts::Pairs => progress.reply.ok(),
                Parts::Listed | Parts::Never => {}
            }
        }
        if matches!(parted.parts, Parts::Added) && parted.writes && progress.sum > 0 {
            self.record_parted(parted, progress);
        }
        progress.stage = Stage::Ended;
        self.server.journal.end_early();
        self.server.moving.end_parts();
        self.server.key_events.waiters.bring_back();
    }

    /// The request is written into the journal.
    fn record_parted(&self, parted: &Parted, progress: &mut Progress) {
        if self.recorder.is_on() {
            let journal = &self.server.journal;
            let recording = self.recorder.begin_counted(journal, parted.db, 0);
            self.recorder.end_said(recording, journal, true, &progress.request.args());
            progress.records_end = self.end_of_records();
        }
    }

    /// Whether a request waits for one that runs in parts, because it looks at keys that it does not name, or
    /// names so many that it would take long to compare them.
    pub(super) fn waits_for_parts(
        &self,
        session: &Session,
        row: &Row,
        (request, is_exec): (&Request<'s, '_>, bool),
    ) -> bool {
        if self.server.moving.in_parts().is_none() {
            return false;
        }
        let args = &request.args;
        let runs_script =
            row.flags.has(Flags::RUNS_SCRIPT) || is_exec && session.has_queued(Flags::RUNS_SCRIPT);
        let is_wide = args.len() >= WIDE_WORDS && row.only_key(args).is_none() && !row.keys.is_empty();
        runs_script
            || is_wide
            || match row.run {
                Run::Data(DataRun::Whole(..) | DataRun::LongWhole(..)) => true,
                Run::Data(DataRun::KeysOrAll(ways)) => (ways.needs_all)(args),
                // It takes all gates, under which the rest of the parts would have to run at once. While a
                // script runs for long no parts run, and SHUTDOWN NOSAVE must not wait for them.
                Run::Server(ServerRun::Exclusive(_)) => !self.is_shut_out,
                _ => false,
            }
    }
}

/// How many of these, at least one, come to so much or are the last.
fn count_up_to(mut bytes: impl ExactSizeIterator<Item = usize>, bytes_max: usize) -> usize {
    let (all, mut sum) = (bytes.len(), 0);
    let last = bytes.position(|bytes| {
        sum += bytes;
        sum >= bytes_max
    });
    last.map_or(all, |last| last + 1)
}

/// Adds what a part has answered to what the request answers.
fn gather(parts: Parts, progress: &mut Progress, answer: Reply) {
    match parts {
        Parts::Added => {
            let digits = answer.out.get(1..answer.out.len().saturating_sub(2));
            let number = digits.and_then(base::text::parse_i64);
            progress.sum += number.expect("a part that is added answers with a number");
        }
        Parts::Listed => {
            let mut answer = answer;
            answer.finish();
            let header = answer.out.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            progress.reply.append(&answer.out[header..]);
            if answer.is_full() {
                progress.reply.give_up();
            }
        }
        Parts::Pairs | Parts::PairsIfNone(_) | Parts::Never => {}
    }
}

impl Progress {
    fn new(order: Vec<u32>, reply: &Reply) -> Progress {
        Progress {
            stage: Stage::Waits,
            request: Default::default(),
            reply: Reply::new(reply.protocol),
            order,
            ran: 0,
            sum: 0,
            done: Ok(()),
            records_end: 0,
            spans: Vec::new(),
        }
    }
}

impl Early for Parted {
    fn is_due(&self, db: u16, key: &[u8]) -> bool {
        let Some(server) = self.server.upgrade().filter(|_| db == self.db) else { return false };
        let hash = server.keyspace.hash(key);
        // A key that is named twice is overwritten twice.
        let last = self.hashes.partition_point(|(other, _)| *other <= hash).checked_sub(1);
        last.map(|last| self.hashes[last])
            .is_some_and(|(other, nth)| other == hash && nth as usize >= self.overwritten.load(Acquire))
    }
}

impl InParts for Parted {
    fn names(&self, db: Option<u16>, name: &[u8]) -> bool {
        let Some(server) = self.server.upgrade().filter(|_| db.is_none_or(|db| db == self.db)) else {
            return false;
        };
        let hash = server.keyspace.hash(name);
        self.hashes.binary_search_by_key(&hash, |(other, _)| *other).is_ok()
    }

    fn writes(&self) -> bool {
        self.writes
    }

    fn finish(&self) {
        let Some(server) = self.server.upgrade() else { return };
        run_under_gates(&server, self.worker, |executor| {
            executor.run_parts(self, &mut self.progress(), None);
        });
        server.mailboxes.announce(usize::MAX);
    }
}
