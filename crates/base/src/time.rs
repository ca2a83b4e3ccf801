//! Time as a value: nothing below the server reads a clock.

/// Milliseconds since the Unix epoch. Any `i64`: clients may name times before 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);
