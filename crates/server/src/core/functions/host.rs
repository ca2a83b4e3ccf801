//! What a library may ask for while its code runs: the log, and whether it may go on.
use crate::core::error;
use crate::core::server::Server;
use crate::state::config::LogLevel as Logged;
use crate::state::system::thread_time;
use net::{Meter, Tick};
use resp::{Args, Reply};
use script::{AclCheck, Host, LogLevel, Stop};
use std::time::Duration;

/// As long may the code of a library run that a client loads.
const LOAD_NS_MAX: u64 = 500_000_000;
/// As much is logged of a message.
const LOGGED_BYTES_MAX: usize = 64 << 10;

/// For how long the code of a library may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// As a client's. Everybody waits meanwhile.
    Client,
    /// It comes from a file, and was within the limit when it was loaded first: the server may be slower now.
    Nothing,
}

/// See the file's opener.
pub(super) struct LoadHost<'h> {
    server: &'h Server,
    meter: Meter,
    began: Tick,
    ticks_max: Option<u64>,
    /// What the thread had used of the processor when it began.
    used_before: Duration,
    /// What it logs was logged when it was loaded first.
    is_silent: bool,
}

impl<'h> LoadHost<'h> {
    pub(super) fn new(server: &'h Server, limit: Limit) -> LoadHost<'h> {
        let meter = Meter::new();
        let ticks_max = (limit == Limit::Client).then(|| meter.ticks(LOAD_NS_MAX));
        LoadHost {
            server,
            meter,
            began: meter.read(),
            ticks_max,
            used_before: thread_time(),
            is_silent: false,
        }
    }

    /// For how long the code has had the processor.
    pub(super) fn used(&self) -> Duration {
        thread_time().saturating_sub(self.used_before)
    }

    /// For a library that was loaded before.
    pub(super) fn again(server: &'h Server) -> LoadHost<'h> {
        LoadHost { is_silent: true, ..LoadHost::new(server, Limit::Nothing) }
    }
}

impl Host for LoadHost<'_> {
    fn command(&mut self, _: Args<'_>, reply: &mut Reply) -> Result<(), Stop> {
        reply.error(error::NOT_IN_SCRIPTS);
        Ok(())
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        !self.is_silent && wants_log_of_script(self.server, level)
    }

    fn log(&mut self, level: LogLevel, message: &[u8]) {
        if !self.is_silent {
            log_for_script(self.server, level, message);
        }
    }

    fn acl_check(&mut self, _: Args<'_>) -> AclCheck {
        AclCheck::Denied
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        if self.server.is_stopping() {
            return Err(Stop(error::SCRIPT_KILLED.into()));
        }
        let ticks = self.meter.read().since(self.began);
        match self.ticks_max.is_some_and(|ticks_max| ticks >= ticks_max) {
            true => Err(Stop(error::LIBRARY_TAKES_TOO_LONG.into())),
            false => Ok(()),
        }
    }
}

/// `redis.log`: as much of a message goes to the log, at most up to the first NUL.
pub(crate) fn logged_part(message: &[u8]) -> &[u8] {
    let part = &message[..message.len().min(LOGGED_BYTES_MAX)];
    part.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Writes a message of a script.
pub(crate) fn log_for_script(server: &Server, level: LogLevel, message: &[u8]) {
    server.log.write_bytes(level_of_log(level), logged_part(message));
}

/// Whether messages of this level are written at all.
pub(crate) fn wants_log_of_script(server: &Server, level: LogLevel) -> bool {
    server.log.wants(level_of_log(level))
}

fn level_of_log(level: LogLevel) -> Logged {
    match level {
        LogLevel::Debug => Logged::Debug,
        LogLevel::Verbose => Logged::Verbose,
        LogLevel::Notice => Logged::Notice,
        LogLevel::Warning => Logged::Warning,
    }
}
