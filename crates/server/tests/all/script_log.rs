//! What is written of scripts into logs: each message and each call once, in order, also where a worker takes
//! the script back.
use crate::client::{Client, bulk, config, request};
use server::{Clock, Config, Log, Running};
use std::path::PathBuf;

/// A server that writes its log into this file.
fn start(name: &str) -> (Running, PathBuf) {
    let path = std::env::temp_dir().join(format!("sardine-{name}-{}.log", std::process::id()));
    let config = Config { logfile: Some(path.clone()), busy_reply_threshold_ms: 1, ..config() };
    let log = Log::open(&config, Clock::real()).unwrap();
    (server::start(config, Clock::real(), log).unwrap(), path)
}

/// The messages that begin with "said", when the server has ended.
fn said(server: Running, path: &PathBuf) -> Vec<String> {
    drop(server);
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
    std::fs::remove_file(path).unwrap();
    let said = text.lines().filter_map(|line| line.split_once(" * said ").or(line.split_once(" # said ")));
    said.map(|(_, message)| message.to_owned()).collect()
}

/// How many scripts went to the thread of scripts. One that waits for the processor may.
fn lent(client: &mut Client) -> u32 {
    client.info("lent_scripts").parse().unwrap()
}

#[test]
fn a_script_that_logs_runs_on_its_worker_and_each_message_is_written_once() {
    let (server, path) = start("script-log");
    let mut client = Client::connect(&server);
    let mut run = |script: &str, expected: &str| {
        client.send(&request(&["EVAL", script, "0"]));
        client.expect(expected);
    };
    let says = |what: &str| format!("redis.call('incr', 'n') redis.log(redis.LOG_NOTICE, 'said', '{what}') ");
    run(&(says("1a") + &says("1b") + "return 1"), ":1\r\n");
    run("redis.log(redis.LOG_VERBOSE, 'said', 'nothing') return 1", ":1\r\n");
    run("redis.log(redis.LOG_WARNING, 'said', 2, nil, {}, 2.5) return 1", ":1\r\n");
    run("redis.log('2', 'said as a text\\0not this') return 1", ":1\r\n");
    run("redis.log(' 0x3 ', 'said', ('x'):rep(5000)) return 1", ":1\r\n");
    // It is alone from the call on that needs it, and begins anew.
    run(&(says("3") + "return redis.call('dbsize')"), ":1\r\n");
    run(&(says("4") + "return {err = 'OOPS'}"), "-OOPS\r\n");
    for request in [&["MULTI"][..], &["EVAL", &says("5"), "0"], &["EVAL", &says("6"), "0"], &["EXEC"]] {
        client.send(&crate::client::request(request));
    }
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n$-1\r\n");
    assert!(lent(&mut client) <= 2);
    let long = "x".repeat(5000);
    assert_eq!(said(server, &path), ["1a", "1b", "2 2.5", "as a text", &long, "3", "4", "5", "6"]);
}

#[test]
fn what_a_script_does_between_two_commands_is_no_time_of_the_second() {
    let (server, path) = start("script-time");
    let mut client = Client::connect(&server);
    client.check("CONFIG SET slowlog-log-slower-than 100000", "+OK\r\n");
    let script =
        "local start = os.clock() while os.clock() - start < 0.2 do end return redis.call('incr', 'n')";
    client.send(&request(&["EVAL", script, "0"]));
    client.expect(":1\r\n");
    client.check("SLOWLOG LEN", ":1\r\n");
    drop(said(server, &path));
}

#[test]
fn a_script_that_is_taken_back_writes_its_messages_when_it_runs_again() {
    let (server, path) = start("script-log-again");
    let mut client = Client::connect(&server);
    let say = "redis.log(redis.LOG_NOTICE, 'said', ";
    client.send(&request(&["EVAL", &format!("{say} 'long') for i = 1, 3000000 do end return 1"), "0"]));
    client.expect(":1\r\n");
    client.send(&request(&["EVAL", &format!("for i = 1, 100 do {say} i) end return 2"), "0"]));
    client.expect(":2\r\n");
    assert_eq!(client.info("lent_scripts"), "2");
    // It is ended, and has said all the same what it has said.
    let mut runner = Client::connect(&server);
    runner.send(&request(&["EVAL", &format!("{say} 'endless') while true do end"), "0"]));
    client.wait_for("SCRIPT KILL", "+OK");
    runner.expect("-ERR Script killed by user with SCRIPT KILL");
    let mut expected = vec!["long".to_owned()];
    expected.extend((1..=100).map(|n| n.to_string()));
    expected.push("endless".to_owned());
    drop(runner);
    assert_eq!(said(server, &path), expected);
}

