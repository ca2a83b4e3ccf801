//! PUBSUB: which channels somebody listens to, and how many clients do.
use super::ABOUT;
use crate::commands::help;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::state::pubsub::Topic;
use base::glob::matches;
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};

pub(super) const PUBSUB: ServerCommand = ServerCommand {
    name: "PUBSUB",
    arity: Arity::AtLeast(2),
    doc: Doc {
        since: "2.8.0",
        summary: "Holds the commands that tell who listens to what.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&CHANNELS, &HELP, &NUMPAT, &NUMSUB, &SHARDCHANNELS, &SHARDNUMSUB],
    run: ServerRun::Container,
    ..ROW
};

const ANY: ServerCommand = ServerCommand {
    flags: Flags::PUBSUB.or(Flags::LOADING).or(Flags::STALE),
    acl: Acl::PUBSUB,
    arity: Arity::AtLeast(2),
    ..ROW
};
const LISTED: &str =
    "O(N*M) where N is the number of channels that somebody listens to and M the length of pattern and name.";
const COUNTED: &str = "O(N) where N is the number of channels named.";

const CHANNELS: ServerCommand = ServerCommand {
    name: "CHANNELS",
    doc: Doc {
        since: "2.8.0",
        summary: "Answers the channels that somebody listens to.",
        complexity: LISTED,
        args: &[Arg::pattern("pattern").optional()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(channels),
    ..ANY
};

const SHARDCHANNELS: ServerCommand = ServerCommand {
    name: "SHARDCHANNELS",
    doc: Doc {
        since: "7.0.0",
        summary: "Answers the channels of a shard that somebody listens to.",
        complexity: LISTED,
        args: &[Arg::pattern("pattern").optional()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(shard_channels),
    ..ANY
};

const NUMSUB: ServerCommand = ServerCommand {
    name: "NUMSUB",
    doc: Doc {
        since: "2.8.0",
        summary: "Answers how many listen to each of these channels, patterns left out.",
        complexity: COUNTED,
        args: &[Arg::str("channel").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(count_channels),
    ..ANY
};

const SHARDNUMSUB: ServerCommand = ServerCommand {
    name: "SHARDNUMSUB",
    doc: Doc {
        since: "7.0.0",
        summary: "Answers how many listen to each of these channels of a shard.",
        complexity: COUNTED,
        args: &[Arg::str("shardchannel").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Anywhere(count_shard_channels),
    ..ANY
};

const NUMPAT: ServerCommand = ServerCommand {
    name: "NUMPAT",
    arity: Arity::Exactly(2),
    doc: Doc {
        since: "2.8.0",
        summary: "Answers how many patterns somebody listens by.",
        complexity: "O(1)",
        ..ABOUT
    },
    run: ServerRun::Anywhere(count_patterns),
    ..ANY
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Pubsub, "6.2.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

fn channels(call: &mut ServerCall<'_>) -> Done {
    list(call, Topic::Channel)
}

fn shard_channels(call: &mut ServerCall<'_>) -> Done {
    list(call, Topic::Shard)
}

fn list(call: &mut ServerCall<'_>, topic: Topic) -> Done {
    if call.args.len() > 3 {
        return Err(Error::unknown_subcommand(call.args.at(1), "PUBSUB"));
    }
    let mut names = call.server.pubsub.channels(topic);
    if let Some(pattern) = call.args.get(2) {
        names.retain(|name| matches(pattern, name));
    }
    call.reply.array(names.len());
    names.iter().for_each(|name| call.reply.bulk(name));
    Ok(())
}

fn count_channels(call: &mut ServerCall<'_>) -> Done {
    count(call, Topic::Channel);
    Ok(())
}

fn count_shard_channels(call: &mut ServerCall<'_>) -> Done {
    count(call, Topic::Shard);
    Ok(())
}

fn count(call: &mut ServerCall<'_>, topic: Topic) {
    call.reply.array(2 * (call.args.len() - 2));
    for channel in call.args.iter_from(2) {
        call.reply.bulk(channel);
        call.reply.int(call.server.pubsub.listeners(topic, channel) as i64);
    }
}

fn count_patterns(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.server.pubsub.count(Topic::Pattern) as i64);
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    let lines = [
        "CHANNELS [<pattern>]",
        "    List the channels that somebody listens to, or those of them whose names match.",
        "NUMPAT",
        "    Count the patterns by which somebody listens.",
        "NUMSUB [<channel> ...]",
        "    Count who listens to each of these channels. Who listens by a pattern does not count.",
        "SHARDCHANNELS [<pattern>]",
        "    List the shard channels that somebody listens to, or those of them whose names match.",
        "SHARDNUMSUB [<shardchannel> ...]",
        "    Count who listens to each of these shard channels.",
    ];
    help::reply(call, &lines)
}
