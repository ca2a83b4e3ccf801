//! `struct`: values as the bytes that a C structure has, and back. A format is a row of options:
//!
//! | option | meaning |
//! |---|---|
//! | `>` `<` | big or little endian from here on |
//! | `!n` | alignment to at most n bytes, a power of two; 8 without n |
//! | `b B h H i I l L T` | integers of 1, 2, 4, 8 and 8 bytes, signed and not; `in`, `In` of n up to 32 |
//! | `f d` | float, double |
//! | `x` | a byte of padding |
//! | `s` | a string up to a NUL |
//! | `cn` | n bytes; `c0` as many as the string has, or as the number before says |
//!
//! Lengths are announced by scripts, so every one is compared with the bytes that are there before it is
//! used (CVE-2018-11219, CVE-2020-14147).
use super::given::Given;
use crate::state::State;
use lua::{Answer, Argument, Arguments, Findings, Found, TEXT_BYTES_MAX};
use mlua::{Error, Lua, MultiValue, Result, Table, Value, Variadic};
use std::rc::Rc;

/// An integer has no more bytes than this.
const SIZE_MAX: usize = 32;
/// The greatest alignment that `!` alone asks for.
const ALIGN_MAX: usize = 8;

/// Where values come from, counted from 0, and errors go to: a script's arguments as they are, or those of a
/// quick function (`lua::quick`), for which an error is no more than a sign that it is not for it.
trait Source {
    fn number(&self, index: usize) -> Result<f64>;
    fn string(&self, index: usize, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;
    /// "bad argument", and any other error.
    fn bad(&self, index: usize, message: &[u8]) -> Error;
    fn fail(&self, message: &str) -> Error;
}

impl Source for Given<'_> {
    fn number(&self, index: usize) -> Result<f64> {
        // A missing one is nil, not "no value".
        match index < self.len() {
            true => Given::number(self, index),
            false => Err(Given::bad(self, index, "number expected, got nil")),
        }
    }

    fn string(&self, index: usize, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if index >= self.len() {
            return Err(Given::bad(self, index, "string expected, got nil"));
        }
        take(&Given::string(self, index)?)
    }

    fn bad(&self, index: usize, message: &[u8]) -> Error {
        Given::bad(self, index, message)
    }

    fn fail(&self, message: &str) -> Error {
        Given::fail(self, message)
    }
}

impl Source for Arguments<'_> {
    fn number(&self, index: usize) -> Result<f64> {
        match self.get(index) {
            Some(Argument::Number(number)) => Ok(number),
            _ => Err(unclear()),
        }
    }

    fn string(&self, index: usize, take: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        match self.get(index) {
            Some(Argument::Bytes(bytes)) => take(bytes),
            _ => Err(unclear()),
        }
    }

    fn bad(&self, _: usize, _: &[u8]) -> Error {
        unclear()
    }

    fn fail(&self, _: &str) -> Error {
        unclear()
    }
}

fn unclear() -> Error {
    Error::StackError
}

/// The walk through a format.
struct Format<'a> {
    source: &'a dyn Source,
    text: &'a [u8],
    at: usize,
    is_little: bool,
    align: usize,
    /// To unpack: how long the data is. No option begins behind its end.
    data_len: Option<usize>,
}

/// What comes next in a format.
enum Next {
    /// An option that takes or makes a value: its letter, its size, the padding before it.
    Value {
        letter: u8,
        size: usize,
        padding: usize,
    },
    End,
}

