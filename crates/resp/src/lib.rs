//! The wire protocol, RESP2 and RESP3 (https://redis.io/docs/latest/develop/reference/protocol-spec/): an
//! incremental parser of requests and a writer of replies. No sockets: bytes in, bytes out.
mod args;
mod error;
mod inline;
#[cfg(test)]
mod model;
mod parser;
mod remainder;
mod reply;

pub use args::{Args, Span};
pub use error::ProtocolError;
pub use inline::split_line;
pub use parser::{Framing, Limits, Parsed, Parser};
pub use remainder::{Enough, Remainder};
pub use reply::{Deferred, Protocol, Reply};
