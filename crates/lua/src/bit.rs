//! `bit`: operations on 32-bit integers, as LuaJIT's BitOp has them. Numbers are taken modulo 2 to the 32,
//! rounded to the nearest whole number; results are signed.
//!
//! Scripts call these in loops, for hashes and random numbers, and each does next to nothing: so they are
//! functions of the interpreter's own kind. All of them may raise, so nothing here owns anything.
use mlua::ffi::{self, lua_State};
use mlua::{Lua, Result, Table};
use std::ffi::c_int;

/// A number as 32 bits: its lowest mantissa bits once 2 to the 52 and a half have been added, which is how
/// BitOp makes them and what decides what becomes of fractions and of numbers that do not fit.
fn bits(n: f64) -> u32 {
    (n + 6_755_399_441_055_744.0).to_bits() as u32
}

/// Argument `index`, counted from 1. What is no number raises.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing.
unsafe fn arg(state: *mut lua_State, index: c_int) -> u32 {
    // SAFETY: as the caller vouches.
    bits(unsafe { ffi::luaL_checknumber(state, index) })
}

/// Answers with this number.
///
/// # Safety
/// As for [`arg`].
unsafe fn answer(state: *mut lua_State, n: u32) -> c_int {
    // SAFETY: as the caller vouches; a function has room for some values.
    unsafe { ffi::lua_pushnumber(state, f64::from(n as i32)) };
    1
}

/// Functions of one argument, or of all of them.
macro_rules! functions {
    ($($name:ident = $body:expr;)*) => {$(
        /// # Safety
        /// To be called by Lua.
        unsafe extern "C-unwind" fn $name(state: *mut lua_State) -> c_int {
            // SAFETY: Lua has called this, and it owns nothing.
            unsafe {
                let body: unsafe fn(*mut lua_State) -> u32 = $body;
                answer(state, body(state))
            }
        }
    )*};
}

functions! {
    tobit = |state| arg(state, 1);
    bnot = |state| !arg(state, 1);
    bswap = |state| arg(state, 1).swap_bytes();
    band = |state| fold(state, |a, b| a & b);
    bor = |state| fold(state, |a, b| a | b);
    bxor = |state| fold(state, |a, b| a ^ b);
    lshift = |state| shift(state, |a, n| a << n);
    rshift = |state| shift(state, |a, n| a >> n);
    arshift = |state| shift(state, |a, n| ((a as i32) >> n) as u32);
    rol = |state| shift(state, u32::rotate_left);
    ror = |state| shift(state, u32::rotate_right);
}

/// Folds all arguments, of which there is at least one.
///
/// # Safety
/// As for [`arg`].
#[inline]
unsafe fn fold(state: *mut lua_State, f: impl Fn(u32, u32) -> u32) -> u32 {
    // SAFETY: as the caller vouches.
    unsafe { (2..=ffi::lua_gettop(state)).fold(arg(state, 1), |all, index| f(all, arg(state, index))) }
}

/// Moves the bits of the first argument by the second one modulo 32.
///
/// # Safety
/// As for [`arg`].
#[inline]
unsafe fn shift(state: *mut lua_State, f: impl Fn(u32, u32) -> u32) -> u32 {
    // SAFETY: as the caller vouches.
    unsafe { f(arg(state, 1), arg(state, 2) & 31) }
}

/// The last digits of a number in hexadecimal: 8 of them, or as many as the second argument says, in capitals
/// where it is negative. No number of digits is beyond 8 (CVE-2024-31449).
///
/// # Safety
/// To be called by Lua.
unsafe extern "C-unwind" fn tohex(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has called this, and it owns nothing.
    unsafe {
        let number = arg(state, 1);
        let digits = if ffi::lua_type(state, 2) == ffi::LUA_TNONE { 8 } else { arg(state, 2) as i32 };
        let letters: &[u8; 16] = if digits < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
        let text: [u8; 8] = std::array::from_fn(|at| letters[(number >> (28 - 4 * at) & 15) as usize]);
        let text = &text[8 - digits.unsigned_abs().min(8) as usize..];
        ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
    }
    1
}

const FUNCTIONS: [(&str, ffi::lua_CFunction); 12] = [
    ("tobit", tobit),
    ("bnot", bnot),
    ("bswap", bswap),
    ("band", band),
    ("bor", bor),
    ("bxor", bxor),
    ("lshift", lshift),
    ("rshift", rshift),
    ("arshift", arshift),
    ("rol", rol),
    ("ror", ror),
    ("tohex", tohex),
];

/// A table of the functions.
pub fn bit(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    for (name, function) in FUNCTIONS {
        // SAFETY: they own nothing, and what they are given they check.
        table.raw_set(name, unsafe { lua.create_c_function(function) }?)?;
    }
    Ok(table)
}
