//! Commands that no stream contains, each with its reason: what answers with a time, a size or a choice of
//! its own, what ends connections or the server, what waits. Everything else in the tables is drawn as soon
//! as it is there.
use command::Flags;
use server::Grammar;

/// Full names, or a container with `|*` for all its subcommands.
pub(super) const EXCLUDED: &[(&str, &str)] = &[
    ("acl|genpass", "draws at random"),
    ("acl|cat", "lists all commands, of which Sardine has fewer"),
    ("migrate", "speaks to other servers, wherever they are; transcripts and sessions hold it"),
    ("dump", "its bytes are of another version; the transcripts hold what comes of them"),
    ("function|dump", "its bytes are of another version; the transcripts hold what comes of them"),
    ("quit", "closes the connection, and every later request with it"),
    ("client|reply", "whoever is not answered cannot be compared"),
    ("client|pause", "stops the stream for as long as it says"),
    ("client|kill", "connections have other numbers and addresses on every server"),
    ("client|id", "numbers of connections are nobody's promise"),
    ("client|info", "tells addresses, ages and buffers"),
    ("client|list", "tells addresses, ages and buffers"),
    ("client|no-evict", "nothing shows it; the transcripts hold its errors"),
    ("client|tracking", "invalidations arrive when the server likes; talks of several connections draw it"),
    ("client|caching", "belongs to CLIENT TRACKING"),
    ("client|trackinginfo", "belongs to CLIENT TRACKING"),
    ("client|getredir", "belongs to CLIENT TRACKING"),
    ("command", "lists all commands, of which Sardine has fewer"),
    ("command|count", "counts all commands, of which Sardine has fewer"),
    ("command|docs", "its texts are Sardine's own; rows are held against recorded facts"),
    ("command|info", "rows are held against recorded facts, of one version"),
    ("command|list", "lists all commands, of which Sardine has fewer"),
    ("config|set", "is written by hand, with settings that are safe to change"),
    ("config|rewrite", "writes a file"),
    ("config|resetstat", "nothing shows it"),
    ("subscribe", "its client gets messages when the server likes; `events` listens"),
    ("unsubscribe", "belongs to SUBSCRIBE"),
    ("psubscribe", "as SUBSCRIBE"),
    ("punsubscribe", "as SUBSCRIBE"),
    ("ssubscribe", "as SUBSCRIBE"),
    ("sunsubscribe", "as SUBSCRIBE"),
    ("debug", "looks inside, sleeps, or ends the server"),
    ("info", "tells sizes, times and counts"),
    ("latency|*", "tells times"),
    ("slowlog|*", "tells times"),
    ("commandlog|*", "tells times"),
    ("lolwut", "draws at random, and tells the version"),
    ("memory|doctor", "gives advice by what the process measures"),
    ("memory|layout", "is Sardine's own"),
    ("memory|malloc-stats", "tells of the allocator"),
    ("memory|stats", "tells sizes"),
    ("memory|purge", "nothing shows it"),
    ("pfselftest", "takes Redis seconds"),
    ("shutdown", "ends the server"),
    ("time", "tells the time"),
    ("script|debug", "Sardine has no debugger"),
    ("save", "is refused while another is written, which takes its time"),
    ("bgsave", "is refused while another is written, which takes its time"),
    ("lastsave", "tells the time"),
    ("xinfo|consumers", "tells times"),
];

/// Flagged as blocking, but drawn with arguments that do not wait.
const NEVER_WAITS: [&str; 4] = ["wait", "waitaof", "xread", "xreadgroup"];
/// Flagged as administration, but as safe as a read.
const SAFE_ADMINISTRATION: [&str; 2] = ["config|get", "module|list"];

/// Why streams leave this command out; None where they draw it.
pub(super) fn reason(grammar: &Grammar) -> Option<&'static str> {
    let name = grammar.full_name.as_str();
    if name.ends_with("|help") {
        return Some("HELP texts are Sardine's own words");
    }
    if let Some((_, reason)) = EXCLUDED.iter().find(|(excluded, _)| is_named(excluded, name)) {
        return Some(reason);
    }
    if grammar.flags.has(Flags::BLOCKING) && !NEVER_WAITS.contains(&name) {
        return Some("would wait");
    }
    if grammar.flags.has(Flags::ADMIN) && !SAFE_ADMINISTRATION.contains(&name) && !grammar.is_data {
        return Some("administers the server, which streams share");
    }
    None
}

/// Requests that no stream contains though their command is drawn.
pub(super) fn forbid(request: &[Vec<u8>]) -> bool {
    lists_settings(request)
        || waits(request)
        || is_near(request)
        || leaves_some_by_chance(request)
        || follows_the_clock(request)
}

