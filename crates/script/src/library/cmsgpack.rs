//! `cmsgpack`: MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), without its `bin` and
//! `ext` families. The crate `lua` reads it; here it is written.
use super::given::Given;
use crate::state::State;
use lua::Form;
use mlua::{Lua, LuaString, Result, Table, Value, Variadic};
use std::rc::Rc;

/// Tables nested deeper than this are packed as nil.
const NESTING_MAX: usize = 16;
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

fn pack(given: &Given<'_>, state: &State) -> Result<LuaString> {
    if given.len() == 0 {
        return Err(given.fail("bad argument #0 to 'pack' (MessagePack pack needs input.)"));
    }
    let room = state.spare_bytes(given.lua);
    let mut packer = Packer { lua: given.lua, state, out: Vec::new(), room };
    for index in 0..given.len() {
        packer.value(given.value(index), 0)?;
    }
    packer.lua.create_string(&packer.out)
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    let table = lua.create_table()?;
    let shared = Rc::clone(state);
    let pack = move |lua: &Lua, values: Variadic<Value>| {
        // The packer looks at the room itself.
        shared.lifted(lua, 0, || pack(&Given::new(lua, &values), &shared))
    };
    table.raw_set("pack", lua.create_function(pack)?)?;
    for (name, form) in [("unpack", Form::All), ("unpack_one", Form::One), ("unpack_limit", Form::Limit)] {
        let shared = Rc::clone(state);
        table.raw_set(name, lua::unpacker(lua, form, move |steps| shared.steps(steps).is_ok())?)?;
    }
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    rust.raw_set("cmsgpack", table)
}
