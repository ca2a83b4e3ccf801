//! OBJECT: how a value is kept, in the words that monitoring tools know. The encoding's name is the one Redis
//! would give; what Sardine really keeps is told by MEMORY LAYOUT.
use super::row::{ABOUT, ROW};
use crate::help::reply_help;
use crate::{
    Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Scope, WholeCall,
};
use store::{Key, Usage, View};

pub(super) const OBJECT: Command = Command {
    name: "OBJECT",
    arity: Arity::AtLeast(2),
    flags: Flags::NONE,
    acl: Acl::NONE,
    doc: Doc {
        since: "2.2.3",
        summary: "Holds the commands that look at how a value is kept.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&OBJECT_HELP, &OBJECT_REFCOUNT, &OBJECT_ENCODING, &OBJECT_FREQ, &OBJECT_IDLETIME],
    run: DataRun::Container,
    ..ROW
};

pub(super) const OBJECT_HELP: Command = Command {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: Doc { since: "6.2.0", summary: "Lists the subcommands.", complexity: "O(1)", ..ABOUT },
    run: DataRun::Whole(Scope::Shared, help),
    ..ROW
};

pub(super) const OBJECT_REFCOUNT: Command = Command {
    name: "REFCOUNT",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        since: "2.2.3",
        summary: "Answers how many references a value has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(refcount),
    ..ROW
};

pub(super) const OBJECT_ENCODING: Command = Command {
    name: "ENCODING",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        since: "2.2.3",
        summary: "Answers the name of a value's encoding.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(encoding),
    ..ROW
};

pub(super) const OBJECT_FREQ: Command = Command {
    name: "FREQ",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::TELLS_USE),
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        since: "4.0.0",
        summary: "Answers how often a value is used, where that is tracked.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(freq),
    ..ROW
};

pub(super) const OBJECT_IDLETIME: Command = Command {
    name: "IDLETIME",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::TELLS_USE),
    keys: &[KeySpec::one(2, Access::RO)],
    doc: Doc {
        since: "2.2.3",
        summary: "Answers for how long a value has not been used, where that is tracked.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Keys(idletime),
    ..ROW
};

fn help(call: &mut WholeCall<'_>) -> Done {
    reply_help(
        call,
        &[
            ("ENCODING <key>", "The name of the encoding that Redis would give the value."),
            ("FREQ <key>", "How often the key is used, on a logarithmic scale. Needs an LFU policy."),
            ("IDLETIME <key>", "For how many seconds the key has not been used."),
            ("REFCOUNT <key>", "How many references the value has."),
        ],
    )
}

/// What a look at the key tells. Nobody is told where it is not there, as in Redis.
fn looked_at<T>(
    call: &mut Call<'_, '_>,
    look: impl FnOnce(&mut View<'_>, &Key<'_>) -> Option<T>,
) -> Option<T> {
    let (key, told) = (call.key(0), call.view.told_count());
    let found = look(call.view, key);
    call.view.conceal_misses_since(told);
    found
}

fn encoding(call: &mut Call<'_, '_>) -> Done {
    match looked_at(call, |view, key| view.brief(key)) {
        Some(brief) => call.reply.bulk(brief.encoding.as_bytes()),
        None => call.reply.null(),
    }
    Ok(())
}

/// The integers that Redis keeps once and shares between all keys.
const SHARED_INTEGERS: std::ops::Range<i64> = 0..10_000;
const SHARED_REFCOUNT: i64 = i32::MAX as i64;

/// OBJECT REFCOUNT: 1, but for small integers in the encoding `int`. Redis keeps each of these once for all
/// keys and answers with a special count, unless its eviction policy has to tell the uses of each key apart.
fn refcount(call: &mut Call<'_, '_>) -> Done {
    let Some(brief) = looked_at(call, |view, key| view.brief(key)) else {
        call.reply.null();
        return Ok(());
    };
    let is_small = brief.encoding == "int" && brief.int.is_some_and(|n| SHARED_INTEGERS.contains(&n));
    let is_shared = is_small && call.view.settings().shares_integers();
    call.reply.int(if is_shared { SHARED_REFCOUNT } else { 1 });
    Ok(())
}

fn freq(call: &mut Call<'_, '_>) -> Done {
    match looked_at(call, |view, key| view.usage(key)) {
        None => call.reply.null(),
        Some(Usage::Frequency(count)) => call.reply.int(i64::from(count)),
        Some(Usage::IdleMs(_) | Usage::Untracked) => return Err(Error::frequency_not_tracked()),
    }
    Ok(())
}

/// Sardine does not keep times of use before somebody asks for one: the first OBJECT IDLETIME starts that.
fn idletime(call: &mut Call<'_, '_>) -> Done {
    match looked_at(call, |view, key| view.idle(key)) {
        None => call.reply.null(),
        Some(Usage::IdleMs(ms)) => call.reply.int(ms / 1000),
        Some(Usage::Frequency(_)) => return Err(Error::idle_time_not_tracked_but_frequency()),
        Some(Usage::Untracked) => unreachable!("a question for it has it kept"),
    }
    Ok(())
}
