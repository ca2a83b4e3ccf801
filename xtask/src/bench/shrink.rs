//! Whether RSS follows the data down: a server is filled with mixed keys, a part of them, chosen at random,
//! is deleted by pipelines, and then RSS is set beside `used_memory` once a second for a minute.
//!
//! Meanwhile another client reads, writes and pings; its longest round trips are told, and the server's own
//! histogram of command times beside them, in which a pause would show that the probe happened to miss. A
//! server without that histogram (the peer) is told by the probe alone.

use super::Options;
use super::client::{Answer, Client};
use super::server::{Server, Spec};
use super::stalls::{histogram, summary};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Parts of the keys that are deleted, in percent; a fresh server for each.
const DELETED: [u64; 2] = [60, 90];
const WATCHED_S: u64 = 60;
const PIPELINE: usize = 64;
/// Keys between two looks at `used_memory` while the server is filled.
const KEYS_A_LOOK: u64 = 4096;
/// What is asked of RSS, as a multiple of `used_memory`.
const RATIO_WANTED: f64 = 1.2;
/// Seconds of the minute that get a line of their own.
const SHOWN_S: [u64; 9] = [0, 1, 2, 5, 10, 20, 30, 45, 60];
/// Commands whose histograms are shown.
const COMMANDS: [&str; 6] = ["get", "set", "del", "unlink", "exists", "ping"];

/// Whether there is a part of this name.
pub(super) fn knows(name: &str) -> bool {
    name.parse().is_ok_and(|percent: u64| percent <= 100)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let parts: Vec<u64> = options.names.iter().filter_map(|name| name.parse().ok()).collect();
    let parts = if parts.is_empty() { DELETED.to_vec() } else { parts };
    for part in parts {
        for spec in &options.servers {
            one(spec, options.gb, part)?;
        }
    }
    Ok(())
}

fn one(spec: &Spec, gb: f64, part: u64) -> Result<(), String> {
    let server = Server::start(spec, None)?;
    let mut client = server.client()?;
    let keys = fill(&mut client, (gb * 1e9) as u64)?;
    let full = Sample::of(&server, &mut client)?;
    println!("{}: {keys} keys, {full}; {part}% of them are deleted", server.name);
    client.call(&[b"CONFIG", b"RESETSTAT"])?;
    let cpu_us = server.cpu_us();
    let (times, settled_s) = probed(&server, keys, || {
        delete(&mut client, keys, part)?;
        watch(&server, &mut client)
    })?;
    match settled_s {
        Some(s) => println!("  at most {RATIO_WANTED} times used_memory after {s} s"),
        None => println!("  never at most {RATIO_WANTED} times used_memory"),
    }
    println!("  server's processor time since the first DEL: {:.1} s", (server.cpu_us() - cpu_us) / 1e6);
    println!("  round trips of another client: {}", summary(times));
    for command in COMMANDS {
        let answer = client.call(&[b"LATENCY", b"HISTOGRAM", command.as_bytes()]);
        println!("  {command}: {}", answer.map_or_else(|e| e, |a| histogram(&a)));
    }
    Ok(())
}

/// RSS and `used_memory` at one moment.
struct Sample {
    rss: u64,
    used: u64,
}

impl Sample {
    fn of(server: &Server, client: &mut Client) -> Result<Sample, String> {
        Ok(Sample { rss: server.rss_bytes(), used: used_memory(client)? })
    }

    fn ratio(&self) -> f64 {
        self.rss as f64 / self.used.max(1) as f64
    }
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        write!(f, "RSS {:.1} MB, used {:.1} MB, ratio {:.3}", mb(self.rss), mb(self.used), self.ratio())
    }
}

fn used_memory(client: &mut Client) -> Result<u64, String> {
    let Answer::Text(text) = client.call(&[b"INFO", b"memory"])? else { return Err("bench: no INFO".into()) };
    let text = String::from_utf8_lossy(&text).into_owned();
    let field = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    field.and_then(|n| n.trim().parse().ok()).ok_or("bench: INFO has no used_memory".into())
}

