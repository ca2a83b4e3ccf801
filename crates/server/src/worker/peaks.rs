//! The largest buffers of clients in the last seconds, for INFO's client_recent_max_input_buffer and
//! client_recent_max_output_buffer. Workers note their own peaks as buffers change; the first worker takes
//! them ten times a second and forgets them after eight seconds.
use crate::core::server::Server;
use base::Millis;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One slot a second.
const SLOTS: usize = 8;

#[derive(Clone, Copy, Default)]
struct Slot {
    second: i64,
    input_bytes: u64,
    output_bytes: u64,
}

/// A ring of the last seconds.
#[derive(Default)]
pub(super) struct Peaks([Slot; SLOTS]);

impl Peaks {
    /// Takes what the workers have noted, and publishes the largest of the last seconds.
    pub(super) fn sample(&mut self, server: &Server, now: Millis) {
        let counters = &server.counters.0;
        let take = |peak: &AtomicU64| peak.swap(0, Relaxed);
        let input_bytes = counters.iter().map(|worker| take(&worker.input_peak)).max().unwrap_or(0);
        let output_bytes = counters.iter().map(|worker| take(&worker.output_peak)).max().unwrap_or(0);
        self.add(now.0 / 1000, input_bytes, output_bytes);
        let (input_bytes, output_bytes) = self.largest(now.0 / 1000);
        server.stats.recent_input_peak.store(input_bytes, Relaxed);
        server.stats.recent_output_peak.store(output_bytes, Relaxed);
    }

    /// Enters the largest buffers of a tick in the slot of its second.
    fn add(&mut self, second: i64, input_bytes: u64, output_bytes: u64) {
        let slot = &mut self.0[second.rem_euclid(SLOTS as i64) as usize];
        if slot.second != second {
            *slot = Slot { second, ..Slot::default() };
        }
        slot.input_bytes = slot.input_bytes.max(input_bytes);
        slot.output_bytes = slot.output_bytes.max(output_bytes);
    }

    /// The largest buffers of the last eight seconds.
    fn largest(&self, second: i64) -> (u64, u64) {
        let recent = self.0.iter().filter(|slot| second - slot.second < SLOTS as i64);
        recent.fold((0, 0), |(input, output), slot| {
            (input.max(slot.input_bytes), output.max(slot.output_bytes))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_is_forgotten_after_eight_seconds() {
        let mut peaks = Peaks::default();
        peaks.add(100, 7, 1);
        peaks.add(100, 5, 2);
        peaks.add(103, 6, 0);
        assert_eq!(peaks.largest(107), (7, 2));
        assert_eq!(peaks.largest(108), (6, 0));
        peaks.add(111, 1, 1);
        assert_eq!(peaks.largest(111), (1, 1));
    }
}
