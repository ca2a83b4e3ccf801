//! Functions of Rust that take strings and numbers where these lie, and answer with numbers, parts of their
//! arguments, and text: `string.find` and its kin. A body answers what is clear. All else, a number in the
//! place of a string or an error, is left to a slower function, which is called with the same arguments.
use crate::function::{Arguments, closure, guarded};
use crate::reply::push_bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::ops::Range;
use std::slice::from_ref;

/// A value that is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Nil,
    Number(f64),
    /// Of this argument, counted from 1, which the body has seen as bytes.
    Part(c_int, Range<usize>),
    /// All that the body has written.
    Text,
    /// A table with one field, which has this name: such a part, or the text.
    Table(&'static CStr, Option<(c_int, Range<usize>)>),
}

/// What a body answers with. It keeps its room from call to call, so bodies leave long texts to the slower
/// function.
#[derive(Default)]
pub struct Findings {
    pub values: Vec<Found>,
    pub text: Vec<u8>,
}

/// What a body has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Given,
    /// The slower function is to tell.
    Unclear,
    /// The script is to end, and what it raises now does not matter.
    Stopped,
}

/// No more room for text is kept for the next call, nor should a body write more.
pub const TEXT_BYTES_MAX: usize = 64 << 10;
/// Where the slower function is.
const SLOW: c_int = 3;

pub(crate) struct Bound<F> {
    room: RefCell<Findings>,
    body: F,
}

impl<F> Bound<F> {
    pub(crate) fn new(body: F) -> Bound<F> {
        Bound { room: RefCell::default(), body }
    }

    /// Gives back the room of what has become long all the same.
    #[inline]
    fn let_go(&self) {
        if let Ok(mut room) = self.room.try_borrow_mut()
            && room.text.capacity() > 2 * TEXT_BYTES_MAX
        {
            room.text = Vec::new();
        }
    }
}

/// Makes the function.
pub fn quick<F>(lua: &Lua, slow: &Function, body: F) -> Result<Function>
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
{
    closure(lua, Bound::new(body), from_ref(slow), call::<F>)
}

/// Makes a function that takes a subject and a pattern and returns what a loop calls: that asks the body, or
/// the slower function, with both and a number, which is 1 first and then the first value of the last answer.
/// The loop is given the other values, and nothing when there was no answer.
pub fn walker<F>(lua: &Lua, slow: &Function, body: F) -> Result<Function>
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
{
    closure(lua, Bound::new(body), from_ref(slow), begin_walk::<F>)
}

/// What Lua calls.
///
/// # Safety
/// To be called by Lua as a closure over the address of a [`Bound`] that lives, its owner, and the slower
/// function. It owns nothing, since it raises.
unsafe extern "C-unwind" fn call<F>(state: *mut lua_State) -> c_int
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
{
    // SAFETY: as this function is called.
    unsafe {
        let bound: *const Bound<F> = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        give(state, bound)
    }
}

/// Answers as the body, or the slower function, does.
///
/// # Safety
/// In a function that Lua has called, with the slower one among its upvalues. The body lives as long as the
/// function. The frames own nothing.
pub(crate) unsafe fn give<F>(state: *mut lua_State, bound: *const Bound<F>) -> c_int
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer,
{
    // SAFETY: as the caller vouches. No body runs again before the values are those of the interpreter:
    // neither making them nor collecting garbage runs code of scripts.
    unsafe {
        let (answer, values, text) = ask(&*bound, state);
        match answer {
            Answer::Given => {
                let count = push_all(state, &*values, &*text);
                (*bound).let_go();
                count
            }
            Answer::Unclear => {
                let count = ffi::lua_gettop(state);
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(SLOW));
                ffi::lua_insert(state, 1);
                ffi::lua_call(state, count, ffi::LUA_MULTRET);
                ffi::lua_gettop(state)
            }
            Answer::Stopped => ffi::luaL_error(state, c"the script was stopped".as_ptr()),
        }
    }
}

/// Where a walk's subject, pattern and number are.
const WALK: [c_int; 3] = [SLOW + 1, SLOW + 2, NUMBER];
const NUMBER: c_int = SLOW + 3;

