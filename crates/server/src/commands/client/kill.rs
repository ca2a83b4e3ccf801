//! CLIENT KILL: closes the connections that a filter means, by their records. Each is marked, and its worker
//! told; it is closed at that worker's next turn, and runs no further command.
use super::list::{ClientType, client_type};
use super::{ABOUT, PER_CLIENT, SUB};
use crate::core::address::Side;
use crate::core::call::{ADMIN, ServerCall, ServerCommand, ServerRun};
use crate::core::error;
use crate::core::session::{After, ClientRecord};
use command::{Arg, Arity, Doc, Done, Error};
use std::sync::Arc;

pub(super) const KILL: ServerCommand = ServerCommand {
    name: "KILL",
    arity: Arity::AtLeast(3),
    flags: ADMIN,
    doc: Doc {
        since: "2.4.0",
        summary: "Closes connections.",
        complexity: PER_CLIENT,
        args: &[Arg::one_of(
            "filter",
            &[
                Arg::str("old-format").shown_as("ip:port").deprecated("2.8.12"),
                Arg::one_of("new-format", KILL_FILTERS).many(),
            ],
        )],
        history: &[
            ("2.8.12", "Takes filters."),
            ("2.8.12", "The filter `ID`."),
            ("3.2.0", "The type `master`."),
            ("5.0.0", "The type `replica`, once `slave`, which still works."),
            ("6.2.0", "The filter `LADDR`."),
            ("7.4.0", "The filter `MAXAGE`."),
        ],
        ..ABOUT
    },
    run: ServerRun::Anywhere(kill),
    ..SUB
};

const KILL_FILTERS: &[Arg] = &[
    Arg::int("client-id").after("ID").since("2.8.12").optional(),
    Arg::one_of("client-type", KILL_TYPES).after("TYPE").since("2.8.12").optional(),
    Arg::str("username").after("USER").optional(),
    Arg::str("addr").shown_as("ip:port").after("ADDR").optional(),
    Arg::str("laddr").shown_as("ip:port").after("LADDR").since("6.2.0").optional(),
    Arg::one_of("skipme", &[Arg::word("yes", "YES"), Arg::word("no", "NO")]).after("SKIPME").optional(),
    Arg::int("maxage").after("MAXAGE").since("7.4.0").optional(),
];

const KILL_TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER").since("3.2.0"),
    Arg::word("slave", "SLAVE"),
    Arg::word("replica", "REPLICA").since("5.0.0"),
    Arg::word("pubsub", "PUBSUB"),
];

/// Which connections KILL means: those that all given parts of the filter fit.
#[derive(Default)]
struct Filter<'a> {
    id: Option<u64>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    kind: Option<ClientType>,
    user: Option<&'a [u8]>,
    maxage_s: Option<i64>,
    spares: Spares,
}

/// Which of the connections that the filter means are spared, by the option SKIPME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum Spares {
    #[default]
    Myself,
    Nobody,
}

impl Filter<'_> {
    /// Whether all parts of the filter fit this client. `now_ms` is the steady time; `text` is room for
    /// addresses.
    fn matches(&self, record: &ClientRecord, now_ms: i64, text: &mut Vec<u8>) -> bool {
        self.id.is_none_or(|id| id == record.id)
            && self.addr.is_none_or(|addr| record.is_at(Side::Theirs, addr, text))
            && self.laddr.is_none_or(|laddr| record.is_at(Side::Ours, laddr, text))
            && self.kind.is_none_or(|kind| kind.is_of(record))
            && self.user.is_none_or(|user| user == record.details().user)
            && self.maxage_s.is_none_or(|s| (now_ms - record.created_ms) / 1000 >= s)
    }
}

/// The old form has one address and kills the asking connection too; the new one has options and spares it
/// unless SKIPME says otherwise.
fn kill(call: &mut ServerCall<'_>) -> Done {
    if call.args.len() == 3 {
        let filter = Filter { addr: Some(call.args.at(2)), spares: Spares::Nobody, ..Filter::default() };
        return match kill_all(call, &filter) {
            0 => Err(error::no_such_client()),
            _ => {
                call.reply.ok();
                Ok(())
            }
        };
    }
    let filter = kill_filter(call)?;
    let killed = kill_all(call, &filter);
    call.reply.int(killed);
    Ok(())
}

/// Reads the options, which come in pairs.
fn kill_filter<'a>(call: &ServerCall<'a>) -> Result<Filter<'a>, Error> {
    let mut filter = Filter::default();
    let options: Vec<&[u8]> = call.args.iter_from(2).collect();
    for pair in options.chunks(2) {
        let [option, value] = *pair else { return Err(Error::syntax()) };
        match option.to_ascii_lowercase().as_slice() {
            b"id" => filter.id = Some(positive(value).ok_or_else(error::client_id_not_positive)? as u64),
            b"type" => filter.kind = Some(client_type(value)?),
            b"addr" => filter.addr = Some(value),
            b"laddr" => filter.laddr = Some(value),
            b"user" => filter.user = Some(known_user(call, value)?),
            b"skipme" => filter.spares = spares(value)?,
            b"maxage" => filter.maxage_s = Some(maxage(value)?),
            _ => return Err(Error::syntax()),
        }
    }
    Ok(filter)
}

fn positive(value: &[u8]) -> Option<i64> {
    base::text::parse_i64(value).filter(|n| *n > 0)
}

/// A number of seconds above 0. Redis has one error for a text that is no integer and one for 0 and less.
fn maxage(value: &[u8]) -> Result<i64, Error> {
    if base::text::parse_i64(value).is_none() {
        return Err(error::maxage_not_an_integer());
    }
    positive(value).ok_or_else(error::maxage_not_positive)
}

/// The name of a user that there is.
fn known_user<'a>(call: &ServerCall<'_>, name: &'a [u8]) -> Result<&'a [u8], Error> {
    match call.server.accounts.users().find(name) {
        Some(_) => Ok(name),
        None => Err(error::no_such_user(name)),
    }
}

fn spares(word: &[u8]) -> Result<Spares, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"yes" => Ok(Spares::Myself),
        b"no" => Ok(Spares::Nobody),
        _ => Err(Error::syntax()),
    }
}

/// Kills what the filter means, and returns how many connections that were. It goes through all records.
fn kill_all(call: &mut ServerCall<'_>, filter: &Filter<'_>) -> i64 {
    let all: Vec<Arc<ClientRecord>> = call.server.clients().values().cloned().collect();
    let (mut killed, mut text) = (0, Vec::new());
    for record in all.iter().filter(|c| filter.matches(c, call.steady.0, &mut text)) {
        if record.id != call.session.record.id {
            call.server.kill(record);
        } else if filter.spares == Spares::Nobody {
            // A client that kills itself gets its reply before it is closed.
            call.session.after = After::Close;
        } else {
            continue;
        }
        killed += 1;
    }
    killed
}
