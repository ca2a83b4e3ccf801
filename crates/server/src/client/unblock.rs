//! CLIENT UNBLOCK: end another client's waiting, as if its time were over or with an error.
use super::{ABOUT, SUB};
use crate::call::{ADMIN, ServerCall, ServerCommand, ServerRun};
use command::{Arg, Arity, Doc, Done, Error};

pub(super) const UNBLOCK: ServerCommand = ServerCommand {
    name: "UNBLOCK",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        since: "5.0.0",
        summary: "Ends the waiting of another connection's command.",
        complexity: "O(log N) where N is the number of client connections",
        args: &[
            Arg::int("client-id"),
            Arg::one_of("unblock-type", &[Arg::word("timeout", "TIMEOUT"), Arg::word("error", "ERROR")])
                .optional(),
        ],
        ..ABOUT
    },
    run: ServerRun::Shared(unblock),
    ..SUB
};

/// No command waits yet, so nobody can be unblocked. (A client that CLIENT PAUSE holds back is not: its time has not come.)
fn unblock(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() > 4 {
        return Err(super::wrong_subcommand(&call.args));
    }
    match call.args.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"timeout" | b"error") => {}
        Some(_) => return Err(Error::custom("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    }
    base::text::parse_i64(call.args.at(2)).ok_or_else(Error::not_an_integer)?;
    call.reply.int(0);
    Ok(())
}
