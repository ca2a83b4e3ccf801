//! Replies that pass the limit on what a client may be owed: they end while they are made, and
//! their client is closed.
use crate::client::{Client, config, request, start};
use server::{Config, MemoryShare, OutputLimit, OutputLimits, Running};

const HARD_BYTES: u64 = 1 << 20;

fn limited() -> Running {
    let normal = OutputLimit { hard_bytes: HARD_BYTES, ..OutputLimit::default() };
    start(Config { client_output_buffer: OutputLimits { normal, ..OutputLimits::default() }, ..config() })
}

/// Values of all types, each of which takes about two megabytes to answer, and some that are small.
fn fill(client: &mut Client) {
    let long = "x".repeat(1000);
    let text = |n: usize| format!("{n:07}:{}", &long[..90]);
    client.send(&request(&["SETRANGE", "mb", "1048575", "x"]));
    client.expect(":1048576\r\n");
    for (command, key) in [("RPUSH", "list"), ("SADD", "set"), ("SADD", "other")] {
        for first in (0..20_000).step_by(1000) {
            let texts: Vec<String> = (first..first + 1000).map(text).collect();
            let words: Vec<&str> =
                [command, key].into_iter().chain(texts.iter().map(String::as_str)).collect();
            client.send(&request(&words));
            client.bulk();
        }
    }
    for (command, key) in [("HSET", "hash"), ("ZADD", "zset"), ("GEOADD", "places")] {
        for first in (0..20_000_usize).step_by(1000) {
            let words = (first..first + 1000).flat_map(|n| match command {
                "HSET" => vec![n.to_string(), text(n)],
                "ZADD" => vec![n.to_string(), text(n)],
                _ => vec!["13.3".into(), "38.1".into(), text(n)],
            });
            let words: Vec<String> = [command.into(), key.into()].into_iter().chain(words).collect();
            client.send(&request(&words.iter().map(String::as_str).collect::<Vec<_>>()));
            client.bulk();
        }
    }
    for n in 0..2_000 {
        client.send(&request(&["XADD", "stream", &format!("{}-1", n + 1), "field", &long]));
        client.bulk();
    }
    client.check("SADD small b 2", ":2\r\n");
    client.check("SETRANGE m2 1048575 x", ":1048576\r\n");
    client.check("XGROUP CREATE stream group 0", "+OK\r\n");
    for first in (0..20_000).step_by(1000) {
        let keys: Vec<String> = (first..first + 1000).map(text).collect();
        let words: Vec<&str> = keys.iter().flat_map(|key| [key.as_str(), "1"]).collect();
        client.send(&request(&[&["MSET"][..], &words].concat()));
        client.expect("+OK\r\n");
    }
}

/// A request that names one key many times.
fn repeated(front: &[&str], word: &str, times: usize, back: &[&str]) -> Vec<u8> {
    request(&[front, &vec![word; times], back].concat())
}

fn requests() -> Vec<Vec<u8>> {
    let lines = [
        "SRANDMEMBER set 19999",
        "HRANDFIELD hash 19999 WITHVALUES",
        "ZRANDMEMBER zset 19999",
        "GET mb",
        "GETRANGE mb 0 -1",
        "ZUNION 1 zset",
        "ZINTER 2 zset zset WITHSCORES",
        "ZDIFF 1 zset",
        "SUNION set other",
        "SINTER set other",
        "SDIFF set nothing",
        "SORT list ALPHA",
        "SORT set BY nosort GET #",
        "SORT list ALPHA GET # GET #",
        "SORT small BY nosort GET m*",
        "XREAD STREAMS stream stream 0 0",
        "XREADGROUP GROUP group consumer STREAMS stream >",
        "KEYS *",
        "SCAN 0 COUNT 1000000",
        "HSCAN hash 0 COUNT 1000000",
        "SSCAN set 0 COUNT 1000000",
        "ZSCAN zset 0 COUNT 1000000",
        "GEOSEARCH places FROMLONLAT 13.3 38.1 BYRADIUS 10 km WITHDIST",
        "XINFO STREAM stream FULL COUNT 0",
        "LPOP list 19000",
        "SPOP set 19000",
        "ZPOPMIN zset 19000",
    ];
    let mut all: Vec<Vec<u8>> =
        lines.iter().map(|line| request(&line.split(' ').collect::<Vec<_>>())).collect();
    all.push(repeated(&["MGET"], "mb", 1000, &[]));
    all.push(repeated(&["XREAD", "STREAMS"], "stream", 2, &["0", "0"]));
    all.push(repeated(&["CLIENT", "LIST", "ID"], "1", 20_000, &[]));
    all.push(request(&["GETRANGE", "mb", "0", "300000"]).repeat(10));
    all
}

