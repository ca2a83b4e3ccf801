//! Popping from either end: one element, so many, or from the first of several lists that has any.
//!
//! LPOP and RPOP without a count are on the path of every request: nothing is allocated.
//!
//! An element is written into the reply while the leaf still lends it, then removed: it is copied once. A
//! list that runs empty takes its key along when it is dropped (`store::ListMut`), so nothing here deletes
//! keys.
use super::end_named;
use super::row::{ABOUT, ROW, popped_event};
use crate::argument::{self, is_word};
use crate::wait::{self, Wait};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::text::I64Text;
use resp::Reply;
use store::{End, Kind, ListMut};

pub(super) const LPOP: Command = Command {
    name: "LPOP",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Removes elements at the head of a list and answers them.",
        complexity: "O(N) where N is the number of elements popped.",
        args: &[Arg::key("key", 0), Arg::int("count").optional().since("6.2.0")],
        history: &[("6.2.0", "Takes a count.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped, lpop).with_words(3)),
    ..ROW
};

pub(super) const RPOP: Command = Command {
    name: "RPOP",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Removes elements at the tail of a list and answers them.",
        complexity: "O(N) where N is the number of elements popped.",
        args: &[Arg::key("key", 0), Arg::int("count").optional().since("6.2.0")],
        history: &[("6.2.0", "Takes a count.")],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped, rpop).with_words(3)),
    ..ROW
};

pub(super) const LMPOP: Command = Command {
    name: "LMPOP",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "7.0.0",
        summary: "Pops elements from the first of several lists that has any.",
        complexity: "O(K+N) where K is the number of keys and N the number of elements popped.",
        args: &[
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            Arg::one_of("where", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
            Arg::int("count").after("COUNT").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(work::popped_of_several, lmpop)),
    ..ROW
};

pub(super) const BLPOP: Command = Command {
    name: "BLPOP",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Pops an element at the head of the first of several lists that has any, or waits for one.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::key("key", 0).many(), Arg::double("timeout")],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(blpop)),
    ..ROW
};

pub(super) const BRPOP: Command = Command {
    name: "BRPOP",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::BLOCKING),
    keys: &[KeySpec::range(1, -2, 1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Pops an element at the tail of the first of several lists that has any, or waits for one.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::key("key", 0).many(), Arg::double("timeout")],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::quick(brpop)),
    ..ROW
};

