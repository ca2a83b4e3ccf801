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

/// What is not sorted is read as far as LIMIT says.
#[test]
fn a_sort_that_does_not_sort_takes_as_long_as_what_limit_takes() {
    let server = start(config());
    let mut client = Client::connect(&server);
    fill_all(&mut client);
    for key in ["list", "zset", "set", "ints"] {
        let quick =
            ["LIMIT 0 3", "LIMIT 7 3 DESC", "LIMIT 0 3 ALPHA", "LIMIT 0 3 GET #", "LIMIT 0 3 GET nosuch*"];
        for options in quick {
            check(&mut client, &[&format!("SORT {key} BY nosort {options}")], false);
            check(&mut client, &[&format!("SORT_RO {key} BY nosort {options}")], false);
        }
        for options in ["ASC", "LIMIT 0 -1", "LIMIT 0 1000", "DESC", "GET nosuch*"] {
            check(&mut client, &[&format!("SORT {key} BY nosort {options}")], true);
        }
        for options in ["ALPHA LIMIT 0 3", "BY nosuch* LIMIT 0 3"] {
            check(&mut client, &[&format!("SORT {key} {options}")], true);
        }
    }
    // Members of a set are gone through up to the first that is wanted, elements of a list or sorted set are
    // not. What is stored of a set is sorted.
    for (key, is_set) in [("list", false), ("zset", false), ("set", true), ("ints", true)] {
        check(&mut client, &[&format!("SORT {key} BY nosort LIMIT 1900 3")], is_set);
        check(&mut client, &[&format!("SORT {key} BY nosort LIMIT 0 3 STORE other")], is_set);
    }
    let members = client.raw("SMEMBERS set");
    let nth = |n: usize| members.split("\r\n").nth(2 * n + 2).expect("it is there").to_owned();
    let expected: String = (5..8).map(|n| format!("${}\r\n{}\r\n", nth(n).len(), nth(n))).collect();
    client.check("SORT set BY nosort LIMIT 5 3", &format!("*3\r\n{expected}"));
    client.check("SORT set BY nosort LIMIT 5 0", "*0\r\n");
    client.check("SORT set BY nosort LIMIT 2000 3", "*0\r\n");
    client.check("SORT list BY nosort LIMIT 7 2 DESC", "*2\r\n$4\r\n1992\r\n$4\r\n1991\r\n");
}

#[test]
fn what_is_pending_is_told_at_once_where_it_is_found_among_the_first() {
    let server = start(config());
    let mut client = Client::connect(&server);
    (1..=MANY).for_each(|n| drop(client.raw(&format!("XADD x {n}-0 f v"))));
    client.check("XGROUP CREATE x g 0", "+OK\r\n");
    client.raw("XREADGROUP GROUP g c COUNT 2000 STREAMS x >");
    client.raw("XCLAIM x g c 0 1-0 2-0 3-0 4-0 5-0 IDLE 50000 JUSTID");
    let quick = [
        "IDLE 40000 - + 5",
        "IDLE 40000 - + 1 c",
        "IDLE 40000 100-0 105-0 5",
        "- + 5",
        "- + 5 c",
        "IDLE 40000 - + 0",
    ];
    quick.iter().for_each(|query| check(&mut client, &[&format!("XPENDING x g {query}")], false));
    // The sixth may be anywhere; of one consumer fewer are looked at.
    let slow = ["IDLE 40000 - + 6", "IDLE 40000 6-0 + 1", "IDLE 40000 9-0 + 1 c", "IDLE 0 - + 2000"];
    slow.iter().for_each(|query| check(&mut client, &[&format!("XPENDING x g {query}")], true));
    assert!(client.raw("XPENDING x g IDLE 40000 - + 6").starts_with("*5\r\n*4\r\n$3\r\n1-0\r\n"));
}

#[test]
fn an_intersection_ends_at_once_where_limit_is_reached_among_the_first_members() {
    let server = start(config());
    let mut client = Client::connect(&server);
    fill_all(&mut client);
    fill(&mut client, "SADD same", (0..MANY).map(|n| format!("m{n}")));
    fill(&mut client, "SADD long", (0..MANY / 20).map(|n| format!("{n}{}", "x".repeat(2000))));
    check(&mut client, &["SINTERCARD 2 set same LIMIT 2", "SINTERCARD 2 long long LIMIT 1"], false);
    check(&mut client, &["ZINTERCARD 3 set zset same LIMIT 1"], false);
    check(&mut client, &["SINTERCARD 2 set same", "SINTERCARD 2 set same LIMIT 1000"], true);
    check(&mut client, &["SINTERCARD 2 set ints LIMIT 1", "SINTERCARD 2 long long"], true);
}

#[test]
fn a_member_moves_only_where_it_is_in_one_set_and_may_be_in_the_other() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.raw("SADD a 1 x y");
    client.raw("RPUSH list 1");
    client.check("SMOVE none list x", ":0\r\n");
    client.check("SMOVE a a x", ":1\r\n");
    client.check("SMOVE a a z", ":0\r\n");
    client.check("SMOVE a b z", ":0\r\n");
    assert!(client.raw("SMOVE a list x").starts_with("-WRONGTYPE"));
    assert!(client.raw("SMOVE a list z").starts_with("-WRONGTYPE"));
    client.check("EXISTS b", ":0\r\n");
    for member in ["x", "y", "1"] {
        client.check("SISMEMBER a 1", ":1\r\n");
        client.check(&format!("SMOVE a b {member}"), ":1\r\n");
        client.check(&format!("SISMEMBER b {member}"), ":1\r\n");
    }
    client.check("EXISTS a", ":0\r\n");
}

/// What a group has pending is looked at also where the entries have gone, and in every group where
/// references to entries go with these.
#[test]
fn what_groups_have_pending_counts_for_requests_that_go_through_it() {
    let server = start(config());
    let mut client = Client::connect(&server);
    (1..=60).for_each(|n| drop(client.raw(&format!("XADD x {n}-0 f v"))));
    for group in 0..100 {
        client.check(&format!("XGROUP CREATE x g{group} 0"), "+OK\r\n");
    }
    client.raw("XREADGROUP GROUP g0 c STREAMS x >");
    let ids: Vec<String> = (1..=60).map(|n| format!("{n}-0")).collect();
    let few = ["XREADGROUP GROUP g0 other STREAMS x 0", "XTRIM x MAXLEN 60 DELREF", "XDELEX x IDS 1 60-0"];
    check(&mut client, &few, false);
    let many = [
        "XDELEX x DELREF IDS 2 58-0 59-0",
        "XDELEX x IDS 2 56-0 57-0 ACKED",
        "XACKDEL x g0 DELREF IDS 2 54-0 55-0",
        "XADD x DELREF MAXLEN 50 100-0 f v",
        "XTRIM x MAXLEN 48 DELREF",
        "XTRIM x MAXLEN 46 ACKED",
    ];
    check(&mut client, &many, true);
    check(
        &mut client,
        &["XDELEX x KEEPREF IDS 1 53-0", "XTRIM x MAXLEN 44", "XADD x MAXLEN 44 101-0 f v"],
        false,
    );
    client.raw(&format!("XDEL x {} 100-0 101-0", ids.join(" ")));
    client.check("XLEN x", ":0\r\n");
    check(&mut client, &["XREADGROUP GROUP g0 c COUNT 2 STREAMS x 0"], false);
    check(&mut client, &["XREADGROUP GROUP g0 c STREAMS x 0"], true);
}
