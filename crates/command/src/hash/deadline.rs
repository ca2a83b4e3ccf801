//! Deadlines of fields: HEXPIRE in its four forms, HTTL in its four, HPERSIST.
//!
//! Every form becomes an absolute deadline in milliseconds before anything is compared or stored. One in the
//! past is no error: it removes the field. The type of the key is told before anything else that is wrong, as
//! Redis does.
use super::row::{ABOUT, HDEL_EVENT, HEXPIRE_EVENT, HPERSIST_EVENT, ROW};
use crate::argument::{int, is_word};
use crate::lifetime::{From, Unit, in_millis, since};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::Millis;
use base::text::{I64Text, parse_i64};
use resp::Args;
use store::{Deadline, HashMut};

pub(super) const FIELDS: Arg =
    Arg::block("fields", &[Arg::int("numfields"), Arg::str("field").many()]).after("FIELDS");
const CONDITION: Arg = Arg::one_of(
    "condition",
    &[Arg::word("nx", "NX"), Arg::word("xx", "XX"), Arg::word("gt", "GT"), Arg::word("lt", "LT")],
)
.optional();

/// No field lives longer: 2^46 milliseconds, the year 4199.
const TIME_MAX_MS: i64 = (1 << 46) - 1;

pub(super) const HEXPIRE: Command = Command {
    name: "HEXPIRE",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "7.4.0",
        summary: "Gives fields of a hash so many seconds to live.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::int("seconds"), CONDITION, FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hexpire),
    ..ROW
};

pub(super) const HPEXPIRE: Command = Command {
    name: "HPEXPIRE",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "7.4.0",
        summary: "Gives fields of a hash so many milliseconds to live.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::int("milliseconds"), CONDITION, FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hpexpire),
    ..ROW
};

pub(super) const HEXPIREAT: Command = Command {
    name: "HEXPIREAT",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "7.4.0",
        summary: "Sets the deadline of fields of a hash as Unix time in seconds.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::unix_time("unix-time-seconds"), CONDITION, FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hexpireat),
    ..ROW
};

pub(super) const HPEXPIREAT: Command = Command {
    name: "HPEXPIREAT",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "7.4.0",
        summary: "Sets the deadline of fields of a hash as Unix time in milliseconds.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::unix_time("unix-time-milliseconds"), CONDITION, FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hpexpireat),
    ..ROW
};

pub(super) const HTTL: Command = Command {
    name: "HTTL",
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.4.0",
        summary: "Answers how many seconds fields of a hash have to live.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(httl),
    ..ROW
};

pub(super) const HPTTL: Command = Command {
    name: "HPTTL",
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.4.0",
        summary: "Answers how many milliseconds fields of a hash have to live.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(hpttl),
    ..ROW
};

pub(super) const HEXPIRETIME: Command = Command {
    name: "HEXPIRETIME",
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.4.0",
        summary: "Answers the deadline of fields of a hash as Unix time in seconds.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hexpiretime),
    ..ROW
};

pub(super) const HPEXPIRETIME: Command = Command {
    name: "HPEXPIRETIME",
    arity: Arity::AtLeast(5),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.4.0",
        summary: "Answers the deadline of fields of a hash as Unix time in milliseconds.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hpexpiretime),
    ..ROW
};

pub(super) const HPERSIST: Command = Command {
    name: "HPERSIST",
    arity: Arity::AtLeast(5),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "7.4.0",
        summary: "Takes the deadlines of fields of a hash away.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), FIELDS],
        ..ABOUT
    },
    run: DataRun::Keys(hpersist),
    ..ROW
};

/// `FIELDS count field ...`, as the commands on fields' deadlines end.
pub(super) struct Named<'a> {
    args: Args<'a>,
    first: usize,
}

