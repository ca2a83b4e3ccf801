//! Scripts: EVAL and its kin. A script is one step for every worker: it runs while all gates are held, on the
//! thread of scripts, to which its client's session is lent.
//!
//! ```text
//! worker: EVAL, or EXEC of a queue with an EVAL --- Errand ---> thread of scripts: all gates
//!                                                     |  compile, or find; may it run at all?
//!                                                     |  run: each of its commands locks what it needs
//!         the reply, and the session <----------------+  the gates open
//! ```
//!
//! A script that runs for longer than `busy-reply-threshold` leaves the gates ajar (`state/gate.rs`): from
//! then on workers answer their clients with BUSY, and SCRIPT KILL and SHUTDOWN NOSAVE reach them.
//!
//! What it has changed is one transaction in the journal. Those who wait for keys are served when it has
//! ended.
mod host;
pub(super) mod interpreter;

use super::{Executor, Request};
use crate::core::call::{Access, Scripting};
use crate::core::error;
use crate::core::lent::{Errand, Task};
use crate::core::memory_limit::Room;
use crate::core::modes::Modes;
use crate::core::registry::Row;
use crate::core::session::{After, Session};
use crate::state::persistence::{NOTHING, UNSAVED, UNWRITTEN};
use crate::state::scripts::{Kind, Origin, Sha};
use command::{Done, Error};
use host::{ScriptHost, Start};
use interpreter::Interpreter;
use resp::{Args, Reply};
use script::{Flags as ScriptFlags, Outcome};
use std::sync::atomic::Ordering::Relaxed;

