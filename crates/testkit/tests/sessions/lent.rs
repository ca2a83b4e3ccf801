//! Requests that read very much and run on other threads, with one worker: what other clients do meanwhile,
//! and what becomes of the client whose session is away. The threads are held back until a test lets them go.
use server::Config;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use testkit::in_process::InProcess;
use testkit::resp_client::{RespClient, request};
use testkit::resp_value::Value;

/// So many elements take long to read; builds with checks say so much sooner (`command::LONG_STEPS`).
pub(crate) const MANY: usize = if cfg!(debug_assertions) { 1_500 } else { 20_000 };

pub(crate) fn server() -> InProcess {
    InProcess::start(Config { worker_threads: 1, ..InProcess::config() })
}

pub(crate) fn call(client: &mut RespClient, request: &str) -> Value {
    client.call(&words(request)).unwrap()
}

/// A client that hears of everything that happens to keys.
pub(crate) fn listener(server: &InProcess) -> RespClient {
    let mut listener = server.client().unwrap();
    call(&mut listener, "CONFIG SET notify-keyspace-events KEAn");
    call(&mut listener, "PSUBSCRIBE *");
    listener
}

pub(crate) fn words(request: &str) -> Vec<&str> {
    request.split(' ').collect()
}

pub(crate) fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned()
}

/// Sends a command with many arguments behind these words.
pub(crate) fn fill(client: &mut RespClient, command: &str, arguments: impl Iterator<Item = String>) {
    let mut all: Vec<String> = command.split(' ').map(str::to_owned).collect();
    all.extend(arguments);
    client.call(&all).unwrap();
}

/// Data of every kind of which reading all takes long.
pub(crate) fn fill_all(client: &mut RespClient) {
    for key in ["set", "other"] {
        fill(client, &format!("SADD {key}"), (0..MANY).map(|n| format!("{key}{n}")));
    }
    for key in ["zset", "ather"] {
        fill(client, &format!("ZADD {key}"), (0..MANY).flat_map(|n| [n.to_string(), format!("m{n}")]));
    }
    fill(client, "RPUSH list", (0..MANY).map(|n| (n * 7919 % MANY).to_string()));
    for _ in 0..10 {
        fill(client, "RPUSH long", (0..MANY).map(|n| n.to_string()));
    }
    fill(client, "HSET hash", (0..MANY).flat_map(|n| [format!("f{n}"), n.to_string()]));
    let place = |n: usize| [(n % 19).to_string(), (n % 17).to_string(), format!("p{n}")];
    fill(client, "GEOADD places", (0..MANY).flat_map(place));
    fill(client, "MSET", (0..MANY).flat_map(|n| [format!("w_{n}"), (MANY - n).to_string()]));
    call(client, &format!("SETBIT bits {} 1", MANY * 10_000));
    fill(client, "SET text", std::iter::once("abcdefghij".repeat(200)));
}

/// A stream that takes long to trim, and of which one consumer holds much, and in another group all.
pub(crate) fn fill_stream(client: &mut RespClient) {
    let script = format!(
        "for n = 1, {} do redis.call('XADD', 'stream', n .. '-1', 'field', n) end
         redis.call('XGROUP', 'CREATE', 'stream', 'group', '0')
         redis.call('XREADGROUP', 'GROUP', 'group', 'one', 'COUNT', {MANY}, 'STREAMS', 'stream', '>')
         redis.call('XGROUP', 'CREATE', 'stream', 'held', '0')
         redis.call('XREADGROUP', 'GROUP', 'held', 'one', 'STREAMS', 'stream', '>')",
        if MANY > 10_000 { 400_000 } else { 6_000 }
    );
    client.call(&["EVAL", &script, "0"]).unwrap();
}

/// Waits until a request is held back.
pub(crate) fn await_lent(server: &InProcess, request: &str) {
    const ROUNDS: usize = 10_000_000;
    let is_there = |_| {
        std::thread::yield_now();
        server.server.waiting_lent() == 1
    };
    assert!((0..ROUNDS).any(is_there), "{request} runs elsewhere");
}

