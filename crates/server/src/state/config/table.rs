//! The settings by topic, one row each. Adding a setting is a field in [`Config`] and a row here: CONFIG GET
//! and SET, the file, the command line, sardine.conf and docs/settings.md follow.
//!
//! The settings of who may do what are in `access`, those of TLS in `tls`, and settings of Redis whose
//! mechanism Sardine does not have in `accepted`.
use super::access::SECURITY;
use super::notify;
use super::persistence_rows;
use super::process::{Facility, OomScore, Supervised};
use super::setting::Change::{Anytime, AtStart, Protected};
use super::setting::{Change, Kind, Outcome, Setting};
use super::tls;
use super::values::{Config, LogLevel, Tracking};
use net::EngineKind;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use store::{Codec, Fill, Policy};

const INT_MAX: i64 = i32::MAX as i64;
/// The bounds of Redis's memory settings are signed.
const BYTES_MAX: u64 = i64::MAX as u64;

/// A row without an alias: its name, when it may change, its values, what it does, when somebody would change
/// it.
pub(super) const fn row(
    name: &'static str,
    change: Change,
    kind: Kind,
    doc: &'static str,
    when: &'static str,
) -> Setting {
    Setting { name, alias: None, change, kind, doc, when, default_doc: None, is_secret: false }
}

/// The kinds that read and write one field as it is.
macro_rules! field {
    (bool $($field:ident).+) => {
        Kind::Bool { get: |c| c.$($field).+, set: |c, on| { c.$($field).+ = on; Ok(()) } }
    };
    (int $min:expr, $max:expr, $($field:ident).+ as $type:ty) => {
        Kind::Int {
            min: $min,
            max: $max,
            get: |c| c.$($field).+ as i64,
            set: |c, n| { c.$($field).+ = n as $type; Ok(()) },
        }
    };
    (memory $min:expr, $($field:ident).+) => {
        Kind::Memory { min: $min, max: BYTES_MAX, get: |c| c.$($field).+, set: |c, n| { c.$($field).+ = n; Ok(()) } }
    };
    (word $all:expr, $words:expr, $($field:ident).+) => {
        Kind::Word {
            words: $words,
            get: |c| place(&$all, c.$($field).+),
            set: |c, i| { c.$($field).+ = $all[i]; Ok(()) },
        }
    };
    (path $($field:ident).+) => {
        Kind::Text {
            get: |c| c.$($field).+.as_deref().map(bytes_of).unwrap_or_default(),
            set: |c, text| { c.$($field).+ = (!text.is_empty()).then(|| path(text)); Ok(()) },
        }
    };
}
pub(super) use field;

pub(super) fn place<T: PartialEq + Copy>(all: &[T], value: T) -> usize {
    all.iter().position(|v| *v == value).expect("every value of the type is listed beside its word")
}

pub(super) fn path(text: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(text))
}

pub(super) fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

const ENGINES: [EngineKind; 3] = [EngineKind::Auto, EngineKind::Epoll, EngineKind::Uring];
const LEVELS: [LogLevel; 5] =
    [LogLevel::Debug, LogLevel::Verbose, LogLevel::Notice, LogLevel::Warning, LogLevel::Nothing];
const CODECS: [Codec; 3] = [Codec::Lzf, Codec::Lz4, Codec::Zstd];
const OOM_SCORES: [OomScore; 4] = [OomScore::No, OomScore::Relative, OomScore::Relative, OomScore::Absolute];
const SUPERVISED: [Supervised; 4] =
    [Supervised::Upstart, Supervised::Systemd, Supervised::Auto, Supervised::No];
