//! The values of the settings on how the process meets its surroundings; `state/system`, `state/syslog.rs`
//! and `service/supervisor.rs` do what they say.

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
