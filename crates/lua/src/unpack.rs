//! MessagePack as Lua values, which are made on the stack as the bytes are read: the functions `unpack`,
//! `unpack_one` and `unpack_limit` of `cmsgpack`. Its families `bin` and `ext` are refused.
//!
//! Lengths in the input are announced by who wrote it, so tables begin with room for what is there, not for
//! what was announced (CVE-2018-11218, CVE-2022-24834).
//!
//! All of this may raise, so nothing here owns anything.
use crate::function::{closure, guarded};
use crate::reply::push_bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::ffi::{CStr, c_int};

/// What a function is given behind the bytes, and gives back before the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing: it reads all values.
    All,
    /// An offset, or none: it reads one value. Where the next begins, -1 behind the last.
    One,
    /// How many values, and an offset, or none. The same.
    Limit,
}

/// What `null` of JSON becomes. MessagePack leaves this mark without a meaning.
pub const NULL: u8 = 0xC1;
/// Tables in the input nest no deeper than this.
const DEPTH_MAX: usize = 1000;
/// How many values are read before it is asked again whether to go on.
const STEPS_BETWEEN: u32 = 1 << 10;
/// A table is not given more places at first. Tables that nest announce the same bytes again.
const PLACES_AT_FIRST: usize = 1 << 10;
/// Places on the stack that a value takes while it is made, those within it not counted.
const PLACES: c_int = 4;

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// For this reason.
    Says(&'static CStr),
    /// The script is to end.
    Stopped,
}

type Read<T> = std::result::Result<T, Failure>;

const BAD_DATA: Failure = Failure::Says(c"Bad data format in input.");
const MISSING_BYTES: Failure = Failure::Says(c"Missing bytes in input.");
const TOO_DEEP: Failure = Failure::Says(c"stack overflow (in function mp_decode_to_lua_array)");
const TOO_MANY: Failure = Failure::Says(
    c"stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)",
);

/// Makes one of the functions. `may_go_on` is told now and then how many values were read; if it says no, the
/// script is to end, and what is raised does not matter.
pub fn unpacker<F>(lua: &Lua, form: Form, may_go_on: F) -> Result<Function>
where
    F: Fn(u32) -> bool + 'static,
{
    let call = match form {
        Form::All => call::<F, 0>,
        Form::One => call::<F, 1>,
        Form::Limit => call::<F, 2>,
    };
    closure(lua, may_go_on, &[], call)
}

/// What Lua calls, with so many numbers behind the bytes.
///
/// # Safety
/// To be called by Lua as a closure over the address of an `F` that lives. It owns nothing, since it raises.
unsafe extern "C-unwind" fn call<F, const NUMBERS: c_int>(state: *mut lua_State) -> c_int
where
    F: Fn(u32) -> bool + 'static,
{
    // SAFETY: as this function is called. The bytes are those of a string that is an argument, and stays one.
    unsafe {
        let body: *const F = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        let limit = match NUMBERS {
            2 => whole(ffi::luaL_checknumber(state, 2)),
            limit => i64::from(limit),
        };
        let offset = if NUMBERS == 0 { 0 } else { whole(ffi::luaL_optnumber(state, NUMBERS + 1, 0.0)) };
        let mut len = 0;
        let start = ffi::luaL_checklstring(state, 1, &raw mut len);
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), len);
        let len = c_int::try_from(len).unwrap_or(c_int::MAX);
        // The texts show the lowest 32 bits, as in Redis.
        if offset < 0 || limit < 0 {
            let text = c"Invalid request to unpack with offset of %d and limit of %d.";
            ffi::luaL_error(state, text.as_ptr(), offset as c_int, len);
        }
        let at = offset as usize;
        if at > bytes.len() {
            let text = c"Start offset %d greater than input length %d.";
            ffi::luaL_error(state, text.as_ptr(), offset as c_int, len);
        }
        let may_go_on = |steps| guarded(|| (*body)(steps)).unwrap_or(false);
        let mut reader =
            Reader { state, bytes, at, depth: 0, steps: 0, has_null: false, may_go_on: &may_go_on };
        match reader.values(limit as usize) {
            Ok(count) => count,
            Err(Failure::Says(text)) => ffi::luaL_error(state, c"%s".as_ptr(), text.as_ptr()),
            Err(Failure::Stopped) => ffi::luaL_error(state, c"the script was stopped".as_ptr()),
        }
    }
}

