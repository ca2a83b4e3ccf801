//! `cargo xtask fuzz TARGET|all SECONDS`: what cargo-fuzz does, without having to install it. Builds fuzz/
//! with nightly, libFuzzer's coverage and AddressSanitizer, and runs one target, or each, for so long. It
//! begins with the inputs that the repository keeps (fuzz/corpus/TARGET.txt, one a line in hexadecimal) and
//! those that earlier runs have found (target/fuzz/corpus). A crash's input stays in target/fuzz/artifacts;
//! as a line of the kept corpus it becomes a test.
//!
//! `cargo xtask fuzz keep` writes the kept corpus anew: of all inputs the fewest and shortest that reach the
//! same code, or as many of them as there is room for.
use crate::shell::{Outcome, execute, host, nightly_cargo, root, target};
use clap::{Arg, ArgMatches, value_parser};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Coverage that libFuzzer reads (counters, compared values), the sanitizer, and one codegen unit so that
/// both see all.
const FLAGS: &str = "-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    --cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions";
/// The longest input, in bytes.
const LEN_MAX: &str = "-max_len=2048";
/// An input that takes this many seconds counts as a fault.
const TIMEOUT: &str = "-timeout=20";
/// The most that is kept for a target, in bytes.
const KEPT_BYTES_MAX: usize = 12 << 10;

pub(crate) fn command() -> clap::Command {
    let target = Arg::new("TARGET").required(true).help("A target of fuzz/corpus, or all");
    let seconds = Arg::new("SECONDS")
        .required(true)
        .value_parser(value_parser!(u32))
        .help("For how long each target runs");
    clap::Command::new("fuzz")
        .about("Runs fuzzers led by coverage, on nightly")
        .args([target, seconds])
        .subcommand_negates_reqs(true)
        .subcommand(clap::Command::new("keep").about("Writes the kept corpus anew"))
}

pub(crate) fn run(matches: &ArgMatches) -> Outcome {
    let named = matches.get_one::<String>("TARGET").zip(matches.get_one("SECONDS"));
    match named {
        Some((target, seconds)) => fuzz_targets(target, *seconds),
        None => keep(),
    }
}

fn fuzz_targets(name: &str, seconds: u32) -> Outcome {
    let all = targets()?;
    let chosen: Vec<&String> = all.iter().filter(|target| name == "all" || *target == name).collect();
    if chosen.is_empty() {
        return Err(format!("no such target; there are {}", all.join(", ")));
    }
    let program = build()?;
    let failed: Vec<&str> = chosen
        .iter()
        .filter(|name| fuzz(&program, name, seconds).is_err())
        .map(|name| name.as_str())
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

fn keep() -> Outcome {
    let program = build()?;
    targets()?.iter().try_for_each(|name| keep_one(&program, name))
}

/// The names of all targets: each has a file of kept inputs.
fn targets() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/corpus");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let stem = |entry: fs::DirEntry| Some(entry.path().file_stem()?.to_str()?.to_owned());
    let mut names: Vec<String> = entries.filter_map(Result::ok).filter_map(stem).collect();
    names.sort();
    Ok(names)
}

fn build() -> Result<PathBuf, String> {
    let (host, builds) = (host()?, target("fuzz"));
    let mut build = nightly_cargo()?;
    build.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    execute(build.arg("--target-dir").arg(&builds).env("RUSTFLAGS", FLAGS))?;
    Ok(builds.join(host).join("release/fuzz"))
}

fn folder(kind: &str, name: &str) -> Result<PathBuf, String> {
    let folder = target("fuzz").join(kind).join(name);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    Ok(folder)
}

fn fuzz(program: &Path, name: &str, seconds: u32) -> Outcome {
    let corpus = unpack(name)?;
    let artifacts = format!("-artifact_prefix={}/", folder("artifacts", name)?.display());
    let time = format!("-max_total_time={seconds}");
    let mut command = Command::new(program);
    let leaks = format!("suppressions={}:print_suppressions=0", root().join("fuzz/leaks.txt").display());
    command.env("SARDINE_FUZZ", name).env("LSAN_OPTIONS", leaks);
    execute(command.args([&time, LEN_MAX, TIMEOUT, &artifacts]).arg(corpus))
}

fn kept_file(name: &str) -> PathBuf {
    root().join("fuzz/corpus").join(name).with_extension("txt")
}

/// The kept inputs as files beside those that were found.
fn unpack(name: &str) -> Result<PathBuf, String> {
    let (file, corpus) = (kept_file(name), folder("corpus", name)?);
    let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    for (number, line) in text.lines().enumerate() {
        let bytes = unhex(line).ok_or_else(|| format!("{}:{}", file.display(), number + 1))?;
        let path = corpus.join(format!("kept-{number}"));
        fs::write(&path, bytes).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(corpus)
}

fn unhex(line: &str) -> Option<Vec<u8>> {
    let digits = line.as_bytes().chunks_exact(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn keep_one(program: &Path, name: &str) -> Outcome {
    let (corpus, fewest) = (unpack(name)?, folder("fewest", name)?);
    fs::remove_dir_all(&fewest).map_err(|e| format!("{}: {e}", fewest.display()))?;
    let fewest = folder("fewest", name)?;
    let mut command = Command::new(program);
    execute(command.env("SARDINE_FUZZ", name).args(["-merge=1", LEN_MAX]).args([&fewest, &corpus]))?;
    let entries = fs::read_dir(&fewest).map_err(|e| format!("{}: {e}", fewest.display()))?;
    let inputs = entries.filter_map(Result::ok).filter_map(|entry| fs::read(entry.path()).ok());
    let line = |input: &Vec<u8>| input.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    let text: String = chosen(inputs.collect()).iter().map(line).collect();
    fs::write(kept_file(name), text).map_err(|e| format!("{}: {e}", kept_file(name).display()))
}

/// All inputs if there is room for them, else every second or third (and so on) in the order of their
/// lengths, so that short and long ones stay.
fn chosen(mut inputs: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    inputs.retain(|input| !input.is_empty());
    inputs.sort_by_key(|input| (input.len(), input.clone()));
    let bytes: usize = inputs.iter().map(Vec::len).sum();
    let one_in = bytes.div_ceil(KEPT_BYTES_MAX).max(1);
    inputs.into_iter().skip(one_in / 2).step_by(one_in).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_short_and_long() {
        let inputs: Vec<Vec<u8>> = (0..200).map(|len| vec![b'x'; len]).collect();
        let kept = chosen(inputs);
        assert!(kept.iter().map(Vec::len).sum::<usize>() < KEPT_BYTES_MAX + 200);
        assert!(kept[0].len() < 5 && kept[kept.len() - 1].len() > 190);
        assert_eq!(chosen(vec![vec![], b"a".to_vec()]), [b"a"]);
    }

    #[test]
    fn every_kept_input_can_be_unpacked() {
        for name in targets().unwrap() {
            let text = fs::read_to_string(kept_file(&name)).unwrap();
            assert!(text.lines().count() > 0 && text.lines().all(|line| unhex(line).is_some()), "{name}");
            assert!(text.len() <= 3 * KEPT_BYTES_MAX, "{name} keeps too much");
        }
    }
}
