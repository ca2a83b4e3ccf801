//! Three logs in memory: of slow calls, of large requests and of large replies. Each keeps its newest
//! entries, as many as a setting says. `commands/commandlog.rs` and `commands/slowlog.rs` show them.
//!
//! Every call is measured and compared with [`Bounds`] (in `dispatch`), so no slow one is missed; only a call
//! that passes a bound comes here, where it is copied under a lock. Arguments are shortened, and what is
//! secret is left out, as in Redis and Valkey.
use super::redact;
use super::registry::Row;
use super::session::ClientRecord;
use crate::state::config::{Config, LogRule, LogRules};
use command::Flags;
use net::Meter;
use resp::Args;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was measured of one call, and its arguments.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) time_ns: u64,
    pub(crate) args: Args<'a>,
    pub(crate) reply_bytes: usize,
}

/// A call below all of these bounds is in no log. To find that out costs three comparisons a call.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The least time that SLOWLOG or the latency monitor keeps, in ticks of the processor's counter.
    pub(crate) ticks: u64,
    /// Compared with the bytes of all requests that a connection has sent for a batch: none of them has more.
    pub(crate) request_bytes: usize,
    pub(crate) reply_bytes: usize,
}

impl Bounds {
    /// Nothing is logged.
    pub(crate) const NONE: Bounds =
        Bounds { ticks: u64::MAX, request_bytes: usize::MAX, reply_bytes: usize::MAX };

    /// The bounds that these settings make. A log that is off has none.
    pub(crate) fn of(config: &Config, meter: &Meter) -> Bounds {
        let rules = &config.command_log;
        let slow_ns = rules.slow.bound().map(|us| us.saturating_mul(1_000));
        let least_ns = slow_ns.into_iter().chain(config.latency_threshold_ns()).min();
        let bytes =
            |rule: LogRule| rule.bound().map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Bounds {
            ticks: least_ns.map_or(u64::MAX, |ns| meter.ticks(ns)),
            request_bytes: bytes(rules.large_request),
            reply_bytes: bytes(rules.large_reply),
        }
    }
}

/// Which of the three logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Slow,
    LargeRequest,
    LargeReply,
}

/// The three logs, by [`Type`].
#[derive(Default)]
pub(crate) struct CommandLog([Mutex<Entries>; 3]);

/// One log.
#[derive(Default)]
pub(crate) struct Entries {
    /// The newest first.
    pub(crate) list: VecDeque<Entry>,
    next_id: i64,
}

/// One call, as it is shown.
pub(crate) struct Entry {
    /// Grows with every entry and is never used again, not even after RESET.
    pub(crate) id: i64,
    pub(crate) time_s: i64,
    /// Microseconds in the slow log, bytes in the others.
    pub(crate) figure: i64,
    pub(crate) args: Vec<Vec<u8>>,
    /// The client's address. It is empty, and so is the name, of what a script has called, as in Redis.
    pub(crate) client: String,
    pub(crate) client_name: Vec<u8>,
}

impl CommandLog {
    /// Keeps a call in the logs whose bounds it passes: a client's, or None of a script. `time_s` is the wall
    /// clock. A lock and an allocation for each log that keeps it.
    pub(crate) fn note(
        &self,
        rules: &LogRules,
        row: &Row,
        call: &Measured<'_>,
        record: Option<&ClientRecord>,
        time_s: i64,
    ) {
        for (kind, entry) in entries_of(rules, row, call, record, time_s) {
            self.keep(rules, kind, entry);
        }
    }

    /// Puts an entry into its log.
    pub(crate) fn keep(&self, rules: &LogRules, kind: Type, entry: Entry) {
        self.entries(kind).add(entry, rule_of(rules, kind).entries_max);
    }

