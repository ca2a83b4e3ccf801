//! The server's own families of commands; the registry joins them with those of the data.
use crate::call::ServerCommand;

pub(crate) const FAMILIES: &[&[&ServerCommand]] = &[
    crate::client::COMMANDS,
    crate::command_info::COMMANDS,
    crate::commandlog::COMMANDS,
    crate::state::config::COMMANDS,
    crate::connection::COMMANDS,
    crate::debug::COMMANDS,
    crate::info::COMMANDS,
    crate::latency::COMMANDS,
    crate::lolwut::COMMANDS,
    crate::memory::COMMANDS,
    crate::module::COMMANDS,
    crate::monitor::COMMANDS,
    crate::shutdown::COMMANDS,
    crate::slowlog::COMMANDS,
    crate::time::COMMANDS,
    crate::wait::COMMANDS,
];
