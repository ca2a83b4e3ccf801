//! One connection of the io_uring engine: its flags, and what it holds in either direction.
//!
//! Received bytes are read in the order `stash`, then `chain`: what `receive` leaves is moved from the chain
//! behind the stash by the next poll, so that the kernel has its buffers back.
use super::buffers::{BUFFER_BYTES, Buffers, Chain};
use crate::conn_table::Life;
use crate::send_queue::SendQueue;
use crate::socket;
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};

/// A connection that has sent more than this since the last poll is not received from until that is read.
const UNREAD_MAX: usize = 16 * BUFFER_BYTES;

pub(super) struct Conn {
    pub(super) fd: OwnedFd,
    pub(super) life: Life,
    pub(super) is_tcp: bool,
    pub(super) is_paused: bool,
    /// Something waits that `receive` has not been told of, or has not taken.
    pub(super) is_unread: bool,
    /// The connection is on the engine's list `again`; the next three are of `held`, `unsent` and `idle`.
    pub(super) is_again: bool,
    pub(super) is_held: bool,
    pub(super) is_unsent: bool,
    pub(super) is_idle: bool,
    /// The kernel has a multishot operation that receives from it; the next two are of a send and of a watch
    /// for resets.
    pub(super) is_receiving: bool,
    pub(super) is_sending: bool,
    pub(super) is_watched: bool,
    /// The receiving is being cancelled.
    pub(super) is_stopping: bool,
    /// There was no buffer for what has come, or something before it is unread: it is asked for by
    /// `receive_itself`, and not received otherwise, until that finds no more.
    pub(super) is_short: bool,
    /// The kernel would take no more: sends are patient until the queue is empty.
    pub(super) is_blocked: bool,
    /// The caller wants nothing to be sent.
    pub(super) is_kept_back: bool,
    /// Something was left after a poll, so `Drained` is told also where the kernel takes all at once.
    pub(super) owes_drained: bool,
    /// Sending has failed: what was received before is all there is.
    pub(super) is_broken: bool,
    pub(super) has_ended: bool,
    pub(super) error: Option<i32>,
    /// Length of the send under way.
    pub(super) sending_bytes: usize,
    pub(super) chain: Chain,
    /// Older than the chain; read up to `stash_read`.
    pub(super) stash: Vec<u8>,
    pub(super) stash_read: usize,
    /// Bytes of stash and chain.
    pub(super) unread_bytes: usize,
    pub(super) queue: SendQueue,
    /// Bytes of the queue that wait for this connection's turn. More may wait before and behind them, and
    /// leave with them.
    pub(super) in_turn_bytes: usize,
}

impl Conn {
    /// An open connection without operations.
    pub(super) fn new(fd: OwnedFd, is_tcp: bool) -> Conn {
        Conn {
            fd,
            life: Life::Open,
            is_tcp,
            is_paused: false,
            is_unread: false,
            is_again: false,
            is_held: false,
            is_unsent: false,
            is_idle: false,
            is_receiving: false,
            is_sending: false,
            is_watched: false,
            is_stopping: false,
            is_short: false,
            is_blocked: false,
            is_kept_back: false,
            owes_drained: false,
            is_broken: false,
            has_ended: false,
            error: None,
            sending_bytes: 0,
            chain: Chain::default(),
            stash: Vec::new(),
            stash_read: 0,
            unread_bytes: 0,
            queue: SendQueue::default(),
            in_turn_bytes: 0,
        }
    }

    /// Whether the kernel still has operations of it.
    pub(super) fn has_operations(&self) -> bool {
        self.is_receiving || self.is_sending || self.is_watched
    }

    /// Whether the kernel is to receive from it.
    pub(super) fn wants_bytes(&self) -> bool {
        let is_open = self.life == Life::Open && !self.has_ended && self.error.is_none();
        is_open && !self.is_short && self.unread_bytes <= UNREAD_MAX
    }

    /// Whether something can be received, or may still come.
    pub(super) fn has_more(&self) -> bool {
        self.unread_bytes > 0 || self.is_short || !(self.has_ended || self.error.is_some())
    }

    /// Whether `receive` has something to tell, or has to ask.
    pub(super) fn has_news(&self) -> bool {
        self.unread_bytes > 0 || self.is_short || self.has_ended || self.error.is_some()
    }

    /// Whether the next `receive`, which the caller has been told to make, will ask the socket itself. It
    /// finds a reset out.
    pub(super) fn asks_itself(&self) -> bool {
        self.is_short && !self.is_paused
    }

    /// Appends what has come and was not received by the kernel, at most `limit` bytes, and returns how many.
    /// An end or an error is noted.
    pub(super) fn receive_itself(&mut self, into: &mut Vec<u8>, limit: usize) -> usize {
        let received = loop {
            match socket::receive(self.fd.as_raw_fd(), into, limit) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                received => break received,
            }
        };
        // Less than was asked for is all there is. What comes from now on is received by the kernel again.
        self.is_short = matches!(received, Ok(n) if n == limit);
        match received {
            Ok(0) => self.has_ended = true,
            Ok(n) => return n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => self.error = Some(e.raw_os_error().unwrap_or(libc::EIO)),
        }
        0
    }

    /// Appends at most `limit` bytes of stash and chain to `into`, and returns how many.
    pub(super) fn read(&mut self, into: &mut Vec<u8>, limit: usize, buffers: &mut Buffers) -> usize {
        let mut n = self.read_stash(into, limit);
        n += buffers.read(&mut self.chain, into, limit - n);
        self.unread_bytes -= n;
        n
    }

    /// Moves what is left in the chain to the stash, which gets no more room than that takes: there may be
    /// many, and none of them grows often.
    pub(super) fn stash_chain(&mut self, buffers: &mut Buffers) {
        self.stash.reserve_exact(self.unread_bytes - (self.stash.len() - self.stash_read));
        buffers.read(&mut self.chain, &mut self.stash, usize::MAX);
    }

    /// Appends at most `limit` bytes of the stash to `into`, and returns how many.
    fn read_stash(&mut self, into: &mut Vec<u8>, limit: usize) -> usize {
        let n = limit.min(self.stash.len() - self.stash_read);
        into.extend_from_slice(&self.stash[self.stash_read..][..n]);
        self.stash_read += n;
        if self.stash_read == self.stash.len() {
            self.stash = Vec::new();
            self.stash_read = 0;
        }
        n
    }
}
