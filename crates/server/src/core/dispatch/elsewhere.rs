//! Requests that take long. They run on another thread (`core/lent.rs`), on the data as it was when they came
//! (`store::Keyspace::aside`), and other clients of the worker do not wait for them. What a request has
//! written there is put in its place when it has run (`writing`).
//!
//! ```text
//! lock its shards, as for any command -- how many steps will it take? -- few: it runs
//!                                                    \-- many: its values get one more owner each,
//!                                                        and the handler runs elsewhere, on these
//! ```
//!
//! What a client sees is the same either way. A request that reads has its place among all others where it
//! was looked at here: what it reads is remembered (CLIENT TRACKING), counts as used, and is removed if it is
//! past its deadline, then. Its hits and misses are counted when it has run. All requests of an EXEC
//! run in one place, which may be elsewhere too (`exec_elsewhere`).
use super::record::Says;
use super::{Executor, Request};
use crate::core::key_events::KeyEvents;
use crate::core::lent::{Errand, Task, Turn, Work};
use crate::core::modes::Modes;
use crate::core::registry::{Row, Run};
use crate::core::server::Server;
use crate::core::session::{After, Session};
use crate::core::tracking::Origin;
use crate::state::config::Config;
use base::Millis;
use base::random::Random;
use command::{Call, DataRun, Done, Error, Flags, LONG_STEPS, Long, LongWhole, Scope, WholeCall};
use resp::{Args, Reply};
use std::hint::cold_path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use store::{Before, Key, Keyspace, Listener, Told, View};

/// Keys are shared one by one, so a request of many small ones runs where it is, unless it only reads them.
const STEPS_A_KEY: u64 = 4;
/// In the restless mode of tests one in so many of these requests runs elsewhere, however little it reads.
pub(super) const RESTLESS_ONE_IN: usize = 3;

/// Where a turn has no more bytes nobody looks whether a request of it is wide: what one receive brings of
/// many small requests is not to pay for that.
pub(super) const WIDE_BYTES: usize = if cfg!(debug_assertions) { 400 } else { 64 << 10 };
/// A request of one key and so many words takes about as long as one of [`LONG_STEPS`].
pub(super) const WIDE_WORDS: usize = LONG_STEPS as usize / 4;

/// So does one of several words and so many bytes. One of fewer words keeps its text where it has arrived.
const HEAVY_WORDS: usize = 8;
const HEAVY_BYTES: usize = if cfg!(debug_assertions) { 1 << 10 } else { 2 << 20 };

/// How a request of very many words runs.
pub(super) enum Wide {
    /// It has one key (SADD of a million members).
    OneKey(Long),
    /// It reads many keys (MGET, SUNION).
    Reads(fn(&mut Call<'_, '_>) -> Done),
    /// It changes many keys, or its look-ups are noted.
    InParts(fn(&mut Call<'_, '_>) -> Done),
}

/// What has become of a request that may take long.
enum Way {
    Ran(Done),
    /// It reads, and is to run on this.
    Elsewhere(Box<Keyspace>),
    /// The same of one that writes, with what was under its keys.
    WritesElsewhere(Box<Keyspace>, Before),
}

/// A request that is to run elsewhere, and what it runs on.
pub(super) struct Reading {
    pub(super) aside: Keyspace,
    pub(super) config: Arc<Config>,
    pub(super) now: Millis,
    /// Those of the command's row.
    flags: Flags,
}

impl<'s> Executor<'s> {
    /// A command that may take long, or wait for its keys.
    #[inline(never)]
    pub(super) fn run_long(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        long: Long,
        request: &Request<'_, '_>,
        reply: &mut Reply,
    ) -> Done {
        let (keyspace, settings, args) = (&self.server.keyspace, &self.config.store, request.args);
        let (db, call) = (session.db, (&mut *session, row, long));
        let way = if let (Some(key), Some(hash)) = (row.only_key(&args), request.hash) {
            let (view, key) = keyspace.lock_one_hashed(db, self.now.wall, settings, key, hash);
            self.run_or_share(call, view, &[], (args, &[key], reply))
        } else {
            row.extract_keys(&args, &mut self.positions);
            let names = self.positions.iter().map(|position| args.at(*position as usize));
            let names = names.map(|name| (name, keyspace.hash(name)));
            let (view, keys) = keyspace.lock(db, self.now.wall, settings, names);
            self.run_or_share(call, view, &self.positions, (args, &keys, reply))
        };
        match way {
            Way::Ran(done) => done,
            Way::Elsewhere(aside) => {
                cold_path();
                row.extract_keys(&args, &mut self.positions);
                let (reading, positions) = (self.reading(*aside, row), self.positions.clone());
                self.lend(session, Box::new(move |turn| reading.on_keys(long, &positions, turn)));
                Ok(())
            }
            Way::WritesElsewhere(aside, before) => {
                cold_path();
                let reading = self.reading(*aside, row);
                let writing = self.writing(session.db, (row, &args), (long, before));
                self.lend(session, writing.work(reading));
                Ok(())
            }
        }
    }

