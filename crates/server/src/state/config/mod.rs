//! The configuration: one table of settings ([`table::TOPICS`]) from which CONFIG GET and SET, the file, the
//! command line and the documents come.
//!
//! A [`Config`] is a plain value. CONFIG SET works on a copy and puts it in force as a whole or not at all;
//! whoever wants a consistent look takes the `Arc` and keeps it. What the data obeys is the part `store`,
//! kept in step by the setters of the table.
mod accepted;
mod bind;
mod defrag;
mod directive;
mod docs;
mod limits;
mod log_rules;
mod paths;
mod process;
pub(crate) mod rewrite;
pub(crate) mod setting;
mod source;
mod split;
mod table;
#[cfg(test)]
mod table_tests;

use accepted::{Accepted, Shape};
pub(crate) use bind::{Bind, Binds};
pub use defrag::Defrag;
pub(crate) use directive::Rename;
pub(crate) use docs::contents;
pub use docs::{markdown as settings_reference, sample_file};
pub use limits::{MemoryShare, OutputLimit, OutputLimits};
pub use log_rules::{LogRule, LogRules};
pub use process::{Facility, OomScore, Supervised};
pub(crate) use rewrite::replace;
pub use source::Source;
pub(crate) use source::reason;
pub(crate) use split::quoted;
pub(crate) use table::percentiles;

use std::path::PathBuf;
use std::sync::OnceLock;

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// As written: `*` is every IPv4 address, `::*` every IPv6 one; a leading `-` lets the address be
    /// missing. See [`Binds`].
    pub bind: Vec<String>,
    /// 0: no TCP at all.
    pub port: u16,
    /// Let the system choose the port, for tests in this process; no setting names it.
    pub picks_port: bool,
    pub unixsocket: Option<PathBuf>,
    /// `unixsocketperm`; None leaves what the umask makes.
    pub unixsocket_mode: Option<u32>,
    pub tcp_backlog: u32,
    /// 0: off.
    pub tcp_keepalive_s: u32,
    /// 0: idle clients stay.
    pub timeout_s: u32,
    pub maxclients: u32,
    /// 0: no limit.
    pub maxmemory_bytes: u64,
    /// How much all clients may take together.
    pub maxmemory_clients: MemoryShare,
    /// `maxmemory-eviction-tenacity`, 0 to 100.
    pub maxmemory_tenacity: u32,
    pub is_protected: bool,
    /// Empty: no password.
    pub requirepass: Vec<u8>,
    pub io_engine: net::EngineKind,
    pub worker_threads: usize,
    pub databases: u16,
    /// 2^shard_bits shards.
    pub shard_bits: u32,
    pub loglevel: LogLevel,
    /// None: standard output.
    pub logfile: Option<PathBuf>,
    pub client_query_buffer_bytes_max: u64,
    pub client_output_buffer: OutputLimits,
    pub daemonize: bool,
    pub pidfile: Option<PathBuf>,
    pub supervised: Supervised,
    pub syslog_enabled: bool,
    pub syslog_facility: Facility,
    pub syslog_ident: Vec<u8>,
    pub oom_score: OomScore,
    /// `oom-score-adj-values`: a primary's, a replica's, a saving child's.
    pub oom_score_values: [i32; 3],
    /// `crash-log-enabled`
    pub crash_log: bool,
    /// `hide-user-data-from-log`
    pub hide_user_data: bool,
    /// Background rounds a second.
    pub hz: u32,
    pub dir: PathBuf,
    /// `list-max-listpack-size` as written; `store.list.fill` is what it means.
    pub list_max_listpack_size: i32,
    pub lazyfree_expire: bool,
    pub lazyfree_eviction: bool,
    pub lazyfree_server_del: bool,
    pub enable_debug_command: Allow,
    pub enable_module_command: Allow,
    pub enable_protected_configs: Allow,
    /// The configuration file, absolute, for INFO.
    pub file: Option<PathBuf>,
    /// What the binary allocates with, for INFO; no setting.
    pub allocator: &'static str,
    /// Whether LATENCY HISTOGRAM and INFO latencystats have something to show.
    pub latency_tracking: Tracking,
    /// `latency-monitor-threshold`; 0: off.
    pub latency_monitor_ms: u64,
    pub command_log: LogRules,
    /// `latency-tracking-info-percentiles`
    pub latency_percentiles: Vec<f64>,
    /// `activedefrag` and `active-defrag-*`
    pub defrag: Defrag,
    pub huge_pages: bool,
    pub store: store::Settings,
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

/// `latency-tracking`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracking {
    Off,
    On,
}

/// Who may use something that can hurt.
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
    /// What is wrong with all of it together.
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
            unixsocket: None,
            unixsocket_mode: None,
            tcp_backlog: 511,
            tcp_keepalive_s: 300,
            timeout_s: 0,
            maxclients: 10_000,
            maxmemory_bytes: 0,
            maxmemory_clients: MemoryShare::Bytes(0),
            maxmemory_tenacity: 10,
            is_protected: true,
            requirepass: Vec::new(),
            io_engine: net::EngineKind::Epoll,
            worker_threads: cores(),
            databases: 16,
            shard_bits: 8,
            loglevel: LogLevel::Notice,
            logfile: None,
            client_query_buffer_bytes_max: 1 << 30,
            client_output_buffer: OutputLimits::default(),
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
            latency_tracking: Tracking::On,
            latency_monitor_ms: 0,
            command_log: LogRules::default(),
            latency_percentiles: vec![50.0, 99.0, 99.9],
            huge_pages: true,
            defrag: Defrag::default(),
            store: store::Settings::default(),
            renamed_commands: Vec::new(),
            accepted: Accepted::default(),
        }
    }
}

impl Config {
    /// Whether a client needs to say who it is.
    pub fn needs_password(&self) -> bool {
        !self.requirepass.is_empty()
    }

    /// From where on the latency monitor keeps what took long, if it does at all.
    pub(crate) fn latency_threshold_ns(&self) -> Option<u64> {
        (self.latency_monitor_ms > 0).then(|| self.latency_monitor_ms.saturating_mul(1_000_000))
    }

    /// The value of a setting as CONFIG GET shows it; None for a name that is none.
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        setting::find(name.as_bytes()).map(|s| s.render(self))
    }

    /// What differs from its default, a line each, without what is secret: for crash reports.
    pub(crate) fn told_in_reports(&self) -> String {
        let defaults = Config::default();
        let differs = |s: &&setting::Setting| !s.is_secret && s.render(self) != s.render(&defaults);
        let line =
            |s: &setting::Setting| format!("{} {}\n", s.name, String::from_utf8_lossy(&s.render(self)));
        setting::all().filter(differs).map(line).collect()
    }

    /// Sets one setting as a line of the file would, start-only ones included.
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ConfigError> {
        let found = setting::find(name.as_bytes())
            .ok_or_else(|| ConfigError("Bad directive or wrong number of arguments".into()))?;
        found.set_from_one(self, value).map_err(ConfigError)
    }
}

/// The default of `worker-threads`.
fn cores() -> usize {
    // The system is asked once: finding out reads files.
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
}
