//! Clients that do what no client should, one act after the other, each on connections of its own. They write
//! to the databases from [`OWN_DBS`] on and to a few keys there; what they leave in the server is the
//! server's to clean up.
//!
//! No act may end in an error of the server's own making: what is answered does not matter, that it goes on
//! serving others does.
use super::Stage;
use crate::differ::raw;
use crate::resp_client::{RespClient, request};
use crate::resp_value::Value;
use base::random::Random;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

/// Databases that hold nothing of anybody else.
const OWN_DBS: std::ops::Range<u64> = 8..16;
const TIMEOUT: Duration = Duration::from_secs(20);

type Act = fn(&mut Hostile<'_>) -> io::Result<()>;

const ACTS: [(&str, Act); 20] = [
    ("half", half_a_request),
    ("announce", announce),
    ("wrong-end", wrong_end),
    ("deaf", never_read),
    ("storm", storm),
    ("garbage", garbage),
    ("browser", browser),
    ("kill", kill),
    ("pause", pause),
    ("settings", settings),
    ("rewrite", rewrite),
    ("flood", flood),
    ("debug", debug),
    ("flush", flush),
    ("swap", swap),
    ("monitor", monitor),
    ("large", large_replies),
    ("fill", fill),
    ("strange", strange_connections),
    ("leave", leave_early),
];

/// How often each was done.
#[derive(Default)]
pub(super) struct Acts([AtomicU64; ACTS.len()]);

impl fmt::Display for Acts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = ACTS
            .iter()
            .zip(&self.0)
            .map(|((name, _), count)| format!("{name} {}", count.load(Relaxed)))
            .collect();
        f.write_str(&told.join(", "))
    }
}

struct Hostile<'s> {
    stage: &'s Stage,
    random: Random,
}

/// Does one act after the other until the soak is over. Errors are not told: many acts end with a connection
/// that the server closes, and friendly clients tell of a server that lets nobody in.
pub(super) fn run(stage: &Stage, seed: u64) {
    let mut hostile = Hostile { stage, random: Random::new(seed) };
    while !stage.is_over() {
        let act = hostile.random.below(ACTS.len() as u64) as usize;
        let _ = ACTS[act].1(&mut hostile);
        stage.acts.0[act].fetch_add(1, Relaxed);
    }
}

impl Hostile<'_> {
    fn socket(&self) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(("127.0.0.1", self.stage.process.port()))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(Duration::from_secs(1)))?;
        Ok(socket)
    }

    /// A client of the name by which `kill` finds hostile clients, in one of their databases.
    fn client(&mut self) -> io::Result<RespClient> {
        let mut client = RespClient::connect(&self.stage.process.address())?;
        client.call(&["CLIENT", "SETNAME", "hostile"])?;
        let db = OWN_DBS.start + self.random.below(OWN_DBS.end - OWN_DBS.start);
        client.call(&["SELECT", &db.to_string()])?;
        Ok(client)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.random.below(words.len() as u64) as usize]
    }

    fn wait(&mut self, ms_max: u64) {
        sleep(Duration::from_millis(self.random.below(ms_max)));
    }
}

fn half_a_request(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let whole = request(&[&b"SET"[..], b"k", &vec![b'x'; hostile.random.below(200_000) as usize]]);
    let mut sockets = Vec::new();
    for _ in 0..1 + hostile.random.below(20) {
        let mut socket = hostile.socket()?;
        let half = hostile.random.below(whole.len() as u64) as usize;
        socket.write_all(&whole[..half])?;
        sockets.push(socket);
    }
    hostile.wait(300);
    Ok(())
}

/// Much is announced, little is sent.
fn announce(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let heads = [
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nabc",
        "*1000000\r\n$4\r\nMGET\r\n",
        "*2\r\n$536870912\r\n",
        "*2147483647\r\n",
    ];
    let mut sockets = Vec::new();
    for _ in 0..1 + hostile.random.below(30) {
        let mut socket = hostile.socket()?;
        socket.write_all(hostile.pick(&heads).as_bytes())?;
        sockets.push(socket);
    }
    hostile.wait(300);
    Ok(())
}

