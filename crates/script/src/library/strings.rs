//! `string.find`, `match`, `gmatch`, `gsub` and `rep`, over the matcher of `pattern.rs`. What calls a
//! script's function, the loops of `gmatch` and `gsub`, is in `sandbox.lua`; here is one step of each.
//!
//! In Lua 5.1 a pattern ends at its first NUL.
use super::given::Given;
use super::pattern::{Capture, Fault, Matcher, is_plain};
use crate::raised::Raised;
use crate::state::State;
use mlua::{Lua, MultiValue, Result, Table, Value, Variadic};
use std::rc::Rc;

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    type Body = fn(&Given<'_>, &State) -> Result<MultiValue>;
    let direct: [(&str, Body); 3] = [("find", find), ("match", match_), ("rep", rep)];
    for (name, body) in direct {
        let shared = Rc::clone(state);
        let function = move |lua: &Lua, values: Variadic<Value>| body(&Given::new(lua, &values), &shared);
        rust.raw_set(name, lua.create_function(function)?)?;
    }
    let behind: [(&str, Body); 4] = [
        ("gsub", gsub),
        ("gsub_next", gsub_next),
        ("gmatch_next", gmatch_next),
        ("two_strings", two_strings),
    ];
    for (name, body) in behind {
        let shared = Rc::clone(state);
        let function = move |lua: &Lua, values: Variadic<Value>| body(&Given::behind(lua, &values), &shared);
        rust.raw_set(name, lua.create_function(function)?)?;
    }
    Ok(())
}

/// A subject, and a pattern that may be tied to its start.
struct Search<'a> {
    given: &'a Given<'a>,
    state: &'a State,
    subject: &'a [u8],
    pattern: &'a [u8],
    is_anchored: bool,
}

impl<'a> Search<'a> {
    fn new(given: &'a Given<'a>, state: &'a State, subject: &'a [u8], pattern: &'a [u8]) -> Search<'a> {
        let pattern = until_nul(pattern);
        let anchored = pattern.strip_prefix(b"^");
        Search {
            given,
            state,
            subject,
            pattern: anchored.unwrap_or(pattern),
            is_anchored: anchored.is_some(),
        }
    }

    /// As `gmatch` takes a pattern: `^` is a character like others.
    fn unanchored(
        given: &'a Given<'a>,
        state: &'a State,
        subject: &'a [u8],
        pattern: &'a [u8],
    ) -> Search<'a> {
        Search { given, state, subject, pattern: until_nul(pattern), is_anchored: false }
    }

    /// The first match that begins at `start` or behind it: where it begins and ends, and what `take` makes
    /// of its captures.
    fn first<R>(
        &self,
        start: usize,
        take: impl FnOnce(usize, usize, &[Capture]) -> Result<R>,
    ) -> Result<Option<R>> {
        let mut go_on = |n: u32| self.state.steps(n).is_ok();
        let mut matcher = Matcher::new(self.subject, self.pattern, &mut go_on);
        for from in start..=self.subject.len() {
            match matcher.match_at(from) {
                Ok(Some(end)) => return take(from, end, matcher.captures()).map(Some),
                Ok(None) if self.is_anchored => return Ok(None),
                Ok(None) => {}
                Err(fault) => return Err(self.fault(fault)),
            }
        }
        Ok(None)
    }

    fn fault(&self, fault: Fault) -> mlua::Error {
        match fault {
            Fault::Pattern(message) => self.given.fail(message),
            Fault::Stopped => Raised::Stop.error(),
        }
    }

    /// A capture as a value.
    fn value(&self, capture: Capture) -> Result<Value> {
        match capture {
            Capture::Part(start, len) => string(self.given.lua, &self.subject[start..start + len]),
            Capture::Place(at) => Ok(Value::Integer(at as i64 + 1)),
            Capture::Open(_) => Err(self.given.fail("unfinished capture")),
        }
    }

