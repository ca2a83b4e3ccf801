//! MIGRATE: moves keys to another server. `core/migrate` says how.
use crate::core::call::{MayWait, ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::migrate::{Migration, Target};
use base::text::parse_i64;
use command::{Access, Acl, Arg, Arity, Begin, Doc, Done, Error, Find, Flags, Group, KeySpec};
use resp::Args;
use std::time::Duration;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&MIGRATE]);

const ACCESS: Access = Access::RW.or(Access::ACCESS).or(Access::DELETE);
/// The first option.
const OPTIONS: usize = 6;
/// Where no time is given, or none that can be.
const TIMEOUT_MS: i64 = 1000;

const MIGRATE: ServerCommand = ServerCommand {
    name: "MIGRATE",
    arity: Arity::AtLeast(6),
    flags: Flags::WRITE.or(Flags::MOVABLEKEYS),
    acl: Acl::KEYSPACE.or(Acl::DANGEROUS),
    keys: &[
        KeySpec { rule: Some(only_key), ..KeySpec::one(3, ACCESS) },
        KeySpec {
            begin: Begin::Keyword { word: "KEYS", start: -2 },
            find: Find::Range { last: -1, step: 1, limit: 0 },
            access: ACCESS.or(Access::INCOMPLETE),
            rule: Some(several_keys),
            ..KeySpec::NEW
        },
    ],
    doc: Doc {
        group: Group::Generic,
        since: "2.6.0",
        summary: "Moves keys to another server: each is there or here, and never on both for others to see.",
        complexity: "As DUMP and DEL here, and RESTORE there.",
        args: &ARGS,
        history: &[
            ("3.0.0", "Takes `COPY` and `REPLACE`."),
            ("3.0.6", "Takes `KEYS`."),
            ("4.0.7", "Takes `AUTH`."),
            ("6.0.0", "Takes `AUTH2`."),
        ],
        tips: &["nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Exclusive(migrate),
    ..ROW
};

const ARGS: [Arg; 9] = [
    Arg::str("host"),
    Arg::int("port"),
    Arg::one_of("key-selector", &[Arg::key("key", 0), Arg::word("empty-string", "")]),
    Arg::int("destination-db"),
    Arg::int("timeout"),
    Arg::word("copy", "COPY").optional().since("3.0.0"),
    Arg::word("replace", "REPLACE").optional().since("3.0.0"),
    Arg::one_of(
        "authentication",
        &[
            Arg::str("auth").after("AUTH").secret().since("4.0.7").shown_as("password"),
            Arg::block("auth2", &[Arg::str("username").secret(), Arg::str("password").secret()])
                .after("AUTH2")
                .since("6.0.0"),
        ],
    )
    .optional(),
    Arg::key("keys", 1).after("KEYS").optional().many().since("3.0.6").shown_as("key"),
];

/// What a request asks for.
struct Options {
    copies: bool,
    replaces: bool,
    auth: Vec<Vec<u8>>,
    /// Where the keys begin, behind KEYS.
    keys: Option<usize>,
}

fn options(args: &Args<'_>) -> Result<Options, Error> {
    let mut options = Options { copies: false, replaces: false, auth: Vec::new(), keys: None };
    let mut at = OPTIONS;
    while let Some(word) = args.get(at) {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        let left = args.len() - at - 1;
        let secrets = if is(b"AUTH") && left >= 1 { 1 } else { 2 * usize::from(is(b"AUTH2") && left >= 2) };
        if is(b"COPY") {
            options.copies = true;
        } else if is(b"REPLACE") {
            options.replaces = true;
        } else if secrets > 0 {
            options.auth = (1..=secrets).map(|place| args.at(at + place).to_vec()).collect();
        } else if is(b"KEYS") {
            options.keys = Some(at + 1);
            return Ok(options);
        } else {
            return Err(Error::syntax());
        }
        at += 1 + secrets;
    }
    Ok(options)
}

/// The key that stands by itself.
fn only_key(args: &Args<'_>, positions: &mut Vec<u32>) {
    if args.len() >= OPTIONS && keys_of(args).is_none() {
        positions.push(3);
    }
}

/// The keys behind KEYS.
fn several_keys(args: &Args<'_>, positions: &mut Vec<u32>) {
    if let Some(first) = keys_of(args).filter(|_| args.at(3).is_empty()) {
        positions.extend((first..args.len()).map(|at| at as u32));
    }
}

fn keys_of(args: &Args<'_>) -> Option<usize> {
    options(args).ok()?.keys
}

fn migrate(call: &mut ServerCall<'_>) -> Done {
    let args = call.args;
    let options = options(&args)?;
    if options.keys.is_some() && !args.at(3).is_empty() {
        return Err(error::migration_names_two());
    }
    let timeout_ms = parse_i64(args.at(5)).ok_or_else(Error::not_an_integer)?;
    let db = parse_i64(args.at(4)).ok_or_else(Error::not_an_integer)?;
    let timeout_ms = if timeout_ms <= 0 { TIMEOUT_MS } else { timeout_ms };
    let names: Vec<&[u8]> = match options.keys {
        Some(first) => args.iter_from(first).collect(),
        None => vec![args.at(3)],
    };
    let target = Target {
        name: (args.at(1).to_vec(), args.at(2).to_vec()),
        db,
        timeout: Duration::from_millis(timeout_ms as u64),
        auth: options.auth,
        replaces: options.replaces,
    };
    // Where nothing can be done on another thread nothing may wait either.
    let Some(leave) = &mut call.leave else { return Err(error::migration_in_transaction()) };
    let place = (call.session.db, call.now);
    match Migration::begin(call.server, place, &names, (target, options.copies)) {
        None => call.reply.simple("NOKEY"),
        Some(migration) => {
            let work = Box::new(move |session: &mut _, reply: &mut _| migration.carry_out(session, reply));
            leave(call.session, work, MayWait::Yes).map_err(|error| error::no_thread(&error))?;
        }
    }
    Ok(())
}
