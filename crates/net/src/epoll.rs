//! The engine over epoll, for every kernel. On the path of every request: one `recv`, one `send`, and a share
//! of one `epoll_wait`; no `epoll_ctl`.
//!
//! Sockets are watched by edge: it spares the kernel a second look at each socket at the next wait. (Levels
//! were not measured against it.) The price is that the engine must remember what an edge told it until it
//! has been acted on:
//!
//! ```text
//! edge says          kept as       until
//! readable           is_unread     `receive` reads less than it asked for; a full read puts it on `again`,
//!                                  and so does `resume` if it was paused meanwhile
//! hung up or error   is_hung_up    for ever: `receive` goes on until the end or the error; no edge follows
//! writable           (acted on)    the queue is empty, or the kernel takes no more: another edge follows
//! ```
//!
//! Sends are queued and written by the next poll, so that several to one connection share a call
//! (docs/decisions/sends-wait-for-the-poll.md). Long data is written at once, from the caller's buffer, where
//! the caller agrees (`send_at_once`): it still lies in the cache, and its room is free for what follows.
//!
//! What is sent in turn (`send_in_turn`) is written by later polls, some connections at a time
//! (`turn_queue`).
//!
//! Edges of writability are asked for only while something is queued: a Unix socket would raise one for every
//! reply that its peer reads.
//!
//! A connection is *open*; then *flushing*, when closed with something queued (nothing is read any more);
//! then *dying*, when closed or failed: it is on `dying`, and the next `poll` takes it out of the table,
//! closes its socket and reports `Gone`. Only then can its slot be used again, so no event still in the
//! kernel can be mistaken.
use crate::accept_pause::AcceptPause;
use crate::alarm::Alarm;
use crate::conn_table::{Life, Table};
use crate::listener::Listener;
use crate::send_queue::{Pool, SendQueue, try_send};
use crate::turn_queue::{MUCH_BYTES, TurnQueue};
use crate::{Accepted, CloseWhen, ConnId, Engine, Event, Peer, Received, Wait, Waker, socket};
use base::Millis;
use std::hint::cold_path;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// Events taken from the kernel at once; what does not fit comes with the next poll.
const EVENTS_MAX: usize = 512;
/// Connections accepted from one listener in one poll, so that a storm of connects does not starve requests.
const ACCEPTS_MAX: usize = 256;
/// Pieces handed to the kernel in one call.
const PIECES_MAX: usize = 64;
/// Calls that one connection's queue may take in one poll.
const FLUSH_CALLS_MAX: usize = 8;
/// From this many bytes on, data is worth a call of its own.
const SEND_AT_ONCE_BYTES: usize = 16 << 10;

const READ_EDGES: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
const WRITE_EDGES: u32 = READ_EDGES | libc::EPOLLOUT as u32;
const HANGUP: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

struct Conn {
    fd: OwnedFd,
    life: Life,
    is_tcp: bool,
    is_paused: bool,
    /// Something has arrived, or may have, and no edge will tell of it again.
    is_unread: bool,
    is_hung_up: bool,
    /// Nothing sent will arrive: the peer has reset the connection, or sending has failed.
    is_failed: bool,
    /// `receive` has told the end.
    has_ended: bool,
    /// On the `again` list.
    is_again: bool,
    /// On the `unsent` list: the first `send` since the last poll put it there.
    is_unsent: bool,
    /// Edges of writability are asked for: the kernel would take no more.
    is_blocked: bool,
    /// The caller wants nothing to be sent: `is_blocked` then says that too.
    is_kept_back: bool,
    /// Something was left after a poll, so `Drained` is told also where the kernel takes all at once.
    owes_drained: bool,
    queue: SendQueue,
    /// Bytes of the queue that wait for this connection's turn. More may wait before and behind them, and
    /// leave with them.
    in_turn_bytes: usize,
}

