//! How attempts of a script, or of a function, have gone on one thread: whether a worker should try the next
//! call itself, and beside what other workers do or alone.
use std::cell::Cell;

/// What is given up again and again is attempted every 2^10 calls.
const FAILURES_MAX: u32 = 10;
/// A call that was in the way of others counts two, and one that was not takes one back: a script of which
/// more than every third call is so runs alone in the end. One that has to run alone counts so many at once.
const BESIDE_STEP: u32 = 16;
/// One that wants the same shard as the last that was in the way counts so many: where all want one key, each
/// sleeps and is woken for it again and again, and nothing is gained by that.
const SAME_AGAIN: u32 = 12;
/// So many calls run alone at first: fewer would not make up for finding out. Each step doubles them.
const ALONE_MIN: u32 = 32;
const STEPS_MAX: u32 = 6;

/// See the file's opener.
#[derive(Default)]
pub(crate) struct Tries {
    pub(in crate::core) by_itself: Failures,
    pub(in crate::core) in_queues: Failures,
    /// How it has fared beside others, and how many of its next calls run alone.
    troubles: Cell<u32>,
    alone: Cell<u32>,
    /// The shard that it wanted when it was in the way of others last.
    wanted: Cell<Option<usize>>,
}

/// How attempts have failed.
#[derive(Default)]
pub(crate) struct Failures {
    /// How often in a row a worker has given it up, and how many of its next calls are not attempted.
    in_a_row: Cell<u32>,
    skips: Cell<u32>,
}

/// How a script has run beside what other workers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Ran,
    /// At the second try, since somebody had this shard.
    Contended(Option<usize>),
    /// It has to run alone.
    Failed,
}

impl Failures {
    /// Whether a worker should try to run it. One that was given up is not tried for a while, the longer the
    /// more often that has happened.
    pub(in crate::core) fn is_worth_an_attempt(&self) -> bool {
        self.skips.replace(self.skips.get().saturating_sub(1)) == 0
    }

    /// A worker has tried to run it.
    pub(in crate::core) fn note_attempt(&self, has_worked: bool) {
        let failures = if has_worked { 0 } else { (self.in_a_row.get() + 1).min(FAILURES_MAX) };
        self.in_a_row.set(failures);
        self.skips.set(if has_worked { 0 } else { 1 << failures });
    }
}

impl Tries {
    /// Whether it should be tried beside others. After troubles it is not for a while, the longer the more
    /// there were.
    pub(in crate::core) fn may_run_beside_others(&self) -> bool {
        self.alone.replace(self.alone.get().saturating_sub(1)) == 0
    }

    /// It was tried beside others.
    pub(in crate::core) fn note_run_beside_others(&self, how: Beside) {
        let troubles = match how {
            Beside::Ran => self.troubles.get().saturating_sub(1),
            Beside::Contended(wanted) if self.wanted.replace(wanted) == wanted => {
                self.troubles.get() + SAME_AGAIN
            }
            Beside::Contended(_) => self.troubles.get() + 2,
            Beside::Failed => self.troubles.get() + BESIDE_STEP,
        };
        self.troubles.set(troubles.min(STEPS_MAX * BESIDE_STEP));
        let steps = self.troubles.get() / BESIDE_STEP;
        self.alone.set(if steps == 0 || how == Beside::Ran { 0 } else { ALONE_MIN << (steps - 1) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    /// How many of so many calls run beside others, each of which fares so.
    fn beside(tries: &Tries, calls: usize, mut fares: impl FnMut() -> Beside) -> usize {
        let mut call = || {
            let is_beside = tries.may_run_beside_others();
            if is_beside {
                tries.note_run_beside_others(fares());
            }
            is_beside
        };
        (0..calls).filter(|_| call()).count()
    }

    /// It is in the way of others with this chance in a hundred, because of one of so many shards.
    fn contended(chance: u64, shards: u64) -> impl FnMut() -> Beside {
        let mut random = Random::new(chance);
        move || match random.below(100) < chance {
            true => Beside::Contended(Some(random.below(shards) as usize)),
            false => Beside::Ran,
        }
    }

    #[test]
    fn what_has_to_run_alone_does_ever_longer() {
        let tries = Tries::default();
        assert_eq!(beside(&tries, 3, || Beside::Failed), 1);
        let later = beside(&tries, 100_000, || Beside::Failed);
        assert!((95..120).contains(&later), "one in 1,024: {later}");
        // It has changed.
        beside(&tries, 2_000, || Beside::Ran);
        assert_eq!(beside(&tries, 1_000, || Beside::Ran), 1_000);
    }

    #[test]
    fn who_is_seldom_in_the_way_is_hardly_ever_alone() {
        let tries = Tries::default();
        assert!(beside(&tries, 10_000, contended(20, 256)) > 9_000);
        assert!(beside(&tries, 100_000, contended(50, 256)) < 1_000);
        let tries = Tries::default();
        assert!(beside(&tries, 10_000, contended(2, 1)) > 9_000);
        assert!(beside(&tries, 100_000, contended(16, 1)) < 5_000);
    }
}