/// A pipeline of much work that ends in something that is no request, or in QUIT.
fn wrong_end(hostile: &mut Hostile<'_>) -> io::Result<()> {
    hostile.client()?.call(&[&b"SET"[..], b"large", &vec![b'y'; 300_000]])?;
    let mut socket = hostile.socket()?;
    let select = format!("SELECT {}\r\n", OWN_DBS.start + hostile.random.below(8));
    let end = hostile.pick(&["*1\r\nfoo\r\n", "QUIT\r\n", "*-5\r\n$x\r\n", "\"open\r\n"]);
    let gets = "GET large\r\n".repeat(hostile.random.below(400) as usize);
    socket.write_all(format!("{select}{gets}{end}").as_bytes())?;
    if hostile.random.below(2) == 0 {
        io::copy(&mut socket.take(100_000_000), &mut io::sink())?;
    } else {
        hostile.wait(500);
    }
    Ok(())
}

fn never_read(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    client.call(&[&b"SET"[..], b"large", &vec![b'z'; 100_000]])?;
    let gets = request(&["GET", "large"]).repeat(2_000);
    // Writing ends where the server stops reading; a Unix socket takes no more than its buffer.
    let mut socket = hostile.socket()?;
    let _ = socket.write_all(&gets);
    drop(client);
    hostile.wait(1500);
    Ok(())
}

fn storm(hostile: &mut Hostile<'_>) -> io::Result<()> {
    for _ in 0..hostile.random.below(300) {
        let mut socket = hostile.socket()?;
        if hostile.random.below(3) == 0 {
            socket.write_all(b"PING\r\n")?;
        }
    }
    Ok(())
}

fn garbage(hostile: &mut Hostile<'_>) -> io::Result<()> {
    for _ in 0..hostile.random.below(20) {
        let mut socket = hostile.socket()?;
        for piece in raw::stream(hostile.random.next_u64()) {
            socket.write_all(&piece)?;
        }
        let mut noise = vec![0; hostile.random.below(5000) as usize];
        hostile.random.fill(&mut noise);
        socket.write_all(&noise)?;
    }
    Ok(())
}

fn browser(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut socket = hostile.socket()?;
    let head = hostile.pick(&["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n", "PING\r\nPOST x\r\n"]);
    socket.write_all(format!("{head}Content-Length: 20\r\n\r\nFLUSHALL\r\nFLUSHALL\r\n").as_bytes())?;
    let mut answer = Vec::new();
    socket.take(10_000).read_to_end(&mut answer)?;
    Ok(())
}

/// Kills some of the hostile clients, by what CLIENT LIST shows of them.
fn kill(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    let list = client.call(&["CLIENT", "LIST"])?;
    let list = String::from_utf8_lossy(list.text().unwrap_or_default()).into_owned();
    for line in list.lines().filter(|line| line.contains("name=hostile")) {
        let id = line.strip_prefix("id=").and_then(|rest| rest.split(' ').next()).unwrap_or("0");
        if hostile.random.below(2) == 0 {
            client.call(&["CLIENT", "KILL", "ID", id])?;
        }
    }
    Ok(())
}

fn pause(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    let (ms, what) = (hostile.random.below(100).to_string(), hostile.pick(&["ALL", "WRITE"]));
    client.call(&["CLIENT", "PAUSE", &ms, what])?;
    if hostile.random.below(2) == 0 {
        client.call(&["CLIENT", "UNPAUSE"])?;
    }
    Ok(())
}

