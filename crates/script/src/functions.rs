//! Functions: libraries that are loaded once (FUNCTION LOAD) and whose functions are called by name (FCALL).
//!
//! ```text
//! code --library_name--> the name, for the server to see whether it is free
//!      --load_library--> Library: the code has run once, and registered its functions
//!                        run_function, any number of times
//! ```
//! While the code runs it sees nothing but `redis`, with `register_function`, `log` and the versions.
//! Afterwards the same environment shows its functions all that scripts have.
use crate::chunk;
use crate::error;
use crate::flags::{Flags, words};
use crate::host::Host;
use crate::machine::{Machine, Outcome};
use crate::raised::{Raised, text_of};
use crate::registered::{Loading, Registered};
use crate::state::State;
use lua::{Start, Tables};
use mlua::{Function, Lua, Result, Table, Value, Variadic};
use resp::{Protocol, Reply};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A library that has been loaded. Dropping it frees its functions at the next [`Machine::collect`].
pub struct Library {
    name: Vec<u8>,
    functions: Vec<Registered>,
    is_stateless: bool,
}

impl Library {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its functions, in the order they were registered in.
    pub fn functions(&self) -> &[Registered] {
        &self.functions
    }

    /// Whether no call of its functions leaves anything for the next one: a call may then as well be of a
    /// copy of the library in another interpreter. False where that is not certain, as with a table outside
    /// of all functions.
    pub fn is_stateless(&self) -> bool {
        self.is_stateless
    }
}

/// A library is looked at no longer for what it might keep once so many functions, and so much of their code,
/// have been: its code can make any number of functions in no time.
const REACHED_MAX: usize = 1000;
const DUMPED_BYTES_MAX: usize = 1 << 20;

const BAD_NAME: &str = "Library names can only contain letters, numbers, or underscores(_) and must be \
                        at least one character long";

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// An error's text with its code.
fn wrong(parts: &[&[u8]]) -> Vec<u8> {
    error::coded(parts.concat())
}

/// Splits the first line off a library's code and checks it: the library's name, and the rest from the
/// line's end on. `Err` is the error's text, code included.
fn split_code(code: &[u8]) -> std::result::Result<(Vec<u8>, &[u8]), Vec<u8>> {
    if !code.starts_with(b"#!") {
        return Err(wrong(&[b"Missing library metadata"]));
    }
    let invalid = || wrong(&[b"Invalid library metadata"]);
    // The line is text, which a zero byte ends.
    let end = memchr::memchr2(b'\n', 0, code).filter(|end| code[*end] == b'\n').ok_or_else(invalid)?;
    let words = words(&code[..end]).ok_or_else(invalid)?;
    let (engine, options) = words.split_first().ok_or_else(invalid)?;
    let mut name: Option<&[u8]> = None;
    for option in options {
        let value = option.split_at_checked(5).filter(|(front, _)| front.eq_ignore_ascii_case(b"name="));
        match value {
            None => return Err(wrong(&[b"Invalid metadata value given: ", option])),
            Some(_) if name.is_some() => {
                return Err(wrong(&[b"Invalid metadata value, name argument was given multiple times"]));
            }
            Some((_, value)) => name = Some(value),
        }
    }
    let name = name.ok_or_else(|| wrong(&[b"Library name was not given"]))?;
    if !is_name(name) {
        return Err(wrong(&[BAD_NAME.as_bytes()]));
    }
    let engine = &engine[2..];
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(wrong(&[b"Engine '", engine, b"' not found"]));
    }
    Ok((name.to_vec(), &code[end..]))
}

/// The name that a library's code gives itself. `Err` is the error's text, code included.
pub fn library_name(code: &[u8]) -> std::result::Result<Vec<u8>, Vec<u8>> {
    split_code(code).map(|(name, _)| name)
}

