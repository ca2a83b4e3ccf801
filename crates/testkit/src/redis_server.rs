//! A real redis-server, if there is one on this machine, or another program that takes its arguments: started
//! on a Unix socket of its own, so that no port can be taken by somebody else, keeping nothing, and killed
//! when it is dropped.
use crate::resp_client::{Address, RespClient};
use crate::scratch::Scratch;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Where `cargo xtask peers` puts it.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/redis-8.0.2/redis-server");
/// How many times it is sent PING until it answers, 20 ms apart.
const PATIENCE: usize = 1000;

pub struct RedisServer {
    child: Child,
    folder: Scratch,
}

impl RedisServer {
    /// The one that Debian installs, which is what a fresh machine has.
    pub fn installed() -> io::Result<Option<RedisServer>> {
        RedisServer::start_program(&["redis-server"])
    }

    /// That one with these arguments.
    pub fn unpacked_with(arguments: &[&str]) -> io::Result<Option<RedisServer>> {
        RedisServer::start_program(&[&[UNPACKED], arguments].concat())
    }

    /// The one that `cargo xtask peers` has unpacked: the version that is the specification.
    pub fn unpacked() -> io::Result<Option<RedisServer>> {
        RedisServer::start_program(&[UNPACKED])
    }

    /// Another build of it, or Sardine: a program and arguments that come before its own. None where there is
    /// no such program.
    pub fn start_program(words: &[&str]) -> io::Result<Option<RedisServer>> {
        let [program, arguments @ ..] = words else { return Ok(None) };
        let folder = Scratch::new("redis-server")?;
        let started = Command::new(program)
            .args(arguments)
            .args(["--port", "0", "--save", "", "--enable-debug-command", "local"])
            .arg("--dir")
            .arg(folder.path())
            .arg("--unixsocket")
            .arg(folder.path().join("socket"))
            .stdout(Stdio::null())
            .spawn();
        let child = match started {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            started => started?,
        };
        let mut server = RedisServer { child, folder };
        server.wait_until_ready()?;
        Ok(Some(server))
    }

    /// Where its clients connect.
    pub fn address(&self) -> Address {
        Address::Unix(self.folder.path().join("socket"))
    }

    /// Where its files are.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        for _ in 0..PATIENCE {
            let answer = RespClient::connect(&self.address()).and_then(|mut client| client.call(&["PING"]));
            if answer.is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("it ended at once: {status}")));
            }
            sleep(Duration::from_millis(20));
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this program is on this machine: it succeeds when it is asked for its version.
pub fn is_installed(program: &str, version: &str) -> bool {
    let asked = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// Says that a test is left out because `what` is missing, which `cargo xtask setup` installs. Panics on a
/// machine that checks changes, where it is missing by mistake.
#[allow(clippy::disallowed_macros, reason = "a test that checks nothing says so")]
pub fn skip_without(what: &str) {
    assert!(
        std::env::var_os("CI").is_none_or(|value| value.is_empty()),
        "{what} is missing: run cargo xtask setup"
    );
    eprintln!("SKIPPED: {what} is missing: run cargo xtask setup");
}
