//! Keyspace notifications: events of keys from any worker, and from no request at all.
use crate::client::{Client, REMOVED_AFTER, bulk, config, start, start_at_noon};
use server::Config;
use std::time::Duration;

/// Listens to the events of all keys, told by event.
fn listener(client: &mut Client) {
    client.check("PSUBSCRIBE __keyevent@*", "*3\r\n$10\r\npsubscribe\r\n$12\r\n__keyevent@*\r\n:1\r\n");
}

fn event(name: &str, key: &str) -> String {
    format!(
        "*4\r\n$8\r\npmessage\r\n{}{}{}",
        bulk("__keyevent@*"),
        bulk(&format!("__keyevent@0__:{name}")),
        bulk(key)
    )
}

fn set(client: &mut Client, letters: &str) {
    client.check(&format!("CONFIG SET notify-keyspace-events {letters}"), "+OK\r\n");
}

#[test]
fn keys_and_fields_that_expire_are_told_when_their_time_comes_though_nobody_asks() {
    let (server, time) = start_at_noon(config());
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    set(&mut client, "Exh");
    listener(&mut other);
    client.check("SET a 1 PX 100", "+OK\r\n");
    client.check("SET b 1", "+OK\r\n");
    client.check("HSETEX h PX 200 FIELDS 1 f 1", ":1\r\n");
    other.expect(&event("hset", "h"));
    other.expect(&event("hexpire", "h"));
    time.advance(Duration::from_millis(100) + REMOVED_AFTER);
    other.expect(&event("expired", "a"));
    time.advance(Duration::from_millis(100));
    other.expect(&event("hexpired", "h"));
    client.check("DBSIZE", ":1\r\n");
}

/// The hash is looked at when its first deadline would have come, and nothing is told.
#[test]
fn no_field_is_said_to_have_expired_whose_deadline_was_taken_away_or_put_off() {
    let (server, time) = start_at_noon(config());
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    listener(&mut other);
    for (request, reply) in [
        ("HPERSIST h FIELDS 1 a", "*1\r\n:1\r\n"),
        ("HPEXPIRE h 100000 FIELDS 1 a", "*1\r\n:1\r\n"),
        ("HSET h a 5", ":0\r\n"),
        ("HDEL h a", ":1\r\n"),
    ] {
        // Of the second the hash lies outside its entry.
        for value in ["1", &"x".repeat(600)] {
            client.check("CONFIG SET notify-keyspace-events ", "+OK\r\n");
            client.check(&format!("HSET h a 1 b {value} c 1"), ":3\r\n");
            client.check("HPEXPIRE h 200 FIELDS 1 c", "*1\r\n:1\r\n");
            client.check("HPEXPIRE h 100 FIELDS 1 a", "*1\r\n:1\r\n");
            client.check(request, reply);
            set(&mut client, "Eh");
            client.check("SET end 1", "+OK\r\n");
            for _ in 0..15 {
                time.advance(Duration::from_millis(10));
                client.check("GET end", "$1\r\n1\r\n");
            }
            client.check("HSET mark f 1", ":1\r\n");
            other.expect(&event("hset", "mark"));
            time.advance(Duration::from_millis(100));
            other.expect(&event("hexpired", "h"));
            client.check("DEL h mark end", ":3\r\n");
        }
    }
}

