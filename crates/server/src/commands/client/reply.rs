//! CLIENT REPLY: whether a connection is answered at all. Dispatch drops the replies that are not wanted.
use super::{ABOUT, SUB};
use crate::core::call::{ServerCall, ServerCommand, ServerRun};
use crate::core::session::ReplyMode;
use command::{Arg, Arity, Doc, Done, Error};

pub(super) const REPLY: ServerCommand = ServerCommand {
    name: "REPLY",
    arity: Arity::Exactly(3),
    doc: Doc {
        since: "3.2.0",
        summary: "Chooses whether this connection is answered at all.",
        args: &[Arg::one_of(
            "action",
            &[Arg::word("on", "ON"), Arg::word("off", "OFF"), Arg::word("skip", "SKIP")],
        )],
        ..ABOUT
    },
    run: ServerRun::Anywhere(reply_mode),
    ..SUB
};

/// OFF answers nothing from here on, ON answers everything again, and SKIP leaves out the answer to the next
/// command.
fn reply_mode(call: &mut ServerCall<'_>) -> Done {
    call.session.reply_mode = match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"on" => ReplyMode::On,
        b"off" => ReplyMode::Off,
        // Off stays off: it needs ON to end.
        b"skip" if call.session.reply_mode == ReplyMode::Off => ReplyMode::Off,
        b"skip" => ReplyMode::SkipNext,
        _ => return Err(Error::syntax()),
    };
    if call.session.reply_mode.answers() {
        call.reply.ok();
    }
    Ok(())
}
