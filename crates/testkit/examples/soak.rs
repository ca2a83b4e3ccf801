//! The soak by hand: `cargo xtask soak MINUTES` builds Sardine with checks and calls this with `--sardine
//! PROGRAM`.
use clap::{Arg, Command, value_parser};
use std::process::ExitCode;
use testkit::soak::{self, Options};

fn main() -> ExitCode {
    let options = options();
    eprintln!("seed {}", options.seed);
    match soak::run(&options) {
        Ok(summary) => {
            eprint!("{summary}");
            if summary.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Options {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let sardine = option("sardine", "PROGRAM").required(true).help("The server under test");
    let seconds = option("seconds", "N").default_value("60").value_parser(value_parser!(u64));
    let seed =
        option("seed", "N").value_parser(value_parser!(u64)).help("Of all clients, instead of a new one");
    let workers = option("workers", "N").default_value("4").value_parser(value_parser!(usize));
    let crowd = option("crowd", "N").default_value("0").value_parser(value_parser!(u64));
    let crowd =
        crowd.help("Clients that wait, watch, listen, keep copies and are users, instead of hostile ones");
    let matches = Command::new("soak").args([sardine, seconds, seed, workers, crowd]).get_matches();
    let number = |name: &str| *matches.get_one::<u64>(name).expect("it has a default");
    Options {
        sardine: matches.get_many("sardine").expect("it is required").cloned().collect(),
        seconds: number("seconds"),
        seed: matches.get_one("seed").copied().unwrap_or_else(|| u64::from(std::process::id())),
        workers: *matches.get_one("workers").expect("it has a default"),
        crowd: number("crowd"),
    }
}
