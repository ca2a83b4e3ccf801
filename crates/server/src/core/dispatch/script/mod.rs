//! Scripts: EVAL and its kin. A script is one step for every worker. It runs beside what other workers do,
//! under the locks of the shards of the keys that it declares, to which come those that it reaches for. Where
//! somebody else has one of these, it is taken back and begins with all of them. What is not about keys, and
//! what was in each other's way too often (`core/tries.rs`), runs while all gates are held. The worker
//! attempts it itself (`attempt`); one that takes long, or cannot be taken back, runs on the thread of
//! scripts, to which its client's session is lent.
//!
//! ```text
//! worker: EVAL: compile, or find; may it run at all?
//!           | attempted under the shards of its keys ---- ended ---> the reply
//!           |  somebody has one that it reaches for: undone, once more with that one; or it reaches for all
//!           v
//!           attempted with all gates ----- ended ---> the reply
//!           |  takes long, or cannot be undone: undone
//!           v
//!           Errand ---> thread of scripts: all gates; each of its commands locks what it needs
//! ```
//!
//! EXEC of a queue with scripts goes the same ways (`queue`).
//!
//! A script that runs for longer than `busy-reply-threshold` leaves the gates ajar (`state/gate.rs`): from
//! then on workers answer their clients with BUSY, and SCRIPT KILL and SHUTDOWN NOSAVE reach them.
//!
//! What it has changed is one transaction in the journal. Those who wait for keys are served when it has
//! ended.
pub(super) mod attempt;
mod call;
mod functions;
mod host;
pub(super) mod interpreter;
mod leftovers;
mod queue;

use super::exec::Left;
use super::{Executor, Request};
use crate::core::call::{Access, Scripting, ServerRun};
use crate::core::error;
use crate::core::lent::{Errand, Task};
use crate::core::memory_limit::Room;
use crate::core::modes::Modes;
use crate::core::recorder::Concerns;
use crate::core::registry::{Row, Run};
use crate::core::session::{After, Session};
use crate::core::tries::{Beside, Tries};
use crate::state::pause::Held as PauseHeld;
use crate::state::persistence::{NOTHING, UNSAVED, UNWRITTEN};
use crate::state::scripts::{Cache, Kind, Origin};
use attempt::QueueAttempt;
use call::{Code, FIRST_KEY, ScriptCall, count_keys};
use command::{Done, Error, Flags};
use host::{End, Reach, ScriptHost, Start};
use interpreter::{Interpreter, Known};
use resp::{Args, Framing, Reply};
use script::{Flags as ScriptFlags, Outcome};
use std::cell::Cell;
use std::hint::cold_path;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use store::Held;

/// How an executor runs scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScriptsRun {
    /// It attempts them. One that takes long, or cannot be taken back, goes to the thread of scripts.
    InAttempts,
    /// For good: it is that of the thread of scripts.
    ForGood,
    /// For good, and one that takes long is ended.
    Bounded,
    /// For good, because a file says that they have run: nothing refuses them now, and no log of commands
    /// keeps them.
    Replayed,
}

impl<'s> Executor<'s> {
    /// Scripts run here for good.
    pub(super) fn runs_scripts(&self) -> bool {
        self.scripts != ScriptsRun::InAttempts
    }

    /// Why writes are refused.
    fn refusing(&self) -> u8 {
        match self.scripts {
            ScriptsRun::Replayed => NOTHING,
            _ => self.server.persistence.refusing(),
        }
    }

