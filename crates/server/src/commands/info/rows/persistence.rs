//! Metrics of snapshots and the append-only file, neither of which there is yet.
use super::{NO_DISK, NO_FORKS};
use crate::commands::info::metric::{Kind, Metric, Unit, Value, gauge, text, zero};

pub(in super::super) const PERSISTENCE: &[Metric] = &[
    zero(Kind::Gauge, "loading", "Whether data is being loaded.", NO_DISK),
    zero(Kind::Gauge, "async_loading", "Whether a replica loads beside its old data.", NO_DISK),
    zero(Kind::Gauge, "current_cow_peak", "The most that a snapshot in progress has copied.", NO_FORKS)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "current_cow_size", "What a snapshot in progress has copied.", NO_FORKS)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "current_cow_size_age", "How old that figure is.", NO_FORKS).unit(Unit::Seconds),
    gauge("current_fork_perc", "The progress of a snapshot that is being written.", |_| "0.00".into())
        .unit(Unit::Percent)
        .constant(NO_FORKS),
    zero(
        Kind::Gauge,
        "current_save_keys_processed",
        "Keys that the snapshot in progress has written so far.",
        NO_DISK,
    ),
    zero(
        Kind::Gauge,
        "current_save_keys_total",
        "Keys that the snapshot in progress will write in all.",
        NO_DISK,
    ),
    gauge(
        "rdb_changes_since_last_save",
        "Changes to the data since the last snapshot, or the start where there was none.",
        |r| r.keyspace().dirty.into(),
    ),
    zero(Kind::Gauge, "rdb_bgsave_in_progress", "Whether a snapshot is being written.", NO_DISK),
    gauge("rdb_last_save_time", "When the last snapshot was written, or the server started.", |r| {
        (r.server.started.wall.0 / 1000).into()
    })
    .unit(Unit::Seconds),
    text("rdb_last_bgsave_status", "How the last snapshot ended.", |_| "ok".into()).constant(NO_DISK),
    gauge("rdb_last_bgsave_time_sec", "How long the last snapshot took.", minus_one)
        .unit(Unit::Seconds)
        .constant(NO_DISK),
    gauge("rdb_current_bgsave_time_sec", "How long a snapshot has been written.", minus_one)
        .unit(Unit::Seconds)
        .constant(NO_DISK),
    zero(Kind::Counter, "rdb_saves", "Snapshots that were written.", NO_DISK),
    zero(Kind::Gauge, "rdb_last_cow_size", "What the last snapshot copied.", NO_FORKS).unit(Unit::Bytes),
    zero(
        Kind::Gauge,
        "rdb_last_load_keys_expired",
        "Keys whose time was over when they were loaded.",
        NO_DISK,
    ),
    zero(Kind::Gauge, "rdb_last_load_keys_loaded", "Keys that were loaded.", NO_DISK),
    zero(Kind::Gauge, "aof_enabled", "Whether there is an append-only file.", NO_DISK),
    zero(Kind::Gauge, "aof_rewrite_in_progress", "Whether the append-only file is being rewritten.", NO_DISK),
    zero(Kind::Gauge, "aof_rewrite_scheduled", "Whether a rewrite waits for a snapshot to end.", NO_DISK),
    gauge("aof_last_rewrite_time_sec", "How long the last rewrite took.", minus_one)
        .unit(Unit::Seconds)
        .constant(NO_DISK),
    gauge("aof_current_rewrite_time_sec", "How long a rewrite has taken so far.", minus_one)
        .unit(Unit::Seconds)
        .constant(NO_DISK),
    text("aof_last_bgrewrite_status", "How the last rewrite ended.", |_| "ok".into()).constant(NO_DISK),
    zero(Kind::Counter, "aof_rewrites", "Rewrites since the start.", NO_DISK),
    zero(
        Kind::Gauge,
        "aof_rewrites_consecutive_failures",
        "How many of the last rewrites failed in a row.",
        NO_DISK,
    ),
    text("aof_last_write_status", "How the last write of the file ended.", |_| "ok".into()).constant(NO_DISK),
    zero(Kind::Gauge, "aof_last_cow_size", "What the last rewrite copied.", NO_FORKS).unit(Unit::Bytes),
    zero(Kind::Gauge, "module_fork_in_progress", "Whether a module has forked.", NO_FORKS),
    zero(Kind::Gauge, "module_fork_last_cow_size", "What the last such process copied.", NO_FORKS)
        .unit(Unit::Bytes),
];

fn minus_one(_: &crate::commands::info::reading::Reading<'_>) -> Value {
    Value::Int(-1)
}
