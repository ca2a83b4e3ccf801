//! SLOWLOG and COMMANDLOG: which calls they keep, and what they show of them.
use crate::client::{Client, config, request, start};
use server::{Config, LogRule, LogRules};

/// Keeps every call.
fn curious() -> Config {
    let slow = LogRule { from: 0, entries_max: 128 };
    Config { command_log: LogRules { slow, ..LogRules::default() }, ..config() }
}

/// The arguments of the entries, from the newest on; of none there are as many as six.
fn logged(reply: &str) -> Vec<String> {
    let entries = reply.split("*6\r\n:").skip(1);
    let args = |entry: &str| {
        let after = entry.splitn(4, "\r\n").nth(3).unwrap().to_owned();
        let bulks: Vec<&str> = after.split("\r\n").skip(2).step_by(2).collect();
        // The client's address and name follow the arguments.
        bulks[..bulks.len().saturating_sub(2)].join(" ")
    };
    entries.map(args).collect()
}

#[test]
fn every_call_that_is_slow_enough_is_kept_whole_pipelines_included() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    let pipeline: Vec<u8> = (0..20).flat_map(|n| request(&["SET", &format!("k{n}"), "v"])).collect();
    client.send(&pipeline);
    client.expect(&"+OK\r\n".repeat(20));
    let slow = logged(&client.raw("SLOWLOG GET -1"));
    assert_eq!(slow.len(), 20);
    assert_eq!((slow[0].as_str(), slow[19].as_str()), ("SET k19 v", "SET k0 v"));
    assert_eq!(logged(&client.raw("SLOWLOG GET")).len(), 10);
    assert_eq!(logged(&client.raw("COMMANDLOG GET 3 Slow")).len(), 3);
}

#[test]
fn a_stall_is_logged_as_the_command_that_stalled_and_no_other() {
    let slow = LogRule { from: 50_000, entries_max: 128 };
    let server = start(Config { command_log: LogRules { slow, ..LogRules::default() }, ..config() });
    let mut client = Client::connect(&server);
    client.send(&[request(&["PING"]), request(&["DEBUG", "SLEEP", "0.06"]), request(&["NOSUCH"])].concat());
    client.expect("+PONG\r\n+OK\r\n-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    let log = client.raw("SLOWLOG GET -1");
    assert_eq!(logged(&log), ["DEBUG SLEEP 0.06"]);
    let microseconds: u64 = log.split("\r\n:").nth(3).unwrap().split("\r\n").next().unwrap().parse().unwrap();
    assert!(microseconds >= 60_000, "{log}");
}

#[test]
fn entries_say_who_and_hide_what_is_secret() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    client.check("CLIENT SETNAME fish", "+OK\r\n");
    client.check("CONFIG SET maxclients 99 requirepass secret", "+OK\r\n");
    client.check("AUTH secret", "+OK\r\n");
    let log = client.raw("SLOWLOG GET");
    assert!(log.contains("$4\r\nfish\r\n") && log.contains("\r\n127.0.0.1:"), "{log}");
    let texts = logged(&log);
    assert_eq!(texts[..2], ["AUTH (redacted)", "CONFIG SET maxclients 99 requirepass (redacted)"]);
    assert!(!log.contains("secret"));
}

#[test]
fn refused_requests_are_in_no_log() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    client.check("GET", "-ERR wrong number of arguments for 'get' command\r\n");
    client.check("LPUSH", "-ERR wrong number of arguments for 'lpush' command\r\n");
    client.check("SLOWLOG LEN", ":0\r\n");
    client.check("SLOWLOG LEN", ":1\r\n");
}

#[test]
fn a_log_is_cut_by_the_next_entry_and_reset_at_once() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    (0..10).for_each(|_| client.check("PING", "+PONG\r\n"));
    client.check("SLOWLOG LEN", ":10\r\n");
    client.check("CONFIG SET slowlog-max-len 3", "+OK\r\n");
    client.check("SLOWLOG LEN", ":3\r\n");
    client.check("SLOWLOG RESET", "+OK\r\n");
    client.check("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n");
    client.check("SLOWLOG LEN", ":1\r\n");
}

#[test]
fn both_names_of_a_setting_are_shown_and_set() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("CONFIG SET commandlog-execution-slower-than 77", "+OK\r\n");
    let both = client.raw("CONFIG GET *slower-than");
    for name in ["slowlog-log-slower-than", "commandlog-execution-slower-than"] {
        assert!(both.contains(&format!("{name}\r\n$2\r\n77\r\n")), "{both}");
    }
}

#[test]
fn requests_and_replies_are_large_by_their_bytes_on_the_wire() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("CONFIG SET commandlog-request-larger-than 33 commandlog-reply-larger-than 11", "+OK\r\n");
    client.check("SET k 1234567", "+OK\r\n");
    client.check("SET k 12345678", "+OK\r\n");
    client.check("GET k", "$8\r\n12345678\r\n");
    client.check("SET k 1234", "+OK\r\n");
    client.check("GET k", "$4\r\n1234\r\n");
    client.check("COMMANDLOG LEN large-reply", ":1\r\n");
    let large = client.raw("COMMANDLOG GET -1 large-request");
    assert!(logged(&large).iter().any(|args| args == "SET k 1234567"), "{large}");
    assert!(!logged(&large).iter().any(|args| args == "SET k 1234"), "{large}");
    client.check("COMMANDLOG RESET large-reply", "+OK\r\n");
    client.check(
        "COMMANDLOG GET -1 huge",
        "-ERR type should be one of the following: slow, large-request, large-reply\r\n",
    );
}

#[test]
fn what_a_script_calls_is_nobodys() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    client.check("CLIENT SETNAME fish", "+OK\r\n");
    client.check("SLOWLOG RESET", "+OK\r\n");
    client.send(&request(&["EVAL", "return redis.call('get','a')", "0"]));
    client.expect("$-1\r\n");
    let log = client.raw("SLOWLOG GET 2");
    assert_eq!(logged(&log), ["EVAL return redis.call('get','a') 0", "get a"], "{log}");
    assert_eq!(log.matches("$4\r\nfish\r\n").count(), 1, "{log}");
    assert!(log.ends_with("get\r\n$1\r\na\r\n$0\r\n\r\n$0\r\n\r\n"), "{log}");
}

#[test]
fn of_a_name_of_any_length_the_logs_keep_the_beginning() {
    let server = start(curious());
    let mut client = Client::connect(&server);
    let name = "n".repeat(1 << 20);
    client.send(&request(&["CLIENT", "SETNAME", &name]));
    client.expect("+OK\r\n");
    client.check("AUTH nobody x", "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
    for log in ["SLOWLOG GET -1", "ACL LOG"] {
        let text = client.raw(log);
        let len = text.matches('n').count();
        assert!((4096..4 * 4096).contains(&len), "{log} has {len} bytes of it");
    }
    assert_eq!(client.ask("CLIENT GETNAME").len(), 1 << 20);
}
