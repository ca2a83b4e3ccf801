//! SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE, and the three commands that end their subscriptions. Each answers with
//! a confirmation for every name, which RESP3 sends as a push.
use super::ABOUT;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use crate::state::pubsub::Topic;
use command::{Access, Acl, Arg, Arity, Doc, Done, Flags, KeySpec};

/// What all six rows have in common.
const ANY: ServerCommand = ServerCommand {
    flags: Flags::PUBSUB.or(Flags::SUBSCRIBES).or(Flags::NOSCRIPT).or(Flags::LOADING).or(Flags::STALE),
    acl: Acl::PUBSUB,
    ..ROW
};
/// Of those, what the three have that end subscriptions.
const END: ServerCommand = ServerCommand { flags: ANY.flags.or(Flags::HEARS_LESS), ..ANY };
/// Channels of a shard look like keys, so that cluster clients find the shard.
const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::range(1, -1, 1, Access::NOT_KEY)];

pub(super) const SUBSCRIBE: ServerCommand = ServerCommand {
    name: "SUBSCRIBE",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Listens to channels.",
        complexity: "O(N) where N is the number of channels named.",
        args: &[Arg::str("channel").many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(subscribe),
    ..ANY
};

pub(super) const UNSUBSCRIBE: ServerCommand = ServerCommand {
    name: "UNSUBSCRIBE",
    arity: Arity::AtLeast(1),
    doc: Doc {
        summary: "Stops listening to channels, or to all of them.",
        complexity: "O(N) where N is the number of channels named, or of all that the client listens to.",
        args: &[Arg::str("channel").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(unsubscribe),
    ..END
};

pub(super) const PSUBSCRIBE: ServerCommand = ServerCommand {
    name: "PSUBSCRIBE",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Listens to all channels whose names match a pattern.",
        complexity: "O(N) where N is the number of patterns named.",
        args: &[Arg::pattern("pattern").many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(psubscribe),
    ..ANY
};

pub(super) const PUNSUBSCRIBE: ServerCommand = ServerCommand {
    name: "PUNSUBSCRIBE",
    arity: Arity::AtLeast(1),
    doc: Doc {
        summary: "Stops listening by patterns, or by all of them.",
        complexity: "O(N) where N is the number of patterns named, or of all that the client listens by.",
        args: &[Arg::pattern("pattern").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(punsubscribe),
    ..END
};

pub(super) const SSUBSCRIBE: ServerCommand = ServerCommand {
    name: "SSUBSCRIBE",
    arity: Arity::AtLeast(2),
    keys: SHARD_CHANNELS,
    doc: Doc {
        since: "7.0.0",
        summary: "Listens to channels of a shard.",
        complexity: "O(N) where N is the number of channels named.",
        args: &[Arg::str("shardchannel").many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(ssubscribe),
    ..ANY
};

pub(super) const SUNSUBSCRIBE: ServerCommand = ServerCommand {
    name: "SUNSUBSCRIBE",
    arity: Arity::AtLeast(1),
    keys: SHARD_CHANNELS,
    doc: Doc {
        since: "7.0.0",
        summary: "Stops listening to channels of a shard, or to all of them.",
        complexity: "O(N) where N is the number of channels named, or of all that the client listens to.",
        args: &[Arg::str("shardchannel").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(sunsubscribe),
    ..END
};

fn subscribe(call: &mut ServerCall<'_>) -> Done {
    begin(call, Topic::Channel, "subscribe")
}

fn psubscribe(call: &mut ServerCall<'_>) -> Done {
    begin(call, Topic::Pattern, "psubscribe")
}

fn ssubscribe(call: &mut ServerCall<'_>) -> Done {
    if call.session.modes.has(Modes::EXECUTING) {
        return Err(error::ssubscribe_denied());
    }
    begin(call, Topic::Shard, "ssubscribe")
}

fn unsubscribe(call: &mut ServerCall<'_>) -> Done {
    end(call, Topic::Channel, "unsubscribe")
}

fn punsubscribe(call: &mut ServerCall<'_>) -> Done {
    end(call, Topic::Pattern, "punsubscribe")
}

fn sunsubscribe(call: &mut ServerCall<'_>) -> Done {
    end(call, Topic::Shard, "sunsubscribe")
}

fn begin(call: &mut ServerCall<'_>, topic: Topic, word: &str) -> Done {
    let start = call.reply.out.len();
    for name in call.args.iter_from(1) {
        let shown = call.session.subscribe(call.server, topic, name);
        confirm(call, word, Some(name), shown);
        if call.reply.is_full() {
            break;
        }
    }
    settle(call, start);
    Ok(())
}

/// Ends the named subscriptions; without names all of this kind. Where there are none of this kind, the one
/// confirmation has null as its name.
fn end(call: &mut ServerCall<'_>, topic: Topic, word: &str) -> Done {
    let start = call.reply.out.len();
    for name in call.args.iter_from(1) {
        let shown = call.session.unsubscribe(call.server, topic, name);
        confirm(call, word, Some(name), shown);
    }
    if call.args.len() == 1 {
        let all = call.session.subscribed(topic);
        for name in &all {
            let shown = call.session.unsubscribe(call.server, topic, name);
            confirm(call, word, Some(name), shown);
        }
        if all.is_empty() {
            let shown = call.session.shown_subscriptions(topic);
            confirm(call, word, None, shown);
        }
    }
    settle(call, start);
    Ok(())
}

fn confirm(call: &mut ServerCall<'_>, word: &str, name: Option<&[u8]>, shown: usize) {
    call.reply.push(3);
    call.reply.bulk(word.as_bytes());
    match name {
        Some(name) => call.reply.bulk(name),
        None => call.reply.null(),
    }
    call.reply.int(shown as i64);
}

/// Confirmations, which begin at `start`, are sent even to a client that wants no replies.
fn settle(call: &mut ServerCall<'_>, start: usize) {
    call.session.unmute(call.reply, start);
    call.session.note_subscriptions(call.reply.protocol);
}
