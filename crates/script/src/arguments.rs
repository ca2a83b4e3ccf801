//! The arguments of `redis.call`, copied one by one into a buffer that every call uses again.
//!
//! On the path of every command of a script: nothing is allocated once the buffer has grown. The buffer is
//! the thread's, because mlua converts arguments where nothing but the interpreter is in reach, and no
//! call can begin while another one converts.
use crate::error;
use base::double::F64Text;
use base::text::append_i64;
use mlua::{FromLua, Lua, Result, Value};
use resp::{Args, Span};
use std::cell::RefCell;

/// The bytes of some arguments, and where each lies.
#[derive(Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    spans: Vec<Span>,
    /// One of them was neither a string nor a number.
    has_other: bool,
}

thread_local! {
    static GIVEN: RefCell<Arguments> = RefCell::default();
}

/// A buffer beyond this is given back after its call.
const KEPT_BYTES: usize = 1 << 20;

/// One argument. Its conversion appends it to the thread's buffer, and leaves nothing in it.
pub(crate) struct Argument;

impl FromLua for Argument {
    fn from_lua(value: Value, _: &Lua) -> Result<Argument> {
        GIVEN.with_borrow_mut(|given| given.push(&value));
        Ok(Argument)
    }
}

impl Arguments {
    /// Takes what was converted since the last call.
    pub(crate) fn take() -> Arguments {
        GIVEN.take()
    }

    /// Gives the buffer back for the next call.
    pub(crate) fn give_back(mut self) {
        self.bytes.clear();
        self.spans.clear();
        self.has_other = false;
        if self.bytes.capacity() <= KEPT_BYTES {
            GIVEN.set(self);
        }
    }

    /// The arguments as a command takes them, or the text of what is wrong with them.
    pub(crate) fn args(&self) -> std::result::Result<Args<'_>, &'static str> {
        if self.has_other {
            Err(error::BAD_TYPES)
        } else if self.spans.is_empty() {
            Err(error::NO_ARGUMENTS)
        } else {
            Ok(Args::new(&self.bytes, &self.spans))
        }
    }

    fn push(&mut self, value: &Value) {
        let start = self.bytes.len();
        match value {
            Value::String(text) => self.bytes.extend_from_slice(&text.as_bytes()),
            Value::Integer(n) if n.unsigned_abs() <= 1 << 62 => append_i64(&mut self.bytes, *n),
            // Redis writes larger whole numbers with the digits that a double needs, and zeros.
            Value::Integer(n) => self.push_number(*n as f64),
            Value::Number(n) => self.push_number(*n),
            _ => self.has_other = true,
        }
        self.spans.push(Span { start, len: self.bytes.len() - start });
    }

    fn push_number(&mut self, n: f64) {
        if n == 0.0 {
            self.bytes.push(b'0');
        } else if n.is_nan() {
            self.bytes.extend_from_slice(if n.is_sign_negative() { b"-nan" } else { b"nan" });
        } else {
            self.bytes.extend_from_slice(F64Text::new().format(n));
        }
    }
}
