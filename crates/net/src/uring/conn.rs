//! One connection of the io_uring engine: its flags, and what it holds in either direction.
//!
//! Received bytes are read in the order `stash`, then `chain`: what `receive` leaves is moved from the chain
//! behind the stash by the next poll, so that the kernel has its buffers back.
use super::buffers::{BUFFER_BYTES, Chain};
use crate::conn_table::Life;
use crate::send_queue::SendQueue;
use std::os::fd::OwnedFd;

/// Unread bytes of a connection beyond which it is not received from.
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

    /// Whether it is to be received from.
    pub(super) fn wants_bytes(&self) -> bool {
        self.life == Life::Open && !self.has_ended && self.error.is_none() && self.unread_bytes <= UNREAD_MAX
    }

    /// Whether something can be received, or may still come.
    pub(super) fn has_more(&self) -> bool {
        self.unread_bytes > 0 || !(self.has_ended || self.error.is_some())
    }

    /// Appends at most `limit` bytes of the stash to `into`, and returns how many.
    pub(super) fn read_stash(&mut self, into: &mut Vec<u8>, limit: usize) -> usize {
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
