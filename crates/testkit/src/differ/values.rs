//! What arguments are drawn from: few keys, so that requests meet, and values at which commands decide.
//!
//! Times lie far apart and far ahead, or behind: two clocks that differ by a little order them alike. Offsets
//! stay small or are out of range, so that no request asks for a string of half a gigabyte.
use command::Group;

/// Keys by the type that most of their writes make, so that commands of a family mostly find a value of their
/// type.
pub(super) const STRING_KEYS: [&str; 5] = ["s:1", "s:2", "s:3", "{tag}s", ""];
pub(super) const LIST_KEYS: [&str; 4] = ["l:1", "l:2", "l:3", "{tag}l"];
pub(super) const HASH_KEYS: [&str; 3] = ["h:1", "h:2", "{tag}h"];
pub(super) const SET_KEYS: [&str; 4] = ["t:1", "t:2", "t:3", "{tag}t"];
pub(super) const SORTED_SET_KEYS: [&str; 3] = ["z:1", "z:2", "{tag}z"];
/// Places, and one sorted set whose scores are any.
pub(super) const GEO_KEYS: [&str; 4] = ["g:1", "g:2", "g:3", "z:1"];
pub(super) const STREAM_KEYS: [&str; 2] = ["x:1", "x:2"];
pub(super) const KEY_POOLS: [&[&str]; 6] =
    [&STRING_KEYS, &LIST_KEYS, &HASH_KEYS, &SET_KEYS, &SORTED_SET_KEYS, &STREAM_KEYS];

/// Where a family's commands look first; None: anywhere.
pub(super) fn home(group: Group) -> Option<&'static [&'static str]> {
    match group {
        Group::String | Group::Bitmap | Group::Hyperloglog => Some(&STRING_KEYS),
        Group::List => Some(&LIST_KEYS),
        Group::Hash => Some(&HASH_KEYS),
        Group::Set => Some(&SET_KEYS),
        Group::SortedSet => Some(&SORTED_SET_KEYS),
        Group::Geo => Some(&GEO_KEYS),
        Group::Stream => Some(&STREAM_KEYS),
        _ => None,
    }
}

pub(super) const INTEGERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "-2",
    "-3",
    "5",
    "10",
    "-10",
    "100",
    "20",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "4294967296",
    "x",
    "1.5",
    "",
    "+1",
];
/// Times that have passed, are out of range, or are no times.
pub(super) const WRONG_TIMES: [&str; 8] =
    ["0", "-1", "-100", "x", "", "9223372036854775807", "-9223372036854775808", "9223372036854775"];
pub(super) const DOUBLES: [&str; 14] = [
    "0",
    "1",
    "0.1",
    "-2.5",
    "3.0e3",
    "1e-17",
    "123456789.125",
    "inf",
    "-inf",
    "nan",
    "y",
    "",
    " 1",
    "1e400",
];
/// The last one is a HyperLogLog, of runs of 64 zeros.
pub(super) const STRINGS: [&str; 25] = [
    "",
    "a",
    "b",
    "abc",
    "1",
    "2",
    "3",
    "-1",
    "10",
    "127",
    "-129",
    "65536",
    "3.5",
    "1e3",
    "007",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "b c\r\n",
    "-0",
    "*",
    "0123456789012345678901234567890123456789012345678901234567890123456789",
    "01234567890123456789012345678901234567890123",
    "012345678901234567890123456789012345678901234",
    "HYLL\u{1}\0\0\0\0\0\0\0\0\0\0\0\
     ????????????????????????????????????????????????????????????????\
     ????????????????????????????????????????????????????????????????\
     ????????????????????????????????????????????????????????????????\
     ????????????????????????????????????????????????????????????????",
];
/// A list of numbers mostly, so that SORT finds something that it can sort without ALPHA.
pub(super) const NUMBERS_KEY: &[u8] = b"l:3";
pub(super) const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "3",
    "10",
    "20",
    "-1",
    "-5",
    "3.5",
    "1e3",
    "007",
    "-0",
    "+1",
    ".5",
    "inf",
    "-inf",
    "1e400",
    "9007199254740993",
    "9223372036854775807",
    "",
];
pub(super) const PATTERNS: [&str; 12] =
    ["*", "s:*", "[a-l]*", "?:1", "nothing", "", "*:[^1]", "l\\:1", "h:*->a", "#", "nosort", "{tag}?"];

