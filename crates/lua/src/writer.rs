//! Functions of Rust that look at their arguments where these lie, and write into a buffer: it becomes a
//! string, as `cjson.encode` and `cmsgpack.pack` make one, or the value that it is in MessagePack, as
//! `cjson.decode` makes one.
use crate::function::{closure, guarded};
use crate::look::Stack;
use crate::reply::push_bytes;
use crate::unpack::push_value;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::rc::Rc;

/// What a body has written into its buffer, if it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// What the script is given, or is made of it.
    Text,
    /// Why it failed: an error that begins with the script's line.
    Error,
    /// Nothing: this argument, counted from 1, is a bad one.
    BadArgument(c_int, &'static CStr),
    /// Nothing: this argument is neither a string nor a number.
    NotAString(c_int),
    /// Nothing that counts. The script is to end, and what it raises now does not matter.
    Stopped,
}

/// A buffer keeps no more room than this for the next call.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// What an interpreter's writers write into, one at a time.
pub type Buffer = Rc<RefCell<Vec<u8>>>;

/// A body with its buffer.
struct Bound<F> {
    out: Buffer,
    body: F,
}

/// Makes a function of Lua. Its body is given the arguments, and an empty buffer. While it looks the
/// interpreter takes memory for its stack, some dozen kilobytes at most, and there must be as much: to refuse
/// it would be to jump over the body.
pub fn writer<F>(lua: &Lua, out: &Buffer, body: F) -> Result<Function>
where
    F: Fn(Stack<'_>, &mut Vec<u8>) -> Written + 'static,
{
    closure(lua, Bound { out: Rc::clone(out), body }, &[], call::<F, false>)
}

/// The same, for a body that writes one value in MessagePack ([`NULL`](crate::NULL) included), which is then
/// made.
pub fn maker<F>(lua: &Lua, out: &Buffer, body: F) -> Result<Function>
where
    F: Fn(Stack<'_>, &mut Vec<u8>) -> Written + 'static,
{
    closure(lua, Bound { out: Rc::clone(out), body }, &[], call::<F, true>)
}

/// What Lua calls.
///
/// # Safety
/// To be called by Lua as a closure over the address of a [`Bound`] that lives. It owns nothing, since it
/// raises.
unsafe extern "C-unwind" fn call<F, const MAKES: bool>(state: *mut lua_State) -> c_int
where
    F: Fn(Stack<'_>, &mut Vec<u8>) -> Written + 'static,
{
    // SAFETY: as this function is called. No body runs again before the bytes are values of the interpreter:
    // neither making values nor collecting garbage runs code of scripts.
    unsafe {
        let bound: *const Bound<F> = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        let (written, bytes) = write(&*bound, state);
        match written {
            Written::Text => {
                match MAKES {
                    true => push_value(state, &*bytes),
                    false => push_bytes(state, &*bytes),
                }
                let_go(&(*bound).out);
                1
            }
            Written::Error => {
                ffi::luaL_where(state, 1);
                push_bytes(state, &*bytes);
                let_go(&(*bound).out);
                ffi::lua_concat(state, 2);
                ffi::lua_error(state)
            }
            Written::BadArgument(number, why) => ffi::luaL_argerror(state, number, why.as_ptr()),
            Written::NotAString(number) => {
                ffi::luaL_checklstring(state, number, std::ptr::null_mut());
                0
            }
            Written::Stopped => {
                let_go(&(*bound).out);
                ffi::luaL_error(state, c"the script was stopped".as_ptr())
            }
        }
    }
}

/// Runs the body. Nothing raises here, so what it owns is dropped as always. The bytes are there until its
/// next call.
///
/// # Safety
/// `state` runs the function that the body is of.
unsafe fn write<F>(bound: &Bound<F>, state: *mut lua_State) -> (Written, *const [u8])
where
    F: Fn(Stack<'_>, &mut Vec<u8>) -> Written,
{
    let Ok(mut out) = bound.out.try_borrow_mut() else { return (Written::Stopped, &raw const *b"") };
    out.clear();
    // SAFETY: the arguments stay where they are as long as the body runs; what it pushes lies above them.
    let stack = unsafe { Stack::of_arguments(state) };
    let written = guarded(|| (bound.body)(stack, &mut out)).unwrap_or(Written::Stopped);
    (written, &raw const **out)
}

/// Gives back the room of a buffer that has become large. Whoever runs scripts does so between two of them:
/// where there is no memory for what is made of the bytes, the error jumps over whoever would do it here.
pub fn let_go(out: &Buffer) {
    if let Ok(mut out) = out.try_borrow_mut()
        && out.capacity() > KEPT_BYTES_MAX
    {
        *out = Vec::new();
    }
}
