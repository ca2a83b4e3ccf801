//! The accepted settings, grouped by what they would need. Names, values and defaults are those of Redis
//! 8.0.2; settings that `CONFIG GET *` does not list there are in [`UNLISTED`].
//!
//! A row is a name, when it may change, the shape of its values, and its default. `.only` and `.but` mark
//! values that would promise what is not kept: the first refuses all others, the second warns of them. `.or`
//! gives the setting an older name.
use super::shape::{Shape, primary, title_template};
use super::{Group, row};
use crate::state::config::setting::Change::{Anytime, AtStart};
use crate::state::config::setting::Setting;
use Shape::{Bool, Checked, Int, Memory, Text, Word, Words};

const INT_MAX: i64 = i32::MAX as i64;
/// The bounds that Redis has for settings of these kinds.
const COUNT: Shape = Int { min: 0, max: i64::MAX };
const SMALL_COUNT: Shape = Int { min: 0, max: INT_MAX };
const PORT: Shape = Int { min: 0, max: 65_535 };
const BYTES: Shape = Memory { min: 0, max: i64::MAX as u64 };
const SOME_BYTES: Shape = Memory { min: 1, max: i64::MAX as u64 };

const fn int(min: i64, max: i64) -> Shape {
    Int { min, max }
}

pub(in crate::state::config) const GROUPS: &[Group] = &[
    Group { title: "Files", because: "All files are checked in depth and written in one form.", rows: DISK },
    Group { title: "Replication", because: "There is no replication yet.", rows: REPLICATION },
    Group { title: "Cluster", because: "There is no cluster mode yet.", rows: CLUSTER },
    Group {
        title: "TLS of replication, and its key exchange",
        because: "There are no replicas yet, and no finite-field Diffie-Hellman. As in Redis `tls-replication yes` \
                  wants certificates that can be loaded.",
        rows: TLS,
    },
    Group {
        title: "What Redis needs otherwise",
        because: "Nothing here needs them: threads, rehashing and allocators are others.",
        rows: OTHERWISE,
    },
];

const DISK: &[Setting] = &[
    row("rdb-del-sync-files", Anytime, Bool, "no"),
    row("sanitize-dump-payload", Anytime, Word(&["no", "yes", "clients"]), "no"),
];

const NO_REPLICATION: &str = "there is no replication yet";

const REPLICATION: &[Setting] = &[
    row("masterauth", Anytime, Text, "").secret(),
    row("masteruser", Anytime, Text, "").secret(),
    row("min-replicas-max-lag", Anytime, SMALL_COUNT, "10").or("min-slaves-max-lag"),
    row("min-replicas-to-write", Anytime, SMALL_COUNT, "0")
        .or("min-slaves-to-write")
        .only("0", NO_REPLICATION),
    row("propagation-error-behavior", Anytime, Word(&["ignore", "panic", "panic-on-replicas"]), "ignore"),
    row("repl-backlog-size", Anytime, SOME_BYTES, "1048576"),
    row("repl-backlog-ttl", Anytime, COUNT, "3600"),
    row("repl-disable-tcp-nodelay", Anytime, Bool, "no"),
    row("repl-diskless-load", Anytime, Word(&["disabled", "on-empty-db", "swapdb"]), "disabled"),
    row("repl-diskless-sync", Anytime, Bool, "yes"),
    row("repl-diskless-sync-delay", Anytime, SMALL_COUNT, "5"),
    row("repl-diskless-sync-max-replicas", Anytime, SMALL_COUNT, "0"),
    row("repl-ping-replica-period", Anytime, int(1, INT_MAX), "10").or("repl-ping-slave-period"),
    row("repl-timeout", Anytime, int(1, INT_MAX), "60"),
    row("replica-announce-ip", Anytime, Text, "").or("slave-announce-ip"),
    row("replica-announce-port", Anytime, PORT, "0").or("slave-announce-port"),
    row("replica-announced", Anytime, Bool, "yes"),
    row("replica-full-sync-buffer-limit", Anytime, BYTES, "0"),
    row("replica-ignore-disk-write-errors", Anytime, Bool, "no"),
    row("replica-ignore-maxmemory", Anytime, Bool, "yes").or("slave-ignore-maxmemory"),
    row("replica-lazy-flush", Anytime, Bool, "no").or("slave-lazy-flush"),
    row("replica-priority", Anytime, SMALL_COUNT, "100").or("slave-priority"),
    row("replica-read-only", Anytime, Bool, "yes").or("slave-read-only"),
    row("replica-serve-stale-data", Anytime, Bool, "yes").or("slave-serve-stale-data"),
    row("replicaof", AtStart, Words(primary), "").or("slaveof").only("", NO_REPLICATION),
    row("shutdown-timeout", Anytime, SMALL_COUNT, "10"),
];

