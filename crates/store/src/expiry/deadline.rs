//! When a key, or a field of a hash, goes.
use base::Millis;

/// When a key that exists goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    Never,
    At(Millis),
}

impl Deadline {
    pub(crate) fn is_past(self, now: Millis) -> bool {
        matches!(self, Deadline::At(at) if at <= now)
    }
}
