//! Keys that a search for one to evict has met and not taken, kept for the searches that follow. Where few
//! keys may go, each leaf that is looked over costs some dozen cache misses and has but one such key: to keep
//! what was found is what lets a search do with half the leaves.
//!
//! ```text
//!  met before:  used at 7   used at 9   used at 12        the best of them all goes
//!  met now:     used at 8   used at 40  ...               the others are kept, as far as there is room
//! ```
//!
//! What is kept is a note, not a claim: by its turn the key may have been used, or be gone.
use crate::Policy;
use base::hash::Hash;

/// So many keys are kept. With the keys of five leaves a search, what goes is on average among the tenth that
/// was not used for longest, and never far beyond: ten leaves and no memory are as good on average, and worse
/// at times.
const KEPT: usize = 16;

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Pool {
    kept: Vec<Kept>,
    /// What the ranks go by.
    policy: Option<Policy>,
}

/// A key that was met, known by its hash.
pub(crate) struct Kept {
    /// The lower, the sooner it goes ([`crate::eviction::choose::Search::rank`]).
    pub(crate) rank: i64,
    pub(crate) db: u16,
    pub(crate) hash: Hash,
}

impl Pool {
    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// What was kept under another policy counts no more.
    pub(crate) fn obey(&mut self, policy: Policy) {
        if self.policy.replace(policy) != Some(policy) {
            self.kept.clear();
        }
    }

    /// Whether a key of this rank would be kept: to be asked before it is hashed.
    pub(crate) fn wants(&self, rank: i64) -> bool {
        self.kept.len() < KEPT || self.kept.iter().any(|kept| rank < kept.rank)
    }

    /// Keeps this key, if it is not worse than all others.
    pub(crate) fn offer(&mut self, rank: i64, db: u16, hash: Hash) {
        let it = self.kept.iter_mut().find(|kept| (kept.db, kept.hash) == (db, hash));
        if let Some(kept) = it {
            kept.rank = rank;
        } else if self.kept.len() < KEPT {
            self.kept.push(Kept { rank, db, hash });
        } else if let Some(kept) = self.kept.iter_mut().max_by_key(|kept| kept.rank)
            && rank < kept.rank
        {
            *kept = Kept { rank, db, hash };
        }
    }

    /// The key that goes first.
    pub(crate) fn take(&mut self) -> Option<Kept> {
        let best = (0..self.kept.len()).min_by_key(|index| self.kept[*index].rank)?;
        Some(self.kept.swap_remove(best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_each_once_and_go_in_order() {
        let mut pool = Pool::default();
        let mut offer = |rank: i64, name: u64| pool.offer(rank, 0, Hash(name));
        (0..100).map(|n| n * 37 % 100).for_each(|rank| offer(rank, rank as u64));
        offer(4, 4);
        // It has been used since.
        offer(9, 3);
        let taken: Vec<i64> = std::iter::from_fn(|| pool.take()).map(|kept| kept.rank).collect();
        assert_eq!(taken, [0, 1, 2, 4, 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 15]);
        assert!(pool.is_empty());
    }

    #[test]
    fn nothing_is_kept_beyond_a_change_of_policy() {
        let mut pool = Pool::default();
        pool.obey(Policy::VolatileLru);
        pool.offer(1, 0, Hash(7));
        pool.obey(Policy::VolatileLru);
        assert!(!pool.is_empty());
        pool.obey(Policy::VolatileLfu);
        assert!(pool.is_empty());
    }
}
