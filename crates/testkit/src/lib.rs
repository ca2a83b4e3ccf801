//! What tests share: transcripts and how they are played ([`suite`]), what they are played to ([`bare`],
//! [`in_process`], [`redis_server`]), a client, [`certificates`], and random streams of requests that are
//! compared with a real server ([`differ`]).
pub mod bare;
pub mod certificates;
pub mod conversation;
pub mod differ;
pub mod fuzz;
pub mod histories;
pub mod in_process;
pub mod redis_server;
pub mod resp_client;
pub mod resp_value;
pub mod scratch;
pub mod soak;
pub mod socket_peer;
pub mod suite;
pub mod transcript;
