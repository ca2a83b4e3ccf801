//! Users: random rules (ACL SETUSER), what is told of the users that they make, and requests that these may
//! send or not, by ACL DRYRUN and in fact. Every reply must be that of a real server.
//!
//! Left out is what `docs/differences.md` lists of users: quotes and white space where Sardine refuses them,
//! parentheses at the end of patterns, `%RW~*` in ACL LIST, wrong counts of keys.
use crate::resp_client::{Address, RespClient};
use base::random::Random;
use std::io;

/// One by the name `default2` is not the default user.
const USERS: [&str; 5] = ["u0", "u1", "u2", "default2", ""];
const PASSWORDS: [&str; 3] = ["p", "", "longer"];
/// Their SHA-256, and what is none.
const HASHES: [&str; 4] = [
    "148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "148DE9C5A7A44D19E56CD9AE1A554BF67847AFB0C58F6E12FA29AC7DDFCA9940",
    "148d",
];
const GLOBS: [&str; 13] =
    ["*", "a*", "b:*", "k?", "[ab]*", "a", "", "x*y*z", "\\*", "a*a*b", "~", "%", "c:\\x"];
const CHANNELS: [&str; 7] = ["*", "ch*", "ch1", "news.*", "n?ws", "", "[x]"];
const KEYS: [&str; 10] = ["a", "ab", "b:1", "k1", "xyyz", "*", "", "aab", "c:x", "A1"];
const KEY_MARKS: [&str; 10] = ["~", "~", "~", "%R~", "%W~", "%RW~", "%WR~", "%r~", "%w~", "%rW~"];
const WRONG_KEY_RULES: [&str; 9] = ["%", "%~", "%R", "%W", "%RR~a", "%X~a", "%R a", "~a b", "~\t"];
const CATEGORIES: [&str; 25] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "all",
    "nosuch",
    "ALL",
    "Read",
];
const COMMANDS: [&str; 38] = [
    "get",
    "set",
    "del",
    "mget",
    "mset",
    "sort",
    "sort_ro",
    "copy",
    "rename",
    "lpush",
    "blpop",
    "zadd",
    "zunionstore",
    "xread",
    "getex",
    "touch",
    "type",
    "object",
    "client",
    "config",
    "acl",
    "publish",
    "subscribe",
    "psubscribe",
    "multi",
    "exec",
    "watch",
    "ping",
    "select",
    "auth",
    "keys",
    "command",
    "reset",
    "config|get",
    "client|id",
    "object|encoding",
    "acl|whoami",
    "GET",
];
const ODD_PARTS: [&str; 16] = [
    "",
    "@",
    "|",
    "get|",
    "|get",
    "nosuch",
    "get|a|b",
    "config|get|x",
    "@all|x",
    "config|",
    "config|nosuch",
    "select|0",
    "set|k1",
    "CONFIG|SET",
    "-get",
    "@read ",
];
const WORDS: [&str; 19] = [
    "on",
    "on",
    "off",
    "nopass",
    "nopass",
    "resetpass",
    "sanitize-payload",
    "skip-sanitize-payload",
    "reset",
    "clearselectors",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "+@all",
    "-@all",
    "ON",
];
const NO_RULES: [&str; 12] = ["", "foo", " ", "()", "(", ")", "( )", "on ", "<nobody", "!", "#", ">"];
/// A key stands for `K`, a channel for `C`.
const REQUESTS: [&str; 46] = [
    "GET K",
    "SET K v",
    "SET K v GET",
    "MGET K K",
    "MSET K 1 K 2",
    "DEL K K",
    "EXISTS K",
    "TOUCH K",
    "COPY K K DB 1",
    "RENAME K K",
    "SORT K BY w_* GET o_*",
    "SORT K BY nosort",
    "SORT K GET #",
    "SORT K STORE K",
    "SORT_RO K BY w_*",
    "LPUSH K x",
    "LMOVE K K LEFT RIGHT",
    "ZADD K 1 m",
    "ZUNIONSTORE K 2 K K",
    "ZUNION 2 K K",
    "XREAD COUNT 1 STREAMS K K 0 0",
    "XREADGROUP GROUP g c STREAMS K >",
    "GETEX K",
    "GETEX K PERSIST",
    "TTL K",
    "OBJECT NOSUCH K",
    "CLIENT GETNAME",
    "CONFIG GET hz",
    "CONFIG NOSUCH",
    "CONFIG",
    "ACL WHOAMI",
    "PUBLISH C m",
    "SPUBLISH C m",
    "PUBSUB NUMPAT",
    "WATCH K K",
    "PING",
    "SELECT 1",
    "NOSUCH K",
    "GET",
    "GEORADIUS K 0 0 1 km STORE K",
    "BITFIELD K GET u8 0",
    "BITFIELD K SET u8 0 1",
    "LMPOP 1 K LEFT",
    "KEYS nothing",
    "MOVE K 1",
    "BITOP AND K K K",
];

