//! What is known of the append-only file: whether there is one, how far it is on the disk, who waits for
//! that, how the last attempts ended. `core/persistence/append` does the work.
//!
//! ```text
//! Off --- appendonly yes ---> Beginning --- its first snapshot is written ---> On
//!  ^                              |                                            |
//!  |<------------- given up ------/                                            |
//!  \---- the disk has what was recorded --- Ending <--- appendonly no ----------/
//!
//! Off --- the server starts with it, and has loaded it ---> On
//! ```
//!
//! What is asked for while the data is loaded is done when it is loaded.
//!
//! While it is `Beginning`, changes are written to a file that counts only once there is a snapshot to go
//! with it. While it is `Ending` nothing more is recorded.
//!
//! One thread turns it on and off and begins it anew, in the order in which that is asked for ([`Orders`]);
//! another, that of the journal, writes.
use crate::state::config::{AppendSync, Appending};
use crate::state::disk::DiskFile;
use crate::state::lock::lock;
use crate::state::persistence::{Persistence, Save, UNWRITTEN};
use disk::aof::manifest::{Manifest, Part};
use std::collections::VecDeque;
use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, fence};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// See the file's opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Off,
    Beginning,
    On,
    Ending,
}

/// All of it; one for a server.
pub(crate) struct AppendOnly {
    phase: AtomicU8,
    /// The settings in force, as those who write look at them.
    sync: AtomicU8,
    rests_while_saving: AtomicBool,
    has_times: AtomicBool,
    /// All records of the journal below this number are on the disk, or are in a snapshot that is.
    synced: Tide,
    /// Replies that wait for the disk may leave if they wait for records below this number. It is that of
    /// `synced`, but where the settings do not have replies wait for that: then it says how far the system
    /// has them.
    answerable: Tide,
    /// For each worker, whether replies wait for that.
    waiting: Box<[Waiting]>,
    /// From these records on other files are written to: [`AppendOnly::take_cut`]. There are several where
    /// the disk is so slow that the file has begun anew again before the writer came to the first.
    cuts: Mutex<VecDeque<(u64, Opened)>>,
    /// The first of them.
    cut_at: AtomicU64,
    /// Records below are in a snapshot that the file begins with: what was not written of them need not be.
    covered: AtomicU64,
    /// The last write has failed.
    has_failed: AtomicBool,
    /// Why, as clients are told.
    failure: Mutex<String>,
    /// A part of what the records below this number have come to may be missing in the files, but for what
    /// is covered.
    doubtful: AtomicU64,
    /// How long the increments are that are to be finished before the present one, and that one.
    pub(crate) former_bytes: AtomicU64,
    pub(crate) current_bytes: AtomicU64,
    /// The record that the present one begins with.
    pub(crate) current_from: AtomicU64,
    /// Those that were finished, by the record at which each ends. They count until a base covers them: there
    /// are some where a rewrite has failed.
    finished: Mutex<Vec<(u64, u64)>>,
    /// How long the file's base is, and how long all was when it last began.
    pub(crate) base_bytes: AtomicU64,
    pub(crate) bytes_at_begin: AtomicU64,
    /// What is taken and not written.
    pub(crate) gathered_bytes: AtomicU64,
    /// What the buffers take in which that is gathered.
    pub(crate) room_bytes: AtomicU64,
    /// Whether what was written waits to be put on the disk.
    pub(crate) is_unsynced: AtomicBool,
    /// How often writers had to wait because the disk took too long.
    pub(crate) delays: AtomicU64,
    /// The reader of the journal that writes, while there is one.
    pub(crate) reader: Mutex<Option<u64>>,
    pub(crate) files: Mutex<Files>,
    /// The files in another folder, while it moves there, or after it could not.
    pub(crate) elsewhere: Mutex<Files>,
    /// All records below this number are on the disk in that folder too, since the files there count: nobody
    /// is told of more. Greater than all numbers while they do not.
    also_synced: AtomicU64,
    also_answerable: AtomicU64,
    /// The configuration file names another folder than the one that it is in.
    is_to_move: AtomicBool,
    pub(crate) rewrites: Rewrites,
    orders: Mutex<Orders>,
    ordered: Condvar,
    /// The thread that carries them out.
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

/// A number on cache lines of its own: one thread writes it, all workers read it.
#[repr(align(128))]
struct Tide(AtomicU64);

#[repr(align(128))]
#[derive(Default)]
struct Waiting(AtomicBool);

/// Which files there are.
#[derive(Default)]
pub(crate) struct Files {
    /// Where they are.
    pub(crate) folder: PathBuf,
    pub(crate) manifest: Manifest,
    /// Files that were made for a list which is not known to be on the disk, nor not to be: nobody may write
    /// over them before another list is.
    pub(crate) tried: Vec<Part>,
    /// While it is there no other server appends to these files.
    pub(crate) claim: Option<File>,
}

/// An increment that is written to.
pub(crate) struct Opened {
    /// Its number in the list.
    pub(crate) number: u64,
    pub(crate) file: DiskFile,
    /// How long it is.
    pub(crate) len: u64,
}

/// What is to be done, by one thread.
#[derive(Default)]
struct Orders {
    is_wanted: bool,
    /// It is to begin, or to begin anew, and the thread has not looked yet.
    rewrites: bool,
    /// Its tail is to be made anew.
    wants_tail: bool,
    /// The thread is at a rewrite.
    is_rewriting: bool,
    /// The data is loaded: until then orders are kept. A snapshot of a part of it would take the place of
    /// all.
    is_loaded: bool,
    ends: bool,
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Its tail is lost, and another is made.
    Tail,
    /// It begins where it is off and wanted, and else begins anew.
    Rewrite,
    Stop,
    End,
}

/// How often the file began anew, and how that ended.
pub(crate) struct Rewrites {
    /// The snapshot that is being written for it.
    running: Mutex<Option<Arc<Save>>>,
    pub(crate) count: AtomicU64,
    /// How many failed in a row.
    pub(crate) failures: AtomicU64,
    /// When the last one ended, by the steady time.
    pub(crate) ended_us: AtomicI64,
    /// How long it took; -1: there was none.
    pub(crate) took_s: AtomicI64,
    pub(crate) has_failed: AtomicBool,
    pub(crate) copied_bytes: AtomicU64,
}

const NO_CUT: u64 = u64::MAX;
const NOWHERE: u64 = u64::MAX;

impl AppendOnly {
    /// There is none yet.
    pub(crate) fn new(workers: usize, settings: &Appending) -> AppendOnly {
        let append = AppendOnly {
            phase: AtomicU8::new(Phase::Off as u8),
            sync: AtomicU8::new(0),
            rests_while_saving: AtomicBool::new(false),
            has_times: AtomicBool::new(false),
            synced: Tide(AtomicU64::new(0)),
            answerable: Tide(AtomicU64::new(0)),
            waiting: (0..workers).map(|_| Waiting::default()).collect(),
            cuts: Mutex::default(),
            cut_at: AtomicU64::new(NO_CUT),
            covered: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            failure: Mutex::default(),
            doubtful: AtomicU64::new(0),
            former_bytes: AtomicU64::new(0),
            current_bytes: AtomicU64::new(0),
            current_from: AtomicU64::new(0),
            finished: Mutex::default(),
            base_bytes: AtomicU64::new(0),
            bytes_at_begin: AtomicU64::new(0),
            gathered_bytes: AtomicU64::new(0),
            room_bytes: AtomicU64::new(0),
            is_unsynced: AtomicBool::new(false),
            delays: AtomicU64::new(0),
            reader: Mutex::default(),
            files: Mutex::default(),
            elsewhere: Mutex::default(),
            also_synced: AtomicU64::new(NOWHERE),
            also_answerable: AtomicU64::new(NOWHERE),
            is_to_move: AtomicBool::new(false),
            rewrites: Rewrites {
                running: Mutex::default(),
                count: AtomicU64::new(0),
                failures: AtomicU64::new(0),
                ended_us: AtomicI64::new(i64::MIN),
                took_s: AtomicI64::new(-1),
                has_failed: AtomicBool::new(false),
                copied_bytes: AtomicU64::new(0),
            },
            orders: Mutex::new(Orders { is_wanted: settings.is_wanted, ..Orders::default() }),
            ordered: Condvar::new(),
            thread: Mutex::default(),
        };
        append.obey(settings);
        append
    }

