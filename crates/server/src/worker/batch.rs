//! What has arrived on several connections, parsed, before any of it is executed. On the path of every
//! request: every vector here keeps its room from batch to batch.
//!
//! Bytes go into one scratch buffer, connection behind connection, so that an idle connection needs no buffer
//! of its own. What has not run when the batch ends returns to its connection (`input`), and runs from there;
//! a request that waits for a large argument is received there in place.
//!
//! A turn parses some requests, runs them, and goes on with the next ones of its connection while its time
//! lasts: what was parsed and could not run is parsed again, so it must be little.
use super::input::Input;
use super::table::Connection;
use crate::core::dispatch::Executor;
use crate::core::lent::KeptRequest;
use crate::core::registry::Row;
use crate::core::server::Server;
use crate::core::session::Session;
use base::hash::Hash;
use net::{ConnId, Engine, Received};
use resp::{Args, Framing, Limits, Parser, ProtocolError, Reply, Span};
use std::hint::cold_path;
use std::ops::Range;
use store::Keyspace;

/// How many bytes one receive asks for.
pub(super) const RECEIVE_BYTES: usize = 64 << 10;
/// Requests of one connection that are parsed at a time: enough that the next ones' keys can be asked for in
/// time.
const REQUESTS_MAX: usize = 128;
/// Whether a key was asked for is looked up among so many requests: a transaction often names one twice.
const ASKED_FOR: usize = 3;
/// A batch of this many bytes is executed before more is received, so that it stays in a core's second-level
/// cache.
const BATCH_BYTES: usize = 128 << 10;

/// A connection that has sent this much of a request is served by itself: the request is then given to
/// another thread with its buffer, if it runs there.
pub(super) const MOVED_BYTES: usize = if cfg!(debug_assertions) { 2 << 10 } else { 256 << 10 };

/// How many requests ahead of the one that runs the leaf of their key is asked for, and then the key's entry
/// in it: enough to hide the memory's latency twice, few enough that what arrives is still in the first-level
/// cache when its request runs (docs/decisions/prefetch-at-a-distance.md).
pub(super) const LEAF_AHEAD: usize = 16;
pub(super) const ENTRY_AHEAD: usize = 8;

/// What one round of the event loop has received and parsed. Its vectors keep their room.
#[derive(Default)]
pub(super) struct Batch<'s> {
    /// What was received, connection behind connection.
    scratch: Vec<u8>,
    /// Where the arguments of all requests lie, request behind request.
    spans: Vec<Span>,
    /// The requests of all turns.
    pub(super) requests: Vec<Parsed<'s>>,
    /// One for each connection of the batch.
    pub(super) turns: Vec<Turn>,
}

/// One whole request.
pub(super) struct Parsed<'s> {
    /// The row of its name, if there is one.
    pub(super) row: Option<&'s Row>,
    /// The hash of its first key, if the command's row says which argument that is.
    pub(super) hash: Option<Hash>,
    /// What is known of how it was sent.
    pub(super) framing: Framing,
    /// One of the few requests before it has the same key, whose memory is asked for once.
    is_asked_for: bool,
    /// The database selected when it was parsed, which is where to prefetch.
    db: u16,
    /// Where its arguments end among the spans; they begin where those of the request before it end.
    pub(super) spans_end: usize,
    /// Where its bytes end.
    pub(super) end: usize,
}

/// One connection's part of a batch.
pub(super) struct Turn {
    pub(super) id: ConnId,
    pub(super) source: Source,
    /// The requests that are parsed and have not run, by index in the batch.
    pub(super) requests: Range<usize>,
    /// Where the spans of the first of them begin.
    pub(super) first_span: usize,
    /// How many have run.
    pub(super) executed: usize,
    /// Where the bytes of the requests that have run end.
    done: usize,
    /// Where parsing ended: behind the last whole request and the empty lines that follow it.
    parsed: usize,
    /// What follows the requests.
    pub(super) rest: Rest,
    /// The first request of those parsed last was decoded where it lies.
    is_decoded: bool,
    /// The client was not authenticated when its requests were parsed last.
    pub(super) is_unauthenticated: bool,
}

impl Turn {
    pub(super) fn of_input(id: ConnId) -> Turn {
        Turn::new(id, Source::Input)
    }

