//! ACL: who the users are, what each may do, and what was refused. `state/acl` has the users and reads their
//! rules; here are the rows, and the subcommands that only show something. Those that change users are in
//! `change`, LOG in `log`.
//!
//! | file | subcommands |
//! |---|---|
//! | this | CAT, DRYRUN, GENPASS, GETUSER, HELP, LIST, USERS, WHOAMI |
//! | `change` | DELUSER, LOAD, SAVE, SETUSER |
//! | `log` | LOG |
mod change;
mod log;

use super::help;
use crate::core::call::{ADMIN, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::registry::Row;
use crate::core::{error, permission};
use crate::state::acl::{self, Selector};
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&ACL]);

/// The flags of subcommands that tell nothing of other users.
const FOR_ALL: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
const ABOUT: Doc = Doc { group: Group::Server, since: "6.0.0", complexity: "O(1)", ..Doc::NEW };
const PER_USER: &str = "O(N) where N is the number of users.";
const PATTERNS_SINCE: (&str, &str) = ("6.2.0", "Patterns of channels.");

const ACL: ServerCommand = ServerCommand {
    name: "ACL",
    arity: Arity::AtLeast(2),
    doc: Doc {
        summary: "Holds the commands about users and what they may do.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[
        &CAT,
        &change::DELUSER,
        &DRYRUN,
        &GENPASS,
        &GETUSER,
        &HELP,
        &LIST,
        &change::LOAD,
        &log::LOG,
        &change::SAVE,
        &change::SETUSER,
        &USERS,
        &WHOAMI,
    ],
    run: ServerRun::Container,
    ..ROW
};

const CAT: ServerCommand = ServerCommand {
    name: "CAT",
    arity: Arity::AtLeast(2),
    flags: FOR_ALL,
    doc: Doc {
        summary: "Lists the categories, or the commands of one.",
        complexity: "O(C) where C is the number of commands.",
        args: &[Arg::str("category").optional()],
        ..ABOUT
    },
    run: ServerRun::Shared(cat),
    ..ROW
};

const DRYRUN: ServerCommand = ServerCommand {
    name: "DRYRUN",
    arity: Arity::AtLeast(4),
    flags: ADMIN,
    doc: Doc {
        since: "7.0.0",
        summary: "Says whether a user may send a request, which does not run.",
        complexity: "O(N) where N is the number of rules of the user that are looked at.",
        args: &[Arg::str("username"), Arg::str("command"), Arg::str("arg").optional().many()],
        ..ABOUT
    },
    run: ServerRun::Shared(dryrun),
    ..ROW
};

const GENPASS: ServerCommand = ServerCommand {
    name: "GENPASS",
    arity: Arity::AtLeast(2),
    flags: FOR_ALL,
    doc: Doc {
        summary: "Makes up a password that nobody can guess.",
        args: &[Arg::int("bits").optional()],
        ..ABOUT
    },
    run: ServerRun::Shared(genpass),
    ..ROW
};

const GETUSER: ServerCommand = ServerCommand {
    name: "GETUSER",
    arity: Arity::Exactly(3),
    flags: ADMIN,
    doc: Doc {
        summary: "Shows the rules of a user.",
        complexity: "O(N) where N is the number of passwords and rules of the user.",
        args: &[Arg::str("username").secret()],
        history: &[PATTERNS_SINCE, ("7.0.0", "Selectors; keys and channels as rules instead of lists.")],
        ..ABOUT
    },
    run: ServerRun::Shared(getuser),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "6.0.0"),
    run: ServerRun::Shared(help),
    ..ROW
};

const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc { summary: "Shows all users as lines of an ACL file.", complexity: PER_USER, ..ABOUT },
    run: ServerRun::Shared(list),
    ..ROW
};

const USERS: ServerCommand = ServerCommand {
    name: "USERS",
    arity: Arity::Exactly(2),
    flags: ADMIN,
    doc: Doc { summary: "Lists the names of all users.", complexity: PER_USER, ..ABOUT },
    run: ServerRun::Shared(users),
    ..ROW
};

const WHOAMI: ServerCommand = ServerCommand {
    name: "WHOAMI",
    arity: Arity::Exactly(2),
    flags: FOR_ALL,
    doc: Doc { summary: "Says whose connection this is.", ..ABOUT },
    run: ServerRun::Shared(whoami),
    ..ROW
};

/// The error of a subcommand that has been given too many arguments.
fn too_many(call: &ServerCall<'_>) -> Error {
    Error::unknown_subcommand(call.args.at(1), "ACL")
}

fn cat(call: &mut ServerCall<'_>) -> Done {
    let name = match call.args.len() {
        2 => {
            call.reply.array(Acl::NAMES.len());
            Acl::NAMES.iter().for_each(|(_, name)| call.reply.bulk(name.as_bytes()));
            return Ok(());
        }
        3 => call.args.at(2),
        _ => return Err(too_many(call)),
    };
    let category = acl::category(name).ok_or_else(|| error::unknown_category(name))?;
    let catalog = &call.server.accounts.catalog;
    let numbers: Vec<usize> =
        catalog.in_category(category).filter(|number| catalog.is_present(*number)).collect();
    call.reply.array(numbers.len());
    numbers.iter().for_each(|number| call.reply.bulk(catalog.at(*number).name.as_bytes()));
    Ok(())
}

