//! The commands on sets.
//!
//! A set holds its integers in one tree and its texts in another, by hash (`store::Set`); a small set keeps
//! the order in which members came, as Redis does. Commands see neither: they add, remove and ask by name.
//!
//! | file | what it holds |
//! |---|---|
//! | `ask.rs` | SCARD, SISMEMBER, SMISMEMBER, SMEMBERS |
//! | `edit.rs` | SADD, SREM, SMOVE |
//! | `merge.rs` | intersections, unions and differences, answered, counted or stored |
//! | `random.rs` | SPOP, SRANDMEMBER |
//! | `scan.rs` | SSCAN |
//! | `row.rs` | what the rows have in common |
mod ask;
mod edit;
mod merge;
mod random;
mod row;
mod scan;

use crate::{Command, checked};

pub const COMMANDS: &[&Command] = checked(&[
    &edit::SADD,
    &ask::SCARD,
    &merge::SDIFF,
    &merge::SDIFFSTORE,
    &merge::SINTER,
    &merge::SINTERCARD,
    &merge::SINTERSTORE,
    &ask::SISMEMBER,
    &ask::SMEMBERS,
    &ask::SMISMEMBER,
    &edit::SMOVE,
    &random::SPOP,
    &random::SRANDMEMBER,
    &edit::SREM,
    &scan::SSCAN,
    &merge::SUNION,
    &merge::SUNIONSTORE,
]);
