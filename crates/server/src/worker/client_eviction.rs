//! `maxmemory-clients`: when clients together take more than it, those that take most are closed.
//!
//! Each worker keeps sums over its clients (`client_bytes`, `state_bytes`), so looking costs a few loads a
//! worker, and only where the limit is set. The records are gone through only when the sums are over the
//! limit, and not again at once if there was none to close (`state/fruitless.rs`). Clients that are about to
//! be closed are not among the records any more, so nobody is closed for what such a client still holds.
use crate::core::client_line::line_of;
use crate::core::client_memory::{IDLE_BYTES, bytes_of};
use crate::core::server::Server;
use crate::core::session::ClientRecord;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Closes clients, those that take most first, until all of them take no more than `limit_bytes` together.
/// Where they take no more already, this costs a few loads for each worker.
pub(super) fn relieve(server: &Server, limit_bytes: u64, now_ms: i64) {
    let connections: usize = server.mailboxes.iter().map(|mailbox| mailbox.connections.load(Relaxed)).sum();
    let buffers = server.counters.sum(|worker| &worker.client_bytes);
    let states = server.counters.sum(|worker| &worker.state_bytes);
    let bytes = buffers + states + connections as u64 * IDLE_BYTES;
    if bytes <= limit_bytes || server.no_client_to_close.still_holds(bytes, now_ms) {
        return;
    }
    let taken = take_largest(server, limit_bytes);
    if taken.is_empty() {
        server.no_client_to_close.note(bytes, now_ms);
    }
    for record in taken {
        server.log.notice(&format!("Evicting client: {}", line_of(&record, &server.registry, now_ms)));
        server.stats.clients_evicted.fetch_add(1, Relaxed);
        server.kill(&record);
    }
}

/// Takes the clients that must go out of the list, so that no other worker counts or closes them again.
fn take_largest(server: &Server, limit_bytes: u64) -> Vec<Arc<ClientRecord>> {
    let mut clients = server.clients();
    let mut total: u64 = clients.values().map(|record| bytes_of(record)).sum();
    let mut all: Vec<(u64, Arc<ClientRecord>)> = Vec::new();
    if total > limit_bytes {
        let may_go = clients.values().filter(|record| !record.details().is_spared);
        all.extend(may_go.map(|record| (bytes_of(record), Arc::clone(record))));
        all.sort_unstable_by_key(|(bytes, record)| (*bytes, record.id));
    }
    let mut taken = Vec::new();
    while total > limit_bytes
        && let Some((bytes, record)) = all.pop()
    {
        total -= bytes;
        clients.remove(&record.id);
        taken.push(record);
    }
    taken
}
