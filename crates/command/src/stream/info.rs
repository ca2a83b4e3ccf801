//! XINFO: what a stream, its groups and their consumers are.
//!
//! Two figures speak of the radix tree that Redis keeps its nodes in. There is none here, but leaves end
//! where those nodes do, so both are worked out from the ids that the leaves began with.
use super::row::{ABOUT, ROW};
use super::{id, reply_entry, steps_in_group};
use crate::argument::{int, is_word};
use crate::help::reply_help;
use crate::{
    Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, Scope, WholeCall,
};
use base::Millis;
use resp::Reply;
use std::ops::ControlFlow;
use store::{Consumer, Direction, Group, Id, RadixTree, Stream};

pub(super) const XINFO: Command = Command {
    name: "XINFO",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    acl: Acl::NONE,
    doc: Doc {
        since: "5.0.0",
        summary: "Holds the commands that tell of streams.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&XINFO_STREAM, &XINFO_HELP, &XINFO_CONSUMERS, &XINFO_GROUPS],
    run: DataRun::Container,
    ..ROW
};

const XINFO_CONSUMERS: Command = Command {
    name: "CONSUMERS",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers the consumers of a group.",
        complexity: "O(C) where C is the number of consumers.",
        args: &[Arg::key("key", 0), Arg::str("group")],
        history: &[("7.2.0", "Tells of `inactive`; `idle` counts from the last try.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(consumers_told, consumers)),
    ..ROW
};

const XINFO_GROUPS: Command = Command {
    name: "GROUPS",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers the groups of a stream.",
        complexity: "O(G) where G is the number of groups.",
        args: &[Arg::key("key", 0)],
        history: &[("7.0.0", "Tells of `entries-read` and `lag`.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(groups_told, groups)),
    ..ROW
};

const XINFO_HELP: Command = Command {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: Doc { since: "5.0.0", summary: "Lists the subcommands.", complexity: "O(1)", ..ABOUT },
    run: DataRun::Whole(Scope::Shared, help),
    ..ROW
};

const XINFO_STREAM: Command = Command {
    name: "STREAM",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers what a stream is.",
        complexity: "O(L) where L is the number of leaves.",
        args: &[
            Arg::key("key", 0),
            Arg::block(
                "full-block",
                &[Arg::word("full", "FULL"), Arg::int("count").after("COUNT").optional()],
            )
            .optional(),
        ],
        history: &[
            ("6.0.0", "Takes `FULL`."),
            ("7.0.0", "Tells what was deleted and added, and how far groups are."),
            ("7.2.0", "Tells of `active-time`; `seen-time` is that of the last try."),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(told, stream)),
    ..ROW
};

fn help(call: &mut WholeCall<'_>) -> Done {
    reply_help(
        call,
        &[
            ("CONSUMERS <key> <group>", "The consumers of the group."),
            ("GROUPS <key>", "The groups of the stream."),
            (
                "STREAM <key> [FULL [COUNT <count>]]",
                "The stream itself; with FULL its entries and what is pending too, so many of each, 10 by default.",
            ),
        ],
    )
}

fn consumers(call: &mut Call<'_, '_>) -> Done {
    let (key, name, now) = (call.key(0), call.args.at(3), call.view.clock());
    let stream = call.view.stream(key)?.ok_or_else(Error::no_such_key)?;
    let group = stream.group(name).ok_or_else(|| Error::no_group_of_key(key.bytes(), name))?;
    call.reply.array(group.consumers().len());
    for consumer in group.consumers() {
        call.reply.map(4);
        text(call.reply, "name", consumer.name());
        number(call.reply, "pending", consumer.pending_len() as i64);
        number(call.reply, "idle", (now.0 - consumer.seen.0).max(0));
        number(call.reply, "inactive", consumer.active.map_or(-1, |active| (now.0 - active.0).max(0)));
    }
    Ok(())
}

fn groups(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let stream = call.view.stream(key)?.ok_or_else(Error::no_such_key)?;
    call.reply.array(stream.groups().len());
    for group in stream.groups() {
        call.reply.map(6);
        text(call.reply, "name", group.name());
        number(call.reply, "consumers", group.consumers().len() as i64);
        number(call.reply, "pending", group.pending_len() as i64);
        reply_progress(call.reply, stream, group);
    }
    Ok(())
}

/// How far the group is: three pairs.
fn reply_progress(reply: &mut Reply, stream: &Stream, group: &Group) {
    named_id(reply, "last-delivered-id", group.last_id());
    known(reply, "entries-read", group.entries_read());
    known(reply, "lag", stream.lag(group));
}

/// How much XINFO STREAM tells.
enum Detail {
    Summary,
    /// So many entries, and of what is pending; None: all.
    Full(Option<u64>),
}

fn detail(call: &Call<'_, '_>) -> Result<Detail, Error> {
    let wrong = || Error::unknown_subcommand(call.args.at(1), "XINFO");
    let args = call.args;
    match args.len() {
        3 => return Ok(Detail::Summary),
        4 | 6 if is_word(args.at(3), "FULL") => {}
        _ => return Err(wrong()),
    }
    if args.len() == 4 {
        return Ok(Detail::Full(Some(10)));
    }
    if !is_word(args.at(4), "COUNT") {
        return Err(wrong());
    }
    Ok(Detail::Full(match int(args.at(5))? {
        0 => None,
        n => Some(u64::try_from(n).unwrap_or(10)),
    }))
}

/// Its leaves, each of which is a key of the radix tree of Redis; entries; groups, with as much of what is
/// pending in each and for each of its consumers.
fn told(call: &mut Call<'_, '_>) -> Option<u64> {
    const ENTRIES_A_LEAF: u64 = 8;
    let (Ok(detail), key) = (detail(call), call.key(0)) else { return Some(0) };
    let Ok(Some(stream)) = call.view.stream(key) else { return Some(0) };
    let leaves = stream.len() / ENTRIES_A_LEAF;
    let Detail::Full(count) = detail else { return Some(leaves) };
    let count = count.unwrap_or(u64::MAX);
    let of_group = |group: &Group| {
        let consumers = group.consumers().len() as u64;
        let pending = group.pending_len().saturating_mul(2);
        let shown = pending.min(count.saturating_mul(consumers + 1));
        STEPS_A_PART + (consumers * STEPS_A_PART).saturating_add(shown)
    };
    let groups = stream.groups().map(of_group).fold(0, u64::saturating_add);
    Some((leaves + stream.len().min(count)).saturating_add(groups))
}

/// What it takes to tell of a group or a consumer.
const STEPS_A_PART: u64 = 2;

fn groups_told(call: &mut Call<'_, '_>) -> Option<u64> {
    let key = call.key(0);
    let Ok(Some(stream)) = call.view.stream(key) else { return Some(0) };
    Some(stream.groups().len() as u64 * STEPS_A_PART)
}

fn consumers_told(call: &mut Call<'_, '_>) -> Option<u64> {
    steps_in_group(call, call.args.at(3), |group| Some(group.consumers().len() as u64 * STEPS_A_PART))
}

fn stream(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    if call.view.stream(key)?.is_none() {
        return Err(Error::no_such_key());
    }
    let detail = detail(call)?;
    // Redis counts one lookup for the request, which the question above was.
    call.view.ignore_lookups();
    let Some(stream) = call.view.stream(key)? else { return Err(Error::no_such_key()) };
    let reply = &mut *call.reply;
    reply.map(if matches!(detail, Detail::Summary) { 10 } else { 9 });
    reply_past(reply, stream);
    match detail {
        Detail::Summary => {
            number(reply, "groups", stream.groups().len() as i64);
            for (name, from, direction) in
                [("first-entry", Id::MIN, Direction::Up), ("last-entry", Id::MAX, Direction::Down)]
            {
                reply.bulk(name.as_bytes());
                reply_first(reply, stream, from, direction);
            }
        }
        Detail::Full(count) => {
            reply.bulk(b"entries");
            let range = (Id::MIN, Id::MAX);
            super::range::reply_range(reply, stream, range, Direction::Up, count);
            reply.bulk(b"groups");
            reply.array(stream.groups().len());
            stream.groups().for_each(|group| reply_group(reply, stream, group, count));
        }
    }
    Ok(())
}

/// What both forms begin with: seven pairs.
fn reply_past(reply: &mut Reply, stream: &Stream) {
    number(reply, "length", stream.len() as i64);
    let mut radix = RadixTree::default();
    stream.for_each_leaf(&mut |id| radix.push(id));
    number(reply, "radix-tree-keys", radix.keys() as i64);
    number(reply, "radix-tree-nodes", radix.nodes() as i64);
    named_id(reply, "last-generated-id", stream.last_id());
    named_id(reply, "max-deleted-entry-id", stream.max_deleted_id());
    number(reply, "entries-added", stream.entries_added() as i64);
    named_id(reply, "recorded-first-entry-id", stream.first_id());
}

/// The entry that comes first from an end, or null.
fn reply_first(reply: &mut Reply, stream: &Stream, from: Id, direction: Direction) {
    let mut is_empty = true;
    stream.visit(from, direction, &mut |row| {
        is_empty = false;
        reply_entry(reply, row);
        ControlFlow::Break(())
    });
    if is_empty {
        reply.null();
    }
}

fn reply_group(reply: &mut Reply, stream: &Stream, group: &Group, count: Option<u64>) {
    reply.map(7);
    text(reply, "name", group.name());
    reply_progress(reply, stream, group);
    number(reply, "pel-count", group.pending_len() as i64);
    reply.bulk(b"pending");
    reply.array(group.pending_len().min(count.unwrap_or(u64::MAX)) as usize);
    let mut left = count.unwrap_or(u64::MAX);
    group.visit_pending(Id::MIN, &mut |pending| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        reply.array(4);
        id::reply(reply, pending.id);
        reply.bulk(group.consumer(pending.consumer).name());
        reply.int(pending.delivered.0);
        reply.int(pending.count as i64);
        ControlFlow::Continue(())
    });
    reply.bulk(b"consumers");
    reply.array(group.consumers().len());
    group.consumers().for_each(|consumer| reply_consumer(reply, group, consumer, count));
}

fn reply_consumer(reply: &mut Reply, group: &Group, consumer: &Consumer, count: Option<u64>) {
    reply.map(5);
    text(reply, "name", consumer.name());
    number(reply, "seen-time", consumer.seen.0);
    number(reply, "active-time", consumer.active.map_or(-1, |Millis(ms)| ms));
    number(reply, "pel-count", consumer.pending_len() as i64);
    reply.bulk(b"pending");
    let mut left = count.unwrap_or(u64::MAX);
    reply.array(consumer.pending_len().min(left) as usize);
    let Some(consumer) = group.find_consumer(consumer.name()) else { return };
    group.visit_pending_of(consumer, Id::MIN, &mut |pending| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        reply.array(3);
        id::reply(reply, pending.id);
        reply.int(pending.delivered.0);
        reply.int(pending.count as i64);
        ControlFlow::Continue(())
    });
}

fn text(reply: &mut Reply, name: &str, text: &[u8]) {
    reply.bulk(name.as_bytes());
    reply.bulk(text);
}

fn number(reply: &mut Reply, name: &str, n: i64) {
    reply.bulk(name.as_bytes());
    reply.int(n);
}

fn named_id(reply: &mut Reply, name: &str, id: Id) {
    reply.bulk(name.as_bytes());
    id::reply(reply, id);
}

/// A number that may not be known.
fn known(reply: &mut Reply, name: &str, n: Option<u64>) {
    reply.bulk(name.as_bytes());
    match n {
        Some(n) => reply.int(n as i64),
        None => reply.null(),
    }
}
