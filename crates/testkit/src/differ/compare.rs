//! Whether two replies to one request agree: byte for byte, but for the order where none is promised, clocks
//! that differ by a little, and what is a choice of the server's. Beyond that only `exceptions` and
//! `versions` excuse a difference.
use super::exceptions;
use super::stream::Step;
use super::versions;
use super::vocabulary::Vocabulary;
use crate::resp_value::Value;

/// One request, and what both servers answered.
pub(super) struct Exchange<'e> {
    /// Lower case, `object|encoding`.
    pub(super) name: String,
    pub(super) request: &'e [Vec<u8>],
    pub(super) theirs: &'e Value,
    pub(super) ours: &'e Value,
    /// What was sent before it.
    pub(super) history: &'e [Step],
}

impl Exchange<'_> {
    /// The argument at `index`, in lower case.
    pub(super) fn word(&self, index: usize) -> String {
        self.request.get(index).map(|word| lower(word)).unwrap_or_default()
    }
}

/// By how much two times may differ, be they seconds or milliseconds: the two servers are asked one after the
/// other, on a machine that does other things.
const CLOCKS_APART: u64 = 5_000;
const TIMES: [&str; 9] = [
    "ttl",
    "pttl",
    "expiretime",
    "pexpiretime",
    "object|idletime",
    "httl",
    "hpttl",
    "hexpiretime",
    "hpexpiretime",
];
/// Commands that answer something chosen at random from what is there: two answers agree if both are of one
/// kind and of one length.
const CHOICES: [&str; 5] = ["randomkey", "spop", "srandmember", "zrandmember", "hrandfield"];
/// Commands whose answers each server gives in an order of its own, and whose row has no tip that says so, or
/// is not in the vocabulary: KEYS is asked after every stream, whatever groups it is drawn from.
const UNORDERED: [&str; 8] =
    ["config|get", "keys", "scan", "hscan", "sscan", "zscan", "pubsub|channels", "pubsub|shardchannels"];

pub(super) fn agree(exchange: &Exchange<'_>, vocabulary: &Vocabulary) -> bool {
    exchange.theirs == exchange.ours
        || are_near(exchange)
        || exchange.name == "xpending" && without_idle(exchange.theirs) == without_idle(exchange.ours)
        || is_choice(exchange)
        || is_unordered(exchange, vocabulary) && sorted(exchange.theirs) == sorted(exchange.ours)
        || exceptions::excuse(exchange).is_some()
        || versions::excuse(exchange, vocabulary.version).is_some()
}

fn are_near(exchange: &Exchange<'_>) -> bool {
    TIMES.contains(&&*exchange.name) && is_near(exchange.theirs, exchange.ours)
}

/// Compares two times, or the times of several fields one by one.
fn is_near(theirs: &Value, ours: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Line(b':', text) => base::text::parse_i64(text),
        _ => None,
    };
    match (theirs, ours) {
        (Value::Aggregate(_, theirs), Value::Aggregate(_, ours)) => {
            theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(theirs, ours)| is_near(theirs, ours))
        }
        _ => match (number(theirs), number(ours)) {
            (Some(theirs), Some(ours)) => theirs.abs_diff(ours) < CLOCKS_APART && (theirs < 0) == (ours < 0),
            _ => theirs == ours,
        },
    }
}

/// XPENDING's answer without the time for which each entry has been pending.
fn without_idle(value: &Value) -> Value {
    let Value::Aggregate(mark, parts) = value else { return value.clone() };
    let mut parts: Vec<Value> = parts.iter().map(without_idle).collect();
    if let [Value::Blob(..), Value::Blob(..), idle @ Value::Line(b':', _), Value::Line(b':', _)] =
        &mut parts[..]
    {
        *idle = Value::Line(b':', b"0".to_vec());
    }
    Value::Aggregate(*mark, parts)
}

