//! Whether anybody wants what a function returns, which Lua's interface does not tell: scripts call many
//! commands as statements, and a reply of theirs may be a table or a string to be made and collected.
//!
//! It is read from the interpreter's own records, of which the front is repeated here. They have been the
//! same in all of Lua 5.1, whose last version is of 2012 and comes with mlua; a test calls functions in every
//! way.
use mlua::ffi::lua_State;
use std::ffi::{c_int, c_void};

/// The front of `lua_State`, up to the call that runs.
#[repr(C)]
struct State {
    next: *const c_void,
    kind: u8,
    marked: u8,
    status: u8,
    top: *const c_void,
    base: *const c_void,
    global: *const c_void,
    call: *const Call,
}

/// `CallInfo`.
#[repr(C)]
struct Call {
    base: *const c_void,
    function: *const c_void,
    top: *const c_void,
    next_instruction: *const c_void,
    results: c_int,
    tail_calls: c_int,
}

/// Whether the caller of the function that `state` runs is to get nothing of what it returns.
///
/// # Safety
/// `state` runs a function of C.
#[inline]
pub(crate) unsafe fn is_unwanted(state: *mut lua_State) -> bool {
    // SAFETY: the interpreter lays its records out like this, and has one of every call that runs.
    unsafe { (*(*state.cast::<State>()).call).results == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlua::{Lua, Value, ffi};
    use std::cell::RefCell;

    thread_local! {
        static SEEN: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
    }

    // SAFETY: to be called by Lua, as a function of C.
    unsafe extern "C-unwind" fn see(state: *mut lua_State) -> c_int {
        // SAFETY: this runs as a function of C; it owns nothing while it pushes.
        unsafe {
            let is_unwanted = is_unwanted(state);
            SEEN.with_borrow_mut(|seen| seen.push(is_unwanted));
            ffi::lua_pushinteger(state, 7);
            if is_unwanted { 0 } else { 1 }
        }
    }

    #[test]
    fn only_what_a_statement_calls_returns_to_nobody() {
        let lua = Lua::new();
        // SAFETY: the function is one of C.
        let function = unsafe { lua.create_c_function(see).unwrap() };
        lua.globals().set("see", function.clone()).unwrap();
        for (text, expected) in [
            ("see()", vec![true]),
            ("see(1, 2, 'three') see()", vec![true, true]),
            ("local a = see() return a", vec![false]),
            ("local a, b = see() return a", vec![false]),
            ("return see()", vec![false]),
            ("return (see())", vec![false]),
            ("return (select(2, pcall(see)))", vec![false]),
            ("local function f() see() return see() end return f()", vec![true, false]),
            ("local function f() return see() end f() return 7", vec![false]),
            ("if see() == 7 then see() end return ({see()})[1]", vec![false, true, false]),
            ("return coroutine.wrap(function() see() return see() end)()", vec![true, false]),
            ("for i = 1, 3 do see() end return 7", vec![true; 3]),
            (
                "local t = setmetatable({}, {__index = see, __newindex = see}) t.x = 1 return t.y",
                vec![true, false],
            ),
        ] {
            let value: Value = lua.load(text).into_function().unwrap().call(()).unwrap();
            assert_eq!(SEEN.take(), expected, "{text}");
            assert!(
                value.is_nil() && !text.contains("return") || value.as_i32() == Some(7),
                "{text}: {value:?}"
            );
        }
        function.call::<()>(()).unwrap();
        assert_eq!(SEEN.take(), [false], "mlua asks for all, and drops them");
    }
}