/// A number that key `i` alone decides: what it holds, and whether it is deleted.
fn mixed(i: u64) -> u64 {
    let mut x = i.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn key(i: u64) -> Vec<u8> {
    format!("mixed:{i:010}").into_bytes()
}

/// Adds keys until `used_memory` says that there are so many bytes. Returns how many keys that took.
fn fill(client: &mut Client, bytes: u64) -> Result<u64, String> {
    let mut keys = 0;
    while used_memory(client)? < bytes {
        for i in keys..keys + KEYS_A_LOOK {
            add(client, i)?;
        }
        client.flush()?;
        keys += KEYS_A_LOOK;
    }
    Ok(keys)
}

/// Adds a key. Of a hundred keys 55 are strings of 20 bytes to 4 KB, each doubling as likely as the next, 20
/// such strings with a deadline, 22 short lists, 3 long ones.
fn add(client: &mut Client, i: u64) -> Result<(), String> {
    static TEXT: [u8; 4096] = [b'v'; 4096];
    let (dice, key) = (mixed(i), key(i));
    let length = (20.0 * (4096.0_f64 / 20.0).powf((dice >> 32 & 0xFFFF) as f64 / 65_535.0)) as usize;
    let elements = |count: u64, bytes: usize| (0..count).map(move |_| &TEXT[..bytes]);
    let push = |count: u64, bytes: usize| {
        [b"RPUSH".as_slice(), &key].into_iter().chain(elements(count, bytes)).collect::<Vec<_>>()
    };
    match dice % 100 {
        0..55 => client.pipe(&[b"SET", &key, &TEXT[..length]], PIPELINE),
        55..75 => client.pipe(&[b"SET", &key, &TEXT[..length], b"EX", b"86400"], PIPELINE),
        75..97 => client.pipe(&push(2 + dice / 100 % 8, 8), PIPELINE),
        _ => client.pipe(&push(100 + dice / 100 % 900, 10 + (dice >> 48) as usize % 50), PIPELINE),
    }
}

/// Deletes keys at random, DEL and UNLINK in turn.
fn delete(client: &mut Client, keys: u64, part: u64) -> Result<(), String> {
    for i in (0..keys).filter(|i| is_deleted(*i, part)) {
        let command: &[u8] = if i % 2 == 0 { b"DEL" } else { b"UNLINK" };
        client.pipe(&[command, &key(i)], PIPELINE)?;
    }
    client.flush()
}

fn is_deleted(i: u64, part: u64) -> bool {
    mixed(i ^ 0xDE1E_7ED0) % 100 < part
}

/// A minute of samples. Returns the second from which on the ratio was good enough.
fn watch(server: &Server, client: &mut Client) -> Result<Option<u64>, String> {
    let mut settled_s = None;
    for second in 0..=WATCHED_S {
        let sample = Sample::of(server, client)?;
        if SHOWN_S.contains(&second) {
            println!("  {second:2} s: {sample}");
        }
        let is_good = sample.ratio() <= RATIO_WANTED;
        settled_s = if is_good { settled_s.or(Some(second)) } else { None };
        std::thread::sleep(Duration::from_secs(1));
    }
    Ok(settled_s)
}

/// Round trips of another client in microseconds while `work` runs, and what `work` answers.
fn probed<T>(
    server: &Server,
    keys: u64,
    work: impl FnOnce() -> Result<T, String>,
) -> Result<(Vec<u64>, T), String> {
    let done = AtomicBool::new(false);
    let mut probe = server.client()?;
    std::thread::scope(|scope| {
        let times = scope.spawn(|| {
            let (mut times, mut i) = (Vec::new(), 0);
            while !done.load(Ordering::Relaxed) {
                #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
                let start = Instant::now();
                if ask(&mut probe, i, keys).is_err() {
                    break;
                }
                times.push(start.elapsed().as_micros() as u64);
                i += 1;
                std::thread::sleep(Duration::from_micros(300));
            }
            times
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let times = times.join().map_err(|_| "bench: the probe failed".to_string())?;
        worked.map(|answer| (times, answer))
    })
}

/// One of the probe's requests. A key of another type answers an error, which is an answer.
fn ask(probe: &mut Client, i: u64, keys: u64) -> Result<(), String> {
    let some_key = key(mixed(i) % keys);
    match i % 4 {
        0 => probe.call(&[b"PING"]).map(drop),
        1 => probe.call(&[b"SET", &key(keys + i % 100_000), b"value"]).map(drop),
        2 => probe.call(&[b"EXISTS", &some_key]).map(drop),
        _ => probe.call(&[b"GET", &key(keys + (i - 2) % 100_000)]).map(drop),
    }
}