    /// Whether its bytes have just arrived, rather than been left over.
    pub(super) fn is_new(&self) -> bool {
        matches!(self.source, Source::Scratch(_))
    }

    fn new(id: ConnId, source: Source) -> Turn {
        Turn {
            id,
            source,
            requests: 0..0,
            first_span: 0,
            executed: 0,
            done: 0,
            parsed: 0,
            rest: Rest::Unfinished { wanted_bytes: 0 },
            is_decoded: false,
            is_unauthenticated: false,
        }
    }
}

/// Where a turn's bytes lie.
#[derive(Clone)]
pub(super) enum Source {
    Scratch(Range<usize>),
    Input,
}

pub(super) enum Rest {
    /// Nothing, or the beginning of a request, of which this many bytes are known to be missing.
    Unfinished { wanted_bytes: usize },
    /// Perhaps more requests, to be parsed after these have run.
    Unparsed,
    /// What no client may send.
    Wrong(ProtocolError),
}

impl<'s> Batch<'s> {
    /// Whether it should be executed before more is received.
    pub(super) fn is_full(&self) -> bool {
        self.scratch.len() >= BATCH_BYTES
    }

    /// Bytes of memory that it holds for what was received.
    pub(super) fn received_room_bytes(&self) -> usize {
        self.scratch.capacity()
    }

    /// Bytes of memory that it holds between batches.
    pub(super) fn room_bytes(&self) -> usize {
        self.received_room_bytes()
            + self.spans.capacity() * size_of::<Span>()
            + self.requests.capacity() * size_of::<Parsed<'_>>()
            + self.turns.capacity() * size_of::<Turn>()
    }

    /// Forgets everything and keeps the room.
    pub(super) fn clear(&mut self) {
        self.scratch.clear();
        self.spans.clear();
        self.requests.clear();
        self.turns.clear();
    }

    /// Gives the room of large batches back, between two of them. Called now and then: a busy worker takes it
    /// up again.
    pub(super) fn give_room_back(&mut self) {
        debug_assert!(self.turns.is_empty(), "between two batches");
        *self = Batch::default();
    }

    /// Takes in what waits for a connection, about so many bytes at most, behind what it has kept. Returns
    /// how many bytes came; an error closes the connection.
    pub(super) fn receive(
        &mut self,
        engine: &mut dyn Engine,
        connection: &mut Connection,
        limit: usize,
    ) -> std::io::Result<usize> {
        let (received, source) = if connection.input.is_empty() {
            let start = self.scratch.len();
            let received = engine.receive(connection.id, &mut self.scratch, limit);
            (received, Source::Scratch(start..self.scratch.len()))
        } else {
            cold_path();
            self.receive_more(engine, connection, limit)
        };
        let count = match received {
            Received::Bytes(count) => count,
            Received::Empty => 0,
            Received::End => {
                cold_path();
                connection.has_ended = true;
                0
            }
            Received::Failed(error) => {
                cold_path();
                return Err(error);
            }
        };
        connection.is_in_batch = true;
        self.turns.push(Turn::new(connection.id, source));
        Ok(count)
    }

    /// Receives behind an unfinished request: in place, as much as there is room for, if it is long,
    /// otherwise after it was moved to the scratch buffer.
    #[inline(never)]
    fn receive_more(
        &mut self,
        engine: &mut dyn Engine,
        connection: &mut Connection,
        limit: usize,
    ) -> (Received, Source) {
        let input = &mut connection.input;
        let (received, limit, source) = if input.stays() {
            let (bytes, limit) = input.make_room();
            (engine.receive(connection.id, bytes, limit), limit, Source::Input)
        } else {
            let start = self.scratch.len();
            input.move_to(&mut self.scratch);
            let received = engine.receive(connection.id, &mut self.scratch, limit);
            (received, limit, Source::Scratch(start..self.scratch.len()))
        };
        input.note_received(limit, if let Received::Bytes(count) = received { count } else { 0 });
        (received, source)
    }

    /// Takes up what a connection has kept without receiving more.
    pub(super) fn resume(&mut self, connection: &mut Connection) {
        connection.is_in_batch = true;
        self.turns.push(Turn::new(connection.id, Source::Input));
    }

