//! Nanoseconds of processor time that one request spends in the keyspace, without protocol and network: the
//! measurement behind the paths of `string.rs`, `list/api.rs` and `keyspace/view.rs`. Batches are hashed and
//! prefetched as the server's workers do.
//!
//! `cargo run --release -p store --example requests [keys] [only what begins with]`
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a measurement reads the clock and prints"
)]

use base::Millis;
use base::hash::{Hash, Seed};
use base::random::Random;
use store::{End, Expiry, Form, Key, Keyspace, KeyspaceOptions, Settings, View};

const BATCH: usize = 16;
const NOW: Millis = Millis(1_790_000_000_000);

const REQUESTS: usize = 1 << 21;

struct Bench {
    keyspace: Keyspace,
    settings: Settings,
    names: Vec<[u8; 16]>,
    /// Runs what begins with this.
    only: String,
}

fn name(n: u64) -> [u8; 16] {
    format!("key:{n:012}").into_bytes().try_into().expect("sixteen bytes")
}

/// Time that this thread was on a processor: other programs do not count.
fn spent_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}

impl Bench {
    /// Runs `act` on the keys in batches, and prints the mean.
    fn run(&mut self, title: &str, act: impl Fn(&mut View<'_>, &Key<'_>)) {
        if !title.starts_with(&self.only) && title != "load" {
            return;
        }
        let start = spent_ns();
        for batch in self.names.chunks_exact(BATCH) {
            let mut hashes = [Hash(0); BATCH];
            for (hash, name) in hashes.iter_mut().zip(batch) {
                *hash = self.keyspace.hash(name);
                self.keyspace.prefetch_hashed(0, *hash);
            }
            for (hash, name) in hashes.iter().zip(batch) {
                let (mut view, key) = self.keyspace.lock_one_hashed(0, NOW, &self.settings, name, *hash);
                act(&mut view, &key);
            }
        }
        println!("{title:32} {:6.1} ns", (spent_ns() - start) as f64 / self.names.len() as f64);
    }
}

fn rss_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).expect("a number") * 4096
}

fn main() {
    let keys: u64 = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number of keys"));
    let options = KeyspaceOptions { shard_bits: 8, databases: 16, seed: Seed::new(1, 2) };
    let mut random = Random::new(7);
    let drawn: Vec<[u8; 16]> = (0..REQUESTS).map(|_| name(random.below(keys))).collect();
    let mut bench = Bench {
        keyspace: Keyspace::new(options),
        settings: Settings::default(),
        only: std::env::args().nth(2).unwrap_or_default(),
        names: (0..keys.next_multiple_of(BATCH as u64)).map(name).collect(),
    };
    let value = [b'x'; 64];
    let later = Expiry::At(Millis(NOW.0 + 60_000));
    let set =
        |expiry| move |view: &mut View<'_>, key: &Key<'_>| view.put_string(key, &value, Form::Auto, expiry);
    let before = rss_bytes();
    bench.run("load", set(Expiry::Clear));
    println!("{:32} {:6.1} bytes of RSS", "a key", (rss_bytes() - before) as f64 / keys as f64);
    bench.names = drawn;
    bench.run("lock only", |_, _| {});
    bench.run("GET", |view, key| assert!(view.string(key).is_ok_and(|found| found.is_some())));
    bench.run("SET, same size", set(Expiry::Clear));
    bench.run("SET with a deadline", set(later));
    bench.run("SET with a deadline again", set(later));
    bench.run("SET without one again", set(Expiry::Clear));
    bench.keyspace.flush(None);
    bench.names.fill(name(0));
    bench
        .run("LPUSH to one list", |view, key| view.list_or_new(key).expect("a list").push(End::Head, &value));
    bench.run("RPOP from it", |view, key| {
        let list = view.list_mut(key).expect("a list");
        assert!(list.is_some_and(|mut list| list.pop(End::Tail, |item| item.len()).is_some()));
    });
    bench.run("INCR", |view, key| assert!(view.add(key, 1).is_ok()));
}
