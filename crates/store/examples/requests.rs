//! Nanoseconds that one request spends in the keyspace, without protocol and network: the measurement behind the paths of
//! `string.rs`, `list.rs` and `view.rs`. Batches are hashed and prefetched as the server's workers do.
//!
//! `cargo run --release -p store --example requests [keys]`
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use base::Millis;
use base::hash::{Hash, Seed};
use base::random::Random;
use std::time::Instant;
use store::{End, Expiry, Form, Key, Keyspace, KeyspaceOptions, Settings, View};

const BATCH: usize = 16;
const NOW: Millis = Millis(1_790_000_000_000);

/// The keyspace, its settings and the names of its keys.
struct Bench {
    keyspace: Keyspace,
    settings: Settings,
    keys: u64,
    random: Random,
    names: Vec<Vec<u8>>,
}

impl Bench {
    fn draw(&mut self) {
        for name in &mut self.names {
            *name = format!("key:{:012}", self.random.below(self.keys)).into_bytes();
        }
    }

    fn now_with(&self, name: &[u8], hash: Hash, act: &mut dyn FnMut(&mut View<'_>, &Key<'_>)) {
        let (mut view, key) = self.keyspace.lock_one_hashed(0, NOW, &self.settings, name, hash);
        act(&mut view, &key);
    }

    /// Runs `act` on random keys in batches, and prints the mean.
    fn run(&mut self, title: &str, act: &mut dyn FnMut(&mut View<'_>, &Key<'_>)) {
        let batches = 2_000_000 / BATCH;
        let mut spent = std::time::Duration::ZERO;
        for _ in 0..batches {
            self.draw();
            let start = Instant::now();
            let mut hashes = [Hash(0); BATCH];
            for (hash, name) in hashes.iter_mut().zip(&self.names) {
                *hash = self.keyspace.hash(name);
                self.keyspace.prefetch_hashed(0, *hash);
            }
            for (hash, name) in hashes.iter().zip(&self.names) {
                self.now_with(name, *hash, act);
            }
            spent += start.elapsed();
        }
        println!("{title:32} {:6.1} ns", spent.as_nanos() as f64 / (batches * BATCH) as f64);
    }
}

fn rss_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).expect("a number") * 4096
}

fn main() {
    let keys = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number of keys"));
    let options = KeyspaceOptions { shard_bits: 8, databases: 16, seed: Seed::new(1, 2) };
    let mut bench = Bench {
        keyspace: Keyspace::new(options),
        settings: Settings::default(),
        keys,
        random: Random::new(7),
        names: vec![Vec::new(); BATCH],
    };
    let value = [b'x'; 64];
    let before = rss_bytes();
    let start = Instant::now();
    for n in 0..keys {
        let name = format!("key:{n:012}");
        let hash = bench.keyspace.hash(name.as_bytes());
        bench.now_with(name.as_bytes(), hash, &mut |view, key| {
            view.put_string(key, &value, Form::Auto, Expiry::Clear);
        });
    }
    println!("{:32} {:6.1} ns", "load", start.elapsed().as_nanos() as f64 / keys as f64);
    println!("{:32} {:6.1} bytes of RSS", "a key", (rss_bytes() - before) as f64 / keys as f64);
    bench.run("lock only", &mut |_, _| {});
    bench.run("GET", &mut |view, key| assert!(view.string(key).is_ok_and(|found| found.is_some())));
    bench.run("SET, same size", &mut |view, key| view.put_string(key, &value, Form::Auto, Expiry::Clear));
    bench.run("SET with a deadline", &mut |view, key| {
        view.put_string(key, &value, Form::Auto, Expiry::At(Millis(NOW.0 + 60_000)));
    });
    bench.run("SET without one again", &mut |view, key| {
        view.put_string(key, &value, Form::Auto, Expiry::Clear);
    });
    bench.keys = 1;
    bench.names.iter_mut().for_each(Vec::clear);
    bench.keyspace.flush(None);
    bench.run("LPUSH to one list", &mut |view, key| {
        view.list_or_new(key).expect("a list").push(End::Head, &value)
    });
    bench.run("RPOP from it", &mut |view, key| {
        view.list_mut(key).expect("a list").map(|mut list| list.pop(End::Tail, |item| item.len()));
    });
    bench.run("INCR", &mut |view, key| assert!(view.add(key, 1).is_ok()));
}
