//! The event loop: sockets in, events out. One trait, two engines (epoll, io_uring). Knows nothing of what
//! the bytes mean. One engine belongs to one thread.
mod alarm;
mod epoll;
mod listener;
mod meter;
mod program;
mod queue;
mod rest;
mod socket;
mod table;
#[cfg(test)]
mod tests;
mod uring;
mod waker;

use base::Millis;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use listener::Listener;
pub use meter::{Meter, Scale, Tick};
pub use program::map_code;
pub use waker::Waker;

/// One connection of one engine. Never reused while an event for it may still come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId {
    pub index: u32,
    pub generation: u32,
}

/// The other side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp { peer: SocketAddr, local: SocketAddr },
    Unix { path: PathBuf },
}

/// An accepted socket on its way from the worker that accepted it to the one that will serve it.
pub struct Accepted {
    pub fd: std::os::fd::OwnedFd,
    pub peer: Peer,
}

impl Accepted {
    /// Gives the socket its options; whoever serves it can do without those that the system refuses.
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
    /// `tcp-keepalive` in seconds, 0 = off; more than the kernel knows is the most that it knows.
    /// TCP_NODELAY is always set.
    pub keepalive_s: u32,
}

pub enum Event {
    /// Nobody serves it yet: pass it to `Engine::adopt` of some worker, or drop it to close.
    Accepted(Accepted),
    /// Somebody waits to be accepted, for whom the system has no descriptor or memory: it is
    /// tried again after a while.
    Refused(io::Error),
    /// Bytes (or the end) wait for `receive`. Told once for what has come: call `receive`, or
    /// `pause` and `resume`.
    Readable(ConnId),
    /// All that was queued by `send` has left, after it could not leave at once.
    Drained(ConnId),
    /// The connection failed, after what had arrived before was told, or was closed by `close`; its id is
    /// dead after this. A later poll's connection may have its index, none of this poll's.
    Gone(ConnId),
    /// `Waker::wake` was called at least once since the last poll.
    Woken,
}

pub enum Received {
    /// This many bytes were appended.
    Bytes(usize),
    /// Nothing waits now.
    Empty,
    /// The peer has shut down its side; it may still read.
    End,
    Failed(io::Error),
}

/// How long a poll may wait for news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Not,
    /// By the system's clock.
    Until(Millis),
    Forever,
}

impl Wait {
    /// From now on.
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
    reason = "net may read the clock: here only when accepting rests, and io_uring's waits"
)]
fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(since.as_millis() as i64)
}

/// The most descriptors that an engine has open by itself: epoll takes one, its waker and its alarm one each.
pub const DESCRIPTORS_MAX: usize = 3;

/// What a worker drives.
pub trait Engine: Send {
    /// Accepts from this listener (shared with other engines) from the next poll on.
    fn listen(&mut self, listener: Arc<Listener>) -> io::Result<()>;
    /// Stops accepting, on all listeners.
    fn stop_listening(&mut self);
    /// Whether the kernel may still hold a listener for this engine: after `stop_listening`, until polls have
    /// told that it lets go. A process that ends earlier leaves the address taken for a moment.
    fn is_listening(&self) -> bool;
    fn waker(&self) -> Waker;
    /// Takes over a socket.
    fn adopt(&mut self, accepted: Accepted) -> io::Result<ConnId>;
    /// Submits what is queued, waits for something to happen, appends what happened. It may come
    /// back early, with nothing.
    fn poll(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()>;
    /// Appends what has arrived to `into`, at most about `limit` bytes. After `Bytes` more may wait: the
    /// engine raises `Readable` again at the next poll if so.
    fn receive(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received;
    /// Queues all of `data` and leaves it empty (perhaps another, recycled buffer). The next `poll` sends it,
    /// so that all replies of a batch leave together and several to one connection in one call. Returns what
    /// `unsent_bytes` then says.
    fn send(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize;
    /// The same, but what is much may leave at once, as far as the kernel takes it: the client may have it
    /// before anything that the caller does next.
    fn send_at_once(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        self.send(id, data)
    }
    /// Bytes queued and not yet taken by the kernel, with those that the next `poll` will try
    /// for the first time.
    fn unsent_bytes(&self, id: ConnId) -> usize;
    /// No `Readable` for this connection until `resume`: the client does not read what we send, or what it
    /// has sent waits to be worked off. If the peer resets meanwhile, or has, `Gone` tells of it.
    fn pause(&mut self, id: ConnId);
    fn resume(&mut self, id: ConnId);
    /// Closes: after what is queued has left, or at once. `Gone` follows.
    fn close(&mut self, id: ConnId, when: CloseWhen);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseWhen {
    Flushed,
    Now,
}

/// `io-engine`. Which is better was measured again and again. By `examples/echo_bench.rs` the two were even:
/// at depth 1 epoll took 0.81 to 0.91 of redis-server's processor time a request, io_uring 0.80 to 0.89. By
/// whole servers and whole commands epoll is ahead at depth 1, and neither beyond
/// (docs/decisions/epoll-or-io-uring.md has the figures), so it is the default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
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

/// Makes an engine. `Auto` takes io_uring where the kernel accepts all that is needed, and epoll otherwise.
///
/// An engine may be opened on one thread and moved to another; it then belongs to the thread
/// that first polls it.
pub fn open(kind: EngineKind) -> io::Result<Opened> {
    match kind {
        EngineKind::Epoll => open_epoll(None),
        EngineKind::Uring => open_uring(),
        EngineKind::Auto => open_uring().or_else(|refused| open_epoll(Some(refused))),
    }
}

fn open_epoll(refused: Option<io::Error>) -> io::Result<Opened> {
    Ok(Opened { engine: Box::new(epoll::Epoll::new()?), name: "epoll", refused })
}

fn open_uring() -> io::Result<Opened> {
    Ok(Opened { engine: Box::new(uring::Uring::new()?), name: "io_uring", refused: None })
}
