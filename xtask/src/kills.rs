//! `cargo xtask kills [--kills N] [--keep always|everysec|dump] [--workers N] [--seed N] [--large]`: a server
//! that is killed again and again while clients write, and compared with what it had acknowledged
//! (`crates/testkit/src/kills`). Builds the server in the profile `perf`, or takes another (`--sardine`).
use crate::shell::{Outcome, cargo, execute, passed_on, target_folder};
use clap::{Arg, ArgMatches, Command, value_parser};
use std::path::PathBuf;

pub(crate) fn command() -> Command {
    let sardine = Arg::new("sardine").long("sardine").value_name("PATH").value_parser(value_parser!(PathBuf));
    let options =
        "Options of the runner: --kills N, --keep always|everysec|dump, --workers N, --seed N, --large";
    Command::new("kills")
        .about("A server killed at any moment, again and again: nothing that was acknowledged may be lost")
        .args([sardine.help("Instead of a build of the profile perf"), passed_on().help(options)])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let program = match matches.get_one::<PathBuf>("sardine") {
        Some(program) => program.clone(),
        None => {
            execute(cargo().args(["build", "--quiet", "--package", "tools", "--profile", "perf"]))?;
            target_folder().join("perf/sardine")
        }
    };
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--profile", "perf", "--package", "testkit", "--example", "kills", "--"]);
    runner.arg("--sardine").arg(program);
    execute(runner.args(matches.get_many::<String>("OPTIONS").unwrap_or_default()))
}
