//! From a request to its reply: the checks, the locks, the command. On the path of every request: nothing here
//! allocates, formats, logs or reads the clock for a request that names one key and succeeds; the time of the batch is
//! the time of its commands, and one call in `latency-tracking-every` is measured for INFO commandstats and LATENCY.
//!
//! Between [`Executor::begin`] and [`Executor::end`] the worker holds the read side of its gate. A command that needs the
//! whole keyspace for itself lets it go, takes all gates, and comes back (see `gate`).
use crate::call::{ServerCall, ServerRun};
use crate::clock::Stopwatch;
use crate::config::Config;
use crate::counters::Counters;
use crate::evict::{Ceiling, Room, free_flushed};
use crate::pause::Held;
use crate::refusal::{Refusal, append_error};
use crate::registry::{Row, Run};
use crate::session::{After, Session};
use crate::shared::Shared;
use base::Millis;
use base::hash::Hash;
use base::random::Random;
use command::{Access, Call, DataRun, Done, Flags, Scope, WholeCall};
use resp::{Args, Reply};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLockReadGuard};
use store::{Garbage, View};

/// A request, and what was looked up for it when it was parsed.
#[derive(Clone, Copy)]
pub(crate) struct Request<'s, 'a> {
    /// The row of its name, if there is one.
    pub(crate) row: Option<&'s Row>,
    /// Of its only key, where that was known then.
    pub(crate) hash: Option<Hash>,
    pub(crate) args: Args<'a>,
}

/// When to count what memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    WhenDue,
    Now,
}

/// One worker's means to run commands.
pub(crate) struct Executor<'s> {
    shared: &'s Shared,
    worker: usize,
    counters: &'s Counters,
    /// The worker's copy of the configuration in force, and which version it is.
    config: Arc<Config>,
    config_version: u64,
    /// A call is timed if these bits of how many went before it are zero.
    timed_mask: u64,
    ceiling: Ceiling<'s>,
    random: Random,
    garbage: Vec<Garbage>,
    positions: Vec<u32>,
    now: Millis,
    /// What CLIENT PAUSE holds back in this batch.
    held: Held,
    inside: Option<RwLockReadGuard<'s, ()>>,
}

