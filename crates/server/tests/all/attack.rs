//! Connections that are no clients of Redis: HTTP from a browser.
use crate::client::{Client, config, request, start};
use server::{Allow, Clock, Config, Log};

#[test]
fn post_and_host_end_the_connection_and_nothing_behind_them_runs() {
    let server = start(config());
    let mut client = Client::connect(&server);
    let http = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET stolen 1\r\n".to_vec();
    for message in [
        b"POST / HTTP/1.1\r\n\r\nSET stolen 1\r\n".to_vec(),
        b"pOsT\r\nSET stolen 1\r\n".to_vec(),
        [request(&["POST"]), request(&["SET", "stolen", "1"])].concat(),
        http,
    ] {
        let mut browser = Client::connect(&server);
        browser.try_send(&message);
        browser.expect_end();
        client.check("EXISTS stolen", ":0\r\n");
    }
    // Only these names: a key or an argument may be anything.
    client.check("Host", "-ERR unknown command 'Host', with args beginning with: \r\n");
    client.check("ECHO POST", "$4\r\nPOST\r\n");
}

#[test]
fn an_attack_needs_no_password_to_be_seen_as_one() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..config() });
    let mut browser = Client::connect(&server);
    browser.try_send(b"POST / HTTP/1.1\r\nPING\r\n");
    browser.expect_end();
}

#[test]
fn an_attack_is_logged_once_a_minute_with_where_it_came_from() {
    let path = std::env::temp_dir().join(format!("sardine-attack-{}.log", std::process::id()));
    let config = Config { logfile: Some(path.clone()), ..config() };
    let log = Log::open(&config, Clock::real()).unwrap();
    let server = server::start(config, Clock::real(), log).unwrap();
    for _ in 0..3 {
        let mut browser = Client::connect(&server);
        browser.try_send(b"POST / HTTP/1.1\r\n");
        browser.expect_end();
    }
    drop(server);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let said: Vec<&str> = text.lines().filter(|line| line.contains("SECURITY ATTACK")).collect();
    assert_eq!(said.len(), 1, "{text}");
    assert!(said[0].contains(" # Possible SECURITY ATTACK detected. "), "{text}");
    assert!(said[0].contains(" Connection from 127.0.0.1:") && said[0].ends_with(" aborted."), "{text}");
}

#[test]
fn debug_is_for_nobody_until_a_setting_allows_it() {
    let server = start(Config { enable_debug_command: Config::default().enable_debug_command, ..config() });
    let mut client = Client::connect(&server);
    let refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run \
                   it from a local connection, otherwise you need to set this option in the configuration file, and \
                   then restart the server.\r\n";
    client.check("DEBUG SLEEP 0", refused);
    client.check("DEBUG HELP", refused);
    client.check("DEBUG", "-ERR wrong number of arguments for 'debug' command\r\n");
    client.check("CONFIG GET enable-debug-command", "*2\r\n$20\r\nenable-debug-command\r\n$2\r\nno\r\n");
    for allow in [Allow::Local, Allow::Yes] {
        let server = start(Config { enable_debug_command: allow, ..config() });
        Client::connect(&server).check("DEBUG SLEEP 0", "+OK\r\n");
    }
}
