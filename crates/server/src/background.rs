//! The thread that frees: large values that left the keyspace come here, so that no worker pays for their size. It also
//! gives the pages of free blocks back to the system, which takes about a millisecond for 4 MB.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use store::{Garbage, Weight};

/// Hands values to the freeing thread.
#[derive(Clone)]
pub(crate) struct Background {
    queue: Sender<Job>,
    counts: Arc<Counts>,
}

enum Job {
    /// With about so many bytes in it.
    Free(Garbage, i64),
    Purge,
    End,
}

#[derive(Default)]
struct Counts {
    pending: AtomicU64,
    freed: AtomicU64,
    /// What waits, in bytes, all of the piece at hand included.
    waiting_bytes: AtomicI64,
    /// A purge is waiting or going on.
    is_purging: AtomicBool,
}

/// Free blocks of each stripe of the arena whose pages are given back at a time.
const PURGED_BLOCKS: usize = 64;

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
        if pack::arena::is_purge_due() && !self.counts.is_purging.swap(true, Relaxed) {
            drop(self.queue.send(Job::Purge));
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

    /// lazyfreed_objects
    pub(crate) fn freed(&self) -> u64 {
        self.counts.freed.load(Relaxed)
    }

    pub(crate) fn reset_stats(&self) {
        self.counts.freed.store(0, Relaxed);
    }
}

fn free_all(arrivals: &Receiver<Job>, counts: &Counts) {
    while let Ok(job) = arrivals.recv() {
        match job {
            Job::Free(piece, bytes) => {
                drop(piece);
                counts.pending.fetch_sub(1, Relaxed);
                counts.waiting_bytes.fetch_sub(bytes, Relaxed);
                counts.freed.fetch_add(1, Relaxed);
            }
            Job::Purge => {
                pack::arena::purge(PURGED_BLOCKS);
                counts.is_purging.store(false, Relaxed);
            }
            Job::End => break,
        }
    }
}
