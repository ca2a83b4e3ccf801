//! The rest of a long reply: a command begins the reply, and the server has the rest written piece by piece,
//! as the client reads.
//!
//! A command that wrote all of a long reply would hold its locks and its thread until the end, and the whole
//! reply would lie in memory. So it writes the header, which says how many elements come, perhaps some of
//! them, and leaves a remainder that owns what it needs ([`crate::Reply::leave`]). The elements are those of
//! the moment at which the command ran, whatever happens later.
use crate::Reply;
use std::ops::ControlFlow;

/// When a piece is long enough: when one of the two numbers is reached, but not before one element is
/// written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    /// Bytes of the whole reply buffer, those written before the piece included.
    pub bytes: usize,
    /// Elements of the piece.
    pub elements: u64,
}

impl Enough {
    /// No limit: all that is left is one piece.
    pub const MOST: Enough = Enough { bytes: usize::MAX, elements: u64::MAX };
}

/// The rest of a reply. It owns what it writes from, so it may be moved to another thread, and outlives the
/// locks under which the command ran.
pub trait Remainder: Send {
    /// Writes the next piece; `Break` when that was the last. Nothing of a full reply is sent, so a remainder
    /// may stop where the reply became full.
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()>;

    /// Bytes that come next and lie somewhere already, so that they can be sent from there. Nothing where
    /// they have to be written.
    fn ready(&self) -> [&[u8]; 2] {
        [&[], &[]]
    }

    /// So many of the bytes that are ready have been sent; `Break` when those were the last.
    fn skip(&mut self, bytes: usize) -> ControlFlow<()> {
        debug_assert_eq!(bytes, 0, "nothing was ready");
        ControlFlow::Continue(())
    }

    /// How many bytes it has allocated for itself.
    fn bytes(&self) -> usize;

    /// About how many bytes dropping it would free at this moment, if that may take long; otherwise 0. The
    /// server drops a remainder of many bytes on another thread.
    fn burden_bytes(&self) -> u64;
}
