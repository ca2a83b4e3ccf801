//! Values of a script, read where they lie: nothing is copied, no handle is made, and nothing raises.
//! What was seen lies on the stack as long as it is borrowed, so that it stays whatever runs meanwhile.
//!
//! A table that is looked into lies on the interpreter's stack, and what is found in it above it. Looking
//! into a table lets go of all that lies above it, so tables are to be read from the outside in: after one
//! that nests in another, the other goes on.
use mlua::ffi::{self, lua_State};
use mlua::{Lua, Result};
use std::ffi::c_int;
use std::marker::PhantomData;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen<'s> {
    Nil,
    Boolean(bool),
    Number(f64),
    String(&'s [u8]),
    Table(Spot),
    /// The pointer to nothing, which stands for what JSON calls null.
    Null,
    /// Of any other type, which has this name.
    Other(&'static str),
}

/// Where a table lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot(c_int);

/// A table whose pairs are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    table: Spot,
    /// Where the key lies that was visited last; nil before the first.
    key: Spot,
}

/// The name of a field, which an interpreter keeps as long as it lives.
pub struct Name(c_int);

impl Name {
    pub fn new(lua: &Lua, text: &str) -> Result<Name> {
        let mut number = 0;
        // SAFETY: the closure runs in a protected call with the string as its argument, takes it off the
        // stack, and owns nothing.
        unsafe {
            lua.exec_raw::<()>(text, |state| number = ffi::luaL_ref(state, ffi::LUA_REGISTRYINDEX))?;
        }
        Ok(Name(number))
    }
}

/// The interpreter's stack, from one value on.
pub struct Stack<'s> {
    state: *mut lua_State,
    first: c_int,
    time: PhantomData<&'s ()>,
}

/// Places that a look takes.
const PLACES: c_int = 2;

