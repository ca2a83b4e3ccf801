//! `string.find`, `match`, `gmatch`, `gsub` and `rep`, over the matcher of `pattern.rs`. What calls a
//! script's function, the loops of `gmatch` and `gsub`, is in `sandbox.lua`; here is one step of each.
//!
//! Each is there twice: as a quick function (`lua::quick`), which answers where strings and numbers are given
//! as they are meant, and behind it as one that takes all else and raises the errors.
//!
//! In Lua 5.1 a pattern ends at its first NUL.
use super::given::Given;
use super::pattern::{Capture, Fault, Matcher, is_plain};
use crate::raised::Raised;
use crate::state::State;
use lua::{Answer, Argument, Arguments, Findings, Found, Next, TEXT_BYTES_MAX, Wanted};
use mlua::{Function, Lua, MultiValue, Result, Table, Value, Variadic};
use std::rc::Rc;

/// What a search has come to.
type Searched<T> = std::result::Result<T, Fault>;

/// What all searches are given.
#[derive(Clone, Copy)]
struct Question<'a> {
    subject: &'a [u8],
    pattern: &'a [u8],
    /// From where on, as scripts count: from 1, or from the end where it is negative.
    start: i64,
    is_plain: bool,
}

/// A search. It leaves what it has found; its numbers are places.
type Body = fn(&State, &Question<'_>, &mut Vec<Found>) -> Searched<()>;

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    // How many functions stand between the slower one and the script, its quick one among them.
    let searches: [(&str, Body, usize); 4] =
        [("find", find, 1), ("match", match_, 1), ("gsub_next", gsub_next, 3), ("gmatch", gmatch, 1)];
    for (name, body, level) in searches {
        let shared = Rc::clone(state);
        let slow = move |lua: &Lua, values: Variadic<Value>| {
            slow_search(&Given::behind(lua, &values, level), &shared, body)
        };
        let (slow, shared) = (lua.create_function(slow)?, Rc::clone(state));
        let quick = move |arguments: Arguments<'_>, findings: &mut Findings| {
            quick_search(arguments, findings, &shared, body)
        };
        let function =
            if name == "gmatch" { lua::walker(lua, &slow, quick)? } else { lua::quick(lua, &slow, quick)? };
        rust.raw_set(name, function)?;
    }
    let shared = Rc::clone(state);
    let slow_gsub = move |lua: &Lua, values: Variadic<Value>| gsub(&Given::behind(lua, &values, 2), &shared);
    rust.raw_set("gsub", lua.create_function(slow_gsub)?)?;
    let shared = Rc::clone(state);
    let slow_rep = move |lua: &Lua, values: Variadic<Value>| rep(&Given::behind(lua, &values, 1), &shared);
    rust.raw_set("rep", lua::quick(lua, &lua.create_function(slow_rep)?, quick_rep)?)?;
    let shared = Rc::clone(state);
    let quickly_gsub =
        move |lua: &Lua, slow: Function| {
            let (of_text, of_each) = (Rc::clone(&shared), Rc::clone(&shared));
            let whole = move |arguments: Arguments<'_>, findings: &mut Findings| {
                quick_gsub(arguments, findings, &of_text)
            };
            let next = move |subject: &[u8], pattern: &[u8], wanted: Wanted, found: &mut Vec<Found>| {
                match Search::new(&of_each, subject, pattern).next(wanted, found) {
                    Ok(()) => Next::Given,
                    Err(Fault::Pattern(why)) => Next::Fault(why),
                    Err(Fault::Stopped) => Next::Stopped,
                }
            };
            lua::replacer(lua, &slow, whole, next)
        };
    rust.raw_set("quickly_gsub", lua.create_function(quickly_gsub)?)
}

fn quick_search(mut arguments: Arguments<'_>, findings: &mut Findings, state: &State, body: Body) -> Answer {
    let (subject, pattern) = (arguments.next(), arguments.next());
    let (Some(Argument::Bytes(subject)), Some(Argument::Bytes(pattern))) = (subject, pattern) else {
        return Answer::Unclear;
    };
    let Some(start) = arguments.next().map_or(Some(1), Argument::int) else { return Answer::Unclear };
    let question = Question { subject, pattern, start, is_plain: arguments.next_is_true() };
    answer(body(state, &question, &mut findings.values))
}

