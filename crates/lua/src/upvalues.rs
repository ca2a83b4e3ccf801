//! What a function of Lua has caught from around it.
use mlua::ffi;
use mlua::{Function, Lua, MultiValue, Result, Value, Variadic};
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

/// Gives the variables around a function that was loaded from a dump their values, in order.
pub fn set_upvalues(lua: &Lua, function: &Function, values: Vec<Value>) -> Result<()> {
    let count = values.len() as c_int;
    let arguments = (function, Variadic::from(values));
    // SAFETY: this runs in a protected call and owns nothing; the arguments are on the stack. Setting a
    // variable takes the value off and raises nothing; where there is no such variable, the value stays.
    unsafe {
        lua.exec_raw::<()>(arguments, |state| {
            for place in (1..=count).rev() {
                ffi::lua_setupvalue(state, 1, place);
            }
            ffi::lua_settop(state, 0);
        })
    }
}