/// Ids that each server makes from its own time, and what XINFO STREAM tells of consumers.
fn follows_the_clock(request: &[Vec<u8>]) -> bool {
    let has = |name: &str| (1..request.len()).any(|index| is(request, index, name));
    is(request, 0, "xadd") && has("*") || is(request, 0, "xinfo") && has("full")
}

/// A pattern in CONFIG GET lists settings of all subjects, of which the two servers have different ones.
fn lists_settings(request: &[Vec<u8>]) -> bool {
    let is_pattern = |word: &Vec<u8>| word.iter().any(|byte| b"*?[".contains(byte));
    is(request, 0, "config") && is(request, 1, "get") && request.iter().any(is_pattern)
}

/// WAIT and WAITAOF for a replica would last until their timeout, since there is none, and so would a read
/// that blocks.
fn waits(request: &[Vec<u8>]) -> bool {
    let is_positive = |index: usize| {
        request.get(index).and_then(|word| base::text::parse_i64(word)).is_some_and(|number| number > 0)
    };
    let blocks = (1..request.len()).any(|index| is(request, index, "block"));
    is(request, 0, "wait") && is_positive(1)
        || is(request, 0, "waitaof") && is_positive(2)
        || (is(request, 0, "xread") || is(request, 0, "xreadgroup")) && blocks
}

/// SPOP draws at random: unless it takes all members of a set, each server keeps others.
fn leaves_some_by_chance(request: &[Vec<u8>]) -> bool {
    is(request, 0, "spop") && (request.len() < 3 || is_within(request, 2, 1_000_000))
}

/// Deadlines so near that the two clocks could disagree on what is gone, or on which of two is the later.
fn is_near(request: &[Vec<u8>]) -> bool {
    let is_lifetime = |at: usize| {
        let is_any = |names: [&str; 2]| names.iter().any(|name| is(request, at, name));
        is_any(["ex", "px"]) && is_within(request, at + 1, NEAR)
            || is_any(["exat", "pxat"]) && is_within(request, at + 1, AHEAD)
    };
    let has_third = ["expire", "pexpire", "setex", "psetex", "hexpire", "hpexpire"]
        .iter()
        .any(|name| is(request, 0, name));
    has_third && is_within(request, 2, NEAR) || (1..request.len()).any(is_lifetime)
}

fn is(request: &[Vec<u8>], index: usize, name: &str) -> bool {
    request.get(index).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
}

/// Whether the argument is a number from 1 to before `end`.
fn is_within(request: &[Vec<u8>], index: usize, end: i64) -> bool {
    let number = request.get(index).and_then(|word| base::text::parse_i64(word));
    number.is_some_and(|number| (1..end).contains(&number))
}

/// A time to live below this, in seconds or milliseconds, is not sent; those that streams draw on purpose are
/// longer.
const NEAR: i64 = 100_000;
/// Unix times before this, in seconds or milliseconds, may have passed: Redis keeps what SET gave such a
/// deadline until it comes across it.
const AHEAD: i64 = 33_000_000_000;

fn is_named(excluded: &str, name: &str) -> bool {
    match excluded.strip_suffix("|*") {
        Some(container) => name.split('|').next() == Some(container),
        None => excluded == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_stands_for_all_its_subcommands() {
        assert!(is_named("latency|*", "latency|histogram"));
        assert!(!is_named("memory|stats", "memory|usage"));
    }

    #[test]
    fn near_deadlines_patterns_of_settings_and_what_would_wait_are_not_sent() {
        let forbids = |line: &str| {
            forbid(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<Vec<u8>>>())
        };
        for line in [
            "WAIT 1 0",
            "WAIT 9223372036854775807 0",
            "WAITAOF 0 2 5",
            "PSETEX k 3 v",
            "set k v px 10",
            "EXPIRE k 1 GT",
            "config get *",
            "SPOP t:1",
            "spop t:1 3",
            "SET k v EXAT 2",
        ] {
            assert!(forbids(line), "{line}");
        }
        for line in [
            "SETEX k 200000 v",
            "SET k 3",
            "EXPIRE k -1",
            "EXPIREAT k 5",
            "CONFIG GET hz",
            "KEYS *",
            "SPOP t 4294967296",
        ] {
            assert!(!forbids(line), "{line}");
        }
    }

    #[test]
    fn data_commands_are_drawn_and_dangerous_ones_are_not() {
        let drawn: Vec<String> = server::grammars()
            .into_iter()
            .filter(|grammar| reason(grammar).is_none())
            .map(|grammar| grammar.full_name)
            .collect();
        for name in ["set", "lpush", "expire", "scan", "object|encoding", "client|setname", "config|get"] {
            assert!(drawn.iter().any(|drawn| drawn == name), "{name}");
        }
        for name in ["shutdown", "debug", "object|help", "client|reply"] {
            assert!(!drawn.iter().any(|drawn| drawn == name), "{name}");
        }
    }
}
