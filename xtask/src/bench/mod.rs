//! `cargo xtask bench`: the commands behind every figure that the project quotes. Each starts the servers itself, on
//! loopback, ends them, and compares with real peers in the same run.
//!
//! | name | what it shows |
//! |---|---|
//! | (none) | all parts of the page: `anysize`, `load`, `bytes`, `curves`, `matrix` |
//! | `anysize [collection ...]` | bytes an element and CPU an operation from 16 elements to a million; `anysize.svg` |
//! | `load [test ...]` | throughput, server CPU and latency of redis-benchmark's tests at depths 1 to 1000 |
//! | `bytes [case ...]` | RSS per element of each data set, one fresh process a case |
//! | `curves [name ...]` | memory of a list by `list-max-listpack-size` |
//! | `matrix [build ...]` | ways to build Sardine, compared; `--full` for every combination |
//! | `page` | the page anew, from what is stored |
//! | `speed [test ...]` | throughput and server CPU per request by redis-benchmark, interleaved, as text |
//! | `turns [test ...]` | server CPU per request, the servers taking turns of some 50 ms: to a hundredth |
//! | `ops [operation ...]` | server CPU of some 140 single operations beside a peer's, worst first |
//! | `depth` | LINDEX, LPOP and RPOP against the length of the list |
//! | `expiry` | how late keys vanish when a million of them expire |
//! | `shrink [percent ...]` | RSS beside `used_memory` after 60% and 90% of `--gb N` of mixed keys were deleted |
//! | `eviction [policy or trace ...]` | hit ratios at the same number of keys, against the peer's and exact LRU |
//! | `full-cache [case ...]` | server CPU of a SET that makes a full cache evict, with RSS and used memory beside the limit |
//! | `stalls` | the histogram of command times while many keys are loaded, flushed and loaded again |
//! | `replies [command ...]` | how long another client waits while one reads replies of `--keys` elements |
//! | `instructions [test ...]` | user instructions a request, by callgrind |
//! | `hiccups` | how long the machine takes a processor away from a loop that only reads the clock |
//!
//! Parts of the page are stored as JSON in `target/bench`, or the folder that `--out` names, with `index.html` over all that are there.
//! `--quick` shortens them: to see that they work, not for figures.
//!
//! `--seconds S` and `--rounds N` say how long a run of `load` takes and how many there are; `--rounds` counts for `anysize` too,
//! `--seconds` for `hiccups`.
//!
//! `--peer NAME=COMMAND` adds a server ("{port}" in the command is replaced) in place of the installed ones, `--keys N`
//! scales a case, `--sardine PATH` takes a binary that is there already instead of a release build.

mod anysize;
mod builds;
mod bytes;
mod cases;
mod chart;
mod client;
mod crowd;
mod curves;
mod depth;
mod eviction;
mod expiry;
mod full_cache;
mod hiccups;
mod instructions;
mod load;
mod matrix;
mod memory;
mod ops;
mod page;
mod progress;
mod redis_benchmark;
mod replies;
mod server;
mod shrink;
mod speed;
mod stalls;
mod store;
mod turns;
mod variants;

use crate::shell::target;
use server::Spec;
use std::path::PathBuf;
use store::Part;

const USAGE: &str = "\
usage: cargo xtask bench [NAME] [WHAT ...] [OPTION ...]

parts of the page (all of them without a NAME), stored in target/bench:
  anysize [collection ...]  bytes an element and CPU an operation against the number of elements; anysize.svg
  load [test ...]           throughput, CPU and latency by redis-benchmark, at depths 1 to 1000
  bytes [case ...]          RSS an element of each data set
  curves [name ...]         memory of a list by list-max-listpack-size
  matrix [build ...]        ways to build Sardine; --full for every combination
  page                      the page anew, from what is stored
printed:
  speed [test ...]          throughput and CPU a request, servers taking turns
  turns [test ...]          CPU a request to a hundredth, turns of some 50 ms
  ops [operation ...]       CPU of single operations beside a peer's, worst first; names may be beginnings
  depth                     LINDEX, LPOP and RPOP against the length of the list
  expiry                    how late keys vanish when a million of them expire
  shrink [percent ...]      RSS after most of --gb N of keys were deleted
  eviction [policy ...]     hit ratios at the same number of keys
  full-cache [case ...]     CPU a SET in a cache at its limit
  stalls                    command times while many keys are loaded and flushed
  replies [command ...]     how long others wait while one client reads large replies
  hiccups                   how long the machine takes a processor from an idle loop
  instructions [test ...]   user instructions a request, by callgrind
options:
  --peer NAME=COMMAND       compare with this server ({port} is replaced) instead of the installed ones; repeatable
  --sardine PATH            a program that is there already, instead of a release build
  --sardine-args 'ARGS'     more arguments for it
  --threads N               worker threads of Sardine and I/O threads of the peers (1)
  --keys N                  keys or elements, where a benchmark can be scaled; for anysize the largest collection
  --rounds N                how many times load, anysize, turns and ops measure
  --seconds S               how long one run of load takes, or hiccups watches
  --out FOLDER              where figures and page are written
  --quick                   only to see that it works";

