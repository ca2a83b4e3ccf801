//! `cjson`: JSON as lua-cjson 2.1.0 reads and writes it, with the settings that Redis gives it. Each object
//! that `cjson.new` makes has settings of its own; those of `cjson` itself last from script to script.
mod decode;
mod encode;
mod failure;
mod number;

use super::bounded::{maker, writer};
use super::given::Given;
use crate::state::State;
use lua::{Stack, Written};
use mlua::{Lua, Result, Table, Value, Variadic};
use std::cell::Cell;
use std::rc::Rc;

/// What numbers that JSON does not have become.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Invalid {
    Refused,
    Kept,
    Null,
}

/// The settings of one object.
#[derive(Clone, Copy)]
struct Settings {
    sparse_is_object: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_depth_max: i64,
    decode_depth_max: i64,
    precision: i64,
    /// Shown, and of no effect.
    keeps_buffer: bool,
    encode_invalid: Invalid,
    decode_invalid: Invalid,
}

const DEFAULTS: Settings = Settings {
    sparse_is_object: false,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth_max: 1000,
    decode_depth_max: 1000,
    precision: 14,
    keeps_buffer: true,
    encode_invalid: Invalid::Refused,
    decode_invalid: Invalid::Kept,
};

/// No setting lets tables nest deeper than this: each holds places on a stack of mlua that has 8,000.
const DEPTH_MAX: i64 = 1000;