impl Machine {
    /// Loads a library. The host is asked for time and for the log only. `Err` is the error's text, code
    /// included.
    pub fn load_library(&self, code: &[u8], host: &mut dyn Host) -> std::result::Result<Library, Vec<u8>> {
        let (name, text) = split_code(code)?;
        let chunk = self
            .compile_chunk(text, "@user_function")
            .map_err(|text| wrong(&[b"Error compiling function: ", &text]))?;
        let release: Function = self.parts.library.call(chunk.clone()).map_err(|error| text_of(&error))?;
        let chunk = self.state.functions.keep(chunk).map_err(|error| text_of(&error))?;
        self.state.begin();
        self.state.loading.replace(Some(Loading::default()));
        let mut reply = Reply::new(Protocol::Resp2);
        let start = Start { function: &chunk, tables: Tables::None };
        let outcome = self.enter("", start, host, &mut reply);
        let Loading { functions, .. } = self.state.loading.take().unwrap_or_default();
        if outcome != Outcome::Done {
            let text = self.state.last_error.take();
            return Err(wrong(&[b"Error registering functions: ", &text]));
        }
        if functions.is_empty() {
            return Err(wrong(&[b"No functions registered"]));
        }
        release.call::<()>(()).map_err(|error| text_of(&error))?;
        let is_stateless = self.are_stateless(&functions).map_err(|error| text_of(&error))?;
        Ok(Library { name, functions, is_stateless })
    }