pub(super) const BLMPOP: Command = Command {
    name: "BLMPOP",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::BLOCKING).or(Flags::MOVABLEKEYS),
    keys: &[KeySpec::count(2, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "7.0.0",
        summary: "Pops elements from the first of several lists that has any, or waits for some.",
        complexity: "O(K+N) where K is the number of keys and N the number of elements popped.",
        args: &[
            Arg::double("timeout"),
            Arg::int("numkeys"),
            Arg::key("key", 0).many(),
            Arg::one_of("where", &[Arg::word("left", "LEFT"), Arg::word("right", "RIGHT")]),
            Arg::int("count").after("COUNT").optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Blocking(&Long::writing(work::popped_of_several, blmpop)),
    ..ROW
};

fn lpop(call: &mut Call<'_, '_>) -> Done {
    pop(call, End::Head, "lpop")
}

fn rpop(call: &mut Call<'_, '_>) -> Done {
    pop(call, End::Tail, "rpop")
}

/// LPOP and RPOP. The row can only say "at least two arguments": a third is a count, and with a fourth the
/// command refuses their number, as Redis does.
fn pop(call: &mut Call<'_, '_>, end: End, name: &str) -> Done {
    match call.args.len() {
        2 => pop_one(call, end),
        3 => pop_some(call, end),
        _ => Err(Error::wrong_arity(name)),
    }
}

/// Without a count. A missing key is answered by a null here and by a null array in `pop_some`: RESP2 tells
/// them apart, and clients rely on it. The list is edited in the result that holds it: it has some 300 bytes,
/// and moving it out would cost as much as the rest.
fn pop_one(call: &mut Call<'_, '_>, end: End) -> Done {
    let key = call.key(0);
    match &mut call.view.list_mut(key) {
        Ok(Some(list)) => list.pop(end, |item| call.reply.item(item)),
        Ok(None) => {
            call.reply.null();
            return Ok(());
        }
        Err(wrong) => return Err((*wrong).into()),
    };
    call.view.reduced(key, 1, popped_event(end));
    Ok(())
}

/// With a count, which is read before the key is looked up, so that a wrong one is an error even if there is
/// no list. A count of 0 of an existing list is answered by an empty array, not a null.
fn pop_some(call: &mut Call<'_, '_>, end: End) -> Done {
    let count = argument::count(call.args.at(2))?;
    let key = call.key(0);
    let Some(list) = call.view.list_mut(key)? else {
        call.reply.null_array();
        return Ok(());
    };
    let popped = reply_popped(call.reply, list, end, count);
    call.view.reduced(key, popped, popped_event(end));
    Ok(())
}

fn popped_word(end: End) -> &'static [u8] {
    if end == End::Head { b"LPOP" } else { b"RPOP" }
}

/// Removes up to `count` elements and replies them as an array. Returns how many there were.
fn reply_popped(reply: &mut Reply, mut list: ListMut<'_>, end: End, count: u64) -> u64 {
    let count = count.min(list.len());
    reply.array(count as usize);
    list.pop_many(end, count, &mut |item| reply.item(item));
    count
}

/// LMPOP. The keys that are locked were found by the same count of keys as is read here. If it does not fit
/// the arguments no key was found, and the request is refused before one is used. Only the first list that
/// exists is looked at, so a key of another type behind it is no error.
fn query(call: &Call<'_, '_>, numkeys_at: usize) -> Result<(End, u64), Error> {
    let numkeys = call.args.at(numkeys_at);
    let numkeys =
        base::text::parse_i64(numkeys).filter(|n| *n > 0).ok_or_else(Error::numkeys_not_positive)?;
    let end_at = usize::try_from(numkeys)
        .ok()
        .and_then(|n| n.checked_add(numkeys_at + 1))
        .ok_or_else(Error::syntax)?;
    let end = call.args.get(end_at).and_then(end_named).ok_or_else(Error::syntax)?;
    let count = lmpop_count(call, end_at + 1)?;
    Ok((end, count))
}

/// Pops from the first that is there; whether any is.
fn pop_first(call: &mut Call<'_, '_>, end: End, count: u64) -> Result<bool, Error> {
    for key in call.keys() {
        let Some(list) = call.view.list_mut(key)? else { continue };
        call.reply.array(2);
        call.reply.bulk(key.bytes());
        let popped = reply_popped(call.reply, list, end, count);
        call.view.reduced(key, popped, popped_event(end));
        let mut count = I64Text::new();
        call.effect(&[popped_word(end), key.bytes(), count.format_u64(popped)]);
        return Ok(true);
    }
    Ok(false)
}

fn lmpop(call: &mut Call<'_, '_>) -> Done {
    let (end, count) = query(call, 1)?;
    if !pop_first(call, end, count)? {
        call.reply.null_array();
    }
    Ok(())
}

/// Reads the arguments from `at` on: nothing, or COUNT with its number. A wrong number is reported before a
/// surplus argument.
fn lmpop_count(call: &Call<'_, '_>, at: usize) -> Result<u64, Error> {
    let Some(word) = call.args.get(at) else { return Ok(1) };
    let count = call.args.get(at + 1).filter(|_| is_word(word, "COUNT")).ok_or_else(Error::syntax)?;
    let count = argument::count(count).ok().filter(|n| *n > 0).ok_or_else(Error::count_not_positive)?;
    if call.args.len() > at + 2 { Err(Error::syntax()) } else { Ok(count) }
}

fn blpop(call: &mut Call<'_, '_>) -> Done {
    pop_or_wait(call, End::Head)
}

fn brpop(call: &mut Call<'_, '_>) -> Done {
    pop_or_wait(call, End::Tail)
}

/// The first list that is there decides.
fn pop_or_wait(call: &mut Call<'_, '_>, end: End) -> Done {
    let timeout = wait::seconds(call.args.at(call.args.len() - 1), call.view.now())?;
    for key in call.keys() {
        let Some(mut list) = call.view.list_mut(key)? else { continue };
        call.reply.array(2);
        call.reply.bulk(key.bytes());
        list.pop(end, |item| call.reply.item(item));
        drop(list);
        call.view.reduced(key, 1, popped_event(end));
        call.effect(&[popped_word(end), key.bytes()]);
        return Ok(());
    }
    call.wait(Wait::of(Kind::List, timeout));
    Ok(())
}

fn blmpop(call: &mut Call<'_, '_>) -> Done {
    let (end, count) = query(call, 2)?;
    let timeout = wait::seconds(call.args.at(1), call.view.now())?;
    if !pop_first(call, end, count)? {
        call.wait(Wait::of(Kind::List, timeout));
    }
    Ok(())
}