/// An option that a setting takes, and what it becomes.
type Choice = (&'static str, Invalid);
const SWITCH: [Choice; 2] = [("off", Invalid::Refused), ("on", Invalid::Kept)];
const NUMBERS: [Choice; 3] = [("off", Invalid::Refused), ("on", Invalid::Kept), ("null", Invalid::Null)];

/// Reads an option: a boolean, or one of the names; nothing leaves it as it is.
fn choice(given: &Given<'_>, index: usize, choices: &[Choice], old: Invalid) -> Result<Invalid> {
    match given.value(index) {
        Value::Nil => Ok(old),
        Value::Boolean(true) => Ok(Invalid::Kept),
        Value::Boolean(false) => Ok(Invalid::Refused),
        _ => {
            let name = given.string(index)?;
            let found = choices.iter().find(|(choice, _)| choice.as_bytes() == &name[..]);
            let wrong = || {
                let name = String::from_utf8_lossy(&name);
                given.bad(index, format!("invalid option '{name}'"))
            };
            found.map(|(_, invalid)| *invalid).ok_or_else(wrong)
        }
    }
}

/// An option as a script sees it.
fn shown(lua: &Lua, invalid: Invalid) -> Result<Value> {
    Ok(match invalid {
        Invalid::Refused => Value::Boolean(false),
        Invalid::Kept => Value::Boolean(true),
        Invalid::Null => Value::String(lua.create_string("null")?),
    })
}

/// Reads a number of a setting; nothing leaves it as it is.
fn integer(given: &Given<'_>, index: usize, range: (i64, i64), old: i64) -> Result<i64> {
    if given.is_absent(index) {
        return Ok(old);
    }
    let n = given.int(index)?;
    if n < range.0 || n > range.1 {
        let message = format!("expected integer between {} and {}", range.0, range.1);
        return Err(given.bad(0, &message));
    }
    Ok(n)
}

const ANY: (i64, i64) = (0, i32::MAX as i64);
const POSITIVE: (i64, i64) = (1, i32::MAX as i64);
const DIGITS: (i64, i64) = (1, 14);

/// Changes a setting, where there is something to change it to, and shows what it is.
type Setting = fn(&Given<'_>, &mut Settings) -> Result<Variadic<Value>>;

/// The functions that are settings, with how many arguments each takes.
const SETTINGS: [(&str, usize, Setting); 7] = [
    ("encode_sparse_array", 3, |given, settings| {
        let old = if settings.sparse_is_object { Invalid::Kept } else { Invalid::Refused };
        settings.sparse_is_object = choice(given, 0, &SWITCH, old)? == Invalid::Kept;
        settings.sparse_ratio = integer(given, 1, ANY, settings.sparse_ratio)?;
        settings.sparse_safe = integer(given, 2, ANY, settings.sparse_safe)?;
        Ok(Variadic::from_iter([
            Value::Boolean(settings.sparse_is_object),
            Value::Integer(settings.sparse_ratio),
            Value::Integer(settings.sparse_safe),
        ]))
    }),
    ("encode_max_depth", 1, |given, settings| {
        settings.encode_depth_max = integer(given, 0, POSITIVE, settings.encode_depth_max)?;
        Ok(Variadic::from_iter([Value::Integer(settings.encode_depth_max)]))
    }),
    ("decode_max_depth", 1, |given, settings| {
        settings.decode_depth_max = integer(given, 0, POSITIVE, settings.decode_depth_max)?;
        Ok(Variadic::from_iter([Value::Integer(settings.decode_depth_max)]))
    }),
    ("encode_number_precision", 1, |given, settings| {
        settings.precision = integer(given, 0, DIGITS, settings.precision)?;
        Ok(Variadic::from_iter([Value::Integer(settings.precision)]))
    }),
    ("encode_keep_buffer", 1, |given, settings| {
        let old = if settings.keeps_buffer { Invalid::Kept } else { Invalid::Refused };
        settings.keeps_buffer = choice(given, 0, &SWITCH, old)? == Invalid::Kept;
        Ok(Variadic::from_iter([Value::Boolean(settings.keeps_buffer)]))
    }),
    ("encode_invalid_numbers", 1, |given, settings| {
        settings.encode_invalid = choice(given, 0, &NUMBERS, settings.encode_invalid)?;
        Ok(Variadic::from_iter([shown(given.lua, settings.encode_invalid)?]))
    }),
    ("decode_invalid_numbers", 1, |given, settings| {
        settings.decode_invalid = choice(given, 0, &SWITCH, settings.decode_invalid)?;
        Ok(Variadic::from_iter([shown(given.lua, settings.decode_invalid)?]))
    }),
];

/// Makes an object with settings of its own.
fn object(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    // What its functions share.
    let common = Rc::new(Cell::new(DEFAULTS));
    let table = lua.create_table()?;
    for (name, count_max, setting) in SETTINGS {
        let shared = Rc::clone(&common);
        let function = move |lua: &Lua, values: Variadic<Value>| {
            let given = Given::new(lua, &values);
            if given.len() > count_max {
                return Err(given.bad(count_max, "found too many arguments"));
            }
            let mut settings = shared.get();
            let result = setting(&given, &mut settings)?;
            shared.set(settings);
            Ok(result)
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    table.raw_set("encode", writer(lua, state, of_one(&common, encode::encode))?)?;
    table.raw_set("decode", maker(lua, state, of_one(&common, decode::decode))?)?;
    let shared = Rc::clone(state);
    let new = move |lua: &Lua, ()| object(lua, &shared);
    table.raw_set("new", lua.create_function(new)?)?;
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}

/// Writes what it makes of the one value that it is given, in at most so many bytes.
type Body = fn(&mut Stack<'_>, Settings, &State, (usize, &mut Vec<u8>)) -> Written;

/// A body that is given its object's settings, and one value.
fn of_one(
    settings: &Rc<Cell<Settings>>,
    body: Body,
) -> impl Fn(&mut Stack<'_>, &State, usize, &mut Vec<u8>) -> Written + 'static {
    let settings = Rc::clone(settings);
    move |stack, state, room, out| match stack.count() {
        1 => body(stack, settings.get(), state, (room, out)),
        _ => Written::BadArgument(1, c"expected 1 argument"),
    }
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    rust.raw_set("cjson", object(lua, state)?)
}
