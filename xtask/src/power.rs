//! `cargo xtask power SEEDS [--seed FIRST]`: servers on a disk that fails, tears, forgets and reorders by a
//! seed, and whose power fails (`crates/testkit/src/kills/power`).
use crate::shell::{Outcome, cargo, execute, passed_on};
use clap::{Arg, ArgMatches, Command, value_parser};

pub(crate) fn command() -> Command {
    let seeds = Arg::new("SEEDS")
        .required(true)
        .value_parser(value_parser!(u64))
        .help("How many seeds are tried, one after the other");
    Command::new("power")
        .about("Servers on a disk that fails by a seed, and whose power fails: what was acknowledged must be there")
        .args([seeds, passed_on().help("Options of the runner: --seed FIRST")])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let seeds: u64 = *matches.get_one("SEEDS").expect("it is required");
    let options = matches.get_many::<String>("OPTIONS").unwrap_or_default();
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--profile", "perf", "--package", "testkit", "--example", "power", "--"]);
    execute(runner.args(["--seeds", &seeds.to_string()]).args(options))
}
