//! What is known of a transaction that runs on another thread, until it has taken effect. What happens with
//! it is in `dispatch::exec_elsewhere`.
use crate::core::queue::Queue;
use crate::core::written_elsewhere::Hold;
use base::hash::Hash;
use command::{Call, Done, Effects, Error, Words};
use std::ops::Range;
use store::{Before, Keyspace, Made};

/// The queue of an EXEC.
pub(crate) struct QueueElsewhere {
    pub(in crate::core) queue: Box<Queue>,
    /// How each request runs.
    pub(in crate::core) steps: Vec<Step>,
    /// The keys of all requests in turn, each by its place among its request's words.
    pub(in crate::core) keys: Vec<(u32, Hash)>,
    /// All keys, each once.
    pub(in crate::core) names: Vec<Vec<u8>>,
    pub(in crate::core) before: Before,
    pub(in crate::core) made: Made,
    /// What it tells the journal, and in which words; None where nobody read it when it began.
    pub(in crate::core) effects: Option<(Effects, Words)>,
    /// What the requests have come to.
    pub(in crate::core) outcomes: Vec<Outcome>,
    pub(in crate::core) tries: u32,
    /// Its keys are held back from others; None: it only reads, and has its place where its keys were shared.
    pub(in crate::core) hold: Option<Hold>,
}

impl QueueElsewhere {
    /// Whether no request of the queue may change data.
    pub(in crate::core) fn only_reads(&self) -> bool {
        self.steps.iter().all(|step| step.only_reads)
    }

    /// Whether it has its place before it is committed: whatever becomes of its keys then is behind it.
    /// PFCOUNT reads, and may note something.
    pub(in crate::core) fn has_its_place(&self) -> bool {
        self.hold.is_none() && !self.made.is_change()
    }
}

/// The values of the keys of a queue that is to run elsewhere.
pub(crate) struct SharedQueue {
    pub(in crate::core) before: Before,
    pub(in crate::core) aside: Keyspace,
    pub(in crate::core) names: Vec<Vec<u8>>,
}

/// One request.
pub(crate) struct Step {
    pub(in crate::core) run: fn(&mut Call<'_, '_>) -> Done,
    pub(in crate::core) only_reads: bool,
    /// Where its keys are among those of all requests.
    pub(in crate::core) keys: Range<usize>,
}

/// What one request has come to.
pub(crate) struct Outcome {
    pub(in crate::core) ticks: u64,
    pub(in crate::core) reply_bytes: usize,
    pub(in crate::core) error: Option<Error>,
}
