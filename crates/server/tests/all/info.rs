//! INFO: which fields monitoring reads, and that their values are true.
use crate::client::{Client, NOON_MS, REMOVED_AFTER, bulk, config, request, start, start_at_noon};
use server::Config;
use std::collections::BTreeMap;
use std::time::Duration;

/// What redis_exporter makes metrics of (the maps of its exporter/exporter.go), but for the fields of other
/// servers.
const EXPORTED: &str = "\
    uptime_in_seconds process_id io_threads_active hz configured_hz connected_clients blocked_clients \
    maxclients tracking_clients clients_in_timeout_table pubsub_clients watching_clients total_watched_keys \
    total_blocking_keys total_blocking_keys_on_nokey cluster_connections client_longest_output_list \
    client_biggest_input_buf client_recent_max_output_buffer client_recent_max_input_buffer allocator_active \
    allocator_allocated allocator_resident allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio \
    allocator_rss_bytes used_memory used_memory_rss used_memory_peak used_memory_lua used_memory_vm_eval \
    used_memory_scripts_eval used_memory_overhead used_memory_startup used_memory_dataset \
    number_of_cached_scripts number_of_functions number_of_libraries used_memory_vm_functions \
    used_memory_scripts used_memory_functions used_memory_vm_total maxmemory maxmemory_reservation \
    maxmemory_desired_reservation maxfragmentationmemory_reservation \
    maxfragmentationmemory_desired_reservation mem_fragmentation_ratio mem_fragmentation_bytes \
    mem_clients_slaves mem_clients_normal mem_cluster_links mem_aof_buffer mem_replication_backlog \
    mem_total_replication_buffers total_system_memory expired_stale_perc mem_not_counted_for_evict \
    lazyfree_pending_objects lazyfreed_objects active_defrag_running migrate_cached_sockets \
    active_defrag_hits active_defrag_misses active_defrag_key_hits active_defrag_key_misses \
    expired_time_cap_reached_count expire_cycle_cpu_milliseconds loading async_loading \
    rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status \
    rdb_last_bgsave_time_sec rdb_current_bgsave_time_sec rdb_saves rdb_last_cow_size \
    rdb_last_load_keys_expired rdb_last_load_keys_loaded aof_enabled aof_rewrite_in_progress \
    aof_rewrite_scheduled aof_last_rewrite_time_sec aof_current_rewrite_time_sec aof_last_cow_size \
    aof_current_size aof_base_size aof_pending_rewrite aof_buffer_length aof_rewrite_buffer_length \
    aof_pending_bio_fsync aof_delayed_fsync aof_last_bgrewrite_status aof_last_write_status \
    module_fork_in_progress module_fork_last_cow_size current_eviction_exceeded_time \
    total_eviction_exceeded_time pubsub_channels pubsub_patterns pubsubshard_channels latest_fork_usec \
    total_forks tracking_total_keys tracking_total_items tracking_total_prefixes connected_slaves \
    repl_backlog_size repl_backlog_active repl_backlog_first_byte_offset repl_backlog_histlen \
    master_repl_offset second_repl_offset slave_expires_tracked_keys slave_priority sync_full \
    sync_partial_ok sync_partial_err cluster_enabled total_connections_received total_commands_processed \
    rejected_connections total_net_input_bytes total_net_output_bytes total_net_repl_input_bytes \
    total_net_repl_output_bytes expired_subkeys expired_keys evicted_keys evicted_clients evicted_scripts \
    keyspace_hits keyspace_misses used_cpu_sys used_cpu_user used_cpu_sys_children used_cpu_user_children \
    used_cpu_sys_main_thread used_cpu_user_main_thread unexpected_error_replies total_error_replies \
    dump_payload_sanitizations total_reads_processed total_writes_processed io_threaded_reads_processed \
    io_threaded_writes_processed client_query_buffer_limit_disconnections \
    client_output_buffer_limit_disconnections reply_buffer_shrinks reply_buffer_expands eventloop_cycles \
    eventloop_duration_sum eventloop_duration_cmd_sum instantaneous_eventloop_cycles_per_sec \
    instantaneous_eventloop_duration_usec acl_access_denied_auth acl_access_denied_cmd acl_access_denied_key \
    acl_access_denied_channel";

/// These Redis 8.0.2 does not show either: they are of older versions, of a replica, or of an append-only
/// file that is on.
const ABSENT_FROM_REDIS: &str = "\
    client_longest_output_list client_biggest_input_buf maxmemory_reservation maxmemory_desired_reservation \
    maxfragmentationmemory_reservation maxfragmentationmemory_desired_reservation aof_current_size \
    aof_base_size aof_pending_rewrite aof_buffer_length aof_rewrite_buffer_length aof_pending_bio_fsync \
    aof_delayed_fsync slave_priority";