/// # Safety
/// As for [`call`].
unsafe extern "C-unwind" fn begin_walk<F>(state: *mut lua_State) -> c_int
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
{
    // SAFETY: as this function is called; there is room for some values. The owner is an upvalue of the new
    // function too, so the body lives as long as that.
    unsafe {
        for argument in 1..=2 {
            ffi::luaL_checklstring(state, argument, std::ptr::null_mut());
        }
        (1..=SLOW).for_each(|index| ffi::lua_pushvalue(state, ffi::lua_upvalueindex(index)));
        (1..=2).for_each(|argument| ffi::lua_pushvalue(state, argument));
        ffi::lua_pushnumber(state, 1.0);
        ffi::lua_pushcclosure(state, walk::<F>, NUMBER);
        1
    }
}

/// # Safety
/// As for [`call`], made by [`begin_walk`].
unsafe extern "C-unwind" fn walk<F>(state: *mut lua_State) -> c_int
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
{
    // SAFETY: as this function is called; there is room for some values.
    unsafe {
        ffi::lua_settop(state, 0);
        if ffi::lua_type(state, ffi::lua_upvalueindex(NUMBER)) == ffi::LUA_TNIL {
            return 0;
        }
        WALK.iter().for_each(|index| ffi::lua_pushvalue(state, ffi::lua_upvalueindex(*index)));
        // An error ends the walk.
        ffi::lua_pushnil(state);
        ffi::lua_replace(state, ffi::lua_upvalueindex(NUMBER));
        let count = call::<F>(state);
        let first = ffi::lua_gettop(state) - count + 1;
        if count > 0 {
            ffi::lua_pushvalue(state, first);
            ffi::lua_replace(state, ffi::lua_upvalueindex(NUMBER));
        }
        (count - 1).max(0)
    }
}

/// Runs the body. Nothing raises here, so what it owns is dropped as always. What it has found is there until
/// its next call.
///
/// # Safety
/// `state` runs the function that the body is of.
unsafe fn ask<F>(bound: &Bound<F>, state: *mut lua_State) -> (Answer, *const [Found], *const [u8])
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer,
{
    // SAFETY: nothing changes the stack before this function returns.
    let arguments = unsafe { Arguments::new(state) };
    let Ok(mut room) = bound.room.try_borrow_mut() else {
        return (Answer::Stopped, std::ptr::slice_from_raw_parts(std::ptr::dangling(), 0), &raw const *b"");
    };
    room.values.clear();
    room.text.clear();
    let answer = guarded(|| (bound.body)(arguments, &mut room)).unwrap_or(Answer::Stopped);
    (answer, &raw const *room.values, &raw const *room.text)
}

/// Pushes what was found; returns how many values that are.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing, with its arguments on the stack.
pub(crate) unsafe fn push_all(state: *mut lua_State, values: &[Found], text: &[u8]) -> c_int {
    let count = values.len() as c_int;
    // SAFETY: as the caller vouches. An argument of which there are parts is a string, whose bytes do not
    // move.
    unsafe {
        ffi::luaL_checkstack(state, count + 1, c"too many captures".as_ptr());
        for value in values {
            match value {
                Found::Nil => ffi::lua_pushnil(state),
                Found::Number(number) => ffi::lua_pushnumber(state, *number),
                Found::Text => push_bytes(state, text),
                Found::Part(argument, part) => push_part(state, *argument, part),
                Found::Table(name, part) => {
                    ffi::lua_createtable(state, 0, 1);
                    match part {
                        Some((argument, part)) => push_part(state, *argument, part),
                        None => push_bytes(state, text),
                    }
                    ffi::lua_setfield(state, -2, name.as_ptr());
                }
            }
        }
    }
    count
}

/// # Safety
/// As for [`push_all`], with room for one value.
unsafe fn push_part(state: *mut lua_State, argument: c_int, part: &Range<usize>) {
    // SAFETY: as the caller vouches.
    unsafe {
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, argument, &raw mut len);
        let bytes: &[u8] = std::slice::from_raw_parts(bytes.cast(), len);
        push_bytes(state, bytes.get(part.clone()).unwrap_or_default());
    }
}
