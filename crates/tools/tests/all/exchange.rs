//! Files that go from server to server: dump files and append-only files of redis-server 7.0, of Redis 8.0.2
//! and of Valkey 8.1.1 with all types in all encodings, loaded by Sardine, and Sardine's loaded by them. What
//! is there must be the same: by DEBUG DIGEST-VALUE, by DUMP where a value has one form alone, by deadlines,
//! groups and libraries; and each has to find the other's files good (`sardine check`, `redis-check-rdb`,
//! `redis-check-aof`).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use base::random::Random;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use testkit::redis_server::skip_without;
use testkit::resp_client::{Address, RespClient};
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

/// A server that others have written.
#[derive(Clone, Copy)]
struct Peer {
    name: &'static str,
    program: &'static str,
    /// Whether fields of hashes have deadlines there.
    has_timed_fields: bool,
    /// Whether encodings are named, and scores written by DEBUG DIGEST-VALUE, as here.
    is_specification: bool,
    /// Whether entries of streams say when consumers were active, so that DUMP has another form.
    is_7_0: bool,
}

const PEERS: [Peer; 3] = [
    Peer {
        name: "redis-server 7.0",
        program: "redis-server",
        has_timed_fields: false,
        is_specification: false,
        is_7_0: true,
    },
    Peer {
        name: "Redis 8.0.2",
        program: concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/redis-8.0.2/redis-server"),
        has_timed_fields: true,
        is_specification: true,
        is_7_0: false,
    },
    Peer {
        name: "Valkey 8.1.1",
        program: concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/valkey-8.1.1/valkey-server"),
        has_timed_fields: false,
        is_specification: false,
        is_7_0: false,
    },
];

const SARDINE: &str = env!("CARGO_BIN_EXE_sardine");

/// The peers of this machine.
fn peers() -> impl Iterator<Item = Peer> {
    PEERS.into_iter().filter(|peer| {
        let is_there = Command::new(peer.program).arg("--version").stdout(Stdio::null()).status().is_ok();
        // Not every machine has the unpacked ones, and none must.
        if !is_there && peer.program == "redis-server" {
            skip_without(peer.program);
        }
        is_there
    })
}

/// A server in a folder.
struct Server {
    child: Child,
    client: RespClient,
}

impl Server {
    fn start(program: &str, folder: &Path, options: &[&str]) -> Server {
        let log = fs::File::create(folder.join("out")).unwrap();
        let mut command = Command::new(program);
        command.current_dir(folder).env_remove("NOTIFY_SOCKET").stdout(log).args(options);
        command.args(["--port", "0", "--unixsocket", "s", "--save", "", "--enable-debug-command", "local"]);
        let mut child = command.spawn().unwrap();
        let address = Address::Unix(folder.join("s"));
        for _ in 0..3000 {
            if let Ok(mut client) = RespClient::connect(&address)
                && let Ok(Value::Line(b'+', _)) = client.call(&["PING"])
            {
                return Server { child, client };
            }
            assert!(child.try_wait().unwrap().is_none(), "{program}: {}", out(folder));
            sleep(Duration::from_millis(10));
        }
        panic!("{program} does not answer: {}", out(folder));
    }

    fn call(&mut self, words: &[&[u8]]) -> Value {
        self.client.call(words).unwrap()
    }

    fn told(&mut self, line: &str) -> Value {
        let told = self.client.call(&line.split(' ').collect::<Vec<_>>()).unwrap();
        if let Value::Line(b'-', why) = &told {
            panic!("{line}: {}", String::from_utf8_lossy(why));
        }
        told
    }

