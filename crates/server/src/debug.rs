//! DEBUG: what tests and the curious ask.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
