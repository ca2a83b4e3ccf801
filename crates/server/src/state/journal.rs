//! The journal of this server: who writes into it, and who reads (`disk::journal`).
//!
//! ```text
//! a worker   takes a number while its shards are locked, and writes the record into a buffer of its own
//!            (`core/recorder.rs`); at the end of its batch it publishes the buffer into its lane
//! anybody    who removes keys by itself (expiry, eviction) writes into one more lane, at once
//! a thread   (`core/journal.rs`) puts the records in order and hands them to the readers
//! ```
//!
//! Whether anybody reads changes only while all gates are held, so each worker looks once a batch. Readers
//! that fall behind, because of a disk or a network, hold writers back: from so many bytes on that are
//! published and not read, commands that write wait until half of that is read. Those that only read do not.
//! They wait as well where a reader has been busy with the same records for a second, if their replies do
//! not: what was acknowledged meanwhile would be lost with the process.
use crate::state::clock::Stopwatch;
use crate::state::config::Config;
use crate::state::gate::Alone;
use crate::state::tail::{Present, Tail};
use command::{Effects, Words};
use disk::aof::tail::Kept;
use disk::journal::{Merge, Reader, Records, Run};
use std::hint::cold_path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Event, Keyspace, Told};

/// From so many bytes on that nobody has read, writers wait.
const BEHIND_BYTES: usize = 32 << 20;
/// That many wait.
const MUCH: u8 = 1;
/// A reader is stuck: [`Journal::note_late`].
const LATE: u8 = 2;
/// What a reader has written is not on the disk for long: [`Journal::note_slow`].
const SLOW: u8 = 4;
/// After something has come the thread waits so long before it looks again, unless much comes or somebody is
/// in a hurry: one wake-up, and one write of a file, is for many batches.
const PAUSE: Duration = Duration::from_millis(5);
/// So many bytes end that pause.
const MUCH_BYTES: usize = 1 << 20;
/// A group of records is whole when no more have come for so long, which is a quarter of the time of a sync.
const GATHER_PAUSE_MIN: Duration = Duration::from_micros(50);
const GATHER_PAUSE_MAX: Duration = Duration::from_millis(1);
/// Whoever has all gates waits so long for the end of a turn, and looks so often.
const PATIENCE: Duration = Duration::from_millis(2);
const LOOK_EVERY: Duration = Duration::from_micros(50);
/// The thread gives way for so long between two turns, and looks so often whether it still has to. Whoever
/// wishes for rest waits for all gates, which a script may have for long.
const GIVE_WAY: Duration = Duration::from_millis(20);
const GIVE_WAY_LOOK: Duration = Duration::from_millis(1);
/// So many buffers are kept for each lane to be used again, and no more than this in all. They are given back
/// when nothing comes for so long: to have their pages from the system takes longer than what is done with
/// them.
const SPARE_MAX: usize = 32;
const SPARE_BYTES_MAX: usize = 2 << 20;
const SPARE_FOR: Duration = Duration::from_secs(1);

