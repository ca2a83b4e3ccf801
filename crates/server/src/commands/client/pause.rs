//! CLIENT PAUSE and UNPAUSE: hold clients back and let them go on. `state/pause.rs` has the word that workers
//! read, and what is held back; `worker/park.rs` keeps what the clients send meanwhile.
use super::{ABOUT, SUB};
use crate::core::blocking::deadline;
use crate::core::call::{ADMIN, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::mailbox::Mailbox;
use crate::state::pause::Held;
use command::{Arg, Arity, Doc, Done};

pub(super) const PAUSE: ServerCommand = ServerCommand {
    name: "PAUSE",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        since: "3.0.0",
        summary: "Holds back what clients ask for, or only what changes data, for a time.",
        args: &[
            Arg::int("timeout"),
            Arg::one_of("mode", &[Arg::word("write", "WRITE"), Arg::word("all", "ALL")])
                .since("6.2.0")
                .optional(),
        ],
        history: &[("6.2.0", "`WRITE`, and with it the option `mode`.")],
        ..ABOUT
    },
    // With all gates taken: once it is answered, nothing that it holds back still runs on another worker.
    run: ServerRun::Exclusive(pause),
    ..SUB
};

pub(super) const UNPAUSE: ServerCommand = ServerCommand {
    name: "UNPAUSE",
    flags: ADMIN,
    doc: Doc {
        since: "6.2.0",
        summary: "Lets the clients go on that CLIENT PAUSE holds back.",
        complexity: "O(N) where N is the number of clients that are held back.",
        ..ABOUT
    },
    run: ServerRun::Exclusive(unpause),
    ..SUB
};

/// CLIENT PAUSE: expiry rests too, because whoever pauses clients wants data that stands still.
fn pause(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() > 4 {
        return Err(super::wrong_subcommand(&call.args));
    }
    let held = match call.args.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"all") => Held::Everything,
        Some(b"write") => Held::Writes,
        Some(_) => return Err(error::pause_mode()),
    };
    let until = deadline(call.args.at(2), call.steady)?;
    call.server.pause.start(held, until, call.steady);
    call.server.keyspace.rest_expiry();
    // Workers that sleep until a key is due have to sleep until the end of the pause instead.
    call.server.mailboxes.iter().for_each(Mailbox::wake);
    call.reply.ok();
    Ok(())
}

fn unpause(call: &mut ServerCall<'_>) -> Done {
    call.server.end_pause();
    call.server.mailboxes.iter().for_each(Mailbox::wake);
    call.reply.ok();
    Ok(())
}
