//! What outlives the process, as bytes: the format of dump files. This crate knows the values of `store`, but
//! neither commands nor clients.
//!
//! | folder | what it holds |
//! |---|---|
//! | `journal/` | the effects of writes as records, and as a stream of commands |
//! | `aof/` | the append-only file: its manifest, its commands |
//! | `rdb/` | values as Redis writes them: DUMP's payloads, and what dump files are made of |
//! | `parcel.rs` | values on their way to another server |
//! | `source.rs`, `checksum.rs` | bytes that are read, from memory or a file; their checksum |
pub mod aof;
mod checksum;
pub mod journal;
pub mod parcel;
pub mod rdb;
mod source;