/// See the file's opener.
pub(crate) struct Journal {
    is_on: AtomicBool,
    /// Where records are kept that no file has yet.
    pub(crate) tail: Tail,
    next: Number,
    /// One for each worker, and the last for everybody else.
    lanes: Box<[Lane]>,
    /// Bytes that are published and not read, and how many records they are.
    waiting_bytes: AtomicUsize,
    waiting_records: AtomicUsize,
    /// What the buffers of all records take that are published, kept for the next ones, or with workers that
    /// have taken such a one.
    held_bytes: AtomicUsize,
    /// When so many records wait the thread is woken, while it gathers a group.
    wanted_records: AtomicUsize,
    /// Why commands that write wait: [`MUCH`], [`LATE`], [`SLOW`].
    behind: AtomicU8,
    /// How often the thread has begun or ended to hand records on: odd while it does.
    turns: AtomicU64,
    /// How many wait for a moment at which it hands nothing on.
    wishes: AtomicUsize,
    /// How removals read: `command::Words`.
    words: AtomicU8,
    delivery: Mutex<Delivery>,
    sleep: Sleep,
    /// Somebody waits for what is read: the thread looks again at once.
    is_urgent: AtomicBool,
    /// What the readers go by has changed: the thread calls them before it rests.
    is_to_look: AtomicBool,
    is_ending: AtomicBool,
    /// A record that is there before what it tells is done ([`Early`]).
    early: Mutex<Option<Arc<dyn Early>>>,
    has_early: AtomicBool,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

/// A request that overwrites keys, whose record is written before all of them are. What becomes meanwhile, by
/// itself, of the old value of one of them (it expires, or is evicted) must not stand behind that record:
/// whoever reads the journal has the new value by then, and would lose it.
pub(crate) trait Early: Send + Sync {
    /// Whether this key is one that it has still to overwrite. The key's shard is locked.
    fn is_due(&self, db: u16, key: &[u8]) -> bool;
}

/// The number of the next record, on cache lines of its own: all workers write it.
#[repr(align(128))]
#[derive(Default)]
struct Number(AtomicU64);

#[repr(align(128))]
#[derive(Default)]
struct Lane(Mutex<Buffers>);

#[derive(Default)]
struct Buffers {
    published: Vec<Records>,
    /// Empty ones with room.
    spare: Vec<Records>,
}

/// Nothing is handed on while this is there, so readers may come and go.
pub(crate) struct AtRest<'j>(MutexGuard<'j, Delivery>);

/// Somebody waits for such a moment ([`Journal::wish_for_rest`]).
pub(crate) struct Wish<'j>(&'j Journal);

impl Drop for Wish<'_> {
    fn drop(&mut self) {
        self.0.wishes.fetch_sub(1, AcqRel);
        self.0.wake();
    }
}

/// Where a reader has its place among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    First,
    Last,
}

/// Those who read, and what waits for its turn.
struct Delivery {
    merge: Merge,
    readers: Vec<Reading>,
    next_id: u64,
}

struct Reading {
    id: u64,
    /// The first record that it reads, and behind the last.
    from: u64,
    until: u64,
    reader: Box<dyn Reader>,
}

/// What the thread knows of the records that it put on the disk last, while replies wait for that.
///
/// Clients that get their replies send again, and are best served if what they send goes under one sync, all
/// together: a sync takes as long for fifty records as for one, and what arrives while it runs has to wait
/// for the next. So the next group is expected to have as many records as this one, and those that have come
/// in the meantime. It is waited for as long as more records keep coming, and not longer than a sync takes.
#[derive(Default)]
struct Group {
    expected: usize,
    took: Duration,
}

/// Wakes the thread.
#[derive(Default)]
struct Sleep {
    /// The thread sleeps until somebody publishes.
    is_asleep: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
}

impl Journal {
    /// Nobody reads yet.
    pub(crate) fn new(workers: usize, config: &Config) -> Arc<Journal> {
        let journal = Journal {
            is_on: AtomicBool::new(false),
            tail: Tail::new(workers + 1),
            next: Number::default(),
            lanes: (0..=workers).map(|_| Lane::default()).collect(),
            waiting_bytes: AtomicUsize::new(0),
            waiting_records: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            wanted_records: AtomicUsize::new(usize::MAX),
            behind: AtomicU8::new(0),
            turns: AtomicU64::new(0),
            wishes: AtomicUsize::new(0),
            words: AtomicU8::new(0),
            delivery: Mutex::new(Delivery {
                merge: Merge::new(workers + 1, 0),
                readers: Vec::new(),
                next_id: 0,
            }),
            sleep: Sleep::default(),
            is_urgent: AtomicBool::new(false),
            is_to_look: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            early: Mutex::default(),
            has_early: AtomicBool::new(false),
            thread: Mutex::default(),
        };
        journal.obey(config);
        Arc::new(journal)
    }

    /// Whether anybody reads. It changes only while all gates are held.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Takes the next number, for a record that is about to be written. The caller holds the shards of what
    /// the record changes, or all gates, and publishes the record when its batch has ended.
    #[inline]
    pub(crate) fn take_number(&self) -> u64 {
        self.next.0.fetch_add(1, Relaxed)
    }

    /// All records that were written so far are below this number.
    pub(crate) fn taken(&self) -> u64 {
        self.next.0.load(Relaxed)
    }

