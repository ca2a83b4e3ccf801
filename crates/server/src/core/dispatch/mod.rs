//! From a request to its reply: the checks, the locks, the command. On the path of every request: nothing
//! here allocates, formats, logs or reads the clock for a request that names one key and succeeds.
//!
//! ```text
//! execute -- admit: is there such a command, enough arguments, a password given? --- refused: an error
//!         -- guard: are its arguments short enough, is there memory for them? ------ refused, or tried later
//!         -- run:   lock the shards of its keys (or all gates), call the handler, unlock
//!         -- count ticks, calls and bytes; look closer at a call that was slow or large
//! ```
//!
//! All commands of a batch see the same time, the time at which the batch began (`time.rs`). How long each
//! takes is measured with the processor's counter, read once between two of them ([`Executor::start_turn`],
//! [`Executor::lap`]).
//!
//! Between [`Executor::begin`] and [`Executor::end`] the worker holds the read side of its gate. A command
//! that needs the whole keyspace for itself lets it go, takes all gates, and comes back (`state/gate.rs`).
//! Checks that only a session in some mode needs are in `admission`.
mod admission;
mod after;
mod alone;
mod elsewhere;
mod enter;
mod exec;
mod exec_elsewhere;
mod memory;
mod moving;
mod parts;
mod record;
mod remember;
mod replay;
mod script;
mod serve;
mod time;
mod writing;

pub(crate) use admission::Stays;
pub(crate) use alone::run_alone;

use super::cross_protocol;
use super::too_long::is_too_long;
use crate::core::call::{Apart, Leave, MayWait, ServerCall, ServerRun};
use crate::core::command_log::Bounds;
use crate::core::functions::FunctionInterpreter;
use crate::core::lent::Errand;
use crate::core::mailbox::{Mailbox, Mailboxes};
use crate::core::memory_limit::{MemoryLimit, Room, free_flushed};
use crate::core::modes::Modes;
use crate::core::monitors::Feed;
use crate::core::output_bound::OutputBound;
use crate::core::persistence::save_emptied;
use crate::core::recorder::Recorder;
use crate::core::refusal::{Refusal, append_error};
use crate::core::registry::{Row, Run};
use crate::core::server::Server;
use crate::core::session::{After, ClientRecord, Session};
use crate::core::{error, permission, queue};
use crate::state::acl::Users;
use crate::state::clock::Moment;
use crate::state::config::{Config, Tracking};
use crate::state::counters::Counters;
use crate::state::histogram;
use crate::state::pause::Held;
use crate::state::persistence;
use base::hash::Hash;
use base::random::Random;
use command::{Call, DataRun, Done, Flags, Scope, WholeCall};
use enter::KeptGates;
use exec::Plan;
use net::{Meter, Scale, Tick};
use record::Says;
use remember::Reader;
use resp::{Args, Framing, Reply};
use script::ScriptsRun;
pub(crate) use script::WroteAll;
use script::attempt::{Attempt, Attempts};
use script::interpreter::Interpreter;
pub(crate) use script::interpreter::sha_of_hex;
use std::cell::Cell;
use std::hint::cold_path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLockReadGuard};
use store::{Classes, Garbage, View};

/// A request, and what was looked up for it when it was parsed, so that its key's memory could be asked for
/// early.
#[derive(Clone, Copy)]
pub(crate) struct Request<'s, 'a> {
    /// The row of its name, if there is one.
    pub(crate) row: Option<&'s Row>,
    /// The hash of its first key, where the command's row says which argument that is.
    pub(crate) hash: Option<Hash>,
    /// What is known of how it was sent.
    pub(crate) framing: Framing,
    pub(crate) args: Args<'a>,
}

impl<'s> Request<'s, '_> {
    /// The row of its command, or of its subcommand, if there is one that takes so many arguments.
    pub(crate) fn admitted(&self) -> Option<&'s Row> {
        admit(self).ok()
    }
}

/// A connection that has sent many requests lets others have their turn when its own have run for so long.
const TURN_NS: u64 = 1_000_000;
/// Whether a turn is over is checked between parts of a batch, and after every call that took so long.
const LOOK_NS: u64 = 50_000;
/// How much may be kept of a request of a client that has not given the password.
const UNAUTHENTICATED_BUFFER_BYTES_MAX: u64 = 1 << 20;

