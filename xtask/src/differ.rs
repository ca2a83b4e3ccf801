//! `cargo xtask differ`: the differential runner by hand. It lives in testkit (`crates/testkit/src/differ`);
//! this builds the server and the runner, and starts one with the other.
//!
//! Sardine is built with checks of the heap; `--checked` optimises it as well, `--release` builds what users
//! get. All other options are the runner's; `--help` lists them, and builds no server. Without `--peer`
//! Sardine is compared with the Redis that `cargo xtask peers` has unpacked, else with the installed one.
//!
//! With `--journal` Sardine runs within the runner, and what it records is compared with the append-only file
//! of the unpacked Redis, and replayed (`--streams N --storms N --seed N`).
use crate::peers::PEERS;
use crate::shell::{Outcome, cargo, execute, passed_on, target_folder};
use clap::{ArgMatches, Command};

/// Compares what the servers record instead of what they reply.
const JOURNAL: &str = "--journal";

pub(crate) fn command() -> Command {
    let about = "Sends random requests to a real redis-server and to Sardine, and compares the replies";
    let options =
        "--release or --checked (how Sardine is built), and options of the runner, which --help lists";
    Command::new("differ").about(about).disable_help_flag(true).arg(passed_on().help(options))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let is_profile = |arg: &&str| matches!(*arg, "--release" | "--checked");
    let args = || matches.get_many::<String>("OPTIONS").unwrap_or_default().map(String::as_str);
    let options: Vec<&str> = args().filter(|arg| !is_profile(arg)).collect();
    let (profile, folder): (&[&str], &str) = match args().find(is_profile) {
        Some("--release") => (&["--release"], "release"),
        Some(_) => (&["--profile", "checked"], "checked"),
        None => (&[], "debug"),
    };
    if options.contains(&JOURNAL) {
        let mut runner = cargo();
        runner.args(["run", "--quiet", "--package", "testkit", "--example", "journals"]).args(profile);
        return execute(runner.arg("--").args(options.iter().filter(|option| **option != JOURNAL)));
    }
    if !options.iter().any(|option| matches!(*option, "-h" | "--help")) {
        execute(cargo().args(["build", "--quiet", "--package", "tools"]).args(profile))?;
    }
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "differ"]).args(profile);
    runner.arg("--").arg("--sardine").arg(target_folder().join(folder).join("sardine"));
    if let Some(redis) = PEERS[0].server().filter(|_| !options.contains(&"--peer")) {
        runner.arg("--peer").arg(redis);
    }
    runner.args(options);
    execute(&mut runner)
}
