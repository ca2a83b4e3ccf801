//! How a thread that writes a snapshot leaves its processor to others.
//!
//! Such a thread never waits for long, so the scheduler lets it run for whole slices, of milliseconds, and a
//! worker that is woken on the same processor meanwhile waits for the end of one. Where there are processors
//! enough that happens to nobody; where there are two, for a worker, its clients and this thread, these waits
//! are the tail of all replies. So the thread works in pieces of 50 microseconds, and offers the processor
//! after each. Where nobody wants it that is a call of the system that returns at once.
//!
//! Whoever yields goes behind all others, who may keep the processor for a slice each. A snapshot is to end
//! nevertheless, so pieces grow with what it costs to offer the processor: a piece is at least half as long
//! as the wait behind it, on the average of some. That leaves the thread a third of a processor, beside any
//! number of others.
//!
//! A lower priority would not do. It cannot be raised again without a privilege, and a thread that runs only
//! when nobody else does keeps a lock of the arena for as long, once it was interrupted while it frees.
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A piece is not shorter, and not longer.
const PIECE_MIN: Duration = Duration::from_micros(50);
const PIECE_MAX: Duration = Duration::from_millis(2);
/// The clock is read once in so many calls.
const CALLS_A_LOOK: u32 = 8;
/// The average of waits goes by about so many.
const WAITS: u32 = 8;

/// The pace of one thread.
pub(super) struct Pace {
    calls: Cell<u32>,
    /// When the piece began.
    since: Cell<Instant>,
    wait: Cell<Duration>,
}

#[allow(clippy::new_without_default, reason = "it begins now")]
impl Pace {
    /// Of a thread that begins now.
    pub(super) fn new() -> Pace {
        Pace { calls: Cell::new(0), since: Cell::new(time()), wait: Cell::new(Duration::ZERO) }
    }

    /// A little was done, of the length of a small key.
    #[inline]
    pub(super) fn pass(&self) {
        self.calls.set(self.calls.get() + 1);
        if self.calls.get() >= CALLS_A_LOOK {
            self.look();
        }
    }

    /// More was done. Offers the processor if the piece is long enough.
    pub(super) fn look(&self) {
        self.calls.set(0);
        let now = time();
        if now.duration_since(self.since.get()) >= piece(self.wait.get()) {
            std::thread::yield_now();
            let back = time();
            self.wait.set(average(self.wait.get(), back.duration_since(now)));
            self.since.set(back);
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a pace is kept by the clock, and by nothing that a test sees")]
fn time() -> Instant {
    Instant::now()
}

/// How long a piece is where it costs so much to offer the processor.
fn piece(wait: Duration) -> Duration {
    (wait / 2).clamp(PIECE_MIN, PIECE_MAX)
}

fn average(before: Duration, wait: Duration) -> Duration {
    (before * (WAITS - 1) + wait) / WAITS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of the time that a thread has whose waits are so long, once it has got used to them.
    fn share(wait: Duration) -> f64 {
        let mut mean = Duration::ZERO;
        (0..100).for_each(|_| mean = average(mean, wait));
        piece(mean).as_secs_f64() / (piece(mean) + wait).as_secs_f64()
    }

    #[test]
    fn a_thread_whose_processor_nobody_wants_works_in_short_pieces() {
        assert_eq!(piece(average(Duration::ZERO, Duration::from_nanos(300))), PIECE_MIN);
    }

    #[test]
    fn a_third_of_a_processor_is_kept_beside_others_who_are_always_busy() {
        for wait_us in [1, 50, 150, 1000, 3000, 4000] {
            let share = share(Duration::from_micros(wait_us));
            assert!(share > 0.33, "{wait_us} us: {share}");
        }
    }

    #[test]
    fn a_long_wait_is_forgotten_after_some_short_ones() {
        let mut mean = average(Duration::ZERO, Duration::from_millis(8));
        assert_eq!(piece(mean), Duration::from_micros(500));
        (0..30).for_each(|_| mean = average(mean, Duration::ZERO));
        assert_eq!(piece(mean), PIECE_MIN);
    }
}