    /// Parses some requests of a turn and looks their rows up. Before the client has given the password it is
    /// one request at a time, since that may change what the client may send after it. A request whose
    /// arguments had to be decoded (inline, with quotes) ends what is parsed at a time unless it is the
    /// first: it may have to be written anew if it does not get to run.
    pub(super) fn parse(
        &mut self,
        turn: &mut Turn,
        connection: &mut Connection,
        server: &'s Server,
        limits: &Limits,
    ) {
        let bytes = match &turn.source {
            Source::Scratch(range) => &mut self.scratch[range.clone()],
            Source::Input => connection.input.rest_mut(),
        };
        let first = self.requests.len();
        let last = first + if limits.is_authenticated { REQUESTS_MAX } else { 1 };
        turn.first_span = self.spans.len();
        turn.is_decoded = false;
        turn.is_unauthenticated = !limits.is_authenticated;
        let mut at = turn.parsed;
        turn.rest = loop {
            let first_span = self.spans.len();
            let framing = match connection.parser.parse_plain(bytes, &mut at, &mut self.spans, limits) {
                Ok(Some(resp::Parsed::Request(framing))) => framing,
                Ok(Some(resp::Parsed::Incomplete { wanted })) => {
                    break Rest::Unfinished { wanted_bytes: wanted };
                }
                Ok(None) if self.requests.len() > first => {
                    cold_path();
                    break Rest::Unparsed;
                }
                Ok(None) => {
                    cold_path();
                    if let Err(error) = connection.parser.parse_quoted(bytes, &mut at, &mut self.spans) {
                        break Rest::Wrong(error);
                    }
                    turn.is_decoded = true;
                    Framing::Unknown
                }
                Err(error) => {
                    cold_path();
                    break Rest::Wrong(error);
                }
            };
            let args = Args::new(bytes, &self.spans[first_span..]);
            let row = server.registry.find(args.at(0));
            let key = row.and_then(|row| row.first_key()).and_then(|first| args.get(first));
            let hash = key.map(|key| server.keyspace.hash(key));
            if let Some(hash) = hash {
                server.keyspace.prefetch_shard(hash);
            }
            let (db, spans_end) = (connection.session.db, self.spans.len());
            let is_asked_for = is_asked_for(&self.requests, db, hash);
            self.requests.push(Parsed { row, hash, framing, db, is_asked_for, spans_end, end: at });
            if self.requests.len() == last {
                cold_path();
                break Rest::Unparsed;
            }
        };
        turn.parsed = at;
        turn.requests = first..self.requests.len();
    }

    /// Offers the bytes of a turn to those who would store its longest argument, if they are one request that
    /// lies in a buffer of its own.
    #[cold]
    pub(super) fn offer(&self, turn: &Turn, input: &mut Input, keyspace: &Keyspace) {
        let [request] = &self.requests[turn.requests.clone()] else { return };
        if matches!(turn.source, Source::Scratch(_)) || request.end != input.rest().len() {
            return;
        }
        let spans = &self.spans[turn.first_span..request.spans_end];
        if let Some(longest) = spans.iter().max_by_key(|span| span.len) {
            input.offer(longest.start..longest.start + longest.len, keyspace);
        }
    }

    /// `executed` of the turn's parsed requests have run.
    pub(super) fn advance(&self, turn: &mut Turn, executed: usize) {
        turn.executed += executed;
        turn.requests.start += executed;
        if turn.requests.is_empty() {
            turn.done = turn.parsed;
        } else if let Some(before) = executed.checked_sub(1) {
            cold_path();
            let last = &self.requests[turn.requests.start - executed + before];
            (turn.done, turn.first_span) = (last.end, last.spans_end);
            turn.is_decoded = false;
        }
    }

    /// Asks for the leaf that the key of a request lies in, if there is such a request.
    #[inline(always)]
    pub(super) fn prefetch_leaf(&self, index: usize, keyspace: &Keyspace) {
        if let Some(Parsed { hash: Some(hash), db, is_asked_for: false, .. }) = self.requests.get(index) {
            keyspace.prefetch_hashed(*db, *hash);
        }
    }

    /// Asks for the key's entry in its leaf, which was asked for before.
    #[inline(always)]
    pub(super) fn prefetch_entry(&self, index: usize, keyspace: &Keyspace) {
        if let Some(Parsed { hash: Some(hash), db, is_asked_for: false, .. }) = self.requests.get(index) {
            keyspace.prefetch_entry_hashed(*db, *hash);
        }
    }

