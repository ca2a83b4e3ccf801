//! The commands on strings: GET, SET and what is built on them, counters, parts of strings, LCS. Bits of
//! strings and HyperLogLogs, which are strings too, have families of their own.
//!
//! Text that reads as an integer is kept as one whatever wrote it. Commands see neither that nor where a
//! value lies: they are lent an `Item`, which writes itself as text.
mod get;
mod grow;
mod held;
mod lcs;
mod number;
mod range;
mod row;
mod set;
mod text;

use crate::{Command, checked};
pub(crate) use grow::check_growth;

pub const COMMANDS: &[&Command] = checked(&[
    &range::APPEND,
    &number::DECR,
    &number::DECRBY,
    &get::GET,
    &get::GETDEL,
    &get::GETEX,
    &range::GETRANGE,
    &get::GETSET,
    &number::INCR,
    &number::INCRBY,
    &number::INCRBYFLOAT,
    &lcs::LCS,
    &get::MGET,
    &set::MSET,
    &set::MSETNX,
    &set::PSETEX,
    &set::SET,
    &set::SETEX,
    &set::SETNX,
    &range::SETRANGE,
    &get::STRLEN,
    &range::SUBSTR,
]);
