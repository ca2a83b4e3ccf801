//! The differences that are wanted. docs/differences.md is the list; each row here names its line there and
//! says which exchanges it explains, as narrowly as it can, or which requests are not sent at all. A test
//! looks the lines up.
use super::compare::Exchange;
use super::counters;
use super::stream::Step;
use crate::resp_value::Value;
use base::text::parse_i64;

struct Exception {
    /// Text of the line in docs/differences.md.
    line: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Replies that may differ like this.
    Replies(fn(&Exchange<'_>) -> bool),
    /// Replies that may differ, after which the servers hold different data: the rest of the stream is not
    /// compared.
    Ends(fn(&Exchange<'_>) -> bool),
    /// Requests that would leave different data behind: they are not sent.
    Requests(fn(&[Vec<u8>]) -> bool),
}

impl Kind {
    pub(super) fn excuses(self, exchange: &Exchange<'_>) -> bool {
        matches!(self, Replies(covers) | Ends(covers) if covers(exchange))
    }

    pub(super) fn forbids(self, request: &[Vec<u8>]) -> bool {
        matches!(self, Requests(covers) if covers(request))
    }
}
use Kind::{Ends, Replies, Requests};

const EXCEPTIONS: &[Exception] = &[
    Exception {
        line: "ZSCAN answers a set of up to 128 members whole",
        kind: Replies(|exchange| exchange.name == "zscan" && is_part_of_walk(exchange, 2)),
    },
    Exception {
        line: "ZRANGEBYLEX and its kin go through a set of up to 1,024 members one by one",
        // Ranges of members mean something only where all scores are equal, which a stream cannot know.
        // Transcripts test them.
        kind: Requests(|request| {
            let writes = is_command(request, b"zremrangebylex")
                || is_command(request, b"zrangestore") && has_word(request, b"bylex");
            writes && has_lex_bound(request)
        }),
    },
    Exception {
        line: "ZRANGEBYLEX and its kin go through a set of up to 1,024 members one by one",
        kind: Replies(|exchange| {
            let is_read = matches!(&*exchange.name, "zlexcount" | "zrangebylex" | "zrevrangebylex")
                || exchange.name == "zrange" && has_word(exchange.request, b"bylex");
            is_read && has_lex_bound(exchange.request)
        }),
    },
    Exception {
        line: "SORT ALPHA compares bytes",
        // The peer's C library ends a text at a NUL.
        kind: Replies(|exchange| {
            let holds_nul = |value: &Value| match value {
                Value::Aggregate(_, parts) => {
                    parts.iter().any(|part| part.text().is_some_and(|text| text.contains(&0)))
                }
                _ => false,
            };
            is_sort(exchange.request)
                && has_word(exchange.request, b"alpha")
                && (holds_nul(exchange.theirs) || holds_nul(exchange.ours))
        }),
    },
    Exception {
        line: "SORT BY ... ALPHA leaves elements of the same weight in their order",
        kind: Requests(|request| {
            is_sort(request) && [&b"by"[..], b"alpha", b"limit"].iter().all(|word| has_word(request, word))
        }),
    },
    Exception {
        line: "SCAN with TYPE counts no lookups",
        kind: Replies(|exchange| {
            let is_scan = |step: &Step| step.name() == "scan";
            exchange.name == "info"
                && exchange.history.iter().any(is_scan)
                && counters::agree_without(exchange.theirs, exchange.ours, "keyspace_hits")
        }),
    },
    Exception {
        line: "BITFIELD with OVERFLOW SAT saturates -2^63",
        kind: Requests(|request| {
            let has = |text: &[u8]| request.iter().any(|word| word.eq_ignore_ascii_case(text));
            is_command(request, b"bitfield") && has(b"sat") && has(b"set") && has(b"-9223372036854775808")
        }),
    },
    Exception {
        line: "OBJECT REFCOUNT of a small integer is 2147483647 whatever made it",
        kind: Replies(|exchange| {
            exchange.name == "object|refcount"
                && exchange.theirs.text() == Some(b"1")
                && exchange.ours.text() == Some(b"2147483647")
        }),
    },
    Exception {
        line: "COMMAND GETKEYS reads a count of keys as the command itself does",
        kind: Replies(|exchange| {
            // Scripts need no keys, so without a count they have none.
            let has_none = is_error(exchange.ours) || exchange.ours.lines() == ["*0"];
            exchange.name.starts_with("command|getkeys") && has_none && !is_error(exchange.theirs)
        }),
    },
    Exception {
        line: "SORT of a sorted set leaves its OBJECT ENCODING",
        kind: Replies(|exchange| {
            let is_renamed = exchange.name == "object|encoding"
                && exchange.theirs.text() == Some(b"skiplist")
                && exchange.ours.text() == Some(b"listpack");
            (is_renamed || exchange.name == "zscan")
                && exchange.history.iter().any(|step| is_sort(&step.request))
        }),
    },
    Exception {
        line: "COMMAND GETKEYS of GEORADIUS with several destinations",
        kind: Replies(|exchange| {
            exchange.name.starts_with("command|getkeys")
                && (has_word(exchange.request, b"georadius")
                    || has_word(exchange.request, b"georadiusbymember"))
        }),
    },
    Exception {
        line: "A failed AUTH, or HELLO with AUTH, is answered wherever it stands in a pipeline",
        kind: Requests(|request| {
            let names_another =
                |pair: &[Vec<u8>]| pair[0].eq_ignore_ascii_case(b"auth") && pair[1] != b"default";
            let is_either = is_command(request, b"hello") || is_command(request, b"auth");
            is_either && request.windows(2).any(names_another)
        }),
    },
    Exception {
        line: "LSET with an index beyond 32 bits is out of range",
        kind: Requests(|request| {
            let index = request.get(2).and_then(|word| parse_i64(word));
            is_command(request, b"lset") && index.is_some_and(|index| i32::try_from(index).is_err())
        }),
    },
    Exception {
        line: "OBJECT IDLETIME of a small integer is that of its key",
        kind: Replies(|exchange| {
            // No stream of requests lasts for that many seconds.
            let is_days = |value: &Value| matches!(value, Value::Line(b':', text) if text.len() > 5);
            exchange.name == "object|idletime" && is_days(exchange.theirs) && is_number(exchange.ours)
        }),
    },
    Exception {
        line: "OBJECT ENCODING of a list that was cut says `listpack`",
        kind: Replies(|exchange| {
            exchange.name == "object|encoding"
                && exchange.theirs.text() == Some(b"quicklist")
                && exchange.ours.text() == Some(b"listpack")
                && exchange.history.iter().any(|step| CUTS.contains(&&*step.name()))
        }),
    },
    Exception {
        line: "MEMORY USAGE answers Sardine's own bytes",
        kind: Replies(|exchange| {
            exchange.name == "memory|usage" && is_number(exchange.theirs) && is_number(exchange.ours)
        }),
    },
    Exception {
        line: "SCAN's cursors are positions in hash order",
        kind: Replies(|exchange| exchange.name == "scan" && is_part_of_walk(exchange, 1)),
    },
    Exception {
        line: "HSCAN's cursors are places in hash order",
        kind: Replies(|exchange| exchange.name == "hscan" && is_part_of_walk(exchange, 2)),
    },
    Exception {
        line: "SSCAN's cursors are places in hash order",
        kind: Replies(|exchange| exchange.name == "sscan" && is_part_of_walk(exchange, 2)),
    },
    Exception {
        line: "A set is answered in an order of Sardine's own",
        // Elements that compare equal, or are not compared, stay in the order in which SORT reads the set.
        kind: Replies(|exchange| {
            let len = |value: &Value| match value {
                Value::Aggregate(_, parts) => Some(parts.len()),
                _ => None,
            };
            is_sort(exchange.request)
                && has_word(exchange.request, b"by")
                && exchange.history.iter().any(|step| SET_MAKERS.contains(&&*step.name()))
                && len(exchange.theirs).is_some_and(|theirs| len(exchange.ours) == Some(theirs))
        }),
    },
    Exception {
        line: "A set is answered in an order of Sardine's own",
        kind: Requests(|request| {
            is_sort(request) && [&b"by"[..], b"alpha", b"store"].iter().all(|word| has_word(request, word))
        }),
    },
    Exception {
        line: "SORT of a sorted set keeps what compares equal in the order of the set",
        kind: Replies(|exchange| {
            let is_of_scores = |step: &Step| step.name().starts_with('z') || step.name().starts_with("geo");
            is_sort(exchange.request)
                && has_word(exchange.request, b"by")
                && exchange.history.iter().any(is_of_scores)
                && is_same_in_any_order(exchange)
        }),
    },
    Exception {
        line: "Places at the same distance come in the order of their cells",
        kind: Replies(|exchange| {
            exchange.name.starts_with("geo")
                && has_word(exchange.request, b"count")
                && is_same_in_any_order(exchange)
        }),
    },
    Exception {
        line: "A HyperLogLog whose runs pass its last register",
        kind: Ends(|exchange| {
            let is_refused = exchange.ours.text().is_some_and(|text| text.starts_with(b"INVALIDOBJ"));
            exchange.name.starts_with("pf") && is_refused && !is_error(exchange.theirs)
        }),
    },
    Exception {
        line: "HELLO, INFO and MODULE LIST name no modules",
        kind: Replies(|exchange| {
            let is_same = || without_identity(exchange.theirs) == without_identity(exchange.ours);
            let is_none = || matches!(exchange.ours, Value::Aggregate(_, parts) if parts.is_empty());
            exchange.name == "hello" && is_same() || exchange.name == "module|list" && is_none()
        }),
    },
];

/// Two arrays of the same elements.
fn is_same_in_any_order(exchange: &Exchange<'_>) -> bool {
    let (Value::Aggregate(_, theirs), Value::Aggregate(_, ours)) = (exchange.theirs, exchange.ours) else {
        return false;
    };
    let count = |values: &[Value], one: &Value| values.iter().filter(|value| *value == one).count();
    theirs.len() == ours.len() && theirs.iter().all(|one| count(theirs, one) == count(ours, one))
}

/// The commands that can make a list shorter.
const CUTS: [&str; 15] = [
    "lpop",
    "rpop",
    "lmpop",
    "blpop",
    "brpop",
    "blmpop",
    "lmove",
    "blmove",
    "rpoplpush",
    "brpoplpush",
    "lrem",
    "ltrim",
    "lset",
    "sort",
    "linsert",
];

/// The commands that can make a set.
const SET_MAKERS: [&str; 5] = ["sadd", "smove", "sinterstore", "sunionstore", "sdiffstore"];

/// The line of the document that explains a difference.
pub(super) fn excuse(exchange: &Exchange<'_>) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|exception| exception.kind.excuses(exchange)).map(|exception| exception.line)
}

/// Whether the servers hold different data from here on, for a wanted reason, so that comparing further would
/// tell nothing.
pub(super) fn ends(exchange: &Exchange<'_>) -> bool {
    let is_last = |exception: &Exception| matches!(exception.kind, Ends(covers) if covers(exchange));
    EXCEPTIONS.iter().any(is_last)
}

/// Whether a request is not to be sent.
pub(super) fn forbid(request: &[Vec<u8>]) -> bool {
    EXCEPTIONS.iter().any(|exception| exception.kind.forbids(request))
}

pub(super) fn is_command(request: &[Vec<u8>], name: &[u8]) -> bool {
    request.first().is_some_and(|word| word.eq_ignore_ascii_case(name))
}

/// Whether a range has an end that is a member.
fn has_lex_bound(request: &[Vec<u8>]) -> bool {
    request.iter().skip(2).any(|word| matches!(word.first(), Some(b'[' | b'(')))
}

fn is_sort(request: &[Vec<u8>]) -> bool {
    is_command(request, b"sort") || is_command(request, b"sort_ro")
}

fn has_word(request: &[Vec<u8>], word: &[u8]) -> bool {
    request.iter().any(|other| other.eq_ignore_ascii_case(word))
}

/// Whether a cursor, which stands at `index`, or either answer says that there is more than this call.
fn is_part_of_walk(exchange: &Exchange<'_>, index: usize) -> bool {
    let next = |value: &Value| match value {
        Value::Aggregate(_, parts) => parts.first().and_then(|cursor| cursor.text().map(<[u8]>::to_vec)),
        _ => None,
    };
    let (Some(theirs), Some(ours)) = (next(exchange.theirs), next(exchange.ours)) else { return false };
    exchange.word(index) != "0" || theirs != b"0" || ours != b"0"
}

fn is_number(value: &Value) -> bool {
    matches!(value, Value::Line(b':', _))
}

pub(super) fn is_error(value: &Value) -> bool {
    matches!(value, Value::Line(b'-', _))
}

/// HELLO's answer but for the version, the connection's number, and the modules.
fn without_identity(value: &Value) -> Option<Vec<&[Value]>> {
    let Value::Aggregate(_, parts) = value else { return None };
    let is_identity = |name: &Value| {
        [&b"version"[..], b"id", b"modules"].iter().any(|identity| name.text() == Some(identity))
    };
    Some(parts.chunks(2).filter(|pair| !is_identity(&pair[0])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_exception_is_a_line_of_the_document() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differences.md");
        let document = std::fs::read_to_string(path).unwrap();
        for exception in EXCEPTIONS {
            let count = document.lines().filter(|line| line.contains(exception.line)).count();
            assert_eq!(count, 1, "docs/differences.md does not say: {}", exception.line);
        }
    }

    #[test]
    fn a_sketch_that_is_refused_ends_what_is_compared() {
        let error = |text: &str| Value::Line(b'-', text.into());
        let one = Value::Line(b':', b"1".to_vec());
        let (refused, other) = (error("INVALIDOBJ Corrupted HLL object detected"), error("ERR other"));
        let exchange =
            |theirs, ours| Exchange { name: "pfadd".into(), request: &[], theirs, ours, history: &[] };
        assert!(ends(&exchange(&one, &refused)) && excuse(&exchange(&one, &refused)).is_some());
        assert!(!ends(&exchange(&one, &other)));
        assert!(!ends(&exchange(&refused, &refused)));
    }
}