/// What is wrong with a pattern is told by the slower function.
fn answer(done: Searched<()>) -> Answer {
    match done {
        Ok(()) => Answer::Given,
        Err(Fault::Pattern(_)) => Answer::Unclear,
        Err(Fault::Stopped) => Answer::Stopped,
    }
}

fn slow_search(given: &Given<'_>, state: &State, body: Body) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let start = given.int_or(2, 1)?;
    let is_plain = !matches!(given.value(3), Value::Nil | Value::Boolean(false));
    let question = Question { subject: &subject, pattern: &pattern, start, is_plain };
    let mut found = Vec::new();
    body(state, &question, &mut found).map_err(|fault| raised(given, fault))?;
    let bytes: usize =
        found.iter().map(|found| if let Found::Part(_, part) = found { part.len() } else { 0 }).sum();
    let value = |found: Found| given.value_found(&subject, found);
    state.lifted(given.lua, bytes + 1024, || found.into_iter().map(value).collect())
}

fn raised(given: &Given<'_>, fault: Fault) -> mlua::Error {
    match fault {
        Fault::Pattern(message) => given.fail(message),
        Fault::Stopped => Raised::Stop.error(),
    }
}

fn string(lua: &Lua, bytes: &[u8]) -> Result<Value> {
    lua.create_string(bytes).map(Value::String)
}

/// A subject, and a pattern that may be tied to its start.
struct Search<'a> {
    state: &'a State,
    subject: &'a [u8],
    pattern: &'a [u8],
    is_anchored: bool,
}

impl<'a> Search<'a> {
    fn new(state: &'a State, subject: &'a [u8], pattern: &'a [u8]) -> Search<'a> {
        let pattern = until_nul(pattern);
        let anchored = pattern.strip_prefix(b"^");
        Search { state, subject, pattern: anchored.unwrap_or(pattern), is_anchored: anchored.is_some() }
    }

    /// The first match that begins at `start` or behind it: what `take` makes of its beginning, its end and
    /// its captures.
    fn first<R>(
        &self,
        start: usize,
        take: impl FnOnce(usize, usize, &[Capture]) -> Searched<R>,
    ) -> Searched<Option<R>> {
        let mut go_on = |n: u32| self.state.steps(n).is_ok();
        let mut matcher = Matcher::new(self.subject, self.pattern, &mut go_on);
        for from in start..=self.subject.len() {
            match matcher.match_at(from)? {
                Some(end) => return take(from, end, matcher.captures()).map(Some),
                None if self.is_anchored => return Ok(None),
                None => {}
            }
        }
        Ok(None)
    }
}

impl Search<'_> {
    /// The next match of a loop: its place and its captures, whole match first where there are none; nothing
    /// behind the last match.
    fn next(&self, wanted: Wanted, found: &mut Vec<Found>) -> Searched<()> {
        let is_there = self.first(wanted.from, |from, end, captures| {
            found.extend([place(from), Found::Number(end as f64)]);
            add_any(found, (from, end), &captures[..captures.len().min(wanted.captures_max)])
        });
        is_there.map(drop)
    }
}

fn until_nul(pattern: &[u8]) -> &[u8] {
    &pattern[..memchr::memchr(0, pattern).unwrap_or(pattern.len())]
}

const UNFINISHED: Fault = Fault::Pattern("unfinished capture");
/// The subject's place among the arguments.
const SUBJECT: i32 = 1;

/// A place in the subject, as scripts count.
fn place(at: usize) -> Found {
    Found::Number(at as f64 + 1.0)
}

/// Adds what was captured.
fn add(found: &mut Vec<Found>, captures: &[Capture]) -> Searched<()> {
    for capture in captures {
        found.push(match *capture {
            Capture::Part(start, len) => Found::Part(SUBJECT, start..start + len),
            Capture::Place(at) => place(at),
            Capture::Open(_) => return Err(UNFINISHED),
        });
    }
    Ok(())
}

/// The same, or the whole match where that is nothing.
fn add_any(found: &mut Vec<Found>, (from, end): (usize, usize), captures: &[Capture]) -> Searched<()> {
    if captures.is_empty() {
        found.push(Found::Part(SUBJECT, from..end));
    }
    add(found, captures)
}

