//! INFO: the server's figures, section by section.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
