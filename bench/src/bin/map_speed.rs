//! Nanoseconds an operation: the map against the standard hash map of boxed keys, in one run, on the same
//! keys.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin map_speed [keys] [shards]`: 256 maps (shards),
//! keys `user:N` of 11 bytes, payloads of 6 bytes, operations on random keys, in this thread's processor
//! time. "In batches" prefetches 16 keys before it finds them, as a worker does; the second stage also
//! prefetches their entries.
use base::hash::{Hash, Seed};
use base::random::Random;
use pack::arena::Arena;
use pack::map::{Entry, Map};
use std::alloc::System;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Arena<System> = Arena(System);

const BATCH: usize = 16;
const LOOKUPS: usize = 2_000_000;

/// The same hash for both.
#[derive(Clone, Copy)]
struct Keyed(Seed);
struct State(Seed, u64);

impl BuildHasher for Keyed {
    type Hasher = State;
    fn build_hasher(&self) -> State {
        State(self.0, 0)
    }
}

impl Hasher for State {
    fn write(&mut self, bytes: &[u8]) {
        self.1 ^= self.0.hash(bytes).0;
    }
    fn write_usize(&mut self, _: usize) {}
    fn finish(&self) -> u64 {
        self.1
    }
}

struct Shards {
    maps: Vec<Map<u64>>,
    bits: u32,
    seed: Seed,
}

impl Shards {
    fn insert(&mut self, key: &[u8], value: &[u8]) {
        let hash = self.seed.hash(key);
        match self.maps[hash.shard(self.bits)].entry(&self.seed, hash, key) {
            Entry::Vacant(entry) => entry.insert(0, value, None, &mut ()),
            Entry::Occupied(entry) => entry.replace_inline(0, value, &mut ()),
        }
    }

    fn find(&self, hash: Hash, key: &[u8]) -> u64 {
        let found = self.maps[hash.shard(self.bits)].find(hash, key);
        found.map_or(0, |found| u64::from(found.inline[0]))
    }
}

fn keys(count: usize) -> Vec<[u8; 11]> {
    (0..count).map(|n| format!("user:{n:06}").as_bytes()[..11].try_into().expect("11 bytes")).collect()
}

#[allow(clippy::disallowed_macros)]
fn timed<R>(name: &str, count: usize, run: impl FnOnce() -> R) -> R {
    let start = cpu_time();
    let result = run();
    println!("{name:34} {:8.1} ns", (cpu_time() - start).as_nanos() as f64 / count as f64);
    result
}

/// This thread's processor time: what other processes do to the machine is not in it.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer leads to a timespec of ours.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "the clock is there");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn payload(n: usize) -> [u8; 6] {
    (n as u64 + 1).to_le_bytes()[..6].try_into().expect("6 bytes")
}

#[allow(clippy::disallowed_methods)]
fn main() {
    let arg = |n: usize, or: usize| std::env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(or);
    let (count, shards) = (arg(1, 1_000_000).min(1_000_000), arg(2, 256));
    let keys = keys(count);
    let mut random = Random::new(4);
    let mut order: Vec<u32> = (0..count as u32).collect();
    (1..count).rev().for_each(|i| order.swap(i, random.below(i as u64 + 1) as usize));
    let drawn: Vec<u32> = (0..LOOKUPS).map(|_| random.below(count as u64) as u32).collect();
    let seed = Seed::new(1, 2);

    let bits = shards.ilog2();
    let mut ours = Shards { maps: (0..1 << bits).map(|_| Map::new()).collect(), bits, seed };
    timed("map: insert new", count, || {
        order.iter().for_each(|n| ours.insert(&keys[*n as usize], &payload(*n as usize)));
    });
    let mut std: HashMap<Box<[u8]>, [u8; 6], Keyed> = HashMap::with_hasher(Keyed(seed));
    timed("std: insert new", count, || {
        order.iter().for_each(|n| {
            std.insert(keys[*n as usize][..].into(), payload(*n as usize));
        });
    });
    let mut default: HashMap<Box<[u8]>, [u8; 6]> = HashMap::new();
    order.iter().for_each(|n| {
        default.insert(keys[*n as usize][..].into(), payload(*n as usize));
    });
    for _ in 0..2 {
        let sum = timed("map: find", LOOKUPS, || {
            drawn.iter().map(|n| ours.find(seed.hash(&keys[*n as usize]), &keys[*n as usize])).sum::<u64>()
        });
        let sum_std = timed("std: find", LOOKUPS, || {
            drawn.iter().map(|n| std.get(&keys[*n as usize][..]).map_or(0, |v| u64::from(v[0]))).sum::<u64>()
        });
        assert_eq!(sum, sum_std);
        let sum_default = timed("std, its own hasher: find", LOOKUPS, || {
            drawn
                .iter()
                .map(|n| default.get(&keys[*n as usize][..]).map_or(0, |v| u64::from(v[0])))
                .sum::<u64>()
        });
        assert_eq!(sum, sum_default);
        for stages in 1..=2 {
            black_box(timed(&format!("map: find in batches, {stages} stages"), LOOKUPS, || {
                drawn.chunks(BATCH).map(|batch| find_batch(&ours, &keys, batch, stages)).sum::<u64>()
            }));
        }
    }
    timed("map: overwrite, same length", LOOKUPS, || {
        drawn.iter().for_each(|n| ours.insert(&keys[*n as usize], &payload(*n as usize + 7)));
    });
    timed("map: overwrite, other length", LOOKUPS, || {
        drawn.iter().enumerate().for_each(|(i, n)| {
            ours.insert(&keys[*n as usize], &payload(*n as usize)[..3 + i % 4]);
        });
    });
    timed("map: remove", count, || {
        order.iter().for_each(|n| {
            let (key, hash) = (&keys[*n as usize], seed.hash(&keys[*n as usize]));
            black_box(ours.maps[hash.shard(bits)].remove(&seed, hash, key));
        });
    });
    assert!(ours.maps.iter().all(Map::is_empty));
}

fn find_batch(maps: &Shards, keys: &[[u8; 11]], batch: &[u32], stages: usize) -> u64 {
    let mut hashes = [Hash(0); BATCH];
    for (hash, n) in hashes.iter_mut().zip(batch) {
        *hash = maps.seed.hash(&keys[*n as usize]);
        maps.maps[hash.shard(maps.bits)].prefetch(*hash);
    }
    if stages > 1 {
        hashes.iter().for_each(|hash| maps.maps[hash.shard(maps.bits)].prefetch_entry(*hash));
    }
    hashes.iter().zip(batch).map(|(hash, n)| maps.find(*hash, &keys[*n as usize])).sum()
}
