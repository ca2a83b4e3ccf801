//! SWAPDB. Runs alone: in each shard the two databases change places, which no other client may see half
//! done.
use super::row::{ABOUT, ROW};
use crate::argument::{int, nth_database};
use crate::{Acl, Arg, Arity, Command, DataRun, Doc, Done, Error, Flags, Group, Scope, WholeCall};

pub(super) const SWAPDB: Command = Command {
    name: "SWAPDB",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::FAST),
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    doc: Doc {
        group: Group::Server,
        since: "4.0.0",
        summary: "Makes two databases change places.",
        complexity: "O(1) for each shard.",
        args: &[Arg::int("index1"), Arg::int("index2")],
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Exclusive, swapdb),
    ..ROW
};

/// SWAPDB. Both arguments must be numbers before either database is looked up. Exchanging a database with
/// itself counts as a change.
fn swapdb(call: &mut WholeCall<'_>) -> Done {
    let first = index(call.args.at(1)).ok_or_else(|| Error::invalid_db("first"))?;
    let second = index(call.args.at(2)).ok_or_else(|| Error::invalid_db("second"))?;
    let databases = call.keyspace.databases();
    let (Some(first), Some(second)) = (nth_database(first, databases), nth_database(second, databases))
    else {
        return Err(Error::no_such_db());
    };
    call.keyspace.swap(first, second, call.now);
    call.keyspace.dirty(1);
    call.reply.ok();
    Ok(())
}

fn index(text: &[u8]) -> Option<i32> {
    int(text).ok().and_then(|n| i32::try_from(n).ok())
}