/// What else scripts and test harnesses of the field look for.
const RELIED_UPON: &str = "\
    redis_version redis_build_id redis_mode os tcp_port run_id role maxmemory_policy mem_allocator \
    process_id loading used_memory total_error_replies expired_keys evicted_keys rdb_bgsave_in_progress \
    aof_rewrite_in_progress master_repl_offset master_replid blocked_clients lazyfree_pending_objects";

const METRICS: &str = include_str!("../../../../docs/metrics.md");
const DIFFERENCES: &str = include_str!("../../../../docs/differences.md");

fn fields(info: &str) -> BTreeMap<String, String> {
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn everything(client: &mut Client) -> BTreeMap<String, String> {
    fields(&client.ask("INFO everything"))
}

fn number(fields: &BTreeMap<String, String>, name: &str) -> f64 {
    let value = fields.get(name).unwrap_or_else(|| panic!("INFO has no {name}"));
    value.parse().unwrap_or_else(|_| panic!("{name} is {value:?}"))
}

#[test]
fn what_redis_exporter_reads_is_answered_or_named_among_the_differences() {
    let server = start(config());
    let info = everything(&mut Client::connect(&server));
    let absent: Vec<&str> = ABSENT_FROM_REDIS.split_whitespace().collect();
    for name in EXPORTED.split_whitespace().filter(|name| !absent.contains(name)) {
        match info.get(name) {
            Some(value) if name.ends_with("_status") => assert_eq!(value, "ok", "{name}"),
            Some(_) => drop(number(&info, name)),
            None => assert!(DIFFERENCES.contains(&format!("`{name}`")), "nothing says why {name} is missing"),
        }
    }
    for name in RELIED_UPON.split_whitespace() {
        assert!(info.contains_key(name), "{name}");
    }
}

/// A family's fields are written `prefix<label>` there, a cell of their values in a row of its own.
#[test]
fn every_field_is_in_the_reference_of_metrics_with_every_cell_of_its_value() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("SET k v", "+OK\r\n");
    client.check("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    let families: Vec<&str> =
        METRICS.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('<').map(|it| it.0)).collect();
    let mut cells_seen = 0;
    for (name, value) in everything(&mut client) {
        if METRICS.contains(&format!("`{name}`")) {
            continue;
        }
        let is_of = |prefix: &&&str| name.starts_with(**prefix);
        let prefix = families.iter().filter(is_of).max_by_key(|prefix| prefix.len());
        let prefix = prefix.unwrap_or_else(|| panic!("docs/metrics.md does not say what {name} is"));
        for cell in value.split(',').filter_map(|cell| cell.split_once('=')) {
            let is_cell = |line: &str| {
                let cells =
                    line.strip_prefix(&format!("| `{prefix}<")).and_then(|rest| rest.split_once(": `"));
                let named = cells.and_then(|(_, rest)| rest.split_once('`')).map(|(named, _)| named);
                named.is_some_and(|named| match named.strip_suffix('*') {
                    Some(beginning) => cell.0.starts_with(beginning),
                    None => cell.0 == named,
                })
            };
            assert!(
                METRICS.lines().any(is_cell),
                "docs/metrics.md does not say what {} of {name} is",
                cell.0
            );
            cells_seen += 1;
        }
    }
    assert!(cells_seen > 10, "{cells_seen}");
}

#[test]
fn sections_come_as_they_are_asked_for_each_once() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let mut titles = |line: &str| {
        let info = client.ask(line);
        let titles: Vec<String> = info.lines().filter_map(|l| l.strip_prefix("# ")).map(Into::into).collect();
        titles.join(" ")
    };
    let default =
        "Server Clients Memory Persistence Threads Stats Replication CPU Modules Errorstats Cluster Keyspace";
    let all = default.replace("Errorstats", "Commandstats Errorstats Latencystats");
    assert_eq!(titles("INFO"), default);
    assert_eq!(titles("INFO default"), default);
    assert_eq!(titles("INFO all"), all);
    assert_eq!(titles("INFO everything"), all);
    assert_eq!(titles("INFO memory SERVER memory nothing"), "Server Memory");
    assert_eq!(titles("INFO nothing"), "");
    assert_eq!(titles("INFO commandstats default"), default.replace("Errorstats", "Commandstats Errorstats"));
}

