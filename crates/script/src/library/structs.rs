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
use mlua::{Lua, MultiValue, Result, Table, Value, Variadic};
use std::rc::Rc;

/// An integer has no more bytes than this.
const SIZE_MAX: usize = 32;
/// The greatest alignment that `!` alone asks for.
const ALIGN_MAX: usize = 8;

/// The walk through a format.
struct Format<'a> {
    given: &'a Given<'a>,
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
    fn new(given: &'a Given<'a>, text: &'a [u8]) -> Format<'a> {
        let text = &text[..memchr::memchr(0, text).unwrap_or(text.len())];
        Format { given, text, at: 0, is_little: cfg!(target_endian = "little"), align: 1, data_len: None }
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
            number = next.ok_or_else(|| self.given.fail("integral size overflow"))?;
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
                    return Err(self.given.fail(message));
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
                return Err(self.given.bad(1, "data string too short"));
            }
            match letter {
                b' ' => {}
                b'>' => self.is_little = false,
                b'<' => self.is_little = true,
                b'!' => {
                    let align = self.number(ALIGN_MAX)?;
                    if !align.is_power_of_two() {
                        let message = format!("alignment {align} is not a power of 2");
                        return Err(self.given.fail(message));
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
        self.given.bad(0, &format!("invalid format option '{}'", char::from(letter)))
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

fn pack(given: &Given<'_>, state: &State) -> Result<MultiValue> {
    let text = given.string(0)?;
    let mut format = Format::new(given, &text);
    let (mut out, mut index) = (Vec::new(), 1);
    let room = state.spare_bytes(given.lua);
    while let Next::Value { letter, size, padding } = format.next(out.len())? {
        out.resize(out.len() + padding, 0);
        match letter {
            b'x' => out.push(0),
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let value = to_bits(number(given, index)?);
                format.put_int(&mut out, value, size);
            }
            b'f' => {
                let bits = (number(given, index)? as f32).to_bits();
                format.put_int(&mut out, u64::from(bits), 4);
            }
            b'd' => {
                let bits = number(given, index)?.to_bits();
                format.put_int(&mut out, bits, 8);
            }
            b'c' | b's' => {
                if index >= given.len() {
                    return Err(given.bad(index, "string expected, got nil"));
                }
                let value = given.string(index)?;
                let len = if letter == b's' || size == 0 { value.len() } else { size };
                if value.len() < len {
                    // The C library has counted the string already.
                    return Err(given.bad(index + 1, "string too short"));
                }
                out.extend_from_slice(&value[..len]);
                if letter == b's' {
                    out.push(0);
                }
            }
            _ => return Err(format.unknown(letter)),
        }
        index += usize::from(letter != b'x');
        if out.len() > room {
            return Err(state.stop_out_of_memory());
        }
    }
    let packed = given.lua.create_string(&out)?;
    Ok(MultiValue::from_iter([Value::String(packed)]))
}

/// A number to pack. A missing one is nil, not "no value".
fn number(given: &Given<'_>, index: usize) -> Result<f64> {
    match index < given.len() {
        true => given.number(index),
        false => Err(given.bad(index, "number expected, got nil")),
    }
}

fn unpack(given: &Given<'_>, _: &State) -> Result<MultiValue> {
    let (text, data) = (given.string(0)?, given.string(1)?);
    let mut format = Format::new(given, &text);
    let offset = given.int_or(2, 1)?;
    if offset == 0 {
        return Err(given.bad(2, "offset must be 1 or greater"));
    }
    let mut at = (offset.wrapping_sub(1)) as usize;
    format.data_len = Some(data.len());
    let mut values = MultiValue::new();
    // The number before a `c0`.
    let mut announced: Option<f64> = None;
    while let Next::Value { letter, mut size, padding } = format.next(at)? {
        let short = || given.bad(1, "data string too short");
        at = at.checked_add(padding).filter(|at| *at <= data.len()).ok_or_else(short)?;
        let rest = &data[at..];
        if size > rest.len() {
            return Err(short());
        }
        if values.len() >= 7000 {
            return Err(given.fail("stack overflow (too many results)"));
        }
        match letter {
            b'x' => {}
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let n = format.int_of(&rest[..size], letter.is_ascii_lowercase());
                push_number(&mut values, &mut announced, n);
            }
            b'f' => {
                let n = f32::from_bits(bits_of(&format, &rest[..4]) as u32);
                push_number(&mut values, &mut announced, f64::from(n));
            }
            b'd' => {
                let n = f64::from_bits(bits_of(&format, &rest[..8]));
                push_number(&mut values, &mut announced, n);
            }
            b'c' => {
                if size == 0 {
                    let len = announced.ok_or_else(|| given.fail("format 'c0' needs a previous size"))?;
                    values.pop_back();
                    size = len as usize;
                    if len < 0.0 || size > rest.len() {
                        return Err(short());
                    }
                }
                values.push_back(Value::String(given.lua.create_string(&rest[..size])?));
                announced = None;
            }
            b's' => {
                let end = memchr::memchr(0, rest).ok_or_else(|| given.fail("unfinished string in data"))?;
                values.push_back(Value::String(given.lua.create_string(&rest[..end])?));
                announced = None;
                size = end + 1;
            }
            _ => return Err(format.unknown(letter)),
        }
        at += size;
    }
    values.push_back(Value::Number((at as f64) + 1.0));
    Ok(values)
}

fn push_number(values: &mut MultiValue, announced: &mut Option<f64>, n: f64) {
    values.push_back(Value::Number(n));
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
    type Body = fn(&Given<'_>, &State) -> Result<MultiValue>;
    let table = lua.create_table()?;
    let functions: [(&str, Body); 3] = [("pack", pack), ("unpack", unpack), ("size", size)];
    for (name, body) in functions {
        let shared = Rc::clone(state);
        let function = move |lua: &Lua, values: Variadic<Value>| body(&Given::new(lua, &values), &shared);
        table.raw_set(name, lua.create_function(function)?)?;
    }
    rust.raw_set("struct", table)
}
