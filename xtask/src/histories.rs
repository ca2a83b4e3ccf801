//! `cargo xtask histories MINUTES [--seed N] [--clients N] [--requests N]`: histories of concurrent clients,
//! checked for an order that explains them (`crates/testkit/src/histories`). Builds the server optimised and
//! with checks of the heap (the profile `checked`), and prints what was checked.
use crate::shell::{Outcome, cargo, execute, passed_on, target_folder};
use clap::{Arg, ArgMatches, Command, value_parser};

const PROFILE: [&str; 2] = ["--profile", "checked"];

pub(crate) fn command() -> Command {
    let minutes = Arg::new("MINUTES").required(true).value_parser(value_parser!(f64)).help("For how long");
    Command::new("histories")
        .about("Concurrent clients whose histories must have an order that explains them, for so long")
        .args([minutes, passed_on().help("Options of the runner: --seed N, --clients N, --requests N")])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let minutes: f64 = *matches.get_one("MINUTES").expect("it is required");
    let options = matches.get_many::<String>("OPTIONS").unwrap_or_default();
    execute(cargo().args(["build", "--quiet", "--package", "tools"]).args(PROFILE))?;
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "histories", "--"]);
    runner
        .arg("--sardine")
        .arg(format!("{} --worker-threads 4", target_folder().join("checked/sardine").display()));
    execute(runner.args(["--seconds", &format!("{:.0}", minutes * 60.0)]).args(options))
}
