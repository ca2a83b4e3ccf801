//! Writing whole strings: SET with all its options, the older commands that are SET with one option each, and
//! MSET.
//!
//! SET without options is on the path of every request: one call into the store, nothing allocated.
use super::get::{Found, reply_old_string};
use super::row::{ABOUT, ROW, SET_EVENT};
use crate::argument::is_word;
use crate::lifetime::{self, From, Lifetime, Unit};
use crate::{
    Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Effects, Error, Flags, KeySpec, Parts,
};
use base::text::I64Text;
use base::{Item, Millis};
use resp::Args;
use store::{Event, Expiry, Form};

pub(super) const SET: Command = Command {
    name: "SET",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))
        .access_by(set_access)
        .note("RW and ACCESS due to the optional `GET` argument")],
    doc: Doc {
        since: "1.0.0",
        summary: "Sets a string, whatever the key held before.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::str("value"),
            Arg::one_of(
                "condition",
                &[
                    Arg::word("nx", "NX"),
                    Arg::word("xx", "XX"),
                    Arg::str("comparison-value").after("IFEQ").since("8.1.0"),
                ],
            )
            .optional()
            .since("2.6.12"),
            Arg::word("get", "GET").optional().since("6.2.0"),
            Arg::one_of(
                "expiration",
                &[
                    Arg::int("seconds").after("EX").since("2.6.12"),
                    Arg::int("milliseconds").after("PX").since("2.6.12"),
                    Arg::unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                    Arg::unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                    Arg::word("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
        history: &[
            ("2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
            ("6.0.0", "Takes `KEEPTTL`."),
            ("6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
            ("7.0.0", "Takes `NX` together with `GET`."),
            ("8.1.0", "Takes `IFEQ`, as in Valkey."),
        ],
        ..ABOUT
    },
    run: DataRun::Keys(set),
    ..ROW
};

pub(super) const SETNX: Command = Command {
    name: "SETNX",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::OW.or(Access::INSERT))],
    doc: Doc {
        since: "1.0.0",
        summary: "Sets a string if the key does not exist.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("value")],
        deprecated: Some(Deprecated { since: "2.6.12", replaced_by: "`SET` with the `NX` argument" }),
        ..ABOUT
    },
    run: DataRun::Keys(setnx),
    ..ROW
};

pub(super) const SETEX: Command = Command {
    name: "SETEX",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Sets a string that lives for so many seconds.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("seconds"), Arg::str("value")],
        deprecated: Some(Deprecated { since: "2.6.12", replaced_by: "`SET` with the `EX` argument" }),
        ..ABOUT
    },
    run: DataRun::Keys(setex),
    ..ROW
};

pub(super) const PSETEX: Command = Command {
    name: "PSETEX",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Sets a string that lives for so many milliseconds.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("milliseconds"), Arg::str("value")],
        deprecated: Some(Deprecated { since: "2.6.12", replaced_by: "`SET` with the `PX` argument" }),
        ..ABOUT
    },
    run: DataRun::Keys(psetex),
    ..ROW
};

pub(super) const MSET: Command = Command {
    name: "MSET",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::range(1, -1, 2, Access::OW.or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.1",
        summary: "Sets several strings at one instant.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::block("data", &[Arg::key("key", 0), Arg::str("value")]).many()],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        ..ABOUT
    },
    parts: Parts::Pairs,
    run: DataRun::Keys(mset),
    ..ROW
};

pub(super) const MSETNX: Command = Command {
    name: "MSETNX",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    keys: &[KeySpec::range(1, -1, 2, Access::OW.or(Access::INSERT))],
    doc: Doc {
        since: "1.0.1",
        summary: "Sets several strings at one instant, if none of the keys exists.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::block("data", &[Arg::key("key", 0), Arg::str("value")]).many()],
        ..ABOUT
    },
    parts: Parts::PairsIfNone(mset),
    run: DataRun::Keys(msetnx),
    ..ROW
};

/// What a request does with its key: only with GET does it read the old value.
fn set_access(args: &Args<'_>) -> Access {
    let writes = Access::OW.or(Access::UPDATE);
    let reads_and_writes = Access::RW.or(Access::ACCESS).or(Access::UPDATE);
    if args.iter_from(3).any(|arg| is_word(arg, "GET")) { reads_and_writes } else { writes }
}

