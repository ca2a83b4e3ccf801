//! FLUSHDB and FLUSHALL. Either mode takes the trees out at once and leaves their freeing to the background:
//! Freeing at once for SYNC would stop every worker for a time that grows with the data, and clients would
//! see no difference but the moment at which memory is given back.
use super::row::{ABOUT, ROW};
use crate::argument::is_word;
use crate::{Acl, Arg, Arity, Command, DataRun, Doc, Done, Error, Flags, Group, Scope, WholeCall};

pub(super) const FLUSHDB: Command = Command {
    name: "FLUSHDB",
    arity: Arity::AtLeast(1),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Deletes all keys of the database.",
        complexity: "O(1) for each shard; the keys are freed in the background.",
        args: &[Arg::one_of(
            "flush-type",
            &[Arg::word("async", "ASYNC").since("4.0.0"), Arg::word("sync", "SYNC").since("6.2.0")],
        )
        .optional()],
        history: &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Exclusive, flushdb),
    ..ROW
};

pub(super) const FLUSHALL: Command = Command {
    name: "FLUSHALL",
    arity: Arity::AtLeast(1),
    flags: Flags::WRITE.or(Flags::EMPTIES_ALL),
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Deletes all keys of all databases.",
        complexity: "O(1) for each shard; the keys are freed in the background.",
        args: &[Arg::one_of(
            "flush-type",
            &[Arg::word("async", "ASYNC").since("4.0.0"), Arg::word("sync", "SYNC").since("6.2.0")],
        )
        .optional()],
        history: &[("4.0.0", "Takes `ASYNC`."), ("6.2.0", "Takes `SYNC`.")],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Exclusive, flushall),
    ..ROW
};

fn flushdb(call: &mut WholeCall<'_>) -> Done {
    let db = call.db;
    flush(call, Some(db))
}

fn flushall(call: &mut WholeCall<'_>) -> Done {
    flush(call, None)
}

/// Runs alone (`Scope::Exclusive`): without that a client could see one shard empty and another still full.
/// The trees are taken out shard by shard, O(shards) whatever they hold.
fn flush(call: &mut WholeCall<'_>, db: Option<u16>) -> Done {
    let mode_is_known = match (call.args.get(1), call.args.len()) {
        (None, _) => true,
        (Some(mode), 2) => is_word(mode, "ASYNC") || is_word(mode, "SYNC"),
        _ => false,
    };
    if !mode_is_known {
        return Err(Error::syntax());
    }
    let (keys, garbage) = call.keyspace.flush(db);
    call.keyspace.dirty(keys);
    call.garbage.extend(garbage);
    call.reply.ok();
    Ok(())
}
