//! What a client sends while its requests have to wait: it is received and kept, up to what any client may
//! keep unread by us (`client-query-buffer-limit`), and run later. So a client that sends all of its requests
//! before it reads is not stuck, and one that leaves is noticed, however much it has sent before.
use super::{Worker, count_received, note_kept};
use net::{CloseWhen, ConnId, Received};

impl Worker<'_> {
    /// Whether the end has come: the client sends no more, but may still read.
    pub(super) fn receive_behind(&mut self, id: ConnId) -> bool {
        let Some(connection) = self.table.at(id) else { return false };
        let (bytes, limit) = connection.kept.make_room();
        let received = self.engine.receive(id, bytes, limit);
        match received {
            Received::Bytes(count) => {
                connection.kept.note_received(limit, count);
                count_received(connection, self.executor.counters(), count);
                note_kept(connection, self.executor.counters());
                if connection.kept.len() as u64 > self.executor.query_buffer_bytes_max(&connection.session) {
                    self.close_for_its_query_buffer(id);
                }
            }
            Received::Empty => {}
            Received::End => return true,
            Received::Failed(_) => self.close(id, CloseWhen::Now),
        }
        false
    }

    /// The end has come behind requests that wait: they run when their turn comes.
    pub(super) fn end_behind(&mut self, id: ConnId) {
        if let Some(connection) = self.table.at(id) {
            connection.has_ended = true;
            self.engine.pause(id);
        }
    }
}