#[test]
fn a_reply_past_the_hard_limit_closes_its_client_with_nothing_sent() {
    let server = limited();
    let mut setup = Client::connect(&server);
    fill(&mut setup);
    let mut closed = 0;
    for wire in requests() {
        let mut client = Client::connect(&server);
        client.try_send(&wire);
        // Of requests that came together the first may have had a round of their own, and been answered.
        let is_pipeline = wire.starts_with(b"*4\r\n$8\r\nGETRANGE");
        let sent = client.rest().len();
        let text = String::from_utf8_lossy(&wire[..wire.len().min(100)]);
        assert!(sent == 0 || is_pipeline && sent as u64 <= HARD_BYTES, "{sent} bytes: {text}");
        closed += 1;
        setup.check("PING", "+PONG\r\n");
    }
    assert_eq!(setup.info("client_output_buffer_limit_disconnections"), closed.to_string());
    // What a command changed stays changed, all of it.
    setup.check("LLEN list", ":1000\r\n");
    setup.check("SCARD set", ":1000\r\n");
    setup.check("ZCARD zset", ":1000\r\n");
    setup.check("XPENDING stream group - + 1 nobody", "*0\r\n");
    assert!(setup.raw("XPENDING stream group").starts_with("*4\r\n:2000\r\n"));
}

#[test]
fn what_follows_a_reply_past_the_limit_does_not_run_and_what_stands_before_it_did() {
    let server = limited();
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("SETRANGE mb 1048575 x", ":1048576\r\n");
    let wire = [&["SET", "before", "1"][..], &["GET", "mb"], &["SET", "after", "1"]].map(request).concat();
    a.try_send(&wire);
    a.expect_end();
    b.check("MGET before after", "*2\r\n$1\r\n1\r\n$-1\r\n");
}

#[test]
fn a_client_that_wants_no_replies_has_no_limit() {
    let server = limited();
    let mut client = Client::connect(&server);
    client.check("SETRANGE mb 1048575 x", ":1048576\r\n");
    client.send(&request(&["CLIENT", "REPLY", "OFF"]));
    client.send(&request(&["MGET", "mb", "mb", "mb"]));
    client.send(&request(&["CLIENT", "REPLY", "ON"]));
    client.expect("+OK\r\n");
    client.check("PING", "+PONG\r\n");
}

#[test]
fn replies_below_the_limit_arrive_whole_whatever_their_sum() {
    let server = limited();
    let mut client = Client::connect(&server);
    client.check("SETRANGE half 499999 x", ":500000\r\n");
    for _ in 0..10 {
        client.send(&request(&["GET", "half"]));
        assert_eq!(client.bulk().len(), 500_000);
    }
}

#[test]
fn a_reply_that_alone_takes_more_than_all_clients_may_evicts_its_client_unless_it_is_spared() {
    let server = start(Config { maxmemory_clients: MemoryShare::Bytes(2 << 20), ..config() });
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("SETRANGE large 3145727 x", ":3145728\r\n");
    a.send(&request(&["GET", "large"]));
    a.expect_end();
    assert_eq!(b.info("evicted_clients"), "1");
    b.check("CLIENT NO-EVICT on", "+OK\r\n");
    assert_eq!(b.ask("GET large").len(), 3 << 20);
}
