//! What has arrived on several connections, parsed, before any of it is executed. On the path of every request: every
//! vector here keeps its room from batch to batch.
//!
//! Bytes go into one scratch buffer, connection behind connection, so that an idle connection needs no buffer of its own.
//! What is left of an unfinished request returns to its connection; a request that waits for a large argument is received
//! there in place.
use super::table::Connection;
use crate::registry::Row;
use crate::shared::Shared;
use base::hash::Hash;
use net::{ConnId, Engine, Received};
use resp::{Args, Limits, ProtocolError, Span};
use std::hint::cold_path;
use std::ops::Range;
use store::Keyspace;

/// Asked of the engine at a time.
const RECEIVE_BYTES: usize = 64 << 10;
/// Of a large argument; so that no client keeps its worker for long.
const RECEIVE_BYTES_MAX: usize = 1 << 20;
/// A request that needs more is received where it stays.
const LARGE_BYTES: usize = 32 << 10;
/// Reserved at once for a large argument; beyond this room doubles as the bytes come, since anybody can announce 512 MB.
const RESERVE_BYTES_MAX: usize = 64 << 20;
/// A batch this large is executed before more is received: about a core's second-level cache.
const BATCH_BYTES: usize = 128 << 10;

#[derive(Default)]
pub(super) struct Batch<'s> {
    scratch: Vec<u8>,
    spans: Vec<Span>,
    pub(super) requests: Vec<Parsed<'s>>,
    pub(super) turns: Vec<Turn>,
}

/// One whole request.
pub(super) struct Parsed<'s> {
    /// The row of its name, if there is one.
    pub(super) row: Option<&'s Row>,
    /// Of its key, if the command has one where it is known to be.
    pub(super) hash: Option<Hash>,
    /// The request before it has the same key, which is asked for once.
    is_asked_for: bool,
    /// The database selected when it was parsed, which is where to prefetch.
    db: u16,
    spans: Range<usize>,
}

/// One connection's part of a batch.
pub(super) struct Turn {
    pub(super) id: ConnId,
    pub(super) source: Source,
    pub(super) requests: Range<usize>,
    /// Where parsing ended: behind the last whole request and the empty lines that follow it.
    pub(super) parsed: usize,
    /// What follows the requests.
    pub(super) rest: Rest,
}

/// Where a turn's bytes lie.
#[derive(Clone)]
pub(super) enum Source {
    Scratch(Range<usize>),
    Kept,
}

pub(super) enum Rest {
    /// Nothing, or the beginning of a request, of which so many bytes are known to be missing.
    Unfinished { wanted_bytes: usize },
    /// More requests, to be parsed after these have run.
    Unparsed,
    /// What no client may send.
    Wrong(ProtocolError),
}

impl<'s> Batch<'s> {
    pub(super) fn is_full(&self) -> bool {
        self.scratch.len() >= BATCH_BYTES
    }

    /// What it holds between batches.
    pub(super) fn room_bytes(&self) -> usize {
        self.scratch.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.requests.capacity() * size_of::<Parsed<'_>>()
            + self.turns.capacity() * size_of::<Turn>()
    }

    pub(super) fn clear(&mut self) {
        self.scratch.clear();
        self.spans.clear();
        self.requests.clear();
        self.turns.clear();
    }

    /// Gives the room of large batches back, between two of them. Called now and then: a busy worker takes it up again.
    pub(super) fn give_room_back(&mut self) {
        debug_assert!(self.turns.is_empty(), "between two batches");
        *self = Batch::default();
    }

