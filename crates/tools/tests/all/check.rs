//! `sardine check` on files that a real redis-server wrote, and on what damage makes of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::scratch::Scratch;

/// The exit status and what was printed.
fn check(program: &Path, words: &[&Path]) -> (i32, String) {
    let output = Command::new(program).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn sardine(file: &Path) -> (i32, String) {
    check(Path::new(env!("CARGO_BIN_EXE_sardine")), &[Path::new("check"), file])
}

/// A dump file of keys of all types; None without a redis-server.
fn dump(folder: &Path) -> Option<PathBuf> {
    let Some(server) = RedisServer::installed().unwrap() else {
        skip_without("redis-server");
        return None;
    };
    let mut client = RespClient::connect(&server.address()).unwrap();
    let requests = [
        "SET plain value",
        "SET passing value PX 1",
        "SET staying value EX 1000",
        "RPUSH list a b c",
        "SADD set 1 2 3",
        "SADD names a b",
        "HSET hash field value",
        "ZADD zset 1 a 2.5 b",
        "XADD stream 1-1 field value",
        "SELECT 9",
        "SET other value",
    ];
    client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).unwrap();
    for request in requests {
        client.call(&request.split(' ').collect::<Vec<_>>()).unwrap();
    }
    client.call(&["SAVE"]).unwrap();
    let path = folder.join("dump.rdb");
    fs::copy(server.folder().join("dump.rdb"), &path).unwrap();
    Some(path)
}

#[test]
fn a_good_file_is_shown_with_what_is_in_it() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let (status, text) = sardine(&path);
    assert_eq!(status, 0, "{text}");
    for line in [
        "RDB version 10\n",
        "redis-ver: ",
        "keys: 10\n",
        "with a deadline: 2 (1 have expired)",
        "string: 4\n",
        "set: 2 with 5 elements",
        "zset: 1 with 2 elements",
        "stream: 1 with 1 elements",
        "and its checksum is right",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let link = folder.path().join("redis-check-rdb");
    symlink(env!("CARGO_BIN_EXE_sardine"), &link).unwrap();
    assert_eq!(check(&link, &[&path]), (status, text));
}

#[test]
fn no_cut_and_no_changed_byte_passes_for_good() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let good = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.rdb");
    let step = good.len() / 12;
    for at in (0..good.len()).step_by(step) {
        fs::write(&damaged, &good[..at]).unwrap();
        let (status, text) = sardine(&damaged);
        assert_eq!(status, 1, "cut at {at}: {text}");
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&damaged, &bytes).unwrap();
        let (status, text) = sardine(&damaged);
        assert_eq!(status, 1, "changed at {at}: {text}");
    }
}

#[test]
fn a_broken_value_is_named_with_its_key() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let mut bytes = fs::read(&path).unwrap();
    // Behind the name and the length of the listpack stand its own length and number of elements.
    let at = bytes.windows(4).position(|part| part == b"zset").unwrap() + 4;
    bytes[at + 1] = 0xFF;
    fs::write(&path, &bytes).unwrap();
    let (status, text) = sardine(&path);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("BROKEN: the value of 'zset' in database 0"), "{text}");
}

#[test]
fn an_append_only_file_is_refused_as_such() {
    let folder = Scratch::new("check").unwrap();
    let path = folder.path().join("appendonly.aof");
    fs::write(&path, "*1\r\n$4\r\nPING\r\n").unwrap();
    let (status, text) = sardine(&path);
    assert_eq!(status, 1);
    assert!(text.contains("append-only file"), "{text}");
}
