//! Making the builds of the matrix, in a target folder of their own, and keeping their programs.
//! Profile-guided ones are built twice: first to count what runs under load, then with what was counted.
use super::client::Client;
use super::redis_benchmark::Load;
use super::server::{Server, Spec};
use super::variants::Variant;
use crate::shell::{cargo, host, target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the server does while it is watched: the tests that the matrix measures.
const TRAINING: [&str; 6] = ["set", "get", "incr", "lpush", "lrange_100", "rpop"];

/// Builds it; the program, kept under the variant's name.
pub(crate) fn build(variant: &Variant) -> Result<PathBuf, String> {
    let flags = variant.target_cpu.map(|cpu| format!("-Ctarget-cpu={cpu}")).unwrap_or_default();
    if !variant.is_profiled {
        return compile(variant, &flags, &variant.name);
    }
    let counts = target("bench").join("profiles").join(&variant.name);
    // What an earlier run counted belongs to other code.
    let _ = std::fs::remove_dir_all(&counts);
    let counting = format!("{flags} -Cprofile-generate={}", counts.display());
    let program = compile(variant, &counting, &format!("{}-counting", variant.name))?;
    train(&program)?;
    let merged = merge(&counts)?;
    compile(variant, &format!("{flags} -Cprofile-use={}", merged.display()), &variant.name)
}

fn compile(variant: &Variant, flags: &str, name: &str) -> Result<PathBuf, String> {
    let folder = target("bench").join("cargo");
    let mut command = cargo();
    command.args(["build", "--release", "--quiet", "--package", "tools", "--target-dir"]).arg(&folder);
    variant.profile.iter().for_each(|setting| {
        command.args(["--config", setting]);
    });
    if !variant.features.is_empty() {
        command.args(["--features", &variant.features.join(",")]);
    }
    let status = command.env("RUSTFLAGS", flags.trim()).stdin(Stdio::null()).status();
    if !status.is_ok_and(|status| status.success()) {
        return Err(format!("bench: the build {name} failed"));
    }
    let kept = target("bench").join("programs").join(name);
    let failed = |e: std::io::Error| format!("bench: {}: {e}", kept.display());
    std::fs::create_dir_all(kept.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    std::fs::copy(folder.join("release/sardine"), &kept).map_err(failed)?;
    Ok(kept)
}

/// A server that counts writes its figures when it ends by itself.
fn train(program: &Path) -> Result<(), String> {
    let mut server = Server::start(&Spec::sardine(program, 1, "")?, None)?;
    for (test, depth) in TRAINING.iter().flat_map(|test| [(test, 1), (test, 50)]) {
        Load { test, depth, requests: 60_000, keyspace: "1000000", threads: 1 }.run(&server)?;
    }
    // The connection is closed instead of an answer.
    let _ = server.client().and_then(|mut client: Client| client.call(&[b"SHUTDOWN", b"NOSAVE"]));
    server.wait()
}

fn merge(counts: &Path) -> Result<PathBuf, String> {
    let tool = profdata().ok_or("bench: no llvm-profdata that knows this rustc's profiles")?;
    let merged = counts.join("merged.profdata");
    let status = Command::new(&tool).arg("merge").arg("-o").arg(&merged).arg(counts).status();
    match status {
        Ok(status) if status.success() => Ok(merged),
        _ => Err(format!("bench: {} cannot merge what was counted", tool.display())),
    }
}

/// The toolchain's own; Debian's is of another LLVM, which reads other profiles.
pub(crate) fn profdata() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let tool = sysroot.join("lib/rustlib").join(host().ok()?).join("bin/llvm-profdata");
    tool.exists().then_some(tool)
}