impl<'s> Executor<'s> {
    pub(crate) fn new(shared: &'s Shared, worker: usize) -> Executor<'s> {
        let config_version = shared.config_version();
        let config = shared.config();
        let seed = shared.random_seed.wrapping_add(worker as u64);
        Executor {
            ceiling: Ceiling::new(shared, seed.rotate_left(32), &config),
            shared,
            worker,
            counters: &shared.counters.0[worker],
            timed_mask: config.timed_mask(),
            config_version,
            config,
            random: Random::new(seed),
            garbage: Vec::new(),
            positions: Vec::new(),
            now: Millis(0),
            held: Held::Nothing,
            inside: None,
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn counters(&self) -> &'s Counters {
        self.counters
    }

    pub(crate) fn now(&self) -> Millis {
        self.now
    }

    /// The time that commands see from here on, and the configuration in force.
    pub(crate) fn set_now(&mut self, now: Millis) {
        self.now = now;
        self.refresh_config();
    }

    fn refresh_config(&mut self) {
        let version = self.shared.config_version();
        if version != self.config_version {
            self.config = self.shared.config();
            self.config_version = version;
            self.timed_mask = self.config.timed_mask();
            self.ceiling.obey(&self.config);
        }
    }

    /// Before the first command of a batch.
    pub(crate) fn begin(&mut self) {
        self.inside = Some(self.shared.gates.enter(self.worker));
        // Behind the gate: CLIENT PAUSE runs alone, so none that begins after it can miss it.
        self.held = self.shared.pause.held(self.now);
    }

    /// After its last.
    pub(crate) fn end(&mut self) {
        self.inside = None;
    }

    /// Whether CLIENT PAUSE holds this request back.
    #[inline]
    pub(crate) fn must_wait(&self, session: &Session, request: &Request<'s, '_>) -> bool {
        self.held != Held::Nothing && self.holds_back(session, request)
    }

    /// What is refused anyway is refused at once.
    #[cold]
    fn holds_back(&self, session: &Session, request: &Request<'s, '_>) -> bool {
        let Ok(row) = admit(session, request) else { return false };
        let may_change = row.flags.has(Flags::WRITE) || row.flags.has(Flags::MAY_REPLICATE);
        let waits = may_change || self.held == Held::Everything;
        if waits {
            session.card.last_row.store(row.number as u32, Relaxed);
        }
        waits
    }

    /// Runs one request and appends its reply.
    pub(crate) fn execute(&mut self, session: &mut Session, request: Request<'s, '_>, reply: &mut Reply) {
        let start = reply.out.len();
        self.check_and_run(session, request, reply);
        if !session.reply_mode.answers() {
            reply.out.truncate(start);
            if let Some(waiting) = &mut session.waiting {
                waiting.is_mute = true;
            }
        }
        session.reply_mode = session.reply_mode.next();
    }

    fn check_and_run(&mut self, session: &mut Session, request: Request<'s, '_>, reply: &mut Reply) {
        let row = match admit(session, &request) {
            Ok(row) => row,
            Err(refusal) => return self.refuse(&refusal, &request.args, reply),
        };
        if self.ceiling.is_set() && row.flags.has(Flags::DENYOOM) && !self.has_room_for(&request.args) {
            return self.refuse(&Refusal::OutOfMemory(row), &request.args, reply);
        }
        session.card.last_row.store(row.number as u32, Relaxed);
        let counts = &self.counters.commands[row.number];
        let calls = counts.calls.load();
        counts.calls.add(1);
        let done = if calls & self.timed_mask == 0 {
            self.run_timed(session, row, request, reply)
        } else {
            self.run(session, row, request, reply)
        };
        if let Err(error) = done {
            counts.failed.add(1);
            self.counters.count_error(error.text());
            reply.error(error.text());
        }
    }

    /// Whether there is memory for what these arguments may add, after keys were evicted if need be.
    fn has_room_for(&mut self, args: &Args<'_>) -> bool {
        let coming_bytes = args.iter_from(1).map(<[u8]>::len).sum::<usize>() as u64;
        !self.ceiling.is_due(coming_bytes) || self.ceiling.make_room(self.now, coming_bytes) != Room::None
    }

    /// Between batches: evicts for a moment where memory is over its limit. Whether there is more to do.
    pub(crate) fn relieve(&mut self, look: Look) -> bool {
        if !self.ceiling.is_set() || (look == Look::WhenDue && !self.ceiling.is_due(0)) {
            return false;
        }
        self.begin();
        let room = self.ceiling.make_room(self.now, 0);
        self.end();
        room == Room::Later
    }

    #[cold]
    fn refuse(&mut self, refusal: &Refusal<'_>, args: &Args<'_>, reply: &mut Reply) {
        if let Some(row) = refusal.row() {
            self.counters.commands[row.number].rejected.add(1);
        }
        let text = refusal.text(args);
        self.counters.count_error(&String::from_utf8_lossy(&text));
        append_error(reply, &text);
    }

    fn run_timed(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: Request<'s, '_>,
        reply: &mut Reply,
    ) -> Done {
        let watch = Stopwatch::start();
        let done = self.run(session, row, request, reply);
        self.counters.commands[row.number].time(watch.elapsed_ns(), self.config.latency_tracking);
        done
    }

    fn run(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: Request<'s, '_>,
        reply: &mut Reply,
    ) -> Done {
        let (db, args) = (session.db, request.args);
        match row.run {
            Run::Data(DataRun::Keys(run)) => match (row.only_key(&args), request.hash) {
                (Some(key), Some(hash)) => self.run_on_key(db, row, run, (key, hash), (args, reply)),
                _ => self.run_on_keys(db, row, run, args, reply),
            },
            Run::Data(DataRun::Whole(Scope::Shared, run)) => self.run_on_all(db, run, args, reply),
            Run::Data(DataRun::Whole(Scope::Exclusive, run)) => {
                self.alone(|this| this.run_on_all(db, run, args, reply))
            }
            Run::Data(DataRun::KeysOrAll(ways)) if (ways.needs_all)(&args) => {
                self.alone(|this| this.run_on_all(db, ways.all, args, reply))
            }
            Run::Data(DataRun::KeysOrAll(ways)) => self.run_on_keys(db, row, ways.keys, args, reply),
            Run::Server(ServerRun::Shared(run)) => self.run_on_server(session, run, args, reply),
            Run::Server(ServerRun::Exclusive(run)) => {
                self.alone(|this| this.run_on_server(session, run, args, reply))
            }
            // A container without a subcommand has too few arguments: `admit` has refused it.
            Run::Data(DataRun::Container) | Run::Server(ServerRun::Container) => {
                Err(command::Error::wrong_arity(&row.full_name))
            }
        }
    }

    fn run_on_key(
        &mut self,
        db: u16,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        (key, hash): (&[u8], Hash),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        let (keyspace, settings) = (&self.shared.keyspace, &self.config.store);
        let (mut view, key) = keyspace.lock_one_hashed(db, self.now, settings, key, hash);
        if row.flags.has(Flags::READONLY) {
            view.count_lookups();
        }
        let done = run(&mut Call::new(&mut view, args, &[key], reply));
        self.let_go(view);
        done
    }

    fn run_on_keys(
        &mut self,
        db: u16,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let (keyspace, settings) = (&self.shared.keyspace, &self.config.store);
        extract(row, &args, &mut self.positions);
        let names: Vec<&[u8]> = self.positions.iter().map(|p| args.at(*p as usize)).collect();
        let (mut view, keys) = keyspace.lock(db, self.now, settings, &names);
        if row.flags.has(Flags::READONLY) {
            view.count_lookups();
        }
        let done = run(&mut Call::new(&mut view, args, &keys, reply));
        self.let_go(view);
        done
    }

    /// Unlocks; what is large is freed elsewhere.
    fn let_go(&self, mut view: View<'_>) {
        let mut garbage = view.take_garbage();
        drop(view);
        if !garbage.is_empty() {
            self.shared.background.free(&mut garbage);
        }
    }

    fn run_on_all(
        &mut self,
        db: u16,
        run: fn(&mut WholeCall<'_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let done = run(&mut WholeCall {
            keyspace: &self.shared.keyspace,
            db,
            now: self.now,
            settings: &self.config.store,
            args,
            reply,
            random: &mut self.random,
            garbage: &mut self.garbage,
        });
        free_flushed(self.shared, &self.shared.background, &mut self.garbage);
        done
    }

    fn run_on_server(
        &mut self,
        session: &mut Session,
        run: fn(&mut ServerCall<'_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let done = run(&mut ServerCall { shared: self.shared, session, args, reply, now: self.now });
        if self.shared.is_stopping() {
            session.after = After::Close;
        }
        // It may have been CONFIG SET: what follows in this batch obeys it.
        self.refresh_config();
        done
    }

    /// Runs `work` while no other worker executes anything.
    fn alone<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.end();
        let all = self.shared.gates.enter_alone();
        let result = work(self);
        drop(all);
        self.begin();
        result
    }
}

/// The checks before a command runs; the row that runs, which is a subcommand's where the request names one.
fn admit<'s>(session: &Session, request: &Request<'s, '_>) -> Result<&'s Row, Refusal<'s>> {
    let args = &request.args;
    let mut row = request.row.ok_or(Refusal::UnknownCommand)?;
    if !row.subcommands.is_empty() && args.len() > 1 {
        row = row.subcommand(args.at(1)).ok_or(Refusal::UnknownSubcommand(row))?;
    }
    if !row.arity.accepts(args.len()) {
        return Err(Refusal::Arity(row));
    }
    if !session.is_authenticated && !row.flags.has(Flags::NO_AUTH) {
        return Err(Refusal::NotAuthenticated(row));
    }
    Ok(row)
}

/// All positions of keys, in the order of the key specs.
fn extract(row: &Row, args: &Args<'_>, positions: &mut Vec<u32>) {
    positions.clear();
    for spec in row.keys.iter().filter(|spec| !spec.access.has(Access::NOT_KEY)) {
        spec.extract(args, positions);
    }
}
