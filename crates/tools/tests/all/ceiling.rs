//! `maxmemory` in a process of its own: no other test changes what it counts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::resp_client::{Address, RespClient, request};
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

struct Server {
    child: Child,
    folder: Scratch,
}

impl Server {
    fn start(args: &[&str]) -> Server {
        let folder = Scratch::new("ceiling").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_sardine"))
            .args(["--port", "0", "--save", "", "--worker-threads", "3", "--unixsocket"])
            .arg(folder.path().join("socket"))
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(log.any(|line| line.unwrap().contains("Ready to accept connections unix")));
        Server { child, folder }
    }

    fn client(&self) -> Client {
        let address = Address::Unix(self.folder.path().join("socket"));
        Client(RespClient::connect(&address).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(RespClient);

impl Client {
    fn call(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split(' ').collect();
        self.0.call(&words).unwrap()
    }

    fn info(&mut self, section: &str, field: &str) -> u64 {
        self::field(&self.text(section), field)
    }

    fn text(&mut self, section: &str) -> String {
        let Value::Blob(_, text) = self.call(&format!("INFO {section}")) else { panic!("INFO is text") };
        String::from_utf8(text).unwrap()
    }

    fn keys(&mut self) -> u64 {
        let Value::Line(b':', text) = self.call("DBSIZE") else { panic!("DBSIZE is a number") };
        String::from_utf8(text).unwrap().parse().unwrap()
    }

    /// Bytes that count against the limit.
    fn counts(&mut self) -> u64 {
        let text = self.text("memory");
        field(&text, "used_memory") - field(&text, "mem_not_counted_for_evict")
    }

    /// Sends SETs of keys in pipelines. Returns how many were refused, all of them because memory is short.
    fn storm(&mut self, keys: std::ops::Range<u32>, value_bytes: usize, more: &[&str]) -> usize {
        let value = "x".repeat(value_bytes);
        let mut refused = 0;
        for first in keys.clone().step_by(64) {
            let wire: Vec<u8> = (first..keys.end.min(first + 64))
                .flat_map(|n| request(&[&["SET", &format!("key:{n}"), &value], more].concat()))
                .collect();
            self.0.send_bytes(&wire).unwrap();
            for _ in first..keys.end.min(first + 64) {
                match self.0.receive().unwrap() {
                    Value::Line(b'+', _) => {}
                    Value::Line(b'-', text) => {
                        assert_eq!(text, b"OOM command not allowed when used memory > 'maxmemory'.");
                        refused += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        refused
    }
}

/// A number that INFO tells.
fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

const LIMIT: u64 = 2 << 20;
/// How far workers may pass the limit between two checks, with allocations that come and go within a command:
/// each of the three may have a batch of 128 KB under way.
const MARGIN: u64 = 3 * (128 << 10);

/// Several clients write three times as much as fits. Returns the most that was counted meanwhile, and
/// how many were refused.
fn overfill(server: &Server, value_bytes: usize, more: &[&str]) -> (u64, usize) {
    let keys = (LIMIT as usize * 3 / value_bytes) as u32;
    std::thread::scope(|scope| {
        let storms: Vec<_> = (0..4)
            .map(|n| {
                scope
                    .spawn(move || server.client().storm(keys * n / 4..keys * (n + 1) / 4, value_bytes, more))
            })
            .collect();
        let mut watcher = server.client();
        let mut most = 0;
        while !storms.iter().all(|storm| storm.is_finished()) {
            most = most.max(watcher.counts());
        }
        (most.max(watcher.counts()), storms.into_iter().map(|storm| storm.join().unwrap()).sum())
    })
}

#[test]
fn a_storm_of_writes_stays_under_the_ceiling_and_is_not_refused_where_keys_may_go() {
    // With this tenacity an eviction goes on for as long as it takes, so the ceiling does not depend on how
    // busy this machine is.
    let server = Server::start(&["--maxmemory", "2mb", "--maxmemory-eviction-tenacity", "100"]);
    let mut client = server.client();
    let cases: [(&str, usize, &[&str]); 5] = [
        ("allkeys-lru", 100, &[]),
        ("allkeys-lfu", 1000, &[]),
        ("allkeys-random", 60, &[]),
        ("volatile-ttl", 100, &["EX", "1000"]),
        ("volatile-lru", 100, &["EX", "1000"]),
    ];
    for (policy, value_bytes, more) in cases {
        client.call("FLUSHALL");
        client.call(&format!("CONFIG SET maxmemory-policy {policy}"));
        let (most, refused) = overfill(&server, value_bytes, more);
        assert_eq!(refused, 0, "{policy}");
        assert!(most < LIMIT + MARGIN, "{policy}: {most} bytes");
        let now = client.counts();
        assert!(now > LIMIT - LIMIT / 8, "{policy}: evicted down to {now}");
    }
    assert!(client.info("stats", "evicted_keys") > 5000);
}

#[test]
fn without_eviction_writes_are_refused_at_the_ceiling_and_reads_and_removals_go_on() {
    let server = Server::start(&["--maxmemory", "2mb"]);
    let mut client = server.client();
    // What brings much at once makes room for much at once, where it may.
    for (value_bytes, refused_min) in [(20_000, 100), (3_000, 200), (200, 500)] {
        client.call("FLUSHALL");
        client.call("SET first value");
        let (most, refused) = overfill(&server, value_bytes, &[]);
        assert!(refused > refused_min && most < LIMIT + MARGIN, "{refused} refused, {most} bytes");
        assert_eq!(client.info("stats", "evicted_keys"), 0);
        assert_eq!(client.call("GET first"), Value::Blob(b'$', b"value".to_vec()));
    }
    // Whichever of the writers came first: some keys of each go.
    for n in (0..LIMIT * 3 / 200).step_by(4) {
        client.call(&format!("DEL key:{n}"));
    }
    assert_eq!(client.call("SET key:1 again"), Value::Line(b'+', b"OK".to_vec()));
}

/// What waits to be appended to a file is no data: no key goes for it.
#[test]
fn what_the_append_only_file_has_yet_to_take_costs_no_key() {
    const KEYS: u32 = 8000;
    let folder = Scratch::new("ceiling-append").unwrap();
    let path = folder.path().to_str().unwrap();
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru", "--appendonly", "yes", "--dir", path]);
    let mut client = server.client();
    let write_all = || {
        std::thread::scope(|scope| {
            for n in 0..4 {
                let part = KEYS * n / 4..KEYS * (n + 1) / 4;
                let server = &server;
                scope.spawn(move || assert_eq!(server.client().storm(part, 1500, &[]), 0));
            }
        });
    };
    write_all();
    let mut counts = client.counts();
    // Until the file has it all.
    let mut looks = 0;
    while client.info("persistence", "aof_buffer_length") > 0 && looks < LOOKS {
        std::thread::sleep(PAUSE);
        (counts, looks) = (client.counts(), looks + 1);
    }
    client.call(&format!("CONFIG SET maxmemory {}", counts + counts / 8));
    (0..4).for_each(|_| write_all());
    assert_eq!((client.info("stats", "evicted_keys"), client.keys()), (0, u64::from(KEYS)));
}

/// What a full disk has not taken goes with the file, also from what does not count.
#[test]
fn what_was_left_of_a_file_that_is_turned_off_does_not_raise_the_limit() {
    let folder = Scratch::new("ceiling-off").unwrap();
    let path = folder.path().to_str().unwrap();
    let words = ["--appendonly", "yes", "--enable-debug-command", "local", "--dir", path];
    let server = Server::start(&words);
    let mut client = server.client();
    client.call("DEBUG DISK FULL");
    let value = "x".repeat(20 << 20);
    // Its reply waits for the file, because the tail has no room for it.
    let mut writer = server.client();
    writer.0.send_bytes(&request(&["SET", "large", &value])).unwrap();
    let mut looks = 0;
    while client.info("memory", "mem_not_counted_for_evict") < 10 << 20 && looks < LOOKS {
        std::thread::sleep(PAUSE);
        looks += 1;
    }
    assert!(looks < LOOKS, "the file has it in its buffer");
    client.call("CONFIG SET appendonly no");
    assert_eq!(writer.0.receive().unwrap().text(), Some(&b"OK"[..]));
    client.call("FLUSHALL");
    looks = 0;
    while client.info("memory", "mem_not_counted_for_evict") > 4 << 20 && looks < LOOKS {
        std::thread::sleep(PAUSE);
        looks += 1;
    }
    assert!(looks < LOOKS, "what does not count goes with the file");
    assert_eq!(client.info("memory", "mem_aof_buffer"), 0);
}

/// What a script allocates, on whatever thread, is known to those that its client asks next.
#[test]
fn behind_a_script_that_has_passed_the_ceiling_nothing_is_written() {
    let server = Server::start(&["--maxmemory", "20mb"]);
    let mut client = server.client();
    let mut call = |words: &[&str]| client.0.call(words).unwrap();
    let script = "for i = 1, 40 do redis.call('set', 's' .. i, string.rep('y', 1000000)) end return 'ok'";
    assert_eq!(call(&["EVAL", script, "0"]), Value::Blob(b'$', b"ok".to_vec()));
    for n in 0..100 {
        let answer = call(&["SET", &format!("q:{n}"), "1"]);
        assert!(matches!(&answer, Value::Line(b'-', text) if text.starts_with(b"OOM")), "{n}: {answer:?}");
    }
}

#[test]
fn a_ceiling_set_below_what_is_used_is_reached_without_anybody_asking() {
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru"]);
    let mut client = server.client();
    assert_eq!(client.storm(0..30_000, 200, &[]), 0);
    client.call("CONFIG SET maxmemory 2mb");
    // Each count asks the server once; the client gives up long after this takes.
    while client.counts() > 2 << 20 {}
    assert!(client.counts() > 1 << 20, "not far more than needed");
    let left = client.keys();
    assert!((3000..12_000).contains(&left), "{left} keys are left");
}

#[test]
fn large_values_that_are_freed_elsewhere_neither_cost_more_keys_nor_refuse_commands() {
    let server = Server::start(&["--maxmemory", "40mb", "--maxmemory-policy", "allkeys-lru"]);
    let mut client = server.client();
    let value = "x".repeat(4 << 20);
    for n in 0..50 {
        let key = format!("large:{n}");
        let reply = client.0.call(&["SET", key.as_str(), value.as_str()]).unwrap();
        assert_eq!(reply, Value::Line(b'+', b"OK".to_vec()), "{n}");
    }
    // Where making room took its time, the last command ran before there was any: it is made afterwards.
    let mut left = client.keys();
    let mut looks = 0;
    while left > 9 && looks < LOOKS {
        std::thread::sleep(PAUSE);
        (left, looks) = (client.keys(), looks + 1);
    }
    assert!((7..=9).contains(&left), "{left} of 4 MB are left in 40");
}

#[test]
fn every_key_that_is_evicted_is_told_once() {
    const KEYS: usize = 1000;
    let server = Server::start(&["--maxmemory-policy", "allkeys-lru", "--notify-keyspace-events", "Ee"]);
    let [mut client, mut listener] = [server.client(), server.client()];
    assert_eq!(client.storm(0..KEYS as u32, 100, &[]), 0);
    listener.call("SUBSCRIBE __keyevent@0__:evicted");
    client.call("CONFIG SET maxmemory 1");
    let mut gone = BTreeSet::new();
    while gone.len() < KEYS {
        let Value::Aggregate(_, words) = listener.0.receive().unwrap() else { panic!("a message") };
        assert!(gone.insert(words[2].text().unwrap().to_vec()), "{words:?} is told again");
    }
    assert_eq!(client.keys(), 0);
}

/// The pause between two questions about something that the server does in its own time, and how many
/// questions are asked at most.
const PAUSE: Duration = Duration::from_millis(20);
const LOOKS: usize = 3000;

#[test]
fn every_worker_gives_back_what_a_large_request_took() {
    const ARGS: usize = 300_000;
    let server = Server::start(&[]);
    let mut client = server.client();
    // Connections go to the worker with the fewest, so each of the three gets some.
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.call("PING")));
    let before = client.info("memory", "used_memory");
    let many: Vec<&str> = std::iter::once("DEL").chain(std::iter::repeat_n("nothing", ARGS)).collect();
    for other in &mut clients {
        assert_eq!(other.0.call(&many).unwrap(), Value::Line(b':', b"0".to_vec()));
    }
    let mut used = 0;
    for _ in 0..LOOKS {
        used = client.info("memory", "used_memory");
        if used < before + (2 << 20) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("{used} bytes in use, {before} before");
}

#[test]
fn a_flushed_keyspace_that_is_filled_again_at_once_stays_under_the_ceiling() {
    const LIMIT: u64 = 32 << 20;
    let limit = LIMIT.to_string();
    for policy in ["noeviction", "allkeys-lru"] {
        let server = Server::start(&[
            "--maxmemory",
            &limit,
            "--maxmemory-policy",
            policy,
            "--enable-debug-command",
            "local",
        ]);
        let mut client = server.client();
        for _ in 0..3 {
            client.call("DEBUG POPULATE 150000 key 120");
            assert!(client.info("memory", "used_memory") > LIMIT / 2);
            client.call("FLUSHALL");
            // Much memory for few bytes: faster than the keys before it can be freed.
            let fill: Vec<u8> =
                (0..22).flat_map(|n| request(&["SETRANGE", &format!("large:{n}"), "999999", "x"])).collect();
            client.0.send_bytes(&fill).unwrap();
            for _ in 0..22 {
                assert_eq!(client.0.receive().unwrap(), Value::Line(b':', b"1000000".to_vec()), "{policy}");
            }
            assert_eq!(client.keys(), 22, "{policy}");
            client.call("FLUSHALL");
        }
        let peak = client.info("memory", "used_memory_peak");
        assert!(peak < LIMIT / 100 * 125, "{policy}: {peak} bytes were in use under a limit of {LIMIT}");
    }
}

/// The keys that were there before are being freed in the background, and writes wait for that.
#[test]
fn the_last_writes_of_a_client_that_leaves_while_memory_is_freed_run_when_it_is() {
    let args = ["--maxmemory", "64mb", "--worker-threads", "1", "--enable-debug-command", "local"];
    let server = Server::start(&args);
    let mut client = server.client();
    for round in 0..3 {
        client.call("DEBUG POPULATE 300000 key 120");
        let mut dead = UnixStream::connect(server.folder.path().join("socket")).unwrap();
        let fill =
            (0..45).map(|n| vec!["SETRANGE".into(), format!("large:{n}"), "999999".into(), "x".into()]);
        let last = [vec!["FLUSHALL".to_owned()]].into_iter().chain(fill);
        let wire: Vec<u8> =
            last.flat_map(|words| request(&words.iter().map(String::as_str).collect::<Vec<_>>())).collect();
        dead.write_all(&wire).unwrap();
        drop(dead);
        while client.info("clients", "connected_clients") > 1 {
            std::thread::sleep(PAUSE);
        }
        assert_eq!(client.keys(), 45, "round {round}");
        client.call("FLUSHALL");
    }
}

/// The memory that the process has had at most.
fn resident_most(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// What a cache leaves unused between its data is looked at as it fills, and not only ten times a second: a
/// fast client fills much between two of these looks.
#[test]
fn the_process_stays_near_the_ceiling_while_a_cache_fills_between_two_ticks() {
    const LIMIT: u64 = 64 << 20;
    let limit = LIMIT.to_string();
    let args = ["--maxmemory", &limit, "--worker-threads", "1", "--enable-debug-command", "local"];
    for (policy, value_bytes) in [("allkeys-lru", 400), ("allkeys-random", 200)] {
        let server = Server::start(&[&args[..], &["--maxmemory-policy", policy]].concat());
        let mut client = server.client();
        client.call("DEBUG PAUSE-CRON 1");
        let before = resident_most(&server);
        assert_eq!(client.storm(0..LIMIT as u32 * 3 / 2 / value_bytes, value_bytes as usize, &[]), 0);
        assert!(client.info("stats", "evicted_keys") > 10_000, "{policy}: the cache was full");
        let parts = (resident_most(&server) - before) * 1000 / LIMIT;
        assert!(parts < 1050, "{policy}: the process took {parts} thousandths of the limit");
    }
}

/// Subscriptions and names are no buffers: they count, and for no more than they take.
#[test]
fn what_clients_have_beside_their_buffers_counts() {
    const CLIENTS: u64 = 40;
    let server = Server::start(&["--maxmemory", "30mb"]);
    let mut asking = server.client();
    let before = asking.counts();
    let names: Vec<String> = (0..300).map(|n| format!("a-channel-of-many:{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = "n".repeat(100_000);
    let clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let mut client = server.client();
            client.call(&format!("CLIENT SETNAME {long}"));
            for command in ["SUBSCRIBE", "PSUBSCRIBE"] {
                client.0.send_bytes(&request(&[&[command], &names[..]].concat())).unwrap();
                names.iter().for_each(|_| drop(client.0.receive().unwrap()));
            }
            client
        })
        .collect();
    let uncounted = asking.info("memory", "mem_not_counted_for_evict");
    assert!(uncounted < 1 << 20, "{uncounted} bytes do not count, of clients that have read all");
    let (counted, said) = (asking.counts() - before, asking.info("memory", "mem_clients_normal"));
    assert!(counted > CLIENTS * 100_000, "names count: {counted}");
    assert!(
        said < 2 * counted && counted < 2 * said,
        "{said} bytes are said to be of clients, {counted} are"
    );
    drop(clients);
}
