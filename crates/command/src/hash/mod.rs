//! The commands on hashes, those on deadlines of single fields included.
//!
//! A small hash keeps its fields in the order in which they came, as Redis does, a large one in a tree by
//! hash (`store::Hash`). Deadlines of fields cost a hash without them nothing.
//!
//! | file | what it holds |
//! |---|---|
//! | `read.rs` | fields and values: HGET, HMGET, HGETALL and their like |
//! | `write.rs` | HSET, HDEL and the counters |
//! | `deadline.rs` | HEXPIRE, HTTL and HPERSIST with their like |
//! | `timed.rs` | fields together with their deadlines: HGETEX, HSETEX, HGETDEL |
//! | `random.rs` | HRANDFIELD |
//! | `scan.rs` | HSCAN |
//! | `row.rs` | what the rows have in common |
mod deadline;
mod random;
mod read;
mod row;
mod scan;
mod timed;
mod write;

use crate::{Command, checked};

pub const COMMANDS: &[&Command] = checked(&[
    &write::HDEL,
    &read::HEXISTS,
    &deadline::HEXPIRE,
    &deadline::HEXPIREAT,
    &deadline::HEXPIRETIME,
    &read::HGET,
    &read::HGETALL,
    &timed::HGETDEL,
    &timed::HGETEX,
    &write::HINCRBY,
    &write::HINCRBYFLOAT,
    &read::HKEYS,
    &read::HLEN,
    &read::HMGET,
    &write::HMSET,
    &deadline::HPERSIST,
    &deadline::HPEXPIRE,
    &deadline::HPEXPIREAT,
    &deadline::HPEXPIRETIME,
    &deadline::HPTTL,
    &random::HRANDFIELD,
    &scan::HSCAN,
    &write::HSET,
    &timed::HSETEX,
    &write::HSETNX,
    &read::HSTRLEN,
    &deadline::HTTL,
    &read::HVALS,
]);
