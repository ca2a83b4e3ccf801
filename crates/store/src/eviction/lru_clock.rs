//! The LRU clock: times of use in one byte. It says which of 255 codes stands for which time. Times that are
//! near are told apart finely, those that are long ago coarsely.
//!
//! ```text
//! code    12      3      5      9     4    6   8   <- the present one; a tick takes the next that is free
//! began  -2 days -20 h  -1 h  -50 m  ...  -2 s -1 s
//! ```
//!
//! A code whose neighbours are near in proportion to its age says little: [`LruClock::plan`] chooses such
//! codes to be replaced by the code before them. The caller then replaces them in all entries, and reports
//! when that is done ([`LruClock::retire`]); until then both codes are valid. After some hundred plans 255
//! codes reach from a second to half a year, each within a seventh of the true age.

use base::Millis;

pub(crate) const CODES: usize = 256;
/// The code of an entry whose last use is not known.
pub(crate) const UNKNOWN: u8 = 0;

/// A use in the past gets a code of its own unless one is nearer than a seventh of its age.
const NEARNESS: i64 = 7;
/// So many codes are not given out for uses in the past.
const KEPT_FOR_TICKS: usize = 64;

/// A time in microseconds: codes that begin within one millisecond get different times.
pub(crate) fn micros(now: Millis) -> i64 {
    now.0.saturating_mul(1000)
}

pub(crate) struct LruClock {
    /// The codes in use, from the oldest to the present one; never empty.
    in_use: Vec<u8>,
    free: Vec<u8>,
    began_us: [i64; CODES],
}

/// By which code each code is to be replaced; a code that stays, by itself.
pub(crate) type Replacements = Box<[u8; CODES]>;

pub(crate) fn none_replaced() -> Replacements {
    Box::new(std::array::from_fn(|code| code as u8))
}

impl LruClock {
    pub(crate) fn new() -> LruClock {
        LruClock { in_use: vec![1], free: (2..=u8::MAX).rev().collect(), began_us: [0; CODES] }
    }

    /// The present code.
    pub(crate) fn now(&self) -> u8 {
        *self.in_use.last().expect("there is a present code")
    }

    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// The codes in use, from the oldest to the present one.
    pub(crate) fn in_use(&self) -> &[u8] {
        &self.in_use
    }

    /// Begins a new code. Returns it with the time at which it begins, which is later than all before even if
    /// the clock stands still. None, and the present code goes on, where no code is free.
    pub(crate) fn tick(&mut self, now: Millis) -> Option<(u8, i64)> {
        let code = self.free.pop()?;
        let began_us = micros(now).max(self.began_us[usize::from(self.now())] + 1);
        self.began_us[usize::from(code)] = began_us;
        self.in_use.push(code);
        Some((code, began_us))
    }

    /// A code for a use in the past. Returns it with the time at which it began; that is later than the use
    /// only where no code is left to be given out for this, or uses were not told apart so long ago.
    pub(crate) fn recall(&mut self, used_us: i64, now: Millis) -> (u8, i64) {
        let began_us = |code: &u8| self.began_us[usize::from(*code)];
        // The first began before all time.
        let next = self.in_use.partition_point(|code| began_us(code) <= used_us.max(0));
        let (before, after) = (self.in_use[next - 1], self.in_use.get(next).copied());
        let error_us = used_us - began_us(&before);
        let is_near = error_us <= (micros(now) - used_us) / NEARNESS;
        let is_spare = self.free.len() > KEPT_FOR_TICKS;
        match (after, self.free.last().copied()) {
            (Some(_), Some(code)) if !is_near && is_spare => {
                self.free.pop();
                self.began_us[usize::from(code)] = used_us.max(1);
                self.in_use.insert(next, code);
                (code, used_us.max(1))
            }
            (Some(after), _) if !is_near => (after, began_us(&after)),
            _ => (before, began_us(&before)),
        }
    }

    /// Chooses at most `wanted` codes that are each to be replaced by the one before.
    pub(crate) fn plan(&self, now: Millis, wanted: usize) -> Replacements {
        let began = |at: usize| self.began_us[usize::from(self.in_use[at])];
        // All but the oldest, which has none before it, and the two latest.
        let mut order: Vec<usize> = (1..self.in_use.len().saturating_sub(2)).collect();
        let worth = |at: usize| {
            let distance = (began(at + 1) - began(at - 1)).max(0) as f64;
            distance / (micros(now) - began(at)).max(1) as f64
        };
        order.sort_by(|a, b| worth(*a).total_cmp(&worth(*b)));
        let mut replacements = none_replaced();
        let mut is_chosen = vec![false; self.in_use.len()];
        let mut chosen = 0;
        for at in order {
            // A code is never chosen if one of its neighbours is: that one is to be replaced by it, or it by
            // that one.
            if chosen < wanted && !is_chosen[at - 1] && !is_chosen[at + 1] {
                is_chosen[at] = true;
                chosen += 1;
                replacements[usize::from(self.in_use[at])] = self.in_use[at - 1];
            }
        }
        replacements
    }

