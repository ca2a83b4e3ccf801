//! Reading strings: GET, MGET, STRLEN, and the three that read and change at once, GETSET, GETDEL, GETEX.
//!
//! GET is on the path of every request: one lookup, one copy into the reply, nothing allocated.
use super::held;
use super::row::{ABOUT, ROW, SET_EVENT};
use super::text;
use crate::lifetime::{self, Lifetime};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Error, Flags, KeySpec, Parts,
};
use base::{Item, Millis};
use store::{Deadline, Event, Expiry, Form};

pub(super) const GET: Command = Command {
    name: "GET",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers a key's string.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(get),
    ..ROW
};

pub(super) const GETSET: Command = Command {
    name: "GETSET",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Sets a string and answers the one before.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("value")],
        deprecated: Some(Deprecated { since: "6.2.0", replaced_by: "`SET` with the `!GET` argument" }),
        ..ABOUT
    },
    run: DataRun::Keys(getset),
    ..ROW
};

pub(super) const GETDEL: Command = Command {
    name: "GETDEL",
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::DELETE))],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers a key's string and deletes the key.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(getdel),
    ..ROW
};

pub(super) const GETEX: Command = Command {
    name: "GETEX",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))
        .note("RW and UPDATE because it changes the TTL")],
    doc: Doc {
        since: "6.2.0",
        summary: "Answers a key's string and changes its deadline.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::one_of(
                "expiration",
                &[
                    Arg::int("seconds").after("EX"),
                    Arg::int("milliseconds").after("PX"),
                    Arg::unix_time("unix-time-seconds").after("EXAT"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT"),
                    Arg::word("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(getex),
    ..ROW
};

pub(super) const MGET: Command = Command {
    name: "MGET",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::range(1, -1, 1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the strings of several keys at one instant.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::key("key", 0).many()],
        tips: &["request_policy:multi_shard"],
        ..ABOUT
    },
    parts: Parts::Listed,
    run: DataRun::Keys(mget),
    ..ROW
};

pub(super) const STRLEN: Command = Command {
    name: "STRLEN",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "2.2.0",
        summary: "Answers the length of a string in bytes.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(strlen),
    ..ROW
};

fn get(call: &mut Call<'_, '_>) -> Done {
    reply_string(call).map(drop)
}

/// Whether the key existed, and so its value was replied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Value,
    Nothing,
}

/// Replies the string of the first key, null where it is missing.
pub(super) fn reply_string(call: &mut Call<'_, '_>) -> Result<Found, Error> {
    let key = call.key(0);
    match call.view.string(key)? {
        Some(Item::Bytes(bytes)) if text::may_leave(bytes.len(), call.reply, &call.args) => {
            let len = bytes.len();
            text::leave(call, 0..len);
            Ok(Found::Value)
        }
        Some(item) => {
            call.reply.item(item);
            Ok(Found::Value)
        }
        None => {
            call.reply.null();
            Ok(Found::Nothing)
        }
    }
}

/// As [`reply_string`], in a command that writes: the lookup is counted here, because dispatch counts only
/// those of reading commands.
pub(super) fn reply_old_string(call: &mut Call<'_, '_>) -> Result<Found, Error> {
    let found = reply_string(call);
    let key = call.key(0);
    call.view.note_lookup(key, found != Ok(Found::Nothing));
    found
}

/// A key of another type counts as missing, so that one of them does not cost the reply for all.
fn mget(call: &mut Call<'_, '_>) -> Done {
    call.reply.array(call.keys().len());
    let mut mark = held::Mark::new(call.reply);
    for (index, key) in call.keys().iter().enumerate() {
        match call.view.string(key) {
            Ok(Some(item)) => call.reply.item(item),
            Ok(None) | Err(_) => call.reply.null(),
        }
        if mark.is_reached(call.reply, index + 1) {
            held::leave(call, &call.keys()[index + 1..]);
            break;
        }
        if call.reply.is_full() {
            break;
        }
    }
    Ok(())
}

/// An integer is kept as one; its length is that of its text.
fn strlen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.string(key)?.map_or(0, |item| item.len());
    call.reply.int(len as i64);
    Ok(())
}

