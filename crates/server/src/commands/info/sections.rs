//! The sections of INFO, one function each.
use super::report::Report;
use crate::commands::connection::REDIS_VERSION;
use crate::commands::memory::Figures;
use crate::core::server::Server;
use crate::state::config::{Tracking, percentiles};
use crate::state::defrag::DefragStats;
use crate::state::system;
use base::Millis;
use nix::sys::resource::UsageWho;
use std::sync::atomic::Ordering::Relaxed;
use store::Deadlines;

pub(super) struct Section {
    /// Its name is the same in lower case.
    pub(super) title: &'static str,
    pub(super) sort: Sort,
    pub(super) write: fn(&mut Report, &Server, Millis),
}

/// When a section is shown without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Default,
    /// Only by `all` and `everything`.
    Long,
}

/// In the order in which INFO shows them.
pub(super) const SECTIONS: &[Section] = &[
    Section { title: "Server", sort: Sort::Default, write: server },
    Section { title: "Clients", sort: Sort::Default, write: clients },
    Section { title: "Memory", sort: Sort::Default, write: memory },
    Section { title: "Persistence", sort: Sort::Default, write: persistence },
    Section { title: "Threads", sort: Sort::Default, write: threads },
    Section { title: "Stats", sort: Sort::Default, write: stats },
    Section { title: "Replication", sort: Sort::Default, write: replication },
    Section { title: "CPU", sort: Sort::Default, write: cpu },
    Section { title: "Modules", sort: Sort::Default, write: |_, _, _| {} },
    Section { title: "Commandstats", sort: Sort::Long, write: command_stats },
    Section { title: "Errorstats", sort: Sort::Default, write: error_stats },
    Section { title: "Latencystats", sort: Sort::Long, write: latency_stats },
    Section {
        title: "Cluster",
        sort: Sort::Default,
        write: |report, _, _| report.field("cluster_enabled", 0),
    },
    Section { title: "Keyspace", sort: Sort::Default, write: keyspace },
];

fn server(report: &mut Report, server: &Server, now: Millis) {
    let config = server.config();
    let uptime_s = server.uptime_s();
    report.field("redis_version", REDIS_VERSION);
    report.field("sardine_version", env!("CARGO_PKG_VERSION"));
    report.field("redis_git_sha1", "00000000");
    report.field("redis_git_dirty", 0);
    report.field("redis_build_id", "0000000000000000");
    report.field("redis_mode", "standalone");
    report.field("os", system::name());
    report.field("arch_bits", usize::BITS);
    report.field("monotonic_clock", net::Meter::new().name());
    report.field("multiplexing_api", server.engine_name);
    report.field("process_id", std::process::id());
    report.field("process_supervised", "no");
    report.field("run_id", &server.run_id);
    report.field("tcp_port", tcp_port(server));
    report.field("server_time_usec", server.clock.now_us());
    report.field("uptime_in_seconds", uptime_s);
    report.field("uptime_in_days", uptime_s / 86_400);
    report.fields(&["hz", "configured_hz"], config.hz);
    report.field("lru_clock", (now.0 / 1000) & 0xFF_FFFF);
    let executable = std::env::current_exe().unwrap_or_default();
    report.field("executable", executable.display());
    report.field("config_file", config.file.clone().unwrap_or_default().display());
    report.field("io_threads_active", 0);
    report.field("worker_threads", server.mailboxes.len());
    listeners(report, server);
}

fn tcp_port(server: &Server) -> u16 {
    server.listening.addresses().first().map_or(0, std::net::SocketAddr::port)
}

/// One line for TCP, with the addresses as they are configured, and one for the Unix socket.
fn listeners(report: &mut Report, server: &Server) {
    let config = server.config();
    let mut lines = Vec::new();
    if !server.listening.addresses().is_empty() {
        let bind: String = config.bind.iter().map(|address| format!(",bind={address}")).collect();
        lines.push(format!("name=tcp{bind},port={}", tcp_port(server)));
    }
    if let Some(path) = &config.unixsocket {
        lines.push(format!("name=unix,bind={}", path.display()));
    }
    for (number, line) in lines.into_iter().enumerate() {
        report.field(&format!("listener{number}"), line);
    }
}

