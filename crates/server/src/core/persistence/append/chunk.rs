//! A part of a file of commands, parsed, and how commands of single keys are run by several threads.
//!
//! ```text
//! SET a 1 | INCR b | SET a 2 | RENAME a c | INCR b | MULTI ...
//! \_______________________/   \________/   \____/
//!  thread 0: a; thread 1: b    one thread   ...
//! ```
//!
//! A thread runs the commands of its own shards, key by key in hash order, and those of one key in the order
//! of the file. No command of one key sees another key, so nothing can be told apart; but in hash order a
//! leaf of the keyspace gets what comes to it while it is in the cache. Whatever names several keys or none,
//! and all of a transaction, is run by the thread that reads the file, while the others wait. Otherwise that
//! thread parses what comes next while they run what it has parsed.
use crate::core::dispatch::{Executor, Request};
use crate::core::error::NotRun;
use crate::core::registry::{Row, Run};
use crate::core::server::Server;
use base::hash::Hash;
use command::DataRun;
use resp::{Args, Framing, Protocol, Reply, Span};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, Scope};

/// Fewer commands than that are run by one thread. Tests have several threads for nearly everything.
pub(super) const COMMANDS_MIN: usize = if cfg!(debug_assertions) { 2 } else { 256 };
/// How many commands ahead the memory of their keys is asked for.
pub(super) const LEAF_AHEAD: usize = 16;
pub(super) const ENTRY_AHEAD: usize = 8;
/// How many commands ahead what is known of one is asked for where they are not run in their order, and then
/// its words.
const COMMAND_AHEAD: usize = 64;
const WORDS_AHEAD: usize = 32;
/// So many bytes of the words and of their places are asked for at most. The rest comes by itself.
const BYTES_AHEAD: usize = 512;
const LINE_BYTES: usize = 64;
/// A gate is held for so many commands.
const COMMANDS_IN_GATE: usize = 1 << 10;

/// A command that is parsed.
pub(super) struct Command<'s> {
    pub(super) row: Option<&'s Row>,
    pub(super) hash: Option<Hash>,
    pub(super) spans: Range<usize>,
    /// Where it begins and ends in the buffer.
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Command<'_> {
    /// Whether it looks at one key, and changes nothing else.
    pub(super) fn is_of_one_key(&self, args: &Args<'_>) -> bool {
        let runs_on_key = |row: &Row| matches!(row.run, Run::Data(DataRun::Keys(_)));
        self.hash.is_some() && self.row.is_some_and(|row| runs_on_key(row) && row.only_key(args).is_some())
    }
}

/// Bytes of a file, and the commands in them.
#[derive(Default)]
pub(super) struct Chunk<'s> {
    /// The offset in the file of the first byte.
    pub(super) first: u64,
    pub(super) buffer: Vec<u8>,
    pub(super) spans: Vec<Span>,
    pub(super) commands: Vec<Command<'s>>,
}

impl Chunk<'_> {
    pub(super) fn args(&self, command: &Command<'_>) -> Args<'_> {
        Args::new(&self.buffer, &self.spans[command.spans.clone()])
    }

    /// Begins anew with a copy of these bytes, which lie at this offset of the file.
    pub(super) fn begin_with(&mut self, bytes: &[u8], first: u64) {
        self.first = first;
        self.buffer.clear();
        self.buffer.extend_from_slice(bytes);
        self.spans.clear();
        self.commands.clear();
    }

    /// How many commands from this one on may be run side by side.
    fn count_of_single_keys(&self, from: usize) -> usize {
        let commands = &self.commands[from..];
        commands.iter().position(|c| !c.is_of_one_key(&self.args(c))).unwrap_or(commands.len())
    }

    /// Asks for the words of a command that was parsed long ago, and for where they lie.
    fn prefetch_words(&self, index: usize) {
        let Command { start, end, spans, .. } = &self.commands[index];
        let bytes = *start..*end.min(&(start + BYTES_AHEAD));
        bytes.step_by(LINE_BYTES).for_each(|at| pack::prefetch_value(&self.buffer[at]));
        const SPANS: usize = LINE_BYTES / size_of::<Span>();
        let places = spans.start..spans.end.min(spans.start + BYTES_AHEAD / size_of::<Span>());
        places.step_by(SPANS).for_each(|at| pack::prefetch_value(&self.spans[at]));
    }

    /// Asks for the leaf of one command's key and for the entry of another's, which will run before long.
    pub(super) fn prefetch(&self, server: &Server, db: u16, (leaf, entry): (Option<usize>, Option<usize>)) {
        let hash = |index: usize| self.commands.get(index)?.hash;
        if let Some(hash) = leaf.and_then(hash) {
            server.keyspace.prefetch_hashed(db, hash);
        }
        if let Some(hash) = entry.and_then(hash) {
            server.keyspace.prefetch_entry_hashed(db, hash);
        }
    }
}

/// Commands of single keys, to be run by several threads.
struct Job<'s> {
    chunk: Arc<Chunk<'s>>,
    range: Range<usize>,
    db: u16,
}

/// The index of a command that is not run, and why.
type Done = Result<(), (usize, NotRun)>;

/// The threads that run commands of single keys, and what they run.
pub(super) struct Helpers<'s> {
    helpers: Vec<Helper<'s>>,
    running: Option<Arc<Chunk<'s>>>,
}

struct Helper<'s> {
    jobs: Sender<Job<'s>>,
    done: Receiver<Done>,
}

