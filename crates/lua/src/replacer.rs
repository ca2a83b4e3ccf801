//! `string.gsub` with a function or a table: the loop over the matches, which calls what a script has given.
//! It is a function of C as in Lua itself, so errors that it raises, and those of what it calls, name the
//! lines that they would. All else a quick function ([`crate::quick`]) answers.
use crate::function::{Argument, Arguments, closure, guarded};
use crate::quick::{Answer, Bound, Findings, Found, give, push_all};
use crate::reply::push_bytes;
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua, Result};
use std::cell::RefCell;
use std::ffi::c_int;
use std::slice::from_ref;

/// What the search for the next match has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has left where the match begins and ends, as scripts count, and its captures, or the whole; nothing
    /// where there is no other.
    Given,
    /// What is wrong with the pattern.
    Fault(&'static str),
    /// The script is to end.
    Stopped,
}

/// What a search is to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// From where on it searches, counted from 0.
    pub from: usize,
    /// So many captures matter, and what is wrong with the others does not: one where a table is asked.
    pub captures_max: usize,
}

struct Both<F, G> {
    whole: Bound<F>,
    each: RefCell<Vec<Found>>,
    next: G,
}

/// Where the arguments are.
const SUBJECT: c_int = 1;
const PATTERN: c_int = 2;
const REPLACEMENT: c_int = 3;
/// Behind them is the block in which the result grows.
const ROOM: c_int = 4;

/// Makes the function. `whole` answers where a string replaces; `next` searches a subject for a pattern.
pub fn replacer<F, G>(lua: &Lua, slow: &Function, whole: F, next: G) -> Result<Function>
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
    G: Fn(&[u8], &[u8], Wanted, &mut Vec<Found>) -> Next + 'static,
{
    let both = Both { whole: Bound::new(whole), each: RefCell::default(), next };
    closure(lua, both, from_ref(slow), call::<F, G>)
}

/// What Lua calls.
///
/// # Safety
/// To be called by Lua as a closure over the address of a [`Both`] that lives, its owner, and the slower
/// function. It owns nothing, since it raises.
unsafe extern "C-unwind" fn call<F, G>(state: *mut lua_State) -> c_int
where
    F: Fn(Arguments<'_>, &mut Findings) -> Answer + 'static,
    G: Fn(&[u8], &[u8], Wanted, &mut Vec<Found>) -> Next + 'static,
{
    // SAFETY: as this function is called.
    unsafe {
        let both: *const Both<F, G> = ffi::lua_touserdata(state, ffi::lua_upvalueindex(1)).cast();
        match count_max(state) {
            Some(count_max) => replace(state, both, count_max),
            None => give(state, &(*both).whole),
        }
    }
}

/// How many matches are replaced at most, if there is a subject, a pattern, and what is called for each.
///
/// # Safety
/// `state` runs a function.
unsafe fn count_max(state: *mut lua_State) -> Option<i64> {
    // SAFETY: this reads and raises nothing; nothing changes the stack meanwhile.
    unsafe {
        let is_each = ffi::lua_type(state, SUBJECT) == ffi::LUA_TSTRING
            && ffi::lua_type(state, PATTERN) == ffi::LUA_TSTRING
            && matches!(ffi::lua_type(state, REPLACEMENT), ffi::LUA_TFUNCTION | ffi::LUA_TTABLE);
        let most = Arguments::new(state).get(REPLACEMENT as usize);
        match most {
            _ if !is_each => None,
            None => Some(i64::MAX),
            Some(most) => Argument::int(most),
        }
    }
}

/// The bytes of a string argument.
///
/// # Safety
/// There is a string at `index`, and it stays there during `'a`.
unsafe fn text<'a>(state: *mut lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: as the caller vouches; the bytes of a string do not move.
    unsafe {
        let bytes = ffi::lua_tolstring(state, index, &raw mut len);
        std::slice::from_raw_parts(bytes.cast(), len)
    }
}

/// The result as far as it is there, in a block that the interpreter owns: a frame of C that is left by an
/// error leaves nothing behind.
struct Room {
    first: *mut u8,
    len: usize,
    bytes_max: usize,
}

impl Room {
    /// # Safety
    /// In a function that Lua has called, whose frames own nothing. The block becomes its value at [`ROOM`].
    unsafe fn new(state: *mut lua_State, bytes_max: usize) -> Room {
        // SAFETY: as the caller vouches; there is room for a value.
        unsafe {
            let first = ffi::lua_newuserdata(state, bytes_max.max(1)).cast();
            Room { first, len: 0, bytes_max: bytes_max.max(1) }
        }
    }

