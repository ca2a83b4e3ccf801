//! The server from outside, over real sockets on loopback: what clients do to it, and what it does for them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod acl;
mod append_always;
mod append_moves;
mod append_only;
mod append_scripts;
mod append_times;
mod attack;
#[allow(dead_code, unreachable_pub, reason = "testkit uses all of it")]
#[path = "../../../testkit/src/certificates.rs"]
mod certificates;
mod client;
mod client_kill;
mod client_memory;
mod configuration;
mod connections;
mod crowd;
mod info;
mod input;
mod latency;
mod lengths;
mod limits;
mod loading;
mod long_strings;
mod lookups;
mod monitor;
mod multi;
mod notify;
mod output;
mod pause;
mod pieces;
mod pubsub;
mod quick;
mod requests;
mod script_log;
mod secrets;
mod settings;
mod slowlog;
mod time;
mod tls;
mod wait;
