//! Pushing at either end. On the path of every request: nothing is allocated here.
//!
//! All elements of one command go into one open list, which is written back once, when it is dropped: a
//! hundred elements cost one lookup of the key. They are pushed one by one, so `LPUSH k a b c` leaves `c` at
//! the head. The type is checked before the first of them; after that nothing can fail, so no command stops
//! half-way.
use super::row::{ABOUT, ROW, pushed_event};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec};
use resp::Args;
use store::{End, Key, ListMut};

pub(super) const LPUSH: Command = Command {
    name: "LPUSH",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "1.0.0",
        summary: "Pushes elements at the head of a list; creates the key where it is missing.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("2.4.0", "Takes several elements.")],
        ..ABOUT
    },
    run: DataRun::Keys(lpush),
    ..ROW
};

pub(super) const RPUSH: Command = Command {
    name: "RPUSH",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "1.0.0",
        summary: "Pushes elements at the tail of a list; creates the key where it is missing.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("2.4.0", "Takes several elements.")],
        ..ABOUT
    },
    run: DataRun::Keys(rpush),
    ..ROW
};

pub(super) const LPUSHX: Command = Command {
    name: "LPUSHX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.2.0",
        summary: "Pushes elements at the head of a list that exists.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("4.0.0", "Takes several elements.")],
        ..ABOUT
    },
    run: DataRun::Keys(lpushx),
    ..ROW
};

pub(super) const RPUSHX: Command = Command {
    name: "RPUSHX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.2.0",
        summary: "Pushes elements at the tail of a list that exists.",
        complexity: "O(N) where N is the number of elements pushed.",
        args: &[Arg::key("key", 0), Arg::str("element").many()],
        history: &[("4.0.0", "Takes several elements.")],
        ..ABOUT
    },
    run: DataRun::Keys(rpushx),
    ..ROW
};

fn lpush(call: &mut Call<'_, '_>) -> Done {
    push(call, End::Head)
}

fn rpush(call: &mut Call<'_, '_>) -> Done {
    push(call, End::Tail)
}

fn lpushx(call: &mut Call<'_, '_>) -> Done {
    push_existing(call, End::Head)
}

fn rpushx(call: &mut Call<'_, '_>) -> Done {
    push_existing(call, End::Tail)
}

/// LPUSH and RPUSH: the list is created where it is missing.
fn push(call: &mut Call<'_, '_>, end: End) -> Done {
    let key = call.key(0);
    // The list is edited in the result that holds it: moving it out would cost a tenth of the push.
    let len = match &mut call.view.list_or_new(key) {
        Ok(list) => push_all(list, end, call.args),
        Err(wrong) => return Err((*wrong).into()),
    };
    finish(call, key, end, len)
}

/// LPUSHX and RPUSHX: a missing key is answered 0 and stays missing.
fn push_existing(call: &mut Call<'_, '_>, end: End) -> Done {
    let key = call.key(0);
    let Some(mut list) = call.view.list_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    let len = push_all(&mut list, end, call.args);
    drop(list);
    finish(call, key, end, len)
}

/// Pushes all elements, and returns the length afterwards. They are announced together, because in Redis
/// their sum decides the name of the encoding.
fn push_all(list: &mut ListMut<'_>, end: End, args: Args<'_>) -> u64 {
    let count = args.len() as u64 - 2;
    if count > 1 {
        list.announce(count, args.iter_from(2).map(|element| element.len() as u64).sum());
    }
    for element in args.iter_from(2) {
        list.push(end, element);
    }
    list.len()
}

/// Redis counts every element as a change, and answers with the length, not with how many were added.
#[inline(always)]
fn finish(call: &mut Call<'_, '_>, key: &Key<'_>, end: End, len: u64) -> Done {
    call.view.changed(key, call.args.len() as u64 - 2, pushed_event(end));
    call.reply.int(len as i64);
    Ok(())
}