impl<'s> Stack<'s> {
    /// # Safety
    /// A value lies on the stack's top, and stays there during 's. What others put above it they take off
    /// again.
    pub(crate) unsafe fn new(state: *mut lua_State) -> Stack<'s> {
        // SAFETY: as the caller vouches.
        Stack { state, first: unsafe { ffi::lua_gettop(state) }, time: PhantomData }
    }

    /// # Safety
    /// `state` runs a function, whose arguments stay where they are during 's.
    pub(crate) unsafe fn of_arguments(state: *mut lua_State) -> Stack<'s> {
        // SAFETY: as the caller vouches.
        unsafe { Stack::new(state) }
    }

    /// Of the arguments of a function, how many there are.
    pub fn count(&self) -> usize {
        self.first as usize
    }

    /// Of the arguments of a function, the one at `index`, counted from 1. To look into a table lets go of
    /// what lies above it, so a copy is looked at that lies above them all.
    pub fn argument(&mut self, index: usize) -> Seen<'_> {
        let index = c_int::try_from(index).unwrap_or(c_int::MAX);
        // SAFETY: shortening the stack to the arguments raises nothing; there is room for a copy of one.
        unsafe {
            ffi::lua_settop(self.state, self.first);
            if index < 1 || index > self.first || !self.has_room() {
                return Seen::Nil;
            }
            ffi::lua_pushvalue(self.state, index);
            self.see(self.first + 1)
        }
    }

    /// The value that lies first.
    pub fn first(&mut self) -> Seen<'_> {
        // SAFETY: it stays where it is.
        unsafe { self.see(self.first) }
    }

    /// Whether there is room to look into one table more. Without, nothing is found.
    pub fn has_room(&mut self) -> bool {
        self.has_room_for(1)
    }

    /// The same for so many tables, each in the one before.
    pub fn has_room_for(&mut self, tables: usize) -> bool {
        let places = c_int::try_from(tables).unwrap_or(c_int::MAX).saturating_mul(PLACES);
        // SAFETY: it raises only where the process has no memory.
        unsafe { ffi::lua_checkstack(self.state, places) != 0 }
    }

    /// Element `index` of a table.
    #[inline]
    pub fn element(&mut self, table: Spot, index: i64) -> Seen<'_> {
        if !self.look_into(table, table) {
            return Seen::Nil;
        }
        // SAFETY: there is a table at this index, and room for a value; looking past metatables raises
        // nothing.
        unsafe {
            ffi::lua_rawgeti(self.state, table.0, index);
            self.see(table.0 + 1)
        }
    }

    /// What a table has under this name.
    #[inline]
    pub fn field(&mut self, table: Spot, name: &Name) -> Seen<'_> {
        if !self.look_into(table, table) {
            return Seen::Nil;
        }
        // SAFETY: as for `element`. What the registry holds under the number is pushed, whatever it is.
        unsafe {
            ffi::lua_rawgeti(self.state, ffi::LUA_REGISTRYINDEX, name.0.into());
            ffi::lua_rawget(self.state, table.0);
            self.see(table.0 + 1)
        }
    }

    /// Visits all keys of a table, in the order in which [`Stack::next`] does.
    pub fn visit_keys(&mut self, table: Spot, visit: &mut dyn FnMut(Seen<'_>)) {
        if !self.look_into(table, table) {
            return;
        }
        // SAFETY: there is a table, and room for a key and a value. Nothing changes the table meanwhile, so
        // each key is one of it, and `lua_next` raises nothing.
        unsafe {
            ffi::lua_pushnil(self.state);
            while ffi::lua_next(self.state, table.0) != 0 {
                visit(self.see(table.0 + 1));
                ffi::lua_settop(self.state, table.0 + 1);
            }
        }
    }

    /// Begins a visit of a table's pairs, in no order.
    pub fn pairs(&mut self, table: Spot) -> Pairs {
        if self.look_into(table, table) {
            // SAFETY: there is room for a value.
            unsafe { ffi::lua_pushnil(self.state) };
        }
        Pairs { table, key: Spot(table.0 + 1) }
    }

    /// The next key; None at the end.
    pub fn next(&mut self, pairs: Pairs) -> Option<Seen<'_>> {
        if !self.look_into(pairs.table, pairs.key) {
            return None;
        }
        let Pairs { table, key } = pairs;
        // SAFETY: a table and a key are there, and room. `lua_next` raises only for a key that is not in the
        // table, so that is looked for.
        unsafe {
            let is_first = ffi::lua_type(self.state, key.0) == ffi::LUA_TNIL;
            if !is_first && self.value(pairs) == Seen::Nil {
                return None;
            }
            ffi::lua_settop(self.state, key.0);
            (ffi::lua_next(self.state, table.0) != 0).then(|| self.see(key.0))
        }
    }

    /// The value of the key that was visited last.
    pub fn value(&mut self, pairs: Pairs) -> Seen<'_> {
        if !self.look_into(pairs.table, pairs.key) {
            return Seen::Nil;
        }
        // SAFETY: as for `element`.
        unsafe {
            ffi::lua_pushvalue(self.state, pairs.key.0);
            ffi::lua_rawget(self.state, pairs.table.0);
            self.see(pairs.key.0 + 1)
        }
    }

    /// Lets go of all that lies above `top`: the table itself, or a key of it. Returns whether that is there,
    /// and the table is one, and there is room.
    #[inline]
    fn look_into(&mut self, table: Spot, top: Spot) -> bool {
        // SAFETY: shortening the stack to what it has raises nothing.
        unsafe {
            let is_there =
                ffi::lua_gettop(self.state) >= top.0 && ffi::lua_type(self.state, table.0) == ffi::LUA_TTABLE;
            if is_there {
                ffi::lua_settop(self.state, top.0);
            }
            is_there && self.has_room()
        }
    }

    /// The value at this index, or nil where there is none.
    ///
    /// # Safety
    /// It stays there until this stack is used again.
    #[inline]
    unsafe fn see<'a>(&self, index: c_int) -> Seen<'a> {
        let state = self.state;
        // SAFETY: as the caller vouches; nothing of this raises, since no number is made a string. The bytes
        // of a string do not move.
        unsafe {
            match ffi::lua_type(state, index) {
                ffi::LUA_TNIL | ffi::LUA_TNONE => Seen::Nil,
                ffi::LUA_TBOOLEAN => Seen::Boolean(ffi::lua_toboolean(state, index) != 0),
                ffi::LUA_TNUMBER => Seen::Number(ffi::lua_tonumber(state, index)),
                ffi::LUA_TSTRING => {
                    let mut len = 0;
                    let bytes = ffi::lua_tolstring(state, index, &raw mut len);
                    Seen::String(std::slice::from_raw_parts(bytes.cast(), len))
                }
                ffi::LUA_TTABLE => Seen::Table(Spot(index)),
                ffi::LUA_TLIGHTUSERDATA if ffi::lua_touserdata(state, index).is_null() => Seen::Null,
                ffi::LUA_TFUNCTION => Seen::Other("function"),
                ffi::LUA_TTHREAD => Seen::Other("thread"),
                _ => Seen::Other("userdata"),
            }
        }
    }
}
