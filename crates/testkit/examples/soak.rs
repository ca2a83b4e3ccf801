//! The soak by hand: `cargo xtask soak MINUTES` builds Sardine with checks and calls this with `--sardine PROGRAM`.
use std::env;
use std::error::Error;
use std::process::ExitCode;
use testkit::soak::{self, Options};

const USAGE: &str = "--sardine PROGRAM [--seconds N] [--seed N] [--workers N]";

fn main() -> ExitCode {
    let told = parse(env::args().skip(1)).and_then(|options| {
        eprintln!("seed {}", options.seed);
        Ok(soak::run(&options)?)
    });
    match told {
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

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let mut options =
        Options { sardine: Vec::new(), seconds: 60, seed: u64::from(std::process::id()), workers: 4 };
    while let Some(name) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        match name.as_str() {
            "--sardine" => options.sardine = vec![value],
            "--seconds" => options.seconds = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--workers" => options.workers = value.parse()?,
            _ => return Err(USAGE.into()),
        }
    }
    if options.sardine.is_empty() { Err(USAGE.into()) } else { Ok(options) }
}
