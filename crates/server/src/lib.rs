//! The server around the data: workers, sessions, dispatch, the registry, and the mechanisms with their commands.
//!
//! `start` binds and starts the workers; a `worker` reads, parses and answers; `dispatch` finds the command's row in the
//! `registry` and runs it under the right locks. Every other module is one mechanism with its own commands.
mod attack;
mod background;
mod blocking;
mod call;
mod client;
mod clock;
mod command_info;
mod commandlog;
mod config;
mod connection;
mod counters;
mod crash;
mod debug;
mod defrag;
mod dispatch;
mod evict;
mod families;
mod gate;
mod grammar;
mod help;
mod histogram;
mod info;
mod latency;
mod listening;
mod log;
mod lolwut;
mod memory;
mod module;
mod monitor;
mod open_files;
mod pause;
mod process;
mod promise;
mod redact;
mod refusal;
mod registry;
mod replication;
mod restless;
mod session;
mod shared;
mod shutdown;
mod slowlog;
mod start;
mod time;
mod too_long;
mod wait;
mod worker;

pub use clock::{Clock, SimulatedTime};
pub use command_info::command_reference;
pub use commandlog::{LogRule, LogRules};
pub use config::{
    Allow, Config, ConfigError, Defrag, LogLevel, MemoryShare, OutputLimit, OutputLimits, Source, Tracking,
    sample_file, settings_reference,
};
pub use crash::report_crashes;
pub use grammar::{Grammar, grammars};
pub use log::Log;
pub use net::map_code;
pub use open_files::make_room;
pub use process::{Facility, OomScore, PidFile, Supervised, Supervisor};
pub use shutdown::Signals;
pub use start::{Running, StartError, Stopper, start, start_when};
