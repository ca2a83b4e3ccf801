//! `bit`: operations on 32-bit integers, as LuaJIT's BitOp has them. Numbers are taken modulo 2 to the 32,
//! rounded to the nearest whole number; results are signed.
use super::given::Given;
use mlua::{Lua, Result, Table, Value, Variadic};

/// A number as 32 bits: its lowest mantissa bits once 2 to the 52 and a half have been added, which is how
/// BitOp makes them and what decides what becomes of fractions and of numbers that do not fit.
fn bits(n: f64) -> u32 {
    (n + 6_755_399_441_055_744.0).to_bits() as u32
}

fn arg(given: &Given<'_>, index: usize) -> Result<u32> {
    given.number(index).map(bits)
}

type Body = fn(&Given<'_>) -> Result<i32>;

/// Folds all arguments, of which there is at least one.
fn fold(given: &Given<'_>, f: fn(u32, u32) -> u32) -> Result<i32> {
    let mut all = arg(given, 0)?;
    for index in 1..given.len() {
        all = f(all, arg(given, index)?);
    }
    Ok(all as i32)
}

/// Moves the bits of the first argument by the second one modulo 32.
fn shift(given: &Given<'_>, f: fn(u32, u32) -> u32) -> Result<i32> {
    Ok(f(arg(given, 0)?, arg(given, 1)? & 31) as i32)
}

const FUNCTIONS: [(&str, Body); 11] = [
    ("tobit", |given| Ok(arg(given, 0)? as i32)),
    ("bnot", |given| Ok(!arg(given, 0)? as i32)),
    ("bswap", |given| Ok(arg(given, 0)?.swap_bytes() as i32)),
    ("band", |given| fold(given, |a, b| a & b)),
    ("bor", |given| fold(given, |a, b| a | b)),
    ("bxor", |given| fold(given, |a, b| a ^ b)),
    ("lshift", |given| shift(given, |a, n| a << n)),
    ("rshift", |given| shift(given, |a, n| a >> n)),
    ("arshift", |given| shift(given, |a, n| ((a as i32) >> n) as u32)),
    ("rol", |given| shift(given, u32::rotate_left)),
    ("ror", |given| shift(given, u32::rotate_right)),
];

/// The last digits of a number in hexadecimal: 8 of them, or as many as the second argument says, in capitals
/// where it is negative. No number of digits is beyond 8 (CVE-2024-31449).
fn tohex(lua: &Lua, values: Variadic<Value>) -> Result<mlua::LuaString> {
    let given = Given::new(lua, &values);
    let number = arg(&given, 0)?;
    let digits = if given.is_absent(1) { 8 } else { arg(&given, 1)? as i32 };
    let text = match digits < 0 {
        true => format!("{number:08X}"),
        false => format!("{number:08x}"),
    };
    // Of the least number Redis makes small letters: its opposite does not fit, and counts as a plain 8.
    let text = if digits == i32::MIN { text.to_ascii_lowercase() } else { text };
    lua.create_string(&text[8 - digits.unsigned_abs().min(8) as usize..])
}

pub(crate) fn install(lua: &Lua, rust: &Table) -> Result<()> {
    let bit = lua.create_table()?;
    for (name, body) in FUNCTIONS {
        let function = move |lua: &Lua, values: Variadic<Value>| body(&Given::new(lua, &values));
        bit.raw_set(name, lua.create_function(function)?)?;
    }
    bit.raw_set("tohex", lua.create_function(tohex)?)?;
    rust.raw_set("bit", bit)
}
