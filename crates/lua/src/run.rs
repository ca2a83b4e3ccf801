//! The call of a script: its keys and arguments become tables, it runs, and what it returns is read where it
//! lies.
use crate::function::resume_panic;
use crate::kept::{Functions, Kept};
use crate::look::Stack;
use crate::reply::push_bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result, Table, Value};
use std::ffi::c_int;

/// The script that is called, and with what.
pub struct Start<'f, 's, 'a> {
    pub function: &'f Kept,
    pub tables: Tables<'s, 'a>,
}

/// An iterator over strings that knows how many there are.
pub type Strings<'s, 'a> = &'s mut dyn ExactSizeIterator<Item = &'a [u8]>;

/// Where a script finds its keys and its arguments.
pub enum Tables<'s, 'a> {
    /// Nowhere.
    None,
    /// In the globals KEYS and ARGV.
    Globals(Strings<'s, 'a>, Strings<'s, 'a>),
    /// As its two arguments.
    Arguments(Strings<'s, 'a>, Strings<'s, 'a>),
}

/// How a run has ended.
pub enum Ended<'v> {
    /// With what it has returned as the first value.
    Done(Stack<'v>),
    /// With what the handler has made of what was raised, or with what Lua says when it could not call it.
    Failed(Value),
}

/// Calls functions of one interpreter.
pub struct Runner {
    /// Keeps the interpreter, and with it `state`.
    lua: Lua,
    state: *mut lua_State,
    /// The places in the registry: the function that calls scripts, the handler of errors, and a table of one
    /// element for values that mlua is to read.
    body: c_int,
    handler: c_int,
    slot: c_int,
    slot_table: Table,
}

impl Runner {
    /// Calls those functions; KEYS and ARGV are set in `globals`. The handler gets errors where they are
    /// raised.
    pub fn new(lua: &Lua, globals: &Table, functions: &Functions, handler: &Function) -> Result<Runner> {
        let slot_table = lua.create_sequence_from([false])?;
        let (mut main, mut places) = (std::ptr::null_mut(), [0; 3]);
        // SAFETY: the closure runs in a protected call, with room for twenty values, and owns nothing. The
        // five arguments are on the stack when it begins, and it leaves none.
        unsafe {
            let arguments = (&slot_table, handler, globals, &functions.table);
            lua.exec_raw::<()>(arguments, |state| {
                main = state;
                ffi::lua_pushlstring_(state, c"KEYS".as_ptr(), 4);
                ffi::lua_pushlstring_(state, c"ARGV".as_ptr(), 4);
                ffi::lua_pushcclosure(state, call_script, 4);
                places = [(); 3].map(|()| ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX));
            })?;
        }
        let [body, handler, slot] = places;
        Ok(Runner { lua: lua.clone(), state: main, body, handler, slot, slot_table })
    }

    /// Runs a script in at most `bytes_max` (0 for no bound). `read` is given its end while what it has
    /// returned lies on the stack, and without a bound.
    pub fn run<R>(
        &self,
        mut start: Start<'_, '_, '_>,
        bytes_max: usize,
        read: impl FnOnce(Ended<'_>) -> Result<R>,
    ) -> Result<R> {
        let state = self.state;
        // SAFETY: a runner cannot be sent, so this is the interpreter's thread, and nothing runs in it but
        // what has called this. The stack has room: Lua keeps twenty places for whoever uses it, and mlua
        // takes few of them. Pushing what the registry holds takes no memory, so nothing raises outside the
        // call.
        let top = unsafe { Top { state, top: ffi::lua_gettop(state) } };
        self.lua.set_memory_limit(bytes_max)?;
        // SAFETY: the same. `start` lives until the call has ended.
        let status = unsafe {
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.handler.into());
            ffi::lua_rawgeti(state, ffi::LUA_REGISTRYINDEX, self.body.into());
            ffi::lua_pushlightuserdata(state, (&raw mut start).cast());
            ffi::lua_pcall(state, 1, 1, top.top + 1)
        };
        resume_panic();
        self.lua.set_memory_limit(0)?;
        let ended = match status {
            ffi::LUA_OK => {
                // SAFETY: the call has left one value, which is there until `top` is dropped, behind `read`.
                Ended::Done(unsafe { Stack::new(state) })
            }
            // SAFETY: the call has left the error.
            _ => Ended::Failed(unsafe { self.value() }),
        };
        read(ended)
    }

    /// The value on the stack's top, with a handle of mlua.
    ///
    /// # Safety
    /// There is one.
    unsafe fn value(&self) -> Value {
        // SAFETY: the slot is a table with an element at 1, so setting it takes no memory, and nothing
        // raises.
        unsafe {
            ffi::lua_rawgeti(self.state, ffi::LUA_REGISTRYINDEX, self.slot.into());
            ffi::lua_pushvalue(self.state, -2);
            ffi::lua_rawseti(self.state, -2, 1);
            ffi::lua_settop(self.state, -2);
        }
        let value = self.slot_table.raw_get(1).unwrap_or(Value::Nil);
        // It would keep what the script has made.
        let _ = self.slot_table.raw_set(1, false);
        value
    }
}

/// Takes what lies above `top` off the stack in the end.
struct Top {
    state: *mut lua_State,
    top: c_int,
}

impl Drop for Top {
    fn drop(&mut self) {
        // SAFETY: the top is that of before, and shortening the stack raises nothing.
        unsafe { ffi::lua_settop(self.state, self.top) }
    }
}

/// What Lua calls, protected: makes the tables and calls the script.
///
/// # Safety
/// To be called by Lua with the address of a [`Start`], as a closure over the globals, the functions, and the
/// strings KEYS and ARGV. It owns nothing, since making tables raises, and so does the script.
unsafe extern "C-unwind" fn call_script(state: *mut lua_State) -> c_int {
    let [globals, functions, keys_name, argv_name] = [1, 2, 3, 4].map(ffi::lua_upvalueindex);
    // SAFETY: as the caller vouches. A function has room for twenty values.
    unsafe {
        let start: *mut Start<'_, '_, '_> = ffi::lua_touserdata(state, 1).cast();
        let start = &mut *start;
        ffi::lua_settop(state, 0);
        let count = match &mut start.tables {
            Tables::None => {
                ffi::lua_rawgeti(state, functions, start.function.number().into());
                0
            }
            Tables::Globals(keys, argv) => {
                for (name, strings) in [(keys_name, keys), (argv_name, argv)] {
                    ffi::lua_pushvalue(state, name);
                    push_strings(state, *strings);
                    ffi::lua_rawset(state, globals);
                }
                ffi::lua_rawgeti(state, functions, start.function.number().into());
                0
            }
            Tables::Arguments(keys, argv) => {
                ffi::lua_rawgeti(state, functions, start.function.number().into());
                push_strings(state, *keys);
                push_strings(state, *argv);
                2
            }
        };
        ffi::lua_call(state, count, 1);
    }
    1
}

/// Pushes a table of strings.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing that has a destructor.
unsafe fn push_strings(state: *mut lua_State, strings: Strings<'_, '_>) {
    let count = c_int::try_from(strings.len()).unwrap_or(c_int::MAX);
    // SAFETY: the caller allows raising, and has room for two values.
    unsafe {
        ffi::lua_createtable(state, count, 0);
        for (index, bytes) in (1..).zip(strings) {
            push_bytes(state, bytes);
            ffi::lua_rawseti(state, -2, index);
        }
    }
}