    /// # Safety
    /// As for [`Room::new`], by which it was made. The bytes stay where they are meanwhile.
    unsafe fn append(&mut self, state: *mut lua_State, bytes: &[u8]) {
        // SAFETY: as the caller vouches; the block has so many bytes, and those that are copied into a new
        // one are fewer.
        unsafe {
            let len = self.len.saturating_add(bytes.len());
            if len > self.bytes_max {
                let grown = Room::new(state, len.max(self.bytes_max.saturating_mul(2)));
                self.first.copy_to_nonoverlapping(grown.first, self.len);
                (self.first, self.bytes_max) = (grown.first, grown.bytes_max);
                ffi::lua_replace(state, ROOM);
            }
            bytes.as_ptr().copy_to_nonoverlapping(self.first.add(self.len), bytes.len());
            self.len = len;
        }
    }
}

/// # Safety
/// As for [`call`], with such arguments.
unsafe fn replace<F, G>(state: *mut lua_State, both: *const Both<F, G>, count_max: i64) -> c_int
where
    G: Fn(&[u8], &[u8], Wanted, &mut Vec<Found>) -> Next,
{
    // SAFETY: the arguments and the block stay where they are: what is called lies above them. No frame has
    // borrowed anything when something is called or made.
    unsafe {
        ffi::lua_settop(state, REPLACEMENT);
        let (subject, pattern) = (text(state, SUBJECT), text(state, PATTERN));
        let is_table = ffi::lua_type(state, REPLACEMENT) == ffi::LUA_TTABLE;
        let captures_max = if is_table { 1 } else { usize::MAX };
        let mut room = Room::new(state, subject.len() + 64);
        let (mut count, mut copied, mut from) = (0_i64, 0, 0);
        while count < count_max && from <= subject.len() {
            let (next, found) = search(&*both, subject, pattern, Wanted { from, captures_max });
            match next {
                Next::Given => {}
                Next::Fault(why) => return raise(state, why),
                Next::Stopped => return ffi::luaL_error(state, c"the script was stopped".as_ptr()),
            }
            let [Found::Number(first), Found::Number(last), captures @ ..] = &*found else { break };
            let (start, end) = (*first as usize - 1, *last as usize);
            put_replacement(state, captures);
            room.append(state, &subject[copied..start]);
            if ffi::lua_toboolean(state, -1) == 0 {
                room.append(state, &subject[start..end]);
            } else if ffi::lua_isstring(state, -1) != 0 {
                room.append(state, text(state, ROOM + 1));
            } else {
                let kind = ffi::lua_typename(state, ffi::lua_type(state, -1));
                return ffi::luaL_error(state, c"invalid replacement value (a %s)".as_ptr(), kind);
            }
            ffi::lua_settop(state, ROOM);
            (count, copied) = (count + 1, end);
            from = if end > start { end } else { start + 1 };
            if pattern.first() == Some(&b'^') {
                break;
            }
        }
        room.append(state, &subject[copied..]);
        push_bytes(state, std::slice::from_raw_parts(room.first, room.len));
        ffi::lua_pushnumber(state, count as f64);
        2
    }
}

/// Pushes what takes a match's place: what the function returns, or what the table has.
///
/// # Safety
/// As for [`replace`]. The captures are there until a script runs.
unsafe fn put_replacement(state: *mut lua_State, captures: *const [Found]) {
    // SAFETY: as the caller vouches: the captures are pushed before anything is called.
    unsafe {
        if ffi::lua_type(state, REPLACEMENT) == ffi::LUA_TTABLE {
            push_all(state, &(&*captures)[..1], b"");
            ffi::lua_gettable(state, REPLACEMENT);
        } else {
            ffi::lua_pushvalue(state, REPLACEMENT);
            let count = push_all(state, &*captures, b"");
            ffi::lua_call(state, count, 1);
        }
    }
}

/// Raises an error, with the line of the script that has called.
///
/// # Safety
/// In a function that Lua has called, whose frames own nothing.
unsafe fn raise(state: *mut lua_State, why: &str) -> c_int {
    // SAFETY: as the caller vouches.
    unsafe {
        ffi::luaL_where(state, 1);
        push_bytes(state, why.as_bytes());
        ffi::lua_concat(state, 2);
        ffi::lua_error(state)
    }
}

/// Runs the search. Nothing raises here, so what it owns is dropped as always. What it has found is there
/// until its next call.
fn search<F, G>(both: &Both<F, G>, subject: &[u8], pattern: &[u8], wanted: Wanted) -> (Next, *const [Found])
where
    G: Fn(&[u8], &[u8], Wanted, &mut Vec<Found>) -> Next,
{
    let Ok(mut found) = both.each.try_borrow_mut() else {
        return (Next::Stopped, std::ptr::slice_from_raw_parts(std::ptr::dangling(), 0));
    };
    found.clear();
    let next = guarded(|| (both.next)(subject, pattern, wanted, &mut found)).unwrap_or(Next::Stopped);
    (next, &raw const **found)
}
