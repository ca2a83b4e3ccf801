//! The engine over io_uring. On the path of every request: a share of one `io_uring_enter`, which submits all
//! sends of the last batch, waits, and comes back with all that has arrived, already received.
//!
//! * Accepting and receiving are *multishot*: armed once a connection, they complete again and again. They
//!   end when the kernel says so (no MORE flag): out of buffers, an error, a cancellation. `arm` starts them
//!   anew if wanted.
//! * Received bytes lie in buffers of one ring (`buffers.rs`). What is not taken by `receive` until the next
//!   `poll` is moved to the connection's `stash`, so during every wait all buffers are the kernel's, and
//!   running out of them is a matter of one batch.
//! * Where many send much at once they take all buffers, and those who send little would find none for as
//!   long as that goes on. So a connection for which there was none is *short*: it is not armed; `Readable`
//!   is told, and `receive` asks the socket itself, until nothing more has come. So is one of which much is
//!   left unread, because it is paused or has to wait: the rest stays with the kernel.
//! * Sends are queued and submitted together by the next `poll`. The first try is *quick*: with MSG_DONTWAIT
//!   it completes while it is being submitted. So the wait can ask for one completion more than there are
//!   quick sends, and returns for news only, not for its own sends. What the kernel does not take at once is
//!   *patient*: it completes when there is room, and is not counted. A quick send after which there is more
//!   to send, or which is so long that the kernel may not take all of it, is waited for: its rest would lie
//!   until something else happens. A short one that finds the socket full, which is rare, makes the rest wait
//!   for `QUICK_WAIT` at most. What is sent in turn is submitted by later polls, some connections at a time
//!   (`turn_queue`).
//!
//! A connection is *open*; then *flushing*, when closed with something queued; then *dying*, when closed or
//! failed: its operations are cancelled, and when the last has completed it leaves the table, its socket is
//! closed and `Gone` is told. Until then it keeps its descriptor and its queue, because operations may use
//! them.
mod accept;
mod buffers;
mod conn;
mod ring;
mod token;

use crate::accept_pause::AcceptPause;
use crate::conn_table::{Life, Table};
use crate::listener::Listener;
use crate::send_queue::{Pool, SendQueue, try_send};
use crate::turn_queue::{MUCH_BYTES, TurnQueue};
use crate::{Accepted, CloseWhen, ConnId, Engine, Event, Peer, Received, Wait, Waker, now, socket};
use accept::Accepting;
use base::Millis;
use buffers::{BUFFER_BYTES, Buffers, GROUP};
use conn::Conn;
use io_uring::{cqueue, opcode, types};
use ring::Ring;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use token::Token;

/// The most that one send names; its length has 32 bits.
const SEND_BYTES_MAX: usize = 1 << 30;
/// Longer quick sends are waited for: a socket's buffer need not have more room.
const QUICK_BYTES_MAX: usize = 16 << 10;
/// The longest wait before it is known what became of quick sends.
const QUICK_WAIT: Duration = Duration::from_millis(1);
/// A connection of which more than this is left unread by a poll is not received from.
const LEFT_MAX: usize = 2 * BUFFER_BYTES;
/// How often an engine that is dropped waits for its operations, before it leaves their memory to the kernel
/// for ever.
const FAREWELLS_MAX: usize = 100;

pub(crate) struct Uring {
    /// Before `buffers` and `table`, which its operations use: fields are dropped in order.
    ring: Ring,
    buffers: Buffers,
    table: Table<Conn>,
    waker: Waker,
    is_waker_armed: bool,
    /// Listeners, by the index in their token. One that has ended leaves a gap, which the next one takes.
    accepting: Vec<Option<Accepting>>,
    accept_pause: AcceptPause,
    /// Connections of which the next poll tells `Readable`.
    again: Vec<ConnId>,
    /// Connections of which the last poll has told `Readable`, or that have got a chain since.
    held: Vec<ConnId>,
    /// Connections for which data was queued since the last poll.
    unsent: Vec<ConnId>,
    in_turn: TurnQueue,
    /// Connections whose receiving has ended and may be armed anew.
    idle: Vec<ConnId>,
    /// Connections without operations, of which the next poll tells `Gone`.
    dying: Vec<ConnId>,
    /// Quick sends whose completion has not been taken.
    quick_sends: usize,
    /// Whether the completion of a quick send is news in itself: its connection closes then, or has more to
    /// send.
    awaits_sends: bool,
    pool: Pool,
    completions: Vec<cqueue::Entry>,
}