    /// Adds the captures to `values`, or the whole match where there are none.
    fn push(&self, values: &mut MultiValue, from: usize, end: usize, captures: &[Capture]) -> Result<()> {
        let bytes = (end - from).saturating_mul(captures.len().max(1)) + 1024;
        self.state.lifted(self.given.lua, bytes, || {
            if captures.is_empty() {
                values.push_back(string(self.given.lua, &self.subject[from..end])?);
            }
            for capture in captures {
                values.push_back(self.value(*capture)?);
            }
            Ok(())
        })
    }
}

fn until_nul(pattern: &[u8]) -> &[u8] {
    &pattern[..memchr::memchr(0, pattern).unwrap_or(pattern.len())]
}

fn string(lua: &Lua, bytes: &[u8]) -> Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

/// A place counted from 1, or from the end where it is negative, as one counted from 0 within the subject.
fn start(given: &Given<'_>, index: usize, len: usize) -> Result<usize> {
    let place = given.int_or(index, 1)?;
    Ok(match place {
        ..0 => len.saturating_sub(place.unsigned_abs() as usize),
        0 => 0,
        _ => ((place - 1) as u64).min(len as u64) as usize,
    })
}

fn find(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let from = start(given, 2, subject.len())?;
    let wants_plain = !matches!(given.value(3), Value::Nil | Value::Boolean(false));
    if wants_plain || is_plain(until_nul(&pattern)) {
        state.steps((subject.len() / 64) as u32)?;
        let found = memchr::memmem::find(&subject[from..], &pattern);
        return Ok(match found {
            Some(at) => place(from + at, from + at + pattern.len()),
            None => MultiValue::from_iter([Value::Nil]),
        });
    }
    let search = Search::new(given, state, &subject, &pattern);
    let found = search.first(from, |from, end, captures| {
        let mut values = place(from, end);
        if !captures.is_empty() {
            search.push(&mut values, from, end, captures)?;
        }
        Ok(values)
    })?;
    Ok(found.unwrap_or_else(|| MultiValue::from_iter([Value::Nil])))
}

/// Where a match lies, as scripts count.
fn place(from: usize, end: usize) -> MultiValue {
    MultiValue::from_iter([Value::Integer(from as i64 + 1), Value::Integer(end as i64)])
}

fn match_(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let from = start(given, 2, subject.len())?;
    let search = Search::new(given, state, &subject, &pattern);
    let found = search.first(from, |from, end, captures| {
        let mut values = MultiValue::new();
        search.push(&mut values, from, end, captures)?;
        Ok(values)
    })?;
    Ok(found.unwrap_or_else(|| MultiValue::from_iter([Value::Nil])))
}

fn two_strings(given: &Given<'_>, _: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    Ok(MultiValue::from_iter([string(given.lua, &subject)?, string(given.lua, &pattern)?]))
}

/// One step of `gmatch`: the place to go on from, and the captures; nothing behind the last match.
fn gmatch_next(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    if given.is_absent(2) {
        return Ok(MultiValue::new());
    }
    let from = given.int(2)? as usize;
    let search = Search::unanchored(given, state, &subject, &pattern);
    let found = search.first(from, |from, end, captures| {
        let next = if end == from { end + 1 } else { end };
        let mut values = MultiValue::from_iter([Value::Integer(next as i64)]);
        search.push(&mut values, from, end, captures)?;
        Ok(values)
    })?;
    Ok(found.unwrap_or_default())
}

/// One step of `gsub` with a function or a table: the match's place and its captures, whole match first
/// where there are none; nothing behind the last match.
fn gsub_next(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let search = Search::new(given, state, &subject, &pattern);
    let found = search.first(given.int(2)? as usize - 1, |from, end, captures| {
        let mut values = place(from, end);
        search.push(&mut values, from, end, captures)?;
        Ok(values)
    })?;
    Ok(found.unwrap_or_default())
}

