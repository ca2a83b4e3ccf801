//! The one place that reads the time. Everything else is given it, once a batch of requests: so no command
//! pays for it, and tests move it.
//!
//! There are two times. Deadlines of keys are times of the wall clock, which jumps when somebody sets it. The
//! steady time measures how long something takes: a client that waits or is idle, a pause, how long the
//! server is up. It begins with the wall clock's time and then only passes.
//!
//! A [`Clock`] is either the system's or one that stands still until its [`SimulatedTime`] moves it. Workers
//! that sleep under a simulated clock are woken whenever it moves.
use base::Millis;
use net::Wait;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the server's time comes from. Clones show the same time.
#[derive(Clone)]
pub struct Clock(Source);

#[derive(Clone)]
enum Source {
    /// The steady time was `began` at this instant.
    System {
        since: Instant,
        began: Millis,
    },
    Simulated(Arc<Simulated>),
}

#[derive(Default)]
struct Simulated {
    /// The steady time.
    now_ms: AtomicI64,
    /// By how much the wall clock is ahead of the steady time.
    jumped_ms: AtomicI64,
    /// Workers that look at the time again when it has moved.
    sleepers: Mutex<Vec<net::Waker>>,
}

/// Moves a simulated clock: the other end of [`Clock::simulated`].
#[derive(Clone)]
pub struct SimulatedTime(Arc<Simulated>);

impl Simulated {
    /// What the wall clock shows.
    fn wall_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst) + self.jumped_ms.load(Ordering::SeqCst)
    }

    fn wake_sleepers(&self) {
        for waker in self.sleepers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            waker.wake();
        }
    }
}

/// A reading of both times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) wall: Millis,
    pub(crate) steady: Millis,
}

impl Moment {
    /// Earlier than every reading.
    pub(crate) const NONE: Moment = Moment { wall: Millis(i64::MIN), steady: Millis(0) };

    /// What the wall clock will show at this steady time, unless it is set meanwhile.
    pub(crate) fn wall_at(self, steady: Millis) -> Millis {
        Millis(self.wall.0.saturating_add(steady.0.saturating_sub(self.steady.0)))
    }
}

impl Clock {
    /// The system's clock.
    #[allow(clippy::disallowed_methods)]
    pub fn real() -> Clock {
        Clock(Source::System { since: Instant::now(), began: Millis(system_now_us() / 1000) })
    }

    /// A clock that stands at `start`, and the means to move it.
    pub fn simulated(start: Millis) -> (Clock, SimulatedTime) {
        let time = Arc::new(Simulated { now_ms: AtomicI64::new(start.0), ..Simulated::default() });
        (Clock(Source::Simulated(Arc::clone(&time))), SimulatedTime(time))
    }

    pub fn now(&self) -> Millis {
        match &self.0 {
            Source::Simulated(time) => Millis(time.wall_ms()),
            Source::System { .. } => Millis(system_now_us() / 1000),
        }
    }

    /// Both times. If the wall clock still shows the millisecond of the reading `before`, the steady one is
    /// not read: a worker that is busy reads one clock for most batches.
    pub(crate) fn moment(&self, before: Moment) -> Moment {
        let wall = self.now();
        match &self.0 {
            Source::System { .. } if wall == before.wall => before,
            Source::System { since, began } => {
                Moment { wall, steady: Millis(began.0 + since.elapsed().as_millis() as i64) }
            }
            Source::Simulated(time) => Moment { wall, steady: Millis(time.now_ms.load(Ordering::SeqCst)) },
        }
    }

    /// What the wall clock shows, in microseconds since 1970: for TIME and the log.
    pub(crate) fn now_us(&self) -> i64 {
        match &self.0 {
            Source::Simulated(time) => time.wall_ms() * 1000,
            Source::System { .. } => system_now_us(),
        }
    }

    /// The steady time in microseconds.
    pub(crate) fn steady_us(&self) -> i64 {
        match &self.0 {
            Source::Simulated(time) => time.now_ms.load(Ordering::SeqCst) * 1000,
            Source::System { since, began } => began.0 * 1000 + since.elapsed().as_micros() as i64,
        }
    }

    /// The steady time in milliseconds, rounded up: a wait that is counted from it never ends too early.
    pub(crate) fn steady_up(&self) -> Millis {
        Millis((self.steady_us() + 999).div_euclid(1000))
    }

    /// How to wait until the wall clock, which shows `now`, shows `due`; None is never. Under a simulated
    /// clock a worker sleeps until somebody moves the clock.
    pub(crate) fn sleep_until(&self, now: Millis, due: Option<Millis>) -> Wait {
        match (due, &self.0) {
            (Some(due), _) if due <= now => Wait::Not,
            (Some(due), Source::System { .. }) => Wait::Until(due),
            _ => Wait::Forever,
        }
    }

    /// Has `waker` called whenever simulated time moves; under the system's clock this does nothing.
    pub(crate) fn wakes(&self, waker: net::Waker) {
        if let Source::Simulated(time) = &self.0 {
            time.sleepers.lock().unwrap_or_else(PoisonError::into_inner).push(waker);
        }
    }
}

impl SimulatedTime {
    /// What the wall clock shows.
    pub fn now(&self) -> Millis {
        Millis(self.0.wall_ms())
    }

    /// Lets time pass: both times move on by it.
    pub fn advance(&self, by: Duration) {
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.0.now_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.0.wake_sleepers();
    }

    /// Sets the wall clock later, or earlier where `by_ms` is negative, though no time has passed.
    pub fn jump(&self, by_ms: i64) {
        self.0.jumped_ms.fetch_add(by_ms, Ordering::SeqCst);
        self.0.wake_sleepers();
    }
}

#[allow(clippy::disallowed_methods)]
fn system_now_us() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// Measures how long something takes, for statistics. It is never simulated.
#[derive(Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Reads the system's clock, which costs too much to do it for every request.
    #[allow(clippy::disallowed_methods)]
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Nanoseconds since it was started.
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
    fn steady_time_passes_though_the_clock_is_set_back() {
        let (clock, time) = Clock::simulated(Millis(1000));
        time.jump(-500);
        time.advance(Duration::from_millis(7));
        assert_eq!((clock.now_us(), clock.steady_us()), (507_000, 1_007_000));
        assert_eq!(clock.moment(Moment::NONE), Moment { wall: Millis(507), steady: Millis(1007) });
    }

    #[test]
    fn the_steady_time_rounded_up_is_never_in_the_past() {
        let clock = Clock::real();
        for _ in 0..1000 {
            let before_us = clock.steady_us();
            assert!(clock.steady_up().0 * 1000 >= before_us);
        }
        let (clock, time) = Clock::simulated(Millis(1000));
        time.advance(Duration::from_millis(7));
        assert_eq!(clock.steady_up(), Millis(1007));
    }

    #[test]
    fn a_real_clock_sleeps_until_what_is_due() {
        let clock = Clock::real();
        assert_eq!(clock.sleep_until(Millis(10), Some(Millis(12))), Wait::Until(Millis(12)));
        assert_eq!(clock.sleep_until(Millis(10), None), Wait::Forever);
    }
}
