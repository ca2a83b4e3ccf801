//! The last requests of a client that has died: what it sent before it knew that it would.
//!
//! A client may send requests and close its socket without reading the answers. The peer runs all that one read brings, up to
//! 16 KB, before it can notice. Here a connection that has sent much takes turns with others, so it may be gone
//! before all of that has run; then the rest of it runs at once, but for what only reads: nobody is there to hear.
//! What has arrived beyond that is dropped, as with the peer, and so is what a client had sent that the server closed.
use super::batch::{Rest, Turn};
use super::table::Flow;
use super::{Parsed, Worker};
use crate::dispatch::Request;
use crate::session::After;
use command::Flags;
use net::ConnId;
use resp::Parser;
use std::sync::atomic::Ordering::Acquire;

/// What the peer reads at a time.
const READ_BYTES: usize = 16 << 10;

impl Worker<'_> {
    #[cold]
    pub(super) fn run_last_requests(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        let is_served = matches!(connection.flow, Flow::Busy | Flow::Writing | Flow::Paused);
        if !is_served || connection.session.card.is_killed.load(Acquire) {
            return;
        }
        self.serve();
        let Some(connection) = self.table.at(id) else { return };
        connection.kept.truncate(READ_BYTES);
        // It may have read beyond that, of a request that was not whole.
        connection.parser = Parser::new();
        let mut turn = Turn::of_kept(id);
        self.executor.begin();
        self.executor.start_turn(&connection.session, connection.kept.len());
        loop {
            self.parse(&mut turn);
            let executed = self.execute_unheard(&turn);
            self.batch.advance(&mut turn, executed);
            if !turn.requests.is_empty() || !matches!(turn.rest, Rest::Unparsed) {
                break;
            }
        }
        self.executor.end();
        self.batch.clear();
        self.reply.cut(0);
        self.reply.bound(usize::MAX);
    }

    /// Runs what is parsed and does more than read; how many requests that took.
    fn execute_unheard(&mut self, turn: &Turn) -> usize {
        let Worker { table, batch, executor, reply, .. } = self;
        let Some(connection) = table.at(turn.id) else { return 0 };
        reply.protocol = connection.protocol;
        // What cannot be heard need not be written.
        reply.bound(0);
        let bytes = batch.bytes(turn, &connection.kept);
        let mut first_span = turn.first_span;
        for (index, request) in batch.requests[turn.requests.clone()].iter().enumerate() {
            let Parsed { row, hash, spans_end, .. } = *request;
            let request = Request { row, hash, args: batch.args(first_span..spans_end, bytes) };
            first_span = spans_end;
            if row.is_none_or(|row| row.flags.has(Flags::READONLY)) {
                continue;
            }
            if executor.must_wait(&connection.session, &request) {
                return index;
            }
            executor.execute(&mut connection.session, request, reply);
            reply.cut(0);
            match connection.session.after {
                After::Next => {}
                After::Yield => connection.session.after = After::Next,
                After::Retry | After::Wait | After::Close | After::Abort => return index,
            }
        }
        connection.protocol = reply.protocol;
        turn.requests.len()
    }
}
