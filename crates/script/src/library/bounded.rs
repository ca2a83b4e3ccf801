//! Functions of libraries that look at values where these lie (`lua::writer`), within the memory of the
//! script.
use crate::state::State;
use lua::{Stack, Written};
use mlua::{Function, Lua, Result};
use std::rc::Rc;

/// What the interpreter may take for its stack while a library looks at values.
const LOOK_BYTES: usize = 128 << 10;

/// Makes a function that makes a string of its arguments. Its body is told how long that may become.
pub(super) fn writer<F>(lua: &Lua, state: &Rc<State>, body: F) -> Result<Function>
where
    F: Fn(&mut Stack<'_>, &State, usize, &mut Vec<u8>) -> Written + 'static,
{
    lua::writer(lua, &state.buffer, bounded(lua, state, body))
}

/// The same for a function that makes a value, which its body writes in MessagePack.
pub(super) fn maker<F>(lua: &Lua, state: &Rc<State>, body: F) -> Result<Function>
where
    F: Fn(&mut Stack<'_>, &State, usize, &mut Vec<u8>) -> Written + 'static,
{
    lua::maker(lua, &state.buffer, bounded(lua, state, body))
}

/// A body that is not run where there is no memory for it, and ends the script where it has written too much.
fn bounded<F>(
    lua: &Lua,
    state: &Rc<State>,
    body: F,
) -> impl Fn(Stack<'_>, &mut Vec<u8>) -> Written + 'static + use<F>
where
    F: Fn(&mut Stack<'_>, &State, usize, &mut Vec<u8>) -> Written + 'static,
{
    let (lua_again, state) = (lua.weak(), Rc::clone(state));
    move |mut stack: Stack<'_>, out: &mut Vec<u8>| {
        let lua = lua_again.upgrade();
        let room = state.spare_bytes(&lua);
        let look = || Ok(body(&mut stack, &state, room, out));
        let written = match room < LOOK_BYTES {
            true => Err(state.stop_out_of_memory()),
            false => state.lifted(&lua, LOOK_BYTES, look),
        };
        match written.and_then(|written| state.check_room(&lua, out.len()).map(|()| written)) {
            Ok(written) => written,
            // Why the script ends is known to `state`.
            Err(_) => Written::Stopped,
        }
    }
}
