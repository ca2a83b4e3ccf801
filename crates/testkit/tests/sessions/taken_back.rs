//! Scripts over large collections that workers begin, take back and run again, beside a server that takes
//! nothing back: both have the same data, always.
use base::random::Random;
use server::Config;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;

/// Runs the commands that its arguments say, each behind the number of its words.
const SCRIPT: &str = "local at = 1 while at <= #ARGV do local count = tonumber(ARGV[at]) \
     redis.pcall(unpack(ARGV, at + 1, at + count)) at = at + count + 1 end return 1";

/// Collections of so many elements have dozens of leaves.
const ELEMENTS: u64 = 3_000;
const KEYS: [&str; 12] =
    ["hash", "ints", "zset", "set", "numbers", "list", "stream", "a", "b", "c", "d", "e"];

struct Pair {
    /// One that takes back at random, and one that does not.
    clients: [RespClient; 2],
    _servers: [InProcess; 2],
}

impl Pair {
    fn new(seed: u64) -> Pair {
        let servers = [(); 2].map(|()| InProcess::start(Config { worker_threads: 1, ..InProcess::config() }));
        servers[0].server.make_restless(seed);
        Pair { clients: servers.each_ref().map(|server| server.client().unwrap()), _servers: servers }
    }

    fn fill(&mut self) {
        for chunk in (0..ELEMENTS).collect::<Vec<_>>().chunks(500) {
            let all = |key: &str, one: &dyn Fn(u64) -> Vec<String>| {
                let mut words = key.split(' ').map(str::to_owned).collect::<Vec<_>>();
                words.extend(chunk.iter().flat_map(|n| one(*n)));
                words
            };
            self.both(&all("HSET hash", &|n| vec![format!("field:{n}"), format!("value:{n}")]));
            self.both(&all("HSET ints", &|n| vec![(n * 3).to_string(), n.to_string()]));
            self.both(&all("ZADD zset", &|n| vec![(n / 3).to_string(), format!("member:{n}")]));
            self.both(&all("SADD set", &|n| vec![format!("member:{n}")]));
            self.both(&all("SADD numbers", &|n| vec![(n * 7).to_string()]));
            self.both(&all("RPUSH list", &|n| vec![format!("element:{n}")]));
        }
        for n in 1..=ELEMENTS {
            self.both(&["XADD", "stream", &format!("{n}-1"), "field", &n.to_string()]);
        }
    }

    fn both(&mut self, words: &[impl AsRef<[u8]>]) {
        let [one, other] = self.clients.each_mut().map(|client| client.call(words).unwrap());
        assert_eq!(one, other);
    }

    /// A queue of scripts and other commands.
    fn both_in_exec(&mut self, random: &mut Random) {
        self.both(&["MULTI"]);
        for _ in 0..=random.below(5) {
            match random.below(2) {
                0 => self.both(&script(random, 3)),
                _ => self.both(&command(random).split(' ').collect::<Vec<&str>>()),
            }
        }
        self.both(&script(random, 3));
        self.both(&["EXEC"]);
    }

    fn compare(&mut self, seed: u64) {
        let words = ["DEBUG", "DIGEST-VALUE"].into_iter().chain(KEYS).collect::<Vec<_>>();
        let [one, other] = self.clients.each_mut().map(|client| client.call(&words).unwrap());
        assert_eq!(one, other, "seed {seed}");
    }
}

/// A command that writes to one of the large collections, or copies or moves one.
fn command(random: &mut Random) -> String {
    let n = random.below(ELEMENTS + 200);
    let (new, other) = (random.below(1_000_000), random.below(ELEMENTS));
    let small = ["a", "b", "c", "d", "e"][random.below(5) as usize];
    let large = KEYS[random.below(7) as usize];
    match random.below(34) {
        0 => format!("HSET hash field:{n} {new}"),
        1 => format!("HDEL hash field:{n} field:{other}"),
        2 => format!("HSET ints {n} {new} {other} text"),
        3 => format!("HINCRBY ints {n} 5"),
        4 => format!("HDEL ints {n}"),
        5 => format!("HPEXPIRE hash 1000000 FIELDS 1 field:{n}"),
        6 => format!("ZADD zset {other} member:{n}"),
        7 => format!("ZINCRBY zset {other} member:{n}"),
        8 => format!("ZREM zset member:{n} member:{other}"),
        9 => "ZPOPMIN zset 3".into(),
        10 => format!("SADD set member:{n} member:{new}"),
        11 => format!("SREM set member:{n}"),
        12 => format!("SADD numbers {new} {n}"),
        13 => format!("SREM numbers {}", 7 * n),
        14 => format!("LPUSH list {new} {other}"),
        15 => format!("LSET list {other} {new}"),
        16 => format!("LINSERT list AFTER element:{n} {new}"),
        17 => format!("LREM list 1 element:{n}"),
        18 => "RPOPLPUSH list list".into(),
        19 => format!("LPOP list {}", random.below(20)),
        20 => format!("XADD stream {}-1 field {new}", 10_000 + new),
        21 => format!("XDEL stream {n}-1 {other}-1"),
        22 => format!("XTRIM stream MAXLEN ~ {}", ELEMENTS - 200 + n / 10),
        23 => format!("COPY {large} {small} REPLACE"),
        24 => format!("RENAME {small} {large}"),
        25 => format!("RENAME {large} {small}"),
        26 => format!("DEL {small}"),
        27 => format!("UNLINK {large}"),
        28 => format!("SMOVE set {small} member:{n}"),
        29 => format!("EXPIRE {large} 100000"),
        30 => format!("ZADD {small} {other} {new}"),
        31 => format!("HSET {small} field:{n} {new}"),
        32 => format!("SADD {small} {new}"),
        _ => format!("RPUSH {small} {new}"),
    }
}

/// A script of up to so many commands.
fn script(random: &mut Random, max: u64) -> Vec<String> {
    let mut words: Vec<String> = ["EVAL", SCRIPT, "12"].map(str::to_owned).into();
    words.extend(KEYS.map(str::to_owned));
    for _ in 0..=random.below(max - 1) {
        let command = command(random);
        words.push(command.split(' ').count().to_string());
        words.extend(command.split(' ').map(str::to_owned));
    }
    words
}

#[test]
fn restless_scripts_leave_no_trace_on_large_collections() {
    for seed in [1, 2] {
        let (mut pair, mut random) = (Pair::new(seed), Random::new(seed));
        for round in 0..400 {
            if round % 80 == 0 {
                pair.fill();
            }
            match random.below(2) {
                0 => pair.both(&script(&mut random, 8)),
                _ => pair.both_in_exec(&mut random),
            }
            if round % 10 == 9 {
                pair.compare(seed);
            }
        }
        let info = pair.clients[0].call(&["INFO", "stats"]).unwrap();
        let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
        let lent = info.lines().find_map(|line| line.strip_prefix("lent_scripts:")).unwrap();
        assert!(lent.parse::<u64>().unwrap() > 50, "{lent} scripts were taken back");
    }
}
