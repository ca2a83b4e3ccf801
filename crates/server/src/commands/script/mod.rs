//! Scripts in Lua: EVAL and its kin run them, SCRIPT keeps them. How they run is `core/dispatch/script`.
mod help;

use super::help as help_of;
use crate::core::call::{Access as Allowed, ROW, Scripting, ServerCall, ServerCommand, ServerRun};
use crate::core::dispatch::sha_of_hex;
use crate::core::error;
use crate::state::scripts::{Kill, Kind};
use command::{Access, Acl, Arg, Arity, Doc, Done, Error, Flags, Group, KeySpec};

pub(crate) const COMMANDS: &[&ServerCommand] =
    command::checked(&[&EVAL, &EVALSHA, &EVALSHA_RO, &EVAL_RO, &SCRIPT]);

/// The flags of all commands that run scripts.
const RUNS: Flags = Flags::NOSCRIPT
    .or(Flags::STALE)
    .or(Flags::SKIP_MONITOR)
    .or(Flags::NO_MANDATORY_KEYS)
    .or(Flags::MOVABLEKEYS)
    .or(Flags::RUNS_SCRIPT);
/// Those of commands that may write: CLIENT PAUSE holds them back, and nobody is told of it.
const WRITES: Flags = RUNS.or(Flags::MAY_REPLICATE);
const ANY_KEYS: KeySpec = KeySpec::count(2, Access::RW.or(Access::ACCESS).or(Access::UPDATE));
const READ_KEYS: KeySpec = KeySpec::count(2, Access::RO.or(Access::ACCESS));

const ABOUT: Doc = Doc { group: Group::Scripting, since: "2.6.0", ..Doc::NEW };
const DEPENDS: &str = "Depends on the script.";
const TEXT_ARGS: &[Arg] = &[
    Arg::str("script"),
    Arg::int("numkeys"),
    Arg::key("key", 0).optional().many(),
    Arg::str("arg").optional().many(),
];
const SHA_ARGS: &[Arg] = &[
    Arg::str("sha1"),
    Arg::int("numkeys"),
    Arg::key("key", 0).optional().many(),
    Arg::str("arg").optional().many(),
];

const EVAL: ServerCommand = ServerCommand {
    name: "EVAL",
    arity: Arity::AtLeast(3),
    flags: WRITES,
    acl: Acl::SCRIPTING,
    keys: &[ANY_KEYS.note("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")],
    doc: Doc { summary: "Runs a script in Lua.", complexity: DEPENDS, args: TEXT_ARGS, ..ABOUT },
    run: ServerRun::Script(Scripting::Eval(Allowed::Any)),
    ..ROW
};

const EVALSHA: ServerCommand = ServerCommand {
    name: "EVALSHA",
    arity: Arity::AtLeast(3),
    flags: WRITES,
    acl: Acl::SCRIPTING,
    keys: &[ANY_KEYS],
    doc: Doc {
        summary: "Runs a script that is known, by its SHA-1.",
        complexity: DEPENDS,
        args: SHA_ARGS,
        ..ABOUT
    },
    run: ServerRun::Script(Scripting::EvalSha(Allowed::Any)),
    ..ROW
};

