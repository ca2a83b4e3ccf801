//! A process of a queue: its lines come through a channel, it is killed with all that it has started, and its
//! complaints are kept in a file.
use super::program::Role;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Sender;

/// What came from a process: a line, or its end.
pub(super) struct Line {
    /// The process's number.
    pub(super) from: usize,
    pub(super) text: Option<String>,
}

pub(super) struct Process {
    pub(super) role: Role,
    /// It was killed, and what it has still written is on its way.
    pub(super) is_killed: bool,
    child: Child,
    input: ChildStdin,
    complaints: PathBuf,
}

impl Process {
    /// Starts it, in a process group of its own, and a thread that reads what it writes.
    pub(super) fn start(
        mut command: Command,
        role: Role,
        number: usize,
        lines: Sender<Line>,
        folder: &Path,
    ) -> io::Result<Process> {
        let complaints = folder.join(format!("complaints-{number}"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&complaints)?);
        let mut child = command.process_group(0).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let input = input.ok_or_else(|| io::Error::other("a process without an input"))?;
        let output = output.ok_or_else(|| io::Error::other("a process without an output"))?;
        let read = move || {
            for text in BufReader::new(output).lines().map_while(Result::ok) {
                if lines.send(Line { from: number, text: Some(text) }).is_err() {
                    return;
                }
            }
            // Nobody may listen any more.
            let _ = lines.send(Line { from: number, text: None });
        };
        std::thread::Builder::new().name("lines".to_owned()).spawn(read)?;
        Ok(Process { role, is_killed: false, child, input, complaints })
    }

    /// Writes a line to it. One that has just ended does not read it: its end is on its way.
    pub(super) fn tell(&mut self, word: &str) {
        let _ = self.input.write_all(format!("{word}\n").as_bytes());
    }

    /// SIGKILL to it and to what it has started.
    pub(super) fn kill(&mut self) {
        self.is_killed = true;
        let group = format!("-{}", self.child.id());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        if !killed.is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }

    /// The end of what it has complained about.
    pub(super) fn complaints(&self) -> String {
        const SHOWN: usize = 3000;
        let bytes = std::fs::read(&self.complaints).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN)..]).into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_killed {
            self.kill();
        }
    }
}
