//! CLIENT UNBLOCK: ends the waiting of another client's command, as if its time were over or with an error
//! (`core/blocking.rs`).
use super::{ABOUT, SUB};
use crate::core::call::{ADMIN, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::mailbox::Message;
use crate::core::session::Unblock;
use command::{Arg, Arity, Doc, Done, Error};

pub(super) const UNBLOCK: ServerCommand = ServerCommand {
    name: "UNBLOCK",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        since: "5.0.0",
        summary: "Ends the waiting of another connection's command.",
        complexity: "O(log N) where N is the number of connections.",
        args: &[
            Arg::int("client-id"),
            Arg::one_of("unblock-type", &[Arg::word("timeout", "TIMEOUT"), Arg::word("error", "ERROR")])
                .optional(),
        ],
        ..ABOUT
    },
    run: ServerRun::Anywhere(unblock),
    ..SUB
};

/// Answers 1 if that client's command was waiting. A client that CLIENT PAUSE holds back is not waiting in
/// this sense: its command has not run yet.
fn unblock(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() > 4 {
        return Err(super::wrong_subcommand(&call.args));
    }
    let how = match call.args.get(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"timeout") => Unblock::Timeout,
        Some(b"error") => Unblock::Error,
        Some(_) => return Err(error::unblock_reason()),
    };
    let client = base::text::parse_i64(call.args.at(2)).ok_or_else(Error::not_an_integer)?;
    let record = u64::try_from(client).ok().and_then(|id| call.server.clients().get(&id).cloned());
    let waiting = record.filter(|record| record.unblock());
    if let Some(record) = &waiting {
        call.server.mailboxes[record.worker].send(Message::Unblocked(record.id, how));
    }
    call.reply.int(i64::from(waiting.is_some()));
    Ok(())
}