/// Integers of which large ones cost what they say: counts that become lengths in bytes or bits.
const OFFSETS: [&str; 16] = [
    "0",
    "1",
    "2",
    "7",
    "8",
    "9",
    "31",
    "63",
    "64",
    "100",
    "1000",
    "2000",
    "-1",
    "4294967296",
    "9223372036854775807",
    "x",
];
const BITFIELD_OFFSETS: [&str; 10] = ["0", "1", "7", "8", "100", "#0", "#1", "#20", "-1", "#x"];
const ENCODINGS: [&str; 12] = ["u8", "i8", "u1", "i1", "u63", "i64", "u64", "i65", "u0", "i5", "x", "U8"];
const BITS: [&str; 5] = ["0", "1", "2", "-1", "x"];
/// Ends of ranges of scores and of members, and those that ZRANGE may take for any of them.
const SCORE_ENDS: [&str; 16] =
    ["0", "1", "(1", "-inf", "+inf", "(inf", "2", "3.5", "-2.5", "(10", "x", "", "nan", "(", "1e3", "100"];
const LEX_ENDS: [&str; 16] =
    ["-", "+", "-", "+", "[a", "(a", "[b", "(abc", "[", "(", "[1", "(10", "[-", "a", "", "[zzz"];
const ANY_ENDS: [&str; 20] = [
    "0", "1", "-1", "-2", "2", "5", "0", "-1", "-inf", "+inf", "(1", "3", "-", "+", "[a", "(b", "x", "100",
    "-100", "",
];
/// Near each other, at the date line, at the edge of the map and beyond it.
const LONGITUDES: [&str; 16] = [
    "0",
    "13.361389",
    "15.087269",
    "13.5",
    "14",
    "0.1",
    "-0.1",
    "0.001",
    "-180",
    "180",
    "179.9",
    "-179.9",
    "90",
    "-120",
    "181",
    "x",
];
const LATITUDES: [&str; 16] = [
    "0",
    "38.115556",
    "37.502669",
    "38",
    "37",
    "0.1",
    "-0.1",
    "0.001",
    "85.05112878",
    "-85.05112878",
    "84.9",
    "-70",
    "45",
    "67",
    "86",
    "y",
];
const LENGTHS: [&str; 14] =
    ["0", "1", "10", "50", "100", "200", "400", "1000", "5000", "20000", "300000", "1e7", "-1", "x"];
const WEIGHTS: [&str; 8] = ["1", "2", "0.5", "-1", "0", "inf", "3", "x"];
const SCAN_COUNTS: [&str; 5] = ["1000", "5000", "100000", "0", "x"];
const DATABASES: [&str; 10] = ["0", "0", "1", "1", "2", "2", "15", "16", "-1", "x"];
const PROTOCOLS: [&str; 6] = ["2", "3", "2", "3", "4", "x"];
const TYPES: [&str; 8] = ["string", "list", "hash", "set", "zset", "stream", "LIST", "nothing"];
/// Libraries that fit together, ones that do not, and what is none.
const LIBRARIES: [&str; 8] = [
    "#!lua name=a\nredis.register_function('f', function(keys, args) return {keys, args} end)",
    "#!lua name=a\nlocal n = 0 redis.register_function('count', function() n = n + 1 return n end)",
    "#!lua name=b\nredis.register_function{function_name='g', callback=function(keys) return redis.call('get', \
     keys[1] or 's:1') end, flags={'no-writes'}, description='reads'}",
    "#!lua name=b\nredis.register_function('F', function(keys, args) return redis.call('set', keys[1] or 's:1', \
     args[1] or 'v') end)",
    "#!lua name=A\nredis.register_function('h', function(keys) return redis.pcall('lpush', keys[1], 1) end)",
    "#!lua name=c\nnothing()",
    "#!lua name=c\n",
    "return 1",
];
const LIBRARY_NAMES: [&str; 5] = ["a", "b", "A", "*", "x"];
const FUNCTIONS: [&str; 6] = ["f", "count", "g", "F", "H", "x"];
const NAMES: [&str; 6] = ["one", "two", "three", "", "with space", "b\u{e9}"];
/// SIMD is left out: told another word than ON or OFF, Redis answers twice.
const SKETCH_LOOKS: [&str; 6] = ["GETREG", "DECODE", "ENCODING", "ENCODING", "TODENSE", "x"];
const TIMEOUTS: [&str; 4] = ["0", "1", "-1", "x"];
/// Numbers of replicas to wait for. There are none, so that a request for one would wait.
const REPLICAS: [&str; 4] = ["0", "0", "-1", "x"];
/// Ids that rise at times: `3-*` is always the next.
const NEW_IDS: [&str; 12] = ["1-1", "1-*", "2-*", "2-2", "3-*", "3-*", "3-5", "4", "5-*", "0-*", "0-0", "x"];
const IDS: [&str; 14] =
    ["0", "1-1", "1-2", "1-3", "2-1", "2-2", "3-0", "3-1", "3-2", "4", "5-0", "0-1", "9", "x"];