/// Asks until this is so.
pub(crate) fn wait_until(observer: &mut RespClient, mut is_so: impl FnMut(&mut RespClient) -> bool) {
    const ROUNDS: usize = 100_000;
    assert!((0..ROUNDS).any(|_| is_so(observer)));
}

pub(crate) fn figure(client: &mut RespClient, name: &str) -> String {
    let info = text(&call(client, "INFO everything"));
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_default().to_owned()
}

/// Has a client send a request that is held back from here on.
pub(crate) fn hold(server: &InProcess, client: &mut RespClient, request: &str) {
    server.server.hold_lent(true);
    client.send(&words(request)).unwrap();
    await_lent(server, request);
}

/// What EXEC answers, which runs everything where it is, because of a request that is not about data.
pub(crate) fn in_exec(client: &mut RespClient, request: &str) -> Value {
    all_in_exec(client, &[request]).remove(0)
}

/// The same of several requests.
pub(crate) fn all_in_exec(client: &mut RespClient, requests: &[&str]) -> Vec<Value> {
    for queued in ["MULTI", "PING"].iter().chain(requests) {
        let answered = text(&call(client, queued));
        assert!(answered == "QUEUED" || answered == "OK", "{queued}: {answered}");
    }
    match call(client, "EXEC") {
        Value::Aggregate(_, mut replies) => replies.split_off(1),
        other => panic!("{other:?}"),
    }
}

#[test]
fn others_are_answered_meanwhile_and_the_reply_is_of_the_moment_of_the_request() {
    let server = server();
    let (mut reader, mut writer) = (server.client().unwrap(), server.client().unwrap());
    let many: String = (0..MANY).map(|n| format!(" w_{n}")).collect();
    let none: String = (0..MANY).map(|n| format!(" none_{n}")).collect();
    for (request, change) in [
        ("KEYS *", "DEL w_1 w_2"),
        ("SCAN 0 COUNT 30000", "DEL w_1 w_2"),
        ("SUNION set other", "SADD set new"),
        ("SINTER set set", "SREM set set7"),
        ("SDIFF set other", "DEL set"),
        ("SINTERCARD 2 set set", "SREM set set7"),
        ("SSCAN set 0 COUNT 30000", "SREM set set7"),
        ("ZUNION 2 zset ather WITHSCORES", "ZADD zset 77 m3"),
        ("ZINTER 2 zset ather WITHSCORES", "ZREM ather m3"),
        ("ZDIFF 2 zset set", "DEL zset"),
        ("ZINTERCARD 2 zset ather", "ZREM ather m3"),
        ("ZSCAN zset 0 COUNT 30000", "FLUSHALL"),
        ("LPOS long nothing COUNT 0", "RPUSH long nothing"),
        ("SORT list", "LPUSH list 12345678"),
        ("SORT_RO list BY w_* GET # GET w_*", "SET w_77 0"),
        ("GEOSEARCH places FROMLONLAT 10 10 BYRADIUS 5000 km ASC", "ZREM places p3"),
        ("GEORADIUS places 10 10 5000 km WITHDIST", "ZREM places p3"),
        ("HRANDFIELD hash 30000", "HSET hash new 1"),
        ("HSCAN hash 0 COUNT 30000", "HSET hash f7 new"),
        ("DUMP list", "LPOP list"),
        ("BITCOUNT bits", "SET bits 7"),
        ("BITPOS bits 1", "DEL bits"),
        ("LCS text text", "SET text abc"),
        ("XINFO STREAM stream FULL COUNT 1000", "DEL stream"),
        ("XINFO STREAM stream", "XADD stream * field x"),
        ("XPENDING stream group - + 30000", "XACK stream group 1-1"),
        ("XPENDING stream group IDLE 1 5 + 30000 one", "DEL stream"),
        ("XREAD STREAMS stream none stream 0 0 7", "DEL stream"),
        ("XREAD BLOCK 0 COUNT 30000 STREAMS stream stream 0 +", "XADD stream * field x"),
        (&format!("MGET{many} hash nothing"), "MSET w_0 x w_1 y"),
        (&format!("EXISTS{many} set nothing"), "DEL w_0 set"),
        (&format!("TOUCH{many} set nothing"), "FLUSHALL"),
        (&format!("SUNION set{none}"), "SADD none_7 new"),
        (&format!("ZUNION {} zset{none}", MANY + 1), "ZREM zset m3"),
    ] {
        call(&mut writer, "FLUSHALL");
        fill_all(&mut writer);
        if request.starts_with('X') {
            fill_stream(&mut writer);
        }
        let expected = in_exec(&mut reader, request);
        hold(&server, &mut reader, request);
        reader.send(&["PING"]).unwrap();
        assert_eq!(text(&call(&mut writer, "PING")), "PONG", "{request}");
        let changed = call(&mut writer, change);
        assert!(!matches!(changed, Value::Line(b'-', _)), "{change}: {changed:?}");
        server.server.hold_lent(false);
        let (mut answered, mut expected) = (reader.receive().unwrap(), expected);
        if request.starts_with("HRANDFIELD") {
            answered.sort();
            expected.sort();
        }
        assert!(answered == expected, "{request}");
        assert_eq!(
            text(&reader.receive().unwrap()),
            "PONG",
            "what was sent behind {request} comes behind it"
        );
    }
}

