//! Popping from either end of the order: one entry, so many, or from the first of several sets that has any.
//!
//! Entries are written into the reply while the set lends them, then removed together.
use super::row::{ABOUT, ROW};
use super::{Show, reply_entry};
use crate::argument::{self, is_word};
use crate::wait::{self, Wait};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::text::I64Text;
use resp::Reply;
use store::{End, Event, Kind, RankSpan, ZSetMut};

pub(super) const ZPOPMIN: Command = Command {
    name: "ZPOPMIN",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Removes the members with the least scores and answers them.",
        complexity: "O(log(N)*M) where N is the number of members in the set and M the number popped.",
        args: &[Arg::key("key", 0), Arg::int("count").optional()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped, zpopmin).with_words(3)),
    ..ROW
};

pub(super) const ZPOPMAX: Command = Command {
    name: "ZPOPMAX",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Removes the members with the greatest scores and answers them.",
        complexity: "O(log(N)*M) where N is the number of members in the set and M the number popped.",
        args: &[Arg::key("key", 0), Arg::int("count").optional()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped, zpopmax).with_words(3)),
    ..ROW
};

pub(super) const ZMPOP: Command = Command {
    name: "ZMPOP",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "7.0.0",
        summary: "Pops members from the first of several sorted sets that has any.",
        complexity: "O(K)+O(M*log(N)) where K is the number of keys, N the number of members in \
                      the set and M the number popped.",
        args: &[
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            Arg::one_of("where", &[Arg::word("min", "MIN"), Arg::word("max", "MAX")]),
            Arg::int("count").after("COUNT").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped_of_several, zmpop)),
    ..ROW
};

pub(super) const BZPOPMIN: Command = Command {
    name: "BZPOPMIN",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::BLOCKING).or(Flags::FAST),
    keys: &[KeySpec::range(1, -2, 1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Pops the member with the lowest score of the first of several sorted sets, or waits for one.",
        complexity: "O(log(N)) where N is the number of members of the sorted set.",
        args: &[Arg::key("key", 0).many(), Arg::double("timeout")],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(bzpopmin)),
    ..ROW
};

pub(super) const BZPOPMAX: Command = Command {
    name: "BZPOPMAX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::BLOCKING).or(Flags::FAST),
    keys: &[KeySpec::range(1, -2, 1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "5.0.0",
        summary: "Pops the member with the highest score of the first of several sorted sets, or waits for one.",
        complexity: "O(log(N)) where N is the number of members of the sorted set.",
        args: &[Arg::key("key", 0).many(), Arg::double("timeout")],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(bzpopmax)),
    ..ROW
};

pub(super) const BZMPOP: Command = Command {
    name: "BZMPOP",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(2, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "7.0.0",
        summary: "Pops members of the first of several sorted sets that has any, or waits for some.",
        complexity: "O(K+M*log(N)) where K is the number of keys, N the length of the set and M what is popped.",
        args: &[
            Arg::double("timeout"),
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            Arg::one_of("where", &[Arg::word("min", "MIN"), Arg::word("max", "MAX")]),
            Arg::int("count").after("COUNT").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::writing(work::popped_of_several, bzmpop)),
    ..ROW
};

/// How a reply shows pairs of a member and its score.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pairs {
    Flat,
    Nested,
}

fn zpopmin(call: &mut Call<'_, '_>) -> Done {
    pop(call, End::Head)
}

fn zpopmax(call: &mut Call<'_, '_>) -> Done {
    pop(call, End::Tail)
}

/// Without a count the pair is flat in RESP3 too; with one each has an array there.
fn pop(call: &mut Call<'_, '_>, end: End) -> Done {
    if call.args.len() > 3 {
        return Err(Error::syntax());
    }
    let count = call.args.get(2).map(argument::count).transpose()?;
    let pairs = if count.is_some() && call.reply.is_resp3() { Pairs::Nested } else { Pairs::Flat };
    let key = call.key(0);
    let Some(set) = call.view.zset_mut(key)? else {
        call.reply.array(0);
        return Ok(());
    };
    let popped = reply_popped(call.reply, set, end, count.unwrap_or(1), pairs);
    call.view.reduced(key, popped, popped_event(end));
    Ok(())
}

/// What is published of a set from whose end entries were popped.
fn popped_event(end: End) -> Event {
    Event::zset(if end == End::Head { "zpopmin" } else { "zpopmax" }).idle()
}

fn popped_word(end: End) -> &'static [u8] {
    if end == End::Head { b"ZPOPMIN" } else { b"ZPOPMAX" }
}