/// GETSET. Unlike SET it refuses a value of another type, because it would have to answer with it. As with
/// SET the deadline is removed.
fn getset(call: &mut Call<'_, '_>) -> Done {
    reply_old_string(call)?;
    let key = call.key(0);
    call.view.put_string(key, call.args.at(2), Form::Auto, Expiry::Clear);
    call.view.changed(key, 1, SET_EVENT);
    call.effect(&[b"SET", key.bytes(), call.args.at(2)]);
    Ok(())
}

/// GETDEL. The value is written into the reply before the key is removed, so it is copied only once.
fn getdel(call: &mut Call<'_, '_>) -> Done {
    if reply_old_string(call)? == Found::Value {
        let key = call.key(0);
        call.view.remove(key);
        call.view.changed(key, 1, Event::DEL);
        call.plain_deletion_effect(key.bytes());
    }
    Ok(())
}

/// What GETEX does to the deadline.
enum Change {
    Nothing,
    Persist,
    Until(Millis),
}

/// A deadline that has passed already deletes the key, after its value was replied. PERSIST on a key without
/// a deadline changes nothing, and does not count as a change.
fn getex(call: &mut Call<'_, '_>) -> Done {
    let lifetime = getex_option(call)?;
    let key = call.key(0);
    // A missing key is answered before the time is looked at: even a wrong time then is no error.
    let is_there = call.view.string(key).map(|found| found.is_some());
    call.view.note_lookup(key, is_there != Ok(false));
    if !is_there? {
        call.reply.null();
        return Ok(());
    }
    let change = getex_change(lifetime, call.view.clock())?;
    reply_string(call)?;
    let deadline = match change {
        Change::Nothing => return Ok(()),
        Change::Persist if call.view.deadline(key) == Some(Deadline::Never) => return Ok(()),
        Change::Persist => Deadline::Never,
        Change::Until(time) => Deadline::At(time),
    };
    let event = deadline_event(deadline, call.view.now());
    call.view.set_deadline(key, deadline);
    call.view.changed(key, 1, event);
    match deadline {
        Deadline::Never => call.effect(&[b"PERSIST", key.bytes()]),
        Deadline::At(at) => call.deadline_effect(key.bytes(), at, &[]),
    }
    Ok(())
}

/// What is published of a key that gets this deadline, or loses its own.
fn deadline_event(deadline: Deadline, now: Millis) -> Event {
    match deadline {
        Deadline::Never => Event::PERSIST,
        Deadline::At(at) if at <= now => Event::DEL,
        Deadline::At(_) => Event::EXPIRE,
    }
}

fn getex_change(lifetime: Option<Lifetime<'_>>, now: Millis) -> Result<Change, Error> {
    match lifetime {
        None | Some(Lifetime::Keep) => Ok(Change::Nothing),
        Some(Lifetime::Persist) => Ok(Change::Persist),
        Some(Lifetime::Until { unit, from, text }) => {
            lifetime::deadline(text, unit, from, now, "getex").map(Change::Until)
        }
    }
}

/// KEEPTTL is an option of SET alone: GETEX keeps the deadline unless an option changes it.
fn getex_option<'k>(call: &Call<'_, 'k>) -> Result<Option<Lifetime<'k>>, Error> {
    let mut given: Option<Lifetime<'k>> = None;
    let mut i = 2;
    while let Some(word) = call.args.get(i) {
        let (option, taken) = Lifetime::parse(word, call.args.get(i + 1)).ok_or_else(Error::syntax)?;
        let clashes = given.is_some_and(|g| !g.is_same_option(&option));
        if clashes || option == Lifetime::Keep {
            return Err(Error::syntax());
        }
        given = Some(option);
        i += taken;
    }
    Ok(given)
}
