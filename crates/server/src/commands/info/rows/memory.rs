//! Metrics of memory.
use super::{NO_CLUSTER, NO_REPLICATION};
use crate::commands::info::metric::{Kind, Metric, Unit, Value, counter, gauge, text, zero};
use crate::commands::memory::{function_bytes, script_bytes};
use crate::state::system;
use std::sync::atomic::Ordering::Relaxed;

pub(in super::super) const MEMORY: &[Metric] = &[
    gauge("used_memory", "Memory that the process has allocated, for data and everything else.", |r| {
        r.memory().used.into()
    })
    .human(),
    gauge("used_memory_rss", "Physical memory that the process occupies (resident set size).", |r| {
        r.memory().resident.into()
    })
    .human(),
    gauge("used_memory_peak", "The most that `used_memory` has been.", |r| r.memory().peak.into()).human(),
    gauge("used_memory_peak_perc", "`used_memory` in percent of `used_memory_peak`.", |r| {
        Value::Percent(r.memory().peak_percent())
    })
    .unit(Unit::Percent),
    gauge(
        "used_memory_overhead",
        "Memory that is not data: what the server had allocated when it \
        had started, clients and buffers, the index of expiry times, and scripts with their interpreters.",
        |r| r.memory().overhead().into(),
    )
    .unit(Unit::Bytes),
    gauge(
        "used_memory_startup",
        "`used_memory` when the server had just started, without data or clients.",
        |r| r.memory().startup.into(),
    )
    .unit(Unit::Bytes),
    gauge("used_memory_dataset", "`used_memory` less `used_memory_overhead`.", |r| {
        r.memory().dataset().into()
    })
    .unit(Unit::Bytes),
    gauge(
        "used_memory_dataset_perc",
        "`used_memory_dataset` in percent of `used_memory` less \
        `used_memory_startup`.",
        |r| Value::Percent(r.memory().dataset_percent()),
    )
    .unit(Unit::Percent),
    gauge("allocator_allocated", "The same as `used_memory`.", |r| r.memory().used.into()).unit(Unit::Bytes),
    gauge("arena_used", "Memory in use in the arena, which is the allocator of the data.", |r| {
        r.memory().arena.used_bytes.into()
    })
    .unit(Unit::Bytes),
    gauge("arena_resident", "Physical memory that the arena occupies.", |r| {
        r.memory().arena.resident_bytes.into()
    })
    .unit(Unit::Bytes),
    gauge(
        "arena_mapped",
        "Address space that the arena has reserved, whether or not it occupies \
        memory.",
        |r| r.memory().arena.mapped_bytes.into(),
    )
    .unit(Unit::Bytes),
    gauge("total_system_memory", "Physical memory of the machine.", |_| system::total_bytes().into()).human(),
    gauge("used_memory_lua", "The same as `used_memory_vm_eval`.", |r| r.server.interpreter_bytes().into())
        .human(),
    gauge("used_memory_vm_eval", "Memory of the interpreters that run EVAL.", |r| {
        r.server.interpreter_bytes().into()
    })
    .unit(Unit::Bytes),
    gauge("used_memory_scripts_eval", "What the texts of scripts take.", |r| script_bytes(r.server).into())
        .unit(Unit::Bytes),
    gauge("number_of_cached_scripts", "Scripts that EVALSHA knows.", |r| {
        (r.server.scripts.cache.size().0 as u64).into()
    }),
    gauge("number_of_functions", "Functions that are loaded.", |r| {
        (r.server.scripts.libraries.now().size().1 as u64).into()
    }),
    gauge("number_of_libraries", "Libraries of functions that are loaded.", |r| {
        (r.server.scripts.libraries.now().size().0 as u64).into()
    }),
    gauge("used_memory_vm_functions", "Memory of the interpreters that run functions.", |r| {
        r.server.functions_bytes().into()
    })
    .unit(Unit::Bytes),
    gauge("used_memory_vm_total", "What all interpreters take.", |r| {
        (r.server.interpreter_bytes() + r.server.functions_bytes()).into()
    })
    .human(),
    gauge("used_memory_functions", "What the libraries of functions take: their texts and names.", |r| {
        function_bytes(r.server).into()
    })
    .unit(Unit::Bytes),
    gauge("used_memory_scripts", "What the texts of scripts and functions take.", |r| {
        (script_bytes(r.server) + function_bytes(r.server)).into()
    })
    .human(),
    gauge("maxmemory", "The setting `maxmemory`.", |r| r.config.maxmemory_bytes.into()).human(),
    text("maxmemory_policy", "The setting `maxmemory-policy`.", |r| {
        r.config.store.eviction.policy.name().into()
    }),
    gauge("mem_fragmentation_ratio", "`used_memory_rss` divided by `used_memory`.", |r| {
        Value::Hundredths(r.memory().fragmentation())
    }),
    gauge("mem_fragmentation_bytes", "`used_memory_rss` less `used_memory`.", |r| {
        r.memory().fragmentation_bytes().into()
    })
    .unit(Unit::Bytes),
    gauge(
        "mem_not_counted_for_evict",
        "Memory that does not count against `maxmemory`: buffers of clients, values that wait \
        to be freed in the background, up to a tenth of `maxmemory`, and what only a snapshot holds.",
        |r| r.memory().uncounted.into(),
    )
    .unit(Unit::Bytes),
    zero(Kind::Gauge, "mem_replication_backlog", "What the backlog takes.", NO_REPLICATION).unit(Unit::Bytes),
    zero(Kind::Gauge, "mem_total_replication_buffers", "What buffers for replicas take.", NO_REPLICATION)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "mem_replica_full_sync_buffer", "What a full synchronisation takes.", NO_REPLICATION)
        .unit(Unit::Bytes),
    zero(Kind::Gauge, "mem_clients_slaves", "What connections of replicas take.", NO_REPLICATION)
        .unit(Unit::Bytes),
    gauge(
        "mem_clients_normal",
        "Memory that connections of clients take, their buffers \
        included.",
        |r| r.memory().clients.into(),
    )
    .unit(Unit::Bytes),
    zero(Kind::Gauge, "mem_cluster_links", "What connections to other nodes take.", NO_CLUSTER)
        .unit(Unit::Bytes),
    gauge("mem_aof_buffer", "What waits to be written to the append-only file.", |r| {
        let append = &r.server.append;
        let waiting = if append.is_wanted() { r.server.journal.waiting_bytes() as u64 } else { 0 };
        (append.gathered_bytes.load(Relaxed) + waiting).into()
    })
    .unit(Unit::Bytes),
    text("mem_allocator", "The allocator of everything but the data, which lies in the arena.", |r| {
        r.config.allocator.into()
    }),
    zero(
        Kind::Gauge,
        "mem_overhead_db_hashtable_rehashing",
        "Memory of hash tables whose keys are being moved into larger ones.",
        "Trees grow a leaf at a time: no table is ever moved.",
    )
    .unit(Unit::Bytes),
    gauge(
        "active_defrag_running",
        "The share of one processor that active defragmentation may \
        take at present; 0 while it does not run.",
        |r| r.server.defrag.running_percent.load(Relaxed).into(),
    )
    .unit(Unit::Percent),
    gauge("lazyfree_pending_objects", "Values that wait to be freed in the background.", |r| {
        r.server.background.pending().into()
    }),
    counter(
        "lazyfreed_objects",
        "Keys that FLUSHALL or FLUSHDB removed, and keys that UNLINK and \
        its like removed and whose values Redis would free in the background.",
        |r| r.keyspace().lazyfreed.into(),
    ),
];
