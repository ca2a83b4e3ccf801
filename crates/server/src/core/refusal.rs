//! Why a request is not run at all, and the exact words of the peer for it.
//!
//! These texts quote what the client sent, which need not be UTF-8: they are built as bytes. As in the peer a
//! quoted argument ends at its first NUL, and line breaks become spaces.
use crate::core::registry::Row;
use resp::{Args, Reply};

pub(crate) enum Refusal<'s> {
    UnknownCommand,
    /// Of this container.
    UnknownSubcommand(&'s Row),
    Arity(&'s Row),
    /// A password is set and was not given.
    NotAuthenticated(&'s Row),
    /// Memory is over `maxmemory`, and nothing may be evicted.
    OutOfMemory(&'s Row),
    /// An argument is longer than what is made of it may be.
    TooLong(&'s Row),
}

/// How much of what the client sent is quoted.
const QUOTED_BYTES_MAX: usize = 128;

impl<'s> Refusal<'s> {
    /// The command that is refused, if there is one.
    pub(crate) fn row(&self) -> Option<&'s Row> {
        match self {
            Refusal::UnknownCommand | Refusal::UnknownSubcommand(_) => None,
            Refusal::Arity(row)
            | Refusal::NotAuthenticated(row)
            | Refusal::OutOfMemory(row)
            | Refusal::TooLong(row) => Some(row),
        }
    }

    /// The error, its code included, without the leading `-`.
    pub(crate) fn text(&self, args: &Args<'_>) -> Vec<u8> {
        match self {
            Refusal::UnknownCommand => unknown_command(args),
            Refusal::UnknownSubcommand(container) => {
                let mut text = b"ERR unknown subcommand '".to_vec();
                text.extend_from_slice(quoted(args.get(1).unwrap_or_default(), QUOTED_BYTES_MAX));
                text.extend_from_slice(b"'. Try ");
                text.extend(container.called.to_ascii_uppercase());
                text.extend_from_slice(b" HELP.");
                text
            }
            Refusal::Arity(row) => command::Error::wrong_arity(&row.full_name).text().into(),
            Refusal::NotAuthenticated(_) => b"NOAUTH Authentication required.".to_vec(),
            Refusal::TooLong(_) => command::Error::element_too_long().text().into(),
            Refusal::OutOfMemory(_) => b"OOM command not allowed when used memory > 'maxmemory'.".to_vec(),
        }
    }
}

fn unknown_command(args: &Args<'_>) -> Vec<u8> {
    let mut text = b"ERR unknown command '".to_vec();
    text.extend_from_slice(quoted(args.at(0), QUOTED_BYTES_MAX));
    text.extend_from_slice(b"', with args beginning with: ");
    let start = text.len();
    for arg in args.iter_from(1) {
        let room = QUOTED_BYTES_MAX.saturating_sub(text.len() - start);
        if room == 0 {
            break;
        }
        text.push(b'\'');
        text.extend_from_slice(quoted(arg, room));
        text.extend_from_slice(b"' ");
    }
    text
}

fn quoted(arg: &[u8], bytes_max: usize) -> &[u8] {
    let end = arg.iter().take(bytes_max).position(|b| *b == 0);
    &arg[..end.unwrap_or(arg.len().min(bytes_max))]
}

/// Appends an error reply whose text need not be UTF-8.
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
