//! Transactions: MULTI opens one, EXEC runs what was queued since, DISCARD gives it up. EXEC runs nothing
//! if a key has changed that the client watches (WATCH, UNWATCH).
//!
//! What a request becomes while a transaction is open is decided in `core/dispatch/mod.rs`;
//! `core/transaction.rs` keeps it, and `core/dispatch/exec.rs` runs it.
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::modes::Modes;
use command::{Access, Acl, Arg, Arity, Doc, Done, Flags, Group, KeySpec};

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&DISCARD, &EXEC, &MULTI, &UNWATCH, &WATCH]);

const ABOUT: Doc = Doc { group: Group::Transactions, ..Doc::NEW };
/// The flags of all but UNWATCH: none of these commands is ever queued.
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
    run: ServerRun::Begin,
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
        complexity: "That of the queued requests together.",
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
        complexity: "O(N) where N is the number of queued requests.",
        ..ABOUT
    },
    run: ServerRun::Anywhere(discard),
    ..ROW
};

const WATCH: ServerCommand = ServerCommand {
    name: "WATCH",
    arity: Arity::AtLeast(2),
    flags: FAST,
    acl: Acl::TRANSACTION,
    keys: &[KeySpec::range(1, -1, 1, Access::RO)],
    doc: Doc {
        since: "2.2.0",
        summary: "Has the next EXEC run nothing if one of the keys changes before it.",
        complexity: "O(1) for each key.",
        args: &[Arg::key("key", 0).many()],
        ..ABOUT
    },
    run: ServerRun::Shared(watch),
    ..ROW
};

/// UNWATCH may be queued and then does nothing: EXEC has forgotten all watched keys before it runs.
const UNWATCH: ServerCommand = ServerCommand {
    name: "UNWATCH",
    arity: Arity::Exactly(1),
    flags: Flags::NOSCRIPT.or(Flags::LOADING).or(Flags::STALE).or(Flags::FAST).or(Flags::ALLOW_BUSY),
    acl: Acl::TRANSACTION,
    doc: Doc { since: "2.2.0", summary: "Forgets all watched keys.", complexity: "O(1)", ..ABOUT },
    run: ServerRun::Anywhere(unwatch),
    ..ROW
};

fn discard(call: &mut ServerCall<'_>) -> Done {
    if !call.session.give_up_transaction(call.server) {
        return Err(error::discard_without_multi());
    }
    call.reply.ok();
    Ok(())
}

fn watch(call: &mut ServerCall<'_>) -> Done {
    if call.session.modes.has(Modes::TRANSACTION) {
        return Err(error::watch_in_multi());
    }
    call.session.watch(call.server, call.args.iter_from(1), call.now);
    call.reply.ok();
    Ok(())
}

fn unwatch(call: &mut ServerCall<'_>) -> Done {
    if !call.session.modes.has(Modes::EXECUTING) {
        call.session.unwatch(call.server);
    }
    call.reply.ok();
    Ok(())
}
