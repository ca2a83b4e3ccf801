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
    /// only where no code is left to be given out for this, or the use is older than the Unix epoch.
    ///
    /// A use may be older than every code: the first one begins before all time, but it is freed like any
    /// other once no entry has it, and a change of policy frees all but the present one.
    pub(crate) fn recall(&mut self, used_us: i64, now: Millis) -> (u8, i64) {
        let used_us = used_us.max(1);
        let began_us = |code: u8| self.began_us[usize::from(code)];
        let next = self.in_use.partition_point(|code| began_us(*code) <= used_us);
        let before = next.checked_sub(1).map(|index| self.in_use[index]);
        let Some(after) = self.in_use.get(next).copied() else {
            return (self.now(), began_us(self.now()));
        };
        let is_near = |code: &u8| used_us - began_us(*code) <= (micros(now) - used_us) / NEARNESS;
        if let Some(before) = before.filter(is_near) {
            return (before, began_us(before));
        }
        if self.free.len() > KEPT_FOR_TICKS
            && let Some(code) = self.free.pop()
        {
            self.began_us[usize::from(code)] = used_us;
            self.in_use.insert(next, code);
            return (code, used_us);
        }
        (after, began_us(after))
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
    use base::random::Random;

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

    /// What entries say by their codes, beside when they were really used.
    #[derive(Default)]
    struct Entries(Vec<(u8, i64)>);

    impl Entries {
        fn has(&self, code: u8) -> bool {
            self.0.iter().any(|(has, _)| *has == code)
        }

        fn check(&self, clock: &LruClock, seed: u64) {
            let began_us = |code: u8| clock.began_us[usize::from(code)];
            assert!(clock.in_use.is_sorted_by_key(|code| began_us(*code)), "seed {seed}");
            let mut codes = [clock.in_use.as_slice(), clock.free.as_slice()].concat();
            codes.sort_unstable();
            assert_eq!(codes, (1..=u8::MAX).collect::<Vec<_>>(), "seed {seed}: each code once");
            for (code, _) in &self.0 {
                assert!(clock.in_use.contains(code), "seed {seed}: {code} is not in use");
            }
        }
    }

    /// A use of any age is recalled, whatever was retired and replaced before: the codes stay in order, none
    /// is given out twice, and a time is told within a seventh of the age while codes are to be had.
    #[test]
    fn whatever_was_retired_before_a_use_in_the_past_gets_its_time() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let (mut clock, mut entries, mut now) =
                (LruClock::new(), Entries::default(), Millis(1_000_000_000));
            for _ in 0..600 {
                now.0 += random.below(3000) as i64;
                match random.below(12) {
                    0..=4 => {
                        clock.tick(now);
                        entries.0.push((clock.now(), clock.began_us[usize::from(clock.now())]));
                    }
                    5..=8 => {
                        let used_us = micros(now) - (random.next_u64() >> (24 + random.below(40))) as i64;
                        let present_us = clock.began_us[usize::from(clock.now())];
                        let is_told = clock.free() > KEPT_FOR_TICKS && used_us < present_us;
                        let (code, began_us) = clock.recall(used_us, now);
                        let error_us = (began_us - used_us.max(1)).abs();
                        let near = (micros(now) - used_us) / NEARNESS;
                        assert!(!is_told || error_us <= near, "seed {seed}: {error_us} for {near}");
                        assert_eq!(clock.began_us[usize::from(code)], began_us);
                        entries.0.push((code, used_us));
                    }
                    9 => {
                        let becomes = clock.plan(now, random.below(80) as usize);
                        entries.0.iter_mut().for_each(|(code, _)| *code = becomes[usize::from(*code)]);
                        clock.retire(|code| becomes[usize::from(code)] != code);
                    }
                    10 => {
                        // The oldest entries go, and with them the oldest codes.
                        let gone = random.below(1 + entries.0.len() as u64) as usize;
                        entries.0.sort_unstable_by_key(|(_, used_us)| *used_us);
                        entries.0.drain(..gone);
                        clock.retire(|code| !entries.has(code));
                    }
                    _ if random.below(20) == 0 => {
                        entries.0.clear();
                        clock.retire(|_| true);
                    }
                    _ => clock.retire(|code| !entries.has(code)),
                }
                entries.check(&clock, seed);
            }
        }
    }

    #[test]
    fn a_use_before_the_oldest_code_or_before_all_time_is_recalled_too() {
        let now = Millis(1_000_000_000);
        let mut clock = LruClock::new();
        clock.tick(now);
        clock.retire(|_| true);
        let used_us = micros(now) - 77_000_000;
        let (code, began_us) = clock.recall(used_us, now);
        assert_eq!((clock.in_use[0], began_us), (code, used_us));
        for used_us in [i64::MIN, -1, 0] {
            assert_eq!(clock.recall(used_us, now).1, 1);
        }
        // Where no code is to be spared, the oldest one says it.
        while clock.tick(now).is_some() {}
        let first = clock.in_use[0];
        clock.retire(|code| code == first);
        let oldest = clock.in_use[0];
        assert_eq!(clock.recall(5, now).0, oldest);
    }
}