fn clients(report: &mut Report, server: &Server, _: Millis) {
    let stats = &server.stats;
    report.field("connected_clients", server.clients().len());
    report.field("cluster_connections", 0);
    report.field("maxclients", server.config().maxclients);
    report.field("client_recent_max_input_buffer", stats.recent_input_peak.load(Relaxed));
    report.field("client_recent_max_output_buffer", stats.recent_output_peak.load(Relaxed));
    let parked = server.clients().values().filter(|record| record.is_parked.load(Relaxed)).count();
    report.field("blocked_clients", parked);
    report.fields(&["tracking_clients", "pubsub_clients", "watching_clients"], 0);
    let timed: u64 = server.counters.0.iter().map(|worker| worker.timed_waits.load(Relaxed)).sum();
    report.field("clients_in_timeout_table", timed);
    report.fields(&["total_watched_keys", "total_blocking_keys", "total_blocking_keys_on_nokey"], 0);
}

fn memory(report: &mut Report, server: &Server, _: Millis) {
    let figures = Figures::of(server);
    let (used, rss) = (figures.used, figures.resident);
    let not_counted = crate::core::memory_limit::uncounted_bytes(server);
    report.bytes("used_memory", used);
    report.bytes("used_memory_rss", rss);
    report.bytes("used_memory_peak", figures.peak);
    report.field("used_memory_peak_perc", format_args!("{:.2}%", figures.peak_percent()));
    report.field("used_memory_overhead", figures.overhead());
    report.field("used_memory_startup", figures.startup);
    report.field("used_memory_dataset", figures.dataset());
    report.field("used_memory_dataset_perc", format_args!("{:.2}%", figures.dataset_percent()));
    report.field("allocator_allocated", used);
    report.field("arena_used", figures.arena.used_bytes);
    report.field("arena_resident", figures.arena.resident_bytes);
    report.field("arena_mapped", figures.arena.mapped_bytes);
    report.bytes("total_system_memory", system::total_bytes());
    scripts(report);
    let config = server.config();
    report.bytes("maxmemory", config.maxmemory_bytes);
    report.field("maxmemory_policy", config.store.eviction.policy.name());
    report.field("mem_fragmentation_ratio", format_args!("{:.2}", figures.fragmentation()));
    report.field("mem_fragmentation_bytes", figures.fragmentation_bytes());
    report.field("mem_not_counted_for_evict", not_counted);
    report.fields(&["mem_replication_backlog", "mem_total_replication_buffers"], 0);
    report.fields(&["mem_replica_full_sync_buffer", "mem_clients_slaves"], 0);
    report.field("mem_clients_normal", figures.clients);
    report.fields(&["mem_cluster_links", "mem_aof_buffer"], 0);
    report.field("mem_allocator", server.config().allocator);
    // Trees grow a leaf at a time: no table is ever rehashed.
    report.field("mem_overhead_db_hashtable_rehashing", 0);
    report.field("active_defrag_running", server.defrag.running_percent.load(Relaxed));
    report.field("lazyfree_pending_objects", server.background.pending());
    report.field("lazyfreed_objects", server.keyspace.stats().lazyfreed);
}

/// There are no scripts and no functions, so they use nothing.
fn scripts(report: &mut Report) {
    report.fields(&["used_memory_lua", "used_memory_vm_eval"], 0);
    report.field("used_memory_lua_human", "0B");
    report.fields(&["used_memory_scripts_eval", "number_of_cached_scripts"], 0);
    report.fields(&["number_of_functions", "number_of_libraries", "used_memory_vm_functions"], 0);
    report.bytes("used_memory_vm_total", 0);
    report.field("used_memory_functions", 0);
    report.bytes("used_memory_scripts", 0);
}

