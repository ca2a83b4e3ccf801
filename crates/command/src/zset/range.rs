//! Ranges: answered, counted, or stored. ZRANGE says with options what its older relatives say with their
//! names; all are one function, which reads its arguments in the order in which Redis does, because clients
//! see which of several errors is told.
use super::bounds::{By, Range};
use super::row::{ABOUT, ROW};
use super::{Entries, Show, reply_entry, reply_header, store};
use crate::argument::{int, is_word};
use crate::walk::{self, Share};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Error, Flags, KeySpec, Long, work,
};
use resp::Reply;
use std::ops::ControlFlow;
use store::{End, Event, Key, RankSpan, View, ZSet};

pub(super) const ZRANGE: Command = Command {
    name: "ZRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.2.0",
        summary: "Answers the members in a range of ranks, scores or texts.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("start"),
            Arg::str("stop"),
            Arg::one_of("sortby", &[Arg::word("byscore", "BYSCORE"), Arg::word("bylex", "BYLEX")])
                .optional()
                .since("6.2.0"),
            Arg::word("rev", "REV").optional().since("6.2.0"),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")])
                .after("LIMIT")
                .optional()
                .since("6.2.0"),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        history: &[("6.2.0", "Takes `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")],
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, READING), zrange)),
    run: DataRun::Keys(zrange),
    ..ROW
};

pub(super) const ZRANGESTORE: Command = Command {
    name: "ZRANGESTORE",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE)), KeySpec::one(2, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "6.2.0",
        summary: "Stores the members in a range of a sorted set as another one.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number stored.",
        args: &[
            Arg::key("dst", 0),
            Arg::key("src", 1),
            Arg::str("min"),
            Arg::str("max"),
            Arg::one_of("sortby", &[Arg::word("byscore", "BYSCORE"), Arg::word("bylex", "BYLEX")]).optional(),
            Arg::word("rev", "REV").optional(),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(stored, zrangestore)),
    ..ROW
};

pub(super) const ZRANGEBYSCORE: Command = Command {
    name: "ZRANGEBYSCORE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.5",
        summary: "Answers the members with scores in a range.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::double("min"),
            Arg::double("max"),
            Arg::word("withscores", "WITHSCORES").optional().since("2.0.0"),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional(),
        ],
        history: &[("2.0.0", "Takes `WITHSCORES`.")],
        deprecated: Some(Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `BYSCORE` argument" }),
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, BY_SCORE), zrangebyscore)),
    run: DataRun::Keys(zrangebyscore),
    ..ROW
};

pub(super) const ZRANGEBYLEX: Command = Command {
    name: "ZRANGEBYLEX",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.9",
        summary: "Answers the members in a lexicographical range.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("min"),
            Arg::str("max"),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional(),
        ],
        deprecated: Some(Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `BYLEX` argument" }),
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, BY_LEX), zrangebylex)),
    run: DataRun::Keys(zrangebylex),
    ..ROW
};

pub(super) const ZREVRANGE: Command = Command {
    name: "ZREVRANGE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.2.0",
        summary: "Answers the members in a range of ranks, from the greatest score.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::int("start"),
            Arg::int("stop"),
            Arg::word("withscores", "WITHSCORES").optional(),
        ],
        deprecated: Some(Deprecated { since: "6.2.0", replaced_by: "`ZRANGE` with the `REV` argument" }),
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, BACKWARDS), zrevrange)),
    run: DataRun::Keys(zrevrange),
    ..ROW
};

pub(super) const ZREVRANGEBYSCORE: Command = Command {
    name: "ZREVRANGEBYSCORE",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.2.0",
        summary: "Answers the members with scores in a range, from the greatest.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::double("max"),
            Arg::double("min"),
            Arg::word("withscores", "WITHSCORES").optional(),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional(),
        ],
        history: &[("2.1.6", "Either end may be excluded.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `REV` and `BYSCORE` arguments",
        }),
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, BY_SCORE_BACKWARDS), zrevrangebyscore)),
    run: DataRun::Keys(zrevrangebyscore),
    ..ROW
};

pub(super) const ZREVRANGEBYLEX: Command = Command {
    name: "ZREVRANGEBYLEX",
    arity: Arity::AtLeast(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.9",
        summary: "Answers the members in a lexicographical range, from its end.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number answered.",
        args: &[
            Arg::key("key", 0),
            Arg::str("max"),
            Arg::str("min"),
            Arg::block("limit", &[Arg::int("offset"), Arg::int("count")]).after("LIMIT").optional(),
        ],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`ZRANGE` with the `REV` and `BYLEX` arguments",
        }),
        ..ABOUT
    },
    at_once: Some(&Long::reading(|call| answered(call, BY_LEX_BACKWARDS), zrevrangebylex)),
    run: DataRun::Keys(zrevrangebylex),
    ..ROW
};

