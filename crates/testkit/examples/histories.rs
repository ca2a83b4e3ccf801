//! Histories by hand: `cargo xtask histories MINUTES` builds Sardine with checks and calls this with
//! `--sardine PROGRAM`. Rounds follow each other, each with a server that is restless in every second one,
//! until the time is over or one cannot be explained.
use clap::{Arg, Command, value_parser};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::time::Duration;
use testkit::histories::{Checked, Size, play};
use testkit::redis_server::RedisServer;
use testkit::resp_client::RespClient;

/// How many seeds are played to one server.
const SEEDS_PER_SERVER: u64 = 20;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a tool by hand runs for as long as it is told")]
fn run() -> Result<(), Box<dyn Error>> {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let number = |name: &'static str, default: &'static str| {
        option(name, "N").default_value(default).value_parser(value_parser!(u64))
    };
    let matches = Command::new("histories")
        .args([
            option("sardine", "PROGRAM").required(true).help("The server under test, and its arguments"),
            number("seconds", "60"),
            number("seed", "1").help("Of the first round; the next has the next seed"),
            number("clients", "8"),
            number("requests", "400").help("Of each client on each key"),
        ])
        .get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("it has a default");
    let program = matches.get_one::<String>("sardine").expect("it is required");
    let size = Size { clients: number("clients") as usize, requests: number("requests") as usize };
    let end = Duration::from_secs(number("seconds"));
    let started = std::time::SystemTime::now();
    let (mut all, mut seed) = (Checked::default(), number("seed"));
    while started.elapsed()? < end {
        let server = start(program)?;
        if (seed / SEEDS_PER_SERVER) % 2 == 1 {
            RespClient::connect(&server.address())?.call(&["DEBUG", "RESTLESS", &seed.to_string()])?;
        }
        loop {
            let checked = play(&server.address(), seed, size)??;
            all.requests += checked.requests;
            all.transactions += checked.transactions;
            all.aborted += checked.aborted;
            all.snapshots += checked.snapshots;
            seed += 1;
            if seed.is_multiple_of(SEEDS_PER_SERVER) || started.elapsed()? >= end {
                break;
            }
        }
        eprintln!("seeds to {seed}: {all:?}");
    }
    Ok(())
}

fn start(command: &str) -> io::Result<RedisServer> {
    let words: Vec<&str> = command.split_whitespace().collect();
    RedisServer::start_program(&words)?.ok_or_else(|| io::Error::other(format!("there is no {command}")))
}
