//! `table.insert`. Scripts build their tables with it, an element a call, and most of a call in the
//! interpreter's language went into looking whether the table is one of those that scripts must not change.
//! Such a table has a metatable whose `__newindex` refuses; nearly all others have no metatable.
//!
//! What is inserted far from the end moves all that is behind it: that is left to a function that can be
//! interrupted.
//!
//! All of this may raise, so nothing here owns anything.
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::ffi::c_int;

/// No more elements are moved here.
const MOVED_MAX: i64 = 100_000;
/// From here on numbers do not fit into 64 bits.
const BEYOND: f64 = (1_u64 << 63) as f64;
/// The upvalues: the first is that of all that write to tables.
const REFUSES: c_int = 1;
const MOVES: c_int = 2;

/// Makes the function. Tables whose metatable has `refuses` as `__newindex` are not changed;
/// `moves(table, place, value)` inserts where much is to be moved.
pub fn insert(lua: &Lua, refuses: &Function, moves: &Function) -> Result<Function> {
    // SAFETY: the closure runs in a protected call with the functions as its arguments, which become the
    // upvalues, and owns nothing.
    unsafe { lua.exec_raw((refuses, moves), |state| ffi::lua_pushcclosure(state, call, 2)) }
}

/// # Safety
/// To be called by Lua, as a closure over the two functions.
unsafe extern "C-unwind" fn call(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has called this, and it owns nothing. The first argument is a table wherever one is meant.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let end = ffi::lua_rawlen(state, 1) as i64 + 1;
        let place = match ffi::lua_gettop(state) {
            2 => end as f64,
            3 => ffi::luaL_checknumber(state, 2),
            _ => return ffi::luaL_error(state, c"wrong number of arguments to 'insert'".as_ptr()),
        };
        if ffi::lua_getmetatable(state, 1) != 0 {
            check_writable(state);
        }
        // Cut to 32 bits, as C's casts to `int` do it: what does not fit into 64 bits, or is no number,
        // becomes 0.
        let place = if place.abs() < BEYOND { i64::from(place as i64 as c_int) } else { 0 };
        if end - place > MOVED_MAX {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(MOVES));
            ffi::lua_insert(state, 1);
            ffi::lua_pushnumber(state, place as f64);
            ffi::lua_replace(state, 3);
            ffi::lua_call(state, 3, 0);
            return 0;
        }
        for index in (place + 1..=end).rev() {
            ffi::lua_rawgeti(state, 1, index - 1);
            ffi::lua_rawseti(state, 1, index);
        }
        ffi::lua_rawseti(state, 1, place);
        0
    }
}

/// Raises if the metatable on top of the stack is that of a table that must not be changed; takes it off.
///
/// # Safety
/// In a closure that Lua has called, whose first upvalue is the function that refuses, with a metatable on
/// top.
#[cold]
pub(crate) unsafe fn check_writable(state: *mut lua_State) {
    // SAFETY: as the caller vouches; a function has room for some values.
    unsafe {
        ffi::lua_pushstring(state, c"__newindex".as_ptr());
        ffi::lua_rawget(state, -2);
        if ffi::lua_rawequal(state, -1, ffi::lua_upvalueindex(REFUSES)) != 0 {
            ffi::lua_pushstring(state, c"Attempt to modify a readonly table".as_ptr());
            ffi::lua_error(state);
        }
        ffi::lua_settop(state, -3);
    }
}
