//! `cargo xtask queues [bullmq|celery|asynq]... [--append-only] [--redis] [--peer NAME=COMMAND]`: job queues
//! that people run, their processes and the server killed, each job accounted for
//! (`crates/testkit/src/queues`). Installs their packages, builds the server, and starts the runner with it.
//!
//! Servers are this workspace's release build, or `--sardine PATH`; with `--redis` the redis-server that
//! `cargo xtask peers` has unpacked, and with `--peer` any other, instead. With `--cpu` nobody is killed, and
//! what BullMQ costs Sardine is measured beside the peers; with `--scripts` what its scripts cost by
//! themselves.
use crate::bench::built;
use crate::peers::PEERS;
use crate::setup;
use crate::shell::{Outcome, cargo, execute};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

/// Options that the runner takes as they are, with what they are.
const NUMBERS: [(&str, &str); 6] = [
    ("jobs", "Instead of 100000 of BullMQ (20000 with --cpu, 5000 with --scripts) and 10000 of the others"),
    ("seed", "Of jobs and kills, instead of a new one"),
    ("workers", "Processes that work, instead of 4"),
    ("kills", "Workers that are killed with a job in hand, instead of one for 1000 jobs, at least 8"),
    ("crashes", "How often the server is killed with --append-only, instead of 3"),
    ("rounds", "Of --cpu and --scripts, instead of 5"),
];
const FLAGS: [(&str, &str); 4] = [
    ("append-only", "With an append-only file (everysec), and the server killed as well"),
    ("hasty", "What the killed have leased is let go at once, instead of after its time"),
    ("cpu", "The server's CPU a job of BullMQ, with nobody killed, beside the peers"),
    ("scripts", "The same of its scripts, sent again as one run has called them, one and sixteen together"),
];

pub(crate) fn command() -> Command {
    let option = |name: &'static str, value: &'static str| Arg::new(name).long(name).value_name(value);
    let flag = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let programs = Arg::new("PROGRAM").num_args(0..).value_parser(["bullmq", "celery", "asynq"]);
    Command::new("queues")
        .about("Job queues whose workers and server are killed: nothing may be lost or doubled")
        .arg(programs.help("Only these; else all three"))
        .args(NUMBERS.map(|(name, help)| option(name, "N").value_parser(value_parser!(u64)).help(help)))
        .args(FLAGS.map(|(name, help)| flag(name).help(help)))
        .args([
            flag("redis").help("On the unpacked redis-server instead of Sardine"),
            option("peer", "NAME=COMMAND")
                .action(ArgAction::Append)
                .help("On this server instead, or with --cpu and --scripts beside it; may be repeated"),
            option("sardine", "PATH").value_parser(value_parser!(PathBuf)).help("Instead of a release build"),
            option("threads", "N").value_parser(value_parser!(u64)).help("Worker threads of Sardine"),
        ])
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    setup::run()?;
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "queues", "--"]);
    for server in servers(matches)? {
        runner.arg("--server").arg(server);
    }
    for (name, _) in NUMBERS {
        if let Some(number) = matches.get_one::<u64>(name) {
            runner.args([format!("--{name}"), number.to_string()]);
        }
    }
    for (name, _) in FLAGS.iter().filter(|(name, _)| matches.get_flag(name)) {
        runner.arg(format!("--{name}"));
    }
    execute(runner.args(matches.get_many::<String>("PROGRAM").unwrap_or_default()))
}

/// Each as NAME=COMMAND, Sardine first.
fn servers(matches: &ArgMatches) -> Result<Vec<String>, String> {
    let measures = matches.get_flag("cpu") || matches.get_flag("scripts");
    let mut peers: Vec<String> = matches.get_many::<String>("peer").unwrap_or_default().cloned().collect();
    if matches.get_flag("redis") || measures && peers.is_empty() {
        let redis = PEERS[0].server().ok_or("there is no redis-server to compare with: cargo xtask peers")?;
        peers.insert(0, format!("redis={}", redis.display()));
    }
    let program = matches.get_one::<PathBuf>("sardine");
    if !peers.is_empty() && !measures && program.is_none() {
        return Ok(peers);
    }
    let program = program.cloned().map_or_else(built, Ok)?;
    let threads = matches.get_one::<u64>("threads").copied().or(measures.then_some(1));
    let threads = threads.map_or(String::new(), |threads| format!(" --worker-threads {threads}"));
    peers.insert(0, format!("sardine={}{threads}", program.display()));
    Ok(peers)
}
