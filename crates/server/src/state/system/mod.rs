//! What the system knows about this process: resident memory, processor time, its own name; how many files it
//! may have open (`open_files`), how readily it is ended when memory runs out (`oom_score`), the file with
//! its number (`pidfile`), the service manager that has started it (`supervisor`).
mod oom_score;
pub(crate) mod open_files;
pub(crate) mod pidfile;
pub(crate) mod supervisor;

use crate::state::config::Config;
use crate::state::log::Log;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
pub(crate) use oom_score::adjust as adjust_oom_score;
use std::sync::OnceLock;
use std::time::Duration;

/// Resident bytes of this process.
pub(crate) fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}

/// Bytes of memory in the machine, as they were when somebody asked first: the system takes long to tell.
pub(crate) fn total_bytes() -> u64 {
    static TOTAL: OnceLock<u64> = OnceLock::new();
    *TOTAL.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        field_bytes(&text, "MemTotal:").unwrap_or(0)
    })
}

/// How much memory may be taken before the machine, or the control group that this process is in, has no
/// more. None where the system does not say. It reads files.
pub(crate) fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = field_bytes(&text, "MemAvailable:");
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let group = group.map(|(max, current)| max.saturating_sub(current));
    machine.into_iter().chain(group).min()
}

/// The value of a line of /proc/meminfo.
fn field_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// "Linux 6.1.0 x86_64"
pub(crate) fn name() -> String {
    let text = |s: &std::ffi::OsStr| s.to_string_lossy().into_owned();
    nix::sys::utsname::uname().map_or_else(
        |_| "unknown".into(),
        |u| format!("{} {} {}", text(u.sysname()), text(u.release()), text(u.machine())),
    )
}

/// Processor time that this process has used, in the kernel and outside it.
pub(crate) fn processor_us() -> u64 {
    let micros = |time: TimeVal| time.num_microseconds().max(0) as u64;
    getrusage(UsageWho::RUSAGE_SELF)
        .map_or(0, |usage| micros(usage.system_time()) + micros(usage.user_time()))
}

/// Processor time that the calling thread has used. A system call.
pub(crate) fn thread_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

/// Seconds in the kernel and outside it, as INFO prints them.
pub(crate) struct CpuTime {
    pub(crate) system: String,
    pub(crate) user: String,
}

/// What this process, or its children, have used.
pub(crate) fn cpu_time(who: UsageWho) -> CpuTime {
    let usage: Option<Usage> = getrusage(who).ok();
    let text = |time: TimeVal| format!("{}.{:06}", time.tv_sec(), time.tv_usec());
    CpuTime {
        system: usage.map_or_else(String::new, |u| text(u.system_time())),
        user: usage.map_or_else(String::new, |u| text(u.user_time())),
    }
}

/// Says in the log what was probably meant otherwise, and what the system does not allow.
pub(crate) fn warn_of_limits(config: &Config, log: &Log) {
    let bytes = config.maxmemory_bytes;
    if bytes > 0 && bytes < 1 << 20 {
        log.warning(&format!(
            "WARNING: You specified a maxmemory value that is less than 1MB (current value is {bytes} bytes). Are \
             you sure this is what you really want?"
        ));
    }
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
    let most = most.and_then(|text| text.trim().parse::<u32>().ok());
    if let Some(most) = most.filter(|most| config.tcp_backlog > *most) {
        log.warning(&format!(
            "WARNING: The TCP backlog setting of {} cannot be enforced because /proc/sys/net/core/somaxconn is set \
             to the lower value of {most}.",
            config.tcp_backlog
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_lives_in_memory_and_in_time() {
        assert!(resident_bytes() > 100_000 && total_bytes() > resident_bytes());
        assert!(free_bytes().is_some_and(|free| free < total_bytes()));
        assert!(cpu_time(UsageWho::RUSAGE_SELF).user.contains('.'));
        assert!(name().starts_with("Linux "));
    }
}
