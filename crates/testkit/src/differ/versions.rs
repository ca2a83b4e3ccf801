//! What Redis itself has changed between the older versions that a machine may have and 8.0.2, which is the
//! specification. Sardine does as 8.0.2 does, so it differs from an older peer in these points.
use super::compare::Exchange;
use super::counters;
use super::exceptions::Kind::{self, Replies, Requests};
use super::exceptions::{is_command, is_error};
use crate::resp_value::Value;
use crate::transcript::Version;
use base::double::parse_f64;

/// An older Redis writes 17 digits behind the point, whatever comes before them.
const LAST_DIGIT: f64 = 1e-17;

/// Whether two replies differ only in how numbers are written.
fn are_same_numbers(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Aggregate(a, theirs), Value::Aggregate(b, ours)) => {
            let all = || theirs.iter().zip(ours).all(|(theirs, ours)| are_same_numbers(theirs, ours));
            a == b && theirs.len() == ours.len() && all()
        }
        _ if theirs == ours => true,
        _ => {
            let number = |value: &Value| value.text().and_then(parse_f64);
            let both = number(theirs).zip(number(ours));
            both.is_some_and(|(theirs, ours)| theirs == ours || (theirs - ours).abs() <= LAST_DIGIT)
        }
    }
}

struct Change {
    /// The first version that does as Sardine does.
    since: Version,
    what: &'static str,
    kind: Kind,
}

