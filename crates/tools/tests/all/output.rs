//! What a client that reads nothing makes the process take, and what the log says of its end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use testkit::resp_client::{Address, RespClient};
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

const HARD_BYTES: u64 = 16 << 20;
/// Code that runs for the first time, a batch's buffers, and what a growing buffer leaves behind in the
/// arena.
const MARGIN_BYTES: u64 = 12 << 20;

struct Server {
    child: Child,
    log: BufReader<ChildStdout>,
    folder: Scratch,
}

impl Server {
    fn start(engine: &str, output_limit: &str) -> Server {
        let folder = Scratch::new("output").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_sardine"))
            .args(["--port", "0", "--save", "", "--worker-threads", "1", "--io-engine", engine])
            .args(["--client-output-buffer-limit", output_limit, "--unixsocket"])
            .arg(folder.path().join("socket"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stdout.take().unwrap());
        let is_ready = |line: &String| line.contains("Ready to accept connections unix");
        assert!(log.by_ref().lines().map(Result::unwrap).any(|line| is_ready(&line)));
        Server { child, log, folder }
    }

    fn client(&self) -> RespClient {
        RespClient::connect(&Address::Unix(self.folder.path().join("socket"))).unwrap()
    }

    /// "VmRSS:" now, or "VmHWM:", the most it ever was.
    fn resident_bytes(&self, field: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each request asks by few bytes for a reply far beyond the limit. The server closes the connection, so a
/// failing send is no error.
fn hostile_requests() -> Vec<Vec<u8>> {
    let request = |words: &[&str]| testkit::resp_client::request(words);
    vec![
        // Shorter strings would be written piece by piece, and a client that does not read them is only
        // paused.
        request(&[&["MGET"][..], &["large"; 200]].concat()),
        request(&["GET", "mb"]).repeat(200),
        request(&["GET", "tenth"]).repeat(2_000),
        request(&["GET", "hundredth"]).repeat(20_000),
    ]
}

fn connected(client: &mut RespClient) -> u64 {
    let Value::Blob(_, text) = client.call(&["INFO", "clients"]).unwrap() else { panic!("INFO is text") };
    let text = String::from_utf8(text).unwrap();
    text.lines().find_map(|line| line.strip_prefix("connected_clients:")).unwrap().parse().unwrap()
}

/// Asks again and again; each question takes one turn of the server's loop. What has not come after so many
/// turns does not come at all.
fn wait_until(client: &mut RespClient, what: &str, mut holds: impl FnMut(&mut RespClient) -> bool) {
    const ROUNDS: usize = 300_000;
    assert!((0..ROUNDS).any(|_| holds(client)), "{what}: not after {ROUNDS} rounds");
}

/// Sends a request whose reply nobody reads, and waits until the server has closed that connection.
fn send_until_closed(server: &Server, client: &mut RespClient, wire: &[u8]) {
    let mut reader = server.client();
    let _ = reader.send_bytes(wire);
    wait_until(client, "the client is closed", |client| connected(client) == 1);
}

#[test]
fn a_client_that_reads_nothing_takes_no_more_memory_than_its_limit() {
    for engine in ["epoll", "auto"] {
        let mut server = Server::start(engine, "normal 16mb 0 0");
        let mut client = server.client();
        let values = [("large", "5242879"), ("mb", "1048575"), ("tenth", "104857"), ("hundredth", "10485")];
        for (key, last) in values {
            client.call(&["SETRANGE", key, last, "x"]).unwrap();
        }
        let before = server.resident_bytes("VmRSS:");
        let hostile = hostile_requests();
        for wire in &hostile {
            send_until_closed(&server, &mut client, wire);
            let most = server.resident_bytes("VmHWM:") - before;
            let what = String::from_utf8_lossy(&wire[..40]).into_owned();
            assert!(most < HARD_BYTES + MARGIN_BYTES, "{most} bytes with {engine} for {what:?}");
        }
        let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
        let mut log = String::new();
        server.log.read_to_string(&mut log).unwrap();
        let end = " scheduled to be closed ASAP for overcoming of output buffer limits.";
        let told = log.lines().filter(|line| line.contains(" # Client id=") && line.ends_with(end));
        assert!(told.count() == hostile.len(), "{log}");
    }
}

/// The members, and what the reader is owed: its allowance, a piece, and the room around both.
const PIECES_BYTES_MAX: u64 = 4 << 20;

fn owed_bytes(client: &mut RespClient) -> u64 {
    let Value::Blob(_, text) = client.call(&["CLIENT", "LIST"]).unwrap() else {
        panic!("CLIENT LIST is text")
    };
    let text = String::from_utf8(text).unwrap();
    let of_line =
        |line: &str| line.split(' ').find_map(|word| word.strip_prefix("omem=")?.parse::<u64>().ok());
    text.lines().filter_map(of_line).max().unwrap()
}

#[test]
fn a_reply_without_end_takes_little_memory_where_no_limit_is_set() {
    for engine in ["epoll", "auto"] {
        let server = Server::start(engine, "normal 0 0 0");
        let mut client = server.client();
        client.call(&["SADD", "small", "a", "b"]).unwrap();
        client.call(&["HSET", "hash", "a", "1", "b", "2"]).unwrap();
        client.call(&["ZADD", "zset", "1", "a", "2", "b"]).unwrap();
        let before = server.resident_bytes("VmRSS:");
        let endless = "-1152921504606846976";
        for words in [
            ["SRANDMEMBER", "small", endless],
            ["HRANDFIELD", "hash", endless],
            ["ZRANDMEMBER", "zset", endless],
        ] {
            let mut reader = server.client();
            reader.send_bytes(&testkit::resp_client::request(&words)).unwrap();
            wait_until(&mut client, "a megabyte is owed", |client| owed_bytes(client) >= 1 << 20);
            // Nothing more comes, however many turns the server's loop takes.
            (0..10_000).for_each(|_| drop(client.call(&["PING"]).unwrap()));
            assert!(owed_bytes(&mut client) < PIECES_BYTES_MAX);
        }
        let most = server.resident_bytes("VmHWM:") - before;
        assert!(most < PIECES_BYTES_MAX + MARGIN_BYTES, "{most} bytes with {engine}");
    }
}

/// The server keeps a snapshot of each string that is still to be written.
#[test]
fn the_snapshots_of_a_long_reply_count_as_unread() {
    for engine in ["epoll", "auto"] {
        let mut server = Server::start(engine, "normal 16mb 0 0");
        let mut client = server.client();
        client.call(&["SETRANGE", "large", "2047", "x"]).unwrap();
        let wire = testkit::resp_client::request(&[&["MGET"][..], &["large"; 400_000]].concat());
        send_until_closed(&server, &mut client, &wire);
        let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
        let mut log = String::new();
        server.log.read_to_string(&mut log).unwrap();
        assert!(
            log.contains(" scheduled to be closed ASAP for overcoming of output buffer limits."),
            "{log}"
        );
    }
}

#[test]
fn a_limit_that_is_lowered_ends_whoever_is_over_it_though_nothing_more_is_sent() {
    for engine in ["epoll", "auto"] {
        for (limit, wire) in [
            ("normal 1mb 0 0", &["MGET", "large", "large"][..]),
            ("pubsub 1mb 0 0", &["SUBSCRIBE", "c"]),
            ("pubsub 0 1mb 1", &["SUBSCRIBE", "c"]),
        ] {
            let server = Server::start(engine, "normal 0 0 0 pubsub 0 0 0");
            let mut client = server.client();
            client.call(&["SETRANGE", "large", "10485759", "x"]).unwrap();
            let mut reader = server.client();
            reader.send_bytes(&testkit::resp_client::request(wire)).unwrap();
            let message = "x".repeat(1 << 20);
            if wire[0] == "SUBSCRIBE" {
                wait_until(&mut client, "somebody listens", |client| {
                    client.call(&["PUBLISH", "c", "x"]).unwrap() == Value::Line(b':', b"1".to_vec())
                });
                (0..20).for_each(|_| drop(client.call(&["PUBLISH", "c", &message]).unwrap()));
            }
            wait_until(&mut client, "megabytes are owed", |client| owed_bytes(client) > 2 << 20);
            client.call(&["CONFIG", "SET", "client-output-buffer-limit", limit]).unwrap();
            wait_until(&mut client, "the client is closed", |client| connected(client) == 1);
        }
    }
}
