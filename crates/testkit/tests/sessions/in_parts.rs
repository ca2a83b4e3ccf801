//! Requests of very many keys, which run in parts: that they do what they would do at once, and that nobody
//! sees one half done.
use crate::lent::{MANY, call, figure, in_exec, listener, text, wait_until, words};
use server::Config;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

fn server(workers: usize) -> InProcess {
    InProcess::start(Config { worker_threads: workers, ..InProcess::config() })
}

fn names() -> String {
    (0..MANY).map(|n| format!(" key{n}")).collect()
}

/// Every key with this in its value.
fn pairs(value: &str) -> String {
    (0..MANY).map(|n| format!(" key{n} {value}{n}")).collect()
}

/// Keys of all sorts among those of the requests.
fn fill(client: &mut RespClient) {
    call(client, &format!("MSET{}", (0..MANY / 2).map(|n| format!(" key{} old", n * 2)).collect::<String>()));
    for request in ["DEL key4 key6", "RPUSH key4 a b", "SADD key6 1 2 3", "PEXPIRE key8 100", "SET other x"] {
        call(client, request);
    }
}

/// What everybody is told of until this moment, in any order.
fn told(listener: &mut RespClient, other: &mut RespClient) -> Vec<String> {
    call(other, "PUBLISH end x");
    let mut all = Vec::new();
    loop {
        let Value::Aggregate(_, parts) = listener.receive().unwrap() else { panic!("a message") };
        match text(&parts[2]).as_str() {
            "end" => break,
            channel => all.push(format!("{channel} {}", text(&parts[3]))),
        }
    }
    all.sort();
    all
}

fn digest(client: &mut RespClient) -> String {
    text(&call(client, "DEBUG DIGEST"))
}

/// Has a client send a request of which these many parts run.
fn hold_after(server: &InProcess, parts: usize, client: &mut RespClient, request: &str) {
    const ROUNDS: usize = 10_000_000;
    server.server.hold_parts_after(Some(parts));
    client.send(&words(request)).unwrap();
    let has_begun = |_| {
        std::thread::yield_now();
        server.server.has_parts_left()
    };
    assert!((0..ROUNDS).any(has_begun), "it runs in parts");
}

#[test]
fn what_is_done_in_parts_is_what_would_be_done_at_once() {
    let server = server(2);
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut listener = listener(&server);
    call(&mut other, "CONFIG SET maxmemory-policy allkeys-lfu");
    let fresh: String = (0..MANY).map(|n| format!(" fresh{n} {n}")).collect();
    for request in [
        format!("MSET{} key7 twice key4 thrice key7 last", pairs("new")),
        format!("MSETNX{}", pairs("new")),
        format!("MSETNX{fresh} fresh7 last"),
        format!("DEL{} key7 key8 key7", names()),
        format!("UNLINK{} key7", names()),
        format!("EXISTS{} key8 key8", names()),
        format!("TOUCH{} key8 none", names()),
        format!("MGET{} key8 none key8", names()),
    ] {
        let begin = |other: &mut RespClient, listener: &mut RespClient| {
            call(other, "FLUSHALL");
            fill(other);
            call(other, "CONFIG RESETSTAT");
            told(listener, other);
            figure(other, "rdb_changes_since_last_save").parse::<u64>().unwrap()
        };
        let counted = |other: &mut RespClient| {
            ["rdb_changes_since_last_save", "keyspace_hits", "keyspace_misses"]
                .map(|name| figure(other, name).parse::<u64>().unwrap())
        };
        let start = begin(&mut other, &mut listener);
        let expected = in_exec(&mut one, &request);
        let [changes, hits, misses] = counted(&mut other);
        let expected_counts = [changes - start, hits, misses];
        let (events, digest_then) = (told(&mut listener, &mut other), digest(&mut other));
        let start = begin(&mut other, &mut listener);
        let answered = call(&mut one, &request);
        let head = &request[..6];
        assert_eq!(figure(&mut other, "lent_requests"), "1", "{head} runs in parts");
        assert!(answered == expected, "{head}: {answered:?} {expected:?}");
        let [changes, hits, misses] = counted(&mut other);
        assert_eq!([changes - start, hits, misses], expected_counts, "{head}");
        assert_eq!(told(&mut listener, &mut other), events, "{head}");
        assert_eq!(digest(&mut other), digest_then, "{head}");
        let name = request.split(' ').next().unwrap().to_lowercase();
        let stats = figure(&mut other, &format!("cmdstat_{name}"));
        assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=0"), "{stats}");
    }
}

