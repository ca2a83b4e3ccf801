//! What is in use only because a snapshot holds it, beside what commands need: known well enough that a cache
//! at its limit does not evict for it. A program of its own, because what is counted is the process's.
use base::Millis;
use base::hash::Seed;
use base::random::Random;
use pack::arena::Arena;
use pack::counted::{self, Counted};
use std::alloc::System;
use store::{Eviction, Evictor, Expiry, Form, Frozen, Keyspace, KeyspaceOptions, Policy, Settings};

#[global_allocator]
static HEAP: Counted<Arena<System>> = Counted(Arena(System));

const KEYS: u64 = 40_000;
const NOW: Millis = Millis(1_790_000_000_000);

struct Data {
    keyspace: Keyspace,
    settings: Settings,
    random: Random,
}

impl Data {
    fn new() -> Data {
        let eviction = Eviction { policy: Policy::AllkeysRandom, ..Eviction::default() };
        let mut data = Data {
            keyspace: Keyspace::new(KeyspaceOptions { shard_bits: 4, databases: 1, seed: Seed::new(1, 2) }),
            settings: Settings { eviction, ..Settings::default() },
            random: Random::new(7),
        };
        (0..KEYS).for_each(|key| data.put(key));
        data
    }

    /// Values within their entries, and outside of them.
    fn put(&mut self, key: u64) {
        let value = vec![b'v'; [20, 100, 700, 3000][(key % 4) as usize]];
        let name = format!("key:{key}");
        let (mut view, key) = self.keyspace.lock_one(0, NOW, &self.settings, name.as_bytes());
        view.put_string(&key, &value, Form::Auto, Expiry::Clear);
    }

    fn remove(&self, key: u64) {
        let name = format!("key:{key}");
        let (mut view, key) = self.keyspace.lock_one(0, NOW, &self.settings, name.as_bytes());
        view.remove(&key);
    }

    fn freeze(&self) -> Frozen {
        self.keyspace.freeze(NOW, Policy::AllkeysRandom)
    }
}

type Change = fn(&mut Data);

/// What is needed, as far as that is known while somebody holds more.
fn needed() -> i64 {
    counted::used_bytes() as i64 - counted::held_bytes() as i64
}

/// In thousandths of the second.
fn off_by(one: i64, other: i64) -> i64 {
    (one - other).abs() * 1000 / other
}

#[test]
fn what_only_a_snapshot_holds_is_known_until_it_is_let_go() {
    let mut data = Data::new();
    let full = needed();
    let changes: [(&str, Change); 4] = [
        ("nothing", |_| {}),
        ("overwritten", |data| {
            for _ in 0..KEYS {
                let key = data.random.below(KEYS);
                data.put(key);
            }
        }),
        ("removed", |data| (0..KEYS / 2).for_each(|key| data.remove(key * 2))),
        ("evicted", |data| {
            let (eviction, mut garbage) = (data.settings.eviction, Vec::new());
            let mut evictor = Evictor::new(3);
            for _ in 0..KEYS / 2 {
                data.keyspace.evict(&mut evictor, NOW, &eviction, &mut garbage);
                garbage.clear();
            }
        }),
    ];
    for (name, change) in changes {
        let frozen = data.freeze();
        let (before, by_thread) = (needed(), counted::thread_needed_bytes());
        change(&mut data);
        let then = needed();
        let by_thread = counted::thread_needed_bytes() - by_thread;
        assert!((then - before - by_thread).abs() < 4096, "{name}: {by_thread} by this thread");
        let most = counted::used_bytes() as i64;
        let mut worst = 0;
        for shard in frozen.into_dbs().flat_map(|db| db.into_shards()) {
            shard.let_go(&mut || {});
            worst = worst.max(off_by(needed(), then));
        }
        let left = needed();
        assert_eq!(counted::held_bytes(), 0, "nobody holds anything any more");
        assert!(off_by(then, left) <= 60, "{name}: {then} seemed to be needed, {left} was");
        assert!(worst <= 90, "{name}: on the way {worst} of 1000 off");
        let is_changed = name != "nothing";
        assert_eq!(most > left + full / 5, is_changed, "{name}: the snapshot held {}", most - left);
        (0..KEYS).for_each(|key| data.put(key));
    }
    // Where nobody holds all data, what is copied for another reason is needed.
    assert_eq!((counted::held_bytes(), counted::has_holders()), (0, false));
    // Whoever shares all keys of a database holds them too, until it ends.
    let aside = data.keyspace.empty_aside(&mut Random::new(1));
    data.keyspace.share_with(&aside, 0);
    (0..KEYS).for_each(|key| data.remove(key));
    assert!(needed() < full / 4 && counted::held_bytes() as i64 > full / 2);
    drop(aside);
    assert_eq!(counted::held_bytes(), 0);
    assert!(needed() < full / 4);
}
