//! Runs the commands of an append-only file as they come from the disk: one after the other, or those of
//! single keys on several threads (`chunk.rs`).
//!
//! A transaction is run when its end has come. So a file that ends before that, or in the middle of a
//! command, as a crash may leave it, can be cut where its last whole command or transaction ends
//! ([`Replayed::good_bytes`]).
use super::chunk::{COMMANDS_MIN, Chunk, Command, ENTRY_AHEAD, Helpers, LEAF_AHEAD, unread_reply};
use crate::core::dispatch::{Executor, Request};
use crate::core::error::NotRun;
use crate::core::queue::{Queue, Queued};
use crate::core::registry::{Registry, Row};
use crate::core::server::Server;
use crate::state::config::reason;
use crate::state::log::Seldom;
use crate::state::persistence::Delay;
use resp::{Args, Framing, Limits, Parsed, Parser, Reply};
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// So much is read at a time.
const READ_BYTES: usize = 1 << 20;
/// So many commands are parsed before the first of them runs, so that the memory of their keys can be asked
/// for in time.
const COMMANDS_AT_ONCE: usize = 128;
/// Where several threads run them: the more there are, the more of them come to the same leaf. But the
/// threads begin when the first chunk is parsed, so it is a part of the file.
const COMMANDS_FOR_ALL: usize = 1 << 20;
const CHUNKS_OF_A_FILE: u64 = 6;
const CHUNK_BYTES_MAX: u64 = 64 << 20;
const COMMANDS_FOR_ONE: usize = 1 << 10;
/// What no server writes stands in the file.
const BAD_FORMAT: &str = "Bad file format reading the append only file: make a backup of it, then use sardine check \
                          --fix <filename.manifest>";
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

/// Why parsing has stopped.
enum Stop {
    /// Enough is parsed.
    Enough,
    /// More has to be read.
    Short,
    /// There is no more.
    Ended,
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
    /// What is parsed, or will be.
    chunk: Chunk<'s>,
    /// One that has been run, for its room.
    spare: Option<Chunk<'s>>,
    /// Where the next command to be parsed begins in the chunk.
    at: usize,
    /// So many are parsed at a time, or so many bytes.
    commands_max: usize,
    chunk_bytes: usize,
    /// The transaction that has begun, and where.
    open: Option<(u64, Queue)>,
    good_bytes: u64,
    /// What is said of MULTI and EXEC that do not belong together, of which a file may have millions.
    unpaired: Seldom,
    delay: Delay,
}

