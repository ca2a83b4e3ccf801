//! The set family.
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
