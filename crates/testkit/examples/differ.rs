//! The differential runner by hand: `cargo xtask differ` builds Sardine and calls this with `--sardine
//! PROGRAM`.
//!
//! Streams are played until `--requests` were sent; the seed of a stream is `--seed` and its number. Each
//! command that differs is told once, shrunk, as a transcript; the exit status says whether there was any.
//! `--streams 1 --seed N` plays stream N again. `--connections N` plays talks of so many connections, which
//! wait for each other, watch each other's keys and hear each other's messages. `--users` plays rules of
//! users, and what these may do.
use clap::{Arg, ArgAction, Command, value_parser};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::process::ExitCode;
use testkit::differ::users::Users;
use testkit::differ::{Differ, Talks};
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
    /// Talks of so many connections instead of streams of single requests.
    connections: Option<usize>,
    /// Rules of users instead.
    plays_users: bool,
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
            number("connections", "N").help(
                "Talks of so many connections: transactions, clients that wait, subscribers (4 are enough)",
            ),
            Arg::new("users")
                .long("users")
                .action(ArgAction::SetTrue)
                .help("Rules of users, and what they may do"),
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
        connections: number("connections").map(|count| count as usize),
        plays_users: matches.get_flag("users"),
    }
}

struct Run<'o> {
    options: &'o Options,
    ours: RedisServer,
    _theirs: RedisServer,
    runner: Runner,
    request_count: usize,
    /// What came of them, by its name ([`Outcome::counts`]).
    counts: BTreeMap<&'static str, usize>,
    stream_count: usize,
    shown: usize,
    /// What differs, and how often.
    subjects: BTreeMap<String, usize>,
}

/// Either kind of stream.
enum Runner {
    Requests(Differ),
    Talks(Talks),
    Users(RefCell<Users>),
}

/// Tells a difference, at its shortest where it may be played again.
type Tell<'r> = Box<dyn Fn(bool) -> io::Result<String> + 'r>;

/// What came of one stream: how many requests it had, how many of them or of their replies were of a kind
/// that tells how much was tested, and the command that differs with its shortest form, which is made when it
/// is needed.
struct Outcome<'r> {
    requests: usize,
    counts: Vec<(&'static str, usize)>,
    difference: Option<(String, Tell<'r>)>,
}

impl Runner {
    fn new(options: &Options, ours: &RedisServer, theirs: &RedisServer) -> io::Result<Runner> {
        let (ours, theirs) = (ours.address(), theirs.address());
        if options.plays_users {
            return Ok(Runner::Users(Users::connect(ours, theirs)?.into()));
        }
        Ok(match options.connections {
            Some(count) => {
                let talks = Talks::new(ours, theirs, &options.groups, count)?;
                Runner::Talks(if options.restless.is_some() { talks.with_other_keys() } else { talks })
            }
            None => Runner::Requests(Differ::new(ours, theirs, &options.groups)?),
        })
    }

    fn play(&self, seed: u64) -> io::Result<Outcome<'_>> {
        match self {
            Runner::Requests(differ) => {
                let played = differ.play(seed)?;
                let counts = vec![("answered by errors", played.error_count)];
                let difference = played.difference.map(|found| {
                    let subject = found.subject.clone();
                    let tell = move |shrinks| {
                        let shortest = if shrinks { differ.shrink(&found)? } else { found.clone() };
                        Ok(shortest.to_string())
                    };
                    (subject, Box::new(tell) as Tell<'_>)
                });
                Ok(Outcome { requests: played.request_count, counts, difference })
            }
            Runner::Users(users) => {
                let played = users.borrow_mut().play(seed)?;
                // It is told as it is.
                let tell = |told: String| Box::new(move |_| Ok(told.clone())) as Tell<'_>;
                let difference = played.difference.map(|told| ("users".to_owned(), tell(told)));
                Ok(Outcome { requests: played.request_count, counts: Vec::new(), difference })
            }
            Runner::Talks(talks) => {
                let talked = talks.play(seed)?;
                let counts = vec![
                    ("transactions executed", talked.transaction_count),
                    ("transactions stopped by a watched key", talked.aborted_count),
                    ("requests that waited", talked.blocked_count),
                    ("values that nobody had asked for", talked.unasked_count),
                ];
                let difference = talked.difference.map(|found| {
                    let subject = found.subject.clone();
                    let tell = move |shrinks| {
                        let shortest = if shrinks { talks.shrink(&found)? } else { found.clone() };
                        Ok(shortest.to_string())
                    };
                    (subject, Box::new(tell) as Tell<'_>)
                });
                Ok(Outcome { requests: talked.request_count, counts, difference })
            }
        }
    }
}

impl<'o> Run<'o> {
    fn begin(options: &'o Options) -> Result<Run<'o>, Box<dyn Error>> {
        let theirs = start(&options.peer)?;
        let ours = start_sardine(options)?;
        let runner = Runner::new(options, &ours, &theirs)?;
        Ok(Run {
            options,
            ours,
            _theirs: theirs,
            runner,
            request_count: 0,
            counts: BTreeMap::new(),
            stream_count: 0,
            shown: 0,
            subjects: BTreeMap::new(),
        })
    }

    fn play(&mut self, seed: u64) -> Result<(), Box<dyn Error>> {
        self.play_and_tell(seed)?;
        if !self.ours.is_alive() {
            self.restart()?;
        }
        if self.request_count / SHOWN_EVERY > self.shown {
            self.shown = self.request_count / SHOWN_EVERY;
            self.tell_progress();
        }
        Ok(())
    }

    /// Tells the first difference of each kind at its shortest.
    fn play_and_tell(&mut self, seed: u64) -> io::Result<()> {
        let Outcome { requests, counts, difference } = self.runner.play(seed)?;
        self.request_count += requests;
        counts.into_iter().for_each(|(name, count)| *self.counts.entry(name).or_default() += count);
        self.stream_count += 1;
        let Some((subject, tell)) = difference else { return Ok(()) };
        let count = self.subjects.entry(subject.clone()).or_default();
        *count += 1;
        if *count == 1 {
            eprintln!("\n# seed {seed}: {subject} differs; shrinking");
            eprintln!("{}", tell(self.ours.is_alive())?);
        }
        Ok(())
    }

    /// After a crash.
    fn restart(&mut self) -> Result<(), Box<dyn Error>> {
        eprintln!("# Sardine ended; starting it again");
        self.ours = start_sardine(self.options)?;
        self.runner = Runner::new(self.options, &self.ours, &self._theirs)?;
        Ok(())
    }

    fn tell_progress(&self) {
        let differing: usize = self.subjects.values().sum();
        let counts: String = self.counts.iter().map(|(name, count)| format!(", {count} {name}")).collect();
        eprintln!(
            "{} requests in {} streams{counts}; {differing} streams differ",
            self.request_count, self.stream_count
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
