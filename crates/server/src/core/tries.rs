//! How attempts of a script, or of a function, have gone on one thread: whether a worker should try the next
//! call itself, and under which locks.
use std::cell::Cell;

/// What is given up again and again is attempted every 2^10 calls.
const FAILURES_MAX: u32 = 10;

/// See the file's opener.
pub(crate) struct Tries {
    /// How often in a row a worker has given it up, and how many of its next calls are not attempted.
    failures: Cell<u32>,
    skips: Cell<u32>,
    /// It has touched nothing but the shards of its declared keys so far.
    keeps_to_its_keys: Cell<bool>,
}

impl Default for Tries {
    fn default() -> Tries {
        Tries { failures: Cell::new(0), skips: Cell::new(0), keeps_to_its_keys: Cell::new(true) }
    }
}

impl Tries {
    /// Whether a worker should try to run it. One that was given up is not tried for a while, the longer the
    /// more often that has happened.
    pub(in crate::core) fn is_worth_an_attempt(&self) -> bool {
        self.skips.replace(self.skips.get().saturating_sub(1)) == 0
    }

    /// Whether it has touched nothing but what it has declared, whenever this thread has run it.
    pub(in crate::core) fn keeps_to_its_keys(&self) -> bool {
        self.keeps_to_its_keys.get()
    }

    /// It has reached for something else, or was only made to seem so (`is_restless`).
    pub(in crate::core) fn note_reach(&self, is_restless: bool) {
        self.keeps_to_its_keys.set(self.keeps_to_its_keys.get() && is_restless);
    }

    /// A worker has tried to run it.
    pub(in crate::core) fn note_attempt(&self, has_worked: bool) {
        let failures = if has_worked { 0 } else { (self.failures.get() + 1).min(FAILURES_MAX) };
        self.failures.set(failures);
        self.skips.set(if has_worked { 0 } else { 1 << failures });
    }
}
