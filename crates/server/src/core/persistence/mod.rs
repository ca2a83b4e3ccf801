//! Snapshots of the data: writing them, by themselves or when asked, and loading one.
//!
//! ```text
//! all gates are held -> freeze (microseconds) -> the gates open -> a thread writes the file, and renames it
//! ```
//!
//! Nothing forks and nobody waits: commands go on with the trees that the snapshot holds too, and copy what
//! they change of them. `save.rs` writes, at the pace of `pace.rs`; `file.rs` has what a file system needs
//! for that, `load.rs` loads. What is known of all that is in `state/persistence.rs`. The append-only file is
//! in `append`.
pub(crate) mod append;
mod file;
mod load;
mod pace;
mod save;

pub(crate) use file::remove_left;
pub(crate) use load::{has_data, load, load_again};
pub(crate) use save::{Refused, Then, save_emptied, save_if_due, save_in_background, save_now, save_to_end};
