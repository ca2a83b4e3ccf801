//! Whether any key has a deadline, so that a policy by which only such keys may go need not look for one in
//! all shards for every command that is refused.
//!
//! ```text
//!            a search begins               it has seen all shards, and no key
//!  PRESENT ------------------> its number ----------------------------------> SPENT
//!     ^                            |                                            |
//!     +---- a key gets a deadline -+--------------------------------------------+
//! ```
//!
//! A search locks one shard after the other. A key that gets a deadline in a shard before the search comes
//! there is seen by it. In a shard that it has left behind the key's thread sees the search's number, or what
//! came after it, because the lock has passed from one to the other; so it writes `PRESENT`, either before
//! the search ends, which then does not find its number, or after it. Of two searches that overlap the later
//! one's number stays, and it sees all that the earlier one has missed.
use std::hint::cold_path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PRESENT: u64 = 0;
const SPENT: u64 = u64::MAX;

pub(crate) struct Supply {
    state: AtomicU64,
    /// How many searches have begun.
    searches: AtomicU64,
}

impl Supply {
    pub(crate) const fn new() -> Supply {
        Supply { state: AtomicU64::new(PRESENT), searches: AtomicU64::new(0) }
    }

    /// No key has a deadline: a search has found none, and none came since.
    pub(crate) fn is_spent(&self) -> bool {
        self.state.load(Relaxed) == SPENT
    }

    /// A key gets a deadline; its shard is locked. Nearly always one load of a word that nobody writes.
    #[inline]
    pub(crate) fn note_key(&self) {
        if self.state.load(Relaxed) != PRESENT {
            cold_path();
            self.state.store(PRESENT, Relaxed);
        }
    }

    /// A search begins, which is going to lock every shard. Returns its number.
    pub(crate) fn begin_search(&self) -> u64 {
        let number = self.searches.fetch_add(1, Relaxed) + 1;
        self.state.store(number, Relaxed);
        number
    }

    /// That search has seen every shard, and no key with a deadline.
    pub(crate) fn end_search(&self, number: u64) {
        let _ = self.state.compare_exchange(number, SPENT, Relaxed, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_search_can_end_it_and_a_key_during_it_prevents_that() {
        let supply = Supply::new();
        let first = supply.begin_search();
        let second = supply.begin_search();
        supply.end_search(first);
        assert!(!supply.is_spent());
        supply.note_key();
        supply.end_search(second);
        assert!(!supply.is_spent());
        let third = supply.begin_search();
        supply.end_search(third);
        assert!(supply.is_spent());
        supply.note_key();
        assert!(!supply.is_spent());
    }
}
