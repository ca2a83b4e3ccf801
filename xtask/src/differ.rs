//! `cargo xtask differ`: the differential runner by hand. It lives in testkit (`crates/testkit/src/differ`); this builds the
//! server and the runner, and starts one with the other.
//!
//! Options are the runner's: `--requests N`, `--streams N`, `--seed S`, `--peer COMMAND`, `--groups string,list,keys,...`, `--shards N`,
//! `--workers N`, `--restless SEED` (Sardine does all the time what it does rarely by itself: `DEBUG RESTLESS`). The build has checks of the
//! heap; `--checked` optimises it as well, `--release` builds what users get. Without `--peer` it is the Redis that `cargo xtask peers`
//! has unpacked, else the installed one.
use crate::peers::PEERS;
use crate::shell::{Outcome, cargo, execute, target_folder};

pub(crate) fn run(args: &[&str]) -> Outcome {
    let is_profile = |arg: &&str| matches!(*arg, "--release" | "--checked");
    let options: Vec<&str> = args.iter().copied().filter(|arg| !is_profile(arg)).collect();
    let (profile, folder): (&[&str], &str) = match args.iter().copied().find(is_profile) {
        Some("--release") => (&["--release"], "release"),
        Some(_) => (&["--profile", "checked"], "checked"),
        None => (&[], "debug"),
    };
    execute(cargo().args(["build", "--quiet", "--package", "tools"]).args(profile))?;
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "differ"]).args(profile);
    runner.arg("--").arg("--sardine").arg(target_folder().join(folder).join("sardine"));
    if let Some(redis) = PEERS[0].server().filter(|_| !options.contains(&"--peer")) {
        runner.arg("--peer").arg(redis);
    }
    runner.args(options);
    execute(&mut runner)
}
