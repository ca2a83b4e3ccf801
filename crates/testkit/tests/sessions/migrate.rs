//! MIGRATE, with one worker: what others see of keys that are on their way, what becomes of these when the
//! other server hangs, leaves or refuses some, and keys that go to a real redis-server and come back.
//!
//! The other server is this test where it is to do what no server does.
#![allow(clippy::disallowed_methods, reason = "its servers are threads")]
use server::{Appending, Config};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use testkit::in_process::InProcess;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::{Address, RespClient};
use testkit::resp_value::Value;

/// No test waits for so many milliseconds.
const LONG: &str = "100000";
const OK: &str = "+OK\r\n";

fn server() -> InProcess {
    InProcess::start(Config { worker_threads: 1, ..InProcess::config() })
}

fn call(client: &mut RespClient, request: &str) -> Value {
    client.call(&request.split(' ').collect::<Vec<_>>()).unwrap()
}

/// The words of a value, nested ones behind one another.
fn words_of(value: &Value) -> Vec<String> {
    match value {
        Value::Aggregate(_, values) => values.iter().flat_map(words_of).collect(),
        other => vec![String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned()],
    }
}

fn say(client: &mut RespClient, request: &str) -> String {
    words_of(&call(client, request)).join(" ")
}

/// The server that keys are sent to, in the hands of a test.
struct Target {
    listener: TcpListener,
    stream: Option<TcpStream>,
    pending: Vec<u8>,
}

impl Target {
    fn new() -> Target {
        Target { listener: TcpListener::bind("127.0.0.1:0").unwrap(), stream: None, pending: Vec::new() }
    }

    fn port(&self) -> u16 {
        self.listener.local_addr().unwrap().port()
    }

    fn accept(&mut self) {
        self.stream = Some(self.listener.accept().unwrap().0);
    }

    /// The name and the key, or first argument, of the next request.
    fn request(&mut self) -> String {
        loop {
            if let Some((value, len)) = Value::parse(&self.pending).unwrap() {
                self.pending.drain(..len);
                return words_of(&value)[..2].join(" ");
            }
            let mut chunk = [0; 4096];
            let count = self.stream.as_mut().unwrap().read(&mut chunk).unwrap();
            assert_ne!(count, 0, "it sends more");
            self.pending.extend_from_slice(&chunk[..count]);
        }
    }

