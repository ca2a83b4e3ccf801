//! What the latency monitor keeps: for each kind of event the last samples, one a second at most, and the
//! worst of all. Nothing is kept of what took less than `latency-monitor-threshold`. LATENCY shows it
//! (`commands/latency`).
use crate::state::config::Config;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The names of events are Redis's. This one is any command.
pub(crate) const COMMAND: &str = "command";
/// A command of which no call should take long.
pub(crate) const FAST_COMMAND: &str = "fast-command";
/// One pass that removes keys past their deadlines.
pub(crate) const EXPIRE_CYCLE: &str = "expire-cycle";
/// One round of making room under `maxmemory`.
pub(crate) const EVICTION_CYCLE: &str = "eviction-cycle";

/// All events by name, behind a lock that is taken only for what is kept or shown.
#[derive(Default)]
pub(crate) struct LatencyMonitor(Mutex<Events>);

pub(crate) type Events = BTreeMap<&'static str, Series>;

/// The samples of one event, the oldest first; never empty.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) samples: VecDeque<Sample>,
    /// The longest time since the series began, with those of samples that are no longer kept.
    pub(crate) worst_ms: u64,
}

/// One second in which the event took long, and how long at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time_s: i64,
    pub(crate) ms: u64,
}

/// How many samples of an event are kept, as in Redis.
const SAMPLES_MAX: usize = 160;

impl LatencyMonitor {
    /// An event took `time_ns` and ended in the second `time_s`. It is kept if it reached the threshold;
    /// otherwise this costs a comparison.
    pub(crate) fn note(&self, config: &Config, event: &'static str, time_ns: u64, time_s: i64) {
        if config.latency_threshold_ns().is_some_and(|from| time_ns >= from) {
            let sample = Sample { time_s, ms: time_ns / 1_000_000 };
            let mut events = self.events();
            let series = events.entry(event).or_insert_with(Series::new);
            series.add(sample);
        }
    }

    /// All that is kept, locked, to be shown or reset.
    pub(crate) fn events(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Series {
    /// No samples yet; the caller adds one at once.
    pub(crate) fn new() -> Series {
        Series { samples: VecDeque::new(), worst_ms: 0 }
    }

    /// Adds a sample. Of one second only the worst is kept, and the oldest goes when there are too many.
    pub(crate) fn add(&mut self, sample: Sample) {
        self.worst_ms = self.worst_ms.max(sample.ms);
        match self.samples.back_mut() {
            Some(last) if last.time_s == sample.time_s => last.ms = last.ms.max(sample.ms),
            _ => {
                if self.samples.len() == SAMPLES_MAX {
                    self.samples.pop_front();
                }
                self.samples.push_back(sample);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time_s: i64, ms: u64) -> Sample {
        Sample { time_s, ms }
    }

    #[test]
    fn of_one_second_the_worst_is_kept_and_of_many_the_last() {
        let mut series = Series::new();
        [(1, 5), (1, 9), (1, 3), (2, 4)].iter().for_each(|(time_s, ms)| series.add(sample(*time_s, *ms)));
        assert_eq!(Vec::from(series.samples.clone()), [sample(1, 9), sample(2, 4)]);
        (3..500).for_each(|time_s| series.add(sample(time_s, 1)));
        assert_eq!((series.samples.len(), series.samples[0]), (SAMPLES_MAX, sample(340, 1)));
        assert_eq!(series.worst_ms, 9);
    }

    #[test]
    fn what_is_short_or_not_asked_for_is_not_kept() {
        let monitor = LatencyMonitor::default();
        let mut config = Config::default();
        monitor.note(&config, COMMAND, u64::MAX, 1);
        config.latency_monitor_ms = 2;
        monitor.note(&config, COMMAND, 1_999_999, 1);
        assert!(monitor.events().is_empty());
        monitor.note(&config, COMMAND, 2_000_000, 1);
        assert_eq!(monitor.events()[COMMAND].samples, [sample(1, 2)]);
    }
}