    /// Whether none of these functions, nor any that they reach, keeps anything from call to call. While its
    /// code runs a library sees nothing of the interpreter that could be changed.
    fn are_stateless(&self, functions: &[Registered]) -> Result<bool> {
        // The interpreter has no room to hold very many at a time.
        let mut registered = functions.iter().map(|function| self.state.functions.get(&function.callback));
        let (mut reached, mut seen, mut dumped_bytes) = (Vec::new(), BTreeSet::new(), 0);
        while let Some(function) =
            reached.pop().map_or_else(|| registered.next().transpose(), |one| Ok(Some(one)))?
        {
            let dump = function.dump(true);
            dumped_bytes += dump.len();
            if seen.len() == REACHED_MAX || dumped_bytes > DUMPED_BYTES_MAX {
                return Ok(false);
            }
            // One of C has none.
            if !seen.insert(function.to_pointer()) {
                continue;
            }
            if dump.is_empty() {
                // Of Rust, or of C. One that was made by another, such as an iterator, holds where it is.
                let holds = |value: &Value| {
                    !matches!(value, Value::Function(_) | Value::UserData(_) | Value::LightUserData(_))
                };
                if lua::upvalues(&self.lua, &function)?.iter().any(holds) {
                    return Ok(false);
                }
                continue;
            }
            if chunk::may_keep_state(&dump) {
                return Ok(false);
            }
            for value in lua::upvalues(&self.lua, &function)? {
                match value {
                    Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => {}
                    Value::String(text) if !chunk::names_state(&text.as_bytes()) => {}
                    Value::Function(function) => reached.push(function),
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Calls a function and writes its reply, in the protocol of `reply`.
    pub fn run_function<'a>(
        &self,
        function: &Registered,
        mut keys: impl ExactSizeIterator<Item = &'a [u8]>,
        mut argv: impl ExactSizeIterator<Item = &'a [u8]>,
        host: &mut dyn Host,
        reply: &mut Reply,
    ) -> Outcome {
        self.state.begin();
        let tables = Tables::Arguments(&mut keys, &mut argv);
        self.enter(&function.name, Start { function: &function.callback, tables }, host, reply)
    }
}

/// An error of `redis.register_function`.
fn refused(text: &str) -> mlua::Error {
    Raised::table(error::coded(text), false)
}

/// What a library gives for one function.
#[derive(Default)]
struct Given {
    name: Option<Vec<u8>>,
    callback: Option<Function>,
    description: Option<Vec<u8>>,
    flags: Flags,
}

/// A string, or a number as Lua writes it.
fn text(lua: &Lua, value: &Value, otherwise: &str) -> Result<Vec<u8>> {
    match value {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => {
            let text = lua.coerce_string(value.clone())?;
            Ok(text.map(|text| text.as_bytes().to_vec()).unwrap_or_default())
        }
        _ => Err(refused(otherwise)),
    }
}

/// The table of named arguments.
fn named(lua: &Lua, table: &Table) -> Result<Given> {
    let mut given = Given::default();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let key = text(lua, &key, "named argument key given to redis.register_function is not a string")?;
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => {
                let otherwise = "function_name argument given to redis.register_function must be a string";
                given.name = Some(text(lua, &value, otherwise)?);
            }
            b"description" => {
                let otherwise = "description argument given to redis.register_function must be a string";
                given.description = Some(text(lua, &value, otherwise)?);
            }
            b"callback" => match value {
                Value::Function(callback) => given.callback = Some(callback),
                _ => {
                    let message = "callback argument given to redis.register_function must be a function";
                    return Err(refused(message));
                }
            },
            b"flags" => given.flags = flags(&value)?,
            _ => return Err(refused("unknown argument given to redis.register_function")),
        }
    }
    Ok(given)
}

/// The flags of a function: an array of names, up to its first nil.
fn flags(value: &Value) -> Result<Flags> {
    let Value::Table(names) = value else {
        let message = "flags argument to redis.register_function must be a table representing function flags";
        return Err(refused(message));
    };
    let mut flags = Flags::default();
    for index in 1.. {
        match names.raw_get(index)? {
            Value::Nil => break,
            Value::String(name) => {
                let flag = Flags::named_in_any_case(&name.as_bytes());
                flags.add(flag.ok_or_else(|| refused("unknown flag given"))?);
            }
            _ => return Err(refused("unknown flag given")),
        }
    }
    Ok(flags)
}

fn given(lua: &Lua, values: &[Value]) -> Result<Given> {
    match values {
        [Value::Table(table)] => named(lua, table),
        [_] => Err(refused(
            "calling redis.register_function with a single argument is only applicable to Lua table \
             (representing named arguments).",
        )),
        [name, callback] => {
            let name = text(lua, name, "first argument to redis.register_function must be a string")?;
            let Value::Function(callback) = callback else {
                return Err(refused("second argument to redis.register_function must be a function"));
            };
            Ok(Given { name: Some(name), callback: Some(callback.clone()), ..Given::default() })
        }
        _ => Err(refused("wrong number of arguments to redis.register_function")),
    }
}

fn register(lua: &Lua, state: &State, values: &[Value]) -> Result<()> {
    if state.loading.borrow().is_none() {
        return Err(refused("redis.register_function can only be called on FUNCTION LOAD command"));
    }
    let given = given(lua, values)?;
    let missing = |what: &str| refused(&format!("redis.register_function must get a {what} argument"));
    let name = given.name.ok_or_else(|| missing("function name"))?;
    let callback = given.callback.ok_or_else(|| missing("callback"))?;
    let name = String::from_utf8(name).ok().filter(|name| is_name(name.as_bytes()));
    let name = name.ok_or_else(|| refused(BAD_NAME))?;
    let callback = state.functions.keep(callback)?;
    let mut loading = state.loading.borrow_mut();
    let Some(Loading { functions, names }) = loading.as_mut() else { return Ok(()) };
    if !names.insert(name.clone()) {
        return Err(refused("Function already exists in the library"));
    }
    functions.push(Registered { name, description: given.description, flags: given.flags, callback });
    Ok(())
}

/// Puts `register_function` into what libraries see of `redis` while they load.
pub(crate) fn install(lua: &Lua, state: &Rc<State>, redis: &Table) -> Result<()> {
    let shared = Rc::clone(state);
    let function = move |lua: &Lua, values: Variadic<Value>| register(lua, &shared, &values);
    redis.raw_set("register_function", lua.create_function(function)?)
}