    /// Frees the codes in use that `is_gone` says no entry has any more. The present one stays.
    pub(crate) fn retire(&mut self, is_gone: impl Fn(u8) -> bool) {
        let now = self.now();
        let (gone, kept): (Vec<u8>, Vec<u8>) = self.in_use.iter().partition(|c| **c != now && is_gone(**c));
        self.in_use = kept;
        self.free.extend(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eviction::aging::{FREE_WANTED, REPLACED};

    /// Ticks once a second and plans when codes are short, replacing at once what a keyspace would replace in
    /// a round. Calls `look` with the time and what is remembered of each second.
    fn live(seconds: i64, mut look: impl FnMut(i64, &LruClock, &[u8])) {
        let mut clock = LruClock::new();
        let mut remembered: Vec<u8> = Vec::new();
        for second in 0..seconds {
            clock.tick(Millis(second * 1000)).expect("a code is free");
            remembered.push(clock.now());
            if clock.free() < FREE_WANTED {
                let replacements = clock.plan(Millis(second * 1000), REPLACED);
                remembered.iter_mut().for_each(|code| *code = replacements[usize::from(*code)]);
                clock.retire(|code| replacements[usize::from(code)] != code);
            }
            look(second * 1000, &clock, &remembered);
        }
    }

    #[test]
    fn a_moment_is_remembered_in_order_and_within_a_seventh_of_its_age() {
        live(20_000, |now_ms, clock, remembered| {
            if now_ms % 1_000_000 != 999_000 {
                return;
            }
            let began: Vec<i64> =
                remembered.iter().map(|code| clock.began_us[usize::from(*code)] / 1000).collect();
            assert!(began.is_sorted(), "what was earlier is not taken for later");
            for (second, began) in began.iter().enumerate() {
                let true_ms = second as i64 * 1000;
                let age = now_ms - true_ms;
                assert!(*began <= true_ms && true_ms - began <= age / 7 + 1000, "{age} ms ago is {began}");
            }
        });
    }

    #[test]
    fn codes_are_never_short_and_unknown_is_never_given_out() {
        let mut least = CODES;
        live(3000, |_, clock, remembered| {
            least = least.min(clock.free());
            assert_eq!(clock.in_use.len() + clock.free.len(), CODES - 1);
            assert!(!remembered.contains(&UNKNOWN));
        });
        assert!(least >= FREE_WANTED - 1, "{least} codes were free");
    }

    #[test]
    fn a_use_in_the_past_is_recalled_and_the_clock_goes_on() {
        let mut clock = LruClock::new();
        let now = Millis(1_000_000_000);
        clock.tick(now);
        let mut ages: Vec<i64> = (0..2000).map(|n| 1 + n * 400_000).collect();
        let began = |clock: &mut LruClock, age_us: i64| clock.recall(micros(now) - age_us, now).1;
        // Those that are far apart are told apart well; when codes are short, in order all the same.
        for age_us in [1_000_000, 100_000_000, 3_600_000_000, 86_400_000_000] {
            let error_us = (micros(now) - age_us - began(&mut clock, age_us)).abs();
            assert!(error_us <= age_us / NEARNESS, "{age_us}: {error_us}");
        }
        ages.reverse();
        let recalled: Vec<i64> = ages.iter().map(|age_us| began(&mut clock, *age_us)).collect();
        assert!(recalled.iter().all(|began_us| (1..=micros(now)).contains(began_us)));
        assert!(
            clock.free() >= KEPT_FOR_TICKS
                && clock.in_use.is_sorted_by_key(|c| clock.began_us[usize::from(*c)])
        );
        assert_eq!(clock.tick(Millis(now.0 + 1)), Some((clock.now(), micros(now) + 1000)));
    }

    #[test]
    fn without_a_free_code_the_present_one_goes_on() {
        let mut clock = LruClock::new();
        let ticks = (0..1000).filter(|_| clock.tick(Millis(1)).is_some()).count();
        assert_eq!(ticks, CODES - 2);
        let now = clock.now();
        clock.retire(|_| true);
        assert_eq!((clock.now(), clock.free()), (now, CODES - 2));
    }
}
