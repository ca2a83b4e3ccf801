//! The tail of the append-only file in memory (`disk::aof::tail`): what is answered before the system has it,
//! kept for the case that the process is killed.
//!
//! ```text
//! none ---- the file is on, all gates are held ----> begun: nothing is known of the files, all is exposed
//! begun --- the writer has written ----------------> in force
//! in force -- a record finds no room, or two folders count -> exposed: replies wait until it is written
//! exposed --- that is written ---------------------> in force
//! ```
//!
//! Each worker writes to a lane of its own, without a lock; all others, who come rarely, share the last one.
//! When the tail changes, workers take their new lanes at the beginning of the next batch.
use crate::state::lock::lock;
use disk::aof::tail::{HEAD_BYTES, Head, Kept, Memory, Origin, Place, Ring, note_written, ring_bytes};
use net::{MappedFile, MappedPart};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex};

/// The lane of one worker.
pub(crate) type Lane = Ring<Mapped>;

/// See the file's opener. One for a server.
pub(crate) struct Tail {
    /// Raised whenever there is another one, or none: while all gates are held.
    turn: AtomicU32,
    /// Records below this number may be nowhere that outlives the process, but for those that were written.
    exposed: AtomicU64,
    present: Mutex<Option<Present>>,
    /// The log was told that none can be made.
    is_missed: AtomicBool,
    /// For each worker, the lane that it has still to take; and the last one, for all others.
    lanes: Box<[Mutex<Option<Lane>>]>,
}

/// A file of the tail that is in force.
pub(crate) struct Present {
    file: MappedFile,
    head: Head<Mapped>,
    lanes: Vec<Lane>,
    written: Arc<AtomicU64>,
    /// Records below this number may not be in a lane.
    exposed: u64,
    /// It does not know yet how long the files are, so nothing that is in it counts.
    is_new: bool,
    /// Another folder counts as well.
    is_distrusted: bool,
    name: Name,
    /// Its name is not there any more, or is that of another file.
    has_no_name: bool,
    /// Somebody was told that it is lost.
    is_told: bool,
}

/// Where a start will look for the file, and what it is known by.
#[derive(Clone, PartialEq, Eq)]
struct Name {
    path: Arc<Path>,
    device: u64,
    number: u64,
}

impl Name {
    fn of(path: &Path, file: &File) -> io::Result<Name> {
        let about = file.metadata()?;
        Ok(Name { path: path.into(), device: about.dev(), number: about.ino() })
    }

