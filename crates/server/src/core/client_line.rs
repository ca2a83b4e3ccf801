//! A client in one line: what CLIENT LIST and CLIENT INFO answer, and what the log says of a client that is
//! closed.
use super::address::{Side, append_address};
use super::client_memory::bytes_of;
use super::registry::Registry;
use super::session::{ClientDetails, ClientRecord};
use super::tracking::TrackingFlags;
use std::sync::atomic::Ordering::Relaxed;

/// What is kept of a client's requests: bytes that have arrived and have not run, room behind them, and
/// arguments that are parsed already.
#[derive(Clone, Copy)]
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
    write(record, &record.details(), query, (registry, now_ms), out);
}

fn write(
    record: &ClientRecord,
    details: &ClientDetails,
    query: Query,
    (registry, now_ms): (&Registry, i64),
    out: &mut Vec<u8>,
) {
    let seconds_since = |then_ms: i64| (now_ms - then_ms).max(0) / 1000;
    let output = record.output_buffer_bytes.load(Relaxed);
    let command = match record.last_row.load(Relaxed) {
        ClientRecord::NO_COMMAND => "NULL",
        number => &registry.row(number as usize).full_name,
    };
    let [sub, psub, ssub] = record.subscriptions.each_ref().map(|count| u64::from(count.load(Relaxed)));
    let mut line = Line(out);
    line.number("id=", record.id);
    line.text(" addr=", b"");
    append_address(&record.peer, Side::Theirs, line.0);
    line.text(" laddr=", b"");
    append_address(&record.peer, Side::Ours, line.0);
    line.integer(" fd=", record.fd.into());
    line.text(" name=", &details.name);
    line.integer(" age=", seconds_since(record.created_ms));
    line.integer(" idle=", seconds_since(record.last_active_ms.load(Relaxed)));
    line.text(" flags=", b"");
    append_flags(record, details, line.0);
    line.number(" db=", details.db.into());
    line.number(" sub=", sub);
    line.number(" psub=", psub);
    line.number(" ssub=", ssub);
    line.integer(" multi=", record.queued.load(Relaxed));
    line.number(" watch=", record.watched_keys());
    line.number(" qbuf=", query.len_bytes);
    line.number(" qbuf-free=", query.free_bytes);
    line.number(" argv-mem=", query.parsed_bytes);
    line.number(" multi-mem=", record.queue_bytes.load(Relaxed));
    line.number(" rbs=0 rbp=0 obl=0 oll=", u64::from(output > 0));
    line.number(" omem=", output);
    line.number(" tot-mem=", bytes_of(record));
    line.text(" events=", if output > 0 { b"rw" } else { b"r" });
    line.text(" cmd=", command.as_bytes());
    line.text(" user=", &details.user);
    line.integer(" redir=", redirect(record));
    line.text(" resp=", if details.is_resp3 { b"3" } else { b"2" });
    line.text(" lib-name=", &details.lib_name);
    line.text(" lib-ver=", &details.lib_ver);
    line.number(" io-thread=", record.worker as u64);
    line.0.push(b'\n');
}

/// A line that grows. Lists may have very many, so nothing is allocated for a field.
struct Line<'o>(&'o mut Vec<u8>);

impl Line<'_> {
    fn text(&mut self, name: &str, text: &[u8]) {
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(text);
    }

    fn integer(&mut self, name: &str, value: i64) {
        self.0.extend_from_slice(name.as_bytes());
        base::text::append_i64(self.0, value);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.integer(name, i64::try_from(value).unwrap_or(i64::MAX));
    }
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
fn append_flags(record: &ClientRecord, details: &ClientDetails, out: &mut Vec<u8>) {
    let tracking = record.tracker.get().map_or(TrackingFlags::default(), |tracker| tracker.flags());
    let marks = [
        (details.is_monitor, b'O'),
        (record.is_subscribed(), b'P'),
        (record.queued.load(Relaxed) != ClientRecord::NO_TRANSACTION, b'x'),
        (record.is_parked.load(Relaxed), b'b'),
        (tracking.has(TrackingFlags::ON), b't'),
        (tracking.has(TrackingFlags::BROKEN), b'R'),
        (tracking.has(TrackingFlags::BCAST), b'B'),
        (record.is_watch_broken(), b'd'),
        (record.is_closing.load(Relaxed), b'c'),
        (record.is_killed.load(Relaxed), b'A'),
        (matches!(record.peer, net::Peer::Unix { .. }), b'U'),
        (details.is_spared, b'e'),
        (details.is_touchless, b'T'),
    ];
    let before = out.len();
    out.extend(marks.iter().filter(|(is, _)| *is).map(|(_, letter)| *letter));
    if out.len() == before {
        out.push(b'N');
    }
}
