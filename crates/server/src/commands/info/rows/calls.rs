//! Families of metrics: one field for each command, error, or database.
use crate::commands::info::metric::{Cell, Kind, Line, Metric, Unit, Value, cell, each};
use crate::commands::info::reading::Reading;
use crate::state::config::{Tracking, percentiles};
use store::Deadlines;

pub(in super::super) const COMMAND_STATS: &[Metric] =
    &[each("cmdstat_", "command", "Each command that was called.", CALLS, command_stats)];

const CALLS: &[Cell] = &[
    cell("calls", Kind::Counter, Unit::None, "How many calls of this command ran."),
    cell("usec", Kind::Counter, Unit::Microseconds, "The time that these calls took together."),
    cell("usec_per_call", Kind::Gauge, Unit::Microseconds, "`usec` divided by `calls`."),
    cell(
        "rejected_calls",
        Kind::Counter,
        Unit::None,
        "Calls that were refused before they ran, for example for a wrong number of arguments.",
    ),
    cell(
        "failed_calls",
        Kind::Counter,
        Unit::None,
        "Calls that ran and answered an error. `calls` counts them too.",
    ),
];

pub(in super::super) const ERROR_STATS: &[Metric] =
    &[each("errorstat_", "code", "Each code that an error reply began with.", ERRORS, error_stats)];

const ERRORS: &[Cell] =
    &[cell("count", Kind::Counter, Unit::None, "How many error replies began with this code.")];

pub(in super::super) const LATENCY_STATS: &[Metric] = &[each(
    "latency_percentiles_usec_",
    "command",
    "Each command that was called, while `latency-tracking` is on.",
    PERCENTILES,
    latency_stats,
)];

const PERCENTILES: &[Cell] = &[cell(
    "p*",
    Kind::Gauge,
    Unit::Microseconds,
    "The time that this percentage of the calls did not exceed. \
        `latency-tracking-info-percentiles` says which percentages are shown.",
)];

pub(in super::super) const KEYSPACE: &[Metric] =
    &[each("db", "database", "Each database that holds keys.", DATABASE, databases)];

const DATABASE: &[Cell] = &[
    cell("keys", Kind::Gauge, Unit::None, "Keys in this database."),
    cell("expires", Kind::Gauge, Unit::None, "Keys in this database that have a time to live."),
    cell("avg_ttl", Kind::Gauge, Unit::Milliseconds, "The mean time to live that remains to these keys."),
    cell("subexpiry", Kind::Gauge, Unit::None, "Hashes of which at least one field has a time to live."),
];

fn command_stats(reading: &Reading<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in reading.server.registry.all() {
        let sum = reading.server.counters.command(row.number);
        if sum.calls + sum.rejected + sum.failed == 0 {
            continue;
        }
        let time_us = sum.time_ns / 1000;
        let cells = vec![
            ("calls".into(), sum.calls.into()),
            ("usec".into(), time_us.into()),
            ("usec_per_call".into(), Value::Hundredths(time_us as f64 / sum.calls.max(1) as f64)),
            ("rejected_calls".into(), sum.rejected.into()),
            ("failed_calls".into(), sum.failed.into()),
        ];
        lines.push(Line { label: row.full_name.clone(), cells });
    }
    lines
}

fn error_stats(reading: &Reading<'_>) -> Vec<Line> {
    let errors = reading.server.counters.errors().into_iter();
    errors.map(|(label, count)| Line { label, cells: vec![("count".into(), count.into())] }).collect()
}

fn latency_stats(reading: &Reading<'_>) -> Vec<Line> {
    let config = &reading.config;
    if config.latency_tracking == Tracking::Off {
        return Vec::new();
    }
    let names = percentiles(config);
    let mut lines = Vec::new();
    for row in reading.server.registry.all() {
        let Some(latencies) = reading.server.counters.latencies(row.number) else { continue };
        let cells = names.iter().zip(&config.latency_percentiles).map(|(name, percent)| {
            let time_us = latencies.percentile_ns(*percent) as f64 / 1000.0;
            (format!("p{name}").into(), Value::Thousandths(time_us))
        });
        lines.push(Line { label: row.full_name.clone(), cells: cells.collect() });
    }
    lines
}

fn databases(reading: &Reading<'_>) -> Vec<Line> {
    let keyspace = &reading.server.keyspace;
    let mut lines = Vec::new();
    for db in 0..keyspace.databases() {
        let keys = keyspace.len(db);
        if keys > 0 {
            let Deadlines { keys: expires, ttl_mean_ms, hashes } = keyspace.deadlines(db, reading.now);
            let cells = vec![
                ("keys".into(), keys.into()),
                ("expires".into(), expires.into()),
                ("avg_ttl".into(), ttl_mean_ms.into()),
                ("subexpiry".into(), hashes.into()),
            ];
            lines.push(Line { label: db.to_string(), cells });
        }
    }
    lines
}
