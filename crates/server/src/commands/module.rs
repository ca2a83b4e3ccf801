//! MODULE: Sardine has no modules, which is what these commands answer. As in Redis `enable-module-command`
//! decides first whether a client may use LOAD, LOADEX and UNLOAD.
use super::help;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&MODULE]);

const SINCE_FIRST: Doc = Doc { group: Group::Server, since: "4.0.0", complexity: "O(1)", ..Doc::NEW };
const CHANGES: Flags = Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::NO_ASYNC_LOADING).or(Flags::LOADS_CODE);

const MODULE: ServerCommand = ServerCommand {
    name: "MODULE",
    arity: Arity::AtLeast(2),
    doc: Doc { summary: "Holds the commands on modules.", complexity: "See each subcommand.", ..SINCE_FIRST },
    subcommands: &[&HELP, &LIST, &LOAD, &LOADEX, &UNLOAD],
    run: ServerRun::Container,
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "5.0.0"),
    run: ServerRun::Anywhere(help),
    ..ROW
};

const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::Exactly(2),
    flags: Flags::ADMIN.or(Flags::NOSCRIPT),
    doc: Doc {
        summary: "Lists the modules that are loaded: none.",
        tips: &["nondeterministic_output_order"],
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(list),
    ..ROW
};

const LOAD: ServerCommand = ServerCommand {
    name: "LOAD",
    arity: Arity::AtLeast(3),
    flags: CHANGES,
    doc: Doc {
        summary: "Refuses to load a module.",
        args: &[Arg::str("path"), Arg::str("arg").optional().many()],
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(load),
    ..ROW
};

const LOADEX: ServerCommand = ServerCommand {
    name: "LOADEX",
    arity: Arity::AtLeast(3),
    flags: CHANGES,
    doc: Doc {
        since: "7.0.0",
        summary: "Refuses to load a module with settings.",
        args: &[
            Arg::str("path"),
            Arg::block("configs", &[Arg::str("name"), Arg::str("value")])
                .after("CONFIG")
                .optional()
                .many_with_token(),
            Arg::str("args").after("ARGS").optional().many(),
        ],
        ..SINCE_FIRST
    },
    run: ServerRun::Anywhere(load),
    ..ROW
};

const UNLOAD: ServerCommand = ServerCommand {
    name: "UNLOAD",
    arity: Arity::Exactly(3),
    flags: CHANGES,
    doc: Doc { summary: "Refuses to unload a module.", args: &[Arg::str("name")], ..SINCE_FIRST },
    run: ServerRun::Anywhere(unload),
    ..ROW
};

fn list(call: &mut ServerCall<'_>) -> Done {
    call.reply.array(0);
    Ok(())
}

/// MODULE LOAD and LOADEX. As in Redis only the log has the reason: clients know the error by Redis's words.
fn load(call: &mut ServerCall<'_>) -> Done {
    check_allowed(call)?;
    let path = String::from_utf8_lossy(call.args.at(2));
    call.server.log.warning(&format!("Module {path} failed to load: Sardine has no modules"));
    Err(error::module_not_loaded())
}

fn unload(call: &mut ServerCall<'_>) -> Done {
    check_allowed(call)?;
    Err(error::no_such_module())
}

/// Refuses what `enable-module-command` does not allow to this client.
fn check_allowed(call: &ServerCall<'_>) -> Done {
    let is_local = call.session.record.is_local();
    let may = call.server.config().enable_module_command.allows(is_local);
    if may { Ok(()) } else { Err(Error::not_enabled("MODULE", "enable-module-command")) }
}

fn help(call: &mut ServerCall<'_>) -> Done {
    let lines = [
        "LIST",
        "    Lists the modules that are loaded. There are none.",
        "LOAD <path> [<arg> ...]",
        "    Fails: Sardine has no modules.",
        "LOADEX <path> [CONFIG <name> <value>] ... [ARGS <arg> ...]",
        "    Fails likewise.",
        "UNLOAD <name>",
        "    Fails: no module is loaded.",
    ];
    help::reply(call, &lines)
}
