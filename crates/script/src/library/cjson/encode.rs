//! Lua values as JSON. Tables wait on a list while their elements are written, so that how deep they nest is
//! no matter of the thread's stack.
use super::number::append_general;
use super::{Codec, DEPTH_MAX, Invalid, Settings, name_of};
use crate::library::given::Given;
use mlua::{Error, LuaString, Result, Table, Value};

/// The encoder at work.
struct Encoder<'a> {
    given: &'a Given<'a>,
    codec: &'a Codec,
    settings: Settings,
    out: Vec<u8>,
    room: usize,
}

/// A table whose elements are being written.
enum Open {
    Array {
        table: Table,
        next: i64,
        len: i64,
    },
    /// The pair that comes next, and the walk that finds the one behind it.
    Object {
        table: Table,
        next: Option<(Value, Value)>,
        is_first: bool,
    },
    /// A small object, whose pairs were found when it was begun: the last one comes next.
    Pairs {
        pairs: Vec<(Value, Value)>,
        is_first: bool,
    },
}

/// An object of up to so many pairs, not deeper than that, is read at once.
const PAIRS_MAX: usize = 64;
const PAIRS_DEPTH_MAX: usize = 20;

/// What a table is, and its pairs if they are few.
enum Shape {
    Array(i64),
    Object(Option<Vec<(Value, Value)>>),
}

pub(super) fn encode(given: &Given<'_>, codec: &Codec) -> Result<LuaString> {
    if given.len() != 1 {
        return Err(given.bad(0, "expected 1 argument"));
    }
    let mut out = codec.buffer.take();
    out.clear();
    let room = codec.state.spare_bytes(given.lua);
    let mut encoder = Encoder { given, codec, settings: codec.settings.get(), out, room };
    encoder.run(given.value(0))?;
    let len = encoder.out.len();
    codec.state.check_room(given.lua, len)?;
    let text = codec.state.lifted(given.lua, len + 64, || given.lua.create_string(&encoder.out));
    if encoder.settings.keeps_buffer && encoder.out.capacity() <= 1 << 20 {
        codec.buffer.replace(encoder.out);
    }
    text
}

