//! LATENCY DOCTOR: the samples of all events in sentences, with what can be done about them. The sentences
//! are Sardine's own, because the causes are others than in Redis: no fork, no disk, no single thread.
use crate::state::config::Config;
use crate::state::latency::{COMMAND, EVICTION_CYCLE, EXPIRE_CYCLE, Events, FAST_COMMAND, Sample, Series};
use std::fmt::Write;

/// Figures of one event, from those of its samples that are still kept.
struct Summary {
    count: u64,
    mean_ms: u64,
    /// The mean distance from the mean.
    deviation_ms: u64,
    /// Seconds from one sample to the next, on average.
    period_s: f64,
}

impl Summary {
    fn of(series: &Series, now_s: i64) -> Summary {
        let count = (series.samples.len() as u64).max(1);
        let mean = |of: &dyn Fn(&Sample) -> u64| series.samples.iter().map(of).sum::<u64>() / count;
        let mean_ms = mean(&|s| s.ms);
        let since_s = series.samples.front().map_or(0, |first| now_s - first.time_s).max(1);
        Summary {
            count,
            mean_ms,
            deviation_ms: mean(&|s| s.ms.abs_diff(mean_ms)),
            period_s: since_s as f64 / count as f64,
        }
    }
}

/// The whole text. `now_s` is the wall clock.
pub(super) fn examine(events: &Events, config: &Config, now_s: i64) -> String {
    if events.is_empty() {
        return nothing_seen(config);
    }
    let mut text = "These events took longer than latency-monitor-threshold:\n\n".to_owned();
    for (number, (event, series)) in events.iter().enumerate() {
        let sum = Summary::of(series, now_s);
        let _ = writeln!(
            text,
            "{}. {event}: {} latency spikes (average {}ms, mean deviation {}ms, period {:.2} sec). Worst all time \
             event {}ms.",
            number + 1,
            sum.count,
            sum.mean_ms,
            sum.deviation_ms,
            sum.period_s,
            series.worst_ms
        );
    }
    text += "\nWhat to look at:\n\n";
    for advice in advices(events, config) {
        let _ = writeln!(text, "- {advice}");
    }
    text
}

/// The text where there are no samples: because nothing took long, or because the monitor is off.
fn nothing_seen(config: &Config) -> String {
    match config.latency_monitor_ms {
        0 => "The latency monitor is off. CONFIG SET latency-monitor-threshold <milliseconds> makes it keep what \
            takes so long; then ask again.\n"
            .into(),
        ms => format!("Nothing has taken {ms} ms or longer since the monitor was switched on or reset.\n"),
    }
}

/// What to look at, by the events that there are.
fn advices(events: &Events, config: &Config) -> Vec<String> {
    let mut all = Vec::new();
    let has = |event: &str| events.contains_key(event);
    if has(COMMAND) {
        all.push(match config.command_log.slow.from {
            -1 => "The slow log is off: set slowlog-log-slower-than, and SLOWLOG GET names the commands.".into(),
            us if us as u64 / 1000 > config.latency_monitor_ms => format!(
                "SLOWLOG GET names the commands, but only those of {us} microseconds and longer: lower \
                 slowlog-log-slower-than to see all of these."
            ),
            _ => "SLOWLOG GET names the commands. What walks a whole value or the whole keyspace (KEYS, LRANGE 0 -1, a \
                  large LREM) is better asked for in parts."
                .into(),
        });
    }
    if has(FAST_COMMAND) {
        all.push(
            "Commands that are never slow by themselves had to wait: for a processor that other programs use, for \
             memory that was swapped out, or for a key's shard while a long command held it."
                .into(),
        );
    }
    if has(EXPIRE_CYCLE) {
        all.push(
            "Keys that expire are removed some hundreds at a time: a pass that takes long was itself kept waiting by \
             the system."
                .into(),
        );
    }
    if has(EVICTION_CYCLE) {
        all.push(
            "Making room under maxmemory took long: a higher limit, or fewer writes at once, leaves less to evict at \
             a time."
                .into(),
        );
    }
    if let Some(series) = events.values().max_by_key(|series| series.worst_ms)
        && series.worst_ms < config.latency_monitor_ms.saturating_mul(2)
    {
        all.push("Nothing was twice as long as the threshold: perhaps it is lower than what matters.".into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(name: &'static str, samples: &[(i64, u64)]) -> Events {
        let mut series = Series::new();
        samples.iter().for_each(|(time_s, ms)| series.add(Sample { time_s: *time_s, ms: *ms }));
        [(name, series)].into()
    }

    #[test]
    fn spikes_are_summed_up_and_advised_on() {
        let config = Config { latency_monitor_ms: 1, ..Config::default() };
        let text = examine(&events(COMMAND, &[(10, 15), (11, 3)]), &config, 12);
        let sums = "1. command: 2 latency spikes (average 9ms, mean deviation 6ms, period 1.00 sec). Worst all time \
            event 15ms.";
        assert!(text.contains(sums), "{text}");
        assert!(text.contains("but only those of 10000 microseconds"), "{text}");
        let text = examine(&events(FAST_COMMAND, &[(10, 1)]), &config, 12);
        assert!(text.contains("had to wait") && text.contains("twice as long"), "{text}");
    }

    #[test]
    fn a_monitor_that_is_off_is_not_called_healthy() {
        let off = Config::default();
        assert!(examine(&Events::new(), &off, 0).contains("is off"));
        let on = Config { latency_monitor_ms: 7, ..Config::default() };
        assert!(examine(&Events::new(), &on, 0).contains("7 ms"));
    }
}
