//! The server that is killed: a process with a folder, a socket in it, and as many lives as it takes.
use super::{Keep, Options};
use crate::resp_client::{Address, RespClient};
use crate::scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A start may take so many moments.
const MOMENT: Duration = Duration::from_millis(1);
const MOMENTS: usize = 60_000;
const SOCKET: &str = "s";
/// A longer log begins anew.
const LOG_BYTES_MAX: u64 = 4 << 20;

pub(super) struct Server {
    folder: Scratch,
    command: Vec<String>,
    child: Option<Child>,
}

impl Server {
    pub(super) fn new(options: &Options) -> Result<Server, String> {
        let folder = Scratch::new("kills").map_err(|error| format!("a folder for the server: {error}"))?;
        let mut command = options.server.clone();
        let mut add = |words: &[&str]| command.extend(words.iter().map(ToString::to_string));
        add(&["--port", "0", "--unixsocket", SOCKET, "--logfile", "log", "--enable-debug-command", "local"]);
        add(&["--worker-threads", &options.workers.to_string(), "--databases", "16", "--save", ""]);
        match options.keep {
            Keep::Dump => {}
            Keep::Always => add(&["--appendonly", "yes", "--appendfsync", "always"]),
            Keep::EverySecond => add(&["--appendonly", "yes", "--appendfsync", "everysec"]),
        }
        // The file begins anew all the time.
        add(&["--auto-aof-rewrite-min-size", "30000", "--auto-aof-rewrite-percentage", "60"]);
        Ok(Server { folder, command, child: None })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn address(&self) -> Address {
        Address::Unix(self.path().join(SOCKET))
    }

    pub(super) fn connect(&self) -> std::io::Result<RespClient> {
        RespClient::connect(&self.address())
    }

    /// Begins a life, and does not wait until it answers.
    pub(super) fn launch(&mut self) -> Result<(), String> {
        let log = self.path().join("log");
        if fs::metadata(&log).is_ok_and(|about| about.len() > LOG_BYTES_MAX) {
            let _ = fs::remove_file(&log);
        }
        let program = fs::canonicalize(&self.command[0]).unwrap_or_else(|_| PathBuf::from(&self.command[0]));
        let mut command = Command::new(program);
        command.args(&self.command[1..]).current_dir(self.path());
        command.env_remove("NOTIFY_SOCKET").env_remove("UPSTART_JOB");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().map_err(|error| format!("{}: {error}", self.command[0]))?);
        Ok(())
    }

    /// Waits until it has loaded its files, and connects to it.
    pub(super) fn wait_until_ready(&mut self) -> Result<RespClient, String> {
        for _ in 0..MOMENTS {
            if let Ok(mut client) = self.connect()
                && client.call(&["PING"]).is_ok_and(|reply| reply.text() == Some(b"PONG"))
            {
                return Ok(client);
            }
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = ended {
                return Err(format!("the server ended: {status}\n{}", self.log()));
            }
            sleep(MOMENT);
        }
        Err(format!("the server does not answer\n{}", self.log()))
    }

    /// SIGKILL. False if it had ended by itself.
    pub(super) fn kill(&mut self) -> bool {
        let Some(mut child) = self.child.take() else { return false };
        let was_alive = child.try_wait().is_ok_and(|status| status.is_none());
        let _ = child.kill();
        let _ = child.wait();
        was_alive
    }

    /// The end of its log.
    pub(super) fn log(&self) -> String {
        const SHOWN: usize = 4000;
        let bytes = fs::read(self.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN)..]).into_owned()
    }

    /// How often the append-only file has begun anew, by the number of its base.
    pub(super) fn rewrites(&self) -> u64 {
        let text = fs::read(self.path().join("appendonlydir/appendonly.aof.manifest")).unwrap_or_default();
        let manifest = disk::aof::manifest::Manifest::parse(&text).ok();
        manifest.and_then(|manifest| manifest.base).map_or(0, |base| base.number)
    }

    /// Moves what it has written out of the way of its end, for whoever looks into a failure.
    pub(super) fn keep_files(self) -> PathBuf {
        self.folder.keep()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
