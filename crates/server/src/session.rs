//! One connection's state. The part that other workers may read or poke (CLIENT LIST, CLIENT KILL) is its card.
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

/// What any worker may see of a connection: registered in `Shared::clients` while it lives.
pub(crate) struct Card {
    pub(crate) id: u64,
    pub(crate) peer: net::Peer,
    /// The fd's number, for CLIENT LIST.
    pub(crate) fd: i32,
    pub(crate) worker: usize,
    pub(crate) created_ms: i64,
    pub(crate) last_active_ms: AtomicI64,
    pub(crate) commands: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) query_buffer_bytes: AtomicU64,
    pub(crate) output_buffer_bytes: AtomicU64,
    /// Set by CLIENT KILL, which then wakes the worker: the worker closes the connection at its next turn.
    pub(crate) is_killed: AtomicBool,
    /// What changes rarely, behind a lock.
    pub(crate) face: Mutex<Face>,
}

/// The rarely changing part of a card.
#[derive(Clone, Debug, Default)]
pub(crate) struct Face {
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_ver: Vec<u8>,
    pub(crate) user: String,
    pub(crate) db: u16,
    pub(crate) is_resp3: bool,
    /// The last command, lower case, as CLIENT LIST's `cmd`.
    pub(crate) last_command: &'static str,
}

/// The worker's own part.
pub(crate) struct Session {
    pub(crate) card: Arc<Card>,
    pub(crate) db: u16,
    pub(crate) is_authenticated: bool,
    /// QUIT, a protocol error, CLIENT KILL of itself: close once the replies have left.
    pub(crate) closes_after_reply: bool,
}
