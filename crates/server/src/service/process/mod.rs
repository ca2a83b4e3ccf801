//! The process as its surroundings see it: the service manager, the file with its number, syslog's daemon, the kernel's
//! out-of-memory killer. All of them are told by writing to files and sockets; nothing here needs a library.
mod oom_score;
mod pidfile;
mod supervisor;
mod syslog;

pub(crate) use oom_score::adjust as adjust_oom_score;
pub use pidfile::PidFile;
pub use supervisor::Supervisor;
pub(crate) use syslog::{SOCKET as SYSLOG, Syslog};

/// `supervised`: who waits for the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    Upstart,
    Systemd,
    /// Whichever of them the environment speaks of.
    Auto,
    No,
}

/// `syslog-facility`: the number that the protocol has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facility(pub u8);

/// `oom-score-adj`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomScore {
    /// Left as it is.
    No,
    /// The value is added to what the process was started with.
    Relative,
    /// The value is the score.
    Absolute,
}
