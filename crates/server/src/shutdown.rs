//! SHUTDOWN, and the signals that mean the same.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