#[test]
fn very_many_groups_and_consumers_are_told_elsewhere() {
    let server = server();
    let (mut reader, mut other) = (server.client().unwrap(), server.client().unwrap());
    let script = format!(
        "redis.call('XADD', 'stream', '1-1', 'field', 1)
         for n = 1, {MANY} do redis.call('XGROUP', 'CREATE', 'stream', 'group' .. n, '0') end
         for n = 1, {MANY} do redis.call('XGROUP', 'CREATECONSUMER', 'stream', 'group7', n) end"
    );
    other.call(&["EVAL", &script, "0"]).unwrap();
    for (request, gone) in [
        ("XINFO GROUPS stream", "group8"),
        ("XINFO CONSUMERS stream group7", "group9"),
        ("XINFO STREAM stream FULL", "group10"),
        ("XPENDING stream group7", "group11"),
    ] {
        let expected = in_exec(&mut reader, request);
        hold(&server, &mut reader, request);
        assert_eq!(text(&call(&mut other, &format!("XGROUP DESTROY stream {gone}"))), "1");
        server.server.hold_lent(false);
        assert!(reader.receive().unwrap() == expected, "{request}");
    }
}

#[test]
fn the_memory_of_much_is_told_elsewhere_but_for_its_share_of_a_leaf() {
    let server = server();
    let (mut reader, mut writer) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut writer);
    for key in ["set", "zset", "long", "hash"] {
        let request = format!("MEMORY USAGE {key} SAMPLES 0");
        let number = |value: Value| text(&value).parse::<i64>().unwrap();
        let expected = number(in_exec(&mut reader, &request));
        hold(&server, &mut reader, &request);
        call(&mut writer, &format!("DEL {key}"));
        server.server.hold_lent(false);
        let answered = number(reader.receive().unwrap());
        assert!((answered - expected).abs() < 256, "{key}: {answered} of {expected} bytes");
    }
}

#[test]
fn a_hash_is_counted_elsewhere_while_fields_are_past_their_deadline() {
    let server = server();
    let (mut reader, mut writer) = (server.client().unwrap(), server.client().unwrap());
    call(&mut writer, "DEBUG SET-ACTIVE-EXPIRE 0");
    fill_all(&mut writer);
    let some = format!("HPEXPIRE hash 1 FIELDS {}", MANY / 2);
    fill(&mut writer, &some, (0..MANY / 2).map(|n| format!("f{n}")));
    server.time.advance(std::time::Duration::from_millis(2));
    hold(&server, &mut reader, "HRANDFIELD hash 3");
    server.server.hold_lent(false);
    let Value::Aggregate(_, fields) = reader.receive().unwrap() else { panic!("fields") };
    assert!(fields.iter().all(|field| text(field)[1..].parse::<usize>().unwrap() >= MANY / 2));
    assert_eq!(fields.len(), 3);
}

