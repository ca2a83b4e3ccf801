//! The locks behind whole-keyspace work: one for each worker, on its own cache line.
//!
//! A worker holds the read side of its own gate while it executes a batch; nobody else touches that line, so
//! it costs two uncontended atomic operations a batch. A worker that needs all others to stand still lets go
//! of its own read side and takes the write side of all gates, in ascending order: so two such workers cannot
//! wait for each other.
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// 128 bytes: two cache lines, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Gate(RwLock<()>);

/// All gates are held: nobody else runs commands.
pub(crate) struct Alone<'g>(
    #[expect(dead_code, reason = "they are held, and let go in the end")] Vec<RwLockWriteGuard<'g, ()>>,
);

/// One for each worker.
pub(crate) struct Gates(Box<[Gate]>);

impl Gates {
    /// Gates for this many workers, which nobody holds.
    pub(crate) fn new(workers: usize) -> Gates {
        Gates((0..workers).map(|_| Gate::default()).collect())
    }

    /// This worker runs commands until the guard is dropped. It waits while somebody runs alone.
    pub(crate) fn enter(&self, worker: usize) -> RwLockReadGuard<'_, ()> {
        self.0[worker].0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody else runs commands until the guards are dropped. It waits until every worker has finished its
    /// batch. The caller must hold no gate.
    pub(crate) fn enter_alone(&self) -> Alone<'_> {
        Alone(self.0.iter().map(|gate| gate.0.write().unwrap_or_else(PoisonError::into_inner)).collect())
    }
}
