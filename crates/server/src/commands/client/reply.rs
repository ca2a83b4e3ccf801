//! CLIENT REPLY: whether a connection is answered at all.
use super::{ABOUT, SUB};
use crate::core::call::{ServerCall, ServerCommand, ServerRun};
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
    run: ServerRun::Shared(reply_mode),
    ..SUB
};

/// CLIENT REPLY: which replies the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// All but this command's and the next one's.
    SkipNext,
    /// All but this command's.
    Skip,
}

impl ReplyMode {
    /// Whether the command that just ran is answered.
    pub(crate) fn answers(self) -> bool {
        self == ReplyMode::On
    }

    /// The mode for the next command.
    pub(crate) fn next(self) -> ReplyMode {
        match self {
            ReplyMode::SkipNext => ReplyMode::Skip,
            ReplyMode::Skip => ReplyMode::On,
            same => same,
        }
    }
}

fn reply_mode(call: &mut ServerCall<'_>) -> Done {
    call.session.reply_mode = match call.args.at(2).to_ascii_lowercase().as_slice() {
        b"on" => ReplyMode::On,
        b"off" => ReplyMode::Off,
        // Off stays off: it needs ON to end.
        b"skip" if call.session.reply_mode == ReplyMode::Off => ReplyMode::Off,
        b"skip" => ReplyMode::SkipNext,
        _ => return Err(Error::syntax()),
    };
    call.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_mutes_itself_and_the_next_command() {
        let mut mode = ReplyMode::SkipNext;
        let mut answered = Vec::new();
        for _ in 0..3 {
            answered.push(mode.answers());
            mode = mode.next();
        }
        assert_eq!(answered, [false, false, true]);
        assert_eq!(ReplyMode::Off.next(), ReplyMode::Off);
    }
}
