//! The part of the Lua interpreter that works on its stack: functions that scripts call for every command or
//! for every message, the call of a script itself, and a look at what it has returned.
//!
//! mlua, over which everything else is written, gives every value a handle, and makes every call protected.
//! That is two thirds of what a command of a script costs, so these few places use the interpreter's own C
//! interface. They are the crate, and the crate is an unsafe zone.
//!
//! ```text
//! Runner::run --> the script --> function(body) --> body: arguments as bytes --> reply as bytes
//!             <-- Stack: its value         <-- reply::push: the bytes as Lua values
//! ```
//! A function of the interpreter may *raise*: it jumps over all frames up to the next protected call, and no
//! destructor of theirs runs. What raises is what takes memory, and `lua_error` itself. So each frame of this
//! crate below a protected call either calls nothing that raises, or owns nothing that has a destructor; the
//! code of others ([`function`]'s body, the iterators of [`Start`]) runs in frames of the first kind.
mod basic;
mod bit;
mod function;
mod insert;
mod kept;
mod look;
mod quick;
mod replacer;
mod reply;
mod run;
mod unpack;
mod upvalues;
mod wanted;
mod writer;

pub use basic::{protected_call, set_metatable, unpack};
pub use bit::bit;
pub use function::{Argument, Arguments, Outcome, function};
pub use insert::insert;
pub use kept::{Functions, Kept};
pub use look::{Name, Pairs, Seen, Spot, Stack};
pub use quick::{Answer, Findings, Found, TEXT_BYTES_MAX, quick, walker};
pub use replacer::{Next, Wanted, replacer};
pub use run::{Ended, Runner, Start, Strings, Tables};
pub use unpack::{Form, NULL, unpacker};
pub use upvalues::{set_upvalues, upvalues};
pub use writer::{Buffer, Written, let_go, maker, writer};
