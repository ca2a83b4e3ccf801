//! CLIENT LIST and CLIENT INFO: a line for each connection, from the records that every worker may read.
use super::memory::bytes_of;
use super::{ABOUT, PER_CLIENT, SUB};
use crate::core::call::{ADMIN, ServerCall, ServerCommand, ServerRun};
use crate::core::registry::Registry;
use crate::core::session::ClientRecord;
use command::{Arg, Arity, Doc, Done, Error};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) const INFO: ServerCommand = ServerCommand {
    name: "INFO",
    doc: Doc {
        since: "6.2.0",
        summary: "Describes this connection, as a line of CLIENT LIST.",
        tips: &["nondeterministic_output"],
        ..ABOUT
    },
    run: ServerRun::Shared(info),
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
    run: ServerRun::Shared(list),
    ..SUB
};

const LIST_TYPES: &[Arg] = &[
    Arg::word("normal", "NORMAL"),
    Arg::word("master", "MASTER"),
    Arg::word("replica", "REPLICA"),
    Arg::word("pubsub", "PUBSUB"),
];

/// TYPE's values. Only normal clients exist so far; the others are names for nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientType {
    Normal,
    Other,
}

pub(super) fn client_type(word: &[u8]) -> Result<ClientType, Error> {
    match word.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(ClientType::Other),
        _ => {
            let word = String::from_utf8_lossy(word);
            Err(Error::custom(format!("ERR Unknown client type '{word}'")))
        }
    }
}

fn info(call: &mut ServerCall<'_>) -> Done {
    let mut out = Vec::new();
    let record = &call.session.record;
    describe(record, Query::of(record, call), &call.shared.registry, call.steady.0, &mut out);
    call.reply.verbatim("txt", &out);
    Ok(())
}

fn list(call: &mut ServerCall<'_>) -> Done {
    let chosen = chosen_cards(call)?;
    let mut out = Vec::new();
    for record in chosen {
        describe(&record, Query::of(&record, call), &call.shared.registry, call.steady.0, &mut out);
        // A client may be named again and again.
        if out.len() > call.reply.spare_bytes() {
            break;
        }
    }
    call.reply.verbatim("txt", &out);
    Ok(())
}

fn chosen_cards(call: &ServerCall<'_>) -> Result<Vec<Arc<ClientRecord>>, Error> {
    let all = || call.shared.clients().values().cloned().collect();
    let option = call.args.get(2).map(<[u8]>::to_ascii_lowercase);
    match (option.as_deref(), call.args.len()) {
        (None, _) => Ok(all()),
        (Some(b"type"), 4) => match client_type(call.args.at(3))? {
            ClientType::Normal => Ok(all()),
            ClientType::Other => Ok(Vec::new()),
        },
        (Some(b"id"), 4..) => {
            let invalid = || Error::custom("ERR Invalid client ID");
            let ids = call.args.iter_from(3).map(|a| base::text::parse_i64(a).ok_or_else(invalid));
            let ids = ids.collect::<Result<Vec<i64>, Error>>()?;
            let clients = call.shared.clients();
            Ok(ids.iter().filter_map(|id| clients.get(&u64::try_from(*id).ok()?).cloned()).collect())
        }
        _ => Err(Error::syntax()),
    }
}

/// What there is of a client's requests: text that has arrived, room behind it, and arguments that are known.
struct Query {
    len_bytes: u64,
    free_bytes: u64,
    parsed_bytes: u64,
}

impl Query {
    /// What is kept for a client of requests that have not run.
    fn kept(record: &ClientRecord) -> Query {
        let (len_bytes, parsed_bytes) =
            (record.query_len_bytes.load(Relaxed), record.query_parsed_bytes.load(Relaxed));
        let free_bytes = record.query_buffer_bytes.load(Relaxed).saturating_sub(len_bytes + parsed_bytes);
        Query { len_bytes, free_bytes, parsed_bytes }
    }

    /// The client that asks has the pipeline that is being served as well, which lies in its worker's buffer, and the arguments of this
    /// very request.
    fn of(record: &ClientRecord, call: &ServerCall<'_>) -> Query {
        let kept = Query::kept(record);
        if record.id != call.session.record.id {
            return kept;
        }
        let parsed_bytes = call.args.iter_from(0).map(|arg| arg.len() as u64).sum();
        Query { len_bytes: kept.len_bytes.max(call.request_bytes as u64), parsed_bytes, ..kept }
    }
}

/// One line of CLIENT LIST. Fields of mechanisms that a client cannot be using have the value of a client that does not
/// use them.
fn describe(record: &ClientRecord, query: Query, registry: &Registry, now_ms: i64, out: &mut Vec<u8>) {
    let (addr, laddr) = record.addresses();
    let seconds_since = |then_ms: i64| (now_ms - then_ms).max(0) / 1000;
    let details = record.details().clone();
    let Query { len_bytes: query, free_bytes: query_free, parsed_bytes: parsed } = query;
    let output = record.output_buffer_bytes.load(Relaxed);
    let events = if output > 0 { "rw" } else { "r" };
    let command = match record.last_row.load(Relaxed) {
        ClientRecord::NO_COMMAND => "NULL",
        number => &registry.row(number as usize).full_name,
    };
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut line = format!(
        "id={} addr={addr} laddr={laddr} fd={} name={} age={} idle={} flags={} db={}",
        record.id,
        record.fd,
        lossy(&details.name),
        seconds_since(record.created_ms),
        seconds_since(record.last_active_ms.load(Relaxed)),
        flags(record),
        details.db,
    );
    let _ = write!(
        line,
        " sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf={query} qbuf-free={query_free} argv-mem={parsed} multi-mem=0 rbs=0 \
         rbp=0 obl=0 oll={} omem={output} tot-mem={} events={events} cmd={command} user={} redir=-1 resp={} lib-name={} \
         lib-ver={} io-thread={}",
        u8::from(output > 0),
        bytes_of(record),
        details.user,
        if details.is_resp3 { 3 } else { 2 },
        lossy(&details.lib_name),
        lossy(&details.lib_ver),
        record.worker,
    );
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// The same without the line's end, for the log.
pub(crate) fn line_of(record: &ClientRecord, registry: &Registry, now_ms: i64) -> String {
    let mut line = Vec::new();
    describe(record, Query::kept(record), registry, now_ms, &mut line);
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

/// Redis's letters.
fn flags(record: &ClientRecord) -> String {
    let details = record.details();
    let marks = [
        (details.is_monitor, 'O'),
        (record.is_parked.load(Relaxed), 'b'),
        (record.is_killed.load(Relaxed), 'A'),
        (matches!(record.peer, net::Peer::Unix { .. }), 'U'),
        (details.is_spared, 'e'),
        (details.is_touchless, 'T'),
    ];
    let flags: String = marks.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
    if flags.is_empty() { "N".into() } else { flags }
}
