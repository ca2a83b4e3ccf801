//! A cache that fills up and then loses a key for each that comes, over the arena, as the program has it:
//! what the data takes with the holes between it. A program of its own, because the arena is its allocator;
//! no clock and no chance is in it.
use base::Millis;
use base::hash::Seed;
use pack::arena::{self, Arena};
use pack::counted::{self, Counted};
use std::alloc::System;
use store::{
    Beside, Eviction, Evictor, Expiry, Form, Keyspace, KeyspaceOptions, Outcome, Policy, Settings,
    counted_holes,
};

#[global_allocator]
static HEAP: Counted<Arena<System>> = Counted(Arena(System));

const LIMIT: u64 = 40 << 20;
const ZONE: u64 = LIMIT / 512;
/// So many keys come between two looks at the holes, about as many as in a tenth of a second.
const KEYS_PER_LOOK: u64 = 10_000;

/// A cache under the ceiling that `server` puts over it.
struct Cache {
    keyspace: Keyspace,
    settings: Settings,
    evictor: Evictor,
    now: Millis,
    value: Vec<u8>,
    holes: u64,
    sent: u64,
}

impl Cache {
    fn new(policy: Policy, value_bytes: usize) -> Cache {
        let eviction = Eviction { policy, ..Eviction::default() };
        Cache {
            keyspace: Keyspace::new(KeyspaceOptions { shard_bits: 6, databases: 1, seed: Seed::new(1, 2) }),
            settings: Settings { eviction, ..Settings::default() },
            evictor: Evictor::new(1),
            now: Millis(1_790_000_000_000),
            value: vec![b'v'; value_bytes],
            holes: 0,
            sent: 0,
        }
    }

    /// What server/src/worker/cron.rs does ten times a second.
    fn look(&mut self) {
        self.now.0 += 100;
        self.keyspace.tend_uses(self.now, &self.settings.eviction);
        while arena::is_purge_due() && arena::purge(64) > 0 {}
        self.holes = counted_holes(LIMIT, self.holes_now());
    }

    fn holes_now(&self) -> u64 {
        arena::usage().hole_bytes as u64
    }

    fn make_room(&mut self, key: &[u8]) {
        let coming_bytes = key.len() + self.value.len() + 8;
        let holes = self.holes;
        let held = || counted::used_bytes() as u64 + coming_bytes as u64 + holes;
        let (eviction, garbage) = (&self.settings.eviction, &mut Vec::new());
        let excess_bytes = held().saturating_sub(LIMIT - ZONE);
        if excess_bytes == 0 {
            return;
        }
        let urgent = u64::from(Beside::URGENT);
        let urgency = (excess_bytes * urgent / (ZONE / 2)).clamp(1, urgent) as u32;
        let beside = Beside { db: 0, hash: self.keyspace.hash(key), coming_bytes, excess_bytes, urgency };
        self.keyspace.evict_beside(&mut self.evictor, self.now, eviction, &beside, garbage);
        garbage.clear();
        while held() > LIMIT {
            let caught = self.keyspace.evict(&mut self.evictor, self.now, eviction, garbage);
            assert_eq!(caught, Outcome::Key, "there are keys that may go");
            garbage.clear();
        }
    }

    fn send(&mut self) {
        let key = format!("key:{:012}", self.sent);
        self.sent += 1;
        if self.sent.is_multiple_of(KEYS_PER_LOOK) {
            self.look();
        }
        self.make_room(key.as_bytes());
        let (mut view, key) = self.keyspace.lock_one(0, self.now, &self.settings, key.as_bytes());
        let expiry = match self.settings.eviction.policy {
            Policy::VolatileTtl => {
                Expiry::At(Millis(self.now.0 + 1_000_000 + (self.sent * 7919 % 1_000_000) as i64))
            }
            _ => Expiry::Clear,
        };
        view.put_string(&key, &self.value, Form::Auto, expiry);
    }
}

/// Fills a cache. Returns, in thousandths of the limit, the most that the data took with the holes in
/// between, and the least that the data alone took once the cache was full.
fn fill(policy: Policy, value_bytes: usize) -> (u64, u64) {
    let mut cache = Cache::new(policy, value_bytes);
    let (mut held_most, mut used_least) = (0, u64::MAX);
    let capacity = LIMIT / (value_bytes as u64 + 16);
    while cache.sent < 2 * capacity {
        cache.send();
        let used = counted::used_bytes() as u64;
        held_most = held_most.max(used + cache.holes_now());
        if cache.sent > capacity * 3 / 2 {
            used_least = used_least.min(used);
        }
    }
    assert!(cache.keyspace.stats().evicted > capacity / 2, "the cache was full");
    (held_most * 1000 / LIMIT, used_least * 1000 / LIMIT)
}

#[test]
fn a_full_cache_with_the_holes_between_its_data_stays_close_to_the_limit() {
    for (policy, value_bytes) in
        [(Policy::AllkeysLru, 100), (Policy::VolatileTtl, 400), (Policy::AllkeysRandom, 3000)]
    {
        let (held_most, used_least) = fill(policy, value_bytes);
        assert!(held_most <= 1040, "{policy:?}: data and holes come to {held_most} of 1000");
        assert!(used_least >= 950, "{policy:?}: only {used_least} of 1000 are data");
    }
}
