//! What a running script asks for: its commands, and whether it may go on.
//!
//! A command of a script is checked as in Redis: may scripts call it at all, may the user, may this script
//! write, is there memory? Then it runs as a request of EXEC does, and is counted as one.
use super::ScriptsRun;
use super::attempt::{self, Attempt, Fate, TooMany};
use super::interpreter::sha_of_hex;
use crate::core::dispatch::exec::{Handler, Left};
use crate::core::dispatch::{Executor, Request};
use crate::core::error;
use crate::core::functions::{log_for_script, wants_log_of_script};
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::recorder::Concerns;
use crate::core::refusal::append_error;
use crate::core::registry::{Row, Run};
use crate::core::session::Session;
use crate::state::persistence::NOTHING;
use crate::state::scripts::{Kind, Slow};
use base::hash::Hash;
use command::{Call, DataRun, Done, Flags, LONG_STEPS};
use disk::journal::Audience;
use net::Tick;
use resp::{Args, Framing, Reply};
use script::{AclCheck, Host, LogLevel, Stop};
use store::{Held, Key, TooLong, View};

/// By what rules a script starts.
pub(super) struct Start {
    pub(super) kind: Kind,
    /// Of a function.
    pub(super) name: Vec<u8>,
    /// It has promised not to write, or its caller has.
    pub(super) is_readonly: bool,
    /// Memory is over its limit, and it has not said that it may run all the same.
    pub(super) is_full: bool,
}

/// What a script may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core::dispatch) enum Reach {
    /// Keys: those that it has declared, whose shards are locked when it begins, and more as far as nobody
    /// else has their shards locked. All stay locked as long as it runs. Where somebody has one, the script
    /// leaves behind with what shards it is to begin again ([`Attempts::reached`](attempt::Attempts)).
    Keys { again: bool },
    /// Everything: it is alone.
    Everything,
}

impl Reach {
    pub(super) fn is_of_keys(self) -> bool {
        matches!(self, Reach::Keys { .. })
    }
}

/// How a script has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::core::dispatch) enum End {
    Done,
    /// What it returned holds an error.
    Failed,
    /// It has reached for what is not a key, or for very many, and is to run alone.
    NeedsAll,
    /// It has reached for a key whose shard somebody else has locked, and is to begin with that one.
    Contended,
    /// It is to run elsewhere.
    GivenUp,
}

impl End {
    /// Whether what it has done is to be taken back.
    pub(super) fn is_undone(self) -> bool {
        matches!(self, End::NeedsAll | End::Contended | End::GivenUp)
    }
}

/// See the file's opener.
pub(super) struct ScriptHost<'h, 's> {
    executor: &'h mut Executor<'s>,
    session: &'h mut Session,
    /// The request that has called it.
    args: &'h Args<'h>,
    start: Start,
    reach: Reach,
    /// The shards that are locked for it: more of them as they are needed.
    held: Held<'s>,
    left: Left,
    has_written: bool,
    /// What it returns holds an error.
    has_failed: bool,
    began: Tick,
    /// After so many ticks it is slow; None for never.
    patience_ticks: Option<u64>,
    is_slow: bool,
    /// It cannot go on like this: what it has done is to be taken back.
    given_up: Option<End>,
}

