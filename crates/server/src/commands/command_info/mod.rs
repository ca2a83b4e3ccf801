//! COMMAND and its subcommands: what the table of commands says, in the shapes that clients, redis-cli's
//! hints and cluster libraries read. Nothing here knows a single command: all of it follows from the rows of
//! the registry.
//!
//! `describe` writes an entry of COMMAND INFO, `document` one of COMMAND DOCS, `keys` finds the keys of a
//! request that is only shown, and `reference` writes docs/commands.md.
mod describe;
mod document;
mod keys;
mod reference;

pub use reference::markdown as command_reference;

use crate::commands::help;
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::registry::{Registry, Row};
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&COMMAND]);

const UNORDERED: &[&str] = &["nondeterministic_output_order"];
const ABOUT: Doc = Doc { group: Group::Server, since: "7.0.0", ..Doc::NEW };
const PER_NAME: &str = "O(N) where N is the number of commands named.";
const PER_ARG: &str = "O(N) where N is the number of arguments of that command.";
const NAMES: &[Arg] = &[Arg::str("command-name").optional().many()];
const WHOLE_COMMAND: &[Arg] = &[Arg::str("command"), Arg::str("arg").optional().many()];
/// What the rows of all subcommands have in common.
const ANY: ServerCommand =
    ServerCommand { flags: Flags::LOADING.or(Flags::STALE), acl: Acl::CONNECTION, ..ROW };

const COMMAND: ServerCommand = ServerCommand {
    name: "COMMAND",
    doc: Doc {
        since: "2.8.13",
        summary: "Describes all commands.",
        complexity: "O(C) where C is the number of commands.",
        tips: UNORDERED,
        ..ABOUT
    },
    subcommands: &[&COUNT, &DOCS, &GETKEYS, &GETKEYSANDFLAGS, &HELP, &INFO, &LIST],
    run: ServerRun::Anywhere(describe_all),
    ..ANY
};

const COUNT: ServerCommand = ServerCommand {
    name: "COUNT",
    arity: Arity::Exactly(2),
    doc: Doc { since: "2.8.13", summary: "Counts the commands.", complexity: "O(1)", ..ABOUT },
    run: ServerRun::Anywhere(count),
    ..ANY
};

const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    arity: Arity::AtLeast(2),
    doc: Doc {
        since: "2.8.13",
        summary: "Describes some commands, or all.",
        complexity: PER_NAME,
        args: NAMES,
        history: &[("7.0.0", "Without names it describes all.")],
        tips: UNORDERED,
        ..ABOUT
    },
    run: ServerRun::Anywhere(info),
    ..ANY
};

const DOCS: ServerCommand = ServerCommand {
    name: "DOCS",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Documents some commands, or all.",
        complexity: PER_NAME,
        args: NAMES,
        tips: UNORDERED,
        ..ABOUT
    },
    run: ServerRun::Anywhere(docs),
    ..ANY
};

const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Lists the names of commands.",
        complexity: "O(C) where C is the number of commands.",
        args: &[Arg::one_of("filterby", FILTERS).after("FILTERBY").optional()],
        tips: UNORDERED,
        ..ABOUT
    },
    run: ServerRun::Anywhere(list),
    ..ANY
};

const FILTERS: &[Arg] = &[
    Arg::str("module-name").after("MODULE"),
    Arg::str("category").after("ACLCAT"),
    Arg::pattern("pattern").after("PATTERN"),
];

const GETKEYS: ServerCommand = ServerCommand {
    name: "GETKEYS",
    arity: Arity::AtLeast(3),
    doc: Doc {
        since: "2.8.13",
        summary: "Finds the keys in a command with its arguments.",
        complexity: PER_ARG,
        args: WHOLE_COMMAND,
        ..ABOUT
    },
    run: ServerRun::Anywhere(keys::names),
    ..ANY
};

