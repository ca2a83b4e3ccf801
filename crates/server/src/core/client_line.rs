//! A client in one line: what CLIENT LIST and CLIENT INFO answer, and what the log says of a client that is
//! closed.
use super::client_memory::bytes_of;
use super::registry::Registry;
use super::session::{ClientDetails, ClientRecord};
use super::tracking::TrackingFlags;
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// What is kept of a client's requests: bytes that have arrived and have not run, room behind them, and
/// arguments that are parsed already.
pub(crate) struct Query {
    pub(crate) len_bytes: u64,
    pub(crate) free_bytes: u64,
    pub(crate) parsed_bytes: u64,
}

impl Query {
    /// What is kept for a client between two batches, as its worker noted it last.
    pub(crate) fn kept(record: &ClientRecord) -> Query {
        let (len_bytes, parsed_bytes) =
            (record.query_len_bytes.load(Relaxed), record.query_parsed_bytes.load(Relaxed));
        let free_bytes = record.query_buffer_bytes.load(Relaxed).saturating_sub(len_bytes + parsed_bytes);
        Query { len_bytes, free_bytes, parsed_bytes }
    }
}

/// Appends one line of CLIENT LIST, its line feed included. Fields of mechanisms that Sardine does not have
/// yet show what a client shows that does not use them. `now_ms` is the steady time.
pub(crate) fn describe(
    record: &ClientRecord,
    query: Query,
    registry: &Registry,
    now_ms: i64,
    out: &mut Vec<u8>,
) {
    let details = record.details().clone();
    write(record, &details, query, (registry, now_ms), out);
}

fn write(
    record: &ClientRecord,
    details: &ClientDetails,
    query: Query,
    (registry, now_ms): (&Registry, i64),
    out: &mut Vec<u8>,
) {
    let (addr, laddr) = record.addresses();
    let seconds_since = |then_ms: i64| (now_ms - then_ms).max(0) / 1000;
    let Query { len_bytes: query, free_bytes: query_free, parsed_bytes: parsed } = query;
    let output = record.output_buffer_bytes.load(Relaxed);
    let events = if output > 0 { "rw" } else { "r" };
    let command = match record.last_row.load(Relaxed) {
        ClientRecord::NO_COMMAND => "NULL",
        number => &registry.row(number as usize).full_name,
    };
    let [sub, psub, ssub] = record.subscriptions.each_ref().map(|count| count.load(Relaxed));
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
        " sub={sub} psub={psub} ssub={ssub} multi={} watch={} qbuf={query} qbuf-free={query_free} \
         argv-mem={parsed} multi-mem={} rbs=0 rbp=0 obl=0 oll={} omem={output} tot-mem={} events={events} \
         cmd={command} user={} redir={} resp={} lib-name={} lib-ver={} io-thread={}",
        record.queued.load(Relaxed),
        record.watched_keys(),
        record.queue_bytes.load(Relaxed),
        u8::from(output > 0),
        bytes_of(record),
        lossy(&details.user),
        redirect(record),
        if details.is_resp3 { 3 } else { 2 },
        lossy(&details.lib_name),
        lossy(&details.lib_ver),
        record.worker,
    );
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// A client's line as text, without the line's end, for the log and for ACL LOG, which keep it. Of a name,
/// which a client may choose as long as it likes, it has the beginning.
pub(crate) fn line_of(record: &ClientRecord, registry: &Registry, now_ms: i64) -> String {
    let mut line = Vec::new();
    let details = record.details().shortened();
    write(record, &details, Query::kept(record), (registry, now_ms), &mut line);
    String::from_utf8_lossy(&line).trim_end().to_owned()
}

/// The client that is told what this one tracks: 0 for itself, -1 where it tracks nothing.
fn redirect(record: &ClientRecord) -> i64 {
    let redirect = record.tracker.get().and_then(|tracker| tracker.redirect());
    redirect.map_or(-1, |client| client as i64)
}

/// Redis's letters, one for each thing that is special about a client; `N` where nothing is.
fn flags(record: &ClientRecord) -> String {
    let details = record.details();
    let tracking = record.tracker.get().map_or(TrackingFlags::default(), |tracker| tracker.flags());
    let marks = [
        (details.is_monitor, 'O'),
        (record.is_subscribed(), 'P'),
        (record.queued.load(Relaxed) != ClientRecord::NO_TRANSACTION, 'x'),
        (record.is_parked.load(Relaxed), 'b'),
        (tracking.has(TrackingFlags::ON), 't'),
        (tracking.has(TrackingFlags::BROKEN), 'R'),
        (tracking.has(TrackingFlags::BCAST), 'B'),
        (record.is_watch_broken(), 'd'),
        (record.is_closing.load(Relaxed), 'c'),
        (record.is_killed.load(Relaxed), 'A'),
        (matches!(record.peer, net::Peer::Unix { .. }), 'U'),
        (details.is_spared, 'e'),
        (details.is_touchless, 'T'),
    ];
    let flags: String = marks.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter).collect();
    if flags.is_empty() { "N".into() } else { flags }
}
