//! Whether keys exist, of what type, and deleting them.
//!
//! Several keys are locked together, so a DEL of many is one step to every other client, and a count of
//! existing keys is true for one instant. What a deleted key held is freed at once if that is quick, and
//! otherwise by another thread (`discard` in `store/src/keyspace/shard.rs`). So DEL holds other clients up no
//! longer than UNLINK.
use super::row::{ABOUT, ROW};
use crate::{Access, Arg, Arity, Call, Command, DataRun, Doc, Done, Flags, KeySpec, Parts};
use store::{Event, Key, View};

pub(super) const DEL: Command = Command {
    name: "DEL",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE,
    keys: &[KeySpec::range(1, -1, 1, Access::RM.or(Access::DELETE))],
    doc: Doc {
        since: "1.0.0",
        summary: "Deletes keys.",
        complexity: "O(N) where N is the number of keys; what is large is freed in the background.",
        args: &[Arg::key("key", 0).many()],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        ..ABOUT
    },
    parts: Parts::Added,
    run: DataRun::Keys(del),
    ..ROW
};

pub(super) const UNLINK: Command = Command {
    name: "UNLINK",
    arity: Arity::AtLeast(2),
    flags: Flags::WRITE.or(Flags::FAST),
    keys: &[KeySpec::range(1, -1, 1, Access::RM.or(Access::DELETE))],
    doc: Doc {
        since: "4.0.0",
        summary: "Deletes keys; what is large is freed in the background.",
        complexity: "O(N) where N is the number of keys; what is large is freed in the background.",
        args: &[Arg::key("key", 0).many()],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        ..ABOUT
    },
    parts: Parts::Added,
    run: DataRun::Keys(unlink),
    ..ROW
};

pub(super) const EXISTS: Command = Command {
    name: "EXISTS",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::range(1, -1, 1, Access::RO)],
    doc: Doc {
        since: "1.0.0",
        summary: "Counts those of the keys that exist.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::key("key", 0).many()],
        history: &[("3.0.3", "Takes several keys.")],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        ..ABOUT
    },
    parts: Parts::Added,
    run: DataRun::Keys(exists),
    ..ROW
};

pub(super) const TOUCH: Command = Command {
    name: "TOUCH",
    arity: Arity::AtLeast(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::range(1, -1, 1, Access::RO)],
    doc: Doc {
        since: "3.2.1",
        summary: "Counts those of the keys that exist, as a use of them.",
        complexity: "O(N) where N is the number of keys.",
        args: &[Arg::key("key", 0).many()],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        ..ABOUT
    },
    parts: Parts::Added,
    run: DataRun::Keys(touch),
    ..ROW
};

pub(super) const TYPE: Command = Command {
    name: "TYPE",
    arity: Arity::Exactly(2),
    flags: Flags::READONLY.or(Flags::FAST),
    keys: &[KeySpec::one(1, Access::RO)],
    doc: Doc {
        since: "1.0.0",
        summary: "Answers the type of a key's value.",
        complexity: "O(1)",
        args: &[Arg::key("key", 0)],
        ..ABOUT
    },
    run: DataRun::Keys(kind),
    ..ROW
};

/// As DEL, because the store frees whatever is large in the background for both. Only the count of lazily
/// freed objects differs.
fn unlink(call: &mut Call<'_, '_>) -> Done {
    remove_all(call, View::unlink)
}

fn del(call: &mut Call<'_, '_>) -> Done {
    if call.view.settings().lazyfree_user_del {
        return unlink(call);
    }
    remove_all(call, View::remove)
}

/// Removing tells whether the key was there, so a key named twice counts once.
fn remove_all<'k>(call: &mut Call<'_, 'k>, remove: fn(&mut View<'k>, &Key<'_>) -> bool) -> Done {
    let mut deleted = 0;
    for key in call.keys() {
        let was_there = remove(call.view, key);
        call.view.changed(key, u64::from(was_there), Event::DEL);
        deleted += i64::from(was_there);
    }
    call.reply.int(deleted);
    Ok(())
}

/// Counts the keys that exist. A key named twice counts twice.
fn exists(call: &mut Call<'_, '_>) -> Done {
    let count = call.keys().iter().filter(|key| call.view.exists(key)).count();
    call.reply.int(count as i64);
    Ok(())
}

fn touch(call: &mut Call<'_, '_>) -> Done {
    let count = call.keys().iter().filter(|key| call.view.touch(key)).count();
    call.reply.int(count as i64);
    Ok(())
}

/// TYPE. It answers with a simple string, not a bulk string, and with "none" for a missing key.
fn kind(call: &mut Call<'_, '_>) -> Done {
    let key = call.key(0);
    call.reply.simple(call.view.kind(key).map_or("none", |kind| kind.name()));
    Ok(())
}
