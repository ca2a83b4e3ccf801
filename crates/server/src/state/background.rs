//! What the background thread is asked to do (`service/background.rs` is the thread): to free values that
//! left the keyspace, so that no worker pays for their size, and to put memory in order. Anybody may ask at
//! any time, by a message to the thread. A job on the arena that waits or goes on is not asked for twice.
use crate::state::config::Defrag as Settings;
use crate::state::defrag::is_defrag_due;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;
use store::{Garbage, Weight};

/// Hands values and work to the background thread.
pub(crate) struct Background {
    queue: Sender<Job>,
    counts: Arc<Counts>,
}

/// A request to the thread.
pub(crate) enum Job {
    /// Free this garbage. The number says about how many bytes it has.
    Free(Garbage, i64),
    /// Give free pages back.
    Purge,
    /// Give back the pages of small blocks that the C library keeps.
    Trim,
    /// Make so many huge pages of full extents.
    Unite(usize),
    /// Move data together.
    Defrag,
    /// Set to 0 what is recorded of uses under the policy of before.
    EndChange,
    /// Return.
    End,
}

/// The thread's end of the queue. The thread notes in it which jobs are done, so that they can be asked for
/// again.
pub(crate) struct Jobs {
    arrivals: Receiver<Job>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// How many pieces of garbage wait to be freed, with the one that is being freed.
    pending: AtomicU64,
    /// How many bytes those pieces have, as their senders estimate.
    waiting_bytes: AtomicI64,
    /// A purge is waiting or going on.
    is_purging: AtomicBool,
    /// The same of what the C library keeps.
    is_trimming: AtomicBool,
    /// Full extents are becoming huge pages, or are about to.
    is_uniting: AtomicBool,
    /// How long a huge page has taken to make, the last time.
    page_us: AtomicU64,
    /// Data is being moved, or is about to be.
    is_defragging: AtomicBool,
    /// A job [`Job::EndChange`] waits or goes on.
    is_changing: AtomicBool,
}

impl Background {
    /// A new queue: the end that jobs are put into, and the thread's end.
    pub(crate) fn new() -> (Background, Jobs) {
        let (queue, arrivals) = channel();
        let counts = Arc::<Counts>::default();
        (Background { queue, counts: Arc::clone(&counts) }, Jobs { arrivals, counts })
    }

    /// Takes everything out of `garbage` and has it freed; each piece is a message of its own.
    pub(crate) fn free(&self, garbage: &mut Vec<Garbage>) {
        self.free_keys(garbage, 0);
    }

    /// Has the garbage freed, where a key is known to take `key_bytes` on the average.
    pub(crate) fn free_keys(&self, garbage: &mut Vec<Garbage>, key_bytes: u64) {
        for piece in garbage.drain(..) {
            let bytes = match piece.weight() {
                Weight::Bytes(bytes) => bytes,
                Weight::Keys(keys) => keys * key_bytes,
            } as i64;
            self.counts.pending.fetch_add(1, Relaxed);
            self.counts.waiting_bytes.fetch_add(bytes, Relaxed);
            // When the thread has ended the piece is freed here.
            drop(self.queue.send(Job::Free(piece, bytes)));
        }
    }

    /// About how many bytes wait to be freed.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.counts.waiting_bytes.load(Relaxed).max(0) as u64
    }

    /// Gives free pages back, if there are any.
    pub(crate) fn purge(&self) {
        if pack::arena::is_purge_due() {
            self.ask_once(&self.counts.is_purging, Job::Purge);
        }
    }

    /// Gives back the pages of small blocks, after very many were freed.
    pub(crate) fn trim(&self) {
        self.ask_once(&self.counts.is_trimming, Job::Trim);
    }

    /// Puts full extents into so many huge pages, if there are any.
    pub(crate) fn unite(&self, pages: usize) {
        if pack::arena::is_unite_due() {
            self.ask_once(&self.counts.is_uniting, Job::Unite(pages));
        }
    }

    /// How long a huge page has taken to make, the last time.
    pub(crate) fn page_us(&self) -> u64 {
        self.counts.page_us.load(Relaxed)
    }

    /// Has data moved together, if that is on and too much is lost between it.
    pub(crate) fn defrag(&self, settings: &Settings) {
        let is_defragging = &self.counts.is_defragging;
        if settings.is_on && !is_defragging.load(Relaxed) && is_defrag_due(settings) {
            self.ask_once(is_defragging, Job::Defrag);
        }
    }

    /// Has records of uses set to 0, after a change of policy.
    pub(crate) fn end_change_of_uses(&self) {
        self.ask_once(&self.counts.is_changing, Job::EndChange);
    }

    /// Asks for a job unless it is asked for, or going on, already.
    fn ask_once(&self, is_asked: &AtomicBool, job: Job) {
        if !is_asked.swap(true, Relaxed) {
            drop(self.queue.send(job));
        }
    }

    /// Asks the thread to end; it does the jobs that it was given before.
    pub(crate) fn end(&self) {
        drop(self.queue.send(Job::End));
    }

    /// Pieces that wait to be freed: lazyfree_pending_objects.
    pub(crate) fn pending(&self) -> u64 {
        self.counts.pending.load(Relaxed)
    }
}

impl Jobs {
    /// Waits for the next job, however long; None when nobody can send one any more.
    pub(crate) fn next(&self) -> Option<Job> {
        self.arrivals.recv().ok()
    }

    /// The next job; if none comes within `pause`, a turn of defragmentation.
    pub(crate) fn next_or_defrag_in(&self, pause: Duration) -> Option<Job> {
        match pause {
            Duration::ZERO => Some(Job::Defrag),
            pause => match self.arrivals.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => Some(Job::Defrag),
                job => job.ok(),
            },
        }
    }

    /// A piece that its sender estimated at `bytes` is freed.
    pub(crate) fn note_freed(&self, bytes: i64) {
        self.counts.pending.fetch_sub(1, Relaxed);
        self.counts.waiting_bytes.fetch_sub(bytes, Relaxed);
    }

    /// A purge is done; the next may be asked for.
    pub(crate) fn note_purged(&self) {
        self.counts.is_purging.store(false, Relaxed);
    }

    /// Small blocks have been given back; more may be.
    pub(crate) fn note_trimmed(&self) {
        self.counts.is_trimming.store(false, Relaxed);
    }

    /// So many huge pages were made in this time; the next may be asked for.
    pub(crate) fn note_united(&self, pages: usize, took_us: u64) {
        if let Some(page_us) = took_us.checked_div(pages as u64) {
            self.counts.page_us.store(page_us, Relaxed);
        }
        self.counts.is_uniting.store(false, Relaxed);
    }

    /// Records of uses are all under the policy that was new.
    pub(crate) fn note_change_ended(&self) {
        self.counts.is_changing.store(false, Relaxed);
    }

    /// Whether data is still being moved.
    pub(crate) fn note_defrag(&self, goes_on: bool) {
        self.counts.is_defragging.store(goes_on, Relaxed);
    }
}
