//! `cargo xtask soak MINUTES [--seed N] [--workers N] [--crowd N]`: hostile and friendly clients together on
//! a restless server, for so long (`crates/testkit/src/soak`); with `--crowd` friendly ones and a crowd that
//! waits, watches, listens and keeps copies. Builds the server optimised and with checks of the heap (the
//! profile `checked`), and prints one page.
use crate::shell::{Outcome, cargo, execute, passed_on, target_folder};
use clap::{Arg, ArgMatches, Command, value_parser};

const PROFILE: [&str; 2] = ["--profile", "checked"];

pub(crate) fn command() -> Command {
    let minutes = Arg::new("MINUTES").required(true).value_parser(value_parser!(f64)).help("For how long");
    Command::new("soak")
        .about("Hostile and friendly clients together on a restless server with checks, for so long")
        .args([minutes, passed_on().help("Options of the runner: --seed N, --workers N, --crowd N")])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let minutes: f64 = *matches.get_one("MINUTES").expect("it is required");
    let options = matches.get_many::<String>("OPTIONS").unwrap_or_default();
    execute(cargo().args(["build", "--quiet", "--package", "tools"]).args(PROFILE))?;
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "soak", "--"]);
    runner.arg("--sardine").arg(target_folder().join("checked/sardine"));
    execute(runner.args(["--seconds", &format!("{:.0}", minutes * 60.0)]).args(options))
}