const FACILITIES: [Facility; 9] = [
    Facility(1),
    Facility(16),
    Facility(17),
    Facility(18),
    Facility(19),
    Facility(20),
    Facility(21),
    Facility(22),
    Facility(23),
];
const FACILITY_WORDS: &[&str] =
    &["user", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7"];

/// Settings that belong together. Topics stand in the order of the documents.
pub(super) struct Topic {
    pub(super) title: &'static str,
    /// A sentence: what its settings are about.
    pub(super) about: &'static str,
    pub(super) rows: &'static [Setting],
}

pub(super) const TOPICS: &[Topic] = &[
    Topic {
        title: "Network",
        about: "Where the server listens, and how it asks the kernel for what arrives.",
        rows: NETWORK,
    },
    Topic {
        title: "TLS",
        about: "Clients that speak TLS. docs/security.md says what holds for them.",
        rows: tls::ROWS,
    },
    Topic { title: "Security", about: "Who may do what. docs/security.md has the whole.", rows: SECURITY },
    Topic { title: "Clients", about: "How many there may be, and what each may take.", rows: CLIENTS },
    Topic {
        title: "Process and threads",
        about: "The process, its threads, and what surrounds it.",
        rows: PROCESS,
    },
    Topic { title: "Log", about: "What the server says about itself, and where.", rows: LOG },
    Topic {
        title: "Memory limit and eviction",
        about: "How much memory the data may take, and what goes when it is full.",
        rows: EVICTION,
    },
    Topic {
        title: "Memory of the process",
        about: "How memory goes back to the system, and how the kernel maps it.",
        rows: MEMORY,
    },
    Topic {
        title: "Snapshots",
        about: "When the data is written to a dump file, and how.",
        rows: persistence_rows::SNAPSHOTS,
    },
    Topic {
        title: "Append-only file",
        about: "Whether every change is written to a file, and when that is put on the disk.",
        rows: persistence_rows::APPEND_ONLY,
    },
    Topic {
        title: "Types",
        about: "How large the leaves of lists and streams are, when lists are compressed, and what OBJECT ENCODING \
            answers.",
        rows: TYPES,
    },
    Topic {
        title: "Slow calls, scripts and latency",
        about: "What is kept for SLOWLOG, COMMANDLOG, LATENCY and INFO latencystats.",
        rows: LATENCY,
    },
];

const NETWORK: &[Setting] = &[
    row(
        "port",
        Anytime,
        field!(int 0, 65_535, port as u16),
        "The TCP port to listen on; 0 is none.",
        "Change it to run several servers on one machine, or to 0 to serve a Unix socket alone.",
    ),
    row(
        "bind",
        Anytime,
        Kind::List { get: |c| c.bind.join(" ").into_bytes(), set: set_bind },
        "Addresses to listen on. `*` is every IPv4 address and `::*` every IPv6 one; an address behind `-` may be \
         missing on this machine. An empty value listens on no TCP address.",
        "Name the addresses of those networks from which clients may connect. Set a password before other \
         machines can.",
    ),
    row(
        "protected-mode",
        Anytime,
        field!(bool is_protected),
        "While no password is set, serve only connections from this machine.",
        "Turn it off only where a firewall keeps strangers out and no password is wanted.",
    ),
    row(
        "unixsocket",
        AtStart,
        field!(path unixsocket),
        "A Unix socket to listen on as well; empty is none.",
        "Set it where clients run on this machine: it spares them the work of TCP.",
    ),
    row(
        "unixsocketperm",
        AtStart,
        Kind::Mode {
            get: |c| c.unixsocket_mode.unwrap_or(0),
            set: |c, mode| {
                c.unixsocket_mode = (mode != 0).then_some(mode);
                Ok(())
            },
        },
        "The permissions of the Unix socket, in octal; 0 leaves what the umask makes.",
        "Set it where clients run as other users, or where they must not.",
    ),
    row(
        "tcp-backlog",
        AtStart,
        field!(int 0, INT_MAX, tcp_backlog as u32),
        "How many new connections the kernel may hold until the server takes them.",
        "Raise it, with the kernel's net.core.somaxconn, where thousands of clients connect at the same time.",
    ),
    row(
        "tcp-keepalive",
        Anytime,
        field!(int 0, INT_MAX, tcp_keepalive_s as u32),
        "Seconds of silence after which the kernel asks whether a client is still there; 0 never asks.",
        "Lower it to notice sooner that a client's machine has gone.",
    ),
    row(
        "io-engine",
        AtStart,
        field!(word ENGINES, &["auto", "epoll", "uring"], io_engine),
        "How the kernel is asked for network events: `epoll`, `uring` (io_uring), or `auto`: io_uring where the \
         kernel allows it.",
        "Measure both with your own load before you change it: `epoll` is ahead where clients wait for each reply.",
    ),
];

const CLIENTS: &[Setting] = &[
    row(
        "maxclients",
        Anytime,
        field!(int 1, u32::MAX as i64, maxclients as u32),
        "How many clients may be connected at once.",
        "Raise it, with the limit of open files (`ulimit -n`), where clients are turned away.",
    ),
    row(
        "tracking-table-max-keys",
        Anytime,
        field!(int 0, i64::MAX, tracking_table_keys_max as u64),
        "Of how many keys it is kept which clients have read them, for client-side caching. Beyond that keys are \
         forgotten at random, and the clients told so; 0 keeps any number.",
        "Raise it where clients together keep copies of more keys; each takes about 10 bytes here.",
    ),
    row(
        "timeout",
        Anytime,
        field!(int 0, INT_MAX, timeout_s as u32),
        "Close a client that has been idle for so many seconds; 0 never does.",
        "Set it where clients forget to close their connections.",
    ),
    row(
        "client-output-buffer-limit",
        Anytime,
        Kind::List {
            get: |c| c.client_output_buffer.render().into_bytes(),
            set: |c, words| c.client_output_buffer.update(words),
        },
        "How much may wait for a client that does not read: class (`normal`, `replica`, whose old name `slave` is \
         shown, `pubsub`), hard limit, soft limit, seconds over the soft limit. 0 is no limit.",
        "Set a limit for `normal` where somebody may ask for much and read slowly.",
    ),
    notify::ROW,
    row(
        "client-query-buffer-limit",
        Anytime,
        field!(memory 1 << 20, client_query_buffer_bytes_max),
        "How many bytes a client may have sent that have not run yet; beyond it the client is closed.",
        "Lower it where a client must not take so much memory; raise it for larger arguments.",
    ),
    row(
        "maxmemory-clients",
        Anytime,
        Kind::MemoryOrPercent { get: |c| c.maxmemory_clients, set: |c, share| c.maxmemory_clients = share },
        "How much memory all clients may take together, in bytes or in percent of `maxmemory`; 0 is no limit, \
         and less than 128 KB counts as that. Beyond it those that take most are closed, but for those that asked for \
         CLIENT NO-EVICT.",
        "Set it where many clients together could take memory that the data needs.",
    ),
    row(
        "proto-max-bulk-len",
        Anytime,
        field!(memory 1 << 20, store.proto_max_bulk_len_bytes),
        "The longest argument that a client may send.",
        "Raise it for strings of more than 512 MB; lower it where nobody should send as much.",
    ),
];

const PROCESS: &[Setting] = &[
    Setting {
        name: "worker-threads",
        alias: None,
        change: AtStart,
        kind: field!(int 1, 256, worker_threads as usize),
        doc: "Threads that serve clients.",
        when: "Lower it to leave processors to other programs.",
        default_doc: Some("the number of cores"),
        is_secret: false,
    },
    row(
        "shards",
        AtStart,
        Kind::Int {
            min: 1,
            max: 1 << base::hash::SHARD_BITS_MAX,
            get: |c| 1 << c.shard_bits,
            set: set_shards,
        },
        "Into how many parts the keyspace is cut, each behind its own lock; a power of two.",
        "There is hardly a reason to. More of them help only where very many threads wait for the same locks.",
    ),
    row(
        "databases",
        AtStart,
        field!(int 1, u16::MAX as i64, databases as u16),
        "How many databases SELECT can choose from.",
        "Raise it where applications that share the server need numbers above 15.",
    ),
    Setting {
        name: "dir",
        alias: None,
        change: Protected,
        kind: Kind::Text { get: |c| bytes_of(&c.dir), set: set_dir },
        doc: "The working directory, for files with relative names.",
        when: "Set it where relative names must not depend on where the server was started.",
        default_doc: Some("where the server was started"),
        is_secret: false,
    },
    row(
        "daemonize",
        AtStart,
        field!(bool daemonize),
        "Go to the background. The process that was started ends; its child, in a session of its own and without a \
         terminal, serves. It has no effect where `supervised` finds a service manager.",
        "Turn it on where nothing else keeps the server running in the background.",
    ),
    row(
        "pidfile",
        AtStart,
        field!(path pidfile),
        "A file that holds the id of the process while the server runs. Without a name it is /var/run/redis.pid \
         where `daemonize` is on, and none otherwise.",
        "Name one where a script has to find the process.",
    ),
    row(
        "supervised",
        AtStart,
        field!(word SUPERVISED, &["upstart", "systemd", "auto", "no"], supervised),
        "Tell the service manager when the server serves and when it ends: `systemd` over NOTIFY_SOCKET, `upstart` by \
         stopping itself once, `auto` the one that the environment names.",
        "Set it where systemd (Type=notify) or upstart starts the server.",
    ),
    row(
        "oom-score-adj",
        Anytime,
        field!(word OOM_SCORES, &["no", "yes", "relative", "absolute"], oom_score),
        "Tell the kernel how readily to end this process when memory runs out: `yes` and `relative` add the first of \
         `oom-score-adj-values` to what the process was started with, `absolute` takes it as it is.",
        "Set it where other programs are to be ended before this one, or after it.",
    ),
    row(
        "oom-score-adj-values",
        Anytime,
        Kind::List {
            get: |c| c.oom_score_values.map(|n| n.to_string()).join(" ").into(),
            set: set_oom_score_values,
        },
        "Three scores, -2000 to 2000: a primary's, a replica's, a saving child's. Only the first has a meaning here.",
        "Change it together with `oom-score-adj`.",
    ),
    row(
        "hz",
        Anytime,
        Kind::Int {
            min: 0,
            max: INT_MAX,
            get: |c| i64::from(c.hz),
            set: |c, n| {
                c.hz = n.clamp(1, 500) as u32;
                Ok(())
            },
        },
        "How many times a second Redis does its background work; less than 1 counts as 1, more than 500 as 500. It \
         has no effect: here that work is done when it is due.",
        "There is no reason to: it is kept for old configuration files.",
    ),
];

const LOG: &[Setting] = &[
    row(
        "logfile",
        AtStart,
        field!(path logfile),
        "Where the log goes; empty is standard output.",
        "Name one where nothing gathers what is written to standard output.",
    ),
    row(
        "loglevel",
        Anytime,
        field!(word LEVELS, &["debug", "verbose", "notice", "warning", "nothing"], loglevel),
        "The least important messages that are still logged.",
        "`verbose` or `debug` while you look for a fault, `warning` to hear of trouble only.",
    ),
    row(
        "syslog-enabled",
        AtStart,
        field!(bool syslog_enabled),
        "Send the log to the system's log as well.",
        "Turn it on where the system gathers the logs of all programs.",
    ),
    row(
        "syslog-ident",
        AtStart,
        Kind::Text {
            get: |c| c.syslog_ident.clone(),
            set: |c, text| {
                c.syslog_ident = text.to_vec();
                Ok(())
            },
        },
        "What the system's log calls the server.",
        "Change it to tell several servers on one machine apart.",
    ),
    row(
        "syslog-facility",
        AtStart,
        field!(word FACILITIES, FACILITY_WORDS, syslog_facility),
        "The facility under which the system's log keeps the messages.",
        "Change it where the system sorts its log by facility.",
    ),
    row(
        "crash-log-enabled",
        Anytime,
        field!(bool crash_log),
        "Write a report into the log when the server stops by a fault of its own.",
        "Turn it off where such a report must not reach the log.",
    ),
    row(
        "hide-user-data-from-log",
        Anytime,
        field!(bool hide_user_data),
        "Leave out of crash reports who the client was.",
        "Turn it on where the log must not name clients.",
    ),
];

const EVICTION: &[Setting] = &[
    row(
        "maxmemory",
        Anytime,
        Kind::Memory {
            min: 0,
            max: u64::MAX,
            get: |c| c.maxmemory_bytes,
            set: |c, bytes| {
                c.maxmemory_bytes = bytes;
                c.store.limits_memory = bytes > 0;
                Ok(())
            },
        },
        "The most memory that the data may take, buffers of clients not counted; 0 is no limit. Beyond it keys are \
         evicted by `maxmemory-policy`, and where none may go, commands that could need memory are refused.",
        "Set it for every cache. Without it the data grows until the system ends the process.",
    ),
    row(
        "maxmemory-policy",
        Anytime,
        field!(word Policy::ALL, POLICY_WORDS, store.eviction.policy),
        "Which keys go at `maxmemory`: among all of them (`allkeys-`) or those with a deadline (`volatile-`), the one \
         that was not used for the longest time (`lru`), the one that is used least (`lfu`), any (`random`), the one \
         with the nearest deadline (`ttl`); or none (`noeviction`).",
        "`allkeys-lru` or `allkeys-lfu` for a cache; one of `volatile-` where keys without a deadline must stay.",
    ),
    row(
        "maxmemory-samples",
        Anytime,
        field!(int 1, 64, store.eviction.samples as u32),
        "How many keys are compared to choose the one that is evicted: some sixteen for each unit.",
        "Raise it for better choices at more processor time, lower it for the reverse.",
    ),
    row(
        "maxmemory-eviction-tenacity",
        Anytime,
        field!(int 0, 100, maxmemory_tenacity as u32),
        "How long one command may evict before it runs: 10 is half a millisecond, 100 as long as it takes. What is \
         left to do is done between commands.",
        "Raise it where memory stays over the limit under many writes; lower it where eviction makes commands wait.",
    ),
    row(
        "lfu-decay-time",
        Anytime,
        field!(int 0, INT_MAX, store.eviction.lfu_decay_min as u32),
        "Under an LFU policy, minutes after which a key counts as used once less; 0 is never.",
        "Lower it where other keys become popular within minutes, raise it where that takes days.",
    ),
    row(
        "lfu-log-factor",
        Anytime,
        field!(int 0, INT_MAX, store.eviction.lfu_log_factor as u32),
        "Under an LFU policy, how much harder each count is to reach than the one before it: with 10, 255 stands for \
         a million uses.",
        "Raise it where the keys used most cannot be told apart any more, lower it to tell those apart that \
         are used least.",
    ),
];

const MEMORY: &[Setting] = &[
    row(
        "activedefrag",
        Anytime,
        field!(bool defrag.is_on),
        "Move data together when much was deleted, so that its memory goes back to the system.",
        "Turn it off where no processor time may go to the background.",
    ),
    row(
        "active-defrag-threshold-lower",
        Anytime,
        field!(int 0, 1000, defrag.threshold_lower as u32),
        "Defragmentation begins when the gaps between the data are this large, in percent of the data.",
        "Lower it to hold memory tight, raise it to move less.",
    ),
    row(
        "active-defrag-threshold-upper",
        Anytime,
        field!(int 0, 1000, defrag.threshold_upper as u32),
        "Defragmentation takes most processor time when the gaps are this large, in percent of the data.",
        "Lower it to have the full effort sooner.",
    ),
    row(
        "active-defrag-cycle-min",
        Anytime,
        field!(int 1, 99, defrag.cycle_min as u32),
        "Percent of one processor that defragmentation takes at `active-defrag-threshold-lower`.",
        "Raise it where memory comes back too slowly after some deletions.",
    ),
    row(
        "active-defrag-cycle-max",
        Anytime,
        field!(int 1, 99, defrag.cycle_max as u32),
        "Percent of one processor that defragmentation takes from `active-defrag-threshold-upper` on.",
        "Raise it where memory comes back too slowly after large deletions.",
    ),
    row(
        "active-defrag-ignore-bytes",
        Anytime,
        field!(memory 1, defrag.ignore_bytes),
        "Nothing is moved while the gaps between the data are smaller than this.",
        "Raise it where some more memory does not matter.",
    ),
    row(
        "active-defrag-max-scan-fields",
        Anytime,
        field!(int 1, i64::MAX, defrag.max_scan_fields as u64),
        "A list of more elements is moved in steps of its own, not together with its neighbours.",
        "There is hardly a reason to.",
    ),
    row(
        "huge-pages",
        Anytime,
        field!(bool huge_pages),
        "Let the kernel put memory that is full into pages of 2 MB. Look-ups take less processor time, data no more \
         bytes.",
        "Turn it off to see what it is worth, or where another program needs the machine's huge pages.",
    ),
    row(
        "lazyfree-lazy-user-del",
        Anytime,
        field!(bool store.lazyfree_user_del),
        "Let DEL behave exactly as UNLINK.",
        "There is hardly a reason to: DEL leaves large values to the background too.",
    ),
    row(
        "lazyfree-lazy-user-flush",
        Anytime,
        field!(bool store.lazyfree_user_flush),
        "Let FLUSHALL and FLUSHDB without SYNC or ASYNC behave as with ASYNC.",
        "There is hardly a reason to: what was flushed is freed in the background either way.",
    ),
    row(
        "lazyfree-lazy-server-del",
        Anytime,
        field!(bool lazyfree_server_del),
        "Kept for old configuration files: whatever is large is freed in the background, whatever this says.",
        "There is no reason to.",
    ),
    row(
        "lazyfree-lazy-expire",
        Anytime,
        field!(bool lazyfree_expire),
        "Kept for old configuration files: whatever is large is freed in the background, whatever this says.",
        "There is no reason to.",
    ),
    row(
        "lazyfree-lazy-eviction",
        Anytime,
        field!(bool lazyfree_eviction),
        "Kept for old configuration files: whatever is large is freed in the background, whatever this says.",
        "There is no reason to.",
    ),
];

const TYPES: &[Setting] = &[
    Setting {
        name: "list-max-listpack-size",
        alias: Some("list-max-ziplist-size"),
        change: Anytime,
        kind: Kind::Int {
            min: i32::MIN as i64,
            max: INT_MAX,
            get: |c| i64::from(c.list_max_listpack_size),
            set: set_list_fill,
        },
        doc: "How large a leaf of a list may grow: a positive number counts elements, -1 to -5 are 4, 8, 16, 32 and \
              64 KB.",
        when: "Larger leaves take a little less memory, smaller ones make edits in the middle cheaper.",
        default_doc: None,
        is_secret: false,
    },
    row(
        "list-compress-depth",
        Anytime,
        field!(int 0, INT_MAX, store.list.depth as u32),
        "Compress lists, but not this many leaves at each end; 0 compresses nothing.",
        "1 or 2 for long lists of text that are used near their ends, as queues and timelines are.",
    ),
    row(
        "list-compress-codec",
        Anytime,
        field!(word CODECS, &["lzf", "lz4", "zstd"], store.list.codec),
        "What compresses inner leaves of lists, where `list-compress-depth` asks for it.",
        "`zstd` for the fewest bytes, `lz4` for the least time.",
    ),
    row(
        "stream-node-max-bytes",
        Anytime,
        field!(memory 0, store.stream.bytes),
        "How many bytes a leaf of a stream holds, counted as Redis would keep them; 0 sets no such limit.",
        "Lower it where XADD and XTRIM with `~` should cut in smaller steps.",
    ),
    row(
        "stream-node-max-entries",
        Anytime,
        field!(int 0, i64::MAX, store.stream.entries as u64),
        "How many entries a leaf of a stream holds; 0 sets no such limit.",
        "Lower it where XADD and XTRIM with `~` should cut in smaller steps.",
    ),
    row(
        "hll-sparse-max-bytes",
        Anytime,
        field!(memory 0, store.hll_sparse_bytes_max),
        "A HyperLogLog is kept as runs up to this length, and as an array of 12 KB beyond it.",
        "Raise it to save memory where there are very many HyperLogLogs; adding to them takes longer then.",
    ),
    Setting {
        alias: Some("hash-max-ziplist-entries"),
        ..row(
            "hash-max-listpack-entries",
            Anytime,
            field!(int 0, i64::MAX, store.hash.entries as u64),
            "OBJECT ENCODING calls a hash of more fields `hashtable`. Nothing else depends on it: a hash is packed \
             at any size.",
            "Only where a program reads OBJECT ENCODING and expects another name.",
        )
    },
    Setting {
        alias: Some("hash-max-ziplist-value"),
        ..row(
            "hash-max-listpack-value",
            Anytime,
            field!(memory 0, store.hash.value),
            "OBJECT ENCODING calls a hash `hashtable` once a field or value of more bytes was written. Nothing else \
             depends on it.",
            "Only where a program reads OBJECT ENCODING and expects another name.",
        )
    },
    row(
        "set-max-intset-entries",
        Anytime,
        field!(int 0, i64::MAX, store.set.intset_entries as u64),
        "Up to how many members OBJECT ENCODING calls a set of integers `intset`; how it is kept does not depend on \
         that.",
        "Only where a program reads OBJECT ENCODING and expects another name.",
    ),
    row(
        "set-max-listpack-entries",
        Anytime,
        field!(int 0, i64::MAX, store.set.listpack_entries as u64),
        "Up to how many members OBJECT ENCODING calls a set `listpack`; how it is kept does not depend on that.",
        "Only where a program reads OBJECT ENCODING and expects another name.",
    ),
    row(
        "set-max-listpack-value",
        Anytime,
        field!(int 0, i64::MAX, store.set.listpack_value_bytes as u64),
        "Up to how many bytes a member of a set that OBJECT ENCODING calls `listpack` may have.",
        "Only where a program reads OBJECT ENCODING and expects another name.",
    ),
    Setting {
        alias: Some("zset-max-ziplist-entries"),
        ..row(
            "zset-max-listpack-entries",
            Anytime,
            field!(int 0, i64::MAX, store.zset.listpack_entries as u64),
            "OBJECT ENCODING calls a sorted set of more members `skiplist`. Nothing else depends on it.",
            "Only where a program reads OBJECT ENCODING and expects another name.",
        )
    },
    Setting {
        alias: Some("zset-max-ziplist-value"),
        ..row(
            "zset-max-listpack-value",
            Anytime,
            field!(memory 0, store.zset.listpack_value_bytes),
            "OBJECT ENCODING calls a sorted set `skiplist` once a longer member was added. Nothing else depends on it.",
            "Only where a program reads OBJECT ENCODING and expects another name.",
        )
    },
];

const LATENCY: &[Setting] = &[
    Setting {
        name: "slowlog-log-slower-than",
        alias: Some("commandlog-execution-slower-than"),
        change: Anytime,
        kind: field!(int - 1, i64::MAX, command_log.slow.from as i64),
        doc: "Keep calls that took at least so many microseconds, for SLOWLOG; 0 keeps all, -1 none.",
        when: "Lower it to find what makes clients wait.",
        default_doc: None,
        is_secret: false,
    },
    Setting {
        name: "slowlog-max-len",
        alias: Some("commandlog-slow-execution-max-len"),
        change: Anytime,
        kind: field!(int 0, i64::MAX, command_log.slow.entries_max as i64),
        doc: "How many slow calls SLOWLOG keeps.",
        when: "Raise it where entries are gone before somebody reads them.",
        default_doc: None,
        is_secret: false,
    },
    row(
        "commandlog-request-larger-than",
        Anytime,
        field!(int - 1, i64::MAX, command_log.large_request.from as i64),
        "Keep calls whose request has at least so many bytes, for COMMANDLOG; -1 keeps none.",
        "Lower it to find clients that send much at a time.",
    ),
    row(
        "commandlog-large-request-max-len",
        Anytime,
        field!(int 0, i64::MAX, command_log.large_request.entries_max as i64),
        "How many calls with large requests COMMANDLOG keeps.",
        "Raise it where entries are gone before somebody reads them.",
    ),
    row(
        "commandlog-reply-larger-than",
        Anytime,
        field!(int - 1, i64::MAX, command_log.large_reply.from as i64),
        "Keep calls whose reply has at least so many bytes, for COMMANDLOG; -1 keeps none.",
        "Lower it to find clients that ask for much at a time.",
    ),
    row(
        "commandlog-large-reply-max-len",
        Anytime,
        field!(int 0, i64::MAX, command_log.large_reply.entries_max as i64),
        "How many calls with large replies COMMANDLOG keeps.",
        "Raise it where entries are gone before somebody reads them.",
    ),
    Setting {
        alias: Some("lua-time-limit"),
        ..row(
            "busy-reply-threshold",
            Anytime,
            field!(int 0, i64::MAX, busy_reply_threshold_ms as u64),
            "Once a script has run for so many milliseconds, clients are answered with BUSY, and may end it \
             with SCRIPT KILL; 0 lets them wait.",
            "Lower it to hear of slow scripts sooner.",
        )
    },
    row(
        "latency-monitor-threshold",
        Anytime,
        field!(int 0, i64::MAX, latency_monitor_ms as u64),
        "Keep what took at least so many milliseconds, by what it was, for LATENCY LATEST, HISTORY, GRAPH and DOCTOR; \
         0 keeps nothing.",
        "Set it to 100, say, while you look for what makes the server slow now and then.",
    ),
    row(
        "latency-tracking",
        Anytime,
        Kind::Bool {
            get: |c| c.latency_tracking == Tracking::On,
            set: |c, on| {
                c.latency_tracking = if on { Tracking::On } else { Tracking::Off };
                Ok(())
            },
        },
        "Keep for each command how long its calls take, for LATENCY HISTOGRAM and INFO latencystats.",
        "Turn it off where nobody looks at these histograms.",
    ),
    row(
        "latency-tracking-info-percentiles",
        Anytime,
        Kind::List { get: |c| percentiles(c).join(" ").into(), set: set_percentiles },
        "The percentiles that INFO latencystats shows.",
        "Name the percentiles that your monitoring draws.",
    ),
];

const POLICY_WORDS: &[&str] = &{
    let mut words = [""; Policy::ALL.len()];
    let mut index = 0;
    while index < words.len() {
        words[index] = Policy::ALL[index].name();
        index += 1;
    }
    words
};

fn set_bind(config: &mut Config, words: &[&[u8]]) -> Outcome {
    let texts = words.iter().map(|w| std::str::from_utf8(w).map(str::to_owned));
    let all: Vec<String> = texts.collect::<Result<_, _>>().map_err(|_| "Invalid bind address".to_string())?;
    if all.len() > 16 {
        return Err("Too many bind addresses specified.".into());
    }
    // One empty word is how a file says "none".
    config.bind = all.into_iter().filter(|a| !a.is_empty()).collect();
    Ok(())
}

/// Sets the folder. The server changes to it when the configuration is put in force.
fn set_dir(config: &mut Config, text: &[u8]) -> Outcome {
    config.dir = std::fs::canonicalize(path(text)).map_err(|e| base::reason::reason(&e))?;
    if config.dir.is_dir() { Ok(()) } else { Err("Not a directory".into()) }
}

/// `latency-tracking-info-percentiles` as people write them: "50", "99.9".
pub(crate) fn percentiles(config: &Config) -> Vec<String> {
    let text = |p: &f64| format!("{p:.6}").trim_end_matches('0').trim_end_matches('.').to_string();
    config.latency_percentiles.iter().map(text).collect()
}

fn set_percentiles(config: &mut Config, words: &[&[u8]]) -> Outcome {
    let percentile = |word: &&[u8]| {
        let percentile =
            base::double::parse_f64(word).ok_or("Invalid latency-tracking-info-percentiles parameters")?;
        let is_one = (0.0..=100.0).contains(&percentile);
        is_one
            .then_some(percentile)
            .ok_or("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
    };
    config.latency_percentiles = words.iter().map(percentile).collect::<Result<_, _>>()?;
    Ok(())
}

fn set_list_fill(config: &mut Config, n: i64) -> Outcome {
    const KB: [u32; 5] = [4, 8, 16, 32, 64];
    config.list_max_listpack_size = n as i32;
    config.store.list.fill = match n {
        // As in Redis 0 means 1, a number above 32,767 means 32,767, and one below -5 means -5.
        0.. => Fill::Entries(n.clamp(1, 32_767) as u32),
        _ => Fill::Bytes(KB[(-n).min(5) as usize - 1] << 10),
    };
    Ok(())
}

fn set_oom_score_values(config: &mut Config, words: &[&[u8]]) -> Outcome {
    let [a, b, c] = words else { return Err("wrong number of arguments".into()) };
    let score = |word: &[u8]| {
        let n = base::text::parse_as_c(word).filter(|n| (-2000..=2000).contains(n));
        n.map(|n| n as i32).ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")
    };
    config.oom_score_values = [score(a)?, score(b)?, score(c)?];
    Ok(())
}

fn set_shards(config: &mut Config, n: i64) -> Outcome {
    config.shard_bits = power_of_two(n)?;
    Ok(())
}

/// The exponent of a power of two.
fn power_of_two(n: i64) -> Result<u32, String> {
    if n.count_ones() == 1 { Ok(n.trailing_zeros()) } else { Err("argument must be a power of two".into()) }
}