/// When [`Executor::relieve`] counts what memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Only if this worker has allocated so much that the limit may have been reached.
    WhenDue,
    /// Whatever it has allocated: other threads may have used memory too.
    Now,
}

/// Why a request does not run now.
enum Hindrance<'s> {
    /// It waits for memory that is being freed, or for a worker that has too much to deliver.
    Overload,
    /// It waits for EXEC.
    Queued,
    Refused(Refusal<'s>),
}

/// One worker's means to run commands: its copy of the settings, what it measures with, and buffers that keep
/// their room from request to request.
pub(crate) struct Executor<'s> {
    server: &'s Server,
    worker: usize,
    counters: &'s Counters,
    mailboxes: &'s Mailboxes,
    /// The worker's copy of the configuration in force, and which version that is.
    config: Arc<Config>,
    config_version: u64,
    /// The worker's copy of the users in force, and which version that is.
    users: Arc<Users>,
    users_version: u64,
    memory_limit: MemoryLimit<'s>,
    /// The settings have changed, and with them perhaps the policy of eviction: see `heed_policy`.
    is_policy_new: bool,
    /// Calls below these bounds are in no log of commands.
    bounds: Bounds,
    /// How many bytes of replies may be made for a client.
    output_bound: OutputBound,
    /// What the commands write into the journal.
    recorder: Recorder,
    /// What clients that watch with MONITOR are to be shown of this batch.
    feed: Feed,
    /// Whether keys that the connection which is served looks at count as used (CLIENT NO-TOUCH).
    leaves_trace: bool,
    /// Whether that connection is sent what it has not asked for: messages, or that keys have changed.
    listens: bool,
    /// The connection that is served neither tracks keys nor has sent CLIENT NO-TOUCH.
    is_plain: bool,
    /// Its client, and what its command reads, while it tracks keys.
    reader: Reader,
    /// What the connection that is served has sent for this batch, and since when it is served.
    request_bytes: usize,
    /// Where this worker's records ended when it was its turn.
    records_before: u64,
    turn_start: Tick,
    /// Whether [`Executor::guard`] checks the requests of this turn before they run: memory has a limit, an
    /// argument may be too long, or a worker has too much to deliver.
    is_guarded: bool,
    /// The longest element that a collection may hold.
    element_bytes_max: usize,
    /// A turn is over when it has taken so many ticks.
    turn_ticks: u64,
    /// After a call of so many ticks it is checked whether the turn is over.
    look_ticks: u64,
    /// [`Executor::look`] follows a call that takes so many ticks; 0: every call of this connection.
    ticks_max: u64,
    meter: Meter,
    /// Turns ticks into the buckets of the histograms; None while `latency-tracking` is off.
    tracked: Option<Scale>,
    /// When the call that is measured began.
    mark: Tick,
    random: Random,
    garbage: Vec<Garbage>,
    /// Room for the places of keys among the arguments.
    positions: Vec<u32>,
    now: Moment,
    /// When `now` was read.
    now_mark: Tick,
    /// What CLIENT PAUSE holds back in this batch.
    held: Held,
    /// The worker's gate, between `begin` and `end`.
    inside: Option<RwLockReadGuard<'s, ()>>,
    /// A script runs for long on another thread, and has all gates: nothing that touches data runs here.
    is_shut_out: bool,
    /// All gates are taken, by [`Executor::alone`].
    is_alone: bool,
    /// All gates, behind a script: what follows may be another.
    kept_gates: Option<KeptGates<'s>>,
    /// Those who wait for a key are served when all of a queue has run, not between two of its requests.
    serves_later: bool,
    /// Room for what EXEC finds out before it runs a queue.
    plan: Plan,
    /// Room for the next queue.
    queue_room: queue::Room,
    /// EXEC ran last, and has left out itself the replies that its client does not want.
    has_muted: bool,
    /// What the request that ran last leaves to be done elsewhere.
    errand: Option<Errand>,
    /// All requests run here.
    keeps_sessions: bool,
    scripts: ScriptsRun,
    interpreter: Option<Box<Interpreter>>,
    functions: Option<Box<FunctionInterpreter>>,
    /// The most bytes that the two had since their pages were given back, as far as it was noticed.
    interpreters_bytes_max: u64,
    /// While a script runs: the wall clock in microseconds, once it was read.
    stopped_us: Option<Cell<Option<i64>>>,
    /// What the script that runs here has done so far, as long as it may be taken back.
    attempt: Option<Box<Attempt>>,
    attempts: Attempts<'s>,
}

