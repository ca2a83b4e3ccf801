//! ROLE, REPLICAOF, SLAVEOF: what this server is to others. There is no replication yet, so it is always a
//! primary that nobody follows: programs that look for the primary before they write find it, and those that
//! make sure that it follows nobody (REPLICAOF NO ONE) are right.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use base::text::parse_i64;
use command::{Acl, Arg, Arity, Deprecated, Doc, Done, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&REPLICAOF, &ROLE, &SLAVEOF]);

const ROLE: ServerCommand = ServerCommand {
    name: "ROLE",
    arity: Arity::Exactly(1),
    flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST),
    acl: Acl::ADMIN.or(Acl::DANGEROUS),
    doc: Doc {
        group: Group::Server,
        since: "2.8.12",
        summary: "Answers that this server is a primary, its replication offset, and its replicas.",
        complexity: "O(1)",
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(role),
    ..ROW
};

const REPLICAOF: ServerCommand = ServerCommand {
    name: "REPLICAOF",
    arity: Arity::Exactly(3),
    flags: Flags::ADMIN.or(Flags::NOSCRIPT).or(Flags::STALE).or(Flags::NO_ASYNC_LOADING),
    doc: Doc {
        group: Group::Server,
        since: "5.0.0",
        summary: "Agrees to follow no one, which is so, and refuses to follow another server.",
        complexity: "O(1)",
        args: &[Arg::one_of(
            "args",
            &[
                Arg::block("host-port", &[Arg::str("host"), Arg::int("port")]),
                Arg::block("no-one", &[Arg::word("no", "NO"), Arg::word("one", "ONE")]),
            ],
        )],
        ..Doc::NEW
    },
    run: ServerRun::Anywhere(follow),
    ..ROW
};

const SLAVEOF: ServerCommand = ServerCommand {
    name: "SLAVEOF",
    doc: Doc {
        since: "1.0.0",
        deprecated: Some(Deprecated { since: "5.0.0", replaced_by: "`REPLICAOF`" }),
        ..REPLICAOF.doc
    },
    ..REPLICAOF
};

/// Answers the role, the offset (that of INFO, 0 while nothing is replicated) and no replicas.
fn role(call: &mut ServerCall<'_>) -> Done {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.int(0);
    call.reply.array(0);
    Ok(())
}

/// REPLICAOF, SLAVEOF
fn follow(call: &mut ServerCall<'_>) -> Done {
    let (host, port) = (call.args.at(1), call.args.at(2));
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        call.reply.ok();
        return Ok(());
    }
    match parse_i64(port) {
        Some(0..=65535) => Err(error::no_replication()),
        _ => Err(error::invalid_primary_port()),
    }
}
