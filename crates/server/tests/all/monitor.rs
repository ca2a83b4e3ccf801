//! MONITOR: what its client is shown, from whichever worker.
use crate::client::{Client, config, request, start};
use server::Config;

/// The next line, without its time and the client's port.
fn line(monitor: &mut Client) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.extend(monitor.read(1));
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    let (head, command) = line.trim_end().split_once(']').unwrap();
    let (time, client) = head.split_once(" [").unwrap();
    assert!(time.starts_with('+') && time.len() == "+1795286454.199362".len(), "{line}");
    let (db, address) = client.split_once(' ').unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{line}");
    format!("{db}{command}")
}

#[test]
fn every_command_of_every_worker_is_shown_but_what_administrates() {
    let server = start(Config { worker_threads: 3, ..config() });
    let mut monitor = Client::connect(&server);
    monitor.check("MONITOR", "+OK\r\n");
    for round in 0..3 {
        let mut client = Client::connect(&server);
        client.check("SET k v", "+OK\r\n");
        client.check("CONFIG SET maxclients 1000", "+OK\r\n");
        client.check("GET", "-ERR wrong number of arguments for 'get' command\r\n");
        client.send(&[request(&["SELECT", "3"]), request(&["lpush", "l", "a\"b\\\n\x01"])].concat());
        client.expect(&format!("+OK\r\n:{}\r\n", round + 1));
        assert_eq!(line(&mut monitor), "0 \"SET\" \"k\" \"v\"");
        assert_eq!(line(&mut monitor), "3 \"SELECT\" \"3\"");
        assert_eq!(line(&mut monitor), "3 \"lpush\" \"l\" \"a\\\"b\\\\\\n\\x01\"");
    }
}

#[test]
fn secrets_are_not_shown() {
    let server = start(config());
    let mut monitor = Client::connect(&server);
    monitor.check("MONITOR", "+OK\r\n");
    let mut client = Client::connect(&server);
    client.check("AUTH default secret", "+OK\r\n");
    assert_eq!(line(&mut monitor), "0 \"AUTH\" \"(redacted)\" \"(redacted)\"");
}

#[test]
fn a_monitor_sees_itself_until_it_resets() {
    let server = start(config());
    let mut monitor = Client::connect(&server);
    monitor.check("MONITOR", "+OK\r\n");
    monitor.check("PING", "+PONG\r\n");
    assert_eq!(line(&mut monitor), "0 \"PING\"");
    let mut other = Client::connect(&server);
    assert!(other.ask("CLIENT LIST").contains("flags=O "));
    monitor.check("RESET", "+RESET\r\n");
    assert!(!other.ask("CLIENT LIST").contains("flags=O "));
    other.check("SET k v", "+OK\r\n");
    monitor.check("GET k", "$1\r\nv\r\n");
    monitor.check("PING", "+PONG\r\n");
}

#[test]
fn a_monitor_that_leaves_is_forgotten() {
    let server = start(config());
    let mut monitor = Client::connect(&server);
    monitor.check("MONITOR", "+OK\r\n");
    monitor.check("QUIT", "+OK\r\n");
    drop(monitor);
    let mut other = Client::connect(&server);
    other.wait_for_info("connected_clients", "1");
    other.check("SET k v", "+OK\r\n");
}

/// A transaction with a script runs on the thread of scripts, one without on its worker.
#[test]
fn exec_is_shown_behind_what_it_has_run_wherever_that_was() {
    let server = start(config());
    let [mut monitor, mut client] = [(); 2].map(|()| Client::connect(&server));
    monitor.check("MONITOR", "+OK\r\n");
    let plain = ("GET k", "$-1\r\n", "0 \"GET\" \"k\"");
    let script = ("EVAL return(1) 0", ":1\r\n", "0 \"EVAL\" \"return(1)\" \"0\"");
    for (count, (request, reply, shown)) in [plain, script].into_iter().enumerate() {
        client.check("MULTI", "+OK\r\n");
        client.check("INCR n", "+QUEUED\r\n");
        client.check(request, "+QUEUED\r\n");
        client.send(b"EXEC\r\n");
        client.expect(&format!("*2\r\n:{}\r\n{reply}", count + 1));
        for expected in ["0 \"MULTI\"", "0 \"INCR\" \"n\"", shown, "0 \"EXEC\""] {
            assert_eq!(line(&mut monitor), expected);
        }
    }
}

/// The function runs on the thread of scripts, since its library has a state, and the script on its worker.
#[test]
fn a_script_is_shown_between_what_its_client_has_sent_before_and_behind_it() {
    let server = start(Config { worker_threads: 3, ..config() });
    let [mut monitor, mut client] = [(); 2].map(|()| Client::connect(&server));
    let library = "#!lua name=lib\nlocal calls = {}\nredis.register_function('f', function() \
                   calls[1] = 1 return 1 end)";
    client.send(&request(&["FUNCTION", "LOAD", library]));
    client.expect("$3\r\nlib\r\n");
    monitor.check("MONITOR", "+OK\r\n");
    let sent = ["SET a 1", "GET a", "EVAL return(1) 0", "SET b 1", "FCALL f 0", "FCALL nosuch 0", "GET a"];
    let requests = sent.join("\r\n") + "\r\n";
    for _ in 0..50 {
        client.send(requests.as_bytes());
        client.expect("+OK\r\n$1\r\n1\r\n:1\r\n+OK\r\n:1\r\n-ERR Function not found\r\n$1\r\n1\r\n");
        for request in sent {
            let words: Vec<String> = request.split(' ').map(|word| format!("\"{word}\"")).collect();
            assert_eq!(line(&mut monitor), format!("0 {}", words.join(" ")));
        }
    }
}

#[test]
fn a_script_that_is_refused_before_it_begins_is_shown_once() {
    let server = start(config());
    let [mut monitor, mut client] = [(); 2].map(|()| Client::connect(&server));
    monitor.check("MONITOR", "+OK\r\n");
    for refused in [
        "EVAL return(1) abc",
        "EVAL return(1) 5 a",
        "EVAL return(1) -1",
        "EVAL syntax( 0",
        "EVAL_RO #!lua 0",
        "EVALSHA 0123456789012345678901234567890123456789 0",
        "EVALSHA_RO abc 0",
    ] {
        assert!(client.ask(refused).starts_with('-'), "{refused}");
        let words: Vec<String> = refused.split(' ').map(|word| format!("\"{word}\"")).collect();
        assert_eq!(line(&mut monitor), format!("0 {}", words.join(" ")));
    }
    client.check("PING", "+PONG\r\n");
    assert_eq!(line(&mut monitor), "0 \"PING\"");
}

#[test]
fn a_monitor_is_shown_its_own_request_before_the_next_one_runs() {
    let server = start(config());
    let mut monitor = Client::connect(&server);
    monitor.send(b"MONITOR\r\nPING\r\nECHO a\r\nRESET\r\nPING\r\n");
    monitor.expect("+OK\r\n+PONG\r\n");
    assert_eq!(line(&mut monitor), "0 \"PING\"");
    monitor.expect("$1\r\na\r\n");
    assert_eq!(line(&mut monitor), "0 \"ECHO\" \"a\"");
    monitor.expect("+RESET\r\n+PONG\r\n");
}
