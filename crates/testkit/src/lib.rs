//! What tests share.
//!
//! * [`transcript`]s: requests with the replies of a real server. [`suite`] finds and plays them;
//!   [`conversation`] is what those of several clients need.
//! * What they are played to: the data commands alone ([`bare_commands`]), a server in this process
//!   ([`in_process`]), a real one ([`redis_server`]); both servers through a socket ([`socket_peer`]).
//! * Tests at random: streams of requests compared with a real server ([`differ`]), concurrent clients whose
//!   answers must have an order ([`histories`]), hostile and friendly clients for hours ([`soak`]), any bytes
//!   ([`fuzz`]).
//! * Job queues that people run, their processes and the server killed ([`queues`]). A server killed ten
//!   thousand times, and compared with what it had acknowledged ([`kills`]).
//! * A client and its replies ([`resp_client`], [`resp_value`]), [`certificates`], folders that go by
//!   themselves ([`scratch`]).
pub mod bare_commands;
pub mod certificates;
pub mod conversation;
pub mod differ;
pub mod fuzz;
pub mod histories;
pub mod in_process;
pub mod journal;
pub mod journal_script;
pub mod journal_storm;
pub mod kills;
pub mod queues;
pub mod redis_server;
pub mod resp_client;
pub mod resp_value;
pub mod scratch;
mod shape;
pub mod soak;
pub mod socket_peer;
pub mod suite;
pub mod transcript;
