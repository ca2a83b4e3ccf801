//! `cargo xtask clients [--jobs N] [--redis]`: the tests of client libraries alone
//! (`crates/tools/tests/all/clients.rs`). With `--jobs` only the job queue and the recipes beside it, so many
//! jobs each, on a server that is optimised and has checks of the heap; with `--redis` the same against the
//! redis-server that `cargo xtask peers` has unpacked.
use crate::peers::PEERS;
use crate::setup;
use crate::shell::{Outcome, cargo, execute};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

pub(crate) fn command() -> Command {
    let jobs = Arg::new("jobs").long("jobs").value_name("N").value_parser(value_parser!(u64));
    let redis = Arg::new("redis").long("redis").action(ArgAction::SetTrue);
    Command::new("clients").about("Runs the tests of client libraries").args([
        jobs.help("Only the queue whose workers are killed, and recipes beside it, with so many jobs"),
        redis.help("Against the unpacked redis-server instead of Sardine"),
    ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    setup::run()?;
    let mut tests = cargo();
    tests.args(["test", "--package", "tools", "--test", "all"]);
    if matches.get_flag("redis") {
        let redis = PEERS[0].server().ok_or("there is no redis-server to compare with: cargo xtask peers")?;
        tests.env("SARDINE_CLIENTS_PEER", redis);
    }
    match matches.get_one::<u64>("jobs") {
        Some(jobs) => {
            tests.env("SARDINE_JOBS", jobs.to_string()).args(["--profile", "checked", "clients::jobs"]);
            tests.args(["--", "--nocapture", "--test-threads", "1"]);
        }
        None => {
            tests.arg("clients::");
        }
    }
    execute(&mut tests)
}