impl Uring {
    pub(crate) fn new() -> io::Result<Uring> {
        let ring = Ring::new()?;
        let buffers = Buffers::register(&ring.submitter())?;
        Ok(Uring {
            ring,
            buffers,
            table: Table::new(),
            waker: Waker::new()?,
            is_waker_armed: false,
            accepting: Vec::new(),
            accept_pause: AcceptPause::default(),
            again: Vec::new(),
            held: Vec::new(),
            unsent: Vec::new(),
            in_turn: TurnQueue::new(),
            idle: Vec::new(),
            dying: Vec::new(),
            quick_sends: 0,
            awaits_sends: false,
            pool: Pool::default(),
            completions: Vec::new(),
        })
    }

    // What a poll does before it waits.

    /// Moves what was not received out of the kernel's buffers.
    fn empty_buffers(&mut self) {
        let mut held = std::mem::take(&mut self.held);
        for id in held.drain(..) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_held = false;
            if !conn.chain.is_empty() {
                conn.stash_chain(&mut self.buffers);
                if conn.unread_bytes > LEFT_MAX {
                    self.stop_receiving(id);
                }
            }
        }
        self.held = held;
        self.buffers.publish();
    }

    /// Receives again from connections whose receiving has ended; those that are not to be received from are
    /// watched for a reset.
    fn arm_idle(&mut self) {
        for id in std::mem::take(&mut self.idle) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_idle = false;
            conn.is_short |= conn.unread_bytes > 0;
            if conn.wants_bytes() {
                self.arm(id);
            } else if conn.life == Life::Open && conn.error.is_none() && !conn.asks_itself() {
                self.watch(id);
            }
        }
    }

    /// Starts to send what was queued since the last poll.
    fn send_unsent(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for id in unsent.drain(..) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_unsent = false;
            if !conn.is_sending && conn.life != Life::Dying {
                self.start_send(id);
            }
        }
        self.unsent = unsent;
    }

    /// Starts to send to connections whose turn it is. What is being sent already goes on by itself.
    #[inline(never)]
    fn send_some_in_turn(&mut self) {
        self.in_turn.begin();
        while let Some(id) = self.in_turn.next() {
            let Some(conn) = self.table.get_mut(id) else { continue };
            self.in_turn.release(&mut conn.in_turn_bytes);
            conn.owes_drained |= conn.queue.bytes() > MUCH_BYTES;
            if !conn.is_sending && conn.life != Life::Dying {
                self.start_send(id);
            }
        }
    }

    /// Reports connections that are gone, and those with something to read that has not been told of.
    fn report_kept(&mut self, events: &mut Vec<Event>) {
        for id in self.dying.drain(..) {
            self.table.remove(id);
            events.push(Event::Gone(id));
        }
        for id in std::mem::take(&mut self.again) {
            let Some(conn) = self.table.get_mut(id) else { continue };
            conn.is_again = false;
            if conn.life == Life::Open && !conn.is_paused {
                self.tell(id, events);
            }
        }
    }

    /// Watches the waker, if it is not watched.
    fn arm_waker(&mut self) {
        if !self.is_waker_armed {
            self.is_waker_armed = true;
            let entry =
                opcode::PollAdd::new(types::Fd(self.waker.fd()), libc::POLLIN as u32).multi(true).build();
            // SAFETY: the entry points to nothing.
            unsafe { self.ring.push(entry.user_data(Token::Waker.pack())) };
        }
    }

    // Operations of a connection.

    /// Receives from a connection from now on.
    fn arm(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id).filter(|conn| !conn.is_receiving) else { return };
        conn.is_receiving = true;
        let entry = opcode::RecvMulti::new(types::Fd(conn.fd.as_raw_fd()), GROUP).build();
        // SAFETY: the entry points to nothing; the buffers it chooses outlive the ring.
        unsafe { self.ring.push(entry.user_data(Token::Receive(id).pack())) };
    }

    /// Receives no more from a connection than what is under way.
    fn stop_receiving(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.is_receiving && !conn.is_stopping {
            conn.is_stopping = true;
            self.cancel(Token::Receive(id));
        }
    }

    /// While nothing is received a reset must still be seen. Multishot, because io_uring always asks for
    /// POLLRDHUP too, which a half-closed peer raises at once.
    fn watch(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id).filter(|conn| !conn.is_watched) else { return };
        conn.is_watched = true;
        let entry =
            opcode::PollAdd::new(types::Fd(conn.fd.as_raw_fd()), libc::POLLERR as u32).multi(true).build();
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(entry.user_data(Token::Watch(id).pack())) };
    }

    /// Sends from the front of a connection's queue.
    fn start_send(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        assert!(!conn.is_sending, "one send at a time, or bytes could change places");
        if conn.is_kept_back {
            return;
        }
        conn.queue.lengthen_first(&mut self.pool);
        let Some(piece) = conn.queue.first_piece() else { return };
        let len = piece.len().min(SEND_BYTES_MAX);
        let (token, flags) = match conn.is_blocked {
            true => (Token::PatientSend(id), libc::MSG_NOSIGNAL),
            false => (Token::QuickSend(id), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT),
        };
        let fd = types::Fd(conn.fd.as_raw_fd());
        let entry = opcode::Send::new(fd, piece.as_ptr(), len as u32).flags(flags).build();
        conn.is_sending = true;
        conn.sending_bytes = len;
        if !conn.is_blocked {
            self.quick_sends += 1;
            let is_last = conn.life == Life::Flushing;
            self.awaits_sends |= len > QUICK_BYTES_MAX || len < conn.queue.bytes() || is_last;
        }
        // SAFETY: the piece is the queue's first buffer. A connection leaves the table only when `is_sending`
        // is false, that is after this entry's completion; the queue drops its first buffer only in
        // `advance`, and appends to it only within its capacity, behind the piece; `gather`, `try_send` and
        // `lengthen_first`, which may move or drop it, are not called while `is_sending` is true.
        unsafe { self.ring.push(entry.user_data(token.pack())) };
    }

    /// Asks the kernel to end an operation. Its completion comes all the same.
    fn cancel(&mut self, token: Token) {
        let entry = opcode::AsyncCancel::new(token.pack()).build();
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(entry.user_data(Token::Cancel.pack())) };
    }

    /// Has the next poll look whether the connection is to be received from.
    fn set_idle(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get_mut(id).filter(|conn| !conn.is_idle && !conn.is_receiving) {
            conn.is_idle = true;
            self.idle.push(id);
        }
    }

    /// Has the next poll tell that there is something to read.
    fn remember(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get_mut(id).filter(|conn| !conn.is_again) {
            conn.is_again = true;
            self.again.push(id);
        }
    }

    /// Tells `Readable`, once a poll, unless it is paused.
    fn tell(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        let is_news = !conn.is_held;
        conn.is_held = true;
        conn.is_unread = true;
        if is_news {
            self.held.push(id);
            if !conn.is_paused {
                events.push(Event::Readable(id));
            }
        }
    }

    // The end of a connection.

    /// Sending has failed. What the peer has sent before that can still be received, where that was not told
    /// to wait.
    #[cold]
    fn fail(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.life != Life::Open || conn.is_paused || conn.is_broken || !conn.has_more() {
            return self.kill(id);
        }
        socket::shut_down(conn.fd.as_raw_fd());
        conn.queue = SendQueue::default();
        conn.is_blocked = false;
        conn.is_broken = true;
        self.set_idle(id);
    }

    /// The connection is dying from now on: its operations are cancelled, and when the last has completed it
    /// is gone.
    fn kill(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id).filter(|conn| conn.life != Life::Dying) else { return };
        conn.life = Life::Dying;
        self.in_turn.release(&mut conn.in_turn_bytes);
        self.buffers.clear(&mut conn.chain);
        conn.stash = Vec::new();
        let (receiving, watched) = (conn.is_receiving, conn.is_watched);
        let sending = conn.is_sending && conn.is_blocked;
        if !conn.has_operations() {
            return self.dying.push(id);
        }
        for (is_under_way, token) in [
            (receiving, Token::Receive(id)),
            (watched, Token::Watch(id)),
            // A quick send needs no cancelling: it completes by itself.
            (sending, Token::PatientSend(id)),
        ] {
            if is_under_way {
                self.cancel(token);
            }
        }
    }

    /// How many completions are worth waking for: quick sends alone are none, but where something follows one
    /// of them.
    fn wanted_completions(&mut self) -> usize {
        let is_followed = std::mem::take(&mut self.awaits_sends) && self.quick_sends > 0;
        self.quick_sends + usize::from(!is_followed)
    }

    /// After an operation has completed: tells `Gone` if it was the last of a dying connection.
    fn retire(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let is_over = |conn: &Conn| conn.life == Life::Dying && !conn.has_operations();
        if self.table.get(id).is_some_and(is_over) {
            self.table.remove(id);
            events.push(Event::Gone(id));
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

    // What completions say.

    /// Acts on one completion.
    fn on_completion(&mut self, entry: &cqueue::Entry, events: &mut Vec<Event>) {
        match Token::unpack(entry.user_data()) {
            Token::Receive(id) => self.on_received(id, entry, events),
            Token::QuickSend(id) => {
                self.quick_sends -= 1;
                self.on_sent(id, entry.result(), events);
            }
            Token::PatientSend(id) => self.on_sent(id, entry.result(), events),
            Token::Watch(id) => self.on_watched(id, entry, events),
            Token::Accept(index) => self.on_accepted(index as usize, entry, events),
            Token::Waker => {
                self.is_waker_armed = cqueue::more(entry.flags());
                self.waker.silence();
                events.push(Event::Woken);
            }
            Token::Cancel => {}
        }
    }

    /// Bytes have come, or receiving has ended.
    fn on_received(&mut self, id: ConnId, entry: &cqueue::Entry, events: &mut Vec<Event>) {
        self.keep_received(id, entry, events);
        let Some(conn) = self.table.get_mut(id) else { return };
        if !cqueue::more(entry.flags()) {
            conn.is_receiving = false;
            conn.is_stopping = false;
            match conn.life {
                Life::Dying => self.retire(id, events),
                Life::Open | Life::Flushing => self.set_idle(id),
            }
        } else if !conn.wants_bytes() && conn.life == Life::Open {
            self.stop_receiving(id);
        }
    }

    /// The bytes, the end or the error that a completion of the receiving brings.
    fn keep_received(&mut self, id: ConnId, entry: &cqueue::Entry, events: &mut Vec<Event>) {
        let buffer = cqueue::buffer_select(entry.flags());
        let is_open = |conn: &&mut Conn| conn.life == Life::Open;
        let Some(conn) = self.table.get_mut(id).filter(is_open) else {
            if let Some(number) = buffer {
                self.buffers.release(number);
            }
            return self.on_late_result(id, entry.result());
        };
        match (entry.result(), buffer) {
            (n @ 1.., Some(number)) => {
                self.buffers.append(&mut conn.chain, number, n as u32);
                conn.unread_bytes += n as usize;
                return self.tell(id, events);
            }
            (_, Some(number)) => self.buffers.release(number),
            (_, None) => {}
        }
        match -entry.result() {
            0 => {
                conn.has_ended = true;
                self.tell(id, events);
            }
            libc::ENOBUFS => {
                // One that has filled many buffers itself sends much, and more of them would only hold more
                // of that.
                if conn.unread_bytes <= LEFT_MAX {
                    self.buffers.note_shortage();
                }
                conn.is_short = true;
                self.tell(id, events);
            }
            libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
            error => {
                conn.error = Some(error);
                match conn.is_paused {
                    // Nobody reads it, so nobody would find out that it has failed.
                    true => self.kill(id),
                    false => self.tell(id, events),
                }
            }
        }
    }

    /// A connection that reads no more has only resets to fear.
    fn on_late_result(&mut self, id: ConnId, result: i32) {
        if result < 0 && ![libc::ENOBUFS, libc::ECANCELED, libc::EINTR, libc::EAGAIN].contains(&-result) {
            self.kill(id);
        }
    }

    /// A send has completed: the rest of the queue follows, or it is empty.
    fn on_sent(&mut self, id: ConnId, result: i32, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        conn.is_sending = false;
        if conn.life == Life::Dying {
            return self.retire(id, events);
        }
        match result {
            sent @ 0.. => {
                conn.queue.advance(sent as usize, &mut self.pool);
                conn.is_blocked |= (sent as usize) < conn.sending_bytes;
            }
            failed if failed == -libc::EAGAIN => conn.is_blocked = true,
            failed if failed == -libc::EINTR => {}
            _ => return self.fail(id),
        }
        match conn.queue.is_empty() {
            true => self.on_emptied(id, events),
            false => {
                // That goes to the kernel with the next poll.
                conn.owes_drained = true;
                self.start_send(id);
            }
        }
    }

    /// All that was queued has left.
    fn on_emptied(&mut self, id: ConnId, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        if conn.life == Life::Flushing {
            return self.finish(id);
        }
        if conn.is_blocked || conn.owes_drained {
            (conn.is_blocked, conn.owes_drained) = (false, false);
            events.push(Event::Drained(id));
        }
    }

    /// The peer of a connection that is not received from has reset or shut down.
    fn on_watched(&mut self, id: ConnId, entry: &cqueue::Entry, events: &mut Vec<Event>) {
        let Some(conn) = self.table.get_mut(id) else { return };
        conn.is_watched = cqueue::more(entry.flags());
        let result = entry.result();
        match conn.life {
            Life::Dying => self.retire(id, events),
            // Only a hang-up, or receiving finds the error out by itself, behind the bytes that came before
            // it.
            _ if conn.is_receiving || result < 0 || result & i32::from(libc::POLLERR) == 0 => {}
            Life::Open if !conn.is_paused => {
                // Behind what is left of it in the socket.
                (conn.error, conn.is_short) = (Some(libc::ECONNRESET), true);
                self.tell(id, events);
            }
            Life::Open | Life::Flushing => self.kill(id),
        }
    }

    /// Cancels all operations and waits until the kernel uses none of our memory any more.
    fn say_farewell(&mut self) -> io::Result<()> {
        for id in self.table.ids() {
            self.kill(id);
        }
        let mut events = Vec::new();
        for _ in 0..FAREWELLS_MAX {
            self.report_kept(&mut events);
            if self.table.ids().is_empty() {
                return Ok(());
            }
            self.ring.enter(1, Some(Duration::from_millis(10)))?;
            self.take_completions(&mut events);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Acts on the completions that are there.
    fn take_completions(&mut self, events: &mut Vec<Event>) {
        let mut completions = std::mem::take(&mut self.completions);
        self.ring.take_completions(&mut completions);
        for entry in completions.drain(..) {
            self.on_completion(&entry, events);
        }
        self.completions = completions;
    }
}

impl Engine for Uring {
    fn listen(&mut self, listener: Arc<Listener>) -> io::Result<()> {
        listener.set_nonblocking(false)?;
        self.add_listener(listener);
        Ok(())
    }

    fn stop_listening(&mut self) {
        self.end_accepting();
    }

    fn is_listening(&self) -> bool {
        self.accepting.iter().any(Option::is_some)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn adopt(&mut self, accepted: Accepted) -> io::Result<ConnId> {
        let is_tcp = matches!(accepted.peer, Peer::Tcp { .. });
        let id = self.table.insert(Conn::new(accepted.fd, is_tcp));
        self.arm(id);
        Ok(id)
    }

    fn poll(&mut self, wait: Wait, events: &mut Vec<Event>) -> io::Result<()> {
        let before = events.len();
        self.table.reuse();
        self.empty_buffers();
        self.arm_waker();
        let pause_until = self.arm_listeners();
        self.arm_idle();
        self.send_unsent();
        let has_turns = !self.in_turn.is_empty();
        if has_turns {
            self.send_some_in_turn();
        }
        self.report_kept(events);
        let wait = if events.len() == before && self.in_turn.is_empty() {
            wait.or_until(pause_until)
        } else {
            Wait::Not
        };
        let quick = (self.quick_sends > 0).then_some(QUICK_WAIT);
        let (want, timeout) = match wait {
            Wait::Not => (0, None),
            Wait::Until(due) => {
                (self.wanted_completions(), Some(left(due).min(quick.unwrap_or(Duration::MAX))))
            }
            Wait::Forever => (self.wanted_completions(), quick),
        };
        self.ring.enter(want, timeout)?;
        if has_turns {
            self.in_turn.end();
        }
        self.take_completions(events);
        Ok(())
    }

    fn receive(&mut self, id: ConnId, into: &mut Vec<u8>, limit: usize) -> Received {
        let Some(conn) = self.table.get_mut(id).filter(|conn| conn.life == Life::Open) else {
            return Received::Failed(io::ErrorKind::NotConnected.into());
        };
        let n = match conn.unread_bytes {
            0 if conn.is_short => conn.receive_itself(into, limit.max(1)),
            0 => 0,
            _ => conn.read(into, limit.max(1), &mut self.buffers),
        };
        conn.is_unread = conn.has_news();
        let (is_unread, is_idle) = (conn.is_unread, !conn.is_receiving && !conn.is_short);
        if is_idle {
            self.set_idle(id);
        }
        if n > 0 {
            if is_unread {
                self.remember(id);
            }
            return Received::Bytes(n);
        }
        let Some(conn) = self.table.get_mut(id) else { return Received::Empty };
        conn.is_unread = false;
        if let Some(error) = conn.error {
            self.kill(id);
            return Received::Failed(io::Error::from_raw_os_error(error));
        }
        match (conn.has_ended, conn.is_broken) {
            (true, true) => {
                self.kill(id);
                Received::Failed(io::ErrorKind::ConnectionReset.into())
            }
            (true, false) => Received::End,
            (false, _) => Received::Empty,
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
        let conn = self.table.get_mut(id).filter(|conn| conn.life == Life::Open);
        let Some(conn) = conn.filter(|_| !data.is_empty()) else { return self.send(id, data) };
        self.in_turn.add(id, &mut conn.in_turn_bytes, data.len());
        match conn.is_sending {
            true => conn.queue.push(data, &mut self.pool),
            false => conn.queue.gather(data, &mut self.pool),
        }
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
        if !conn.is_sending && !conn.is_kept_back && conn.in_turn_bytes > 0 {
            try_send(conn.fd.as_raw_fd(), &mut conn.queue, &mut self.pool);
        }
    }

    fn unsent_bytes(&self, id: ConnId) -> usize {
        self.table.get(id).filter(|conn| conn.life != Life::Dying).map_or(0, |conn| conn.queue.bytes())
    }

    fn keep_back(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get_mut(id).filter(|conn| conn.life == Life::Open) {
            conn.is_kept_back = true;
        }
    }

    fn let_go(&mut self, id: ConnId) {
        let Some(conn) = self.table.get_mut(id).filter(|conn| conn.is_kept_back) else { return };
        conn.is_kept_back = false;
        conn.owes_drained |= !conn.queue.is_empty();
        if !conn.is_unsent && !conn.is_sending && !conn.queue.is_empty() {
            conn.is_unsent = true;
            self.unsent.push(id);
        }
    }

    fn pause(&mut self, id: ConnId) {
        if let Some(conn) = self.table.get_mut(id).filter(|conn| conn.life == Life::Open) {
            conn.is_paused = true;
            if conn.error.is_some() || conn.is_broken {
                // Nobody reads it, so nobody would find out that it has failed.
                self.kill(id);
            } else if conn.is_short {
                self.set_idle(id);
            }
        }
    }

    fn resume(&mut self, id: ConnId) {
        let is_paused = |conn: &&mut Conn| conn.life == Life::Open && conn.is_paused;
        let Some(conn) = self.table.get_mut(id).filter(is_paused) else { return };
        conn.is_paused = false;
        if conn.is_unread {
            self.remember(id);
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
            CloseWhen::Flushed => {
                conn.life = Life::Flushing;
                self.awaits_sends = true;
                self.buffers.clear(&mut conn.chain);
                conn.stash = Vec::new();
            }
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        if self.say_farewell().is_err() {
            // Another thread's rings, or an operation that does not end: its memory is given up, not freed.
            std::mem::forget(std::mem::replace(&mut self.table, Table::new()));
            self.buffers.give_up();
        }
    }
}

/// How long it is from now until `due`.
fn left(due: Millis) -> Duration {
    Duration::from_millis(due.since(now()).max(0) as u64)
}