impl<'a> Named<'a> {
    /// `at`: where FIELDS has to stand. `invalid` is the refusal of a count below 1.
    pub(super) fn parse(args: Args<'a>, at: usize, invalid: fn() -> Error) -> Result<Named<'a>, Error> {
        if !args.get(at).is_some_and(|word| is_word(word, "FIELDS")) {
            return Err(Error::fields_missing());
        }
        let count = args.get(at + 1).and_then(parse_i64).filter(|count| *count > 0).ok_or_else(invalid)?;
        if count as u64 != (args.len() - at - 2) as u64 {
            return Err(Error::fields_count());
        }
        Ok(Named { args, first: at + 2 })
    }

    /// The word before the count, as it was sent.
    pub(super) fn word(&self) -> &'a [u8] {
        self.args.at(self.first - 2)
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.args.len() - self.first
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.args.iter_from(self.first)
    }
}

/// What became of a field, in replies.
const NO_FIELD: i64 = -2;
const NO_DEADLINE: i64 = -1;
const NOT_SET: i64 = 0;
const SET: i64 = 1;
const DELETED: i64 = 2;

/// A condition on the present deadline of the field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    None,
    Nx,
    Xx,
    Gt,
    Lt,
}

impl Condition {
    fn of(word: &[u8]) -> Condition {
        const WORDS: [(&str, Condition); 4] =
            [("NX", Condition::Nx), ("XX", Condition::Xx), ("GT", Condition::Gt), ("LT", Condition::Lt)];
        let found = WORDS.iter().find(|(name, _)| is_word(word, name));
        found.map_or(Condition::None, |(_, condition)| *condition)
    }

    /// A field without a deadline counts as living for ever, so that no new deadline is later and each is
    /// earlier.
    fn holds(self, current: Deadline, new: Millis) -> bool {
        match (self, current) {
            (Condition::None, _) | (Condition::Nx | Condition::Lt, Deadline::Never) => true,
            (Condition::Nx, _) | (Condition::Xx | Condition::Gt, Deadline::Never) => false,
            (Condition::Xx, _) => true,
            (Condition::Gt, Deadline::At(at)) => new > at,
            (Condition::Lt, Deadline::At(at)) => new < at,
        }
    }
}

fn hexpire(call: &mut Call<'_, '_>) -> Done {
    set_deadlines(call, Unit::Seconds, From::Now, "hexpire")
}

fn hpexpire(call: &mut Call<'_, '_>) -> Done {
    set_deadlines(call, Unit::Milliseconds, From::Now, "hpexpire")
}

fn hexpireat(call: &mut Call<'_, '_>) -> Done {
    set_deadlines(call, Unit::Seconds, From::Epoch, "hexpireat")
}

fn hpexpireat(call: &mut Call<'_, '_>) -> Done {
    set_deadlines(call, Unit::Milliseconds, From::Epoch, "hpexpireat")
}

/// The key's type is looked at first; a deadline that has passed deletes the field.
fn set_deadlines(call: &mut Call<'_, '_>, unit: Unit, from: From, name: &str) -> Done {
    let (key, now, clock) = (call.key(0), call.view.now(), call.view.clock());
    let mut hash = call.view.hash_mut(key)?;
    let time = time_of(int(call.args.at(2))?, unit, from, clock, name)?;
    let condition = Condition::of(call.args.at(3));
    let fields =
        Named::parse(call.args, 3 + usize::from(condition != Condition::None), Error::numfields_zero)?;
    call.reply.array(fields.count());
    let mut changes = 0;
    let mut changed = call.effects.is_some().then(Vec::new);
    match &mut hash {
        None => (0..fields.count()).for_each(|_| call.reply.int(NO_FIELD)),
        Some(hash) => {
            hash.expect_deadlines();
            for field in fields.iter() {
                let outcome = set_deadline(hash, field, time, condition, now);
                if outcome > NOT_SET {
                    changes += 1;
                    changed.as_mut().into_iter().for_each(|changed| changed.push(field));
                }
                call.reply.int(outcome);
            }
        }
    }
    drop(hash);
    let event = if time <= now { HDEL_EVENT } else { HEXPIRE_EVENT };
    call.view.reduced(key, changes, event);
    if let Some(changed) = changed.filter(|changed| !changed.is_empty()) {
        let condition: Vec<&[u8]> =
            call.args.get(3).filter(|_| condition != Condition::None).into_iter().collect();
        let is_same = (unit, from) == (Unit::Milliseconds, From::Epoch);
        let name = if is_same { call.args.at(0) } else { TOLD };
        tell_deadlines(call, key.bytes(), (name, time, &condition), (fields.word(), &changed));
    }
    Ok(())
}