fn dryrun(call: &mut ServerCall<'_>) -> Done {
    let users = call.server.accounts.users();
    let name = call.args.at(2);
    let user = users.find(name).ok_or_else(|| error::user_not_found(name))?;
    let args = call.args.tail(3).expect("the arity asks for a command");
    let row = runs(call, &args).ok_or_else(|| error::command_not_found(args.at(0)))?;
    if !row.arity.accepts(args.len()) {
        return Err(Error::wrong_arity(&row.full_name));
    }
    match permission::check(user, row, &args) {
        Ok(()) => call.reply.ok(),
        Err(denied) => call.reply.bulk(&error::would_be_refused(user, &row.full_name, denied, &args)),
    }
    Ok(())
}

/// The row of the command that a request would run; of the subcommand, where one is named.
fn runs<'c>(call: &ServerCall<'c>, args: &resp::Args<'_>) -> Option<&'c Row> {
    let row = call.server.registry.find(args.at(0))?;
    match args.get(1) {
        Some(name) if !row.subcommands.is_empty() => row.subcommand(name),
        _ => Some(row),
    }
}

fn genpass(call: &mut ServerCall<'_>) -> Done {
    const BITS: i64 = 256;
    const BITS_MAX: i64 = 4096;
    let bits = match call.args.len() {
        2 => BITS,
        3 => base::text::parse_i64(call.args.at(2)).ok_or_else(Error::not_an_integer)?,
        _ => return Err(too_many(call)),
    };
    if !(1..=BITS_MAX).contains(&bits) {
        return Err(error::password_bits());
    }
    // The password is in hexadecimal digits of four bits each.
    let password = call.server.accounts.passwords.next((bits as u64).div_ceil(4) as usize);
    call.reply.bulk(password.as_bytes());
    Ok(())
}

fn getuser(call: &mut ServerCall<'_>) -> Done {
    let users = call.server.accounts.users();
    let Some(user) = users.find(call.args.at(2)) else {
        call.reply.null();
        return Ok(());
    };
    let reply = &mut *call.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(user.flags().count());
    user.flags().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(user.passwords().count());
    user.passwords().for_each(|digest| reply.bulk(digest.as_bytes()));
    let mut selectors = user.selectors();
    let root = selectors.next().expect("the root is the first selector");
    selector(reply, root);
    reply.bulk(b"selectors");
    reply.array(user.selectors().count() - 1);
    for other in selectors {
        reply.map(3);
        selector(reply, other);
    }
    Ok(())
}

/// Writes the rules of a selector, as three pairs of a map.
fn selector(reply: &mut resp::Reply, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(&selector.commands_text());
    reply.bulk(b"keys");
    reply.bulk(&selector.keys_text());
    reply.bulk(b"channels");
    reply.bulk(&selector.channels_text());
}

fn list(call: &mut ServerCall<'_>) -> Done {
    let users = call.server.accounts.users();
    call.reply.array(users.all().len());
    users.all().for_each(|user| call.reply.bulk(&user.line()));
    Ok(())
}

fn users(call: &mut ServerCall<'_>) -> Done {
    let users = call.server.accounts.users();
    call.reply.array(users.all().len());
    users.all().for_each(|user| call.reply.bulk(user.name()));
    Ok(())
}

fn whoami(call: &mut ServerCall<'_>) -> Done {
    call.reply.bulk(call.session.user.name());
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call,
        &[
            "CAT [<category>]",
            "    List the commands of <category>, or all categories.",
            "DELUSER <username> [<username> ...]",
            "    Remove users, and close their connections.",
            "DRYRUN <username> <command> [<arg> ...]",
            "    Say whether the user may send this request, without running it.",
            "GETUSER <username>",
            "    Show the rules of a user.",
            "GENPASS [<bits>]",
            "    Make up a password of 256 bits, or of as many as are asked for.",
            "LIST",
            "    Show all users as lines of an ACL file.",
            "LOAD",
            "    Read the ACL file again.",
            "LOG [<count> | RESET]",
            "    Show what was refused lately, or forget it.",
            "SAVE",
            "    Write the users to the ACL file.",
            "SETUSER <username> <attribute> [<attribute> ...]",
            "    Make a user, or change one, by these rules.",
            "USERS",
            "    List the names of all users.",
            "WHOAMI",
            "    Say whose connection this is.",
        ],
    )
}

#[cfg(test)]
mod tests {
    use crate::commands::families::FAMILIES;
    use crate::core::registry::Registry;
    use crate::state::acl::category;
    use std::collections::BTreeSet;

    #[test]
    fn a_category_has_the_commands_that_it_has_in_redis() {
        let catalog = Registry::new(FAMILIES).catalog();
        let facts = include_str!("categories-redis-8.0.2.txt").lines().filter(|line| !line.starts_with('#'));
        let facts: Vec<(&str, BTreeSet<&str>)> = facts
            .map(|line| line.split_once(" ; ").unwrap())
            .map(|(name, all)| (name, all.split(' ').collect()))
            .collect();
        assert_eq!(facts.len(), command::Acl::NAMES.len());
        let known: BTreeSet<&str> = facts.iter().flat_map(|(_, all)| all).copied().collect();
        for (name, theirs) in facts {
            let ours = catalog.in_category(category(name.as_bytes()).unwrap());
            let ours: BTreeSet<&str> = ours.map(|number| catalog.at(number).name.as_str()).collect();
            let shared: BTreeSet<&str> = ours.intersection(&known).copied().collect();
            assert_eq!(shared, theirs, "@{name}");
        }
    }

    #[test]
    fn no_command_is_both_here_and_absent() {
        let registry = Registry::new(FAMILIES);
        let catalog = registry.catalog();
        let mut names = BTreeSet::new();
        assert!((0..catalog.count()).all(|number| names.insert(&catalog.at(number).name)));
        assert!((0..catalog.count()).all(|number| catalog.is_present(number) == (number < registry.count())));
    }
}