/// SET. Without options it is recognised by the number of its arguments, which costs one comparison.
fn set(call: &mut Call<'_, '_>) -> Done {
    if call.args.len() > 3 {
        return set_with_options(call);
    }
    put(call, 2, Expiry::Clear);
    call.reply.ok();
    Ok(())
}

/// Stores argument `value` under the first key.
fn put(call: &mut Call<'_, '_>, value: usize, expiry: Expiry) {
    let key = call.key(0);
    call.view.put_string(key, call.args.at(value), Form::Auto, expiry);
    call.view.changed(key, 1, SET_EVENT);
    if let Expiry::At(_) = expiry {
        call.view.touched(key, Event::EXPIRE);
    }
}

/// When SET writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Always,
    IfMissing,
    IfPresent,
    /// Valkey's IFEQ.
    IfEqual(&'a [u8]),
}

/// What SET replies: whether it wrote, or the value before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Outcome,
    OldValue,
}

struct Options<'a> {
    condition: Condition<'a>,
    answer: Answer,
    lifetime: Option<Lifetime<'a>>,
}

/// SET with options, which are looked at in the order of Redis: options, lifetime, type of the old value,
/// condition. After an error in any of them the key is as it was. With GET the old value is the reply,
/// whether or not the new one is written.
fn set_with_options(call: &mut Call<'_, '_>) -> Done {
    let options = options(call)?;
    let expiry = expiry(options.lifetime, call.view.clock())?;
    let key = call.key(0);
    // With GET a value of another type is an error whatever the condition says.
    let found = match options.answer {
        Answer::OldValue => Some(reply_old_string(call)?),
        Answer::Outcome => None,
    };
    let holds = match options.condition {
        Condition::Always => true,
        Condition::IfMissing => !exists(call, found),
        Condition::IfPresent => exists(call, found),
        Condition::IfEqual(wanted) => call.view.string(key)?.is_some_and(|item| is_text(item, wanted)),
    };
    if holds {
        put(call, 2, expiry);
        tell(call, &options, expiry);
    }
    match (options.answer, holds) {
        (Answer::OldValue, _) => {}
        (Answer::Outcome, true) => call.reply.ok(),
        (Answer::Outcome, false) => call.reply.null(),
    }
    Ok(())
}

/// What a SET with options has done: the deadline is absolute, and nothing is asked.
fn tell(call: &mut Call<'_, '_>, options: &Options<'_>, expiry: Expiry) {
    let args = call.args;
    let is_absolute =
        matches!(options.lifetime, Some(Lifetime::Until { unit: Unit::Milliseconds, from: From::Epoch, .. }));
    let Some(effects) = call.effects() else { return };
    match expiry {
        Expiry::At(at) if !is_absolute => tell_deadline(effects, (args.at(1), args.at(2)), at),
        // Redis leaves GET there beside PXAT.
        Expiry::Clear | Expiry::Keep if options.answer == Answer::OldValue => {
            let is_said = |(at, word): &(usize, &[u8])| *at < 3 || !is_word(word, "GET");
            let words: Vec<&[u8]> =
                args.iter_from(0).enumerate().filter(is_said).map(|word| word.1).collect();
            effects.say(&words);
        }
        _ => {}
    }
}

fn tell_deadline(effects: &mut Effects, (key, value): (&[u8], &[u8]), at: Millis) {
    effects.say(&[b"SET", key, value, b"PXAT", I64Text::new().format(at.0)]);
}

/// Whether the first key exists: known from `found` if GET has replied its value already, otherwise by a
/// lookup.
fn exists(call: &mut Call<'_, '_>, found: Option<Found>) -> bool {
    match found {
        Some(found) => found == Found::Value,
        None => call.view.exists_used(call.key(0)),
    }
}

fn is_text(item: Item<'_>, text: &[u8]) -> bool {
    item.text(&mut base::text::I64Text::new()) == text
}

fn expiry(lifetime: Option<Lifetime<'_>>, now: Millis) -> Result<Expiry, Error> {
    match lifetime {
        Some(Lifetime::Until { unit, from, text }) => {
            lifetime::deadline(text, unit, from, now, "set").map(Expiry::At)
        }
        Some(Lifetime::Keep) => Ok(Expiry::Keep),
        Some(Lifetime::Persist) | None => Ok(Expiry::Clear),
    }
}

