//! What outlives the process, as bytes: the format of dump files. This crate knows the values of `store`, but
//! neither commands nor clients.
//!
//! | folder | what it holds |
//! |---|---|
//! | `rdb/` | values as Redis writes them: DUMP's payloads, and what dump files are made of |
pub mod rdb;
