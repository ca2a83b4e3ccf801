//! The server beside its requests: how it starts and what it does in the background.
//!
//! `start` puts a server together, with the `listening` sockets and as many `open_files` as it needs; `process` is how
//! its surroundings see it, `crash` what it says when it fails. `background` is the thread that frees, and that moves
//! data together (`defrag`); `evict` keeps memory under its limit; `restless` does rare things often, for tests.
pub(crate) mod background;
pub(crate) mod crash;
pub(crate) mod defrag;
pub(crate) mod evict;
pub(crate) mod listening;
pub(crate) mod open_files;
pub(crate) mod process;
pub(crate) mod restless;
pub(crate) mod start;
