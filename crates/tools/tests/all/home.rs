//! A server as a process, in a folder of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

/// A folder of a test's own, gone when the test ends, and the server in it.
pub(crate) struct Home {
    pub(crate) path: PathBuf,
    /// The user as whom the server runs, if it is not that of the tests.
    pub(crate) user: Option<u32>,
    child: Option<Child>,
}

impl Home {
    pub(crate) fn new(name: &str) -> Home {
        let path = std::env::temp_dir().join(format!("sardine-snap-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Home { path, user: None, child: None }
    }

    pub(crate) fn launch(&mut self, options: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
        command.env_remove("NOTIFY_SOCKET").env_remove("UPSTART_JOB").current_dir(&self.path);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.args(["--port", "0", "--worker-threads", "3", "--unixsocket", "s", "--logfile", "log"]);
        self.child = Some(command.args(["--enable-debug-command", "local"]).args(options).spawn().unwrap());
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn start(&mut self, options: &[&str]) {
        self.launch(options);
        self.wait_for("answer", |home| {
            (home.ask("GET nothing\r\nQUIT\r\n")? == "$-1\r\n+OK\r\n").then_some(())
        });
    }

    /// Sends lines and reads until the server closes; None if nobody is there.
    pub(crate) fn ask(&self, lines: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.path.join("s")).ok()?;
        stream.write_all(lines.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }

    /// The answers to these lines.
    pub(crate) fn told(&self, lines: &str) -> String {
        self.ask(&format!("{lines}\r\nQUIT\r\n")).unwrap()
    }

    /// Asks again until `done`, for a minute at most.
    pub(crate) fn wait_for<T>(&self, what: &str, done: impl Fn(&Home) -> Option<T>) -> T {
        for _ in 0..6000 {
            if let Some(value) = done(self) {
                return value;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(10));
        }
        panic!("no {what}: {}", self.log());
    }

    /// Waits until INFO has this line.
    pub(crate) fn wait_for_info(&self, line: &str) {
        self.wait_for(line, |home| home.ask("INFO persistence\r\nQUIT\r\n")?.contains(line).then_some(()));
    }

    /// What a number of INFO is.
    pub(crate) fn number(&self, name: &str) -> u64 {
        let told = self.told("INFO");
        let line = told.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':')).unwrap();
        line.parse().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path.join("log")).unwrap_or_default()
    }

    /// The number of the process.
    pub(crate) fn child_id(&self) -> String {
        self.child.as_ref().unwrap().id().to_string()
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child_id();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    /// Waits for the end of the server: its exit status.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.child.take().unwrap().wait().unwrap().code()
    }

    pub(crate) fn dump(&self) -> PathBuf {
        self.path.join("dump.rdb")
    }

    /// New files that did not take the place of the dump file, or of a part of the append-only file.
    pub(crate) fn left_over(&self) -> usize {
        let folders = [self.path.clone(), self.path.join("appendonlydir")];
        let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("temp-")).count()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
