//! The server from outside, over real sockets on loopback: what clients do to it, and what it does for them.
mod client;
mod connections;
mod crowd;
mod limits;
mod requests;
mod time;
