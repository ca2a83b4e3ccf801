//! A session's transaction, from MULTI until it is run or given up.
//!
//! ```text
//! MULTI ---> open --- a request ---> queued; or refused: then it is broken ---> open
//!              \--- EXEC ------> its requests run as one step (`dispatch/exec.rs`); a broken one is given up
//!               \--- DISCARD, RESET, the client leaves ---> given up
//! ```
use crate::core::modes::Modes;
use crate::core::queue::Queue;
use crate::core::session::{ClientRecord, Session};
use crate::state::counters::Counters;
use base::hash::Hash;
use command::Flags;
use resp::Args;
use std::sync::atomic::Ordering::Relaxed;

/// `counters` are always those of the session's own worker.
impl Session {
    /// MULTI. False where a transaction is open already.
    pub(crate) fn begin_transaction(&mut self) -> bool {
        if self.modes.has(Modes::TRANSACTION) {
            return false;
        }
        self.modes.set(Modes::TRANSACTION);
        self.queue = Some(Box::new(Queue::new()));
        self.record.queued.store(0, Relaxed);
        true
    }

    /// Keeps a request for EXEC.
    pub(crate) fn enqueue(
        &mut self,
        row: (usize, Flags),
        hash: Option<Hash>,
        args: &Args<'_>,
        counters: &Counters,
    ) {
        let Some(queue) = self.queue.as_deref_mut().filter(|queue| !queue.is_broken) else { return };
        queue.push(row, hash, args);
        self.record.note_queue(queue, counters);
    }

    /// A request was refused while the transaction is open.
    pub(crate) fn break_transaction(&mut self) {
        if let Some(queue) = self.queue.as_deref_mut() {
            queue.is_broken = true;
        }
    }

    /// EXEC takes what is queued. CLIENT LIST goes on showing it until [`ClientRecord::forget_queue`].
    pub(crate) fn take_queue(&mut self) -> Option<Box<Queue>> {
        self.modes.clear(Modes::TRANSACTION);
        self.queue.take()
    }

    /// Gives up what is queued. False where no transaction is open.
    pub(crate) fn give_up_transaction(&mut self, counters: &Counters) -> bool {
        let queue = self.take_queue();
        self.record.forget_queue(counters);
        queue.is_some()
    }

    /// How many bytes of requests are queued.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.as_deref().map_or(0, Queue::arg_bytes)
    }

    /// Whether EXEC would run a command that has this flag.
    pub(crate) fn has_queued(&self, flag: Flags) -> bool {
        self.queue.as_deref().is_some_and(|queue| !queue.is_broken && queue.has(flag))
    }
}

/// Only the connection's worker calls these.
impl ClientRecord {
    /// Shows others how long the queue is and what it takes.
    fn note_queue(&self, queue: &Queue, counters: &Counters) {
        self.queued.store(queue.len() as i64, Relaxed);
        self.note_queue_bytes(queue.room_bytes() as u64, counters);
    }

    /// There is no queue any more.
    pub(crate) fn forget_queue(&self, counters: &Counters) {
        self.queued.store(ClientRecord::NO_TRANSACTION, Relaxed);
        self.note_queue_bytes(0, counters);
    }

    fn note_queue_bytes(&self, bytes: u64, counters: &Counters) {
        let before = self.queue_bytes.load(Relaxed);
        if before != bytes {
            self.queue_bytes.store(bytes, Relaxed);
            counters.queue_bytes.add(bytes.wrapping_sub(before));
        }
    }
}