impl<'s> Executor<'s> {
    /// For the worker with this index, by the settings in force now.
    pub(crate) fn new(server: &'s Server, worker: usize) -> Executor<'s> {
        let config_version = server.config_version();
        let config = server.config();
        let users = server.accounts.users();
        server.keyspace.tend_uses(server.clock.now(), &config.store.eviction);
        let seed = server.random_seed.wrapping_add(worker as u64);
        let meter = Meter::new();
        Executor {
            memory_limit: MemoryLimit::new(server, seed.rotate_left(32), &config),
            server,
            worker,
            counters: &server.counters.0[worker],
            mailboxes: &server.mailboxes,
            is_policy_new: false,
            bounds: Bounds::of(&config, &meter),
            output_bound: OutputBound::of(&config),
            recorder: Recorder::new(worker),
            feed: Feed::default(),
            leaves_trace: true,
            listens: false,
            is_plain: true,
            reader: Reader::default(),
            request_bytes: 0,
            records_before: 0,
            turn_start: meter.read(),
            is_guarded: true,
            element_bytes_max: config.store.lengths.element_bytes_max,
            turn_ticks: meter.ticks(TURN_NS),
            look_ticks: meter.ticks(LOOK_NS),
            ticks_max: 0,
            meter,
            tracked: tracked(&config, &meter),
            mark: meter.read(),
            config_version,
            config,
            users_version: users.version(),
            users,
            random: Random::new(seed),
            garbage: Vec::new(),
            positions: Vec::new(),
            now: Moment::NONE,
            now_mark: meter.read(),
            held: Held::Nothing,
            inside: None,
            is_shut_out: false,
            is_alone: false,
            kept_gates: None,
            serves_later: false,
            plan: Plan::default(),
            queue_room: queue::Room::default(),
            has_muted: false,
            errand: None,
            keeps_sessions: false,
            scripts: ScriptsRun::InAttempts,
            interpreter: None,
            functions: None,
            interpreters_bytes_max: 0,
            stopped_us: None,
            attempt: None,
            attempts: Attempts::default(),
        }
    }

    /// For the thread of scripts, which is no worker and counts behind the last of them.
    pub(crate) fn for_scripts(server: &'s Server) -> Executor<'s> {
        Executor { scripts: ScriptsRun::ForGood, ..Executor::new(server, server.mailboxes.len()) }
    }

    /// The settings by which this worker goes at the moment.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// The worker's own counters, which only it writes.
    pub(crate) fn counters(&self) -> &'s Counters {
        self.counters
    }

    /// What turns the processor's counter into nanoseconds and back.
    pub(crate) fn meter(&self) -> Meter {
        self.meter
    }

    /// How many bytes of replies may be made for a client.
    pub(crate) fn output_bound(&self) -> OutputBound {
        self.output_bound
    }

    /// Bytes of memory that the executor holds between batches.
    pub(crate) fn room_bytes(&self) -> usize {
        self.positions.capacity() * size_of::<u32>() + self.plan.room_bytes() + self.queue_room.bytes()
    }

    /// Gives that memory back; the next command of several keys, or the next EXEC, takes it up again.
    pub(crate) fn give_room_back(&mut self) {
        self.positions = Vec::new();
        self.plan = Plan::default();
        self.queue_room = queue::Room::default();
        self.attempts.forget_room();
    }

    /// Takes up the configuration in force.
    #[inline]
    pub(crate) fn refresh_config(&mut self) {
        let version = self.server.config_version();
        if version != self.config_version {
            cold_path();
            self.obey_config(version);
        }
    }

    /// The configuration has changed: everything that was derived from it is derived anew.
    #[inline(never)]
    fn obey_config(&mut self, version: u64) {
        self.config = self.server.config();
        self.config_version = version;
        self.memory_limit.obey(&self.config);
        self.server.journal.obey(&self.config);
        self.bounds = Bounds::of(&self.config, &self.meter);
        self.output_bound = OutputBound::of(&self.config);
        self.tracked = tracked(&self.config, &self.meter);
        self.bound();
        self.is_policy_new = true;
    }

    /// Whether CLIENT PAUSE holds this request back.
    #[inline]
    pub(crate) fn must_wait(&self, session: &Session, request: &Request<'s, '_>) -> bool {
        self.held != Held::Nothing && self.holds_back(session, request)
    }

    /// A request that is refused anyway is refused at once, and a client that watches with MONITOR never
    /// waits.
    #[cold]
    fn holds_back(&self, session: &Session, request: &Request<'s, '_>) -> bool {
        let Ok(row) = admit(request) else { return false };
        if self.bars(session, row, &request.args).is_some() {
            return false;
        }
        let is_exec = matches!(row.run, Run::Server(ServerRun::Queue));
        let flags = self.flags_of(row, &request.args);
        let has = |flag| flags.has(flag) || (is_exec && session.has_queued(flag));
        let may_change = has(Flags::WRITE) || has(Flags::MAY_REPLICATE);
        let waits = may_change || self.held == Held::Everything;
        let waits = waits && !session.record.details().is_monitor;
        if waits {
            session.record.last_row.store(row.number as u32, Relaxed);
        }
        waits
    }

    /// Begins a connection's turn; its requests have so many bytes together. The time that this worker has
    /// spent before is not counted as theirs.
    #[inline]
    pub(crate) fn start_turn(&mut self, session: &mut Session, request_bytes: usize) {
        self.let_others_in();
        if session.users_version != self.users_version {
            cold_path();
            self.obey_users(session);
        }
        self.attend(session);
        self.request_bytes = request_bytes;
        self.records_before = self.recorder.end_of_records();
        self.bound();
        self.mark = self.meter.read();
        self.turn_start = self.mark;
        self.keep_time();
    }

    /// Whether the connection that is served has to let others have their turn.
    #[inline]
    pub(crate) fn is_turn_over(&self) -> bool {
        self.mark.since(self.turn_start) >= self.turn_ticks
    }

    /// How many bytes may be kept of this client's requests that have not run.
    pub(crate) fn query_buffer_bytes_max(&self, session: &Session) -> u64 {
        let limit = self.config.client_query_buffer_bytes_max;
        match session.must_log_in(&self.users) {
            true => limit.min(UNAUTHENTICATED_BUFFER_BYTES_MAX),
            false => limit,
        }
    }

    /// Decides after which calls of this turn [`Executor::look`] follows, and whether [`Executor::guard`]
    /// checks its requests. Only a batch of many bytes can hold a large request, so where all of a
    /// connection's requests are small together none has to be measured.
    #[inline]
    fn bound(&mut self) {
        let may_be_large = self.request_bytes >= self.bounds.request_bytes;
        let shows_all = may_be_large || self.listens || self.server.monitors.is_any();
        self.ticks_max = if shows_all { 0 } else { self.bounds.ticks.min(self.look_ticks) };
        let is_congested = self.mailboxes.is_congested();
        let is_refusing = self.server.persistence.refusing() != persistence::NOTHING;
        let may_be_long = self.request_bytes > self.element_bytes_max.min(elsewhere::WIDE_BYTES);
        let is_journal_behind = self.recorder.is_on() && self.server.journal.is_behind();
        self.is_guarded = self.memory_limit.is_set()
            || may_be_long
            || is_congested
            || is_refusing
            || is_journal_behind
            || self.is_shut_out
            || self.server.moving.is_any();
    }

    /// How many ticks have passed since the last call of this function or of `start_turn`.
    #[inline]
    pub(crate) fn lap(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.mark, self.meter.read());
        self.mark.since(before)
    }

