//! Servers under measurement: started on a free port of the loopback, watched through /proc, ended when
//! dropped.

use super::client::Client;
use crate::peers::{PEERS, Peer};
use crate::shell::target_folder;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a server that starts is asked whether it answers, and so often in vain.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS_MAX: usize = 200;

/// How a server is started.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) name: String,
    /// The program and its arguments, "{port}" for the port.
    command: Vec<String>,
}

impl Spec {
    /// `NAME=COMMAND`
    pub(crate) fn named(text: &str) -> Result<Spec, String> {
        let (name, command) = text.split_once('=').ok_or("it wants NAME=COMMAND")?;
        Ok(Spec { name: name.into(), command: command.split_whitespace().map(String::from).collect() })
    }

    /// The same server with more arguments.
    pub(crate) fn with(&self, args: &str) -> Spec {
        let command = self.command.iter().cloned().chain(args.split_whitespace().map(String::from));
        Spec { name: self.name.clone(), command: command.collect() }
    }

    /// Sardine, as this program.
    pub(crate) fn sardine(program: &Path, threads: usize, more: &str) -> Result<Spec, String> {
        let text =
            format!("sardine={} --save --port {{port}} --worker-threads {threads} {more}", program.display());
        Spec::named(&text)
    }

    /// The same server as the child of another program, which watches it.
    pub(crate) fn under(&self, program: &[&str]) -> Spec {
        let command = program.iter().map(|word| word.to_string()).chain(self.command.iter().cloned());
        Spec { name: self.name.clone(), command: command.collect() }
    }

    /// redis-server, where the machine has it.
    pub(crate) fn installed_peer(threads: usize) -> Option<Spec> {
        let found = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        found.is_ok_and(|s| s.success()).then(|| Spec::peer("redis", "redis-server", threads))
    }

    /// The peers that `cargo xtask peers` has unpacked.
    pub(crate) fn unpacked_peers(threads: usize) -> Vec<Spec> {
        let spec = |peer: &Peer| {
            peer.server().map(|program| Spec::peer(peer.name, &program.display().to_string(), threads))
        };
        PEERS.iter().filter_map(spec).collect()
    }

    fn peer(name: &str, program: &str, threads: usize) -> Spec {
        let command = [program, "--port", "{port}", "--save", "", "--io-threads", &threads.to_string()];
        Spec { name: name.into(), command: command.map(String::from).to_vec() }
    }
}

/// Processor time between two readings, or of one request of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) user_us: f64,
    pub(crate) system_us: f64,
}

impl Cpu {
    pub(crate) fn per(self, requests: u64) -> Cpu {
        Cpu { user_us: self.user_us / requests as f64, system_us: self.system_us / requests as f64 }
    }
}

/// What the kernel has counted for a process so far: its time exactly, and how it divides by ticks of 10 ms.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CpuReading {
    us: f64,
    user_ticks: f64,
    system_ticks: f64,
}

impl CpuReading {
    /// All of it.
    pub(crate) fn us(self) -> f64 {
        self.us
    }

    /// With what was counted between two readings added to it.
    pub(crate) fn with(self, before: CpuReading, after: CpuReading) -> CpuReading {
        CpuReading {
            us: self.us + after.us - before.us,
            user_ticks: self.user_ticks + after.user_ticks - before.user_ticks,
            system_ticks: self.system_ticks + after.system_ticks - before.system_ticks,
        }
    }

    /// The time is exact; in what is shorter than some ticks, its division is a guess.
    pub(crate) fn since(self, before: CpuReading) -> Cpu {
        let (us, user) = (self.us - before.us, self.user_ticks - before.user_ticks);
        let ticks = user + self.system_ticks - before.system_ticks;
        let share = if ticks > 0.0 { user / ticks } else { 0.5 };
        Cpu { user_us: us * share, system_us: us * (1.0 - share) }
    }
}

/// This workspace's release build, made first.
pub(crate) fn built() -> Result<PathBuf, String> {
    let built =
        Command::new(env!("CARGO")).args(["build", "--release", "--quiet", "--package", "tools"]).status();
    if !built.is_ok_and(|s| s.success()) {
        return Err("bench: the release build failed".into());
    }
    Ok(target_folder().join("release").join("sardine"))
}

/// A running server.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) port: u16,
    process: Child,
}

