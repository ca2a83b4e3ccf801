//! Replies of commands as Lua values, which are made on the stack as the bytes are read.
//!
//! | RESP | Lua |
//! |---|---|
//! | `:1` | number |
//! | `$1`, `*1` | string, table |
//! | `+OK`, `-ERR x` | `{ok='OK'}`, `{err='ERR x', ignore_error_stats_update=true}` |
//! | `$-1`, `*-1` | false |
//! | `_` | nil |
//! | `,1.5` | `{double=1.5}` |
//! | `#t` | true |
//! | `(123` | `{big_number='123'}` |
//! | `=7 txt:abc` | `{verbatim_string={format='txt', string='abc'}}` |
//! | `%1`, `~1` | `{map={...}}`, `{set={element=true}}` |
//! | `>1` | as an array |
//! | `|1` | nothing: what follows it counts |
//!
//! All of this may raise, so nothing here owns anything.
use mlua::ffi::{self, lua_State};
use std::ffi::{CStr, c_int};

/// Replies nest no deeper than this; commands do not answer half as deep.
const DEPTH_MAX: usize = 128;
/// Places on the stack that a value takes while it is made, those within it not counted.
const PLACES: c_int = 6;

/// It is no reply, or only a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// What marks an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marks {
    Plain,
    /// The statistics have it already, because a command answered with it.
    Counted,
}

/// Pushes the value of the reply at the front of `bytes`. What is broken may leave values behind.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing that has a destructor.
#[inline]
pub(crate) unsafe fn push(state: *mut lua_State, bytes: &[u8]) -> Result<(), Broken> {
    // SAFETY: as the caller vouches.
    unsafe {
        match bytes {
            // Most replies are numbers of one digit and strings of no more than nine bytes.
            [b':', digit @ b'0'..=b'9', b'\r', b'\n'] => {
                ffi::lua_pushnumber(state, f64::from(digit - b'0'));
                Ok(())
            }
            [b'$', digit @ b'0'..=b'9', b'\r', b'\n', text @ .., b'\r', b'\n']
                if text.len() == usize::from(digit - b'0') =>
            {
                push_bytes(state, text);
                Ok(())
            }
            _ => Reader { state, bytes, at: 0, depth: 0 }.value(),
        }
    }
}

/// Pushes the table of an error.
///
/// # Safety
/// As for [`push`].
pub(crate) unsafe fn push_error(state: *mut lua_State, text: &[u8], marks: Marks) {
    // SAFETY: a function has room for twenty values, and the caller allows raising.
    unsafe {
        ffi::lua_createtable(state, 0, if marks == Marks::Counted { 2 } else { 1 });
        push_bytes(state, text);
        set_field(state, c"err");
        if marks == Marks::Counted {
            ffi::lua_pushboolean(state, 1);
            set_field(state, c"ignore_error_stats_update");
        }
    }
}

/// # Safety
/// As for [`push`], with room for one value.
pub(crate) unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: the bytes are copied before this returns.
    unsafe { ffi::lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len()) }
}

/// Takes the value off the stack's top into the table below it, which is one of this file's and has no
/// metatable.
///
/// # Safety
/// As for [`push`].
unsafe fn set_field(state: *mut lua_State, name: &'static CStr) {
    // SAFETY: the table is below the value, and the name ends with a zero.
    unsafe { ffi::lua_setfield(state, -2, name.as_ptr()) }
}

