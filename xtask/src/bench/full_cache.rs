//! A cache at its limit: processor time of a request while each new key makes the server evict another,
//! the servers taking turns. Keys are new ones with values of 100 bytes, sent by fifty connected
//! clients, fifty at a time.
//!
//! | case | requests |
//! |---|---|
//! | `allkeys-lru`, `allkeys-lfu`, `allkeys-random` | SET under that policy |
//! | `volatile-lru`, `volatile-ttl` | SET with a deadline, up to eleven days away |
//! | `volatile-few` | the same under `volatile-lru`; keys without one fill [`STAYING`] of the limit |
//! | `reads` | under `allkeys-lru` three GETs for each SET, of keys that were set lately |
//! | `bursts` | under `allkeys-lru` forty SETs of 500,000 bytes, each of which has thousands of keys go |
//!
//! Of `bursts` the time is that of an evicted key, and short values come between two of them, which are not
//! measured. Beside the time stand RSS and used memory at most, as parts of the limit, looked at after each
//! turn, also while the cache fills (of `bursts` used memory is its peak); and the keys that it holds in the
//! end. What the peer does not count against its limit is left out of its used memory, as of ours.

use super::Options;
use super::anysize::median;
use super::client::append_request;
use super::crowd::{Crowd, Turn};
use super::server::{Server, Spec};
use base::random::Random;

const LIMIT_BYTES: u64 = 200 << 20;
/// A cache is full when it has evicted so many keys.
const EVICTED_WHEN_FULL: u64 = 300_000;
const TURN: usize = 50_000;
const DEPTH: usize = 50;
const ROUNDS: usize = 20;
const VALUE: [u8; 100] = [b'v'; 100];
/// GETs for each SET, and how far back the keys are that they ask for.
const READS: u64 = 3;
const LATELY: u64 = 400_000;
const TTL_S: std::ops::Range<u64> = 1_000..1_000_000;

/// Long values of a burst, and their bytes.
const BURST: usize = 40;
const LONG_BYTES: usize = 500_000;

/// The part of the limit that is taken by keys that may not go, in `volatile-few`.
const STAYING: f64 = 0.99;
/// So many of these come at a time.
const STAYING_TURN: usize = 4_000;

const CASES: [&str; 8] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-ttl",
    "volatile-few",
    "reads",
    "bursts",
];

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.contains(&name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    super::server::pin_this("1")?;
    for case in CASES.iter().filter(|case| options.wants(case)) {
        let caches: Result<Vec<Cache>, String> =
            options.servers.iter().map(|spec| Cache::filled(spec, case)).collect();
        let mut caches = caches?;
        let rounds = if options.is_quick { 1 } else { options.rounds.unwrap_or(ROUNDS) };
        for round in 0..rounds {
            for at in 0..caches.len() {
                // The servers take turns in being first.
                let at = if round % 2 == 0 { at } else { caches.len() - 1 - at };
                caches[at].measure()?;
            }
        }
        let peer = caches.last().map(|cache| cache.times_us.clone()).unwrap_or_default();
        for cache in &mut caches {
            println!("{case:14} {}", cache.line(&peer)?);
        }
    }
    Ok(())
}

/// One server and its clients.
struct Cache {
    server: Server,
    crowd: Crowd,
    case: Case,
    random: Random,
    /// Processor time a request in each turn that was measured.
    times_us: Vec<f64>,
    rss_most: u64,
    used_most: u64,
    bursts: bool,
}

/// The requests that are sent.
struct Case {
    is_volatile: bool,
    reads: bool,
    /// Whether values are long now.
    is_long: bool,
    /// How many keys have been sent.
    keys: u64,
}

