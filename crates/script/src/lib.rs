//! The Lua interpreter of the server: Lua 5.1 with the environment and the libraries that Redis 8.0.2 gives
//! to scripts. It knows no sockets, threads, locks or commands: the server lends a [`Host`] to each run, and
//! the host runs the script's commands.
//!
//! A [`Machine`] is one interpreter. It belongs to the thread that made it. What runs in it is bounded: in
//! memory, by [`Settings::bytes_max`]; in time, by [`Host::interrupt`], which is asked every few thousand
//! instructions and as often by every library whose work can be long. Neither can be caught by the script.
//!
//! ```text
//! EVAL      Machine::compile, Machine::run
//! FUNCTION  Machine::load_library, Machine::run_function
//! ```
mod api;
mod arguments;
mod chunk;
mod dump;
mod error;
mod exchange;
mod flags;
mod fold;
mod functions;
mod host;
mod library;
mod lift;
mod machine;
mod raised;
mod registered;
mod state;
mod to_resp;

pub use flags::Flags;
pub use functions::{Library, library_name};
pub use host::{AclCheck, Host, LogLevel, Stop};
pub use machine::{Compiled, Kind, Machine, Outcome, Settings};
pub use registered::Registered;
