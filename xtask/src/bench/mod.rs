//! `cargo xtask bench`: the commands behind every figure that the project quotes. Each starts the servers
//! itself, on loopback, ends them, and compares with real peers in the same run. `cargo xtask bench --help`
//! lists them from the table below.
//!
//! Some are parts of a page: their figures are stored as JSON in `target/bench`, or the folder that `--out`
//! names, with `index.html` over all that are there. Without a name all parts are measured. The others
//! print what they find.

mod anysize;
mod append;
mod builds;
mod bytes;
mod chart;
mod client;
mod clients;
mod crowd;
mod curves;
mod data_sets;
mod depth;
mod eviction;
mod expiry;
mod floods;
mod full_cache;
mod hiccups;
mod instructions;
mod load;
mod long_commands;
mod long_strings;
mod matrix;
mod memory;
mod ops;
mod page;
mod parts;
mod payloads;
mod progress;
mod redis_benchmark;
mod replay;
mod replies;
mod saving;
mod scripts;
mod server;
mod sessions;
mod shrink;
mod snapshots;
mod speed;
mod stalls;
mod tls;
mod turns;
mod variants;

use crate::shell::{Outcome, target};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use parts::Part;
use server::Spec;
pub(crate) use server::built;
use std::path::PathBuf;

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
    /// The run is short: only to see that it works.
    pub(crate) is_quick: bool,
    /// Every combination of the build matrix.
    pub(crate) is_full: bool,
}

impl Options {
    /// Whether this case is to be measured.
    fn wants(&self, case: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == case)
    }
}

struct Benchmark {
    name: &'static str,
    /// What the words behind the name are; empty where there are none.
    takes: &'static str,
    /// Whether a word is one of those. Others are refused before anything is built or started.
    knows: Knows,
    about: &'static str,
    servers: Servers,
    run: Run,
}

type Knows = fn(&str) -> bool;

/// Which servers a benchmark needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Servers {
    /// No servers, or the benchmark makes its own.
    None,
    /// Sardine and the installed Redis.
    Installed,
    /// Sardine, the installed Redis, and the peers that `cargo xtask peers` has unpacked.
    All,
}

#[derive(Clone, Copy)]
enum Run {
    Part(fn(&Options) -> Result<Part, String>),
    Printed(fn(&Options) -> Outcome),
}

/// The words behind the names of a benchmark that takes none.
const NONE: (&str, Knows) = ("", |_| false);