/// All that is past its deadline goes before the command does anything, as if it had gone in time.
#[test]
fn a_write_that_finds_all_fields_of_a_hash_past_their_deadline_tells_that_the_key_is_gone() {
    let (server, time) = start_at_noon(config());
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
    listener(&mut other);
    let text = "x".repeat(600);
    let anew = [
        ("HINCRBY h f 1", ":1\r\n", &["new", "hincrby"][..]),
        ("HSETNX h f 1", ":1\r\n", &["new", "hset"]),
        ("HSETEX h FNX FIELDS 1 f 1", ":1\r\n", &["new", "hset"]),
        ("HSET h g 1", ":1\r\n", &["new", "hset"]),
    ];
    let gone = [
        ("HDEL h f", ":0\r\n"),
        ("HGETDEL h FIELDS 1 f", "*1\r\n$-1\r\n"),
        ("HGETEX h FIELDS 1 f", "*1\r\n$-1\r\n"),
        ("HSETEX h FXX FIELDS 1 f 1", ":0\r\n"),
        ("HEXPIRE h 100 FIELDS 1 f", "*1\r\n:-2\r\n"),
        ("HPERSIST h FIELDS 1 f", "*1\r\n:-2\r\n"),
    ];
    let gone = gone.map(|(request, reply)| (request, reply, &[][..]));
    for (request, reply, events) in anew.into_iter().chain(gone) {
        // Of the second the value lies outside its entry.
        for value in ["1", &text] {
            client.check("CONFIG SET notify-keyspace-events ", "+OK\r\n");
            client.check(&format!("HSET h f {value}"), ":1\r\n");
            client.check("HPEXPIRE h 10 FIELDS 1 f", "*1\r\n:1\r\n");
            client.check("EXPIRE h 1000", ":1\r\n");
            time.advance(Duration::from_millis(20));
            set(&mut client, "Eghn");
            client.check(request, reply);
            other.expect(&event("hexpired", "h"));
            other.expect(&event("del", "h"));
            events.iter().for_each(|name| other.expect(&event(name, "h")));
            client.check("EXPIRE h 1000", if events.is_empty() { ":0\r\n" } else { ":1\r\n" });
            if !events.is_empty() {
                other.expect(&event("expire", "h"));
                assert!(client.info("db0").starts_with("keys=1,expires=1,"));
                assert!(client.info("db0").ends_with(",subexpiry=0"));
                client.check("PERSIST h", ":1\r\n");
                other.expect(&event("persist", "h"));
                client.check("DEL h", ":1\r\n");
                other.expect(&event("del", "h"));
            }
            client.check("DBSIZE", ":0\r\n");
        }
    }
    client.check("HSETEX h PXAT 1 FIELDS 1 f 1", ":1\r\n");
    ["new", "hset", "hdel", "del"].iter().for_each(|name| other.expect(&event(name, "h")));
}

#[test]
fn nothing_is_told_unless_it_is_said_how_and_of_what() {
    let server = start(config());
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    listener(&mut other);
    for letters in ["g$", "K", "E", "KElg"] {
        set(&mut client, letters);
        client.check("SET k v", "+OK\r\n");
        client.check("GET nothing", "$-1\r\n");
        client.check("CONFIG SET notify-keyspace-events Eg", "+OK\r\n");
        client.check("DEL k", ":1\r\n");
        other.expect(&event("del", "k"));
    }
}

#[test]
fn a_client_is_told_of_its_own_writes_behind_their_replies_and_before_the_next_ones() {
    let server = start(Config { worker_threads: 4, ..config() });
    let mut client = Client::connect(&server);
    set(&mut client, "E$n");
    assert!(client.raw("HELLO 3").starts_with('%'));
    client.check("PSUBSCRIBE __keyevent@*", ">3\r\n$10\r\npsubscribe\r\n$12\r\n__keyevent@*\r\n:1\r\n");
    let pushed = |name: &str, key: &str| event(name, key).replacen('*', ">", 1);
    for n in 0..100 {
        let key = format!("k{n}");
        client.send(format!("SET {key} v\r\nPING\r\nAPPEND {key} w\r\nSTRLEN {key}\r\n").as_bytes());
        let (new, set, append) = (pushed("new", &key), pushed("set", &key), pushed("append", &key));
        client.expect(&format!("+OK\r\n{new}{set}+PONG\r\n:2\r\n{append}:2\r\n"));
    }
}

#[test]
fn events_of_a_key_come_in_the_order_of_its_changes_whoever_makes_them() {
    const ROUNDS: usize = 300;
    let server = start(Config { worker_threads: 4, ..config() });
    let mut other = Client::connect(&server);
    set(&mut other, "Elg");
    listener(&mut other);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut client = Client::connect(&server);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    client.send(b"RPUSH l x\r\nLPOP l\r\n");
                    (0..2).for_each(|_| drop(client.raw_reply()));
                }
            });
        }
        // What was pushed is popped later, and the list is gone exactly when it is empty.
        let mut len = 0;
        let mut pops = 0;
        while pops < 4 * ROUNDS || len > 0 {
            match other.raw_reply().lines().nth(6).unwrap() {
                "__keyevent@0__:rpush" => len += 1,
                "__keyevent@0__:lpop" => {
                    (len, pops) = (len - 1, pops + 1);
                    if len == 0 {
                        other.expect(&event("del", "l"));
                    }
                }
                told => panic!("{told} where {len} were in the list"),
            }
        }
    });
}

#[test]
fn the_letters_are_shown_as_redis_shows_them() {
    let server = start(config());
    let mut client = Client::connect(&server);
    for (given, shown) in [("KEA", "AKE"), ("mnKx", "xnKm"), ("AnK", "AK")] {
        set(&mut client, given);
        let reply = format!("*2\r\n$22\r\nnotify-keyspace-events\r\n{}", bulk(shown));
        client.check("CONFIG GET notify-keyspace-events", &reply);
    }
    let error = "-ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event \
                 class character. Use 'Ag$lshzxeKEtmdn'.\r\n";
    client.check("CONFIG SET notify-keyspace-events q", error);
}
