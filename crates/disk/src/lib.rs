//! What outlives the process, as bytes: the format of dump files. Does not know where commands come from, nor
//! who asks for a value.
//!
//! | folder | what it holds |
//! |---|---|
//! | `rdb/` | values as Redis writes them: DUMP's payloads, and what dump files are made of |
pub mod rdb;
