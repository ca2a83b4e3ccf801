//! SLOWLOG: Redis's command for the log of slow calls, which `core/command_log.rs` keeps. It shares its
//! entries, and how they are shown, with COMMANDLOG (`commandlog.rs`).
use super::commandlog::{ADMIN_NOT_SCRIPT_BOUND, count, reply_entries};
use super::help;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::command_log::Type;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&SLOWLOG]);

const SLOWLOG: ServerCommand = ServerCommand {
    name: "SLOWLOG",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "2.2.12",
        summary: "Holds the commands that read the log of slow calls.",
        complexity: "See each subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&GET, &HELP, &LEN, &RESET],
    run: ServerRun::Container,
    ..ROW
};

const GET: ServerCommand = ServerCommand {
    name: "GET",
    arity: Arity::AtLeast(2),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "2.2.12",
        summary: "Answers the newest entries of the slow log.",
        complexity: "O(N) where N is the number of entries answered.",
        args: &[Arg::int("count").optional()],
        history: &[("4.0.0", "The client's address and name.")],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(get),
    ..ROW
};

const LEN: ServerCommand = ServerCommand {
    name: "LEN",
    arity: Arity::Exactly(2),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "2.2.12",
        summary: "Answers how many entries the slow log holds.",
        complexity: "O(1)",
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(len),
    ..ROW
};

const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::Exactly(2),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "2.2.12",
        summary: "Empties the slow log.",
        complexity: "O(N) where N is the number of entries in the log.",
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
    doc: help::doc(Group::Server, "6.2.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

/// How many entries GET answers with when it is not told how many.
const COUNT: usize = 10;

fn get(call: &mut ServerCall<'_>) -> Done {
    let count = match call.args.len() {
        2 => COUNT,
        3 => count(call.args.at(2))?,
        _ => return Err(wrong_arguments(call.args.at(1))),
    };
    reply_entries(call, Type::Slow, count);
    Ok(())
}

/// The error of GET with too many arguments: as in Redis, that of an unknown subcommand.
fn wrong_arguments(word: &[u8]) -> Error {
    Error::unknown_subcommand(word, "SLOWLOG")
}

fn len(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.server.command_log.len(Type::Slow) as i64);
    Ok(())
}

fn reset(call: &mut ServerCall<'_>) -> Done {
    call.server.command_log.reset(Type::Slow);
    call.reply.ok();
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "GET [<count>]",
            "    Answer the newest <count> entries (10 if not given, all with -1). An entry is",
            "    an id, the time, how many microseconds the call took, the arguments, the",
            "    client's address and name.",
            "LEN",
            "    Answer how many entries the log holds.",
            "RESET",
            "    Empty the log.",
        ],
    )
}
