//! What `sandbox.lua` needs of Rust: opening errors, errors with the script's line, the collector, sorting.
use super::given::{Given, type_name};
use crate::error;
use crate::raised::{Raised, SANDBOX, error_table, text_of};
use crate::state::{Failure, OUT_OF_MEMORY, State};
use mlua::{Function, Lua, MultiValue, Result, Table, Value, Variadic};
use std::cell::Cell;
use std::rc::Rc;

/// Why a write to a read-only table is refused.
const READ_ONLY: &str = "Attempt to modify a readonly table";

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    let deny = |lua: &Lua, _: MultiValue| -> Result<()> { Err(Raised::text(lua, READ_ONLY)) };
    let deny = lua.create_function(deny)?;
    rust.raw_set("setmetatable", lua::set_metatable(lua, &deny)?)?;
    rust.raw_set("unpack", lua::unpack(lua)?)?;
    let protector = |lua: &Lua, open: Function| lua::protected_call(lua, &open);
    rust.raw_set("protector", lua.create_function(protector)?)?;
    rust.raw_set("deny", deny)?;
    let deny_raw = |_: &Lua, _: MultiValue| -> Result<()> { Err(Raised::bare(READ_ONLY)) };
    rust.raw_set("deny_raw", lua.create_function(deny_raw)?)?;
    rust.raw_set("missing", lua.create_function(missing)?)?;
    rust.raw_set("bad_argument", lua.create_function(bad_argument)?)?;
    let fail_behind =
        |lua: &Lua, text: mlua::LuaString| -> Result<()> { Err(Raised::text_at(lua, 4, text.as_bytes())) };
    rust.raw_set("fail_behind", lua.create_function(fail_behind)?)?;
    let shared = Rc::clone(state);
    rust.raw_set("caught", lua.create_function(move |lua, error| opened(lua, &shared, error))?)?;
    let shared = Rc::clone(state);
    rust.raw_set("handler", lua.create_function(move |lua, error| handle(lua, &shared, error))?)?;
    let inserter = |lua: &Lua, (refuses, moves): (Function, Function)| lua::insert(lua, &refuses, &moves);
    rust.raw_set("inserter", lua.create_function(inserter)?)?;
    rust.raw_set("sort", lua.create_function(|_, table: Table| sort(&table))?)?;
    install_collector(lua, rust)
}

/// What a script reads where there is no global of that name.
fn missing(lua: &Lua, (_, key): (Value, Value)) -> Result<()> {
    let name = match lua.coerce_string(key.clone())? {
        Some(name) => name.as_bytes().to_vec(),
        None => type_name(&key).into(),
    };
    let text = [b"Script attempted to access nonexistent global variable '", name.as_slice(), b"'"];
    Err(Raised::text(lua, text.concat()))
}

/// "bad argument #1 to 'name' (table expected, got nil)", at the line that called the function of
/// `sandbox.lua` which calls this. With three arguments the third is the message.
fn bad_argument(lua: &Lua, values: Variadic<Value>) -> Result<()> {
    let given = Given::new(lua, &values);
    let called_as = lua.inspect_stack(1, |debug| {
        let names = debug.names();
        Some((names.name?.into_owned(), names.name_what == Some("method")))
    });
    let name = String::from_utf8_lossy(&given.string(0)?).into_owned();
    let (name, is_method) = called_as.flatten().unwrap_or((name, false));
    let number = given.int(1)? - i64::from(is_method);
    let mut what = String::from_utf8_lossy(&given.string(2)?).into_owned();
    if given.len() > 3 {
        what = format!("{what} expected, got {}", type_name(given.value(3)));
    }
    Err(Raised::text_at(lua, 2, format!("bad argument #{number} to '{name}' ({what})")))
}

/// An error as a script sees it. What ends the script is raised again.
fn opened(lua: &Lua, state: &State, error: Value) -> Result<Value> {
    if state.stop.borrow().is_some() {
        return Err(Raised::Stop.error());
    }
    match error {
        Value::Error(error) => match Raised::of(&error) {
            Some(Raised::Stop) => Err(Raised::Stop.error()),
            Some(Raised::Text(text)) => Ok(Value::String(lua.create_string(text)?)),
            Some(Raised::Table { err, is_counted }) => error_table(lua, err, *is_counted),
            None => {
                let text = text_of(&error);
                if text == OUT_OF_MEMORY {
                    return Err(state.stop_out_of_memory());
                }
                Ok(Value::String(lua.create_string(text)?))
            }
        },
        Value::String(text) if *text.as_bytes() == *OUT_OF_MEMORY => Err(state.stop_out_of_memory()),
        error => Ok(error),
    }
}