impl<'s> Executor<'s> {
    /// A command that runs, or compiles, a script.
    #[cold]
    pub(super) fn run_scripting(
        &mut self,
        session: &mut Session,
        (row, what): (&'s Row, Scripting),
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        if !self.runs_scripts {
            self.lend_for_scripts(session);
            return Ok(());
        }
        self.alone(|this| {
            let mut interpreter = this.take_interpreter();
            let done = this.run_with(&mut interpreter, session, (row, what), (args, reply));
            interpreter.tidy();
            this.counters.interpreter_bytes.store(interpreter.machine.used_bytes() as u64, Relaxed);
            this.interpreter = Some(interpreter);
            done
        })?
    }

    /// Has the worker lend the session to the thread of scripts.
    pub(super) fn lend_for_scripts(&mut self, session: &mut Session) {
        session.after = After::Elsewhere;
        self.errand = Some(Errand { task: Task::Script, is_mute: !session.reply_mode.answers() });
    }

    /// On the thread of scripts: runs the request of a session that was lent. Its error is the caller's to
    /// write.
    pub(crate) fn run_lent(
        &mut self,
        session: &mut Session,
        args: Args<'_>,
        request_bytes: usize,
        reply: &mut Reply,
    ) -> Done {
        session.after = After::Next;
        self.begin();
        self.start_turn(session, request_bytes);
        let row = self.server.registry.row(session.record.last_row.load(Relaxed) as usize);
        let request = Request { row: Some(row), hash: None, args };
        let done = self.run(session, row, &request, reply);
        self.end();
        done
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
                let sha = interpreter.load(cache, args.at(2), Origin::Load)?;
                reply.bulk(base::text::hex(&sha).as_bytes());
                return Ok(());
            }
            Scripting::Eval(access) | Scripting::EvalSha(access) => access,
        };
        let is_sha = matches!(what, Scripting::EvalSha(_));
        if is_sha && args.at(1).len() != SHA_DIGITS {
            return Err(error::no_script());
        }
        let keys = count_keys(&args)?;
        let sha = match is_sha {
            true => interpreter.find(cache, args.at(1))?,
            false => interpreter.load(cache, args.at(1), Origin::Eval)?,
        };
        self.run_script(interpreter, session, (row, sha, access), (args, keys), reply)
    }

    fn run_script(
        &mut self,
        interpreter: &Interpreter,
        session: &mut Session,
        (row, sha, access): (&'s Row, Sha, Access),
        (args, keys): (Args<'_>, usize),
        reply: &mut Reply,
    ) -> Done {
        let compiled = interpreter.compiled(&sha);
        let start = self.may_start(compiled.flags(), access, (Kind::Script, Vec::new()))?;
        self.show(session, row, &args);
        let words = args.iter_from(FIRST_KEY);
        let (keys, argv) = (words.take(keys), args.iter_from(FIRST_KEY + keys));
        self.as_script(session, (row, &args, start), reply, |host, reply| {
            interpreter.machine.run(compiled, keys, argv, host, reply)
        });
        Ok(())
    }

    /// Whether a script with these flags may run now.
    fn may_start(
        &mut self,
        flags: ScriptFlags,
        access: Access,
        (kind, name): (Kind, Vec<u8>),
    ) -> Result<Start, Error> {
        let has_flags = !flags.has(ScriptFlags::UNDECLARED);
        let may_write = !flags.has(ScriptFlags::NO_WRITES);
        if has_flags && may_write && access == Access::ReadOnly {
            return Err(error::script_may_write());
        }
        let refusing = self.server.persistence.refusing();
        if has_flags && may_write && refusing != NOTHING {
            self.look_at_disk_for_scripts(refusing)?;
        }
        // Between its commands nothing is evicted: what it has seen stays.
        let is_full = self.memory_limit.is_set() && self.room_for_bytes(0, None) == Room::None;
        if is_full && has_flags && may_write && !flags.has(ScriptFlags::ALLOW_OOM) {
            return Err(error::out_of_memory());
        }
        Ok(Start {
            kind,
            name,
            is_readonly: access == Access::ReadOnly || !may_write,
            is_full: is_full && !flags.has(ScriptFlags::ALLOW_OOM),
        })
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
        if self.server.monitors.is_any() {
            self.feed.add_script(row, args, session, self.server.clock.now_us());
        }
    }

    /// Calls `run` with a host for its commands, as one step. The reply is written in any case.
    fn as_script(
        &mut self,
        session: &mut Session,
        (row, args, start): (&'s Row, &Args<'_>, Start),
        reply: &mut Reply,
        run: impl FnOnce(&mut ScriptHost<'_, 's>, &mut Reply) -> Outcome,
    ) {
        let (db, mark, reply_start) = (session.db, self.mark, reply.out.len());
        let serves_later = std::mem::replace(&mut self.serves_later, true);
        let is_part = self.recorder.is_open();
        let is_executing = session.modes.has(Modes::EXECUTING);
        session.modes.set(Modes::SCRIPT);
        // Commands that would wait do not.
        session.modes.set(Modes::EXECUTING);
        self.stopped_us = Some(self.server.clock.now_us());
        self.recorder.open();
        let mut host = ScriptHost::new(self, session, args, start);
        let outcome = run(&mut host, reply);
        let has_failed = host.end();
        if outcome == Outcome::Stopped && self.server.is_stopping() {
            // The server ends without it: what it has done is half of something.
            self.recorder.forget();
        }
        if !is_part {
            self.recorder.close(&self.server.journal);
        }
        self.stopped_us = None;
        session.modes.clear(Modes::SCRIPT);
        if !is_executing {
            session.modes.clear(Modes::EXECUTING);
        }
        session.db = db;
        (self.mark, self.serves_later) = (mark, serves_later);
        if self.server.key_events.waiters.is_ready() && !serves_later {
            self.serve_ready();
        }
        if has_failed || outcome != Outcome::Done {
            self.counters.commands[row.number].failed.add(1);
        }
        if matches!(outcome, Outcome::Failed { is_counted: false } | Outcome::Stopped) {
            self.counters.count_error(reply.out.get(reply_start + 1..).unwrap_or(b"ERR"));
        }
    }
}

/// A SHA-1 as text.
const SHA_DIGITS: usize = 40;
/// Where the keys of EVAL begin, behind their number.
const FIRST_KEY: usize = 3;

/// How many keys EVAL names.
fn count_keys(args: &Args<'_>) -> Result<usize, Error> {
    let count = base::text::parse_i64(args.at(2)).ok_or_else(Error::not_an_integer)?;
    let count = usize::try_from(count).map_err(|_| error::negative_keys())?;
    if count > args.len() - FIRST_KEY {
        return Err(error::too_many_keys());
    }
    Ok(count)
}
