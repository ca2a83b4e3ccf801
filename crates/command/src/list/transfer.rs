//! Moving an element from one list to another, or from one end of a list to its other end: LMOVE and its
//! older form RPOPLPUSH.
//!
//! Both types are checked before anything is moved. If both keys are the same the list is edited in one go:
//! the only element of a list must not remove the key, and with it the deadline, on its way.
use super::end_named;
use super::row::{ABOUT, ROW, popped_event, pushed_event};
use crate::wait::{self, Wait};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Error, Flags, KeySpec, Long};
use resp::Reply;
use store::{End, Kind};

pub(super) const LMOVE: Command = Command {
    name: "LMOVE",
    arity: Arity::Exactly(5),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE)),
        KeySpec::one(2, Access::RW.or(Access::INSERT)),
    ],
    doc: Doc {
        since: "6.2.0",
        summary: "Moves an element from an end of one list to an end of another and answers it.",
        complexity: "O(1)",
        args: &[
            Arg::key("source", 0),
            Arg::key("destination", 1),
            Arg::one_of("wherefrom", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
            Arg::one_of("whereto", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(lmove),
    ..ROW
};

pub(super) const RPOPLPUSH: Command = Command {
    name: "RPOPLPUSH",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[
        KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE)),
        KeySpec::one(2, Access::RW.or(Access::INSERT)),
    ],
    doc: Doc {
        since: "1.2.0",
        summary: "Moves the last element of one list to the head of another and answers it.",
        complexity: "O(1)",
        args: &[Arg::key("source", 0), Arg::key("destination", 1)],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`LMOVE` with the `RIGHT` and `LEFT` arguments",
        }),
        ..ABOUT
    },
    run: DataRun::Keys(rpoplpush),
    ..ROW
};

pub(super) const BLMOVE: Command = Command {
    name: "BLMOVE",
    arity: Arity::Exactly(6),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING),
    keys: LMOVE.keys,
    doc: Doc {
        since: "6.2.0",
        summary: "Moves an element from an end of one list to an end of another, or waits for one.",
        complexity: "O(1)",
        args: &[
            Arg::key("source", 0),
            Arg::key("destination", 1),
            Arg::one_of("wherefrom", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
            Arg::one_of("whereto", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
            Arg::double("timeout"),
        ],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(blmove)),
    ..ROW
};

pub(super) const BRPOPLPUSH: Command = Command {
    name: "BRPOPLPUSH",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::BLOCKING),
    keys: RPOPLPUSH.keys,
    doc: Doc {
        since: "2.2.0",
        summary: "Moves the last element of one list to the head of another, or waits for one.",
        complexity: "O(1)",
        args: &[Arg::key("source", 0), Arg::key("destination", 1), Arg::double("timeout")],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        deprecated: Some(Deprecated {
            since: "6.2.0",
            replaced_by: "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
        }),
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(brpoplpush)),
    ..ROW
};

fn lmove(call: &mut Call<'_, '_>) -> Done {
    let from = end_named(call.args.at(3)).ok_or_else(Error::syntax)?;
    let to = end_named(call.args.at(4)).ok_or_else(Error::syntax)?;
    transfer_at_once(call, from, to)
}

fn rpoplpush(call: &mut Call<'_, '_>) -> Done {
    transfer_at_once(call, End::Tail, End::Head)
}

fn blmove(call: &mut Call<'_, '_>) -> Done {
    let from = end_named(call.args.at(3)).ok_or_else(Error::syntax)?;
    let to = end_named(call.args.at(4)).ok_or_else(Error::syntax)?;
    let args = call.args;
    let words = [b"LMOVE", args.at(1), args.at(2), args.at(3), args.at(4)];
    transfer_or_wait(call, from, to, &words)
}

fn brpoplpush(call: &mut Call<'_, '_>) -> Done {
    let words = [b"RPOPLPUSH", call.args.at(1), call.args.at(2)];
    transfer_or_wait(call, End::Tail, End::Head, &words)
}

fn transfer_at_once(call: &mut Call<'_, '_>, from: End, to: End) -> Done {
    if !transfer(call, from, to)? {
        call.reply.null();
    }
    Ok(())
}

/// `words` say the same as a command that does not wait.
fn transfer_or_wait(call: &mut Call<'_, '_>, from: End, to: End, words: &[&[u8]]) -> Done {
    let timeout = wait::seconds(call.args.at(call.args.len() - 1), call.view.now())?;
    if transfer(call, from, to)? {
        call.effect(words);
    } else {
        call.wait(Wait { nothing: Reply::null, is_of_source: true, ..Wait::of(Kind::List, timeout) });
    }
    Ok(())
}

/// The element is copied out, pushed, and replied from the copy: both lists may lie in one leaf, so neither
/// can lend it while the other is edited. A missing source is answered before the destination is looked at,
/// whatever type that has: false.
fn transfer(call: &mut Call<'_, '_>, from: End, to: End) -> Result<bool, Error> {
    let (source, destination) = (call.key(0), call.key(1));
    let mut element = Vec::new();
    if source.bytes() == destination.bytes() {
        // The list stays open, so that one of a single element is never written back empty.
        let Some(mut list) = call.view.list_mut(source)? else { return Ok(false) };
        list.pop(from, |item| item.append_to(&mut element));
        list.push(to, &element);
    } else {
        if call.view.list(source)?.is_none() {
            return Ok(false);
        }
        if call.view.kind(destination).is_some_and(|kind| kind != Kind::List) {
            return Err(Error::wrong_type());
        }
        let Some(mut list) = call.view.list_mut(source)? else { return Ok(false) };
        list.pop(from, |item| item.append_to(&mut element));
        drop(list);
        call.view.list_or_new(destination)?.push(to, &element);
    }
    call.view.changed(destination, 1, pushed_event(to));
    call.view.touched_and_reduced(source, popped_event(from));
    call.reply.bulk(&element);
    Ok(true)
}
