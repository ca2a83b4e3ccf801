//! What outlives the process, as bytes: the format of dump files. This crate knows the values of `store`, but
//! neither commands nor clients.
//!
//! | folder | what it holds |
//! |---|---|
//! | `journal/` | the effects of writes as records, and as a stream of commands |
//! | `rdb/` | values as Redis writes them: DUMP's payloads, and what dump files are made of |
pub mod journal;
pub mod rdb;