impl<'a> Format<'a> {
    fn new(source: &'a dyn Source, text: &'a [u8]) -> Format<'a> {
        let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
        Format { source, text, at: 0, is_little: cfg!(target_endian = "little"), align: 1, data_len: None }
    }

    /// The digits at the front of what is left; `default` where there are none.
    fn number(&mut self, default: usize) -> Result<usize> {
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let mut number = 0_i32;
        for digit in &self.text[self.at..self.at + digits] {
            let next = number.checked_mul(10).and_then(|n| n.checked_add(i32::from(digit - b'0')));
            number = next.ok_or_else(|| self.source.fail("integral size overflow"))?;
        }
        self.at += digits;
        Ok(number as usize)
    }

    fn size_of(&mut self, letter: u8) -> Result<usize> {
        Ok(match letter {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(1)?,
            b'i' | b'I' => {
                let size = self.number(4)?;
                if size > SIZE_MAX {
                    let message = format!("integral size {size} is larger than limit of {SIZE_MAX}");
                    return Err(self.source.fail(&message));
                }
                size
            }
            _ => 0,
        })
    }

    /// The next option that has a value, at `total` bytes behind the beginning.
    fn next(&mut self, total: usize) -> Result<Next> {
        while let Some(&letter) = self.text.get(self.at) {
            self.at += 1;
            let size = self.size_of(letter)?;
            if self.data_len.is_some_and(|len| total > len) {
                return Err(self.source.bad(1, b"data string too short"));
            }
            match letter {
                b' ' => {}
                b'>' => self.is_little = false,
                b'<' => self.is_little = true,
                b'!' => {
                    let align = self.number(ALIGN_MAX)?;
                    if !align.is_power_of_two() {
                        let message = format!("alignment {align} is not a power of 2");
                        return Err(self.source.fail(&message));
                    }
                    self.align = align;
                }
                _ => return Ok(Next::Value { letter, size, padding: self.padding(letter, size, total) }),
            }
        }
        Ok(Next::End)
    }

    /// How many bytes lie between `total` and where an option of that size may begin.
    fn padding(&self, letter: u8, size: usize, total: usize) -> usize {
        let align = size.min(self.align);
        if size == 0 || letter == b'c' || align <= 1 {
            return 0;
        }
        // Sizes like 3 take the alignment as a mask, as the C library does.
        let over = total & (align - 1);
        align.wrapping_sub(over) & (align - 1)
    }

    fn unknown(&self, letter: u8) -> mlua::Error {
        self.source.bad(0, &[b"invalid format option '", &[letter][..], b"'"].concat())
    }

    /// The lowest bytes of an integer, in the order of the format.
    fn put_int(&self, out: &mut Vec<u8>, value: u64, size: usize) {
        let byte = |index: usize| if index < 8 { (value >> (8 * index)) as u8 } else { 0 };
        match self.is_little {
            true => out.extend((0..size).map(byte)),
            false => out.extend((0..size).rev().map(byte)),
        }
    }

    fn int_of(&self, bytes: &[u8], is_signed: bool) -> f64 {
        let low = |index: usize| match self.is_little {
            true => bytes[index],
            false => bytes[bytes.len() - 1 - index],
        };
        let kept = bytes.len().min(8);
        let value = (0..kept).fold(0_u64, |value, index| value | u64::from(low(index)) << (8 * index));
        if !is_signed {
            return value as f64;
        }
        if bytes.is_empty() {
            return 0.0;
        }
        // From the sign's bit on. Of more than eight bytes that is counted modulo 64, as processors do.
        let sign = u64::MAX << ((8 * bytes.len() - 1) % 64);
        (if value & sign == 0 { value } else { value | sign }) as i64 as f64
    }
}

/// A number as the integer that C's casts make of it.
fn to_bits(n: f64) -> u64 {
    match n {
        _ if n.is_nan() => 1 << 63,
        _ if n < 0.0 => n as i64 as u64,
        _ => n as u64 * u64::from(n < 18_446_744_073_709_551_616.0),
    }
}

/// Writes the values behind the format, at most about `room` bytes of them; false where they are more.
fn pack_into(source: &dyn Source, text: &[u8], room: usize, out: &mut Vec<u8>) -> Result<bool> {
    let mut format = Format::new(source, text);
    let (mut index, mut has_room) = (1, true);
    while let Next::Value { letter, size, padding } = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        match letter {
            b'x' => out.push(0),
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                format.put_int(out, to_bits(source.number(index)?), size);
            }
            b'f' => format.put_int(out, u64::from((source.number(index)? as f32).to_bits()), 4),
            b'd' => format.put_int(out, source.number(index)?.to_bits(), 8),
            b'c' | b's' => source.string(index, &mut |value| {
                let len = if letter == b's' || size == 0 { value.len() } else { size };
                // The C library has counted the string already.
                let value = value.get(..len).ok_or_else(|| source.bad(index + 1, b"string too short"))?;
                has_room = value.len() <= room.saturating_sub(out.len());
                if has_room {
                    out.extend_from_slice(value);
                    out.extend((letter == b's').then_some(0));
                }
                Ok(())
            })?,
            _ => return Err(format.unknown(letter)),
        }
        index += usize::from(letter != b'x');
        if !has_room || out.len() > room {
            return Ok(false);
        }
    }
    Ok(true)
}

fn pack(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let (text, mut out) = (given.string(0)?, Vec::new());
    if !pack_into(given, &text, state.spare_bytes(given.lua), &mut out)? {
        return Err(state.stop_out_of_memory());
    }
    let packed = given.lua.create_string(&out)?;
    Ok(MultiValue::from_iter([Value::String(packed)]))
}

/// Of few bytes.
fn quick_pack(arguments: Arguments<'_>, findings: &mut Findings) -> Answer {
    let Some(Argument::Bytes(text)) = arguments.get(0) else { return Answer::Unclear };
    findings.values.push(Found::Text);
    answer(pack_into(&arguments, text, TEXT_BYTES_MAX, &mut findings.text))
}

/// What is not done here is left to the slower function.
fn answer(is_done: Result<bool>) -> Answer {
    if is_done.unwrap_or(false) { Answer::Given } else { Answer::Unclear }
}