const READ_IDS: [&str; 10] = [">", ">", ">", "0", "0", "1-1", "2", "$", "+", "x"];
const ID_ENDS: [&str; 14] =
    ["-", "-", "+", "+", "0", "1", "1-1", "(1-1", "2-2", "(3", "3-1", "18446744073709551615", "(-", "x"];
const THRESHOLDS: [&str; 8] = ["0", "1", "2", "3", "5", "2-2", "3-1", "x"];
const GROUPS: [&str; 4] = ["g", "g", "g", "h"];
const CONSUMERS: [&str; 3] = ["c", "d", "e"];
/// Least idle times for claiming. No entry has been idle for as long as the large one, and every entry for as
/// long as the others, so the two clocks cannot disagree.
const IDLE_TIMES: [&str; 6] = ["0", "0", "0", "-1", "1000000000", "x"];
const COMMAND_NAMES: [&str; 6] = ["get", "set", "lpush", "nothing", "OBJECT", "config|get"];

/// A pool for an argument of this name, of one command (in lower case) or of all (`*`); the first that fits
/// counts.
struct Named {
    command: &'static str,
    argument: &'static str,
    pool: &'static [&'static str],
}

const fn named(command: &'static str, argument: &'static str, pool: &'static [&'static str]) -> Named {
    Named { command, argument, pool }
}

