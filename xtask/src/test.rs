//! `cargo xtask test`: every step runs even if one before it failed, and cargo's own tests run last, so that
//! the last lines on the screen are theirs. Clippy runs while what the tests need is installed, which mostly
//! waits for the network; what it says is shown in its turn.
use crate::shell::{Beside, Outcome, beside, cargo, execute};
use crate::{setup, tidy};

fn clippy() -> Result<Beside, String> {
    beside(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

/// Runs a step; its name if it has failed.
fn step(name: &'static str, run: impl FnOnce() -> Outcome) -> Option<&'static str> {
    println!("\n== {name} ==");
    let message = run().err()?;
    println!("{name}: FAILED {message}");
    Some(name)
}

pub(crate) fn run() -> Outcome {
    let clippy = clippy();
    let steps = [
        step("what the tests need", setup::run),
        step("formatting", || execute(cargo().args(["fmt", "--all", "--check"]))),
        step("clippy", || clippy?.finish()),
        step("tidy", tidy::run),
    ];
    let failed: Vec<&str> = steps.into_iter().flatten().collect();
    println!("\n== tests ==");
    if !failed.is_empty() {
        println!("failed before the tests: {} (see above)", failed.join(", "));
    }
    let tests = execute(cargo().args(["test", "--workspace", "--no-fail-fast"]));
    if failed.is_empty() && tests.is_ok() { Ok(()) } else { Err(String::new()) }
}
