//! CLIENT and its subcommands: who is connected, under which name, and how connections are closed.
//!
//! Every connection's record is in `Server::clients`. LIST reads the records of all workers; KILL marks a
//! record and tells its worker; the rest is about the connection that asks. Subcommands that need more than a
//! few lines have files of their own.
mod help;
mod kill;
mod list;
mod pause;
mod reply;
pub(crate) mod tracking;
mod unblock;

use crate::core::call::{ADMIN, ON_ALL_NODES, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use command::{Acl, Arg, Arity, Doc, Done, Error, Flags, Group};
use help::HELP;
use kill::KILL;
use list::{INFO, LIST};
use pause::{PAUSE, UNPAUSE};
use reply::REPLY;
use tracking::{CACHING, GETREDIR, TRACKING, TRACKINGINFO};
use unblock::UNBLOCK;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&CLIENT]);

/// The flags of subcommands that any client may use.
const ANYBODY: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE);
/// Those of subcommands behind which a client may be sent less.
const HEARS_LESS: Flags = ANYBODY.or(Flags::HEARS_LESS);
/// What the rows of most subcommands say.
const ABOUT: Doc = Doc { group: Group::Connection, complexity: "O(1)", ..Doc::NEW };
const PER_CLIENT: &str = "O(N) where N is the number of connections.";
const ON_OFF: &[Arg] = &[Arg::word("on", "ON"), Arg::word("off", "OFF")];
const ENABLED: &[Arg] = &[Arg::one_of("enabled", ON_OFF)];

/// What the rows of subcommands have in common.
const SUB: ServerCommand =
    ServerCommand { acl: Acl::CONNECTION, flags: ANYBODY, arity: Arity::Exactly(2), ..ROW };

const CLIENT: ServerCommand = ServerCommand {
    name: "CLIENT",
    arity: Arity::AtLeast(2),
    doc: Doc {
        since: "2.4.0",
        summary: "Holds the commands about connections.",
        complexity: "See each subcommand.",
        ..ABOUT
    },
    subcommands: &[
        &CACHING,
        &GETNAME,
        &GETREDIR,
        &HELP,
        &ID,
        &INFO,
        &KILL,
        &LIST,
        &NO_EVICT,
        &NO_TOUCH,
        &PAUSE,
        &REPLY,
        &SETINFO,
        &SETNAME,
        &TRACKING,
        &TRACKINGINFO,
        &UNBLOCK,
        &UNPAUSE,
    ],
    run: ServerRun::Container,
    ..ROW
};

const ID: ServerCommand = ServerCommand {
    name: "ID",
    doc: Doc { since: "5.0.0", summary: "Shows the number of this connection, never used twice.", ..ABOUT },
    run: ServerRun::Anywhere(id),
    ..SUB
};

const GETNAME: ServerCommand = ServerCommand {
    name: "GETNAME",
    doc: Doc { since: "2.6.9", summary: "Shows the name of this connection.", ..ABOUT },
    run: ServerRun::Anywhere(name),
    ..SUB
};

const SETNAME: ServerCommand = ServerCommand {
    name: "SETNAME",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "2.6.9",
        summary: "Names this connection.",
        args: &[Arg::str("connection-name")],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Anywhere(set_name),
    ..SUB
};

const SETINFO: ServerCommand = ServerCommand {
    name: "SETINFO",
    arity: Arity::Exactly(4),
    doc: Doc {
        since: "7.2.0",
        summary: "Says which client library this connection uses.",
        args: &[Arg::one_of(
            "attr",
            &[Arg::str("libname").after("LIB-NAME"), Arg::str("libver").after("LIB-VER")],
        )],
        tips: ON_ALL_NODES,
        ..ABOUT
    },
    run: ServerRun::Anywhere(set_info),
    ..SUB
};

const NO_EVICT: ServerCommand = ServerCommand {
    name: "NO-EVICT",
    arity: Arity::Exactly(3),
    flags: ADMIN,
    doc: Doc {
        since: "7.0.0",
        summary: "Spares this connection when connections are closed to save memory.",
        args: ENABLED,
        ..ABOUT
    },
    run: ServerRun::Anywhere(no_evict),
    ..SUB
};

const NO_TOUCH: ServerCommand = ServerCommand {
    name: "NO-TOUCH",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "7.2.0",
        summary: "Keeps this connection's reads from counting as uses of a key.",
        args: ENABLED,
        ..ABOUT
    },
    run: ServerRun::Anywhere(no_touch),
    ..SUB
};

fn id(call: &mut ServerCall<'_>) -> Done {
    call.reply.int(call.session.record.id as i64);
    Ok(())
}

fn name(call: &mut ServerCall<'_>) -> Done {
    let details = call.session.record.details();
    if details.name.is_empty() {
        call.reply.null();
    } else {
        call.reply.bulk(&details.name);
    }
    Ok(())
}

fn set_name(call: &mut ServerCall<'_>) -> Done {
    let name = call.args.at(2);
    check_word(name, "Client names")?;
    call.session.record.details().name = name.to_vec();
    note_names(call);
    call.reply.ok();
    Ok(())
}

/// The names that the client has given itself count in its memory.
pub(crate) fn note_names(call: &ServerCall<'_>) {
    let record = &call.session.record;
    record.note_names(&call.server.counters.0[record.worker]);
}

/// CLIENT SETINFO: client libraries say who they are, unasked, when they connect.
fn set_info(call: &mut ServerCall<'_>) -> Done {
    let (option, value) = (call.args.at(2), call.args.at(3));
    let mut details = call.session.record.details();
    // Errors name the option as it was written.
    let written = String::from_utf8_lossy(option);
    if option.eq_ignore_ascii_case(b"lib-name") {
        check_word(value, &written)?;
        details.lib_name = value.to_vec();
    } else if option.eq_ignore_ascii_case(b"lib-ver") {
        check_word(value, &written)?;
        details.lib_ver = value.to_vec();
    } else {
        return Err(error::unrecognized_option(option));
    }
    drop(details);
    note_names(call);
    call.reply.ok();
    Ok(())
}

/// The error of a subcommand that has been given too many arguments.
fn wrong_subcommand(args: &resp::Args<'_>) -> Error {
    Error::unknown_subcommand(args.at(1), "CLIENT")
}

/// A name stands in CLIENT LIST between spaces, so it may hold none, nor anything that does not print. `what`
/// is what the error calls the name.
pub(crate) fn check_word(value: &[u8], what: &str) -> Done {
    if value.iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(error::not_a_word(what))
}

/// CLIENT NO-EVICT: with ON, `maxmemory-clients` closes other connections than this one.
fn no_evict(call: &mut ServerCall<'_>) -> Done {
    let on = on_or_off(call.args.at(2))?;
    call.session.record.details().is_spared = on;
    call.reply.ok();
    Ok(())
}

/// CLIENT NO-TOUCH: dispatch reads this setting from the session, other connections from the record.
fn no_touch(call: &mut ServerCall<'_>) -> Done {
    let on = on_or_off(call.args.at(2))?;
    call.session.leaves_trace = !on;
    call.session.record.details().is_touchless = on;
    call.reply.ok();
    Ok(())
}

fn on_or_off(word: &[u8]) -> Result<bool, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(Error::syntax()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_no_spaces_and_nothing_unprintable() {
        assert!(check_word(b"worker-1!~", "Client names").is_ok());
        assert!(check_word(b"", "Client names").is_ok());
        for bad in [&b"a b"[..], b"a\n", b"\xff", b"\x7f"] {
            assert!(check_word(bad, "Client names").is_err());
        }
    }
}
