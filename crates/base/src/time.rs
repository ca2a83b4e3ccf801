//! Time as a value: nothing below the server reads a clock.

/// Milliseconds since the Unix epoch. Any `i64`: clients may name times before 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

impl Millis {
    /// The latest time, which no clock reaches.
    pub const NEVER: Millis = Millis(i64::MAX);

    /// `seconds` since the epoch; `None` beyond the range.
    pub fn from_secs(seconds: i64) -> Option<Millis> {
        seconds.checked_mul(1000).map(Millis)
    }

    /// The time `millis` later (or earlier, if negative); `None` beyond the range.
    pub fn checked_add(self, millis: i64) -> Option<Millis> {
        self.0.checked_add(millis).map(Millis)
    }

    /// Milliseconds from `earlier` to this, negative if this is the earlier one.
    pub fn since(self, earlier: Millis) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole seconds since the epoch, rounded down.
    pub fn as_secs(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// Whole seconds since the epoch, to the nearest: how TTL and EXPIRETIME round.
    pub fn to_secs_nearest(self) -> i64 {
        self.0.div_euclid(1000) + i64::from(self.0.rem_euclid(1000) >= 500)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_range_are_refused_not_wrapped() {
        assert_eq!(Millis::from_secs(i64::MAX), None);
        assert_eq!(Millis::from_secs(-5), Some(Millis(-5000)));
        assert_eq!(Millis(i64::MAX).checked_add(1), None);
        assert_eq!(Millis(10).checked_add(-20), Some(Millis(-10)));
        assert_eq!(Millis(i64::MIN).since(Millis(1)), i64::MIN);
    }

    #[test]
    fn seconds_round_down_or_to_the_nearest() {
        assert_eq!(Millis(1_999).as_secs(), 1);
        assert_eq!(Millis(-1).as_secs(), -1);
        assert_eq!(Millis(1_499).to_secs_nearest(), 1);
        assert_eq!(Millis(1_500).to_secs_nearest(), 2);
        assert_eq!(Millis(-1_500).to_secs_nearest(), -1);
        assert_eq!(Millis(i64::MAX).to_secs_nearest(), 9_223_372_036_854_776);
    }
}
