//! Passwords in requests: nobody who watches the server reads them, whatever becomes of the request.
use crate::client::{Client, config, request, start};
use server::{Config, LogRule, LogRules};

/// Requests that reach their command, and what others may see of them.
const REQUESTS: &[(&str, &str)] = &[
    ("AUTH s3cret", "AUTH *"),
    ("AUTH default s3cret", "AUTH * *"),
    ("AUTH my s3cret phrase s3cret", "AUTH * * * *"),
    ("HELLO 3 AUTH default s3cret", "HELLO 3 AUTH * *"),
    ("HELLO 3 SETNAME auth AUTH default s3cret", "HELLO 3 SETNAME auth AUTH * *"),
    ("HELLO 3 AUTH default s3cret AUTH default s3cret", "HELLO 3 AUTH * * AUTH * *"),
    ("HELLO 3 AUTH default s3cret SETNAME me", "HELLO 3 AUTH * * SETNAME me"),
    ("HELLO 9 AUTH default s3cret", "HELLO 9 AUTH * *"),
    ("HELLO x AUTH default s3cret", "HELLO x AUTH * *"),
    ("HELLO 3 FOO AUTH default s3cret", "HELLO 3 FOO AUTH * *"),
    ("HELLO 3 AUTH default s3cret phrase", "HELLO 3 AUTH * * *"),
    ("HELLO 3 SETNAME AUTH default s3cret", "HELLO 3 SETNAME AUTH * *"),
    ("HELLO AUTH default s3cret", "HELLO AUTH * *"),
    ("HELLO 3 AUTH s3cret", "HELLO 3 AUTH *"),
    ("HELLO 3 SETNAME me", "HELLO 3 SETNAME me"),
];

/// The same for CONFIG and ACL, which MONITOR does not show.
const SETTINGS: &[(&str, &str)] = &[
    ("CONFIG SET masterauth s3cret", "CONFIG SET masterauth *"),
    ("CONFIG SET maxmemory 0 MasterAuth s3cret", "CONFIG SET maxmemory 0 MasterAuth *"),
    ("CONFIG SET requirepass s3cret phrase", "CONFIG SET requirepass * *"),
    ("CONFIG SET requirepass s3cret phrase s3cret", "CONFIG SET requirepass * * *"),
    ("CONFIG SET hz requirepass s3cret", "CONFIG SET hz requirepass *"),
    ("CONFIG SET foo bar requirepass s3cret", "CONFIG SET foo bar requirepass *"),
    ("CONFIG SET tls-key-file-pass s3cret nonsense x", "CONFIG SET tls-key-file-pass * * *"),
    ("CONFIG SET masteruser s3cret", "CONFIG SET masteruser *"),
    ("CONFIG SET proc-title-template requirepass", "CONFIG SET proc-title-template requirepass"),
    ("CONFIG GET requirepass", "CONFIG GET requirepass"),
    ("ACL SETUSER bob on >s3cret", "ACL SETUSER * * *"),
    ("ACL SETUSER bob on >s3cret foo", "ACL SETUSER * * * *"),
    ("ACL GETUSER bob", "ACL GETUSER *"),
    ("ACL DELUSER bob s3cret", "ACL DELUSER * *"),
];

fn shown(words: &str) -> String {
    words.replace('*', "(redacted)")
}

#[test]
fn whoever_watches_with_monitor_sees_no_password() {
    let server = start(Config { worker_threads: 1, ..config() });
    let mut monitor = Client::connect(&server);
    monitor.check("MONITOR", "+OK\r\n");
    for (line, seen) in REQUESTS {
        let mut client = Client::connect(&server);
        client.send(&[request(&line.split(' ').collect::<Vec<_>>()), request(&["RESET"])].concat());
        let mut text = String::new();
        while !text.ends_with("\"RESET\"\r\n") {
            text.push_str(&String::from_utf8(monitor.read(1)).unwrap());
        }
        let first = text.lines().next().unwrap();
        let words: Vec<&str> = first.split_once("] ").unwrap().1.split(' ').collect();
        assert_eq!(words.join(" ").replace('"', ""), shown(seen), "{line}");
    }
}

#[test]
fn no_log_of_commands_keeps_a_password() {
    let slow = LogRule { from: 0, entries_max: 128 };
    let command_log = LogRules { slow, ..LogRules::default() };
    let server = start(Config { command_log, worker_threads: 1, ..config() });
    let mut client = Client::connect(&server);
    for (line, seen) in REQUESTS.iter().chain(SETTINGS) {
        client.raw("SLOWLOG RESET");
        client.raw(line);
        let log = client.raw("SLOWLOG GET -1");
        let bulks: Vec<&str> = log.split("\r\n").filter(|part| !part.starts_with(['$', ':', '*'])).collect();
        let count = seen.split(' ').count();
        assert_eq!(bulks[..count].join(" "), shown(seen), "{line}: {log}");
        client.raw("CONFIG SET proc-title-template {title}");
    }
}
