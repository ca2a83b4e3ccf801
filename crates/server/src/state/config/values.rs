//! The settings' values: [`Config`], a plain value with a field for each setting, and the small types of its
//! fields.
//!
//! What a field means beyond its name stands here; names, bounds, defaults as text and documentation are in
//! the setting's row (`table.rs`). Settings that the keyspace goes by are fields of `store`.
use super::accepted::Accepted;
use super::append::Appending;
use super::defrag::Defrag;
use super::limits::{MemoryShare, OutputLimits};
use super::log_rules::LogRules;
use super::process::{Facility, OomScore, Supervised};
use super::snapshots::Snapshots;
use crate::state::system::supervisor::Supervisor;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The values of all settings. `Server::replace_config` changes them while the server runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// As written: `*` is every IPv4 address, `::*` every IPv6 one; a leading `-` lets the address be
    /// missing. See [`Binds`](super::Binds).
    pub bind: Vec<String>,
    /// 0: no TCP without TLS.
    pub port: u16,
    /// Let the system choose the port, for tests in this process; no setting names it.
    pub picks_port: bool,
    /// `tls-port`, for clients that speak TLS; 0: none.
    pub tls_port: u16,
    /// Let the system choose `tls_port`, for tests in this process; no setting names it.
    pub picks_tls_port: bool,
    pub tls: net::TlsSettings,
    /// `tls-cluster`: MIGRATE speaks TLS.
    pub tls_cluster: bool,
    pub unixsocket: Option<PathBuf>,
    /// `unixsocketperm`; None leaves what the umask makes.
    pub unixsocket_mode: Option<u32>,
    /// How many new connections the kernel holds until the server accepts them.
    pub tcp_backlog: u32,
    /// After this many seconds of silence the kernel asks whether a client is still there. 0: never.
    pub tcp_keepalive_s: u32,
    /// A client that has been idle for this many seconds is closed. 0: never.
    pub timeout_s: u32,
    pub maxclients: u32,
    /// `tracking-table-max-keys`; 0: any number.
    pub tracking_table_keys_max: u64,
    /// 0: no limit.
    pub maxmemory_bytes: u64,
    /// How much all clients may take together.
    pub maxmemory_clients: MemoryShare,
    /// `maxmemory-eviction-tenacity`, 0 to 100: how long one command may evict.
    pub maxmemory_tenacity: u32,
    /// `protected-mode`: without a password only clients on this machine are served.
    pub is_protected: bool,
    /// The default user's password as this setting last gave it; empty: none. ACL SETUSER may have changed it
    /// since: passwords in force are with the users (`state/acl`).
    pub requirepass: Vec<u8>,
    /// `aclfile`: where users come from.
    pub acl_file: Option<PathBuf>,
    /// `acl-pubsub-default`
    pub acl_channels_default: ChannelDefault,
    /// `acllog-max-len`
    pub acl_log_len_max: usize,
    pub io_engine: net::EngineKind,
    pub worker_threads: usize,
    /// How many databases there are; SELECT chooses one.
    pub databases: u16,
    /// There are 2^shard_bits shards.
    pub shard_bits: u32,
    pub loglevel: LogLevel,
    /// None: standard output.
    pub logfile: Option<PathBuf>,
    /// How many bytes may be kept of a client's requests that have not run.
    pub client_query_buffer_bytes_max: u64,
    pub client_output_buffer: OutputLimits,
    /// `notify-keyspace-events`, as it was given; see [`notify::published`](super::notify::published).
    pub notify: store::Classes,
    /// The server runs in the background.
    pub daemonize: bool,
    pub pidfile: Option<PathBuf>,
    pub supervised: Supervised,
    pub syslog_enabled: bool,
    pub syslog_facility: Facility,
    pub syslog_ident: Vec<u8>,
    pub oom_score: OomScore,
    /// `oom-score-adj-values`: of a primary, of a replica, of a child that saves.
    pub oom_score_values: [i32; 3],
    /// `crash-log-enabled`
    pub crash_log: bool,
    /// `hide-user-data-from-log`
    pub hide_user_data: bool,
    /// How many times a second Redis does its work beside requests. Only shown: here that work has its own
    /// times.
    pub hz: u32,
    /// The server's working directory, which relative file names start from.
    pub dir: PathBuf,
    /// `list-max-listpack-size` as written; `store.list.fill` is what it means.
    pub list_max_listpack_size: i32,
    /// Large values are freed in the background whatever these three say.
    pub lazyfree_expire: bool,
    pub lazyfree_eviction: bool,
    pub lazyfree_server_del: bool,
    /// Who may use DEBUG, MODULE, and CONFIG SET of settings that are protected.
    pub enable_debug_command: Allow,
    pub enable_module_command: Allow,
    pub enable_protected_configs: Allow,
    /// The configuration file, absolute, for INFO.
    pub file: Option<PathBuf>,
    /// What the binary allocates with, for INFO; no setting.
    pub allocator: &'static str,
    /// Who supervises the process; no setting.
    pub supervisor: Supervisor,
    /// Whether calls are counted by how long they took, for LATENCY HISTOGRAM and INFO latencystats.
    pub latency_tracking: Tracking,
    /// `latency-monitor-threshold`; 0: off.
    pub latency_monitor_ms: u64,
    /// `busy-reply-threshold`; 0: never.
    pub busy_reply_threshold_ms: u64,
    pub command_log: LogRules,
    /// `latency-tracking-info-percentiles`
    pub latency_percentiles: Vec<f64>,
    /// `activedefrag` and `active-defrag-*`
    pub defrag: Defrag,
    /// Whether memory in use is put into huge pages.
    pub huge_pages: bool,
    /// When and how the data is written to a dump file.
    pub snapshots: Snapshots,
    /// The append-only file.
    pub append: Appending,
    /// What the keyspace goes by: limits of encodings, eviction, lengths. The setters of the table change it
    /// along with the fields above.
    pub store: store::Settings,
    /// The configuration's lines `user`, in order.
    pub declared_users: Vec<UserLine>,
    /// `rename-command`, in order.
    pub renamed_commands: Vec<Rename>,
    /// What was given for settings that have no effect.
    pub accepted: Accepted,
}

