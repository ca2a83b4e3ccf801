//! The event loop: sockets in, events out. One trait, two engines (epoll, io_uring), and TLS over either.
//! Knows nothing of what the bytes mean. One engine belongs to one thread.
mod accept_pause;
mod alarm;
mod conn_table;
mod epoll;
mod listener;
mod mapped_file;
mod meter;
mod program_code;
mod send_queue;
mod socket;
#[cfg(test)]
mod tests;
mod tls;
mod tls_engine;
mod turn_queue;
mod uring;
mod waker;

use base::Millis;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use listener::Listener;
pub use mapped_file::{MappedFile, MappedPart};
pub use meter::{Meter, Scale, Tick};
pub use program_code::map_code;
pub use tls::{AuthClients, Tls, TlsSettings, TlsStream};
pub use waker::Waker;

/// One connection of one engine. Never reused while an event for it may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    /// The slot of the engine's table.
    pub index: u32,
    /// Raised whenever the slot's connection goes; never 0.
    pub generation: u32,
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Both addresses.
    Tcp { peer: SocketAddr, local: SocketAddr },
    /// The socket file through which it came.
    Unix { path: PathBuf },
}

/// An accepted socket on its way from the worker that accepted it to the one that will serve it.
pub struct Accepted {
    pub fd: std::os::fd::OwnedFd,
    pub peer: Peer,
    /// The client has connected to a listener for TLS: pass the socket to `Engine::adopt_with`.
    pub is_secure: bool,
}

impl Accepted {
    /// Gives the socket its options. An error is no reason to close it: the connection works without them.
    pub fn set_up(&self, options: SocketOptions) -> io::Result<()> {
        match self.peer {
            Peer::Tcp { .. } => socket::set_up(&self.fd, options),
            Peer::Unix { .. } => Ok(()),
        }
    }
}

/// How accepted sockets are set up.
#[derive(Clone, Copy, Debug, Default)]
pub struct SocketOptions {
    /// `tcp-keepalive` in seconds, 0 = off. A value that is too large for the kernel is lowered to the
    /// greatest that it takes. TCP_NODELAY is always set.
    pub keepalive_s: u32,
}

/// What a poll has found.
pub enum Event {
    /// A connection that nobody serves yet: pass it to `Engine::adopt` of some worker, or drop it to close
    /// it.
    Accepted(Accepted),
    /// A client waits to be accepted, but the system has no descriptor or memory for it. Accepting is tried
    /// again after a pause.
    Refused(io::Error),
    /// Bytes (or the end) wait for `receive`. Told once for what has come: call `receive`, or `pause` and
    /// `resume`.
    Readable(ConnId),
    /// The kernel has taken all that was queued by `send`, after some of it was left at the end of a poll, or
    /// was kept back. What waits for its turn counts where it is much. It may also be told where nothing was
    /// left.
    Drained(ConnId),
    /// The connection has failed, after what had arrived before was told of, or was closed by `close`. Its id
    /// names nothing after this. A connection of a later poll may have its index, none of this poll has.
    Gone(ConnId),
    /// The handshake of TLS has failed, for this reason. `Gone` follows, and nothing can be received.
    Unsecured(ConnId, io::Error),
    /// `Waker::wake` was called at least once since the last poll.
    Woken,
}

/// What `Engine::receive` has found.
pub enum Received {
    /// This many bytes were appended.
    Bytes(usize),
    /// Nothing has arrived that was not received.
    Empty,
    /// The peer has shut down its side; it may still read.
    End,
    /// The connection has failed; `Event::Gone` follows.
    Failed(io::Error),
}

/// How long a poll may wait for news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Only what is there already is collected.
    Not,
    /// At most until then, by the system's clock.
    Until(Millis),
    Forever,
}

impl Wait {
    /// At most so long from now on.
    pub fn at_most(time: Duration) -> Wait {
        if time.is_zero() {
            return Wait::Not;
        }
        let time_ms = time.as_nanos().div_ceil(1_000_000);
        i64::try_from(time_ms).ok().and_then(|ms| now().checked_add(ms)).map_or(Wait::Forever, Wait::Until)
    }

    /// Not longer than until `due`, if that is given.
    fn or_until(self, due: Option<Millis>) -> Wait {
        match (self, due) {
            (Wait::Until(own), Some(due)) => Wait::Until(own.min(due)),
            (Wait::Forever, Some(due)) => Wait::Until(due),
            (wait, _) => wait,
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "net may read the clock: for waits, pauses in accepting, and deadlines of TLS"
)]
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(since.as_millis() as i64)
}

/// The most descriptors that an engine has open by itself: epoll takes one, its waker and its alarm one each.
pub const DESCRIPTORS_MAX: usize = 3;

