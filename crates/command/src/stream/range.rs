//! Reading entries by id: XRANGE, XREVRANGE, XLEN.
use super::{id, reply_entry};
use crate::argument::{int, is_word};
use crate::{Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, Group, KeySpec};
use resp::Reply;
use std::ops::ControlFlow;
use store::{Direction, Id, Stream};

pub(super) const XLEN: Command = Command {
    name: "XLEN",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        group: Group::Stream,
        since: "5.0.0",
        summary: "Answers how many entries a stream has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(xlen),
};

pub(super) const XRANGE: Command = Command {
    name: "XRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        group: Group::Stream,
        since: "5.0.0",
        summary: "Answers the entries between two ids.",
        complexity: "O(log L + N) where L is the length of the stream and N the number of entries answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("start"),
            Arg::str("end"),
            Arg::int("count").after("COUNT").optional(),
        ],
        history: &[("6.2.0", "Bounds may be excluded.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(xrange),
};

pub(super) const XREVRANGE: Command = Command {
    name: "XREVRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        group: Group::Stream,
        since: "5.0.0",
        summary: "Answers the entries between two ids, the greatest first.",
        complexity: "O(log L + N) where L is the length of the stream and N the number of entries answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("end"),
            Arg::str("start"),
            Arg::int("count").after("COUNT").optional(),
        ],
        history: &[("6.2.0", "Bounds may be excluded.")],
        ..Doc::NEW
    },
    subcommands: &[],
    run: DataRun::Keys(xrevrange),
};

fn xlen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.stream(&key)?.map_or(0, Stream::len);
    call.reply.int(len as i64);
    Ok(())
}

fn xrange(call: &mut Call<'_, '_>) -> Done {
    range(call, Direction::Up)
}

fn xrevrange(call: &mut Call<'_, '_>) -> Done {
    range(call, Direction::Down)
}

/// The first argument is where the reply begins, so of XREVRANGE it is the end.
fn range(call: &mut Call<'_, '_>, direction: Direction) -> Done {
    let (start_at, end_at) = if direction == Direction::Up { (2, 3) } else { (3, 2) };
    let start = id::start(call.args.at(start_at))?;
    let end = id::end(call.args.at(end_at))?;
    let count = count(call)?;
    let key = call.key(0);
    match (call.view.stream(&key)?, count) {
        (None, _) => call.reply.array(0),
        (Some(_), Some(0)) => call.reply.null_array(),
        (Some(stream), count) => reply_range(call.reply, stream, (start, end), direction, count),
    }
    Ok(())
}

/// None: no limit. A negative count is none at all.
fn count(call: &Call<'_, '_>) -> Result<Option<u64>, Error> {
    let (mut count, mut index) = (None, 4);
    while index < call.args.len() {
        if !is_word(call.args.at(index), "COUNT") || index + 1 == call.args.len() {
            return Err(Error::syntax());
        }
        count = Some(u64::try_from(int(call.args.at(index + 1))?).unwrap_or(0));
        index += 2;
    }
    Ok(count)
}

/// Replies the entries between two ids, both included, at most `count`.
pub(super) fn reply_range(
    reply: &mut Reply,
    stream: &Stream,
    (start, end): (Id, Id),
    direction: Direction,
    count: Option<u64>,
) {
    let place = reply.deferred();
    let (from, mut sent) = (if direction == Direction::Up { start } else { end }, 0);
    if start <= end {
        stream.visit(from, direction, &mut |row| {
            if row.id < start || row.id > end || count.is_some_and(|count| sent >= count) {
                return ControlFlow::Break(());
            }
            reply_entry(reply, row);
            sent += 1;
            reply.flow()
        });
    }
    reply.fill_array(place, sent as usize);
}
