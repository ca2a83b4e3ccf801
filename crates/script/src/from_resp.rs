//! Replies of commands as Lua values.
//!
//! | RESP | Lua |
//! |---|---|
//! | `:1` | number |
//! | `$1`, `*1` | string, table |
//! | `+OK`, `-ERR x` | `{ok='OK'}`, `{err='ERR x', ignore_error_stats_update=true}` |
//! | `$-1`, `*-1` | false |
//! | `_` | nil |
//! | `,1.5` | `{double=1.5}` |
//! | `#t` | true |
//! | `(123` | `{big_number='123'}` |
//! | `=7 txt:abc` | `{verbatim_string={format='txt', string='abc'}}` |
//! | `%1`, `~1` | `{map={...}}`, `{set={element=true}}` |
//! | `>1` | as an array |
//! | `|1` | nothing: what follows it counts |
//!
//! On the path of every command of a script: bytes become values as they are read, with nothing between.
use crate::raised::{Raised, error_table};
use mlua::{IntoLua, Lua, Result, Table, Value};

/// Replies nest no deeper than this; commands do not answer half as deep.
const DEPTH_MAX: usize = 128;

/// The value of the reply at the front of `bytes`, or its text where it is an error.
pub(crate) enum Answer<'a> {
    Value(Value),
    Error(&'a [u8]),
}

/// Reads one reply.
pub(crate) fn answer<'a>(lua: &Lua, bytes: &'a [u8]) -> Result<Answer<'a>> {
    let mut reader = Reader { bytes, at: 0, depth: 0 };
    match bytes {
        [b'-', ..] => Ok(Answer::Error(&reader.line()?[1..])),
        _ => Ok(Answer::Value(reader.value(lua)?)),
    }
}

/// What a Lua value of the reply in `bytes` takes at most: every element is at least three bytes long, and
/// an empty table takes 64 bytes and its place 40.
pub(crate) fn lua_bytes(bytes: &[u8]) -> usize {
    bytes.len().saturating_mul(40) + 1024
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

fn broken() -> mlua::Error {
    Raised::bare("the reply of a command cannot be read")
}

/// A run of strings at the front of an array, which go into the table without a handle each.
struct Strings<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: &'r mut usize,
    lua: &'r Lua,
    is_broken: &'r mut bool,
}

impl Iterator for Strings<'_, '_> {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        if *self.left == 0 || !self.reader.is_at_string() {
            return None;
        }
        *self.left -= 1;
        let value = self.reader.value(self.lua);
        if value.is_err() {
            *self.is_broken = true;
        }
        value.ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (*self.left, None)
    }
}

impl<'a> Reader<'a> {
    /// The next line, its mark included.
    fn line(&mut self) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\r', rest).filter(|end| *end > 0).ok_or_else(broken)?;
        self.at += (end + 2).min(rest.len());
        Ok(&rest[..end])
    }

    /// A number of bytes and the line's end behind them.
    fn bulk(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.bytes[self.at..].get(..len).ok_or_else(broken)?;
        self.at = (self.at + len + 2).min(self.bytes.len());
        Ok(bytes)
    }

    fn is_at_string(&self) -> bool {
        matches!(self.bytes.get(self.at..), Some([b'$', b'0'..=b'9', ..]))
    }

    fn value(&mut self, lua: &Lua) -> Result<Value> {
        let line = self.line()?;
        let text = &line[1..];
        match line[0] {
            b':' => Ok(Value::Integer(base::text::parse_i64(text).ok_or_else(broken)?)),
            b'$' if text == b"-1" => Ok(Value::Boolean(false)),
            b'*' if text == b"-1" => Ok(Value::Boolean(false)),
            b'$' => self.bulk(length(text)?)?.value(lua),
            b'+' => wrapped(lua, "ok", text.value(lua)?),
            b'-' => error_table(lua, text, true),
            b'_' => Ok(Value::Nil),
            b',' => wrapped(lua, "double", Value::Number(double(text)?)),
            b'#' => Ok(Value::Boolean(text == b"t")),
            b'(' => wrapped(lua, "big_number", text.value(lua)?),
            b'=' => self.verbatim(lua, length(text)?),
            b'*' | b'>' | b'~' | b'%' | b'|' => self.nested(lua, line[0], length(text)?),
            _ => Err(broken()),
        }
    }

    fn nested(&mut self, lua: &Lua, mark: u8, len: usize) -> Result<Value> {
        if self.depth == DEPTH_MAX {
            return Err(broken());
        }
        self.depth += 1;
        let value = match mark {
            b'%' => wrapped(lua, "map", self.map(lua, len)?),
            b'~' => wrapped(lua, "set", self.set(lua, len)?),
            b'|' => self.map(lua, len).and_then(|_| self.value(lua)),
            _ => self.array(lua, len),
        };
        self.depth -= 1;
        value
    }

    fn array(&mut self, lua: &Lua, len: usize) -> Result<Value> {
        let (mut left, mut is_broken) = (len.min(self.bytes.len()), false);
        let strings = Strings { reader: self, left: &mut left, lua, is_broken: &mut is_broken };
        let table = lua.create_sequence_from(strings)?;
        if is_broken {
            return Err(broken());
        }
        for index in len - left + 1..=len {
            let value = self.value(lua)?;
            table.raw_set(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, lua: &Lua, len: usize) -> Result<Value> {
        let table = lua.create_table_with_capacity(0, len.min(self.bytes.len() / 4))?;
        for _ in 0..len {
            let key = self.value(lua)?;
            let value = self.value(lua)?;
            put(&table, key, value)?;
        }
        Ok(Value::Table(table))
    }

    fn set(&mut self, lua: &Lua, len: usize) -> Result<Value> {
        let table = lua.create_table_with_capacity(0, len.min(self.bytes.len() / 4))?;
        for _ in 0..len {
            let element = self.value(lua)?;
            put(&table, element, Value::Boolean(true))?;
        }
        Ok(Value::Table(table))
    }

    fn verbatim(&mut self, lua: &Lua, len: usize) -> Result<Value> {
        let bytes = self.bulk(len)?;
        let (format, text) = bytes.split_at_checked(3).ok_or_else(broken)?;
        let table = lua.create_table_with_capacity(0, 2)?;
        table.raw_set("format", format.value(lua)?)?;
        table.raw_set("string", text.get(1..).unwrap_or_default().value(lua)?)?;
        wrapped(lua, "verbatim_string", Value::Table(table))
    }
}

/// Sets a field whose key Lua may refuse: nothing stands under nil or NaN.
fn put(table: &Table, key: Value, value: Value) -> Result<()> {
    match key {
        Value::Nil => Ok(()),
        Value::Number(n) if n.is_nan() => Ok(()),
        key => table.raw_set(key, value),
    }
}

fn wrapped(lua: &Lua, name: &str, value: Value) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

fn length(text: &[u8]) -> Result<usize> {
    base::text::parse_u64(text).and_then(|n| usize::try_from(n).ok()).ok_or_else(broken)
}

fn double(text: &[u8]) -> Result<f64> {
    match text {
        b"nan" | b"-nan" => Ok(f64::NAN),
        _ => base::double::parse_f64(text).ok_or_else(broken),
    }
}

/// Bytes as a Lua string.
trait ToLua {
    fn value(self, lua: &Lua) -> Result<Value>;
}

impl ToLua for &[u8] {
    fn value(self, lua: &Lua) -> Result<Value> {
        lua.create_string(self)?.into_lua(lua)
    }
}
