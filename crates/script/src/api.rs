//! The table `redis` of scripts. Its functions ask the [host](crate::Host) of the running script.
//!
//! `call` and `pcall` are on the path of every command of a script.
use crate::arguments::Arguments;
use crate::error;
use crate::exchange::Exchange;
use crate::functions;
use crate::host::{self, AclCheck, LogLevel};
use crate::raised::{Raised, error_table};
use crate::state::State;
use lua::{Answer, Argument, Findings, Found, Outcome};
use mlua::{Lua, LuaString, Result, Table, Value, Variadic};
use resp::{Protocol, Reply};
use std::cell::RefCell;
use std::rc::Rc;

/// The version that scripts and clients are told.
pub(crate) const REDIS_VERSION: &str = "8.0.2";
/// The same as a number, a byte for each part.
pub(crate) const REDIS_VERSION_NUM: i64 = 0x0008_0002;

/// Makes the table. Functions of libraries lack what only EVAL has.
pub(crate) fn redis_table(lua: &Lua, state: &Rc<State>, is_library: bool) -> Result<Table> {
    let redis = lua.create_table()?;
    install_calls(lua, state, &redis)?;
    install_log(lua, &redis)?;
    install_replies(lua, &redis)?;
    install_settings(lua, state, &redis)?;
    redis.raw_set("acl_check_cmd", lua.create_function(acl_check_cmd)?)?;
    redis.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    if !is_library {
        redis.raw_set("replicate_commands", lua.create_function(|_, _: Variadic<Value>| Ok(true))?)?;
        redis.raw_set("breakpoint", lua.create_function(|_, _: Variadic<Value>| Ok(false))?)?;
        redis.raw_set("debug", lua.create_function(|_, _: Variadic<Value>| Ok(()))?)?;
    }
    Ok(redis)
}

/// What a library sees of `redis` while it loads.
pub(crate) fn loading_table(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let redis = lua.create_table()?;
    install_log(lua, &redis)?;
    functions::install(lua, state, &redis)?;
    Ok(redis)
}

fn install_calls(lua: &Lua, state: &Rc<State>, redis: &Table) -> Result<()> {
    for (name, raises) in [("call", true), ("pcall", false)] {
        let exchange = Rc::new(RefCell::new(Exchange::new()));
        state.exchanges.borrow_mut().push(Rc::clone(&exchange));
        let shared = Rc::clone(state);
        let body = move |arguments: lua::Arguments<'_>, exchange: &mut Exchange| {
            exchange.let_go();
            exchange.arguments.fill(arguments);
            call(&shared, exchange, raises)
        };
        redis.raw_set(name, lua::function(lua, exchange, body)?)?;
    }
    Ok(())
}

/// Runs a command.
fn call(state: &State, Exchange { arguments, reply }: &mut Exchange, raises: bool) -> Outcome {
    reply.cut(0);
    let args = match arguments.args() {
        Ok(args) => args,
        Err(text) => return refused(text, reply, raises),
    };
    reply.protocol = state.protocol.get();
    let ended = host::with(|host| host.command(args, reply));
    reply.finish();
    match ended {
        Some(Ok(())) if reply.is_full() => state.stop_out_of_memory(),
        Some(Ok(())) => return Outcome::Reply { raises },
        Some(Err(stop)) => state.stop(stop.0),
        None => return refused(error::NO_HOST, reply, raises),
    };
    Outcome::Stopped
}

/// An error without a command.
fn refused(text: &str, reply: &mut Reply, raises: bool) -> Outcome {
    reply.cut(0);
    reply.append(text.as_bytes());
    Outcome::Error { raises }
}

/// An error of one of the other functions, which is always raised.
fn wrong(text: &str) -> mlua::Error {
    Raised::table(text, false)
}

fn acl_check_cmd(_: &Lua, values: Variadic<Value>) -> Result<bool> {
    let texts: Vec<_> = values.iter().map(|value| value.as_string().map(LuaString::as_bytes)).collect();
    let mut arguments = Arguments::default();
    arguments.fill(values.iter().zip(&texts).map(|(value, text)| match (value, text) {
        (_, Some(text)) => Argument::Bytes(text),
        (Value::Integer(n), _) => Argument::Number(*n as f64),
        (Value::Number(n), _) => Argument::Number(*n),
        _ => Argument::Other,
    }));
    match arguments.args() {
        Err(text) => Err(wrong(text)),
        Ok(args) => match host::with(|host| host.acl_check(args)) {
            Some(AclCheck::Allowed) => Ok(true),
            Some(AclCheck::Denied) | None => Ok(false),
            Some(AclCheck::UnknownCommand) => Err(wrong(error::ACL_COMMAND)),
            Some(AclCheck::WrongArity) => Err(wrong(error::ACL_ARITY)),
        },
    }
}

/// A string, or a number as Lua writes it; nothing else.
fn text_of(lua: &Lua, value: &Value) -> Result<Option<Vec<u8>>> {
    Ok(match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(_) | Value::Number(_) => {
            lua.coerce_string(value.clone())?.map(|text| text.as_bytes().to_vec())
        }
        _ => None,
    })
}

fn sha1hex(lua: &Lua, values: Variadic<Value>) -> Result<mlua::LuaString> {
    let [value] = values.as_slice() else { return Err(wrong(error::SHA_ARITY)) };
    lua.create_string(sha1_of(&text_of(lua, value)?.unwrap_or_default()))
}

/// The SHA-1 of a script, in hexadecimal digits.
pub(crate) fn sha1_of(bytes: &[u8]) -> String {
    base::text::hex(&base::digest::sha1(bytes))
}