    /// A command that runs, or compiles, a script.
    #[cold]
    pub(super) fn run_scripting(
        &mut self,
        session: &mut Session,
        (row, what): (&'s Row, Scripting),
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        if !self.runs_scripts() && !self.may_attempt(&args) {
            self.give_script_up(session);
            return Ok(());
        }
        let mut interpreter = self.take_interpreter();
        let done = self.run_with(&mut interpreter, session, (row, what), (args, reply));
        interpreter.machine.tidy();
        if self.scripts != ScriptsRun::Replayed {
            let bytes = interpreter.used_bytes();
            self.counters.interpreter_bytes.store(bytes, Relaxed);
        }
        self.interpreter = Some(interpreter);
        done
    }

    /// Whether a worker tries to run the script itself.
    fn may_attempt(&self, args: &Args<'_>) -> bool {
        args.at(1).len().max(args.at(2).len()) <= ATTEMPTED_BYTES_MAX
    }

    /// EXEC of a queue with a script. What a client listens to stays with its worker, so a queue that changes
    /// that runs here; its scripts are ended if they take long, because nobody could.
    pub(super) fn exec_with_scripts(&mut self, session: &mut Session, reply: &mut Reply) -> Done {
        if !session.has_queued(Flags::SUBSCRIBES) {
            if self.may_attempt_queue(session)
                && let Some(reach) = self.look_at_scripts(session)
            {
                return self.attempt_exec(session, reach, reply);
            }
            self.lend_for_scripts(session);
            return Ok(());
        }
        self.scripts = ScriptsRun::Bounded;
        let done = self.exec(session, reply);
        self.scripts = ScriptsRun::InAttempts;
        done
    }

    /// Has the worker lend the session to the thread of scripts.
    pub(super) fn lend_for_scripts(&mut self, session: &mut Session) {
        session.after = After::Elsewhere;
        if !self.feed.is_empty() {
            // That thread shows what it runs by itself: behind what has run before.
            self.feed.send(self.server);
        }
        self.server.stats.scripts_lent.fetch_add(1, Relaxed);
        self.errand = Some(Errand { task: Task::Script(self.held), is_mute: !session.reply_mode.answers() });
    }

    /// On the thread of scripts: runs the request of a session that was lent. Its error is the caller's to
    /// write.
    pub(crate) fn run_lent(
        &mut self,
        session: &mut Session,
        (args, request_bytes): (Args<'_>, usize),
        passed_by: PauseHeld,
        reply: &mut Reply,
    ) -> (Done, WroteAll) {
        session.after = After::Next;
        self.begin();
        // What came since it was lent may hold it back.
        self.held = passed_by;
        self.start_turn(session, request_bytes);
        let row = self.server.registry.row(session.record.last_row.load(Relaxed) as usize);
        let request = Request { row: Some(row), hash: None, framing: Framing::Unknown, args };
        let done = self.run(session, row, &request, reply);
        let is_put_off = done.as_ref().is_err_and(error::is_put_off);
        let is_exec = matches!(row.run, Run::Server(ServerRun::Queue));
        if is_exec && !is_put_off && self.server.monitors.is_any() {
            self.feed.add(row, &args, session, self.server.clock.now_us());
        }
        self.note_records(session);
        self.end();
        // Under `appendfsync always` its reply waits until the disk has what it has changed.
        self.note_records(session);
        (done, WroteAll(std::mem::take(&mut self.has_muted)))
    }

    fn take_interpreter(&mut self) -> Box<Interpreter> {
        let cache = &self.server.scripts.cache;
        match self.interpreter.take() {
            Some(interpreter) if !interpreter.is_stale(cache) => interpreter,
            _ => Box::new(Interpreter::new(cache)),
        }
    }

    fn run_with(
        &mut self,
        interpreter: &mut Interpreter,
        session: &mut Session,
        (row, what): (&'s Row, Scripting),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        let cache = &self.server.scripts.cache;
        let access = match what {
            Scripting::Load => {
                let known = interpreter.load(cache, args.at(2), Origin::Load)?;
                reply.bulk(known.compiled.sha().as_bytes());
                return Ok(());
            }
            Scripting::Eval(access) | Scripting::EvalSha(access) => access,
        };
        // One that is refused before it begins is shown too.
        let found = find(interpreter, cache, what, &args).inspect_err(|_| self.show(session, row, &args));
        let (known, keys) = found?;
        let is_decided = self.runs_scripts() || self.attempts.are_of_queue();
        if !is_decided && !known.tries.by_itself.is_worth_an_attempt() {
            self.give_script_up(session);
            return Ok(());
        }
        let (machine, code, tries) = (&interpreter.machine, Code::Script(&known.compiled), &known.tries);
        let call = ScriptCall { machine, code, tries, row, access, args, keys };
        self.run_script(&call, session, reply)
    }

    /// How attempts of the script that a request runs have gone. It is compiled if it was not. None where a
    /// worker is not to attempt it.
    fn tries_of_script(&mut self, what: Scripting, args: &Args<'_>) -> Option<Rc<Tries>> {
        let mut interpreter = self.take_interpreter();
        let found = find(&mut interpreter, &self.server.scripts.cache, what, args);
        self.interpreter = Some(interpreter);
        found.ok().map(|(known, _)| Rc::clone(&known.tries))
    }

    fn run_script(&mut self, call: &ScriptCall<'_, 's>, session: &mut Session, reply: &mut Reply) -> Done {
        if self.runs_scripts() {
            return self.alone(|this| this.start_script(call, Reach::Everything, session, reply))?.map(drop);
        }
        if let QueueAttempt::Runs(reach) = self.attempts.queue {
            return self.run_script_of_queue(call, reach, session, reply);
        }
        let may_be_beside = call.tries.may_run_beside_others();
        self.attempts.reached.clear();
        let attempt =
            |this: &mut Self, reach, reply: &mut Reply| this.start_script(call, reach, session, reply);
        let end = self.beside_others_or_alone(may_be_beside, reply, attempt)?;
        call.tries.by_itself.note_attempt(!end.is_undone());
        if end.is_undone() {
            self.give_script_up(session);
        }
        Ok(())
    }

    /// Attempts a script, or a queue with some, beside what other workers do: once more, and with all shards
    /// that it has reached for from the beginning, where somebody else had one of them. Where that does not
    /// do, alone.
    fn beside_others_or_alone(
        &mut self,
        may_be_beside: bool,
        reply: &mut Reply,
        mut attempt: impl FnMut(&mut Self, Reach, &mut Reply) -> Result<End, Error>,
    ) -> Result<End, Error> {
        let start = reply.out.len();
        let mut end = End::NeedsAll;
        if may_be_beside {
            end = attempt(self, Reach::Keys { again: false }, reply)?;
            if end == End::Contended {
                cold_path();
                reply.cut(start);
                end = attempt(self, Reach::Keys { again: true }, reply)?;
            }
        }
        if matches!(end, End::NeedsAll | End::Contended) {
            reply.cut(start);
            end = self.alone_for_script(|this| attempt(this, Reach::Everything, reply))??;
            self.server.stats.scripts_alone.fetch_add(1, Relaxed);
        }
        if end.is_undone() {
            reply.cut(start);
        }
        Ok(end)
    }

    /// Runs a script with this reach, if it may run. A worker may have to take it back.
    fn start_script(
        &mut self,
        call: &ScriptCall<'_, 's>,
        reach: Reach,
        session: &mut Session,
        reply: &mut Reply,
    ) -> Result<End, Error> {
        let (args, keys) = (call.args, call.keys);
        let shown = self.feed.len();
        self.show(session, call.row, &args);
        let start = self.may_start(session, call.code.flags(), call.access, call.code.name())?;
        let held = self.attempts.held.take().unwrap_or_else(|| self.hold_for(call, reach));
        if self.attempt.is_none() && !self.runs_scripts() {
            self.begin_attempt(&held);
        }
        let words = args.iter_from(FIRST_KEY);
        let (keys, argv) = (words.take(keys), args.iter_from(FIRST_KEY + keys));
        let rules = (call.row, &args, start, reach);
        let end = self.as_script(session, rules, held, reply, |host, reply| match call.code {
            Code::Script(script) => call.machine.run(script, keys, argv, host, reply),
            Code::Function(function) => call.machine.run_function(function, keys, argv, host, reply),
        });
        self.note_how_it_fared(call.tries, reach, end);
        if end.is_undone() {
            self.feed.cut(shown);
        }
        Ok(end)
    }

    /// Locks what a script begins with.
    fn hold_for(&mut self, call: &ScriptCall<'_, 's>, reach: Reach) -> Held<'s> {
        let keyspace = &self.server.keyspace;
        let declared = if reach.is_of_keys() { call.keys } else { 0 };
        let declared = call.args.iter_from(FIRST_KEY).take(declared);
        let declared = declared.map(|name| keyspace.shard_number(keyspace.hash(name)));
        keyspace.hold_shards(declared.chain(self.attempts.reached.drain(..)))
    }

    fn note_how_it_fared(&self, tries: &Tries, reach: Reach, end: End) {
        let Reach::Keys { again } = reach else { return };
        let fared = match end {
            End::NeedsAll => Beside::Failed,
            End::Contended if again => Beside::Failed,
            End::Contended => Beside::Contended(self.attempts.reached.last().copied()),
            // What it was in the way of is noted already.
            _ if again => return,
            // Nobody is there while the gates are kept behind another that ran alone.
            _ if self.kept_gates.is_some() => return,
            _ => Beside::Ran,
        };
        tries.note_run_beside_others(fared);
    }

    /// Whether a script with these flags may run now.
    fn may_start(
        &mut self,
        session: &Session,
        flags: ScriptFlags,
        access: Access,
        (kind, name): (Kind, Vec<u8>),
    ) -> Result<Start, Error> {
        let has_flags = !flags.has(ScriptFlags::UNDECLARED);
        let may_write = !flags.has(ScriptFlags::NO_WRITES);
        if has_flags && may_write && access == Access::ReadOnly {
            return Err(error::script_may_write());
        }
        let is_full = self.is_full_for_scripts(session);
        if is_full && has_flags && may_write && !flags.has(ScriptFlags::ALLOW_OOM) {
            return Err(error::out_of_memory());
        }
        let refusing = self.refusing();
        if has_flags && may_write && refusing != NOTHING {
            self.look_at_disk_for_scripts(refusing)?;
        }
        Ok(Start {
            kind,
            name,
            is_readonly: access == Access::ReadOnly || !may_write,
            is_full: is_full && !flags.has(ScriptFlags::ALLOW_OOM),
        })
    }

    /// Whether there is no memory, though what can be evicted was. Between the commands of a script nothing
    /// is: what it has seen stays. Nor is anything in a transaction, which may have made it: that was looked
    /// at before EXEC.
    fn is_full_for_scripts(&mut self, session: &Session) -> bool {
        if self.scripts == ScriptsRun::Replayed || !self.memory_limit.is_set() {
            return false;
        }
        match session.modes.has(Modes::EXECUTING) {
            true => session.is_short_of_memory,
            false => self.room_for_bytes(0, None) == Room::None,
        }
    }

    /// Why a script may not write, because of the disk.
    fn look_at_disk_for_scripts(&self, refusing: u8) -> Done {
        if refusing & UNSAVED != 0 {
            return Err(error::unsaved());
        }
        if refusing & UNWRITTEN != 0 {
            return Err(Error::quoting(&[&error::unwritten(&self.server.append.failure())]));
        }
        Ok(())
    }

    /// Shows the request to those who watch with MONITOR, before the commands of its script.
    fn show(&mut self, session: &Session, row: &Row, args: &Args<'_>) {
        if self.scripts != ScriptsRun::Replayed && self.server.monitors.is_any() {
            self.feed.add_script(row, args, session, self.server.clock.now_us());
        }
    }

    /// Calls `run` with a host for its commands, as one step. The reply is written in any case.
    fn as_script(
        &mut self,
        session: &mut Session,
        (row, args, start, reach): (&'s Row, &Args<'_>, Start, Reach),
        held: Held<'s>,
        reply: &mut Reply,
        run: impl FnOnce(&mut ScriptHost<'_, 's>, &mut Reply) -> Outcome,
    ) -> End {
        let (db, mark, reply_start) = (session.db, self.mark, reply.out.len());
        let serves_later = std::mem::replace(&mut self.serves_later, true);
        let (is_part, records) = (self.recorder.is_open(), self.recorder.mark());
        let is_executing = session.modes.has(Modes::EXECUTING);
        session.modes.set(Modes::SCRIPT);
        // Commands that would wait do not.
        session.modes.set(Modes::EXECUTING);
        // Few scripts ask for the time, and a look at the clock takes as long as a command. One that is
        // attempted is given the time of its first question, a millisecond after its beginning at most.
        let is_attempt = self.attempt.is_some();
        self.stopped_us = Some(Cell::new((!is_attempt).then(|| self.server.clock.now_us())));
        self.recorder.open();
        let mut host = ScriptHost::new(self, session, args, start, (reach, held));
        let outcome = run(&mut host, reply);
        let (end, mut held, mut left) = host.end();
        self.recorder.concern(Concerns::Everybody);
        let is_of_queue = self.attempts.are_of_queue();
        // The attempt of a queue goes on.
        if !is_of_queue {
            match end.is_undone() {
                true => self.undo_attempt(&mut held, &mut left),
                false => self.commit_attempt(&mut left),
            }
        }
        if outcome == Outcome::Stopped && self.server.is_stopping() {
            // The server ends without it: what it has done is half of something.
            self.recorder.forget_since(records);
        }
        if !is_part {
            self.recorder.close(&self.server.journal);
        }
        self.attend(session);
        self.stopped_us = None;
        session.modes.clear(Modes::SCRIPT);
        if !is_executing {
            session.modes.clear(Modes::EXECUTING);
        }
        if session.db != db {
            session.db = db;
            session.record.details().db = db;
        }
        (self.mark, self.serves_later) = (mark, serves_later);
        match is_of_queue {
            // Nothing is left to be done before all of it is committed.
            true => self.attempts.held = Some(held),
            false => self.let_go_of_script(held, left),
        }
        if end.is_undone() {
            return end;
        }
        if is_of_queue && (end == End::Failed || outcome != Outcome::Done) {
            // It is counted where it is run for good.
            return End::GivenUp;
        }
        if end == End::Failed || outcome != Outcome::Done {
            self.counters.commands[row.number].failed.add(1);
        }
        if matches!(outcome, Outcome::Failed { is_counted: false } | Outcome::Stopped) {
            self.counters.count_error(reply.out.get(reply_start + 1..).unwrap_or(b"ERR"));
        }
        end
    }

    /// Unlocks the shards, after serving those who wait for a key that the script has changed.
    fn let_go_of_script(&self, mut held: Held<'s>, mut left: Left) {
        let waiters = &self.server.key_events.waiters;
        if self.serves_later {
            waiters.make_ready(left.ready.in_order());
        } else if !left.ready.is_empty() {
            // Who needs more shards than these is served below, when they are let go.
            self.serve_under(held.view(self.now.wall, &self.config.store), left.ready.in_order());
        }
        drop(held);
        if !left.garbage.is_empty() {
            self.server.background.free(&mut left.garbage);
        }
        if waiters.is_ready() && !self.serves_later {
            self.serve_ready();
        }
    }
}

/// The script that a request runs, and how many of its arguments are keys.
fn find(
    interpreter: &mut Interpreter,
    cache: &Cache,
    what: Scripting,
    args: &Args<'_>,
) -> Result<(Rc<Known>, usize), Error> {
    let is_sha = matches!(what, Scripting::EvalSha(_));
    if is_sha && args.at(1).len() != SHA_DIGITS {
        return Err(error::no_script());
    }
    let keys = count_keys(args)?;
    let known = match is_sha {
        true => interpreter.find(cache, args.at(1))?,
        false => interpreter.load(cache, args.at(1), Origin::Eval)?,
    };
    Ok((known, keys))
}

/// EXEC has left out itself what its client does not want.
pub(crate) struct WroteAll(pub(crate) bool);

/// A longer text is compiled on the thread of scripts.
const ATTEMPTED_BYTES_MAX: usize = 64 << 10;
/// A SHA-1 as text.
const SHA_DIGITS: usize = 40;
