//! The one place that reads the time. Everything else is given it: once a batch of requests, so that no command pays for
//! it, and tests move it.
//!
//! A [`Clock`] is either the system's or one that stands still until its [`SimulatedTime`] moves it. Workers that sleep
//! under a simulated clock are woken whenever it moves.
use base::Millis;
use net::Wait;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the server's time comes from.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<Simulated>>);

#[derive(Default)]
struct Simulated {
    now_ms: AtomicI64,
    sleepers: Mutex<Vec<net::Waker>>,
}

/// Moves a simulated clock.
#[derive(Clone)]
pub struct SimulatedTime(Arc<Simulated>);

impl Clock {
    /// The system's.
    pub fn real() -> Clock {
        Clock(None)
    }

    /// One that stands at `start`.
    pub fn simulated(start: Millis) -> (Clock, SimulatedTime) {
        let time = Arc::new(Simulated { now_ms: AtomicI64::new(start.0), sleepers: Mutex::default() });
        (Clock(Some(Arc::clone(&time))), SimulatedTime(time))
    }

    pub fn now(&self) -> Millis {
        match &self.0 {
            Some(time) => Millis(time.now_ms.load(Ordering::SeqCst)),
            None => Millis(system_now_us() / 1000),
        }
    }

    /// Microseconds since the epoch, for TIME and the log.
    pub(crate) fn now_us(&self) -> i64 {
        match &self.0 {
            Some(time) => time.now_ms.load(Ordering::SeqCst) * 1000,
            None => system_now_us(),
        }
    }

    /// How long to sleep until `due`: under a simulated clock until it moves.
    pub(crate) fn sleep_until(&self, now: Millis, due: Option<Millis>) -> Wait {
        match (due, &self.0) {
            (Some(due), _) if due <= now => Wait::Not,
            (Some(due), None) => Wait::Until(due),
            _ => Wait::Forever,
        }
    }

    /// Wakes this engine whenever simulated time moves.
    pub(crate) fn wakes(&self, waker: net::Waker) {
        if let Some(time) = &self.0 {
            time.sleepers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        }
    }
}

impl SimulatedTime {
    pub fn now(&self) -> Millis {
        Millis(self.0.now_ms.load(Ordering::SeqCst))
    }

    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        for waker in self.0.sleepers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            waker.wake();
        }
    }
}

#[allow(clippy::disallowed_methods)]
fn system_now_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// How long something takes, for statistics; never simulated.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_stands_until_it_is_moved() {
        let (clock, time) = Clock::simulated(Millis(1000));
        assert_eq!(clock.now(), Millis(1000));
        time.advance(Duration::from_millis(5));
        assert_eq!(clock.now(), Millis(1005));
        assert_eq!(clock.sleep_until(clock.now(), Some(Millis(1006))), Wait::Forever);
        assert_eq!(clock.sleep_until(clock.now(), Some(Millis(1005))), Wait::Not);
    }

    #[test]
    fn a_real_clock_sleeps_until_what_is_due() {
        let clock = Clock::real();
        assert_eq!(clock.sleep_until(Millis(10), Some(Millis(12))), Wait::Until(Millis(12)));
        assert_eq!(clock.sleep_until(Millis(10), None), Wait::Forever);
    }
}