#[test]
fn a_message_below_the_level_of_the_log_is_dropped_by_the_level_of_that_moment() {
    let (server, path) = start("script-log-level");
    let mut client = Client::connect(&server);
    let script = "for i = 1, 100 do redis.log(redis.LOG_DEBUG, 'said', i) end \
                  redis.log(redis.LOG_NOTICE, 'said', ARGV[1]) return ARGV[1]";
    for level in ["notice", "warning", "notice"] {
        client.check(&format!("CONFIG SET loglevel {level}"), "+OK\r\n");
        client.send(&request(&["EVAL", script, "0", level]));
        client.expect(&bulk(level));
    }
    assert!(lent(&mut client) <= 1);
    assert_eq!(said(server, &path), ["notice", "notice"]);
}

/// What the monitor is shown up to the PING that follows.
fn shown(monitor: &mut Client) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"quiet\"\r\n") {
        text.extend(monitor.read(1));
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// All calls are logged, then shown too, and their own client listens. The scripts are two that end, one that
/// needs all and begins anew, one that takes long and is undone, one with more calls than are kept, and one
/// that fails.
#[test]
fn a_script_that_is_watched_runs_on_its_worker_and_each_call_is_told_once() {
    let scripts = [
        ("redis.call('get', KEYS[1]) return redis.call('set', KEYS[1], 1)", "+OK", 2),
        ("return redis.call('incr', KEYS[1])", ":2", 1),
        ("redis.call('incr', KEYS[1]) return redis.call('dbsize')", ":1", 2),
        ("redis.call('incr', KEYS[1]) for i = 1, 3000000 do end return 3", ":3", 1),
        ("for i = 1, 200 do redis.call('incr', KEYS[1]) end return 4", ":4", 200),
        ("redis.call('get', KEYS[1]) return redis.call('lpop', KEYS[1])", "-WRONGTYPE", 2),
    ];
    let (server, path) = start("script-watched");
    let [mut client, mut monitor, mut other] = [(); 3].map(|()| Client::connect(&server));
    other.check("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 1000", "+OK\r\n");
    assert!(client.raw("HELLO 3").starts_with('%'));
    client.check("CLIENT TRACKING ON", "+OK\r\n");
    for is_shown in [false, true] {
        other.send(b"DEL k\r\n");
        other.read(4);
        if is_shown {
            monitor.check("MONITOR", "+OK\r\n");
        }
        for (script, expected, calls) in scripts {
            other.check("SLOWLOG RESET", "+OK\r\n");
            client.send(&request(&["EVAL", script, "1", "k"]));
            client.send(&request(&["PING", "quiet"]));
            let mut reply = client.raw_reply();
            while reply.starts_with('>') {
                reply = client.raw_reply();
            }
            assert!(reply.starts_with(expected), "{script}: {reply}");
            while !client.raw_reply().ends_with("quiet\r\n") {}
            let logged = other.raw("SLOWLOG GET -1");
            assert_eq!(logged.matches("$0\r\n\r\n$0\r\n\r\n").count(), calls, "{script}: {logged}");
            if is_shown {
                let shown = shown(&mut monitor);
                assert_eq!(shown.matches(" lua] ").count(), calls, "{script}: {shown}");
                assert_eq!(shown.matches("\"EVAL\"").count(), 1, "{script}: {shown}");
            }
        }
    }
    // The long one and that with many calls, each twice; one that waits for the processor may.
    let lent = lent(&mut other);
    assert!((4..=6).contains(&lent), "{lent}");
    drop(server);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_message_is_written_byte_by_byte() {
    let (server, path) = start("script-log-bytes");
    let mut client = Client::connect(&server);
    client.send(&request(&["EVAL", "redis.log(3, 'caf\\233 \\255') return 1", "0"]));
    client.expect(":1\r\n");
    drop((client, server));
    let text = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.windows(9).any(|line| line == b"# caf\xE9 \xFF\n"), "{}", text.escape_ascii());
}