#[test]
fn what_is_wrong_is_told_as_ever() {
    let server = server(1);
    let mut one = server.client().unwrap();
    for name in ["MSET", "MSETNX"] {
        let answered = call(&mut one, &format!("{name}{} odd", pairs("new")));
        let expected = format!("ERR wrong number of arguments for '{}' command", name.to_lowercase());
        assert_eq!(answered, Value::Line(b'-', expected.into_bytes()));
    }
    assert_eq!(text(&call(&mut one, "DBSIZE")), "0");
}

#[test]
fn nobody_sees_it_half_done() {
    let server = server(2);
    let mut other = server.client().unwrap();
    let scan = format!("SCAN 0 COUNT {}", 10 * MANY);
    let last = MANY - 1;
    let asks = [
        format!("GET key{last}"),
        "GET key0".to_owned(),
        format!("MGET key1 key{last} key5"),
        format!("EXISTS{}", names()),
        "DBSIZE".to_owned(),
        scan,
        "KEYS key*".to_owned(),
        "RANDOMKEY".to_owned(),
        format!("EVAL return(redis.call('GET',KEYS[1])) 1 key{last}"),
        format!("EVAL return(redis.call('GET','key{last}')) 0"),
        "STRLEN key77".to_owned(),
        "APPEND key78 x".to_owned(),
        "COPY other key79".to_owned(),
        "OBJECT ENCODING key80".to_owned(),
        "SINTERSTORE key81 none".to_owned(),
    ];
    for request in
        [format!("MSET{}", pairs("new")), format!("MSETNX{}", pairs("new")), format!("DEL{}", names())]
    {
        for ask in &asks {
            let begin = |other: &mut RespClient| {
                call(other, "FLUSHALL");
                call(other, "SET other x");
                if request.starts_with("DEL") {
                    call(other, &format!("MSET{}", pairs("old")));
                }
            };
            let mut one = server.client().unwrap();
            let mut asker = server.client().unwrap();
            begin(&mut other);
            let expected = call(&mut one, &request);
            let mut told = call(&mut asker, ask);
            begin(&mut other);
            hold_after(&server, 3, &mut one, &request);
            asker.send(&words(ask)).unwrap();
            call(&mut other, "SET elsewhere x");
            assert_eq!(text(&call(&mut other, "GET elsewhere")), "x", "others are answered meanwhile");
            call(&mut other, "UNLINK elsewhere");
            server.server.hold_parts_after(None);
            let mut answered = asker.receive().unwrap();
            assert_eq!(one.receive().unwrap(), expected);
            if ask.starts_with("KEYS") {
                told.sort();
                answered.sort();
            }
            if !ask.starts_with("RANDOMKEY") || request.starts_with("DEL") {
                assert_eq!(answered, told, "{ask} beside {}", &request[..6]);
            }
        }
    }
}

#[test]
fn what_is_read_in_parts_is_what_was_there_at_one_moment() {
    let server = server(2);
    let (mut one, mut other, mut third) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    call(&mut other, "CONFIG SET maxmemory-policy allkeys-lru");
    call(&mut other, &format!("MSET{}", pairs("old")));
    hold_after(&server, 3, &mut one, &format!("MGET{}", names()));
    assert_eq!(text(&call(&mut other, "GET key7")), "old7", "who reads does not wait");
    third.send(&words(&format!("MSET key0 new key{} new", MANY - 1))).unwrap();
    call(&mut other, "SET elsewhere x");
    server.server.hold_parts_after(None);
    let Value::Aggregate(_, read) = one.receive().unwrap() else { panic!("an array") };
    let expected: Vec<String> = (0..MANY).map(|n| format!("old{n}")).collect();
    assert_eq!(read.iter().map(text).collect::<Vec<_>>(), expected);
    assert_eq!(text(&third.receive().unwrap()), "OK");
    assert_eq!(text(&call(&mut other, "GET key0")), "new");
}