fn persistence(report: &mut Report, server: &Server, _: Millis) {
    report.fields(&["loading", "async_loading", "current_cow_peak", "current_cow_size"], 0);
    report.field("current_cow_size_age", 0);
    report.field("current_fork_perc", "0.00");
    report.fields(&["current_save_keys_processed", "current_save_keys_total"], 0);
    report.field("rdb_changes_since_last_save", server.keyspace.stats().dirty);
    report.field("rdb_bgsave_in_progress", 0);
    report.field("rdb_last_save_time", server.started.wall.0 / 1000);
    report.field("rdb_last_bgsave_status", "ok");
    report.fields(&["rdb_last_bgsave_time_sec", "rdb_current_bgsave_time_sec"], -1);
    report.fields(
        &[
            "rdb_saves",
            "rdb_last_cow_size",
            "rdb_last_load_keys_expired",
            "rdb_last_load_keys_loaded",
            "aof_enabled",
            "aof_rewrite_in_progress",
            "aof_rewrite_scheduled",
        ],
        0,
    );
    report.fields(&["aof_last_rewrite_time_sec", "aof_current_rewrite_time_sec"], -1);
    report.field("aof_last_bgrewrite_status", "ok");
    report.fields(&["aof_rewrites", "aof_rewrites_consecutive_failures"], 0);
    report.field("aof_last_write_status", "ok");
    report.fields(&["aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"], 0);
}

fn threads(report: &mut Report, server: &Server, _: Millis) {
    for (index, (mailbox, counters)) in server.mailboxes.iter().zip(&server.counters.0).enumerate() {
        let clients = mailbox.connections.load(Relaxed);
        let commands: u64 = counters.commands.iter().map(|c| c.calls.load()).sum();
        report.field(&format!("worker_{index}"), format_args!("clients={clients},commands={commands}"));
    }
}

