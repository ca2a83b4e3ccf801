//! How much memory clients take, and `maxmemory-clients`: beyond it those that take most are closed.
//!
//! Each worker keeps the sum over its clients (`Counters::client_bytes`), so looking costs a load a worker, and only where
//! the limit is set. Only when that is too much are the records gone through: those of clients that are about to be
//! closed are not among them any more, so nobody is closed for what another still holds for a moment.
use super::list::line_of;
use crate::core::session::ClientRecord;
use crate::core::shared::Shared;
use crate::worker;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a client takes that sends and reads nothing.
const IDLE_BYTES: u64 = (size_of::<ClientRecord>() + worker::CONNECTION_BYTES) as u64;

/// CLIENT LIST's tot-mem.
pub(crate) fn bytes_of(record: &ClientRecord) -> u64 {
    IDLE_BYTES + record.query_buffer_bytes.load(Relaxed) + record.output_buffer_bytes.load(Relaxed)
}

/// What all clients take: INFO's mem_clients_normal.
pub(crate) fn total_bytes(shared: &Shared) -> u64 {
    shared.clients().values().map(|record| bytes_of(record)).sum()
}

/// Closes clients, those that take most first, until all take no more than this together.
pub(crate) fn relieve(shared: &Shared, limit_bytes: u64, now_ms: i64) {
    let connections: usize = shared.posts.iter().map(|post| post.connections.load(Relaxed)).sum();
    let buffers = shared.counters.sum(|worker| &worker.client_bytes);
    if buffers + connections as u64 * IDLE_BYTES <= limit_bytes {
        return;
    }
    for record in take_largest(shared, limit_bytes) {
        shared.log.notice(&format!("Evicting client: {}", line_of(&record, &shared.registry, now_ms)));
        shared.stats.clients_evicted.fetch_add(1, Relaxed);
        shared.kill(&record);
    }
}

/// Takes out of the list of clients those that must go.
fn take_largest(shared: &Shared, limit_bytes: u64) -> Vec<Arc<ClientRecord>> {
    let mut clients = shared.clients();
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