#[test]
fn whoever_needs_all_data_finds_it_done() {
    let server = server(2);
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    let request = format!("MSET{}", pairs("new"));
    call(&mut one, &request);
    let whole = digest(&mut other);
    let mut third = server.client().unwrap();
    let alone = ["DEBUG DIGEST", "SAVE", "BGSAVE", "CLIENT PAUSE 1 WRITE", "DEBUG RELOAD"];
    for alone in alone {
        call(&mut other, "FLUSHALL");
        hold_after(&server, 3, &mut one, &request);
        other.send(&words(alone)).unwrap();
        for _ in 0..20 {
            assert_eq!(text(&call(&mut third, "GET elsewhere")), "", "nobody else waits");
        }
        assert!(server.server.has_parts_left() && other.try_receive().unwrap().is_none(), "{alone} waits");
        server.server.hold_parts_after(None);
        let answered = other.receive().unwrap();
        assert!(!matches!(answered, Value::Line(b'-', _)), "{alone}: {answered:?}");
        assert!(!server.server.has_parts_left(), "{alone} has waited for its end");
        server.time.advance(std::time::Duration::from_millis(5));
        assert_eq!(text(&one.receive().unwrap()), "OK", "{alone}");
        assert_eq!(digest(&mut other), whole, "{alone}");
    }
    call(&mut other, "FLUSHALL");
    for queued in ["MULTI", "KEYS *", "DBSIZE"] {
        call(&mut other, queued);
    }
    hold_after(&server, 3, &mut one, &request);
    let Value::Aggregate(_, replies) = call(&mut other, "EXEC") else { panic!("an array") };
    assert_eq!(text(&replies[1]), MANY.to_string(), "EXEC has ended it");
    server.server.hold_parts_after(None);
    assert_eq!(text(&one.receive().unwrap()), "OK");
}

#[test]
fn settings_and_users_change_beside_it() {
    let server = server(2);
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    hold_after(&server, 3, &mut one, &format!("MSET{}", pairs("new")));
    for change in ["CONFIG SET hz 20", "ACL SETUSER somebody on", "ACL DELUSER somebody"] {
        assert!(!text(&call(&mut other, change)).starts_with("ERR"), "{change}");
        assert!(server.server.has_parts_left(), "{change} has nobody wait for the rest");
    }
    server.server.hold_parts_after(None);
    assert_eq!(text(&one.receive().unwrap()), "OK");
    assert_eq!(text(&call(&mut other, "DBSIZE")), MANY.to_string());
}

#[test]
fn two_of_them_come_one_behind_the_other() {
    let server = server(3);
    let mut clients: Vec<RespClient> = (0..4).map(|_| server.client().unwrap()).collect();
    let mut other = server.client().unwrap();
    let requests = ["a", "b", "c"].map(|value| format!("MSET{}", pairs(value)));
    let requests: Vec<String> = requests.into_iter().chain([format!("DEL{}", names())]).collect();
    for round in 0..10 {
        call(&mut other, "FLUSHALL");
        for (client, request) in clients.iter_mut().zip(&requests) {
            client.send(&words(request)).unwrap();
        }
        let answers: Vec<String> =
            clients.iter_mut().map(|client| text(&client.receive().unwrap())).collect();
        assert_eq!(answers[..3], ["OK", "OK", "OK"]);
        let Value::Aggregate(_, all) = call(&mut other, &format!("MGET{}", names())) else {
            panic!("an array")
        };
        let first = text(&all[0]).replace('0', "");
        for (n, value) in all.iter().enumerate() {
            let expected = if first.is_empty() { String::new() } else { format!("{first}{n}") };
            assert_eq!(text(value), expected, "round {round}: all are of one request");
        }
        assert!(answers[3] == "0" || answers[3] == MANY.to_string(), "{}", answers[3]);
    }
}

/// What a reader sees of some keys, by one of several ways.
fn look(client: &mut RespClient, way: usize, keys: &[String]) -> Vec<String> {
    let list = |value: Value| match value {
        Value::Aggregate(_, values) => values,
        other => panic!("{other:?}"),
    };
    let values = match way % 5 {
        0 => list(call(client, &format!("MGET {}", keys.join(" ")))),
        1 => list(call(client, &format!("MGET{}", names()))),
        2 => {
            call(client, "MULTI");
            keys.iter().for_each(|key| drop(call(client, &format!("GET {key}"))));
            list(call(client, "EXEC"))
        }
        3 => {
            let script =
                "return{redis.call('GET',KEYS[1]),redis.call('GET',KEYS[2]),redis.call('GET',KEYS[3])}";
            list(call(client, &format!("EVAL {script} {} {}", keys.len(), keys.join(" "))))
        }
        _ => {
            call(client, "MULTI");
            call(client, "DBSIZE");
            keys.iter().for_each(|key| drop(call(client, &format!("GET {key}"))));
            list(call(client, "EXEC")).split_off(1)
        }
    };
    let generation = |value: &Value| text(value).split('_').next().unwrap_or_default().to_owned();
    values.iter().map(generation).collect()
}

