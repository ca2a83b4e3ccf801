//! COMMAND GETKEYS and GETKEYSANDFLAGS: the keys of a command that is only shown, not run. The key
//! specifications of its row find them, as they do when it runs.
use super::describe;
use crate::core::call::ServerCall;
use crate::core::error;
use crate::core::registry::{Registry, Row};
use command::{Access, Done, Error, Flags, KeySpec};
use resp::Args;

/// COMMAND GETKEYS
pub(super) fn names(call: &mut ServerCall<'_>) -> Done {
    let found = keys(call)?;
    call.reply.array(found.len());
    found.iter().for_each(|(key, _)| call.reply.bulk(key));
    Ok(())
}

/// COMMAND GETKEYSANDFLAGS
pub(super) fn names_and_flags(call: &mut ServerCall<'_>) -> Done {
    let found = keys(call)?;
    call.reply.array(found.len());
    for (key, access) in found {
        call.reply.array(2);
        call.reply.bulk(key);
        // Of a request all keys are found.
        describe::access(call.reply, access.without(Access::INCOMPLETE));
    }
    Ok(())
}

/// Each key, and what the command does with it.
type Found<'a> = Vec<(&'a [u8], Access)>;

/// The keys of the command that stands behind the subcommand's name, with its own arguments behind it.
fn keys<'c>(call: &ServerCall<'c>) -> Result<Found<'c>, Error> {
    let args = call.args.tail(2).expect("the arity of both commands asks for a name");
    let row = row(&call.server.registry, &args)?;
    if !row.keys.iter().any(KeySpec::is_of_keys) {
        return Err(error::no_key_arguments());
    }
    if !row.arity.accepts(args.len()) {
        return Err(error::wrong_number_of_arguments());
    }
    let uses = command::key_uses(row.keys, &args);
    if (uses.found.is_empty() || uses.lacks_some) && !row.flags.has(Flags::NO_MANDATORY_KEYS) {
        return Err(error::invalid_arguments());
    }
    Ok(uses.found.iter().map(|key| (args.at(key.position as usize), key.access)).collect())
}

/// The row that would run: a container's subcommand where one is named.
fn row<'r>(registry: &'r Registry, args: &Args<'_>) -> Result<&'r Row, Error> {
    let invalid = error::invalid_command;
    let row = registry.find(args.at(0)).ok_or_else(invalid)?;
    match args.get(1) {
        Some(name) if !row.subcommands.is_empty() => row.subcommand(name).ok_or_else(invalid),
        _ => Ok(row),
    }
}