type Request = Vec<Vec<u8>>;

/// What came of one stream.
pub struct Outcome {
    pub request_count: usize,
    /// What differs, with what was asked before it.
    pub difference: Option<String>,
}

fn any<'w>(random: &mut Random, words: &[&'w str]) -> &'w str {
    words[random.below(words.len() as u64) as usize]
}

fn command_rule(random: &mut Random) -> String {
    let sign = any(random, &["+", "+", "-"]);
    match random.below(10) {
        0..=3 => format!("{sign}@{}", any(random, &CATEGORIES)),
        4..=8 => format!("{sign}{}", any(random, &COMMANDS)),
        _ => format!("{sign}{}", any(random, &ODD_PARTS)),
    }
}

/// A rule that may stand in a selector.
fn part(random: &mut Random) -> String {
    match random.below(20) {
        0..=6 => command_rule(random),
        7..=12 => key_rule(random),
        13..=15 => format!("&{}", any(random, &CHANNELS)),
        16 => any(random, &WRONG_KEY_RULES).to_owned(),
        17 => "& ".to_owned(),
        _ => any(random, &WORDS[10..]).to_owned(),
    }
}

fn key_rule(random: &mut Random) -> String {
    let rule = format!("{}{}", any(random, &KEY_MARKS), any(random, &GLOBS));
    // `%R~*` and `%W~*` together are `%RW~*`, of which the list differs.
    let is_partial = rule.starts_with('%') && rule.ends_with("~*");
    if is_partial { "%R~*".to_owned() } else { rule }
}

fn rule(random: &mut Random) -> String {
    match random.below(20) {
        0..=9 => part(random),
        10..=13 => any(random, &WORDS).to_owned(),
        14 => format!("{}{}", any(random, &[">", ">", "<"]), any(random, &PASSWORDS)),
        15 => format!("{}{}", any(random, &["#", "!"]), any(random, &HASHES)),
        16..=18 => {
            let parts: Vec<String> = (0..random.below(4)).map(|_| part(random)).collect();
            let end = if random.below(12) == 0 { "" } else { ")" };
            format!("({}{end}", parts.join(any(random, &[" ", "  "])))
        }
        _ => any(random, &NO_RULES).to_owned(),
    }
}

/// A request to try, with keys and channels of its own.
fn trial(random: &mut Random) -> Request {
    let shape = any(random, &REQUESTS);
    let words = shape.split(' ').map(|word| match word {
        "K" => any(random, &KEYS),
        "C" => any(random, &CHANNELS),
        other => other,
    });
    words.map(|word| word.as_bytes().to_vec()).collect()
}