/// A benchmark whose figures are a part of the page.
const fn part(
    name: &'static str,
    (takes, knows): (&'static str, Knows),
    about: &'static str,
    run: fn(&Options) -> Result<Part, String>,
) -> Benchmark {
    Benchmark { name, takes, knows, about, servers: Servers::All, run: Run::Part(run) }
}

/// A benchmark that prints its figures.
const fn printed(
    name: &'static str,
    (takes, knows): (&'static str, Knows),
    about: &'static str,
    run: fn(&Options) -> Outcome,
) -> Benchmark {
    Benchmark { name, takes, knows, about, servers: Servers::Installed, run: Run::Printed(run) }
}

/// The parts of the page in its order, then the others.
const BENCHMARKS: [Benchmark; 29] = [
    part(
        "anysize",
        ("COLLECTION", anysize::knows),
        "Bytes per element and CPU per operation from 16 elements to a million; anysize.svg",
        anysize::run,
    ),
    part(
        "load",
        ("TEST", load::knows),
        "Throughput, server CPU and latency of redis-benchmark's tests at depths 1 to 1000",
        load::run,
    ),
    part(
        "bytes",
        ("CASE", bytes::knows),
        "RSS per element of each data set, one fresh process for each case",
        bytes::run,
    ),
    part("curves", ("CURVE", curves::knows), "Memory of a list by list-max-listpack-size", curves::run),
    Benchmark {
        servers: Servers::None,
        ..part(
            "matrix",
            ("BUILD", matrix::knows),
            "Ways to build Sardine; --full for every combination",
            matrix::run,
        )
    },
    Benchmark {
        servers: Servers::None,
        ..printed("page", NONE, "The page anew, from what is stored", |options| {
            parts::write_page(&options.out)
        })
    },
    printed(
        "speed",
        ("TEST", speed::knows),
        "Throughput and server CPU per request by redis-benchmark, the servers taking turns",
        speed::run,
    ),
    printed(
        "turns",
        ("TEST", turns::knows),
        "Server CPU per request to a hundredth: turns of some 50 ms",
        turns::run,
    ),
    Benchmark {
        servers: Servers::All,
        ..printed(
            "tls",
            ("CASE", tls::knows),
            "Server CPU of set and get by clients with TLS, and of a connect with its handshake",
            tls::run,
        )
    },
    printed(
        "ops",
        ("OPERATION", ops::knows),
        "Server CPU of some 140 single operations beside a peer's, worst first; names may be beginnings",
        ops::run,
    ),
    printed("depth", NONE, "LINDEX, LPOP and RPOP against the length of the list", depth::run),
    printed("expiry", NONE, "How late keys vanish when a million of them expire", expiry::run),
    printed(
        "shrink",
        ("PERCENT", shrink::knows),
        "RSS beside used_memory after most of --gb N of keys were deleted",
        shrink::run,
    ),
    printed(
        "eviction",
        ("POLICY OR TRACE", eviction::knows),
        "Hit ratios at the same number of keys, against the peer's and exact LRU; a trace may be named too",
        eviction::run,
    ),
    Benchmark {
        servers: Servers::All,
        ..printed(
            "sessions",
            ("CASE", sessions::knows),
            "Server CPU of PUBLISH to many clients or by many patterns, transactions, elements handed over",
            sessions::run,
        )
    },
    printed(
        "long-strings",
        ("CASE", long_strings::knows),
        "Server CPU of SET and GET of strings of 10 KB to 4 MB",
        long_strings::run,
    ),
    printed(
        "full-cache",
        ("CASE", full_cache::knows),
        "Server CPU of a SET that makes a full cache evict",
        full_cache::run,
    ),
    printed(
        "snapshots",
        ("CASE", snapshots::knows),
        "Server CPU per key of BGSAVE and of loading, the file, the start, and the pause",
        snapshots::run,
    ),
    printed("payloads", NONE, "Bytes of DUMP beside the peers': texts and collections", payloads::run),
    printed(
        "saving",
        ("LOAD", saving::knows),
        "Times of GET and SET, and resident memory, while BGSAVE writes --keys keys and while it does not",
        saving::run,
    ),
    printed(
        "replay",
        ("CASE", snapshots::knows),
        "Server CPU per key and time of a start from an append-only file, of commands and with a base",
        replay::run,
    ),
    printed(
        "scripts",
        ("CASE", scripts::knows),
        "Server CPU of EVALSHA and FCALL: commands, strings, libraries, loops; and two workers beside one",
        scripts::run,
    ),
    printed(
        "append",
        ("SETTING", append::knows),
        "Server CPU and throughput of SET with an append-only file, everysec and always",
        append::run,
    ),
    printed(
        "stalls",
        NONE,
        "Times of commands while many keys are loaded, flushed and loaded again",
        stalls::run,
    ),
    printed(
        "floods",
        ("CASE", floods::knows),
        "How long one request waits beside --keys clients that keep the server busy",
        floods::run,
    ),
    printed(
        "replies",
        ("COMMAND", replies::knows),
        "How long another client waits while one reads replies of --keys elements",
        replies::run,
    ),
    printed(
        "long-commands",
        ("COMMAND", long_commands::knows),
        "How long another client waits while one sends a command on large values, worst first",
        long_commands::run,
    ),
    Benchmark {
        servers: Servers::None,
        ..printed(
            "hiccups",
            NONE,
            "How long the machine takes a processor away from a loop that only reads the clock",
            hiccups::run,
        )
    },
    printed(
        "instructions",
        ("TEST", instructions::knows),
        "User instructions per request, by callgrind",
        instructions::run,
    ),
];

pub(crate) fn command() -> Command {
    Command::new("bench")
        .about("The measurements behind every figure that is quoted")
        .after_help(
            "Without a NAME all parts of the page are measured: anysize, load, bytes, curves, matrix.",
        )
        .subcommand_value_name("NAME")
        .subcommand_help_heading("Benchmarks")
        .subcommands(BENCHMARKS.iter().map(Benchmark::command))
        .args(arguments().map(|argument| argument.global(true)))
}

impl Benchmark {
    fn command(&self) -> Command {
        let command = Command::new(self.name).about(self.about);
        if self.takes.is_empty() {
            return command;
        }
        let (takes, knows) = (self.takes, self.knows);
        let known = move |name: &str| match knows(name) {
            true => Ok(name.to_string()),
            false => Err(format!("no {} is called '{name}'", takes.to_lowercase())),
        };
        let names = Arg::new("names").value_name(takes).num_args(0..).value_parser(known);
        command.arg(names.help("Only these; else all"))
    }
}

fn arguments() -> [Arg; 11] {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    [
        option("peer", "NAME=COMMAND").action(ArgAction::Append).value_parser(Spec::named).help(
            "Compare with this server instead of the installed ones; {port} is replaced; may be repeated",
        ),
        option("sardine", "PATH")
            .value_parser(value_parser!(PathBuf))
            .help("A program that is there already, instead of a release build"),
        option("sardine-args", "ARGS")
            .allow_hyphen_values(true)
            .default_value("")
            .hide_default_value(true)
            .help("More arguments for it, in one word"),
        option("threads", "N")
            .value_parser(value_parser!(usize))
            .default_value("1")
            .help("Worker threads of Sardine and I/O threads of the peers"),
        option("keys", "N")
            .value_parser(value_parser!(u64))
            .help("Keys or elements, where a benchmark can be scaled; for anysize the largest collection"),
        option("gb", "N")
            .value_parser(value_parser!(f64))
            .default_value("5")
            .help("Gigabytes of data, where a benchmark is scaled by those"),
        option("rounds", "N")
            .value_parser(value_parser!(u64).range(1..))
            .help("How many times load, anysize, turns and ops measure"),
        option("seconds", "S")
            .value_parser(seconds)
            .help("How long one run of load takes, or hiccups watches"),
        option("out", "FOLDER")
            .value_parser(value_parser!(PathBuf))
            .help("Where figures and page are written, instead of target/bench"),
        flag("quick").help("Only to see that it works, not for figures"),
        flag("full").help("Every combination of the build matrix"),
    ]
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "it is no number of seconds".to_string())
}

/// Runs the benchmark that the command line names, or all parts of the page.
pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let Some((name, matches)) = matches.subcommand() else {
        let options = options(matches, Servers::All)?;
        return BENCHMARKS.iter().filter(|benchmark| benchmark.is_part()).try_for_each(|b| b.run(&options));
    };
    let benchmark = BENCHMARKS.iter().find(|benchmark| benchmark.name == name);
    let benchmark = benchmark.expect("the commands are made from the table");
    benchmark.run(&options(matches, benchmark.servers)?)
}

