//! The commands on the server itself: a file or a folder for each family, named in the table `families`.
//! (Those on data are in the crate `command`.)
//!
//! The files of families have one order: the family's table, a row for each command or subcommand, then the
//! functions that the rows name. A row says everything that others need to know of a command
//! (`command::Command`); a function gets a `ServerCall`, appends its reply or returns an error from
//! `core::error`, and knows neither sockets nor threads. A command names what `core` and `state` have, never
//! another folder of this crate.
//!
//! `help` is what the HELP subcommands share; `grammar` shows the rows of all commands to programs that draw
//! random requests.
mod acl;
pub(crate) mod client;
mod cluster;
pub(crate) mod command_info;
pub(crate) mod commandlog;
mod config;
pub(crate) mod connection;
mod debug;
pub(crate) mod families;
mod function;
pub(crate) mod grammar;
mod help;
pub(crate) mod info;
mod latency;
mod lolwut;
mod memory;
mod migrate;
mod module;
pub(crate) mod monitor;
pub(crate) mod multi;
mod persistence;
mod pubsub;
mod replication;
pub(crate) mod script;
mod shutdown;
mod slowlog;
mod time;
mod wait;