pub(crate) struct Epoll {
    epoll: OwnedFd,
    waker: Waker,
    alarm: Alarm,
    table: Table<Conn>,
    listeners: Vec<Arc<Listener>>,
    /// While it lasts no listener is watched.
    accept_pause: AcceptPause,
    again: Vec<ConnId>,
    unsent: Vec<ConnId>,
    in_turn: TurnQueue,
    dying: Vec<ConnId>,
    pool: Pool,
    events: Vec<libc::epoll_event>,
}

/// What an event's 64 bits name. A connection's generation is never 0.
const WAKER_TOKEN: u64 = 0;
const ALARM_TOKEN: u64 = 1;

/// The token of a connection.
fn token_of(id: ConnId) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.index)
}

fn token_of_listener(index: usize) -> u64 {
    2 + index as u64
}

enum Named {
    Waker,
    Alarm,
    Listener(usize),
    Conn(ConnId),
}

/// What a token names.
fn named_by(token: u64) -> Named {
    match ((token >> 32) as u32, token as u32) {
        (0, 0) => Named::Waker,
        (0, 1) => Named::Alarm,
        (0, n) => Named::Listener(n as usize - 2),
        (generation, index) => Named::Conn(ConnId { index, generation }),
    }
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers; the result is checked before it is used.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let waker = Waker::new()?;
        let engine = Epoll {
            epoll,
            waker,
            alarm: Alarm::new()?,
            table: Table::new(),
            listeners: Vec::new(),
            accept_pause: AcceptPause::default(),
            again: Vec::new(),
            unsent: Vec::new(),
            in_turn: TurnQueue::new(),
            dying: Vec::new(),
            pool: Pool::default(),
            events: Vec::with_capacity(EVENTS_MAX),
        };
        let edges = (libc::EPOLLIN | libc::EPOLLET) as u32;
        engine.control(libc::EPOLL_CTL_ADD, engine.waker.fd(), edges, WAKER_TOKEN)?;
        engine.control(libc::EPOLL_CTL_ADD, engine.alarm.fd(), edges, ALARM_TOKEN)?;
        Ok(engine)
    }

    /// Adds, changes or removes what is watched of a descriptor.
    fn control(&self, operation: i32, fd: RawFd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` lives through the call, which only reads it.
        match unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Watches a listener. Of the engines that watch it, one is told of each connection.
    fn watch(&self, index: usize) -> io::Result<()> {
        let events = (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32;
        self.control(libc::EPOLL_CTL_ADD, self.listeners[index].fd(), events, token_of_listener(index))
    }

    /// Watches no listener any more. One that was not watched, because of a pause in accepting, is no error.
    fn unwatch_all(&self) {
        for listener in &self.listeners {
            let _ = self.control(libc::EPOLL_CTL_DEL, listener.fd(), 0, 0);
        }
    }

    /// Watches the listeners again once the pause in accepting is over. Returns until when it still lasts. A
    /// listener that cannot be watched begins another pause for all of them.
    #[cold]
    fn end_accept_pause(&mut self, events: &mut Vec<Event>) -> Option<Millis> {
        if self.accept_pause.has_ended()
            && let Err(error) = (0..self.listeners.len()).try_for_each(|index| self.watch(index))
        {
            self.begin_accept_pause(error, events);
        }
        self.accept_pause.until()
    }

    /// Stops watching the listeners for a while.
    #[cold]
    fn begin_accept_pause(&mut self, error: io::Error, events: &mut Vec<Event>) {
        self.unwatch_all();
        self.accept_pause.begin();
        events.push(Event::Refused(error));
    }

    /// Accepts what waits on a listener.
    #[inline(never)]
    fn accept_from(&mut self, index: usize, events: &mut Vec<Event>) {
        let Some(listener) = self.listeners.get(index) else { return };
        for number in 0..ACCEPTS_MAX {
            match listener.accept() {
                Ok(accepted) => events.push(Event::Accepted(accepted)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // Some of those who were accepted may be turned away, which makes room: the next poll sees.
                Err(e) if AcceptPause::is_needed(&e) && number > 0 => return,
                Err(e) if AcceptPause::is_needed(&e) => return self.begin_accept_pause(e, events),
                // This connection failed before it was accepted; the next may be well.
                Err(_) => {}
            }
        }
    }

    /// Reports connections that are gone, and those that have something to read of which no edge will tell.
    #[inline(never)]
    fn report_kept(&mut self, events: &mut Vec<Event>) {
        for id in self.dying.drain(..) {
            self.table.remove(id);
            events.push(Event::Gone(id));
        }
        for id in self.again.drain(..) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_again = false;
            if conn.life == Life::Open && !conn.is_paused {
                events.push(Event::Readable(id));
            }
        }
    }

    /// Waits in the kernel, by the system call itself (`socket.rs` says why). Returns how many events came.
    fn wait(&mut self, wait: Wait) -> io::Result<usize> {
        let timeout_ms = match wait {
            Wait::Not => 0,
            Wait::Forever => -1,
            Wait::Until(due) => {
                self.alarm.ring_by(due)?;
                -1
            }
        };
        let (fd, room) = (self.epoll.as_raw_fd(), EVENTS_MAX as i32);
        let no_mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: `events` has room for EVENTS_MAX events, all of which may be written.
        let n = unsafe {
            let events = self.events.as_mut_ptr();
            libc::syscall(libc::SYS_epoll_pwait, fd, events, room, timeout_ms, no_mask, 0_usize)
        };
        if let Ok(n) = usize::try_from(n) {
            // SAFETY: the kernel has written the first `n` events.
            unsafe { self.events.set_len(n) };
            return Ok(n);
        }
        cold_path();
        match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(0),
            e => Err(e),
        }
    }

    /// Acts on what the kernel tells of a connection.
    fn on_edge(&mut self, id: ConnId, edges: u32, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if edges & libc::EPOLLOUT as u32 != 0 && conn.is_blocked && !conn.is_kept_back {
            cold_path();
            self.flush(id, events);
        }
        let Some(conn) = self.table.get_mut(id) else { return };
        conn.is_hung_up |= edges & HANGUP != 0;
        conn.is_failed |= edges & libc::EPOLLERR as u32 != 0;
        match conn.life {
            // The peer is gone. Nobody reads this connection any more, so nobody else would find out.
            Life::Open if (conn.is_paused || conn.has_ended) && edges & libc::EPOLLERR as u32 != 0 => {
                cold_path();
                self.kill(id)
            }
            Life::Open if edges & (HANGUP | libc::EPOLLIN as u32) != 0 => {
                conn.is_unread = true;
                if !conn.is_paused {
                    events.push(Event::Readable(id));
                }
            }
            // The peer can take no more of what is queued.
            Life::Flushing if edges & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0 => {
                cold_path();
                self.kill(id)
            }
            _ => cold_path(),
        }
    }

    /// Sends what has been queued since the last poll.
    fn flush_unsent(&mut self, events: &mut Vec<Event>) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for id in unsent.drain(..) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_unsent = false;
            if !conn.is_blocked {
                self.flush(id, events);
            }
        }
        self.unsent = unsent;
    }

    /// Sends to connections whose turn it is.
    #[inline(never)]
    fn flush_in_turn(&mut self, events: &mut Vec<Event>) {
        self.in_turn.begin();
        while let Some(id) = self.in_turn.next() {
            let Some(conn) = self.table.get_mut(id) else { continue };
            self.in_turn.release(&mut conn.in_turn_bytes);
            if !conn.is_blocked && !conn.queue.is_empty() {
                conn.owes_drained |= conn.queue.bytes() > MUCH_BYTES;
                self.flush(id, events);
            }
        }
        self.in_turn.end();
    }

    /// Writes what is queued as far as the kernel takes it.
    fn flush(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        for _ in 0..FLUSH_CALLS_MAX {
            match write_queued(conn) {
                Ok(sent) => conn.queue.advance(sent, &mut self.pool),
                Err(e) => {
                    cold_path();
                    match e.kind() {
                        io::ErrorKind::WouldBlock => break,
                        io::ErrorKind::Interrupted => continue,
                        _ => return self.fail(id),
                    }
                }
            }
            if conn.queue.is_empty() {
                return self.on_emptied(id, events);
            }
        }
        cold_path();
        // Either the kernel takes no more, or it would but others wait too: asking anew raises an edge then.
        conn.is_blocked = true;
        self.ask_edges(id, WRITE_EDGES);
    }

    /// All that was queued has left.
    fn on_emptied(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.life == Life::Flushing {
            cold_path();
            return self.finish(id);
        }
        if conn.is_blocked || conn.owes_drained {
            cold_path();
            conn.owes_drained = false;
            events.push(Event::Drained(id));
            if std::mem::take(&mut conn.is_blocked) {
                self.ask_edges(id, READ_EDGES);
            }
        }
    }

    /// Asks for other edges of a connection. Raises those whose condition holds already.
    fn ask_edges(&mut self, id: ConnId, edges: u32) {
        let Some(conn) = self.table.get(id) else { return };
        let fd = conn.fd.as_raw_fd();
        if self.control(libc::EPOLL_CTL_MOD, fd, edges, token_of(id)).is_err() {
            // Without edges it would hang for ever.
            self.kill(id);
        }
    }

    /// All has been sent: closes so that the peer gets it.
    fn finish(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get(id)
            && conn.is_tcp
        {
            socket::discard(conn.fd.as_raw_fd());
        }
        self.kill(id);
    }

    /// Sending has failed. What the peer has sent before that can still be received, where that was not told
    /// to wait.
    #[cold]
    fn fail(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.life != Life::Open || conn.is_paused || conn.has_ended || conn.is_failed {
            return self.kill(id);
        }
        socket::shut_down(conn.fd.as_raw_fd());
        conn.queue = SendQueue::default();
        conn.is_blocked = false;
        (conn.is_failed, conn.is_hung_up, conn.is_unread) = (true, true, true);
        self.remember(id);
    }

    /// The connection is dying from now on: the next poll reports it gone.
    fn kill(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.life != Life::Dying {
            conn.life = Life::Dying;
            conn.queue = SendQueue::default();
            self.in_turn.release(&mut conn.in_turn_bytes);
            self.dying.push(id);
        }
    }

    /// Has the next poll report that there is something to read.
    fn remember(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get_mut(id)
            && !conn.is_again
        {
            conn.is_again = true;
            self.again.push(id);
        }
    }

    /// The connection, if it is open and nothing waits to be sent.
    fn free_conn(&self, id: ConnId) -> Option<&Conn> {
        let is_free = |conn: &&Conn| conn.life == Life::Open && conn.queue.is_empty() && !conn.is_blocked;
        self.table.get(id).filter(is_free)
    }

    /// The connection, if it is open.
    fn open_conn(&mut self, id: ConnId) -> Option<&mut Conn> {
        self.table.get_mut(id).filter(|conn| conn.life == Life::Open)
    }
}

impl Engine for Epoll {
    fn listen(&mut self, listener: Arc<Listener>) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        self.listeners.push(listener);
        match self.accept_pause.is_on() {
            true => Ok(()),
            false => self.watch(self.listeners.len() - 1),
        }
    }

    fn stop_listening(&mut self) {
        self.unwatch_all();
        self.listeners.clear();
        self.accept_pause = AcceptPause::default();
    }

    fn is_listening(&self) -> bool {
        !self.listeners.is_empty()
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn adopt(&mut self, accepted: Accepted) -> io::Result<ConnId> {
        let is_tcp = matches!(accepted.peer, Peer::Tcp { .. });
        let fd = accepted.fd.as_raw_fd();
        let id = self.table.insert(Conn {
            fd: accepted.fd,
            life: Life::Open,
            is_tcp,
            is_paused: false,
            is_unread: false,
            is_hung_up: false,
            is_failed: false,
            has_ended: false,
            is_again: false,
            is_unsent: false,
            is_blocked: false,
            is_kept_back: false,
            owes_drained: false,
            queue: SendQueue::default(),
            in_turn_bytes: 0,
        });
        if let Err(e) = self.control(libc::EPOLL_CTL_ADD, fd, READ_EDGES, token_of(id)) {
            self.table.remove(id);
            return Err(e);
        }
        Ok(id)
    }

    fn poll(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()> {
        let before = events.len();
        let pause_until = if self.accept_pause.is_on() { self.end_accept_pause(events) } else { None };
        self.table.reuse();
        self.flush_unsent(events);
        if !self.in_turn.is_empty() {
            cold_path();
            self.flush_in_turn(events);
        }
        if !(self.dying.is_empty() && self.again.is_empty()) {
            self.report_kept(events);
        }
        let is_idle = events.len() == before && self.in_turn.is_empty();
        let wait = if is_idle { wait.or_until(pause_until) } else { Wait::Not };
        let count = self.wait(wait)?;
        for at in 0..count {
            let libc::epoll_event { events: edges, u64: token } = self.events[at];
            match named_by(token) {
                Named::Conn(id) => self.on_edge(id, edges, events),
                Named::Listener(index) => self.accept_from(index, events),
                Named::Waker => {
                    self.waker.silence();
                    events.push(Event::Woken);
                }
                Named::Alarm => self.alarm.silence(),
            }
        }
        Ok(())
    }

    fn receive(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        let limit = limit.max(1);
        let Some(conn) = self.open_conn(id) else {
            return Received::Failed(io::ErrorKind::NotConnected.into());
        };
        loop {
            match socket::receive(conn.fd.as_raw_fd(), into, limit) {
                Ok(0) => {
                    cold_path();
                    conn.is_unread = false;
                    conn.has_ended = true;
                    if conn.is_failed {
                        self.kill(id);
                        return Received::Failed(io::ErrorKind::ConnectionReset.into());
                    }
                    return Received::End;
                }
                Ok(n) => {
                    conn.is_unread = n == limit || conn.is_hung_up;
                    if conn.is_unread {
                        cold_path();
                        self.remember(id);
                    }
                    return Received::Bytes(n);
                }
                Err(e) => {
                    cold_path();
                    match e.kind() {
                        io::ErrorKind::Interrupted => {}
                        io::ErrorKind::WouldBlock => {
                            conn.is_unread = false;
                            return Received::Empty;
                        }
                        _ => {
                            self.kill(id);
                            return Received::Failed(e);
                        }
                    }
                }
            }
        }
    }

    fn send(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        let Some(conn) = self.table.get_mut(id).filter(|conn| conn.life == Life::Open) else {
            data.clear();
            return 0;
        };
        conn.queue.push(data, &mut self.pool);
        if !conn.is_unsent && !conn.queue.is_empty() {
            conn.is_unsent = true;
            self.unsent.push(id);
        }
        conn.queue.bytes()
    }

    fn send_in_turn(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        let conn = self.table.get_mut(id).filter(|conn| conn.life == Life::Open && !conn.is_blocked);
        let Some(conn) = conn.filter(|_| !data.is_empty()) else { return self.send(id, data) };
        self.in_turn.add(id, &mut conn.in_turn_bytes, data.len());
        conn.queue.gather(data, &mut self.pool);
        conn.queue.bytes()
    }

    fn in_turn_bytes(&self) -> usize {
        self.in_turn.bytes()
    }

    fn spare_bytes(&self) -> Arc<AtomicUsize> {
        self.pool.bytes()
    }

    fn free_spare(&mut self) {
        self.pool.shrink();
    }

    fn try_now(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if !conn.is_blocked && conn.in_turn_bytes > 0 {
            try_send(conn.fd.as_raw_fd(), &mut conn.queue, &mut self.pool);
        }
    }

    fn send_at_once(&mut self, id: ConnId, data: &mut Vec<u8>) -> usize {
        if data.len() < SEND_AT_ONCE_BYTES {
            return self.send(id, data);
        }
        let sent = self.free_conn(id).map_or(0, |conn| send_some(conn, data));
        if sent == data.len() {
            data.clear();
            return 0;
        }
        self.send(id, data);
        let Some(conn) = self.table.get_mut(id) else { return 0 };
        if sent > 0 {
            conn.queue.advance(sent, &mut self.pool);
        }
        conn.queue.bytes()
    }

    fn send_from(&mut self, id: ConnId, pieces: &[IoSlice<'_>]) -> usize {
        // An error comes again when what is left is sent.
        self.free_conn(id).map_or(0, |conn| socket::send_pieces(conn.fd.as_raw_fd(), pieces).unwrap_or(0))
    }

    fn unsent_bytes(&self, id: ConnId) -> usize {
        self.table.get(id).map_or(0, |conn| conn.queue.bytes())
    }

    fn keep_back(&mut self, id: ConnId) {
        if let Some(conn) = self.open_conn(id) {
            (conn.is_kept_back, conn.is_blocked) = (true, true);
        }
    }

    fn let_go(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id).filter(|conn| conn.is_kept_back) else { return };
        (conn.is_kept_back, conn.is_blocked) = (false, false);
        conn.owes_drained |= !conn.queue.is_empty();
        if !conn.is_unsent && !conn.queue.is_empty() {
            conn.is_unsent = true;
            self.unsent.push(id);
        }
    }

    fn pause(&mut self, id: ConnId) {
        let Some(conn) = self.open_conn(id) else { return };
        conn.is_paused = true;
        if conn.is_failed {
            // Nobody reads a paused connection, so nobody would find out that it has failed.
            self.kill(id);
        }
    }

    fn resume(&mut self, id: ConnId) {
        let Some(conn) = self.open_conn(id) else { return };
        if conn.is_paused {
            conn.is_paused = false;
            if conn.is_unread {
                self.remember(id);
            }
        }
    }

    fn last_words(&mut self, id: ConnId, words: &[u8]) {
        let is_free = |conn: &&Conn| conn.life == Life::Open && conn.queue.is_empty();
        if let Some(conn) = self.table.get(id).filter(is_free) {
            socket::send_last(conn.fd.as_raw_fd(), words, conn.is_tcp);
        }
    }

    fn close(&mut self, id: ConnId, when: CloseWhen) {
        if when == CloseWhen::Now {
            self.try_now(id);
        }
        let Some(conn) = self.table.get_mut(id) else { return };
        match when {
            CloseWhen::Now => self.kill(id),
            CloseWhen::Flushed if conn.life == Life::Dying => {}
            CloseWhen::Flushed if conn.queue.is_empty() => self.finish(id),
            CloseWhen::Flushed => conn.life = Life::Flushing,
        }
    }
}

/// Sends as much of `data` as the kernel takes now, and returns how many bytes. What it refuses, for whatever
/// reason, is for the next poll to try again.
fn send_some(conn: &Conn, data: &[u8]) -> usize {
    let mut sent = 0;
    for _ in 0..FLUSH_CALLS_MAX {
        match socket::send(conn.fd.as_raw_fd(), &data[sent..]) {
            Ok(count) => sent += count,
            Err(_) => break,
        }
        if sent == data.len() {
            break;
        }
    }
    sent
}

/// Sends from the front of the queue, in one call.
fn write_queued(conn: &Conn) -> io::Result<usize> {
    match conn.queue.only() {
        Some(piece) => socket::send(conn.fd.as_raw_fd(), piece),
        None => write_pieces(conn),
    }
}

/// Several pieces in one call. Apart from `write_queued`, so that a reply of one piece does not clear the
/// array of pieces.
#[cold]
fn write_pieces(conn: &Conn) -> io::Result<usize> {
    let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
    let count = conn.queue.slices(&mut pieces);
    socket::send_pieces(conn.fd.as_raw_fd(), &pieces[..count])
}