impl Question<'_> {
    /// From where on it searches, counted from 0 and within the subject.
    fn from(&self) -> usize {
        let len = self.subject.len();
        match self.start {
            ..0 => len.saturating_sub(self.start.unsigned_abs() as usize),
            0 => 0,
            start => ((start - 1) as u64).min(len as u64) as usize,
        }
    }
}

fn find(state: &State, question: &Question<'_>, found: &mut Vec<Found>) -> Searched<()> {
    let Question { subject, pattern, .. } = *question;
    let from = question.from();
    if question.is_plain || is_plain(until_nul(pattern)) {
        state.steps((subject.len() / 64) as u32).map_err(|_| Fault::Stopped)?;
        match memchr::memmem::find(&subject[from..], pattern) {
            Some(at) => found.extend([place(from + at), Found::Number((from + at + pattern.len()) as f64)]),
            None => found.push(Found::Nil),
        }
        return Ok(());
    }
    let is_there = Search::new(state, subject, pattern).first(from, |from, end, captures| {
        found.extend([place(from), Found::Number(end as f64)]);
        add(found, captures)
    })?;
    if is_there.is_none() {
        found.push(Found::Nil);
    }
    Ok(())
}

fn match_(state: &State, question: &Question<'_>, found: &mut Vec<Found>) -> Searched<()> {
    let search = Search::new(state, question.subject, question.pattern);
    let is_there =
        search.first(question.from(), |from, end, captures| add_any(found, (from, end), captures))?;
    if is_there.is_none() {
        found.push(Found::Nil);
    }
    Ok(())
}

/// One step of `gmatch`, whose pattern is never tied to the start: the place to go on from, and the captures;
/// nothing behind the last match.
fn gmatch(state: &State, question: &Question<'_>, found: &mut Vec<Found>) -> Searched<()> {
    let Question { subject, pattern, start, .. } = *question;
    if start < 1 {
        return Ok(());
    }
    let search = Search { state, subject, pattern: until_nul(pattern), is_anchored: false };
    search.first(start as usize - 1, |from, end, captures| {
        found.push(place(if end == from { end + 1 } else { end }));
        add_any(found, (from, end), captures)
    })?;
    Ok(())
}

/// One step of `gsub` with a function or a table.
fn gsub_next(state: &State, question: &Question<'_>, found: &mut Vec<Found>) -> Searched<()> {
    let search = Search::new(state, question.subject, question.pattern);
    let from = (question.start as usize).saturating_sub(1);
    search.next(Wanted { from, captures_max: usize::MAX }, found)
}

/// `gsub` with a string.
fn quick_gsub(mut arguments: Arguments<'_>, findings: &mut Findings, state: &State) -> Answer {
    let given = [arguments.next(), arguments.next(), arguments.next()];
    let [Some(Argument::Bytes(subject)), Some(Argument::Bytes(pattern)), Some(Argument::Bytes(template))] =
        given
    else {
        return Answer::Unclear;
    };
    let count_max = arguments.next().map_or(Some(i64::MAX), Argument::int);
    let Some(count_max) = count_max.filter(|_| subject.len() <= TEXT_BYTES_MAX) else {
        return Answer::Unclear;
    };
    let search = Search::new(state, subject, pattern);
    match search.replaced(template, (count_max, TEXT_BYTES_MAX), &mut findings.text) {
        Ok(Some(count)) => {
            findings.values.extend([Found::Text, Found::Number(count as f64)]);
            Answer::Given
        }
        Ok(None) => Answer::Unclear,
        Err(fault) => answer(Err(fault)),
    }
}

/// `gsub` with what is no string: the result and the number of replacements where it is one after all. With a
/// function or a table: nil, and what `sandbox.lua` goes on with: subject, pattern, the greatest number,
/// whether it is tied to the start.
fn gsub(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (subject, pattern) = (given.string(0)?, given.string(1)?);
    let kind = given.value(2);
    let is_text = matches!(kind, Value::String(_) | Value::Integer(_) | Value::Number(_));
    if !is_text && !matches!(kind, Value::Function(_) | Value::Table(_)) {
        return Err(given.bad(2, "string/function/table expected"));
    }
    let count_max = if given.is_absent(3) { subject.len() as i64 + 1 } else { given.int32(3)? };
    let search = Search::new(state, &subject, &pattern);
    if !is_text {
        let is_anchored = Value::Boolean(search.is_anchored);
        let (subject, pattern) = (string(given.lua, &subject)?, string(given.lua, &pattern)?);
        let count_max = Value::Integer(count_max);
        return Ok(MultiValue::from_iter([Value::Nil, subject, pattern, count_max, is_anchored]));
    }
    let (template, room, mut out) = (given.string(2)?, state.spare_bytes(given.lua), Vec::new());
    let replaced = search.replaced(&template, (count_max, room), &mut out);
    let replaced = replaced.map_err(|fault| raised(given, fault))?;
    let count = replaced.ok_or_else(|| state.stop_out_of_memory())?;
    let out = state.lifted(given.lua, out.len() + 64, || string(given.lua, &out))?;
    Ok(MultiValue::from_iter([out, Value::Integer(count)]))
}

