//! CLIENT and its subcommands: who is connected, under which name, and how to be rid of them.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
