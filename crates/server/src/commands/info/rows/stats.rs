//! Metrics of what the server has done. Counters begin at 0 when the server starts; CONFIG RESETSTAT sets
//! those back to 0 that Redis sets back.
use super::{NO_FORKS, NO_IO_THREADS, NO_REPLICATION, NO_SANITIZING};
use crate::commands::info::metric::{Kind, Metric, Unit, Value, counter, gauge, zero};
use crate::state::pubsub::Topic;
use std::sync::atomic::Ordering::Relaxed;

pub(in super::super) const STATS: &[Metric] = &[
    counter(
        "total_connections_received",
        "Connections that were accepted, without those beyond `maxclients`.",
        |r| r.server.stats.connections_received.load(Relaxed).into(),
    ),
    counter("total_commands_processed", "Commands that ran.", |r| r.server.counters.commands().into()),
    gauge(
        "instantaneous_ops_per_sec",
        "Commands per second, the mean of the last 16 samples (about 1.6 seconds).",
        |r| r.server.stats.ops_per_second.load(Relaxed).into(),
    )
    .unit(Unit::PerSecond),
    counter("total_net_input_bytes", "Bytes received from clients.", |r| r.server.counters.bytes_in().into())
        .unit(Unit::Bytes),
    counter("total_net_output_bytes", "Bytes of replies to clients.", |r| {
        r.server.counters.bytes_out().into()
    })
    .unit(Unit::Bytes),
    zero(Kind::Counter, "total_net_repl_input_bytes", "What a primary has sent.", NO_REPLICATION)
        .unit(Unit::Bytes),
    zero(Kind::Counter, "total_net_repl_output_bytes", "What replicas were sent.", NO_REPLICATION)
        .unit(Unit::Bytes),
    gauge(
        "instantaneous_input_kbps",
        "Bytes received from clients per second, the mean of the last 16 samples (about 1.6 seconds).",
        |r| kibibytes(r.server.stats.input_bytes_per_second.load(Relaxed)),
    )
    .unit(Unit::KibibytesPerSecond),
    gauge(
        "instantaneous_output_kbps",
        "Bytes of replies to clients per second, the mean of the last 16 samples (about 1.6 seconds).",
        |r| kibibytes(r.server.stats.output_bytes_per_second.load(Relaxed)),
    )
    .unit(Unit::KibibytesPerSecond),
    gauge("instantaneous_input_repl_kbps", "What a primary sends of late.", |_| kibibytes(0))
        .unit(Unit::KibibytesPerSecond)
        .constant(NO_REPLICATION),
    gauge("instantaneous_output_repl_kbps", "What replicas are sent of late.", |_| kibibytes(0))
        .unit(Unit::KibibytesPerSecond)
        .constant(NO_REPLICATION),
    counter(
        "rejected_connections",
        "Connections that were turned away: those beyond `maxclients`, and those that `protected-mode` does not allow.",
        |r| r.server.stats.connections_rejected.load(Relaxed).into(),
    ),
    zero(Kind::Counter, "sync_full", "Full synchronisations of replicas.", NO_REPLICATION),
    zero(
        Kind::Counter,
        "sync_partial_ok",
        "Partial resynchronisations of replicas that succeeded.",
        NO_REPLICATION,
    ),
    zero(Kind::Counter, "sync_partial_err", "Partial resynchronisations that were refused.", NO_REPLICATION),
    counter("expired_subkeys", "Fields of hashes that were removed because they had expired.", |r| {
        r.keyspace().expired_fields.into()
    }),
    counter("expired_keys", "Keys that were removed because they had expired.", |r| {
        r.keyspace().expired.into()
    }),
    gauge(
        "expired_stale_perc",
        "The estimated share of keys that have expired and were not removed yet.",
        |_| "0.00".into(),
    )
    .unit(Unit::Percent)
    .constant("They are found by their time, not by samples, so none is left to be estimated."),
    counter(
        "expired_time_cap_reached_count",
        "How often a round of expiry stopped at its limit while expired keys were left; the next round goes on.",
        |r| r.server.counters.sum(|worker| &worker.expire_stops).into(),
    ),
    counter("expire_cycle_cpu_milliseconds", "Time that rounds of expiry took.", |r| {
        (r.server.counters.sum(|worker| &worker.expire_ns) / 1_000_000).into()
    })
    .unit(Unit::Milliseconds),
    counter("evicted_keys", "Keys that were evicted for `maxmemory`.", |r| r.keyspace().evicted.into()),
    counter("lent_requests", "Requests that took so long that they ran on threads of their own.", |r| {
        r.server.stats.requests_lent.load(Relaxed).into()
    }),
    counter(
        "lent_scripts",
        "Scripts that ran on the thread of scripts: a worker does not attempt them, or has given them up.",
        |r| r.server.stats.scripts_lent.load(Relaxed).into(),
    ),
    counter(
        "alone_scripts",
        "Scripts, and EXECs with some, that a worker ran while the others waited: they reach for more than keys, \
         or two were often in each other's way.",
        |r| r.server.stats.scripts_alone.load(Relaxed).into(),
    ),
    counter("evicted_clients", "Clients that were closed for `maxmemory-clients`.", |r| {
        r.server.stats.clients_evicted.load(Relaxed).into()
    }),
    counter("evicted_scripts", "Scripts that came with EVAL and were forgotten for others.", |r| {
        r.server.scripts.cache.evicted().into()
    }),
    counter("total_eviction_exceeded_time", "How long memory has been over `maxmemory` in all.", |r| {
        r.server.pressure.exceeded_ms(r.server.clock.steady_us()).0.into()
    })
    .unit(Unit::Milliseconds),
    gauge(
        "current_eviction_exceeded_time",
        "How long memory has been over `maxmemory` this time; 0 while it is not.",
        |r| r.server.pressure.exceeded_ms(r.server.clock.steady_us()).1.into(),
    )
    .unit(Unit::Milliseconds),
    counter("keyspace_hits", "Lookups of keys that existed.", |r| r.keyspace().hits.into()),
    counter("keyspace_misses", "Lookups of keys that did not exist.", |r| r.keyspace().misses.into()),
    gauge("pubsub_channels", "Channels that somebody listens to.", |r| {
        r.server.pubsub.count(Topic::Channel).into()
    }),
    gauge("pubsub_patterns", "Patterns by which somebody listens.", |r| {
        r.server.pubsub.count(Topic::Pattern).into()
    }),
    gauge("pubsubshard_channels", "Channels of shards that somebody listens to.", |r| {
        r.server.pubsub.count(Topic::Shard).into()
    }),
    zero(Kind::Gauge, "latest_fork_usec", "How long the last fork took.", NO_FORKS).unit(Unit::Microseconds),
    zero(Kind::Counter, "total_forks", "Forks.", NO_FORKS),
    gauge("migrate_cached_sockets", "Connections that MIGRATE keeps.", |r| {
        (r.server.moving.sockets() as u64).into()
    }),
    zero(Kind::Gauge, "slave_expires_tracked_keys", "Keys with a time that a replica wrote.", NO_REPLICATION),
    counter("active_defrag_hits", "Blocks that defragmentation moved.", |r| {
        r.server.defrag.hits.load(Relaxed).into()
    }),
    counter("active_defrag_misses", "Blocks that defragmentation examined and left where they were.", |r| {
        r.server.defrag.misses.load(Relaxed).into()
    }),
    counter(
        "active_defrag_key_hits",
        "Keys with a value outside their entry of which defragmentation moved a part.",
        |r| r.server.defrag.key_hits.load(Relaxed).into(),
    ),
    counter(
        "active_defrag_key_misses",
        "Keys with a value outside their entry of which defragmentation moved nothing.",
        |r| r.server.defrag.key_misses.load(Relaxed).into(),
    ),
    counter(
        "total_active_defrag_time",
        "How long rounds of defragmentation have taken, with the pauses between their steps.",
        |r| {
            let stats = &r.server.defrag;
            ((stats.total_us.load(Relaxed) + stats.current_us.load(Relaxed)) / 1000).into()
        },
    )
    .unit(Unit::Milliseconds),
    gauge(
        "current_active_defrag_time",
        "How long the present round of defragmentation has taken so far; 0 while none runs.",
        |r| (r.server.defrag.current_us.load(Relaxed) / 1000).into(),
    )
    .unit(Unit::Milliseconds),
    gauge("tracking_total_keys", "Keys that clients have read and are told of when they change.", |r| {
        r.server.key_events.tracking.keys_and_items().0.into()
    }),
    gauge(
        "tracking_total_items",
        "Keys that clients track, each as often as there are clients that have read it.",
        |r| r.server.key_events.tracking.keys_and_items().1.into(),
    ),
    gauge("tracking_total_prefixes", "Prefixes of which clients track all keys.", |r| {
        r.server.key_events.tracking.prefix_count().into()
    }),
    gauge("tracking_table_bytes", "What it takes to know which client has read which key.", |r| {
        r.server.key_events.tracking.table_bytes().into()
    })
    .unit(Unit::Bytes),
    zero(Kind::Counter, "unexpected_error_replies", "Errors where none may be.", NO_REPLICATION),
    counter("total_error_replies", "Replies that were errors.", |r| {
        r.server.counters.errors().values().sum::<u64>().into()
    }),
    zero(Kind::Counter, "dump_payload_sanitizations", "Payloads that were checked in depth.", NO_SANITIZING),
    counter("total_reads_processed", "Reads from sockets that brought data.", |r| {
        r.server.counters.sum(|worker| &worker.reads).into()
    }),
    counter("total_writes_processed", "How often replies were handed over to be sent.", |r| {
        r.server.counters.sum(|worker| &worker.writes).into()
    }),
    zero(Kind::Counter, "io_threaded_reads_processed", "Reads of threads that only read.", NO_IO_THREADS),
    zero(Kind::Counter, "io_threaded_writes_processed", "Writes of threads that only write.", NO_IO_THREADS),
    counter(
        "client_query_buffer_limit_disconnections",
        "Clients closed for `client-query-buffer-limit`.",
        |r| r.server.stats.query_limit_disconnections.load(Relaxed).into(),
    ),
    counter(
        "client_output_buffer_limit_disconnections",
        "Clients closed for `client-output-buffer-limit`.",
        |r| r.server.stats.output_limit_disconnections.load(Relaxed).into(),
    ),
    counter("eventloop_cycles", "Cycles of the workers' event loops.", |r| {
        r.server.counters.sum(|worker| &worker.turns).into()
    }),
    counter("eventloop_duration_sum", "Time that these cycles took, without waiting for events.", |r| {
        (r.server.counters.turn_time_ns() / 1000).into()
    })
    .unit(Unit::Microseconds),
    counter(
        "eventloop_duration_cmd_sum",
        "Time that running commands took. Those that run on other threads are not in `eventloop_duration_sum`.",
        |r| (r.server.counters.command_time_ns() / 1000).into(),
    )
    .unit(Unit::Microseconds),
    gauge(
        "instantaneous_eventloop_cycles_per_sec",
        "Cycles of the event loops per second, the mean of the last 16 samples (about 1.6 seconds).",
        |r| r.server.stats.turns_per_second.load(Relaxed).into(),
    )
    .unit(Unit::PerSecond),
    gauge(
        "instantaneous_eventloop_duration_usec",
        "Mean duration of a cycle of the event loops, of the last 16 samples (about 1.6 seconds).",
        |r| r.server.stats.turn_us.load(Relaxed).into(),
    )
    .unit(Unit::Microseconds),
    counter(
        "acl_access_denied_auth",
        "Logins with a wrong name or password. CONFIG RESETSTAT leaves it as it is.",
        |r| r.server.stats.logins_denied.load(Relaxed).into(),
    ),
    counter(
        "acl_access_denied_cmd",
        "Requests of commands that their user may not use. CONFIG RESETSTAT leaves it as it is.",
        |r| r.server.stats.commands_denied.load(Relaxed).into(),
    ),
    counter(
        "acl_access_denied_key",
        "Requests with keys that their user may not use. CONFIG RESETSTAT leaves it as it is.",
        |r| r.server.stats.keys_denied.load(Relaxed).into(),
    ),
    counter(
        "acl_access_denied_channel",
        "Requests with channels that their user may not use. CONFIG RESETSTAT leaves it as it is.",
        |r| r.server.stats.channels_denied.load(Relaxed).into(),
    ),
];

fn kibibytes(bytes: u64) -> Value {
    Value::Hundredths(bytes as f64 / 1024.0)
}