impl<'s> Replay<'s> {
    /// Of this file, from where it stands, which is this offset. `is_alone`: the caller holds all gates.
    pub(super) fn new(server: &'s Server, file: File, first: u64, is_alone: bool) -> Replay<'s> {
        Replay {
            server,
            is_alone,
            marks: Marks::of(&server.registry),
            reply: unread_reply(),
            db: 0,
            file,
            parser: Parser::new(),
            limits: Limits { bulk_len_bytes_max: i64::MAX as u64, ..Limits::default() },
            chunk: Chunk { first, ..Chunk::default() },
            spare: None,
            at: 0,
            commands_max: COMMANDS_AT_ONCE,
            chunk_bytes: READ_BYTES,
            open: None,
            good_bytes: first,
            unpaired: Seldom::default(),
            delay: Delay::new(server.config().snapshots.load_delay),
        }
    }

    /// Runs it to its end, on so many threads beside this one. An error says what is wrong with it, and
    /// where.
    pub(super) fn run(mut self, threads: usize) -> Result<Replayed, String> {
        // Whoever delays every key wants them one after the other.
        let helpers = if self.delay.is_set() { 0 } else { threads };
        if helpers > 0 {
            let len = self.file.metadata().map_or(0, |about| about.len());
            self.commands_max = COMMANDS_FOR_ALL;
            self.chunk_bytes = (len / CHUNKS_OF_A_FILE).clamp(READ_BYTES as u64, CHUNK_BYTES_MAX) as usize;
        }
        std::thread::scope(|scope| {
            let helpers = Helpers::start(scope, self.server, (helpers, self.is_alone));
            let mut helpers = helpers.map_err(|error| format!("no thread to load it: {}", reason(&error)))?;
            self.run_all(&mut helpers)
        })
    }

    fn run_all(&mut self, helpers: &mut Helpers<'s>) -> Result<Replayed, String> {
        let mut executor = Executor::to_replay(self.server, 0, self.is_alone);
        loop {
            let stop = self.parse()?;
            self.run_commands(&mut executor, helpers)?;
            match stop {
                Stop::Enough | Stop::Short => {}
                Stop::Wrong(what) => {
                    self.finish(helpers)?;
                    return Err(self.wrong(&what));
                }
                Stop::Ended => {
                    self.finish(helpers)?;
                    return self.ended();
                }
            }
            if self.server.is_stopping() {
                return Err("it was given up".into());
            }
        }
    }

    fn ended(&self) -> Result<Replayed, String> {
        if self.commands_follow() {
            return Err(self.wrong(
                "Bad file format reading the append only file: a command is said to reach beyond the end, and whole \
                 commands follow it",
            ));
        }
        let (good_bytes, end) = match &self.open {
            Some((begin, _)) if self.at == self.chunk.buffer.len() => (*begin, End::InTransaction),
            Some((begin, _)) => (*begin, End::Truncated),
            None if self.at == self.chunk.buffer.len() => (self.good_bytes, End::Whole),
            None => (self.good_bytes, End::Truncated),
        };
        Ok(Replayed { good_bytes, end })
    }

    /// Whether the file ends with whole commands that stand behind the beginning of the one which it is too
    /// short for. A crash does not leave that, but a length that was damaged does; and whoever cuts the file
    /// there loses them all.
    fn commands_follow(&self) -> bool {
        let rest = &self.chunk.buffer[self.at..];
        let next = |from: usize| Some(from + rest[from..].windows(2).position(|pair| pair == b"\n*")? + 1);
        let mut from = 0;
        while let Some(begin) = next(from) {
            let whole = self.whole_commands(&rest[begin..]);
            from = begin + whole;
            if from == rest.len() {
                return true;
            }
        }
        false
    }

    /// So many bytes are whole commands.
    fn whole_commands(&self, bytes: &[u8]) -> usize {
        let (mut parser, mut spans, mut whole) = (Parser::new(), Vec::new(), 0);
        loop {
            let mut at = whole;
            spans.clear();
            match bytes.get(at) {
                Some(b'*') => match parser.parse_plain(bytes, &mut at, &mut spans, &self.limits) {
                    Ok(Some(Parsed::Request(_))) => whole = at,
                    _ => return whole,
                },
                Some(b'#') => match bytes[at..].iter().position(|byte| *byte == b'\n') {
                    Some(len) => whole += len + 1,
                    None => return whole,
                },
                _ => return whole,
            }
        }
    }

    fn wrong(&self, what: &str) -> String {
        format!("{what} (at byte {})", self.chunk.first + self.at as u64)
    }

    /// Reads more; false at the end of the file.
    fn read(&mut self) -> Result<bool, String> {
        // However much a command announces, room is made for what comes.
        let read = self.file.by_ref().take(READ_BYTES as u64).read_to_end(&mut self.chunk.buffer);
        let count = read.map_err(|error| self.wrong(&format!("it cannot be read: {}", reason(&error))))?;
        self.server.persistence.loading.read_bytes.fetch_add(count as u64, Relaxed);
        Ok(count > 0)
    }

    /// Reads and parses a part of the file: a command at least, however long it is, but at its end.
    fn parse(&mut self) -> Result<Stop, String> {
        loop {
            let stop = self.parse_what_is_read();
            let is_much = !self.chunk.commands.is_empty() && self.chunk.buffer.len() >= self.chunk_bytes;
            match stop {
                Stop::Short if is_much => return Ok(Stop::Enough),
                Stop::Short if self.read()? => {}
                Stop::Short => return Ok(Stop::Ended),
                stop => return Ok(stop),
            }
        }
    }

    /// Parses more commands.
    fn parse_what_is_read(&mut self) -> Stop {
        let Chunk { first, buffer, spans, commands } = &mut self.chunk;
        while commands.len() < self.commands_max {
            let (start, rest) = (self.at, &buffer[self.at..]);
            match rest {
                [] | [b'*'] => return Stop::Short,
                [b'#', ..] => match rest.iter().take(TIME_BYTES_MAX).position(|byte| *byte == b'\n') {
                    Some(len) => {
                        self.at += len + 1;
                        if commands.is_empty() && self.open.is_none() {
                            self.good_bytes = *first + self.at as u64;
                        }
                        continue;
                    }
                    None if rest.len() < TIME_BYTES_MAX => return Stop::Short,
                    None => return Stop::Wrong("a line is too long".into()),
                },
                [b'*', b'1'..=b'9', ..] => {}
                _ => return Stop::Wrong(BAD_FORMAT.into()),
            }
            let first_span = spans.len();
            let framing = match self.parser.parse_plain(buffer, &mut self.at, spans, &self.limits) {
                Ok(Some(Parsed::Request(framing))) => framing,
                Ok(Some(Parsed::Incomplete { .. })) => return Stop::Short,
                Ok(None) => return Stop::Wrong(BAD_FORMAT.into()),
                Err(error) => return Stop::Wrong(format!("{error}")),
            };
            let args = Args::new(buffer, &spans[first_span..]);
            // Of a client the parser takes what no server writes.
            if framing != Framing::Canonical && !args.has_line_ends(start) {
                self.at = start;
                return Stop::Wrong(BAD_FORMAT.into());
            }
            let row = self.server.registry.find(args.at(0));
            let key = row.and_then(Row::first_key).and_then(|at| args.get(at));
            let hash = key.map(|key| self.server.keyspace.hash(key));
            if let Some(hash) = hash {
                self.server.keyspace.prefetch_shard(hash);
            }
            commands.push(Command { row, hash, spans: first_span..spans.len(), start, end: self.at });
        }
        Stop::Enough
    }

    /// Runs what is parsed, or has others run it. The next chunk begins with what is not parsed.
    fn run_commands(&mut self, executor: &mut Executor<'s>, helpers: &mut Helpers<'s>) -> Result<(), String> {
        let (next, at) = (self.spare.take().unwrap_or_default(), std::mem::take(&mut self.at));
        let chunk = Arc::new(std::mem::replace(&mut self.chunk, next));
        self.chunk.begin_with(&chunk.buffer[at..], chunk.first + at as u64);
        self.run_chunk(executor, helpers, &chunk)?;
        if let (Some(first), Some(last)) = (chunk.commands.first(), chunk.commands.last()) {
            let bytes = (last.end - first.start) as u64;
            self.server.persistence.loading.loaded_bytes.fetch_add(bytes, Relaxed);
        }
        self.keep(chunk);
        Ok(())
    }

    /// Keeps the chunk's room, once nobody runs it.
    fn keep(&mut self, chunk: Arc<Chunk<'s>>) {
        if let Some(chunk) = Arc::into_inner(chunk) {
            self.spare = Some(chunk);
        }
    }

    /// Waits for the other threads.
    fn finish(&mut self, helpers: &mut Helpers<'s>) -> Result<(), String> {
        let (chunk, done) = helpers.finish();
        if let Some(chunk) = chunk {
            done.map_err(|(index, why)| self.refused(&chunk, &chunk.commands[index], why))?;
            self.keep(chunk);
        }
        Ok(())
    }

    fn run_chunk(
        &mut self,
        executor: &mut Executor<'s>,
        helpers: &mut Helpers<'s>,
        chunk: &Arc<Chunk<'s>>,
    ) -> Result<(), String> {
        let mut at = 0;
        while at < chunk.commands.len() {
            let count = if self.open.is_some() { 0 } else { helpers.count_of(chunk, at) };
            self.finish(helpers)?;
            if count == 0 {
                let len = self.count_for_one_thread(helpers, chunk, at);
                executor.replay_some(|executor| self.run_some(executor, chunk, at..at + len))?;
                at += len;
                continue;
            }
            helpers.begin(chunk, at..at + count, self.db);
            at += count;
            self.good_bytes = chunk.first + chunk.commands[at - 1].end as u64;
        }
        Ok(())
    }

    /// How many commands from this one on are run by one thread: up to where enough follow for all. They are
    /// not too many, because a gate is held meanwhile.
    fn count_for_one_thread(&self, helpers: &Helpers<'s>, chunk: &Chunk<'s>, from: usize) -> usize {
        let commands = &chunk.commands[from..];
        let commands = &commands[..commands.len().min(COMMANDS_FOR_ONE)];
        let (mut is_open, mut run) = (self.open.is_some(), 0);
        for (index, command) in commands.iter().enumerate().filter(|_| !helpers.is_empty()) {
            let number = command.row.map(|row| row.number);
            let is_edge = number.is_some() && (number == self.marks.begin || number == self.marks.end);
            if is_edge {
                is_open = number == self.marks.begin;
            }
            let is_single = !is_edge && !is_open && command.is_of_one_key(&chunk.args(command));
            run = if is_single { run + 1 } else { 0 };
            if run == COMMANDS_MIN {
                return index + 1 - run;
            }
        }
        commands.len()
    }

    /// Runs some of what is parsed, one command after the other.
    fn run_some(
        &mut self,
        executor: &mut Executor<'s>,
        chunk: &Chunk<'s>,
        range: Range<usize>,
    ) -> Result<(), String> {
        let end = range.end;
        let ahead = |index: usize| (index < end).then_some(index);
        (range.start..range.start + LEAF_AHEAD)
            .for_each(|index| chunk.prefetch(self.server, self.db, (ahead(index), None)));
        (range.start..range.start + ENTRY_AHEAD)
            .for_each(|index| chunk.prefetch(self.server, self.db, (None, ahead(index))));
        for index in range {
            let next = (ahead(index + LEAF_AHEAD), ahead(index + ENTRY_AHEAD));
            chunk.prefetch(self.server, self.db, next);
            self.run_command(executor, chunk, &chunk.commands[index])?;
        }
        Ok(())
    }

    /// Runs a command, or keeps it until its transaction has ended.
    fn run_command(
        &mut self,
        executor: &mut Executor<'s>,
        chunk: &Chunk<'s>,
        command: &Command<'s>,
    ) -> Result<(), String> {
        let (start, end) = (chunk.first + command.start as u64, chunk.first + command.end as u64);
        let args = chunk.args(command);
        let row = command.row.ok_or_else(|| self.refused(chunk, command, NotRun::NotACommand))?;
        let number = Some(row.number);
        if number == self.marks.begin {
            self.begin_transaction(start);
            return Ok(());
        }
        if number == self.marks.end {
            let Some((begin, queue)) = self.open.take() else {
                let told = format!("EXEC without MULTI in the AOF file (at byte {start}): it is passed over");
                self.server.log.warning_seldom(&self.unpaired, &told);
                self.good_bytes = end;
                return Ok(());
            };
            for queued in queue.iter() {
                let done = self.run_queued(executor, &queued);
                done.map_err(|why| {
                    let why = self.why_refused(&queued.args, why);
                    format!("{why} (in the transaction at byte {begin})")
                })?;
            }
        } else if let Some((_, queue)) = &mut self.open {
            queue.push((row.number, row.flags), command.hash, &args);
            return Ok(());
        } else {
            let queued = Queued { row: row.number, hash: command.hash, args };
            self.run_queued(executor, &queued).map_err(|why| self.refused(chunk, command, why))?;
        }
        self.good_bytes = end;
        Ok(())
    }

    /// In a transaction that has begun MULTI says nothing. Redis leaves one open where it cuts off half a
    /// command, and appends the next one behind it: all of it is run at the first EXEC, as Redis does.
    fn begin_transaction(&mut self, start: u64) {
        match &self.open {
            None => self.open = Some((start, Queue::new())),
            Some((begin, _)) => {
                let told = format!(
                    "MULTI in the AOF file (at byte {start}) within the transaction at byte {begin}: both are run as \
                     one"
                );
                self.server.log.warning_seldom(&self.unpaired, &told);
            }
        }
    }

    /// The error for a command that is not run.
    fn refused(&self, chunk: &Chunk<'_>, command: &Command<'_>, why: NotRun) -> String {
        let start = chunk.first + command.start as u64;
        format!("{} (at byte {start})", self.why_refused(&chunk.args(command), why))
    }

    /// Why a command is none that could be run.
    fn why_refused(&self, args: &Args<'_>, why: NotRun) -> String {
        let name = args.at(0).escape_ascii();
        if why == NotRun::NoMemory {
            return format!("Not enough memory for '{name}' reading the append only file");
        }
        let is_known = |row: &Row| {
            row.subcommands.is_empty() || args.get(1).is_none_or(|word| row.subcommand(word).is_some())
        };
        let why = match self.server.registry.find(args.at(0)) {
            Some(row) if Some(row.number) == self.marks.choose_db && args.len() == 2 => {
                format!("There is no database '{}', which '{name}' asks for,", args.at(1).escape_ascii())
            }
            Some(row) if is_known(row) => format!("Wrong number of arguments for '{name}'"),
            _ => format!("Unknown command '{name}'"),
        };
        format!("{why} reading the append only file")
    }

    fn run_queued(&mut self, executor: &mut Executor<'s>, queued: &Queued<'_>) -> Result<(), NotRun> {
        let Queued { row, hash, args } = *queued;
        let row = self.server.registry.row(row);
        self.delay.pass(|| self.server.config().snapshots.load_delay);
        if Some(row.number) == self.marks.choose_db {
            let db = args.get(1).and_then(base::text::parse_i64).and_then(|db| u16::try_from(db).ok());
            let db = db.filter(|db| *db < self.server.keyspace.databases());
            self.db = db.ok_or(NotRun::NotACommand)?;
            return Ok(());
        }
        let request = Request { row: Some(row), hash, framing: Framing::Unknown, args };
        executor.replay(self.db, &request, &mut self.reply)
    }
}
