//! `cargo xtask test`: every step runs even if one before it failed, and cargo's own tests run last, so that
//! the last lines on the screen are theirs.
use crate::shell::{Outcome, cargo, execute};
use crate::{setup, tidy};

struct Step {
    name: &'static str,
    run: fn() -> Outcome,
}

const BEFORE_TESTS: [Step; 4] = [
    Step { name: "what the tests need", run: setup::run },
    Step { name: "formatting", run: || execute(cargo().args(["fmt", "--all", "--check"])) },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: tidy::run },
];

fn clippy() -> Outcome {
    execute(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn run_step(step: &Step) -> Option<String> {
    println!("\n== {} ==", step.name);
    let message = (step.run)().err()?;
    println!("{}: FAILED {message}", step.name);
    Some(step.name.to_string())
}

pub(crate) fn run() -> Outcome {
    let failed: Vec<String> = BEFORE_TESTS.iter().filter_map(run_step).collect();
    println!("\n== tests ==");
    if !failed.is_empty() {
        println!("failed before the tests: {} (see above)", failed.join(", "));
    }
    let tests = execute(cargo().args(["test", "--workspace", "--no-fail-fast"]));
    if failed.is_empty() && tests.is_ok() { Ok(()) } else { Err(String::new()) }
}
