//! `cargo xtask arena SECONDS`: the arena's state machine for long: one thread beside its naive twin, several
//! threads together, and then several under schedulers that choose at every lock who goes on (shuttle, in a
//! build of its own). A failure names its seed; with that in `ARENA_SEED` the next run begins there.
use crate::shell::{Outcome, cargo, execute, target};
use clap::{Arg, ArgMatches, value_parser};
use std::process::Command;

pub(crate) fn command() -> clap::Command {
    let seconds = Arg::new("SECONDS")
        .required(true)
        .value_parser(value_parser!(u32))
        .help("For how long, and for as long again under the schedulers");
    clap::Command::new("arena")
        .about("Tests the arena for so long, and for as long again under schedulers of its threads")
        .arg(seconds)
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let seconds = *matches.get_one("SECONDS").expect("it is required");
    execute(&mut tests(seconds))?;
    let mut scheduled = tests(seconds);
    scheduled.env("RUSTFLAGS", "--cfg shuttle").env("CARGO_TARGET_DIR", target("shuttle"));
    execute(&mut scheduled)
}

fn tests(seconds: u32) -> Command {
    let mut command = cargo();
    command.args(["test", "--package", "pack", "--lib", "arena::machine_tests"]);
    command.env("ARENA_SECONDS", seconds.to_string());
    command
}
