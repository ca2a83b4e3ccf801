//! The values of the settings about the process and the system around it; `state/system`, `state/syslog.rs`
//! and `service/supervisor.rs` put them into effect.

/// `supervised`: which service manager is told that the server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervised {
    Upstart,
    Systemd,
    /// The one that the environment names.
    Auto,
    No,
}

/// `syslog-facility`, as its number in the protocol of syslog.
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
