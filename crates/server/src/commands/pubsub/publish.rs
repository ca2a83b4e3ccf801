//! PUBLISH and SPUBLISH.
use super::ABOUT;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::modes::Modes;
use crate::core::session::After;
use crate::state::pubsub::Topic;
use command::{Access, Acl, Arg, Arity, Doc, Done, Flags, KeySpec};

/// Redis counts both commands among what may be sent to replicas, so CLIENT PAUSE holds them back.
const FLAGS: Flags =
    Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::MAY_REPLICATE);

pub(super) const PUBLISH: ServerCommand = ServerCommand {
    name: "PUBLISH",
    arity: Arity::Exactly(3),
    flags: FLAGS,
    acl: Acl::PUBSUB,
    doc: Doc {
        summary: "Sends a message to all who listen to a channel, and answers how many these are.",
        complexity: "O(N+M) where N is the number of receivers and M the length of the channel's name.",
        args: &[Arg::str("channel"), Arg::str("message")],
        ..ABOUT
    },
    run: ServerRun::Anywhere(publish),
    ..ROW
};

pub(super) const SPUBLISH: ServerCommand = ServerCommand {
    name: "SPUBLISH",
    arity: Arity::Exactly(3),
    flags: FLAGS,
    acl: Acl::PUBSUB,
    keys: &[KeySpec::one(1, Access::NOT_KEY)],
    doc: Doc {
        since: "7.0.0",
        summary: "Sends a message to all who listen to a channel of a shard.",
        complexity: "O(N) where N is the number of receivers.",
        args: &[Arg::str("shardchannel"), Arg::str("message")],
        ..ABOUT
    },
    run: ServerRun::Anywhere(spublish),
    ..ROW
};

fn publish(call: &mut ServerCall<'_>) -> Done {
    publish_to(call, Topic::Channel)
}

fn spublish(call: &mut ServerCall<'_>) -> Done {
    publish_to(call, Topic::Shard)
}

fn publish_to(call: &mut ServerCall<'_>, topic: Topic) -> Done {
    let (channel, message) = (call.args.at(1), call.args.at(2));
    let mailboxes = &call.server.mailboxes;
    let receivers = call.server.pubsub.publish(topic, channel, message, call.post);
    call.reply.int(receivers as i64);
    if mailboxes.is_congested() && !call.session.modes.has(Modes::EXECUTING) {
        // What follows in this pipeline waits until some of it has been sent.
        call.session.after = After::Yield;
    }
    Ok(())
}
