//! One interpreter: it compiles scripts once and runs them many times.
//!
//! A run is on the path of a request. What it allocates: the tables KEYS and ARGV with their strings, and
//! what the script itself makes. The crate `lua` makes the call.
use crate::api;
use crate::chunk;
use crate::error;
use crate::flags::{Flags, split_script};
use crate::fold::{self, Folded, Maker};
use crate::host::{self, Host};
use crate::library;
use crate::raised::{SANDBOX, text_of};
use crate::state::{Failure, OUT_OF_MEMORY, State};
use crate::to_resp::{Fields, Writer};
use lua::{Ended, Kept, Runner, Stack, Start, Tables};
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, Result, StdLib, Table, Value, VmState};
use resp::Reply;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What an interpreter is for. The two have environments that differ a little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EVAL and its kin.
    Scripts,
    /// FUNCTION LOAD and FCALL.
    Functions,
}

/// The bounds of an interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The bytes that the interpreter may take while a script runs; 0 for no bound. A script that needs more
    /// ends with "ERR not enough memory".
    pub bytes_max: usize,
    /// How many instructions of Lua pass between two calls of [`Host::interrupt`].
    pub instructions_between: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { bytes_max: 1 << 30, instructions_between: 10_000 }
    }
}

/// How a run has ended. The reply is written in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The reply is an error that the script did not catch. A command's error is in the server's statistics
    /// already (`is_counted`).
    Failed {
        is_counted: bool,
    },
    /// The host, or the bound on memory, ended the script; the reply is the reason.
    Stopped,
}

/// A script that has been compiled. Dropping it frees it at the next [`Machine::tidy`].
pub struct Compiled {
    function: RefCell<Kept>,
    runs: Cell<Runs>,
    flags: Flags,
    sha: String,
}

/// How often a script has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    None,
    One,
    More,
}

impl Compiled {
    pub fn flags(&self) -> Flags {
        self.flags
    }

    /// The SHA-1 of the whole body, in 40 hexadecimal digits.
    pub fn sha(&self) -> &str {
        &self.sha
    }
}

/// See the file's opener.
pub struct Machine {
    pub(crate) lua: Lua,
    pub(crate) state: Rc<State>,
    pub(crate) parts: Parts,
    fields: Fields,
    runner: Runner,
    settings: Cell<Settings>,
    /// The memory from which on the interrupt collects everything: Lua's own collector begins only when the
    /// memory has doubled, which may be beyond the bound.
    collect_at: Rc<Cell<usize>>,
    /// What was in use when all garbage had gone.
    kept_bytes: Cell<usize>,
    /// So many times everything is to be collected until what scripts have left has gone: what they leave
    /// while a collection is under way may outlast that one.
    due_cycles: Cell<u8>,
}

/// What `sandbox.lua` gives back.
pub(crate) struct Parts {
    globals: Table,
    handler: Function,
    load_text: Function,
    /// What a library of scripts has under a name.
    constant: Function,
    pub(crate) library: Function,
}

/// Why an interpreter cannot be made: it would be a mistake in `sandbox.lua`, or no memory at all.
const START: &str = "an interpreter starts from files of this crate only";

impl Machine {
    /// Starts an interpreter. It takes about a hundred kilobytes.
    pub fn new(kind: Kind, settings: Settings) -> Machine {
        Machine::try_new(kind, settings).expect(START)
    }

    fn try_new(kind: Kind, settings: Settings) -> Result<Machine> {
        let libraries = StdLib::TABLE | StdLib::OS | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let state = Rc::new(State::new(&lua)?);
        let parts = Parts::new(&lua, &state, kind)?;
        let collect_at = Rc::new(Cell::new(usize::MAX));
        let machine = Machine {
            fields: Fields::new(&lua)?,
            runner: Runner::new(&lua, &parts.globals, &state.functions, &parts.handler)?,
            settings: Cell::new(settings),
            collect_at,
            kept_bytes: Cell::new(0),
            due_cycles: Cell::new(0),
            state,
            parts,
            lua,
        };
        machine.set_settings(settings);
        Ok(machine)
    }

