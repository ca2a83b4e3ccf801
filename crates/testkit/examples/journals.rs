//! Journals by hand: `cargo xtask differ --journal` calls this. Random streams are recorded by a server in
//! this process and by a real one, word for word the same, and replayed; then many clients change the same
//! keys at once, with several numbers of workers, and what was recorded is replayed.
use clap::{Arg, Command, value_parser};
use server::{Clock, Config, Log};
use std::error::Error;
use std::process::ExitCode;
use testkit::differ::journal::{Journals, replay};
use testkit::in_process::InProcess;
use testkit::journal::AofFile;
use testkit::journal_storm::Storm;
use testkit::redis_server::RedisServer;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("{count} differ");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize, Box<dyn Error>> {
    let number = |name: &'static str, default: &'static str| {
        Arg::new(name).long(name).value_name("N").default_value(default).value_parser(value_parser!(u64))
    };
    let matches = Command::new("journals")
        .args([number("streams", "5000"), number("storms", "50"), number("seed", "1")])
        .get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("it has a default");
    let seed = number("seed");
    let streams = play_streams(seed, number("streams"))?;
    Ok(streams + play_storms(seed, number("storms"))?)
}

/// Plays streams and tells those whose journals or replays differ.
fn play_streams(first: u64, count: u64) -> Result<usize, Box<dyn Error>> {
    let Some(redis) = RedisServer::unpacked_with(&AofFile::ARGUMENTS)? else {
        eprintln!("no redis-server to compare with: run cargo xtask peers");
        return Ok(0);
    };
    let config = || Config { worker_threads: 2, ..InProcess::config() };
    let sardine = server::start(config(), Clock::real(), Log::silent()).map_err(|error| error.0)?;
    let mut journals = Journals::new(&sardine, (redis.address(), AofFile::of(&redis)?), &[])?;
    let (mut differing, mut effects) = (0, 0);
    for seed in first..first.saturating_add(count) {
        let played = journals.play(seed)?;
        effects += played.effect_count;
        if let Some((name, told)) = played.difference {
            eprintln!("\n# seed {seed}: {name} is recorded otherwise\n{told}");
            differing += 1;
            continue;
        }
        let copy = server::start(config(), Clock::real(), Log::silent()).map_err(|error| error.0)?;
        let errors = replay(&copy.addresses[0].into(), &played.journal)?;
        let missing = if played.has_settings { Vec::new() } else { journals.missing_in(&copy)? };
        if !(errors.is_empty() && missing.is_empty()) {
            eprintln!("\n# seed {seed}: the replay differs\n{errors:?}\n{missing:?}");
            differing += 1;
        }
    }
    eprintln!("{count} streams, {effects} effects, {differing} streams differ");
    Ok(differing)
}

/// Plays storms and tells those that were recorded in another order than they ran in.
fn play_storms(first: u64, count: u64) -> Result<usize, Box<dyn Error>> {
    let (mut differing, mut bytes) = (0, 0);
    for seed in first..first.saturating_add(count) {
        let workers = 1 + (seed % 5) as usize;
        let storm = Storm {
            seed,
            workers,
            clients: 8,
            requests: 10_000,
            evicts: seed % 3 == 0,
            expires_on_sight: seed % 2 == 0,
        };
        let weathered = storm.weather()?;
        bytes += weathered.journal_bytes;
        if !(weathered.errors.is_empty() && weathered.differences.is_empty()) {
            eprintln!("\n# {storm:?}\n{:?}\n{:?}", weathered.errors, weathered.differences);
            differing += 1;
        }
    }
    eprintln!("{count} storms, {bytes} bytes of journals, {differing} storms differ");
    Ok(differing)
}