impl Benchmark {
    fn is_part(&self) -> bool {
        matches!(self.run, Run::Part(_))
    }

    fn run(&self, options: &Options) -> Outcome {
        match self.run {
            Run::Part(measure) => measure(options)?.save(&options.out),
            Run::Printed(run) => run(options),
        }
    }
}

fn options(matches: &ArgMatches, servers: Servers) -> Result<Options, String> {
    let number = |name| matches.get_one::<u64>(name).copied();
    let names = matches.try_get_many::<String>("names").ok().flatten();
    let mut options = Options {
        servers: Vec::new(),
        names: names.unwrap_or_default().cloned().collect(),
        keys: number("keys"),
        gb: *matches.get_one("gb").expect("it has a default"),
        threads: *matches.get_one("threads").expect("it has a default"),
        sardine_args: matches.get_one::<String>("sardine-args").cloned().unwrap_or_default(),
        seconds: matches.get_one("seconds").copied(),
        rounds: number("rounds").map(|rounds| rounds as usize),
        out: matches.get_one("out").cloned().unwrap_or_else(|| target("bench")),
        is_quick: matches.get_flag("quick"),
        is_full: matches.get_flag("full"),
    };
    if servers != Servers::None {
        let peers = matches.get_many::<Spec>("peer").unwrap_or_default().cloned().collect();
        options.servers = servers_of(&options, matches.get_one::<PathBuf>("sardine"), peers, servers)?;
    }
    Ok(options)
}

/// Sardine, then the peers: those that were named, or those that are there.
fn servers_of(
    options: &Options,
    program: Option<&PathBuf>,
    mut peers: Vec<Spec>,
    wanted: Servers,
) -> Result<Vec<Spec>, String> {
    let program = program.cloned().map_or_else(server::built, Ok)?;
    if peers.is_empty() {
        peers.extend(Spec::installed_peer(options.threads));
        if wanted == Servers::All {
            peers.extend(Spec::unpacked_peers(options.threads));
        }
    }
    let sardine = Spec::sardine(&program, options.threads, &options.sardine_args)?;
    Ok(std::iter::once(sardine).chain(peers).collect())
}