#[test]
fn a_client_that_is_killed_meanwhile_gets_nothing_and_is_gone_when_its_session_is_back() {
    let server = server();
    let (mut reader, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    let id = text(&call(&mut reader, "CLIENT ID"));
    hold(&server, &mut reader, "KEYS *");
    let list = text(&call(&mut other, &format!("CLIENT LIST ID {id}")));
    assert!(list.contains("cmd=keys ") && list.contains("flags=N "), "{list}");
    assert_eq!(text(&call(&mut other, &format!("CLIENT KILL ID {id}"))), "1");
    assert!(reader.receive().is_err(), "it is closed");
    assert_eq!(text(&call(&mut other, &format!("CLIENT LIST ID {id}"))), "");
    server.server.hold_lent(false);
    wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
}

#[test]
fn what_a_client_had_sent_before_it_left_is_run() {
    let server = server();
    let mut other = server.client().unwrap();
    fill_all(&mut other);
    let mut reader = server.client().unwrap();
    hold(&server, &mut reader, "KEYS *");
    reader.send(&["SET", "last", "words"]).unwrap();
    drop(reader);
    assert_eq!(text(&call(&mut other, "EXISTS last")), "0");
    server.server.hold_lent(false);
    wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
    assert_eq!(text(&call(&mut other, "GET last")), "words");
}

#[test]
fn a_client_that_has_shut_down_its_sending_side_is_answered() {
    let server = server();
    let mut other = server.client().unwrap();
    fill_all(&mut other);
    server.server.hold_lent(true);
    let mut stream = TcpStream::connect(server.server.addresses[0]).unwrap();
    stream.write_all(&request(&["SUNION", "set", "other"])).unwrap();
    stream.write_all(&request(&["ECHO", "the end"])).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    await_lent(&server, "SUNION");
    assert_eq!(text(&call(&mut other, "PING")), "PONG");
    server.server.hold_lent(false);
    let mut answered = Vec::new();
    stream.read_to_end(&mut answered).unwrap();
    assert!(answered.starts_with(format!("*{}\r\n", 2 * MANY).as_bytes()));
    assert!(answered.ends_with(b"$7\r\nthe end\r\n"));
}

#[test]
fn a_client_hears_of_a_change_behind_the_reply_that_shows_what_was_before() {
    let server = server();
    let (mut reader, mut writer) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut writer);
    call(&mut reader, "HELLO 3");
    call(&mut reader, "CLIENT TRACKING ON");
    hold(&server, &mut reader, "SINTERCARD 2 set set");
    call(&mut writer, "SREM set set7");
    server.server.hold_lent(false);
    assert_eq!(text(&reader.receive().unwrap()), MANY.to_string());
    let Value::Aggregate(b'>', told) = reader.receive().unwrap() else { panic!("it is told") };
    assert_eq!(text(&told[0]), "invalidate");
}

#[test]
fn a_key_that_is_watched_and_changes_meanwhile_makes_exec_run_nothing() {
    let server = server();
    let (mut reader, mut writer) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut writer);
    for (change, is_null) in [("SET x 1", true), ("SET y 1", false)] {
        call(&mut reader, "SELECT 0");
        call(&mut reader, "WATCH x");
        hold(&server, &mut reader, "KEYS *");
        call(&mut writer, change);
        server.server.hold_lent(false);
        reader.receive().unwrap();
        call(&mut reader, "MULTI");
        call(&mut reader, "PING");
        let exec = call(&mut reader, "EXEC");
        assert_eq!(!matches!(exec, Value::Aggregate(..)), is_null, "{change}: {exec:?}");
    }
}

