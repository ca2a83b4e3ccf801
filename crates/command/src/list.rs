//! Stub.
use crate::Command;

pub const COMMANDS: &[&Command] = crate::checked(&[]);
