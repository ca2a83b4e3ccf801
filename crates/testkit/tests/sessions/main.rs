//! What happens between clients, on servers with several workers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod beginning;
mod blocking;
mod ending;
mod exec_elsewhere;
mod functions;
mod in_parts;
mod lent;
mod lent_writes;
mod long_elements;
mod migrate;
mod refused;
mod scripts;
mod scripts_in_exec;
mod taken_back;
mod tracking;
