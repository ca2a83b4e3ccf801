//! The server that a queue uses: any program that takes the arguments of redis-server. It can be killed and
//! comes back to its address with what its append-only file has.
use crate::resp_client::{Address, RespClient};
use crate::scratch::Scratch;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(20);
/// How many moments a start may take, loading included.
const PATIENCE: usize = 15_000;
/// The first port that is tried; those of clients begin at 32768 where nobody has changed it.
const PORT: u16 = 6400;

pub struct Server {
    words: Vec<String>,
    is_append_only: bool,
    address: SocketAddr,
    host: String,
    folder: Scratch,
    child: Child,
    /// Of its lives before this one.
    cpu_us: f64,
}

impl Server {
    /// Starts it on an address that nobody uses.
    pub fn start(words: &[String], is_append_only: bool) -> Result<Server, String> {
        let host = own_address();
        let port = (PORT..PORT + 1000).find(|port| TcpListener::bind((host, *port)).is_ok());
        let address = SocketAddr::from((host, port.ok_or("no port is free on a loopback address")?));
        let folder = Scratch::new("queue-server").map_err(|e| format!("a folder for the server: {e}"))?;
        let (words, host) = (words.to_vec(), host.to_string());
        let child = launch(&words, address, is_append_only, &folder)?;
        let mut server = Server { words, is_append_only, address, host, folder, child, cpu_us: 0.0 };
        server.wait_until_ready().map(|()| server)
    }

    /// Where it listens.
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.address.port())
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        for _ in 0..PATIENCE {
            let answer = self.ask(&["PING"]);
            if answer.is_ok_and(|answer| answer == "PONG") {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("the server ended: {status}\n{}", self.log()));
            }
            sleep(MOMENT);
        }
        Err(format!("the server does not answer\n{}", self.log()))
    }

    pub(super) fn connect(&self) -> std::io::Result<RespClient> {
        RespClient::connect(&Address::Tcp(self.address))
    }

    /// One request on a connection of its own: the text of the reply.
    pub(super) fn ask(&self, words: &[&str]) -> Result<String, String> {
        let reply = self.connect().and_then(|mut client| client.call(words));
        let reply = reply.map_err(|error| format!("{}: {error}", words.join(" ")))?;
        Ok(String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned())
    }

    /// Waits until the disk has all that was acknowledged so far, as the server says.
    pub(super) fn wait_for_disk(&self) -> Result<(), String> {
        let ask = || -> std::io::Result<String> {
            let mut client = self.connect()?;
            client.call(&["INCR", "harness:fence"])?;
            for _ in 0..PATIENCE {
                let told = client.call(&["WAITAOF", "1", "0", "1000"])?;
                match told.lines().join(" ") {
                    lines if lines.contains(":1") => return Ok(lines),
                    lines if lines.starts_with('-') => return Err(std::io::Error::other(lines)),
                    _ => {}
                }
            }
            Err(std::io::ErrorKind::TimedOut.into())
        };
        ask().map(drop).map_err(|error| format!("WAITAOF: {error}"))
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        self.cpu_us = self.cpu_us();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// A new life on the same address, with what is in the folder.
    pub(super) fn launch_again(&mut self) -> Result<(), String> {
        self.child = launch(&self.words, self.address, self.is_append_only, &self.folder)?;
        self.wait_until_ready()
    }

    /// Fails where it has ended.
    pub fn check(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(format!("the server ended: {status}\n{}", self.log())),
            _ => Ok(()),
        }
    }

    /// Processor time of the threads that it has, over all its lives.
    pub(super) fn cpu_us(&self) -> f64 {
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id()));
        let text = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("schedstat")).ok();
        let ns = |text: String| text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
        self.cpu_us
            + threads.map_or(0.0, |all| all.flatten().filter_map(text).filter_map(ns).sum::<f64>() / 1e3)
    }

    /// The end of its log.
    pub(super) fn log(&self) -> String {
        const SHOWN: usize = 3000;
        let bytes = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(SHOWN)..]).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address of this process and of nobody else's: 127.64.0.0/10 holds four million of them.
fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let [_, high, middle, low] = (std::process::id().wrapping_add(number << 15)).to_be_bytes();
    Ipv4Addr::new(127, 64 | high & 63, middle, low.clamp(1, 254))
}

fn launch(
    words: &[String],
    address: SocketAddr,
    is_append_only: bool,
    folder: &Scratch,
) -> Result<Child, String> {
    let [program, arguments @ ..] = words else { return Err("no server is named".to_owned()) };
    let log = File::options().create(true).append(true).open(folder.path().join("log"));
    let log =
        log.and_then(|log| Ok((log.try_clone()?, log))).map_err(|e| format!("the server's log: {e}"))?;
    let mut command = Command::new(program);
    command.args(arguments).args(["--save", "", "--protected-mode", "no"]);
    command.args(["--bind", &address.ip().to_string(), "--port", &address.port().to_string()]);
    command.arg("--dir").arg(folder.path());
    if is_append_only {
        command.args(["--appendonly", "yes", "--appendfsync", "everysec"]);
    }
    command.stdin(Stdio::null()).stdout(log.0).stderr(log.1);
    command.spawn().map_err(|error| format!("{program}: {error}"))
}