#[test]
fn whoever_reads_several_keys_sees_all_of_one_request() {
    const ROUNDS: usize = 30;
    for (policy, seed) in [("noeviction", 3), ("allkeys-lru", 4)] {
        let server = server(3);
        let mut other = server.client().unwrap();
        call(&mut other, &format!("CONFIG SET maxmemory-policy {policy}"));
        call(&mut other, &format!("DEBUG RESTLESS {seed}"));
        call(&mut other, &format!("MSET{}", pairs("first_")));
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.client().unwrap();
                    for round in 0..ROUNDS {
                        call(&mut client, &format!("MSET{}", pairs(&format!("{writer}-{round}_"))));
                        if round % 5 == 4 {
                            call(&mut client, &format!("DEL{}", names()));
                            call(&mut client, &format!("MSETNX{}", pairs(&format!("x{writer}-{round}_"))));
                        }
                    }
                });
            }
            for reader in 0..3 {
                let server = &server;
                scope.spawn(move || {
                    let mut client = server.client().unwrap();
                    for round in 0..4 * ROUNDS {
                        let key = |n: usize| format!("key{}", (n * 7919 + round * 31) % MANY);
                        let keys = [key(reader), key(reader + 3), key(reader + 9)];
                        let seen = look(&mut client, round + reader, &keys);
                        assert!(seen.iter().all(|value| *value == seen[0]), "{reader} {round}: {seen:?}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_client_that_is_killed_or_leaves_meanwhile_has_done_it_all_the_same() {
    let server = server(1);
    let mut other = server.client().unwrap();
    for is_killed in [true, false] {
        call(&mut other, "FLUSHALL");
        let mut one = server.client().unwrap();
        let id = text(&call(&mut one, "CLIENT ID"));
        hold_after(&server, 3, &mut one, &format!("MSET{}", pairs("new")));
        match is_killed {
            true => drop(call(&mut other, &format!("CLIENT KILL ID {id}"))),
            false => drop(one),
        }
        server.server.hold_parts_after(None);
        wait_until(&mut other, |other| text(&call(other, "DBSIZE")) == MANY.to_string());
        wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
    }
}

#[test]
fn who_watches_keeps_a_copy_or_waits_hears_of_it() {
    let server = server(2);
    let mut other = server.client().unwrap();
    let (mut one, mut keeper, mut watcher) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    fill(&mut other);
    let last = format!("key{}", MANY - 2);
    call(&mut keeper, "HELLO 3");
    call(&mut keeper, "CLIENT TRACKING ON");
    call(&mut keeper, &format!("GET {last}"));
    call(&mut watcher, &format!("WATCH {last}"));
    hold_after(&server, 1, &mut one, &format!("DEL{}", names()));
    for request in ["MULTI", "PING"] {
        call(&mut watcher, request);
    }
    watcher.send(&["EXEC"]).unwrap();
    call(&mut other, "SET elsewhere x");
    server.server.hold_parts_after(None);
    assert!(!matches!(watcher.receive().unwrap(), Value::Aggregate(..)), "EXEC comes behind all of it");
    let Value::Aggregate(b'>', told) = keeper.receive().unwrap() else { panic!("it is told") };
    assert_eq!(text(&told[0]), "invalidate");
    one.receive().unwrap();
    // A client that tracks keys reads many in parts, and is told of each of them.
    call(&mut other, &format!("MSET{}", pairs("old")));
    call(&mut keeper, &format!("MGET{}", names()));
    call(&mut other, "SET key3 new");
    let Value::Aggregate(b'>', told) = keeper.receive().unwrap() else { panic!("it is told") };
    assert!(format!("{told:?}").contains("107, 101, 121, 51]"), "of key3: {told:?}");
}

#[test]
fn it_is_one_record_of_the_append_only_file() {
    let server = server(2);
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    call(&mut other, "CONFIG SET appendonly yes");
    wait_until(&mut other, |other| figure(other, "aof_rewrite_in_progress") == "0");
    for (request, parts) in [
        (format!("MSET{} key7 last", pairs("new")), 3),
        (format!("DEL{}", (0..MANY / 2).map(|n| format!(" key{n}")).collect::<String>()), 1),
        (format!("MSETNX{}", (0..MANY / 2).map(|n| format!(" key{n} back")).collect::<String>()), 200),
        (format!("UNLINK{} none", names()), 3),
        (format!("MSET{}", pairs("again")), 0),
    ] {
        hold_after(&server, parts, &mut one, &request);
        call(&mut other, "SET elsewhere x");
        server.server.hold_parts_after(None);
        one.receive().unwrap();
        let before = digest(&mut other);
        assert_eq!(text(&call(&mut other, "DEBUG LOADAOF")), "OK");
        assert_eq!(digest(&mut other), before, "{}", &request[..6]);
    }
    // A file that begins anew meanwhile has all of it or nothing.
    hold_after(&server, 3, &mut one, &format!("DEL{}", names()));
    call(&mut other, "BGREWRITEAOF");
    wait_until(&mut other, |other| figure(other, "aof_rewrite_in_progress") == "0");
    server.server.hold_parts_after(None);
    one.receive().unwrap();
    let before = digest(&mut other);
    assert_eq!(text(&call(&mut other, "DEBUG LOADAOF")), "OK");
    assert_eq!(digest(&mut other), before);
}

#[test]
fn a_server_ends_while_one_runs() {
    let server = server(1);
    let mut one = server.client().unwrap();
    hold_after(&server, 3, &mut one, &format!("MSET{}", pairs("new")));
    drop(server);
    assert!(one.receive().is_err());
}

#[test]
fn old_values_that_go_by_themselves_do_not_take_the_new_ones_along_in_the_append_only_file() {
    let server = server(2);
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    call(&mut other, "CONFIG SET appendonly yes");
    wait_until(&mut other, |other| figure(other, "aof_rewrite_in_progress") == "0");
    let request = format!("MSET{} key7 twice key7 last", pairs("new"));
    for _ in 0..2 {
        for n in 0..MANY {
            let field = [format!("HSET key{n} f x"), format!("HPEXPIRE key{n} 10 FIELDS 1 f")];
            let value = [format!("SET key{n} old"), format!("PEXPIRE key{n} 10")];
            let requests = if n % 3 == 0 { field } else { value };
            requests.iter().for_each(|request| other.send(&words(request)).unwrap());
            requests.iter().for_each(|_| drop(other.receive().unwrap()));
        }
        call(&mut other, "CONFIG RESETSTAT");
        hold_after(&server, 3, &mut one, &request);
        server.time.advance(std::time::Duration::from_millis(20));
        let went = |other: &mut RespClient| figure(other, "expired_keys") != "0";
        wait_until(&mut other, |other| went(other) && figure(other, "expired_subkeys") != "0");
        server.server.hold_parts_after(None);
        one.receive().unwrap();
        assert_eq!(text(&call(&mut other, "DBSIZE")), MANY.to_string());
        let before = digest(&mut other);
        assert_eq!(text(&call(&mut other, "DEBUG LOADAOF")), "OK");
        assert_eq!(text(&call(&mut other, "DBSIZE")), MANY.to_string());
        assert_eq!(digest(&mut other), before);
        call(&mut other, "FLUSHALL");
    }
}

#[test]
fn who_waits_and_names_a_key_of_it_is_served_when_it_has_ended() {
    let server = server(2);
    let (mut one, mut other, mut waits) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    // Those that come first and those that come last among its keys.
    let all: Vec<usize> = (0..MANY).step_by(MANY / 20).collect();
    for (request, ends) in [
        (format!("DEL{}", names()), "x"),
        (format!("MSET{}", pairs("new")), "WRONGTYPE"),
        (format!("MSETNX{}", pairs("new")), "WRONGTYPE"),
    ] {
        for n in &all {
            call(&mut other, "FLUSHALL");
            call(&mut other, "SET key1 old");
            if request.starts_with("MSETNX") {
                call(&mut other, "DEL key1");
            }
            waits.send(&words(&format!("BLMOVE source key{n} LEFT RIGHT 0"))).unwrap();
            wait_until(&mut other, |other| figure(other, "blocked_clients") == "1");
            hold_after(&server, MANY / 10, &mut one, &request);
            assert_eq!(text(&call(&mut other, "RPUSH source x")), "1");
            assert_eq!(text(&call(&mut other, "LLEN source")), "1", "it is not served yet");
            server.server.hold_parts_after(None);
            one.receive().unwrap();
            let served = text(&waits.receive().unwrap());
            assert!(served.starts_with(ends), "{} key{n}: {served}", &request[..6]);
            let left = text(&call(&mut other, "LLEN source"));
            assert_eq!(left, if ends == "x" { "0" } else { "1" });
        }
    }
}
