//! What a client sends while its requests have to wait. It is received and kept, as far as
//! `client-query-buffer-limit` allows, and run later. So a client that sends all of its requests before it
//! reads a reply is not stuck, and a client that leaves is noticed, however much it has sent before.
use super::{Worker, count_received, note_input};
use net::{CloseWhen, ConnId, Received};

impl Worker<'_> {
    /// Receives what has arrived and keeps it. Returns whether the client has shut down its sending side; it
    /// may still read.
    pub(super) fn receive_while_waiting(&mut self, id: ConnId) -> bool {
        let Some(connection) = self.table.at(id) else { return false };
        let (bytes, limit) = connection.input.make_room();
        let received = self.engine.receive(id, bytes, limit);
        match received {
            Received::Bytes(count) => {
                connection.input.note_received(limit, count);
                count_received(connection, self.executor.counters(), count);
                note_input(connection, self.executor.counters());
                if connection.input.len() as u64 > self.executor.query_buffer_bytes_max(&connection.session) {
                    self.close_for_its_query_buffer(id);
                }
            }
            Received::Empty => {}
            Received::End => return true,
            Received::Failed(_) => self.close(id, CloseWhen::Now),
        }
        false
    }

    /// The client has shut down its sending side while requests of it wait: they run when their turn comes.
    pub(super) fn end_while_waiting(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id) {
            connection.has_ended = true;
            self.engine.pause(id);
        }
    }
}
