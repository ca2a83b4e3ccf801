//! The server around the data: workers, sessions, dispatch, the registry, and the commands on the server
//! itself.
//!
//! `start` puts a server together: it opens the sockets and starts the workers. A `worker` reads, parses and
//! answers; `core::dispatch` finds the command's row in the registry and runs it under the right locks;
//! `commands` holds the server's own commands, `state` what they show and change; `service` is what goes on
//! beside requests. Only `start` and this file know all of these folders; `xtask/src/tidy/folders.rs` says
//! which may name which.
mod commands;
mod core;
mod reread;
mod service;
mod signals;
mod start;
mod state;
mod worker;

pub use commands::command_info::command_reference;
pub use commands::grammar::{Grammar, grammars};
pub use commands::info::metrics_reference;
pub use net::map_code;
pub use reread::WrittenUsers;
pub use service::crash::report_crashes;
pub use signals::Signals;
pub use start::{Running, Stopper, examine, start, start_when};
pub use state::REDIS_VERSION;
pub use state::clock::{Clock, SimulatedTime};
pub use state::config::{
    Allow, AppendSync, Appending, Config, ConfigError, Defrag, Facility, LogLevel, LogRule, LogRules,
    MemoryShare, OnSignal, OomScore, OutputLimit, OutputLimits, SavePoint, Snapshots, Source, Supervised,
    Tracking, sample_file, settings_reference,
};
pub use state::disk::{DiskAct, DiskWatch};
pub use state::log::Log;
pub use state::start_error::StartError;
pub use state::system::open_files::make_room;
pub use state::system::pidfile::PidFile;
pub use state::system::supervisor::Supervisor;
