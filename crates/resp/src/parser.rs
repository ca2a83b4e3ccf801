//! Requests: multibulk and inline, incremental over any split of the bytes.
use crate::Span;

/// What a client may send; tighter before it has authenticated.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`
    pub bulk_len_bytes_max: u64,
    pub arg_count_max: u64,
    pub inline_len_bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// One request: its arguments are `spans[..]` appended by this call, and it ended at `consumed` bytes from the
    /// buffer's start.
    Request,
    /// All bytes are read and the request is not complete. `wanted` bytes more are known to be needed (0: unknown),
    /// so that the reader can reserve room for a large argument once.
    Incomplete { wanted: usize },
}

/// The reply text (after "-ERR ") that Redis sends before it closes the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

/// The state between two reads of one connection. Spans and positions are relative to the connection's buffer; when
/// the owner drops bytes from the buffer's front it calls [`Parser::rebase`].
#[derive(Debug, Default)]
pub struct Parser {}

impl Parser {
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Parses the next request of `buffer[at..]`, where `at` is where the last request ended. Appends its spans to
    /// `spans` (requests without arguments, such as an empty line, are skipped). On `Request` `*at` moves behind it.
    /// On `Incomplete` `*at` stays and progress is remembered, so that no byte is read twice but those of the last
    /// unfinished line; call again with the same `at` and a longer buffer.
    pub fn parse(
        &mut self,
        buffer: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Parsed, ProtocolError> {
        let _ = (buffer, at, spans, limits);
        todo!()
    }

    /// The buffer lost `count` bytes at its front (all of them before the unfinished request).
    pub fn rebase(&mut self, count: usize) {
        let _ = count;
        todo!()
    }
}
