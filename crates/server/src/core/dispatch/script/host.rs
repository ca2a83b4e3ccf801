//! What a running script asks for: its commands, and whether it may go on.
//!
//! A command of a script is checked as in Redis: may scripts call it at all, may the user, may this script
//! write, is there memory? Then it runs as a request of EXEC does, and is counted as one.
use super::attempt::{self, Fate};
use crate::core::dispatch::{Executor, Request};
use crate::core::error;
use crate::core::functions::log_for_script;
use crate::core::modes::Modes;
use crate::core::permission;
use crate::core::refusal::append_error;
use crate::core::registry::Row;
use crate::core::session::Session;
use crate::state::persistence::NOTHING;
use crate::state::scripts::{Kind, Slow};
use command::Flags;
use net::Tick;
use resp::{Args, Reply};
use script::{AclCheck, Host, LogLevel, Stop};

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

/// How a script has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Done,
    /// What it returned holds an error.
    Failed,
    /// It is to run elsewhere.
    GivenUp,
}

/// See the file's opener.
pub(super) struct ScriptHost<'h, 's> {
    executor: &'h mut Executor<'s>,
    session: &'h mut Session,
    /// The request that has called it.
    args: &'h Args<'h>,
    start: Start,
    has_written: bool,
    /// What it returns holds an error.
    has_failed: bool,
    began: Tick,
    /// After so many ticks it is slow; None for never.
    patience_ticks: Option<u64>,
    is_slow: bool,
    /// It cannot go on here: what it has done is to be taken back.
    has_given_up: bool,
}

impl<'h, 's> ScriptHost<'h, 's> {
    pub(super) fn new(
        executor: &'h mut Executor<'s>,
        session: &'h mut Session,
        args: &'h Args<'h>,
        start: Start,
    ) -> ScriptHost<'h, 's> {
        const NS_A_MS: u64 = 1_000_000;
        let threshold_ms = executor.config.busy_reply_threshold_ms;
        let patience_ms = match threshold_ms {
            0 => executor.bounds_scripts.then_some(BOUND_MS),
            ms => Some(ms),
        };
        let patience_ticks = patience_ms.map(|ms| executor.meter.ticks(ms.saturating_mul(NS_A_MS)));
        let began = executor.meter.read();
        executor.mark = began;
        ScriptHost {
            executor,
            session,
            args,
            start,
            has_written: false,
            has_failed: false,
            began,
            patience_ticks,
            is_slow: false,
            has_given_up: false,
        }
    }

    /// The script has ended.
    pub(super) fn end(self) -> End {
        if self.is_slow {
            self.executor.server.scripts.running.end();
        }
        match (self.has_given_up, self.has_failed) {
            (true, _) => End::GivenUp,
            (false, true) => End::Failed,
            (false, false) => End::Done,
        }
    }

    /// Ends the script, to have it run elsewhere.
    fn give_up(&mut self) -> Stop {
        self.has_given_up = true;
        Stop(Vec::new())
    }

    /// Why a command does not run, if it does not.
    fn refusal(&mut self, row: Option<&Row>, args: &Args<'_>) -> Option<Vec<u8>> {
        let Some(row) = row else { return Some(error::UNKNOWN_IN_SCRIPT.into()) };
        if !row.arity.accepts(args.len()) {
            return Some(error::ARITY_IN_SCRIPT.into());
        }
        if row.flags.has(Flags::NOSCRIPT) {
            return Some(error::NOT_IN_SCRIPTS.into());
        }
        let server = self.executor.server;
        if self.session.modes.has(Modes::RESTRICTED)
            && let Err(denied) = permission::check(&self.session.user, row, args)
        {
            let (user, by) =
                (&*self.session.user, (&*self.session.record, permission::context(self.session)));
            permission::note(server, by, row, (user, denied), args);
            return Some(error::no_permission_in_script(user, &row.full_name, denied));
        }
        let writes = row.flags.has(Flags::WRITE);
        if self.start.is_readonly && (writes || row.flags.has(Flags::MAY_REPLICATE)) {
            return Some(error::WRITE_IN_READONLY_SCRIPT.into());
        }
        let refusing = server.persistence.refusing();
        if writes
            && refusing != NOTHING
            && let Err(why) = self.executor.look_at_disk_for_scripts(refusing)
        {
            return Some(why.text().into());
        }
        if self.start.is_full && !self.has_written && row.flags.has(Flags::DENYOOM) {
            return Some(error::OUT_OF_MEMORY.into());
        }
        None
    }