struct Reader<'a> {
    state: *mut lua_State,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The rest of the line.
    fn line(&mut self) -> Result<&'a [u8], Broken> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\r', rest).ok_or(Broken)?;
        self.at += (end + 2).min(rest.len());
        Ok(&rest[..end])
    }

    /// The same as a number.
    #[inline]
    fn number(&mut self) -> Result<i64, Broken> {
        let rest = &self.bytes[self.at..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let (mut n, mut end) = (0_i64, sign);
        while let Some(digit) = rest.get(end).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
        {
            // The least number has no counterpart above zero, and comes out right.
            n = n.wrapping_mul(10).wrapping_add(i64::from(digit));
            end += 1;
        }
        if rest.get(end) != Some(&b'\r') || !(1..=19).contains(&(end - sign)) {
            return Err(Broken);
        }
        self.at += (end + 2).min(rest.len());
        Ok(if sign == 1 { n.wrapping_neg() } else { n })
    }

    /// The same as a length; None for none, -1.
    #[inline]
    fn length(&mut self) -> Result<Option<usize>, Broken> {
        match self.number()? {
            -1 => Ok(None),
            len => usize::try_from(len).map(Some).map_err(|_| Broken),
        }
    }

    /// A number of bytes and the line's end behind them.
    fn bulk(&mut self, len: usize) -> Result<&'a [u8], Broken> {
        let bytes = self.bytes[self.at..].get(..len).ok_or(Broken)?;
        self.at = (self.at + len + 2).min(self.bytes.len());
        Ok(bytes)
    }

    /// Pushes the next value. All methods that push: # Safety as for [`push`].
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn value(&mut self) -> Result<(), Broken> {
        let state = self.state;
        let mark = *self.bytes.get(self.at).ok_or(Broken)?;
        self.at += 1;
        // SAFETY: there is room for `PLACES` values: a function of Lua begins with more, and `nested` looks.
        unsafe {
            match mark {
                b':' => ffi::lua_pushnumber(state, self.number()? as f64),
                b'$' | b'*' => match self.length()? {
                    None => ffi::lua_pushboolean(state, 0),
                    Some(len) if mark == b'$' => push_bytes(state, self.bulk(len)?),
                    Some(len) => self.nested(mark, len)?,
                },
                b'>' | b'~' | b'%' | b'|' => {
                    let len = self.length()?.ok_or(Broken)?;
                    self.nested(mark, len)?;
                }
                b'=' => {
                    let len = self.length()?.ok_or(Broken)?;
                    self.verbatim(len)?;
                }
                _ => {
                    let text = self.line()?;
                    self.value_of_line(mark, text)?;
                }
            }
        }
        Ok(())
    }

    /// Pushes a value that is a line.
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn value_of_line(&self, mark: u8, text: &[u8]) -> Result<(), Broken> {
        let state = self.state;
        // SAFETY: as `value` vouches.
        unsafe {
            match mark {
                b'+' => self.text_field(c"ok", text),
                b'-' => push_error(state, text, Marks::Counted),
                b'_' => ffi::lua_pushnil(state),
                b',' => {
                    let n = double(text)?;
                    ffi::lua_createtable(state, 0, 1);
                    ffi::lua_pushnumber(state, n);
                    set_field(state, c"double");
                }
                b'#' => ffi::lua_pushboolean(state, c_int::from(text == b"t")),
                b'(' => self.text_field(c"big_number", text),
                _ => return Err(Broken),
            }
        }
        Ok(())
    }

    /// Pushes a table with one string.
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn text_field(&self, name: &'static CStr, text: &[u8]) {
        // SAFETY: as `value` vouches.
        unsafe {
            ffi::lua_createtable(self.state, 0, 1);
            push_bytes(self.state, text);
            set_field(self.state, name);
        }
    }

    /// # Safety
    /// As for [`push`].
    unsafe fn nested(&mut self, mark: u8, len: usize) -> Result<(), Broken> {
        // SAFETY: the room is looked for before anything is pushed.
        unsafe {
            if self.depth == DEPTH_MAX || ffi::lua_checkstack(self.state, 2 * PLACES) == 0 {
                return Err(Broken);
            }
            self.depth += 1;
            match mark {
                b'%' => self.wrapped(c"map", len, Reader::map)?,
                b'~' => self.wrapped(c"set", len, Reader::set)?,
                b'|' => {
                    self.map(len)?;
                    ffi::lua_settop(self.state, -2);
                    self.value()?;
                }
                _ => self.array(len)?,
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Pushes a table that holds under `name` what `fill` pushes.
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn wrapped(
        &mut self,
        name: &'static CStr,
        len: usize,
        push: unsafe fn(&mut Self, usize) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        // SAFETY: `nested` has found room.
        unsafe {
            ffi::lua_createtable(self.state, 0, 1);
            push(self, len)?;
            set_field(self.state, name);
        }
        Ok(())
    }

    /// How many places the table of an array is given at first: never more than there can be, since each
    /// takes three bytes of the reply at least.
    fn places(&self, len: usize) -> c_int {
        c_int::try_from(len.min((self.bytes.len() - self.at) / 3)).unwrap_or(c_int::MAX)
    }

    /// # Safety
    /// As for [`push`].
    unsafe fn array(&mut self, len: usize) -> Result<(), Broken> {
        let len = c_int::try_from(len).map_err(|_| Broken)?;
        // SAFETY: `nested` has found room.
        unsafe {
            ffi::lua_createtable(self.state, self.places(len as usize), 0);
            for index in 1..=len {
                self.value()?;
                ffi::lua_rawseti(self.state, -2, index.into());
            }
        }
        Ok(())
    }

    /// The table grows with its pairs: one that had room for all of them from the beginning would show them
    /// in another order than Redis's does.
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn map(&mut self, len: usize) -> Result<(), Broken> {
        // SAFETY: `nested` has found room.
        unsafe {
            ffi::lua_createtable(self.state, 0, 0);
            for _ in 0..len {
                self.value()?;
                self.value()?;
                self.put();
            }
        }
        Ok(())
    }

    /// As [`Reader::map`].
    ///
    /// # Safety
    /// As for [`push`].
    unsafe fn set(&mut self, len: usize) -> Result<(), Broken> {
        // SAFETY: `nested` has found room.
        unsafe {
            ffi::lua_createtable(self.state, 0, 0);
            for _ in 0..len {
                self.value()?;
                ffi::lua_pushboolean(self.state, 1);
                self.put();
            }
        }
        Ok(())
    }

    /// Takes a key and a value off the stack into the table below them. Nothing stands under nil or NaN.
    ///
    /// # Safety
    /// As for [`push`], with those three on the stack.
    unsafe fn put(&mut self) {
        // SAFETY: the key is no nil and no NaN, for which `lua_rawset` would raise.
        unsafe {
            let is_key = match ffi::lua_type(self.state, -2) {
                ffi::LUA_TNIL => false,
                ffi::LUA_TNUMBER => !ffi::lua_tonumber(self.state, -2).is_nan(),
                _ => true,
            };
            match is_key {
                true => ffi::lua_rawset(self.state, -3),
                false => ffi::lua_settop(self.state, -3),
            }
        }
    }

    /// # Safety
    /// As for [`push`].
    unsafe fn verbatim(&mut self, len: usize) -> Result<(), Broken> {
        let bytes = self.bulk(len)?;
        let (format, text) = bytes.split_at_checked(3).ok_or(Broken)?;
        // SAFETY: as `value` vouches: three values at once.
        unsafe {
            ffi::lua_createtable(self.state, 0, 1);
            ffi::lua_createtable(self.state, 0, 2);
            push_bytes(self.state, format);
            set_field(self.state, c"format");
            push_bytes(self.state, text.get(1..).unwrap_or_default());
            set_field(self.state, c"string");
            set_field(self.state, c"verbatim_string");
        }
        Ok(())
    }
}

fn double(text: &[u8]) -> Result<f64, Broken> {
    match text {
        b"nan" | b"-nan" => Ok(f64::NAN),
        _ => base::double::parse_f64(text).ok_or(Broken),
    }
}
