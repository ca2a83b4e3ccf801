//! A part of a file of commands, parsed, and how commands of single keys are run by several threads.
//!
//! ```text
//! SET a 1 | INCR b | SET a 2 | RENAME a c | INCR b | MULTI ...
//! \_______________________/   \________/   \____/
//!  thread 0: a; thread 1: b    one thread   ...
//! ```
//!
//! A thread runs the commands of its own shards, in the order of the file. So each key sees its commands in
//! their order; no command of one key sees another key, so nothing else can be told apart. Whatever names
//! several keys or none, and all of a transaction, is run by one thread while the others wait.
use crate::core::dispatch::{Executor, Request};
use crate::core::registry::{Row, Run};
use crate::core::server::Server;
use base::hash::Hash;
use command::DataRun;
use resp::{Args, Protocol, Reply, Span};
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
    pub(super) buffer: Vec<u8>,
    pub(super) spans: Vec<Span>,
    pub(super) commands: Vec<Command<'s>>,
}

impl Chunk<'_> {
    pub(super) fn args(&self, command: &Command<'_>) -> Args<'_> {
        Args::new(&self.buffer, &self.spans[command.spans.clone()])
    }

    /// How many commands from this one on may be run side by side.
    fn count_of_single_keys(&self, from: usize) -> usize {
        let commands = &self.commands[from..];
        commands.iter().position(|c| !c.is_of_one_key(&self.args(c))).unwrap_or(commands.len())
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

/// The index of a command that is none.
type Done = Result<(), usize>;

/// The threads beside the one that reads the file.
pub(super) struct Helpers<'s>(Vec<Helper<'s>>);

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
        for helper in 1..=count {
            let ((jobs, receiver), (sender, done)) = (channel::<Job<'s>>(), channel());
            let work = move || {
                let mut executor = Executor::to_replay(server, helper, is_alone);
                let mut reply = unread_reply();
                while let Ok(job) = receiver.recv() {
                    let done = job.run(server, &mut executor, &mut reply, (helper, count + 1));
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
        Ok(Helpers(helpers))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many of the commands from this one on are worth the threads; 0 if they are not.
    pub(super) fn count_of(&self, chunk: &Chunk<'_>, from: usize) -> usize {
        let count = if self.is_empty() { 0 } else { chunk.count_of_single_keys(from) };
        if count < COMMANDS_MIN { 0 } else { count }
    }

    /// Runs these commands, each of one key, on this thread and the others. An error is the index of the
    /// first that is no command.
    pub(super) fn run(
        &self,
        (server, executor, reply): (&'s Server, &mut Executor<'s>, &mut Reply),
        chunk: &Arc<Chunk<'s>>,
        range: Range<usize>,
        db: u16,
    ) -> Done {
        let job = || Job { chunk: Arc::clone(chunk), range: range.clone(), db };
        // A helper ends only by a panic, which comes to light when all threads are waited for.
        self.0.iter().for_each(|helper| drop(helper.jobs.send(job())));
        let own = job().run(server, executor, reply, (0, self.0.len() + 1));
        let others = self.0.iter().map(|helper| helper.done.recv().unwrap_or(Ok(())));
        others.fold(own, |first, other| match (first, other) {
            (Err(first), Err(other)) => Err(first.min(other)),
            (first, other) => first.and(other),
        })
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
        let Job { chunk, range, db } = self;
        let is_own = |index: &usize| {
            let hash = chunk.commands[*index].hash;
            hash.is_some_and(|hash| server.keyspace.shard_number(hash) % threads == number)
        };
        let own: Vec<usize> = range.clone().filter(is_own).collect();
        let ahead = |at: usize| own.get(at).copied();
        executor.replay_some(|executor| {
            (0..LEAF_AHEAD).for_each(|at| chunk.prefetch(server, *db, (ahead(at), None)));
            (0..ENTRY_AHEAD).for_each(|at| chunk.prefetch(server, *db, (None, ahead(at))));
            for (at, index) in own.iter().enumerate() {
                chunk.prefetch(server, *db, (ahead(at + LEAF_AHEAD), ahead(at + ENTRY_AHEAD)));
                let command = &chunk.commands[*index];
                let request = Request { row: command.row, hash: command.hash, args: chunk.args(command) };
                executor.replay(*db, &request, reply).map_err(|_| *index)?;
            }
            Ok(())
        })
    }
}

/// Nobody reads the replies, so they are not written.
pub(super) fn unread_reply() -> Reply {
    let mut reply = Reply::new(Protocol::Resp2);
    reply.bound(0);
    reply
}
