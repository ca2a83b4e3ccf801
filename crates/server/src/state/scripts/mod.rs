//! What all threads share of scripts: the texts that EVALSHA finds (`cache`), and the script that runs for
//! long, if one does (`running`). Compiled scripts belong to the interpreter of a thread
//! (`core/dispatch/script/interpreter.rs`).
mod cache;
mod running;

pub(crate) use cache::{Cache, Origin, Sha};
pub(crate) use running::{Kill, Kind, Running, Slow};

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) cache: Cache,
    pub(crate) running: Running,
}