    /// Asks for what later requests need, before this one runs.
    #[inline(always)]
    pub(super) fn prefetch_ahead(&self, index: usize, keyspace: &Keyspace) {
        self.prefetch_leaf(index + LEAF_AHEAD, keyspace);
        self.prefetch_entry(index + ENTRY_AHEAD, keyspace);
    }

    /// Keeps these requests of a transaction for EXEC, up to the first that needs a closer look. Their spans
    /// begin at the given one. Returns how many were kept.
    pub(super) fn enqueue_next(
        &self,
        executor: &mut Executor<'s>,
        session: &mut Session,
        (numbers, first_span, bytes): (Range<usize>, usize, &[u8]),
        reply: &mut Reply,
    ) -> usize {
        let next = self.requests[numbers].iter().map(|p| (p.row, p.hash, p.spans_end - first_span));
        let args = |end| self.args(first_span..first_span + end, bytes);
        executor.enqueue_run(session, next, args, reply)
    }

    /// The arguments that lie in these spans.
    pub(super) fn args<'a>(&'a self, spans: Range<usize>, bytes: &'a [u8]) -> Args<'a> {
        Args::new(bytes, &self.spans[spans])
    }

    /// A request that outlives the batch: the one with these spans, whose bytes end there. It is not copied
    /// where it is long and all that its connection has sent; then there is nothing left of the turn.
    pub(super) fn take_request(
        &mut self,
        turn: &mut Turn,
        input: &mut Input,
        (spans, end): (Range<usize>, usize),
    ) -> KeptRequest {
        let is_input = matches!(turn.source, Source::Input) && end == input.len();
        if is_input && end >= MOVED_BYTES && spans == (0..self.spans.len()) {
            turn.parsed = 0;
            let (text, start) = input.take();
            return KeptRequest::whole(text, start, std::mem::take(&mut self.spans));
        }
        KeptRequest::of(&self.args(spans, self.bytes(turn, input)))
    }

    /// The bytes of a turn, of the connection that has this input.
    pub(super) fn bytes<'a>(&'a self, turn: &Turn, input: &'a Input) -> &'a [u8] {
        match &turn.source {
            Source::Scratch(range) => &self.scratch[range.clone()],
            Source::Input => input.rest(),
        }
    }

    /// Gives back to the connection the bytes that have not run.
    pub(super) fn keep_rest(&self, turn: &Turn, connection: &mut Connection) {
        match &turn.source {
            Source::Scratch(range) if range.start + turn.done == range.end => {}
            Source::Scratch(range) => {
                cold_path();
                let is_full = range.len() >= RECEIVE_BYTES;
                let wanted_bytes = match turn.rest {
                    Rest::Unfinished { wanted_bytes } if is_full => wanted_bytes,
                    _ => 0,
                };
                let bytes = &self.scratch[range.start + turn.done..range.end];
                connection.input.keep(bytes, wanted_bytes);
                if is_full {
                    connection.input.note_received(RECEIVE_BYTES, RECEIVE_BYTES);
                }
            }
            Source::Input => {
                cold_path();
                connection.input.advance(turn.done);
            }
        }
    }

    /// Gives back to the connection the bytes that have not run, parsed requests among them. If the first of
    /// these was decoded in place, it is written anew.
    #[cold]
    pub(super) fn keep_requests(&self, turn: &Turn, connection: &mut Connection) {
        connection.parser = Parser::new();
        if !turn.is_decoded || turn.requests.is_empty() {
            return self.keep_rest(turn, connection);
        }
        let bytes = self.bytes(turn, &connection.input);
        let first = &self.requests[turn.requests.start];
        let mut kept = Vec::new();
        write_request(&mut kept, &self.args(turn.first_span..first.spans_end, bytes));
        kept.extend_from_slice(&bytes[first.end..]);
        connection.input.replace(kept);
    }
}

/// Whether one of the last of these requests has a key of this hash.
#[inline(always)]
fn is_asked_for(requests: &[Parsed<'_>], db: u16, hash: Option<Hash>) -> bool {
    requests.iter().rev().take(ASKED_FOR).any(|last| (last.db, last.hash) == (db, hash))
}

/// Writes a request as an array of bulk strings, which any parser takes.
fn write_request(out: &mut Vec<u8>, args: &Args<'_>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args.iter_from(0) {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
