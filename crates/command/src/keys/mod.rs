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

use crate::{Command, Done, WholeCall, checked};

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

/// Replies the HELP of a container: its usage line, then each subcommand with what it does.
pub(crate) fn reply_help(call: &mut WholeCall<'_>, container: &str, subcommands: &[(&str, &str)]) -> Done {
    call.reply.array(subcommands.len() * 2 + 3);
    call.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for (usage, meaning) in subcommands {
        call.reply.simple(usage);
        call.reply.simple(&format!("    {meaning}"));
    }
    call.reply.simple("HELP");
    call.reply.simple("    Print this help.");
    Ok(())
}
