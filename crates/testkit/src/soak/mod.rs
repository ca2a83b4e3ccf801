//! The soak: a restless server under hostile and friendly clients together, for minutes or hours.
//!
//! ```text
//! friendly    write values of every type under names of their own, and check
//!             every reply against a model (`friendly`)
//! churn       fills the memory with keys that have deadlines, which may be evicted; what is
//!             read back is right
//! hostile     do all that a client should not (`hostile`): half requests, floods, kills, pauses,
//!             settings ...
//! crowd       instead of hostile clients, if asked for: hundreds that wait, watch, publish,
//!             listen, keep copies and are users (`crowd`)
//! the watch   looks at the process once a second: memory and descriptors stay within bounds
//! ```
//!
//! At the end the clients leave, the data goes, and memory, descriptors and all tables of clients must be
//! where they were, within [`Bounds`]; SIGTERM must end the server soon, and its log must hold no report of a
//! crash. What clients do follows from one seed; when they do it depends on the machine.
mod crowd;
mod friendly;
mod hostile;
mod process;

use crate::resp_client::RespClient;
use base::random::Random;
use process::{Health, Process};
use std::fmt::{self, Write};
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

pub struct Options {
    /// The program to soak, and arguments that come before the soak's own.
    pub sardine: Vec<String>,
    pub seconds: u64,
    pub seed: u64,
    pub workers: usize,
    /// How many clients are a crowd; with it there are no hostile ones.
    pub crowd: u64,
}

/// What must hold while it runs and afterwards.
pub struct Bounds {
    /// Resident memory while it runs: the ceiling on data, clients' buffers, and what a build with checks
    /// wastes.
    pub rss_bytes_max: u64,
    /// Afterwards, more than at the beginning.
    pub rss_growth_bytes_max: u64,
    pub used_growth_bytes_max: u64,
    pub descriptor_growth_max: u64,
    /// How long it may take until the other bounds hold afterwards, and until SIGTERM has ended the process.
    pub patience: Duration,
}

pub const BOUNDS: Bounds = Bounds {
    rss_bytes_max: 3 << 30,
    rss_growth_bytes_max: 64 << 20,
    used_growth_bytes_max: 8 << 20,
    descriptor_growth_max: 2,
    patience: Duration::from_secs(30),
};

const FRIENDLY: u64 = 3;
const HOSTILE: u64 = 3;
const CHURN: u64 = 1;
/// Between two looks at the process.
const LOOK: Duration = Duration::from_millis(500);

/// What all clients share.
struct Stage {
    process: Process,
    is_over: AtomicBool,
    failures: Mutex<Vec<String>>,
    requests: AtomicU64,
    checked: AtomicU64,
    acts: hostile::Acts,
}

