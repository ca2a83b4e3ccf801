//! The errors of a stream that is not RESP. After one of them nobody knows where the next request begins, so
//! the server sends its text and closes the connection.
use std::fmt;

/// What is wrong with a stream; each fault has the text that Redis sends. `Display` gives it from "Protocol
/// error: " on, for logs; [`crate::Reply::protocol_error`] sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    InvalidMultibulkLength,
    InvalidBulkLength,
    /// The byte that stands where an argument's `$` should.
    ExpectedDollar(u8),
    TooBigMultibulkCount,
    TooBigBulkCount,
    TooBigInline,
    UnbalancedQuotes,
    UnauthenticatedMultibulkLength,
    UnauthenticatedBulkLength,
}

impl ProtocolError {
    /// The text without the offending byte.
    pub(crate) fn text(self) -> &'static str {
        match self {
            ProtocolError::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            ProtocolError::InvalidBulkLength => "Protocol error: invalid bulk length",
            ProtocolError::ExpectedDollar(_) => "Protocol error: expected '$', got ",
            ProtocolError::TooBigMultibulkCount => "Protocol error: too big mbulk count string",
            ProtocolError::TooBigBulkCount => "Protocol error: too big bulk count string",
            ProtocolError::TooBigInline => "Protocol error: too big inline request",
            ProtocolError::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            ProtocolError::UnauthenticatedMultibulkLength => {
                "Protocol error: unauthenticated multibulk length"
            }
            ProtocolError::UnauthenticatedBulkLength => "Protocol error: unauthenticated bulk length",
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())?;
        match self {
            ProtocolError::ExpectedDollar(byte) => write!(f, "'{}'", byte.escape_ascii()),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ProtocolError {}
