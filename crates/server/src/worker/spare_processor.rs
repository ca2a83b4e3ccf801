//! Whether the processors have time to spare. The first worker asks this ten times a second, for work that is
//! welcome but not urgent: making huge pages. One takes a millisecond of a processor, or several where the
//! host of a virtual machine has to find the memory, and it cannot be done in pieces: a request that comes
//! meanwhile may wait for the whole of it. So while requests come such work takes a hundredth of the time,
//! less than the slowest of a hundred requests would show.
use crate::state::system::processor_us;

/// The server is busy when it takes more than this part of its workers' processors, and at rest when it takes
/// less than that of one.
const BUSY_PERCENT: u64 = 40;
const REST_PERCENT: u64 = 2;
/// How many huge pages are made at a time while the server is at rest. That is asked for ten times a second
/// at most, so it comes to 80 MB a second.
const PAGES_AT_REST: usize = 4;
/// While requests come one is made in so many times the time that it takes.
const PAUSE: u64 = 100;

/// What was seen at the last look.
#[derive(Default)]
pub(super) struct SpareProcessor {
    /// Processor time at the last look.
    used_us: u64,
    /// How long ago a huge page was made last.
    paused_ms: u64,
}

/// What the workers left unused of the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spare {
    None,
    Some,
    /// Nearly all.
    Rest,
}

impl SpareProcessor {
    /// How many huge pages may be made now, of which the last took so long, by what the workers have left
    /// unused in the milliseconds since the last look.
    pub(super) fn pages(&mut self, elapsed_ms: i64, workers: usize, page_us: u64) -> usize {
        let used_us = processor_us();
        let spent_us = used_us.saturating_sub(std::mem::replace(&mut self.used_us, used_us));
        self.paced(spare(spent_us, elapsed_ms, workers), elapsed_ms, page_us)
    }

    fn paced(&mut self, spare: Spare, elapsed_ms: i64, page_us: u64) -> usize {
        self.paused_ms = self.paused_ms.saturating_add(elapsed_ms.max(0) as u64);
        let pages = match spare {
            Spare::None => 0,
            Spare::Some => usize::from(self.paused_ms * 1000 >= page_us.saturating_mul(PAUSE)),
            Spare::Rest => PAGES_AT_REST,
        };
        if pages > 0 {
            self.paused_ms = 0;
        }
        pages
    }
}

fn spare(spent_us: u64, elapsed_ms: i64, workers: usize) -> Spare {
    let processor_us = elapsed_ms.max(0) as u64 * 1000;
    if spent_us < processor_us / 100 * REST_PERCENT {
        Spare::Rest
    } else if spent_us < processor_us * workers as u64 / 100 * BUSY_PERCENT {
        Spare::Some
    } else {
        Spare::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_time_to_spare_below_two_fifths_of_the_workers_processors() {
        assert_eq!((spare(39_000, 100, 1), spare(41_000, 100, 1)), (Spare::Some, Spare::None));
        assert_eq!((spare(79_000, 100, 2), spare(81_000, 100, 2)), (Spare::Some, Spare::None));
        assert_eq!((spare(1_900, 100, 2), spare(2_100, 100, 2)), (Spare::Rest, Spare::Some));
        assert_eq!(spare(0, 0, 2), Spare::None, "nothing is known of no time");
    }

    #[test]
    fn while_requests_come_a_page_is_made_in_a_hundred_times_its_time() {
        let mut processor = SpareProcessor::default();
        let mut made = |spare| (0..20).map(|_| processor.paced(spare, 100, 4_000)).sum::<usize>();
        assert_eq!([Spare::None, Spare::Some, Spare::Rest].map(&mut made), [0, 5, 20 * PAGES_AT_REST]);
        // What has been paused before counts.
        assert_eq!([Spare::Some, Spare::None, Spare::Some].map(&mut made), [5, 0, 5]);
        let mut quick = SpareProcessor::default();
        assert_eq!((0..10).map(|_| quick.paced(Spare::Some, 100, 700)).sum::<usize>(), 10);
    }
}
