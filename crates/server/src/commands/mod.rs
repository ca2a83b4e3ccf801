//! The commands on the server itself: a file or a folder for each family, named in the table `families`.
//! (Those on data are in the crate `command`.)
//!
//! `help` is what the HELP subcommands share; `grammar` shows the rows of all commands to those who draw
//! random requests.
pub(crate) mod client;
pub(crate) mod command_info;
pub(crate) mod commandlog;
mod config;
pub(crate) mod connection;
mod debug;
pub(crate) mod families;
pub(crate) mod grammar;
mod help;
pub(crate) mod info;
mod latency;
mod lolwut;
mod memory;
mod module;
pub(crate) mod monitor;
pub(crate) mod shutdown;
mod slowlog;
mod time;
mod wait;
