//! Clients whose next request has to wait: because CLIENT PAUSE holds it back, or until the command before it
//! is answered (`core/blocking.rs`).
//!
//! ```text
//! Open --- a request that has to wait ---> Parked --- the pause or the command is over ---> Busy
//!                                            \--- the client leaves, or is killed ---> Closing
//! ```
//!
//! What the client has sent and still sends is kept (`receive_while_waiting.rs`), from the request that waits
//! on; when it is served again all of that is parsed anew, and may be parked anew. When a client disconnects
//! meanwhile, its requests that have not run are dropped, as Redis does.
use super::Worker;
use super::table::{Connection, Flow};
use base::Millis;
use net::{CloseWhen, ConnId};
use std::sync::atomic::Ordering::Relaxed;

/// Connections that a pause holds back.
#[derive(Default)]
pub(super) struct Parked {
    /// Each with the pause under which it was parked; see `Pause::word`.
    ids: Vec<(ConnId, u64)>,
}

impl Parked {
    /// Adds a connection. Those of clients that have left stay on the list until it would have to grow, and
    /// are removed then: a pause may last for long, and clients come and go.
    fn add(&mut self, id: ConnId, word: u64, mut is_parked: impl FnMut(ConnId) -> bool) {
        if self.ids.len() == self.ids.capacity() {
            self.ids.retain(|(id, _)| is_parked(*id));
            self.ids.reserve(self.ids.len() + 1);
        }
        self.ids.push((id, word));
    }
}

impl Worker<'_> {
    /// A request of this connection has to wait: it and all that is behind it has been kept.
    pub(super) fn park(&mut self, id: ConnId) {
        let Some(connection) = self.table.at(id) else { return };
        connection.session.record.is_parked.store(true, Relaxed);
        // The end of the stream may have arrived with the request: then the client has disconnected.
        if connection.has_ended {
            return self.close(id, CloseWhen::Now);
        }
        // Receiving was paused while the connection was busy: a disconnection would go unseen.
        self.engine.resume(id);
        if let Some(waiting) = &connection.session.waiting {
            self.waits.add(id, waiting);
            let bytes = waiting.waiter.as_ref().map_or(0, |waiter| waiter.bytes());
            connection.session.record.note_waiter(bytes, self.executor.counters());
            return self.hold_command(id);
        }
        let Worker { parked, table, server, .. } = self;
        let is_parked = |id| table.at(id).is_some_and(|connection| connection.flow == Flow::Parked);
        parked.add(id, server.pause.word(), is_parked);
    }

    /// When CLIENT PAUSE ends, so that the worker wakes for parked clients and for keys past their deadline.
    /// If it has ended already and clients are parked, that is now.
    pub(super) fn unpark_due(&self) -> Option<Millis> {
        let is_over = || (!self.parked.ids.is_empty()).then_some(self.executor.steady());
        self.server.pause.end().or_else(is_over)
    }

    /// Lets parked clients try again: all if the pause is over, otherwise those that were parked under an
    /// earlier pause.
    pub(super) fn unpark(&mut self) {
        if self.parked.ids.is_empty() {
            return;
        }
        let pause = &self.server.pause;
        let (word, is_over) = (pause.word(), pause.end().is_none_or(|end| end <= self.executor.steady()));
        let goes_on = |parked: &mut (ConnId, u64)| is_over || parked.1 != word;
        let going: Vec<(ConnId, u64)> = self.parked.ids.extract_if(.., goes_on).collect();
        for (id, _) in going {
            self.unpark_one(id);
        }
    }

    /// Lets a parked connection go on at its next turn.
    pub(super) fn unpark_one(&mut self, id: ConnId) {
        let now = self.executor.steady();
        if let Some(connection) = self.table.at(id).filter(|c| c.flow == Flow::Parked) {
            go_on(connection, now);
            self.again.push_back(id);
        }
    }
}

/// The client counts as idle from now on, not from before it waited.
fn go_on(connection: &mut Connection, now: Millis) {
    connection.flow = Flow::Busy;
    connection.session.record.last_active_ms.store(now.0, Relaxed);
    connection.session.record.is_parked.store(false, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_parked_and_leave_take_no_room_however_long_the_pause_lasts() {
        let mut parked = Parked::default();
        let id = |index| ConnId { index, generation: 1 };
        // Every hundredth stays.
        (0..10_000).for_each(|n| parked.add(id(n), 1, |id| id.index.is_multiple_of(100)));
        assert!(parked.ids.len() < 1000, "{} of 100", parked.ids.len());
        assert!((0..100).all(|n| parked.ids.contains(&(id(100 * n), 1))), "whoever is there is on the list");
    }
}
