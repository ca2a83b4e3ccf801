//! How well each server chooses what to evict: the same traces through a read-through cache (GET, and SET
//! where it is missing), with the same number of keys fitting into each.
//!
//! `maxmemory` means different bytes to each server, so it is found by its own count: the server is given so
//! many keys under the policy, and what it then says it uses (`used_memory` less `mem_not_counted_for_evict`)
//! becomes its limit. After a trace DBSIZE tells how many keys it really held. The first third of a trace
//! only fills the cache. Beside the servers stands what an exact LRU list of that many keys would have had.
//!
//! | trace | requests |
//! |---|---|
//! | `zipf-0.7`, `zipf-0.9`, `zipf-1.1` | drawn from all keys with the chance of rank^-s |
//! | `scan` | `zipf-0.9`; now and then half a cache of keys that come once and are not counted |
//!
//! Names on the command line choose policies and traces; `--keys` is how many keys there are,
//! a tenth of which fit.

use super::Options;
use super::client::{Answer, Client};
use super::server::{Server, Spec};
use base::random::Random;
use std::collections::BTreeMap;

const KEYS: u64 = 200_000;
/// How many keys there are for each that fits.
const FITTING: u64 = 10;
/// Requests for each key.
const REQUESTS: u64 = 6;
/// GETs sent together.
const DEPTH: usize = 32;
const VALUE: [u8; 64] = [b'v'; 64];
/// A key that is scanned has a number from here on.
const SCANNED: u32 = 1 << 30;

const TRACES: [(&str, f64); 4] = [("zipf-0.7", 0.7), ("zipf-0.9", 0.9), ("zipf-1.1", 1.1), ("scan", 0.9)];
const POLICIES: [&str; 7] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// Whether there is a policy or trace of this name.
pub(super) fn knows(name: &str) -> bool {
    POLICIES.contains(&name) || TRACES.iter().any(|trace| trace.0 == name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let keys = options.keys.unwrap_or(KEYS);
    let wants = |name: &str| options.names.iter().any(|n| n == name);
    let traces: Vec<_> = TRACES.iter().filter(|t| wants(t.0)).collect();
    let traces = if traces.is_empty() { TRACES.iter().collect() } else { traces };
    let policies: Vec<&str> = POLICIES.into_iter().filter(|p| wants(p)).collect();
    let policies = if policies.is_empty() { POLICIES[..3].to_vec() } else { policies };
    println!("{keys} keys, of which {} fit; hits of 100 requests, and keys held at the end", keys / FITTING);
    for (name, exponent) in traces {
        let trace = Trace::new(keys, *exponent, *name == "scan");
        let exact = 100.0 * trace.exact_lru((keys / FITTING) as usize);
        for policy in &policies {
            let mut line = format!("{name:9} {policy:15} exact LRU {exact:5.2}");
            for spec in &options.servers {
                let run = replay(spec, policy, &trace, keys)?;
                line += &format!("   {} {:5.2} ({})", spec.name, 100.0 * run.hit_ratio, run.held);
            }
            println!("{line}");
        }
    }
    Ok(())
}

/// Keys in the order in which they are asked for.
struct Trace(Vec<u32>);

impl Trace {
    fn new(keys: u64, exponent: f64, is_scanned: bool) -> Trace {
        let mut random = Random::new(42);
        let mut sums = Vec::with_capacity(keys as usize);
        let mut sum = 0.0;
        for rank in 1..=keys {
            sum += (rank as f64).powf(-exponent);
            sums.push(sum);
        }
        let fitting = keys / FITTING;
        let mut trace = Vec::new();
        let mut scanned = SCANNED;
        for n in 0..keys * REQUESTS {
            let drawn = random.unit_f64() * sum;
            trace.push(sums.partition_point(|sum| *sum < drawn) as u32);
            if is_scanned && n % (2 * fitting) == 0 {
                let run = scanned..scanned + (fitting / 2) as u32;
                scanned = run.end;
                trace.extend(run);
            }
        }
        Trace(trace)
    }

    /// What counts: requests after the first third that are no part of a scan.
    fn counts(&self, at: usize) -> bool {
        at >= self.0.len() / 3 && self.0[at] < SCANNED
    }

    /// The hit ratio of a list of the `room` keys that were used last.
    fn exact_lru(&self, room: usize) -> f64 {
        let mut used_at: BTreeMap<u32, usize> = BTreeMap::new();
        let mut by_time: BTreeMap<usize, u32> = BTreeMap::new();
        let mut ratio = Ratio::default();
        for (at, key) in self.0.iter().enumerate() {
            let before = used_at.insert(*key, at);
            if let Some(before) = before {
                by_time.remove(&before);
            }
            by_time.insert(at, *key);
            if by_time.len() > room
                && let Some((_, oldest)) = by_time.pop_first()
            {
                used_at.remove(&oldest);
            }
            if self.counts(at) {
                ratio.add(before.is_some());
            }
        }
        ratio.value()
    }
}

#[derive(Default)]
struct Ratio {
    hits: u64,
    all: u64,
}

impl Ratio {
    fn add(&mut self, is_hit: bool) {
        self.hits += u64::from(is_hit);
        self.all += 1;
    }

    fn value(&self) -> f64 {
        self.hits as f64 / self.all.max(1) as f64
    }
}

struct Run {
    hit_ratio: f64,
    held: i64,
}

fn replay(spec: &Spec, policy: &str, trace: &Trace, keys: u64) -> Result<Run, String> {
    let server = Server::start(spec, None)?;
    let mut client = server.client()?;
    let mut cache = Cache { client: &mut client, is_volatile: policy.starts_with("volatile") };
    cache.limit(policy, keys / FITTING)?;
    let mut ratio = Ratio::default();
    for (batch, keys) in trace.0.chunks(DEPTH).enumerate() {
        let is_hit = cache.read_through(keys)?;
        for (index, is_hit) in is_hit.into_iter().enumerate() {
            if trace.counts(batch * DEPTH + index) {
                ratio.add(is_hit);
            }
        }
    }
    Ok(Run { hit_ratio: ratio.value(), held: client.call_int(&[b"DBSIZE"])? })
}

struct Cache<'c> {
    client: &'c mut Client,
    /// Keys get a deadline, so that volatile policies may evict them.
    is_volatile: bool,
}

