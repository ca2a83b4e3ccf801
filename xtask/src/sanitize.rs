//! The unsafe crates' tests under tools that see what Rust does not check: AddressSanitizer (out of bounds,
//! use after free, leaks; needs nightly) and valgrind (uninitialised bytes too; slow, hence fewer cases).
use crate::shell::{Outcome, cargo, execute, host, nightly_cargo, target};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Loom's threads switch stacks by themselves, which neither tool follows; what they run touches no memory
/// but the counts.
const SKIPPED: [&str; 2] = ["--skip", "refs_interleavings"];

/// Where `unsafe` is allowed.
const UNSAFE_CRATES: [&str; 3] = ["pack", "net", "lua"];

pub(crate) fn asan() -> Outcome {
    let unsafe_crates: Vec<&str> = UNSAFE_CRATES.iter().flat_map(|name| ["--package", name]).collect();
    asan_tests(&[&unsafe_crates[..], &["--lib", "--tests", "--"], &SKIPPED].concat(), "detect_leaks=1")?;
    // Restless mode: in the store on the sanitizer's own allocator, which sees every leaf; in servers over
    // the arena, in which the sanitizer looks for no pointers and so would take what they point to for lost.
    asan_tests(&["--package", "store", "--lib", "restless"], "detect_leaks=1")?;
    asan_tests(&["--package", "testkit", "--tests", "restless"], "detect_leaks=0")
}

fn asan_tests(which: &[&str], option: &str) -> Outcome {
    let mut command = nightly_cargo()?;
    command.arg("test").args(["--target", &host()?, "--target-dir"]).arg(target("asan")).args(which);
    command.env("RUSTFLAGS", "-Zsanitizer=address -Cdebug-assertions").env("PROPTEST_CASES", "64");
    execute(command.env("ASAN_OPTIONS", format!("detect_stack_use_after_return=1:{option}")))
}

/// Under valgrind a step takes forty times as long: fewer cases of properties, and fewer of their seeds
/// (`crates/pack/src/model.rs`).
const FEWER: [(&str, &str); 2] = [("PROPTEST_CASES", "8"), ("SARDINE_SEEDS_ONE_IN", "16")];

pub(crate) fn valgrind() -> Outcome {
    for program in test_programs("pack")? {
        let options = [
            "--quiet",
            "--error-exitcode=1",
            "--leak-check=full",
            "--show-leak-kinds=definite",
            "--errors-for-leak-kinds=definite",
        ];
        let mut command = Command::new("valgrind");
        command.args(options).arg(program).arg("--test-threads=1").args(SKIPPED).envs(FEWER);
        execute(&mut command)?;
    }
    Ok(())
}

/// Builds a crate's tests and names the programs, as cargo's messages list them.
fn test_programs(package: &str) -> Result<Vec<PathBuf>, String> {
    let mut command = cargo();
    command.args(["test", "--lib", "--tests", "--no-run", "--package", package, "--message-format=json"]);
    let output =
        command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo test --no-run: {e}"))?;
    if !output.status.success() {
        return Err(format!("the tests of {package} do not build"));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(executable).map(PathBuf::from).collect())
}

fn executable(message: &str) -> Option<&str> {
    message.split_once("\"executable\":\"")?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_cargo_messages() {
        let built = r#"{"reason":"compiler-artifact","executable":"/x/pack-1","fresh":true}"#;
        assert_eq!(executable(built), Some("/x/pack-1"));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    }
}
