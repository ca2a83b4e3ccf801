//! COMMAND and its subcommands: what the registry says of every command.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
