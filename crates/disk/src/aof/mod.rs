//! The append-only file of Redis 7 and later: a folder of files, and a manifest that says which of them
//! count.
//!
//! ```text
//! appendonlydir/appendonly.aof.manifest        the list
//!               appendonly.aof.3.base.rdb      all data at one moment, as a dump file; or as commands,
//!                                              where the name ends with .aof
//!               appendonly.aof.3.incr.aof      what was written since, as commands
//!               appendonly.aof.4.incr.aof      and so on: these are read one after the other
//! ```
//!
//! Before Redis 7 it was one file: commands, or a dump file followed by commands.
//!
//! | file | what it does |
//! |---|---|
//! | `manifest.rs` | the manifest, read and written |
//! | `base.rs` | all data at one moment, written as commands |
//! | `commands.rs` | a file of commands, read |
//! | `increment.rs` | the end of a file of commands, written |
//! | `tail.rs` | what was answered and is not in a file yet, for the case that the process is killed |
pub mod base;
pub mod commands;
pub mod increment;
pub mod manifest;
pub mod tail;