/// `gsub` with a string: the result and the number of replacements. With a function or a table: nil, and
/// what `sandbox.lua` goes on with: subject, pattern, the greatest number, whether it is tied to the start.
fn gsub(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let kind = given.value(2);
    let is_text = matches!(kind, Value::String(_) | Value::Integer(_) | Value::Number(_));
    if !is_text && !matches!(kind, Value::Function(_) | Value::Table(_)) {
        return Err(given.bad(2, "string/function/table expected"));
    }
    let count_max = given.int_or(3, subject.len() as i64 + 1)?;
    let search = Search::new(given, state, &subject, &pattern);
    if !is_text {
        let is_anchored = Value::Boolean(search.is_anchored);
        let subject = string(given.lua, &subject)?;
        let pattern = string(given.lua, &pattern)?;
        return Ok(MultiValue::from_iter([
            Value::Nil,
            subject,
            pattern,
            Value::Integer(count_max),
            is_anchored,
        ]));
    }
    let template = given.string(2)?;
    let (out, count) = replaced(&search, &template, count_max)?;
    state.check_room(given.lua, out.len())?;
    let out = state.lifted(given.lua, out.len() + 64, || string(given.lua, &out))?;
    Ok(MultiValue::from_iter([out, Value::Integer(count)]))
}

/// The subject with up to `count_max` matches replaced, and how many were.
fn replaced(search: &Search<'_>, template: &[u8], count_max: i64) -> Result<(Vec<u8>, i64)> {
    let (mut out, mut count, mut copied, mut from) = (Vec::new(), 0, 0, 0);
    let room = search.state.spare_bytes(search.given.lua);
    while count < count_max {
        let found = search.first(from, |from, end, captures| {
            out.extend_from_slice(&search.subject[copied..from]);
            expand(search, template, &mut out, (from, end), captures)?;
            Ok((from, end))
        })?;
        let Some((start, end)) = found else { break };
        if out.len() > room {
            return Err(search.state.stop_out_of_memory());
        }
        count += 1;
        copied = end;
        from = if end > start { end } else { start + 1 };
        if search.is_anchored || from > search.subject.len() {
            break;
        }
    }
    out.extend_from_slice(&search.subject[copied..]);
    Ok((out, count))
}

/// Appends a replacement: `%1` is a capture, `%0` the match, `%` before anything else is that. One at the
/// very end stands for the NUL behind a string of C.
fn expand(
    search: &Search<'_>,
    template: &[u8],
    out: &mut Vec<u8>,
    (from, end): (usize, usize),
    captures: &[Capture],
) -> Result<()> {
    let mut rest = template;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let escaped = rest.get(at + 1).copied().unwrap_or(0);
        rest = rest.get(at + 2..).unwrap_or_default();
        match escaped {
            b'0' => out.extend_from_slice(&search.subject[from..end]),
            b'1' if captures.is_empty() => out.extend_from_slice(&search.subject[from..end]),
            b'1'..=b'9' => match captures.get(usize::from(escaped - b'1')) {
                Some(Capture::Part(start, len)) => {
                    out.extend_from_slice(&search.subject[*start..*start + *len]);
                }
                Some(Capture::Place(at)) => base::text::append_i64(out, *at as i64 + 1),
                Some(Capture::Open(_)) => return Err(search.given.fail("unfinished capture")),
                None => return Err(search.given.fail("invalid capture index")),
            },
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn rep(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let text = given.string(0)?;
    let count = usize::try_from(given.int(1)?).unwrap_or(0);
    let len = text.len().checked_mul(count).ok_or_else(|| state.stop_out_of_memory())?;
    // The bytes are there twice while Lua copies them.
    state.check_room(given.lua, len.saturating_mul(2))?;
    let repeated = text.repeat(count * usize::from(!text.is_empty()));
    let value = state.lifted(given.lua, len + 64, || string(given.lua, &repeated))?;
    Ok(MultiValue::from_iter([value]))
}