#[test]
fn it_is_counted_and_logged_once_and_by_its_client() {
    let server = server();
    let (mut reader, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    call(&mut other, "CONFIG SET slowlog-log-slower-than 0");
    call(&mut other, "CONFIG RESETSTAT");
    call(&mut other, "SLOWLOG RESET");
    call(&mut reader, "SUNION set other none");
    assert_eq!(figure(&mut other, "lent_requests"), "1");
    assert_eq!(figure(&mut other, "keyspace_hits"), "2");
    assert_eq!(figure(&mut other, "keyspace_misses"), "1");
    assert!(matches!(call(&mut reader, "SINTERCARD 2 set list"), Value::Line(b'-', _)));
    let stats = figure(&mut other, "cmdstat_sunion");
    assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=0"), "{stats}");
    let stats = figure(&mut other, "cmdstat_sintercard");
    assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=1"), "{stats}");
    assert_eq!(figure(&mut other, "errorstat_WRONGTYPE"), "count=1");
    let Value::Aggregate(_, entries) = call(&mut other, "SLOWLOG GET -1") else { panic!("a list") };
    let logged = entries.iter().map(|entry| entry.lines().join(" "));
    assert_eq!(logged.filter(|entry| entry.contains(" $6 SUNION ")).count(), 1);
}

#[test]
fn a_reply_that_is_not_wanted_is_not_sent() {
    let server = server();
    let mut reader = server.client().unwrap();
    fill_all(&mut reader);
    reader.send(&["CLIENT", "REPLY", "SKIP"]).unwrap();
    reader.send(&["KEYS", "*"]).unwrap();
    assert_eq!(text(&call(&mut reader, "PING")), "PONG");
    reader.send(&["CLIENT", "REPLY", "OFF"]).unwrap();
    reader.send(&["SUNION", "set", "list"]).unwrap();
    reader.send(&["SUNION", "set", "other"]).unwrap();
    assert_eq!(text(&call(&mut reader, "CLIENT REPLY ON")), "OK");
}

#[test]
fn a_reply_beyond_the_output_limit_closes_its_client() {
    let server = server();
    let (mut reader, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    other.call(&["CONFIG", "SET", "client-output-buffer-limit", "normal 10000 0 0"]).unwrap();
    reader.send(&["KEYS", "*"]).unwrap();
    assert!(reader.receive().is_err());
    assert_eq!(figure(&mut other, "client_output_buffer_limit_disconnections"), "1");
}

#[test]
fn a_server_ends_while_sessions_are_away() {
    let server = server();
    let mut reader = server.client().unwrap();
    fill_all(&mut reader);
    hold(&server, &mut reader, "KEYS *");
    drop(server);
    assert!(reader.receive().is_err());
}

/// Bitmaps of which a part is asked for, intersections of which a few members are.
#[test]
fn a_request_that_is_about_a_part_or_ends_early_stays_on_its_worker() {
    let server = server();
    let mut client = server.client().unwrap();
    call(&mut client, "SETBIT bits 8000000 1");
    call(&mut client, "SETBIT bits 100 1");
    fill(&mut client, "SADD s", (0..MANY).map(|n| format!("member:{n}")));
    fill(&mut client, "SADD t", (0..MANY).map(|n| format!("member:{n}")));
    fill(&mut client, "SADD u", (0..MANY).map(|n| format!("other:{n}")));
    fill(&mut client, "ZADD z", (0..MANY).flat_map(|n| [n.to_string(), format!("member:{n}")]));
    let near = [
        ("BITCOUNT bits 0 100", "1"),
        ("BITCOUNT bits -100 -1", "1"),
        ("BITCOUNT bits 8000000 8000000 BIT", "1"),
        ("BITPOS bits 0", "0"),
        ("BITPOS bits 1", "100"),
        ("BITPOS bits 0 500000", "4000000"),
        ("BITPOS bits 1 1000 2000", "-1"),
        ("SINTERCARD 2 s t LIMIT 2", "2"),
        ("ZINTERCARD 2 z z LIMIT 2", "2"),
        ("ZINTERCARD 2 s t LIMIT 9 LIMIT 1", "1"),
    ];
    let far = [
        ("BITCOUNT bits", "2"),
        ("BITCOUNT bits 1 -1", "2"),
        ("BITPOS bits 1 13", "8000000"),
        ("SINTERCARD 2 s u LIMIT 1", "0"),
        ("SINTERCARD 2 s t LIMIT 0", &MANY.to_string()),
        ("ZINTERCARD 2 z u LIMIT 1", "0"),
    ];
    let many = format!("SINTERCARD 200 {} LIMIT 1", ["s"; 200].join(" "));
    let far = [&far[..], &[(many.as_str(), "1")]].concat();
    for (lent, requests) in [("0", &near[..]), ("1", &far[..])] {
        for (request, expected) in requests {
            call(&mut client, "CONFIG RESETSTAT");
            assert_eq!(text(&call(&mut client, request)), *expected, "{request}");
            assert_eq!(figure(&mut client, "lent_requests"), lent, "{request}");
        }
    }
}