const CLUSTER: &[Setting] = &[
    row("cluster-allow-pubsubshard-when-down", Anytime, Bool, "yes"),
    row("cluster-allow-reads-when-down", Anytime, Bool, "no"),
    row("cluster-allow-replica-migration", Anytime, Bool, "yes"),
    row("cluster-announce-bus-port", Anytime, PORT, "0"),
    row("cluster-announce-hostname", Anytime, Checked(host_name), ""),
    row("cluster-announce-human-nodename", Anytime, Checked(node_name), ""),
    row("cluster-announce-ip", Anytime, Text, ""),
    row("cluster-announce-port", Anytime, PORT, "0"),
    row("cluster-announce-tls-port", Anytime, PORT, "0"),
    row("cluster-compatibility-sample-ratio", Anytime, int(0, 100), "0"),
    row("cluster-config-file", AtStart, Text, "nodes.conf"),
    row("cluster-enabled", AtStart, Bool, "no").only("no", "there is no cluster mode yet"),
    row("cluster-link-sendbuf-limit", Anytime, Memory { min: 0, max: u64::MAX }, "0"),
    row("cluster-migration-barrier", Anytime, SMALL_COUNT, "1"),
    row("cluster-node-timeout", Anytime, COUNT, "15000"),
    row("cluster-port", AtStart, PORT, "0"),
    row("cluster-preferred-endpoint-type", Anytime, Word(&["ip", "hostname", "unknown-endpoint"]), "ip"),
    row("cluster-replica-no-failover", Anytime, Bool, "no").or("cluster-slave-no-failover"),
    row("cluster-replica-validity-factor", Anytime, SMALL_COUNT, "10").or("cluster-slave-validity-factor"),
    row("cluster-require-full-coverage", Anytime, Bool, "yes"),
];

fn host_name(text: &str) -> Result<(), &'static str> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if text.len() >= 256 {
        return Err("Hostnames must be less than 256 characters");
    }
    if text.chars().all(good) {
        return Ok(());
    }
    Err("Hostnames may only contain alphanumeric characters, hyphens or dots")
}

fn node_name(text: &str) -> Result<(), &'static str> {
    let is_bad = |c: char| "!#$%&(*+:;<>?@[]^{|}~\0".contains(c);
    if text.contains(is_bad) { Err("Announced human node name contained invalid character") } else { Ok(()) }
}

const TLS: &[Setting] = &[
    row("tls-dh-params-file", Anytime, Text, "").but("", "keys are agreed on by elliptic curves"),
    row("tls-replication", Anytime, Bool, "no"),
];

const OTHERWISE: &[Setting] = &[
    row("active-expire-effort", Anytime, int(1, 10), "1"),
    row("activerehashing", Anytime, Bool, "yes"),
    row("always-show-logo", AtStart, Bool, "no"),
    row("aof-rewrite-cpulist", AtStart, Text, "").or("aof_rewrite_cpulist"),
    row("bgsave-cpulist", AtStart, Text, "").or("bgsave_cpulist"),
    row("bind-source-addr", Anytime, Text, ""),
    row("bio-cpulist", AtStart, Text, "").or("bio_cpulist"),
    row("crash-memcheck-enabled", Anytime, Bool, "yes"),
    row("disable-thp", AtStart, Bool, "yes"),
    row("dynamic-hz", Anytime, Bool, "yes"),
    row("ignore-warnings", Anytime, Text, ""),
    row("io-threads", AtStart, int(1, 128), "1"),
    row("jemalloc-bg-thread", Anytime, Bool, "yes"),
    row("locale-collate", Anytime, Text, "").but("", "SORT ALPHA compares bytes"),
    row("max-new-connections-per-cycle", Anytime, int(1, 1000), "10"),
    row("proc-title-template", Anytime, Checked(title_template), "{title} {listen-addr} {server-mode}"),
    row("server-cpulist", AtStart, Text, "")
        .or("server_cpulist")
        .but("", "threads run where the kernel puts them"),
    row("set-proc-title", AtStart, Bool, "yes"),
    row("socket-mark-id", AtStart, int(0, u32::MAX as i64), "0").but("0", "sockets are not marked"),
];

/// Settings that CONFIG GET shows only for the exact name, not for a pattern: Redis has them for its tests.
pub(in crate::state::config) const UNLISTED: &[Setting] = &[
    row("aof-disable-auto-gc", Anytime, Bool, "no"),
    row("cluster-ping-interval", Anytime, COUNT, "0"),
    row("loading-process-events-interval-bytes", Anytime, int(1024, INT_MAX), "524288"),
    row("lua-enable-deprecated-api", AtStart, Bool, "no"),
    row("repl-rdb-channel", Anytime, Bool, "yes"),
    row("use-exit-on-panic", Anytime, Bool, "no"),
    row("watchdog-period", Anytime, SMALL_COUNT, "0"),
];
