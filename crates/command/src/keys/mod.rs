//! Commands on keys of any type: existence, deadlines, walks over the keyspace, what OBJECT and MEMORY tell.
//!
//! Two sorts of handlers meet here. Those on named keys get a view of the locked shards, like all other
//! families. Those on the whole keyspace get the keyspace itself (`WholeCall`) and say in their row whether
//! anything else may run meanwhile.
mod delete;
mod dump;
mod expire;
mod flush;
mod memory;
mod object;
mod row;
mod scan;
mod sort;
mod swapdb;
mod transfer;
mod ttl;

use crate::{Command, checked};

pub const COMMANDS: &[&Command] = checked(&[
    &transfer::COPY,
    &scan::DBSIZE,
    &delete::DEL,
    &dump::DUMP,
    &delete::EXISTS,
    &expire::EXPIRE,
    &expire::EXPIREAT,
    &ttl::EXPIRETIME,
    &flush::FLUSHALL,
    &flush::FLUSHDB,
    &scan::KEYS,
    &memory::MEMORY,
    &transfer::MOVE,
    &object::OBJECT,
    &expire::PERSIST,
    &expire::PEXPIRE,
    &expire::PEXPIREAT,
    &ttl::PEXPIRETIME,
    &ttl::PTTL,
    &scan::RANDOMKEY,
    &transfer::RENAME,
    &transfer::RENAMENX,
    &dump::RESTORE,
    &dump::RESTORE_ASKING,
    &scan::SCAN,
    &sort::SORT,
    &sort::SORT_RO,
    &swapdb::SWAPDB,
    &delete::TOUCH,
    &ttl::TTL,
    &delete::TYPE,
    &delete::UNLINK,
]);