    /// Whether it is there, as far as that can be told.
    fn is_there(&self) -> bool {
        match std::fs::symlink_metadata(&self.path) {
            Ok(about) => (about.dev(), about.ino()) == (self.device, self.number),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

/// A part of the file.
pub(crate) struct Mapped(MappedPart);

impl Memory for Mapped {
    #[inline]
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0.put(at, bytes);
    }

    #[inline]
    fn put_word(&mut self, at: usize, word: u64) {
        self.0.put_word(at, word);
    }

    #[inline]
    fn address(&self, at: usize) -> *const u8 {
        self.0.address(at)
    }
}

/// The head, and each lane.
fn part_bytes(lanes: usize) -> impl Iterator<Item = usize> {
    std::iter::once(HEAD_BYTES).chain(std::iter::repeat_n(HEAD_BYTES + ring_bytes(lanes), lanes))
}

/// What a tail with so many lanes takes on the disk.
pub(crate) fn file_bytes(lanes: usize) -> u64 {
    part_bytes(lanes).sum::<usize>() as u64
}

impl Present {
    /// Begins a tail in this new, empty file, with a lane for each of so many threads and one for all others.
    pub(crate) fn begin((path, file): (&Path, &File), origin: Origin, lanes: usize) -> io::Result<Present> {
        let name = Name::of(path, file)?;
        let ring = ring_bytes(lanes);
        let lens: Vec<usize> = part_bytes(lanes).collect();
        let (mapped, parts) = MappedFile::create(file, &lens)?;
        let written = Arc::new(AtomicU64::new(0));
        let mut parts = parts.into_iter().map(Mapped);
        let head = parts.next().ok_or_else(|| io::Error::other("a file has a head"))?;
        let lanes = parts.map(|part| Ring::begin(part, ring, Arc::clone(&written))).collect::<Vec<_>>();
        let head = Head::begin(head, origin, lanes.len());
        Ok(Present {
            file: mapped,
            head,
            lanes,
            written,
            exposed: 0,
            is_new: true,
            is_distrusted: false,
            name,
            has_no_name: false,
            is_told: false,
        })
    }

    /// Whether what is put there may not be found.
    fn is_lost(&self) -> bool {
        self.has_no_name || self.file.is_lost()
    }

    fn exposed(&self) -> u64 {
        if self.is_new || self.is_distrusted { u64::MAX } else { self.exposed }
    }
}

impl Tail {
    /// None yet, for so many threads that write, and one lane more.
    pub(crate) fn new(lanes: usize) -> Tail {
        Tail {
            turn: AtomicU32::new(0),
            exposed: AtomicU64::new(0),
            present: Mutex::new(None),
            is_missed: AtomicBool::new(false),
            lanes: (0..lanes).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// So many lanes a file of it has.
    pub(crate) fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// This is the tail from here on. All gates are held, and so many records were taken.
    pub(crate) fn put_in_force(&self, mut present: Option<Present>, taken: u64) {
        let mut now = lock(&self.present);
        let mut lanes =
            present.as_mut().map(|present| std::mem::take(&mut present.lanes)).unwrap_or_default();
        // From the last to the first: what is popped last was made first.
        self.lanes.iter().rev().for_each(|lane| *lock(lane) = lanes.pop());
        if let Some(present) = &mut present {
            present.exposed = taken;
        }
        *now = present;
        self.publish(now.as_ref().map_or(0, Present::exposed));
        self.turn.fetch_add(1, Release);
    }

    /// Tells all threads what waits. Whoever takes a number after this, and looks then, knows of it.
    fn publish(&self, exposed: u64) {
        self.exposed.store(exposed, Release);
        fence(SeqCst);
    }

    /// Changes whenever there is another tail.
    #[inline]
    pub(crate) fn turn(&self) -> u32 {
        self.turn.load(Acquire)
    }

    /// The lane of this thread, which nobody else gets.
    pub(crate) fn take_lane(&self, lane: usize) -> Option<Lane> {
        lock(&self.lanes[lane]).take()
    }

    /// Keeps a record in the lane that is everybody's. True if there is none.
    #[cold]
    pub(crate) fn keep_in_last(&self, number: u64, kept: Kept<'_>) -> bool {
        let last = self.lanes.last().expect("there is a lane for that");
        lock(last).as_mut().is_none_or(|lane| lane.keep(number, kept))
    }

    /// This record is in no lane. The caller holds its shards. `taken` tells how many were taken.
    #[cold]
    pub(crate) fn expose(&self, number: u64, taken: impl FnOnce() -> u64) {
        if let Some(present) = &mut *lock(&self.present) {
            present.exposed = present.exposed.max(number + 1);
            self.publish(present.exposed());
            // Those that were answered before are below that.
            present.head.stop_at(taken());
        }
    }

    /// From here on what is in the lanes is not enough; until [`Tail::trust_again`]. All gates are held, and
    /// so many records were taken.
    pub(crate) fn distrust(&self, taken: u64) {
        if let Some(present) = &mut *lock(&self.present) {
            present.is_distrusted = true;
            present.head.stop_at(taken);
            self.publish(present.exposed());
        }
    }

    /// Records that are taken from here on are safe in the lanes. All gates are held, and so many were taken.
    pub(crate) fn trust_again(&self, taken: u64) {
        if let Some(present) = &mut *lock(&self.present) {
            // The head still says that the lanes end where they were distrusted. The writer corrects it.
            (present.is_distrusted, present.is_new, present.exposed) = (false, true, taken);
            self.publish(present.exposed());
        }
    }

    /// Replies wait for records below this number to be written. 0: there is no such record.
    #[inline]
    pub(crate) fn exposed(&self) -> u64 {
        self.exposed.load(Acquire)
    }

    /// The system has what this says.
    pub(crate) fn commit(&self, place: Place) {
        if let Some(present) = &mut *lock(&self.present) {
            present.is_new = false;
            present.head.commit(place, present.exposed());
            note_written(&present.written, place.next);
            self.publish(present.exposed());
        }
    }

    /// From record `from` on increment `file` is written to.
    pub(crate) fn note_cut(&self, file: u64, from: u64) {
        if let Some(present) = &mut *lock(&self.present) {
            present.head.note_cut(file, from);
        }
    }

    /// Whether there is one.
    pub(crate) fn is_there(&self) -> bool {
        lock(&self.present).is_some()
    }

    /// Whether there is one in which a start will find what is put there.
    pub(crate) fn is_in_force(&self) -> bool {
        lock(&self.present).as_ref().is_some_and(|present| !present.is_lost())
    }

    /// None could be made, or one could: whether that is news.
    pub(crate) fn note_missed(&self, is_missed: bool) -> bool {
        self.is_missed.swap(is_missed, SeqCst) != is_missed
    }

    /// Looks whether its file is where a start will look for it, which may take long where the disk hangs.
    pub(crate) fn look_for_name(&self) {
        let name = lock(&self.present).as_ref().map(|present| present.name.clone());
        if let Some(name) = name.filter(|name| !name.is_there())
            && let Some(present) = lock(&self.present).as_mut().filter(|present| present.name == name)
        {
            present.has_no_name = true;
        }
    }

    /// Whether it is lost, and that is news.
    pub(crate) fn note_lost(&self) -> bool {
        let mut present = lock(&self.present);
        let lost = present.as_mut().filter(|present| present.is_lost());
        lost.is_some_and(|present| !std::mem::replace(&mut present.is_told, true))
    }
}