impl Server {
    /// Starts it, on the processors named by `cores` (as taskset takes them) or on all, and waits until it
    /// answers, however long it loads its data.
    pub(crate) fn start(spec: &Spec, cores: Option<&str>) -> Result<Server, String> {
        let port = free_port()?;
        let mut words: Vec<String> =
            spec.command.iter().map(|w| w.replace("{port}", &port.to_string())).collect();
        if let Some(cores) = cores {
            words.splice(0..0, ["taskset", "-c", cores].map(String::from));
        }
        let process = Command::new(&words[0])
            .args(&words[1..])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("bench: cannot start {}: {e}", words[0]))?;
        let mut server = Server { name: spec.name.clone(), port, process };
        let mut looks = 0;
        while looks < LOOKS_MAX {
            if let Ok(Some(status)) = server.process.try_wait() {
                return Err(format!("bench: {} ended at once: {status}", server.name));
            }
            match Client::connect(port).map_err(|e| e.to_string()).and_then(|mut c| c.call(&[b"PING"])) {
                Ok(_) => return Ok(server),
                // It lives. That lasts as long as its data takes.
                Err(why) if why.contains("LOADING") => {}
                Err(_) => looks += 1,
            }
            std::thread::sleep(LOOK);
        }
        Err(format!("bench: {} does not answer", server.name))
    }

    pub(crate) fn client(&self) -> Result<Client, String> {
        Client::connect(self.port).map_err(|e| format!("bench: cannot reach {}: {e}", self.name))
    }

    /// Resident bytes.
    pub(crate) fn rss_bytes(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", self.process.id())).unwrap_or_default();
        text.split(' ').nth(1).and_then(|p| p.parse::<u64>().ok()).unwrap_or(0) * 4096
    }

    /// Whether it has forked a process that has not been waited for.
    pub(crate) fn has_children(&self) -> bool {
        let id = self.process.id();
        std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"))
            .is_ok_and(|ids| !ids.trim().is_empty())
    }

    /// Its processor time so far.
    pub(crate) fn cpu(&self) -> CpuReading {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let (user_ticks, system_ticks) = ticks(&stat);
        CpuReading { us: self.cpu_us(), user_ticks, system_ticks }
    }

    /// Gives the server's first worker (or, of a peer, its main thread) a processor to itself: its other
    /// threads and this process go to the others. The worker's thread.
    pub(crate) fn isolate_worker(&self, core: &str) -> Result<u32, String> {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let cores = stat.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1);
        let others = format!("1-{}", cores.saturating_sub(1));
        let worker = self.threads().into_iter().find(|(_, name)| name.starts_with("sardine-0"));
        let worker = worker.map_or(self.process.id(), |(thread, _)| thread);
        pin(&others, "-acp", self.process.id())?;
        pin_this(&others)?;
        pin(core, "-cp", worker).map(|()| worker)
    }

    /// Number and name of each.
    fn threads(&self) -> Vec<(u32, String)> {
        let folder = format!("/proc/{}/task", self.process.id());
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.map(|id| (id, std::fs::read_to_string(format!("{folder}/{id}/comm")).unwrap_or_default()))
            .collect()
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) -> Result<(), String> {
        self.process.wait().map(drop).map_err(|e| format!("bench: {}: {e}", self.name))
    }

    /// Processor time of all its threads, those that have ended included, and of the processes that it has
    /// forked and waited for; in microseconds, of which it counts 10,000 at a time.
    pub(crate) fn whole_cpu_us(&self) -> f64 {
        const TICK_US: f64 = 10_000.0;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        // The 14th to the 17th field, of which two stand before the parenthesis.
        let ticks = fields.split_whitespace().skip(11).take(4);
        ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * TICK_US
    }

    /// Processor time of all its threads, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id()));
        let stat = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).ok();
        let first = |text: String| text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
        tasks.map_or(0.0, |all| all.flatten().filter_map(stat).filter_map(first).sum::<f64>() / 1e3)
    }
}

/// Keeps this process to these processors.
pub(crate) fn pin_this(cores: &str) -> Result<(), String> {
    pin(cores, "-acp", std::process::id())
}

fn pin(cores: &str, what: &str, id: u32) -> Result<(), String> {
    let status = Command::new("taskset").args([what, cores, &id.to_string()]).stdout(Stdio::null()).status();
    status.is_ok_and(|s| s.success()).then_some(()).ok_or("bench: taskset failed".to_string())
}

/// The 14th and 15th field of `/proc/PID/stat`. The name before them may hold anything, but ends with the
/// last parenthesis.
fn ticks(stat: &str) -> (f64, f64) {
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let number =
        |index: usize| fields.split_whitespace().nth(index).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    (number(11), number(12))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It holds nothing that is worth a graceful end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn free_port() -> Result<u16, String> {
    let probe = TcpListener::bind("127.0.0.1:0").map_err(|e| format!("bench: no free port: {e}"))?;
    Ok(probe.local_addr().map_err(|e| e.to_string())?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_between_readings_is_divided_as_the_ticks_between_them_are() {
        let before = CpuReading { us: 1_000.0, user_ticks: 90.0, system_ticks: 10.0 };
        let after = CpuReading { us: 5_000.0, user_ticks: 91.0, system_ticks: 13.0 };
        assert_eq!(after.since(before), Cpu { user_us: 1_000.0, system_us: 3_000.0 });
        assert_eq!(before.since(before), Cpu::default());
    }

    #[test]
    fn processor_time_is_read_behind_a_name_with_parentheses() {
        let stat = "7 (a) (b) S 1 7 7 0 -1 4194560 100 0 0 0 321 45 0 0 20 0 5 0 100 1 1";
        assert_eq!(ticks(stat), (321.0, 45.0));
        assert_eq!(ticks(""), (0.0, 0.0));
    }
}
