//! Who wakes for the next key that expires.
//!
//! Any worker may set a deadline on any key, and then sleep, or stay busy, or find that another worker sleeps
//! until a later time. So one worker at a time holds a promise to be awake at a given time. Before a worker
//! sleeps it looks when the next key is due: if that is earlier than what is promised, or the promise is its
//! own, it promises that. A worker that lost its promise to a more eager one wakes once in vain.
//!
//! ```text
//!  63                     16 15        0
//! +-------------------------+-----------+
//! | milliseconds since 1970 |  worker   |   all ones: nobody has promised anything
//! +-------------------------+-----------+
//! ```
use base::Millis;
use std::sync::atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};

pub(crate) struct Promise(AtomicU64);

const NOBODY: u64 = u64::MAX;
const WORKER_BITS: u32 = 16;
/// Times beyond, in some 4,000 years, are never reached.
const LATEST_MS: i64 = (1 << 47) - 1;

impl Promise {
    pub(crate) fn new() -> Promise {
        Promise(AtomicU64::new(NOBODY))
    }

    /// A worker that is about to sleep knows of a key that is due then (None: of none). Returns whether it
    /// must wake for it.
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
        let promise = Promise::new();
        assert!(promise.offer(0, Some(Millis(100))));
        assert!(!promise.offer(1, Some(Millis(200))));
        assert!(promise.offer(1, Some(Millis(50))));
        assert!(!promise.offer(0, Some(Millis(100))), "worker 1 wakes before that and will look again");
        assert!(promise.offer(1, Some(Millis(100))));
    }

    #[test]
    fn a_promise_ends_with_the_last_key() {
        let promise = Promise::new();
        assert!(promise.offer(0, Some(Millis(100))));
        assert!(!promise.offer(0, None));
        assert!(promise.offer(1, Some(Millis(500))));
    }

    #[test]
    fn times_before_1970_and_at_the_end_of_all_time_are_promised_too() {
        let promise = Promise::new();
        assert!(promise.offer(3, Some(Millis(i64::MAX))));
        assert!(promise.offer(3, Some(Millis(i64::MIN))));
        assert!(!promise.offer(2, Some(Millis(1))));
    }
}