impl Search<'_> {
    /// Writes the subject with up to `count_max` matches replaced, and returns how many were; None where that
    /// would be longer than `room`.
    fn replaced(
        &self,
        template: &[u8],
        (count_max, room): (i64, usize),
        out: &mut Vec<u8>,
    ) -> Searched<Option<i64>> {
        let (mut count, mut copied, mut from) = (0, 0, 0);
        while count < count_max && from <= self.subject.len() {
            let found = self.first(from, |from, end, captures| {
                out.extend_from_slice(&self.subject[copied..from]);
                self.expand(template, out, (from, end), captures)?;
                Ok((from, end))
            })?;
            let Some((start, end)) = found else { break };
            if out.len() > room {
                return Ok(None);
            }
            count += 1;
            copied = end;
            from = if end > start { end } else { start + 1 };
            if self.is_anchored {
                break;
            }
        }
        out.extend_from_slice(&self.subject[copied..]);
        Ok((out.len() <= room).then_some(count))
    }

    /// Appends a replacement: `%1` is a capture, `%0` the match, `%` before anything else is that. One at the
    /// very end stands for the NUL behind a string of C.
    fn expand(
        &self,
        template: &[u8],
        out: &mut Vec<u8>,
        (from, end): (usize, usize),
        captures: &[Capture],
    ) -> Searched<()> {
        let mut rest = template;
        while let Some(at) = memchr::memchr(b'%', rest) {
            out.extend_from_slice(&rest[..at]);
            let escaped = rest.get(at + 1).copied().unwrap_or(0);
            rest = rest.get(at + 2..).unwrap_or_default();
            match escaped {
                b'0' => out.extend_from_slice(&self.subject[from..end]),
                b'1' if captures.is_empty() => out.extend_from_slice(&self.subject[from..end]),
                b'1'..=b'9' => match captures.get(usize::from(escaped - b'1')) {
                    Some(Capture::Part(start, len)) => {
                        out.extend_from_slice(&self.subject[*start..*start + *len]);
                    }
                    Some(Capture::Place(at)) => base::text::append_i64(out, *at as i64 + 1),
                    Some(Capture::Open(_)) => return Err(UNFINISHED),
                    None => return Err(Fault::Pattern("invalid capture index")),
                },
                other => out.push(other),
            }
        }
        out.extend_from_slice(rest);
        Ok(())
    }
}

/// `rep` of what is not long.
fn quick_rep(mut arguments: Arguments<'_>, findings: &mut Findings) -> Answer {
    let (text, count) = (arguments.next(), arguments.next().and_then(Argument::int));
    let (Some(Argument::Bytes(text)), Some(count)) = (text, count) else { return Answer::Unclear };
    let count = if text.is_empty() { 0 } else { usize::try_from(count).unwrap_or(0) };
    if text.len().saturating_mul(count) > TEXT_BYTES_MAX {
        return Answer::Unclear;
    }
    (0..count).for_each(|_| findings.text.extend_from_slice(text));
    findings.values.push(Found::Text);
    Answer::Given
}

fn rep(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let text = given.string(0)?;
    let count = usize::try_from(given.int32(1)?).unwrap_or(0);
    let len = text.len().checked_mul(count).ok_or_else(|| state.stop_out_of_memory())?;
    // The bytes are there twice while Lua copies them.
    state.check_room(given.lua, len.saturating_mul(2))?;
    let repeated = text.repeat(count * usize::from(!text.is_empty()));
    let value = state.lifted(given.lua, len + 64, || string(given.lua, &repeated))?;
    Ok(MultiValue::from_iter([value]))
}
