//! The server's own families of commands; the registry joins them with the families of commands on data.
use crate::core::call::ServerCommand;

/// Every family's table. A table that is missing here is dead code, so the compiler finds it.
pub(crate) const FAMILIES: &[&[&ServerCommand]] = &[
    super::acl::COMMANDS,
    super::client::COMMANDS,
    super::cluster::COMMANDS,
    super::command_info::COMMANDS,
    super::commandlog::COMMANDS,
    super::config::COMMANDS,
    super::connection::COMMANDS,
    super::debug::COMMANDS,
    super::function::COMMANDS,
    super::info::COMMANDS,
    super::latency::COMMANDS,
    super::lolwut::COMMANDS,
    super::memory::COMMANDS,
    super::migrate::COMMANDS,
    super::module::COMMANDS,
    super::monitor::COMMANDS,
    super::multi::COMMANDS,
    super::persistence::COMMANDS,
    super::pubsub::COMMANDS,
    super::replication::COMMANDS,
    super::script::COMMANDS,
    super::shutdown::COMMANDS,
    super::slowlog::COMMANDS,
    super::time::COMMANDS,
    super::wait::COMMANDS,
];
