//! What the servers count while a stream runs: changes (what persistence and replication go by), lookups that
//! found a key and that found none. After a stream both must have counted the same.
use super::stream::Step;
use crate::resp_value::Value;
use base::text::parse_i64;

/// The request that asks for the counters. No stream contains INFO, so no other request is taken for it.
const QUESTION: [&str; 3] = ["INFO", "persistence", "stats"];
const NAMES: [&str; 3] = ["rdb_changes_since_last_save", "keyspace_hits", "keyspace_misses"];

/// The values of the counters, in the order of `NAMES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters([i64; NAMES.len()]);

impl Counters {
    /// From INFO's answer; what it does not tell is 0.
    pub(super) fn of(info: &Value) -> Counters {
        let text = String::from_utf8_lossy(info.text().unwrap_or_default()).into_owned();
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| parse_i64(value.as_bytes())).unwrap_or(0)
        };
        Counters(NAMES.map(value))
    }

    /// What was counted since, to be compared and shown.
    fn since(&self, base: &Counters) -> Value {
        let count = |(at, name): (usize, &&str)| {
            let text = format!("{name} {}", self.0[at] - base.0[at]);
            Value::Line(b'+', text.into_bytes())
        };
        Value::Aggregate(b'*', NAMES.iter().enumerate().map(count).collect())
    }
}

pub(super) fn question() -> Step {
    Step { connection: 0, request: QUESTION.map(|word| word.as_bytes().to_vec()).to_vec() }
}

/// The answer to the question as it is compared; any other answer as it is.
pub(super) fn counted(step: &Step, answer: Value, base: &Counters) -> Value {
    // Inside a transaction the question is queued.
    let is_told = step.request == question().request && !matches!(answer, Value::Line(..));
    if is_told { Counters::of(&answer).since(base) } else { answer }
}

/// Whether two such answers agree but for one counter.
pub(super) fn agree_without(theirs: &Value, ours: &Value, name: &str) -> bool {
    differing(theirs, ours).iter().all(|differing| *differing == name)
}

/// The counters in which two such answers differ.
pub(super) fn differing(theirs: &Value, ours: &Value) -> Vec<&'static str> {
    let (Value::Aggregate(_, theirs), Value::Aggregate(_, ours)) = (theirs, ours) else { return Vec::new() };
    let pairs = NAMES.into_iter().zip(theirs.iter().zip(ours));
    pairs.filter(|(_, (theirs, ours))| theirs != ours).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_compared_by_what_they_rose() {
        let info = |changes: u64| {
            let text = format!("# Stats\r\nkeyspace_hits:7\r\nrdb_changes_since_last_save:{changes}\r\n");
            Value::Blob(b'$', text.into_bytes())
        };
        let base = Counters::of(&info(10));
        let Value::Aggregate(_, counts) = counted(&question(), info(13), &base) else { panic!("a list") };
        assert_eq!(counts[0].text(), Some(&b"rdb_changes_since_last_save 3"[..]));
        assert_eq!(counts[1].text(), Some(&b"keyspace_hits 0"[..]));
    }
}
