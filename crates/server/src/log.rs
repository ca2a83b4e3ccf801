//! The log, in Redis's format: `PID:ROLE DAY MON YEAR HH:MM:SS.mmm LEVEL MESSAGE`, where the role is `C` until the
//! server runs and `M` from then on, and the level is `.` debug, `-` verbose, `*` notice or `#` warning.
//!
//! ```text
//! 8610:M 21 Nov 2026 14:33:43.416 * Ready to accept connections tcp
//! ```
//!
//! With `syslog-enabled` every line goes to the system's log too.
//!
//! One lock, taken by whoever has something to say; nothing on the path of a request logs. `logfile` is opened anew for
//! each line, as Redis does, so that log rotation needs no signal.
use crate::clock::Clock;
use crate::config::{Config, ConfigError, LogLevel};
use crate::process::Syslog;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Where messages go. Levels below the one set are dropped.
pub struct Log {
    level: AtomicU8,
    is_running: AtomicBool,
    clock: Clock,
    zone: jiff::tz::TimeZone,
    output: Mutex<Output>,
    syslog: Option<Mutex<Syslog>>,
}

enum Output {
    Stdout,
    File(PathBuf),
    Nowhere,
}

impl Log {
    /// As `loglevel` and `logfile` say. The file is tried, so that a server that cannot log does not start.
    pub fn open(config: &Config, clock: Clock) -> Result<Log, ConfigError> {
        let output = match &config.logfile {
            None => Output::Stdout,
            Some(path) => Output::File(tried(path).map_err(|error| {
                ConfigError::fatal(&format!("Can't open the log file: {}", crate::config::reason(&error)))
            })?),
        };
        let mut log = Log::new(config.loglevel, clock, output);
        if config.syslog_enabled {
            let path = Path::new(crate::process::SYSLOG);
            log.syslog = Some(Mutex::new(Syslog::new(path, config.syslog_facility, &config.syslog_ident)));
        }
        Ok(log)
    }

    /// One that says nothing, for servers in the process of a test.
    pub fn silent() -> Log {
        Log::new(LogLevel::Nothing, Clock::real(), Output::Nowhere)
    }

    fn new(level: LogLevel, clock: Clock, output: Output) -> Log {
        Log {
            level: AtomicU8::new(level as u8),
            is_running: AtomicBool::new(false),
            clock,
            zone: jiff::tz::TimeZone::system(),
            output: Mutex::new(output),
            syslog: None,
        }
    }

    pub(crate) fn set_level(&self, level: LogLevel) {
        self.level.store(level as u8, Relaxed);
    }

    /// From here on lines carry the role `M`.
    pub fn enter_service(&self) {
        self.is_running.store(true, Relaxed);
    }

    pub fn debug(&self, message: &str) {
        self.write(LogLevel::Debug, message);
    }

    pub fn verbose(&self, message: &str) {
        self.write(LogLevel::Verbose, message);
    }

    pub fn notice(&self, message: &str) {
        self.write(LogLevel::Notice, message);
    }

    pub fn warning(&self, message: &str) {
        self.write(LogLevel::Warning, message);
    }

    fn write(&self, level: LogLevel, message: &str) {
        if (level as u8) < self.level.load(Relaxed) {
            return;
        }
        let role = if self.is_running.load(Relaxed) { 'M' } else { 'C' };
        let line = line(level, role, &self.time("%d %b %Y %H:%M:%S.%3f"), message);
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written has nowhere to complain.
        let _ = match &*output {
            Output::Stdout => std::io::stdout().lock().write_all(line.as_bytes()),
            Output::File(path) => open_file(path).and_then(|mut file| file.write_all(line.as_bytes())),
            Output::Nowhere => Ok(()),
        };
        drop(output);
        if let Some(syslog) = &self.syslog {
            let time = self.time("%b %e %H:%M:%S");
            syslog.lock().unwrap_or_else(PoisonError::into_inner).send(level, &time, message);
        }
    }

    /// Text as it is, whatever the level; whether it was written. For a server that crashes: it waits for nobody, and
    /// a log that this thread was just writing to is passed by.
    pub(crate) fn emergency(&self, text: &str) -> bool {
        let output = self.output.try_lock();
        match output.as_deref() {
            Ok(Output::File(path)) => open_file(path).and_then(|mut f| f.write_all(text.as_bytes())).is_ok(),
            Ok(Output::Stdout) => std::io::stdout().write_all(text.as_bytes()).is_ok(),
            Ok(Output::Nowhere) | Err(_) => std::io::stderr().write_all(text.as_bytes()).is_ok(),
        }
    }

    fn time(&self, format: &str) -> String {
        let now =
            jiff::Timestamp::from_microsecond(self.clock.now_us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        now.to_zoned(self.zone.clone()).strftime(format).to_string()
    }
}

/// The file's whole name, if it can be written.
fn tried(path: &Path) -> std::io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    open_file(&path)?;
    Ok(path)
}

fn open_file(path: &std::path::Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new().append(true).create(true).open(path)
}

fn line(level: LogLevel, role: char, time: &str, message: &str) -> String {
    let mark = match level {
        LogLevel::Debug => '.',
        LogLevel::Verbose => '-',
        LogLevel::Notice => '*',
        LogLevel::Warning | LogLevel::Nothing => '#',
    };
    format!("{}:{role} {time} {mark} {message}\n", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Millis;

    #[test]
    fn the_system_log_gets_every_line_too() {
        let path = std::env::temp_dir().join(format!("sardine-log-socket-{}", std::process::id()));
        let daemon = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        let clock = Clock::simulated(Millis(1_794_234_823_416)).0;
        let mut log = Log::new(LogLevel::Notice, clock, Output::Nowhere);
        log.zone = jiff::tz::TimeZone::UTC;
        log.syslog = Some(Mutex::new(Syslog::new(&path, crate::Facility(16), b"redis")));
        log.verbose("too little");
        log.warning("one");
        let mut bytes = [0; 256];
        let len = daemon.recv(&mut bytes).unwrap();
        std::fs::remove_file(&path).unwrap();
        let pid = std::process::id();
        let line = format!("<132>Nov  9 14:33:43 redis[{pid}]: one");
        assert_eq!(String::from_utf8_lossy(&bytes[..len]), line);
    }

    #[test]
    fn lines_below_the_level_are_dropped_and_others_are_formatted_as_redis_does() {
        let path = std::env::temp_dir().join(format!("sardine-log-{}", std::process::id()));
        let config = Config { logfile: Some(path.clone()), ..Config::default() };
        let mut log = Log::open(&config, Clock::simulated(Millis(1_795_271_623_416)).0).unwrap();
        log.zone = jiff::tz::TimeZone::UTC;
        log.notice("one");
        log.verbose("two");
        log.enter_service();
        log.set_level(LogLevel::Debug);
        log.debug("three");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let pid = std::process::id();
        assert_eq!(
            text,
            format!("{pid}:C 21 Nov 2026 14:33:43.416 * one\n{pid}:M 21 Nov 2026 14:33:43.416 . three\n")
        );
    }
}
