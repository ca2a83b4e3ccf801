//! The append-only file: written, begun anew, loaded.
//!
//! ```text
//! workers --- records of the journal ---> writer.rs, on the thread of the journal --- write, sync ---> disk
//!    ^                                                                                    |
//!    \------------------------- how far it is on the disk --------------------------------/
//!
//! rewrite.rs, on a thread of its own:
//! all gates are held -> freeze, and from this record on another file -> the gates open
//!   -> the snapshot is written and takes the place of all that was written before
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `files.rs` | names, the manifest, what a crash leaves |
//! | `appended.rs` | what is appended to |
//! | `writer.rs` | the reader of the journal that writes |
//! | `aside.rs` | a sync that another thread waits for |
//! | `tail.rs` | what was answered and is not written, for the case that the process is killed |
//! | `rewrite.rs` | turning it on and off, beginning anew, and the thread that does so |
//! | `load.rs` | loading, when the server starts |
//! | `replay.rs` | runs the commands of a file |
//! | `chunk.rs` | commands of single keys, run by several threads |
//!
//! What is known of all that is in `state/append_only.rs`. docs/persistence.md explains it as a whole.
mod appended;
mod aside;
mod chunk;
mod files;
mod load;
mod replay;
mod rewrite;
mod tail;
mod writer;

pub(crate) use files::{can_begin, prepare};
pub(crate) use load::{has_data, load, load_again};
pub(crate) use rewrite::{end, follow, go_on, rewrite_if_due, start, tell_of_move};
pub(crate) use tail::forget as forget_tail;
