//! `sardine analyze` on what a real redis-server holds: live, and as a dump file.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use serde_json::Value as Json;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use testkit::certificates::Certificates;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

const STRINGS: u64 = 30_000;
const GROUPS: u64 = 300;
const KEYS: u64 = STRINGS + 3 * GROUPS + 1;

fn analyze(words: &[&str]) -> Json {
    let output =
        Command::new(env!("CARGO_BIN_EXE_sardine")).args(["analyze", "--json"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A redis-server full of mixed data; None where there is none.
fn full_server() -> Option<(RedisServer, RespClient)> {
    let Some(server) = RedisServer::installed().unwrap() else {
        skip_without("redis-server");
        return None;
    };
    let mut client = RespClient::connect(&server.address()).unwrap();
    let strings = STRINGS.to_string();
    client.call(&["DEBUG", "POPULATE", &strings, "user:1", "90"]).unwrap();
    for group in 0..GROUPS {
        let mut hash = vec!["HSET".into(), format!("cart:{group}:items")];
        let mut zset = vec!["ZADD".into(), format!("board:{group}")];
        let mut list = vec!["RPUSH".into(), format!("queue:{group}")];
        for element in 0..100 {
            hash.extend([format!("field-{element}"), format!("value {group} {element}")]);
            zset.extend([format!("{}.5", element * group), format!("member-{element}")]);
            list.push(format!("job {group} {element} waits"));
        }
        [hash, zset, list].iter().for_each(|words| drop(client.call(words).unwrap()));
    }
    client.call(&["SET", "</script>", "x", "EX", "100"]).unwrap();
    Some((server, client))
}

/// Has the server listen on a port that nobody else has.
fn port(client: &mut RespClient) -> String {
    loop {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        if client.call(&["CONFIG", "SET", "port", &free]).unwrap() == Value::Line(b'+', b"OK".to_vec()) {
            return free;
        }
    }
}

fn used_memory(client: &mut RespClient) -> f64 {
    let Value::Blob(_, text) = client.call(&["INFO", "memory"]).unwrap() else { panic!("INFO is text") };
    let text = String::from_utf8(text).unwrap();
    text.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap().parse().unwrap()
}

fn bytes(report: &Json) -> f64 {
    report["sardine_bytes"].as_f64().unwrap()
}

#[test]
fn what_is_said_of_a_dump_file_is_what_a_server_takes_that_loads_it() {
    let Some((server, mut client)) = full_server() else { return };
    client.call(&["SAVE"]).unwrap();
    let file = server.folder().join("dump.rdb");
    let report = analyze(&[file.to_str().unwrap()]);
    assert_eq!(report["keys"], KEYS);
    assert!(report["source_bytes"].as_u64().unwrap() > 1 << 20);

    let ours = RedisServer::start_program(&[env!("CARGO_BIN_EXE_sardine")]).unwrap().unwrap();
    let mut client = RespClient::connect(&ours.address()).unwrap();
    let empty = used_memory(&mut client);
    fs::copy(&file, ours.folder().join("dump.rdb")).unwrap();
    client.call(&["DEBUG", "RELOAD", "NOSAVE"]).unwrap();
    assert_eq!(client.call(&["DBSIZE"]).unwrap(), Value::Line(b':', KEYS.to_string().into_bytes()));
    let taken = used_memory(&mut client) - empty;
    let ratio = bytes(&report) / taken;
    assert!((0.9..1.1).contains(&ratio), "said {}, taken {taken}", bytes(&report));
}

#[test]
fn an_append_only_file_is_read_as_a_server_would_load_it() {
    let mut home = Home::new("analyze-append");
    let options = ["--save", "", "--appendonly", "yes", "--aof-timestamp-enabled", "yes"];
    home.start(&options);
    home.told("DEBUG POPULATE 1000 user 90\r\nRPUSH list 1 2 3\r\nSET gone 1\r\nSET past 1 PX 1");
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    home.told("DEL gone\r\nMULTI\r\nRPUSH list 4\r\nSELECT 3\r\nHSET hash f v\r\nEXEC");
    home.told("XADD stream 1-1 a b\r\nXGROUP CREATE stream g 0\r\nWAITAOF 1 0 0");
    home.signal("-KILL");
    home.end();
    let folder = home.path.join("appendonlydir");
    let manifest = folder.join("appendonly.aof.manifest");
    let increment = folder.join("appendonly.aof.2.incr.aof");
    let named = |report: &Json, name: &str| -> Json {
        let rows = report["types"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).cloned().unwrap_or_default()
    };
    let report = analyze(&[manifest.to_str().unwrap()]);
    assert_eq!(report["keys"], 1003);
    assert_eq!(
        (&named(&report, "list")["elements"], &named(&report, "hash")["keys"]),
        (&4.into(), &1.into())
    );
    assert!(bytes(&report) > 90_000.0);
    // By itself the increment has a list of one, the hash and the stream.
    assert_eq!(analyze(&[increment.to_str().unwrap()])["keys"], 3);
    // What a crash has left half is left out, and a base of commands is read as well.
    let whole = fs::read(&increment).unwrap();
    fs::write(
        &increment,
        [&whole[..], b"*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$1\r\n1\r\n"].concat(),
    )
    .unwrap();
    assert_eq!(analyze(&[manifest.to_str().unwrap()])["keys"], 1003);
    home.start(&options);
    home.told("CONFIG SET aof-use-rdb-preamble no\r\nBGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    let again = analyze(&[manifest.to_str().unwrap()]);
    assert_eq!((&again["keys"], &named(&again, "list")["elements"]), (&1003.into(), &4.into()));
}

#[test]
fn a_live_server_is_named_with_its_version_and_its_databases_are_known() {
    let ours = RedisServer::start_program(&[env!("CARGO_BIN_EXE_sardine")]).unwrap().unwrap();
    let mut client = RespClient::connect(&ours.address()).unwrap();
    client.call(&["SET", "a", "1"]).unwrap();
    let place = format!("127.0.0.1:{}", port(&mut client));
    let report = analyze(&[&format!("redis://{place}")]);
    assert_eq!(report["writer"], concat!("sardine ", env!("CARGO_PKG_VERSION")));
    assert!(report["source_bytes"].as_u64().is_some_and(|bytes| bytes > 0));
    // What the server uses is for the other database.
    let empty = analyze(&[&format!("redis://{place}/15")]);
    assert_eq!((&empty["keys"], &empty["source_bytes"]), (&Json::from(0), &Json::Null));
    for (url, why) in [
        (format!("redis://{place}/99"), "ERR DB index is out of range"),
        (format!("redis://:secret@{place}"), "ERR AUTH <password> called without any password"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sardine")).args(["analyze", &url]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.starts_with(&format!("{place}: {why}")), "{told}");
    }
}

#[test]
fn a_live_server_is_read_like_its_dump_file() {
    let Some((server, mut client)) = full_server() else { return };
    let port = port(&mut client);
    let folder = Scratch::new("analyze").unwrap();
    let page = folder.path().join("page.html");
    let url = format!("redis://127.0.0.1:{port}/0");
    let live = analyze(&[&url, "--rate", "1000000", "--html", page.to_str().unwrap()]);
    assert_eq!((live["keys"].as_u64(), live["unread"].as_u64()), (Some(KEYS), Some(0)));
    let named = |part: &str, name: &str| -> Json {
        live[part].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone()
    };
    assert_eq!(named("types", "hash")["keys"], GROUPS);
    assert_eq!(named("types", "zset")["elements"], GROUPS * 100);
    assert_eq!(named("prefixes", "cart:#:")["keys"], GROUPS);
    assert_eq!(named("expiries", "within an hour")["keys"], 1);
    assert_eq!(named("idle", "less than an hour")["keys"], KEYS);
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("</script>").count(), 1, "a name does not end the script");

    client.call(&["SAVE"]).unwrap();
    let file = analyze(&[server.folder().join("dump.rdb").to_str().unwrap()]);
    let ratio = bytes(&live) / bytes(&file);
    assert!((0.85..1.15).contains(&ratio), "{ratio}");
    let part = analyze(&[&url, "--rate", "1000000", "--sample", "3"]);
    let ratio = bytes(&part) / bytes(&live);
    assert!((0.7..1.3).contains(&ratio), "{ratio}");
}

/// What a shard takes for itself is not multiplied for more shards than the keys of the sample would be in.
#[test]
fn a_small_sample_tells_what_all_of_the_data_takes() {
    let ours = RedisServer::start_program(&[env!("CARGO_BIN_EXE_sardine")]).unwrap().unwrap();
    let mut client = RespClient::connect(&ours.address()).unwrap();
    for n in 0..20_000 {
        client.call(&["SET", &format!("session:{n:08}"), &n.to_string(), "EX", "10000"]).unwrap();
    }
    let url = format!("redis://127.0.0.1:{}", port(&mut client));
    let all = analyze(&[&url, "--rate", "1000000"]);
    let part = analyze(&[&url, "--rate", "1000000", "--sample", "20"]);
    assert_eq!((&part["looked_at"], &part["keys"]), (&1_000.into(), &20_000.into()));
    // All that is added up is multiplied alike.
    let of_keys = |report: &Json| bytes(report) - report["beside_keys_bytes"].as_f64().unwrap();
    for rows in ["types", "prefixes", "sizes", "expiries", "idle"] {
        let sum =
            |what: &str| part[rows].as_array().unwrap().iter().map(|row| row[what].as_f64().unwrap()).sum();
        let (keys, taken): (f64, f64) = (sum("keys"), sum("bytes"));
        assert_eq!((keys, taken), (20_000.0, of_keys(&part)), "{rows}");
    }
    let ratio = of_keys(&part) / of_keys(&all);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    let ratio = bytes(&part) / bytes(&all);
    assert!((0.7..1.4).contains(&ratio), "{ratio}");
}

/// A server that speaks TLS alone, and asks who is there.
fn with_tls(words: &[&str], certificates: &Certificates) -> Option<(RedisServer, String)> {
    let [ca, cert, key] = ["ca.crt", "server.crt", "server.key"].map(|name| certificates.text(name));
    let users = ["--user", "me", "on", ">p@ss", "~*", "+@all", "--user", "default", "off"];
    let tls = ["--tls-ca-cert-file", &ca, "--tls-cert-file", &cert, "--tls-key-file", &key];
    // A free port may be taken by somebody else meanwhile.
    (0..10).find_map(|_| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
        let all = [words, &tls, &users, &["--tls-port", &port]].concat();
        Some((RedisServer::start_program(&all).ok()??, port))
    })
}

#[test]
fn a_server_that_speaks_tls_is_asked_by_whom_it_knows() {
    let certificates = Certificates::new("analyze");
    certificates.make("stranger", None);
    for program in ["redis-server", env!("CARGO_BIN_EXE_sardine")] {
        let Some((_server, port)) = with_tls(&[program], &certificates) else {
            skip_without("redis-server with TLS");
            continue;
        };
        let [ca, cert, key, stranger] =
            ["ca.crt", "client.crt", "client.key", "stranger.crt"].map(|name| certificates.text(name));
        let url = |user: &str| format!("rediss://{user}@localhost:{port}");
        let known = ["--cacert", &ca, "--cert", &cert, "--key", &key];
        let report = analyze(&[&[url("me:p%40ss").as_str()], &known[..]].concat());
        assert_eq!(report["keys"], 0, "{program}");
        for (user, words, why) in [
            ("me:wrong", &known[..], "WRONGPASS"),
            ("me:p%40ss", &known[..2], ""),
            ("me:p%40ss", &["--cacert", &stranger, "--cert", &cert, "--key", &key][..], "certificate"),
            ("me:p%40ss", &[&known[..2], &known[2..4]].concat()[..], "go together"),
            ("me:p%40ss", &["--cacert", &key][..], "no certificate"),
        ] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
            let output = command.arg("analyze").arg(url(user)).args(words).output().unwrap();
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(1) && text.contains(why), "{program}, {words:?}: {text}");
            assert!(!text.contains("p@ss") && !text.contains("p%40ss"), "no password is shown: {text}");
        }
    }
}

#[test]
fn a_source_that_cannot_be_read_is_named() {
    for (source, why) in [
        ("/nonexistent.rdb", "/nonexistent.rdb: No such file"),
        ("redis://127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("redis://me:secret@127.0.0.1/x", "The address cannot be read: it is to be redis://"),
        ("http://127.0.0.1", "The address cannot be read"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_sardine")).args(["analyze", source]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && told.starts_with(why), "{told}");
        assert!(!told.contains("secret"), "{told}");
    }
}