const NAMED: &[Named] = &[
    named("scan", "cursor", &["0"]),
    named("scan", "count", &["1000", "5000", "100000", "0", "-1", "x"]),
    named("scan", "type", &TYPES),
    named("hscan", "cursor", &["0"]),
    named("hscan", "count", &SCAN_COUNTS),
    named("sscan", "cursor", &["0"]),
    named("sscan", "count", &["1000", "5000", "100000", "0", "-1", "x"]),
    named("spop", "count", &["9223372036854775807", "4294967296", "0", "-1", "x"]),
    named("select", "index", &DATABASES),
    named("swapdb", "*", &DATABASES),
    named("bitfield", "offset", &BITFIELD_OFFSETS),
    named("bitfield_ro", "offset", &BITFIELD_OFFSETS),
    named("pfdebug", "subcommand", &SKETCH_LOOKS),
    named("setbit", "value", &BITS),
    named("zscan", "cursor", &["0"]),
    named("zscan", "count", &SCAN_COUNTS),
    named("zrange", "start", &ANY_ENDS),
    named("zrange", "stop", &ANY_ENDS),
    named("zrangestore", "min", &ANY_ENDS),
    named("zrangestore", "max", &ANY_ENDS),
    named("zrangebylex", "min", &LEX_ENDS),
    named("zrangebylex", "max", &LEX_ENDS),
    named("zrevrangebylex", "min", &LEX_ENDS),
    named("zrevrangebylex", "max", &LEX_ENDS),
    named("zremrangebylex", "min", &LEX_ENDS),
    named("zremrangebylex", "max", &LEX_ENDS),
    named("zlexcount", "min", &LEX_ENDS),
    named("zlexcount", "max", &LEX_ENDS),
    named("*", "longitude", &LONGITUDES),
    named("*", "latitude", &LATITUDES),
    named("*", "radius", &LENGTHS),
    named("*", "width", &LENGTHS),
    named("*", "height", &LENGTHS),
    named("*", "min", &SCORE_ENDS),
    named("*", "max", &SCORE_ENDS),
    named("*", "weight", &WEIGHTS),
    named("xadd", "id", &NEW_IDS),
    named("xread", "id", &IDS),
    named("xreadgroup", "id", &READ_IDS),
    named("xrange", "start", &ID_ENDS),
    named("xrange", "end", &ID_ENDS),
    named("xrevrange", "start", &ID_ENDS),
    named("xrevrange", "end", &ID_ENDS),
    named("xpending", "start", &ID_ENDS),
    named("xpending", "end", &ID_ENDS),
    named("xautoclaim", "start", &ID_ENDS),
    named("xsetid", "last-id", &IDS),
    named("*", "id", &IDS),
    named("*", "lastid", &IDS),
    named("*", "max-deleted-id", &IDS),
    named("*", "threshold", &THRESHOLDS),
    named("*", "group", &GROUPS),
    named("*", "consumer", &CONSUMERS),
    named("*", "min-idle-time", &IDLE_TIMES),
    named("xclaim", "ms", &IDLE_TIMES),
    named("*", "offset", &OFFSETS),
    named("*", "function-code", &LIBRARIES),
    named("*", "library-name", &LIBRARY_NAMES),
    named("*", "library-name-pattern", &LIBRARY_NAMES),
    named("*", "function", &FUNCTIONS),
    named("*", "bit", &BITS),
    named("*", "encoding", &ENCODINGS),
    named("*", "db", &DATABASES),
    named("*", "destination-db", &DATABASES),
    named("*", "protover", &PROTOCOLS),
    named("*", "libname", &NAMES),
    named("*", "libver", &NAMES),
    named("*", "connection-name", &NAMES),
    named("*", "clientname", &NAMES),
    named("*", "username", &["default", "nobody"]),
    named("*", "password", &["", "secret"]),
    named("*", "timeout", &TIMEOUTS),
    named("*", "numreplicas", &REPLICAS),
    named("*", "numlocal", &REPLICAS),
    named("*", "command-name", &COMMAND_NAMES),
    named("*", "client-id", &["0", "-1", "x", "987654321"]),
];

/// The pool of an argument that has one by its name.
pub(super) fn pool(command: &str, argument: &str) -> Option<&'static [&'static str]> {
    let is = |pattern: &str, name: &str| pattern == "*" || pattern == name;
    NAMED.iter().find(|n| is(n.command, command) && is(n.argument, argument)).map(|n| n.pool)
}

/// Settings that streams run under and change, each with values that either server takes or refuses; the
/// first is the default, with which every stream begins. A `list-max-listpack-size` of 0 is not among them:
/// Redis never returns from the push that follows.
pub(super) const SETTINGS: &[(&str, &[&str])] = &[
    ("list-max-listpack-size", &["-2", "4", "-1", "128", "1", "-6", "x"]),
    ("list-compress-depth", &["0", "1", "2", "-1"]),
    ("hll-sparse-max-bytes", &["3000", "20", "40", "200", "0"]),
    ("hash-max-listpack-entries", &["128", "4", "512"]),
    ("hash-max-listpack-value", &["64", "8"]),
    ("set-max-intset-entries", &["512", "4"]),
    ("set-max-listpack-entries", &["128", "4"]),
    ("set-max-listpack-value", &["64", "8"]),
    ("zset-max-listpack-entries", &["128", "4"]),
    ("zset-max-listpack-value", &["64", "8"]),
    ("stream-node-max-entries", &["100", "3", "1", "0", "x"]),
    ("stream-node-max-bytes", &["4096", "200", "1", "x"]),
    ("maxmemory-policy", &["noeviction"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_of_one_command_comes_before_those_of_all() {
        assert_eq!(pool("bitfield", "offset"), Some(&BITFIELD_OFFSETS[..]));
        assert_eq!(pool("setrange", "offset"), Some(&OFFSETS[..]));
        assert_eq!(pool("swapdb", "index1"), Some(&DATABASES[..]));
        assert_eq!(pool("get", "key"), None);
    }

    #[test]
    fn no_pool_is_empty() {
        assert!(NAMED.iter().all(|named| !named.pool.is_empty()));
        assert!(SETTINGS.iter().all(|(_, values)| !values.is_empty()));
    }
}
