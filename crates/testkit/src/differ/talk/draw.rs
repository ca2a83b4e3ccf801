//! The talk of a seed: what its connections say, in one order. Each talk mixes some themes, and data commands
//! from the tables among them, on few keys, so that connections meet.
use super::super::focus::Focus;
use super::super::request;
use super::super::stream::{Step, may_send};
use super::super::vocabulary::Vocabulary;
use super::side::ID_OF;
use crate::transcript::parse_version;
use base::random::Random;
use std::collections::BTreeSet;

const STEPS_MIN: u64 = 20;
const STEPS_MAX: u64 = 160;
/// Timeouts that are over at once, of BLPOP and of XREAD.
pub(super) const SHORT_SECONDS: &str = "0.009";
pub(super) const SHORT_MS: &str = "9";

const LISTS: [&str; 3] = ["l:1", "l:2", "{tag}l"];
const SORTED_SETS: [&str; 2] = ["z:1", "z:2"];
const STREAMS: [&str; 2] = ["x:1", "x:2"];
/// Keys that are watched: of all types, and one that is not there.
const WATCHED: [&str; 7] = ["s:1", "s:2", "l:1", "h:1", "t:1", "z:1", "none"];
const CHANNELS: [&str; 4] = ["c", "news", "news.a", ""];
const PATTERNS: [&str; 6] = ["*", "news*", "c", "n?ws", "[cn]*", "news.?"];
const WORDS: [&str; 5] = ["a", "b", "1", "", "longer-than-a-word"];
const WRONG_TIMEOUTS: [&str; 6] = ["-1", "x", "", "1e300", "nan", "99999999999999999999"];

const USERS: [&str; 2] = ["ann", "bob"];
/// None closes a client other than the users themselves, and none takes rights from the default user.
const RULES: [&str; 18] = [
    "on",
    "off",
    ">p",
    ">q",
    "<p",
    "nopass",
    "resetpass",
    "+@all",
    "-@all",
    "+@read",
    "-@write",
    "+set",
    "-get",
    "~s:*",
    "%R~s:1",
    "allkeys",
    "&c",
    "(+@all ~l:*)",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Theme {
    Transactions,
    Messages,
    Lists,
    SortedSets,
    Streams,
    /// Messages of what happens to keys.
    Events,
    /// Clients that keep copies of keys, and are told which have changed.
    Copies,
    /// Users who are changed while they are logged in.
    Users,
    /// Several databases, which are swapped and emptied, and keys that move between them.
    Databases,
    /// Clients that leave, or are killed in whatever they do.
    Departures,
}

/// Each with a command that it is nothing without.
const THEMES: [(Theme, &str); 10] = [
    (Theme::Transactions, "multi"),
    (Theme::Messages, "subscribe"),
    (Theme::Lists, "blpop"),
    (Theme::SortedSets, "bzpopmin"),
    (Theme::Streams, "bzpopmin"),
    (Theme::Events, NOTIFIES),
    (Theme::Copies, "client|tracking"),
    (Theme::Users, "acl|setuser"),
    (Theme::Databases, "swapdb"),
    (Theme::Departures, "client|kill"),
];
/// Stands among the known commands where both servers tell of what happens to keys.
pub(super) const NOTIFIES: &str = "notify-keyspace-events";

struct Writer<'d> {
    random: Random,
    known: &'d BTreeSet<String>,
    themes: Vec<Theme>,
    /// Whether the connection has probably begun a transaction.
    is_in_transaction: Vec<bool>,
    /// Whether it watches keys, probably: a transaction should follow.
    is_watching: Vec<bool>,
    /// Redis 7.0 sends a client what it publishes to itself within the reply of EXEC: the message of one
    /// pattern, whichever comes first.
    nests_messages: bool,
    steps: Vec<Step>,
}