fn request(words: &[&str]) -> Request {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// Both servers, as an administrator.
pub struct Users {
    addresses: [Address; 2],
    admins: [RespClient; 2],
}

impl Users {
    pub fn connect(ours: Address, theirs: Address) -> io::Result<Users> {
        let admins = [RespClient::connect(&ours)?, RespClient::connect(&theirs)?];
        Ok(Users { addresses: [ours, theirs], admins })
    }

    /// Plays the stream of this seed, on servers without users but the default one.
    pub fn play(&mut self, seed: u64) -> io::Result<Outcome> {
        const STEPS: u64 = 100;
        let mut random = Random::new(seed);
        for admin in &mut self.admins {
            admin.call(&[&["ACL", "DELUSER"], &USERS[..]].concat())?;
            admin.call(&["ACL", "LOG", "RESET"])?;
            admin.call(&["FLUSHALL"])?;
        }
        let mut asked: Vec<(&str, Request)> = Vec::new();
        for _ in 0..STEPS {
            let name = any(&mut random, &USERS);
            let requests = match random.below(20) {
                0..=8 => {
                    let rules: Vec<String> = (0..random.below(5)).map(|_| rule(&mut random)).collect();
                    let mut set = request(&["ACL", "SETUSER", name]);
                    set.extend(rules.into_iter().map(String::into_bytes));
                    vec![set, request(&["ACL", "GETUSER", name])]
                }
                9..=15 => vec![[request(&["ACL", "DRYRUN", name]), trial(&mut random)].concat()],
                16 => vec![request(&["ACL", "LIST"]), request(&["ACL", "USERS"])],
                17 => vec![request(&["ACL", "DELUSER", name])],
                _ => {
                    if let Some(difference) = self.visit(name, &mut random, &mut asked)? {
                        return Ok(Outcome { request_count: asked.len(), difference: Some(difference) });
                    }
                    continue;
                }
            };
            for request in requests {
                if let Some(difference) = compare(&mut self.admins, ("admin", request), &mut asked)? {
                    return Ok(Outcome { request_count: asked.len(), difference: Some(difference) });
                }
            }
        }
        Ok(Outcome { request_count: asked.len(), difference: None })
    }

    /// Somebody logs in as this user and sends a few requests, perhaps in a transaction.
    fn visit(
        &mut self,
        name: &'static str,
        random: &mut Random,
        asked: &mut Vec<(&'static str, Request)>,
    ) -> io::Result<Option<String>> {
        let mut visitors =
            [RespClient::connect(&self.addresses[0])?, RespClient::connect(&self.addresses[1])?];
        let mut requests = vec![request(&["AUTH", name, any(random, &PASSWORDS)])];
        let in_transaction = random.below(3) == 0;
        if in_transaction {
            requests.push(request(&["MULTI"]));
        }
        requests.extend((0..4).map(|_| trial(random)));
        if in_transaction {
            requests.push(request(&["EXEC"]));
        }
        for request in requests {
            let difference = compare(&mut visitors, ("visitor", request), asked)?;
            if difference.is_some() {
                return Ok(difference);
            }
        }
        Ok(None)
    }
}

/// Asks both; what differs, if anything does.
fn compare(
    clients: &mut [RespClient; 2],
    (who, request): (&'static str, Request),
    asked: &mut Vec<(&'static str, Request)>,
) -> io::Result<Option<String>> {
    let [ours, theirs] = clients;
    let (got, expected) = (ours.call(&request)?, theirs.call(&request)?);
    asked.push((who, request));
    if got == expected {
        return Ok(None);
    }
    let line = |(who, request): &(&str, Request)| {
        let words: Vec<String> =
            request.iter().map(|word| format!("{:?}", String::from_utf8_lossy(word))).collect();
        format!("{who}: {}\n", words.join(" "))
    };
    const TOLD: usize = 60;
    let before: String = asked[asked.len().saturating_sub(TOLD)..].iter().map(line).collect();
    Ok(Some(format!(
        "{before}# theirs:\n{}\n# Sardine:\n{}",
        expected.lines().join("\n"),
        got.lines().join("\n")
    )))
}
