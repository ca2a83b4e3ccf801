//! Which calls were slow, and which requests and replies large: three logs in memory, each of the last so many entries.
//! COMMANDLOG is Valkey's form of all three; SLOWLOG (in `slowlog`) Redis's of the first, under its older names.
//!
//! Every call is measured and compared with [`Bounds`] (in `dispatch`), so no slow one is missed; only one that passes a
//! bound comes here, where it is copied under a lock. Arguments are shortened, and what is secret is left out, as the
//! peers do.
use super::{client, help};
use crate::core::call::{ROW, ServerCall, ServerCommand, ServerRun};
use crate::core::redact;
use crate::core::registry::Row;
use crate::core::session::ClientRecord;
use crate::state::config::{Config, LogRule, LogRules};
use command::{Arg, Arity, Doc, Done, Error, Flags, Group};
use net::Meter;
use resp::Args;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was measured of one call.
#[derive(Clone, Copy)]
pub(crate) struct Measured<'a> {
    pub(crate) time_ns: u64,
    pub(crate) args: Args<'a>,
    pub(crate) reply_bytes: usize,
}

/// Below all of these nobody wants to know of a call.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) ticks: u64,
    /// Of all that one connection has sent for a batch.
    pub(crate) request_bytes: usize,
    pub(crate) reply_bytes: usize,
}

impl Bounds {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Slow,
    LargeRequest,
    LargeReply,
}

const TYPES: [(&str, Type); 3] =
    [("slow", Type::Slow), ("large-request", Type::LargeRequest), ("large-reply", Type::LargeReply)];

/// The three logs, by [`Type`].
#[derive(Default)]
pub(crate) struct CommandLog([Mutex<Entries>; 3]);

#[derive(Default)]
struct Entries {
    /// The newest first.
    list: VecDeque<Entry>,
    next_id: i64,
}

struct Entry {
    id: i64,
    time_s: i64,
    /// Microseconds, or bytes.
    figure: i64,
    args: Vec<Vec<u8>>,
    client: String,
    client_name: Vec<u8>,
}

impl CommandLog {
    /// Keeps a call in the logs whose bounds it passes.
    pub(crate) fn note(
        &self,
        rules: &LogRules,
        row: &Row,
        call: &Measured<'_>,
        record: &ClientRecord,
        time_s: i64,
    ) {
        if row.flags.has(Flags::SKIP_SLOWLOG) {
            return;
        }
        let figures = [
            (Type::Slow, rules.slow, call.time_ns / 1000),
            (Type::LargeRequest, rules.large_request, call.args.framed_bytes() as u64),
            (Type::LargeReply, rules.large_reply, call.reply_bytes as u64),
        ];
        for (kind, rule, figure) in figures {
            if rule.keeps(figure) {
                let entry = Entry::new(time_s, figure, row, &call.args, record);
                self.entries(kind).add(entry, rule.entries_max);
            }
        }
    }

    fn entries(&self, kind: Type) -> MutexGuard<'_, Entries> {
        self.0[kind as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self, kind: Type) -> usize {
        self.entries(kind).list.len()
    }

    /// Ids go on where they were.
    pub(crate) fn reset(&self, kind: Type) {
        self.entries(kind).list.clear();
    }
}

impl Entries {
    fn add(&mut self, entry: Entry, entries_max: i64) {
        self.list.push_front(Entry { id: self.next_id, ..entry });
        self.next_id += 1;
        self.list.truncate(usize::try_from(entries_max).unwrap_or(usize::MAX));
    }
}

const ARGS_MAX: usize = 32;
const ARG_BYTES_MAX: usize = 128;

impl Entry {
    fn new(time_s: i64, figure: u64, row: &Row, args: &Args<'_>, record: &ClientRecord) -> Entry {
        Entry {
            id: 0,
            time_s,
            figure: i64::try_from(figure).unwrap_or(i64::MAX),
            args: shortened(redact::public(row, args), args.len()),
            client: client::address(record),
            client_name: record.details().name.clone(),
        }
    }
}

/// The arguments as they are shown; the last place may be taken by a count of what is left out.
fn shortened<'a>(args: impl Iterator<Item = &'a [u8]>, count: usize) -> Vec<Vec<u8>> {
    let shown = if count > ARGS_MAX { ARGS_MAX - 1 } else { count };
    let mut texts: Vec<Vec<u8>> = args.take(shown).map(shortened_one).collect();
    if shown < count {
        texts.push(format!("... ({} more arguments)", count - shown).into_bytes());
    }
    texts
}

fn shortened_one(arg: &[u8]) -> Vec<u8> {
    let mut text = arg[..arg.len().min(ARG_BYTES_MAX)].to_vec();
    if arg.len() > ARG_BYTES_MAX {
        text.extend_from_slice(format!("... ({} more bytes)", arg.len() - ARG_BYTES_MAX).as_bytes());
    }
    text
}

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[&COMMANDLOG]);

