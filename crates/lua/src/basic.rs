//! `pcall`, `unpack` and `setmetatable` of Lua's basic library. Scripts call them often, and most of a call
//! in the interpreter's language went into looking at the arguments. What the interpreter's own do not look
//! for is looked for here: errors that are to be opened before a script sees them, more values than there is
//! room for, and tables that scripts must not change.
//!
//! All of this may raise, so nothing here owns anything.
use crate::insert::check_writable;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::ffi::c_int;

/// Makes `unpack`.
pub fn unpack(lua: &Lua) -> Result<Function> {
    // SAFETY: the closure runs in a protected call and owns nothing.
    unsafe { lua.exec_raw((), |state| ffi::lua_pushcfunction(state, call_unpack)) }
}

/// Makes `setmetatable`. Tables whose metatable has `refuses` as `__newindex` keep it.
pub fn set_metatable(lua: &Lua, refuses: &Function) -> Result<Function> {
    // SAFETY: the closure runs in a protected call with the function as its argument, which becomes the
    // upvalue that is asked for, and owns nothing.
    unsafe { lua.exec_raw(refuses, |state| ffi::lua_pushcclosure(state, call_set_metatable, 1)) }
}

/// Makes `pcall`. An error is given to `open`, and what that answers to the script.
pub fn protected_call(lua: &Lua, open: &Function) -> Result<Function> {
    // SAFETY: as for `set_metatable`.
    unsafe { lua.exec_raw(open, |state| ffi::lua_pushcclosure(state, call_protected, 1)) }
}

/// # Safety
/// To be called by Lua, as a closure over the function that opens errors.
unsafe extern "C-unwind" fn call_protected(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has called this, and it owns nothing. There is something to call, with all that lies above
    // it, and a function has room for some values.
    unsafe {
        if ffi::lua_gettop(state) == 0 {
            // Redis's calls what it has put there for the result.
            ffi::lua_pushboolean(state, 1);
        }
        let is_ok = ffi::lua_pcall(state, ffi::lua_gettop(state) - 1, ffi::LUA_MULTRET, 0) == ffi::LUA_OK;
        if !is_ok {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
            ffi::lua_insert(state, 1);
            ffi::lua_call(state, 1, ffi::LUA_MULTRET);
        }
        // Results may have left no room.
        if ffi::lua_checkstack(state, 1) == 0 {
            return ffi::luaL_error(state, c"stack overflow (too many results)".as_ptr());
        }
        ffi::lua_pushboolean(state, c_int::from(is_ok));
        ffi::lua_insert(state, 1);
        ffi::lua_gettop(state)
    }
}

/// # Safety
/// To be called by Lua.
unsafe extern "C-unwind" fn call_unpack(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has called this, and it owns nothing. The first argument is a table wherever one is meant,
    // and there is room for every value that is pushed.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        // Cut to 32 bits, as C's casts to `int` do it.
        let first = ffi::luaL_optinteger(state, 2, 1) as c_int;
        let last = match ffi::lua_isnoneornil(state, 3) {
            0 => ffi::luaL_checkinteger(state, 3) as c_int,
            _ => ffi::lua_rawlen(state, 1) as c_int,
        };
        if first > last {
            return 0;
        }
        // The interpreter's own counts in 32 bits, past which it writes beyond its stack (CVE-2025-46817).
        // For as many as fit into them there is no room either.
        let count = c_int::try_from(i64::from(last) - i64::from(first) + 1).unwrap_or(c_int::MAX);
        if ffi::lua_checkstack(state, count) == 0 {
            return ffi::luaL_error(state, c"too many results to unpack".as_ptr());
        }
        for index in first..=last {
            ffi::lua_rawgeti(state, 1, index.into());
        }
        count
    }
}

/// # Safety
/// To be called by Lua, as a closure over the function that refuses.
unsafe extern "C-unwind" fn call_set_metatable(state: *mut lua_State) -> c_int {
    // SAFETY: Lua has called this, and it owns nothing. The first argument is a table wherever one is meant,
    // and a function has room for some values.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TTABLE);
        let kind = ffi::lua_type(state, 2);
        if kind != ffi::LUA_TNIL && kind != ffi::LUA_TTABLE {
            return ffi::luaL_argerror(state, 2, c"nil or table expected".as_ptr());
        }
        if ffi::lua_getmetatable(state, 1) != 0 {
            check_writable(state);
            if ffi::luaL_getmetafield(state, 1, c"__metatable".as_ptr()) != 0 {
                return ffi::luaL_error(state, c"cannot change a protected metatable".as_ptr());
            }
        }
        ffi::lua_settop(state, 2);
        ffi::lua_setmetatable(state, 1);
        1
    }
}
