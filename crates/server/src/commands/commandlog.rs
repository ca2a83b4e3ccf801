//! COMMANDLOG: shows the logs of slow and large calls (`core/command_log.rs`). It is Valkey's command for all
//! three logs; SLOWLOG (`slowlog.rs`) is the older command, also Redis's, for the first.
//!
//! An entry is an array of six: id, time in seconds, microseconds or bytes, arguments, the client's address,
//! its name.
use super::help;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::command_log::Type;
use crate::core::error;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&COMMANDLOG]);

/// The words for the three logs.
const TYPES: [(&str, Type); 3] =
    [("slow", Type::Slow), ("large-request", Type::LargeRequest), ("large-reply", Type::LargeReply)];

const COMMANDLOG: ServerCommand = ServerCommand {
    name: "COMMANDLOG",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Holds the commands that read the logs of slow and large calls.",
        complexity: "See each subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&GET, &HELP, &LEN, &RESET],
    run: ServerRun::Container,
    ..ROW
};

const TYPE_ARG: Arg =
    Arg::one_of("type", &[Arg::str("slow"), Arg::str("large-request"), Arg::str("large-reply")]);

const GET: ServerCommand = ServerCommand {
    name: "GET",
    arity: Arity::Exactly(4),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Answers the newest entries of a log.",
        complexity: "O(N) where N is the number of entries answered.",
        args: &[Arg::int("count"), TYPE_ARG],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(get),
    ..ROW
};

/// The flags of subcommands of COMMANDLOG and SLOWLOG, which scripts may call.
pub(crate) const ADMIN_NOT_SCRIPT_BOUND: Flags = Flags::ADMIN.or(Flags::LOADING).or(Flags::STALE);

const LEN: ServerCommand = ServerCommand {
    name: "LEN",
    arity: Arity::Exactly(3),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Answers how many entries a log holds.",
        complexity: "O(1)",
        args: &[TYPE_ARG],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(len),
    ..ROW
};

const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::Exactly(3),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Empties a log.",
        complexity: "O(N) where N is the number of entries in the log.",
        args: &[TYPE_ARG],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(reset),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "8.1.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

fn get(call: &mut ServerCall<'_>) -> Done {
    let count = count(call.args.at(2))?;
    reply_entries(call, parse_type(call.args.at(3))?, count);
    Ok(())
}

/// How many entries are asked for: -1 asks for all.
pub(crate) fn count(word: &[u8]) -> Result<usize, Error> {
    match base::text::parse_i64(word) {
        Some(-1) => Ok(usize::MAX),
        Some(n @ 0..) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(error::count_below_minus_one()),
    }
}

/// Answers with the newest `count` entries of a log. The log is locked meanwhile, so nobody adds to it.
pub(crate) fn reply_entries(call: &mut ServerCall<'_>, kind: Type, count: usize) {
    let entries = call.server.command_log.entries(kind);
    let reply = &mut *call.reply;
    reply.array(entries.list.len().min(count));
    for entry in entries.list.iter().take(count) {
        reply.array(6);
        reply.int(entry.id);
        reply.int(entry.time_s);
        reply.int(entry.figure);
        reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(entry.client.as_bytes());
        reply.bulk(&entry.client_name);
    }
}

/// Which log a word means, in any case.
fn parse_type(word: &[u8]) -> Result<Type, Error> {
    let found = TYPES.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
    let wrong = error::unknown_log_type;
    found.map(|(_, kind)| *kind).ok_or_else(wrong)
}

fn len(call: &mut ServerCall<'_>) -> Done {
    let kind = parse_type(call.args.at(2))?;
    call.reply.int(call.server.command_log.len(kind) as i64);
    Ok(())
}

fn reset(call: &mut ServerCall<'_>) -> Done {
    let kind = parse_type(call.args.at(2))?;
    call.server.command_log.reset(kind);
    call.reply.ok();
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "GET <count> <type>",
            "    Answer the newest <count> entries of a log, all with -1. The types are slow,",
            "    large-request and large-reply. An entry is an id, the time, how many",
            "    microseconds (slow) or bytes, the arguments, the client's address and name.",
            "LEN <type>",
            "    Answer how many entries a log holds.",
            "RESET <type>",
            "    Empty a log.",
        ],
    )
}