/// What the command line says.
pub(crate) struct Options {
    /// Sardine first, then the peers.
    pub(crate) servers: Vec<Spec>,
    /// Cases or tests, all where empty.
    pub(crate) names: Vec<String>,
    /// Keys or elements, where a benchmark can be scaled.
    pub(crate) keys: Option<u64>,
    /// Gigabytes of data, where a benchmark is scaled by those.
    pub(crate) gb: f64,
    /// Worker threads of Sardine, and I/O threads of the peer.
    pub(crate) threads: usize,
    /// More arguments for Sardine.
    pub(crate) sardine_args: String,
    /// Where figures and page are written.
    pub(crate) out: PathBuf,
    /// How long one run of the load takes.
    pub(crate) seconds: Option<f64>,
    /// How many times everything is measured.
    pub(crate) rounds: Option<usize>,
    /// Only to see that it works.
    pub(crate) is_quick: bool,
    /// Every combination of the build matrix.
    pub(crate) is_full: bool,
}

/// What the page shows, in its order.
const PARTS: [(&str, Measurement); 5] = [
    ("anysize", anysize::run),
    ("load", load::run),
    ("bytes", bytes::run),
    ("curves", curves::run),
    ("matrix", matrix::run),
];

type Measurement = fn(&Options) -> Result<Part, String>;

/// Runs the benchmark that `args` names; the first word is its name.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    if args.iter().any(|arg| matches!(*arg, "--help" | "-h" | "help")) {
        println!("{USAGE}");
        return Ok(());
    }
    let (name, rest) = match args.split_first() {
        Some((name, rest)) if !name.starts_with("--") => (*name, rest),
        _ => ("", args),
    };
    let options = parse(name, rest)?;
    let is_wanted = |part: &&(&str, Measurement)| name.is_empty() || part.0 == name;
    for (_, measure) in PARTS.iter().filter(is_wanted) {
        measure(&options)?.save(&options.out)?;
    }
    match name {
        "" | "anysize" | "load" | "bytes" | "curves" | "matrix" => Ok(()),
        "page" => store::write_page(&options.out),
        "speed" => speed::run(&options),
        "turns" => turns::run(&options),
        "ops" => ops::run(&options),
        "depth" => depth::run(&options),
        "expiry" => expiry::run(&options),
        "shrink" => shrink::run(&options),
        "eviction" => eviction::run(&options),
        "full-cache" => full_cache::run(&options),
        "stalls" => stalls::run(&options),
        "replies" => replies::run(&options),
        "hiccups" => hiccups::run(&options),
        "instructions" => instructions::run(&options),
        other => Err(format!("bench: no benchmark is called '{other}'")),
    }
}

fn parse(name: &str, args: &[&str]) -> Result<Options, String> {
    let mut options = Options {
        servers: Vec::new(),
        names: Vec::new(),
        keys: None,
        gb: 5.0,
        threads: 1,
        sardine_args: String::new(),
        seconds: None,
        rounds: None,
        out: target("bench"),
        is_quick: false,
        is_full: false,
    };
    let (mut peers, mut program) = (Vec::new(), None);
    let mut args = args.iter().copied();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("bench: {arg} wants a value"));
        match arg {
            "--peer" => peers.push(Spec::named(value()?)?),
            "--sardine" => program = Some(PathBuf::from(value()?)),
            "--keys" => options.keys = Some(number(value()?)?),
            "--gb" => options.gb = value()?.parse().map_err(|_| "bench: --gb wants a number")?,
            "--threads" => options.threads = number(value()?)? as usize,
            "--sardine-args" => options.sardine_args = value()?.to_string(),
            "--seconds" => options.seconds = Some(seconds(value()?)?),
            "--rounds" => options.rounds = Some(number(value()?)?.max(1) as usize),
            "--out" => options.out = PathBuf::from(value()?),
            "--quick" => options.is_quick = true,
            "--full" => options.is_full = true,
            flag if flag.starts_with("--") => return Err(format!("bench: no option is called {flag}")),
            name => options.names.push(name.to_string()),
        }
    }
    // The matrix makes its own servers, and the others need none.
    if !matches!(name, "matrix" | "page" | "hiccups") {
        options.servers = servers(name, &options, program, peers)?;
    }
    Ok(options)
}

/// Sardine, then the peers: those that were named, or the installed one, and for the page those that were unpacked too.
fn servers(
    name: &str,
    options: &Options,
    program: Option<PathBuf>,
    mut peers: Vec<Spec>,
) -> Result<Vec<Spec>, String> {
    let program = program.map_or_else(server::built, Ok)?;
    if peers.is_empty() {
        peers.extend(Spec::installed_peer(options.threads));
        if name.is_empty() || PARTS.iter().any(|(part, _)| *part == name) {
            peers.extend(Spec::unpacked_peers(options.threads));
        }
    }
    let sardine = Spec::sardine(&program, options.threads, &options.sardine_args)?;
    Ok(std::iter::once(sardine).chain(peers).collect())
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| format!("bench: '{text}' is no number of seconds"))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("bench: '{text}' is not a number"))
}
