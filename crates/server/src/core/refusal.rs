//! Why a request is not run at all. The texts are in `error`.
use crate::core::error;
use crate::core::registry::Row;
use crate::state::acl::{Denied, User};
use command::Error;
use resp::{Args, Reply};
use std::sync::Arc;

/// Why a request is not run.
pub(crate) enum Refusal<'s> {
    UnknownCommand,
    /// A word that is no subcommand of this container.
    UnknownSubcommand(&'s Row),
    /// Too few or too many arguments.
    Arity(&'s Row),
    /// A setting allows it to nobody, or to nobody from there.
    NotEnabled(&'s Row, Error),
    /// A password is set and was not given.
    NotAuthenticated(&'s Row),
    /// The client listens to channels in RESP2, where few commands are allowed.
    OnlyListens(&'s Row),
    /// The command does not run inside a transaction.
    InTransaction(&'s Row),
    /// The user's rules do not allow it.
    NoPermission(&'s Row, Box<NoPermission>),
    /// Memory is over `maxmemory`, and nothing may be evicted.
    OutOfMemory(&'s Row),
    /// The data is being loaded.
    Loading(&'s Row),
    /// The last snapshot has failed, and no more is written until one succeeds.
    Unsaved(&'s Row),
    /// The append-only file cannot be written, for this reason.
    Unwritten(&'s Row, String),
    /// An argument is longer than an element of a collection may be.
    TooLong(&'s Row),
    /// A script runs for long, and this is what may be done about it.
    Busy(&'s Row, &'static [u8]),
}

/// Which user lacks a permission, and which one that is.
pub(crate) struct NoPermission {
    pub(crate) user: Arc<User>,
    pub(crate) denied: Denied,
}

impl<'s> Refusal<'s> {
    /// The command that is refused, if there is one: its `rejected_calls` grow.
    pub(crate) fn row(&self) -> Option<&'s Row> {
        match self {
            Refusal::UnknownCommand | Refusal::UnknownSubcommand(_) => None,
            Refusal::Arity(row)
            | Refusal::NotEnabled(row, _)
            | Refusal::NotAuthenticated(row)
            | Refusal::OnlyListens(row)
            | Refusal::InTransaction(row)
            | Refusal::NoPermission(row, _)
            | Refusal::OutOfMemory(row)
            | Refusal::Loading(row)
            | Refusal::Unsaved(row)
            | Refusal::Unwritten(row, _)
            | Refusal::TooLong(row)
            | Refusal::Busy(row, _) => Some(row),
        }
    }

    /// The error, its code included, without the leading `-`.
    pub(crate) fn text(&self, args: &Args<'_>) -> Vec<u8> {
        match self {
            Refusal::UnknownCommand => error::unknown_command(args),
            Refusal::UnknownSubcommand(container) => error::unknown_subcommand(args, &container.called),
            Refusal::Arity(row) => command::Error::wrong_arity(&row.full_name).text().into(),
            Refusal::NotEnabled(_, why) => why.text().into(),
            Refusal::NotAuthenticated(_) => error::NOT_AUTHENTICATED.to_vec(),
            Refusal::OnlyListens(row) => error::only_listens(&row.full_name),
            Refusal::InTransaction(_) => error::NOT_IN_TRANSACTIONS.to_vec(),
            Refusal::NoPermission(row, why) => error::no_permission(&why.user, &row.full_name, why.denied),
            Refusal::TooLong(_) => command::Error::element_too_long().text().into(),
            Refusal::Busy(_, text) => text.to_vec(),
            Refusal::Loading(_) => error::LOADING.into(),
            Refusal::Unsaved(_) => error::UNSAVED.to_vec(),
            Refusal::Unwritten(_, why) => error::unwritten(why),
            Refusal::OutOfMemory(_) => error::OUT_OF_MEMORY.to_vec(),
        }
    }
}

/// Appends an error reply whose text need not be UTF-8. Line breaks become spaces, as in the peer.
pub(crate) fn append_error(reply: &mut Reply, text: &[u8]) {
    let mut line = Vec::with_capacity(text.len() + 3);
    line.push(b'-');
    line.extend(text.iter().map(|b| if matches!(b, b'\r' | b'\n') { b' ' } else { *b }));
    line.extend_from_slice(b"\r\n");
    reply.append(&line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use resp::Span;

    fn unknown(args: &[&[u8]]) -> String {
        let buffer = args.concat();
        let mut start = 0;
        let spans: Vec<Span> = args
            .iter()
            .map(|a| {
                let span = Span { start, len: a.len() };
                start += span.len;
                span
            })
            .collect();
        let mut reply = Reply::new(resp::Protocol::Resp2);
        append_error(&mut reply, &Refusal::UnknownCommand.text(&Args::new(&buffer, &spans)));
        String::from_utf8_lossy(&reply.out).into_owned()
    }

    #[test]
    fn an_unknown_command_is_quoted_with_its_arguments_as_the_peer_does() {
        assert_eq!(unknown(&[b"FOO"]), "-ERR unknown command 'FOO', with args beginning with: \r\n");
        assert_eq!(
            unknown(&[b"F\r\nO", b"a\0b"]),
            "-ERR unknown command 'F  O', with args beginning with: 'a' \r\n"
        );
    }

    #[test]
    fn long_names_and_arguments_are_cut() {
        let (c, d) = ("c".repeat(100), "d".repeat(100));
        let expected =
            format!("-ERR unknown command 'X', with args beginning with: 'a' '{c}' '{}' \r\n", &d[..21]);
        assert_eq!(unknown(&[b"X", b"a\0b", c.as_bytes(), d.as_bytes(), b"ef"]), expected);
        let cut = format!("-ERR unknown command '{}', with args beginning with: \r\n", "X".repeat(128));
        assert_eq!(unknown(&["X".repeat(200).as_bytes()]), cut);
    }
}
