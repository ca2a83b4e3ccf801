//! `cargo xtask soak MINUTES [--seed N] [--workers N]`: hostile and friendly clients together on a restless server, for so long
//! (`crates/testkit/src/soak`). Builds the server optimised and with checks of the heap (the profile `checked`), and prints one page.
use crate::shell::{Outcome, cargo, execute, target_folder};

const PROFILE: [&str; 2] = ["--profile", "checked"];

pub(crate) fn run(minutes: &str, options: &[&str]) -> Outcome {
    let minutes: f64 = minutes.parse().map_err(|_| format!("{minutes:?} is not a number of minutes"))?;
    execute(cargo().args(["build", "--quiet", "--package", "tools"]).args(PROFILE))?;
    let mut runner = cargo();
    runner.args(["run", "--quiet", "--package", "testkit", "--example", "soak", "--"]);
    runner.arg("--sardine").arg(target_folder().join("checked/sardine"));
    execute(runner.args(["--seconds", &format!("{:.0}", minutes * 60.0)]).args(options))
}
