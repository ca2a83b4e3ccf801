//! Deadlines: EXPIRE in its four forms, with the conditions of Redis 7, and PERSIST.
//!
//! Every form becomes an absolute deadline in milliseconds before anything is compared or stored. Times that
//! do not fit 64 bits of milliseconds are refused; times in the past are not: they delete the key, which is
//! how some clients delete.
use super::row::{ABOUT, ROW};
use crate::argument::{int, is_word};
use crate::lifetime::{From, Unit, in_millis, since};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec};
use base::Millis;
use store::{Deadline, Event};

pub(super) const EXPIRE: Command = Command {
    name: "EXPIRE",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Gives a key so many seconds to live.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::int("seconds"),
            Arg::one_of(
                "condition",
                &[Arg::word("nx", "NX"), Arg::word("xx", "XX"), Arg::word("gt", "GT"), Arg::word("lt", "LT")],
            )
            .optional()
            .since("7.0.0"),
        ],
        history: &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")],
        ..ABOUT
    },
    run: DataRun::Keys(expire),
    ..ROW
};

pub(super) const PEXPIRE: Command = Command {
    name: "PEXPIRE",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Gives a key so many milliseconds to live.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::int("milliseconds"),
            Arg::one_of(
                "condition",
                &[Arg::word("nx", "NX"), Arg::word("xx", "XX"), Arg::word("gt", "GT"), Arg::word("lt", "LT")],
            )
            .optional()
            .since("7.0.0"),
        ],
        history: &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")],
        ..ABOUT
    },
    run: DataRun::Keys(pexpire),
    ..ROW
};

pub(super) const EXPIREAT: Command = Command {
    name: "EXPIREAT",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "1.2.0",
        summary: "Sets a key's deadline as Unix time in seconds.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::unix_time("unix-time-seconds"),
            Arg::one_of(
                "condition",
                &[Arg::word("nx", "NX"), Arg::word("xx", "XX"), Arg::word("gt", "GT"), Arg::word("lt", "LT")],
            )
            .optional()
            .since("7.0.0"),
        ],
        history: &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")],
        ..ABOUT
    },
    run: DataRun::Keys(expireat),
    ..ROW
};

pub(super) const PEXPIREAT: Command = Command {
    name: "PEXPIREAT",
    arity: Arity::AtLeast(3),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Sets a key's deadline as Unix time in milliseconds.",
        complexity: "O(1)",
        args: &[
            Arg::key("key", 0),
            Arg::unix_time("unix-time-milliseconds"),
            Arg::one_of(
                "condition",
                &[Arg::word("nx", "NX"), Arg::word("xx", "XX"), Arg::word("gt", "GT"), Arg::word("lt", "LT")],
            )
            .optional()
            .since("7.0.0"),
        ],
        history: &[("7.0.0", "Takes `NX`, `XX`, `GT` and `LT`.")],
        ..ABOUT
    },
    run: DataRun::Keys(pexpireat),
    ..ROW
};

pub(super) const PERSIST: Command = Command {
    name: "PERSIST",
    arity: Arity::Exactly(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.2.0",
        summary: "Takes a key's deadline away.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(persist),
    ..ROW
};

fn expire(call: &mut Call<'_, '_>) -> Done {
    set_deadline(call, Unit::Seconds, From::Now, "expire")
}

fn pexpire(call: &mut Call<'_, '_>) -> Done {
    set_deadline(call, Unit::Milliseconds, From::Now, "pexpire")
}

fn expireat(call: &mut Call<'_, '_>) -> Done {
    set_deadline(call, Unit::Seconds, From::Epoch, "expireat")
}

fn pexpireat(call: &mut Call<'_, '_>) -> Done {
    set_deadline(call, Unit::Milliseconds, From::Epoch, "pexpireat")
}

/// Conditions on the present deadline of the key.
#[derive(Clone, Copy, Default)]
struct Conditions {
    is_nx: bool,
    is_xx: bool,
    is_gt: bool,
    is_lt: bool,
}

impl Conditions {
    /// A key without a deadline counts as living for ever, so that no new deadline is later and each is
    /// earlier.
    fn hold(self, current: Deadline, new: Millis) -> bool {
        let (is_volatile, is_later, is_earlier) = match current {
            Deadline::Never => (false, false, true),
            Deadline::At(time) => (true, new > time, new < time),
        };
        let fits_kind = if is_volatile { !self.is_nx } else { !self.is_xx };
        fits_kind && (is_later || !self.is_gt) && (is_earlier || !self.is_lt)
    }
}

/// A deadline that has passed deletes the key; that counts as set.
fn set_deadline(call: &mut Call<'_, '_>, unit: Unit, from: From, name: &str) -> Done {
    let conditions = conditions(call)?;
    let time = in_millis(int(call.args.at(2))?, unit).and_then(|ms| since(ms, from, call.view.clock()));
    let time = time.ok_or_else(|| Error::invalid_expire(name))?;
    let key = call.key(0);
    let holds = call.view.deadline_used(key).is_some_and(|current| conditions.hold(current, time));
    if holds {
        call.view.set_deadline(key, Deadline::At(time));
        let event = if time <= call.view.now() { Event::DEL } else { Event::EXPIRE };
        call.view.changed(key, 1, event);
        let is_as_said = (unit, from) == (Unit::Milliseconds, From::Epoch) && time > call.view.now();
        if call.effects().is_some() && !is_as_said {
            let options: Vec<&[u8]> = call.args.iter_from(3).collect();
            call.deadline_effect(key.bytes(), time, &options);
        }
    }
    call.reply.int(i64::from(holds));
    Ok(())
}

/// XX can be combined with GT or LT; all other combinations are refused. All words are read before conflicts
/// are looked for, so an unknown word is reported first.
fn conditions(call: &Call<'_, '_>) -> Result<Conditions, Error> {
    let mut conditions = Conditions::default();
    for word in call.args.iter_from(3) {
        let flag = if is_word(word, "NX") {
            &mut conditions.is_nx
        } else if is_word(word, "XX") {
            &mut conditions.is_xx
        } else if is_word(word, "GT") {
            &mut conditions.is_gt
        } else if is_word(word, "LT") {
            &mut conditions.is_lt
        } else {
            return Err(Error::unsupported_option(word));
        };
        *flag = true;
    }
    if conditions.is_nx && (conditions.is_xx || conditions.is_gt || conditions.is_lt) {
        return Err(Error::expire_nx_with_others());
    }
    if conditions.is_gt && conditions.is_lt {
        return Err(Error::expire_gt_with_lt());
    }
    Ok(conditions)
}

/// PERSIST. It answers 1 only if the key had a deadline.
fn persist(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let is_volatile = matches!(call.view.deadline_used(key), Some(Deadline::At(_)));
    if is_volatile {
        call.view.set_deadline(key, Deadline::Never);
        call.view.changed(key, 1, Event::PERSIST);
    }
    call.reply.int(i64::from(is_volatile));
    Ok(())
}