/// `loglevel`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
    Nothing,
}

/// `acl-pubsub-default`: whether a new user may use every channel or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelDefault {
    All,
    None,
}

/// A line of `rename-command`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rename {
    /// The name that the command has before this line takes effect.
    pub from: Vec<u8>,
    /// Empty: it cannot be called any more.
    pub to: Vec<u8>,
}

/// A line of `user`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserLine {
    pub name: Vec<u8>,
    /// The rules, of which one in parentheses is a single element, whatever spaces it has.
    pub rules: Vec<Vec<u8>>,
}

/// `latency-tracking`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    Off,
    On,
}

/// Who may use something that can do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allow {
    No,
    Yes,
    /// Connections from this machine.
    Local,
}

/// Why a configuration was refused: the text to print before the process ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub String);

impl ConfigError {
    /// An error of the whole configuration, below the heading that Redis prints.
    pub(crate) fn fatal(why: &str) -> ConfigError {
        let version = env!("CARGO_PKG_VERSION");
        ConfigError(format!("\n*** FATAL CONFIG FILE ERROR (Sardine {version}) ***\n{why}"))
    }
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            bind: vec!["*".into(), "-::*".into()],
            port: 6379,
            picks_port: false,
            tls_port: 0,
            picks_tls_port: false,
            tls: net::TlsSettings::default(),
            tls_cluster: false,
            unixsocket: None,
            unixsocket_mode: None,
            tcp_backlog: 511,
            tcp_keepalive_s: 300,
            timeout_s: 0,
            maxclients: 10_000,
            tracking_table_keys_max: 1_000_000,
            maxmemory_bytes: 0,
            maxmemory_clients: MemoryShare::Bytes(0),
            maxmemory_tenacity: 10,
            is_protected: true,
            requirepass: Vec::new(),
            acl_file: None,
            acl_channels_default: ChannelDefault::None,
            acl_log_len_max: 128,
            io_engine: net::EngineKind::Epoll,
            worker_threads: cores(),
            databases: 16,
            shard_bits: 8,
            loglevel: LogLevel::Notice,
            logfile: None,
            client_query_buffer_bytes_max: 1 << 30,
            client_output_buffer: OutputLimits::default(),
            notify: store::Classes::NONE,
            daemonize: false,
            pidfile: None,
            supervised: Supervised::No,
            syslog_enabled: false,
            syslog_facility: Facility(16),
            syslog_ident: b"redis".to_vec(),
            oom_score: OomScore::No,
            oom_score_values: [0, 200, 800],
            crash_log: true,
            hide_user_data: false,
            hz: 10,
            dir: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            list_max_listpack_size: -2,
            lazyfree_expire: false,
            lazyfree_eviction: false,
            lazyfree_server_del: false,
            enable_debug_command: Allow::No,
            enable_module_command: Allow::No,
            enable_protected_configs: Allow::No,
            file: None,
            allocator: "libc",
            supervisor: Supervisor::Nobody,
            latency_tracking: Tracking::On,
            latency_monitor_ms: 0,
            busy_reply_threshold_ms: 5000,
            command_log: LogRules::default(),
            latency_percentiles: vec![50.0, 99.0, 99.9],
            huge_pages: true,
            defrag: Defrag::default(),
            snapshots: Snapshots::default(),
            append: Appending::default(),
            store: store::Settings::default(),
            declared_users: Vec::new(),
            renamed_commands: Vec::new(),
            accepted: Accepted::default(),
        }
    }
}

impl Config {
    /// Whether clients can connect with TLS.
    pub(crate) fn uses_tls(&self) -> bool {
        self.tls_port != 0 || self.picks_tls_port
    }

    /// Whether certificates and keys have to be right: clients can connect with TLS, or other servers are
    /// spoken to with it.
    pub(crate) fn needs_tls(&self) -> bool {
        self.uses_tls() || self.connects_with_tls()
    }

    /// What there is to load then.
    pub(crate) fn tls_settings(&self) -> net::TlsSettings {
        net::TlsSettings { connects: self.connects_with_tls(), ..self.tls.clone() }
    }

    /// Whether other servers are spoken to with TLS.
    fn connects_with_tls(&self) -> bool {
        self.tls_cluster || self.accepted.value(super::tls::WITH_REPLICAS, "no") == b"yes"
    }

    /// The duration from which on the latency monitor keeps an event; None where it is off.
    pub(crate) fn latency_threshold_ns(&self) -> Option<u64> {
        (self.latency_monitor_ms > 0).then(|| self.latency_monitor_ms.saturating_mul(1_000_000))
    }
}

/// The default of `worker-threads`.
fn cores() -> usize {
    // The system is asked once: finding out reads files.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}
