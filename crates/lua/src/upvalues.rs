//! What a function of Lua has caught from around it.
use mlua::ffi;
use mlua::{Function, Lua, MultiValue, Result};
use std::ffi::c_int;

/// A function catches no more variables than this.
const UPVALUES_MAX: c_int = 60;

/// The values of the variables around a function that it uses, as they are now.
pub fn upvalues(lua: &Lua, function: &Function) -> Result<MultiValue> {
    // SAFETY: this runs in a protected call and owns nothing. There is room for as many values as a function
    // of Lua can catch; one of C that had more would end the loop early. The function itself is not returned.
    unsafe {
        lua.exec_raw(function, |state| {
            if ffi::lua_checkstack(state, UPVALUES_MAX + 1) != 0 {
                let mut places = 1..=UPVALUES_MAX;
                while places.next().is_some_and(|place| !ffi::lua_getupvalue(state, 1, place).is_null()) {}
            }
            ffi::lua_remove(state, 1);
        })
    }
}
