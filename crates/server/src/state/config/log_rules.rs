//! What the logs of slow and large calls keep: the settings `slowlog-*` and `commandlog-*`.

/// What one of the logs keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRule {
    /// Microseconds or bytes from which on a call is kept; -1 keeps none.
    pub from: i64,
    /// How many entries; 0 adds none.
    pub entries_max: i64,
}

/// `slowlog-*` and `commandlog-*`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRules {
    pub slow: LogRule,
    pub large_request: LogRule,
    pub large_reply: LogRule,
}

impl Default for LogRules {
    fn default() -> LogRules {
        let large = LogRule { from: 1 << 20, entries_max: 128 };
        LogRules {
            slow: LogRule { from: 10_000, entries_max: 128 },
            large_request: large,
            large_reply: large,
        }
    }
}

impl LogRule {
    /// The figure from which on a call is kept; None where the log is off.
    pub(crate) fn bound(self) -> Option<u64> {
        u64::try_from(self.from).ok().filter(|_| self.entries_max > 0)
    }

    /// Whether a call of this figure, microseconds or bytes, is kept.
    pub(crate) fn keeps(self, figure: u64) -> bool {
        self.bound().is_some_and(|from| figure >= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_is_off_or_keeps_no_entries_bounds_nothing() {
        for (from, entries_max, figure, keeps) in
            [(10, 1, 10, true), (10, 1, 9, false), (0, 1, 0, true), (-1, 1, 99, false), (10, 0, 99, false)]
        {
            assert_eq!(LogRule { from, entries_max }.keeps(figure), keeps, "{from} {entries_max} {figure}");
        }
    }
}
