//! What a script has done so far, so that it can be taken back.
//!
//! Workers run scripts themselves, because most take microseconds, and another thread would have to be woken
//! for each. But a script may take for ever, and its commands may do what cannot be taken back. So a worker
//! attempts it:
//!
//! ```text
//! worker: run it --- it ends within PATIENCE_NS ---> commit: who listens is told, its calls are counted
//!             \--- it takes longer, or flushes, moves, ... ------> undo: all is as before --- Errand --->
//!                                                                   the thread of scripts runs it
//! ```
//!
//! Before a command writes, what is under its keys is kept: one more owner for a value, whatever its size.
//! What happened to keys, what is published, what the statistics count, and a few messages for the log and
//! calls for SLOWLOG and its kin, are held back until the script has ended. MONITOR's lines of it are cut off
//! again where it is undone.
use super::host::{End, Reach};
use crate::core::call::ServerRun;
use crate::core::command_log::{Entry, Measured, Type, entries_of};
use crate::core::dispatch::Executor;
use crate::core::dispatch::exec::Left;
use crate::core::functions::{log_for_script, logged_part};
use crate::core::mailbox::{Mailboxes, Message};
use crate::core::registry::{Row, Run};
use crate::core::tries::Tries;
use crate::state::config::Config;
use crate::state::pubsub::Publication;
use crate::state::system::thread_time;
use base::hash::Hash;
use command::{DataRun, Flags, Scope};
use net::Tick;
use resp::Args;
use script::LogLevel;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use store::{Event, Garbage, Held, Kept, Key, ShardStats, Told, TooLong, View, end_keeping};

/// What is kept takes no more than this, by far: one that writes to more is not attempted.
const KEPT_BYTES_MAX: usize = 1 << 30;
/// How long a worker attempts a script: about so much of its thread's processor time.
pub(super) const PATIENCE_NS: u64 = 1_000_000;
/// By the clock it is half of that before the thread's time is looked at, which is a system call; from there
/// on it has the other half of that time. What the thread waits for the processor is no reason to run all of
/// it again.
const HALF_NS: u64 = PATIENCE_NS / 2;
/// So many messages are kept for the log: each takes some ten microseconds to write, and all are written at
/// once. None is kept any more once they have so many bytes.
const MESSAGES_MAX: usize = 32;
const MESSAGES_BYTES_MAX: usize = 256 << 10;
/// Room for as many bytes of messages stays from script to script.
const MESSAGES_ROOM_BYTES: usize = 32 << 10;
/// So many calls are kept for the logs of commands.
const REPORTS_MAX: usize = 128;

/// See the file's opener. Its memory is used again for the next.
#[derive(Default)]
pub(in crate::core::dispatch) struct Attempt {
    began: Option<Tick>,
    /// [`HALF_NS`], and what the thread had used when they were over first.
    half_ticks: u64,
    used: Option<Duration>,
    kept: RefCell<KeptKeys>,
    /// What the shards had counted that it has looked into.
    counts: Vec<(usize, ShardStats)>,
    deferred: RefCell<Deferred>,
    /// Calls of commands: the row's number, the ticks, and what came of it.
    calls: Vec<(u32, u64, Fate)>,
    /// Texts of errors that are to be counted.
    errors: Vec<Vec<u8>>,
    messages: Messages,
    /// A key past its deadline was left for a run that is not taken back.
    pub(in crate::core::dispatch) spared: Cell<bool>,
    /// Where the worker's records stood.
    mark: usize,
}

/// What was under the keys that a script has written to, in order.
#[derive(Default)]
struct KeptKeys {
    keys: Vec<KeptKey>,
    /// The names of the keys, and the entries of what was under them, one after the other.
    bytes: Vec<u8>,
    /// Where each stands, once there are many.
    places: BTreeMap<(u16, Hash), usize>,
}

struct KeptKey {
    db: u16,
    hash: Hash,
    name: Range<u32>,
    value: Option<Kept>,
    /// How much had happened to keys before.
    told: usize,
}

impl KeptKeys {
    /// So many keys are searched one by one.
    const FEW: usize = 16;

