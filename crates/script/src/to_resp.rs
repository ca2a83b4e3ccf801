//! What a script returns, as a reply. The table in the crate `lua`, `reply.rs`, read from right to left,
//! and:
//!
//! * Numbers lose their fraction; those beyond 64 bits, and NaN, become the least one.
//! * An array ends at its first nil.
//! * True is 1 and false is null, unless the script has chosen RESP3.
//! * Fields are read past metatables, in this order: `err`, `ok`, `double`, `map`, `set`, `big_number`,
//!   `verbatim_string`. One of another type than it should have does not count.
use crate::error;
use crate::host;
use crate::state::State;
use lua::Returned;
use mlua::{Function, Lua, LuaString, Result, Table, Value};
use resp::{Deferred, Protocol, Reply};

/// The names of the fields that make a table more than an array, as strings that Lua has already.
pub(crate) struct Fields {
    err: LuaString,
    is_counted: LuaString,
    ok: LuaString,
    double: LuaString,
    map: LuaString,
    set: LuaString,
    big_number: LuaString,
    verbatim: LuaString,
    format: LuaString,
    string: LuaString,
    /// Lua's own, which knows nothing of read-only tables.
    next: Function,
}

impl Fields {
    pub(crate) fn new(lua: &Lua, next: Function) -> Result<Fields> {
        let name = |name: &str| lua.create_string(name);
        Ok(Fields {
            err: name("err")?,
            is_counted: name("ignore_error_stats_update")?,
            ok: name("ok")?,
            double: name("double")?,
            map: name("map")?,
            set: name("set")?,
            big_number: name("big_number")?,
            verbatim: name("verbatim_string")?,
            format: name("format")?,
            string: name("string")?,
            next,
        })
    }
}

/// The places on Lua's stack that Redis has for a reply. A nested table takes some of them, so this is how
/// deep tables may nest; one that holds itself ends here.
const PLACES: usize = 7996;

/// The tables and keys that wait hold handles of mlua, which has room for 8,000.
const HANDLES_MAX: usize = 7000;

/// Writes one reply.
pub(crate) struct Writer<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) state: &'a State,
    pub(crate) reply: &'a mut Reply,
}

/// A table whose elements are being written. They wait on a list rather than on the stack of the thread,
/// because scripts nest tables as deep as they like.
enum Open {
    Array { table: Table, count: i64, at: Deferred, places: usize },
    Pairs { pairs: Pairs, places: usize },
}

/// A map or set that is being written.
struct Pairs {
    table: Table,
    /// The pair that comes next.
    next: Option<(Value, Value)>,
    /// A map whose key has been written, and not its value.
    waiting: Option<Value>,
    is_map: bool,
    count: usize,
    at: Deferred,
}