const CHANGES: &[Change] = &[
    Change {
        since: (8, 0),
        what: "requests that end in an error count no lookup, and some others count theirs",
        kind: Replies(|exchange| {
            let of_lookups = |name: &&str| name.starts_with("keyspace_");
            let differing = counters::differing(exchange.theirs, exchange.ours);
            exchange.name == "info" && !differing.is_empty() && differing.iter().all(of_lookups)
        }),
    },
    Change {
        since: (7, 2),
        what: "BITCOUNT and BITPOS look at their arguments before the key",
        kind: Replies(|exchange| matches!(&*exchange.name, "bitcount" | "bitpos") && is_error(exchange.ours)),
    },
    Change {
        since: (7, 2),
        what: "a list of one node is a listpack",
        kind: Replies(|exchange| {
            exchange.name == "object|encoding"
                && exchange.theirs.text() == Some(b"quicklist")
                && exchange.ours.text() == Some(b"listpack")
        }),
    },
    Change {
        since: (7, 2),
        what: "a small set of texts is a listpack",
        kind: Replies(|exchange| {
            exchange.name == "object|encoding"
                && exchange.theirs.text() == Some(b"hashtable")
                && exchange.ours.text() == Some(b"listpack")
        }),
    },
    Change {
        since: (7, 2),
        what: "counts that have no absolute value are refused",
        kind: Requests(|request| {
            let is_concerned = [&b"lrem"[..], b"lpos"].iter().any(|name| is_command(request, name));
            is_concerned && request.iter().any(|word| word == b"-9223372036854775808")
        }),
    },
    Change {
        since: (8, 0),
        what: "an empty or negative cursor of SCAN is an error, and NOVALUES has one of its own",
        kind: Replies(|exchange| {
            let is_scan = matches!(&*exchange.name, "scan" | "hscan" | "sscan" | "zscan");
            let cursor = exchange.word(if exchange.name == "scan" { 1 } else { 2 });
            let has_novalues = exchange.request.iter().any(|word| word.eq_ignore_ascii_case(b"novalues"));
            let is_odd = cursor.is_empty() || cursor.starts_with('-') || has_novalues;
            is_scan && is_odd && is_error(exchange.ours)
        }),
    },
    Change {
        since: (8, 0),
        what: "SORT takes a number beyond the range of doubles for infinity",
        kind: Replies(|exchange| {
            let is_sort = exchange.name == "sort" || exchange.name == "sort_ro";
            is_sort && is_error(exchange.theirs) && !is_error(exchange.ours)
        }),
    },
    Change {
        since: (8, 0),
        what: "the same where SORT stores",
        kind: Requests(|request| {
            let stores = request.iter().any(|word| word.eq_ignore_ascii_case(b"store"));
            is_command(request, b"sort") && stores
        }),
    },
    Change {
        since: (8, 0),
        what: "scores are shown with the fewest digits that read back the same",
        kind: Replies(|exchange| {
            exchange.name.starts_with('z') && are_same_numbers(exchange.theirs, exchange.ours)
        }),
    },
    Change {
        since: (8, 0),
        what: "a negative offset of a range counts from its end in a skiplist",
        kind: Requests(|request| {
            let is_range = request.first().is_some_and(|name| name.to_ascii_lowercase().starts_with(b"z"));
            let mut pairs = request.windows(2);
            is_range && pairs.any(|two| two[0].eq_ignore_ascii_case(b"limit") && two[1].starts_with(b"-"))
        }),
    },
    Change {
        since: (7, 2),
        what: "ZRANK and ZREVRANK take WITHSCORE",
        kind: Replies(|exchange| {
            matches!(&*exchange.name, "zrank" | "zrevrank")
                && exchange.request.len() == 4
                && is_error(exchange.theirs)
        }),
    },
    Change {
        since: (7, 2),
        what: "a sorted set is a skiplist from the command on that names too many members, whatever becomes of them",
        kind: Replies(|exchange| {
            exchange.name == "object|encoding"
                && exchange.theirs.text() == Some(b"listpack")
                && exchange.ours.text() == Some(b"skiplist")
        }),
    },
    Change {
        since: (8, 0),
        what: "HSCAN takes NOVALUES",
        kind: Replies(|exchange| {
            let has_novalues = exchange.request.iter().any(|word| word.eq_ignore_ascii_case(b"novalues"));
            exchange.name == "hscan" && has_novalues && is_error(exchange.theirs)
        }),
    },
    Change {
        since: (8, 0),
        what: "places are shown with the fewest digits that read back the same",
        kind: Replies(|exchange| {
            exchange.name.starts_with("geo") && are_same_numbers(exchange.theirs, exchange.ours)
        }),
    },
    Change {
        since: (7, 2),
        what: "XCLAIM and XAUTOCLAIM make the consumer also where there is nothing to claim",
        kind: Requests(|request| {
            [&b"xclaim"[..], b"xautoclaim"].iter().any(|name| is_command(request, name))
        }),
    },
    Change {
        since: (7, 2),
        what: "WAIT refuses a timeout that no clock reaches",
        kind: Replies(|exchange| exchange.name == "wait" && is_error(exchange.ours)),
    },
    Change {
        since: (7, 2),
        what: "SINTERSTORE only overwrites its destination",
        kind: Replies(|exchange| {
            exchange.name == "command|getkeysandflags"
                && !is_error(exchange.theirs)
                && !is_error(exchange.ours)
        }),
    },
    Change {
        since: (8, 0),
        what: "XREAD and XREADGROUP name themselves in their errors, and XREAD takes + for the last entry",
        kind: Replies(|exchange| {
            matches!(&*exchange.name, "xread" | "xreadgroup")
                && is_error(exchange.theirs)
                && (is_error(exchange.ours) || exchange.request.iter().any(|word| word == b"+"))
        }),
    },
    Change {
        since: (7, 2),
        what: "COMMAND GETKEYS looks for the command before it counts its arguments",
        kind: Replies(|exchange| {
            exchange.name.starts_with("command|getkeys")
                && is_error(exchange.theirs)
                && is_error(exchange.ours)
        }),
    },
];

/// The change that explains a difference from this peer.
pub(super) fn excuse(exchange: &Exchange<'_>, peer: Version) -> Option<&'static str> {
    changes_after(peer).find(|change| change.kind.excuses(exchange)).map(|change| change.what)
}

/// Whether this peer would be left with other data.
pub(super) fn forbid(request: &[Vec<u8>], peer: Version) -> bool {
    changes_after(peer).any(|change| change.kind.forbids(request))
}

fn changes_after(peer: Version) -> impl Iterator<Item = &'static Change> {
    CHANGES.iter().filter(move |change| peer < change.since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_for_peers_before_it_only() {
        let request = ["LREM", "l", "-9223372036854775808", "a"].map(|word| word.as_bytes().to_vec());
        assert!(forbid(&request, (7, 0)));
        assert!(!forbid(&request, (8, 0)));
    }
}