impl Cache<'_> {
    /// Sets the limit at which so many keys fit, and begins empty.
    fn limit(&mut self, policy: &str, fitting: u64) -> Result<(), String> {
        self.client.call(&[b"CONFIG", b"SET", b"maxmemory-policy", policy.as_bytes()])?;
        for key in 0..fitting {
            self.set(key as u32)?;
        }
        self.client.flush()?;
        let used = number(self.client.info("memory", "used_memory")?)?;
        let not_counted = number(self.client.info("memory", "mem_not_counted_for_evict")?)?;
        self.client.call(&[b"FLUSHALL"])?;
        let limit = (used - not_counted).to_string();
        self.client.call(&[b"CONFIG", b"SET", b"maxmemory", limit.as_bytes()])?;
        Ok(())
    }

    fn set(&mut self, key: u32) -> Result<(), String> {
        let name = name(key);
        match self.is_volatile {
            true => self.client.pipe(&[b"SET", name.as_bytes(), &VALUE, b"EX", b"100000"], DEPTH),
            false => self.client.pipe(&[b"SET", name.as_bytes(), &VALUE], DEPTH),
        }
    }

    /// Asks for all of these keys, then sets those that were missing. Returns which were hits.
    fn read_through(&mut self, keys: &[u32]) -> Result<Vec<bool>, String> {
        for key in keys {
            self.client.pipe(&[b"GET", name(*key).as_bytes()], usize::MAX)?;
        }
        let answers = self.client.collect()?;
        let is_hit: Vec<bool> = answers.iter().map(|answer| *answer != Answer::Null).collect();
        for (key, _) in keys.iter().zip(&is_hit).filter(|(_, is_hit)| !**is_hit) {
            self.set(*key)?;
        }
        self.client.flush()?;
        Ok(is_hit)
    }
}

/// The name of a key: the number is mixed, so that neighbours in rank are no neighbours in name.
fn name(key: u32) -> String {
    format!("object:{:08x}", key.wrapping_mul(0x9E37_79B1))
}

fn number(text: String) -> Result<u64, String> {
    text.parse().map_err(|_| format!("bench: '{text}' is not a number"))
}