/// The talk of a seed: the same whenever both servers know the same commands.
pub(super) fn draw(
    seed: u64,
    vocabulary: &Vocabulary,
    known: &BTreeSet<String>,
    connections: usize,
) -> Vec<Step> {
    let mut random = Random::new(seed);
    let focus = Focus::draw(&mut random, vocabulary);
    let possible: Vec<Theme> =
        THEMES.iter().filter(|(_, name)| known.contains(*name)).map(|(theme, _)| *theme).collect();
    let mut themes: Vec<Theme> = possible.iter().copied().filter(|_| random.below(3) == 0).collect();
    if themes.is_empty() && !possible.is_empty() {
        themes.push(possible[random.below(possible.len() as u64) as usize]);
    }
    let count = STEPS_MIN + random.below(STEPS_MAX - STEPS_MIN);
    let is_in_transaction = vec![false; connections];
    let is_watching = is_in_transaction.clone();
    let nests_messages = parse_version("7.2").is_some_and(|version| vocabulary.version < version);
    let steps = Vec::new();
    let mut writer = Writer { random, known, themes, is_in_transaction, is_watching, nests_messages, steps };
    writer.begin(connections);
    let mut connection = 0;
    for _ in 0..count {
        // Half of all requests follow one of the same connection.
        if writer.random.below(5) < 3 {
            connection = writer.random.below(connections as u64) as usize;
        }
        if writer.themes.is_empty() || writer.random.below(5) < 2 {
            let request = request::any(&mut writer.random, &focus);
            writer.push(connection, request);
        } else {
            let line = writer.line(connection);
            writer.push_line(connection, line);
        }
    }
    writer.steps.retain(|step| may_say(step, vocabulary));
    writer.steps
}

/// Whether a talk may have this request: both servers are known to do the same with it.
pub(super) fn may_say(step: &Step, vocabulary: &Vocabulary) -> bool {
    let is_said = may_send(&step.request, vocabulary) || is_read_that_waits(step) || is_departure(step);
    is_said && !ends_the_peer(&step.request)
}

/// Streams of single requests leave these out. Who is killed is named by a number in the talk.
fn is_departure(step: &Step) -> bool {
    match (&*step.name(), &step.request[1..]) {
        ("quit", []) => true,
        ("client", [kill, _, who]) => kill.eq_ignore_ascii_case(b"kill") && who.starts_with(ID_OF),
        _ => false,
    }
}

/// Streams of single requests leave these out. Of timeouts only the one that is waited for is said: others
/// would end at any time of the talk.
fn is_read_that_waits(step: &Step) -> bool {
    let is_timeout = |pair: &[Vec<u8>]| {
        let number = base::text::parse_i64(&pair[1]).filter(|number| *number > 0);
        pair[0].eq_ignore_ascii_case(b"block") && number.is_some() && pair[1] != SHORT_MS.as_bytes()
    };
    matches!(&*step.name(), "xread" | "xreadgroup") && !step.request.windows(2).any(is_timeout)
}

/// Redis 8.0.2 crashes when a client with NO-TOUCH pushes to one that waits.
fn ends_the_peer(request: &[Vec<u8>]) -> bool {
    request.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"no-touch"))
}

fn one_of<'p>(random: &mut Random, pool: &[&'p str]) -> &'p str {
    pool[random.below(pool.len() as u64) as usize]
}

