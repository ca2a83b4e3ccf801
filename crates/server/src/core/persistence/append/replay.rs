//! Runs the commands of an append-only file, one after the other, as they come from the disk.
//!
//! A transaction is run when its end has come. So a file that ends before that, or in the middle of a
//! command, as a crash may leave it, can be cut where its last whole command or transaction ends
//! ([`Replayed::good_bytes`]).
use crate::core::dispatch::{Executor, Request};
use crate::core::queue::{Queue, Queued};
use crate::core::registry::{Registry, Row};
use crate::core::server::Server;
use crate::state::config::reason;
use crate::state::persistence::Delay;
use base::hash::Hash;
use resp::{Args, Limits, Parsed, Parser, Protocol, Reply, Span};
use std::fs::File;
use std::io::Read;
use std::sync::atomic::Ordering::Relaxed;

/// So much is read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// So many commands are parsed before the first of them runs, so that the memory of their keys can be asked
/// for in time.
const COMMANDS_AT_ONCE: usize = 128;
/// How many commands ahead that is done.
const LEAF_AHEAD: usize = 16;
const ENTRY_AHEAD: usize = 8;
/// A line with a time is not longer.
const TIME_BYTES_MAX: usize = 128;

/// How far a file was run.
pub(super) struct Replayed {
    /// Up to where it consists of whole commands and transactions.
    pub(super) good_bytes: u64,
    /// How the rest is to be taken.
    pub(super) end: End,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is no rest.
    Whole,
    /// It ends too early.
    Truncated,
    /// It ends before a transaction does.
    InTransaction,
}

/// The commands that concern whoever reads the file, by `Row::number`.
struct Marks {
    begin: Option<usize>,
    end: Option<usize>,
    choose_db: Option<usize>,
}

impl Marks {
    fn of(registry: &Registry) -> Marks {
        let number = |name: &[u8]| registry.find(name).map(|row| row.number);
        Marks { begin: number(b"multi"), end: number(b"exec"), choose_db: number(b"select") }
    }
}

/// A command that is parsed and has not run.
struct Command<'s> {
    row: Option<&'s Row>,
    hash: Option<Hash>,
    spans_end: usize,
    /// Where it begins and ends in the buffer.
    start: usize,
    end: usize,
}

/// Why parsing has stopped.
enum Stop {
    /// Enough is parsed.
    Enough,
    /// More has to be read.
    Short,
    /// What is there is no command.
    Wrong(String),
}

/// One file of commands, which is being run.
pub(super) struct Replay<'s> {
    server: &'s Server,
    is_alone: bool,
    marks: Marks,
    reply: Reply,
    db: u16,
    file: File,
    parser: Parser,
    limits: Limits,
    buffer: Vec<u8>,
    /// The offset in the file of the buffer's first byte.
    first: u64,
    /// Where the next command to be parsed begins in the buffer.
    at: usize,
    spans: Vec<Span>,
    commands: Vec<Command<'s>>,
    /// The transaction that has begun, and where.
    open: Option<(u64, Queue)>,
    good_bytes: u64,
    delay: Delay,
}

impl<'s> Replay<'s> {
    /// Of this file, from where it stands, which is this offset. `is_alone`: the caller holds all gates.
    pub(super) fn new(server: &'s Server, file: File, first: u64, is_alone: bool) -> Replay<'s> {
        let mut reply = Reply::new(Protocol::Resp2);
        // Nobody reads the replies, so they are not written.
        reply.bound(0);
        Replay {
            server,
            is_alone,
            marks: Marks::of(&server.registry),
            reply,
            db: 0,
            file,
            parser: Parser::new(),
            limits: Limits { bulk_len_bytes_max: i64::MAX as u64, ..Limits::default() },
            buffer: Vec::new(),
            first,
            at: 0,
            spans: Vec::new(),
            commands: Vec::new(),
            open: None,
            good_bytes: first,
            delay: Delay::new(server.config().snapshots.load_delay),
        }
    }

    /// Runs it to its end. An error says what is wrong with it, and where.
    pub(super) fn run(mut self) -> Result<Replayed, String> {
        let mut executor = Executor::to_replay(self.server, self.is_alone);
        loop {
            let stop = self.parse();
            executor.replay_some(|executor| self.run_commands(executor))?;
            match stop {
                Stop::Enough => {}
                Stop::Wrong(what) => return Err(self.wrong(&what)),
                Stop::Short if self.read()? => {}
                Stop::Short => return Ok(self.ended()),
            }
            if self.server.is_stopping() {
                return Err("it was given up".into());
            }
        }
    }

    fn ended(&self) -> Replayed {
        let (good_bytes, end) = match &self.open {
            Some((begin, _)) if self.at == self.buffer.len() => (*begin, End::InTransaction),
            Some((begin, _)) => (*begin, End::Truncated),
            None if self.at == self.buffer.len() => (self.good_bytes, End::Whole),
            None => (self.good_bytes, End::Truncated),
        };
        Replayed { good_bytes, end }
    }

    fn wrong(&self, what: &str) -> String {
        format!("{what} (at byte {})", self.first + self.at as u64)
    }

    /// Reads more; false at the end of the file.
    fn read(&mut self) -> Result<bool, String> {
        self.buffer.drain(..self.at);
        self.first += self.at as u64;
        self.at = 0;
        // However much a command announces, room is made for what comes.
        let read = self.file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut self.buffer);
        let count = read.map_err(|error| self.wrong(&format!("it cannot be read: {}", reason(&error))))?;
        self.server.persistence.loading.read_bytes.fetch_add(count as u64, Relaxed);
        Ok(count > 0)
    }