/// `redis.log`, its levels, and the server's version, which scripts have in every environment.
fn install_log(lua: &Lua, redis: &Table) -> Result<()> {
    redis.raw_set("log", lua::quick(lua, &lua.create_function(log)?, quick_log)?)?;
    for (index, name) in ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].iter().enumerate() {
        redis.raw_set(*name, index)?;
    }
    redis.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    redis.raw_set("REDIS_VERSION_NUM", REDIS_VERSION_NUM)
}

fn log(lua: &Lua, values: Variadic<Value>) -> Result<()> {
    let [level, parts @ ..] = values.as_slice() else {
        return Err(wrong(error::LOG_ARITY));
    };
    if parts.is_empty() {
        return Err(wrong(error::LOG_ARITY));
    }
    let level = lua.coerce_number(level.clone())?.ok_or_else(|| wrong(error::LOG_NUMBER))?;
    let level = log_level(whole(level)).ok_or_else(|| wrong(error::LOG_LEVEL))?;
    let mut message = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        if let Some(text) = text_of(lua, part)? {
            if index > 0 {
                message.push(b' ');
            }
            message.extend_from_slice(&text);
        }
    }
    host::with(|host| host.log(level, &message));
    Ok(())
}

/// The same of a level that is a number. A message that the log does not want is not looked at; of others
/// all parts are to be strings.
fn quick_log(arguments: lua::Arguments<'_>, findings: &mut Findings) -> Answer {
    let level = arguments.get(0).and_then(Argument::int).and_then(log_level);
    let (Some(level), Some(_)) = (level, arguments.get(1)) else { return Answer::Unclear };
    if host::with(|host| host.wants_log(level)) == Some(false) {
        return Answer::Given;
    }
    for (index, part) in arguments.skip(1).enumerate() {
        let Argument::Bytes(part) = part else { return Answer::Unclear };
        if findings.text.len() + part.len() > lua::TEXT_BYTES_MAX {
            return Answer::Unclear;
        }
        if index > 0 {
            findings.text.push(b' ');
        }
        findings.text.extend_from_slice(part);
    }
    host::with(|host| host.log(level, &findings.text));
    Answer::Given
}

/// A number without what follows its point; NaN is none that means anything.
fn whole(number: f64) -> i64 {
    if number.is_nan() { i64::MIN } else { number as i64 }
}

fn log_level(number: i64) -> Option<LogLevel> {
    match number {
        0 => Some(LogLevel::Debug),
        1 => Some(LogLevel::Verbose),
        2 => Some(LogLevel::Notice),
        3 => Some(LogLevel::Warning),
        _ => None,
    }
}

fn install_replies(lua: &Lua, redis: &Table) -> Result<()> {
    let refused = |lua: &Lua, _: Variadic<Value>| error_table(lua, error::REPLY_ARGUMENTS.as_bytes(), false);
    let refused = lua.create_function(refused)?;
    let error_reply = |arguments: lua::Arguments<'_>, findings: &mut Findings| {
        let Some(text) = only_text(&arguments) else { return Answer::Unclear };
        put_with_code(text, &mut findings.text);
        findings.values.push(Found::Table(c"err", None));
        Answer::Given
    };
    redis.raw_set("error_reply", lua::quick(lua, &refused, error_reply)?)?;
    let status_reply = |arguments: lua::Arguments<'_>, findings: &mut Findings| {
        let Some(text) = only_text(&arguments) else { return Answer::Unclear };
        findings.values.push(Found::Table(c"ok", Some((1, 0..text.len()))));
        Answer::Given
    };
    redis.raw_set("status_reply", lua::quick(lua, &refused, status_reply)?)
}

/// The argument, where it is one and a string.
fn only_text<'a>(arguments: &lua::Arguments<'a>) -> Option<&'a [u8]> {
    match (arguments.get(0), arguments.get(1)) {
        (Some(Argument::Bytes(text)), None) => Some(text),
        _ => None,
    }
}

/// The text of an error with its code: one word before a space, with or without a dash in front. A text
/// without a space gets "ERR".
fn put_with_code(text: &[u8], out: &mut Vec<u8>) {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let text = text.strip_suffix(b"\r\n").unwrap_or(text);
    match text.contains(&b' ') {
        true => out.extend_from_slice(text),
        false => out.extend(error::coded(text)),
    }
}

fn install_settings(lua: &Lua, state: &Rc<State>, redis: &Table) -> Result<()> {
    let shared = Rc::clone(state);
    let setresp = move |lua: &Lua, values: Variadic<Value>| {
        let [version] = values.as_slice() else {
            return Err(wrong(error::SETRESP_ARITY));
        };
        shared.protocol.set(match lua.coerce_number(version.clone())?.unwrap_or_default() as i64 {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return Err(wrong(error::SETRESP_VERSION)),
        });
        Ok(())
    };
    redis.raw_set("setresp", lua.create_function(setresp)?)?;
    redis.raw_set("set_repl", lua.create_function(set_repl)?)?;
    let targets =
        [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
    targets.iter().try_for_each(|(name, bits)| redis.raw_set(*name, *bits))
}

fn set_repl(lua: &Lua, values: Variadic<Value>) -> Result<()> {
    let [targets] = values.as_slice() else {
        return Err(wrong(error::SET_REPL_ARITY));
    };
    let targets = whole(lua.coerce_number(targets.clone())?.unwrap_or_default());
    let Some(targets) = u8::try_from(targets).ok().filter(|bits| *bits <= 3) else {
        return Err(wrong(error::SET_REPL_FLAGS));
    };
    host::with(|host| host.set_replication(targets));
    Ok(())
}
