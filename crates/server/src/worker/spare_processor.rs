//! Whether the processors have time to spare. The first worker asks this ten times a second, for work that is
//! welcome but not urgent, such as making huge pages: it takes some milliseconds of a processor, and where
//! none is free, clients would see it.
use crate::state::system::processor_us;

/// The server is busy when it takes more than this part of its workers' processors.
const BUSY_PERCENT: u64 = 40;

/// What was seen at the last look.
#[derive(Default)]
pub(super) struct SpareProcessor {
    /// Processor time at the last look.
    used_us: u64,
}

impl SpareProcessor {
    /// Whether the workers left processor time unused in the milliseconds since the last look.
    pub(super) fn look(&mut self, elapsed_ms: i64, workers: usize) -> bool {
        let used_us = processor_us();
        let spent_us = used_us.saturating_sub(std::mem::replace(&mut self.used_us, used_us));
        has_spare(spent_us, elapsed_ms, workers)
    }
}

fn has_spare(spent_us: u64, elapsed_ms: i64, workers: usize) -> bool {
    let processors_us = elapsed_ms.max(0) as u64 * 1000 * workers as u64;
    spent_us < processors_us / 100 * BUSY_PERCENT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_time_to_spare_below_two_fifths_of_the_workers_processors() {
        assert!(has_spare(39_000, 100, 1) && !has_spare(41_000, 100, 1));
        assert!(has_spare(79_000, 100, 2) && !has_spare(81_000, 100, 2));
        assert!(!has_spare(0, 0, 2), "nothing is known of no time");
    }
}
