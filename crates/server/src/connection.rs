//! The commands of one connection: PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET.
use crate::call::ServerCommand;

pub(crate) const COMMANDS: &[&ServerCommand] = command::checked(&[]);
