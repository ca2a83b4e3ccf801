//! What scripts write into the log: each message once, in order, also where a worker takes the script back.
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
    let text = std::fs::read_to_string(path).unwrap();
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
    // It is alone from the call on that needs it, and begins anew.
    run(&(says("3") + "return redis.call('dbsize')"), ":1\r\n");
    run(&(says("4") + "return {err = 'OOPS'}"), "-OOPS\r\n");
    for request in [&["MULTI"][..], &["EVAL", &says("5"), "0"], &["EVAL", &says("6"), "0"], &["EXEC"]] {
        client.send(&crate::client::request(request));
    }
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$-1\r\n$-1\r\n");
    assert!(lent(&mut client) <= 2);
    assert_eq!(said(server, &path), ["1a", "1b", "2 2.5", "3", "4", "5", "6"]);
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
