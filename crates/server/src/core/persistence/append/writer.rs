//! The reader of the journal that writes the append-only file. It runs on the journal's thread, which may
//! wait for a disk: workers go on, and what they write meanwhile leaves with the next write, under one sync.
//!
//! `always`: what has come is written and synced at once, then the workers are told, which keep the replies.
//! `everysec`: it is written at once, and synced when the last sync began a second ago, by a thread that
//! waits for the disk while more is written ([`Aside`]). `no`: it is written.
//!
//! While the file moves to another folder a second writer has the same records, at each turn before the first
//! one, so that the folder to which it moves never has less ([`Role`]).
//!
//! A disk that fails is tried again ten times a second. Writes are refused with MISCONF meanwhile, and
//! replies that are kept stay so: nothing was acknowledged that may be lost (`disk::aof::increment`).
use super::appended::Appended;
use super::aside::Aside;
use super::rewrite::{replace_tail, tell_tail_is_lost};
use crate::core::server::Server;
use crate::state::append_only::{AppendOnly, Opened, Phase};
use crate::state::clock::Stopwatch;
use crate::state::config::{AppendSync, reason};
use crate::state::lock::lock;
use disk::aof::increment::{Increment, Keep};
use disk::aof::tail::Place;
use disk::journal::{Reader, Run, Stream};
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// So many bytes are written even if more comes.
const WRITE_BYTES: usize = 256 << 10;
/// How often a disk that fails is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// How long after one sync `everysec` makes the next. One that takes longer has writes wait: else more than
/// that could be lost.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How often it is looked whether the tail's file is there, and another one is made if it is not.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The log is told of a failure that lasts so often.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// What a writer's files are, which changes while it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The append-only file.
    Alone,
    /// They begin in another folder, and nothing depends on them. If they cannot be written they are given
    /// up.
    Beside,
    /// They are whole, and so are those of the other writer: what one of both does not have is not told to
    /// anybody.
    Both,
}

/// What a writer shares with the thread that begins files.
pub(super) struct Role {
    standing: AtomicU8,
    /// Why files beside others cannot be written.
    failure: Mutex<Option<String>>,
}

impl Role {
    pub(super) fn new(standing: Standing) -> Arc<Role> {
        Arc::new(Role { standing: AtomicU8::new(standing as u8), failure: Mutex::default() })
    }

    pub(super) fn set(&self, standing: Standing) {
        self.standing.store(standing as u8, Release);
    }

    fn is(&self, standing: Standing) -> bool {
        self.standing.load(Acquire) == standing as u8
    }

    pub(super) fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }
}

/// See the file's opener.
pub(super) struct Writer {
    /// The server has the journal, and the journal has this.
    server: Weak<Server>,
    append: Arc<AppendOnly>,
    role: Arc<Role>,
    stream: Stream,
    /// Files that are to be finished before the present one, each with the record at which it ends.
    former: VecDeque<(u64, Increment<Appended>)>,
    /// What was noted of the buffers of these and of the present one.
    room_bytes: usize,
    current: Increment<Appended>,
    /// Its number in the list.
    number: u64,
    /// The record that it begins with.
    current_from: u64,
    /// The record that comes next.
    next: u64,
    keep: Keep,
    /// A snapshot is written meanwhile, and the settings say that nothing is synced then.
    rests: bool,
    /// The last second that was written to the file.
    told_s: i64,
    /// Since the last sync.
    synced: Stopwatch,
    /// Since somebody has looked whether the tail's file is there.
    looked: Stopwatch,
    /// The disk has all records below this number.
    synced_to: u64,
    aside: Option<Aside>,
    /// That takes so long that writes wait.
    is_slow: bool,
    failed: Option<Failure>,
}

/// A disk fails: since the last attempt, and since the log was told.
struct Failure {
    tried: Stopwatch,
    told: Stopwatch,
}

impl Writer {
    /// Appends to this file from this record on.
    pub(super) fn new(server: &Server, role: &Arc<Role>, opened: Opened, next: u64) -> Writer {
        let Opened { number, file, len } = opened;
        let keep = keep_for(server.append.sync(), false);
        Writer {
            server: Weak::clone(&server.this),
            append: Arc::clone(&server.append),
            role: Arc::clone(role),
            stream: Stream::for_files(),
            former: VecDeque::new(),
            room_bytes: 0,
            current: Increment::new(Appended(file), len, keep),
            number,
            current_from: next,
            next,
            keep,
            rests: false,
            told_s: 0,
            synced: Stopwatch::start(),
            looked: Stopwatch::start(),
            synced_to: next,
            aside: None,
            is_slow: false,
            failed: None,
        }
    }

    /// The record from which on another file is written to.
    fn cut_at(&self) -> u64 {
        if self.role.is(Standing::Alone) { self.append.cut_at() } else { u64::MAX }
    }

