//! Transactions: MULTI opens one, EXEC runs what was queued since, DISCARD gives it up.
//!
//! What a request becomes while a transaction is open is decided in `core/dispatch/mod.rs`;
//! `core/transaction.rs` keeps it, and `core/dispatch/exec.rs` runs it.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use command::{Acl, Arity, Doc, Done, Flags, Group};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&DISCARD, &EXEC, &MULTI]);

const ABOUT: Doc = Doc { group: Group::Transactions, ..Doc::NEW };
/// The flags of all of them: none waits for EXEC.
const FLAGS: Flags = Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::NEVER_QUEUED);
const FAST: Flags = FLAGS.or(Flags::FAST).or(Flags::ALLOW_BUSY);

const MULTI: ServerCommand = ServerCommand {
    name: "MULTI",
    arity: Arity::Exactly(1),
    flags: FAST,
    acl: Acl::TRANSACTION,
    doc: Doc {
        since: "1.2.0",
        summary: "Begins a transaction: requests are queued from here on.",
        complexity: "O(1)",
        ..ABOUT
    },
    run: ServerRun::Anywhere(multi),
    ..ROW
};

const EXEC: ServerCommand = ServerCommand {
    name: "EXEC",
    arity: Arity::Exactly(1),
    flags: FLAGS.or(Flags::SKIP_SLOWLOG),
    acl: Acl::TRANSACTION,
    doc: Doc {
        since: "1.2.0",
        summary: "Runs all queued requests as one step.",
        complexity: "Depends on commands in the transaction",
        ..ABOUT
    },
    run: ServerRun::Queue,
    ..ROW
};

const DISCARD: ServerCommand = ServerCommand {
    name: "DISCARD",
    arity: Arity::Exactly(1),
    flags: FAST,
    acl: Acl::TRANSACTION,
    doc: Doc {
        since: "2.0.0",
        summary: "Gives up a transaction.",
        complexity: "O(N), when N is the number of queued commands",
        ..ABOUT
    },
    run: ServerRun::Anywhere(discard),
    ..ROW
};

fn multi(call: &mut ServerCall<'_>) -> Done {
    if !call.session.begin_transaction() {
        return Err(error::multi_in_multi());
    }
    call.reply.ok();
    Ok(())
}

fn discard(call: &mut ServerCall<'_>) -> Done {
    if !call.session.give_up_transaction(call.counters()) {
        return Err(error::discard_without_multi());
    }
    call.reply.ok();
    Ok(())
}
