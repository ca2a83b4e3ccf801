//! Keys that are on their way to another server (MIGRATE), and connections to such servers that are kept for
//! the next.
//!
//! As in Redis nobody sees or changes a key between the moment at which it is sent and the one at which it is
//! deleted here. Redis stands still for that; here requests that name such a key are held back, and all
//! others run. Keys are added only while all gates are held, so whoever begins a batch sees them.
use base::Millis;
use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection that nobody has used for so long is closed.
const IDLE_MS: i64 = 10_000;
/// So many are kept at most.
const SOCKETS_MAX: usize = 64;

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Moving {
    /// How many keys there are.
    count: AtomicUsize,
    keys: Mutex<BTreeSet<(u16, Vec<u8>)>>,
    sockets: Mutex<Vec<Socket>>,
}

/// A connection to another server.
pub(crate) struct Socket {
    /// As the client has named the server.
    pub(crate) target: (Vec<u8>, Vec<u8>),
    pub(crate) stream: TcpStream,
    /// The database that is selected there; None where that is not known.
    pub(crate) db: Option<i64>,
    used: Millis,
}

impl Socket {
    pub(crate) fn new(target: (Vec<u8>, Vec<u8>), stream: TcpStream) -> Socket {
        // Whoever has connected speaks to the first database.
        Socket { target, stream, db: None, used: Millis(0) }
    }
}

impl Moving {
    /// Whether there is any.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// From here on requests that name these keys are held back. The caller holds all gates.
    pub(crate) fn begin<'k>(&self, db: u16, names: impl Iterator<Item = &'k [u8]>) {
        let mut keys = lock(&self.keys);
        keys.extend(names.map(|name| (db, name.to_vec())));
        self.count.store(keys.len(), Relaxed);
    }

    /// They are not any more.
    pub(crate) fn end<'k>(&self, db: u16, names: impl Iterator<Item = &'k [u8]>) {
        let mut keys = lock(&self.keys);
        for name in names {
            keys.remove(&(db, name.to_vec()));
        }
        self.count.store(keys.len(), Relaxed);
    }

    /// Whether any of these keys is.
    pub(crate) fn has_any<'k>(&self, db: u16, mut names: impl Iterator<Item = &'k [u8]>) -> bool {
        let keys = lock(&self.keys);
        names.any(|name| keys.contains(&(db, name.to_vec())))
    }

    /// A connection to this server that is kept and that nobody uses.
    pub(crate) fn take_socket(&self, target: &(Vec<u8>, Vec<u8>)) -> Option<Socket> {
        let mut sockets = lock(&self.sockets);
        let at = sockets.iter().rposition(|socket| socket.target == *target)?;
        Some(sockets.swap_remove(at))
    }

    /// Keeps a connection for the next.
    pub(crate) fn keep_socket(&self, socket: Socket, now: Millis) {
        let mut sockets = lock(&self.sockets);
        if sockets.len() < SOCKETS_MAX {
            sockets.push(Socket { used: now, ..socket });
        }
    }

    /// Closes those that were not used for a while.
    pub(crate) fn close_idle(&self, now: Millis) {
        lock(&self.sockets).retain(|socket| now.0 - socket.used.0 <= IDLE_MS);
    }

    /// How many connections are kept.
    pub(crate) fn sockets(&self) -> usize {
        lock(&self.sockets).len()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