    /// From here on another file is written to.
    fn switch(&mut self) {
        let Some(Opened { number, file, .. }) = self.append.take_cut() else { return };
        // It is finished first, and told of what fails by its own descriptor.
        if let Some(aside) = self.aside.take() {
            self.note_aside(aside.end, &aside.wait());
        }
        let next = Increment::new(Appended(file), 0, self.keep);
        self.former.push_back((self.next, std::mem::replace(&mut self.current, next)));
        self.number = number;
        self.current_from = self.next;
        self.stream.begin_anew();
        self.told_s = 0;
    }

    /// Tells the file the time, once a second.
    fn tell_time(&mut self) {
        let now_s = self.server.upgrade().map_or(self.told_s, |server| server.clock.now().0 / 1000);
        if now_s != self.told_s {
            self.told_s = now_s;
            self.current.gather().extend_from_slice(format!("#TS:{now_s}\r\n").as_bytes());
        }
    }

    /// Takes these records, all of which belong to the present file.
    fn gather(&mut self, runs: &[Run<'_>]) {
        if self.append.has_times() {
            self.tell_time();
        }
        let mut rest = runs;
        while !rest.is_empty() {
            let (plain, others) = rest.split_at(self.stream.count_plain(rest));
            if let [.., last] = plain {
                self.gather_plain(plain);
                self.next = last.end;
            }
            rest = others;
            if let [first, behind @ ..] = others {
                self.stream.write(first, self.current.gather());
                self.next = first.end;
                rest = behind;
            }
            self.write_if_much();
        }
    }

    /// What its buffers take is no data.
    fn note_room(&mut self) {
        let former: usize = self.former.iter().map(|(_, file)| file.room_bytes()).sum();
        let room_bytes = self.current.room_bytes() + former;
        let before = std::mem::replace(&mut self.room_bytes, room_bytes);
        // There may be another writer, whose room counts too.
        self.append.room_bytes.fetch_add(room_bytes as u64, Relaxed);
        self.append.room_bytes.fetch_sub(before as u64, Relaxed);
    }

    fn write_if_much(&mut self) {
        if self.current.gathered_bytes() >= WRITE_BYTES
            && self.failed.is_none()
            && let Some(server) = self.server.upgrade()
        {
            // Where that fails, what follows notes it.
            if self.former.is_empty() && self.current.write_blocks().is_ok() {
                return;
            }
            self.flush(&server, false);
        }
    }

    /// Takes records whose words follow each other in the file. Where they are many, they are written from
    /// where they lie.
    fn gather_plain(&mut self, runs: &[Run<'_>]) {
        let words = || runs.iter().filter_map(Run::words).map(|(_, words)| words);
        let bytes: usize = words().map(<[u8]>::len).sum();
        let are_many = self.current.gathered_bytes() + bytes >= WRITE_BYTES;
        if are_many && self.failed.is_none() && self.former.is_empty() {
            // Where that fails all is gathered, and the next attempt notes it.
            let _ = self.current.write_behind(&words().collect::<Vec<_>>());
        } else {
            words().for_each(|words| self.current.gather().extend_from_slice(words));
        }
    }

    /// Writes what is gathered, and syncs it where that is due. Returns after how long it is to be tried
    /// again.
    fn flush(&mut self, server: &Server, must_sync: bool) -> Option<Duration> {
        let append = &server.append;
        // A rewrite has begun, and nothing was written since.
        while self.next >= self.cut_at() {
            self.switch();
        }
        self.rests = append.rests_while_saving() && is_saving(server);
        self.obey(append.sync());
        let done = self.look_aside(must_sync).and_then(|()| self.write(server, must_sync));
        let late = self.note_slow(server);
        let look = self.lacks_tail(server).then_some(LOOK_EVERY);
        let done = done.map(|due| [due, late, look].into_iter().flatten().min());
        if !self.role.is(Standing::Alone) {
            return self.note_beside(server, done);
        }
        self.note_doubts();
        append.gathered_bytes.store(self.current.gathered_bytes() as u64, Relaxed);
        self.note_room();
        append.is_unsynced.store(self.current.is_unsynced(), Relaxed);
        append.current_bytes.store(self.current.len(), Relaxed);
        append.current_from.store(self.current_from, Release);
        append.former_bytes.store(self.former.iter().map(|(_, file)| file.len()).sum(), Relaxed);
        match done {
            Ok(due) => {
                self.tell_synced(server);
                self.note_success(server);
                due
            }
            Err(error) => {
                self.note_failure(server, &error);
                Some(RETRY)
            }
        }
    }

    /// What an attempt came to, of files that are not the append-only file yet.
    fn note_beside(&mut self, server: &Server, done: io::Result<Option<Duration>>) -> Option<Duration> {
        let why = match done {
            Ok(due) if !self.current.is_doubtful() => {
                self.failed = None;
                if self.role.is(Standing::Both) {
                    let reached = self.reached();
                    self.append.note_synced_elsewhere(reached);
                }
                return due;
            }
            Ok(_) => "a part of it may be missing".into(),
            Err(error) => reason(&error),
        };
        *lock(&self.role.failure) = Some(why);
        self.failed = Some(Failure { tried: Stopwatch::start(), told: Stopwatch::start() });
        server.append.rewrites.give_up();
        Some(RETRY)
    }

    /// Files that may have a gap have to be replaced before anybody relies on what is in them.
    fn note_doubts(&self) {
        let former = self.former.iter().map(|(end, file)| (*end, file));
        let all = former.chain([(self.next, &self.current)]);
        all.filter(|(_, file)| file.is_doubtful()).for_each(|(end, _)| self.append.doubt(end));
    }

    /// Tells the workers how far the disk is.
    fn tell_synced(&mut self, server: &Server) {
        let append = &server.append;
        let mut reached = self.reached();
        if append.is_doubtful() {
            // The system has it all the same.
            let is_enough = append.sync() != AppendSync::Always;
            reached = (0, if is_enough { reached.1 } else { 0 });
        }
        if append.note_synced(reached) {
            append.waiting().for_each(|worker| server.mailboxes[worker].wake());
        }
    }

    /// The disk has all records below the first number, and below the second are those which the settings do
    /// not have replies wait for.
    fn reached(&mut self) -> (u64, u64) {
        if !self.current.is_unsynced() {
            self.synced_to = self.next;
        }
        let waits = !self.rests && self.append.sync() == AppendSync::Always;
        (self.synced_to, if waits { self.synced_to } else { self.next })
    }

    /// The system has all that was taken, and nothing will have the file be shorter again: the tail need not
    /// keep it. What waits for a sync may be cut off where that fails ([`Keep::UntilSynced`]).
    fn tell_written(&mut self, server: &Server) {
        let stays = self.keep == Keep::Nothing || !self.current.is_unsynced();
        if stays && self.role.is(Standing::Alone) {
            let Writer { number, next, .. } = *self;
            let place = Place { file: number, len: self.current.len(), next, db: self.stream.db() };
            let tail = &server.journal.tail;
            tail.commit(place);
            let is_time = self.looked.elapsed_ns() > LOOK_EVERY.as_nanos() as u64;
            if is_time {
                self.looked = Stopwatch::start();
                tail.look_for_name();
            }
            let is_lost = tail.note_lost();
            if is_lost {
                tell_tail_is_lost(server);
            }
            if is_lost || is_time && self.lacks_tail(server) {
                replace_tail(server);
            }
        }
    }

    /// Whether there is no tail that counts, though there should be one.
    fn lacks_tail(&self, server: &Server) -> bool {
        self.role.is(Standing::Alone)
            && server.append.phase() == Phase::On
            && !server.journal.tail.is_in_force()
    }

    fn obey(&mut self, sync: AppendSync) {
        let keep = keep_for(sync, self.rests);
        if keep != self.keep {
            self.keep = keep;
            self.current.keep(keep);
            self.former.iter_mut().for_each(|(_, file)| file.keep(keep));
        }
    }

    /// Hears of the sync that another thread waits for, if it has ended, or is waited for here.
    fn look_aside(&mut self, waits: bool) -> io::Result<()> {
        let outcome = self.aside.as_ref().and_then(|aside| {
            let outcome = if waits { Some(aside.wait()) } else { aside.outcome() };
            Some((aside.end, outcome?))
        });
        let Some((end, outcome)) = outcome else { return Ok(()) };
        self.aside = None;
        self.note_aside(end, &outcome);
        outcome
    }

    fn note_aside(&mut self, end: u64, outcome: &io::Result<()>) {
        self.current.note_sync_ended(outcome.is_ok());
        if outcome.is_ok() {
            self.synced_to = self.synced_to.max(end);
        }
    }

    fn write(&mut self, server: &Server, must_sync: bool) -> io::Result<Option<Duration>> {
        let append = &server.append;
        while let Some((end, file)) = self.former.front_mut() {
            // What a newer snapshot has need not be written.
            if append.covered() < *end {
                file.write()?;
                file.sync()?;
                if file.is_doubtful() {
                    append.doubt(*end);
                }
                append.note_finished(*end, file.len());
            }
            self.former.pop_front();
        }
        self.current.write()?;
        self.tell_written(server);
        let age = Duration::from_nanos(self.synced.elapsed_ns());
        let due = match append.sync() {
            _ if must_sync => Duration::ZERO,
            _ if !self.current.is_unsynced() => Duration::MAX,
            _ if self.rests => SYNC_EVERY,
            AppendSync::Always => Duration::ZERO,
            // After a failure nobody is told that all is well before the writer's own descriptor says so.
            AppendSync::EverySecond if self.failed.is_some() => Duration::ZERO,
            AppendSync::EverySecond if self.aside.is_some() => Duration::MAX,
            AppendSync::EverySecond => SYNC_EVERY.saturating_sub(age),
            AppendSync::No => Duration::MAX,
        };
        if due.is_zero() {
            self.sync(server, must_sync)?;
            if self.keep == Keep::UntilSynced {
                self.tell_written(server);
            }
        }
        Ok((!due.is_zero() && due != Duration::MAX).then_some(due))
    }

    /// Has all that was written put on the disk, and waits for that unless the settings leave it time.
    fn sync(&mut self, server: &Server, must_sync: bool) -> io::Result<()> {
        let has_time = self.append.sync() == AppendSync::EverySecond && !must_sync && self.failed.is_none();
        if has_time {
            // Without a thread, or a second descriptor, it is waited for here.
            self.aside = Aside::begin(self.current.medium(), self.next, &server.journal).ok();
        }
        match self.aside {
            Some(_) if has_time => self.current.note_sync_begun(),
            _ => self.current.sync()?,
        }
        self.synced = Stopwatch::start();
        Ok(())
    }

    /// Has writes wait while another thread has waited for the disk for too long, and the settings want it to
    /// be soon. Returns when to look again.
    fn note_slow(&mut self, server: &Server) -> Option<Duration> {
        let left = self.aside.as_ref().map(|aside| SYNC_EVERY.saturating_sub(aside.age()));
        let is_hurried = self.append.sync() == AppendSync::EverySecond;
        let is_slow = is_hurried && left.is_some_and(|left| left.is_zero());
        if is_slow != self.is_slow && self.role.is(Standing::Alone) {
            self.is_slow = is_slow;
            server.append.delays.fetch_add(u64::from(is_slow), Relaxed);
            server.journal.note_slow(is_slow);
        }
        left.filter(|left| !left.is_zero())
    }

    fn note_failure(&mut self, server: &Server, error: &io::Error) {
        let why = reason(error);
        // A file that does not count yet is no reason to refuse anything, nor to keep what it does not take.
        let counts = server.append.phase() == Phase::On;
        let is_new = server.append.note_failure(why.clone(), counts.then_some(&server.persistence));
        let failure = self
            .failed
            .get_or_insert_with(|| Failure { tried: Stopwatch::start(), told: Stopwatch::start() });
        failure.tried = Stopwatch::start();
        if is_new || failure.told.elapsed_ns() > TELL_EVERY.as_nanos() as u64 {
            failure.told = Stopwatch::start();
            server.log.warning(&format!("Error writing to the AOF file: {why}"));
        }
        if !counts {
            server.append.rewrites.give_up();
        }
    }

    fn note_success(&mut self, server: &Server) {
        if self.failed.take().is_some() {
            server.append.note_success(&server.persistence);
            server.log.warning("AOF write error looks solved. The server can write again.");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(server) = self.server.upgrade().filter(|_| self.is_slow) {
            server.journal.note_slow(false);
        }
        self.append.room_bytes.fetch_sub(self.room_bytes as u64, Relaxed);
        self.append.gathered_bytes.store(0, Relaxed);
    }
}

/// While it rests it would keep all that is written during a snapshot.
fn keep_for(sync: AppendSync, rests: bool) -> Keep {
    match sync {
        AppendSync::Always if !rests => Keep::UntilSynced,
        _ => Keep::Nothing,
    }
}

/// Whether a snapshot is being written, of any kind.
fn is_saving(server: &Server) -> bool {
    server.persistence.saves.running().is_some() || server.append.rewrites.running().is_some()
}

impl Reader for Writer {
    fn take(&mut self, runs: &[Run<'_>]) {
        let mut rest = runs;
        while let [first, ..] = rest {
            while first.first >= self.cut_at() {
                self.switch();
            }
            // All that is below an instant is published at it, so no run is on both sides.
            let cut_at = self.cut_at();
            let (now, later) = rest.split_at(rest.partition_point(|run| run.first < cut_at));
            debug_assert!(now.iter().all(|run| run.end <= cut_at), "a run goes into two files");
            self.gather(now);
            rest = later;
        }
        self.note_room();
    }

    fn pause(&mut self) -> Option<Duration> {
        let server = self.server.upgrade()?;
        if let Some(failure) = &self.failed {
            let passed = Duration::from_nanos(failure.tried.elapsed_ns());
            if passed < RETRY {
                return Some(RETRY - passed);
            }
        }
        self.flush(&server, false)
    }

    fn settle(&mut self) {
        if let Some(server) = self.server.upgrade() {
            self.flush(&server, true);
        }
    }
}
