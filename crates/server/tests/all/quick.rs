//! Requests that take little however much there is under their key run where they come; those that take long
//! are handed to another thread. INFO counts these.
use crate::client::{Client, config, start};

const MANY: usize = 2000;

/// Sends a command with many words at once.
fn fill(client: &mut Client, head: &str, words: impl Iterator<Item = String>) {
    let words: Vec<String> = words.collect();
    client.raw(&format!("{head} {}", words.join(" ")));
}

/// A value of each kind, of so many elements.
fn fill_all(client: &mut Client) {
    let numbers = || (0..MANY).map(|n| n.to_string());
    fill(client, "RPUSH list", numbers());
    fill(client, "SADD set", numbers().map(|n| format!("m{n}")));
    fill(client, "SADD ints", numbers());
    fill(client, "HSET hash", numbers().map(|n| format!("f{n} {n}")));
    fill(client, "ZADD zset", numbers().map(|n| format!("{n} m{n}")));
}

/// Sends each request and looks whether it was handed to another thread.
#[track_caller]
fn check(client: &mut Client, requests: &[&str], is_handed: bool) {
    let lent = |client: &mut Client| client.info("lent_requests").parse::<u64>().expect("a number");
    for request in requests {
        let before = lent(client);
        let reply = client.raw(request);
        assert!(!reply.starts_with('-'), "{request}: {reply}");
        assert_eq!(lent(client) - before, u64::from(is_handed), "{request}");
    }
}

#[test]
fn what_a_key_takes_is_told_at_once_unless_all_of_it_is_to_be_looked_at() {
    let server = start(config());
    let mut client = Client::connect(&server);
    fill_all(&mut client);
    for key in ["list", "set", "ints", "hash", "zset"] {
        let usage = format!("MEMORY USAGE {key}");
        check(
            &mut client,
            &[&usage, &format!("{usage} SAMPLES 5"), &format!("{usage} SAMPLES 100000")],
            false,
        );
        check(&mut client, &[&format!("{usage} SAMPLES 0"), &format!("MEMORY LAYOUT {key}")], true);
    }
    // The groups of a stream are gone through, and their consumers.
    client.check("XGROUP CREATE stream g 0 MKSTREAM", "+OK\r\n");
    check(&mut client, &["MEMORY USAGE stream"], false);
    (0..200).for_each(|n| client.check(&format!("XGROUP CREATECONSUMER stream g c{n}"), ":1\r\n"));
    check(&mut client, &["MEMORY USAGE stream"], true);
}