fn is_choice(exchange: &Exchange<'_>) -> bool {
    let mark = |value: &Value| match value {
        Value::Line(mark, _) | Value::Blob(mark, _) | Value::Null(mark) | Value::Aggregate(mark, _) => *mark,
    };
    let len = |value: &Value| match value {
        Value::Aggregate(_, parts) => Some(parts.len()),
        _ => None,
    };
    CHOICES.contains(&&*exchange.name)
        && mark(exchange.theirs) == mark(exchange.ours)
        && len(exchange.theirs) == len(exchange.ours)
        && !matches!(exchange.theirs, Value::Null(_)) && !matches!(exchange.ours, Value::Null(_))
        // An error is not chosen at random: two errors must be the same.
        && mark(exchange.theirs) != b'-'
}

fn is_unordered(exchange: &Exchange<'_>, vocabulary: &Vocabulary) -> bool {
    let row = vocabulary.grammars.iter().find(|grammar| grammar.full_name == exchange.name);
    UNORDERED.contains(&&*exchange.name)
        || row.is_some_and(|grammar| grammar.doc.tips.contains(&"nondeterministic_output_order"))
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort();
    value
}

fn lower(word: &[u8]) -> String {
    String::from_utf8_lossy(word).to_ascii_lowercase()
}

/// The full name of a request's command: with its subcommand where the table has that.
pub(super) fn full_name(request: &[Vec<u8>], vocabulary: &Vocabulary) -> String {
    let name = request.first().map(|word| lower(word)).unwrap_or_default();
    let with_subcommand = request.get(1).map(|word| format!("{name}|{}", lower(word)));
    let is_known = |name: &String| vocabulary.grammars.iter().any(|grammar| grammar.full_name == *name);
    with_subcommand.filter(is_known).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agree_on(line: &str, theirs: &[u8], ours: &[u8]) -> bool {
        let vocabulary = Vocabulary {
            grammars: server::grammars(),
            version: (8, 0),
            readable_settings: Vec::new(),
            settings: Vec::new(),
        };
        let request: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let value = |wire: &[u8]| Value::parse(wire).unwrap().unwrap().0;
        let exchange = Exchange {
            name: full_name(&request, &vocabulary),
            request: &request,
            theirs: &value(theirs),
            ours: &value(ours),
            history: &[],
        };
        agree(&exchange, &vocabulary)
    }

    #[test]
    fn replies_agree_byte_for_byte() {
        assert!(agree_on("GET k", b"+a\r\n", b"+a\r\n"));
        assert!(!agree_on("GET k", b"+a\r\n", b"$1\r\na\r\n"));
        assert!(!agree_on("LRANGE l 0 -1", b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+b\r\n+a\r\n"));
    }

    #[test]
    fn times_agree_within_seconds_but_never_with_a_time_that_is_not_there() {
        assert!(agree_on("pttl k", b":100000\r\n", b":99000\r\n"));
        assert!(!agree_on("PTTL k", b":1\r\n", b":-1\r\n"));
        assert!(!agree_on("STRLEN k", b":1\r\n", b":2\r\n"));
    }

    #[test]
    fn the_order_of_keys_and_settings_is_nobodys_promise() {
        assert!(agree_on("KEYS *", b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+b\r\n+a\r\n"));
        assert!(agree_on(
            "config get a b",
            b"*4\r\n+a\r\n:1\r\n+b\r\n:2\r\n",
            b"*4\r\n+b\r\n:2\r\n+a\r\n:1\r\n"
        ));
        assert!(!agree_on("KEYS *", b"*1\r\n+a\r\n", b"*1\r\n+b\r\n"));
    }

    #[test]
    fn a_random_key_is_compared_by_whether_there_is_one() {
        assert!(agree_on("RANDOMKEY", b"$1\r\na\r\n", b"$1\r\nb\r\n"));
        assert!(!agree_on("RANDOMKEY", b"$1\r\na\r\n", b"$-1\r\n"));
    }
}
