//! Whether the server is restless, for tests, and what the mode has done so far. `service/restless.rs` says
//! what the mode does, and does it. While it is off it costs one load for each connection that is accepted.
use crate::state::lock::lock;
use base::random::Random;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Whether the mode is on, its thread, and what the thread has done.
#[derive(Default)]
pub(crate) struct Restless {
    counts: Counts,
    /// Grows with every connection for which a worker is drawn at random; 0 while the mode is off.
    draws: AtomicU64,
    /// Starts the thread: put in by `service/restless.rs`, which knows the server.
    starter: Mutex<Option<Box<Starter>>>,
    thread: Mutex<Option<(Arc<AtomicBool>, JoinHandle<()>)>>,
}

/// Starts the thread with a seed; it returns when the flag is set. None where the server is gone.
type Starter = dyn Fn(u64, Arc<AtomicBool>) -> Started + Send + Sync;
pub(crate) type Started = std::io::Result<Option<JoinHandle<()>>>;

/// What has been done since the server began.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) visits: AtomicU64,
    pub(crate) churns: AtomicU64,
    pub(crate) rounds: AtomicU64,
    pub(crate) moved: AtomicU64,
    pub(crate) purged: AtomicU64,
    pub(crate) united: AtomicU64,
    pub(crate) messages: AtomicU64,
}

impl Counts {
    /// By the names under which DEBUG RESTLESS shows them.
    pub(crate) fn named(&self) -> [(&'static str, &AtomicU64); 7] {
        [
            ("visits", &self.visits),
            ("churns", &self.churns),
            ("rounds", &self.rounds),
            ("moved", &self.moved),
            ("purged", &self.purged),
            ("united", &self.united),
            ("messages", &self.messages),
        ]
    }
}

impl Restless {
    /// Keeps the function that starts the thread; `service/restless.rs` gives it, which knows the server. The
    /// thread ends soon after the flag is set.
    pub(crate) fn set_starter(
        &self,
        start: impl Fn(u64, Arc<AtomicBool>) -> Started + Send + Sync + 'static,
    ) {
        *lock(&self.starter) = Some(Box::new(start));
    }

    /// Turns the mode on, or starts it anew with another seed. It returns when the thread runs.
    pub(crate) fn begin(&self, seed: u64) -> std::io::Result<()> {
        self.end();
        let is_over = Arc::new(AtomicBool::new(false));
        let started = lock(&self.starter).as_ref().map(|start| start(seed, Arc::clone(&is_over)));
        let Some(thread) = started.transpose()?.flatten() else { return Ok(()) };
        self.draws.store(seed | 1, Relaxed);
        *lock(&self.thread) = Some((is_over, thread));
        Ok(())
    }

    /// Turns the mode off and waits until the thread has ended. If the thread has panicked, this panics too.
    pub(crate) fn end(&self) {
        self.draws.store(0, Relaxed);
        if let Some((is_over, thread)) = lock(&self.thread).take() {
            is_over.store(true, Relaxed);
            assert!(thread.join().is_ok(), "restless mode has found a fault");
        }
    }

    /// Whether the mode is on.
    pub(crate) fn is_on(&self) -> bool {
        self.draws.load(Relaxed) != 0
    }

    /// What has been done since the server began.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The worker, drawn at random, that a new connection goes to; None while the mode is off.
    pub(crate) fn draw(&self, workers: usize) -> Option<usize> {
        if !self.is_on() {
            return None;
        }
        let number = self.draws.fetch_add(2, Relaxed);
        Some(Random::new(number).below(workers as u64) as usize)
    }
}
