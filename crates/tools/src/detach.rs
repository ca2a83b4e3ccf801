//! `daemonize`: the server in the background.
//!
//! A process that forks must not have threads and needs unsafe code. So nothing forks here: the program
//! starts itself once more with the same arguments, gives it no terminal, and ends; the second one begins a
//! session of its own. What was read from standard input is handed on. The configuration has been read by
//! then, and the log opened, so what is wrong with them was told where it can be seen.
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The environment variable that tells the second process that it is the second.
const MARK: &str = "SARDINE_DETACHED";

/// Whether this is the process that stays.
pub(crate) fn is_detached() -> bool {
    std::env::var_os(MARK).is_some()
}

/// Begins a session of its own, so that it does not end with a terminal.
pub(crate) fn settle() {
    // It fails where this process leads a group already: somebody has set the variable by hand.
    let _ = nix::unistd::setsid();
}

/// Starts this program once more, in `folder`, with `stdin` as its standard input.
pub(crate) fn start_again(folder: &Path, stdin: &[u8]) -> io::Result<()> {
    let input = if stdin.is_empty() { Stdio::null() } else { Stdio::piped() };
    let mut child = Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .current_dir(folder)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    match child.stdin.take() {
        Some(mut pipe) => pipe.write_all(stdin),
        None => Ok(()),
    }
}
