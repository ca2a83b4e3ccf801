//! Removing members by name, and ranges of them. A set that runs empty takes its key along when it is
//! dropped.
use super::bounds::{By, Range};
use super::row::{ABOUT, ROW};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};
use store::{End, Event};

pub(super) const ZREM: Command = Command {
    name: "ZREM",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "1.2.0",
        summary: "Removes members from a sorted set.",
        complexity: "O(M*log(N)) where N is the number of members in the set and M the number removed.",
        args: &[Arg::key("key", 0), Arg::str("member").many()],
        history: &[("2.4.0", "Takes several members.")],
        ..ABOUT
    },
    run: DataRun::Keys(zrem),
    ..ROW
};

pub(super) const ZREMRANGEBYRANK: Command = Command {
    name: "ZREMRANGEBYRANK",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Removes the members in a range of ranks.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number removed.",
        args: &[Arg::key("key", 0), Arg::int("start"), Arg::int("stop")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(|call| removed(call, By::Rank), zremrangebyrank)),
    ..ROW
};

pub(super) const ZREMRANGEBYSCORE: Command = Command {
    name: "ZREMRANGEBYSCORE",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "1.2.0",
        summary: "Removes the members with scores in a range.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number removed.",
        args: &[Arg::key("key", 0), Arg::double("min"), Arg::double("max")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(|call| removed(call, By::Score), zremrangebyscore)),
    ..ROW
};

pub(super) const ZREMRANGEBYLEX: Command = Command {
    name: "ZREMRANGEBYLEX",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "2.8.9",
        summary: "Removes the members in a lexicographical range.",
        complexity: "O(log(N)+M) where N is the number of members in the set and M the number removed.",
        args: &[Arg::key("key", 0), Arg::str("min"), Arg::str("max")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(|call| removed(call, By::Lex), zremrangebylex)),
    ..ROW
};

fn zrem(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(mut set) = call.view.zset_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let mut removed = 0;
    for member in call.args.iter_from(2) {
        removed += u64::from(set.remove(member).is_some());
    }
    drop(set);
    call.view.reduced(key, removed, Event::zset("zrem"));
    call.reply.int(removed as i64);
    Ok(())
}

fn zremrangebyrank(call: &mut Call<'_, '_>) -> Done {
    remove_range(call, By::Rank)
}

fn zremrangebyscore(call: &mut Call<'_, '_>) -> Done {
    remove_range(call, By::Score)
}

fn zremrangebylex(call: &mut Call<'_, '_>) -> Done {
    remove_range(call, By::Lex)
}

/// The steps that it takes to remove a range. It is searched for only where the set is long.
fn removed(call: &mut Call<'_, '_>, by: By) -> Option<u64> {
    let range = Range::parse(by, call.args.at(2), call.args.at(3));
    work::of_part(call, call.keys().first()?, |view, key| {
        let Ok(Some(set)) = view.zset(key) else { return 0 };
        range.map_or(0, |range| range.span(&set, End::Tail).count)
    })
}

fn remove_range(call: &mut Call<'_, '_>, by: By) -> Done {
    let range = Range::parse(by, call.args.at(2), call.args.at(3))?;
    let key = call.key(0);
    let Some(mut set) = call.view.zset_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let span = range.span(&set.read(), End::Tail);
    set.remove_span(span);
    drop(set);
    let event = match by {
        By::Rank => "zremrangebyrank",
        By::Score => "zremrangebyscore",
        By::Lex => "zremrangebylex",
    };
    call.view.reduced(key, span.count, Event::zset(event));
    call.reply.int(span.count as i64);
    Ok(())
}