    /// This one, if it is kept. Of two keys with one hash the second may be kept more than once: what is put
    /// back last was kept first.
    fn find(&self, db: u16, hash: Hash, name: &[u8]) -> Option<&KeptKey> {
        let is_it =
            |kept: &&KeptKey| (kept.db, kept.hash) == (db, hash) && name_in(&self.bytes, &kept.name) == name;
        match self.keys.len() <= KeptKeys::FEW {
            true => self.keys.iter().find(is_it),
            false => self.places.get(&(db, hash)).map(|at| &self.keys[*at]).filter(is_it),
        }
    }

    fn push(&mut self, key: KeptKey) {
        self.keys.push(key);
        let unknown = match self.keys.len() {
            0..=KeptKeys::FEW => return,
            len if self.places.is_empty() => 0..len,
            len => len - 1..len,
        };
        for at in unknown {
            self.places.entry((self.keys[at].db, self.keys[at].hash)).or_insert(at);
        }
    }
}

/// The name that lies there in [`KeptKeys::bytes`].
fn name_in<'b>(bytes: &'b [u8], name: &Range<u32>) -> &'b [u8] {
    &bytes[name.start as usize..name.end as usize]
}

/// Messages for the log, in order.
#[derive(Default)]
struct Messages {
    /// Of each the level, and where it ends among the bytes.
    ends: Vec<(LogLevel, usize)>,
    bytes: Vec<u8>,
}

/// More messages than are kept.
pub(super) struct TooMany;

/// What came of the call of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Ran,
    Failed,
    Rejected,
}

/// What a worker keeps of its attempts from one to the next.
#[derive(Default)]
pub(in crate::core::dispatch) struct Attempts<'s> {
    /// The shards that the next is to begin with, as numbers.
    pub(super) reached: Vec<usize>,
    /// Room for the next.
    room: Option<Box<Attempt>>,
    pub(super) queue: QueueAttempt,
    /// The shards that a queue holds, between two of its requests.
    pub(super) held: Option<Held<'s>>,
    /// Of the scripts of the queue, each once.
    pub(super) scripts: Vec<Rc<Tries>>,
}

/// What becomes of the queue with scripts that EXEC runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueAttempt {
    /// It is run for good, or there is none.
    #[default]
    None,
    Runs(Reach),
    /// What it has done is to be taken back.
    Ended(End),
}

impl Attempts<'_> {
    /// Whether EXEC is to attempt its queue.
    pub(in crate::core::dispatch) fn are_of_queue(&self) -> bool {
        self.queue != QueueAttempt::None
    }

    /// Gives back the room that is kept.
    pub(in crate::core::dispatch) fn forget_room(&mut self) {
        (self.room, self.reached, self.scripts) = (None, Vec::new(), Vec::new());
    }

    /// Whether the queue is to be run on the thread of scripts.
    pub(in crate::core::dispatch) fn have_given_up_queue(&self) -> bool {
        self.queue == QueueAttempt::Ended(End::GivenUp)
    }
}

/// What is done when the script has ended.
#[derive(Default)]
struct Deferred {
    told: Vec<Told>,
    /// Messages that it has published.
    posts: Vec<Post>,
    garbage: Vec<Garbage>,
    /// Keys that a client which tracks has read, and how much had happened to keys before.
    reads: Vec<(usize, Vec<Hash>)>,
    /// Calls that the logs of commands keep.
    reports: Vec<Report>,
}

/// A call that passes a bound of the latency monitor or of a log.
struct Report {
    event: &'static str,
    time_ns: u64,
    time_s: i64,
    entries: Vec<(Type, Entry)>,
}

/// A message, the workers whose clients get it, and how much had happened to keys when it was published.
struct Post {
    publication: Arc<Publication>,
    workers: Vec<usize>,
    told: usize,
}

impl Attempt {
    /// Puts off what a command leaves to be done.
    pub(in crate::core::dispatch) fn defer(&self, told: Vec<Told>, garbage: Vec<Garbage>) {
        let mut deferred = self.deferred.borrow_mut();
        deferred.told.extend(told);
        deferred.garbage.extend(garbage);
    }