impl<'h, 's> ScriptHost<'h, 's> {
    pub(super) fn new(
        executor: &'h mut Executor<'s>,
        session: &'h mut Session,
        args: &'h Args<'h>,
        start: Start,
        (reach, held): (Reach, Held<'s>),
    ) -> ScriptHost<'h, 's> {
        const NS_A_MS: u64 = 1_000_000;
        let patience_ms = match (executor.scripts, executor.config.busy_reply_threshold_ms) {
            (ScriptsRun::Bounded, 0) => Some(BOUND_MS),
            (_, 0) => None,
            (_, ms) => Some(ms),
        };
        let patience_ticks = patience_ms.map(|ms| executor.meter.ticks(ms.saturating_mul(NS_A_MS)));
        let began = executor.meter.read();
        executor.mark = began;
        ScriptHost {
            executor,
            session,
            args,
            start,
            reach,
            held,
            left: Left::default(),
            has_written: false,
            has_failed: false,
            began,
            patience_ticks,
            is_slow: false,
            given_up: None,
        }
    }

    /// The script has ended. Returns what is locked for it, and what it leaves to be done.
    pub(super) fn end(self) -> (End, Held<'s>, Left) {
        if self.is_slow {
            self.executor.server.scripts.running.end();
        }
        let end = match (self.given_up, self.has_failed) {
            (Some(end), _) => end,
            (None, true) => End::Failed,
            (None, false) => End::Done,
        };
        (end, self.held, self.left)
    }

    /// Ends the script, to have it run in another way.
    fn give_up(&mut self, end: End) -> Stop {
        self.given_up = Some(end);
        Stop(Vec::new())
    }

    /// Why a command does not run, if it does not.
    #[inline(always)]
    fn refusal(&mut self, row: Option<&Row>, args: &Args<'_>) -> Result<Option<Vec<u8>>, Stop> {
        let Some(row) = row else { return Ok(Some(error::UNKNOWN_IN_SCRIPT.into())) };
        if !row.arity.accepts(args.len()) {
            return Ok(Some(error::ARITY_IN_SCRIPT.into()));
        }
        if row.flags.has(Flags::NOSCRIPT) {
            return Ok(Some(error::NOT_IN_SCRIPTS.into()));
        }
        let server = self.executor.server;
        if self.session.modes.has(Modes::RESTRICTED)
            && let Err(denied) = permission::check(&self.session.user, row, args)
        {
            if self.executor.attempt.is_some() {
                // What the log of refusals is told cannot be taken back.
                return Err(self.give_up(End::GivenUp));
            }
            let (user, by) =
                (&*self.session.user, (&*self.session.record, permission::context(self.session)));
            permission::note(server, by, row, (user, denied), args);
            return Ok(Some(error::no_permission_in_script(user, &row.full_name, denied)));
        }
        let writes = row.flags.has(Flags::WRITE);
        if self.start.is_readonly && (writes || row.flags.has(Flags::MAY_REPLICATE)) {
            return Ok(Some(error::WRITE_IN_READONLY_SCRIPT.into()));
        }
        // Once it has written it may go on: half of it would be worse.
        let refusing = self.executor.refusing();
        if writes
            && !self.has_written
            && refusing != NOTHING
            && let Err(why) = self.executor.look_at_disk_for_scripts(refusing)
        {
            return Ok(Some(why.text().into()));
        }
        if self.start.is_full && !self.has_written && row.flags.has(Flags::DENYOOM) {
            return Ok(Some(error::OUT_OF_MEMORY.into()));
        }
        Ok(None)
    }

    /// Runs a command that may run, and counts it.
    #[inline(always)]
    pub(super) fn run(&mut self, row: &'s Row, args: Args<'_>, reply: &mut Reply) -> Result<(), Stop> {
        let start = reply.out.len();
        let mut fate = Fate::Ran;
        let done = self.call(row, args, reply)?;
        let executor = &mut *self.executor;
        if let Err(error) = done {
            fate = Fate::Failed;
            executor.note_error(error.text());
            reply.error(error.text());
        }
        reply.finish();
        let ticks = executor.lap();
        let reply_bytes = reply.out.len() - start;
        executor.note_call(row, ticks, fate);
        if ticks >= executor.ticks_max || reply_bytes >= executor.bounds.reply_bytes {
            let is_logged = reply_bytes >= executor.bounds.reply_bytes || ticks >= executor.bounds.ticks;
            let is_of_queue = executor.attempts.are_of_queue();
            if let Some(attempt) = &executor.attempt
                && is_logged
                && (is_of_queue || attempt.has_many_reports())
            {
                // What the logs of commands are told is held back of a script by itself only, and of so many
                // calls.
                return Err(self.give_up(End::GivenUp));
            }
            executor.look(self.session, row, true, (ticks, args, reply_bytes));
        }
        if self.is_slow {
            // Workers are let in, and may want one of the shards.
            self.held.release();
        }
        Ok(())
    }

    fn call(&mut self, row: &'s Row, args: Args<'_>, reply: &mut Reply) -> Result<Done, Stop> {
        match Handler::of(row, &args) {
            Some(Handler::Data(run)) => self.call_on_keys((row, run), args, reply),
            Some(Handler::Server(run)) => {
                self.executor.tell_replicas(self.session.db, row, &args);
                Ok(self.executor.run_on_server(self.session, run, args, reply))
            }
            None if self.reach.is_of_keys() => Err(self.give_up(End::NeedsAll)),
            None => self.call_on_all(row, args, reply),
        }
    }

    /// Runs a command that needs more than keys. The script is alone. SCAN and KEYS, where they take long,
    /// run where the script need not be taken back, and so does what would remove keys that have expired.
    fn call_on_all(&mut self, row: &'s Row, args: Args<'_>, reply: &mut Reply) -> Result<Done, Stop> {
        self.held.release();
        if let Run::Data(DataRun::LongWhole(_, long)) = row.run
            && self.executor.attempt.is_some()
        {
            let steps = self.executor.steps_on_all(self.session, long, (args, reply));
            if steps.is_some_and(|steps| steps >= LONG_STEPS) {
                return Err(self.give_up(End::GivenUp));
            }
        }
        let request = Request { row: Some(row), hash: None, framing: Framing::Unknown, args };
        let done = self.executor.run(self.session, row, &request, reply);
        match self.executor.attempt.as_ref().is_some_and(|attempt| attempt.spared.take()) {
            true => Err(self.give_up(End::GivenUp)),
            false => Ok(done),
        }
    }

    /// Runs a command on keys. Those of most commands are known by their places; nothing is allocated for
    /// one.
    fn call_on_keys(
        &mut self,
        (row, run): (&'s Row, OnKeys),
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Result<Done, Stop> {
        if let Run::Data(DataRun::KeysOrAll(ways)) = row.run
            && let Err(error) = permission::check_options(self.session, row, ways, &args)
        {
            return Ok(Err(error));
        }
        if let Some(name) = row.only_key(&args) {
            return self.call_on_key((row, run), args, name, reply);
        }
        let keyspace = &self.executor.server.keyspace;
        let positions = &mut self.executor.positions;
        row.extract_keys(&args, positions);
        let names = positions.iter().map(|position| args.at(*position as usize));
        let names: Vec<_> = names.map(|name| (name, keyspace.hash(name))).collect();
        let hashes = names.iter().map(|(_, hash)| *hash);
        if !hashes.clone().all(|hash| self.held.has(hash)) {
            self.hold(hashes)?;
        }
        let (executor, db) = (&*self.executor, self.session.db);
        let mut view = self.held.view(executor.now.wall, &executor.config.store);
        let keys: Vec<_> = names.iter().map(|(name, hash)| view.key(db, name, *hash)).collect();
        let way = executor.run_part(&mut view, (row, run), (args, &keys, reply), &mut self.left);
        drop(view);
        way.map_err(|CannotBeTakenBack| self.give_up(End::GivenUp))
    }

    /// Runs a command on one key, as most are, on shards that stay locked for the next.
    #[inline(always)]
    fn call_on_key<'a>(
        &mut self,
        call: (&'s Row, OnKeys),
        args: Args<'a>,
        name: &'a [u8],
        reply: &mut Reply,
    ) -> Result<Done, Stop> {
        let hash = self.executor.server.keyspace.hash(name);
        if !self.held.has(hash) {
            self.hold(std::iter::once(hash))?;
        }
        let executor = &*self.executor;
        let by = (executor.now.wall, &executor.config.store);
        let (mut view, key) =
            self.held.view_of_key(by, (self.session.db, name, hash)).expect("its shard was locked for it");
        let way = executor.run_part(&mut view, call, (args, &[key], reply), &mut self.left);
        view.end();
        way.map_err(|CannotBeTakenBack| self.give_up(End::GivenUp))
    }

    /// Locks those shards of these keys that are not locked yet, of which there is at least one; or gives up
    /// where it cannot.
    #[inline(never)]
    fn hold(&mut self, hashes: impl ExactSizeIterator<Item = Hash> + Clone) -> Result<(), Stop> {
        if self.held.count() + hashes.len() > HELD_MAX {
            match self.reach {
                Reach::Keys { .. } => return Err(self.give_up(End::NeedsAll)),
                Reach::Everything => self.held.release(),
            }
        }
        let known = self.held.count();
        let missing = match self.reach {
            Reach::Keys { .. } => hashes.clone().find(|hash| !self.held.try_add(*hash)),
            Reach::Everything => {
                hashes.clone().for_each(|hash| self.held.add(hash));
                None
            }
        };
        if let Some(attempt) = &mut self.executor.attempt {
            attempt.note_counts(&self.held, known);
        }
        match missing {
            None => Ok(()),
            Some(missing) => Err(self.give_up_contended(hashes.chain([missing]))),
        }
    }

    /// Ends the script, to have it begin with all shards that it has reached for so far. Somebody has the
    /// last.
    #[cold]
    fn give_up_contended(&mut self, hashes: impl Iterator<Item = Hash>) -> Stop {
        let keyspace = &self.executor.server.keyspace;
        let held = self.held.counts().map(|(shard, _)| shard);
        let reached = &mut self.executor.attempts.reached;
        reached.clear();
        reached.extend(held.chain(hashes.map(|hash| keyspace.shard_number(hash))));
        self.give_up(End::Contended)
    }

    /// Whether the script may go on, as of this time.
    #[inline(always)]
    fn look_around(&mut self, now: Tick) -> Result<(), Stop> {
        let is_calm = self.executor.attempt.is_none()
            && !self.is_slow
            && !self.executor.server.is_stopping()
            && self.patience_ticks.is_none_or(|patience| now.since(self.began) < patience);
        if is_calm { Ok(()) } else { self.look_closely(now) }
    }

    /// The same where something is to be looked at.
    #[inline(never)]
    fn look_closely(&mut self, now: Tick) -> Result<(), Stop> {
        let server = self.executor.server;
        if let Some(attempt) = &mut self.executor.attempt {
            return match self.given_up {
                Some(end) => Err(self.give_up(end)),
                None if attempt.is_over(now) => Err(self.give_up(End::GivenUp)),
                None => Ok(()),
            };
        }
        if server.is_stopping() {
            return Err(Stop(error::SCRIPT_KILLED.into()));
        }
        if self.executor.scripts == ScriptsRun::Replayed && server.ending.asked_by().is_some() {
            // A signal, which would wait for the gates. There is nothing to save: it is being loaded.
            server.stop(0);
            return Err(self.killed());
        }
        if self.is_slow {
            if !server.scripts.running.is_killed() {
                return Ok(());
            }
            server.log.notice("Lua script killed by user with SCRIPT KILL.");
            return Err(self.killed());
        }
        let elapsed = now.since(self.began);
        if self.patience_ticks.is_some_and(|patience| elapsed >= patience) {
            if self.executor.scripts == ScriptsRun::Bounded {
                return Err(self.killed());
            }
            self.become_slow(elapsed);
        }
        Ok(())
    }

    /// The restless mode of tests gives scripts up at any of their commands, in each of the ways.
    pub(super) fn draw_end(&mut self) -> Option<Stop> {
        match self.executor.server.restless.draw(RESTLESS_ONE_IN)? {
            0 => Some(self.give_up(End::GivenUp)),
            1 if self.reach.is_of_keys() => Some(self.give_up(End::NeedsAll)),
            2 if self.reach.is_of_keys() => Some(self.give_up_contended(std::iter::empty())),
            _ => None,
        }
    }

    fn killed(&self) -> Stop {
        Stop(error::SCRIPT_KILLED.into())
    }

    /// The function's name; of a script its SHA-1, as SCRIPT LOAD answers it.
    fn name_for_log(&self) -> String {
        let code = self.args.get(1).unwrap_or_default();
        match self.start.kind {
            Kind::Function => String::from_utf8_lossy(&self.start.name).into(),
            Kind::Script => base::text::hex(&sha_of_hex(code).unwrap_or_else(|| base::digest::sha1(code))),
        }
    }

    #[cold]
    fn become_slow(&mut self, elapsed: u64) {
        self.is_slow = true;
        self.held.release();
        let server = self.executor.server;
        let elapsed_us = (self.executor.meter.ns(elapsed) / 1000) as i64;
        server.scripts.running.begin(Slow {
            kind: self.start.kind,
            name: self.start.name.clone(),
            command: self.args.iter_from(0).map(<[u8]>::to_vec).collect(),
            began_us: server.clock.steady_us() - elapsed_us,
            has_written: self.has_written,
            is_killed: false,
        });
        server.gates.leave_ajar();
        let kill = error::kill_command(self.start.kind);
        server.log.warning(&format!(
            "Slow script detected: still in execution after {} milliseconds. You can try killing the script using \
             the {kill} command. Script name is: {}.",
            elapsed_us / 1000,
            self.name_for_log()
        ));
    }
}

impl Host for ScriptHost<'_, '_> {
    fn command(&mut self, args: Args<'_>, reply: &mut Reply) -> Result<(), Stop> {
        let registry = &self.executor.server.registry;
        let row = registry.find(args.at(0)).and_then(|row| match args.get(1) {
            Some(name) if !row.subcommands.is_empty() => row.subcommand(name),
            _ => Some(row),
        });
        if let Some(why) = self.refusal(row, &args)? {
            self.executor.note_error(&why);
            if let Some(row) = row {
                self.executor.note_call(row, 0, Fate::Rejected);
            }
            append_error(reply, &why);
            return Ok(());
        }
        // What the script has done since the command before is no time of this one.
        self.executor.lap();
        self.look_around(self.executor.mark)?;
        let row = row.expect("a command that is not known was refused");
        if self.executor.attempt.is_some() {
            let stop = match attempt::is_undoable(row, &args) {
                true => self.draw_end(),
                false => Some(self.give_up(End::GivenUp)),
            };
            if let Some(stop) = stop {
                return Err(stop);
            }
        }
        if row.flags.has(Flags::WRITE) {
            if self.is_slow && !self.executor.server.scripts.running.may_write() {
                return Err(self.killed());
            }
            self.has_written = true;
        }
        self.run(row, args, reply)
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        wants_log_of_script(self.executor.server, level)
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        let Some(attempt) = &mut self.executor.attempt else {
            return log_for_script(self.executor.server, level, message);
        };
        if wants_log_of_script(self.executor.server, level)
            && let Err(TooMany) = attempt.keep_message(level, message)
        {
            self.given_up = Some(End::GivenUp);
        }
    }

    fn set_replication(&mut self, targets: u8) {
        self.executor.recorder.concern(match targets {
            0 => Concerns::Nobody,
            1 => Concerns::Only(Audience::Files),
            2 => Concerns::Only(Audience::Replicas),
            _ => Concerns::Everybody,
        });
    }

    fn acl_check(&mut self, args: Args<'_>) -> AclCheck {
        let Some(row) = self.executor.server.registry.find(args.at(0)) else {
            return AclCheck::UnknownCommand;
        };
        let row = match args.get(1) {
            Some(name) if !row.subcommands.is_empty() => row.subcommand(name),
            _ => Some(row),
        };
        match row {
            None => AclCheck::UnknownCommand,
            Some(row) if !row.arity.accepts(args.len()) => AclCheck::WrongArity,
            Some(row) => match permission::check(&self.session.user, row, &args) {
                Ok(()) => AclCheck::Allowed,
                Err(_) => AclCheck::Denied,
            },
        }
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.look_around(self.executor.meter.read())
    }

    fn returned_error(&mut self, text: &[u8], is_counted: bool) {
        self.has_failed = true;
        if !is_counted {
            self.executor.note_error(text);
        }
    }
}

impl Executor<'_> {
    /// Runs a command of a script on keys whose shards are locked. If what the script does may have to be
    /// taken back, what is under keys that it writes is kept before.
    #[inline(always)]
    fn run_part<'k>(
        &self,
        view: &mut View<'k>,
        (row, run): (&Row, OnKeys),
        (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
        left: &mut Left,
    ) -> Result<Done, CannotBeTakenBack> {
        if let Some(attempt) = &self.attempt
            && let Err(cannot) = prepare_undo(attempt, view, row, (args, keys, reply))
        {
            // What has expired was met only to find out how long it would take.
            attempt.defer(view.take_told(), view.take_garbage());
            return Err(cannot);
        }
        Ok(self.run_in(view, row, run, (args, keys, reply), left))
    }
}

/// Keeps what is under the keys of a command that writes.
fn prepare_undo<'k>(
    attempt: &Attempt,
    view: &mut View<'k>,
    row: &Row,
    (args, keys, reply): (Args<'k>, &[Key<'k>], &mut Reply),
) -> Result<(), CannotBeTakenBack> {
    // A long reply takes long whoever it is for: a table is made of it.
    let long = match row.at_once {
        Some(long) => (!long.is_surely_quick(&args)).then_some(long),
        None => match row.run {
            Run::Data(DataRun::Long(long) | DataRun::Blocking(long)) => Some(long),
            Run::Data(DataRun::KeysOrAll(ways)) => Some(&ways.keys),
            _ => None,
        },
    };
    // Before anything is looked up: a field that has expired is removed by that.
    if row.flags.has(Flags::WRITE) {
        for key in keys {
            attempt.keep(view, key).map_err(|TooLong| CannotBeTakenBack)?;
        }
    }
    let steps = long.and_then(|long| (long.work)(&mut Call::new(view, args, keys, reply)));
    match steps.is_some_and(|steps| steps >= LONG_STEPS) {
        true => Err(CannotBeTakenBack),
        false => Ok(()),
    }
}

/// A command takes long, or would write to what cannot be kept.
struct CannotBeTakenBack;

/// The function of a command on keys.
type OnKeys = fn(&mut Call<'_, '_>) -> Done;

/// A script reaches for no more shards than this at once. One that is alone lets go of them before, one that
/// is not gives up.
pub(super) const HELD_MAX: usize = 32;
/// When a script is ended that nobody could end, where no setting says so.
const BOUND_MS: u64 = 5_000;
/// In the restless mode an attempt is given up at up to three in so many commands.
const RESTLESS_ONE_IN: usize = 6;
