//! What is left of a long reply: a command begins it, and whoever sends it has it written piece by
//! piece as the client reads.
//!
//! A command that could write for long would keep its locks and its thread, and the reply its memory, until
//! all is written. So it writes the header, which says how many elements come, perhaps some of them, and
//! leaves a remainder that owns what it needs ([`crate::Reply::leave`]). The elements are those of the moment
//! at which the command ran, whatever happens later.
use crate::Reply;
use std::ops::ControlFlow;

/// When a piece is long enough: whichever comes first, after one element at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enough {
    /// What is in the reply then.
    pub bytes: usize,
    pub elements: u64,
}

impl Enough {
    pub const MOST: Enough = Enough { bytes: usize::MAX, elements: u64::MAX };
}

/// It owns what it writes from, so it may be carried between threads and outlive what the command saw.
pub trait Remainder: Send {
    /// Writes the next piece; `Break` when that was the last. Of a full reply nothing is sent, so a
    /// remainder may end there.
    fn write(&mut self, reply: &mut Reply, enough: Enough) -> ControlFlow<()>;

    /// What it takes by itself, in bytes.
    fn bytes(&self) -> usize;

    /// How many bytes dropping it would free at this moment, about, if that may take a while; otherwise 0.
    fn burden_bytes(&self) -> u64;
}
