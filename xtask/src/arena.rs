//! `cargo xtask arena SECONDS`: the arena's state machine for long: one thread beside its naive twin, several threads together,
//! and then several under schedulers that choose at every lock who goes on (shuttle, in a build of its own). A failure names its seed;
//! `ARENA_SEED` begins with it.
use crate::shell::{Outcome, cargo, execute, target};
use std::process::Command;

pub(crate) fn run(seconds: &str) -> Outcome {
    let seconds: u32 = seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?;
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