/// Keeps an error that nothing has caught, and where it was raised. It is called there, with the stack as it
/// was. Gives the error back as Redis's handler does, because scripts may call it.
fn handle(lua: &Lua, state: &State, error: Value) -> Result<Value> {
    let mut failure = Failure { place: place(lua), ..Failure::default() };
    let mut given = Value::Nil;
    match &error {
        Value::Error(error) => match Raised::of(error) {
            Some(Raised::Table { err, is_counted }) => {
                failure.text.clone_from(err);
                failure.is_counted = *is_counted;
            }
            Some(Raised::Text(text)) => failure.text = error::coded(text),
            Some(Raised::Stop) => failure.text = state.stop.borrow().clone().unwrap_or_default(),
            None => failure.text = error::coded(text_of(error)),
        },
        Value::Table(table) => {
            given = error.clone();
            failure.text = match lua.coerce_string(table.raw_get("err")?)? {
                Some(text) => text.as_bytes().to_vec(),
                None => error::UNKNOWN.into(),
            };
            let is_counted: Value = table.raw_get("ignore_error_stats_update")?;
            failure.is_counted = is_counted == Value::Boolean(true);
        }
        other => failure.text = error::coded(shown(lua, other)?),
    }
    state.failure.replace(Some(failure));
    Ok(given)
}

/// A value as `tostring` writes it, without asking its metatable.
fn shown(lua: &Lua, value: &Value) -> Result<Vec<u8>> {
    Ok(match value {
        Value::Nil => b"nil".to_vec(),
        Value::Boolean(is_true) => is_true.to_string().into_bytes(),
        other => match lua.coerce_string(other.clone())? {
            Some(text) => text.as_bytes().to_vec(),
            None => format!("{}: {:p}", type_name(other), other.to_pointer()).into_bytes(),
        },
    })
}

/// The chunk and the line nearest to where an error was raised: the first function written in Lua that is
/// not one of `sandbox.lua`, or line 1 where that one has taken its place by a tail call.
fn place(lua: &Lua) -> Option<(String, i64)> {
    let mut lost = None;
    for level in 1..=8 {
        let found = lua.inspect_stack(level, |debug| {
            let source = debug.source().source?.into_owned();
            let line = debug.current_line()? as i64;
            Some((source, line))
        });
        match found {
            None => break,
            Some(Some((source, _))) if source == SANDBOX => {
                lost = Some((source.replacen('=', "@", 1), 1));
            }
            Some(Some(found)) => return Some(found),
            Some(None) => {}
        }
    }
    lost
}

/// Sorts an array of numbers or of strings without calling back; false where it holds anything else.
///
/// Lua's own quicksort takes quadratic time for orders that are made for it, and nothing can interrupt it.
fn sort(table: &Table) -> Result<bool> {
    let len = table.raw_len();
    match table.raw_get(1)? {
        Value::Integer(_) | Value::Number(_) => {
            let mut numbers = Vec::new();
            for index in 1..=len {
                match table.raw_get(index)? {
                    Value::Integer(n) => numbers.push(n as f64),
                    Value::Number(n) if !n.is_nan() => numbers.push(n),
                    _ => return Ok(false),
                }
            }
            numbers.sort_unstable_by(f64::total_cmp);
            for (index, n) in numbers.into_iter().enumerate() {
                table.raw_set(index + 1, n)?;
            }
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// `collectgarbage`, whose settings a script cannot change for those behind it: they are answered as if.
fn install_collector(lua: &Lua, rust: &Table) -> Result<()> {
    let settings = [Cell::new(200), Cell::new(200)];
    let function = move |lua: &Lua, values: Variadic<Value>| {
        let given = Given::new(lua, &values);
        if given.is_absent(0) {
            lua.gc_collect()?;
            return Ok(Value::Integer(0));
        }
        let option = given.string(0)?.to_vec();
        let value = given.int_or(1, 0)?;
        Ok(match option.as_slice() {
            b"collect" => {
                lua.gc_collect()?;
                Value::Integer(0)
            }
            b"count" => Value::Number(lua.used_memory() as f64 / 1024.0),
            b"step" => Value::Boolean(lua.gc_step()?),
            b"stop" | b"restart" => Value::Integer(0),
            b"setpause" => Value::Integer(settings[0].replace(value)),
            b"setstepmul" => Value::Integer(settings[1].replace(value)),
            _ => {
                let option = String::from_utf8_lossy(&option);
                return Err(given.bad(0, format!("invalid option '{option}'")));
            }
        })
    };
    rust.raw_set("collectgarbage", lua.create_function(function)?)
}
