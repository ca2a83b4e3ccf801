//! Reading entries by id: XRANGE, XREVRANGE, XLEN.
use super::row::{ABOUT, ROW};
use super::{id, reply_entry};
use crate::argument::{int, is_word};
use crate::walk::{self, Share};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use resp::Reply;
use std::ops::ControlFlow;
use store::{Direction, Id, Key, Stream};

pub(super) const XLEN: Command = Command {
    name: "XLEN",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "5.0.0",
        summary: "Answers how many entries a stream has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(xlen),
    ..ROW
};

pub(super) const XRANGE: Command = Command {
    name: "XRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
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
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, Direction::Up), xrange)),
    run: DataRun::Keys(xrange),
    ..ROW
};

pub(super) const XREVRANGE: Command = Command {
    name: "XREVRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
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
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, Direction::Down), xrevrange)),
    run: DataRun::Keys(xrevrange),
    ..ROW
};

fn xlen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.stream(key)?.map_or(0, Stream::len);
    call.reply.int(len as i64);
    Ok(())
}

fn xrange(call: &mut Call<'_, '_>) -> Done {
    range(call, Direction::Up)
}

fn xrevrange(call: &mut Call<'_, '_>) -> Done {
    range(call, Direction::Down)
}

/// XRANGE and XREVRANGE. The first of the two ids is where the reply begins, which for XREVRANGE is the
/// greater one.
fn range(call: &mut Call<'_, '_>, direction: Direction) -> Done {
    let (start, end, count) = wanted(call, direction)?;
    let key = call.key(0);
    match (call.view.stream(key)?, count) {
        (None, _) => call.reply.array(0),
        (Some(_), Some(0)) => call.reply.null_array(),
        (Some(stream), count) => {
            let mut walk = Walk { start, end, direction };
            let rest = walk.begin(call.reply, stream, count);
            walk.leave(call, key, rest);
        }
    }
    Ok(())
}

fn wanted(call: &Call<'_, '_>, direction: Direction) -> Result<(Id, Id, Option<u64>), Error> {
    let (start_at, end_at) = if direction == Direction::Up { (2, 3) } else { (3, 2) };
    let start = id::start(call.args.at(start_at))?;
    let end = id::end(call.args.at(end_at))?;
    Ok((start, end, count(call)?))
}

/// The steps to answer a range at once.
fn answered(call: &mut Call<'_, '_>, direction: Direction) -> Option<u64> {
    if call.view.elements(call.key(0)) < work::FEW_ELEMENTS {
        return Some(0);
    }
    let wanted = wanted(call, direction);
    work::of_reply(call, |view, key| match (wanted, view.stream(key)) {
        (Ok((start, end, count)), Ok(Some(stream))) => {
            stream.count_between((start, end)).min(count.unwrap_or(u64::MAX))
        }
        _ => 0,
    })
}

/// Entries between two ids that are still to be replied.
pub(super) struct Walk {
    pub(super) start: Id,
    pub(super) end: Id,
    pub(super) direction: Direction,
}

impl Walk {
    /// Replies an array of at most `count` of the entries, or its beginning. Returns how many are left.
    pub(super) fn begin(&mut self, reply: &mut Reply, stream: &Stream, count: Option<u64>) -> u64 {
        let (wanted, ids) = (count.unwrap_or(u64::MAX), (self.start, self.end));
        let header = reply.deferred();
        let mut share = Share::first(wanted, reply);
        let is_whole = self.reply(reply, stream, &mut share);
        let written = share.written();
        // The entries that are left are counted only if there are any.
        let rest = match is_whole || written == wanted {
            true => 0,
            false => stream.count_between(ids).min(wanted) - written,
        };
        reply.fill_array(header, (written + rest) as usize);
        rest
    }

    /// Leaves so many entries for later: they are the end of the reply.
    pub(super) fn leave(mut self, call: &mut Call<'_, '_>, key: &Key<'_>, rest: u64) {
        walk::leave(call, key, rest, move |value, reply, share| {
            value.stream().map(|stream| self.reply(reply, stream, share));
        });
    }

    fn is_over(&self) -> bool {
        self.start > self.end
    }

    /// Replies a share of the entries, and returns whether none is left.
    fn reply(&mut self, reply: &mut Reply, stream: &Stream, share: &mut Share) -> bool {
        if self.is_over() {
            return true;
        }
        let (start, end, direction) = (self.start, self.end, self.direction);
        let mut last = None;
        let from = if direction == Direction::Up { start } else { end };
        stream.visit(from, direction, &mut |row| {
            if row.id < start || row.id > end {
                return ControlFlow::Break(());
            }
            reply_entry(reply, row);
            let flow = share.wrote(reply);
            last = Some(row.id).filter(|_| flow.is_break());
            flow
        });
        let next = last.and_then(|last| if direction == Direction::Up { last.next() } else { last.prev() });
        match (next, direction) {
            (Some(next), Direction::Up) => self.start = next,
            (Some(next), Direction::Down) => self.end = next,
            (None, _) => (self.start, self.end) = (Id::MAX, Id::MIN),
        }
        self.is_over()
    }
}

/// COUNT's number; None is no limit, and so is a negative count.
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
    let header = reply.deferred();
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
    reply.fill_array(header, sent as usize);
}
