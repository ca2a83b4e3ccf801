//! Lua values as JSON. Tables wait on a list while their elements are written, so that how deep they nest is
//! no matter of the thread's stack.
use super::failure::{Done, Failure, written};
use super::number::append_general;
use super::{DEPTH_MAX, Invalid, Settings};
use crate::state::State;
use lua::{Pairs, Seen, Spot, Stack, Written};

/// The encoder at work.
struct Encoder<'a> {
    settings: Settings,
    state: &'a State,
    out: &'a mut Vec<u8>,
    room: usize,
}

/// A table whose elements are being written.
enum Open {
    Array { table: Spot, next: i64, len: i64 },
    Object { pairs: Pairs, is_first: bool },
}

pub(super) fn encode(
    stack: &mut Stack<'_>,
    settings: Settings,
    state: &State,
    (room, out): (usize, &mut Vec<u8>),
) -> Written {
    written((Encoder { settings, state, out, room }).run(stack), out)
}

impl Encoder<'_> {
    fn run(&mut self, stack: &mut Stack<'_>) -> Done {
        let mut open = Vec::new();
        let nested = self.value(stack.argument(1))?;
        self.open(stack, nested, &mut open)?;
        while let Some(last) = open.last_mut() {
            self.state.steps(1).map_err(|_| Failure::Stopped)?;
            if self.out.len() > self.room {
                let _ = self.state.stop_out_of_memory();
                return Err(Failure::Stopped);
            }
            match self.go_on(stack, last)? {
                Some(nested) => self.open(stack, nested, &mut open)?,
                None => drop(open.pop()),
            }
        }
        Ok(())
    }

    /// Writes the next element of a table, which may be a table to be opened; None at its end.
    fn go_on(&mut self, stack: &mut Stack<'_>, last: &mut Open) -> Done<Option<Option<Spot>>> {
        match last {
            Open::Array { next, len, .. } if *next > *len => {
                self.out.push(b']');
                Ok(None)
            }
            Open::Array { table, next, .. } => {
                if *next > 1 {
                    self.out.push(b',');
                }
                *next += 1;
                self.value(stack.element(*table, *next - 1)).map(Some)
            }
            Open::Object { pairs, is_first } => {
                let Some(key) = stack.next(*pairs) else {
                    self.out.push(b'}');
                    return Ok(None);
                };
                self.key(key, std::mem::take(is_first))?;
                self.value(stack.value(*pairs)).map(Some)
            }
        }
    }

    /// Writes a value; a table is returned, to be opened.
    fn value(&mut self, value: Seen<'_>) -> Done<Option<Spot>> {
        match value {
            Seen::String(text) => self.text(text),
            Seen::Number(n) => self.number(n)?,
            Seen::Boolean(true) => self.out.extend_from_slice(b"true"),
            Seen::Boolean(false) => self.out.extend_from_slice(b"false"),
            Seen::Table(table) => return Ok(Some(table)),
            Seen::Nil | Seen::Null => self.out.extend_from_slice(b"null"),
            Seen::Other(name) => return Err(refused(name, "type not supported")),
        }
        Ok(None)
    }

    /// Begins a table, if it is one.
    fn open(&mut self, stack: &mut Stack<'_>, table: Option<Spot>, open: &mut Vec<Open>) -> Done {
        let Some(table) = table else { return Ok(()) };
        let depth = open.len() as i64 + 1;
        if depth > self.settings.encode_depth_max.min(DEPTH_MAX) {
            return Err(Failure::Says(format!("Cannot serialise, excessive nesting ({depth})")));
        }
        open.push(match self.array_len(stack, table)? {
            Some(len) => {
                self.out.push(b'[');
                Open::Array { table, next: 1, len }
            }
            None => {
                self.out.push(b'{');
                Open::Object { pairs: stack.pairs(table), is_first: true }
            }
        });
        Ok(())
    }

    /// An array has whole numbers from 1 on as its keys, not too few of them; all else is an object, without
    /// a length. A key beyond 32 bits counts as the least of all numbers, so that a table of such keys is an
    /// object.
    fn array_len(&self, stack: &mut Stack<'_>, table: Spot) -> Done<Option<i64>> {
        let (mut max, mut count, mut is_array) = (0_i64, 0_i64, true);
        stack.visit_keys(table, &mut |key| {
            count += 1;
            match key {
                Seen::Number(n) if n >= 1.0 && n.floor() == n => {
                    max = if n > f64::from(i32::MAX) { i64::from(i32::MIN) } else { max.max(n as i64) };
                }
                _ => is_array = false,
            }
        });
        self.state.steps((count / 16) as u32).map_err(|_| Failure::Stopped)?;
        if !is_array || max <= 0 {
            return Ok(None);
        }
        let Settings { sparse_ratio, sparse_safe, sparse_is_object, .. } = self.settings;
        let is_sparse = sparse_ratio > 0 && max > count.saturating_mul(sparse_ratio) && max > sparse_safe;
        match (is_sparse, sparse_is_object) {
            (false, _) => Ok(Some(max)),
            (true, true) => Ok(None),
            (true, false) => Err(refused("table", "excessively sparse array")),
        }
    }

    fn key(&mut self, key: Seen<'_>, is_first: bool) -> Done {
        if !is_first {
            self.out.push(b',');
        }
        match key {
            Seen::String(text) => self.text(text),
            Seen::Number(n) => {
                self.out.push(b'"');
                self.number(n)?;
                self.out.push(b'"');
            }
            Seen::Boolean(_) => return Err(refused("boolean", NO_KEY)),
            Seen::Table(_) => return Err(refused("table", NO_KEY)),
            Seen::Nil => return Err(refused("nil", NO_KEY)),
            Seen::Null => return Err(refused("userdata", NO_KEY)),
            Seen::Other(name) => return Err(refused(name, NO_KEY)),
        }
        self.out.push(b':');
        Ok(())
    }

    fn number(&mut self, n: f64) -> Done {
        if !n.is_finite() {
            let word: &[u8] = match self.settings.encode_invalid {
                Invalid::Refused => return Err(refused("number", "must not be NaN or Inf")),
                Invalid::Null => b"null",
                Invalid::Kept if n.is_nan() => b"nan",
                Invalid::Kept if n > 0.0 => b"inf",
                Invalid::Kept => b"-inf",
            };
            self.out.extend_from_slice(word);
            return Ok(());
        }
        append_general(self.out, n, self.settings.precision as usize);
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
                _ => {
                    let [high, low] = [b >> 4, b & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]);
                    self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                }
            }
        }
        self.out.extend_from_slice(&text[copied..]);
        self.out.push(b'"');
    }
}

const NO_KEY: &str = "table key must be a number or string";

fn refused(name: &str, reason: &str) -> Failure {
    Failure::Says(format!("Cannot serialise {name}: {reason}"))
}
