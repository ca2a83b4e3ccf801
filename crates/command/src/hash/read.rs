//! What a hash holds: one field, several, all.
//!
//! One field is on the path of every request: nothing is allocated, and what is an integer in the hash
//! becomes text in the reply.
use super::row::{ABOUT, ROW};
use crate::walk::{self, Share};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Long, work};
use base::Item;
use resp::Reply;
use std::ops::ControlFlow;
use store::{FieldSearch, Halt, Key};

pub(super) const HGET: Command = Command {
    name: "HGET",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers the value of a field of a hash.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field")],
        ..ABOUT
    },
    run: DataRun::Keys(hget),
    ..ROW
};

pub(super) const HMGET: Command = Command {
    name: "HMGET",
    arity: Arity::AtLeast(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers the values of several fields of a hash.",
        complexity: "O(N) where N is the number of fields named.",
        args: &[Arg::key("key", 0), Arg::str("field").many()],
        ..ABOUT
    },
    run: DataRun::Long(&Long::reading(work::named, hmget).with_words(work::NAMED_FEW)),
    ..ROW
};

pub(super) const HGETALL: Command = Command {
    name: "HGETALL",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers all fields of a hash and their values.",
        complexity: "O(N) where N is the number of fields.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::whole_reply, hgetall)),
    run: DataRun::Keys(hgetall),
    ..ROW
};

pub(super) const HKEYS: Command = Command {
    name: "HKEYS",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers all fields of a hash.",
        complexity: "O(N) where N is the number of fields.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::whole_reply, hkeys)),
    run: DataRun::Keys(hkeys),
    ..ROW
};

pub(super) const HVALS: Command = Command {
    name: "HVALS",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, Access::RO.or(Access::ACCESS))],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers all values of a hash.",
        complexity: "O(N) where N is the number of fields.",
        args: &[Arg::key("key", 0)],
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    at_once: Some(&Long::reading(work::whole_reply, hvals)),
    run: DataRun::Keys(hvals),
    ..ROW
};

pub(super) const HLEN: Command = Command {
    name: "HLEN",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers how many fields a hash has.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(hlen),
    ..ROW
};

pub(super) const HSTRLEN: Command = Command {
    name: "HSTRLEN",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "3.2.0",
        summary: "Answers the length of the value of a field.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field")],
        ..ABOUT
    },
    run: DataRun::Keys(hstrlen),
    ..ROW
};

pub(super) const HEXISTS: Command = Command {
    name: "HEXISTS",
    arity: Arity::Exactly(3),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "2.0.0",
        summary: "Answers whether a hash has a field.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0), Arg::str("field")],
        ..ABOUT
    },
    run: DataRun::Keys(hexists),
    ..ROW
};

/// A field's value, or null.
fn hget(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    match call.view.hash(key)?.and_then(|hash| hash.get(call.args.at(2))) {
        Some(value) => call.reply.item(value),
        None => call.reply.null(),
    }
    Ok(())
}

fn hmget(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let hash = call.view.hash(key)?;
    let count = call.args.len() - 2;
    call.reply.array(count);
    let Some(hash) = hash else {
        (0..count).for_each(|_| call.reply.null());
        return Ok(());
    };
    let (mut share, mut search) = (Share::first(count as u64, call.reply), FieldSearch::default());
    for field in call.args.iter_from(2) {
        reply_value(call.reply, hash.get_in(&mut search, field));
        if share.wrote(call.reply).is_break() {
            break;
        }
    }
    let written = share.written() as usize;
    if written < count {
        leave_values(call, key, 2 + written);
    }
    Ok(())
}

fn reply_value(reply: &mut Reply, value: Option<Item<'_>>) {
    match value {
        Some(value) => reply.item(value),
        None => reply.null(),
    }
}

/// Leaves the values of the fields from this argument on for later.
fn leave_values(call: &mut Call<'_, '_>, key: &Key<'_>, from: usize) {
    let fields: Vec<Box<[u8]>> = call.args.iter_from(from).map(Into::into).collect();
    let held_bytes = size_of_val(&fields[..]) + fields.iter().map(|field| field.len()).sum::<usize>();
    let mut next = 0;
    walk::leave_with(call, key, (fields.len() as u64, held_bytes), move |value, reply, share| {
        let Some(hash) = value.hash() else { return };
        for field in &fields[next..] {
            reply_value(reply, hash.get(field));
            next += 1;
            if share.wrote(reply).is_break() {
                return;
            }
        }
    });
}

fn hgetall(call: &mut Call<'_, '_>) -> Done {
    reply_all(call, Reply::map, |reply, field, value| {
        reply.item(field);
        reply.item(value);
    })
}

fn hkeys(call: &mut Call<'_, '_>) -> Done {
    reply_all(call, Reply::array, |reply, field, _| reply.item(field))
}

fn hvals(call: &mut Call<'_, '_>) -> Done {
    reply_all(call, Reply::array, |reply, _, value| reply.item(value))
}

/// Shows something of every field.
fn reply_all(
    call: &mut Call<'_, '_>,
    begin: fn(&mut Reply, usize),
    show: impl Fn(&mut Reply, Item<'_>, Item<'_>) + Send + 'static,
) -> Done {
    let key = call.key(0);
    let hash = call.view.hash(key)?;
    let len = hash.map_or(0, |hash| hash.live_len());
    begin(call.reply, len as usize);
    let Some(hash) = hash else { return Ok(()) };
    let mut share = Share::first(len, call.reply);
    let _ = hash.visit(&mut |field, value| {
        show(call.reply, field, value);
        share.wrote(call.reply)
    });
    leave_fields(call, key, (len, share.written()), show);
    Ok(())
}

/// Leaves all fields but the first `written` for later.
pub(super) fn leave_fields(
    call: &mut Call<'_, '_>,
    key: &Key<'_>,
    (len, written): (u64, u64),
    show: impl Fn(&mut Reply, Item<'_>, Item<'_>) + Send + 'static,
) {
    let (mut halt, mut skipped) = (Halt::START, written);
    walk::leave(call, key, len - written, move |value, reply, share| {
        let Some(hash) = value.hash() else { return };
        let next = hash.visit_from(halt, &mut |field, value| {
            if skipped > 0 {
                skipped -= 1;
                return ControlFlow::Continue(());
            }
            show(reply, field, value);
            share.wrote(reply)
        });
        halt = next.unwrap_or(halt);
    });
}

/// Fields past their deadline that nobody has removed yet count, as in Redis.
fn hlen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let len = call.view.hash(key)?.map_or(0, |hash| hash.len());
    call.reply.int(len as i64);
    Ok(())
}

fn hstrlen(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let value = call.view.hash(key)?.and_then(|hash| hash.get(call.args.at(2)));
    call.reply.int(value.map_or(0, |value| value.len()) as i64);
    Ok(())
}

fn hexists(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    let value = call.view.hash(key)?.and_then(|hash| hash.get(call.args.at(2)));
    call.reply.int(i64::from(value.is_some()));
    Ok(())
}
