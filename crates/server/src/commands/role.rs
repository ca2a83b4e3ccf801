//! ROLE: what this server is to others, for programs that look for the primary before they write. There is no
//! replication yet, so it is always a primary that nobody follows.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use command::{Acl, Arity, Doc, Done, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&ROLE]);

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

/// Answers the role, the offset (that of INFO, 0 while nothing is replicated) and no replicas.
fn role(call: &mut ServerCall<'_>) -> Done {
    call.reply.array(3);
    call.reply.bulk(b"master");
    call.reply.int(0);
    call.reply.array(0);
    Ok(())
}
