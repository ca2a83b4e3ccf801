//! What all workers share.
use crate::config::Config;
use crate::registry::Registry;
use crate::session::Card;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};
use store::Keyspace;

pub(crate) struct Shared {
    pub(crate) keyspace: Keyspace,
    pub(crate) registry: Registry,
    /// The configuration in force; CONFIG SET replaces it as a whole and raises `config_version`, which workers
    /// compare once a batch to refresh their own copy.
    pub(crate) config: RwLock<Arc<Config>>,
    pub(crate) config_version: AtomicU64,
    pub(crate) clients: Mutex<BTreeMap<u64, Arc<Card>>>,
    pub(crate) next_client_id: AtomicU64,
    /// One waker a worker.
    pub(crate) wakers: Vec<net::Waker>,
    pub(crate) is_stopping: AtomicBool,
    pub(crate) stats: crate::shared::Stats,
    /// 40 hex digits, INFO's run_id.
    pub(crate) run_id: String,
    pub(crate) started_ms: i64,
}

/// Counters that no worker owns; those of a worker's hot path are its own and summed on demand.
#[derive(Default)]
pub(crate) struct Stats {
    pub(crate) connections_received: AtomicU64,
    pub(crate) connections_rejected: AtomicU64,
}
