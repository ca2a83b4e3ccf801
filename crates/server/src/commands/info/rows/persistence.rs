//! Metrics of snapshots, and of the append-only file.
use super::{NO_FORKS, NO_REPLICATION};
use crate::commands::info::metric::{Kind, Metric, Unit, Value, counter, gauge, text, zero};
use crate::commands::info::reading::Reading;
use crate::state::append_only::AppendOnly;
use crate::state::persistence::{Loading, Save, Saves};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(in super::super) const PERSISTENCE: &[Metric] = &[
    gauge("loading", "Whether data is being loaded.", |r| u64::from(is_loading(r)).into()),
    zero(Kind::Gauge, "async_loading", "Whether a replica loads beside its old data.", NO_REPLICATION),
    gauge(
        "current_cow_peak",
        "The most that commands have copied because a snapshot in progress holds it.",
        copied,
    )
    .unit(Unit::Bytes),
    gauge("current_cow_size", "What commands have copied because a snapshot in progress holds it.", copied)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "current_cow_size_age", "How old `current_cow_size` is.", NO_FORKS).unit(Unit::Seconds),
    gauge("current_fork_perc", "How much of the snapshot in progress is written.", |r| {
        let percent = |save: &Save| save.written.load(Relaxed) as f64 / save.keys.max(1) as f64 * 100.0;
        Value::Hundredths(in_progress(r).map_or(0.0, |save| percent(&save)))
    })
    .unit(Unit::Percent),
    gauge("current_save_keys_processed", "Keys that the snapshot in progress has written so far.", |r| {
        in_progress(r).map_or(0, |save| save.written.load(Relaxed)).into()
    }),
    gauge("current_save_keys_total", "Keys that the snapshot in progress will write in all.", |r| {
        in_progress(r).map_or(0, |save| save.keys).into()
    }),
    gauge(
        "rdb_changes_since_last_save",
        "Changes to the data since the last snapshot, or the start where there was none.",
        |r| r.keyspace().dirty.saturating_sub(saves(r).saved_changes.load(Relaxed)).into(),
    ),
    gauge("rdb_bgsave_in_progress", "Whether a snapshot is being written.", |r| {
        u64::from(running(r).is_some()).into()
    }),
    gauge("rdb_last_save_time", "When the last snapshot was written, or the server started.", |r| {
        saves(r).last_s.load(Relaxed).into()
    })
    .unit(Unit::Seconds),
    text("rdb_last_bgsave_status", "How the last snapshot ended.", |r| {
        if saves(r).has_failed() { "err" } else { "ok" }.into()
    }),
    gauge("rdb_last_bgsave_time_sec", "How long the last snapshot in the background took.", |r| {
        saves(r).took_s.load(Relaxed).into()
    })
    .unit(Unit::Seconds),
    gauge("rdb_current_bgsave_time_sec", "How long a snapshot has been written.", |r| {
        running(r).map_or(-1, |save| (r.now.0 - save.began.0) / 1000).into()
    })
    .unit(Unit::Seconds),
    counter("rdb_saves", "Snapshots that SAVE, BGSAVE and save points have begun.", |r| {
        saves(r).count.load(Relaxed).into()
    }),
    gauge("rdb_last_cow_size", "What commands copied because the last snapshot held it.", |r| {
        saves(r).copied_bytes.load(Relaxed).into()
    })
    .unit(Unit::Bytes),
    gauge("rdb_last_load_keys_expired", "Keys whose time was over when they were loaded.", |r| {
        loading(r).expired.load(Relaxed).into()
    }),
    gauge("rdb_last_load_keys_loaded", "Keys that were loaded.", |r| loading(r).keys.load(Relaxed).into()),
    gauge("aof_enabled", "Whether there is an append-only file, or one begins.", |r| {
        u64::from(append(r).is_wanted()).into()
    }),
    gauge(
        "aof_rewrite_in_progress",
        "Whether the append-only file begins anew at this moment (a rewrite).",
        |r| u64::from(append(r).is_rewriting()).into(),
    ),
    gauge(
        "aof_rewrite_scheduled",
        "Whether the append-only file begins anew soon, because an attempt to turn it on has failed.",
        |r| u64::from(append(r).waits_to_begin()).into(),
    ),
    gauge("aof_last_rewrite_time_sec", "How long the last rewrite of the append-only file took.", |r| {
        append(r).rewrites.took_s.load(Relaxed).into()
    })
    .unit(Unit::Seconds),
    gauge("aof_current_rewrite_time_sec", "How long the rewrite that is under way has taken so far.", |r| {
        append(r).rewrites.running().map_or(-1, |save| (r.now.0 - save.began.0) / 1000).into()
    })
    .unit(Unit::Seconds),
    text("aof_last_bgrewrite_status", "How the last rewrite of the append-only file ended.", |r| {
        if append(r).rewrites.has_failed.load(Relaxed) { "err" } else { "ok" }.into()
    }),
    counter("aof_rewrites", "How many rewrites of the append-only file have ended well.", |r| {
        append(r).rewrites.count.load(Relaxed).into()
    }),
    gauge("aof_rewrites_consecutive_failures", "How many rewrites in a row have failed.", |r| {
        append(r).rewrites.failures.load(Relaxed).into()
    }),
    text("aof_last_write_status", "How the last write of the append-only file ended.", |r| {
        if append(r).has_failed() { "err" } else { "ok" }.into()
    }),
    gauge(
        "aof_last_cow_size",
        "What commands copied because the snapshot for the last rewrite held it.",
        |r| append(r).rewrites.copied_bytes.load(Relaxed).into(),
    )
    .unit(Unit::Bytes),
    zero(Kind::Gauge, "module_fork_in_progress", "Whether a module has forked.", NO_FORKS),
    zero(Kind::Gauge, "module_fork_last_cow_size", "What the last such process copied.", NO_FORKS)
        .unit(Unit::Bytes),
    gauge("aof_current_size", "How long the files of the append-only file are.", |r| {
        append(r).bytes().into()
    })
    .unit(Unit::Bytes)
    .only_if(is_appended),
    gauge("aof_base_size", "How long the files of the append-only file were when it last began.", |r| {
        append(r).bytes_at_begin.load(Relaxed).into()
    })
    .unit(Unit::Bytes)
    .only_if(is_appended),
    zero(Kind::Gauge, "aof_pending_rewrite", "Whether the append-only file waits to begin anew.", NO_FORKS)
        .only_if(is_appended),
    gauge("aof_buffer_length", "What is not written to the append-only file yet.", |r| {
        let waiting = r.server.journal.waiting_bytes() as u64;
        (append(r).gathered_bytes.load(Relaxed) + waiting).into()
    })
    .unit(Unit::Bytes)
    .only_if(is_appended),
    gauge(
        "aof_pending_bio_fsync",
        "Whether what is written to the append-only file waits to be put on the disk.",
        |r| u64::from(append(r).is_unsynced.load(Relaxed)).into(),
    )
    .only_if(is_appended),
    counter(
        "aof_delayed_fsync",
        "How often writes had to wait because a sync took more than a second.",
        |r| r.server.append.delays.load(Relaxed).into(),
    )
    .only_if(is_appended),
    gauge("loading_start_time", "When loading began.", |r| loading(r).began_s.load(Relaxed).into())
        .unit(Unit::Seconds)
        .only_if(is_loading),
    gauge("loading_total_bytes", "How long the file is that is being loaded.", |r| {
        loading(r).total_bytes.load(Relaxed).into()
    })
    .unit(Unit::Bytes)
    .only_if(is_loading),
    gauge("loading_rdb_used_mem", "How much memory was in use when the file was written.", |r| {
        loading(r).used_memory_bytes.load(Relaxed).into()
    })
    .unit(Unit::Bytes)
    .only_if(is_loading),
    gauge("loading_loaded_bytes", "How much of the file is loaded.", |r| {
        loading(r).loaded_bytes.load(Relaxed).into()
    })
    .unit(Unit::Bytes)
    .only_if(is_loading),
    gauge("loading_loaded_perc", "How much of the file is loaded, in percent.", |r| {
        Value::Hundredths(loading(r).loaded_percent())
    })
    .unit(Unit::Percent)
    .only_if(is_loading),
    gauge("loading_eta_seconds", "How long the rest will take, as fast as it goes.", |r| {
        let passed_s = (r.now.0 / 1000 - loading(r).began_s.load(Relaxed)).max(0) as f64;
        let percent = loading(r).percent();
        let left_s = if percent > 0.0 { passed_s * (100.0 - percent) / percent } else { 1.0 };
        (left_s as i64).into()
    })
    .unit(Unit::Seconds)
    .only_if(is_loading),
];

fn saves<'r>(reading: &'r Reading<'_>) -> &'r Saves {
    &reading.server.persistence.saves
}

fn loading<'r>(reading: &'r Reading<'_>) -> &'r Loading {
    &reading.server.persistence.loading
}

fn is_loading(reading: &Reading<'_>) -> bool {
    reading.server.persistence.is_loading()
}

/// The snapshot that is being written, or else the one for the append-only file.
fn in_progress(reading: &Reading<'_>) -> Option<Arc<Save>> {
    running(reading).or_else(|| append(reading).rewrites.running())
}

/// The snapshot that is being written.
fn running(reading: &Reading<'_>) -> Option<Arc<Save>> {
    saves(reading).running()
}

fn copied(reading: &Reading<'_>) -> Value {
    in_progress(reading).map_or(0, |save| save.copied_bytes()).into()
}

fn append<'r>(reading: &'r Reading<'_>) -> &'r AppendOnly {
    &reading.server.append
}

fn is_appended(reading: &Reading<'_>) -> bool {
    append(reading).is_wanted()
}
