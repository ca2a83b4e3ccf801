//! Walks over the keyspace: SCAN, KEYS, RANDOMKEY, and its size.
//!
//! SCAN keeps nothing in the server: its cursor is a position in hash order (`store::whole`), valid whatever happens between two calls.
//! It locks one shard at a time, so other workers go on. KEYS runs alone, because its answer is one instant of the whole
//! keyspace; RANDOMKEY and DBSIZE go from shard to shard, so a key that is written behind them is missed.
use crate::argument::{int, is_word};
use crate::{Acl, Arg, Arity, Command, DataRun, Doc, Done, Error, Flags, Group, Scope, WholeCall};
use base::glob;

pub(super) const SCAN: Command = Command {
    name: "SCAN",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[],
    doc: Doc {
        group: Group::Generic,
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
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Whole(Scope::Shared, scan),
};

pub(super) const KEYS: Command = Command {
    name: "KEYS",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    keys: &[],
    doc: Doc {
        group: Group::Generic,
        since: "1.0.0",
        summary: "Answers all keys that match a pattern.",
        complexity: "O(N) where N is the number of keys in the database.",
        args: &[Arg::pattern("pattern")],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Whole(Scope::Exclusive, keys),
};

pub(super) const DBSIZE: Command = Command {
    name: "DBSIZE",
    arity: Arity::Exactly(1),
    flags: Flags::READONLY.or(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[],
    doc: Doc {
        group: Group::Server,
        since: "1.0.0",
        summary: "Answers how many keys the database holds.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Whole(Scope::Shared, dbsize),
};

pub(super) const RANDOMKEY: Command = Command {
    name: "RANDOMKEY",
    arity: Arity::Exactly(1),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[],
    doc: Doc {
        group: Group::Generic,
        since: "1.0.0",
        summary: "Answers a key chosen at random.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:special", "nondeterministic_output"],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Whole(Scope::Shared, randomkey),
};

/// SCAN's options.
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
    count: u64,
}

impl Filter<'_> {
    fn takes(&self, key: &[u8], kind: &str) -> bool {
        self.kind.is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind.as_bytes()))
            && self.pattern.is_none_or(|pattern| glob::matches(pattern, key))
    }
}

fn scan(call: &mut WholeCall<'_>) -> Done {
    let cursor = cursor(call.args.at(1)).ok_or_else(Error::invalid_cursor)?;
    let filter = filter(call)?;
    // The cursor comes first and is known last, so the keys wait in a reply of their own.
    let mut keys = resp::Reply::new(call.reply.protocol);
    let mut found = 0;
    let step = call.keyspace.scan(call.db, call.now, cursor, filter.count, &mut |key, kind| {
        if filter.takes(key, kind.name()) {
            keys.bulk(key);
            found += 1;
        }
    });
    call.reply.array(2);
    call.reply.bulk(step.next_cursor.to_string().as_bytes());
    call.reply.array(found);
    call.reply.out.extend_from_slice(&keys.out);
    Ok(())
}

/// A cursor as C's `strtoull` reads it: spaces and a sign may stand before it, nothing after it. A negative number
/// in the usual form is refused, as Redis does.
fn cursor(text: &[u8]) -> Option<u64> {
    if let Some(n) = base::text::parse_i64(text) {
        return u64::try_from(n).ok();
    }
    let text = text.trim_ascii_start();
    let (digits, is_negative) = match text {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if is_negative { n.wrapping_neg() } else { n })
}

/// COUNT of 0 or less is a syntax error, as in Redis. A pattern of `*` matches everything and is not tried. A type that nobody
/// has matches nothing and is no error.
fn filter<'c>(call: &WholeCall<'c>) -> Result<Filter<'c>, Error> {
    let mut filter = Filter { pattern: None, kind: None, count: 10 };
    let mut words = call.args.iter_from(2);
    while let Some(word) = words.next() {
        if is_word(word, "NOVALUES") {
            return Err(Error::novalues_without_hash());
        }
        let value = words.next().ok_or_else(Error::syntax)?;
        if is_word(word, "COUNT") {
            let count = int(value)?;
            filter.count = u64::try_from(count).ok().filter(|n| *n > 0).ok_or_else(Error::syntax)?;
        } else if is_word(word, "MATCH") {
            filter.pattern = (value != b"*").then_some(value);
        } else if is_word(word, "TYPE") {
            filter.kind = Some(value);
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(filter)
}

/// How many match is known last: the array's header is written into a place left for it.
fn keys(call: &mut WholeCall<'_>) -> Done {
    let pattern = call.args.at(1);
    let takes_all = pattern == b"*";
    let place = call.reply.deferred();
    let mut found = 0;
    call.keyspace.for_each(call.db, call.now, &mut |key, _| {
        if takes_all || glob::matches(pattern, key) {
            call.reply.bulk(key);
            found += 1;
        }
    });
    call.reply.fill_array(place, found);
    Ok(())
}

fn dbsize(call: &mut WholeCall<'_>) -> Done {
    call.reply.int(call.keyspace.len(call.db) as i64);
    Ok(())
}

/// Uniform over the keys: shards are weighted by their number, leaves by their entries.
fn randomkey(call: &mut WholeCall<'_>) -> Done {
    let reply = &mut *call.reply;
    let is_found = call.keyspace.random_key(call.db, call.now, call.random, &mut |key, _| reply.bulk(key));
    if !is_found {
        call.reply.null();
    }
    Ok(())
}