impl Encoder<'_> {
    fn run(&mut self, value: &Value) -> Result<()> {
        let mut open = Vec::new();
        self.value(value, &mut open)?;
        while let Some(last) = open.pop() {
            self.codec.state.steps(1)?;
            if self.out.len() > self.room {
                return Err(self.codec.state.stop_out_of_memory());
            }
            self.go_on(last, &mut open)?;
        }
        Ok(())
    }

    /// Writes the next element of a table, or its end.
    fn go_on(&mut self, last: Open, open: &mut Vec<Open>) -> Result<()> {
        match last {
            Open::Array { next, len, .. } if next > len => self.out.push(b']'),
            Open::Array { table, next, len } => {
                if next > 1 {
                    self.out.push(b',');
                }
                let value: Value = table.raw_get(next)?;
                open.push(Open::Array { table, next: next + 1, len });
                self.value(&value, open)?;
            }
            Open::Object { next: None, .. } => self.out.push(b'}'),
            Open::Object { table, next: Some((key, value)), is_first } => {
                self.key(&key, is_first)?;
                let next = self.next(&table, key)?;
                open.push(Open::Object { table, next, is_first: false });
                self.value(&value, open)?;
            }
            Open::Pairs { mut pairs, is_first } => match pairs.pop() {
                None => self.out.push(b'}'),
                Some((key, value)) => {
                    self.key(&key, is_first)?;
                    open.push(Open::Pairs { pairs, is_first: false });
                    self.value(&value, open)?;
                }
            },
        }
        Ok(())
    }

    fn value(&mut self, value: &Value, open: &mut Vec<Open>) -> Result<()> {
        match value {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Integer(n) => self.number(*n as f64, value)?,
            Value::Number(n) => self.number(*n, value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Table(table) => self.table(table, open)?,
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(pointer) if pointer.0.is_null() => self.out.extend_from_slice(b"null"),
            _ => return Err(self.refused(value, "type not supported")),
        }
        Ok(())
    }

    fn refused(&self, value: &Value, reason: &str) -> Error {
        self.given.fail(format!("Cannot serialise {}: {reason}", name_of(value)))
    }

    fn table(&mut self, table: &Table, open: &mut Vec<Open>) -> Result<()> {
        let depth = open.len() as i64 + 1;
        if depth > self.settings.encode_depth_max.min(DEPTH_MAX) {
            return Err(self.given.fail(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.shape(table, open.len())? {
            Shape::Array(len) => {
                self.out.push(b'[');
                open.push(Open::Array { table: table.clone(), next: 1, len });
            }
            Shape::Object(pairs) => {
                self.out.push(b'{');
                open.push(match pairs {
                    Some(mut pairs) => {
                        pairs.reverse();
                        Open::Pairs { pairs, is_first: true }
                    }
                    None => {
                        let next = self.next(table, Value::Nil)?;
                        Open::Object { table: table.clone(), next, is_first: true }
                    }
                });
            }
        }
        Ok(())
    }

    /// An array has whole numbers from 1 on as its keys, not too few of them; all else is an object. A key
    /// beyond 32 bits counts as the least of all numbers, so that a table of such keys is an object.
    fn shape(&self, table: &Table, depth: usize) -> Result<Shape> {
        let mut pairs = (depth < PAIRS_DEPTH_MAX).then(Vec::new);
        let (mut max, mut count, mut is_array) = (0_i64, 0_i64, true);
        table.for_each(|key: Value, value: Value| {
            count += 1;
            match key {
                Value::Integer(n) if n > i64::from(i32::MAX) => max = i64::from(i32::MIN),
                Value::Integer(n) if n >= 1 => max = max.max(n),
                Value::Number(n) if n >= 1.0 && n.floor() == n => max = i64::from(i32::MIN),
                _ => is_array = false,
            }
            if count as usize > PAIRS_MAX {
                pairs = None;
            } else if let Some(pairs) = &mut pairs {
                pairs.push((key, value));
            }
            Ok(())
        })?;
        self.codec.state.steps((count / 16) as u32)?;
        if !is_array || max <= 0 {
            return Ok(Shape::Object(pairs));
        }
        let Settings { sparse_ratio, sparse_safe, sparse_is_object, .. } = self.settings;
        let is_sparse = sparse_ratio > 0 && max > count.saturating_mul(sparse_ratio) && max > sparse_safe;
        match (is_sparse, sparse_is_object) {
            (false, _) => Ok(Shape::Array(max)),
            (true, true) => Ok(Shape::Object(pairs)),
            (true, false) => Err(self.refused(&Value::Table(table.clone()), "excessively sparse array")),
        }
    }

    fn next(&self, table: &Table, key: Value) -> Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = self.codec.next.call((table, key))?;
        Ok((!key.is_nil()).then_some((key, value)))
    }

    fn key(&mut self, key: &Value, is_first: bool) -> Result<()> {
        if !is_first {
            self.out.push(b',');
        }
        match key {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Integer(_) | Value::Number(_) => {
                self.out.push(b'"');
                let n = if let Value::Number(n) = key { *n } else { key.as_integer().unwrap_or(0) as f64 };
                self.number(n, key)?;
                self.out.push(b'"');
            }
            _ => return Err(self.refused(key, "table key must be a number or string")),
        }
        self.out.push(b':');
        Ok(())
    }

    fn number(&mut self, n: f64, value: &Value) -> Result<()> {
        if !n.is_finite() {
            let word: &[u8] = match self.settings.encode_invalid {
                Invalid::Refused => return Err(self.refused(value, "must not be NaN or Inf")),
                Invalid::Null => b"null",
                Invalid::Kept if n.is_nan() => b"nan",
                Invalid::Kept if n > 0.0 => b"inf",
                Invalid::Kept => b"-inf",
            };
            self.out.extend_from_slice(word);
            return Ok(());
        }
        append_general(&mut self.out, n, self.settings.precision as usize);
        Ok(())
    }

    /// A string in quotes. What needs no escape is copied in runs.
    fn text(&mut self, text: &[u8]) {
        self.out.push(b'"');
        let mut copied = 0;
        for (at, b) in text.iter().enumerate() {
            if !(*b < 0x20 || matches!(b, b'"' | b'\\' | b'/' | 0x7F)) {
                continue;
            }
            self.out.extend_from_slice(&text[copied..at]);
            copied = at + 1;
            match b {
                b'"' | b'\\' | b'/' => self.out.extend_from_slice(&[b'\\', *b]),
                0x08 => self.out.extend_from_slice(b"\\b"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                0x0C => self.out.extend_from_slice(b"\\f"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                _ => self.out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            }
        }
        self.out.extend_from_slice(&text[copied..]);
        self.out.push(b'"');
    }
}