    /// Runs a command on these keys, whose shards the view holds, or shares their values if it takes long. Of
    /// one that may wait they stand at these places among its arguments.
    fn run_or_share<'k>(
        &self,
        (session, row, long): (&mut Session, &Row, Long),
        mut view: View<'k>,
        positions: &[u32],
        (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
    ) -> Way {
        self.prepare(&mut view, row, keys);
        view.ignore_lookups();
        let steps = (long.work)(&mut Call::new(&mut view, args, keys, reply));
        if self.is_to_be_lent(session, steps, keys.len()) {
            cold_path();
            let way = match (long.writes)(&args) {
                false => Way::Elsewhere(Box::new(view.aside(keys))),
                true => {
                    let (before, aside) = view.take_along(keys);
                    Way::WritesElsewhere(Box::new(aside), before)
                }
            };
            self.let_go(view);
            return way;
        }
        if row.flags.has(Flags::READONLY) {
            view.count_lookups();
        }
        let call = (session, row, long.run);
        let done = self.run_or_wait(call, &mut view, positions, (args, keys, reply));
        self.let_go(view);
        Way::Ran(done)
    }

    /// A command that may take long, on the whole keyspace. It runs alone if its row says
    /// [`Scope::Exclusive`], or is alone until it has a copy of all.
    #[inline(never)]
    pub(super) fn run_long_on_all(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        (scope, long): (Scope, &'static LongWhole),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        let db = session.db;
        let steps = self.steps_on_all(session, long, (args, reply));
        if self.is_to_be_lent(session, steps, 1) {
            cold_path();
            let aside = self.server.keyspace.empty_aside(&mut self.random);
            self.in_scope(scope, |this| {
                this.remember_alone(row, &args);
                this.server.keyspace.share_with(&aside, db);
            })?;
            let (reading, random) = (self.reading(aside, row), Random::new(self.random.next_u64()));
            self.lend(session, Box::new(move |turn| reading.on_all(long, random, turn)));
            return Ok(());
        }
        self.in_scope(scope, |this| {
            let done = this.run_on_all_recorded(db, row, (long.run, Says::IfChanged), (args, reply));
            this.remember_alone(row, &args);
            done
        })?
    }

    /// How many steps a request on the whole keyspace takes, about.
    pub(super) fn steps_on_all(
        &mut self,
        session: &Session,
        long: &LongWhole,
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Option<u64> {
        (long.work)(&WholeCall {
            keyspace: &self.server.keyspace,
            db: session.db,
            now: self.now.wall,
            settings: &self.config.store,
            args,
            reply,
            random: &mut self.random,
            leaves_trace: session.leaves_trace,
            garbage: &mut self.garbage,
            spared: None,
        })
    }

    /// Runs a request that may take long because it is very large, though its command takes no time by
    /// itself; None for all others.
    #[inline]
    pub(super) fn run_wide(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: &Request<'_, '_>,
        reply: &mut Reply,
    ) -> Option<Done> {
        if !is_wide(&request.args) {
            return None;
        }
        cold_path();
        let wide = self.wide(session, row, &request.args)?;
        session.record.last_row.store(row.number as u32, Relaxed);
        Some(match wide {
            Wide::OneKey(long) => self.run_long(session, row, long, request, reply),
            Wide::Reads(run) => self.read_many(session, row, run),
            Wide::InParts(run) => {
                self.part(session, row, run);
                Ok(())
            }
        })
    }

    /// A command that takes no time by itself has failed. Where that is because it would copy a long text,
    /// which a snapshot has as well, it runs elsewhere, if it can.
    #[cold]
    pub(super) fn copy_elsewhere(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        done: Done,
        (request, reply): (&Request<'_, '_>, &mut Reply),
    ) -> Done {
        match row.run {
            Run::Data(DataRun::Keys(run) | DataRun::Long(&Long { run, .. }))
                if done.as_ref().is_err_and(Error::is_would_copy) =>
            {
                self.run_long(session, row, Long::writing(|_| Some(u64::MAX), run), request, reply)
            }
            _ => done,
        }
    }

    /// How a very large request runs, if it does not run at once.
    pub(super) fn wide(&self, session: &Session, row: &Row, args: &Args<'_>) -> Option<Wide> {
        if let Some(long) = long_of_words(row, args) {
            return Some(Wide::OneKey(long));
        }
        let run = match row.run {
            Run::Data(DataRun::Keys(run)) if !row.flags.has(Flags::OTHER_DATABASES) => run,
            // What it takes to share its keys would be no less than what it takes to read them.
            Run::Data(DataRun::Long(long)) if only_reads(row) && row.only_key(args).is_none() => long.run,
            _ => return None,
        };
        let is_noted = !self.is_plain || self.server.keyspace.keeps_uses();
        // Where it is not wide by its words it is by its bytes.
        let steps = if args.len() >= WIDE_WORDS { STEPS_A_KEY * args.len() as u64 } else { LONG_STEPS };
        if !self.is_to_be_lent(session, Some(steps), 1) {
            return None;
        }
        // Beside a request that runs in parts one that takes all gates would have to run the rest of it.
        if only_reads(row) && !is_noted && self.server.moving.in_parts().is_none() {
            return Some(Wide::Reads(run));
        }
        self.runs_in_parts(session, row, args).then_some(Wide::InParts(run))
    }

    /// Has a request that reads many keys run on its whole database as it is now: to share the values of its
    /// keys one by one would take as long as to read them.
    #[inline(never)]
    fn read_many(&mut self, session: &mut Session, row: &'s Row, run: fn(&mut Call<'_, '_>) -> Done) -> Done {
        cold_path();
        let (db, aside) = (session.db, self.server.keyspace.empty_aside(&mut self.random));
        self.in_scope(Scope::Exclusive, |this| this.server.keyspace.share_with(&aside, db))?;
        let (reading, specs, long) = (self.reading(aside, row), row.keys, Long::of_words(|_| false, run));
        let work = move |turn: Turn<'_>| {
            let mut positions = Vec::new();
            command::key_positions(specs, &turn.args, &mut positions);
            reading.on_keys(long, &positions, turn)
        };
        self.lend(session, Box::new(work));
        Ok(())
    }

    fn in_scope<R>(&mut self, scope: Scope, work: impl FnOnce(&mut Self) -> R) -> Result<R, Error> {
        match scope {
            Scope::Shared => Ok(work(self)),
            Scope::Exclusive => self.alone(work),
        }
    }

    /// Whether a request of so many steps, on so many keys, runs elsewhere.
    fn is_to_be_lent(&self, session: &Session, steps: Option<u64>, keys: usize) -> bool {
        let Some(steps) = steps else { return false };
        if self.keeps_sessions || self.is_alone || session.modes.has(Modes::EXECUTING) {
            return false;
        }
        let is_long = steps >= LONG_STEPS && steps >= STEPS_A_KEY * keys as u64;
        is_long || self.server.restless.draw(RESTLESS_ONE_IN) == Some(0)
    }

    pub(super) fn reading(&self, mut aside: Keyspace, row: &Row) -> Reading {
        let events = &self.server.key_events;
        aside.tell_misses_to(|| Box::new(Misses(Arc::clone(events))));
        Reading { aside, config: Arc::clone(&self.config), now: self.now.wall, flags: row.flags }
    }

    /// Has the worker lend the session, for this.
    pub(super) fn lend(&mut self, session: &mut Session, work: Work) {
        session.after = After::Elsewhere;
        self.server.stats.requests_lent.fetch_add(1, Relaxed);
        self.errand = Some(Errand { task: Task::Work(work), is_mute: !session.reply_mode.answers() });
    }

    /// What the request that ran last has left to be done, with [`After::Elsewhere`].
    pub(crate) fn take_errand(&mut self) -> Errand {
        self.errand.take().expect("who leaves the session so leaves an errand too")
    }

    /// From here on nothing is to be done elsewhere: the session that is served has no client any more. Or
    /// no longer so.
    pub(crate) fn keep_sessions(&mut self, keeps: bool) {
        self.keeps_sessions = keeps;
    }

    /// A request that ran elsewhere has come back: counts the time that it took there, and its error.
    pub(crate) fn note_return(&mut self, session: &Session, ticks: u64, done: &Done) {
        // Another thread may have allocated what this worker was left.
        self.memory_limit.count_again();
        let row = session.record.last_row.load(Relaxed);
        self.count_time(row, ticks);
        if let Err(error) = done {
            self.counters.commands[row as usize].failed.add(1);
            self.counters.count_error(error.text());
        }
    }
}

/// Whether no request of a command changes anything.
fn only_reads(row: &Row) -> bool {
    row.flags.has(Flags::READONLY) && !row.flags.has(Flags::MAY_REPLICATE)
}

/// What tells how long a request takes, of a command that may take long or of one with very many words.
pub(super) fn long_of(row: &Row, args: &Args<'_>) -> Option<Long> {
    match row.run {
        Run::Data(DataRun::Long(long) | DataRun::Blocking(long)) if !long.is_surely_quick(args) => {
            Some(*long)
        }
        Run::Data(DataRun::KeysOrAll(ways)) => Some(ways.keys),
        Run::Data(DataRun::Keys(_)) if is_wide(args) => long_of_words(row, args),
        _ => None,
    }
}

/// The same of one behind whose reply stands that of another.
pub(super) fn long_at_once(row: &Row, args: &Args<'_>) -> Option<Long> {
    match row.at_once {
        Some(long) => (!long.is_surely_quick(args)).then_some(*long),
        None => long_of(row, args),
    }
}

/// Whether a request takes long by its words alone, whatever it does with them.
#[inline]
pub(super) fn is_wide(args: &Args<'_>) -> bool {
    args.len() >= WIDE_WORDS || args.len() >= HEAVY_WORDS && args.framed_bytes_from(0) >= HEAVY_BYTES
}

/// The same of a very large request of one key, whose command takes no time by itself.
fn long_of_words(row: &Row, args: &Args<'_>) -> Option<Long> {
    let Run::Data(DataRun::Keys(run)) = row.run else { return None };
    if row.flags.has(Flags::OTHER_DATABASES) || row.only_key(args).is_none() {
        return None;
    }
    Some(match only_reads(row) {
        true => Long::of_words(|_| false, run),
        false => Long::of_words(|_| true, run),
    })
}

impl Reading {
    fn on_keys(self, long: Long, positions: &[u32], turn: Turn<'_>) -> Done {
        let Turn { server, session, args, reply, .. } = turn;
        let Reading { aside, config, now, flags } = self;
        let names = positions.iter().map(|position| args.at(*position as usize));
        let names = names.map(|name| (name, aside.hash(name)));
        let (mut view, keys) = aside.lock(session.db, now, &config.store, names);
        if flags.has(Flags::READONLY) {
            view.count_lookups();
        }
        let mut call = Call::new(&mut view, args, &keys, reply);
        let done = (long.run)(&mut call);
        debug_assert!(call.wait.is_none(), "one that reads is lent where it finds something");
        call.give_up_waiting();
        drop(call);
        drop(view);
        settle(server, &aside);
        done
    }

    fn on_all(self, long: &LongWhole, mut random: Random, turn: Turn<'_>) -> Done {
        let Turn { server, session, args, reply, .. } = turn;
        let Reading { aside, config, now, .. } = self;
        let done = (long.run)(&mut WholeCall {
            keyspace: &aside,
            db: session.db,
            now,
            settings: &config.store,
            args,
            reply,
            random: &mut random,
            leaves_trace: session.leaves_trace,
            garbage: &mut Vec::new(),
            spared: None,
        });
        settle(server, &aside);
        done
    }
}

/// A request has run on a keyspace of its own.
fn settle(server: &Server, aside: &Keyspace) {
    server.keyspace.count_lookups_of(aside);
    // Keys that it has missed may have been published. This thread is no worker's.
    server.mailboxes.announce(usize::MAX);
}

/// Publishes which keys a request has looked for in vain.
struct Misses(Arc<KeyEvents>);

impl Listener for Misses {
    fn hear(&self, told: &[Told]) {
        self.0.hear(told, Origin::NOBODY);
    }

    fn flush(&self, _: &Keyspace, _: Option<u16>) {}

    fn swap(&self, _: &Keyspace, _: (u16, u16), _: Millis) {}
}