/// An event loop over one worker's connections. Calls that name a connection which is gone do nothing, but
/// that `receive` fails.
pub trait Engine: Send {
    /// Accepts from this listener (shared with other engines) from the next poll on.
    fn listen(&mut self, listener: Arc<Listener>) -> io::Result<()>;
    /// Stops accepting, on all listeners.
    fn stop_listening(&mut self);
    /// Whether the kernel may still hold a listener for this engine: after `stop_listening`, until polls have
    /// told that it lets go. A process that ends earlier leaves the address taken for a moment.
    fn is_listening(&self) -> bool;
    /// What wakes this engine from other threads.
    fn waker(&self) -> Waker;
    /// Takes over a socket and reports on it from now on. On an error the socket is closed.
    fn adopt(&mut self, accepted: Accepted) -> io::Result<ConnId>;
    /// Takes over a socket whose client speaks TLS: all that is received and sent by it is plaintext. Until
    /// its handshake is done no event tells of it but `Unsecured` and `Gone`.
    fn adopt_with(&mut self, _: Accepted, _: &Tls) -> io::Result<ConnId> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Submits what is queued, waits for something to happen, appends what happened. It may come back early,
    /// with nothing.
    fn poll(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()>;
    /// Appends what has arrived to `into`, at most about `limit` bytes. After `Bytes` more may wait: the
    /// engine raises `Readable` again at the next poll if so.
    fn receive(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received;
    /// Queues all of `data` and leaves it empty (perhaps another, recycled buffer). The next `poll` sends it,
    /// so that all replies of a batch leave together and several to one connection in one call. Returns what
    /// `unsent_bytes` then says.
    fn send(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize;
    /// As `send`, but much data may leave at once, as far as the kernel takes it: the client may have it
    /// before anything that the caller does next.
    fn send_at_once(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        self.send(id, data)
    }
    /// Hands pieces to the kernel now, from where they lie, as far as it takes them at once; returns how many
    /// bytes that were. That is 0 where something waits before them, or where they cannot be sent as they
    /// are: then they are to be queued.
    fn send_from(&mut self, _: ConnId, _: &[IoSlice<'_>]) -> usize {
        0
    }
    /// As `send`, for what nobody waits for, such as messages to many: it leaves when the connection has its
    /// turn, or with what `send` queues behind it. Each poll sends to some connections, those first that have
    /// waited longest, and does not wait while there are more (`turn_queue`).
    fn send_in_turn(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize;
    /// Bytes of all connections that wait for their turn.
    fn in_turn_bytes(&self) -> usize;
    /// Bytes of memory that the engine keeps for what is sent next. Any thread may read them.
    fn spare_bytes(&self) -> Arc<AtomicUsize>;
    /// Frees what of that was not needed since this was called last.
    fn free_spare(&mut self);
    /// Hands what waits for this connection's turn to the kernel now, as far as it is taken at once.
    fn try_now(&mut self, id: ConnId);
    /// Bytes queued and not yet taken by the kernel, with those that the next `poll` will try for the first
    /// time.
    fn unsent_bytes(&self, id: ConnId) -> usize;
    /// Bytes of memory that TLS takes for this connection: its keys, and what has come and cannot be received
    /// yet, because it is not a whole record or more than was asked for.
    fn tls_bytes(&self, _: ConnId) -> usize {
        0
    }
    /// What is queued for this connection, now and from here on, is not handed to the kernel before `let_go`.
    fn keep_back(&mut self, id: ConnId);
    /// Ends a `keep_back`: the next poll sends what is queued.
    fn let_go(&mut self, id: ConnId);
    /// No `Readable` for this connection until `resume`: the client does not read what we send, or what it
    /// has sent waits to be worked off. If the peer resets meanwhile, or has, `Gone` tells of it.
    fn pause(&mut self, id: ConnId);
    /// Ends a `pause`. The next poll tells `Readable` if something has come meanwhile.
    fn resume(&mut self, id: ConnId);
    /// Hands a few bytes to the kernel at once, before a close. They are lost where others wait before them,
    /// or the kernel does not take them.
    fn last_words(&mut self, id: ConnId, words: &[u8]);
    /// Closes: after what is queued has left, or at once. `Gone` follows.
    fn close(&mut self, id: ConnId, when: CloseWhen);
}

/// When a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseWhen {
    /// Once all that is queued has left. Nothing is read any more.
    Flushed,
    /// At once: what is queued is dropped, but that the kernel is offered what waits for its turn.
    Now,
}

/// The setting `io-engine`. docs/decisions/epoll-or-io-uring.md says why epoll is its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// io_uring where the kernel accepts all that is needed, else epoll.
    Auto,
    Epoll,
    Uring,
}

/// The engine that was made, its name ("epoll", "io_uring"), and, for `Auto`, why io_uring was refused.
pub struct Opened {
    pub engine: Box<dyn Engine>,
    pub name: &'static str,
    pub refused: Option<io::Error>,
}

/// Makes an engine. It may be opened on one thread and moved to another; it belongs to the thread that first
/// polls it.
pub fn open(kind: EngineKind) -> io::Result<Opened> {
    match kind {
        EngineKind::Epoll => open_epoll(None),
        EngineKind::Uring => open_uring(),
        EngineKind::Auto => open_uring().or_else(|refused| open_epoll(Some(refused))),
    }
}

fn open_epoll(refused: Option<io::Error>) -> io::Result<Opened> {
    Ok(Opened { engine: Box::new(tls_engine::TlsEngine::over(epoll::Epoll::new()?)), name: "epoll", refused })
}

fn open_uring() -> io::Result<Opened> {
    Ok(Opened {
        engine: Box::new(tls_engine::TlsEngine::over(uring::Uring::new()?)),
        name: "io_uring",
        refused: None,
    })
}
