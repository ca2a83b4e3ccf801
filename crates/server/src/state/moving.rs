//! Keys that are on their way to another server (MIGRATE), or that a command elsewhere is working on; and
//! connections to other servers that are kept for the next MIGRATE.
//!
//! As in Redis nobody sees or changes a key between the moment at which it is sent and the one at which it is
//! deleted here. Redis stands still for that; here requests that name such a key are held back, and all
//! others run. Keys are added only while all gates are held, so whoever begins a batch sees them.
//!
//! A command that writes and runs elsewhere *holds* its keys: requests that may change one of them wait, so
//! that it does not have to begin anew; those that read go on. They are held by and by: a worker may miss it
//! for the rest of its batch, and what it changes is seen when the command has run
//! (`core/dispatch/writing.rs`).
use base::Millis;
use std::collections::{BTreeMap, BTreeSet};
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
    /// How many keys there are, of both kinds.
    count: AtomicUsize,
    keys: Mutex<BTreeSet<(u16, Vec<u8>)>>,
    /// Those that are held, and by how many commands.
    held: Mutex<BTreeMap<(u16, Vec<u8>), usize>>,
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
        let before = keys.len();
        keys.extend(names.map(|name| (db, name.to_vec())));
        self.count.fetch_add(keys.len() - before, Relaxed);
    }

    /// They are not any more.
    pub(crate) fn end<'k>(&self, db: u16, names: impl Iterator<Item = &'k [u8]>) {
        let mut keys = lock(&self.keys);
        let before = keys.len();
        for name in names {
            keys.remove(&(db, name.to_vec()));
        }
        self.count.fetch_sub(before - keys.len(), Relaxed);
    }

    /// From here on requests that may change these keys are held back.
    pub(crate) fn hold(&self, db: u16, names: &[Vec<u8>]) {
        let mut held = lock(&self.held);
        for name in names {
            *held.entry((db, name.clone())).or_default() += 1;
        }
        self.count.fetch_add(names.len(), Relaxed);
    }

    /// One command fewer holds each of these keys.
    pub(crate) fn let_go(&self, db: u16, names: &[Vec<u8>]) {
        let mut held = lock(&self.held);
        for name in names {
            let key = (db, name.clone());
            let holders = held.get_mut(&key).expect("it is held");
            *holders -= 1;
            if *holders == 0 {
                held.remove(&key);
            }
        }
        self.count.fetch_sub(names.len(), Relaxed);
    }

    /// Whether any of these keys is moving or, for a request that may change it, held.
    pub(crate) fn has_any<'k>(
        &self,
        db: u16,
        names: impl Iterator<Item = &'k [u8]>,
        may_change: bool,
    ) -> bool {
        let (keys, held) = (lock(&self.keys), lock(&self.held));
        if keys.is_empty() && !may_change {
            return false;
        }
        let mut names = names.map(|name| (db, name.to_vec()));
        names.any(|key| keys.contains(&key) || may_change && held.contains_key(&key))
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