const EVAL_RO: ServerCommand = ServerCommand {
    name: "EVAL_RO",
    arity: Arity::AtLeast(3),
    flags: RUNS.or(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[READ_KEYS.note("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")],
    doc: Doc {
        since: "7.0.0",
        summary: "Runs a script in Lua that only reads.",
        complexity: DEPENDS,
        args: TEXT_ARGS,
        ..ABOUT
    },
    run: ServerRun::Script(Scripting::Eval(Allowed::ReadOnly)),
    ..ROW
};

const EVALSHA_RO: ServerCommand = ServerCommand {
    name: "EVALSHA_RO",
    arity: Arity::AtLeast(3),
    flags: RUNS.or(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[READ_KEYS],
    doc: Doc {
        since: "7.0.0",
        summary: "Runs a script that is known, by its SHA-1, and only reads.",
        complexity: DEPENDS,
        args: SHA_ARGS,
        ..ABOUT
    },
    run: ServerRun::Script(Scripting::EvalSha(Allowed::ReadOnly)),
    ..ROW
};

const SCRIPT: ServerCommand = ServerCommand {
    name: "SCRIPT",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Holds the commands that keep scripts.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[&DEBUG, &EXISTS, &FLUSH, &HELP, &KILL, &LOAD, &SHOW],
    run: ServerRun::Container,
    ..ROW
};

const DEBUG: ServerCommand = ServerCommand {
    name: "DEBUG",
    arity: Arity::Exactly(3),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        since: "3.2.0",
        summary: "Would set the mode in which scripts are debugged: only NO is taken.",
        complexity: "O(1)",
        args: &[Arg::one_of(
            "mode",
            &[Arg::word("yes", "YES"), Arg::word("sync", "SYNC"), Arg::word("no", "NO")],
        )],
        ..ABOUT
    },
    run: ServerRun::Anywhere(debug),
    ..ROW
};

const EXISTS: ServerCommand = ServerCommand {
    name: "EXISTS",
    arity: Arity::AtLeast(3),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Answers for each SHA-1 whether the script is known.",
        complexity: "O(N) where N is the number of scripts to look for.",
        args: &[Arg::str("sha1").many()],
        tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(exists),
    ..ROW
};

const FLUSH: ServerCommand = ServerCommand {
    name: "FLUSH",
    arity: Arity::AtLeast(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Forgets all scripts.",
        complexity: "O(N) where N is the number of scripts.",
        args: &[Arg::one_of("flush-type", &[Arg::word("async", "ASYNC"), Arg::word("sync", "SYNC")])
            .since("6.2.0")
            .optional()],
        history: &[("6.2.0", "`ASYNC` and `SYNC`.")],
        tips: crate::core::call::ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Anywhere(flush),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    acl: Acl::SCRIPTING,
    doc: help_of::doc(Group::Scripting, "5.0.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

const KILL: ServerCommand = ServerCommand {
    name: "KILL",
    arity: Arity::Exactly(2),
    flags: Flags::NOSCRIPT.or(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Ends the script that runs, if it has written nothing.",
        complexity: "O(1)",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(kill),
    ..ROW
};

const LOAD: ServerCommand = ServerCommand {
    name: "LOAD",
    arity: Arity::Exactly(3),
    flags: Flags::NOSCRIPT.or(Flags::STALE).or(Flags::RUNS_SCRIPT),
    acl: Acl::SCRIPTING,
    doc: Doc {
        summary: "Keeps a script, and answers its SHA-1.",
        complexity: "O(N) where N is the length of the script.",
        args: &[Arg::str("script")],
        tips: crate::core::call::ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Script(Scripting::Load),
    ..ROW
};

/// Valkey's.
const SHOW: ServerCommand = ServerCommand {
    name: "SHOW",
    arity: Arity::Exactly(3),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    doc: Doc {
        since: "8.0.0",
        summary: "Answers the text of a script that is known.",
        complexity: "O(1)",
        args: &[Arg::str("sha1")],
        ..ABOUT
    },
    run: ServerRun::Anywhere(show),
    ..ROW
};

fn debug(call: &mut ServerCall<'_>) -> Done {
    match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"no" => {
            call.reply.ok();
            Ok(())
        }
        b"yes" | b"sync" => Err(error::no_script_debugger()),
        _ => Err(error::script_debug_mode()),
    }
}

fn exists(call: &mut ServerCall<'_>) -> Done {
    call.reply.array(call.args.len() - 2);
    for hex in call.args.iter_from(2) {
        let is_known = sha_of_hex(hex).is_some_and(|sha| call.server.scripts.cache.has(&sha));
        call.reply.int(is_known.into());
    }
    Ok(())
}

fn flush(call: &mut ServerCall<'_>) -> Done {
    let is_good = |word: &[u8]| [&b"sync"[..], b"async"].iter().any(|good| word.eq_ignore_ascii_case(good));
    if call.args.len() > 3 || call.args.get(2).is_some_and(|word| !is_good(word)) {
        return Err(error::script_flush_option());
    }
    call.server.scripts.cache.flush();
    call.reply.ok();
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help_of::reply(call, help::LINES)
}

fn kill(call: &mut ServerCall<'_>) -> Done {
    kill_kind(call, Kind::Script)
}

/// SCRIPT KILL, FUNCTION KILL
pub(super) fn kill_kind(call: &mut ServerCall<'_>, kind: Kind) -> Done {
    let running = &call.server.scripts.running;
    match running.kill(kind, &call.server.gates) {
        Kill::Done => {
            call.reply.ok();
            Ok(())
        }
        Kill::NothingRuns => Err(error::no_script_runs()),
        Kill::OtherKind => Err(Error::quoting(&[error::busy(running.kind())])),
        Kill::TooLate => Err(error::script_has_written()),
    }
}

fn show(call: &mut ServerCall<'_>) -> Done {
    let text = sha_of_hex(call.args.at(2)).and_then(|sha| call.server.scripts.cache.find(sha));
    call.reply.bulk(&text.ok_or_else(error::no_script)?.0);
    Ok(())
}