pub(super) const ZCOUNT: Command = Command {
    name: "ZCOUNT",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Counts the members with scores in a range.",
        complexity: "O(log(N)) where N is the number of members in the set.",
        args: &[Arg::key("key", 0), Arg::double("min"), Arg::double("max")],
        ..ABOUT
    },
    run: DataRun::Keys(zcount),
    ..ROW
};

pub(super) const ZLEXCOUNT: Command = Command {
    name: "ZLEXCOUNT",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.8.9",
        summary: "Counts the members in a lexicographical range.",
        complexity: "O(log(N)) where N is the number of members in the set.",
        args: &[Arg::key("key", 0), Arg::str("min"), Arg::str("max")],
        ..ABOUT
    },
    run: DataRun::Keys(zlexcount),
    ..ROW
};

/// What the name of a command says (ZREVRANGEBYSCORE goes by scores and backwards); such a command has no
/// option for it.
#[derive(Clone, Copy)]
struct Named {
    by: Option<By>,
    towards: Option<End>,
    /// Which argument is the source's key; its range follows.
    source: usize,
    stores: bool,
}

/// A request, read.
struct Query<'a> {
    range: Range<'a>,
    towards: End,
    show: Show,
    offset: i64,
    /// Negative: all.
    count: i64,
}

const READING: Named = Named { by: None, towards: None, source: 1, stores: false };

const BACKWARDS: Named = Named { by: Some(By::Rank), towards: Some(End::Head), ..READING };
const BY_SCORE: Named = Named { by: Some(By::Score), towards: Some(End::Tail), ..READING };
const BY_SCORE_BACKWARDS: Named = Named { towards: Some(End::Head), ..BY_SCORE };
const BY_LEX: Named = Named { by: Some(By::Lex), towards: Some(End::Tail), ..READING };
const BY_LEX_BACKWARDS: Named = Named { towards: Some(End::Head), ..BY_LEX };

fn zrange(call: &mut Call<'_, '_>) -> Done {
    answer(call, READING)
}

fn zrangebyscore(call: &mut Call<'_, '_>) -> Done {
    answer(call, BY_SCORE)
}

fn zrangebylex(call: &mut Call<'_, '_>) -> Done {
    answer(call, BY_LEX)
}

fn zrevrange(call: &mut Call<'_, '_>) -> Done {
    answer(call, BACKWARDS)
}

fn zrevrangebyscore(call: &mut Call<'_, '_>) -> Done {
    answer(call, BY_SCORE_BACKWARDS)
}

fn zrevrangebylex(call: &mut Call<'_, '_>) -> Done {
    answer(call, BY_LEX_BACKWARDS)
}

/// The steps to answer a range at once.
fn answered(call: &mut Call<'_, '_>, named: Named) -> Option<u64> {
    if call.view.elements(call.key(0)) < work::FEW_ELEMENTS {
        return Some(0);
    }
    let query = query(call, named);
    work::of_reply(call, |view, key| found(query, view, key))
}

fn answer(call: &mut Call<'_, '_>, named: Named) -> Done {
    let query = query(call, named)?;
    let key = call.key(0);
    let Some(set) = call.view.zset(key)? else {
        call.reply.array(0);
        return Ok(());
    };
    let span = query.range.span(&set, query.towards);
    let (skipped, count) = query.window(span, &set);
    let walk = Walk { span, towards: query.towards, skipped, show: query.show };
    reply_header(call.reply, walk.show, count as usize);
    let mut share = Share::first(count, call.reply);
    walk.reply(call.reply, &set, &mut share);
    walk.leave(call, key, (count, share.written()));
    Ok(())
}

/// Entries of a span, one after the other.
pub(super) struct Walk {
    pub(super) span: RankSpan,
    pub(super) towards: End,
    /// So many entries are skipped at the beginning.
    pub(super) skipped: u64,
    pub(super) show: Show,
}

impl Walk {
    /// Replies a share of what follows.
    pub(super) fn reply(&self, reply: &mut Reply, set: &ZSet<'_>, share: &mut Share) {
        set.visit_span(self.span, self.towards, self.skipped, share.left(), &mut |entry| {
            reply_entry(reply, self.show, entry);
            share.wrote(reply)
        });
    }

    /// Leaves the rest of `count` entries for later, of which `written` have been replied.
    pub(super) fn leave(mut self, call: &mut Call<'_, '_>, key: &Key<'_>, (count, written): (u64, u64)) {
        self.skipped += written;
        walk::leave(call, key, count - written, move |value, reply, share| {
            let Some(set) = value.zset() else { return };
            self.reply(reply, &set, share);
            self.skipped += share.written();
        });
    }
}

