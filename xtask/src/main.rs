//! The project's scripts, all of them: `cargo xtask COMMAND`.
//!
//! | command | does |
//! |---|---|
//! | `test` | everything a change has to pass: what the tests need, formatting, clippy, tidy, then every test |
//! | `setup` | installs what the tests need; `test` begins with it |
//! | `tidy` | the rules of the house that a machine can check |
//! | `docs` | writes the generated documents anew |
//! | `bench NAME [...]` | the measurements behind every figure that is quoted |
//! | `differ [...]` | random requests to a real redis-server and to Sardine, replies compared |
//! | `soak MINUTES [...]` | hostile and friendly clients together on a restless server with checks |
//! | `peers` | unpacks the servers to compare with into target/peers |
//! | `fuzz TARGET\|all SECONDS` | runs fuzzers led by coverage, on nightly; `fuzz keep` writes the kept corpus anew |
//! | `arena SECONDS` | the arena's state machine for so long, and under schedulers of its threads for as long again |
//! | `asan` | the unsafe crates' tests under AddressSanitizer, on nightly |
//! | `valgrind` | the packed structures' tests under valgrind, with fewer cases |
#![allow(clippy::disallowed_macros, reason = "a script prints")]
mod arena;
mod bench;
mod differ;
mod docs;
mod fuzz;
mod peers;
mod sanitize;
mod setup;
mod shell;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask test | setup | tidy | docs | bench NAME [...] | differ [...] \
    | soak MINUTES [--seed N] | peers | fuzz TARGET|all SECONDS | fuzz keep | arena SECONDS | asan | valgrind";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args[..] {
        ["test"] => test::run(),
        ["setup"] => setup::run(),
        ["tidy"] => tidy::run(),
        ["docs"] => docs::run(),
        ["bench", ref rest @ ..] => bench::run(rest),
        ["differ", ref rest @ ..] => differ::run(rest),
        ["soak", minutes, ref rest @ ..] => soak::run(minutes, rest),
        ["peers"] => peers::run(),
        ["fuzz", "keep"] => fuzz::keep(),
        ["fuzz", target, seconds] => fuzz::run(target, seconds),
        ["arena", seconds] => arena::run(seconds),
        ["asan"] => sanitize::asan(),
        ["valgrind"] => sanitize::valgrind(),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}
