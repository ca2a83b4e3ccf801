//! The log, in Redis's format: `PID:ROLE DAY MON YEAR HH:MM:SS.mmm LEVEL MESSAGE`, where the role is `C`
//! until the server runs and `M` from then on, and the level is `.` debug, `-` verbose, `*` notice or `#`
//! warning.
//!
//! ```text
//! 8610:M 21 Nov 2026 14:33:43.416 * Ready to accept connections tcp
//! ```
//!
//! With `syslog-enabled` every line goes to the system's log too.
//!
//! One lock, taken by whoever has something to say; nothing on the path of a request logs. `logfile` is
//! opened anew for each line, as Redis does, so that log rotation needs no signal. The descriptor of the last
//! line is kept: where the file cannot be opened, above all for want of descriptors, the line goes there.
use super::syslog::{self, Syslog};
use crate::state::clock::Clock;
use crate::state::config::{Config, ConfigError, LogLevel};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// How many bytes of a name that a client chooses are kept in any log; more would be memory that nobody
/// limits.
pub(crate) const NAME_BYTES_LOGGED: usize = 4096;

/// Where messages go. Any thread may write; messages below `loglevel` are dropped.
pub struct Log {
    level: AtomicU8,
    /// Whether lines carry the role `M`.
    is_running: AtomicBool,
    clock: Clock,
    /// The time zone of the machine, read once.
    zone: jiff::tz::TimeZone,
    output: Mutex<Output>,
    syslog: Option<Mutex<Syslog>>,
}

enum Output {
    Stdout,
    File(LogFile),
    Nowhere,
}

struct LogFile {
    /// Absolute.
    path: PathBuf,
    /// The file into which the last line was written.
    last: File,
}

impl LogFile {
    fn open(path: &Path) -> std::io::Result<LogFile> {
        let path = std::path::absolute(path)?;
        Ok(LogFile { last: open_file(&path)?, path })
    }

    /// Opens the file anew and appends a line; where it cannot be opened, to the file that was open before.
    fn write(&mut self, line: &[u8]) -> std::io::Result<()> {
        if let Ok(file) = open_file(&self.path) {
            self.last = file;
        }
        self.last.write_all(line)
    }
}

/// A message that is logged once a minute at most, because clients can cause it as often as they like.
#[derive(Default)]
pub(crate) struct Seldom {
    /// When the next line may come, in milliseconds of the wall clock.
    next: AtomicI64,
    /// How often it was left out since the last line.
    left_out: AtomicU64,
}

const SELDOM_MS: i64 = 60_000;

impl Seldom {
    /// If it is time for a line: how often the message was left out since the last one. It is also time when
    /// the clock was set back.
    fn due(&self, now_ms: i64) -> Option<u64> {
        let next = self.next.load(Relaxed);
        let is_due = !(1..=SELDOM_MS).contains(&next.saturating_sub(now_ms));
        // Several threads may have the message at the same time: one of them logs it.
        let is_mine =
            is_due && self.next.compare_exchange(next, now_ms + SELDOM_MS, Relaxed, Relaxed).is_ok();
        if is_mine {
            return Some(self.left_out.swap(0, Relaxed));
        }
        self.left_out.fetch_add(1, Relaxed);
        None
    }
}

impl Log {
    /// A log as `loglevel`, `logfile` and `syslog-*` say. The file is opened, so that a server that cannot
    /// log does not start.
    pub fn open(config: &Config, clock: Clock) -> Result<Log, ConfigError> {
        let output = match &config.logfile {
            None => Output::Stdout,
            Some(path) => Output::File(LogFile::open(path).map_err(|error| {
                ConfigError::fatal(&format!(
                    "Can't open the log file: {}",
                    crate::state::config::reason(&error)
                ))
            })?),
        };
        let mut log = Log::new(config.loglevel, clock, output);
        if config.syslog_enabled {
            let path = Path::new(syslog::SOCKET);
            log.syslog = Some(Mutex::new(Syslog::new(path, config.syslog_facility, &config.syslog_ident)));
        }
        Ok(log)
    }

    /// A log that keeps nothing, for servers in the process of a test.
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

    /// CONFIG SET loglevel
    pub(crate) fn set_level(&self, level: LogLevel) {
        self.level.store(level as u8, Relaxed);
    }

    /// From here on lines carry the role `M`.
    pub fn enter_service(&self) {
        self.is_running.store(true, Relaxed);
    }

    /// Writes one line of level `debug`. Like those of the other levels it takes a lock and formats: it is
    /// not for the path of a request.
    pub fn debug(&self, message: &str) {
        self.write(LogLevel::Debug, message);
    }

    /// Writes one line of level `verbose`.
    pub fn verbose(&self, message: &str) {
        self.write(LogLevel::Verbose, message);
    }

    /// The same, for what happens often: the message is made only where it is wanted.
    pub(crate) fn verbose_of(&self, message: impl FnOnce() -> String) {
        if self.wants(LogLevel::Verbose) {
            self.verbose(&message());
        }
    }

