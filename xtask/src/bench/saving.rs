//! What clients notice of a snapshot that is being written: how long requests take while BGSAVE runs and
//! while it does not, and how much more memory is resident meanwhile.
//!
//! | load | |
//! |---|---|
//! | `paced` | 20,000 requests a second on 50 connections, twenty in each millisecond, whatever is answered |
//! | `full` | 50 clients, each of which sends again as soon as it is answered |
//!
//! Half of the requests are SET of a drawn key, half are GET. Values are 64 to 1,000 bytes long, drawn anew
//! for every SET. The time of a request is counted from the moment at which it was due, so one that waits
//! behind a pause counts with the whole of it. The clients, the server and what writes the snapshot share the
//! processors. Before each snapshot the load runs for as long without one, so that whatever else the machine
//! does falls on both. That only adds to a time, and comes in bursts, so the p99 of quarter seconds is told
//! too: what a quarter and a half of them were below.
//!
//! Memory is what the server's process has beyond what it had before the snapshot, at most; for a peer that
//! forks, the pages that only its child still has are added, as it tells them itself (`rdb_last_cow_size`).
use super::Options;
use super::client::{Client, append_request};
use super::clients::{Clients, Load, Times};
use super::server::Server;
use crate::shell::{Outcome, target_folder};
use base::random::Random;
use std::path::PathBuf;
use std::time::Duration;

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: std::ops::RangeInclusive<u64> = 64..=1000;
const FILL_DEPTH: usize = 200;
/// How long the load runs while snapshots are written, at least; half of it to begin with.
const SECONDS: f64 = 10.0;
const LOADS: [(Load, &str); 2] = [(Load::Paced, "paced"), (Load::Full, "full")];

/// Whether there is a load of this name.
pub(super) fn knows(name: &str) -> bool {
    LOADS.iter().any(|(_, load)| *load == name)
}

pub(crate) fn run(options: &Options) -> Outcome {
    let keys = options.keys.unwrap_or(KEYS);
    let seconds = Duration::from_secs_f64(options.seconds.unwrap_or(SECONDS));
    println!("{keys} keys, values of 64 to 1,000 bytes; half SET, half GET");
    for spec in &options.servers {
        let folder = Folder::new()?;
        let spec = spec.with(&format!("--dir {}", folder.0.display()));
        let server = Server::start(&spec, None)?;
        let data_bytes = fill(&mut server.client()?, keys)?;
        for (load, name) in LOADS {
            if options.wants(name) {
                measure(&server, (load, name), (keys, data_bytes, seconds))?;
            }
        }
    }
    Ok(())
}

/// A folder on the disk of the target folder, gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, String> {
        let path = target_folder().join("tmp").join(format!("bench-saving-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("bench: {}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How many bytes keys and values have together.
fn fill(client: &mut Client, keys: u64) -> Result<u64, String> {
    let (mut random, mut bytes) = (Random::new(17), 0);
    let text = text();
    for number in 0..keys {
        let key = key(number);
        let value = value(&text, &mut random);
        bytes += (key.len() + value.len()) as u64;
        client.pipe(&[b"SET", &key, value], FILL_DEPTH)?;
    }
    client.flush()?;
    Ok(bytes)
}

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// Letters to cut values out of.
fn text() -> Vec<u8> {
    let mut random = Random::new(18);
    (0..16_384).map(|_| b'a' + random.below(26) as u8).collect()
}

fn value<'t>(text: &'t [u8], random: &mut Random) -> &'t [u8] {
    let len = VALUE_BYTES.start() + random.below(VALUE_BYTES.end() - VALUE_BYTES.start() + 1);
    let at = random.below(text.len() as u64 - len) as usize;
    &text[at..at + len as usize]
}

/// Half GET, half SET, of drawn keys.
struct Mix {
    keys: u64,
    text: Vec<u8>,
    random: Random,
}

impl Mix {
    fn write(&mut self, out: &mut Vec<u8>) {
        let key = key(self.random.below(self.keys));
        match self.random.below(2) {
            0 => append_request(out, &[b"GET", &key]),
            _ => append_request(out, &[b"SET", &key, value(&self.text, &mut self.random)]),
        }
    }
}

fn measure(server: &Server, (load, name): (Load, &str), scale: (u64, u64, Duration)) -> Outcome {
    let (keys, data_bytes, time) = scale;
    let (mut admin, mut clients) = (server.client()?, Clients::connect(server)?);
    let mut mix = Mix { keys, text: text(), random: Random::new(19) };
    let write = &mut |out: &mut Vec<u8>| mix.write(out);
    // Warms everything up, and takes what memory the load takes by itself.
    clients.run((load, time / 2), write, &mut || Ok(true))?;
    clients.take_times();
    let before_bytes = server.rss_bytes();
    let (mut more, mut saves) = (More::default(), 0);
    let (mut without, mut with) = (Times::default(), Times::default());
    let mut pause = time / 4;
    while with.took_s < time.as_secs_f64() {
        clients.run((load, pause), write, &mut || Ok(true))?;
        let before = clients.take_times();
        save(server, &mut admin, &mut more, |goes_on| clients.run((load, Duration::MAX), write, goes_on))?;
        let during = clients.take_times();
        pause = Duration::from_secs_f64(during.took_s);
        saves += 1;
        without.add(before);
        with.add(during);
    }
    let more_bytes = more.resident_bytes.saturating_sub(before_bytes) + more.child_bytes;
    let each_s = with.took_s / f64::from(saves);
    let ratio = |with: u32, without: u32| f64::from(with) / f64::from(without.max(1));
    println!("{:9} {name:5} without: {without}", server.name);
    println!("{:9} {name:5} saving:  {with}; {saves} times, {each_s:.1} s each", server.name);
    println!(
        "{:9} {name:5} p99 x{:.2}; memory +{:.0} MB, {:.1}% of the data",
        server.name,
        ratio(with.at(0.99), without.at(0.99)),
        more_bytes as f64 / 1e6,
        more_bytes as f64 * 100.0 / data_bytes as f64
    );
    for (words, part) in [("a quarter", 0.25), ("a half", 0.5)] {
        let (with, without) = (with.window_p99(part), without.window_p99(part));
        println!(
            "{:9} {name:5} p99 of {words} of all quarter seconds below {with} and {without} us, x{:.2}",
            server.name,
            ratio(with, without)
        );
    }
    Ok(())
}

/// What is resident while snapshots are written, at most.
#[derive(Default)]
struct More {
    resident_bytes: u64,
    /// What only a peer's child has.
    child_bytes: u64,
}

/// Has a snapshot written, and a load run until it is.
fn save(
    server: &Server,
    admin: &mut Client,
    more: &mut More,
    run: impl FnOnce(&mut dyn FnMut() -> Result<bool, String>) -> Outcome,
) -> Outcome {
    admin.call(&[b"BGSAVE"])?;
    let mut has_forked = false;
    run(&mut || {
        more.resident_bytes = more.resident_bytes.max(server.rss_bytes());
        has_forked |= server.has_children();
        Ok(admin.info("persistence", "rdb_bgsave_in_progress")? == "1")
    })?;
    if has_forked {
        let copied = admin.info("persistence", "rdb_last_cow_size")?;
        more.child_bytes = more.child_bytes.max(copied.parse().unwrap_or(0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_long_as_is_said() {
        let (text, mut random) = (text(), Random::new(1));
        assert!((0..10_000).all(|_| VALUE_BYTES.contains(&(value(&text, &mut random).len() as u64))));
    }
}
