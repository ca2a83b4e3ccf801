//! The server that is soaked, as a process: started with a file of its own, looked at, ended by SIGTERM.
use super::Options;
use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use crate::scratch::Scratch;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// What every server of the soak is told. Data that may not be evicted stays far below the ceiling.
const SETTINGS: &str = "\
bind 127.0.0.1
save \"\"
shards 64
maxmemory 200mb
maxmemory-policy volatile-lru
activedefrag yes
active-defrag-ignore-bytes 1mb
active-defrag-threshold-lower 1
enable-debug-command local
client-output-buffer-limit normal 32mb 8mb 5
client-query-buffer-limit 64mb
maxclients 500
";

/// What is owed to a listener who does not read, in a crowd.
const CROWD_SETTINGS: &str = "client-output-buffer-limit pubsub 1mb 256kb 2\n";

/// What INFO tells of clients: with nobody there all of it is 0.
const TABLES: [&str; 14] = [
    "blocked_clients",
    "clients_in_timeout_table",
    "total_blocking_keys",
    "total_blocking_keys_on_nokey",
    "watching_clients",
    "total_watched_keys",
    "pubsub_clients",
    "pubsub_channels",
    "pubsub_patterns",
    "pubsubshard_channels",
    "tracking_clients",
    "tracking_total_keys",
    "tracking_total_items",
    "tracking_total_prefixes",
];

/// Address space, in KB: a server that allocates without end is stopped before the machine is out of memory.
const ADDRESSES_KB_MAX: &str = "25165824";
const MOMENT: Duration = Duration::from_millis(20);
const MOMENTS: usize = 1000;

pub(super) struct Process {
    child: Child,
    folder: Scratch,
    port: u16,
}

/// What a look at it shows.
#[derive(Clone, Copy, Default)]
pub(super) struct Health {
    pub(super) rss_bytes: u64,
    pub(super) used_bytes: u64,
    pub(super) descriptors: u64,
    pub(super) clients: u64,
    /// As [`TABLES`] names them.
    tables: [u64; TABLES.len()],
}

impl Health {
    pub(super) fn max(self, other: Health) -> Health {
        Health {
            rss_bytes: self.rss_bytes.max(other.rss_bytes),
            used_bytes: self.used_bytes.max(other.used_bytes),
            descriptors: self.descriptors.max(other.descriptors),
            clients: self.clients.max(other.clients),
            tables: std::array::from_fn(|at| self.tables[at].max(other.tables[at])),
        }
    }

    /// The tables in which nothing was seen.
    pub(super) fn unused(&self) -> impl Iterator<Item = &'static str> {
        TABLES.into_iter().zip(self.tables).filter(|(_, count)| *count == 0).map(|(name, _)| name)
    }

    /// What is still there of those who have left.
    pub(super) fn tables_beyond(self, before: Health) -> impl Iterator<Item = String> {
        let both = self.tables.into_iter().zip(before.tables);
        TABLES
            .into_iter()
            .zip(both)
            .filter(|(_, (after, before))| after > before)
            .map(|(name, (after, before))| format!("{name} afterwards: {after}, and not {before}"))
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let (rss, used) = (mb(self.rss_bytes), mb(self.used_bytes));
        write!(f, "{rss:.1} MB resident, {used:.1} MB used, ")?;
        write!(f, "{} descriptors, {} clients", self.descriptors, self.clients)?;
        let mut used = TABLES.iter().zip(self.tables).filter(|(_, count)| *count > 0);
        used.try_for_each(|(name, count)| write!(f, ", {name} {count}"))
    }
}

impl Process {
    pub(super) fn start(options: &Options) -> io::Result<Process> {
        let Options { sardine: program, workers, seed, crowd, .. } = options;
        let folder = Scratch::new("soak")?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let file = folder.path().join("soak.conf");
        let socket = folder.path().join("socket");
        let own = format!("port {port}\nworker-threads {workers}\nunixsocket {}\n", socket.display());
        let crowd = match crowd {
            0 => String::new(),
            crowd => format!("{CROWD_SETTINGS}maxclients {}\n", 500 + 3 * crowd),
        };
        fs::write(&file, format!("{SETTINGS}{crowd}{own}"))?;
        let log = File::create(folder.path().join("log"))?;
        let child = Command::new("sh")
            .args(["-c", &format!("ulimit -v {ADDRESSES_KB_MAX}; exec \"$@\""), "soak"])
            .args(program)
            .arg(&file)
            .current_dir(folder.path())
            .env("SARDINE_RESTLESS", seed.to_string())
            .stdout(log.try_clone()?)
            .stderr(log)
            .stdin(Stdio::null())
            .spawn()?;
        let mut process = Process { child, folder, port };
        process.wait_until_ready()?;
        Ok(process)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        for _ in 0..MOMENTS {
            if RespClient::connect(&self.address()).and_then(|mut client| client.call(&["PING"])).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                return Err(io::Error::other(format!("it ended at once: {status}\n{}", self.log())));
            }
            sleep(MOMENT);
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// The Unix socket, for all but hostile clients, which take the port.
    pub(super) fn address(&self) -> Address {
        Address::Unix(self.folder.path().join("socket"))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn health(&self) -> io::Result<Health> {
        let id = self.child.id();
        let status = fs::read_to_string(format!("/proc/{id}/status"))?;
        let rss_kb = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next());
        let descriptors = fs::read_dir(format!("/proc/{id}/fd"))?.count() as u64;
        let mut client = RespClient::connect(&self.address())?;
        let told = client.call(&["INFO", "memory", "clients", "stats"])?;
        let told = String::from_utf8_lossy(told.text().unwrap_or_default()).into_owned();
        let field = |name: &str| {
            let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Ok(Health {
            rss_bytes: rss_kb.and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) << 10,
            used_bytes: field("used_memory"),
            descriptors,
            // Without the connection that asks.
            clients: field("connected_clients").saturating_sub(1),
            tables: TABLES.map(field),
        })
    }

    /// What restless mode says that it has done.
    pub(super) fn unrest(&self) -> io::Result<String> {
        let told = RespClient::connect(&self.address())?.call(&["DEBUG", "RESTLESS"])?;
        let Value::Aggregate(_, deeds) = told else { return Ok(told.lines().join(" ")) };
        let word = |value: &Value| String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
        Ok(deeds.iter().map(word).collect::<Vec<_>>().join(" "))
    }

    /// SIGTERM, as a service manager sends it.
    pub(super) fn terminate(&mut self, patience: Duration) -> Result<(), String> {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        told.map_err(|error| format!("kill: {error}"))?;
        for _ in 0..patience.as_millis() / MOMENT.as_millis() {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("the server ended with {status}")),
                Ok(None) => sleep(MOMENT),
                Err(error) => return Err(format!("the server cannot be waited for: {error}")),
            }
        }
        Err("SIGTERM does not end the server".to_owned())
    }

    fn log(&self) -> String {
        let bytes = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The end of the log.
    pub(super) fn last_lines(&self) -> String {
        const LINES: usize = 30;
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        format!("the log ends with\n{}", lines[lines.len().saturating_sub(LINES)..].join("\n"))
    }

    /// What the log says of a crash, and a little before it.
    pub(super) fn crash_report(&self) -> Option<String> {
        const LINES_MAX: usize = 120;
        let log = self.log();
        let is_report = |line: &&str| line.contains("BUG REPORT START") || line.contains("panicked at");
        let lines: Vec<&str> = log.lines().skip_while(|line| !is_report(line)).take(LINES_MAX).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