    /// Runs one request and appends its reply, or an error. Returns how many ticks that took, and how many
    /// bytes of reply it made. What is to happen to the connection then is in `session.after`. The request is
    /// lent, because a copy would have to wait until it is written.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> (u64, usize) {
        let (start, reply_mode) = (reply.out.len(), session.reply_mode);
        let ran = self.check_and_run(session, request, reply);
        if !session.reply_mode.answers() {
            cold_path();
            if !std::mem::take(&mut self.has_muted) {
                reply.cut(start);
            }
            session.append_unmuted(reply);
            if let Some(waiting) = &mut session.waiting {
                waiting.is_mute = true;
            }
        }
        session.reply_mode = session.reply_mode.next();
        let ticks = self.lap();
        let reply_bytes = reply.out.len() - start;
        if let Some(row) = ran {
            self.counters.commands[row.number].count(ticks, self.tracked);
            if ticks >= self.ticks_max || reply_bytes >= self.bounds.reply_bytes {
                let is_whole = !reply.has_remainder() && session.after != After::Elsewhere;
                self.look(session, row, is_whole, (ticks, request.args, reply_bytes));
            }
        } else if session.after == After::Retry {
            session.reply_mode = reply_mode;
        } else if ticks >= self.look_ticks && session.after == After::Next && self.is_turn_over() {
            // It took long to refuse it, for instance because no key could be found to evict.
            session.after = After::Yield;
        }
        (ticks, reply_bytes)
    }

    /// The row of the command that ran; None if none did, because the request was refused or has to wait for
    /// memory.
    fn check_and_run(
        &mut self,
        session: &mut Session,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> Option<&'s Row> {
        let row = match admit(request) {
            Ok(row) => row,
            Err(refusal) => {
                cold_path();
                if cross_protocol::is_sign(request.args.at(0)) && matches!(refusal, Refusal::UnknownCommand) {
                    cross_protocol::end(self.server, session);
                } else {
                    self.refuse(session, &refusal, &request.args, reply);
                }
                return None;
            }
        };
        if session.modes.is_any() {
            cold_path();
            if session.modes.only_queues()
                && !self.is_guarded
                && !row.flags.has_any(admission::NOT_SIMPLY_QUEUED)
            {
                self.enqueue(session, row, request, reply);
                return None;
            }
            if let Err(hindrance) = self.look_at_modes(session, row, request) {
                self.hinder(session, row, hindrance, (request, reply));
                return None;
            }
        }
        if self.is_guarded {
            if let Err(hindrance) = self.guard(session, row, request) {
                self.hinder(session, row, hindrance, (request, reply));
                return None;
            }
            if let Some(done) = self.run_wide(session, row, request, reply) {
                return self.note_done(session, row, done, reply);
            }
        }
        session.record.last_row.store(row.number as u32, Relaxed);
        let done = self.run(session, row, request, reply);
        self.note_done(session, row, done, reply)
    }

    /// Whether a request may run now: its arguments are short enough, no worker has too much to deliver, and
    /// there is memory for what it adds, or for what EXEC would add.
    #[inline]
    fn guard(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: &Request<'s, '_>,
    ) -> Result<(), Hindrance<'s>> {
        let bytes_max = self.element_bytes_max;
        if self.request_bytes > bytes_max && is_too_long(row, &request.args, bytes_max, &mut self.positions) {
            return Err(Hindrance::Refused(Refusal::TooLong(row)));
        }
        let is_exec = session.modes.is_any() && matches!(row.run, Run::Server(ServerRun::Queue));
        let flags = self.flags_of(row, &request.args);
        if let Err(refusal) = self.look_at_disk(session, (row, flags), is_exec) {
            // Redis looks at the memory before.
            let is_full = !matches!(refusal, Refusal::Loading(_))
                && self.room_wanted(session, (flags, is_exec), request) == Room::None;
            return Err(Hindrance::Refused(if is_full { Refusal::OutOfMemory(row) } else { refusal }));
        }
        if self.is_shut_out && !row.flags.has(Flags::ALLOW_BUSY) {
            return Err(Hindrance::Refused(Refusal::Busy(
                row,
                error::busy(self.server.scripts.running.kind()),
            )));
        }
        if self.mailboxes.is_congested() && self.adds_mail(session, row, is_exec) {
            return Err(Hindrance::Overload);
        }
        if self.must_wait_for_readers(session, row, is_exec) {
            return Err(Hindrance::Overload);
        }
        if self.server.moving.is_any() && self.names_moving(session, row, (request, is_exec)) {
            return Err(Hindrance::Overload);
        }
        match self.room_wanted(session, (flags, is_exec), request) {
            Room::Enough | Room::Later => Ok(()),
            Room::Garbage => Err(Hindrance::Overload),
            Room::None => Err(Hindrance::Refused(Refusal::OutOfMemory(row))),
        }
    }

    /// Whether this command, or what EXEC would run, may cause something to be sent to other clients: a
    /// message, an event of a key, an invalidation, a line of MONITOR.
    #[cold]
    fn adds_mail(&self, session: &Session, row: &Row, is_exec: bool) -> bool {
        let has = |flag| row.flags.has(flag) || is_exec && session.has_queued(flag);
        let publishes =
            row.flags.has(Flags::PUBSUB.or(Flags::FAST)) || is_exec && session.has_queued(Flags::PUBSUB);
        let is_told = self.config.notify != Classes::NONE || self.server.key_events.tracking.clients() > 0;
        let is_watched = self.server.monitors.is_any() && !row.flags.has(Flags::ADMIN);
        publishes || is_watched || is_told && has(Flags::WRITE)
    }

    /// After a call that took long, or that somebody wants to see: ends the turn if it is over, shows the
    /// call to MONITOR, and reports it to the logs. `is_whole` says that its reply is complete.
    #[cold]
    fn look(&mut self, session: &mut Session, row: &Row, is_whole: bool, call: (u64, Args<'_>, usize)) {
        if session.after == After::Next {
            let is_outdated = session.users_version != self.users_version;
            if self.is_turn_over() || is_outdated {
                session.after = After::Yield;
            } else if self.listens && self.mailboxes.get(self.worker).is_some_and(Mailbox::has_mail) {
                // What a client has caused to be sent to itself comes behind this reply and before the next
                // one.
                session.after = After::Tell;
            }
        }
        // One that goes on elsewhere, or waits, has not ended.
        if !matches!(session.after, After::Elsewhere | After::Wait) {
            self.forget_caching(session, Some(row));
        }
        // An EXEC that is to run on the thread of scripts is shown there, behind what it has run.
        let is_to_run = session.after == After::Elsewhere && matches!(row.run, Run::Server(ServerRun::Queue));
        if self.ticks_max == 0 && self.server.monitors.is_any() && !is_to_run {
            self.feed.add(row, &call.1, session, self.server.clock.now_us());
            self.show_soon(session);
        }
        if is_whole {
            self.report(session, row, call);
        }
    }

    /// Answers with the refusal's error and counts it. EXEC will run none of a transaction of which a request
    /// was refused; one whose EXEC is refused is given up.
    #[cold]
    fn refuse(&mut self, session: &mut Session, refusal: &Refusal<'_>, args: &Args<'_>, reply: &mut Reply) {
        self.forget_caching(session, refusal.row());
        session.break_transaction();
        let mut text = refusal.text(args);
        // CLIENT LIST shows it as the last command, and so does the client's line in ACL LOG.
        let shown = refusal.row().map_or(ClientRecord::NO_COMMAND, |row| row.number as u32);
        session.record.last_row.store(shown, Relaxed);
        if let Refusal::NoPermission(row, why) = refusal {
            let by = (&*session.record, permission::context(session));
            permission::note(self.server, by, row, (&why.user, why.denied), args);
        }
        if let Some(row) = refusal.row() {
            self.counters.commands[row.number].rejected.add(1);
            if matches!(row.run, Run::Server(ServerRun::Queue)) {
                session.give_up_transaction(self.server);
                // Also if no transaction was open, which `give_up_transaction` leaves alone.
                session.unwatch(self.server);
                text = error::transaction_refused(&text);
            }
        }
        self.counters.count_error(&text);
        append_error(reply, &text);
    }

    /// Calls the command's handler under the locks that its row asks for.
    #[inline(always)]
    fn run(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> Done {
        if let Some(run) = run_of_keys(row, &request.args)
            && let (Some(key), Some(hash)) = (row.only_key(&request.args), request.hash)
        {
            let (db, key) = (session.db, (key, hash));
            let done = if self.recorder.is_on() {
                cold_path();
                self.run_on_key_recorded(db, row, run, key, (request, reply))
            } else {
                self.run_on_key(db, row, run, key, (request.args, reply))
            };
            return if done.is_err() {
                self.copy_elsewhere(session, row, done, (request, reply))
            } else {
                done
            };
        }
        self.run_otherwise(session, row, request, reply)
    }

    /// Calls the handler of any command but one of a single key. SHUTDOWN does not wait for a long script.
    #[inline(never)]
    fn run_otherwise(
        &mut self,
        session: &mut Session,
        row: &'s Row,
        request: &Request<'s, '_>,
        reply: &mut Reply,
    ) -> Done {
        let (db, args) = (session.db, request.args);
        match row.run {
            Run::Data(DataRun::Keys(run)) => self.run_on_keys(db, row, run, request, reply),
            Run::Data(DataRun::Long(long) | DataRun::Blocking(long)) => {
                self.run_long(session, row, *long, request, reply)
            }
            Run::Data(DataRun::Whole(Scope::Shared, run)) => self.run_on_all(db, run, args, reply),
            Run::Data(DataRun::Whole(Scope::Exclusive, run)) => self.alone(|this| {
                let done = this.run_on_all_recorded(db, row, (run, Says::Always), (args, reply));
                if done.is_ok() && row.flags.has(Flags::EMPTIES_ALL) {
                    save_emptied(this.server, this.now.wall);
                }
                done
            })?,
            Run::Data(DataRun::LongWhole(scope, long)) => {
                self.run_long_on_all(session, row, (scope, long), (args, reply))
            }
            Run::Data(DataRun::KeysOrAll(ways))
                if let Err(error) = permission::check_options(session, row, ways, &args) =>
            {
                Err(error)
            }
            Run::Data(DataRun::KeysOrAll(ways)) if (ways.needs_all)(&args) => {
                self.run_long_on_all(session, row, (Scope::Exclusive, &ways.all), (args, reply))
            }
            Run::Data(DataRun::KeysOrAll(ways)) => self.run_long(session, row, ways.keys, request, reply),
            Run::Server(ServerRun::Begin) => self.multi(session, reply),
            Run::Server(ServerRun::Queue)
                if session.has_queued(Flags::RUNS_SCRIPT) && !self.runs_scripts() =>
            {
                self.exec_with_scripts(session, reply)
            }
            Run::Server(ServerRun::Queue) => self.exec(session, reply),
            Run::Server(ServerRun::Script(what)) => self.run_scripting(session, (row, what), args, reply),
            Run::Server(ServerRun::Function(what)) => self.run_functions(session, (row, what), args, reply),
            Run::Server(ServerRun::Anywhere(run) | ServerRun::Shared(run)) => {
                self.tell_replicas(db, row, &args);
                self.run_on_server(session, run, args, reply)
            }
            Run::Server(ServerRun::Outside(run)) => {
                let before = (self.users_version, self.config_version);
                let done = self.outside(|this| this.run_on_server(session, run, args, reply));
                if (self.users_version, self.config_version) != before {
                    // What other workers are about to do by the old rules and settings is done before the
                    // reply is sent. What other threads have begun takes its place when they are done.
                    self.let_others_finish();
                }
                done
            }
            Run::Server(ServerRun::Exclusive(run)) if self.is_shut_out => {
                self.run_on_server(session, run, args, reply)
            }
            Run::Server(ServerRun::Exclusive(run)) => {
                self.alone(|this| this.run_on_server(session, run, args, reply))?
            }
            // A container without a subcommand has too few arguments: `admit` has refused it.
            Run::Data(DataRun::Container) | Run::Server(ServerRun::Container) => {
                Err(command::Error::wrong_arity(&row.full_name))
            }
        }
    }

    /// A command of one key: its shard is locked while the handler runs. The hash was computed when the
    /// request was parsed.
    #[inline(always)]
    fn run_on_key(
        &mut self,
        db: u16,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        (key, hash): (&[u8], Hash),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        let (keyspace, settings) = (&self.server.keyspace, &self.config.store);
        let (mut view, key) = keyspace.lock_one_hashed(db, self.now.wall, settings, key, hash);
        self.prepare(&mut view, row, &[key]);
        view.leave_copies();
        let done = run(&mut Call::new(&mut view, args, &[key], reply));
        self.let_go(view);
        done
    }

    /// A command of any number of keys: their shards are locked in ascending order, each once.
    #[inline(never)]
    fn run_on_keys(
        &mut self,
        db: u16,
        row: &Row,
        run: fn(&mut Call<'_, '_>) -> Done,
        Request { args, hash: first_hash, .. }: &Request<'_, '_>,
        reply: &mut Reply,
    ) -> Done {
        let (keyspace, settings) = (&self.server.keyspace, &self.config.store);
        row.extract_keys(args, &mut self.positions);
        // The first key was hashed when the request was parsed, if the table says where it stands.
        let mut known = first_hash.filter(|_| row.first_key() == self.positions.first().map(|p| *p as usize));
        let names = self.positions.iter().map(|position| {
            let name = args.at(*position as usize);
            (name, known.take().unwrap_or_else(|| keyspace.hash(name)))
        });
        let (mut view, keys) = keyspace.lock(db, self.now.wall, settings, names);
        self.prepare(&mut view, row, &keys);
        let done = self.run_call(db, &mut view, run, (*args, &keys, reply), |_| ());
        self.let_go(view);
        done
    }

    /// Unlocks the shards. If the command has removed large values or changed keys that somebody listens to,
    /// [`Executor::finish`] sees to these first.
    #[inline(always)]
    fn let_go(&self, view: View<'_>) {
        if view.has_garbage() {
            cold_path();
            self.finish(view);
        }
    }

    /// A command on the whole keyspace, which locks shard by shard; alone if its row says `Scope::Exclusive`.
    #[inline(never)]
    fn run_on_all(
        &mut self,
        db: u16,
        run: fn(&mut WholeCall<'_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let done = run(&mut WholeCall {
            keyspace: &self.server.keyspace,
            db,
            now: self.now.wall,
            settings: &self.config.store,
            args,
            reply,
            random: &mut self.random,
            leaves_trace: self.leaves_trace,
            garbage: &mut self.garbage,
            spared: self.attempt.as_deref().map(|attempt| &attempt.spared),
        });
        free_flushed(self.server, &mut self.garbage);
        if self.server.key_events.waiters.is_ready() && !self.serves_later {
            self.serve_ready();
        }
        done
    }

    /// A command on the server, with the session of its client.
    #[inline(never)]
    fn run_on_server(
        &mut self,
        session: &mut Session,
        run: fn(&mut ServerCall<'_>) -> Done,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let (Moment { wall: now, steady }, request_bytes) = (self.now, self.request_bytes);
        let stopped_us = self.stopped_us.as_ref();
        self.note_records(session);
        let may_leave = !self.keeps_sessions && stopped_us.is_none() && !session.modes.has(Modes::EXECUTING);
        let (server, errand) = (self.server, &mut self.errand);
        let mut leave = |session: &mut Session, apart: Apart, may_wait: MayWait| {
            moving::leave(server, session, (apart, may_wait), errand)
        };
        let leave: Option<&mut Leave<'_>> = if may_leave { Some(&mut leave) } else { None };
        let done = run(&mut ServerCall {
            server,
            session,
            args,
            reply,
            now,
            steady,
            is_shut_out: self.is_shut_out,
            request_bytes,
            stopped_us,
            post: &script::attempt::post_or_defer(&server.mailboxes, self.attempt.as_deref()),
            leave,
        });
        if self.server.is_stopping() {
            session.after = After::Close;
        }
        // It may have been CONFIG SET, MONITOR or CLIENT NO-TOUCH: what follows in this batch obeys it.
        self.attend(session);
        self.refresh_config();
        if self.holds_no_shard(session) {
            self.heed_policy();
        }
        self.refresh_users();
        let is_new = session.users_version != self.users_version;
        if is_new && !session.obey(&self.users) && session.after < After::Close {
            // The client's own command has ended its session: it is sent the reply and then closed.
            session.after = After::Close;
        }
        self.bound();
        done
    }
}

/// The scale of the histograms, if calls are tracked.
fn tracked(config: &Config, meter: &Meter) -> Option<Scale> {
    (config.latency_tracking == Tracking::On).then(|| meter.scale(histogram::UNIT_NS))
}

/// What runs a command of keys that does not take long.
#[inline(always)]
fn run_of_keys(row: &Row, args: &Args<'_>) -> Option<fn(&mut Call<'_, '_>) -> Done> {
    match row.run {
        Run::Data(DataRun::Keys(run)) => Some(run),
        Run::Data(DataRun::Long(long)) if long.is_surely_quick(args) => Some(long.run),
        _ => None,
    }
}

/// The checks that need nothing but the row and the number of arguments. Returns the row that runs, which is
/// a subcommand's where the request names one.
#[inline(always)]
fn admit<'s>(request: &Request<'s, '_>) -> Result<&'s Row, Refusal<'s>> {
    let args = &request.args;
    let mut row = request.row.ok_or(Refusal::UnknownCommand)?;
    if !row.subcommands.is_empty() && args.len() > 1 {
        row = row.subcommand(args.at(1)).ok_or(Refusal::UnknownSubcommand(row))?;
    }
    if !row.arity.accepts(args.len()) {
        return Err(Refusal::Arity(row));
    }
    Ok(row)
}
