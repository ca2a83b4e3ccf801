//! What tests share: the data commands without a server ([`bare`]), transcripts and their peers, a client.
pub mod bare;
pub mod random_command;
pub mod real_peer;
pub mod resp_client;
pub mod resp_value;
pub mod transcript;
