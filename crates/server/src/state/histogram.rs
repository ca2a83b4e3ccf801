//! How long calls took, as counts by duration: a histogram for each worker and command, written only by its
//! worker.
//!
//! Cells are narrow where calls are short and wide where they are long: eight of equal width up to 1.032 us,
//! and from there on eight in each power of two, so that a percentile is at most an eighth too high.
//!
//! ```text
//! cell      0      1   ..     7      8       9   ..    15      16   ..
//! up to   129    258   ..  1032   1161    1290   ..  2064    2322   .. ns, itself excluded
//! ```
//!
//! The unit is 129 ns and not 125, because the ends of the powers of two must be those that LATENCY HISTOGRAM
//! of Redis has: 1032 ns times a power of two, less one (1, 2, 4, 8, 16, 33, 66 us ...). The last cell takes
//! whatever is longer than the others hold, over two minutes. A histogram has 1,792 bytes and is made when a
//! worker first tracks a call of its command.
use crate::state::counters::Count;
use std::array::from_fn;

/// Durations are counted in units of so many nanoseconds.
pub(crate) const UNIT_NS: u64 = 129;
/// Cells in a power of two.
const SPLIT: usize = 8;
const SPLIT_BITS: u32 = SPLIT.trailing_zeros();
const POWERS: usize = 28;
const CELLS: usize = SPLIT * POWERS;

const _: () = assert!(size_of::<Histogram>() == 1_792);

/// What one worker measured of one command.
pub(crate) struct Histogram([Count; CELLS]);

impl Histogram {
    pub(crate) fn new() -> Histogram {
        Histogram(from_fn(|_| Count::default()))
    }

    /// Counts a call of so many units. Only the histogram's owner calls this: an addition to one cell.
    #[inline]
    pub(crate) fn record(&self, units: u64) {
        self.0[cell(units)].add(1);
    }

    /// A call that was recorded with `before` units took `now`. Nothing happens if the cell is empty, because
    /// the histogram was reset since.
    pub(crate) fn correct(&self, before: u64, now: u64) {
        let was = &self.0[cell(before)];
        if was.load() > 0 {
            was.add(u64::MAX);
            self.record(now);
        }
    }

    pub(crate) fn reset(&self) {
        self.0.iter().for_each(Count::reset);
    }
}

/// The cell that counts a duration.
#[inline]
fn cell(units: u64) -> usize {
    if units < SPLIT as u64 {
        return units as usize;
    }
    let shift = units.ilog2() - SPLIT_BITS;
    let in_power = (units >> shift) as usize - SPLIT;
    ((shift as usize + 1) * SPLIT + in_power).min(CELLS - 1)
}

/// The longest time that a cell counts.
fn longest_ns(cell: usize) -> u64 {
    let (power, in_power) = ((cell / SPLIT) as u32, (cell % SPLIT) as u64);
    let units = if power == 0 { in_power + 1 } else { (SPLIT as u64 + in_power + 1) << (power - 1) };
    units * UNIT_NS - 1
}

/// The calls of one command over all workers, by how long they took.
#[derive(Debug)]
pub(crate) struct Latencies([u64; CELLS]);

impl Latencies {
    /// No calls.
    pub(crate) fn new() -> Latencies {
        Latencies([0; CELLS])
    }

    /// Adds what a worker measured.
    pub(crate) fn add(&mut self, histogram: &Histogram) {
        for (total, count) in self.0.iter_mut().zip(&histogram.0) {
            *total += count.load();
        }
    }

    /// How many calls there were.
    pub(crate) fn calls(&self) -> u64 {
        self.0.iter().sum()
    }

    /// For each power of two in which there are calls: its end in microseconds, and how many calls took no
    /// longer than that.
    pub(crate) fn by_power(&self) -> Vec<(u64, u64)> {
        let mut sum = 0;
        let mut all = Vec::new();
        for (power, cells) in self.0.chunks_exact(SPLIT).enumerate() {
            let here: u64 = cells.iter().sum();
            sum += here;
            if here > 0 {
                all.push((longest_ns(power * SPLIT + SPLIT - 1) / 1000, sum));
            }
        }
        all
    }

    /// The percentile of the calls' times: the longest time of the cell in which it lies; 0 where there were
    /// no calls.
    pub(crate) fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = ((percent / 100.0 * self.calls() as f64 + 0.5) as u64).max(1);
        let mut sum = 0;
        let found = self.0.iter().position(|count| {
            sum += count;
            sum >= wanted
        });
        found.map_or(0, longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times_ns: &[u64]) -> Latencies {
        let histogram = Histogram::new();
        times_ns.iter().for_each(|t| histogram.record(*t / UNIT_NS));
        let mut all = Latencies::new();
        all.add(&histogram);
        all
    }

    #[test]
    fn every_cell_ends_where_the_next_begins() {
        for i in 0..CELLS - 1 {
            let longest = longest_ns(i);
            assert_eq!((cell(longest / UNIT_NS), cell((longest + 1) / UNIT_NS)), (i, i + 1));
        }
        assert_eq!((cell(0), cell(u64::MAX)), (0, CELLS - 1));
    }

    #[test]
    fn buckets_shown_by_latency_histogram_end_at_the_times_of_redis() {
        let ends: Vec<u64> = (0..21).map(|p| longest_ns(p * SPLIT + SPLIT - 1) / 1000).collect();
        assert_eq!(ends[..12], [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113]);
        assert_eq!(ends[20], 1_082_130);
    }

    #[test]
    fn powers_are_cumulative_and_empty_ones_are_left_out() {
        assert_eq!(of(&[100, 900, 5_000, 40_000]).by_power(), [(1, 2), (8, 3), (66, 4)]);
        assert!(of(&[]).by_power().is_empty());
    }

    #[test]
    fn a_percentile_is_at_most_an_eighth_too_high() {
        let times: Vec<u64> = (1..=1000).map(|n| n * 1000).collect();
        let all = of(&times);
        for (percent, exact) in [(0.0, 1_000), (50.0, 500_000), (99.9, 999_000), (100.0, 1_000_000)] {
            let found = all.percentile_ns(percent);
            assert!(found >= exact && found <= exact + exact / 8 + UNIT_NS, "{percent}: {found}");
        }
        assert_eq!(of(&[]).percentile_ns(50.0), 0);
    }
}
