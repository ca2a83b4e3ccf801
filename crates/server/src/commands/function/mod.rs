//! Functions: FCALL calls one, FUNCTION keeps the libraries that they are in. How they are loaded and run is
//! `core/functions` and `core/dispatch/script`; what is here only looks at what is in force.
mod help;
mod report;

use super::help as help_of;
use super::script::kill_kind;
use crate::core::call::{
    Access as Allowed, Change, Functions, ON_ALL_SHARDS, ROW, ServerCall, ServerCommand, ServerRun,
};
use crate::state::scripts::Kind;
use command::{Access, Acl, Arg, Arity, Doc, Done, Flags, Group, KeySpec};
use disk::rdb::{Form, VERSION_WRITTEN, dump_libraries};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&FCALL, &FCALL_RO, &FUNCTION]);

/// The flags of both commands that call functions.
const CALLS: Flags = Flags::NOSCRIPT
    .or(Flags::STALE)
    .or(Flags::SKIP_MONITOR)
    .or(Flags::NO_MANDATORY_KEYS)
    .or(Flags::MOVABLEKEYS)
    .or(Flags::RUNS_SCRIPT);
/// Those of the commands that change libraries.
const CHANGES: Flags = Flags::WRITE.or(Flags::NOSCRIPT).or(Flags::RUNS_SCRIPT);

const ABOUT: Doc = Doc { group: Group::Scripting, since: "7.0.0", ..Doc::NEW };
const CALL_ARGS: &[Arg] = &[
    Arg::str("function"),
    Arg::int("numkeys"),
    Arg::key("key", 0).optional().many(),
    Arg::str("arg").optional().many(),
];

const FCALL: ServerCommand = ServerCommand {
    name: "FCALL",
    arity: Arity::AtLeast(3),
    flags: CALLS.or(Flags::MAY_REPLICATE),
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::count(2, Access::RW.or(Access::ACCESS).or(Access::UPDATE))
        .note("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")],
    doc: Doc {
        summary: "Calls a function.",
        complexity: "Depends on the function.",
        args: CALL_ARGS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Call(Allowed::Any)),
    ..ROW
};

const FCALL_RO: ServerCommand = ServerCommand {
    name: "FCALL_RO",
    arity: Arity::AtLeast(3),
    flags: CALLS.or(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::count(2, Access::RO.or(Access::ACCESS))
        .note("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")],
    doc: Doc {
        summary: "Calls a function that only reads.",
        complexity: "Depends on the function.",
        args: CALL_ARGS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Call(Allowed::ReadOnly)),
    ..ROW
};

const FUNCTION: ServerCommand = ServerCommand {
    name: "FUNCTION",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Holds the commands that keep libraries of functions.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&DELETE, &DUMP, &FLUSH, &HELP, &KILL, &LIST, &LOAD, &RESTORE, &STATS],
    run: ServerRun::Container,
    ..ROW
};

const DELETE: ServerCommand = ServerCommand {
    name: "DELETE",
    arity: Arity::Exactly(3),
    flags: CHANGES,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Deletes a library with its functions.",
        complexity: "O(N) where N is the number of its functions.",
        args: &[Arg::str("library-name")],
        tips: ON_ALL_SHARDS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Change(Change::Delete)),
    ..ROW
};

const DUMP: ServerCommand = ServerCommand {
    name: "DUMP",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Answers all libraries as bytes, in the format of dump files.",
        complexity: "O(N) where N is the length of all libraries together.",
        ..ABOUT
    },
    run: ServerRun::Anywhere(dump),
    ..ROW
};

const FLUSH: ServerCommand = ServerCommand {
    name: "FLUSH",
    arity: Arity::AtLeast(2),
    flags: CHANGES,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Deletes all libraries.",
        complexity: "O(N) where N is the number of functions.",
        args: &[
            Arg::one_of("flush-type", &[Arg::word("async", "ASYNC"), Arg::word("sync", "SYNC")]).optional()
        ],
        tips: ON_ALL_SHARDS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Change(Change::Flush)),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    acl: Acl::SCRIPTING,
    doc: help_of::doc(Group::Scripting, "7.0.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

const KILL: ServerCommand = ServerCommand {
    name: "KILL",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Ends the function that runs, if it has written nothing.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(kill),
    ..ROW
};

const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::AtLeast(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Lists the libraries, with their functions.",
        complexity: "O(N) where N is the number of functions.",
        args: &[
            Arg::str("library-name-pattern").after("LIBRARYNAME").optional(),
            Arg::word("withcode", "WITHCODE").optional(),
        ],
        tips: &["nondeterministic_output_order"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(report::list),
    ..ROW
};

const LOAD: ServerCommand = ServerCommand {
    name: "LOAD",
    arity: Arity::AtLeast(3),
    flags: CHANGES.or(Flags::DENYOOM),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Loads a library.",
        complexity: "O(N) where N is the length of the code, and what the code does while it is loaded.",
        args: &[Arg::word("replace", "REPLACE").optional(), Arg::str("function-code")],
        tips: ON_ALL_SHARDS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Change(Change::Load)),
    ..ROW
};

const RESTORE: ServerCommand = ServerCommand {
    name: "RESTORE",
    arity: Arity::AtLeast(3),
    flags: CHANGES.or(Flags::DENYOOM),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Loads libraries, as FUNCTION DUMP answers them.",
        complexity: "O(N) where N is the number of functions.",
        args: &[
            Arg::str("serialized-value"),
            Arg::one_of(
                "policy",
                &[
                    Arg::word("flush", "FLUSH"),
                    Arg::word("append", "APPEND"),
                    Arg::word("replace", "REPLACE"),
                ],
            )
            .optional(),
        ],
        tips: ON_ALL_SHARDS,
        ..ABOUT
    },
    run: ServerRun::Function(Functions::Change(Change::Restore)),
    ..ROW
};

const STATS: ServerCommand = ServerCommand {
    name: "STATS",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Tells the function that runs for long, if one does, and how many there are.",
        complexity: "O(1)",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(report::stats),
    ..ROW
};

fn dump(call: &mut ServerCall<'_>) -> Done {
    let codes = call.server.scripts.libraries.codes();
    let compresses = call.server.config().store.rdb_compresses;
    let form = Form { version: VERSION_WRITTEN, compresses };
    call.reply.bulk(&dump_libraries(codes.iter().map(|code| &code[..]), form));
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help_of::reply(call, help::LINES)
}

fn kill(call: &mut ServerCall<'_>) -> Done {
    kill_kind(call, Kind::Function)
}
