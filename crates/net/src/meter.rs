//! How long something takes, to the nanosecond and for next to nothing: the processor's time stamp counter.
//!
//! A server that wants to know of every slow command has to time every command, and most commands take less
//! than a microsecond. Two readings of the system's clock around one are a tenth of that; the counter that
//! this clock itself is computed from is one instruction. Read once between two commands of a batch, it times
//! both: the end of one is the beginning of the next.
//!
//! The counter is used where the kernel holds it fit to be the system's clock, which it takes back where
//! counters of two processors drift apart or stop; elsewhere, and on other processors than x86-64, the
//! system's clock is read. How many nanoseconds a tick has is measured once a process, against that clock,
//! over [`MEASURED`].
//!
//! Crates that do this (`quanta`, `minstant`) measure for up to 200 ms or before `main`, and bring other
//! clocks along; what is needed is these lines.
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the counter's speed is measured over. A reading of the clock is wrong by some ten nanoseconds, so the
/// speed is right to about one part in 100,000.
const MEASURED: Duration = Duration::from_millis(2);

/// Reads moments and knows what their differences are in nanoseconds. All meters of a process are the same:
/// copy one to where it is used.
#[derive(Clone, Copy, Debug)]
pub struct Meter(Source);

#[derive(Clone, Copy, Debug)]
enum Source {
    /// The processor's counter, and how many nanoseconds 2^32 of its ticks take.
    Counter { ns_in_4g: u64 },
    /// The system's clock, as nanoseconds since then.
    System { since: Instant },
}

/// A moment, in the ticks of the meter that read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(u64);

impl Tick {
    /// Ticks since an earlier moment; none where the thread came to a processor whose counter is behind.
    #[inline]
    pub fn since(self, earlier: Tick) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Counts ticks in units of some nanoseconds, by one multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    units_in_4g: u64,
}

impl Scale {
    /// Converts ticks to units, rounded down.
    #[inline]
    pub fn units(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.units_in_4g)) >> 32) as u64
    }
}

impl Meter {
    /// The process's meter. The first call takes some milliseconds, in which the counter's speed is measured.
    pub fn new() -> Meter {
        static METER: OnceLock<Meter> = OnceLock::new();
        *METER.get_or_init(|| Meter(counter().unwrap_or_else(|| Source::System { since: now() })))
    }

    /// This moment. Costs one instruction where the counter is used, else a look at the system's clock.
    #[inline]
    pub fn read(&self) -> Tick {
        match self.0 {
            Source::Counter { .. } => Tick(ticks()),
            Source::System { since } => Tick(since.elapsed().as_nanos() as u64),
        }
    }

    /// What turns ticks into units of so many nanoseconds. Made once, used for many.
    pub fn scale(&self, unit_ns: u64) -> Scale {
        Scale { units_in_4g: self.ns_in_4g() / unit_ns }
    }

    /// Converts ticks to nanoseconds, rounded down.
    pub fn ns(&self, ticks: u64) -> u64 {
        self.scale(1).units(ticks)
    }

    /// Converts nanoseconds to ticks, rounded up.
    pub fn ticks(&self, ns: u64) -> u64 {
        let ticks = (u128::from(ns) << 32).div_ceil(u128::from(self.ns_in_4g()));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// How many nanoseconds 2^32 ticks take.
    fn ns_in_4g(&self) -> u64 {
        match self.0 {
            Source::Counter { ns_in_4g } => ns_in_4g,
            Source::System { .. } => 1 << 32,
        }
    }

    /// What the moments are counted by, for INFO: "X86 TSC @ 2445 ticks/us".
    pub fn name(&self) -> String {
        match self.0 {
            Source::Counter { ns_in_4g } => format!("X86 TSC @ {} ticks/us", (1000 << 32) / ns_in_4g),
            Source::System { .. } => "POSIX clock_gettime".into(),
        }
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}

/// The system's clock, which this crate may read.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

/// The processor's counter with its speed, where it can be relied on.
fn counter() -> Option<Source> {
    if !cfg!(target_arch = "x86_64") || !kernel_trusts_counter() {
        return None;
    }
    let (first, first_ticks) = anchor();
    std::thread::sleep(MEASURED);
    let (last, last_ticks) = anchor();
    let elapsed_ns = last.duration_since(first).as_nanos();
    let elapsed_ticks = u128::from(last_ticks.checked_sub(first_ticks)?);
    let ns_in_4g = (elapsed_ns << 32).checked_div(elapsed_ticks)?;
    // Slower than 100 MHz or faster than 100 GHz is no counter that we know.
    let is_plausible = (1 << 32) / 100..=(1 << 32) * 10;
    is_plausible.contains(&ns_in_4g).then_some(Source::Counter { ns_in_4g: ns_in_4g as u64 })
}

/// The kernel strikes a counter that it has found unsteady from this list.
fn kernel_trusts_counter() -> bool {
    let path = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    std::fs::read_to_string(path).is_ok_and(|list| list.split_whitespace().any(|word| word == "tsc"))
}

/// Both clocks at one moment: of some tries the one that took the shortest, which nothing interrupted.
fn anchor() -> (Instant, u64) {
    let attempt = |_| {
        let before = now();
        let at = ticks();
        (before.elapsed(), before, at)
    };
    let (_, at, ticks) = (0..8).map(attempt).min_by_key(|(took, ..)| *took).expect("eight tries were made");
    (at, ticks)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux lets programs use it unless one asks to
    // be stopped.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn ticks() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_measured_by_ticks_is_the_clocks() {
        let meter = Meter::new();
        let start = now();
        let from = meter.read();
        let inner = now();
        std::thread::sleep(Duration::from_millis(20));
        let inner_ns = inner.elapsed().as_nanos() as u64;
        let ns = meter.ns(meter.read().since(from));
        let outer_ns = start.elapsed().as_nanos() as u64;
        // What was measured lies inside what the clock says around it, but for a thousandth.
        assert!(
            ns >= inner_ns - inner_ns / 1000 && ns <= outer_ns + outer_ns / 1000,
            "{inner_ns} {ns} {outer_ns}"
        );
    }

    #[test]
    fn time_does_not_go_backwards() {
        let meter = Meter::new();
        let (from, to) = (meter.read(), meter.read());
        assert!(from <= to);
        assert_eq!(Tick(3).since(Tick(5)), 0);
    }

    #[test]
    fn ticks_of_a_time_are_the_first_that_take_so_long() {
        for ns_in_4g in [1 << 30, 1_756_780_000, 1 << 32, 10 << 32] {
            let meter = Meter(Source::Counter { ns_in_4g });
            for ns in [0, 1, 129, 999_999, 10_000_000, 3_600_000_000_000] {
                let ticks = meter.ticks(ns);
                assert!(meter.ns(ticks) >= ns, "{ns_in_4g} {ns}");
                assert!(ticks == 0 || meter.ns(ticks - 1) < ns, "{ns_in_4g} {ns}");
            }
        }
    }

    #[test]
    fn the_system_s_clock_serves_where_there_is_no_counter() {
        let meter = Meter(Source::System { since: now() });
        assert_eq!((meter.ns(1_500), meter.ticks(1_500)), (1_500, 1_500));
        assert_eq!(meter.scale(129).units(1_500), 11);
        assert!(meter.read() <= meter.read());
        assert_eq!(meter.name(), "POSIX clock_gettime");
    }
}
