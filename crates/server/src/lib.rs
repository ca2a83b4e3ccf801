//! The server around the data: workers, sessions, dispatch, the registry, and the mechanisms with their commands.
mod call;
mod config;
mod registry;
mod session;
mod shared;
mod start;

pub use config::{Config, ConfigError};
pub use start::{Running, StartError, start};