/// Settings to change while clients are served. No value lets a key without a deadline be evicted, or closes
/// a client that reads its replies.
const SETTINGS: [(&str, &[&str]); 26] = [
    ("maxmemory", &["150mb", "200mb", "300mb"]),
    ("maxmemory-policy", &["volatile-lru", "volatile-lfu", "volatile-ttl", "volatile-random", "noeviction"]),
    ("maxmemory-samples", &["1", "5", "10"]),
    ("maxmemory-eviction-tenacity", &["0", "10", "50"]),
    ("activedefrag", &["yes", "no"]),
    ("active-defrag-max-scan-fields", &["10", "1000"]),
    ("active-defrag-cycle-max", &["25", "75"]),
    ("list-max-listpack-size", &["-2", "-5", "4", "128"]),
    ("list-compress-depth", &["0", "1", "3"]),
    ("list-compress-codec", &["lzf", "lz4", "zstd"]),
    ("hash-max-listpack-entries", &["1", "512"]),
    ("set-max-intset-entries", &["1", "512"]),
    ("zset-max-listpack-entries", &["0", "128"]),
    ("stream-node-max-entries", &["1", "100"]),
    ("stream-node-max-bytes", &["100", "4096"]),
    ("huge-pages", &["yes", "no"]),
    ("slowlog-log-slower-than", &["0", "10000", "-1"]),
    ("slowlog-max-len", &["1", "128", "10000"]),
    ("latency-monitor-threshold", &["0", "1"]),
    ("latency-tracking", &["yes", "no"]),
    ("lfu-decay-time", &["0", "1"]),
    ("lazyfree-lazy-user-del", &["yes", "no"]),
    ("lazyfree-lazy-user-flush", &["yes", "no"]),
    ("maxclients", &["400", "500", "600"]),
    ("proto-max-bulk-len", &["1mb", "512mb"]),
    ("loglevel", &["notice", "debug", "warning"]),
];

fn settings(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    for _ in 0..1 + hostile.random.below(10) {
        let (name, values) = SETTINGS[hostile.random.below(SETTINGS.len() as u64) as usize];
        let value = hostile.pick(values);
        client.call(&["CONFIG", "SET", name, value])?;
    }
    client.call(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru", "no-such-setting", "1"])?;
    client.call(&["CONFIG", "GET", "*"]).map(drop)
}

fn rewrite(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    client.call(&["CONFIG", "REWRITE"])?;
    client.call(&["CONFIG", "RESETSTAT"]).map(drop)
}

/// A long pipeline whose replies are read only when all of it is sent, or never.
fn flood(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let db = request(&["SELECT", &(OWN_DBS.start + hostile.random.below(8)).to_string()]);
    let count = 1 + hostile.random.below(50_000) as usize;
    let one = match hostile.random.below(4) {
        0 => request(&["PING"]),
        1 => request(&["INCR", "counter"]),
        2 => request(&["RPUSH", "long", "element"]),
        _ => b"SET inline value\r\n".to_vec(),
    };
    let mut socket = hostile.socket()?;
    socket.write_all(&db)?;
    socket.write_all(&one.repeat(count))?;
    if hostile.random.below(3) == 0 {
        return Ok(());
    }
    socket.shutdown(std::net::Shutdown::Write)?;
    io::copy(&mut socket.take(100_000_000), &mut io::sink()).map(drop)
}

fn debug(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    let words: [&[&str]; 15] = [
        &["DEBUG", "SLEEP", "0.02"],
        &["DEBUG", "HTSTATS", "0"],
        &["DEBUG", "HTSTATS", "9", "full"],
        &["DEBUG", "OBJECT", "counter"],
        &["DEBUG", "POPULATE", "2000", "populated", "100"],
        &["DEBUG", "STRINGMATCH-TEST"],
        &["DEBUG", "CHANGE-REPL-ID"],
        &["DEBUG", "ERROR", "WRONG on purpose"],
        &["DEBUG", "LOG", "a line"],
        &["DEBUG", "CLIENT-EVICTION"],
        &["DEBUG", "PROTOCOL", "attrib"],
        &["DEBUG", "DIGEST-VALUE", "long", "set"],
        &["DEBUG", "QUICKLIST", "long", "1"],
        &["DEBUG", "RESTLESS"],
        &["DEBUG", "NO-SUCH-WORD"],
    ];
    let word = words[hostile.random.below(words.len() as u64) as usize];
    client.call(word)?;
    if hostile.random.below(4) == 0 {
        client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])?;
        client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "1"])?;
    }
    Ok(())
}

fn flush(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let how = hostile.pick(&["ASYNC", "SYNC"]);
    hostile.client()?.call(&["FLUSHDB", how]).map(drop)
}

fn swap(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut db = || (OWN_DBS.start + hostile.random.below(8)).to_string();
    let (a, b) = (db(), db());
    hostile.client()?.call(&["SWAPDB", &a, &b]).map(drop)
}

/// A monitor that reads a little of what it asked to see, or nothing.
fn monitor(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    client.call(&["MONITOR"])?;
    for _ in 0..hostile.random.below(100) {
        client.receive()?;
    }
    hostile.wait(400);
    Ok(())
}