impl Writer<'_> {
    /// Writes what a script has returned.
    pub(crate) fn write(&mut self, returned: Returned<'_>) -> Result<()> {
        match returned {
            Returned::Nil => self.reply.null(),
            Returned::Boolean(is_true) => self.boolean(is_true),
            Returned::Number(n) => self.reply.int(whole(n)),
            Returned::String(text) => self.reply.bulk(text),
            Returned::Other(value) => return self.write_value(value),
        }
        Ok(())
    }

    /// Writes a value, and what nests in it.
    fn write_value(&mut self, value: Value) -> Result<()> {
        let mut open = Vec::new();
        self.begin(value, 2, &mut open)?;
        while let Some(last) = open.pop() {
            self.state.steps(1)?;
            if self.reply.is_full() {
                break;
            }
            match last {
                Open::Array { table, count, at, places } => {
                    let value: Value = table.raw_get(count + 1)?;
                    if value.is_nil() {
                        self.reply.fill_array(at, count as usize);
                        continue;
                    }
                    open.push(Open::Array { table, count: count + 1, at, places });
                    self.begin(value, places + 1, &mut open)?;
                }
                Open::Pairs { pairs, places } => self.next_of_pairs(pairs, places, &mut open)?,
            }
        }
        Ok(())
    }

    /// Writes a value, or the beginning of a table whose elements follow.
    fn begin(&mut self, value: Value, places: usize, open: &mut Vec<Open>) -> Result<()> {
        if places > PLACES || self.handles(open) > HANDLES_MAX {
            self.reply.error(error::STACK_LIMIT);
            return Ok(());
        }
        match value {
            Value::String(text) => self.reply.bulk(&text.as_bytes()),
            Value::Integer(n) => self.reply.int(n),
            Value::Number(n) => self.reply.int(whole(n)),
            Value::Boolean(is_true) => self.boolean(is_true),
            Value::Table(table) => self.table(table, places, open)?,
            _ => self.reply.null(),
        }
        Ok(())
    }

    /// How many handles the waiting tables hold, at most.
    fn handles(&self, open: &[Open]) -> usize {
        // A table of pairs holds itself, the next pair, a value that waits, and a key in passing. What nests
        // in arrays alone is counted exactly, because it may nest deepest.
        match open.len() {
            0..1000 => 0,
            len => len + 5 * open.iter().filter(|open| matches!(open, Open::Pairs { .. })).count(),
        }
    }

    fn boolean(&mut self, is_true: bool) {
        match (self.state.protocol.get(), is_true) {
            (Protocol::Resp3, _) => self.reply.boolean(is_true),
            (Protocol::Resp2, true) => self.reply.int(1),
            (Protocol::Resp2, false) => self.reply.null(),
        }
    }

    fn table(&mut self, table: Table, places: usize, open: &mut Vec<Open>) -> Result<()> {
        let fields = self.fields;
        if let Value::String(text) = table.raw_get(&fields.err)? {
            let is_counted: Value = table.raw_get(&fields.is_counted)?;
            self.error(&text.as_bytes(), is_counted == Value::Boolean(true));
        } else if let Value::String(text) = table.raw_get(&fields.ok)? {
            self.status(b'+', &text.as_bytes());
        } else if let Some(n) = number(&table.raw_get(&fields.double)?) {
            self.double(n);
        } else if let Value::Table(map) = table.raw_get(&fields.map)? {
            self.pairs(map, true, places + 2, open)?;
        } else if let Value::Table(set) = table.raw_get(&fields.set)? {
            self.pairs(set, false, places + 2, open)?;
        } else if let Value::String(digits) = table.raw_get(&fields.big_number)? {
            self.big_number(&digits.as_bytes());
        } else if !self.verbatim(&table)? {
            let at = self.reply.deferred();
            open.push(Open::Array { table, count: 0, at, places });
        }
        Ok(())
    }

    /// An error ends at its first NUL, because Redis takes it as a string of C.
    fn error(&mut self, text: &[u8], is_counted: bool) {
        host::with(|host| host.returned_error(text, is_counted));
        self.status(b'-', text);
    }

    fn status(&mut self, mark: u8, text: &[u8]) {
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        let mut line = vec![mark];
        line.extend(text.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }));
        line.extend_from_slice(b"\r\n");
        self.reply.append(&line);
    }

    fn double(&mut self, n: f64) {
        self.reply.double(n);
    }

    fn big_number(&mut self, digits: &[u8]) {
        let text: Vec<u8> =
            digits.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }).collect();
        if self.reply.is_resp3() {
            self.status(b'(', &text);
        } else {
            self.reply.bulk(&text);
        }
    }

    /// Writes a verbatim string; false where the table is none.
    fn verbatim(&mut self, table: &Table) -> Result<bool> {
        let Value::Table(parts) = table.raw_get(&self.fields.verbatim)? else { return Ok(false) };
        let format: Value = parts.raw_get(&self.fields.format)?;
        let text: Value = parts.raw_get(&self.fields.string)?;
        let (Value::String(format), Value::String(text)) = (format, text) else { return Ok(false) };
        let text = text.as_bytes();
        if !self.reply.is_resp3() {
            self.reply.bulk(&text);
            return Ok(true);
        }
        let mut letters = [b' '; 3];
        letters.iter_mut().zip(format.as_bytes().iter()).for_each(|(to, from)| *to = *from);
        let header = format!("={}\r\n", text.len() + 4);
        self.reply.append(&[header.as_bytes(), &letters, b":", &text, b"\r\n"].concat());
        Ok(true)
    }

    fn pairs(&mut self, table: Table, is_map: bool, places: usize, open: &mut Vec<Open>) -> Result<()> {
        let at = self.reply.deferred();
        let next = self.next(&table, Value::Nil)?;
        open.push(Open::Pairs { pairs: Pairs { table, next, waiting: None, is_map, count: 0, at }, places });
        Ok(())
    }

    fn next(&self, table: &Table, key: Value) -> Result<Option<(Value, Value)>> {
        let (key, value): (Value, Value) = self.fields.next.call((table, key))?;
        Ok((!key.is_nil()).then_some((key, value)))
    }

    /// Writes the next key, or the value of the key written last, or the header when none is left.
    fn next_of_pairs(&mut self, mut pairs: Pairs, places: usize, open: &mut Vec<Open>) -> Result<()> {
        if let Some(value) = pairs.waiting.take() {
            open.push(Open::Pairs { pairs, places });
            return self.begin(value, places + 1, open);
        }
        let Some((key, value)) = pairs.next.take() else {
            match pairs.is_map {
                true => self.reply.fill_map(pairs.at, pairs.count),
                false => self.reply.fill_set(pairs.at, pairs.count),
            }
            return Ok(());
        };
        pairs.next = self.next(&pairs.table, key.clone())?;
        pairs.count += 1;
        let key_places = places + if pairs.is_map { 2 } else { 1 };
        pairs.waiting = pairs.is_map.then_some(value);
        open.push(Open::Pairs { pairs, places });
        self.begin(key, key_places, open)
    }
}

/// A number of Lua, which a string is not.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(n) => Some(*n as f64),
        Value::Number(n) => Some(*n),
        _ => None,
    }
}

/// A double as C's cast to 64 bits makes it on the processors that servers have: what does not fit becomes
/// the least number.
fn whole(n: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n);
    if fits { n as i64 } else { i64::MIN }
}