const COMMANDLOG: ServerCommand = ServerCommand {
    name: "COMMANDLOG",
    arity: Arity::AtLeast(2),
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Holds the commands that read the logs of slow and large calls.",
        complexity: "Depends on subcommand.",
        ..Doc::NEW
    },
    subcommands: &[&GET, &HELP, &LEN, &RESET],
    run: ServerRun::Container,
    ..ROW
};

const TYPE_ARG: Arg =
    Arg::one_of("type", &[Arg::str("slow"), Arg::str("large-request"), Arg::str("large-reply")]);

const GET: ServerCommand = ServerCommand {
    name: "GET",
    arity: Arity::Exactly(4),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Answers the newest entries of a log.",
        complexity: "O(N) where N is the number of entries returned",
        args: &[Arg::int("count"), TYPE_ARG],
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Shared(get),
    ..ROW
};

/// The flags of both containers' commands: scripts may use them.
pub(crate) const ADMIN_NOT_SCRIPT_BOUND: Flags = Flags::ADMIN.or(Flags::LOADING).or(Flags::STALE);

const LEN: ServerCommand = ServerCommand {
    name: "LEN",
    arity: Arity::Exactly(3),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Answers how many entries a log holds.",
        complexity: "O(1)",
        args: &[TYPE_ARG],
        tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
        ..Doc::NEW
    },
    run: ServerRun::Shared(len),
    ..ROW
};

const RESET: ServerCommand = ServerCommand {
    name: "RESET",
    arity: Arity::Exactly(3),
    flags: ADMIN_NOT_SCRIPT_BOUND,
    doc: Doc {
        group: Group::Server,
        since: "8.1.0",
        summary: "Empties a log.",
        complexity: "O(N) where N is the number of entries in the commandlog",
        args: &[TYPE_ARG],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        ..Doc::NEW
    },
    run: ServerRun::Shared(reset),
    ..ROW
};

const HELP: ServerCommand = ServerCommand {
    name: "HELP",
    arity: Arity::Exactly(2),
    flags: Flags::LOADING.or(Flags::STALE),
    doc: help::doc(Group::Server, "8.1.0"),
    run: ServerRun::Shared(help),
    ..ROW
};

fn get(call: &mut ServerCall<'_>) -> Done {
    let count = count(call.args.at(2))?;
    reply_entries(call, parse_type(call.args.at(3))?, count);
    Ok(())
}

/// How many entries are asked for: -1 asks for all.
pub(crate) fn count(word: &[u8]) -> Result<usize, Error> {
    match base::text::parse_i64(word) {
        Some(-1) => Ok(usize::MAX),
        Some(n @ 0..) => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
        _ => Err(Error::custom("ERR count should be greater than or equal to -1")),
    }
}

pub(crate) fn reply_entries(call: &mut ServerCall<'_>, kind: Type, count: usize) {
    let entries = call.shared.command_log.entries(kind);
    let reply = &mut *call.reply;
    reply.array(entries.list.len().min(count));
    for entry in entries.list.iter().take(count) {
        reply.array(6);
        reply.int(entry.id);
        reply.int(entry.time_s);
        reply.int(entry.figure);
        reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| reply.bulk(arg));
        reply.bulk(entry.client.as_bytes());
        reply.bulk(&entry.client_name);
    }
}

fn parse_type(word: &[u8]) -> Result<Type, Error> {
    let found = TYPES.iter().find(|(name, _)| name.as_bytes().eq_ignore_ascii_case(word));
    let wrong = || Error::custom("ERR type should be one of the following: slow, large-request, large-reply");
    found.map(|(_, kind)| *kind).ok_or_else(wrong)
}

fn len(call: &mut ServerCall<'_>) -> Done {
    let kind = parse_type(call.args.at(2))?;
    call.reply.int(call.shared.command_log.len(kind) as i64);
    Ok(())
}

fn reset(call: &mut ServerCall<'_>) -> Done {
    let kind = parse_type(call.args.at(2))?;
    call.shared.command_log.reset(kind);
    call.reply.ok();
    Ok(())
}

fn help(call: &mut ServerCall<'_>) -> Done {
    help::reply(
        call.reply,
        "COMMANDLOG",
        &[
            "GET <count> <type>",
            "    Answer the newest <count> entries of a log, all with -1. The types are slow,",
            "    large-request and large-reply. An entry is an id, the time, how many",
            "    microseconds (slow) or bytes, the arguments, the client's address and name.",
            "LEN <type>",
            "    Answer how many entries a log holds.",
            "RESET <type>",
            "    Empty a log.",
        ],
    );
    Ok(())
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
