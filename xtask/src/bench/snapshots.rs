//! Dump files beside the peers': the processor time of BGSAVE and of loading at start, how long the file is,
//! how long the start takes, and for how long BGSAVE holds everybody up at its beginning.
//!
//! | case | a key |
//! |---|---|
//! | `strings` | 64 to 400 letters, no two alike |
//! | `short` | an integer |
//! | `hashes`, `lists`, `zsets`, `sets` | eight fields, ten elements, eight members, ten integers |
//!
//! The peers' processor time includes that of the process which they fork. `--keys` is how many keys there
//! are; `--threads` says how many threads load. The pause is what INFO commandstats says of BGSAVE: the best
//! of five, because a busy machine takes the processor away.
use super::Options;
use super::client::Client;
use super::server::{Server, Spec};
use base::random::Random;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(super) const KEYS: u64 = 1_000_000;
const DEPTH: usize = 200;
pub(super) const CASES: [&str; 6] = ["strings", "short", "hashes", "lists", "zsets", "sets"];
/// How often BGSAVE is asked for; the first is measured, all of them for the pause.
const SAVES: usize = 5;
/// The time between two looks at whether it is done.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.contains(&name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let keys = options.keys.unwrap_or(KEYS);
    println!("{keys} keys; CPU in microseconds per key, beside it as a fraction of the last server's");
    for case in CASES.iter().filter(|case| options.wants(case)) {
        let mut runs = Vec::new();
        for spec in &options.servers {
            let folder = Folder::new()?;
            runs.push((spec, measure(spec, case, keys, &folder.0)?));
        }
        let Some((_, last)) = runs.last().map(|(spec, run)| (spec, run.clone())) else { continue };
        for (spec, run) in runs {
            println!(
                "{case:8} {:9} save {:6.3} ({:.2})   load {:6.3} ({:.2}), {:6.2} s ({:.2})   file {:6.1} B a key   \
                 pause {:5} us",
                spec.name,
                run.save_us,
                run.save_us / last.save_us,
                run.load_us,
                run.load_us / last.load_us,
                run.load_s,
                run.load_s / last.load_s,
                run.file_bytes,
                run.pause_us
            );
        }
    }
    Ok(())
}

/// What is measured of one server; the first three and the last but one are of one key.
#[derive(Clone)]
struct Run {
    save_us: f64,
    load_us: f64,
    file_bytes: f64,
    load_s: f64,
    pause_us: u64,
}

/// A folder for the file, gone when it is dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("sardine-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("bench: {}: {e}", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn measure(spec: &Spec, case: &str, keys: u64, folder: &Path) -> Result<Run, String> {
    let spec = spec.with(&format!("--dir {}", folder.display()));
    let a_key = keys as f64;
    let server = Server::start(&spec, None)?;
    let mut client = server.client()?;
    fill(&mut client, case, keys)?;
    let before_us = server.whole_cpu_us();
    let mut pause_us = save(&mut client)?;
    let save_us = server.whole_cpu_us() - before_us;
    for _ in 1..SAVES {
        pause_us = pause_us.min(save(&mut client)?);
    }
    drop(server);
    let file_bytes = std::fs::metadata(folder.join("dump.rdb")).map_or(0, |file| file.len()) as f64;
    let (server, load_s) = start_loaded(&spec)?;
    let load_us = server.whole_cpu_us();
    let loaded = server.client()?.call_int(&[b"DBSIZE"])?;
    if loaded != keys as i64 {
        return Err(format!("bench: {} has loaded {loaded} keys of {keys}", server.name));
    }
    Ok(Run {
        save_us: save_us / a_key,
        load_us: load_us / a_key,
        file_bytes: file_bytes / a_key,
        load_s,
        pause_us,
    })
}

/// Starts a server, and waits until it has its data.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(super) fn start_loaded(spec: &Spec) -> Result<(Server, f64), String> {
    let began = Instant::now();
    let server = Server::start(spec, None)?;
    let mut client = server.client()?;
    while client.call(&[b"PING"]).is_err() {
        std::thread::sleep(PAUSE);
    }
    Ok((server, began.elapsed().as_secs_f64()))
}

/// Has a snapshot written, and waits for its end. Returns how long BGSAVE took, in microseconds.
fn save(client: &mut Client) -> Result<u64, String> {
    client.call(&[b"CONFIG", b"RESETSTAT"])?;
    client.call(&[b"BGSAVE"])?;
    while client.info("persistence", "rdb_bgsave_in_progress")? == "1" {
        std::thread::sleep(PAUSE);
    }
    let stats = client.info("commandstats", "cmdstat_bgsave")?;
    let time = stats.split(',').find_map(|cell| cell.strip_prefix("usec="));
    time.and_then(|time| time.parse().ok()).ok_or_else(|| format!("bench: no time in {stats:?}"))
}

pub(super) fn fill(client: &mut Client, case: &str, keys: u64) -> Result<(), String> {
    let mut random = Random::new(21);
    let letters: Vec<u8> = (0..8192).map(|_| b'a' + random.below(26) as u8).collect();
    for number in 0..keys {
        let key = format!("{case}:{number}");
        let mut words: Vec<Vec<u8>> = Vec::new();
        let name = match case {
            "strings" => {
                let (at, len) = (random.below(7000) as usize, 64 + random.below(337) as usize);
                words.push(letters[at..at + len].to_vec());
                "SET"
            }
            "short" => {
                words.push((number * 7919 % 1_000_003).to_string().into());
                "SET"
            }
            "hashes" => {
                (0..8).for_each(|n| {
                    words.extend([format!("field{n}").into(), format!("value-{number}-{n}").into()])
                });
                "HSET"
            }
            "lists" => {
                (0..10).for_each(|n| words.push(format!("element-{number}-{n}").into()));
                "RPUSH"
            }
            "zsets" => {
                (0..8).for_each(|n| {
                    words.extend([(n * 7).to_string().into(), format!("member{n}-{number}").into()])
                });
                "ZADD"
            }
            _ => {
                (0..10).for_each(|n| words.push((number * 10 + n).to_string().into()));
                "SADD"
            }
        };
        let mut args: Vec<&[u8]> = vec![name.as_bytes(), key.as_bytes()];
        args.extend(words.iter().map(Vec::as_slice));
        client.pipe(&args, DEPTH)?;
    }
    client.flush()
}