const STORING: Named = Named { source: 2, stores: true, ..READING };

/// The steps that it takes to store a range. It is searched for only where the source is long.
fn stored(call: &mut Call<'_, '_>) -> Option<u64> {
    let query = query(call, STORING);
    work::of_part(call, call.keys().get(1)?, |view, key| found(query, view, key))
}

/// How many entries a request is about.
fn found<'k>(query: Result<Query<'_>, Error>, view: &mut View<'k>, key: &Key<'k>) -> u64 {
    let (Ok(query), Ok(Some(set))) = (query, view.zset(key)) else { return 0 };
    query.window(query.range.span(&set, query.towards), &set).1
}

/// The source is copied out first: it may be what the result takes the place of.
fn zrangestore(call: &mut Call<'_, '_>) -> Done {
    let query = query(call, STORING)?;
    let (destination, source) = (call.key(0), call.key(1));
    let mut entries = Entries::new();
    call.view.count_lookups();
    let set = call.view.zset(source)?;
    if let Some(set) = set {
        let span = query.range.span(&set, query.towards);
        let (skipped, count) = query.window(span, &set);
        set.visit_span(span, query.towards, skipped, count, &mut |entry| {
            entries.push((entry.member.to_vec(), entry.score));
            ControlFlow::Continue(())
        });
    }
    call.view.ignore_lookups();
    store(call.view, destination, &entries, 0, Event::zset("zrangestore"), call.reply);
    Ok(())
}

impl Query<'_> {
    /// How many entries of the span are left out, and how many then follow. A negative offset counts from the
    /// end of the span in what Redis calls a skiplist, and finds nothing in a listpack.
    fn window(&self, span: RankSpan, set: &ZSet<'_>) -> (u64, u64) {
        let from_end = || span.count.checked_sub(self.offset.unsigned_abs()).filter(|_| set.is_skiplist());
        let Some(skipped) = u64::try_from(self.offset).ok().or_else(from_end) else { return (0, 0) };
        let rest = span.count.saturating_sub(skipped);
        (skipped, u64::try_from(self.count).map_or(rest, |count| count.min(rest)))
    }
}

/// Options first, then whether they fit together, then the range itself.
fn query<'k>(call: &Call<'_, 'k>, named: Named) -> Result<Query<'k>, Error> {
    let (mut by, mut towards) = (named.by, named.towards);
    let (mut show, mut limit) = (Show::Members, None);
    let mut at = named.source + 3;
    while let Some(word) = call.args.get(at) {
        at += 1;
        if !named.stores && is_word(word, "WITHSCORES") {
            show = Show::Scores;
        } else if is_word(word, "LIMIT") && call.args.len() - at >= 2 {
            limit = Some((int(call.args.at(at))?, int(call.args.at(at + 1))?));
            at += 2;
        } else if towards.is_none() && is_word(word, "REV") {
            towards = Some(End::Head);
        } else if by.is_none() && is_word(word, "BYLEX") {
            by = Some(By::Lex);
        } else if by.is_none() && is_word(word, "BYSCORE") {
            by = Some(By::Score);
        } else {
            return Err(Error::syntax());
        }
    }
    let (by, towards) = (by.unwrap_or(By::Rank), towards.unwrap_or(End::Tail));
    let has_count = limit.is_some_and(|(_, count)| count != -1);
    if has_count && by == By::Rank {
        return Err(Error::limit_of_ranks());
    }
    if show == Show::Scores && by == By::Lex {
        return Err(Error::scores_by_lex());
    }
    let (first, second) = (call.args.at(named.source + 1), call.args.at(named.source + 2));
    let is_turned = towards == End::Head && by != By::Rank;
    let (min, max) = if is_turned { (second, first) } else { (first, second) };
    // For ranks a LIMIT was refused above unless it asks for all entries.
    let (offset, count) = limit.filter(|_| by != By::Rank).unwrap_or((0, -1));
    Ok(Query { range: Range::parse(by, min, max)?, towards, show, offset, count })
}

fn zcount(call: &mut Call<'_, '_>) -> Done {
    count(call, By::Score)
}

fn zlexcount(call: &mut Call<'_, '_>) -> Done {
    count(call, By::Lex)
}

fn count(call: &mut Call<'_, '_>, by: By) -> Done {
    let range = Range::parse(by, call.args.at(2), call.args.at(3))?;
    let key = call.key(0);
    let count = call.view.zset(key)?.map_or(0, |set| range.span(&set, End::Tail).count);
    call.reply.int(count as i64);
    Ok(())
}