    /// Changes the bounds, for the scripts that start from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.settings.set(settings);
        self.state.bytes_max.set(settings.bytes_max);
        let (state, collect_at) = (Rc::clone(&self.state), Rc::clone(&self.collect_at));
        let hook = move |lua: &Lua, _: &mlua::debug::Debug<'_>| {
            if lua.used_memory() > collect_at.get() {
                lua.gc_collect()?;
                let used = lua.used_memory();
                let bytes_max = state.bytes_max.get();
                // Not ever closer to the bound, or a script near it would do nothing but collect.
                collect_at.set(used + (bytes_max.saturating_sub(used) / 2).max(bytes_max / 32));
            }
            state.interrupt().map(|()| VmState::Continue)
        };
        let every = HookTriggers::new().every_nth_instruction(settings.instructions_between.max(1));
        self.lua.set_global_hook(every, hook).expect(START);
    }

    /// The bytes that the interpreter takes.
    pub fn used_bytes(&self) -> usize {
        self.lua.used_memory()
    }

    /// To be called between scripts: frees scripts that were dropped, and where there is much memory goes one
    /// step on collecting what scripts have left. Where there is little, Lua's own collector is enough, which
    /// rests until the memory has doubled; a step would have it begin anew at once.
    pub fn tidy(&self) {
        const MUCH_BYTES: usize = 8 << 20;
        const LEFT_BYTES: usize = 512 << 10;
        self.state.functions.forget_dropped();
        self.state.let_go();
        let (used, kept) = (self.used_bytes(), self.kept_bytes.get());
        if used > kept + kept / 2 + LEFT_BYTES {
            self.forget_words();
            self.due_cycles.set(2);
        }
        if used > MUCH_BYTES {
            self.collect_some();
        }
    }

    /// The words of the last script, which may be large: the next has its own, and may come late.
    fn forget_words(&self) {
        for name in ["KEYS", "ARGV"] {
            // There is no room for the names only where there is none for anything.
            let _ = self.parts.globals.raw_set(name, Value::Nil);
        }
    }

    /// Whether scripts have left so much that it should not wait for the next of them.
    pub fn has_garbage(&self) -> bool {
        self.due_cycles.get() > 0
    }

    /// Whether scripts have left so much that the next might find no memory.
    pub fn is_nearly_full(&self) -> bool {
        let bytes_max = self.settings.get().bytes_max;
        bytes_max > 0 && self.used_bytes() > bytes_max / 2
    }

    /// Goes on collecting for some ten microseconds.
    pub fn collect_some(&self) {
        // The collector runs no code of scripts: without `newproxy` they have no finalizers.
        if self.lua.gc_step().unwrap_or(true) {
            let due = self.due_cycles.get().saturating_sub(1);
            self.due_cycles.set(due);
            // What a cycle leaves that began while a script had its words is no measure for the next.
            if due == 0 {
                self.kept_bytes.set(self.used_bytes());
            }
        }
    }

    /// Collects everything that scripts have left.
    pub fn collect_all(&self) {
        self.state.functions.forget_dropped();
        let _ = self.lua.gc_collect();
        self.due_cycles.set(0);
        self.kept_bytes.set(self.used_bytes());
    }

    /// Compiles a script. `Err` is the error's text, code included.
    pub fn compile(&self, body: &[u8]) -> std::result::Result<Compiled, Vec<u8>> {
        let (flags, text) = split_script(body).map_err(error::coded)?;
        let refused = |text: Vec<u8>| error::not_compiled(&text);
        let function = self.compile_chunk(text, "@user_script").map_err(refused)?;
        self.let_read_globals(&function).map_err(|error| text_of(&error))?;
        let function = self.state.functions.keep(function).map_err(|error| text_of(&error))?;
        let (function, runs) = (RefCell::new(function), Cell::new(Runs::None));
        Ok(Compiled { function, runs, flags, sha: api::sha1_of(body) })
    }

    /// A chunk that assigns to no global needs nobody who refuses that: it reads what lies behind the face of
    /// its environment. Text that it loads has the face.
    fn let_read_globals(&self, chunk: &Function) -> Result<()> {
        if !chunk::may_set_globals(&chunk.dump(false)) {
            chunk.set_environment(self.parts.globals.clone())?;
        }
        Ok(())
    }

    /// Puts what a script looks up in libraries into variables around it (`fold.rs`), when it is about to run
    /// for the second time: that takes a third of the time in which it was compiled, and many run only once.
    fn prepare(&self, script: &Compiled) {
        match script.runs.get() {
            Runs::None => script.runs.set(Runs::One),
            Runs::One => {
                script.runs.set(Runs::More);
                let chunk = self.state.functions.get(&script.function.borrow());
                // One that cannot be folded runs as it is.
                if let Ok(Some(folded)) = chunk.and_then(|chunk| self.folded(&chunk)) {
                    script.function.replace(folded);
                }
            }
            Runs::More => {}
        }
    }

    fn folded(&self, chunk: &Function) -> Result<Option<Kept>> {
        let (lua, parts) = (&self.lua, &self.parts);
        let value_of = |library: &[u8], field: &[u8]| {
            let names = (lua.create_string(library).ok()?, lua.create_string(field).ok()?);
            // Errors name what is called or counted with: only functions are sure to be rightly used.
            parts.constant.call::<Option<Value>>(names).ok()?.filter(Value::is_function)
        };
        let Some(Folded { dump, mut values, maker }) = fold::fold(&chunk.dump(false), value_of) else {
            return Ok(None);
        };
        if let Some(Maker { dump, values: its, results }) = maker {
            let made: MultiValue = self.loaded(&dump, its, chunk)?.call(())?;
            values.extend(results.iter().filter_map(|place| made.get(usize::from(*place)).cloned()));
        }
        let folded = self.loaded(&dump, values, chunk)?;
        self.state.functions.keep(folded).map(Some)
    }

    /// A function from its dump, with these values in the variables around it and the environment of another.
    fn loaded(&self, dump: &[u8], values: Vec<Value>, like: &Function) -> Result<Function> {
        let loaded = self.lua.load(dump).set_mode(ChunkMode::Binary).into_function()?;
        lua::set_upvalues(&self.lua, &loaded, values)?;
        if let Some(environment) = like.environment() {
            loaded.set_environment(environment)?;
        }
        Ok(loaded)
    }

    /// Compiles a chunk of that name. Lua's own function does it, because it gives back its error as the
    /// bytes they are.
    pub(crate) fn compile_chunk(&self, text: &[u8], name: &str) -> std::result::Result<Function, Vec<u8>> {
        self.state.begin();
        self.bounded(|| {
            let chunk = self.state.lifted(&self.lua, text.len(), || self.lua.create_string(text))?;
            self.parts.load_text.call::<(Value, Value)>((chunk, name))
        })
        .map_err(|error| text_of(&error))
        .and_then(|results| match results {
            (Value::Function(function), _) => Ok(function),
            (_, Value::String(text)) => Err(text.as_bytes().to_vec()),
            _ => Err(OUT_OF_MEMORY.to_vec()),
        })
    }

    /// Runs a script and writes its reply, in the protocol of `reply`.
    pub fn run<'a>(
        &self,
        script: &Compiled,
        mut keys: impl ExactSizeIterator<Item = &'a [u8]>,
        mut argv: impl ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Outcome {
        self.state.begin();
        self.prepare(script);
        let (function, tables) = (script.function.borrow(), Tables::Globals(&mut keys, &mut argv));
        self.enter(&script.sha, Start { function: &function, tables }, host, reply)
    }

    /// Calls a function, lends it the host, and writes its reply or its error. The name is what errors say
    /// of it.
    pub(crate) fn enter(
        &self,
        name: &str,
        start: Start<'_, '_, '_>,
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Outcome {
        let bytes_max = self.bound();
        let result = host::lend(host, || {
            self.runner.run(start, bytes_max, |ended| match ended {
                Ended::Done(stack) => self.write(stack, reply).map(|()| None),
                Ended::Failed(value) => Ok(Some(value)),
            })
        });
        match result {
            Ok(None) => Outcome::Done,
            Ok(Some(Value::String(text))) if *text.as_bytes() == *OUT_OF_MEMORY => {
                let _ = self.state.stop_out_of_memory();
                self.fail(name, Vec::new(), reply)
            }
            Ok(Some(value)) => self.fail(name, self.text_of_value(&value), reply),
            Err(error) => {
                let text = error::coded(text_of(&error));
                self.fail(name, text, reply)
            }
        }
    }

    /// What the script has returned. A stop while it is written takes back what was written.
    fn write(&self, mut stack: Stack<'_>, reply: &mut Reply) -> Result<()> {
        let start = reply.out.len();
        let mut writer = Writer { fields: &self.fields, state: &self.state, reply };
        let written = writer.write(&mut stack);
        if written.is_err() {
            reply.out.truncate(start);
        }
        written
    }

    /// The text of an error that did not reach the handler: Lua could not call it.
    fn text_of_value(&self, value: &Value) -> Vec<u8> {
        match value {
            Value::String(text) => error::coded(text.as_bytes()),
            Value::Error(error) => error::coded(text_of(error)),
            _ => error::UNKNOWN.into(),
        }
    }

    /// Writes the error that ended a script: the reason of a stop, or what reached the handler, or `text`.
    pub(crate) fn fail(&self, name: &str, text: Vec<u8>, reply: &mut Reply) -> Outcome {
        let failure = self.state.failure.take().unwrap_or(Failure { text, ..Failure::default() });
        let stop = self.state.stop.take();
        let is_stopped = stop.is_some();
        let mut text = stop.unwrap_or(failure.text);
        if let Some(end) = memchr::memchr(0, &text) {
            text.truncate(end);
        }
        self.state.last_error.replace(text.clone());
        if let Some((source, line)) = failure.place {
            text.extend_from_slice(format!(" script: {name}, on {source}:{line}.").as_bytes());
        }
        reply.error(text);
        match is_stopped {
            true => Outcome::Stopped,
            false => Outcome::Failed { is_counted: failure.is_counted },
        }
    }

    /// The bound on memory for what begins now. What scripts before it have left is not to take its memory.
    fn bound(&self) -> usize {
        let bytes_max = self.settings.get().bytes_max;
        if self.is_nearly_full() && self.has_garbage() {
            self.collect_all();
        }
        self.collect_at.set(if bytes_max == 0 { usize::MAX } else { bytes_max / 2 });
        bytes_max
    }

    /// Runs `f` with the bound on memory in force.
    pub(crate) fn bounded<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        self.lua.set_memory_limit(self.bound())?;
        let result = f();
        self.lua.set_memory_limit(0)?;
        result
    }
}

impl Parts {
    fn new(lua: &Lua, state: &Rc<State>, kind: Kind) -> Result<Parts> {
        let is_library = kind == Kind::Functions;
        let rust = lua.create_table()?;
        library::install(lua, state, &rust)?;
        let handler = rust.raw_get("handler")?;
        rust.raw_set("redis", api::redis_table(lua, state, is_library)?)?;
        rust.raw_set("loading", api::loading_table(lua, state)?)?;
        let setup = lua.create_table()?;
        setup.raw_set("rust", rust)?;
        setup.raw_set("is_library", is_library)?;
        let chunk = lua.load(include_str!("sandbox.lua")).set_name(SANDBOX);
        let parts: Table = chunk.call(setup)?;
        let made = Parts {
            globals: parts.raw_get("globals")?,
            handler,
            load_text: parts.raw_get("load_text")?,
            constant: parts.raw_get("constant")?,
            library: parts.raw_get("library")?,
        };
        lua.set_globals(parts.raw_get("face")?)?;
        Ok(made)
    }
}