/// Adds the values that the data has from `at` on, and the place behind them.
fn unpack_into(
    source: &dyn Source,
    (text, data): (&[u8], &[u8]),
    mut at: usize,
    values: &mut Vec<Found>,
) -> Result<bool> {
    let mut format = Format::new(source, text);
    format.data_len = Some(data.len());
    // The number before a `c0`.
    let mut announced: Option<f64> = None;
    while let Next::Value { letter, mut size, padding } = format.next(at)? {
        let short = || source.bad(1, b"data string too short");
        at = at.checked_add(padding).filter(|at| *at <= data.len()).ok_or_else(short)?;
        let rest = &data[at..];
        if size > rest.len() {
            return Err(short());
        }
        if values.len() >= 7000 {
            return Err(source.fail("stack overflow (too many results)"));
        }
        match letter {
            b'x' => {}
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                push_number(
                    values,
                    &mut announced,
                    format.int_of(&rest[..size], letter.is_ascii_lowercase()),
                );
            }
            b'f' => {
                let n = f32::from_bits(bits_of(&format, &rest[..4]) as u32);
                push_number(values, &mut announced, f64::from(n));
            }
            b'd' => push_number(values, &mut announced, f64::from_bits(bits_of(&format, &rest[..8]))),
            b'c' => {
                if size == 0 {
                    let len = announced.ok_or_else(|| source.fail("format 'c0' needs a previous size"))?;
                    values.pop();
                    size = len as usize;
                    if len < 0.0 || size > rest.len() {
                        return Err(short());
                    }
                }
                values.push(Found::Part(DATA, at..at + size));
                announced = None;
            }
            b's' => {
                let end = memchr::memchr(0, rest).ok_or_else(|| source.fail("unfinished string in data"))?;
                values.push(Found::Part(DATA, at..at + end));
                announced = None;
                size = end + 1;
            }
            _ => return Err(format.unknown(letter)),
        }
        at += size;
    }
    // As C's `int` has it.
    values.push(Found::Number((at as i64).wrapping_add(1) as f64));
    Ok(true)
}

/// The data's place among the arguments of `unpack`.
const DATA: i32 = 2;

fn unpack(given: &Given<'_>, _: &State) -> Result<MultiValue> {
    let (text, data) = (given.string(0)?, given.string(1)?);
    let offset = given.int_or(2, 1)?;
    if offset == 0 {
        return Err(given.bad(2, "offset must be 1 or greater"));
    }
    let mut values = Vec::new();
    unpack_into(given, (&text, &data), offset.wrapping_sub(1) as usize, &mut values)?;
    values.into_iter().map(|value| given.value_found(&data, value)).collect()
}

fn quick_unpack(arguments: Arguments<'_>, findings: &mut Findings) -> Answer {
    let given = (arguments.get(0), arguments.get(1), arguments.get(2));
    let (Some(Argument::Bytes(text)), Some(Argument::Bytes(data)), None) = given else {
        return Answer::Unclear;
    };
    answer(unpack_into(&arguments, (text, data), 0, &mut findings.values))
}

fn push_number(values: &mut Vec<Found>, announced: &mut Option<f64>, n: f64) {
    values.push(Found::Number(n));
    *announced = Some(n);
}

fn bits_of(format: &Format<'_>, bytes: &[u8]) -> u64 {
    let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    match format.is_little {
        true => bytes.iter().rev().fold(0, fold),
        false => bytes.iter().fold(0, fold),
    }
}

fn size(given: &Given<'_>, _: &State) -> Result<MultiValue> {
    let text = given.string(0)?;
    let mut format = Format::new(given, &text);
    let mut total = 0_usize;
    while let Next::Value { letter, size, padding } = format.next(total)? {
        match letter {
            b's' => return Err(given.bad(0, "option 's' has no fixed size")),
            b'c' if size == 0 => return Err(given.bad(0, "option 'c0' has no fixed size")),
            // The C library takes letters that it does not know for options without a size here.
            _ if !letter.is_ascii_alphanumeric() => return Err(format.unknown(letter)),
            _ => total = total.saturating_add(padding).saturating_add(size),
        }
    }
    Ok(MultiValue::from_iter([Value::Number(total as f64)]))
}

pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    type Slow = fn(&Given<'_>, &State) -> Result<MultiValue>;
    type Quick = fn(Arguments<'_>, &mut Findings) -> Answer;
    let table = lua.create_table()?;
    // `size` is for those who write a script, not for those who run it.
    let functions: [(&str, Slow, Option<Quick>); 3] =
        [("pack", pack, Some(quick_pack)), ("unpack", unpack, Some(quick_unpack)), ("size", size, None)];
    for (name, slow, quick) in functions {
        let (shared, level) = (Rc::clone(state), usize::from(quick.is_some()));
        let function =
            move |lua: &Lua, values: Variadic<Value>| slow(&Given::behind(lua, &values, level), &shared);
        let slow = lua.create_function(function)?;
        table.raw_set(name, quick.map_or(Ok(slow.clone()), |quick| lua::quick(lua, &slow, quick))?)?;
    }
    rust.raw_set("struct", table)
}