/// A number as C's cast makes it an integer of 64 bits: the least one of what does not fit.
fn whole(n: f64) -> i64 {
    const END: f64 = (1_u64 << 63) as f64;
    if (-END..END).contains(&n) { n as i64 } else { i64::MIN }
}

/// Pushes the one value that these bytes are, which a function of ours has written; raises where they are
/// none.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing. The bytes stay where they are.
pub(crate) unsafe fn push_value(state: *mut lua_State, bytes: &[u8]) {
    let mut reader = Reader { state, bytes, at: 0, depth: 0, steps: 0, has_null: true, may_go_on: &|_| true };
    // SAFETY: as the caller vouches; the reader owns nothing.
    unsafe {
        match reader.value(TOO_DEEP) {
            Ok(()) => {}
            Err(Failure::Says(text)) => drop(ffi::luaL_error(state, c"%s".as_ptr(), text.as_ptr())),
            Err(Failure::Stopped) => drop(ffi::luaL_error(state, c"the script was stopped".as_ptr())),
        }
    }
}

/// What is read next: a value that was pushed, or the beginning of a table of so many elements.
enum Token {
    Value,
    Array(usize),
    Map(usize),
}

struct Reader<'a> {
    state: *mut lua_State,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    steps: u32,
    /// [`NULL`] may come.
    has_null: bool,
    may_go_on: &'a dyn Fn(u32) -> bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Read<&'a [u8]> {
        let bytes = self.bytes[self.at..].get(..len).ok_or(MISSING_BYTES)?;
        self.at += len;
        Ok(bytes)
    }

    /// A big-endian number of up to eight bytes.
    fn uint(&mut self, len: usize) -> Read<u64> {
        Ok(self.take(len)?.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn int(&mut self, len: usize) -> Read<i64> {
        let unused = 64 - 8 * len as u32;
        Ok((self.uint(len)? << unused) as i64 >> unused)
    }

    fn len(&mut self, bytes: usize) -> Read<usize> {
        Ok(self.uint(bytes)? as usize)
    }

    fn step(&mut self) -> Read<()> {
        self.steps += 1;
        if self.steps == STEPS_BETWEEN {
            self.steps = 0;
            return if (self.may_go_on)(STEPS_BETWEEN) { Ok(()) } else { Err(Failure::Stopped) };
        }
        Ok(())
    }

    /// Pushes up to `limit` values (0: all), and before them where the next begins, if there is a limit.
    /// Returns how many it has pushed. All methods that push:
    ///
    /// # Safety
    /// In a function that Lua has called, whose frames own nothing that has a destructor.
    unsafe fn values(&mut self, limit: usize) -> Read<c_int> {
        let state = self.state;
        // SAFETY: as the caller vouches; there is room for the place of what is not known yet.
        unsafe {
            let first = ffi::lua_gettop(state) + 1;
            if limit > 0 {
                ffi::lua_pushnil(state);
            }
            let mut count = 0;
            while self.at < self.bytes.len() && (limit == 0 || count < limit) {
                self.value(TOO_MANY)?;
                count += 1;
            }
            if limit > 0 {
                let is_end = self.at == self.bytes.len();
                ffi::lua_pushnumber(state, if is_end { -1.0 } else { self.at as f64 });
                ffi::lua_replace(state, first);
            }
            Ok(ffi::lua_gettop(state) - first + 1)
        }
    }

    /// Pushes a value, or fails so where the stack has no room for it.
    ///
    /// # Safety
    /// As for [`Reader::values`].
    unsafe fn value(&mut self, no_room: Failure) -> Read<()> {
        self.step()?;
        // SAFETY: as the caller vouches; room is looked for before anything is pushed.
        unsafe {
            if ffi::lua_checkstack(self.state, PLACES) == 0 {
                return Err(no_room);
            }
            match self.token()? {
                Token::Value => Ok(()),
                Token::Array(len) => self.array(len),
                Token::Map(len) => self.map(len),
            }
        }
    }

    /// # Safety
    /// As for [`Reader::values`], with room for a value.
    unsafe fn token(&mut self) -> Read<Token> {
        let mark = self.take(1)?[0];
        let number = match mark {
            0..0x80 => f64::from(mark),
            0x80..0x90 => return Ok(Token::Map(usize::from(mark & 15))),
            0x90..0xA0 => return Ok(Token::Array(usize::from(mark & 15))),
            0xCA => f64::from(f32::from_bits(self.uint(4)? as u32)),
            0xCB => f64::from_bits(self.uint(8)?),
            // Those beyond 63 bits come out negative, as in the C library.
            0xCC..=0xCF => self.uint(1 << (mark - 0xCC))? as i64 as f64,
            0xD0..=0xD3 => self.int(1 << (mark - 0xD0))? as f64,
            0xDC => return Ok(Token::Array(self.len(2)?)),
            0xDD => return Ok(Token::Array(self.len(4)?)),
            0xDE => return Ok(Token::Map(self.len(2)?)),
            0xDF => return Ok(Token::Map(self.len(4)?)),
            0xE0.. => f64::from(mark as i8),
            _ => {
                // SAFETY: as the caller vouches.
                unsafe { self.no_number(mark)? };
                return Ok(Token::Value);
            }
        };
        // SAFETY: as the caller vouches.
        unsafe { ffi::lua_pushnumber(self.state, number) };
        Ok(Token::Value)
    }

    /// # Safety
    /// As for [`Reader::values`], with room for a value.
    unsafe fn no_number(&mut self, mark: u8) -> Read<()> {
        let state = self.state;
        // SAFETY: as the caller vouches.
        unsafe {
            match mark {
                0xA0..0xC0 => push_bytes(state, self.take(usize::from(mark & 31))?),
                0xC0 => ffi::lua_pushnil(state),
                NULL if self.has_null => ffi::lua_pushlightuserdata(state, std::ptr::null_mut()),
                0xC2 | 0xC3 => ffi::lua_pushboolean(state, c_int::from(mark & 1)),
                0xD9..=0xDB => {
                    let len = self.len(1 << (mark - 0xD9))?;
                    push_bytes(state, self.take(len)?);
                }
                _ => return Err(BAD_DATA),
            }
        }
        Ok(())
    }

    /// How many places a table is given at first, of which each takes `bytes` of the input at least: never
    /// more than there can be.
    fn places(&self, len: usize, bytes: usize) -> c_int {
        len.min((self.bytes.len() - self.at) / bytes).min(PLACES_AT_FIRST) as c_int
    }

    fn go_deeper(&mut self) -> Read<()> {
        if self.depth == DEPTH_MAX {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        Ok(())
    }

    /// # Safety
    /// As for [`Reader::values`], with room for `PLACES` values.
    unsafe fn array(&mut self, len: usize) -> Read<()> {
        // SAFETY: as the caller vouches; each element looks for room of its own.
        unsafe {
            ffi::lua_createtable(self.state, self.places(len, 1), 0);
            if len > 0 {
                self.go_deeper()?;
                for index in 1..=len {
                    self.value(TOO_DEEP)?;
                    ffi::lua_rawseti(self.state, -2, index as i64);
                }
                self.depth -= 1;
            }
        }
        Ok(())
    }

    /// A key that is nil or NaN raises.
    ///
    /// # Safety
    /// As for [`Reader::values`], with room for `PLACES` values.
    unsafe fn map(&mut self, len: usize) -> Read<()> {
        // SAFETY: the same.
        unsafe {
            ffi::lua_createtable(self.state, 0, self.places(len, 2));
            if len > 0 {
                self.go_deeper()?;
                for _ in 0..len {
                    self.value(TOO_DEEP)?;
                    self.value(TOO_DEEP)?;
                    ffi::lua_rawset(self.state, -3);
                }
                self.depth -= 1;
            }
        }
        Ok(())
    }
}
