//! `cargo xtask fuzz TARGET SECONDS`: what cargo-fuzz does, without having to install it. Builds a target of fuzz/ with
//! nightly, libFuzzer's coverage and AddressSanitizer, and runs it on its corpus. A crash's input stays in
//! fuzz/artifacts/TARGET; run the program that this prints with that file as its argument to see it again.
use crate::shell::{Outcome, execute, host, nightly_cargo, root, target};
use std::process::Command;

/// Coverage that libFuzzer reads (counters, compared values), the sanitizer, and one codegen unit so that both see all.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    --cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions";

fn fuzz(name: &str, seconds: u32) -> Outcome {
    let (host, builds) = (host()?, target("fuzz"));
    let mut build = nightly_cargo()?;
    build.args([
        "build",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--bin",
        name,
        "--target",
        &host,
    ]);
    execute(build.arg("--target-dir").arg(&builds).env("RUSTFLAGS", FLAGS))?;
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    for folder in [&corpus, &artifacts] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let program = builds.join(host).join("release").join(name);
    let artifacts = format!("-artifact_prefix={}/", artifacts.display());
    execute(Command::new(program).args([&format!("-max_total_time={seconds}"), &artifacts]).arg(corpus))
}

pub(crate) fn run(name: &str, seconds: &str) -> Outcome {
    let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is not a number of seconds"))?;
    let source = root().join("fuzz/fuzz_targets").join(name).with_extension("rs");
    if !source.exists() {
        return Err(format!("no such target: {}", source.display()));
    }
    fuzz(name, seconds)
}
