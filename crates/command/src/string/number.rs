//! Counters: INCR and its kin on 64-bit integers, INCRBYFLOAT on 80-bit floating point.
//!
//! The integers are on the path of every request: one call into the store, nothing allocated.
use super::row::{ABOUT, ROW};
use crate::argument::int;
use crate::long_double::LongDouble;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::Item;
use store::{Event, Expiry, Form};

pub(super) const INCR: Command = Command {
    name: "INCR",
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Adds one to an integer; a missing key counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(incr),
    ..ROW
};

pub(super) const DECR: Command = Command {
    name: "DECR",
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Subtracts one from an integer; a missing key counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(decr),
    ..ROW
};

pub(super) const INCRBY: Command = Command {
    name: "INCRBY",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Adds a number to an integer; a missing key counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("increment")],
        ..ABOUT
    },
    run: DataRun::Keys(incrby),
    ..ROW
};

pub(super) const DECRBY: Command = Command {
    name: "DECRBY",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Subtracts a number from an integer; a missing key counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::int("decrement")],
        ..ABOUT
    },
    run: DataRun::Keys(decrby),
    ..ROW
};

pub(super) const INCRBYFLOAT: Command = Command {
    name: "INCRBYFLOAT",
    arity: Arity::Exactly(3),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Adds a floating point number to a number; a missing key counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::double("increment")],
        ..ABOUT
    },
    run: DataRun::Keys(incrbyfloat),
    ..ROW
};

fn incr(call: &mut Call<'_, '_>) -> Done {
    add(call, 1)
}

fn decr(call: &mut Call<'_, '_>) -> Done {
    add(call, -1)
}

fn incrby(call: &mut Call<'_, '_>) -> Done {
    add(call, int(call.args.at(2))?)
}

/// DECRBY. The least integer, which has no opposite, is refused before the key is looked up.
fn decrby(call: &mut Call<'_, '_>) -> Done {
    let decrement = int(call.args.at(2))?;
    add(call, decrement.checked_neg().ok_or_else(Error::decrement_overflow)?)
}

/// The store reads, adds and writes in one descent; overflow and text that is no integer are errors that
/// leave the value as it was.
fn add(call: &mut Call<'_, '_>, delta: i64) -> Done {
    let key = call.key(0);
    let sum = call.view.add(key, delta)?;
    call.view.changed(key, 1, Event::string("incrby"));
    call.reply.int(sum);
    Ok(())
}

/// INCRBYFLOAT. The sum is stored as `Form::Text`, because Redis keeps it as text even if it is a whole
/// number, which OBJECT ENCODING shows. Infinity and NaN are refused, so no value ever holds them.
fn incrbyfloat(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let value = match call.view.string(key)? {
        None => Some(LongDouble::ZERO),
        Some(Item::Int(n)) => Some(LongDouble::from_i64(n)),
        Some(Item::Bytes(text)) => LongDouble::parse(text),
    };
    let (Some(value), Some(increment)) = (value, LongDouble::parse(call.args.at(2))) else {
        return Err(Error::not_a_float());
    };
    let sum = value.add(increment).to_text().ok_or_else(Error::nan_or_infinity)?;
    call.view.put_string(key, sum.as_bytes(), Form::Text, Expiry::Keep);
    call.view.changed(key, 1, Event::string("incrbyfloat"));
    call.effect(&[b"SET", key.bytes(), sum.as_bytes(), b"KEEPTTL"]);
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
