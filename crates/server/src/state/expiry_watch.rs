//! Which worker wakes for the next key that expires.
//!
//! Any worker may set a deadline on any key, and then sleep, or stay busy, or find that another worker sleeps
//! until a later time. So one worker at a time holds the watch: it has undertaken to be awake at a given
//! time. Before a worker sleeps it looks when the next key is due. If that is earlier than the time of the
//! watch, or the watch is its own, it takes the watch for that time. A worker whose watch was taken over
//! wakes once in vain.
//!
//! ```text
//!  63                     16 15        0
//! +-------------------------+-----------+
//! | milliseconds since 1970 |  worker   |   all ones: nobody holds the watch
//! +-------------------------+-----------+
//! ```
use base::Millis;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

/// The time of the watch and who holds it, in one word, so that it changes hands in one step.
pub(crate) struct ExpiryWatch(AtomicU64);

const NOBODY: u64 = u64::MAX;
/// How many of the lower bits hold the worker: of two words the smaller has the earlier time.
const WORKER_BITS: u32 = 16;
/// The latest time that a word can hold, in some 4,400 years; later ones are taken for it.
const LATEST_MS: i64 = (1 << 47) - 1;

impl ExpiryWatch {
    /// Nobody holds it.
    pub(crate) fn new() -> ExpiryWatch {
        ExpiryWatch(AtomicU64::new(NOBODY))
    }

    /// A worker that is about to sleep knows of a key that is due at this time (None: of no key). Returns
    /// whether it must wake for that key. It costs a load, and a compare and swap where the watch changes.
    pub(crate) fn offer(&self, worker: usize, due: Option<Millis>) -> bool {
        let mine = due.map_or(NOBODY, |due| pack(due, worker));
        let mut held = self.0.load(Acquire);
        while held != mine && (mine < held || is_held_by(held, worker)) {
            match self.0.compare_exchange_weak(held, mine, AcqRel, Acquire) {
                Ok(_) => return due.is_some(),
                Err(now) => held = now,
            }
        }
        held == mine && due.is_some()
    }
}

fn pack(due: Millis, worker: usize) -> u64 {
    (due.0.clamp(0, LATEST_MS) as u64) << WORKER_BITS | worker as u64
}

fn is_held_by(held: u64, worker: usize) -> bool {
    held != NOBODY && held & ((1 << WORKER_BITS) - 1) == worker as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_see_the_earliest_key_wakes_for_it() {
        let watch = ExpiryWatch::new();
        assert!(watch.offer(0, Some(Millis(100))));
        assert!(!watch.offer(1, Some(Millis(200))));
        assert!(watch.offer(1, Some(Millis(50))));
        assert!(!watch.offer(0, Some(Millis(100))), "worker 1 wakes before that and will look again");
        assert!(watch.offer(1, Some(Millis(100))));
    }

    #[test]
    fn a_watch_ends_with_the_last_key() {
        let watch = ExpiryWatch::new();
        assert!(watch.offer(0, Some(Millis(100))));
        assert!(!watch.offer(0, None));
        assert!(watch.offer(1, Some(Millis(500))));
    }

    #[test]
    fn times_before_1970_and_at_the_end_of_all_time_are_watched_too() {
        let watch = ExpiryWatch::new();
        assert!(watch.offer(3, Some(Millis(i64::MAX))));
        assert!(watch.offer(3, Some(Millis(i64::MIN))));
        assert!(!watch.offer(2, Some(Millis(1))));
    }
}