#[test]
fn what_is_counted_is_what_happened() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("SET k v", "+OK\r\n");
    a.check("GET k", &bulk("v"));
    a.check("GET none", "$-1\r\n");
    b.check("LPUSH k x", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    b.check("NOSUCH", "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    b.check("AUTH nobody x", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    b.check("SELECT 3", "+OK\r\n");
    b.check("SET k v EX 1000", "+OK\r\n");
    let info = everything(&mut a);
    let expected = [
        ("connected_clients", 2),
        ("total_connections_received", 2),
        // All but the unknown one and INFO itself.
        ("total_commands_processed", 7),
        ("keyspace_hits", 1),
        ("keyspace_misses", 1),
        ("total_error_replies", 3),
        ("acl_access_denied_auth", 1),
        ("rdb_changes_since_last_save", 2),
        ("process_id", i64::from(std::process::id())),
        ("tcp_port", i64::from(server.addresses[0].port())),
        ("repl_backlog_size", 1 << 20),
        ("maxclients", 10_000),
        ("total_reads_processed", 9),
        ("total_writes_processed", 8),
    ];
    for (name, value) in expected {
        assert_eq!(number(&info, name) as i64, value, "{name}");
    }
    assert_eq!(info["errorstat_WRONGTYPE"], "count=1");
    assert_eq!(info["db0"], "keys=1,expires=0,avg_ttl=0,subexpiry=0");
    assert!(info["db3"].starts_with("keys=1,expires=1,avg_ttl="), "{}", info["db3"]);
    assert!(info["cmdstat_lpush"].ends_with(",rejected_calls=0,failed_calls=1"), "{}", info["cmdstat_lpush"]);
    assert!(info["listener0"].starts_with("name=tcp,bind=127.0.0.1,port="), "{}", info["listener0"]);
}

#[test]
fn resetting_the_statistics_begins_them_anew() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("AUTH nobody x", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    client.check("GET none", "$-1\r\n");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    let info = everything(&mut client);
    for name in ["keyspace_misses", "total_error_replies", "total_connections_received", "expired_keys"] {
        assert_eq!(number(&info, name), 0.0, "{name}");
    }
    // RESETSTAT's own reply is sent after it, and INFO is the second request.
    assert!(number(&info, "total_reads_processed") <= 2.0 && number(&info, "eventloop_cycles") < 100.0);
    assert_eq!(number(&info, "acl_access_denied_auth"), 1.0, "as in Redis");
}

/// What Redis 8.0.2 answered.
#[test]
fn freed_lazily_is_counted_as_redis_does() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let many = |head: &[&str], elements: &mut dyn Iterator<Item = String>| {
        let words: Vec<String> = head.iter().map(|word| (*word).to_owned()).chain(elements).collect();
        request(&words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let set = |len: usize| many(&["SADD", "k"], &mut (0..len).map(|n| format!("m{n}")));
    let ints = |len: usize| many(&["SADD", "k"], &mut (0..len).map(|n| n.to_string()));
    let hash = |len: usize| many(&["HSET", "k"], &mut (0..2 * len).map(|n| format!("f{n}")));
    let zset = |len: usize| {
        many(
            &["ZADD", "k"],
            &mut (0..2 * len).map(|n| if n % 2 == 0 { n.to_string() } else { format!("m{n}") }),
        )
    };
    let list = |len: usize| many(&["RPUSH", "k"], &mut (0..len).map(|n| format!("{n:02000}x")));
    let stream = |len: usize, groups: usize, pending: usize| {
        let mut all = Vec::new();
        for n in 1..=len {
            all.extend(request(&["XADD", "k", &format!("{n}-1"), "f", "v"]));
        }
        for group in (0..groups).map(|group| format!("g{group:03}")) {
            all.extend(request(&["XGROUP", "CREATE", "k", &group, "0"]));
            let count = pending.to_string();
            if pending > 0 {
                let read = ["XREADGROUP", "GROUP", &group, "c", "COUNT", &count, "STREAMS", "k", ">"];
                all.extend(request(&read));
            }
        }
        all
    };
    let keys = |count: usize| many(&["MSET"], &mut (0..2 * count).map(|n| format!("k{}", n / 2 * 2 + n % 2)));
    let cases: Vec<(&str, Vec<u8>, &[&str], u64)> = vec![
        ("a set as a block", set(128), &["UNLINK", "k"], 0),
        ("a set as a table", set(129), &["UNLINK", "k"], 1),
        ("many integers", ints(500), &["UNLINK", "k"], 0),
        ("more integers", ints(600), &["UNLINK", "k"], 1),
        ("a hash", hash(600), &["UNLINK", "k"], 1),
        ("a short hash", hash(100), &["UNLINK", "k"], 0),
        ("a sorted set", zset(129), &["UNLINK", "k"], 1),
        ("a list of few nodes", list(200), &["UNLINK", "k"], 0),
        ("a list of many nodes", list(500), &["UNLINK", "k"], 1),
        ("deleted", set(2000), &["DEL", "k"], 0),
        ("set over", set(2000), &["SET", "k", "v"], 0),
        ("a stream of many nodes", stream(7000, 0, 0), &["UNLINK", "k"], 1),
        ("62 groups", stream(1, 62, 0), &["UNLINK", "k"], 0),
        ("63 groups", stream(1, 63, 0), &["UNLINK", "k"], 1),
        ("61 pending", stream(100, 1, 61), &["UNLINK", "k"], 0),
        ("62 pending", stream(100, 1, 62), &["UNLINK", "k"], 1),
        ("a stream deleted", stream(100, 70, 0), &["DEL", "k"], 0),
        ("a stream trimmed", stream(7000, 0, 0), &["XTRIM", "k", "MAXLEN", "0"], 0),
        ("flushed", keys(100), &["FLUSHALL", "ASYNC"], 100),
        ("a database flushed", keys(100), &["FLUSHDB", "ASYNC"], 100),
        ("flushed at once", keys(100), &["FLUSHALL", "SYNC"], 100),
    ];
    for (what, make, act, counted) in cases {
        client.check("FLUSHALL", "+OK\r\n");
        client.check("CONFIG RESETSTAT", "+OK\r\n");
        client.send(&request(&["CLIENT", "REPLY", "OFF"]));
        client.send(&make);
        client.send(&request(act));
        client.check("CLIENT REPLY ON", "+OK\r\n");
        assert_eq!(number(&everything(&mut client), "lazyfreed_objects"), counted as f64, "{what}");
    }
}

#[test]
fn memory_is_what_the_process_uses_and_its_peak_is_kept() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let info = everything(&mut client);
    let (used, peak) = (number(&info, "used_memory"), number(&info, "used_memory_peak"));
    assert!(used > 0.0 && peak >= used && number(&info, "used_memory_rss") > 0.0);
    assert!(number(&info, "used_memory_dataset") + number(&info, "used_memory_overhead") <= used);
    assert!(number(&info, "total_system_memory") > number(&info, "used_memory_rss"));
}

#[test]
fn rates_are_sampled_ten_times_a_second_and_forgotten_when_nothing_happens() {
    let (server, time) = start_at_noon(Config { worker_threads: 1, ..config() });
    let mut client = Client::connect(&server);
    let tick = |client: &mut Client, requests: usize| {
        client.send(&request(&["PING"]).repeat(requests));
        (0..requests).for_each(|_| client.expect("+PONG\r\n"));
        time.advance(Duration::from_millis(100));
        client.check("PING", "+PONG\r\n");
    };
    (0..20).for_each(|_| tick(&mut client, 99));
    let info = everything(&mut client);
    let rate = number(&info, "instantaneous_ops_per_sec");
    assert!((900.0..=1100.0).contains(&rate), "100 in 100 ms are not {rate} a second");
    assert!(number(&info, "instantaneous_input_kbps") > 10.0);
    assert!(number(&info, "instantaneous_output_kbps") > 5.0);
    assert!(number(&info, "instantaneous_eventloop_cycles_per_sec") >= 20.0);
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    assert_eq!(number(&everything(&mut client), "instantaneous_ops_per_sec"), 0.0);
    // Nothing that was before counts from here on.
    tick(&mut client, 0);
    let rate = number(&everything(&mut client), "instantaneous_ops_per_sec");
    assert!(rate <= 20.0, "{rate}");
    (0..20).for_each(|_| tick(&mut client, 99));
    assert!(number(&everything(&mut client), "instantaneous_ops_per_sec") >= 900.0);
    (0..20).for_each(|_| tick(&mut client, 0));
    let rate = number(&everything(&mut client), "instantaneous_ops_per_sec");
    assert!(rate <= 20.0, "{rate}");
    let uptime = number(&everything(&mut client), "uptime_in_seconds");
    assert_eq!(uptime, 6.0);
    assert_eq!(number(&everything(&mut client), "server_time_usec") as i64, (NOON_MS + 6100) * 1000);
}

#[test]
fn the_work_of_expiry_is_told() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    for i in 0..2000 {
        client.check(&format!("SET k:{i} v PX 1000"), "+OK\r\n");
    }
    time.advance(Duration::from_secs(1) + REMOVED_AFTER);
    client.wait_for("DBSIZE", ":0");
    let info = everything(&mut client);
    assert_eq!(number(&info, "expired_keys"), 2000.0);
    assert!(number(&info, "expired_time_cap_reached_count") > 0.0, "one pass removes fewer");
}