    /// Keys in these shards are about to be looked up, of which so many were known before.
    pub(super) fn note_counts(&mut self, held: &Held<'_>, known: usize) {
        // Who is alone lets go of shards, and may lock one again that is noted.
        let has_let_go = self.counts.len() > known;
        for (shard, counts) in held.counts_from(known) {
            if !(has_let_go && self.counts.iter().any(|(known, _)| *known == shard)) {
                self.counts.push((shard, counts));
            }
        }
    }

    /// Keeps what is under a key that a command is about to write.
    pub(super) fn keep(&self, view: &mut View<'_>, key: &Key<'_>) -> Result<(), TooLong> {
        let hash = key.hash();
        let kept = &mut *self.kept.borrow_mut();
        if kept.find(key.db(), hash, key.bytes()).is_some() {
            return Ok(());
        }
        if kept.bytes.len() > KEPT_BYTES_MAX {
            return Err(TooLong);
        }
        let start = kept.bytes.len() as u32;
        kept.bytes.extend_from_slice(key.bytes());
        let name = start..kept.bytes.len() as u32;
        let value = view.keep(key, &mut kept.bytes)?;
        let told = self.deferred.borrow().told.len();
        kept.push(KeptKey { db: key.db(), hash, name, value, told });
        Ok(())
    }

    /// Puts off that the client has read these keys.
    pub(in crate::core::dispatch) fn defer_reads(&self, read: &[Hash]) {
        if !read.is_empty() {
            let Deferred { told, reads, .. } = &mut *self.deferred.borrow_mut();
            reads.push((told.len(), read.to_vec()));
        }
    }

    /// Puts off what the logs of commands are told of a call.
    pub(in crate::core::dispatch) fn defer_report(
        &self,
        config: &Config,
        row: &Row,
        (event, time_s): (&'static str, i64),
        call: &Measured<'_>,
    ) {
        let entries: Vec<_> = entries_of(&config.command_log, row, call, None, time_s).collect();
        let is_late = config.latency_threshold_ns().is_some_and(|from| call.time_ns >= from);
        if is_late || !entries.is_empty() {
            let report = Report { event, time_ns: call.time_ns, time_s, entries };
            self.deferred.borrow_mut().reports.push(report);
        }
    }

    /// Whether so much was put off for these logs that no more is to be.
    pub(super) fn has_many_reports(&self) -> bool {
        self.deferred.borrow().reports.len() >= REPORTS_MAX
    }

    /// Keeps a message that goes to the log when the script has ended.
    pub(super) fn keep_message(&mut self, level: LogLevel, message: &[u8]) -> Result<(), TooMany> {
        let Messages { ends, bytes } = &mut self.messages;
        if ends.len() >= MESSAGES_MAX || bytes.len() >= MESSAGES_BYTES_MAX {
            return Err(TooMany);
        }
        bytes.extend_from_slice(logged_part(message));
        ends.push((level, bytes.len()));
        Ok(())
    }

    /// Whether it has taken too long.
    pub(super) fn is_over(&mut self, now: Tick) -> bool {
        let is_half_over = self.began.is_some_and(|began| now.since(began) >= self.half_ticks);
        is_half_over && self.has_used_its_time(now)
    }

    #[cold]
    fn has_used_its_time(&mut self, now: Tick) -> bool {
        let used = thread_time();
        let before = *self.used.get_or_insert(used);
        self.began = Some(now);
        used.saturating_sub(before) >= Duration::from_nanos(HALF_NS)
    }
}

/// How a command has a message sent to the clients of a worker: at once, or when the attempt has ended. Who
/// they are is known already.
pub(in crate::core::dispatch) fn post_or_defer(
    mailboxes: &Mailboxes,
    attempt: Option<&Attempt>,
) -> impl Fn(usize, &Arc<Publication>) {
    move |worker, publication| {
        let Some(attempt) = attempt else {
            return mailboxes.post(worker, Message::Published(Arc::clone(publication)));
        };
        let Deferred { told, posts, .. } = &mut *attempt.deferred.borrow_mut();
        match posts.last_mut() {
            Some(last) if Arc::ptr_eq(&last.publication, publication) => last.workers.push(worker),
            _ => {
                let publication = Arc::clone(publication);
                posts.push(Post { publication, workers: vec![worker], told: told.len() });
            }
        }
    }
}

/// Whether a command can be taken back, or does nothing but read.
pub(super) fn is_undoable(row: &Row, args: &Args<'_>) -> bool {
    let has = |flag| row.flags.has(flag);
    match row.run {
        Run::Data(_) if has(Flags::OTHER_DATABASES) => false,
        Run::Data(DataRun::Keys(_) | DataRun::Blocking(_) | DataRun::Long(_)) => true,
        Run::Data(DataRun::KeysOrAll(ways)) => !(ways.needs_all)(args),
        Run::Data(DataRun::Whole(Scope::Shared, _) | DataRun::LongWhole(..)) => !has(Flags::WRITE),
        Run::Data(DataRun::Whole(Scope::Exclusive, _) | DataRun::Container) => false,
        Run::Server(ServerRun::Anywhere(_) | ServerRun::Shared(_)) => {
            // Messages leave when the script has ended.
            let publishes = has(Flags::PUBSUB) && has(Flags::MAY_REPLICATE);
            let acts = has(Flags::PUBSUB) || has(Flags::MAY_REPLICATE) || has(Flags::WRITE);
            !has(Flags::ADMIN) && (publishes || !acts)
        }
        Run::Server(_) => false,
    }
}

impl<'s> Executor<'s> {
    /// What is done from here on may be taken back. These shards are locked already.
    pub(super) fn begin_attempt(&mut self, held: &Held<'_>) {
        let mut attempt = self.attempts.room.take().unwrap_or_default();
        (attempt.began, attempt.used) = (Some(self.meter.read()), None);
        attempt.half_ticks = self.meter.ticks(HALF_NS);
        attempt.mark = self.recorder.mark();
        attempt.note_counts(held, 0);
        self.attempt = Some(attempt);
    }

