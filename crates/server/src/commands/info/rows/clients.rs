//! Metrics of connections, and of the workers that serve them.
use super::NO_CLUSTER;
use crate::commands::info::metric::{Cell, Kind, Line, Metric, Unit, cell, each, gauge, zero};
use crate::commands::info::reading::Reading;
use std::sync::atomic::Ordering::Relaxed;

pub(in super::super) const CLIENTS: &[Metric] = &[
    gauge("connected_clients", "Connections of clients.", |r| r.server.clients().len().into()),
    zero(Kind::Gauge, "cluster_connections", "Connections to other nodes of the cluster.", NO_CLUSTER),
    gauge("maxclients", "The setting `maxclients`.", |r| i64::from(r.config.maxclients).into()),
    gauge(
        "client_recent_max_input_buffer",
        "The largest buffer of requests that any client had in the last eight seconds.",
        |r| r.server.stats.recent_input_peak.load(Relaxed).into(),
    )
    .unit(Unit::Bytes),
    gauge(
        "client_recent_max_output_buffer",
        "The largest buffer of unsent replies that any client had in the last eight seconds.",
        |r| r.server.stats.recent_output_peak.load(Relaxed).into(),
    )
    .unit(Unit::Bytes),
    gauge(
        "blocked_clients",
        "Clients whose next request has to wait: behind a command such as WAIT, or for the end of CLIENT PAUSE.",
        |r| r.server.clients().values().filter(|record| record.is_parked.load(Relaxed)).count().into(),
    ),
    gauge("tracking_clients", "Clients that track keys.", |r| r.server.key_events.tracking.clients().into()),
    gauge("pubsub_clients", "Clients that listen to channels.", |r| {
        r.server.clients().values().filter(|record| record.is_subscribed()).count().into()
    }),
    gauge("watching_clients", "Clients that watch keys for a transaction.", |r| {
        r.server.clients().values().filter(|record| record.watched_keys() > 0).count().into()
    }),
    gauge("clients_in_timeout_table", "Clients that wait in a command with a timeout.", |r| {
        r.server.counters.0.iter().map(|worker| worker.timed_waits.load(Relaxed)).sum::<u64>().into()
    }),
    gauge("total_watched_keys", "Keys that are watched for a transaction.", |r| {
        r.server.key_events.watched.keys().into()
    }),
    gauge("total_blocking_keys", "Keys that clients wait for.", |r| {
        r.server.key_events.waiters.keys.load(Relaxed).into()
    }),
    gauge(
        "total_blocking_keys_on_nokey",
        "Keys of which clients in XREADGROUP want to hear also when they go.",
        |r| r.server.key_events.waiters.keys_on_nokey.load(Relaxed).into(),
    ),
];

pub(in super::super) const THREADS: &[Metric] =
    &[each("worker_", "worker", "The connections and commands of each worker thread.", WORKER, workers)];

const WORKER: &[Cell] = &[
    cell("clients", Kind::Gauge, Unit::None, "Connections that this worker serves."),
    cell("commands", Kind::Counter, Unit::None, "Commands that this worker has run."),
];

fn workers(reading: &Reading<'_>) -> Vec<Line> {
    let counters = reading.server.counters.0.iter();
    let mut lines = Vec::new();
    for (index, (mailbox, counters)) in reading.server.mailboxes.iter().zip(counters).enumerate() {
        let commands: u64 = counters.commands.iter().map(|command| command.calls.load()).sum();
        let clients = mailbox.connections.load(Relaxed);
        let cells = vec![("clients".into(), clients.into()), ("commands".into(), commands.into())];
        lines.push(Line { label: index.to_string(), cells });
    }
    lines
}