    /// One log, locked, to be shown.
    pub(crate) fn entries(&self, kind: Type) -> MutexGuard<'_, Entries> {
        self.0[kind as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many entries one log has.
    pub(crate) fn len(&self, kind: Type) -> usize {
        self.entries(kind).list.len()
    }

    /// Forgets all entries of one log; ids go on where they were.
    pub(crate) fn reset(&self, kind: Type) {
        self.entries(kind).list.clear();
    }
}

fn rule_of(rules: &LogRules, kind: Type) -> LogRule {
    match kind {
        Type::Slow => rules.slow,
        Type::LargeRequest => rules.large_request,
        Type::LargeReply => rules.large_reply,
    }
}

/// What a call is kept as, in each of the logs whose bounds it passes.
pub(crate) fn entries_of<'c>(
    rules: &'c LogRules,
    row: &'c Row,
    call: &'c Measured<'_>,
    record: Option<&'c ClientRecord>,
    time_s: i64,
) -> impl Iterator<Item = (Type, Entry)> + 'c {
    let figures = [
        (Type::Slow, call.time_ns / 1000),
        (Type::LargeRequest, call.args.framed_bytes() as u64),
        (Type::LargeReply, call.reply_bytes as u64),
    ];
    let is_kept = |(kind, figure): &(Type, u64)| rule_of(rules, *kind).keeps(*figure);
    let is_shown = !row.flags.has(Flags::SKIP_SLOWLOG);
    let entry = move |(kind, figure)| (kind, Entry::new(time_s, figure, row, &call.args, record));
    figures.into_iter().filter(move |figure| is_shown && is_kept(figure)).map(entry)
}

impl Entries {
    /// Puts an entry first, and forgets the oldest beyond `entries_max`.
    fn add(&mut self, entry: Entry, entries_max: i64) {
        self.list.push_front(Entry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.list.truncate(usize::try_from(entries_max).unwrap_or(usize::MAX));
    }
}

/// Redis's limits: so many arguments of a call are kept, and so many bytes of each.
const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

impl Entry {
    fn new(time_s: i64, figure: u64, row: &Row, args: &Args<'_>, record: Option<&ClientRecord>) -> Entry {
        Entry {
            id: 0,
            time_s,
            figure: i64::try_from(figure).unwrap_or(i64::MAX),
            args: shortened(redact::public(row, args), args.len()),
            client: record.map_or_else(String::new, |record| record.addresses().0),
            client_name: record.map_or_else(Vec::new, |record| record.details().logged_name().to_vec()),
        }
    }
}

/// The arguments as they are shown. If there are too many, the last text counts those that are left out.
fn shortened<'a>(args: impl Iterator<Item = &'a [u8]>, count: usize) -> Vec<Vec<u8>> {
    let shown = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    let mut texts: Vec<Vec<u8>> = args.take(shown).map(shortened_one).collect();
    if shown < count {
        texts.push(format!("... ({} more arguments)", count - shown).into_bytes());
    }
    texts
}

/// The beginning of a long argument, and how much of it is left out.
fn shortened_one(arg: &[u8]) -> Vec<u8> {
    let mut text = arg[..arg.len().min(ARG_BYTES_MAX)].to_vec();
    if arg.len() > ARG_BYTES_MAX {
        text.extend_from_slice(format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_requests_are_shown_by_their_beginning() {
        let words = vec![&b"x"[..]; 40];
        let shown = shortened(words.iter().copied(), 40);
        assert_eq!(shown.len(), 32);
        assert_eq!(shown[31], b"... (9 more arguments)");
        assert_eq!(shortened(words[..32].iter().copied(), 32).len(), 32);
        let long = [b'y'; 130];
        let shown = shortened([&long[..128], &long].into_iter(), 2);
        assert_eq!(shown[0], &long[..128]);
        assert_eq!(shown[1], [&long[..128], b"... (2 more bytes)"].concat());
    }

    #[test]
    fn a_log_keeps_the_newest_and_its_ids_go_on() {
        let mut entries = Entries::default();
        let entry = || Entry {
            id: 0,
            time_s: 1,
            figure: 2,
            args: Vec::new(),
            client: String::new(),
            client_name: Vec::new(),
        };
        (0..5).for_each(|_| entries.add(entry(), 3));
        let ids = |entries: &Entries| entries.list.iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids(&entries), [4, 3, 2]);
        entries.add(entry(), 1);
        assert_eq!(ids(&entries), [5]);
    }
}