impl Stage {
    fn fail(&self, what: String) {
        self.failures.lock().expect("no thread panics with it").push(what);
        self.is_over.store(true, Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

/// What came of it, on one page.
pub struct Summary {
    pub failures: Vec<String>,
    text: String,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.failures[..] {
            [] => f.write_str("nothing was found\n"),
            failures => writeln!(f, "FAILED\n{}", failures.join("\n")),
        }
    }
}

/// Runs it to its end, which is sooner where something fails.
pub fn run(options: &Options) -> io::Result<Summary> {
    let process = Process::start(options)?;
    let before = process.health()?;
    let stage = Stage {
        process,
        is_over: AtomicBool::new(false),
        failures: Mutex::default(),
        requests: AtomicU64::new(0),
        checked: AtomicU64::new(0),
        acts: hostile::Acts::default(),
    };
    let peak = play(&stage, options);
    if options.crowd > 0 {
        peak.unused().for_each(|name| stage.fail(format!("{name} was never more than 0")));
    }
    let after = settle(&stage, before);
    let Stage { mut process, failures, requests, checked, acts, .. } = stage;
    let mut failures = failures.into_inner().expect("no thread panics with it");
    let unrest = process.unrest().unwrap_or_else(|error| format!("not told: {error}"));
    if let Err(why) = process.terminate(BOUNDS.patience) {
        failures.push(why);
    }
    failures.extend(process.crash_report());
    if !failures.is_empty() {
        failures.push(process.last_lines());
    }
    let mut text = String::new();
    let _ = writeln!(text, "seed {}, {} s, {} workers", options.seed, options.seconds, options.workers);
    let _ = writeln!(
        text,
        "requests by friendly clients and the crowd {}, replies checked {}",
        requests.into_inner(),
        checked.into_inner()
    );
    if options.crowd > 0 {
        let _ = writeln!(text, "a crowd of {}", options.crowd);
    } else {
        let _ = writeln!(text, "hostile acts {acts}");
    }
    let _ = writeln!(text, "restless {unrest}");
    let _ = writeln!(text, "at first   {before}\nat most    {peak}\nafterwards {after}");
    Ok(Summary { failures, text })
}

/// All clients at once, until the time is over or something fails; the most that the process took.
fn play(stage: &Stage, options: &Options) -> Health {
    let mut random = Random::new(options.seed);
    std::thread::scope(|scope| {
        for number in 0..FRIENDLY {
            let seed = random.next_u64();
            scope.spawn(move || friendly::run(stage, number, seed));
        }
        for _ in 0..CHURN {
            let seed = random.next_u64();
            scope.spawn(move || friendly::churn(stage, seed));
        }
        for thread in 0..crowd::threads(options.crowd) {
            let seed = random.next_u64();
            let clients = crowd::share(options.crowd, thread);
            scope.spawn(move || crowd::run(stage, clients, seed));
        }
        for _ in 0..if options.crowd > 0 { 0 } else { HOSTILE } {
            let seed = random.next_u64();
            scope.spawn(move || hostile::run(stage, seed));
        }
        let mut peak = Health::default();
        for _ in 0..options.seconds * 1000 / LOOK.as_millis() as u64 {
            sleep(LOOK);
            watch(stage, &mut peak);
            if stage.is_over() {
                break;
            }
        }
        stage.is_over.store(true, Relaxed);
        peak
    })
}

fn watch(stage: &Stage, peak: &mut Health) {
    match stage.process.health() {
        Ok(health) => *peak = peak.max(health),
        Err(error) => stage.fail(format!("the server cannot be looked at: {error}")),
    }
    if peak.rss_bytes > BOUNDS.rss_bytes_max {
        stage.fail(format!("the server takes {} MB", peak.rss_bytes >> 20));
    }
}

/// The data goes; the process must come down to where it was.
fn settle(stage: &Stage, before: Health) -> Health {
    if let Err(error) = calm(stage) {
        stage.fail(format!("the server does not answer afterwards: {error}"));
        return Health::default();
    }
    let mut after = Health::default();
    for _ in 0..BOUNDS.patience.as_millis() / LOOK.as_millis() {
        sleep(LOOK);
        let Ok(health) = stage.process.health() else { break };
        after = health;
        if misses(before, after).is_empty() {
            return after;
        }
    }
    misses(before, after).into_iter().for_each(|miss| stage.fail(miss));
    after
}

fn calm(stage: &Stage) -> io::Result<()> {
    let mut client = RespClient::connect(&stage.process.address())?;
    let users = crowd::users();
    let users: Vec<&str> = users.iter().map(String::as_str).collect();
    let ends: [&[&str]; 10] = [
        &["CLIENT", "UNPAUSE"],
        &["CONFIG", "SET", "activedefrag", "yes"],
        &["CONFIG", "SET", "notify-keyspace-events", ""],
        &["CONFIG", "SET", "tracking-table-max-keys", "1000000"],
        &["FLUSHALL"],
        &[&["ACL", "DELUSER"][..], &users].concat(),
        &["ACL", "LOG", "RESET"],
        &["CONFIG", "RESETSTAT"],
        &["SLOWLOG", "RESET"],
        &["DEBUG", "RESTLESS", "OFF"],
    ];
    ends.iter().try_for_each(|request| client.call(request).map(drop))
}

fn misses(before: Health, after: Health) -> Vec<String> {
    let growth = |what: &str, before: u64, after: u64, max: u64| {
        let is_more = after > before + max;
        is_more.then(|| format!("{what} afterwards: {after}, and not about {before}"))
    };
    [
        growth("resident bytes", before.rss_bytes, after.rss_bytes, BOUNDS.rss_growth_bytes_max),
        growth("used bytes", before.used_bytes, after.used_bytes, BOUNDS.used_growth_bytes_max),
        growth("descriptors", before.descriptors, after.descriptors, BOUNDS.descriptor_growth_max),
        growth("clients", before.clients, after.clients, 0),
    ]
    .into_iter()
    .flatten()
    .chain(after.tables_beyond(before))
    .collect()
}
