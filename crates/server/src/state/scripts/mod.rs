//! What all threads share of scripts: the texts that EVALSHA finds (`cache`), the libraries of functions
//! (`libraries`), and the script that runs for long, if one does (`running`). Compiled scripts belong to the
//! interpreter of a thread (`core/dispatch/script/interpreter.rs`).
mod cache;
mod libraries;
mod running;

pub(crate) use cache::{Cache, Origin, Sha, TextState};
pub(crate) use libraries::{Catalog, Former, Function, Libraries, Library, Taken};
pub(crate) use running::{Kill, Kind, Running, Slow};

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Scripts {
    pub(crate) cache: Cache,
    pub(crate) libraries: Libraries,
    pub(crate) running: Running,
}