    /// The script has ended: what it has done is done. Its shards are locked still, or it is alone.
    pub(super) fn commit_attempt(&mut self, left: &mut Left) {
        let Some(mut attempt) = self.attempt.take() else { return };
        let Deferred { told, posts, garbage, reads, reports } = std::mem::take(attempt.deferred.get_mut());
        left.garbage.extend(garbage);
        if !told.is_empty() || !posts.is_empty() || !reads.is_empty() {
            self.announce(&told, posts, reads);
            left.ready.add(self.server.key_events.waiters.awaited(&told));
        }
        for (row, ticks, fate) in attempt.calls.drain(..) {
            self.count_call(row, ticks, fate);
        }
        attempt.errors.drain(..).for_each(|text| self.counters.count_error(&text));
        for Report { event, time_ns, time_s, entries } in reports {
            self.server.latency.note(&self.config, event, time_ns, time_s);
            let rules = &self.config.command_log;
            entries.into_iter().for_each(|(kind, entry)| self.server.command_log.keep(rules, kind, entry));
        }
        if !attempt.messages.ends.is_empty() {
            self.log_messages(&mut attempt.messages);
        }
        let is_large = |value: &Option<Kept>| value.as_ref().is_some_and(Kept::is_outside);
        let kept = &mut attempt.kept.get_mut().keys;
        let mut has_kept_large = false;
        for KeptKey { value, .. } in kept.extract_if(.., |kept| is_large(&kept.value)) {
            has_kept_large = true;
            left.garbage.extend(value.and_then(Kept::into_garbage));
        }
        if has_kept_large {
            end_keeping();
        }
        self.leave_room(attempt);
    }

    /// Writes what the script has had to say, before another sees what it has done: so the messages of
    /// scripts about one key are in their order.
    #[cold]
    fn log_messages(&self, messages: &mut Messages) {
        let mut start = 0;
        for (level, end) in messages.ends.drain(..) {
            log_for_script(self.server, level, &messages.bytes[start..end]);
            start = end;
        }
        messages.bytes.clear();
        messages.bytes.shrink_to(MESSAGES_ROOM_BYTES);
    }

