//! What HELP answers is in words of Sardine's own (docs/differences.md).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::collections::BTreeSet;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

const CONTAINERS: [&str; 15] = [
    "ACL", "CLIENT", "COMMAND", "CONFIG", "DEBUG", "FUNCTION", "LATENCY", "MEMORY", "MODULE", "OBJECT",
    "PUBSUB", "SCRIPT", "SLOWLOG", "XGROUP", "XINFO",
];
/// What Redis and all that speak its protocol say of HELP itself.
const OF_HELP: &str = "Print this help.";

/// The lines of HELP that describe, without those that only name an option with its values.
fn descriptions(server: &RedisServer, container: &str) -> BTreeSet<String> {
    let mut client = RespClient::connect(&server.address()).unwrap();
    let Value::Aggregate(_, lines) = client.call(&[container, "HELP"]).unwrap() else {
        panic!("{container} HELP is answered with lines");
    };
    let text = |line: Value| match line {
        Value::Line(_, text) | Value::Blob(_, text) => String::from_utf8(text).unwrap(),
        other => panic!("{container} HELP: {other:?}"),
    };
    let lines = lines.into_iter().map(text).filter(|line| line.starts_with("    "));
    let words = lines.map(|line| line.trim().to_string());
    let describes = |line: &String| !line.starts_with(['*', '[']) || line.contains(": ");
    words.filter(|line| line != OF_HELP && describes(line)).collect()
}

#[test]
fn help_has_no_description_in_common_with_that_of_redis() {
    let Some(redis) = RedisServer::installed().unwrap() else { return skip_without("redis-server") };
    let program = [env!("CARGO_BIN_EXE_sardine"), "--enable-debug-command", "yes"];
    let ours = RedisServer::start_program(&program).unwrap().unwrap();
    for container in CONTAINERS {
        let (ours, theirs) = (descriptions(&ours, container), descriptions(&redis, container));
        assert!(!ours.is_empty() && !theirs.is_empty(), "{container}");
        let common: Vec<&String> = ours.intersection(&theirs).collect();
        assert!(common.is_empty(), "{container}: {common:?}");
    }
}
