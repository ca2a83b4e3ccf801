//! Writing fields, removing them, and counting in them.
//!
//! All fields of one command go into one open hash, which is written back once, when it is dropped. The type
//! is checked before the first of them; after that nothing can fail, so no command stops half-way. On the
//! path of every request: nothing is allocated here.
use super::row::{ABOUT, HDEL_EVENT, HSET_EVENT, ROW};
use crate::argument::int;
use crate::long_double::LongDouble;
use crate::{Access, Arg, Arity, Call, Command, DataRun, Deprecated, Doc, Done, Error, Flags, KeySpec};
use base::Item;
use base::text::I64Text;
use store::{Deadline, Event, Lifetime};

pub(super) const HSET: Command = Command {
    name: "HSET",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Writes fields of a hash; creates the key where it is missing.",
        complexity: "O(N) where N is the number of fields written.",
        args: &[Arg::key("key", 0), Arg::block("data", &[Arg::str("field"), Arg::str("value")]).many()],
        history: &[("4.0.0", "Takes several fields and values.")],
        ..ABOUT
    },
    run: DataRun::Keys(hset),
    ..ROW
};

pub(super) const HMSET: Command = Command {
    name: "HMSET",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Writes several fields of a hash.",
        complexity: "O(N) where N is the number of fields written.",
        args: &[Arg::key("key", 0), Arg::block("data", &[Arg::str("field"), Arg::str("value")]).many()],
        deprecated: Some(Deprecated {
            since: "4.0.0",
            replaced_by: "`HSET` with multiple field-value pairs",
        }),
        ..ABOUT
    },
    run: DataRun::Keys(hmset),
    ..ROW
};

pub(super) const HSETNX: Command = Command {
    name: "HSETNX",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::INSERT))],
    doc: Doc {
        since: "2.0.0",
        summary: "Writes a field of a hash unless it is there.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field"), Arg::str("value")],
        ..ABOUT
    },
    run: DataRun::Keys(hsetnx),
    ..ROW
};

pub(super) const HDEL: Command = Command {
    name: "HDEL",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::DELETE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Removes fields of a hash; the key goes with the last of them.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::str("field").many()],
        history: &[("2.4.0", "Takes several fields.")],
        ..ABOUT
    },
    run: DataRun::Keys(hdel),
    ..ROW
};

pub(super) const HINCRBY: Command = Command {
    name: "HINCRBY",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "2.0.0",
        summary: "Adds a number to an integer in a field of a hash; a missing field counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field"), Arg::int("increment")],
        ..ABOUT
    },
    run: DataRun::Keys(hincrby),
    ..ROW
};

pub(super) const HINCRBYFLOAT: Command = Command {
    name: "HINCRBYFLOAT",
    arity: Arity::Exactly(4),
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::ACCESS).or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Adds a floating point number to a number in a field of a hash; a missing field counts as 0.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field"), Arg::double("increment")],
        ..ABOUT
    },
    run: DataRun::Keys(hincrbyfloat),
    ..ROW
};

/// How many fields are new.
fn hset(call: &mut Call<'_, '_>) -> Done {
    let created = set_all(call, "hset")?;
    call.reply.int(created);
    Ok(())
}

fn hmset(call: &mut Call<'_, '_>) -> Done {
    set_all(call, "hmset")?;
    call.reply.ok();
    Ok(())
}

/// HSET and HMSET. A field that is written lives for ever, whatever deadline it had.
fn set_all(call: &mut Call<'_, '_>, name: &str) -> Result<i64, Error> {
    let count = call.args.len() - 2;
    if !count.is_multiple_of(2) {
        return Err(Error::wrong_arity(name));
    }
    let key = call.key(0);
    let mut created = 0;
    // The hash is edited in the result that holds it: moving it out would cost more than writing a field.
    match &mut call.view.hash_or_new(key) {
        Ok(hash) => {
            hash.announce(count as u64 / 2);
            let built = hash.build_new(call.args.iter_from(2));
            created += built as i64;
            let mut words = call.args.iter_from(2 + 2 * built);
            while let (Some(field), Some(value)) = (words.next(), words.next()) {
                created += i64::from(hash.set(field, value, Lifetime::Endless));
            }
        }
        Err(wrong) => return Err((*wrong).into()),
    }
    call.view.changed(key, count as u64 / 2, HSET_EVENT);
    Ok(created)
}

fn hsetnx(call: &mut Call<'_, '_>) -> Done {
    let (key, field) = (call.key(0), call.args.at(2));
    let mut hash = call.view.hash_or_new(key)?;
    let is_new = hash.get(field).is_none();
    if is_new {
        hash.set(field, call.args.at(3), Lifetime::Endless);
    }
    drop(hash);
    call.view.changed(key, u64::from(is_new), HSET_EVENT);
    call.reply.int(i64::from(is_new));
    Ok(())
}

fn hdel(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let Some(mut hash) = call.view.hash_mut(key)? else {
        call.reply.int(0);
        return Ok(());
    };
    hash.expect_removals(call.args.len() as u64 - 2);
    let removed = call.args.iter_from(2).filter(|field| hash.remove(field)).count();
    drop(hash);
    call.view.reduced(key, removed as u64, HDEL_EVENT);
    call.reply.int(removed as i64);
    Ok(())
}

/// The field's deadline stays.
fn hincrby(call: &mut Call<'_, '_>) -> Done {
    let (key, field) = (call.key(0), call.args.at(2));
    let delta = int(call.args.at(3))?;
    let mut hash = call.view.hash_or_new(key)?;
    let old = match hash.get(field) {
        None => 0,
        Some(Item::Int(n)) => n,
        Some(Item::Bytes(_)) => return Err(Error::hash_value_not_an_integer()),
    };
    let sum = old.checked_add(delta).ok_or_else(Error::add_overflow)?;
    hash.set(field, I64Text::new().format(sum), Lifetime::Kept);
    drop(hash);
    call.view.changed(key, 1, Event::hash("hincrby"));
    call.reply.int(sum);
    Ok(())
}

/// As HINCRBY, with floating point. Infinity and NaN are refused, so no field ever holds them.
fn hincrbyfloat(call: &mut Call<'_, '_>) -> Done {
    let (key, field) = (call.key(0), call.args.at(2));
    let increment = LongDouble::parse(call.args.at(3)).ok_or_else(Error::not_a_float)?;
    if !increment.is_finite() {
        return Err(Error::increment_nan_or_infinity());
    }
    let mut hash = call.view.hash_or_new(key)?;
    let value = match hash.get(field) {
        None => Some(LongDouble::ZERO),
        Some(Item::Int(n)) => Some(LongDouble::from_i64(n)),
        Some(Item::Bytes(text)) => LongDouble::parse(text),
    };
    let value = value.ok_or_else(Error::hash_value_not_a_float)?;
    let sum = value.add(increment).to_text().ok_or_else(Error::nan_or_infinity)?;
    let is_timed = matches!(hash.deadline(field), Some(Deadline::At(_)));
    hash.set(field, sum.as_bytes(), Lifetime::Kept);
    drop(hash);
    call.view.changed(key, 1, Event::hash("hincrbyfloat"));
    match is_timed {
        false => call.effect(&[b"HSET", key.bytes(), field, sum.as_bytes()]),
        // HSET would take the field's deadline away.
        true => {
            call.effect(&[b"HSETEX", key.bytes(), b"KEEPTTL", b"FIELDS", b"1", field, sum.as_bytes()]);
        }
    }
    call.reply.bulk(sum.as_bytes());
    Ok(())
}