    /// The number of the record that will be written next. With all gates held and nothing open it stands for
    /// an instant: all records below it are published, what they tell is in the data, and nothing else is.
    pub(crate) fn position(&self, _: &Alone<'_>) -> u64 {
        self.next.0.load(Relaxed)
    }

    /// Whether commands that write have to wait for readers.
    #[inline]
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.load(Relaxed) != 0
    }

    /// The number of the present turn of the thread, if it is in one: whoever sees the same for long knows
    /// that a reader is stuck.
    pub(crate) fn present_turn(&self) -> Option<u64> {
        Some(self.turns.load(Relaxed)).filter(|turns| turns % 2 == 1)
    }

    /// A reader is stuck, or no longer.
    pub(crate) fn note_late(&self, is_late: bool) {
        self.hold_back(LATE, is_late);
    }

    /// The disk takes too long for what a reader has written, or no longer.
    pub(crate) fn note_slow(&self, is_slow: bool) {
        self.hold_back(SLOW, is_slow);
    }

    fn hold_back(&self, why: u8, is_so: bool) {
        match is_so {
            true => self.behind.fetch_or(why, Relaxed),
            false => self.behind.fetch_and(!why, Relaxed),
        };
    }

    /// How many bytes wait to be read.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes.load(Relaxed)
    }

    /// What the journal takes, as far as it grows with what is written.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// These buffers are given up.
    fn let_go<'r>(&self, buffers: impl IntoIterator<Item = &'r Records>) {
        let bytes = buffers.into_iter().map(Records::room_bytes).sum();
        self.held_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Removals read as these settings say.
    pub(crate) fn obey(&self, config: &Config) {
        let bit = |is_on: bool, word: u8| if is_on { word } else { 0 };
        let words = bit(config.lazyfree_expire, Words::EXPIRES_LAZILY)
            | bit(config.lazyfree_eviction, Words::EVICTS_LAZILY)
            | bit(config.lazyfree_server_del, Words::DELETES_LAZILY);
        self.words.store(words, Relaxed);
    }

    /// How removals read.
    #[inline]
    pub(crate) fn words(&self) -> Words {
        Words(self.words.load(Relaxed))
    }

    /// Records of a worker, whose numbers are greater than those that it published before. They had room for
    /// so many bytes when they were taken.
    pub(crate) fn publish(&self, lane: usize, records: Records, room_bytes: usize) {
        self.note_waiting(&records, room_bytes);
        self.lanes[lane].lock().published.push(records);
        self.wake_if_asleep();
    }

    /// Room for a worker's next records.
    pub(crate) fn room(&self, lane: usize) -> Records {
        self.lanes[lane].lock().spare.pop().unwrap_or_default()
    }

    /// From here on, until [`Journal::end_early`], such a request is under way. Its record comes next.
    pub(crate) fn begin_early(&self, request: Arc<dyn Early>) {
        *self.early.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        self.has_early.store(true, Release);
    }

    /// It has overwritten all its keys.
    pub(crate) fn end_early(&self) {
        if self.has_early.swap(false, AcqRel) {
            *self.early.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Whether what has become of a key by itself is told: its shard is locked.
    fn tells(&self, told: &Told) -> bool {
        if !self.has_early.load(Acquire) {
            return true;
        }
        cold_path();
        let early = self.early.lock().unwrap_or_else(PoisonError::into_inner).clone();
        early.is_none_or(|request| !request.is_due(told.db, &told.key))
    }

    /// Adds what has gone by itself to `effects`: a key, or fields of a hash, whose shard is locked. Other
    /// events are the doing of commands, which are recorded by themselves.
    pub(crate) fn tell_gone(&self, effects: &mut Effects, told: &Told) {
        if self.tells(told) {
            tell_gone(effects, told, self.words());
        }
    }

    /// Keys have gone by themselves, whose shards the caller holds.
    pub(crate) fn record_gone(&self, told: &[Told]) {
        let mut lane = self.lanes[self.lanes.len() - 1].lock();
        let (mut effects, mut records) = (Effects::default(), Records::default());
        for told in told {
            self.tell_gone(&mut effects, told);
            if !effects.group.is_empty() {
                // Under the lane's lock, so that its numbers ascend.
                let number = self.take_number();
                if !self.tail.keep_in_last(number, Kept::Frames(effects.group.frames())) {
                    self.expose(number);
                }
                effects.group.finish(number, &mut records);
            }
        }
        if !records.is_empty() {
            self.note_waiting(&records, 0);
            lane.published.push(records);
            drop(lane);
            self.wake_if_asleep();
        }
    }

    /// The tail has no room for this record, whose shards the caller holds: replies wait until it is written.
    #[cold]
    pub(crate) fn expose(&self, number: u64) {
        self.tail.expose(number, || self.taken());
        if !self.is_to_look.swap(true, AcqRel) {
            self.wake();
        }
    }

    /// This is the tail from here on.
    pub(crate) fn set_tail(&self, alone: &Alone<'_>, tail: Option<Present>) {
        self.tail.put_in_force(tail, self.position(alone));
    }

    fn note_waiting(&self, records: &Records, known_room_bytes: usize) {
        let bytes = records.used_bytes();
        self.held_bytes.fetch_add(records.room_bytes().saturating_sub(known_room_bytes), Relaxed);
        self.waiting_records.fetch_add(records.count(), Relaxed);
        let waiting = self.waiting_bytes.fetch_add(bytes, Relaxed) + bytes;
        if waiting >= BEHIND_BYTES {
            self.behind.fetch_or(MUCH, Relaxed);
        }
        if waiting >= MUCH_BYTES && waiting - bytes < MUCH_BYTES {
            self.wake();
        }
    }

    fn wake_if_asleep(&self) {
        // The record was pushed under its lane's lock before; whoever falls asleep looks at the lanes after
        // it has said so.
        std::sync::atomic::fence(SeqCst);
        let is_asleep = self.sleep.is_asleep.load(Relaxed) && self.sleep.is_asleep.swap(false, AcqRel);
        if is_asleep || self.waiting_records.load(Relaxed) >= self.wanted_records.load(Relaxed) {
            self.wake();
        }
    }

    fn wake(&self) {
        drop(self.sleep.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.sleep.woken.notify_one();
    }

    /// While this is there the thread waits before it begins a turn, so that whoever waits for the end of the
    /// present one need not wait for the next as well.
    pub(crate) fn wish_for_rest(&self) -> Wish<'_> {
        self.wishes.fetch_add(1, AcqRel);
        Wish(self)
    }

    /// Waits while somebody wishes for rest, but not for long.
    fn give_way(&self) {
        let began = Stopwatch::start();
        while self.wishes.load(Acquire) > 0
            && !self.is_ending.load(Acquire)
            && u128::from(began.elapsed_ns()) < GIVE_WAY.as_nanos()
        {
            let lock = self.sleep.lock.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.sleep.woken.wait_timeout(lock, GIVE_WAY_LOOK));
        }
    }

    /// The end of the present turn, if that comes soon. Whoever has all gates keeps all clients waiting.
    pub(crate) fn at_rest(&self) -> Option<AtRest<'_>> {
        let began = Stopwatch::start();
        loop {
            match self.delivery.try_lock() {
                Ok(delivery) => return Some(AtRest(delivery)),
                Err(TryLockError::Poisoned(error)) => return Some(AtRest(error.into_inner())),
                Err(_) if u128::from(began.elapsed_ns()) > PATIENCE.as_nanos() => return None,
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// Waits for the end of the present turn, however long that takes.
    pub(crate) fn await_turn(&self) {
        drop(self.delivery());
    }

    /// This reader gets all records from here on. At every turn it is called in its `place` among those that
    /// are there already. Returns its id.
    pub(crate) fn attach(
        &self,
        (_, rest): (&Alone<'_>, &mut AtRest<'_>),
        keyspace: &Keyspace,
        (place, reader): (Place, Box<dyn Reader>),
    ) -> u64 {
        let Delivery { readers, next_id, .. } = &mut *rest.0;
        let (id, from) = (*next_id, self.taken());
        *next_id += 1;
        let index = if place == Place::First { 0 } else { readers.len() };
        readers.insert(index, Reading { id, from, until: u64::MAX, reader });
        self.note_readers(readers, keyspace);
        id
    }

    /// This reader gets all records up to here, and no more.
    pub(crate) fn bound(&self, (all, rest): (&Alone<'_>, &mut AtRest<'_>), keyspace: &Keyspace, id: u64) {
        let (readers, until) = (&mut rest.0.readers, self.position(all));
        readers.iter_mut().filter(|reading| reading.id == id).for_each(|reading| reading.until = until);
        self.note_readers(readers, keyspace);
    }

    /// This reader gets nothing more, not even what waits for its turn. It is returned, since what it holds
    /// may take time to be closed.
    pub(crate) fn part_with(
        &self,
        (_, rest): (&Alone<'_>, &mut AtRest<'_>),
        keyspace: &Keyspace,
        id: u64,
    ) -> Option<Box<dyn Reader>> {
        let readers = &mut rest.0.readers;
        let index = readers.iter().position(|reading| reading.id == id)?;
        let parted = readers.remove(index);
        self.note_readers(readers, keyspace);
        if readers.is_empty() {
            // What waited for it alone is let go.
            self.turn_of(&mut rest.0);
        }
        Some(parted.reader)
    }

    /// What changes is recorded while there is somebody who reads on.
    fn note_readers(&self, readers: &[Reading], keyspace: &Keyspace) {
        let is_on = readers.iter().any(|reading| reading.until == u64::MAX);
        if is_on != self.is_on() {
            keyspace.record(is_on);
            self.is_on.store(is_on, Relaxed);
        }
    }

    /// Whether replies wait for what is read. Otherwise one wake-up is for many batches.
    pub(crate) fn be_urgent(&self, is_urgent: bool) {
        self.is_urgent.store(is_urgent, Relaxed);
    }

    /// The settings have changed: a reader may want to be called sooner than it has said.
    pub(crate) fn look_again(&self) {
        self.is_to_look.store(true, Release);
        self.wake();
    }

    /// Hands to the readers what has been published, and waits until each has made sure of it. With all gates
    /// held that is everything.
    pub(crate) fn settle(&self) {
        self.turn();
        self.delivery().readers.iter_mut().for_each(|reading| reading.reader.settle());
    }

    /// Hands to the readers what has been published, as far as its turn has come. Returns how many records
    /// that were, and after how long a reader wants to be called again.
    pub(crate) fn turn(&self) -> (usize, Option<Duration>) {
        self.turn_of(&mut self.delivery())
    }

    fn turn_of(&self, delivery: &mut Delivery) -> (usize, Option<Duration>) {
        let Delivery { merge, readers, .. } = delivery;
        let before = merge.next();
        for (index, lane) in self.lanes.iter().enumerate() {
            let published = std::mem::take(&mut lane.lock().published);
            published.into_iter().for_each(|records| merge.push(index, records));
        }
        let mut bytes = 0;
        merge.drain(&mut |runs| {
            bytes += runs.iter().map(Run::used_bytes).sum::<usize>();
            for reading in readers.iter_mut() {
                // What was taken at an instant is published at it, so no run is on both sides of one.
                let from = runs.partition_point(|run| run.first < reading.from);
                let until = runs.partition_point(|run| run.first < reading.until);
                if from < until {
                    reading.reader.take(&runs[from..until]);
                }
            }
        });
        for (index, lane) in self.lanes.iter().enumerate() {
            let gone_bytes = lane.keep(merge.take_spent(index));
            self.held_bytes.fetch_sub(gone_bytes, Relaxed);
        }
        let due = readers.iter_mut().filter_map(|reading| reading.reader.pause()).min();
        let records = (merge.next() - before) as usize;
        if records == 0 {
            return (0, due);
        }
        self.waiting_records.fetch_sub(records, Relaxed);
        let left = self.waiting_bytes.fetch_sub(bytes, Relaxed) - bytes;
        if left <= BEHIND_BYTES / 2 && self.is_behind() {
            self.behind.fetch_and(!MUCH, Relaxed);
        }
        (records, due)
    }

    /// What the thread does until the server ends.
    pub(crate) fn work(&self) {
        let (mut group, mut quiet) = (Group::default(), Stopwatch::start());
        while !self.is_ending.load(Acquire) {
            self.gather(&group);
            self.give_way();
            let began = Stopwatch::start();
            self.turns.fetch_add(1, Relaxed);
            let (records, due) = self.turn();
            self.turns.fetch_add(1, Relaxed);
            if records > 0 {
                quiet = Stopwatch::start();
                group.took = Duration::from_nanos(began.elapsed_ns());
                group.expected = self.waiting_records.load(Relaxed) + records;
            }
            self.rest(records > 0, due, Duration::from_nanos(quiet.elapsed_ns()));
        }
        self.turn();
    }

    /// While replies wait for the disk: waits for a group of records to go under one sync, as the [`Group`]
    /// before it tells. Alone, a client's record is a group.
    fn gather(&self, group: &Group) {
        let pause = (group.took / 4).clamp(GATHER_PAUSE_MIN, GATHER_PAUSE_MAX);
        let began = Stopwatch::start();
        let mut lock = self.sleep.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted_records.store(group.expected, Relaxed);
        loop {
            std::sync::atomic::fence(SeqCst);
            let waiting = self.waiting_records.load(Relaxed);
            let is_whole = waiting == 0 || waiting >= group.expected;
            let is_late = u128::from(began.elapsed_ns()) >= group.took.as_nanos();
            if is_whole || is_late || !self.is_urgent.load(Relaxed) || self.is_ending.load(Acquire) {
                break;
            }
            let waited = self.sleep.woken.wait_timeout(lock, pause);
            lock = waited.unwrap_or_else(PoisonError::into_inner).0;
            if self.waiting_records.load(Relaxed) == waiting {
                break;
            }
        }
        self.wanted_records.store(usize::MAX, Relaxed);
    }

    /// Waits: for a moment if something has come, else until something does, or a reader is due. Nothing has
    /// come for the time `quiet`.
    fn rest(&self, had_something: bool, due: Option<Duration>, quiet: Duration) {
        let lock = self.sleep.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_to_look.swap(false, AcqRel) {
            return;
        }
        if had_something {
            if self.is_urgent.load(Relaxed) {
                return;
            }
            if self.waiting_bytes() < MUCH_BYTES && !self.is_ending.load(Acquire) {
                drop(self.sleep.woken.wait_timeout(lock, PAUSE));
            }
            return;
        }
        self.sleep.is_asleep.store(true, Relaxed);
        std::sync::atomic::fence(SeqCst);
        let kept_for = Some(SPARE_FOR.saturating_sub(quiet)).filter(|left| !left.is_zero());
        let is_quiet = self.lanes.iter().all(|lane| {
            let mut lane = lane.lock();
            if kept_for.is_none() {
                self.let_go(&std::mem::take(&mut lane.spare));
            }
            lane.published.is_empty()
        });
        if is_quiet && !self.is_ending.load(Acquire) && self.sleep.is_asleep.load(Relaxed) {
            match due.into_iter().chain(kept_for).min() {
                Some(due) => drop(self.sleep.woken.wait_timeout(lock, due)),
                None => drop(self.sleep.woken.wait(lock)),
            }
        }
        self.sleep.is_asleep.store(false, Relaxed);
    }

    /// The server ends: the thread hands on what is published, and returns.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Release);
        self.wake();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn delivery(&self) -> MutexGuard<'_, Delivery> {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    /// Keeps the room of records that have been read, for others. Returns how many bytes were too much.
    fn keep(&self, spent: impl Iterator<Item = Records>) -> usize {
        let (mut spent, mut gone_bytes) = (spent.peekable(), 0);
        if spent.peek().is_some() {
            let spare = &mut self.lock().spare;
            let mut spare_bytes: usize = spare.iter().map(Records::room_bytes).sum();
            for records in spent {
                let room_bytes = records.room_bytes();
                if spare.len() < SPARE_MAX && spare_bytes + room_bytes <= SPARE_BYTES_MAX {
                    spare_bytes += room_bytes;
                    spare.push(records);
                } else {
                    gone_bytes += room_bytes;
                }
            }
        }
        gone_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Buffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tell_gone(effects: &mut Effects, told: &Told, words: Words) {
    effects.begin(told.db, words);
    let word = match told.event {
        Event::EXPIRED => words.expired(),
        Event::EVICTED => words.evicted(),
        Event::FIELDS_EXPIRED => {
            return told.fields.iter().for_each(|field| effects.tell_field_gone(&told.key, field));
        }
        _ => return,
    };
    effects.tell_gone(word, &told.key);
}