impl Cache {
    /// A server that has begun to evict a while ago.
    fn filled(spec: &Spec, case: &str) -> Result<Cache, String> {
        let server = Server::start(spec, Some("0"))?;
        let policy = match case {
            "reads" | "bursts" => "allkeys-lru",
            "volatile-few" => "volatile-lru",
            policy => policy,
        };
        let limit = LIMIT_BYTES.to_string();
        let mut client = server.client()?;
        for (name, value) in [("maxmemory", limit.as_str()), ("maxmemory-policy", policy)] {
            client.call(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()])?;
        }
        let crowd = Crowd::connect(server.port)?;
        let (reads, bursts) = (case == "reads", case == "bursts");
        let (is_volatile, is_few) = (case.starts_with("volatile"), case == "volatile-few");
        let case = Case { is_volatile: is_volatile && !is_few, reads: false, is_long: false, keys: 0 };
        let random = Random::new(7);
        let times_us = Vec::new();
        let mut cache = Cache { server, crowd, case, random, times_us, rss_most: 0, used_most: 0, bursts };
        while is_few && cache.used()? < (STAYING * LIMIT_BYTES as f64) as u64 {
            cache.turn(STAYING_TURN, DEPTH)?;
        }
        cache.case.is_volatile = is_volatile;
        while number(client.info("stats", "evicted_keys")?)? < EVICTED_WHEN_FULL {
            cache.turn(TURN, DEPTH)?;
        }
        cache.case.reads = reads;
        Ok(cache)
    }

    fn turn(&mut self, requests: usize, depth: usize) -> Result<usize, String> {
        let (case, random) = (&mut self.case, &mut self.random);
        let mut write = |out: &mut Vec<u8>| case.append(out, random);
        let sent = self.crowd.take_turn(&mut Turn { requests, depth, write: &mut write })?;
        self.used_most = self.used_most.max(self.used()?);
        if self.bursts {
            let peak = number(self.server.client()?.info("memory", "used_memory_peak")?)?;
            self.used_most = self.used_most.max(peak);
        }
        self.rss_most = self.rss_most.max(self.server.rss_bytes());
        Ok(sent)
    }

    /// What counts against the limit.
    fn used(&self) -> Result<u64, String> {
        let mut client = self.server.client()?;
        let used = number(client.info("memory", "used_memory")?)?;
        let not_counted = number(client.info("memory", "mem_not_counted_for_evict")?)?;
        Ok(used.saturating_sub(not_counted))
    }

    fn measure(&mut self) -> Result<(), String> {
        if self.bursts {
            return self.measure_burst();
        }
        let before = self.server.cpu_us();
        let sent = self.turn(TURN, DEPTH)?;
        self.times_us.push((self.server.cpu_us() - before) / sent as f64);
        Ok(())
    }

    /// Short values come behind the burst, until the cache is as it was.
    fn measure_burst(&mut self) -> Result<(), String> {
        let mut client = self.server.client()?;
        let evicted = number(client.info("stats", "evicted_keys")?)?;
        let before = self.server.cpu_us();
        self.case.is_long = true;
        self.turn(BURST, 1)?;
        self.case.is_long = false;
        let gone = number(client.info("stats", "evicted_keys")?)? - evicted;
        self.times_us.push((self.server.cpu_us() - before) / gone.max(1) as f64);
        (0..4).try_for_each(|_| self.turn(TURN, DEPTH).map(drop))
    }

    /// `peer` has the times of the server that ratios refer to.
    fn line(&mut self, peer: &[f64]) -> Result<String, String> {
        let held = self.server.client()?.call_int(&[b"DBSIZE"])?;
        let mut ratios: Vec<f64> = self.times_us.iter().zip(peer).map(|(own, peer)| own / peer).collect();
        let part = |bytes: u64| bytes as f64 / LIMIT_BYTES as f64;
        Ok(format!(
            "{:10} {:5.2} us (cpu x{:.2})  RSS at most {:.3} of the limit, used {:.4}, {held} keys held",
            self.server.name,
            median(&mut self.times_us),
            median(&mut ratios),
            part(self.rss_most),
            part(self.used_most),
        ))
    }
}

impl Case {
    fn append(&mut self, out: &mut Vec<u8>, random: &mut Random) {
        if self.reads && random.below(READS + 1) > 0 {
            let number = self.keys.saturating_sub(1 + random.below(LATELY));
            return append_request(out, &[b"GET", name(number).as_bytes()]);
        }
        let name = name(self.keys);
        self.keys += 1;
        if self.is_long {
            append_request(out, &[b"SET", name.as_bytes(), &vec![b'v'; LONG_BYTES]]);
        } else if self.is_volatile {
            let ttl = (TTL_S.start + random.below(TTL_S.end - TTL_S.start)).to_string();
            append_request(out, &[b"SET", name.as_bytes(), &VALUE, b"EX", ttl.as_bytes()]);
        } else {
            append_request(out, &[b"SET", name.as_bytes(), &VALUE]);
        }
    }
}

fn name(number: u64) -> String {
    format!("key:{number:012}")
}

fn number(text: String) -> Result<u64, String> {
    text.trim().parse().map_err(|_| format!("bench: '{text}' is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_new_and_reads_ask_for_what_came() {
        let mut case = Case { is_volatile: false, reads: true, is_long: false, keys: 0 };
        let (mut random, mut sets) = (Random::new(1), 0);
        for _ in 0..1000 {
            let (mut out, before) = (Vec::new(), case.keys);
            case.append(&mut out, &mut random);
            let is_set = out.starts_with(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:");
            assert!(is_set || out.starts_with(b"*2\r\n$3\r\nGET\r\n$16\r\nkey:"));
            assert_eq!(case.keys, before + u64::from(is_set));
            sets += u64::from(is_set);
        }
        assert!((200..300).contains(&sets), "{sets}");
    }
}
