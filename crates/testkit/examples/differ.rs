//! The differential runner by hand: `cargo xtask differ` builds Sardine and calls this with `--sardine
//! PROGRAM`.
//!
//! Streams are played until `--requests` were sent; the seed of a stream is `--seed` and its number. Each
//! command that differs is told once, shrunk, as a transcript; the exit status says whether there was any.
//! `--streams 1 --seed N` plays stream N again.
use clap::{Arg, Command, value_parser};
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::process::ExitCode;
use testkit::differ::{Differ, Difference};
use testkit::redis_server::RedisServer;
use testkit::resp_client::RespClient;

/// Progress is shown every so many requests.
const SHOWN_EVERY: usize = 20_000;

struct Options {
    sardine: String,
    peer: String,
    requests: usize,
    streams: u64,
    seed: u64,
    groups: Vec<String>,
    shards: String,
    workers: String,
    /// Sardine does all the time, at random, what it does rarely by itself (`DEBUG RESTLESS`).
    restless: Option<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing differs.
fn run() -> Result<bool, Box<dyn Error>> {
    let options = options();
    let mut run = Run::begin(&options)?;
    let last = options.seed.saturating_add(options.streams);
    for seed in options.seed..last {
        if run.request_count >= options.requests {
            break;
        }
        run.play(seed)?;
    }
    run.tell_end();
    Ok(run.subjects.is_empty())
}

fn options() -> Options {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let number =
        |name: &'static str, value: &'static str| option(name, value).value_parser(value_parser!(u64));
    let matches = Command::new("differ")
        .about("Plays random requests to a real redis-server and to Sardine until something differs")
        .args([
            option("sardine", "PROGRAM").required(true).help("Sardine"),
            option("peer", "COMMAND").default_value("redis-server").help("What it is compared with"),
            number("requests", "N").default_value("200000").help("How many are played at least"),
            number("streams", "N").help("How many streams of requests are played at most"),
            number("seed", "S").default_value("1").help("Of the first stream; the next has the next seed"),
            option("groups", "GROUP,...")
                .value_delimiter(',')
                .help("Only commands of these: string,list,keys,..."),
            option("shards", "N").default_value("256").help("Of Sardine's keyspace"),
            option("workers", "N").default_value("2").help("Threads of Sardine that serve clients"),
            option("restless", "SEED")
                .help("Sardine does all the time, at random, what it does rarely by itself (DEBUG RESTLESS)"),
        ])
        .get_matches();
    let text = |name: &str| matches.get_one::<String>(name).expect("it is required or has a default").clone();
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    Options {
        sardine: text("sardine"),
        peer: text("peer"),
        requests: number("requests").expect("it has a default") as usize,
        streams: number("streams").unwrap_or(u64::MAX),
        seed: number("seed").expect("it has a default"),
        groups: matches.get_many("groups").unwrap_or_default().cloned().collect(),
        shards: text("shards"),
        workers: text("workers"),
        restless: matches.get_one("restless").cloned(),
    }
}

struct Run<'o> {
    options: &'o Options,
    ours: RedisServer,
    _theirs: RedisServer,
    differ: Differ,
    request_count: usize,
    error_count: usize,
    stream_count: usize,
    shown: usize,
    /// What differs, and how often.
    subjects: BTreeMap<String, usize>,
}

impl<'o> Run<'o> {
    fn begin(options: &'o Options) -> Result<Run<'o>, Box<dyn Error>> {
        let theirs = start(&options.peer)?;
        let ours = start_sardine(options)?;
        let differ = Differ::new(ours.address(), theirs.address(), &options.groups)?;
        eprintln!("{} commands against {}", differ.vocabulary().command_count(), options.peer);
        Ok(Run {
            options,
            ours,
            _theirs: theirs,
            differ,
            request_count: 0,
            error_count: 0,
            stream_count: 0,
            shown: 0,
            subjects: BTreeMap::new(),
        })
    }

    fn play(&mut self, seed: u64) -> Result<(), Box<dyn Error>> {
        let played = self.differ.play(seed)?;
        self.request_count += played.request_count;
        self.error_count += played.error_count;
        self.stream_count += 1;
        if let Some(difference) = played.difference {
            self.take(seed, &difference)?;
        }
        if self.request_count / SHOWN_EVERY > self.shown {
            self.shown = self.request_count / SHOWN_EVERY;
            self.tell_progress();
        }
        Ok(())
    }

    /// Tells the first difference of each kind at its shortest.
    fn take(&mut self, seed: u64, difference: &Difference) -> Result<(), Box<dyn Error>> {
        let count = self.subjects.entry(difference.subject.clone()).or_default();
        *count += 1;
        if *count == 1 {
            eprintln!("\n# seed {seed}: {} differs; shrinking", difference.subject);
            let shortest =
                if self.ours.is_alive() { self.differ.shrink(difference)? } else { difference.clone() };
            eprintln!("{shortest}");
        }
        if !self.ours.is_alive() {
            self.restart()?;
        }
        Ok(())
    }

    /// After a crash.
    fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        eprintln!("# Sardine ended; starting it again");
        self.ours = start_sardine(self.options)?;
        self.differ = Differ::new(self.ours.address(), self._theirs.address(), &self.options.groups)?;
        Ok(())
    }

    fn tell_progress(&self) {
        let differing: usize = self.subjects.values().sum();
        eprintln!(
            "{} requests in {} streams, {} % answered by errors, {differing} streams differ",
            self.request_count,
            self.stream_count,
            100 * self.error_count / self.request_count.max(1)
        );
    }

    fn tell_end(&self) {
        self.tell_progress();
        for (subject, count) in &self.subjects {
            eprintln!("  {subject}: {count} streams");
        }
    }
}

fn start_sardine(options: &Options) -> io::Result<RedisServer> {
    let (shards, workers) = (&options.shards, &options.workers);
    let server = start(&format!("{} --shards {shards} --worker-threads {workers}", options.sardine))?;
    if let Some(seed) = &options.restless {
        let mut client = RespClient::connect(&server.address())?;
        let begun = client.call(&["DEBUG", "RESTLESS", seed])?;
        eprintln!("# restless, seed {seed}: {}", begun.lines().join(" "));
    }
    Ok(server)
}

fn start(command: &str) -> io::Result<RedisServer> {
    let words: Vec<&str> = command.split_whitespace().collect();
    RedisServer::start_program(&words)?.ok_or_else(|| io::Error::other(format!("there is no {command}")))
}