/// The command as which a deadline of fields is told.
pub(super) const TOLD: &[u8] = b"HPEXPIREAT";

/// Fields have been given this deadline, under a condition; they are gone if it has passed. `name` is the
/// command and `word` what stands before the fields, as Redis spells them: as the client did where it can.
pub(super) fn tell_deadlines(
    call: &mut Call<'_, '_>,
    key: &[u8],
    (name, at, condition): (&[u8], Millis, &[&[u8]]),
    (word, fields): (&[u8], &[&[u8]]),
) {
    if at <= call.view.now() {
        return fields.iter().for_each(|field| call.effect(&[b"HDEL", key, field]));
    }
    let (mut time, mut count) = (I64Text::new(), I64Text::new());
    let mut words = vec![name, key, time.format(at.0)];
    words.extend_from_slice(condition);
    words.extend_from_slice(&[word, count.format_u64(fields.len() as u64)]);
    words.extend_from_slice(fields);
    call.effect(&words);
}

fn set_deadline(
    hash: &mut HashMut<'_>,
    field: &[u8],
    time: Millis,
    condition: Condition,
    now: Millis,
) -> i64 {
    let Some(current) = hash.deadline(field) else { return NO_FIELD };
    if !condition.holds(current, time) {
        return NOT_SET;
    }
    if time <= now {
        hash.remove(field);
        hash.count_expired();
        return DELETED;
    }
    hash.set_deadline(field, Deadline::At(time));
    SET
}

/// The deadline that a number says: 0 or more, and within what Redis keeps.
pub(super) fn time_of(n: i64, unit: Unit, from: From, now: Millis, name: &str) -> Result<Millis, Error> {
    if n < 0 {
        return Err(Error::field_expire_negative());
    }
    let ms = in_millis(n, unit).and_then(|ms| since(ms, from, now)).filter(|at| at.0 <= TIME_MAX_MS);
    ms.ok_or_else(|| Error::invalid_expire(name))
}

fn httl(call: &mut Call<'_, '_>) -> Done {
    let now = call.view.clock();
    each_deadline(call, |at| (at.0 - now.0 + 999) / 1000)
}

fn hpttl(call: &mut Call<'_, '_>) -> Done {
    let now = call.view.clock();
    each_deadline(call, |at| at.0 - now.0)
}

fn hexpiretime(call: &mut Call<'_, '_>) -> Done {
    each_deadline(call, |at| (at.0 + 999) / 1000)
}

fn hpexpiretime(call: &mut Call<'_, '_>) -> Done {
    each_deadline(call, |at| at.0)
}

/// HTTL and its like: replies a number for each field, which `tell` makes of the deadline.
fn each_deadline(call: &mut Call<'_, '_>, tell: impl Fn(Millis) -> i64) -> Done {
    let key = call.key(0);
    let hash = call.view.hash(key)?;
    let fields = Named::parse(call.args, 2, Error::numfields_not_positive)?;
    call.reply.array(fields.count());
    for field in fields.iter() {
        call.reply.int(match hash.and_then(|hash| hash.deadline(field)) {
            None => NO_FIELD,
            Some(Deadline::Never) => NO_DEADLINE,
            Some(Deadline::At(at)) => tell(at),
        });
    }
    Ok(())
}

/// However many deadlines go, it counts as one change.
fn hpersist(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let mut hash = call.view.hash_mut(key)?;
    let fields = Named::parse(call.args, 2, Error::numfields_not_positive)?;
    call.reply.array(fields.count());
    let mut is_changed = false;
    for field in fields.iter() {
        let current = hash.as_ref().and_then(|hash| hash.deadline(field));
        call.reply.int(match (current, &mut hash) {
            (Some(Deadline::At(_)), Some(hash)) => {
                hash.set_deadline(field, Deadline::Never);
                is_changed = true;
                SET
            }
            (Some(_), _) => NO_DEADLINE,
            (None, _) => NO_FIELD,
        });
    }
    drop(hash);
    call.view.changed(key, u64::from(is_changed), HPERSIST_EVENT);
    Ok(())
}