    /// Tells what has happened to keys, sends what was published, and remembers what was read, in the order
    /// in which all of it was.
    fn announce(&self, told: &[Told], posts: Vec<Post>, reads: Vec<(usize, Vec<Hash>)>) {
        let (mut place, mut reads) = (0, reads.into_iter().peekable());
        let mut go_on_to = |end: usize| {
            while let Some((at, keys)) = reads.next_if(|(at, _)| *at <= end) {
                self.tell(&told[std::mem::replace(&mut place, at)..at]);
                self.remember_keys(&keys);
            }
            self.tell(&told[std::mem::replace(&mut place, end)..end]);
        };
        for Post { publication, workers, told: end } in posts {
            go_on_to(end);
            self.server.pubsub.in_turn(&publication, || {
                for worker in workers {
                    self.server.mailboxes.post(worker, Message::Published(Arc::clone(&publication)));
                }
            });
        }
        go_on_to(told.len());
    }

    /// Keeps the memory of an attempt for the next, unless it is much.
    fn leave_room(&mut self, mut attempt: Box<Attempt>) {
        const KEPT_MAX: usize = 256;
        const KEPT_ROOM_BYTES: usize = 64 << 10;
        let kept = attempt.kept.get_mut();
        let is_small = kept.keys.capacity() <= KEPT_MAX && kept.bytes.capacity() <= KEPT_ROOM_BYTES;
        if is_small && attempt.calls.capacity() <= 8 * KEPT_MAX {
            kept.keys.clear();
            kept.bytes.clear();
            kept.places.clear();
            attempt.counts.clear();
            attempt.errors.clear();
            attempt.calls.clear();
            self.attempts.room = Some(attempt);
        }
    }

    /// Counts a call of a script's command, when it is certain that it stays.
    pub(super) fn note_call(&mut self, row: &Row, ticks: u64, fate: Fate) {
        match &mut self.attempt {
            Some(attempt) => attempt.calls.push((row.number as u32, ticks, fate)),
            None => self.count_call(row.number as u32, ticks, fate),
        }
    }

    fn count_call(&self, row: u32, ticks: u64, fate: Fate) {
        let counts = &self.counters.commands[row as usize];
        match fate {
            Fate::Rejected => return counts.rejected.add(1),
            Fate::Failed => counts.failed.add(1),
            Fate::Ran => {}
        }
        counts.count(ticks, self.tracked);
    }

    /// Counts an error of a script in the same way.
    pub(super) fn note_error(&mut self, text: &[u8]) {
        match &mut self.attempt {
            Some(attempt) => attempt.errors.push(text.to_vec()),
            None => self.counters.count_error(text),
        }
    }

    /// Takes back what the script has done. Only what has expired meanwhile stays so. Its shards are locked
    /// still, or it is alone.
    #[cold]
    pub(super) fn undo_attempt(&mut self, held: &mut Held<'_>, left: &mut Left) {
        let Some(attempt) = self.attempt.take() else { return };
        let Attempt { kept, counts, deferred, mark, .. } = *attempt;
        end_keeping();
        self.recorder.forget_since(mark);
        let (kept, Deferred { mut told, mut garbage, .. }) = (kept.into_inner(), deferred.into_inner());
        let keyspace = &self.server.keyspace;
        let (mut place, mut shrunk) = (0.., None);
        told.retain(|told| {
            let (place, event) = (place.next(), told.event);
            // What was kept before it had expired is put back.
            let kept = kept.find(told.db, keyspace.hash(&told.key), &told.key);
            let is_back = kept.is_some_and(|kept| kept.value.is_some() && place >= Some(kept.told));
            // A hash whose last fields have expired goes at once.
            let is_end = event == Event::DEL && shrunk.take() == Some((told.db, told.key.clone()));
            if event == Event::FIELDS_EXPIRED && !is_back {
                shrunk = Some((told.db, told.key.clone()));
            }
            (event == Event::EXPIRED || event == Event::FIELDS_EXPIRED || is_end) && !is_back
        });
        for KeptKey { db, hash, name, value, .. } in kept.keys.into_iter().rev() {
            held.add(hash);
            let mut view = held.view(self.now.wall, &self.config.store);
            let key = view.key(db, name_in(&kept.bytes, &name), hash);
            view.put_back(&key, value, &kept.bytes);
            garbage.extend(view.take_garbage());
        }
        for (shard, then) in counts {
            held.take_back_counts(shard, &then);
        }
        self.recorder.note_expired(&self.server.journal, &told);
        self.tell(&told);
        left.ready.add(self.server.key_events.waiters.awaited(&told));
        self.server.background.free(&mut garbage);
    }
}