    /// Parses some commands.
    fn parse(&mut self) -> Stop {
        self.commands.clear();
        self.spans.clear();
        while self.commands.len() < COMMANDS_AT_ONCE {
            let (start, rest) = (self.at, &self.buffer[self.at..]);
            match rest {
                [] | [b'*'] => return Stop::Short,
                [b'#', ..] => match rest.iter().take(TIME_BYTES_MAX).position(|byte| *byte == b'\n') {
                    Some(len) => {
                        self.at += len + 1;
                        if self.commands.is_empty() && self.open.is_none() {
                            self.good_bytes = self.first + self.at as u64;
                        }
                        continue;
                    }
                    None if rest.len() < TIME_BYTES_MAX => return Stop::Short,
                    None => return Stop::Wrong("a line is too long".into()),
                },
                [b'*', b'1'..=b'9', ..] => {}
                _ => return Stop::Wrong("Bad file format reading the append only file".into()),
            }
            let first_span = self.spans.len();
            match self.parser.parse_plain(&self.buffer, &mut self.at, &mut self.spans, &self.limits) {
                Ok(Some(Parsed::Request)) => {}
                Ok(Some(Parsed::Incomplete { .. })) => return Stop::Short,
                Ok(None) => return Stop::Wrong("Bad file format reading the append only file".into()),
                Err(error) => return Stop::Wrong(format!("{error}")),
            }
            let args = Args::new(&self.buffer, &self.spans[first_span..]);
            let row = self.server.registry.find(args.at(0));
            let key = row.and_then(Row::first_key).and_then(|at| args.get(at));
            let hash = key.map(|key| self.server.keyspace.hash(key));
            if let Some(hash) = hash {
                self.server.keyspace.prefetch_shard(hash);
            }
            self.commands.push(Command { row, hash, spans_end: self.spans.len(), start, end: self.at });
        }
        Stop::Enough
    }

    /// Runs what is parsed.
    fn run_commands(&mut self, executor: &mut Executor<'s>) -> Result<(), String> {
        let commands = std::mem::take(&mut self.commands);
        let buffer = std::mem::take(&mut self.buffer);
        let spans = std::mem::take(&mut self.spans);
        (0..LEAF_AHEAD).for_each(|index| self.prefetch_leaf(commands.get(index)));
        (0..ENTRY_AHEAD).for_each(|index| self.prefetch_entry(commands.get(index)));
        let mut first_span = 0;
        let done = commands.iter().enumerate().try_for_each(|(index, command)| {
            self.prefetch_leaf(commands.get(index + LEAF_AHEAD));
            self.prefetch_entry(commands.get(index + ENTRY_AHEAD));
            let args = Args::new(&buffer, &spans[first_span..command.spans_end]);
            first_span = command.spans_end;
            self.run_command(executor, command, args)
        });
        if let (Some(first), Some(last)) = (commands.first(), commands.last()) {
            let bytes = (last.end - first.start) as u64;
            self.server.persistence.loading.loaded_bytes.fetch_add(bytes, Relaxed);
        }
        (self.commands, self.buffer, self.spans) = (commands, buffer, spans);
        done
    }

    fn prefetch_leaf(&self, command: Option<&Command<'_>>) {
        if let Some(hash) = command.and_then(|command| command.hash) {
            self.server.keyspace.prefetch_hashed(self.db, hash);
        }
    }

    fn prefetch_entry(&self, command: Option<&Command<'_>>) {
        if let Some(hash) = command.and_then(|command| command.hash) {
            self.server.keyspace.prefetch_entry_hashed(self.db, hash);
        }
    }

    /// Runs a command, or keeps it until its transaction has ended.
    fn run_command(
        &mut self,
        executor: &mut Executor<'s>,
        command: &Command<'s>,
        args: Args<'_>,
    ) -> Result<(), String> {
        let (start, end) = (self.first + command.start as u64, self.first + command.end as u64);
        let unknown = || {
            let name = args.at(0).escape_ascii();
            format!("Unknown command '{name}' reading the append only file (at byte {start})")
        };
        let row = command.row.ok_or_else(unknown)?;
        let number = Some(row.number);
        if number == self.marks.begin {
            self.open = Some((start, Queue::new()));
            return Ok(());
        }
        if number == self.marks.end {
            let (_, queue) =
                self.open.take().ok_or_else(|| format!("EXEC without MULTI (at byte {start})"))?;
            for queued in queue.iter() {
                self.run_queued(executor, &queued).ok_or_else(unknown)?;
            }
        } else if let Some((_, queue)) = &mut self.open {
            queue.push((row.number, row.flags), command.hash, &args);
            return Ok(());
        } else {
            let queued = Queued { row: row.number, hash: command.hash, args };
            self.run_queued(executor, &queued).ok_or_else(unknown)?;
        }
        self.good_bytes = end;
        Ok(())
    }

    /// Runs a command; None if it is none.
    fn run_queued(&mut self, executor: &mut Executor<'s>, queued: &Queued<'_>) -> Option<()> {
        let Queued { row, hash, args } = *queued;
        let row = self.server.registry.row(row);
        self.delay.pass();
        if Some(row.number) == self.marks.choose_db {
            let db = args.get(1).and_then(base::text::parse_i64).and_then(|db| u16::try_from(db).ok());
            self.db = db.filter(|db| *db < self.server.keyspace.databases())?;
            return Some(());
        }
        let request = Request { row: Some(row), hash, args };
        executor.replay(self.db, &request, &mut self.reply).ok()
    }
}