fn fill(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut client = hostile.client()?;
    let text = vec![b'q'; hostile.random.below(1_000_000) as usize];
    client.call(&[&b"SET"[..], b"large", &text, b"EX", b"20"])?;
    client.call(&["SETRANGE", "far", "3000000", "x"])?;
    client.call(&["EXPIRE", "far", "5"])?;
    for n in 0..hostile.random.below(300) {
        let word = hostile.random.next_u64().to_string();
        client.call(&["SADD", "set", &word, &n.to_string()])?;
        client.call(&["HSET", "hash", &word, &word])?;
        client.call(&["ZADD", "sorted", &n.to_string(), &word])?;
        client.call(&["XADD", "stream", "*", "field", &word])?;
        client.call(&["HPEXPIRE", "hash", "50", "FIELDS", "1", &word])?;
    }
    for key in ["set", "hash", "sorted", "stream", "long", "counter", "inline", "k"] {
        client.call(&["EXPIRE", key, "30"])?;
    }
    Ok(())
}

/// Asks for replies of many megabytes.
fn large_replies(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mget = [&["MGET"][..], &["large"; 300]].concat();
    let words: [&[&str]; 10] = [
        &mget,
        &["SRANDMEMBER", "set", "-1000000"],
        &["HRANDFIELD", "hash", "-500000", "WITHVALUES"],
        &["ZRANDMEMBER", "sorted", "-500000", "WITHSCORES"],
        &["LRANGE", "long", "0", "-1"],
        &["SORT", "long", "ALPHA", "GET", "*", "GET", "#"],
        &["SORT", "set", "BY", "nosort", "GET", "#", "STORE", "sorted-list"],
        &["XRANGE", "stream", "-", "+"],
        &["KEYS", "*"],
        &["SUNION", "set", "set", "set"],
    ];
    let word = words[hostile.random.below(words.len() as u64) as usize];
    let mut client = hostile.client()?;
    client.send(word)?;
    if hostile.random.below(2) == 0 {
        hostile.wait(500);
        return Ok(());
    }
    let mut socket = hostile.socket()?;
    socket.write_all(&request(&["SELECT", &(OWN_DBS.start + hostile.random.below(8)).to_string()]))?;
    socket.write_all(&request(word))?;
    socket.shutdown(std::net::Shutdown::Write)?;
    io::copy(&mut socket.take(200_000_000), &mut io::sink()).map(drop)
}

/// HELLO, AUTH, RESET, QUIT and CLIENT in any order.
fn strange_connections(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let words: [&[&str]; 14] = [
        &["HELLO", "3"],
        &["HELLO", "2", "SETNAME", "hostile"],
        &["HELLO", "9"],
        &["AUTH", "x"],
        &["AUTH", "default", "x"],
        &["RESET"],
        &["CLIENT", "REPLY", "SKIP"],
        &["CLIENT", "NO-TOUCH", "ON"],
        &["CLIENT", "INFO"],
        &["CLIENT", "UNBLOCK", "1"],
        &["WAIT", "1", "20"],
        &["SELECT", "9"],
        &["COMMAND", "DOCS"],
        &["QUIT"],
    ];
    let mut socket = hostile.socket()?;
    for _ in 0..hostile.random.below(30) {
        let word = words[hostile.random.below(words.len() as u64) as usize];
        socket.write_all(&request(word))?;
    }
    socket.shutdown(std::net::Shutdown::Write)?;
    io::copy(&mut socket.take(10_000_000), &mut io::sink()).map(drop)
}

/// Clients that wait, are paused or have long replies to come, and leave.
fn leave_early(hostile: &mut Hostile<'_>) -> io::Result<()> {
    let mut clients = Vec::new();
    for _ in 0..1 + hostile.random.below(20) {
        let mut client = hostile.client()?;
        let word: &[&str] = match hostile.random.below(3) {
            0 => &["WAIT", "3", "0"],
            1 => &["LRANGE", "long", "0", "-1"],
            _ => &["CLIENT", "LIST"],
        };
        client.send(word)?;
        clients.push(client);
    }
    let told: Option<&mut RespClient> = clients.first_mut();
    if let Some(Value::Null(_)) = told.and_then(|client| client.call(&["GET", "k"]).ok()) {
        hostile.wait(50);
    }
    Ok(())
}
