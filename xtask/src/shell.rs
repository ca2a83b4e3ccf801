//! Running other programs, and where things are.
use clap::Arg;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// What went wrong, for the person at the terminal. Empty where it has been said already.
pub(crate) type Outcome = Result<(), String>;

/// The repository's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where cargo's own builds go.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where builds other than cargo's default one go, and what the tests need to be installed.
pub(crate) fn target(name: &str) -> PathBuf {
    root().join("target").join(name)
}

/// The cargo that started this, so that `cargo +toolchain xtask` stays on its toolchain.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Nightly's cargo, through rustup; an error that says how to get it where it is not there.
pub(crate) fn nightly_cargo() -> Result<Command, String> {
    let found = quiet(Command::new("cargo").args(["+nightly", "--version"]));
    if !found {
        return Err("this needs a nightly toolchain: rustup toolchain install nightly".to_string());
    }
    let mut command = Command::new("cargo");
    command.arg("+nightly").current_dir(root());
    // The variables of the cargo that runs us would send it back to its own toolchain.
    ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTDOC"].iter().for_each(|name| {
        command.env_remove(name);
    });
    Ok(command)
}

/// The words behind a script's own arguments, options or not, for the program that it starts.
pub(crate) fn passed_on() -> Arg {
    let words = Arg::new("OPTIONS").value_name("OPTION OF THE RUNNER");
    words.num_args(0..).trailing_var_arg(true).allow_hyphen_values(true)
}

/// The triple of this machine, which sanitizers need to be told.
pub(crate) fn host() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output().map_err(|e| format!("rustc -vV: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string).ok_or_else(|| "rustc -vV names no host".to_string())
}

/// Runs a command with its output to the terminal, and nothing to read: no step asks a question.
pub(crate) fn execute(command: &mut Command) -> Outcome {
    let shown = show(command);
    println!("$ {shown}");
    judge(&shown, command.stdin(Stdio::null()).status())
}

fn judge(shown: &str, status: io::Result<ExitStatus>) -> Outcome {
    match status {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
    }
}

/// A command that runs beside others, whose output waits until somebody asks for its end.
pub(crate) struct Beside {
    child: Child,
    shown: String,
    output: PathBuf,
}

/// Starts a command whose output must not come between that of others.
pub(crate) fn beside(command: &mut Command) -> Result<Beside, String> {
    let shown = show(command);
    let output = target("tmp").join(format!("beside-{}", std::process::id()));
    let failed = |error: io::Error| format!("{shown}: {error}");
    std::fs::create_dir_all(target("tmp")).map_err(failed)?;
    let file = File::create(&output).map_err(failed)?;
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(failed)?).stderr(file);
    let child = command.spawn().map_err(failed)?;
    Ok(Beside { child, shown, output })
}

impl Beside {
    /// Waits for its end, and shows what it has said.
    pub(crate) fn finish(mut self) -> Outcome {
        println!("$ {}", self.shown);
        let status = self.child.wait();
        let said = std::fs::read(&self.output).unwrap_or_default();
        print!("{}", String::from_utf8_lossy(&said));
        let _ = std::fs::remove_file(&self.output);
        judge(&self.shown, status)
    }
}

/// Runs a command for its exit status only.
pub(crate) fn quiet(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
