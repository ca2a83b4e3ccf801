//! How much memory a client takes: CLIENT LIST's tot-mem, INFO's mem_clients_normal, and what
//! `maxmemory-clients` limits (`worker/client_eviction.rs`).
use super::server::Server;
use super::session::ClientRecord;
use std::sync::atomic::Ordering::Relaxed;

/// What a worker keeps of a connection beside its record and its buffers: the size of its `Connection`, which
/// asserts it.
pub(crate) const CONNECTION_BYTES: usize = 256;

/// What a client takes that has nothing in its buffers.
pub(crate) const IDLE_BYTES: u64 = (size_of::<ClientRecord>() + CONNECTION_BYTES) as u64;

/// What one client takes now, buffers and what it has queued included: CLIENT LIST's tot-mem.
pub(crate) fn bytes_of(record: &ClientRecord) -> u64 {
    let parts = [
        &record.query_buffer_bytes,
        &record.output_buffer_bytes,
        &record.tls_bytes,
        &record.subscription_bytes,
        &record.waiter_bytes,
        &record.tracking_bytes,
        &record.queue_bytes,
        &record.watched_bytes,
        &record.name_bytes,
    ];
    IDLE_BYTES + parts.iter().map(|bytes| bytes.load(Relaxed)).sum::<u64>()
}

/// What all clients take: INFO's mem_clients_normal. It locks the list of clients and goes through all of it.
pub(crate) fn total_bytes(server: &Server) -> u64 {
    server.clients().values().map(|record| bytes_of(record)).sum()
}
