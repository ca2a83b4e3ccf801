//! What is known of a request that runs in parts, until it has run to its end. What happens with it is in
//! `dispatch::parts`; `lent` carries it from the thread that has put its keys in order to the worker that
//! runs it.
use crate::core::lent::KeptRequest;
use crate::core::server::Server;
use crate::core::session::ClientRecord;
use base::Millis;
use base::hash::Hash;
use command::{Call, Done, Parts};
use resp::{Reply, Span};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A request that runs in parts.
pub(crate) struct Parted {
    pub(in crate::core) this: Weak<Parted>,
    pub(in crate::core) server: Weak<Server>,
    /// The worker of its session.
    pub(in crate::core) worker: usize,
    pub(in crate::core) db: u16,
    /// `Row::number` of its command.
    pub(in crate::core) row: usize,
    pub(in crate::core) parts: Parts,
    /// What runs a part.
    pub(in crate::core) run: fn(&mut Call<'_, '_>) -> Done,
    pub(in crate::core) writes: bool,
    /// The time that it sees.
    pub(in crate::core) now: Millis,
    /// Its client, if that tracks keys, and whether its look-ups count as uses.
    pub(in crate::core) tracks: Option<Arc<ClientRecord>>,
    pub(in crate::core) leaves_trace: bool,
    /// Of its keys, ascending, each with the key's place in the order in which they are run.
    pub(in crate::core) hashes: Vec<(Hash, u32)>,
    pub(in crate::core) progress: Mutex<Progress>,
    /// How many of its keys are overwritten. Set while the shards of the last of them are locked.
    pub(in crate::core) overwritten: AtomicUsize,
}

/// How far a request is. Whoever runs a part of it has the lock: its worker, behind its gate, or somebody who
/// holds all gates.
pub(crate) struct Progress {
    pub(in crate::core) stage: Stage,
    /// Taken from its session's worker while it runs.
    pub(in crate::core) request: KeptRequest,
    pub(in crate::core) reply: Reply,
    /// Its keys among its words, in the order in which they are run, and how many have been.
    pub(in crate::core) order: Vec<u32>,
    pub(in crate::core) ran: usize,
    /// The numbers that the parts have answered.
    pub(in crate::core) sum: i64,
    pub(in crate::core) done: Done,
    /// The record of what it has changed, plus one.
    pub(in crate::core) records_end: u64,
    /// Room for the words of a part.
    pub(in crate::core) spans: Vec<Span>,
}

/// What is to be done with the next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing: it has not begun.
    Waits,
    /// It is looked whether one of its keys is there.
    Looks,
    Runs,
    /// There is none.
    Ended,
}

impl Parted {
    /// Whether it overwrites its keys, whatever they hold, and so is written into the journal before that.
    pub(in crate::core) fn is_early(&self) -> bool {
        matches!(self.parts, Parts::Pairs | Parts::PairsIfNone(_))
    }

    pub(in crate::core) fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
