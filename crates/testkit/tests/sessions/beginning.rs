//! WAITAOF while the append-only file begins: its first snapshot is being written, so nothing is on the disk.
use crate::lent::{figure, wait_until};
use server::Config;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

fn say(client: &mut RespClient, line: &str) -> String {
    let reply = client.call(&line.split(' ').collect::<Vec<&str>>()).unwrap();
    String::from_utf8_lossy(reply.text().unwrap_or_default()).into_owned()
}

/// A server whose append-only file takes long to begin, and a client of it that waits for the disk.
fn begin(server: &InProcess) -> (RespClient, RespClient) {
    let (mut client, mut waiter) = (server.client().unwrap(), server.client().unwrap());
    for line in [
        "DEBUG POPULATE 2000",
        "CONFIG SET rdb-key-save-delay 1000",
        "CONFIG SET appendfsync always",
        "CONFIG SET appendonly yes",
    ] {
        assert_eq!(say(&mut client, line), "OK");
    }
    wait_until(&mut client, |client| figure(client, "aof_rewrite_in_progress") == "1");
    assert_eq!(say(&mut waiter, "SET k v"), "OK");
    waiter.send(&["WAITAOF", "1", "0", "0"]).unwrap();
    wait_until(&mut client, |client| figure(client, "blocked_clients") == "1");
    (client, waiter)
}

#[test]
fn who_waits_for_the_disk_waits_for_the_snapshot_that_the_file_begins_with() {
    let server = InProcess::start(Config { worker_threads: 2, ..InProcess::config() });
    let (mut client, mut waiter) = begin(&server);
    while figure(&mut client, "aof_rewrite_in_progress") == "1" {
        let is_answered = figure(&mut client, "blocked_clients") == "0";
        assert!(!is_answered || figure(&mut client, "aof_rewrite_in_progress") == "0");
    }
    let numbers = [1, 0].map(|number: u8| Value::Line(b':', number.to_string().into_bytes()));
    assert_eq!(waiter.receive().unwrap(), Value::Aggregate(b'*', numbers.to_vec()));
}

#[test]
fn who_waits_for_the_disk_is_told_that_there_will_be_no_file() {
    let server = InProcess::start(Config { worker_threads: 2, ..InProcess::config() });
    let (mut client, mut waiter) = begin(&server);
    assert_eq!(say(&mut client, "CONFIG SET appendonly no"), "OK");
    let answer = waiter.receive().unwrap();
    let text = "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
    assert_eq!(answer, Value::Line(b'-', text.into()));
    assert_eq!(say(&mut waiter, "GET k"), "v");
}
