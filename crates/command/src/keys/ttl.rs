//! How long keys live: TTL and EXPIRETIME, in seconds and milliseconds. Seconds are rounded to the nearest.
//!
//! A key whose deadline has come is missing for all of them, so a time to live is never negative; -1 and -2
//! are free to mean something else.
use super::row::{ABOUT, ROW};
use crate::lifetime::{From, Unit};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec};
use base::Millis;
use store::Deadline;

pub(super) const TTL: Command = Command {
    name: "TTL",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers how many seconds a key has to live.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        history: &[("2.8.0", "Answers -2 where the key is missing.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(ttl),
    ..ROW
};

pub(super) const PTTL: Command = Command {
    name: "PTTL",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.6.0",
        summary: "Answers how many milliseconds a key has to live.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        history: &[("2.8.0", "Answers -2 where the key is missing.")],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(pttl),
    ..ROW
};

pub(super) const EXPIRETIME: Command = Command {
    name: "EXPIRETIME",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.0.0",
        summary: "Answers a key's deadline as Unix time in seconds.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(expiretime),
    ..ROW
};

pub(super) const PEXPIRETIME: Command = Command {
    name: "PEXPIRETIME",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "7.0.0",
        summary: "Answers a key's deadline as Unix time in milliseconds.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(pexpiretime),
    ..ROW
};

fn ttl(call: &mut Call<'_, '_>) -> Done {
    reply_deadline(call, Unit::Seconds, From::Now)
}

fn pttl(call: &mut Call<'_, '_>) -> Done {
    reply_deadline(call, Unit::Milliseconds, From::Now)
}

fn expiretime(call: &mut Call<'_, '_>) -> Done {
    reply_deadline(call, Unit::Seconds, From::Epoch)
}

fn pexpiretime(call: &mut Call<'_, '_>) -> Done {
    reply_deadline(call, Unit::Milliseconds, From::Epoch)
}

/// The time counted from now or from the epoch; -1 for ever, -2 for a missing key.
fn reply_deadline(call: &mut Call<'_, '_>, unit: Unit, from: From) -> Done {
    let key = call.key(0);
    let answer = match call.view.deadline(key) {
        None => -2,
        Some(Deadline::Never) => -1,
        Some(Deadline::At(time)) => {
            let ms = match from {
                From::Now => time.0.saturating_sub(call.view.clock().0).max(0),
                From::Epoch => time.0,
            };
            match unit {
                Unit::Seconds => Millis(ms).to_secs_nearest(),
                Unit::Milliseconds => ms,
            }
        }
    };
    call.reply.int(answer);
    Ok(())
}