/// Options come in any order.
fn options<'k>(call: &Call<'_, 'k>) -> Result<Options<'k>, Error> {
    let mut options = Options { condition: Condition::Always, answer: Answer::Outcome, lifetime: None };
    let mut i = 3;
    while let Some(word) = call.args.get(i) {
        i += take_option(&mut options, word, call.args.get(i + 1)).ok_or_else(Error::syntax)?;
    }
    Ok(options)
}

/// Reads the option that begins at `word`, and returns how many arguments it has. None if it is no option, or
/// cannot be combined with those before.
fn take_option<'k>(options: &mut Options<'k>, word: &[u8], next: Option<&'k [u8]>) -> Option<usize> {
    let (condition, taken) = if is_word(word, "NX") {
        (Condition::IfMissing, 1)
    } else if is_word(word, "XX") {
        (Condition::IfPresent, 1)
    } else if is_word(word, "IFEQ") {
        (Condition::IfEqual(next?), 2)
    } else if is_word(word, "GET") {
        options.answer = Answer::OldValue;
        return Some(1);
    } else {
        return take_lifetime(options, word, next);
    };
    // NX may be repeated, and XX too; IFEQ may not.
    let is_free = options.condition == Condition::Always;
    let is_repeated = taken == 1 && options.condition == condition;
    options.condition = condition;
    (is_free || is_repeated).then_some(taken)
}

fn take_lifetime<'k>(options: &mut Options<'k>, word: &[u8], next: Option<&'k [u8]>) -> Option<usize> {
    let (lifetime, taken) = Lifetime::parse(word, next)?;
    let clashes = options.lifetime.is_some_and(|given| !given.is_same_option(&lifetime));
    if clashes || lifetime == Lifetime::Persist {
        return None;
    }
    options.lifetime = Some(lifetime);
    Some(taken)
}

fn setnx(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let is_new = !call.view.exists_used(key);
    if is_new {
        put(call, 2, Expiry::Clear);
    }
    call.reply.int(i64::from(is_new));
    Ok(())
}

fn setex(call: &mut Call<'_, '_>) -> Done {
    put_for(call, Unit::Seconds, "setex")
}

fn psetex(call: &mut Call<'_, '_>) -> Done {
    put_for(call, Unit::Milliseconds, "psetex")
}

/// SETEX and PSETEX are SET with a deadline, but an error names the command that the client used.
fn put_for(call: &mut Call<'_, '_>, unit: Unit, name: &str) -> Done {
    let deadline = lifetime::deadline(call.args.at(2), unit, From::Now, call.view.clock(), name)?;
    put(call, 3, Expiry::At(deadline));
    let (key, value) = (call.args.at(1), call.args.at(3));
    if let Some(effects) = call.effects() {
        tell_deadline(effects, (key, value), deadline);
    }
    call.reply.ok();
    Ok(())
}

fn mset(call: &mut Call<'_, '_>) -> Done {
    check_pairs(call, "mset")?;
    put_pairs(call);
    call.reply.ok();
    Ok(())
}

/// The shards of all keys are locked, so nobody can create one of them between the look and the writes.
fn msetnx(call: &mut Call<'_, '_>) -> Done {
    check_pairs(call, "msetnx")?;
    let is_free = !call.keys().iter().any(|key| call.view.exists_used(key));
    if is_free {
        put_pairs(call);
    }
    call.reply.int(i64::from(is_free));
    Ok(())
}

/// A row cannot say that the number of arguments must be odd, so that is checked here, with the error of a
/// wrong number.
fn check_pairs(call: &Call<'_, '_>, name: &str) -> Done {
    match call.args.len() % 2 {
        1 => Ok(()),
        _ => Err(Error::wrong_arity(name)),
    }
}

/// A key that is named twice is written twice, the last value stays, and both count as changes, as Redis
/// counts.
fn put_pairs(call: &mut Call<'_, '_>) {
    for (key, value) in call.keys().iter().zip(call.args.iter_from(2).step_by(2)) {
        call.view.put_string(key, value, Form::Auto, Expiry::Clear);
        call.view.changed(key, 1, SET_EVENT);
    }
}
