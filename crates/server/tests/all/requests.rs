//! What dispatch answers before a command runs, and how requests are counted.
use crate::client::{Client, bulk, config, request, start};
use server::{Allow, Config};

#[test]
fn refusals_have_the_peers_words() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("FOO a b", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n");
    client.check("FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n");
    client.check("CLIENT NOPE x", "-ERR unknown subcommand 'NOPE'. Try CLIENT HELP.\r\n");
    client.check("client", "-ERR wrong number of arguments for 'client' command\r\n");
    client.check("client kill", "-ERR wrong number of arguments for 'client|kill' command\r\n");
    client.check("Echo", "-ERR wrong number of arguments for 'echo' command\r\n");
    client.check("OBJECT", "-ERR wrong number of arguments for 'object' command\r\n");
    client.check("COMMAND NOPE", "-ERR unknown subcommand 'NOPE'. Try COMMAND HELP.\r\n");
    client.send(b"*1\r\n$4\r\nF\xff\r\n\r\n");
    let expected = b"-ERR unknown command 'F\xff  ', with args beginning with: \r\n";
    assert_eq!(client.read(expected.len()), expected);
}

#[test]
fn a_client_must_say_the_password_before_all_else() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..config() });
    let mut client = Client::connect(&server);
    client.check("GET x", "-NOAUTH Authentication required.\r\n");
    client.check("FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n");
    client.check("AUTH secret", "+OK\r\n");
    client.check("GET x", "$-1\r\n");
}

#[test]
fn what_follows_auth_in_a_pipeline_may_be_as_large_as_any_request() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..config() });
    let large = "x".repeat(100_000);
    let many: Vec<String> = (0..50).map(|i| format!("k{i}")).collect();
    let exists =
        request(&std::iter::once("EXISTS").chain(many.iter().map(String::as_str)).collect::<Vec<_>>());
    let mut client = Client::connect(&server);
    client.send(&[request(&["AUTH", "secret"]), request(&["ECHO", &large]), exists.clone()].concat());
    client.expect(&format!("+OK\r\n{}:0\r\n", bulk(&large)));
    let mut stranger = Client::connect(&server);
    stranger.send(&exists);
    assert_eq!(stranger.rest(), "-ERR Protocol error: unauthenticated multibulk length\r\n");
    let mut stranger = Client::connect(&server);
    stranger.try_send(&request(&["ECHO", &large]));
    let answer = stranger.rest();
    assert!(
        answer.is_empty() || answer == "-ERR Protocol error: unauthenticated bulk length\r\n",
        "{answer}"
    );
}

#[test]
fn commands_and_errors_are_counted() {
    let server = start(config());
    let mut client = Client::connect(&server);
    (0..100).for_each(|_| client.check("SET k v", "+OK\r\n"));
    client.check("INCR k", "-ERR value is not an integer or out of range\r\n");
    client.check("LPUSH k v", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    client.check("GET", "-ERR wrong number of arguments for 'get' command\r\n");
    assert!(client.info("cmdstat_set").starts_with("calls=100,"));
    assert!(client.info("cmdstat_incr").ends_with("rejected_calls=0,failed_calls=1"));
    assert!(client.info("cmdstat_get").ends_with("rejected_calls=1,failed_calls=0"));
    assert_eq!(client.info("errorstat_ERR"), "count=2");
    assert_eq!(client.info("errorstat_WRONGTYPE"), "count=1");
    assert_eq!(client.info("total_error_replies"), "3");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    assert_eq!(client.info("total_error_replies"), "0");
}

#[test]
fn a_request_that_is_refused_is_the_last_command_of_its_client_too() {
    let server = start(config());
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    client.send(b"CLIENT ID\r\n");
    let id = client.raw_reply().trim().trim_start_matches(':').to_owned();
    for (request, shown) in [
        ("SET k v", "set"),
        ("GET", "get"),
        ("NONSENSE", "NULL"),
        ("CLIENT ID x", "client|id"),
        ("CLIENT NONSENSE", "NULL"),
        ("XGROUP CREATE", "xgroup|create"),
    ] {
        let _ = client.raw(request);
        let line = other.ask(&format!("CLIENT LIST ID {id}"));
        assert!(line.contains(&format!(" cmd={shown} ")), "{request}: {line}");
    }
}

#[test]
fn settings_hold_for_what_follows_in_the_same_pipeline() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(
        &[
            request(&["CONFIG", "SET", "proto-max-bulk-len", "1mb"]),
            request(&["SETRANGE", "k", "2000000", "x"]),
            request(&["PING"]),
        ]
        .concat(),
    );
    client.expect("+OK\r\n-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n+PONG\r\n");
}