    /// Runs a command that may run, and counts it.
    fn run(&mut self, row: &'s Row, args: Args<'_>, reply: &mut Reply) {
        let executor = &mut *self.executor;
        let hash = row.first_key().and_then(|at| args.get(at)).map(|key| executor.server.keyspace.hash(key));
        let request = Request { row: Some(row), hash, args };
        let start = reply.out.len();
        let mut fate = Fate::Ran;
        if let Err(error) = executor.run(self.session, row, &request, reply) {
            fate = Fate::Failed;
            executor.note_error(error.text());
            reply.error(error.text());
        }
        reply.finish();
        let ticks = executor.lap();
        let reply_bytes = reply.out.len() - start;
        executor.note_call(row, ticks, fate);
        if ticks >= executor.ticks_max || reply_bytes >= executor.bounds.reply_bytes {
            executor.look(self.session, row, true, (ticks, args, reply_bytes));
        }
    }

    /// Whether the script may go on.
    fn look_around(&mut self) -> Result<(), Stop> {
        let server = self.executor.server;
        if let Some(attempt) = &self.executor.attempt {
            return match self.has_given_up || attempt.is_over(self.executor.meter.read()) {
                true => Err(self.give_up()),
                false => Ok(()),
            };
        }
        if server.is_stopping() {
            return Err(Stop(error::SCRIPT_KILLED.into()));
        }
        if self.is_slow {
            return match server.scripts.running.is_killed() {
                true => Err(self.killed()),
                false => Ok(()),
            };
        }
        let elapsed = self.executor.meter.read().since(self.began);
        if self.patience_ticks.is_some_and(|patience| elapsed >= patience) {
            if self.executor.bounds_scripts {
                return Err(self.killed());
            }
            self.become_slow(elapsed);
        }
        Ok(())
    }

    /// The restless mode of tests gives scripts up at any of their commands.
    fn is_restless(&self) -> bool {
        self.executor.server.restless.draw(RESTLESS_ONE_IN) == Some(0)
    }

    fn killed(&self) -> Stop {
        Stop(error::SCRIPT_KILLED.into())
    }

    #[cold]
    fn become_slow(&mut self, elapsed: u64) {
        self.is_slow = true;
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
             the {kill} command.",
            elapsed_us / 1000
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
        if let Some(why) = self.refusal(row, &args) {
            self.executor.note_error(&why);
            if let Some(row) = row {
                self.executor.note_call(row, 0, Fate::Rejected);
            }
            append_error(reply, &why);
            return Ok(());
        }
        self.look_around()?;
        let row = row.expect("a command that is not known was refused");
        if self.executor.attempt.is_some() && (!attempt::is_undoable(row, &args) || self.is_restless()) {
            return Err(self.give_up());
        }
        if row.flags.has(Flags::WRITE) {
            if self.is_slow && !self.executor.server.scripts.running.may_write() {
                return Err(self.killed());
            }
            self.has_written = true;
            if self.executor.keep_keys(self.session.db, row, &args).is_err() {
                return Err(self.give_up());
            }
        }
        self.run(row, args, reply);
        match self.executor.attempt.as_ref().is_some_and(|attempt| attempt.is_too_long()) {
            true => Err(self.give_up()),
            false => Ok(()),
        }
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        if self.executor.attempt.is_some() {
            self.has_given_up = true;
            return;
        }
        log_for_script(self.executor.server, level, message);
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
        self.look_around()
    }

    fn returned_error(&mut self, text: &[u8], is_counted: bool) {
        self.has_failed = true;
        if !is_counted {
            self.executor.note_error(text);
        }
    }
}

/// When a script is ended that nobody could end, where no setting says so.
const BOUND_MS: u64 = 5_000;
/// In the restless mode an attempt is given up at one in so many commands.
const RESTLESS_ONE_IN: usize = 4;
