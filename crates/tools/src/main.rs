//! `sardine`: the server.
fn main() {}
