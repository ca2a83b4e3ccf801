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
use lua::{Name, Pairs, Seen, Spot, Stack};
use mlua::{Lua, Result};
use resp::{Deferred, Protocol, Reply};

/// The names of the fields that make a table more than an array.
pub(crate) struct Fields {
    err: Name,
    is_counted: Name,
    ok: Name,
    double: Name,
    map: Name,
    set: Name,
    big_number: Name,
    verbatim: Name,
    format: Name,
    string: Name,
}

impl Fields {
    pub(crate) fn new(lua: &Lua) -> Result<Fields> {
        let name = |name: &str| Name::new(lua, name);
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
        })
    }
}

/// The places on Lua's stack that Redis has for a reply. A nested table takes some of them, so this is how
/// deep tables may nest; one that holds itself ends here.
const PLACES: usize = 7996;

/// Writes one reply.
pub(crate) struct Writer<'a> {
    pub(crate) fields: &'a Fields,
    pub(crate) state: &'a State,
    pub(crate) reply: &'a mut Reply,
}

/// A table whose elements are being written. They wait on a list rather than on the stack of the thread,
/// because scripts nest tables as deep as they like.
enum Open {
    Array {
        table: Spot,
        count: i64,
        at: Deferred,
        places: usize,
    },
    /// A map or set. In a map a value may be waiting whose key has been written.
    Pairs {
        pairs: Pairs,
        is_waiting: bool,
        is_map: bool,
        count: usize,
        at: Deferred,
        places: usize,
    },
}

impl Writer<'_> {
    /// Writes what a script has returned, the first value of the stack, and what nests in it.
    pub(crate) fn write(&mut self, stack: &mut Stack<'_>) -> Result<()> {
        let mut open = Vec::new();
        let nested = self.value(stack.first(), 2);
        self.table(stack, (nested, 2), &mut open);
        while let Some(last) = open.pop() {
            self.state.steps(1)?;
            if self.reply.is_full() {
                break;
            }
            match last {
                Open::Array { table, count, at, places } => match stack.element(table, count + 1) {
                    Seen::Nil => self.reply.fill_array(at, count as usize),
                    element => {
                        let nested = self.value(element, places + 1);
                        open.push(Open::Array { table, count: count + 1, at, places });
                        self.table(stack, (nested, places + 1), &mut open);
                    }
                },
                pairs => self.next_of_pairs(stack, pairs, &mut open),
            }
        }
        Ok(())
    }

    /// Writes a value, unless it is a table, which is to follow.
    #[inline]
    fn value(&mut self, value: Seen<'_>, places: usize) -> Option<Spot> {
        match value {
            _ if places > PLACES => self.reply.error(error::STACK_LIMIT),
            Seen::String(text) => self.reply.bulk(text),
            Seen::Number(n) => self.reply.int(whole(n)),
            Seen::Boolean(is_true) => self.boolean(is_true),
            Seen::Table(table) => return Some(table),
            Seen::Nil | Seen::Null | Seen::Other(_) => self.reply.null(),
        }
        None
    }

    fn boolean(&mut self, is_true: bool) {
        match (self.state.protocol.get(), is_true) {
            (Protocol::Resp3, _) => self.reply.boolean(is_true),
            (Protocol::Resp2, true) => self.reply.int(1),
            (Protocol::Resp2, false) => self.reply.null(),
        }
    }

    /// Writes a table, if there is one, or its beginning where elements follow.
    fn table(
        &mut self,
        stack: &mut Stack<'_>,
        (nested, places): (Option<Spot>, usize),
        open: &mut Vec<Open>,
    ) {
        let Some(table) = nested else { return };
        if !stack.has_room() {
            return self.reply.error(error::STACK_LIMIT);
        }
        let fields = self.fields;
        if matches!(stack.field(table, &fields.err), Seen::String(_)) {
            let is_counted = stack.field(table, &fields.is_counted) == Seen::Boolean(true);
            if let Seen::String(text) = stack.field(table, &fields.err) {
                self.error(text, is_counted);
            }
        } else if let Seen::String(text) = stack.field(table, &fields.ok) {
            self.status(b'+', text);
        } else if let Seen::Number(n) = stack.field(table, &fields.double) {
            self.reply.double(n);
        } else if let Seen::Table(map) = stack.field(table, &fields.map) {
            open.push(self.pairs(stack, map, true, places + 2));
        } else if let Seen::Table(set) = stack.field(table, &fields.set) {
            open.push(self.pairs(stack, set, false, places + 2));
        } else if let Seen::String(digits) = stack.field(table, &fields.big_number) {
            self.big_number(digits);
        } else if !self.verbatim(stack, table) {
            let at = self.reply.deferred();
            open.push(Open::Array { table, count: 0, at, places });
        }
    }

    /// An error ends at its first NUL, because Redis takes it as a string of C.
    fn error(&mut self, text: &[u8], is_counted: bool) {
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        host::with(|host| host.returned_error(text, is_counted));
        self.reply.error(text);
    }

    fn status(&mut self, mark: u8, text: &[u8]) {
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        let mut line = vec![mark];
        line.extend(text.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }));
        line.extend_from_slice(b"\r\n");
        self.reply.append(&line);
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
    fn verbatim(&mut self, stack: &mut Stack<'_>, table: Spot) -> bool {
        let Seen::Table(parts) = stack.field(table, &self.fields.verbatim) else { return false };
        let mut letters = [b' '; 3];
        let Seen::String(format) = stack.field(parts, &self.fields.format) else { return false };
        letters.iter_mut().zip(format).for_each(|(to, from)| *to = *from);
        let Seen::String(text) = stack.field(parts, &self.fields.string) else { return false };
        if !self.reply.is_resp3() {
            self.reply.bulk(text);
            return true;
        }
        let header = format!("={}\r\n", text.len() + 4);
        self.reply.append(&[header.as_bytes(), &letters, b":", text, b"\r\n"].concat());
        true
    }

    fn pairs(&mut self, stack: &mut Stack<'_>, table: Spot, is_map: bool, places: usize) -> Open {
        let (at, pairs) = (self.reply.deferred(), stack.pairs(table));
        Open::Pairs { pairs, is_waiting: false, is_map, count: 0, at, places }
    }

    /// Writes the next key, or the value of the key written last, or the header when none is left.
    fn next_of_pairs(&mut self, stack: &mut Stack<'_>, last: Open, open: &mut Vec<Open>) {
        let Open::Pairs { pairs, is_waiting, is_map, count, at, places } = last else { return };
        let (nested, inner_places) = if is_waiting {
            (self.value(stack.value(pairs), places + 1), places + 1)
        } else if let Some(key) = stack.next(pairs) {
            let inner_places = places + if is_map { 2 } else { 1 };
            (self.value(key, inner_places), inner_places)
        } else {
            return match is_map {
                true => self.reply.fill_map(at, count),
                false => self.reply.fill_set(at, count),
            };
        };
        let count = if is_waiting { count } else { count + 1 };
        open.push(Open::Pairs { pairs, is_waiting: is_map && !is_waiting, is_map, count, at, places });
        self.table(stack, (nested, inner_places), open);
    }
}

/// A double as C's cast to 64 bits makes it on the processors that servers have: what does not fit becomes
/// the least number.
fn whole(n: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&n);
    if fits { n as i64 } else { i64::MIN }
}
