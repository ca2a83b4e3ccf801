//! `cmsgpack`: MessagePack (https://github.com/msgpack/msgpack/blob/master/spec.md), without its `bin` and
//! `ext` families. The crate `lua` reads it; here it is written.
use super::bounded::writer;
use crate::state::State;
use lua::{Form, Seen, Spot, Stack, Written};
use mlua::{Lua, Result, Table};
use std::rc::Rc;

/// Tables nested deeper than this are packed as nil.
const NESTING_MAX: usize = 16;
/// The script is to end.
struct Stopped;

/// Packs values behind each other.
struct Packer<'a> {
    state: &'a State,
    out: &'a mut Vec<u8>,
    room: usize,
}

impl Packer<'_> {
    /// Packs a value; a table is for the caller to pack, whose elements lie above it.
    fn value(&mut self, value: Seen<'_>, depth: usize) -> std::result::Result<Option<Spot>, Stopped> {
        self.state.steps(1).map_err(|_| Stopped)?;
        if self.out.len() > self.room {
            let _ = self.state.stop_out_of_memory();
            return Err(Stopped);
        }
        match value {
            Seen::String(text) => self.text(text),
            Seen::Boolean(is_true) => self.out.push(0xC2 + u8::from(is_true)),
            Seen::Number(n) if whole(n).is_some() => self.int(n as i64),
            Seen::Number(n) => self.number(n),
            Seen::Table(table) if depth < NESTING_MAX => return Ok(Some(table)),
            Seen::Table(_) | Seen::Nil | Seen::Null | Seen::Other(_) => self.out.push(0xC0),
        }
        Ok(None)
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

    /// Packs a table. Depth is at most 16, so that these calls into each other are few.
    fn table(
        &mut self,
        stack: &mut Stack<'_>,
        table: Spot,
        depth: usize,
    ) -> std::result::Result<(), Stopped> {
        let (count, is_array) = shape(stack, table);
        match (is_array, count) {
            (true, 0..16) => self.out.push(0x90 | count as u8),
            (true, 16..=0xFFFF) => self.header(0xDC, &(count as u16).to_be_bytes()),
            (true, _) => self.header(0xDD, &(count as u32).to_be_bytes()),
            (false, 0..16) => self.out.push(0x80 | count as u8),
            (false, 16..=0xFFFF) => self.header(0xDE, &(count as u16).to_be_bytes()),
            (false, _) => self.header(0xDF, &(count as u32).to_be_bytes()),
        }
        if is_array {
            for index in 1..=count as i64 {
                if let Some(inner) = self.value(stack.element(table, index), depth + 1)? {
                    self.table(stack, inner, depth + 1)?;
                }
            }
            return Ok(());
        }
        let pairs = stack.pairs(table);
        while let Some(key) = stack.next(pairs) {
            if let Some(inner) = self.value(key, depth + 1)? {
                self.table(stack, inner, depth + 1)?;
            }
            if let Some(inner) = self.value(stack.value(pairs), depth + 1)? {
                self.table(stack, inner, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// A number that is a whole one of 64 bits.
fn whole(n: f64) -> Option<i64> {
    const END: f64 = (1_u64 << 63) as f64;
    ((-END..END).contains(&n) && n.trunc() == n).then_some(n as i64)
}

/// How many keys a table has, and whether they are 1, 2, 3 and so on.
fn shape(stack: &mut Stack<'_>, table: Spot) -> (usize, bool) {
    let (mut count, mut max, mut is_array) = (0_usize, 0_i64, true);
    stack.visit_keys(table, &mut |key| {
        count += 1;
        match key {
            Seen::Number(n) if n > 0.0 && whole(n).is_some() => max = max.max(n as i64),
            _ => is_array = false,
        }
    });
    (count, is_array && max == count as i64)
}

fn pack(stack: &mut Stack<'_>, state: &State, room: usize, out: &mut Vec<u8>) -> Written {
    if stack.count() == 0 {
        return Written::BadArgument(0, c"MessagePack pack needs input.");
    }
    // The argument that is looked at, and what nests in it.
    if !stack.has_room_for(NESTING_MAX + 2) {
        out.extend_from_slice(b"stack overflow (in function mp_check)");
        return Written::Error;
    }
    let mut packer = Packer { state, out, room };
    for index in 1..=stack.count() {
        let packed = match packer.value(stack.argument(index), 0) {
            Ok(Some(table)) => packer.table(stack, table, 0),
            Ok(None) => Ok(()),
            Err(stopped) => Err(stopped),
        };
        if packed.is_err() {
            return Written::Stopped;
        }
    }
    Written::Text
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    let table = lua.create_table()?;
    table.raw_set("pack", writer(lua, state, pack)?)?;
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
