//! Bytes of RSS a key, and where they are: 256 maps loaded with entries of several lengths, one process a
//! case.
//!
//! `cargo run --release --manifest-path bench/Cargo.toml --bin map_bytes [keys]` (1M by default), under the
//! arena over the system's allocator.
use base::hash::Seed;
use pack::arena::Arena;
use pack::map::{Entry, Map};
use pack::stats::Stats;
use std::alloc::System;
use std::process::Command;

#[global_allocator]
static ALLOCATOR: Arena<System> = Arena(System);

const SHARD_BITS: u32 = 8;

/// Length of the key, length of the payload.
const SHAPES: [(usize, usize); 5] = [(11, 6), (16, 64), (16, 40), (41, 212), (30, 700)];

fn rss_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|p| p.parse::<usize>().ok()).expect("a number") * 4096
}

fn load(maps: &mut [Map<u64>], keys: usize, (key_len, payload_len): (usize, usize)) {
    let seed = Seed::new(3, 4);
    let payload = vec![7u8; payload_len];
    let mut key = vec![b'k'; key_len];
    for n in 0..keys {
        let digits = format!("{n:08}");
        key[key_len - 8..].copy_from_slice(digits.as_bytes());
        let hash = seed.hash(&key);
        match maps[hash.shard(SHARD_BITS)].entry(&seed, hash, &key) {
            Entry::Vacant(entry) => entry.insert(0, &payload, None, &mut ()),
            Entry::Occupied(_) => unreachable!("keys differ"),
        }
    }
}

#[allow(clippy::disallowed_macros)]
fn one(keys: usize, shape: (usize, usize)) {
    let before = rss_bytes();
    let mut maps: Vec<Map<u64>> = (0..1 << SHARD_BITS).map(|_| Map::new()).collect();
    load(&mut maps, keys, shape);
    while pack::arena::purge(1000) > 0 {}
    let rss = rss_bytes() - before;
    let mut stats = Stats::default();
    maps.iter().for_each(|map| stats.merge(&map.stats()));
    let per = |bytes: u64| bytes as f64 / keys as f64;
    let payload = (shape.0 + shape.1) as u64 * keys as u64;
    let leaves = stats.tagged;
    println!(
        "{:3}+{:3} x{keys}: RSS {:7.2} a key = payload {:6.2} + entries and leaf headers {:5.2} + \
         rounding of leaves {:5.2} + inner {:4.2} + allocator {:5.2} | {:5.1} entries a leaf, {:6.0} bytes, height {}",
        shape.0,
        shape.1,
        per(rss as u64),
        per(payload),
        per(leaves.used_bytes - payload),
        per(leaves.allocated_bytes - leaves.used_bytes),
        per(stats.inner.allocated_bytes),
        per(rss as u64) - per(leaves.allocated_bytes + stats.inner.allocated_bytes),
        leaves.entries as f64 / leaves.nodes as f64,
        leaves.used_bytes as f64 / leaves.nodes as f64,
        stats.height,
    );
}

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    if let [keys, key_len, payload_len] = args[..] {
        return one(keys, (key_len, payload_len));
    }
    let keys = args.first().copied().unwrap_or(1_000_000);
    let this = std::env::current_exe().expect("a path");
    for (key_len, payload_len) in SHAPES {
        let args = [keys, key_len, payload_len].map(|n| n.to_string());
        assert!(Command::new(&this).args(args).status().is_ok_and(|s| s.success()), "a run failed");
    }
}
