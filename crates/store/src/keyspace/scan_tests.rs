//! What SCAN guarantees: a key that is there from the first call to the last is shown, whatever splits,
//! merges, expires, is flushed or changes places between the calls, and in the middle of them; and a walk
//! ends. Ours guarantees more: such a key is shown once, since cursors are positions in hash order.
use crate::keyspace::tests::{NOW, keyspace, set, with};
use crate::{Expiry, Form, Garbage, Keyspace, Settings};
use base::Millis;
use base::random::Random;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

const STAYING: u32 = 700;

/// A keyspace in which some keys stay.
fn filled(seed: u64) -> Keyspace {
    let keyspace = keyspace([0, 1, 4][(seed % 3) as usize]);
    refill(&keyspace);
    keyspace
}

fn refill(keyspace: &Keyspace) {
    (0..STAYING).for_each(|n| set(keyspace, &format!("stays:{n}"), "v", Expiry::Clear));
}

/// A walk, and what happens meanwhile.
struct Walk<'k> {
    keyspace: &'k Keyspace,
    random: Random,
    now: Millis,
    cursor: u64,
    calls: u64,
    shown: BTreeMap<Vec<u8>, u32>,
}

impl Walk<'_> {
    fn new(keyspace: &Keyspace, seed: u64) -> Walk<'_> {
        Walk { keyspace, random: Random::new(seed), now: NOW, cursor: 0, calls: 0, shown: BTreeMap::new() }
    }

    /// One call; whether the walk is over.
    fn step(&mut self) -> bool {
        let count = 1 + self.random.below(30);
        let shown = &mut self.shown;
        let step = self.keyspace.scan(0, self.now, self.cursor, count, &mut |key, _| {
            *shown.entry(key.to_vec()).or_default() += 1;
        });
        self.cursor = step.next_cursor;
        self.calls += 1;
        self.cursor == 0
    }

    fn check(&self, seed: u64) {
        for n in 0..STAYING {
            let times = self.shown.get(format!("stays:{n}").as_bytes()).copied();
            assert_eq!(times, Some(1), "stays:{n}, seed {seed}");
        }
        assert!(self.calls <= 2 * 65_536, "a walk ends, seed {seed}");
    }

    /// Many keys come, with deadlines near and far or without, or many go: leaves split, or merge.
    fn churn(&mut self) {
        let comes = self.random.below(2) == 0;
        for _ in 0..self.random.below(400) {
            let name = format!("passes:{}", self.random.below(4000));
            let at = Expiry::At(Millis(self.now.0 + 1 + self.random.below(200) as i64));
            let expiry = [Expiry::Clear, at][self.random.below(2) as usize];
            let now = self.now;
            with(self.keyspace, now, &name, |view, key| {
                if comes {
                    view.put_string(key, b"v", Form::Auto, expiry);
                } else {
                    view.remove(key);
                }
            });
        }
    }

    /// Something else that happens to keyspaces.
    fn disturb(&mut self) {
        match self.random.below(8) {
            0..=3 => self.churn(),
            4..=5 => {
                self.now.0 += self.random.below(150) as i64;
                let mut garbage: Vec<Garbage> = Vec::new();
                let budget = 1 + self.random.below(300) as usize;
                self.keyspace.expire(self.now, budget, &mut garbage);
            }
            6 => drop(self.keyspace.flush(Some(3))),
            // There and back: nothing of database 0 is missing when the next call comes.
            _ => {
                self.keyspace.swap(0, 3, Millis(0));
                self.churn();
                self.keyspace.swap(3, 0, Millis(0));
            }
        }
    }
}

#[test]
fn a_key_that_stays_is_shown_once_whatever_happens_between_the_calls() {
    for seed in 0..24 {
        let keyspace = filled(seed);
        let mut walk = Walk::new(&keyspace, seed);
        while !walk.step() {
            walk.disturb();
        }
        walk.check(seed);
    }
}

/// Writes, removes and expires keys until told to stop.
fn write_until(keyspace: &Keyspace, seed: u64, is_over: &AtomicBool) {
    let (settings, mut random) = (Settings::default(), Random::new(seed));
    while !is_over.load(Ordering::Relaxed) {
        let name = format!("passes:{}", random.below(6000));
        let at = Millis(NOW.0 + random.below(50) as i64);
        let (mut view, key) = keyspace.lock_one(0, NOW, &settings, name.as_bytes());
        match random.below(3) {
            0 => drop(view.remove(&key)),
            1 => view.put_string(&key, b"v", Form::Auto, Expiry::Clear),
            _ => view.put_string(&key, b"v", Form::Auto, Expiry::At(at)),
        }
        drop(view);
        if random.below(100) == 0 {
            keyspace.expire(at, 100, &mut Vec::new());
        }
    }
}

#[test]
fn a_key_that_stays_is_shown_once_while_other_threads_write_and_expire() {
    for seed in 0..3 {
        let keyspace = filled(seed);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (keyspace, is_over) = (&keyspace, &is_over);
                scope.spawn(move || write_until(keyspace, seed * 2 + thread, is_over));
            }
            for round in 0..20 {
                let mut walk = Walk::new(&keyspace, seed + round);
                while !walk.step() {}
                walk.check(seed);
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn a_walk_over_a_flushed_and_refilled_keyspace_ends_and_shows_what_lies_ahead_of_it() {
    for seed in 0..20 {
        let keyspace = filled(seed);
        let mut walk = Walk::new(&keyspace, seed);
        for _ in 0..walk.random.below(40) {
            if walk.step() {
                break;
            }
        }
        keyspace.flush(None);
        let shown = std::mem::take(&mut walk.shown);
        refill(&keyspace);
        if walk.cursor != 0 {
            while !walk.step() {}
            // What was not shown before the flush lies ahead, and nothing is shown again.
            assert_eq!(walk.shown.len() + shown.len(), STAYING as usize, "seed {seed}");
        }
    }
}
