//! CLIENT LIST and CLIENT INFO: a line for each connection (`core/client_line.rs`), from the records that
//! every worker may read. The figures of connections that other workers serve are those of their last batch.
use super::{ABOUT, PER_CLIENT, SUB};
use crate::core::call::{ADMIN, MayWait, ServerCall, ServerCommand, ServerRun};
use crate::core::client_line::{Query, describe};
use crate::core::error;
use crate::core::session::{ClientRecord, Session};
use command::{Arg, Arity, Doc, Done, Error};
use resp::Reply;
use std::sync::Arc;

pub(super) const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    doc: Doc {
        since: "6.2.0",
        summary: "Describes this connection, as a line of CLIENT LIST.",
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(info),
    ..SUB
};

pub(super) const LIST: ServerCommand = ServerCommand {
    name: "LIST",
    arity: Arity::AtLeast(2),
    flags: ADMIN,
    doc: Doc {
        since: "2.4.0",
        summary: "Describes the connections, a line each.",
        complexity: PER_CLIENT,
        args: &[
            Arg::one_of("client-type", LIST_TYPES).after("TYPE").since("5.0.0").optional(),
            Arg::int("client-id").after("ID").since("6.2.0").optional().many(),
        ],
        history: &[
            ("2.8.12", "The field `id`."),
            ("5.0.0", "The filter `TYPE`."),
            ("6.0.0", "The field `user`."),
            ("6.2.0", "The fields `argv-mem`, `tot-mem`, `laddr`, `redir` and the filter `ID`."),
            ("7.0.0", "The fields `resp`, `multi-mem`, `rbs`, `rbp`."),
            ("7.0.3", "The field `ssub`."),
            ("7.2.0", "The fields `lib-name`, `lib-ver`."),
            ("7.4.0", "The field `watch`."),
            ("8.0.0", "The field `io-thread`."),
        ],
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Anywhere(list),
    ..SUB
};

const LIST_TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER"),
    Arg::word("replica", "REPLICA"),
    Arg::word("pubsub", "PUBSUB"),
];

/// The values of the option TYPE. No client is a replica or a primary so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    /// The client listens to a channel or a pattern.
    Pubsub,
    Other,
}

impl ClientType {
    /// Whether this client is of the type.
    pub(super) fn is_of(self, record: &ClientRecord) -> bool {
        match self {
            ClientType::Normal => !record.is_subscribed(),
            ClientType::Pubsub => record.is_subscribed(),
            ClientType::Other => false,
        }
    }
}

/// What a word for a type means, in any case.
pub(super) fn client_type(word: &[u8]) -> Result<ClientType, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"pubsub" => Ok(ClientType::Pubsub),
        b"master" | b"replica" | b"slave" => Ok(ClientType::Other),
        _ => Err(error::unknown_client_type(word)),
    }
}

fn info(call: &mut ServerCall<'_>) -> Done {
    let mut out = Vec::new();
    let record = &call.session.record;
    describe(record, own_query(call), &call.server.registry, call.steady.0, &mut out);
    call.reply.verbatim("txt", &out);
    Ok(())
}

/// So many are listed at once. To list more takes longer than other clients are to wait: that is done on
/// another thread.
const LISTED_AT_ONCE: usize = if cfg!(debug_assertions) { 10 } else { 1_000 };

fn list(call: &mut ServerCall<'_>) -> Done {
    let (server, now) = (call.server.shared(), call.steady);
    let (records, own) = (chosen_records(call)?, call.session.record.id);
    let own_query = own_query(call);
    let is_long = records.len() > LISTED_AT_ONCE;
    let write = move |reply: &mut Reply| {
        let mut out = Vec::new();
        for record in &records {
            let query = if record.id == own { own_query } else { Query::kept(record) };
            describe(record, query, &server.registry, now.0, &mut out);
            // One id may be named many times: more than the reply has room for is not written.
            if out.len() > reply.spare_bytes() {
                break;
            }
        }
        reply.verbatim("txt", &out);
        Ok(())
    };
    match &mut call.leave {
        Some(leave) if is_long => {
            let work = Box::new(move |_: &mut Session, reply: &mut Reply| write(reply));
            leave(call.session, work, MayWait::No).map_err(|error| error::no_thread(&error))
        }
        _ => write(call.reply),
    }
}

/// The records that LIST's options choose, in the order of the ids, or in the order in which they are named.
fn chosen_records(call: &ServerCall<'_>) -> Result<Vec<Arc<ClientRecord>>, Error> {
    let all = || call.server.clients().values().cloned().collect();
    let option = call.args.get(2).map(<[u8]>::to_ascii_lowercase);
    match (option.as_deref(), call.args.len()) {
        (None, _) => Ok(all()),
        (Some(b"type"), 4) => {
            let kind = client_type(call.args.at(3))?;
            let clients = call.server.clients();
            Ok(clients.values().filter(|record| kind.is_of(record)).cloned().collect())
        }
        (Some(b"id"), 4..) => {
            let invalid = error::invalid_client_id;
            let ids = call.args.iter_from(3).map(|a| base::text::parse_i64(a).ok_or_else(invalid));
            let ids = ids.collect::<Result<Vec<i64>, Error>>()?;
            let clients = call.server.clients();
            Ok(ids.iter().filter_map(|id| clients.get(&u64::try_from(*id).ok()?).cloned()).collect())
        }
        _ => Err(Error::syntax()),
    }
}

/// The figures of the requests of the client that asks which have not run. They include the pipeline that is
/// being served, which lies in its worker's buffer, and the arguments of this very request.
fn own_query(call: &ServerCall<'_>) -> Query {
    let kept = Query::kept(&call.session.record);
    let parsed_bytes = call.args.iter_from(0).map(|arg| arg.len() as u64).sum();
    Query { len_bytes: kept.len_bytes.max(call.request_bytes as u64), parsed_bytes, ..kept }
}
