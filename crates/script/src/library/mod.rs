//! The libraries that scripts have beside Lua's own, and the parts of Lua's own that are written anew because
//! they cannot be interrupted, or not be trusted with what a script gives them. A file each; nothing in them
//! allocates because of a length that was only announced, and none of them panics.
mod base;
mod bounded;
mod cjson;
mod cmsgpack;
pub(crate) mod given;
pub(crate) mod pattern;
pub(crate) mod random;
mod strings;
mod structs;

use crate::state::State;
use mlua::{Lua, Result, Table};
use std::rc::Rc;

/// Puts the functions of all libraries into the table that `sandbox.lua` takes them from.
pub(crate) fn install(lua: &Lua, state: &Rc<State>, rust: &Table) -> Result<()> {
    base::install(lua, state, rust)?;
    random::install(lua, state, rust)?;
    strings::install(lua, state, rust)?;
    rust.raw_set("bit", lua::bit(lua)?)?;
    cjson::install(lua, state, rust)?;
    cmsgpack::install(lua, state, rust)?;
    structs::install(lua, state, rust)
}