    /// How it writes, from here on. Whether it writes is [`AppendOnly::want`].
    pub(crate) fn obey(&self, settings: &Appending) {
        self.sync.store(settings.sync as u8, Relaxed);
        self.rests_while_saving.store(settings.rests_while_saving, Relaxed);
        self.has_times.store(settings.has_times, Relaxed);
    }

    /// What `appendfsync` says.
    pub(crate) fn sync(&self) -> AppendSync {
        match self.sync.load(Relaxed) {
            sync if sync == AppendSync::Always as u8 => AppendSync::Always,
            sync if sync == AppendSync::No as u8 => AppendSync::No,
            _ => AppendSync::EverySecond,
        }
    }

    pub(crate) fn has_times(&self) -> bool {
        self.has_times.load(Relaxed)
    }

    pub(crate) fn rests_while_saving(&self) -> bool {
        self.rests_while_saving.load(Relaxed)
    }

    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Acquire) {
            phase if phase == Phase::On as u8 => Phase::On,
            phase if phase == Phase::Beginning as u8 => Phase::Beginning,
            phase if phase == Phase::Ending as u8 => Phase::Ending,
            _ => Phase::Off,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Release);
    }

    /// Whether a reply to a write is kept until the disk has what was written.
    #[inline]
    pub(crate) fn holds_replies(&self) -> bool {
        // What was recorded before the end is waited for.
        self.sync.load(Relaxed) == AppendSync::Always as u8 && self.phase.load(Relaxed) >= Phase::On as u8
    }

    // How far the disk is.

    /// All records below this number are on the disk.
    #[inline]
    pub(crate) fn synced(&self) -> u64 {
        self.synced.0.load(Acquire)
    }

    /// Replies that wait for records below this number may leave.
    #[inline]
    pub(crate) fn answerable(&self) -> u64 {
        self.answerable.0.load(Acquire)
    }

    /// The disk has all records below the first number, and replies may leave that wait for records below the
    /// second, which is no less. Returns whether that is new: then [`AppendOnly::waiting`] are to be woken.
    pub(crate) fn note_synced(&self, (synced, answerable): (u64, u64)) -> bool {
        let raise = |tide: &Tide, number: u64, limit: &AtomicU64| {
            let number = number.min(limit.load(Acquire));
            tide.0.fetch_max(number, AcqRel) < number
        };
        let is_new = raise(&self.synced, synced, &self.also_synced)
            | raise(&self.answerable, answerable, &self.also_answerable);
        // A worker says that it waits, and then looks once more; here it is the other way round.
        fence(SeqCst);
        is_new
    }

    /// The files in another folder count from here on, beside those in the present one.
    pub(crate) fn count_elsewhere(&self) {
        self.note_synced_elsewhere((0, 0));
    }

    /// How far they are, as in [`AppendOnly::note_synced`].
    pub(crate) fn note_synced_elsewhere(&self, (synced, answerable): (u64, u64)) {
        self.also_synced.store(synced, Release);
        self.also_answerable.store(answerable, Release);
    }

    /// There is one folder again that counts.
    pub(crate) fn count_one(&self) {
        self.note_synced_elsewhere((NOWHERE, NOWHERE));
    }

    /// Whether replies of this worker wait for the disk. It has to look at [`AppendOnly::answerable`] once
    /// more before it sleeps.
    pub(crate) fn note_waiting(&self, worker: usize, waits: bool) {
        self.waiting[worker].0.store(waits, Relaxed);
        fence(SeqCst);
    }

    /// All workers where replies wait for the disk.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        let waits = |(_, waiting): &(usize, &Waiting)| waiting.0.load(Relaxed);
        self.waiting.iter().enumerate().filter(waits).map(|(worker, _)| worker)
    }

    // Where it is written to.

    /// From this record on `file` is written to. The caller holds all gates, so nobody has taken the number.
    pub(crate) fn cut(&self, number: u64, file: Opened) {
        let mut cuts = lock(&self.cuts);
        cuts.push_back((number, file));
        self.cut_at.store(cuts[0].0, Release);
    }

    /// The record from which on another file is written to; greater than all numbers if there is none.
    #[inline]
    pub(crate) fn cut_at(&self) -> u64 {
        self.cut_at.load(Acquire)
    }

    /// The records from which on other files are written to, each with the file's number in the list.
    pub(crate) fn cuts(&self) -> Vec<(u64, u64)> {
        lock(&self.cuts).iter().map(|(from, file)| (*from, file.number)).collect()
    }

    /// That file, for whoever writes.
    pub(crate) fn take_cut(&self) -> Option<Opened> {
        let mut cuts = lock(&self.cuts);
        let taken = cuts.pop_front();
        self.cut_at.store(cuts.front().map_or(NO_CUT, |(number, _)| *number), Relaxed);
        Some(taken?.1)
    }

    /// Nothing is written any more.
    pub(crate) fn forget_cuts(&self) {
        let mut cuts = lock(&self.cuts);
        cuts.clear();
        self.cut_at.store(NO_CUT, Relaxed);
    }

    /// A snapshot is on the disk that has all records below this number. Returns whether that has ended a
    /// doubt.
    pub(crate) fn cover(&self, number: u64) -> bool {
        let was_doubtful = self.is_doubtful();
        self.covered.fetch_max(number, AcqRel);
        was_doubtful && !self.is_doubtful()
    }

    /// A file to which the records below this number were written may have a gap.
    pub(crate) fn doubt(&self, number: u64) {
        self.doubtful.fetch_max(number, AcqRel);
    }

    /// The files with the gap are not those that count any more.
    pub(crate) fn forget_doubts(&self) {
        self.doubtful.store(0, Release);
    }

    /// Whether a part of the files may be missing: they have to begin anew.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful.load(Acquire) > self.covered()
    }

    pub(crate) fn covered(&self) -> u64 {
        self.covered.load(Acquire)
    }

    /// How long all files are together. Whoever writes may not have seen yet that there is a new base, and
    /// that another increment begins behind it.
    pub(crate) fn bytes(&self) -> u64 {
        let is_current = self.current_from.load(Acquire) >= self.covered();
        let current = if is_current { self.current_bytes.load(Relaxed) } else { 0 };
        let finished = lock(&self.finished);
        let finished = finished.iter().filter(|(end, _)| *end > self.covered()).map(|(_, len)| len);
        finished.sum::<u64>() + self.base_bytes.load(Relaxed) + self.former_bytes.load(Relaxed) + current
    }

    /// An increment of so many bytes is finished, which ends at this record.
    pub(crate) fn note_finished(&self, end: u64, bytes: u64) {
        let mut finished = lock(&self.finished);
        finished.retain(|(end, _)| *end > self.covered());
        finished.push((end, bytes));
    }

    /// CONFIG RESETSTAT
    pub(crate) fn reset(&self) {
        [&self.rewrites.count, &self.rewrites.failures, &self.delays]
            .iter()
            .for_each(|c| c.store(0, Relaxed));
    }

    // Failures.

    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Acquire)
    }

    /// The last write has failed for this reason. Where writes are to be refused for it, they are before
    /// anyone can see in INFO that it has. Returns whether that is new; another reason is not, since a disk
    /// may fail now in this way and now in that. The reason stays for those who are refused at the moment at
    /// which the disk works again.
    pub(crate) fn note_failure(&self, why: String, refusing: Option<&Persistence>) -> bool {
        *lock(&self.failure) = why;
        if let Some(persistence) = refusing {
            persistence.refuse(UNWRITTEN, true);
        }
        !self.has_failed.swap(true, AcqRel)
    }

    /// Nothing is left unwritten: whoever sees that in INFO may write.
    pub(crate) fn note_success(&self, persistence: &Persistence) {
        persistence.refuse(UNWRITTEN, false);
        self.has_failed.store(false, Release);
    }

    /// Why the last write that has failed did so.
    pub(crate) fn failure(&self) -> String {
        lock(&self.failure).clone()
    }

    // Orders.

    /// Whether there is to be one. Returns at once; what is under way for nothing is given up.
    pub(crate) fn want(&self, is_wanted: bool) {
        let mut orders = lock(&self.orders);
        if orders.is_wanted == is_wanted {
            return;
        }
        orders.is_wanted = is_wanted;
        orders.rewrites = is_wanted;
        if !is_wanted {
            self.rewrites.give_up();
        }
        self.ordered.notify_one();
    }

    /// Whether there is one, or will be.
    pub(crate) fn is_wanted(&self) -> bool {
        lock(&self.orders).is_wanted
    }

    /// Whether it begins, or begins anew, or is about to.
    pub(crate) fn is_rewriting(&self) -> bool {
        let orders = lock(&self.orders);
        orders.is_loaded && orders.rewrites || orders.is_rewriting
    }

    /// Whether it was asked for, and no file has the data yet.
    pub(crate) fn is_beginning(&self) -> bool {
        let orders = lock(&self.orders);
        match self.phase() {
            Phase::Off | Phase::Ending => orders.is_loaded && orders.is_wanted,
            Phase::Beginning => true,
            Phase::On => false,
        }
    }

    /// Whether an attempt to begin has failed, and another follows.
    pub(crate) fn waits_to_begin(&self) -> bool {
        let orders = lock(&self.orders);
        let is_idle = orders.is_loaded && !orders.rewrites && !orders.is_rewriting;
        is_idle && orders.is_wanted && self.phase() == Phase::Off
    }

    /// Has it begin anew; false if that is under way.
    pub(crate) fn order_rewrite(&self) -> bool {
        let mut orders = lock(&self.orders);
        if orders.rewrites || orders.is_rewriting {
            return false;
        }
        orders.rewrites = true;
        self.ordered.notify_one();
        true
    }

    /// Has its tail be made anew.
    pub(crate) fn order_tail(&self) {
        lock(&self.orders).wants_tail = true;
        self.ordered.notify_one();
    }

    /// The configuration file names another folder than the one that it is in, or does not.
    pub(crate) fn note_to_move(&self, is_so: bool) {
        self.is_to_move.store(is_so, Release);
    }

    pub(crate) fn is_to_move(&self) -> bool {
        self.is_to_move.load(Acquire)
    }

    /// Whether it is moving to the folder in which the next start will look for it.
    pub(crate) fn is_moving(&self) -> bool {
        self.is_to_move() && self.is_rewriting()
    }

    /// The data is loaded, and the file is on if it was loaded from that. What was asked for meanwhile is
    /// done from here on. Returns whether there is anything.
    pub(crate) fn note_loaded(&self) -> bool {
        let mut orders = lock(&self.orders);
        let is_on = self.phase() == Phase::On;
        orders.is_loaded = true;
        // It goes on with the file that was loaded, whatever it was told in between.
        orders.rewrites = orders.is_wanted && !is_on;
        self.ordered.notify_one();
        orders.is_wanted != is_on
    }

    /// What to do next, waited for. The order before, if there was one, is carried out.
    pub(crate) fn next_order(&self) -> Order {
        let mut orders = lock(&self.orders);
        orders.is_rewriting = false;
        loop {
            if orders.ends {
                return Order::End;
            }
            if orders.is_loaded && !orders.is_wanted && self.phase() != Phase::Off {
                return Order::Stop;
            }
            if std::mem::take(&mut orders.wants_tail) && self.phase() == Phase::On {
                return Order::Tail;
            }
            if orders.is_loaded && std::mem::take(&mut orders.rewrites) {
                orders.is_rewriting = true;
                return Order::Rewrite;
            }
            orders = self.ordered.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The server ends: what is under way is given up, and the thread returns.
    pub(crate) fn end(&self) {
        lock(&self.orders).ends = true;
        self.rewrites.give_up();
        self.ordered.notify_one();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Rewrites {
    /// The snapshot that is being written.
    pub(crate) fn running(&self) -> Option<Arc<Save>> {
        lock(&self.running).clone()
    }

    pub(crate) fn begin(&self, save: Save) -> Arc<Save> {
        Arc::clone(lock(&self.running).insert(Arc::new(save)))
    }

    /// It has ended, at this steady time; None if it was given up.
    pub(crate) fn end(&self, is_done: Option<bool>, took_s: i64, now_us: i64) {
        if let Some(save) = lock(&self.running).take() {
            self.copied_bytes.store(save.copied_bytes(), Relaxed);
        }
        let Some(is_done) = is_done else { return };
        self.took_s.store(took_s, Relaxed);
        self.ended_us.store(now_us, Relaxed);
        self.has_failed.store(!is_done, Relaxed);
        match is_done {
            true => {
                self.failures.store(0, Relaxed);
                self.count.fetch_add(1, Relaxed);
            }
            false => drop(self.failures.fetch_add(1, Relaxed)),
        }
    }

    /// Asks the one that is being written to stop.
    pub(crate) fn give_up(&self) {
        if let Some(save) = self.running() {
            save.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> AppendOnly {
        let append = AppendOnly::new(1, &Appending { is_wanted: true, ..Appending::default() });
        append.enter(Phase::On);
        assert!(!append.note_loaded());
        append
    }

    #[test]
    fn an_order_that_nothing_comes_of_is_not_under_way_for_ever() {
        let append = loaded();
        assert!(append.order_rewrite() && append.is_rewriting() && !append.order_rewrite());
        // Before the thread has looked.
        append.want(false);
        assert!(!append.is_rewriting());
        assert_eq!(append.next_order(), Order::Stop);
        append.enter(Phase::Ending);
        assert!(!append.is_beginning());
        append.want(true);
        assert!(append.is_beginning(), "another will begin");
        append.enter(Phase::Off);
        assert!(append.is_beginning(), "nothing is saved yet");
        assert!(append.is_rewriting());
        assert_eq!(append.next_order(), Order::Rewrite);
        append.rewrites.end(Some(true), 0, 0);
        append.enter(Phase::On);
        append.want(false);
        assert_eq!(append.next_order(), Order::Stop);
        assert!(!append.is_rewriting());
    }

    #[test]
    fn a_rewrite_that_is_asked_for_while_the_file_is_turned_off_is_made() {
        let append = loaded();
        append.want(false);
        assert!(append.order_rewrite());
        assert_eq!(append.next_order(), Order::Stop);
        append.enter(Phase::Off);
        assert_eq!(append.next_order(), Order::Rewrite);
    }
}
