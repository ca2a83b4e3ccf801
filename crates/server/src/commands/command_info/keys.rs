//! COMMAND GETKEYS and GETKEYSANDFLAGS: the keys of a command that is only shown, not run.
use super::describe;
use crate::core::call::ServerCall;
use crate::core::registry::{Registry, Row};
use command::{Access, Begin, Done, Error, Flags};
use resp::Args;

pub(super) fn names(call: &mut ServerCall<'_>) -> Done {
    let found = keys(call)?;
    call.reply.array(found.len());
    found.iter().for_each(|(key, _)| call.reply.bulk(key));
    Ok(())
}

pub(super) fn names_and_flags(call: &mut ServerCall<'_>) -> Done {
    let found = keys(call)?;
    call.reply.array(found.len());
    for (key, access) in found {
        call.reply.array(2);
        call.reply.bulk(key);
        describe::access(call.reply, access);
    }
    Ok(())
}

type Found<'a> = Vec<(&'a [u8], Access)>;

fn keys<'c>(call: &ServerCall<'c>) -> Result<Found<'c>, Error> {
    let args = call.args.tail(2).ok_or_else(|| Error::wrong_arity("command|getkeys"))?;
    let row = row(&call.shared.registry, &args)?;
    let is_key = |access: Access| !access.has(Access::NOT_KEY);
    if !row.keys.iter().any(|spec| is_key(spec.access)) {
        return Err(Error::custom("ERR The command has no key arguments"));
    }
    if !row.arity.accepts(args.len()) {
        return Err(Error::custom("ERR Invalid number of arguments specified for command"));
    }
    let mut found = Vec::new();
    let mut positions = Vec::new();
    let mut is_whole = true;
    for spec in row.keys.iter().filter(|spec| is_key(spec.access)) {
        positions.clear();
        spec.extract(&args, &mut positions);
        // Keys at a fixed place are there, or the request is none; those behind a word need not be.
        is_whole &= !positions.is_empty() || !matches!(spec.begin, Begin::Index(_));
        let access = access(row, &args, spec.access);
        found.extend(positions.iter().map(|p| (args.at(*p as usize), access)));
    }
    if (found.is_empty() || !is_whole) && !row.flags.has(Flags::NO_MANDATORY_KEYS) {
        return Err(Error::custom("ERR Invalid arguments specified for command"));
    }
    Ok(found)
}

/// What the command does with its key as it stands there: SET reads it only with GET, BITFIELD writes only where it is told to.
fn access(row: &Row, args: &Args<'_>, access: Access) -> Access {
    if !access.has(Access::VARIABLE_FLAGS) {
        return access;
    }
    match row.name {
        "SET" if args.iter_from(3).any(|arg| arg.eq_ignore_ascii_case(b"GET")) => READS_AND_WRITES,
        "SET" => Access::OW.or(Access::UPDATE),
        "BITFIELD" if only_gets(args) => Access::RO.or(Access::ACCESS),
        "BITFIELD" => READS_AND_WRITES,
        _ => access,
    }
}

const READS_AND_WRITES: Access = Access::RW.or(Access::ACCESS).or(Access::UPDATE);

/// Whether BITFIELD has nothing but GET and OVERFLOW; what is incomplete counts as a write.
fn only_gets(args: &Args<'_>) -> bool {
    let mut i = 2;
    while let Some(word) = args.get(i) {
        let taken = if word.eq_ignore_ascii_case(b"GET") {
            3
        } else if word.eq_ignore_ascii_case(b"OVERFLOW") {
            2
        } else {
            return false;
        };
        i += taken;
    }
    i == args.len()
}

/// The row that would run: a container's subcommand where one is named.
fn row<'r>(registry: &'r Registry, args: &Args<'_>) -> Result<&'r Row, Error> {
    let invalid = || Error::custom("ERR Invalid command specified");
    let row = registry.find(args.at(0)).ok_or_else(invalid)?;
    match args.get(1) {
        Some(name) if !row.subcommands.is_empty() => row.subcommand(name).ok_or_else(invalid),
        _ => Ok(row),
    }
}
