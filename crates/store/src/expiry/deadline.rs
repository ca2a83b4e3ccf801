//! Deadlines of keys and of fields of hashes.
use base::Millis;

/// The time at which a key or field that exists expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Never,
    At(Millis),
}

impl Deadline {
    /// Whether it has passed. One at this time has.
    pub fn is_past(self, now: Millis) -> bool {
        matches!(self, Deadline::At(at) if at <= now)
    }
}
