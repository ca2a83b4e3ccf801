//! A keyspace beside the clients' own, with a clock of its own that jumps. What chooses its keys by itself
//! (eviction, flushes) is tested on it.
use super::values;
use crate::{Deadline, Eviction, Evictor, Garbage, Keyspace, KeyspaceOptions, Outcome, Policy, Settings};
use base::Millis;
use base::hash::Seed;
use base::random::Random;

const BEGINNING: Millis = Millis(1_790_000_000_000);
const DATABASES: u16 = 2;
/// There are so many names of keys, and evictions leave about so many keys.
const NAMES: u64 = 2_000;
const KEYS_MAX: u64 = 300;

pub struct Shadow {
    keyspace: Keyspace,
    settings: Settings,
    evictor: Evictor,
    now: Millis,
    random: Random,
}

impl Shadow {
    /// An empty keyspace. All that it does follows from `seed`.
    pub fn new(seed: u64) -> Shadow {
        let mut random = Random::new(seed);
        let seed = Seed::new(random.next_u64(), random.next_u64());
        Shadow {
            keyspace: Keyspace::new(KeyspaceOptions { shard_bits: 2, databases: DATABASES, seed }),
            settings: Settings::default(),
            evictor: Evictor::new(random.next_u64()),
            now: BEGINNING,
            random,
        }
    }

    /// The keyspace, so that its data can be moved with the clients' data.
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Makes some random changes. Returns what is to be freed.
    pub fn churn(&mut self) -> Vec<Garbage> {
        let mut garbage = Vec::new();
        match self.random.below(16) {
            0..9 => (0..self.random.below(20)).for_each(|_| self.touch_one(&mut garbage)),
            9..11 => {
                self.now.0 += self.random.below(3_000) as i64;
                self.keyspace.expire(self.now, self.random.below(100) as usize, &mut garbage);
            }
            11..13 => self.evict(&mut garbage),
            13 => self.change_uses(),
            14 => self.settings.eviction = self.policy(),
            _ => self.upset(&mut garbage),
        }
        garbage
    }

    fn touch_one(&mut self, garbage: &mut Vec<Garbage>) {
        let name = format!("shadow:{}", self.random.below(NAMES)).into_bytes();
        let db = self.random.below(u64::from(DATABASES)) as u16;
        let due = Millis(self.now.0 + 1 + self.random.below(5_000) as i64);
        let (mut view, key) = self.keyspace.lock_one(db, self.now, &self.settings, &name);
        match self.random.below(6) {
            0 => {
                view.remove(&key);
            }
            1 => {
                view.touch(&key);
            }
            2 => {
                view.set_deadline(&key, Deadline::Never);
            }
            _ => {
                let made = values::put(&mut view, &key, due, &mut self.random);
                if self.random.below(2) == 0 {
                    view.set_deadline(&key, Deadline::At(due));
                }
                made.check(&mut view, &key);
            }
        }
        garbage.extend(view.take_garbage());
    }

    fn change_uses(&mut self) {
        if self.keyspace.tend_uses(self.now, &self.settings.eviction) {
            self.keyspace.end_change_of_uses();
        }
    }

    fn policy(&mut self) -> Eviction {
        let policy = Policy::EVICTING[self.random.below(Policy::EVICTING.len() as u64) as usize];
        Eviction { policy, samples: 1 + self.random.below(10) as u32, ..Eviction::default() }
    }

    fn len(&self) -> u64 {
        (0..DATABASES).map(|db| self.keyspace.len(db)).sum()
    }

    /// Evicts keys under a random policy until at most [`KEYS_MAX`] are left, and at times some more.
    fn evict(&mut self, garbage: &mut Vec<Garbage>) {
        let eviction = self.policy();
        let least = self.random.below(10);
        let mut evicted = 0;
        while self.len() > KEYS_MAX || evicted < least {
            let before = self.len();
            let outcome = self.keyspace.evict(&mut self.evictor, self.now, &eviction, garbage);
            if outcome == Outcome::Nothing {
                let volatile: u64 = (0..DATABASES).map(|db| self.keyspace.volatile(db, self.now).0).sum();
                let may_go = if eviction.policy.name().starts_with("volatile") { volatile } else { before };
                assert_eq!(may_go, 0, "{} finds a key that may go", eviction.policy.name());
                break;
            }
            assert!(self.len() < before, "an eviction takes a key, and perhaps some that are due");
            evicted += 1;
        }
    }

    fn upset(&mut self, garbage: &mut Vec<Garbage>) {
        match self.random.below(4) {
            0 => self.keyspace.swap(0, 1, self.now),
            1 => self.now.0 -= self.random.below(3_000) as i64,
            2 => {
                let db = self.random.below(u64::from(DATABASES)) as u16;
                garbage.extend(self.keyspace.flush(Some(db)).1);
                assert_eq!(self.keyspace.len(db), 0);
            }
            _ => match self.random.below(4) {
                0 => self.keyspace.rest_expiry(),
                _ => self.keyspace.resume_expiry(),
            },
        }
    }
}
