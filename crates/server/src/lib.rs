//! The server around the data: workers, sessions, dispatch, the registry, and the mechanisms with their commands.
//!
//! `start` binds and starts the workers; a `worker` reads, parses and answers; `dispatch` finds the command's row in the
//! `registry` and runs it under the right locks. Every other module is one mechanism with its own commands.
mod background;
mod commands;
mod core;
mod crash;
mod defrag;
mod evict;
mod listening;
mod open_files;
mod process;
mod restless;
mod start;
mod state;
mod worker;

pub use commands::command_info::command_reference;
pub use commands::commandlog::{LogRule, LogRules};
pub use commands::grammar::{Grammar, grammars};
pub use commands::shutdown::Signals;
pub use crash::report_crashes;
pub use net::map_code;
pub use open_files::make_room;
pub use process::{Facility, OomScore, PidFile, Supervised, Supervisor};
pub use start::{Running, StartError, Stopper, start, start_when};
pub use state::clock::{Clock, SimulatedTime};
pub use state::config::{
    Allow, Config, ConfigError, Defrag, LogLevel, MemoryShare, OutputLimit, OutputLimits, Source, Tracking,
    sample_file, settings_reference,
};
pub use state::log::Log;