const GETKEYSANDFLAGS: ServerCommand = ServerCommand {
    name: "GETKEYSANDFLAGS",
    arity: Arity::AtLeast(3),
    doc: Doc {
        summary: "Finds the keys in a command with its arguments, and what it does with each.",
        complexity: PER_ARG,
        args: WHOLE_COMMAND,
        ..ABOUT
    },
    run: ServerRun::Anywhere(keys::names_and_flags),
    ..ANY
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    doc: help::doc(Group::Server, "5.0.0"),
    run: ServerRun::Anywhere(help),
    ..ANY
};

/// The row that `name` means: a command, or a subcommand as `client|list`.
fn find<'r>(registry: &'r Registry, name: &[u8]) -> Option<&'r Row> {
    match name.iter().position(|b| *b == b'|') {
        None => registry.find(name),
        Some(bar) => registry.find(&name[..bar])?.subcommand(&name[bar + 1..]),
    }
}

fn describe_all(call: &mut ServerCall<'_>) -> Done {
    let rows: Vec<&Row> = call.server.registry.callable().collect();
    call.reply.array(rows.len());
    rows.into_iter().for_each(|row| describe::row(call.reply, row));
    Ok(())
}

fn count(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.server.registry.callable().count() as i64);
    Ok(())
}

fn info(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() == 2 {
        return describe_all(call);
    }
    let names = call.args.iter_from(2);
    call.reply.array(names.len());
    for name in names {
        match find(&call.server.registry, name) {
            Some(row) => describe::row(call.reply, row),
            None => call.reply.null(),
        }
    }
    Ok(())
}

/// COMMAND DOCS: names that are no commands are left out, as in Redis.
fn docs(call: &mut ServerCall<'_>) -> Done {
    let registry = &call.server.registry;
    let rows: Vec<&Row> = match call.args.len() {
        2 => registry.callable().collect(),
        _ => call.args.iter_from(2).filter_map(|name| find(registry, name)).collect(),
    };
    call.reply.map(rows.len());
    for row in rows {
        document::row(call.reply, row);
    }
    Ok(())
}

fn list(call: &mut ServerCall<'_>) -> Done {
    let is_listed = filter(&call.args)?;
    let place = call.reply.deferred();
    let mut count = 0;
    let all = call.server.registry.callable().flat_map(|row| std::iter::once(row).chain(&row.subcommands));
    for row in all.filter(|row| is_listed(row)) {
        call.reply.bulk(row.full_name.as_bytes());
        count += 1;
    }
    call.reply.fill_array(place, count);
    Ok(())
}

/// Whether COMMAND LIST shows a row.
type Filter<'a> = Box<dyn Fn(&Row) -> bool + 'a>;

/// Reads the option FILTERBY.
fn filter<'a>(args: &resp::Args<'a>) -> Result<Filter<'a>, Error> {
    if args.len() == 2 {
        return Ok(Box::new(|_| true));
    }
    if args.len() != 5 || !args.at(2).eq_ignore_ascii_case(b"FILTERBY") {
        return Err(Error::syntax());
    }
    let value = args.at(4);
    match args.at(3).to_ascii_lowercase().as_slice() {
        // There are no modules, so none has commands.
        b"module" => Ok(Box::new(|_| false)),
        b"aclcat" => Ok(Box::new(move |row| is_in_category(row, value))),
        b"pattern" => {
            Ok(Box::new(move |row| base::glob::matches_ignore_case(value, row.full_name.as_bytes())))
        }
        _ => Err(Error::syntax()),
    }
}

fn is_in_category(row: &Row, name: &[u8]) -> bool {
    let categories = row.acl.with_implied(row.flags);
    let category = Acl::NAMES.iter().find(|(_, n)| n.as_bytes().eq_ignore_ascii_case(name));
    category.is_some_and(|(category, _)| categories.has(*category))
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "(no subcommand)",
            "    Describe all commands.",
            "COUNT",
            "    Count the commands.",
            "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
            "    List the names of commands.",
            "INFO [<command-name> ...]",
            "    Describe these commands, or all.",
            "DOCS [<command-name> ...]",
            "    Document these commands, or all.",
            "GETKEYS <full-command>",
            "    Find the keys in a command with its arguments.",
            "GETKEYSANDFLAGS <full-command>",
            "    Find the keys in a command with its arguments, and what it does with each.",
        ],
    )
}
