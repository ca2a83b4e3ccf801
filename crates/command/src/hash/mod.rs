//! The hash family.
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
