//! The wire protocol, RESP2 and RESP3 (https://redis.io/docs/latest/develop/reference/protocol-spec/): an
//! incremental parser of requests and a writer of replies. No sockets: bytes in, bytes out.
mod args;
mod parser;
mod reply;

pub use args::{Args, Span};
pub use parser::{Limits, Parsed, Parser, ProtocolError};
pub use reply::{Protocol, Reply};
