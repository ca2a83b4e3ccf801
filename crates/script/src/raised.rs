//! Errors that functions written in Rust raise, and how a script sees them.
//!
//! mlua wraps what a Rust function returns as an error in a userdata of its own. A script never sees that
//! userdata: whatever catches an error (`pcall`, `xpcall`, `coroutine.resume`, all wrapped in `sandbox.lua`)
//! opens it first, and finds in it the string or table that Redis would have raised there. [`Raised::Stop`]
//! is not opened but raised again, so that nothing in a script can catch a kill or the memory limit.
use mlua::{Error, Lua, Result, Value};
use std::fmt;

/// The chunk's name of `sandbox.lua`. It shows like a script's own in the few errors that Lua's C functions
/// raise when one of its functions calls them.
pub(crate) const SANDBOX: &str = "=user_script";

/// What a Rust function raises.
#[derive(Clone, Debug)]
pub(crate) enum Raised {
    /// A string, as `luaL_error` raises one; its position is part of it already.
    Text(Vec<u8>),
    /// A table `{err = ...}`, as the `redis` functions raise one.
    Table { err: Vec<u8>, is_counted: bool },
    /// The end of the script: the reason lies in the interpreter's state.
    Stop,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raised::Text(text) => f.write_str(&String::from_utf8_lossy(text)),
            Raised::Table { err, .. } => f.write_str(&String::from_utf8_lossy(err)),
            Raised::Stop => f.write_str("the script was stopped"),
        }
    }
}

impl std::error::Error for Raised {}

impl Raised {
    /// As a Rust function returns it.
    pub(crate) fn error(self) -> Error {
        Error::external(self)
    }

    /// A string that begins with where the running function was called, as `luaL_error`.
    pub(crate) fn text(lua: &Lua, message: impl AsRef<[u8]>) -> Error {
        Raised::text_at(lua, 1, message)
    }

    /// As [`Raised::text`], with the position of the function at `level`; 0 is the running one.
    pub(crate) fn text_at(lua: &Lua, level: usize, message: impl AsRef<[u8]>) -> Error {
        let mut text = position(lua, level);
        text.extend_from_slice(message.as_ref());
        Raised::Text(text).error()
    }

    /// A string without a position.
    pub(crate) fn bare(message: impl AsRef<[u8]>) -> Error {
        Raised::Text(message.as_ref().to_vec()).error()
    }

    /// A table with the error's text, code included; `is_counted` when the server's statistics have it
    /// already, because a command answered with it.
    pub(crate) fn table(err: impl AsRef<[u8]>, is_counted: bool) -> Error {
        Raised::Table { err: err.as_ref().to_vec(), is_counted }.error()
    }

    /// What was raised, where it was one of these.
    pub(crate) fn of(error: &Error) -> Option<&Raised> {
        error.downcast_ref::<Raised>()
    }
}

/// Where the function at `level` stands, as `luaL_where` writes it: "user_script:1: ", or nothing for a
/// function that is not written in Lua.
///
/// A function of `sandbox.lua` in a tail call (`return unpack(1)`) has taken the place of its caller on the
/// stack, where one of C would stand beside it. The line is lost then, and 1 is said: most scripts that end
/// so have but one.
pub(crate) fn position(lua: &Lua, level: usize) -> Vec<u8> {
    let place = lua.inspect_stack(level, |debug| match (debug.current_line(), debug.source().what) {
        (Some(line), _) => format!("{}:{line}: ", debug.source().short_src.unwrap_or_default()),
        (None, "tail") => format!("{}:1: ", SANDBOX.trim_start_matches('=')),
        (None, _) => String::new(),
    });
    place.unwrap_or_default().into_bytes()
}

/// The text of an error that is not one of ours: mlua's own, as for too many values on the stack.
pub(crate) fn text_of(error: &Error) -> Vec<u8> {
    match error {
        Error::RuntimeError(text) | Error::MemoryError(text) => text.clone().into_bytes(),
        Error::SyntaxError { message, .. } => message.clone().into_bytes(),
        Error::CallbackError { cause, .. } => text_of(cause),
        other => other.to_string().into_bytes(),
    }
}

/// Makes the table that a script sees of an error of a `redis` function.
pub(crate) fn error_table(lua: &Lua, err: &[u8], is_counted: bool) -> Result<Value> {
    let table = lua.create_table()?;
    table.raw_set("err", lua.create_string(err)?)?;
    if is_counted {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(Value::Table(table))
}
