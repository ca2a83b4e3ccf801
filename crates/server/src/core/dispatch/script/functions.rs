//! Functions: FCALL, and what changes libraries. It runs on the thread of scripts, alone, in the interpreter
//! of functions there (`core/functions`); a function runs as a script does from there on. A library that
//! keeps nothing from call to call is as good in any other interpreter, so its functions are attempted by
//! workers like scripts.
use super::call::{Code, FIRST_KEY, ScriptCall, count_keys};
use super::host::Reach;
use super::interpreter::sha_of_hex;
use super::{Executor, ScriptsRun};
use crate::core::call::{Access, Change, Functions, Scripting, ServerRun};
use crate::core::error;
use crate::core::functions::{FunctionInterpreter, Limit};
use crate::core::registry::{Row, Run};
use crate::core::session::Session;
use crate::core::tries::Tries;
use crate::state::scripts::Kind;
use command::{Done, Flags};
use resp::{Args, Reply};
use script::Flags as Promised;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

impl<'s> Executor<'s> {
    /// A command that calls a function, or changes libraries.
    #[cold]
    pub(in super::super) fn run_functions(
        &mut self,
        session: &mut Session,
        (row, what): (&'s Row, Functions),
        args: Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        if !self.runs_scripts() {
            let attempted = match what {
                Functions::Call(access) => self.attempt_function(session, (row, access), (args, reply)),
                Functions::Change(_) => None,
            };
            return attempted.unwrap_or_else(|| {
                self.give_script_up(session);
                Ok(())
            });
        }
        let libraries = &self.server.scripts.libraries;
        let (done, interpreter) = self.alone(|this| {
            let mut interpreter = this.take_functions();
            let done = match what {
                Functions::Call(access) => {
                    this.call_function(&mut interpreter, session, (row, access), (args, reply))
                }
                Functions::Change(what) => {
                    this.change_libraries(&mut interpreter, session.db, what, (args, reply))
                }
            };
            interpreter.tidy(libraries);
            (done, interpreter)
        })?;
        // If all has gone that it holds it ends here, where nobody waits for it.
        self.functions = Some(interpreter).filter(|interpreter| !interpreter.is_stale(libraries));
        self.note_functions();
        done
    }

    /// Calls a function as a worker runs a script. None where it is to be called on the thread of scripts,
    /// which also says what is wrong with a request.
    fn attempt_function(
        &mut self,
        session: &mut Session,
        (row, access): (&'s Row, Access),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Option<Done> {
        let (server, keys) = (self.server, count_keys(&args).ok()?);
        let (library, index) = server.scripts.libraries.now().function(args.at(1))?;
        if !library.is_quick_and_stateless || !self.may_attempt(&args) {
            return None;
        }
        let mut interpreter = self.take_functions();
        let done = interpreter.compile_again(server, &library).ok().and_then(|()| {
            let (function, tries) = interpreter.registered(&library, index).ok()?;
            let (machine, code) = (&interpreter.machine, Code::Function(function));
            let call = ScriptCall { machine, code, tries, row, access, args, keys };
            let is_worth_it = self.attempts.are_of_queue() || tries.by_itself.is_worth_an_attempt();
            is_worth_it.then(|| self.run_script(&call, session, reply))
        });
        interpreter.tidy(&server.scripts.libraries);
        self.functions = Some(interpreter);
        self.note_functions();
        done
    }

    /// How attempts of the function that a request calls have gone. None where a worker is not to attempt it.
    pub(super) fn tries_of_function(&mut self, args: &Args<'_>) -> Option<Rc<Tries>> {
        let (library, index) = self.server.scripts.libraries.now().function(args.at(1))?;
        if !library.is_quick_and_stateless {
            return None;
        }
        let mut interpreter = self.take_functions();
        let is_there = interpreter.compile_again(self.server, &library).is_ok();
        let interpreter = self.functions.insert(interpreter);
        let (_, tries) = interpreter.registered(&library, index).ok().filter(|_| is_there)?;
        Some(Rc::clone(tries))
    }

    /// Counts what the interpreter of functions takes.
    pub(super) fn note_functions(&self) {
        let bytes = self.functions.as_ref().map_or(0, |interpreter| interpreter.machine.used_bytes());
        match self.scripts {
            ScriptsRun::ForGood => self.server.scripts.libraries.note_interpreter(bytes),
            ScriptsRun::InAttempts | ScriptsRun::Bounded => {
                self.counters.functions_bytes.store(bytes as u64, Relaxed);
            }
            ScriptsRun::Replayed => {}
        }
    }

    fn take_functions(&mut self) -> Box<FunctionInterpreter> {
        let libraries = &self.server.scripts.libraries;
        match self.functions.take() {
            Some(interpreter) if !interpreter.is_stale(libraries) => interpreter,
            _ => Box::new(FunctionInterpreter::new(libraries)),
        }
    }

    /// The flags of a request: of FCALL and EVAL they are those that its function, or script, has promised,
    /// so it is held back and refused as a command of that kind.
    #[inline]
    pub(in super::super) fn flags_of(&self, row: &Row, args: &Args<'_>) -> Flags {
        match row.run {
            Run::Server(ServerRun::Function(Functions::Call(_)) | ServerRun::Script(_)) => {
                self.flags_of_call(row, args)
            }
            _ => row.flags,
        }
    }

    #[cold]
    fn flags_of_call(&self, row: &Row, args: &Args<'_>) -> Flags {
        let promised = match row.run {
            Run::Server(ServerRun::Script(what)) => self.flags_of_script(what, args),
            _ => {
                let function = self.server.scripts.libraries.now().function(args.at(1));
                function.map(|(library, index)| library.functions[index].flags)
            }
        };
        let Some(promised) = promised.filter(|promised| !promised.has(Promised::UNDECLARED)) else {
            return row.flags;
        };
        let flags = row.flags.without(Flags::MAY_REPLICATE);
        if promised.has(Promised::NO_WRITES) {
            flags
        } else if promised.has(Promised::ALLOW_OOM) {
            flags.or(Flags::WRITE)
        } else {
            flags.or(Flags::WRITE).or(Flags::DENYOOM)
        }
    }

    /// What the script of a request has promised, if it is known or says so itself.
    fn flags_of_script(&self, what: Scripting, args: &Args<'_>) -> Option<Promised> {
        match what {
            Scripting::Eval(_) => Promised::of_script(args.at(1)),
            Scripting::EvalSha(_) => {
                let sha = sha_of_hex(args.at(1))?;
                let known = self.interpreter.as_ref().and_then(|interpreter| interpreter.flags(&sha));
                known.or_else(|| Promised::of_script(&self.server.scripts.cache.find(sha)?.0))
            }
            Scripting::Load => None,
        }
    }

    fn call_function(
        &mut self,
        interpreter: &mut FunctionInterpreter,
        session: &mut Session,
        (row, access): (&'s Row, Access),
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        self.show(session, row, &args);
        let catalog = self.server.scripts.libraries.now();
        let (library, index) = catalog.function(args.at(1)).ok_or_else(error::no_function)?;
        drop(catalog);
        base::text::parse_i64(args.at(2)).ok_or_else(error::bad_key_count)?;
        let keys = count_keys(&args)?;
        let function = &library.functions[index];
        let name = function.name.clone().into_bytes();
        let start = self.may_start(session, function.flags, access, (Kind::Function, name))?;
        interpreter.compile_again(self.server, &library)?;
        let (registered, _) = interpreter.registered(&library, index)?;
        let words = args.iter_from(FIRST_KEY);
        let (keys, argv) = (words.take(keys), args.iter_from(FIRST_KEY + keys));
        let call = (row, &args, start, Reach::Everything);
        let held = self.server.keyspace.hold_shards(std::iter::empty());
        self.as_script(session, call, held, reply, |host, reply| {
            interpreter.machine.run_function(registered, keys, argv, host, reply)
        });
        Ok(())
    }

    /// The request is its own effect, and one change.
    fn change_libraries(
        &mut self,
        interpreter: &mut FunctionInterpreter,
        db: u16,
        what: Change,
        (args, reply): (Args<'_>, &mut Reply),
    ) -> Done {
        let server = self.server;
        interpreter.change(server, (what, &args), Limit::Client, reply)?;
        server.keyspace.dirty(1);
        if self.recorder.is_on() {
            let recording = self.recorder.begin_counted(&server.journal, db, 0);
            self.recorder.end_said(recording, &server.journal, true, &args);
        }
        Ok(())
    }

    /// What an append-only file holds of them.
    pub(in super::super) fn replay_change(
        &mut self,
        what: Change,
        args: &Args<'_>,
        reply: &mut Reply,
    ) -> Done {
        let interpreter = self.take_functions();
        let interpreter = self.functions.insert(interpreter);
        let done = interpreter.change(self.server, (what, args), Limit::Nothing, reply);
        interpreter.collect();
        done
    }
}
