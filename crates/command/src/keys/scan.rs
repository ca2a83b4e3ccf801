//! Walks over the keyspace: SCAN, KEYS, RANDOMKEY, and its size.
//!
//! SCAN keeps nothing in the server: its cursor is a position in hash order (`store/src/keyspace/whole.rs`),
//! valid whatever happens between two calls. It locks one shard at a time, so other workers go on. KEYS runs
//! alone, because its answer is one instant of the whole keyspace; RANDOMKEY and DBSIZE go from shard to
//! shard, so they miss a key that is written to a shard they have passed.
use super::row::{ABOUT, ROW};
use crate::argument::is_word;
use crate::cursor;
use crate::{
    Acl, Arg, Arity, Command, DataRun, Doc, Done, Error, Flags, Group, LongWhole, Scope, WholeCall, work,
};
use base::glob;

pub(super) const SCAN: Command = Command {
    name: "SCAN",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    doc: Doc {
        since: "2.8.0",
        summary: "Goes through the keys of the database, some at a time.",
        complexity: "O(1) for every call, O(N) for all of them together, where N is the number of keys.",
        args: &[
            Arg::int("cursor"),
            Arg::pattern("pattern").after("MATCH").optional(),
            Arg::int("count").after("COUNT").optional(),
            Arg::str("type").after("TYPE").optional().since("6.0.0"),
        ],
        history: &[("6.0.0", "Takes `TYPE`.")],
        tips: &["nondeterministic_output", "request_policy:special", "response_policy:special"],
        ..ABOUT
    },
    run: DataRun::LongWhole(Scope::Shared, &LongWhole { work: work::scanned_keys, run: scan }),
    ..ROW
};

pub(super) const KEYS: Command = Command {
    name: "KEYS",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    doc: Doc {
        since: "1.0.0",
        summary: "Answers all keys that match a pattern.",
        complexity: "O(N) where N is the number of keys in the database.",
        args: &[Arg::pattern("pattern")],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        ..ABOUT
    },
    run: DataRun::LongWhole(Scope::Exclusive, &LongWhole { work: work::all_keys, run: keys }),
    ..ROW
};

pub(super) const DBSIZE: Command = Command {
    name: "DBSIZE",
    arity: Arity::Exactly(1),
    flags: Flags::READONLY.or(Flags::FAST),
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Answers how many keys the database holds.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Shared, dbsize),
    ..ROW
};

pub(super) const RANDOMKEY: Command = Command {
    name: "RANDOMKEY",
    arity: Arity::Exactly(1),
    flags: Flags::READONLY,
    doc: Doc {
        since: "1.0.0",
        summary: "Answers a key chosen at random.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Whole(Scope::Shared, randomkey),
    ..ROW
};

/// SCAN's options.
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    count: u64,
}

impl Filter<'_> {
    fn takes(&self, key: &[u8], kind: &str) -> bool {
        self.kind.is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind.as_bytes())) && self.matches(key)
    }

    fn matches(&self, key: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, key))
    }
}

/// A key past its deadline that the pattern takes is removed when SCAN meets it, whatever its type. There are
/// few: most have been removed by expiry.
fn scan(call: &mut WholeCall<'_>) -> Done {
    let (keyspace, db, now) = (call.keyspace, call.db, call.now);
    let cursors = keyspace.key_cursors();
    let from = cursor::cursor(call.args.at(1), cursors)?;
    let filter = filter(call)?;
    let mut overdue = Vec::new();
    cursor::answer(call.reply, cursors, |keys| {
        let mut found = 0;
        let step = keyspace.scan(db, now, from, filter.count, &mut |key, kind| match kind {
            Some(kind) if filter.takes(key, kind.name()) => {
                keys.bulk(key);
                found += 1;
            }
            None if filter.matches(key) => overdue.push(key.to_vec()),
            _ => {}
        });
        (step.next_cursor, found)
    });
    match call.spared {
        Some(spared) if !overdue.is_empty() => spared.set(true),
        _ => keyspace.remove_overdue(db, now, &overdue, call.garbage),
    }
    Ok(())
}

/// The options of a SCAN. An unknown type matches nothing and is no error.
fn filter<'c>(call: &WholeCall<'c>) -> Result<Filter<'c>, Error> {
    let mut filter = Filter { pattern: None, kind: None, count: 10 };
    let mut words = call.args.iter_from(2);
    while let Some(word) = words.next() {
        if is_word(word, "NOVALUES") {
            return Err(Error::novalues_without_hash());
        }
        let value = words.next().ok_or_else(Error::syntax)?;
        if is_word(word, "COUNT") {
            filter.count = cursor::count(value)?;
        } else if is_word(word, "MATCH") {
            filter.pattern = cursor::pattern(value);
        } else if is_word(word, "TYPE") {
            filter.kind = Some(value);
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(filter)
}

/// How many keys match is known last: the array's header is inserted afterwards.
fn keys(call: &mut WholeCall<'_>) -> Done {
    let pattern = call.args.at(1);
    let takes_all = pattern == b"*";
    let header = call.reply.deferred();
    let mut found = 0;
    call.keyspace.visit(call.db, call.now, &mut |key, _| {
        if takes_all || glob::matches(pattern, key) {
            call.reply.bulk(key);
            found += 1;
        }
        call.reply.flow()
    });
    call.reply.fill_array(header, found);
    Ok(())
}

fn dbsize(call: &mut WholeCall<'_>) -> Done {
    call.reply.int(call.keyspace.len(call.db) as i64);
    Ok(())
}

/// RANDOMKEY: every key has the same chance, because shards are chosen by their number of keys, and leaves by
/// their number of entries.
fn randomkey(call: &mut WholeCall<'_>) -> Done {
    let reply = &mut *call.reply;
    let is_found = call.keyspace.random_key(call.db, call.now, call.random, &mut |key, _| reply.bulk(key));
    if !is_found {
        call.reply.null();
    }
    Ok(())
}
