//! The arguments of a library's function, taken one by one, with the errors that Lua's own C functions raise
//! (`luaL_checklstring` and its kin): "bad argument #2 to 'rep' (number expected, got table)".
use crate::raised::Raised;
use lua::Found;
use mlua::{BorrowedBytes, Error, Lua, Result, Value};

/// The arguments of the function that runs.
pub(crate) struct Given<'a> {
    pub(crate) lua: &'a Lua,
    values: &'a [Value],
    /// The level of the function that the script called: 0 for this one, 1 where another has passed its
    /// arguments on.
    level: usize,
}

impl<'a> Given<'a> {
    pub(crate) fn new(lua: &'a Lua, values: &'a [Value]) -> Given<'a> {
        Given { lua, values, level: 0 }
    }

    /// Of a function to which others have passed the script's arguments: so many.
    pub(crate) fn behind(lua: &'a Lua, values: &'a [Value], level: usize) -> Given<'a> {
        Given { lua, values, level }
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// Argument `index`, counted from 0; nil beyond the last.
    pub(crate) fn value(&self, index: usize) -> &'a Value {
        self.values.get(index).unwrap_or(&Value::Nil)
    }

    pub(crate) fn is_absent(&self, index: usize) -> bool {
        self.value(index).is_nil()
    }

    /// An error that begins with the script's line.
    pub(crate) fn fail(&self, message: impl AsRef<[u8]>) -> Error {
        Raised::text_at(self.lua, self.level + 1, message)
    }

    /// "bad argument #1 to 'name' (message)". The first argument of a method is its object.
    pub(crate) fn bad(&self, index: usize, message: impl AsRef<[u8]>) -> Error {
        let name = self.lua.inspect_stack(self.level, |debug| {
            let names = debug.names();
            (names.name.map(|name| name.into_owned()), names.name_what == Some("method"))
        });
        let (name, is_method) = name.unwrap_or_default();
        let name = name.unwrap_or_else(|| "?".to_owned());
        let beginning = match (is_method, index) {
            (true, 0) => format!("calling '{name}' on bad self ("),
            _ => format!("bad argument #{} to '{name}' (", index + 1 - usize::from(is_method)),
        };
        self.fail([beginning.as_bytes(), message.as_ref(), b")"].concat())
    }

    /// "number expected, got table".
    fn wrong_type(&self, index: usize, expected: &str) -> Error {
        self.bad(index, format!("{expected} expected, got {}", self.type_name(index)))
    }

    fn type_name(&self, index: usize) -> &'static str {
        self.values.get(index).map_or("no value", type_name)
    }

    /// A string, or a number as Lua writes it.
    pub(crate) fn string(&self, index: usize) -> Result<BorrowedBytes> {
        match self.value(index) {
            Value::String(text) => Ok(text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                let text = self.lua.coerce_string(self.value(index).clone())?;
                text.map(|text| text.as_bytes()).ok_or_else(|| self.wrong_type(index, "string"))
            }
            _ => Err(self.wrong_type(index, "string")),
        }
    }

    /// A number, or a string that is one.
    pub(crate) fn number(&self, index: usize) -> Result<f64> {
        match self.value(index) {
            Value::Integer(n) => Ok(*n as f64),
            Value::Number(n) => Ok(*n),
            Value::String(_) => {
                let n = self.lua.coerce_number(self.value(index).clone())?;
                n.ok_or_else(|| self.wrong_type(index, "number"))
            }
            _ => Err(self.wrong_type(index, "number")),
        }
    }

    /// A number without its fraction; the lowest of 64 bits where it does not fit, as processors have it.
    pub(crate) fn int(&self, index: usize) -> Result<i64> {
        const BEYOND: f64 = (1_u64 << 63) as f64;
        let number = self.number(index)?;
        Ok(if number.abs() < BEYOND { number as i64 } else { i64::MIN })
    }

    /// The lowest 32 bits of that, which is what C's `int` has of it.
    pub(crate) fn int32(&self, index: usize) -> Result<i64> {
        Ok(i64::from(self.int(index)? as i32))
    }

    /// The value that a search, or a walk through bytes, has found in these.
    pub(crate) fn value_found(&self, bytes: &[u8], found: Found) -> Result<Value> {
        match found {
            Found::Part(_, part) => self.lua.create_string(&bytes[part]).map(Value::String),
            Found::Number(number) => Ok(Value::Number(number)),
            Found::Nil | Found::Text | Found::Table(..) => Ok(Value::Nil),
        }
    }

    pub(crate) fn int_or(&self, index: usize, default: i64) -> Result<i64> {
        if self.is_absent(index) { Ok(default) } else { self.int(index) }
    }
}

/// The name of a value's type, as `type` says it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}