    /// Writes one line of level `notice`.
    pub fn notice(&self, message: &str) {
        self.write(LogLevel::Notice, message);
    }

    /// Writes one line of level `warning`, the highest.
    pub fn warning(&self, message: &str) {
        self.write(LogLevel::Warning, message);
    }

    /// A warning that may come again and again: once a minute at most, with how often it was left out
    /// meanwhile.
    pub(crate) fn warning_seldom(&self, seldom: &Seldom, message: &str) {
        match seldom.due(self.clock.now().0) {
            Some(0) => self.warning(message),
            Some(times) => self.warning(&format!("{message} ({times} times more since it was last said)")),
            None => {}
        }
    }

    /// Whether messages of this level are written.
    #[inline]
    pub(crate) fn wants(&self, level: LogLevel) -> bool {
        level as u8 >= self.level.load(Relaxed)
    }

    fn write(&self, level: LogLevel, message: &str) {
        self.write_bytes(level, message.as_bytes());
    }

    /// Writes one line of a text that may be no UTF-8.
    pub(crate) fn write_bytes(&self, level: LogLevel, message: &[u8]) {
        if !self.wants(level) {
            return;
        }
        let role = if self.is_running.load(Relaxed) { 'M' } else { 'C' };
        let line = line(level, role, &self.time("%d %b %Y %H:%M:%S.%3f"), message);
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // There is nowhere to report that the log cannot be written.
        let _ = match &mut *output {
            Output::Stdout => std::io::stdout().lock().write_all(&line),
            Output::File(file) => file.write(&line),
            Output::Nowhere => Ok(()),
        };
        drop(output);
        if let Some(syslog) = &self.syslog {
            let time = self.time("%b %e %H:%M:%S");
            syslog.lock().unwrap_or_else(PoisonError::into_inner).send(level, &time, message);
        }
    }

    /// Writes text as it is, whatever the level, and returns whether that was possible. For a server that
    /// crashes: it waits for no lock. Where any thread is just writing to the log, or the log goes nowhere,
    /// the text goes to standard error.
    pub(crate) fn emergency(&self, text: &str) -> bool {
        let mut output = self.output.try_lock();
        match output.as_deref_mut() {
            Ok(Output::File(file)) => file.write(text.as_bytes()).is_ok(),
            Ok(Output::Stdout) => std::io::stdout().write_all(text.as_bytes()).is_ok(),
            Ok(Output::Nowhere) | Err(_) => std::io::stderr().write_all(text.as_bytes()).is_ok(),
        }
    }

    /// The time now, in the machine's time zone; `format` is one of strftime(3).
    fn time(&self, format: &str) -> String {
        let now =
            jiff::Timestamp::from_microsecond(self.clock.now_us()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        now.to_zoned(self.zone.clone()).strftime(format).to_string()
    }
}

fn open_file(path: &Path) -> std::io::Result<File> {
    File::options().append(true).create(true).open(path)
}

fn line(level: LogLevel, role: char, time: &str, message: &[u8]) -> Vec<u8> {
    let mark = match level {
        LogLevel::Debug => '.',
        LogLevel::Verbose => '-',
        LogLevel::Notice => '*',
        LogLevel::Warning | LogLevel::Nothing => '#',
    };
    let head = format!("{}:{role} {time} {mark} ", std::process::id());
    [head.as_bytes(), message, b"\n"].concat()
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
    fn a_file_that_cannot_be_opened_any_more_is_written_to_by_the_descriptor_that_is_kept() {
        let folder = std::env::temp_dir().join(format!("sardine-log-kept-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).unwrap();
        let config = Config { logfile: Some(folder.join("in/log")), ..Config::default() };
        let log = Log::open(&config, Clock::simulated(Millis(0)).0).unwrap();
        log.notice("one");
        // As if no descriptor were free: the path leads nowhere, the file is still there.
        std::fs::hard_link(folder.join("in/log"), folder.join("same")).unwrap();
        std::fs::remove_dir_all(folder.join("in")).unwrap();
        log.notice("two");
        // Rotated: the line goes to a new file.
        std::fs::create_dir(folder.join("in")).unwrap();
        log.notice("three");
        std::fs::remove_dir_all(folder.join("in")).unwrap();
        log.notice("four");
        let text = std::fs::read_to_string(folder.join("same")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let said: Vec<&str> = text.lines().filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(said, ["one", "two"]);
    }

    #[test]
    fn what_comes_again_and_again_is_said_once_a_minute() {
        let path = std::env::temp_dir().join(format!("sardine-log-seldom-{}", std::process::id()));
        let config = Config { logfile: Some(path.clone()), ..Config::default() };
        let (clock, time) = Clock::simulated(Millis(1_795_271_623_416));
        let log = Log::open(&config, clock).unwrap();
        let seldom = Seldom::default();
        for _ in 0..200 {
            log.warning_seldom(&seldom, "no room");
            time.advance(std::time::Duration::from_secs(1));
        }
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.trim_end().ends_with("# no room (59 times more since it was last said)"), "{text}");
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