#[test]
fn clients_may_ask_for_silence() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(
        b"CLIENT REPLY OFF\r\nPING\r\nNOSUCH\r\nCLIENT REPLY ON\r\nCLIENT REPLY SKIP\r\nPING\r\nECHO x\r\n",
    );
    client.expect("+OK\r\n$1\r\nx\r\n");
}

#[test]
fn reset_ends_silence_and_is_itself_the_request_that_skip_leaves_unanswered() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(b"CLIENT REPLY OFF\r\nRESET\r\nPING\r\nCLIENT REPLY SKIP\r\nRESET\r\nECHO x\r\n");
    client.expect("+RESET\r\n+PONG\r\n$1\r\nx\r\n");
}

#[test]
fn bytes_that_are_no_request_are_answered_in_silence_as_well() {
    let server = start(config());
    let answer = "-ERR Protocol error: invalid bulk length\r\n";
    for (before, expected) in [
        ("", answer),
        ("CLIENT REPLY OFF\r\n", ""),
        ("CLIENT REPLY SKIP\r\n", ""),
        ("CLIENT REPLY SKIP\r\nPING\r\n", answer),
    ] {
        let mut client = Client::connect(&server);
        client.send(format!("{before}*1\r\n$x\r\n").as_bytes());
        client.expect(expected);
        client.expect_end();
    }
}

#[test]
fn several_databases_live_side_by_side() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client
        .send(b"SET k zero\r\nSELECT 1\r\nSET k one\r\nSELECT 0\r\nGET k\r\nSELECT 1\r\nGET k\r\nDBSIZE\r\n");
    client.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n$4\r\nzero\r\n+OK\r\n$3\r\none\r\n:1\r\n");
}

#[test]
fn the_picture_ends_with_both_versions() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(&[request(&["HELLO", "3"]), request(&["LOLWUT", "VERSION", "5"])].concat());
    let end = "compatible with Redis ver. 8.0.2\n\r\n";
    let mut got = String::new();
    while !got.ends_with(end) {
        got.push(char::from(client.read(1)[0]));
    }
    let picture = got.rsplit_once("txt:").map(|(_, picture)| picture).unwrap_or_default();
    assert!(
        picture.contains("Sardine ver. ") && got.contains(&format!("={}\r\n", picture.len() + 2)),
        "{got}"
    );
}

#[test]
fn there_are_no_modules_and_who_may_load_some_is_told_that_it_failed() {
    let server = start(Config { enable_module_command: Allow::Local, ..config() });
    let mut client = Client::connect(&server);
    client.check("MODULE LIST", "*0\r\n");
    let failed = "-ERR Error loading the extension. Please check the server logs.\r\n";
    client.check("MODULE LOAD /nonexistent.so a", failed);
    client.check("MODULE LOADEX /nonexistent.so CONFIG a b", failed);
    let unknown = "-ERR Error unloading module: no such module with that name\r\n";
    client.check("MODULE UNLOAD nothing", unknown);
}

#[test]
fn what_no_setting_allows_is_refused_before_anything_else_and_never_queued() {
    let server = start(Config { enable_debug_command: Allow::No, requirepass: b"p".to_vec(), ..config() });
    let refused = |name: &str| {
        let setting = format!("enable-{}-command", name.to_ascii_lowercase());
        format!(
            "-ERR {name} command not allowed. If the {setting} option is set to \"local\", you can run it from a local \
             connection, otherwise you need to set this option in the configuration file, and then restart the \
             server.\r\n"
        )
    };
    let mut client = Client::connect(&server);
    client.check("DEBUG SLEEP 0", &refused("DEBUG"));
    client.check("AUTH p", "+OK\r\n");
    for request in ["DEBUG SLEEP 0", "MODULE LOAD x", "MODULE UNLOAD x"] {
        let name = request.split(' ').next().unwrap();
        client.check("MULTI", "+OK\r\n");
        client.check(request, &refused(name));
        client.check("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
    }
    client.check("SUBSCRIBE c", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    client.check("DEBUG SLEEP 0", &refused("DEBUG"));
}
