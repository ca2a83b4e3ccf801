//! The journal: what every write has come to, in the order in which it happened, in the words of the
//! protocol. The append-only file, the stream to replicas and its backlog are readers of it.
//!
//! ```text
//! worker 0   SET a 1 -> number 0    LPUSH l x -> number 2 |
//! worker 1         SET b 1 -> number 1                     |--> merge --> 0 1 2 3 ... --> each reader
//! expiry                                   DEL c -> 3     |
//! ```
//!
//! A number is taken while the shards of the command's keys are locked, so for each key the order of numbers
//! is the order of execution, and what has changed several shards has one place in all of them. Every number
//! is used. One thread puts the records in order. Nothing here starts it, nor knows of locks: this is how
//! records are kept ([`record`]), put in order ([`merge`]) and written as a stream of commands ([`stream`]),
//! of which the end is kept for readers that come later ([`ring`]).
//!
//! What an effect is: the request as its client sent it, where running it again has the same outcome, and
//! nothing where it has changed nothing. Where time or chance decide, it is what the request came to, in the
//! words that Redis uses: SPOP is SREM, EXPIRE is PEXPIREAT. Commands say so themselves
//! (`command::Effects`).
pub mod merge;
pub mod record;
pub mod ring;
pub mod stream;

pub use merge::Merge;
pub use record::{Audience, Draft, Frame, Group, Records, Run};
pub use ring::{NotHeld, Ring};
pub use stream::Stream;

use std::time::Duration;

/// Whoever reads the journal. It is called by the one thread that puts records in order, so it may wait for a
/// disk, but not for a worker.
pub trait Reader: Send {
    /// The next records, at least one. Numbers have no gaps.
    fn take(&mut self, runs: &[Run<'_>]);

    /// There is nothing more for now. Returns after how long it wants to be called again, even if nothing
    /// comes.
    fn pause(&mut self) -> Option<Duration>;

    /// Nothing more will come before this has returned: the reader makes sure of all that it has taken, as
    /// far as it can.
    fn settle(&mut self) {}
}
