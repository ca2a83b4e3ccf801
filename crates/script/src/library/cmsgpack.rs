//! `cmsgpack`: MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), without its `bin` and
//! `ext` families, whose bytes are refused.
//!
//! Lengths in the input are announced by who wrote it, so tables and strings grow by what is there, not by
//! what was announced (CVE-2018-11218, CVE-2022-24834).
use super::given::Given;
use crate::state::State;
use mlua::{Error, Lua, MultiValue, Result, Table, Value, Variadic};
use std::rc::Rc;

/// Tables nested deeper than this are packed as nil.
const NESTING_MAX: usize = 16;
/// Tables in the input nest no deeper than this.
const DEPTH_MAX: usize = 1000;
/// How many values one call gives back.
const RESULTS_MAX: usize = 7900;

const BAD_DATA: &str = "Bad data format in input.";
const MISSING_BYTES: &str = "Missing bytes in input.";

/// Packs values behind each other.
struct Packer<'a> {
    lua: &'a Lua,
    state: &'a State,
    out: Vec<u8>,
    room: usize,
}

impl Packer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        self.state.steps(1)?;
        if self.out.len() > self.room {
            return Err(self.state.stop_out_of_memory());
        }
        match value {
            Value::String(text) => self.text(&text.as_bytes()),
            Value::Boolean(is_true) => self.out.push(0xC2 + u8::from(*is_true)),
            Value::Integer(n) => self.int(*n),
            Value::Number(n) => self.number(*n),
            Value::Table(_) if depth == NESTING_MAX => self.out.push(0xC0),
            Value::Table(table) => self.table(table, depth)?,
            _ => self.out.push(0xC0),
        }
        Ok(())
    }

    /// A header of a mark and a big-endian length.
    fn header(&mut self, mark: u8, len: &[u8]) {
        self.out.push(mark);
        self.out.extend_from_slice(len);
    }

    fn text(&mut self, text: &[u8]) {
        match text.len() {
            len @ 0..32 => self.out.push(0xA0 | len as u8),
            len @ 32..=0xFF => self.header(0xD9, &[len as u8]),
            len @ 0x100..=0xFFFF => self.header(0xDA, &(len as u16).to_be_bytes()),
            len => self.header(0xDB, &(len as u32).to_be_bytes()),
        }
        self.out.extend_from_slice(text);
    }

    fn int(&mut self, n: i64) {
        match n {
            -32..128 => self.out.push(n as u8),
            128..=0xFF => self.header(0xCC, &[n as u8]),
            0x100..=0xFFFF => self.header(0xCD, &(n as u16).to_be_bytes()),
            0x1_0000..=0xFFFF_FFFF => self.header(0xCE, &(n as u32).to_be_bytes()),
            0x1_0000_0000.. => self.header(0xCF, &n.to_be_bytes()),
            -0x80..-32 => self.header(0xD0, &[n as u8]),
            -0x8000..-0x80 => self.header(0xD1, &(n as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => self.header(0xD2, &(n as i32).to_be_bytes()),
            _ => self.header(0xD3, &n.to_be_bytes()),
        }
    }

    /// A number that is no integer of 64 bits: four bytes where they are enough.
    fn number(&mut self, n: f64) {
        if n == 0.0 {
            self.out.push(0);
        } else if f64::from(n as f32) == n {
            self.header(0xCA, &(n as f32).to_bits().to_be_bytes());
        } else {
            self.header(0xCB, &n.to_bits().to_be_bytes());
        }
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<()> {
        match array_len(table)? {
            Ok(len) => {
                match len {
                    0..16 => self.out.push(0x90 | len as u8),
                    16..=0xFFFF => self.header(0xDC, &(len as u16).to_be_bytes()),
                    _ => self.header(0xDD, &(len as u32).to_be_bytes()),
                }
                for index in 1..=len {
                    let value: Value = table.raw_get(index)?;
                    self.value(&value, depth + 1)?;
                }
                Ok(())
            }
            Err(pairs) => {
                match pairs {
                    0..16 => self.out.push(0x80 | pairs as u8),
                    16..=0xFFFF => self.header(0xDE, &(pairs as u16).to_be_bytes()),
                    _ => self.header(0xDF, &(pairs as u32).to_be_bytes()),
                }
                // Depth is at most 16, so that these calls into each other are few.
                table.for_each(|key: Value, value: Value| {
                    self.value(&key, depth + 1)?;
                    self.value(&value, depth + 1)
                })
            }
        }
    }
}

/// The length of a table whose keys are 1, 2, 3 and so on; else how many pairs it has.
fn array_len(table: &Table) -> Result<std::result::Result<usize, usize>> {
    let (mut count, mut max, mut is_array) = (0_usize, 0_i64, true);
    table.for_each(|key: Value, _: Value| {
        count += 1;
        match key {
            Value::Integer(n) if n > 0 => max = max.max(n),
            _ => is_array = false,
        }
        Ok(())
    })?;
    Ok(if is_array && max == count as i64 { Ok(count) } else { Err(count) })
}

fn pack(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    if given.len() == 0 {
        return Err(given.fail("bad argument #0 to 'pack' (MessagePack pack needs input.)"));
    }
    let room = state.spare_bytes(given.lua);
    let mut packer = Packer { lua: given.lua, state, out: Vec::new(), room };
    for index in 0..given.len() {
        packer.value(given.value(index), 0)?;
    }
    let packed = packer.lua.create_string(&packer.out)?;
    Ok(MultiValue::from_iter([Value::String(packed)]))
}

/// Reads values behind each other.
struct Unpacker<'a> {
    given: &'a Given<'a>,
    state: &'a State,
    bytes: &'a [u8],
    at: usize,
}

/// A table that is being read: an array, or a map whose key may be there already.
struct Open {
    table: Table,
    left: usize,
    next_index: Option<i64>,
    key: Option<Value>,
}

/// A value, or the beginning of a table of so many elements.
enum Token {
    Value(Value),
    Array(usize),
    Map(usize),
}

impl<'a> Unpacker<'a> {
    fn fail(&self, message: &str) -> Error {
        self.given.fail(message)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let bytes = self.bytes[self.at..].get(..len).ok_or_else(|| self.fail(MISSING_BYTES))?;
        self.at += len;
        Ok(bytes)
    }

    /// A big-endian number of up to eight bytes.
    fn uint(&mut self, len: usize) -> Result<u64> {
        Ok(self.take(len)?.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn int(&mut self, len: usize) -> Result<Value> {
        let unused = 64 - 8 * len as u32;
        Ok(Value::Integer((self.uint(len)? << unused) as i64 >> unused))
    }

    fn text(&mut self, len: usize) -> Result<Token> {
        let text = self.take(len)?;
        Ok(Token::Value(Value::String(self.given.lua.create_string(text)?)))
    }

    fn len(&mut self, bytes: usize) -> Result<usize> {
        Ok(self.uint(bytes)? as usize)
    }

    fn token(&mut self) -> Result<Token> {
        let mark = self.take(1)?[0];
        Ok(Token::Value(match mark {
            0..0x80 => Value::Integer(i64::from(mark)),
            0x80..0x90 => return Ok(Token::Map(usize::from(mark & 15))),
            0x90..0xA0 => return Ok(Token::Array(usize::from(mark & 15))),
            0xA0..0xC0 => return self.text(usize::from(mark & 31)),
            0xC0 => Value::Nil,
            0xC2 => Value::Boolean(false),
            0xC3 => Value::Boolean(true),
            0xCA => Value::Number(f64::from(f32::from_bits(self.uint(4)? as u32))),
            0xCB => Value::Number(f64::from_bits(self.uint(8)?)),
            // Those beyond 63 bits come out negative, as in the C library.
            0xCC..=0xCF => Value::Integer(self.uint(1 << (mark - 0xCC))? as i64),
            0xD0..=0xD3 => self.int(1 << (mark - 0xD0))?,
            0xD9..=0xDB => {
                let len = self.len(1 << (mark - 0xD9))?;
                return self.text(len);
            }
            0xDC => return Ok(Token::Array(self.len(2)?)),
            0xDD => return Ok(Token::Array(self.len(4)?)),
            0xDE => return Ok(Token::Map(self.len(2)?)),
            0xDF => return Ok(Token::Map(self.len(4)?)),
            0xE0.. => Value::Integer(i64::from(mark as i8)),
            _ => return Err(self.fail(BAD_DATA)),
        }))
    }

    /// Reads one value, whatever its depth, without calling itself.
    fn value(&mut self) -> Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.state.steps(1)?;
            let mut done = match self.token()? {
                Token::Value(value) => Some(value),
                Token::Array(left) => self.open(&mut open, left, Some(1))?,
                Token::Map(left) => self.open(&mut open, left.saturating_mul(2), None)?,
            };
            while let Some(value) = done.take() {
                let Some(last) = open.last_mut() else { return Ok(value) };
                self.put(last, value)?;
                if last.left == 0 {
                    done = open.pop().map(|last| Value::Table(last.table));
                }
            }
        }
    }

    /// Begins a table; gives it back at once where it is empty.
    fn open(&mut self, open: &mut Vec<Open>, left: usize, next_index: Option<i64>) -> Result<Option<Value>> {
        let room = left.min(self.bytes.len() - self.at);
        let table = match next_index {
            Some(_) => self.given.lua.create_table_with_capacity(room, 0)?,
            None => self.given.lua.create_table_with_capacity(0, room / 2)?,
        };
        if left == 0 {
            return Ok(Some(Value::Table(table)));
        }
        if open.len() == DEPTH_MAX {
            return Err(self.fail("stack overflow (in function mp_decode_to_lua_array)"));
        }
        open.push(Open { table, left, next_index, key: None });
        Ok(None)
    }

    fn put(&self, open: &mut Open, value: Value) -> Result<()> {
        open.left -= 1;
        if let Some(index) = &mut open.next_index {
            open.table.raw_set(*index, value)?;
            *index += 1;
            return Ok(());
        }
        match open.key.take() {
            None => open.key = Some(value),
            Some(Value::Nil) => return Err(crate::raised::Raised::bare("table index is nil")),
            Some(Value::Number(n)) if n.is_nan() => {
                return Err(crate::raised::Raised::bare("table index is NaN"));
            }
            Some(key) => open.table.raw_set(key, value)?,
        }
        Ok(())
    }
}

/// Reads up to `limit` values (0: all) from `offset` on. Where there is a limit, the place to go on from
/// stands before them, or -1 behind the last.
fn unpack_from(given: &Given<'_>, state: &State, limit: i64, offset: i64) -> Result<MultiValue> {
    let bytes = given.string(0)?;
    let (len, limit, offset) = (bytes.len(), limit as i32, offset as i32);
    if offset < 0 || limit < 0 {
        let message = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(given.fail(message));
    }
    if offset as usize > len {
        return Err(given.fail(format!("Start offset {offset} greater than input length {len}.")));
    }
    let mut unpacker = Unpacker { given, state, bytes: &bytes, at: offset as usize };
    let mut values = MultiValue::new();
    while unpacker.at < len && (limit == 0 || values.len() < limit as usize) {
        if values.len() >= RESULTS_MAX {
            let advice = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(given.fail(format!("stack overflow ({advice})")));
        }
        values.push_back(unpacker.value()?);
    }
    if limit > 0 {
        let next = if unpacker.at < len { unpacker.at as i64 } else { -1 };
        values.push_front(Value::Integer(next));
    }
    Ok(values)
}

fn unpack(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    unpack_from(given, state, 0, 0)
}

fn unpack_one(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let offset = given.int_or(1, 0)?;
    unpack_from(given, state, 1, offset)
}

fn unpack_limit(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (limit, offset) = (given.int(1)?, given.int_or(2, 0)?);
    unpack_from(given, state, limit, offset)
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    type Body = fn(&Given<'_>, &State) -> Result<MultiValue>;
    let table = lua.create_table()?;
    let functions: [(&str, Body); 4] =
        [("pack", pack), ("unpack", unpack), ("unpack_one", unpack_one), ("unpack_limit", unpack_limit)];
    for (name, body) in functions {
        let shared = Rc::clone(state);
        let function = move |lua: &Lua, values: Variadic<Value>| {
            let given = Given::new(lua, &values);
            // A byte may become a table of a hundred; strings are as long as they are.
            let len = if given.value(0).is_string() { given.string(0)?.len() } else { 0 };
            shared.lifted(lua, len.saturating_mul(100), || body(&given, &shared))
        };
        table.raw_set(name, lua.create_function(function)?)?;
    }
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    rust.raw_set("cmsgpack", table)
}