/// Replies up to `count` entries from an end and removes them. Returns how many there were.
fn reply_popped(reply: &mut Reply, mut set: ZSetMut<'_>, end: End, count: u64, pairs: Pairs) -> u64 {
    let len = set.len();
    let count = count.min(len);
    let (span, towards) = match end {
        End::Head => (RankSpan { first: 0, count }, End::Tail),
        End::Tail => (RankSpan { first: len - count, count }, End::Head),
    };
    reply.array(if pairs == Pairs::Flat { 2 * count as usize } else { count as usize });
    set.read().visit_span(span, towards, 0, count, &mut |entry| {
        if pairs == Pairs::Nested {
            reply.array(2);
        }
        reply_entry(reply, Show::Members, entry);
        reply.double(entry.score);
        reply.flow()
    });
    set.remove_span(span);
    count
}

/// ZMPOP. Only the first set that exists is looked at. Errors are reported in the order of Redis.
fn query(call: &Call<'_, '_>, numkeys_at: usize) -> Result<(End, u64), Error> {
    let numkeys = base::text::parse_i64(call.args.at(numkeys_at));
    let numkeys = numkeys.filter(|n| *n > 0).ok_or_else(Error::numkeys_not_positive)?;
    let end_at = usize::try_from(numkeys)
        .ok()
        .and_then(|n| n.checked_add(numkeys_at + 1))
        .ok_or_else(Error::syntax)?;
    let end = match call.args.get(end_at) {
        Some(word) if is_word(word, "MIN") => End::Head,
        Some(word) if is_word(word, "MAX") => End::Tail,
        _ => return Err(Error::syntax()),
    };
    let count = zmpop_count(call, end_at + 1)?;
    Ok((end, count))
}

/// Pops from the first that is there; whether any is.
fn pop_first(call: &mut Call<'_, '_>, end: End, count: u64) -> Result<bool, Error> {
    for key in call.keys() {
        let Some(set) = call.view.zset_mut(key)? else { continue };
        call.reply.array(2);
        call.reply.bulk(key.bytes());
        let popped = reply_popped(call.reply, set, end, count, Pairs::Nested);
        call.view.reduced(key, popped, popped_event(end));
        let mut count = I64Text::new();
        call.effect(&[popped_word(end), key.bytes(), count.format_u64(popped)]);
        return Ok(true);
    }
    Ok(false)
}

fn zmpop(call: &mut Call<'_, '_>) -> Done {
    let (end, count) = query(call, 1)?;
    if !pop_first(call, end, count)? {
        call.reply.null_array();
    }
    Ok(())
}

/// What stands from argument `at` on: nothing, or COUNT with its number. A wrong number is told before a
/// surplus argument.
fn zmpop_count(call: &Call<'_, '_>, at: usize) -> Result<u64, Error> {
    let Some(word) = call.args.get(at) else { return Ok(1) };
    let count = call.args.get(at + 1).filter(|_| is_word(word, "COUNT")).ok_or_else(Error::syntax)?;
    let count = argument::count(count).ok().filter(|n| *n > 0).ok_or_else(Error::count_not_positive)?;
    if call.args.len() > at + 2 { Err(Error::syntax()) } else { Ok(count) }
}

fn bzpopmin(call: &mut Call<'_, '_>) -> Done {
    pop_or_wait(call, End::Head)
}

fn bzpopmax(call: &mut Call<'_, '_>) -> Done {
    pop_or_wait(call, End::Tail)
}

/// The first set that is there decides. Key, member and score stand side by side, in RESP3 too.
fn pop_or_wait(call: &mut Call<'_, '_>, end: End) -> Done {
    let timeout = wait::seconds(call.args.at(call.args.len() - 1), call.view.now())?;
    for key in call.keys() {
        let Some(mut set) = call.view.zset_mut(key)? else { continue };
        let first = if end == End::Head { 0 } else { set.len() - 1 };
        let span = RankSpan { first, count: 1 };
        call.reply.array(3);
        call.reply.bulk(key.bytes());
        set.read().visit_span(span, End::Tail, 0, 1, &mut |entry| {
            reply_entry(call.reply, Show::Members, entry);
            call.reply.double(entry.score);
            call.reply.flow()
        });
        set.remove_span(span);
        drop(set);
        call.view.reduced(key, 1, popped_event(end));
        call.effect(&[popped_word(end), key.bytes()]);
        return Ok(());
    }
    call.wait(Wait::of(Kind::ZSet, timeout));
    Ok(())
}

fn bzmpop(call: &mut Call<'_, '_>) -> Done {
    let (end, count) = query(call, 2)?;
    let timeout = wait::seconds(call.args.at(1), call.view.now())?;
    if !pop_first(call, end, count)? {
        call.wait(Wait::of(Kind::ZSet, timeout));
    }
    Ok(())
}