impl Writer<'_> {
    fn begin(&mut self, connections: usize) {
        for connection in 0..connections {
            if connection % 2 == 1 {
                self.push_line(connection, "HELLO 3".to_owned());
            }
        }
        if self.themes.contains(&Theme::Streams) {
            for key in STREAMS {
                self.push_line(0, format!("XGROUP CREATE {key} g $ MKSTREAM"));
            }
        }
        if self.themes.contains(&Theme::Events) && self.known.contains("psubscribe") {
            self.push_line(0, "CONFIG SET notify-keyspace-events KEA".to_owned());
            self.push_line(1, "PSUBSCRIBE __key*".to_owned());
        }
    }

    fn push_line(&mut self, connection: usize, line: String) {
        let words = line.split(' ').map(|word| if word == "\"\"" { "" } else { word });
        self.push(connection, words.map(|word| word.as_bytes().to_vec()).collect());
    }

    fn push(&mut self, connection: usize, request: Vec<Vec<u8>>) {
        let mut step = Step { connection, request };
        let name = step.name();
        // EXEC of SUBSCRIBE to two channels is followed by replies that nobody counts: what may differ a
        // little (MEMORY USAGE) could not be found among them.
        if name.ends_with("subscribe") && self.is_in_transaction[connection] {
            step.request.truncate(2);
        }
        let subcommand = step.request.get(1).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase());
        let full_name = format!("{name}|{}", subcommand.unwrap_or_default());
        // What only one of them has yet. Unknown commands are drawn by the tables' own streams.
        if !self.known.contains(&name) && !self.known.contains(&full_name) {
            return;
        }
        // What a transaction causes to be sent to its own client comes behind the reply of EXEC, when a
        // channel that the transaction leaves is left (docs/differences.md).
        if name.ends_with("unsubscribe") && self.is_in_transaction[connection] {
            return;
        }
        // What a transaction has caused to be told goes by how its client tracks and listens at the end of it
        // (docs/differences.md).
        let changes_ways = name == "hello" || full_name == "client|tracking" || name.ends_with("subscribe");
        if changes_ways && self.is_in_transaction[connection] && self.themes.contains(&Theme::Copies) {
            return;
        }
        if name == "publish" && self.nests_messages && self.is_in_transaction[connection] {
            return;
        }
        // The queue of a transaction refers to its values in Redis (docs/differences.md).
        if full_name == "object|refcount" && self.is_in_transaction[connection] {
            return;
        }
        match &*name {
            "multi" => self.is_in_transaction[connection] = true,
            "watch" => self.is_watching[connection] = true,
            "exec" | "discard" | "reset" => {
                (self.is_in_transaction[connection], self.is_watching[connection]) = (false, false);
            }
            _ => {}
        }
        self.steps.push(step);
    }

    fn word(&mut self) -> String {
        self.pick(&WORDS)
    }

    fn pick(&mut self, pool: &[&str]) -> String {
        let word = one_of(&mut self.random, pool);
        if word.is_empty() { "\"\"".to_owned() } else { word.to_owned() }
    }

    fn some(&mut self, pool: &[&str], max: u64) -> String {
        let words: Vec<String> = (0..1 + self.random.below(max)).map(|_| self.pick(pool)).collect();
        words.join(" ")
    }

    /// A timeout in seconds. Mostly it is 0, which is none.
    fn timeout(&mut self) -> String {
        match self.random.below(20) {
            0 => self.pick(&WRONG_TIMEOUTS),
            1..5 => SHORT_SECONDS.to_owned(),
            _ => "0".to_owned(),
        }
    }

    fn block(&mut self) -> &'static str {
        if self.random.below(4) == 0 { SHORT_MS } else { "0" }
    }

    fn line(&mut self, connection: usize) -> String {
        let theme = self.themes[self.random.below(self.themes.len() as u64) as usize];
        if self.is_in_transaction[connection] && self.random.below(4) == 0 {
            return if self.random.below(5) == 0 { "DISCARD" } else { "EXEC" }.to_owned();
        }
        match theme {
            Theme::Transactions => self.transaction(connection),
            Theme::Messages => self.message(),
            Theme::Lists => self.list(),
            Theme::SortedSets => self.sorted_set(),
            Theme::Streams => self.stream(),
            Theme::Events => self.event(),
            Theme::Copies => self.copies(connection),
            Theme::Users => self.users(),
            Theme::Databases => self.database(),
            Theme::Departures => self.departure(),
        }
    }

    /// One watches a key, another perhaps writes it before EXEC: this is the rest of it but EXEC.
    fn race(&mut self, connection: usize) -> String {
        let (key, word) = (self.pick(&WATCHED), self.word());
        let other = (connection + 1) % self.is_in_transaction.len();
        self.push_line(connection, format!("WATCH {key}"));
        if self.random.below(2) == 0 {
            self.push_line(other, format!("SET {key} {word}"));
        }
        self.push_line(connection, "MULTI".to_owned());
        if self.random.below(2) == 0 {
            self.push_line(other, format!("DEL {key}"));
        }
        self.push_line(connection, format!("SET {key} {connection}"));
        "EXEC".to_owned()
    }

    fn transaction(&mut self, connection: usize) -> String {
        let begins = self.is_watching[connection] && !self.is_in_transaction[connection];
        if begins && self.random.below(2) == 0 {
            return "MULTI".to_owned();
        }
        match self.random.below(13) {
            12 => self.race(connection),
            0..4 if !self.is_in_transaction[connection] => "MULTI".to_owned(),
            0 => "MULTI".to_owned(),
            4..7 => format!("WATCH {}", self.some(&WATCHED, 3)),
            7 => one_of(&mut self.random, &["UNWATCH", "EXEC", "DISCARD", "RESET", "EXEC now"]).to_owned(),
            _ => {
                let (key, word) = (self.pick(&WATCHED), self.word());
                match self.random.below(6) {
                    0 => format!("DEL {key}"),
                    1 => format!("EXPIRE {key} -1"),
                    2 => format!("COPY s:1 {key} REPLACE"),
                    3 => "FLUSHDB".to_owned(),
                    4 => format!("INCR {key}"),
                    _ => format!("SET {key} {word}"),
                }
            }
        }
    }

    fn message(&mut self) -> String {
        let (channel, word) = (self.pick(&CHANNELS), self.word());
        match self.random.below(20) {
            0..4 => format!("SUBSCRIBE {}", self.some(&CHANNELS, 3)),
            4..6 => format!("PSUBSCRIBE {}", self.some(&PATTERNS, 2)),
            6 => format!("SSUBSCRIBE {}", self.pick(&CHANNELS)),
            7 => format!("UNSUBSCRIBE {}", self.some(&CHANNELS, 2)),
            8 => format!("PUNSUBSCRIBE {}", self.some(&PATTERNS, 2)),
            9 => self.pick(&["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "RESET", "PING", "HELLO 3"]),
            10 => format!("PUBSUB NUMSUB {}", self.some(&CHANNELS, 3)),
            11 => self.pick(&["PUBSUB NUMPAT", "PUBSUB CHANNELS n*a", "PUBSUB SHARDNUMSUB c", "PING a"]),
            12 => format!("SPUBLISH {channel} {word}"),
            _ => format!("PUBLISH {channel} {word}"),
        }
    }

    fn list(&mut self) -> String {
        let (keys, key, other) = (self.some(&LISTS, 3), self.pick(&LISTS), self.pick(&LISTS));
        let (timeout, end, end2) =
            (self.timeout(), self.pick(&["LEFT", "RIGHT"]), self.pick(&["LEFT", "RIGHT"]));
        let word = self.word();
        match self.random.below(16) {
            0 => format!("BLPOP {keys} {timeout}"),
            1 => format!("BRPOP {keys} {timeout}"),
            2 | 3 => format!("BLMOVE {key} {other} {end} {end2} {timeout}"),
            4 => format!("BRPOPLPUSH {key} {other} {timeout}"),
            5 => {
                let count = keys.split(' ').count();
                format!("BLMPOP {timeout} {count} {keys} {end} COUNT 2")
            }
            6 => self.unblock(),
            7 => format!("RENAME {key} {other}"),
            8 => format!("COPY {key} {other} REPLACE"),
            9 => format!("DEL {keys}"),
            10 => format!("SET {key} {word}"),
            11 => format!("LPUSH {key} {word} {other}"),
            12 => "SORT l:1 ALPHA STORE l:2".to_owned(),
            _ => format!("RPUSH {key} {word}"),
        }
    }

    fn sorted_set(&mut self) -> String {
        let (keys, key, timeout) = (self.some(&SORTED_SETS, 2), self.pick(&SORTED_SETS), self.timeout());
        match self.random.below(10) {
            0 => format!("BZPOPMIN {keys} {timeout}"),
            1 => format!("BZPOPMAX {keys} {timeout}"),
            2 => format!("BZMPOP {timeout} 1 {key} MAX COUNT 2"),
            3 => self.unblock(),
            4 => "ZUNIONSTORE z:2 1 z:1".to_owned(),
            5 => "RENAME z:2 z:1".to_owned(),
            6 => format!("DEL {keys}"),
            _ => format!("ZADD {key} 1 a 2.5 {}", self.pick(&["b", "c", "d"])),
        }
    }

    fn stream(&mut self) -> String {
        let (key, block) = (self.pick(&STREAMS), self.block());
        let id = self.random.below(40);
        match self.random.below(14) {
            0 => format!("XREAD BLOCK {block} STREAMS {key} $"),
            1 => format!("XREAD COUNT 2 BLOCK {block} STREAMS x:1 x:2 {id}-0 $"),
            2 | 3 => format!("XREADGROUP GROUP g me BLOCK {block} STREAMS {key} >"),
            4 => format!("XREADGROUP GROUP g you COUNT 1 BLOCK {block} NOACK STREAMS x:1 x:2 > >"),
            5 => format!("XREAD BLOCK {block} STREAMS {key} +"),
            6 => self.unblock(),
            7 => format!("XGROUP DESTROY {key} g"),
            8 => format!("XGROUP CREATE {key} g $ MKSTREAM"),
            9 => format!("DEL {key}"),
            10 => format!("XACK {key} g {id}-1"),
            _ => format!("XADD {key} {id}-* f v"),
        }
    }

    fn event(&mut self) -> String {
        let (key, word) = (self.pick(&WATCHED), self.word());
        match self.random.below(8) {
            0 => format!("PSUBSCRIBE {}", self.pick(&["__key*", "__keyevent@0__:del", "__keyspace@0__:s*"])),
            1 => {
                // How often a read that waits looks for its key in vain is each server's own.
                let all = if self.themes.contains(&Theme::Streams) { "AKEn" } else { "AKEnm" };
                let classes = self.pick(&["KEA", "Kg$", "Elshz", "\"\"", all]);
                format!("CONFIG SET notify-keyspace-events {classes}")
            }
            2 => format!("DEL {key}"),
            3 => format!("RENAME {key} s:2"),
            4 => format!("EXPIRE {key} 500000"),
            5 => "PUNSUBSCRIBE".to_owned(),
            6 => format!("GETDEL {key}"),
            _ => format!("SET {key} {word}"),
        }
    }

    /// Prefixes keep out the keys that a restless server makes for itself. GETREDIR and TRACKINGINFO would
    /// tell numbers of connections, which are not the same on both servers.
    fn copies(&mut self, connection: usize) -> String {
        let (key, word) = (self.pick(&WATCHED), self.word());
        match self.random.below(18) {
            0..3 => "CLIENT TRACKING ON".to_owned(),
            3 => "CLIENT TRACKING OFF".to_owned(),
            4 => format!("CLIENT TRACKING ON BCAST PREFIX {}", self.pick(&["s:", "s:1", "l:", "none"])),
            5 => "CLIENT TRACKING ON BCAST PREFIX h: PREFIX t: NOLOOP".to_owned(),
            6 => format!(
                "CLIENT TRACKING ON {}",
                self.pick(&["NOLOOP", "OPTIN", "OPTOUT", "BCAST OPTIN", "PREFIX s:"])
            ),
            7 => format!("CLIENT CACHING {}", self.pick(&["YES", "NO"])),
            8 => {
                let to = (connection + 1) % self.is_in_transaction.len();
                format!("CLIENT TRACKING ON REDIRECT {}{to}", String::from_utf8_lossy(ID_OF))
            }
            9 => "SUBSCRIBE __redis__:invalidate".to_owned(),
            10 => format!("DEL {key}"),
            11 => format!("MGET {key} s:1 s:2"),
            12 => format!("RENAME {key} s:2"),
            13 => self.pick(&["FLUSHALL", "FLUSHDB", "HELLO 2", "HELLO 3", "RESET"]),
            14..16 => format!("GET {key}"),
            _ => format!("SET {key} {word}"),
        }
    }

    fn users(&mut self) -> String {
        let (user, key, channel) = (self.pick(&USERS), self.pick(&WATCHED), self.pick(&["c", "news"]));
        let rule = self.pick(&RULES);
        match self.random.below(14) {
            0..2 => format!("ACL SETUSER {user} {rule} {}", self.pick(&RULES)),
            2 => format!("ACL SETUSER eve {rule}"),
            3 => format!("ACL SETUSER {user} reset on nopass +@all ~* &*"),
            4 => "ACL DELUSER eve".to_owned(),
            5..8 => format!("AUTH {user} {}", self.pick(&["p", "q"])),
            8 => "AUTH default x".to_owned(),
            9 => "ACL WHOAMI".to_owned(),
            10 => format!(
                "ACL DRYRUN {user} {}",
                self.pick(&["GET s:1", "SET s:1 x", "PUBLISH c x", "ACL LIST"])
            ),
            11 => format!("ACL GETUSER {user}"),
            12 => format!("PUBLISH {channel} x"),
            _ => format!("SET {key} 1"),
        }
    }

    fn database(&mut self) -> String {
        let (db, other) = (self.random.below(3), self.random.below(3));
        let (key, list, word) = (self.pick(&WATCHED), self.pick(&LISTS), self.word());
        match self.random.below(12) {
            0..2 => format!("SWAPDB {db} {other}"),
            2..4 => format!("SELECT {db}"),
            4 => format!("MOVE {key} {db}"),
            5 => format!("COPY {key} {list} DB {db} REPLACE"),
            6 => self.pick(&["FLUSHDB", "FLUSHALL", "DBSIZE"]),
            7 => format!("WATCH {key} {list}"),
            8 => format!("BLMOVE {list} l:1 LEFT RIGHT 0"),
            9 => format!("SET {key} {word} EX 500000"),
            _ => format!("RPUSH {list} {word}"),
        }
    }

    /// Whoever has left comes back as a new client.
    fn departure(&mut self) -> String {
        let connection = self.random.below(self.is_in_transaction.len() as u64);
        let (list, key) = (self.pick(&LISTS), self.pick(&WATCHED));
        match self.random.below(10) {
            0..3 => format!("CLIENT KILL ID {}{connection}", String::from_utf8_lossy(ID_OF)),
            3 => "QUIT".to_owned(),
            4 => format!("BLPOP {list} 0"),
            5 => format!("BLMOVE {list} l:2 RIGHT LEFT 0"),
            6 => format!("RPUSH {list} {key}"),
            7 => format!("WATCH {key}"),
            8 => "MULTI".to_owned(),
            _ => format!("SUBSCRIBE {}", self.pick(&CHANNELS)),
        }
    }

    fn unblock(&mut self) -> String {
        let connection = self.random.below(self.is_in_transaction.len() as u64);
        let how = one_of(&mut self.random, &["", " TIMEOUT", " ERROR"]);
        format!("CLIENT UNBLOCK {}{connection}{how}", String::from_utf8_lossy(ID_OF))
    }
}
