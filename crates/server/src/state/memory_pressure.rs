//! How short memory is, as all workers know it (`core/memory_limit.rs` acts on it).
use pack::arena;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// What workers tell each other about `maxmemory`, and INFO shows of it.
#[derive(Default)]
pub(crate) struct MemoryPressure {
    /// Bytes that workers have undertaken to free and have not freed yet.
    claimed: AtomicI64,
    /// Since when memory is over the limit, in microseconds of the steady time; 0 while it is not.
    over_since_us: AtomicI64,
    /// For how long memory was over the limit before that, in microseconds.
    over_total_us: AtomicU64,
    /// How many bytes of the arena lay in holes when that was last noted.
    hole_bytes: AtomicU64,
}

impl MemoryPressure {
    /// total_eviction_exceeded_time and current_eviction_exceeded_time, in milliseconds. `now_us` is the
    /// steady time.
    pub(crate) fn exceeded_ms(&self, now_us: i64) -> (u64, u64) {
        let current = match self.over_since_us.load(Relaxed) {
            0 => 0,
            since => (now_us - since).max(0) as u64,
        };
        ((self.over_total_us.load(Relaxed) + current) / 1000, current / 1000)
    }

    /// CONFIG RESETSTAT
    pub(crate) fn reset(&self) {
        self.over_since_us.store(0, Relaxed);
        self.over_total_us.store(0, Relaxed);
    }

    /// Whether memory was over the limit when that was last looked at.
    pub(crate) fn is_noted(&self) -> bool {
        self.over_since_us.load(Relaxed) != 0
    }

    /// A worker is about to free this many bytes, or, where the number is negative, has freed them.
    pub(crate) fn claim(&self, bytes: i64) {
        self.claimed.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn claimed_bytes(&self) -> i64 {
        self.claimed.load(Relaxed)
    }

    pub(crate) fn hole_bytes(&self) -> u64 {
        self.hole_bytes.load(Relaxed)
    }

    /// Notes how many bytes lie in holes: ten times a second where there is a limit, and as memory comes near
    /// it.
    pub(crate) fn note_holes(&self) {
        self.hole_bytes.store(arena::usage().hole_bytes as u64, Relaxed);
    }

    /// Notes whether memory is over the limit at this steady time.
    pub(crate) fn note(&self, is_over: bool, now_us: i64) {
        let since = self.over_since_us.load(Relaxed);
        if is_over && since == 0 {
            self.over_since_us.store(now_us, Relaxed);
        } else if !is_over && since != 0 && self.over_since_us.swap(0, Relaxed) != 0 {
            self.over_total_us.fetch_add((now_us - since).max(0) as u64, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_over_the_limit_adds_up_and_the_present_part_shows() {
        let pressure = MemoryPressure::default();
        pressure.note(true, 1_000_000);
        pressure.note(true, 2_000_000);
        assert_eq!(pressure.exceeded_ms(3_000_000), (2000, 2000));
        pressure.note(false, 4_000_000);
        assert_eq!(pressure.exceeded_ms(9_000_000), (3000, 0));
        pressure.note(true, 9_000_000);
        assert_eq!(pressure.exceeded_ms(9_500_000), (3500, 500));
        pressure.reset();
        assert_eq!(pressure.exceeded_ms(9_500_000), (0, 0));
    }
}