    /// Begins the append-only file anew.
    fn rewrite(&mut self) {
        self.told("BGREWRITEAOF");
        for _ in 0..3000 {
            let info = self.told("INFO persistence");
            let info = String::from_utf8_lossy(info.text().unwrap()).into_owned();
            if info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0") {
                assert!(info.contains("aof_last_bgrewrite_status:ok"));
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("the file does not begin anew");
    }

    /// Ends it by a signal, once all that it was told is on the disk.
    fn stop(mut self) {
        let _ = self.client.call(&["SHUTDOWN"]);
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn out(folder: &Path) -> String {
    fs::read_to_string(folder.join("out")).unwrap_or_default()
}

fn noise(len: usize, random: &mut Random) -> Vec<u8> {
    (0..len).map(|_| random.next_u64() as u8).collect()
}

/// Strings: integers of every width, embedded, raw, compressed, not to be compressed, empty, any bytes.
fn strings(random: &mut Random, add: &mut dyn FnMut(&[&[u8]])) {
    for (n, text) in
        ["0", "-1", "127", "-32768", "70000", "-2147483649", "9223372036854775807", "3.25", "", "01"]
            .into_iter()
            .enumerate()
    {
        add(&[b"SET", format!("string:{n}").as_bytes(), text.as_bytes()]);
    }
    for len in [1, 20, 44, 45, 63, 64, 5_000, 70_000] {
        add(&[b"SET", format!("string:same:{len}").as_bytes(), &b"ab".repeat(len / 2 + 1)]);
        add(&[b"SET", format!("string:noise:{len}").as_bytes(), &noise(len, random)]);
    }
    add(&[b"SETBIT", b"bits", b"5000", b"1"]);
    for n in 0..3_000 {
        let visitor = format!("visitor:{n}");
        add(&[b"PFADD", if n < 20 { b"visits:sparse" } else { b"visits:dense" }, visitor.as_bytes()]);
    }
}

/// Requests that make data of every type, in every encoding that Redis has for it.
fn filling(peer: Peer) -> Vec<Vec<Vec<u8>>> {
    let mut random = Random::new(15);
    let mut all: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut add = |words: &[&[u8]]| all.push(words.iter().map(|word| word.to_vec()).collect());
    strings(&mut random, &mut add);
    // One listpack, several nodes, and elements that have a node each; sets of integers of every width; and
    // so on, up to what is beyond each limit.
    for (name, count) in [("small", 5), ("edge", 128), ("large", 1_500)] {
        for n in 0..count {
            let (number, text) = (n.to_string(), format!("element {n} {}", "x".repeat(n % 50)));
            let words =
                |verb: &str, kind: &str| (verb.as_bytes().to_vec(), format!("{kind}:{name}").into_bytes());
            let (verb, key) = words("RPUSH", "list");
            add(&[&verb, &key, text.as_bytes(), number.as_bytes()]);
            let (verb, key) = words("SADD", "set");
            add(&[&verb, &key, text.as_bytes()]);
            let (verb, key) = words("SADD", "numbers");
            add(&[&verb, &key, number.as_bytes()]);
            let (verb, key) = words("HSET", "hash");
            add(&[&verb, &key, text.as_bytes(), number.as_bytes()]);
            let (verb, key) = words("ZADD", "zset");
            let score = if n % 2 == 0 { format!("{n}") } else { format!("{n}.5") };
            add(&[&verb, &key, score.as_bytes(), text.as_bytes()]);
            let (verb, key) = words("XADD", "stream");
            let id = format!("{}-{}", 1 + n / 3, 1 + n % 3);
            match n % 4 {
                0 => {
                    add(&[&verb, &key, id.as_bytes(), b"other", text.as_bytes(), b"more", number.as_bytes()])
                }
                _ => {
                    add(&[&verb, &key, id.as_bytes(), b"field", number.as_bytes(), b"text", text.as_bytes()])
                }
            }
        }
    }
    for value in [1_i64, 300, 70_000, 1 << 40] {
        add(&[b"SADD", format!("integers:{value}").as_bytes(), value.to_string().as_bytes(), b"-7"]);
    }
    add(&[b"RPUSH", b"list:plain", b"before", &noise(90_000, &mut random), &b"y".repeat(90_000), b"behind"]);
    add(&[b"HSET", b"hash:long", b"field", &b"z".repeat(100), b"other", b"1"]);
    add(&[b"SADD", b"set:long", &b"z".repeat(100), b"1"]);
    add(&[b"ZADD", b"zset:long", b"1", &b"z".repeat(100), b"2", b"1"]);
    add(&[b"ZADD", b"zset:ends", b"inf", b"a", b"-inf", b"b", b"-3", b"c", b"100", b"d"]);
    let mut lines = LINES.to_vec();
    if peer.is_specification {
        lines.push("ZADD zset:scores 0.1 a 1000000000 f 1e300 b 5e-324 c -0 d 3.0000000000000004 e");
    }
    if peer.has_timed_fields {
        lines.extend(TIMED);
        for n in 0..600 {
            add(&[b"HSET", b"timed:large", format!("f{n}").as_bytes(), b"v"]);
            let at = (33_000_000_000_000_u64 + n).to_string();
            add(&[b"HPEXPIREAT", b"timed:large", at.as_bytes(), b"FIELDS", b"1", format!("f{n}").as_bytes()]);
        }
    }
    all.extend(lines.iter().map(|line| line.split(' ').map(|word| word.as_bytes().to_vec()).collect()));
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    all.push(["FUNCTION", "LOAD", library].map(|word| word.as_bytes().to_vec()).into());
    all
}

/// Groups, what they have given to whom, entries that are gone; places; deadlines; other databases.
const LINES: [&str; 28] = [
    "XDEL stream:large 5-1 5-2 100-1",
    "XTRIM stream:edge MAXLEN 100",
    "XGROUP CREATE stream:large first 0",
    "XGROUP CREATE stream:large second 50-1 ENTRIESREAD 147",
    "XGROUP CREATE stream:empty group $ MKSTREAM",
    "XGROUP CREATE stream:gone group 0 MKSTREAM",
    "XREADGROUP GROUP first alice COUNT 40 STREAMS stream:large >",
    "XREADGROUP GROUP first bob COUNT 3 STREAMS stream:large >",
    "XREADGROUP GROUP second carol COUNT 5 STREAMS stream:large >",
    "XGROUP CREATECONSUMER stream:large second idle",
    "XACK stream:large first 1-1 1-2 2-1",
    "XCLAIM stream:large first bob 0 3-1 TIME 1700000000000 RETRYCOUNT 7 JUSTID",
    "XADD stream:gone 7-7 a b",
    "XDEL stream:gone 7-7",
    "XSETID stream:gone 9-9 ENTRIESADDED 12 MAXDELETEDID 7-7",
    "GEOADD places 13.361389 38.115556 Palermo 15.087269 37.502669 Catania",
    "PEXPIREAT string:1 33000000000123",
    "PEXPIREAT list:small 33000000000000",
    "PEXPIREAT hash:large 33000000000001",
    "PEXPIREAT zset:large 33000000000002",
    "PEXPIREAT stream:small 33000000000003",
    "COPY set:large set:copied DB 3",
    "COPY zset:edge zset:copied DB 15",
    "SET string:gone v PX 1",
    "COPY hash:edge hash:copied DB 3",
    "LSET list:large 700 changed",
    "LTRIM list:edge 3 -4",
    "HDEL hash:small nothing",
];
const TIMED: [&str; 5] = [
    "HSET timed:small a 1 b 2 c 3",
    "HPEXPIREAT timed:small 33000000000000 FIELDS 1 b",
    "HPEXPIREAT timed:small 33000000000005 FIELDS 1 a",
    "HSET timed:one a 1",
    "HPEXPIREAT timed:one 33000000000007 FIELDS 1 a",
];

/// What is compared of a key.
#[derive(Debug, PartialEq)]
struct Seen {
    key: String,
    encoding: String,
    digest: Value,
    deadline: Value,
    /// Where a value has one form alone.
    dump: Option<Vec<u8>>,
    more: Vec<Value>,
}

const DATABASES: [&str; 3] = ["0", "3", "15"];

/// All that is there. What is compressed may be so in other bytes, so it is not while DUMP is asked for.
fn look(server: &mut Server, peer: Peer) -> Vec<Seen> {
    let mut all = Vec::new();
    server.told("CONFIG SET rdbcompression no");
    for db in DATABASES {
        server.told(&format!("SELECT {db}"));
        let Value::Aggregate(_, keys) = server.told("KEYS *") else { panic!("KEYS gives a list") };
        let mut keys: Vec<Vec<u8>> = keys.iter().map(|key| key.text().unwrap().to_vec()).collect();
        keys.sort();
        all.extend(keys.iter().map(|key| look_at(server, peer, (db, key))));
    }
    server.told("SELECT 0");
    server.told("CONFIG SET rdbcompression yes");
    all
}

fn look_at(server: &mut Server, peer: Peer, (db, key): (&str, &[u8])) -> Seen {
    let text = |value: Value| String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned();
    let encoding = text(server.call(&[b"OBJECT", b"ENCODING", key]));
    let (name, kind) = (String::from_utf8_lossy(key).into_owned(), text(server.call(&[b"TYPE", key])));
    let digest = server.call(&[b"DEBUG", b"DIGEST-VALUE", key]);
    // Tables and sets have any order, and so have listpacks of hashes here, but for short ones; long lists
    // have nodes of any length, and streams say more in later versions.
    let has_one_form = match (kind.as_str(), encoding.as_str()) {
        ("stream", _) => peer.is_7_0 && name.ends_with(":small"),
        ("string", _) | (_, "intset") | ("zset", "listpack") => true,
        (kind, _) => kind != "set" && name.ends_with(":small"),
    };
    // Behind the value stand the version and a sum.
    let dump = |value: Value| value.text().map(|bytes| bytes[..bytes.len() - 10].to_vec());
    let dump = if has_one_form { dump(server.call(&[b"DUMP", key])) } else { None };
    let mut more = Vec::new();
    if kind == "stream" {
        more.push(server.call(&[b"XINFO", b"GROUPS", key]));
        for group in ["first", "second", "group"] {
            more.push(server.call(&[b"XPENDING", key, group.as_bytes()]));
            more.push(names_of_consumers(server.call(&[b"XINFO", b"CONSUMERS", key, group.as_bytes()])));
        }
    }
    let deadline = server.call(&[b"PEXPIRETIME", key]);
    // 7.0 has other encodings of small lists and sets, Valkey other limits for strings.
    let encoding = if peer.is_specification { encoding } else { String::new() };
    Seen { key: format!("{db} {name}"), encoding, digest, deadline, dump, more }
}

/// Without the times, which pass.
fn names_of_consumers(told: Value) -> Value {
    let Value::Aggregate(mark, consumers) = told else { return told };
    let first = |consumer: Value| match consumer {
        Value::Aggregate(mark, parts) => Value::Aggregate(mark, parts.into_iter().take(4).collect()),
        other => other,
    };
    Value::Aggregate(mark, consumers.into_iter().map(first).collect())
}

fn is_same(ours: &[Seen], theirs: &[Seen], what: &str) {
    let names = |all: &[Seen]| all.iter().map(|seen| seen.key.clone()).collect::<Vec<_>>();
    assert_eq!(names(ours), names(theirs), "{what}");
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!(ours == theirs, "{what}: {}", difference(ours, theirs));
    }
}

fn difference(ours: &Seen, theirs: &Seen) -> String {
    let without = |seen: &Seen| {
        let shown = |value: &Value| value.lines().join(" ");
        let more: Vec<String> = seen.more.iter().map(shown).collect();
        let Seen { key, encoding, digest, deadline, .. } = seen;
        format!("{key} {encoding} {} {} {}", shown(digest), shown(deadline), more.join("; "))
    };
    let dump = |seen: &Seen| seen.dump.as_ref().map(|bytes| bytes.escape_ascii().to_string());
    let cut = |text: String| text.chars().take(400).collect::<String>();
    let dumps = [ours, theirs].map(|seen| cut(dump(seen).unwrap_or_default()));
    let same = if ours.dump == theirs.dump {
        String::new()
    } else {
        format!("\nDUMP {}\nDUMP {}", dumps[0], dumps[1])
    };
    format!("\n{}\n{}{same}", cut(without(ours)), cut(without(theirs)))
}

fn fill(server: &mut Server, peer: Peer) {
    server.told("CONFIG SET list-compress-depth 1");
    for words in filling(peer) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let told = server.call(&words);
        assert!(!matches!(told, Value::Line(b'-', _)), "{:?}: {told:?}", words[0].escape_ascii().to_string());
    }
    // What passes at once is gone before files are written, on each of them.
    while server.told("EXISTS string:gone").text() != Some(b"0") {
        sleep(Duration::from_millis(1));
    }
}

/// The peer's program that checks dump files or append-only files. Unpacked ones are started by a script,
/// which says under which name.
fn checker(peer: Peer, what: &str) -> Command {
    let name = Path::new(peer.program).file_name().unwrap().to_str().unwrap();
    let other = name.replace("server", &format!("check-{what}"));
    if name == peer.program {
        return Command::new(other);
    }
    let script = fs::read_to_string(peer.program).unwrap();
    let script = script.replace(&format!("--argv0 {name}"), &format!("--argv0 {other}"));
    let mut command = Command::new("sh");
    command.args(["-c", &script, peer.program]);
    command
}

fn both_find_good(peer: Peer, what: &str, file: &Path) {
    let mut ours = Command::new(SARDINE);
    ours.arg("check");
    for mut command in [ours, checker(peer, what)] {
        let output = command.arg(file).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{}, {command:?}: {text}", peer.name);
    }
}

#[test]
fn dump_files_with_all_types_and_encodings_go_from_server_to_server_and_back() {
    for peer in peers() {
        let [theirs, ours] = ["theirs", "ours"].map(|name| Scratch::new(name).unwrap());
        let mut server = Server::start(peer.program, theirs.path(), &[]);
        fill(&mut server, peer);
        let there = look(&mut server, peer);
        server.told("SAVE");
        both_find_good(peer, "rdb", &theirs.path().join("dump.rdb"));
        fs::copy(theirs.path().join("dump.rdb"), ours.path().join("dump.rdb")).unwrap();

        let mut sardine = Server::start(SARDINE, ours.path(), &["--worker-threads", "3"]);
        sardine.told("CONFIG SET list-compress-depth 1");
        is_same(&look(&mut sardine, peer), &there, &format!("{}: what it wrote, loaded here", peer.name));
        assert_eq!(sardine.told("FCALL f 0"), Value::Line(b':', b"1".to_vec()));
        sardine.told("SAVE");
        both_find_good(peer, "rdb", &ours.path().join("dump.rdb"));

        server.told("FLUSHALL");
        server.told("FUNCTION FLUSH");
        fs::copy(ours.path().join("dump.rdb"), theirs.path().join("dump.rdb")).unwrap();
        server.told("DEBUG RELOAD NOSAVE");
        is_same(&look(&mut server, peer), &there, &format!("{}: what we wrote, loaded there", peer.name));
        assert_eq!(server.told("FCALL f 0"), Value::Line(b':', b"1".to_vec()));

        // Data that was made here goes there as well.
        sardine.told("FLUSHALL");
        sardine.told("FUNCTION FLUSH");
        fill(&mut sardine, peer);
        let here = look(&mut sardine, peer);
        sardine.told("SAVE");
        fs::copy(ours.path().join("dump.rdb"), theirs.path().join("dump.rdb")).unwrap();
        server.told("DEBUG RELOAD NOSAVE");
        is_same(&look(&mut server, peer), &here, &format!("{}: what was made here", peer.name));
    }
}

#[test]
fn payloads_of_dump_go_from_server_to_server_and_back() {
    for peer in peers() {
        let [theirs, ours] = ["theirs", "ours"].map(|name| Scratch::new(name).unwrap());
        let mut server = Server::start(peer.program, theirs.path(), &[]);
        let mut sardine = Server::start(SARDINE, ours.path(), &[]);
        fill(&mut server, peer);
        sardine.told("CONFIG SET list-compress-depth 1");
        let there = look(&mut server, peer);
        give_all(&mut server, &mut sardine);
        is_same(&look(&mut sardine, peer), &there, &format!("{}: its payloads, restored here", peer.name));
        server.told("FLUSHALL");
        give_all(&mut sardine, &mut server);
        is_same(&look(&mut server, peer), &there, &format!("{}: our payloads, restored there", peer.name));
    }
}

/// Every key goes over by DUMP and RESTORE.
fn give_all(from: &mut Server, to: &mut Server) {
    for db in DATABASES {
        from.told(&format!("SELECT {db}"));
        to.told(&format!("SELECT {db}"));
        let Value::Aggregate(_, keys) = from.told("KEYS *") else { panic!("KEYS gives a list") };
        for key in keys.iter().map(|key| key.text().unwrap()) {
            let payload = from.call(&[b"DUMP", key]);
            let deadline = from.call(&[b"PEXPIRETIME", key]);
            let at = deadline.text().filter(|text| *text != b"-1").unwrap_or(b"0");
            let told = to.call(&[b"RESTORE", key, at, payload.text().unwrap(), b"ABSTTL"]);
            assert_eq!(told, Value::Line(b'+', b"OK".to_vec()), "{}", key.escape_ascii());
        }
    }
}

#[test]
fn append_only_files_with_all_types_go_from_server_to_server_and_back() {
    for (peer, preamble) in peers().flat_map(|peer| ["yes", "no"].map(|preamble| (peer, preamble))) {
        let folder = Scratch::new("append").unwrap();
        let options = ["--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
        let manifest = folder.path().join("appendonlydir/appendonly.aof.manifest");
        let what = format!("{}, aof-use-rdb-preamble {preamble}", peer.name);
        let mut server = Server::start(peer.program, folder.path(), &options);
        fill(&mut server, peer);
        server.rewrite();
        server.told("RPUSH list:behind 1 2 3");
        let there = look(&mut server, peer);
        server.stop();
        both_find_good(peer, "aof", &manifest);
        let options = [&options[..], &["--list-compress-depth", "1"]].concat();
        let mut sardine = Server::start(SARDINE, folder.path(), &options);
        is_same(&look(&mut sardine, peer), &there, &format!("{what}: its file, loaded here"));
        sardine.rewrite();
        sardine.told("RPUSH list:behind 4");
        let here = look(&mut sardine, peer);
        sardine.stop();
        both_find_good(peer, "aof", &manifest);
        let mut server = Server::start(peer.program, folder.path(), &options);
        is_same(&look(&mut server, peer), &here, &format!("{what}: our file, loaded there"));
        server.stop();
    }
}