fn stats(report: &mut Report, server: &Server, _: Millis) {
    let (stats, counters, keyspace) = (&server.stats, &server.counters, server.keyspace.stats());
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    report.field("total_connections_received", stats.connections_received.load(Relaxed));
    report.field("total_commands_processed", counters.commands());
    report.field("instantaneous_ops_per_sec", stats.ops_per_second.load(Relaxed));
    report.field("total_net_input_bytes", counters.bytes_in());
    report.field("total_net_output_bytes", counters.bytes_out());
    report.fields(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"], 0);
    report.field("instantaneous_input_kbps", kilobytes(stats.input_bytes_per_second.load(Relaxed)));
    report.field("instantaneous_output_kbps", kilobytes(stats.output_bytes_per_second.load(Relaxed)));
    report.fields(&["instantaneous_input_repl_kbps", "instantaneous_output_repl_kbps"], "0.00");
    report.field("rejected_connections", stats.connections_rejected.load(Relaxed));
    report.fields(&["sync_full", "sync_partial_ok", "sync_partial_err"], 0);
    report.field("expired_subkeys", keyspace.expired_fields);
    report.field("expired_keys", keyspace.expired);
    report.field("expired_stale_perc", "0.00");
    report.field("expired_time_cap_reached_count", counters.sum(|worker| &worker.expire_stops));
    report.field("expire_cycle_cpu_milliseconds", counters.sum(|worker| &worker.expire_ns) / 1_000_000);
    report.field("evicted_keys", keyspace.evicted);
    report.field("evicted_clients", stats.clients_evicted.load(Relaxed));
    report.field("evicted_scripts", 0);
    let (total_ms, current_ms) = server.pressure.exceeded_ms(server.clock.steady_us());
    report.field("total_eviction_exceeded_time", total_ms);
    report.field("current_eviction_exceeded_time", current_ms);
    report.field("keyspace_hits", keyspace.hits);
    report.field("keyspace_misses", keyspace.misses);
    report.fields(&["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"], 0);
    report.fields(&["latest_fork_usec", "total_forks", "migrate_cached_sockets"], 0);
    report.field("slave_expires_tracked_keys", 0);
    active_defrag(report, &server.defrag);
    report.fields(&["tracking_total_keys", "tracking_total_items", "tracking_total_prefixes"], 0);
    report.field("unexpected_error_replies", 0);
    report.field("total_error_replies", counters.errors().values().sum::<u64>());
    report.field("dump_payload_sanitizations", 0);
    report.field("total_reads_processed", counters.sum(|worker| &worker.reads));
    report.field("total_writes_processed", counters.sum(|worker| &worker.writes));
    // No thread does nothing but I/O.
    report.fields(&["io_threaded_reads_processed", "io_threaded_writes_processed"], 0);
    report.field("client_query_buffer_limit_disconnections", stats.query_limit_disconnections.load(Relaxed));
    report
        .field("client_output_buffer_limit_disconnections", stats.output_limit_disconnections.load(Relaxed));
    report.field("eventloop_cycles", counters.sum(|worker| &worker.turns));
    report.field("eventloop_duration_sum", counters.turn_time_ns() / 1000);
    report.field("eventloop_duration_cmd_sum", counters.command_time_ns() / 1000);
    report.field("instantaneous_eventloop_cycles_per_sec", stats.turns_per_second.load(Relaxed));
    report.field("instantaneous_eventloop_duration_usec", stats.turn_us.load(Relaxed));
    report.field("acl_access_denied_auth", stats.logins_denied.load(Relaxed));
    report.fields(&["acl_access_denied_cmd", "acl_access_denied_key", "acl_access_denied_channel"], 0);
}

/// Times in milliseconds.
fn active_defrag(report: &mut Report, stats: &DefragStats) {
    let current_us = stats.current_us.load(Relaxed);
    report.field("active_defrag_hits", stats.hits.load(Relaxed));
    report.field("active_defrag_misses", stats.misses.load(Relaxed));
    report.field("active_defrag_key_hits", stats.key_hits.load(Relaxed));
    report.field("active_defrag_key_misses", stats.key_misses.load(Relaxed));
    report.field("total_active_defrag_time", (stats.total_us.load(Relaxed) + current_us) / 1000);
    report.field("current_active_defrag_time", current_us / 1000);
}

fn replication(report: &mut Report, server: &Server, _: Millis) {
    report.field("role", "master");
    report.field("connected_slaves", 0);
    report.field("master_failover_state", "no-failover");
    report.field("master_replid", server.replication_id.text());
    report.field("master_replid2", "0".repeat(40));
    report.field("master_repl_offset", 0);
    report.field("second_repl_offset", -1);
    report.field("repl_backlog_active", 0);
    let backlog = server.config().value("repl-backlog-size").unwrap_or_default();
    report.field("repl_backlog_size", String::from_utf8_lossy(&backlog));
    report.fields(&["repl_backlog_first_byte_offset", "repl_backlog_histlen"], 0);
}

fn cpu(report: &mut Report, _: &Server, _: Millis) {
    let process = system::cpu_time(UsageWho::RUSAGE_SELF);
    let children = system::cpu_time(UsageWho::RUSAGE_CHILDREN);
    report.field("used_cpu_sys", process.system);
    report.field("used_cpu_user", process.user);
    report.field("used_cpu_sys_children", children.system);
    report.field("used_cpu_user_children", children.user);
}

fn command_stats(report: &mut Report, server: &Server, _: Millis) {
    for row in server.registry.all() {
        let sum = server.counters.command(row.number);
        if sum.calls + sum.rejected + sum.failed == 0 {
            continue;
        }
        let usec = sum.time_ns / 1000;
        report.field(
            &format!("cmdstat_{}", row.full_name),
            format_args!(
                "calls={},usec={usec},usec_per_call={:.2},rejected_calls={},failed_calls={}",
                sum.calls,
                sum.time_ns as f64 / 1000.0 / sum.calls.max(1) as f64,
                sum.rejected,
                sum.failed
            ),
        );
    }
}

fn error_stats(report: &mut Report, server: &Server, _: Millis) {
    for (code, count) in server.counters.errors() {
        report.field(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn latency_stats(report: &mut Report, server: &Server, _: Millis) {
    let config = server.config();
    if config.latency_tracking == Tracking::Off {
        return;
    }
    let names = percentiles(&config);
    for row in server.registry.all() {
        let Some(latencies) = server.counters.latencies(row.number) else { continue };
        let cells = names.iter().zip(&config.latency_percentiles).map(|(name, percent)| {
            format!("p{name}={:.3}", latencies.percentile_ns(*percent) as f64 / 1000.0)
        });
        let cells: Vec<String> = cells.collect();
        report.field(&format!("latency_percentiles_usec_{}", row.full_name), cells.join(","));
    }
}

fn keyspace(report: &mut Report, server: &Server, now: Millis) {
    for db in 0..server.keyspace.databases() {
        let keys = server.keyspace.len(db);
        if keys > 0 {
            let Deadlines { keys: expires, ttl_mean_ms, hashes } = server.keyspace.deadlines(db, now);
            report.field(
                &format!("db{db}"),
                format_args!("keys={keys},expires={expires},avg_ttl={ttl_mean_ms},subexpiry={hashes}"),
            );
        }
    }
}
