//! Requests that are refused, which may take as long as those that run.
use crate::lent::{call, text, words};
use server::Config;
use testkit::in_process::InProcess;
use testkit::resp_client::{RespClient, request};

const REQUESTS: usize = 100;
/// So many patterns are compared with each key, which takes about a millisecond for a request.
const PATTERNS: usize = 2000;
const ATTEMPTS: usize = 20;

fn rejected(client: &mut RespClient) -> usize {
    let stats = text(&call(client, "INFO commandstats"));
    let del = stats.lines().find_map(|line| line.strip_prefix("cmdstat_del:")).unwrap_or_default();
    let count = del.split(',').find_map(|part| part.strip_prefix("rejected_calls=")).unwrap_or("0");
    count.parse().unwrap()
}

#[test]
fn others_have_their_turn_between_requests_that_take_long_to_be_refused() {
    let server = InProcess::start(Config { worker_threads: 1, ..InProcess::config() });
    let (mut client, mut other) = (server.client().unwrap(), server.client().unwrap());
    let patterns: String = (0..PATTERNS).map(|n| format!(" ~*{n}*x")).collect();
    call(&mut other, &format!("ACL SETUSER u on nopass +del{patterns}"));
    call(&mut client, "AUTH u p");
    let keys: String = (0..20).map(|n| format!(" key{n}")).collect();
    let all = request(&words(&format!("DEL{keys}"))).repeat(REQUESTS);
    let is_served_between = (0..ATTEMPTS).any(|_| {
        call(&mut other, "CONFIG RESETSTAT");
        client.send_bytes(&all).unwrap();
        let mut is_between = false;
        loop {
            match rejected(&mut other) {
                REQUESTS => break,
                count => is_between |= count > 0,
            }
        }
        (0..REQUESTS).for_each(|_| drop(client.receive().unwrap()));
        is_between
    });
    assert!(is_served_between, "all of them came before any request of another client");
}
