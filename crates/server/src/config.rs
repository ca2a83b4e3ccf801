//! The settings: one table from which CONFIG GET and SET, the file, the command line and the documents come.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);

/// The configuration in force.
#[derive(Clone, Debug, Default)]
pub struct Config {
    pub port: u16,
    pub store: store::Settings,
}

#[derive(Clone, Debug)]
pub struct ConfigError(pub String);