    /// Takes in what waits for a connection, behind what it has kept; how many bytes came.
    pub(super) fn receive(
        &mut self,
        engine: &mut dyn Engine,
        connection: &mut Connection,
    ) -> std::io::Result<usize> {
        let is_large = connection.wanted_bytes + connection.kept.len() > LARGE_BYTES;
        let (received, source) = if is_large {
            cold_path();
            let room = connection.kept.capacity() - connection.kept.len();
            let limit = room.clamp(RECEIVE_BYTES, RECEIVE_BYTES_MAX);
            (engine.receive(connection.id, &mut connection.kept, limit), Source::Kept)
        } else {
            let start = self.scratch.len();
            if !connection.kept.is_empty() {
                cold_path();
                self.scratch.append(&mut connection.kept);
            }
            let received = engine.receive(connection.id, &mut self.scratch, RECEIVE_BYTES);
            (received, Source::Scratch(start..self.scratch.len()))
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
        self.add_turn(connection, source);
        Ok(count)
    }

    /// Takes up what a connection has kept without receiving more.
    pub(super) fn resume(&mut self, connection: &mut Connection) {
        self.add_turn(connection, Source::Kept);
    }

    fn add_turn(&mut self, connection: &mut Connection, source: Source) {
        connection.is_in_batch = true;
        let rest = Rest::Unfinished { wanted_bytes: 0 };
        self.turns.push(Turn { id: connection.id, source, requests: 0..0, parsed: 0, rest });
    }

    /// Parses the requests of turn `index` and looks their rows up. Only one before authentication, since it may change
    /// what the client may send after it.
    pub(super) fn parse(
        &mut self,
        index: usize,
        connection: &mut Connection,
        shared: &'s Shared,
        limits: &Limits,
    ) {
        let turn = &mut self.turns[index];
        let bytes = match &turn.source {
            Source::Scratch(range) => &mut self.scratch[range.clone()],
            Source::Kept => &mut connection.kept[..],
        };
        let first = self.requests.len();
        let mut at = 0;
        turn.rest = loop {
            let first_span = self.spans.len();
            match connection.parser.parse(bytes, &mut at, &mut self.spans, limits) {
                Ok(resp::Parsed::Request) => {
                    let args = Args::new(bytes, &self.spans[first_span..]);
                    let row = shared.registry.find(args.at(0));
                    let key = row.and_then(|row| row.only_key(&args));
                    let hash = key.map(|key| shared.keyspace.hash(key));
                    if let Some(hash) = hash {
                        shared.keyspace.prefetch_shard(hash);
                    }
                    let (db, spans) = (connection.session.db, first_span..self.spans.len());
                    let is_asked_for =
                        self.requests.last().is_some_and(|last| (last.db, last.hash) == (db, hash));
                    self.requests.push(Parsed { row, hash, db, is_asked_for, spans });
                }
                Ok(resp::Parsed::Incomplete { wanted }) => break Rest::Unfinished { wanted_bytes: wanted },
                Err(error) => {
                    cold_path();
                    break Rest::Wrong(error);
                }
            }
            if !limits.is_authenticated {
                cold_path();
                break Rest::Unparsed;
            }
        };
        turn.parsed = at;
        turn.requests = first..self.requests.len();
    }

    /// Asks for the leaf that the key of a request lies in, if there is such a request.
    #[inline]
    pub(super) fn prefetch_leaf(&self, index: usize, keyspace: &Keyspace) {
        if let Some(Parsed { hash: Some(hash), db, is_asked_for: false, .. }) = self.requests.get(index) {
            keyspace.prefetch_hashed(*db, *hash);
        }
    }

    /// Asks for the key's entry in its leaf, which was asked for before.
    #[inline]
    pub(super) fn prefetch_entry(&self, index: usize, keyspace: &Keyspace) {
        if let Some(Parsed { hash: Some(hash), db, is_asked_for: false, .. }) = self.requests.get(index) {
            keyspace.prefetch_entry_hashed(*db, *hash);
        }
    }

    /// The arguments of a request.
    pub(super) fn args<'a>(&'a self, request: &Parsed<'s>, bytes: &'a [u8]) -> Args<'a> {
        Args::new(bytes, &self.spans[request.spans.clone()])
    }

    /// The bytes of a turn, of whose connection `kept` is.
    pub(super) fn bytes<'a>(&'a self, turn: &Turn, kept: &'a [u8]) -> &'a [u8] {
        match &turn.source {
            Source::Scratch(range) => &self.scratch[range.clone()],
            Source::Kept => kept,
        }
    }

    /// Gives back to the connection what follows its whole requests.
    pub(super) fn keep_rest(&self, turn: &Turn, connection: &mut Connection) {
        match &turn.source {
            Source::Scratch(range) if range.start + turn.parsed == range.end => {}
            Source::Scratch(range) => {
                cold_path();
                connection.kept.extend_from_slice(&self.scratch[range.start + turn.parsed..range.end]);
            }
            Source::Kept => {
                cold_path();
                connection.kept.drain(..turn.parsed);
            }
        }
        if connection.kept.is_empty() && connection.kept.capacity() > 0 {
            cold_path();
            connection.kept = Vec::new();
        }
    }

    /// Gives back the requests that were not executed, of which there are `executed` before, and what follows them. They
    /// are written anew, because parsing has decoded the inline ones where they lay.
    #[cold]
    pub(super) fn keep_requests(&self, turn: &Turn, connection: &mut Connection, executed: usize) {
        let bytes = self.bytes(turn, &connection.kept);
        let mut kept = Vec::with_capacity(bytes.len());
        for request in &self.requests[turn.requests.clone()][executed..] {
            write_request(&mut kept, &self.args(request, bytes));
        }
        kept.extend_from_slice(&bytes[turn.parsed..]);
        connection.kept = kept;
    }
}

fn write_request(out: &mut Vec<u8>, args: &Args<'_>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args.iter_from(0) {
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// Notes how much is missing, and makes room for a large argument once.
pub(super) fn reserve(connection: &mut Connection, wanted_bytes: usize) {
    connection.wanted_bytes = wanted_bytes;
    let kept = &mut connection.kept;
    let has_room = kept.capacity() - kept.len() >= wanted_bytes.min(RECEIVE_BYTES);
    if wanted_bytes + kept.len() > LARGE_BYTES && !has_room {
        kept.reserve_exact(wanted_bytes.min(RESERVE_BYTES_MAX));
    }
}