    fn answer(&mut self, text: &str) {
        self.stream.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn close(&mut self) {
        self.stream = None;
    }
}

/// Sends a MIGRATE of these keys, and returns when the target has them and has not answered.
fn begin(client: &mut RespClient, target: &mut Target, keys: &str) {
    let request = format!("MIGRATE 127.0.0.1 {} _ 0 {LONG} KEYS {keys}", target.port());
    let words: Vec<&str> = request.split(' ').map(|word| if word == "_" { "" } else { word }).collect();
    client.send(&words).unwrap();
    target.accept();
    assert_eq!(target.request(), "SELECT 0");
    for key in keys.split(' ') {
        assert_eq!(target.request(), format!("RESTORE {key}"));
    }
}

#[test]
fn whoever_names_a_key_on_its_way_waits_and_nobody_else() {
    let (server, mut target) = (server(), Target::new());
    let mut clients: Vec<RespClient> = (0..6).map(|_| server.client().unwrap()).collect();
    let [mover, reader, writer, transaction, two, other] = &mut clients[..] else { panic!("six") };
    say(other, "MSET k v free 1");
    say(transaction, "MULTI");
    say(transaction, "INCR free");
    say(transaction, "APPEND k x");
    begin(mover, &mut target, "k");
    reader.send(&["GET", "k"]).unwrap();
    writer.send(&["SET", "k", "new", "NX"]).unwrap();
    transaction.send(&["EXEC"]).unwrap();
    two.send(&["MGET", "free", "k"]).unwrap();
    for _ in 0..100 {
        assert_eq!(say(other, "INCRBY free 0"), "1", "others go on");
    }
    assert!(clients[..5].iter_mut().all(|client| client.try_receive().unwrap().is_none()));
    target.answer(&format!("{OK}{OK}"));
    let [mover, reader, writer, transaction, two, other] = &mut clients[..] else { panic!("six") };
    assert_eq!(words_of(&mover.receive().unwrap()), ["OK"]);
    assert_eq!(words_of(&writer.receive().unwrap()), ["OK"], "the key is not there any more");
    reader.receive().unwrap();
    transaction.receive().unwrap();
    two.receive().unwrap();
    assert_eq!(say(other, "DBSIZE"), "2");
}

#[test]
fn a_target_that_leaves_before_it_answers_gets_nothing() {
    let (server, mut target) = (server(), Target::new());
    let mut client = server.client().unwrap();
    say(&mut client, "MSET a 1 b 2 c 3");
    begin(&mut client, &mut target, "a b c");
    // One is there; of the second it is not known.
    target.answer(&format!("{OK}{OK}+O"));
    target.close();
    let failed = "IOERR error or timeout reading to target instance";
    assert_eq!(words_of(&client.receive().unwrap()), [failed]);
    assert_eq!(say(&mut client, "MGET a b c"), " 2 3");
    assert_eq!(say(&mut client, "SET b 4"), "OK", "it is not held back any more");
}

#[test]
fn what_the_target_refuses_stays_and_the_first_reason_is_told() {
    let (server, mut target) = (server(), Target::new());
    let mut client = server.client().unwrap();
    say(&mut client, "MSET a 1 b 2 c 3 d 4");
    begin(&mut client, &mut target, "a b c d");
    target.answer(&format!("{OK}{OK}-BUSYKEY taken\r\n{OK}-ERR other\r\n"));
    assert_eq!(
        words_of(&client.receive().unwrap()),
        ["ERR Target instance replied with error: BUSYKEY taken"]
    );
    assert_eq!(say(&mut client, "MGET a b c d"), " 2  4");
    // No database is taken for selected after that, and the connection is kept.
    assert_eq!(words_of(&call(&mut client, "INFO stats"))[0].matches("migrate_cached_sockets:1").count(), 1);
    client.send(&["MIGRATE", "127.0.0.1", &target.port().to_string(), "b", "0", LONG]).unwrap();
    assert_eq!((target.request(), target.request()), ("SELECT 0".into(), "RESTORE b".into()));
    target.answer("-ERR DB index is out of range\r\n+OK\r\n");
    let told = words_of(&client.receive().unwrap());
    assert_eq!(told, ["ERR Target instance replied with error: ERR DB index is out of range"]);
    assert_eq!(say(&mut client, "GET b"), "2");
}

#[test]
fn a_connection_that_was_kept_and_has_ended_is_replaced() {
    let (server, mut target) = (server(), Target::new());
    let mut client = server.client().unwrap();
    say(&mut client, "MSET a 1 b 2");
    begin(&mut client, &mut target, "a");
    target.answer(&format!("{OK}{OK}"));
    assert_eq!(words_of(&client.receive().unwrap()), ["OK"]);
    target.stream.as_ref().unwrap().shutdown(Shutdown::Both).unwrap();
    begin(&mut client, &mut target, "b");
    target.answer(&format!("{OK}{OK}"));
    assert_eq!(words_of(&client.receive().unwrap()), ["OK"]);
    assert_eq!(say(&mut client, "DBSIZE"), "0");
}

#[test]
fn a_key_that_changes_all_the_same_is_not_deleted() {
    let (server, mut target) = (server(), Target::new());
    let (mut mover, mut waiter, mut other) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    say(&mut other, "RPUSH k 1");
    // It is served by a push to another key.
    waiter.send(&["BLMOVE", "source", "k", "LEFT", "RIGHT", "0"]).unwrap();
    while !say(&mut other, "INFO clients").contains("blocked_clients:1") {}
    begin(&mut mover, &mut target, "k");
    say(&mut other, "RPUSH source 2");
    assert_eq!(words_of(&waiter.receive().unwrap()), ["2"]);
    target.answer(&format!("{OK}{OK}"));
    let told = words_of(&mover.receive().unwrap());
    assert_eq!(told, ["IOERR a key was changed while it was sent: it is here and in the target instance"]);
    assert_eq!(say(&mut other, "LRANGE k 0 -1"), "1 2");
    // What is gone need not be deleted.
    begin_again(&mut mover, &mut target);
    say(&mut other, "FLUSHALL");
    target.answer(OK);
    assert_eq!(words_of(&mover.receive().unwrap()), ["OK"]);
    assert_eq!(say(&mut other, "DBSIZE"), "0");
}

/// By the connection that was kept.
fn begin_again(mover: &mut RespClient, target: &mut Target) {
    mover.send(&["MIGRATE", "127.0.0.1", &target.port().to_string(), "k", "0", LONG]).unwrap();
    assert_eq!(target.request(), "RESTORE k");
}

#[test]
fn whoever_watches_a_key_that_has_gone_is_told_and_a_transaction_takes_no_migration() {
    let (server, mut target) = (server(), Target::new());
    let (mut mover, mut watcher) = (server.client().unwrap(), server.client().unwrap());
    say(&mut mover, "SET k v");
    say(&mut watcher, "WATCH k");
    begin(&mut mover, &mut target, "k");
    target.answer(&format!("{OK}{OK}"));
    assert_eq!(words_of(&mover.receive().unwrap()), ["OK"]);
    say(&mut watcher, "MULTI");
    say(&mut watcher, "PING");
    assert!(matches!(call(&mut watcher, "EXEC"), Value::Null(_)), "the key has changed");
    say(&mut mover, "SET k v");
    say(&mut mover, "MULTI");
    say(&mut mover, &format!("MIGRATE 127.0.0.1 {} k 0 {LONG}", target.port()));
    assert_eq!(say(&mut mover, "EXEC"), "ERR MIGRATE is not allowed in transactions");
    assert_eq!(say(&mut mover, "GET k"), "v");
}

#[test]
fn the_append_only_file_tells_that_a_key_has_gone() {
    let append = Appending { is_wanted: true, sync: server::AppendSync::Always, ..Appending::default() };
    let server = InProcess::start(Config { worker_threads: 1, append, ..InProcess::config() });
    let mut target = Target::new();
    let mut client = server.client().unwrap();
    say(&mut client, "MSET k v other 1");
    begin(&mut client, &mut target, "k");
    target.answer(&format!("{OK}{OK}"));
    assert_eq!(words_of(&client.receive().unwrap()), ["OK"]);
    assert_eq!(say(&mut client, "DEBUG LOADAOF"), "OK");
    assert_eq!((say(&mut client, "EXISTS k"), say(&mut client, "DBSIZE")), ("0".into(), "1".into()));
}

/// Listens on a port for a server that listens on a Unix socket.
fn relay(address: &Address) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let Address::Unix(path) = address.clone() else { panic!("a Unix socket") };
    // They end with their connections, and the first with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Ok(server) = UnixStream::connect(&path) else { return };
            let (mut to, mut from) = (server.try_clone().unwrap(), server);
            let (mut there, mut back) = (stream.try_clone().unwrap(), stream);
            std::thread::spawn(move || {
                let _ = io::copy(&mut there, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || {
                let _ = io::copy(&mut from, &mut back);
                let _ = back.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

/// Keys of all types, small and large.
fn fill(client: &mut RespClient) -> Vec<String> {
    let numbers = |from: u32, to: u32| (from..to).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let pairs = |count: u32| (0..count).map(|n| format!("{n} m{n}")).collect::<Vec<_>>().join(" ");
    for (name, count) in [("small", 5), ("large", 20_000)] {
        say(client, &format!("SET string:{name} {}", "x".repeat(count as usize * 100)));
        say(client, &format!("RPUSH list:{name} {}", numbers(0, count)));
        say(client, &format!("SADD set:{name} {}", numbers(7, 7 + count)));
        say(client, &format!("ZADD zset:{name} {}", pairs(count)));
        say(client, &format!("HSET hash:{name} {}", pairs(count)));
        say(client, &format!("XADD stream:{name} 1-1 a b"));
        say(client, &format!("XADD stream:{name} 2-2 {}", pairs(count.min(400))));
        say(client, &format!("XGROUP CREATE stream:{name} g 0"));
        say(client, &format!("XREADGROUP GROUP g c COUNT 1 STREAMS stream:{name} >"));
    }
    say(client, "SET deadline v PXAT 33000000000000");
    let keys = ["string", "list", "set", "zset", "hash", "stream"].into_iter();
    let keys = keys.flat_map(|kind| [format!("{kind}:small"), format!("{kind}:large")]);
    keys.chain(["deadline".into()]).collect()
}

fn digest(client: &mut RespClient, keys: &[String]) -> String {
    say(client, &format!("DEBUG DIGEST-VALUE {}", keys.join(" ")))
}

/// To a real server and back, one by one and all at once.
fn goes_there_and_back(redis: &RedisServer) {
    // Deadlines are sent as times to live, so both servers have to tell the same time.
    let (clock, log) = (server::Clock::real(), server::Log::silent());
    let ours = server::start(Config { worker_threads: 2, ..InProcess::config() }, clock, log).unwrap();
    let mut here = RespClient::connect(&ours.addresses[0].into()).unwrap();
    let mut there = RespClient::connect(&redis.address()).unwrap();
    let port = relay(&redis.address());
    let keys = fill(&mut here);
    let before = digest(&mut here, &keys[..keys.len() - 1]);
    for key in &keys {
        assert_eq!(say(&mut here, &format!("MIGRATE 127.0.0.1 {port} {key} 0 {LONG}")), "OK", "{key}");
    }
    assert_eq!((say(&mut here, "DBSIZE"), say(&mut there, "DBSIZE")), ("0".into(), keys.len().to_string()));
    let is_near = |told: &str| told.parse::<i64>().is_ok_and(|at| (at - 33_000_000_000_000).abs() < 600_000);
    assert!(is_near(&say(&mut there, "PEXPIRETIME deadline")));
    let back = ours.addresses[0].port();
    let mut words = vec!["MIGRATE".to_string(), "127.0.0.1".into(), back.to_string(), String::new()];
    words.extend(["0", LONG, "KEYS"].map(str::to_owned));
    words.extend(keys.clone());
    assert_eq!(words_of(&there.call(&words).unwrap()), ["OK"]);
    assert_eq!(say(&mut there, "DBSIZE"), "0");
    assert_eq!(digest(&mut here, &keys[..keys.len() - 1]), before);
    assert_eq!(say(&mut here, "XPENDING stream:large g").split(' ').next(), Some("1"));
}

#[test]
fn keys_go_to_a_redis_server_and_come_back() {
    match RedisServer::installed().unwrap() {
        Some(redis) => goes_there_and_back(&redis),
        None => skip_without("redis-server"),
    }
    // Not every machine has this one, and none must.
    if let Some(redis) = RedisServer::unpacked().unwrap() {
        goes_there_and_back(&redis);
    }
}
