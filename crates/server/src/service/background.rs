//! The thread that frees: large values that left the keyspace come here, so that no worker pays for their size. It also
//! gives the pages of free blocks back to the system, which takes about a millisecond for 4 MB, puts full extents into huge
//! pages, and moves data together (`defrag.rs`) when nothing waits to be freed.
use crate::core::shared::Shared;
use crate::service::defrag::{self, Defrag, Next};
use crate::state::config::Defrag as Settings;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use store::{Garbage, Weight};

/// Hands values to the freeing thread.
#[derive(Clone)]
pub(crate) struct Background {
    queue: Sender<Job>,
    counts: Arc<Counts>,
}

enum Job {
    /// What to move together. The server owns this thread, so the thread does not keep the server.
    Serve(Weak<Shared>),
    /// With about so many bytes in it.
    Free(Garbage, i64),
    Purge,
    Unite,
    Defrag,
    End,
}

#[derive(Default)]
struct Counts {
    pending: AtomicU64,
    /// What waits, in bytes, all of the piece at hand included.
    waiting_bytes: AtomicI64,
    /// A purge is waiting or going on.
    is_purging: AtomicBool,
    /// Full extents are becoming huge pages, or are about to.
    is_uniting: AtomicBool,
    /// Data is being moved, or is about to be.
    is_defragging: AtomicBool,
}

/// Free blocks of each stripe of the arena whose pages are given back at a time.
const PURGED_BLOCKS: usize = 64;
/// Huge pages made at a time: ten times a second at most, so 80 MB.
const UNITED_PAGES: usize = 4;

impl Background {
    /// Starts the thread.
    pub(crate) fn start() -> std::io::Result<(Background, JoinHandle<()>)> {
        let (queue, arrivals) = channel();
        let counts = Arc::<Counts>::default();
        let background = Background { queue, counts: Arc::clone(&counts) };
        let thread = std::thread::Builder::new()
            .name("sardine-free".into())
            .spawn(move || free_all(&arrivals, &counts))?;
        Ok((background, thread))
    }

    /// Says whose data is to be moved together.
    pub(crate) fn serve(&self, shared: &Arc<Shared>) {
        drop(self.queue.send(Job::Serve(Arc::downgrade(shared))));
    }

    /// Takes everything out of `garbage`.
    pub(crate) fn free(&self, garbage: &mut Vec<Garbage>) {
        self.free_keys(garbage, 0);
    }

    /// The same where a key is known to take so many bytes on the average.
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

    /// Bytes in use that are on their way to be freed, about.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.counts.waiting_bytes.load(Relaxed).max(0) as u64
    }

    /// Gives free pages back, if there are any.
    pub(crate) fn purge(&self) {
        if pack::arena::is_purge_due() {
            self.ask_once(&self.counts.is_purging, Job::Purge);
        }
    }

    /// Puts full extents into huge pages, if there are any.
    pub(crate) fn unite(&self) {
        if pack::arena::is_unite_due() {
            self.ask_once(&self.counts.is_uniting, Job::Unite);
        }
    }

    /// Moves data together, if too much is lost between it.
    pub(crate) fn defrag(&self, settings: &Settings) {
        let is_defragging = &self.counts.is_defragging;
        if settings.is_on && !is_defragging.load(Relaxed) && defrag::is_due(settings) {
            self.ask_once(is_defragging, Job::Defrag);
        }
    }

    /// Asks for a job unless it is asked for, or going on, already.
    fn ask_once(&self, is_asked: &AtomicBool, job: Job) {
        if !is_asked.swap(true, Relaxed) {
            drop(self.queue.send(job));
        }
    }

    /// The thread ends once it has freed what it was given before.
    pub(crate) fn end(&self) {
        drop(self.queue.send(Job::End));
    }

    /// lazyfree_pending_objects
    pub(crate) fn pending(&self) -> u64 {
        self.counts.pending.load(Relaxed)
    }
}

fn free_all(arrivals: &Receiver<Job>, counts: &Counts) {
    let (mut shared, mut defrag, mut next) = (Weak::new(), Defrag::new(), Next::Asked);
    while let Some(job) = await_job(arrivals, next) {
        match job {
            Job::Serve(server) => shared = server,
            Job::Free(piece, bytes) => {
                drop(piece);
                counts.pending.fetch_sub(1, Relaxed);
                counts.waiting_bytes.fetch_sub(bytes, Relaxed);
            }
            Job::Purge => {
                pack::arena::purge(PURGED_BLOCKS);
                counts.is_purging.store(false, Relaxed);
            }
            Job::Unite => {
                pack::arena::unite(UNITED_PAGES);
                counts.is_uniting.store(false, Relaxed);
            }
            Job::Defrag => {
                next = shared.upgrade().map_or(Next::Asked, |shared| defrag.turn(&shared));
                counts.is_defragging.store(next != Next::Asked, Relaxed);
            }
            Job::End => break,
        }
    }
}

/// What is there to do, freeing first but where it is time to move; None when nobody can send anything any more.
fn await_job(arrivals: &Receiver<Job>, next: Next) -> Option<Job> {
    match next {
        Next::Asked => arrivals.recv().ok(),
        Next::At(time) => match defrag::until(time) {
            Duration::ZERO => Some(Job::Defrag),
            pause => match arrivals.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => Some(Job::Defrag),
                job => job.ok(),
            },
        },
    }
}
