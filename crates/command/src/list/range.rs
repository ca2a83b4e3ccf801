//! Elements by index, and ranges of them.
//!
//! Indexes count from the head, negative ones from the tail. Finding one walks the list's tree by the counts
//! of its nodes and then one leaf; a range goes on from there leaf by leaf. Which of several errors in a
//! request is told is part of what clients see, so each command reads its arguments in the order in which
//! Redis does.
use super::row::{ABOUT, ROW};
use crate::argument::{int, position, span};
use crate::walk::{self, Share};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use resp::{Args, Reply};
use store::{End, Event, List};

pub(super) const LLEN: Command = Command {
    name: "LLEN",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the length of a list.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(llen),
    ..ROW
};

pub(super) const LINDEX: Command = Command {
    name: "LINDEX",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the element at an index.",
        complexity: "O(log N) where N is the length of the list.",
        args: &[Arg::key("key", 0), Arg::int("index")],
        ..ABOUT
    },
    run: DataRun::Keys(lindex),
    ..ROW
};

pub(super) const LRANGE: Command = Command {
    name: "LRANGE",
    arity: Arity::Exactly(4),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the elements between two indexes.",
        complexity: "O(log L + N) where L is the length of the list and N the number of elements answered.",
        args: &[Arg::key("key", 0), Arg::int("start"), Arg::int("stop")],
        ..ABOUT
    },
    at_once: Some(&Long::reading(ranged, lrange).unless(names_few)),
    run: DataRun::Keys(lrange),
    ..ROW
};

pub(super) const LSET: Command = Command {
    name: "LSET",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Replaces the element at an index.",
        complexity: "O(log N) where N is the length of the list.",
        args: &[Arg::key("key", 0), Arg::int("index"), Arg::str("element")],
        ..ABOUT
    },
    run: DataRun::Keys(lset),
    ..ROW
};

pub(super) const LTRIM: Command = Command {
    name: "LTRIM",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Keeps only the elements between two indexes.",
        complexity: "O(N) where N is the number of elements removed, whole leaves at a time.",
        args: &[Arg::key("key", 0), Arg::int("start"), Arg::int("stop")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(trimmed, ltrim)),
    ..ROW
};

fn llen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.list(key)?.map_or(0, |list| list.len());
    call.reply.int(len as i64);
    Ok(())
}

/// LINDEX. A key of another type is reported before an index that is no number; if the key is missing the
/// index is not read.
fn lindex(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(list) = call.view.list(key)? else {
        call.reply.null();
        return Ok(());
    };
    match position(int(call.args.at(2))?, list.len()) {
        Some(index) => drop(list.get(index, |item| call.reply.item(item))),
        None => call.reply.null(),
    }
    Ok(())
}

/// LRANGE. Both numbers are read before the key is looked up, so wrong ones are refused even if it is missing
/// or of another type.
fn lrange(call: &mut Call<'_, '_>) -> Done {
    let (start, stop) = (int(call.args.at(2))?, int(call.args.at(3))?);
    let key = call.key(0);
    let list = call.view.list(key)?;
    let range = list.as_ref().and_then(|list| span(start, stop, list.len()));
    match (list, range) {
        (Some(list), Some((first, count))) => {
            call.reply.array(count as usize);
            let mut share = Share::first(count, call.reply);
            reply_range(call.reply, &list, first, &mut share);
            let mut next = first + share.written();
            walk::leave(call, key, count - share.written(), move |value, reply, share| {
                let Some(list) = value.list() else { return };
                reply_range(reply, &list, next, share);
                next += share.written();
            });
        }
        _ => call.reply.array(0),
    }
    Ok(())
}

/// The steps to answer a range at once.
fn ranged(call: &mut Call<'_, '_>) -> Option<u64> {
    let (Ok(start), Ok(stop)) = (int(call.args.at(2)), int(call.args.at(3))) else { return Some(0) };
    work::of_reply(call, |view, key| span(start, stop, view.elements(key)).map_or(0, |(_, count)| count))
}

/// Whether both ends of a range count from the same end of the list, and have little between them.
fn names_few(args: &Args<'_>) -> bool {
    match (int(args.at(2)), int(args.at(3))) {
        (Ok(start), Ok(stop)) => (start < 0) == (stop < 0) && stop.saturating_sub(start) < work::FEW,
        _ => true,
    }
}

/// Replies a share of the elements from `first` on.
fn reply_range(reply: &mut Reply, list: &List<'_>, first: u64, share: &mut Share) {
    list.visit(first, End::Tail, &mut |_, item| {
        reply.item(item);
        share.wrote(reply)
    });
}

/// LSET. It reports first a missing key, then an index that is no number, then one beyond the list.
fn lset(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut list = call.view.list_mut(key)?.ok_or_else(Error::no_such_key)?;
    let (index, value) = (int(call.args.at(2))?, call.args.at(3));
    // As if it were added, and also where there is no such element.
    list.announce(1, value.len() as u64);
    let index = position(index, list.len()).ok_or_else(Error::index_out_of_range)?;
    list.set(index, value);
    drop(list);
    call.view.changed(key, 1, Event::list("lset"));
    call.reply.ok();
    Ok(())
}

/// The steps that LTRIM takes: whole leaves of what goes are removed at a time.
fn trimmed(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEP_ELEMENTS: u64 = 32;
    let (Ok(start), Ok(stop)) = (int(call.args.at(2)), int(call.args.at(3))) else { return Some(0) };
    let len = work::all(call)?;
    let kept = span(start, stop, len).map_or(0, |(_, count)| count);
    Some((len - kept) / STEP_ELEMENTS)
}

/// LTRIM. The tail is cut first, so that the indexes of the head stay right. Where nothing is kept the list
/// runs empty and its key goes with it.
fn ltrim(call: &mut Call<'_, '_>) -> Done {
    let (start, stop) = (int(call.args.at(2))?, int(call.args.at(3))?);
    let key = call.key(0);
    let Some(mut list) = call.view.list_mut(key)? else {
        call.reply.ok();
        return Ok(());
    };
    let len = list.len();
    let (first, count) = span(start, stop, len).unwrap_or((len, 0));
    let after = first + count;
    list.remove(after, len - after);
    list.remove(0, first);
    drop(list);
    call.view.dirty(len - count);
    call.view.touched_and_reduced(key, Event::list("ltrim"));
    call.reply.ok();
    Ok(())
}