impl<'s> Helpers<'s> {
    /// Starts so many. They end when this is dropped.
    pub(super) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        server: &'s Server,
        (count, is_alone): (usize, bool),
    ) -> io::Result<Helpers<'s>>
    where
        's: 'scope,
    {
        let mut helpers = Vec::new();
        for helper in 0..count {
            let ((jobs, receiver), (sender, done)) = (channel::<Job<'s>>(), channel());
            let work = move || {
                let mut executor = Executor::to_replay(server, helper, is_alone);
                let mut reply = unread_reply();
                while let Ok(job) = receiver.recv() {
                    let done = job.run(server, &mut executor, &mut reply, (helper, count));
                    // The reader takes the chunk back once all have let go of it.
                    drop(job);
                    if sender.send(done).is_err() {
                        return;
                    }
                }
            };
            Builder::new().name("sardine-load".into()).spawn_scoped(scope, work)?;
            helpers.push(Helper { jobs, done });
        }
        Ok(Helpers { helpers, running: None })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.helpers.is_empty()
    }

    /// How many of the commands from this one on are worth the threads; 0 if they are not.
    pub(super) fn count_of(&self, chunk: &Chunk<'_>, from: usize) -> usize {
        let count = if self.is_empty() { 0 } else { chunk.count_of_single_keys(from) };
        if count < COMMANDS_MIN { 0 } else { count }
    }

    /// Has these commands run, each of one key. What was begun before has been waited for.
    pub(super) fn begin(&mut self, chunk: &Arc<Chunk<'s>>, range: Range<usize>, db: u16) {
        debug_assert!(self.running.is_none(), "one job at a time");
        let job = || Job { chunk: Arc::clone(chunk), range: range.clone(), db };
        // A helper ends only by a panic, which comes to light when all threads are waited for.
        self.helpers.iter().for_each(|helper| drop(helper.jobs.send(job())));
        self.running = Some(Arc::clone(chunk));
    }

    /// Waits for what was begun. Returns the chunk that it belonged to; an error is the first that is
    /// not run.
    pub(super) fn finish(&mut self) -> (Option<Arc<Chunk<'s>>>, Done) {
        let Some(chunk) = self.running.take() else { return (None, Ok(())) };
        // None is left waiting where another has failed.
        let failed = self.helpers.iter().filter_map(|helper| helper.done.recv().unwrap_or(Ok(())).err());
        let done = failed.min_by_key(|(index, _)| *index).map_or(Ok(()), Err);
        (Some(chunk), done)
    }
}

impl<'s> Job<'s> {
    /// Runs the commands that belong to one of so many threads.
    fn run(
        &self,
        server: &'s Server,
        executor: &mut Executor<'s>,
        reply: &mut Reply,
        (number, threads): (usize, usize),
    ) -> Done {
        let Job { chunk, db, .. } = self;
        let own = self.own(server, (number, threads));
        let hash = |index: usize| chunk.commands[index].hash;
        let ahead = |at: usize| own.get(at).map(|(_, index)| *index as usize);
        for begin in (0..own.len()).step_by(COMMANDS_IN_GATE) {
            let part = begin..own.len().min(begin + COMMANDS_IN_GATE);
            executor.replay_some(|executor| -> Done {
                for at in part {
                    if let Some(index) = ahead(at + COMMAND_AHEAD) {
                        pack::prefetch_value(&chunk.commands[index]);
                    }
                    if let Some(index) = ahead(at + WORDS_AHEAD) {
                        chunk.prefetch_words(index);
                    }
                    chunk.prefetch(server, *db, (ahead(at + LEAF_AHEAD), ahead(at + ENTRY_AHEAD)));
                    let command = &chunk.commands[own[at].1 as usize];
                    let request = Request {
                        row: command.row,
                        hash: command.hash,
                        framing: Framing::Unknown,
                        args: chunk.args(command),
                    };
                    let done = executor.replay_in_order(*db, &request, reply);
                    done.map_err(|why| match why {
                        NotRun::NotACommand => (self.first_wrong(), why),
                        NotRun::NoMemory => (own[at].1 as usize, why),
                    })?;
                }
                Ok(())
            })?;
        }
        let shard = |place: &(u64, u32)| place.0 >> 32;
        for part in own.chunk_by(|one, next| shard(one) == shard(next)) {
            if let Some(hash) = hash(part[0].1 as usize) {
                server.keyspace.end_order(*db, hash);
            }
        }
        Ok(())
    }

    /// The commands of the shards of this thread, by the place of their key and then as they come.
    fn own(&self, server: &Server, (number, threads): (usize, usize)) -> Vec<(u64, u32)> {
        let mut own = Vec::new();
        for index in self.range.clone() {
            let Some(hash) = self.chunk.commands[index].hash else { continue };
            let shard = server.keyspace.shard_number(hash);
            if shard % threads == number {
                own.push(((shard as u64) << 32 | u64::from(hash.order()), index as u32));
            }
        }
        own.sort_unstable();
        own
    }

    /// The first of the commands that cannot be run, where one of them cannot.
    #[cold]
    fn first_wrong(&self) -> usize {
        let is_wrong = |index: &usize| {
            let command = &self.chunk.commands[*index];
            let args = self.chunk.args(command);
            command.row.is_none_or(|row| !row.arity.accepts(args.len()))
        };
        self.range.clone().find(is_wrong).unwrap_or(self.range.start)
    }
}

/// Nobody reads the replies, so they are not written.
pub(super) fn unread_reply() -> Reply {
    let mut reply = Reply::new(Protocol::Resp2);
    reply.bound(0);
    reply
}
