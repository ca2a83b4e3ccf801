//! DUMP and RESTORE: a value as bytes that any Redis reads, and such bytes as a value. The bytes are made and
//! read in `disk::rdb`.
use super::row::{ABOUT, ROW};
use crate::argument::{int, is_word};
use crate::{Access, Acl, Arg, Arity, Call, Command, DataRun, Doc, Done, Error, Flags, KeySpec, Long, work};
use base::Millis;
use base::text::I64Text;
use disk::rdb::{self, Form, PayloadError};
use store::{Deadline, Event, Key, Usage};

pub(super) const DUMP: Command = Command {
    name: "DUMP",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.6.0",
        summary: "Answers a value as bytes, in the format of dump files.",
        complexity: "O(N) where N is the number of elements, and the length of the string.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::all_texts, dump)),
    ..ROW
};

pub(super) const RESTORE: Command = Command {
    name: "RESTORE",
    arity: Arity::AtLeast(4),
    flags: Flags::WRITE.or(Flags::DENYOOM),
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    keys: &[KeySpec::one(1, Access::OW.or(Access::UPDATE))],
    doc: Doc {
        since: "2.6.0",
        summary: "Puts a value, as DUMP answers it, under a key.",
        complexity: "O(N*log(N)) where N is the number of elements; O(N) for a string of N bytes.",
        args: &RESTORE_ARGS,
        history: &[
            ("3.0.0", "Takes `REPLACE`."),
            ("5.0.0", "Takes `ABSTTL`."),
            ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
        ],
        ..ABOUT
    },
    run: DataRun::Long(&Long::writing(decoded, restore)),
    ..ROW
};

/// RESTORE for a key whose slot is on its way to this node of a cluster; without a cluster it is the same.
pub(super) const RESTORE_ASKING: Command = Command {
    name: "RESTORE-ASKING",
    flags: Flags::WRITE.or(Flags::DENYOOM).or(Flags::ASKING),
    doc: Doc {
        since: "3.0.0",
        summary: "RESTORE, for moving keys between the nodes of a cluster.",
        group: crate::Group::Server,
        is_system: true,
        ..RESTORE.doc
    },
    ..RESTORE
};

const RESTORE_ARGS: [Arg; 7] = [
    Arg::key("key", 0),
    Arg::int("ttl"),
    Arg::str("serialized-value"),
    Arg::word("replace", "REPLACE").optional().since("3.0.0"),
    Arg::word("absttl", "ABSTTL").optional().since("5.0.0"),
    Arg::int("seconds").after("IDLETIME").optional().since("5.0.0"),
    Arg::int("frequency").after("FREQ").optional().since("5.0.0"),
];

/// The steps that it takes to read a value.
fn decoded(call: &mut Call<'_, '_>) -> Option<u64> {
    const STEP_BYTES: u64 = 4;
    Some(call.args.at(3).len() as u64 / STEP_BYTES)
}

fn dump(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let is_there = call.view.exists_used(key);
    let snapshot = call.view.snapshot(key).filter(|_| is_there);
    let Some(snapshot) = snapshot.filter(|snapshot| !snapshot.value().is_over()) else {
        call.reply.null();
        return Ok(());
    };
    let settings = call.view.settings();
    let form = Form { version: rdb::VERSION_WRITTEN, compresses: settings.rdb_compresses };
    call.reply.bulk(&rdb::dump(snapshot.value(), settings, form));
    Ok(())
}

/// What RESTORE is asked for.
#[derive(Default)]
struct Options {
    replaces: bool,
    /// The time to live is a time of day.
    is_absolute: bool,
    usage: Option<Usage>,
}

/// The last IDLETIME and FREQ count, and only one of the two may be there.
fn options(call: &Call<'_, '_>) -> Result<Options, Error> {
    let mut options = Options::default();
    let mut words = call.args.iter_from(4);
    while let Some(word) = words.next() {
        let is_before_value = words.len() > 0;
        let is_free =
            |usage: Option<Usage>, is_same: fn(&Usage) -> bool| usage.is_none_or(|usage| is_same(&usage));
        if is_word(word, "REPLACE") {
            options.replaces = true;
        } else if is_word(word, "ABSTTL") {
            options.is_absolute = true;
        } else if is_word(word, "IDLETIME")
            && is_before_value
            && is_free(options.usage, |usage| matches!(usage, Usage::IdleMs(_)))
        {
            let seconds = int(words.next().unwrap_or_default())?;
            if seconds < 0 {
                return Err(Error::restore_idle_time());
            }
            options.usage = Some(Usage::IdleMs(seconds.saturating_mul(1000)));
        } else if is_word(word, "FREQ")
            && is_before_value
            && is_free(options.usage, |usage| matches!(usage, Usage::Frequency(_)))
        {
            let frequency = int(words.next().unwrap_or_default())?;
            let frequency = u8::try_from(frequency).map_err(|_| Error::restore_frequency())?;
            options.usage = Some(Usage::Frequency(frequency));
        } else {
            return Err(Error::syntax());
        }
    }
    Ok(options)
}

fn restore(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let options = options(call)?;
    if !options.replaces && call.view.exists_used(key) {
        return Err(Error::busy_key());
    }
    let ttl = int(call.args.at(2))?;
    if ttl < 0 {
        return Err(Error::restore_ttl());
    }
    let payload = call.args.at(3);
    rdb::check(payload).map_err(|_| Error::dump_footer())?;
    // A payload that turns out to be no value leaves what was there.
    let before = call.view.take(key);
    let had_value = before.is_some();
    if let Err(error) = rdb::restore(call.view, key, payload) {
        if let Some(before) = before {
            call.view.put_taken(key, before);
        }
        return Err(match error {
            PayloadError::Footer => Error::dump_footer(),
            PayloadError::Broken(_) => Error::dump_broken(),
        });
    }
    call.view.discard_taken(before);
    let deadline = match (ttl, options.is_absolute) {
        (0, _) => None,
        (at, true) => Some(Millis(at)),
        (after, false) => Some(Millis(call.view.clock().0.saturating_add(after))),
    };
    if let Some(at) = deadline.filter(|at| !options.is_absolute && *at > call.view.now()) {
        tell(call, at);
    }
    finish(call, key, (deadline, options.usage), had_value);
    call.reply.ok();
    Ok(())
}

/// The same request, with an absolute deadline.
fn tell(call: &mut Call<'_, '_>, at: Millis) {
    let args = call.args;
    let Some(effects) = call.effects() else { return };
    let mut time = I64Text::new();
    let mut words: Vec<&[u8]> = args.iter_from(0).collect();
    words[2] = time.format(at.0);
    words.push(b"ABSTTL");
    effects.say(&words);
}

/// Gives the restored key its deadline and what is known of its use, and tells what has happened.
fn finish(
    call: &mut Call<'_, '_>,
    key: &Key<'_>,
    (deadline, usage): (Option<Millis>, Option<Usage>),
    had: bool,
) {
    if let Some(at) = deadline {
        if at <= call.view.now() {
            // It is gone before it was there.
            call.view.remove(key);
            call.view.conceal_creation();
            if had {
                call.deletion_effect(key.bytes());
                call.view.changed(key, 1, Event::DEL);
            }
            return;
        }
        call.view.set_deadline(key, Deadline::At(at));
    }
    if let Some(usage) = usage {
        call.view.set_usage(key, usage);
    }
    call.view.changed(key, 1, Event::generic("restore"));
}
