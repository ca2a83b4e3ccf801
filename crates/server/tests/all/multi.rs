//! Transactions: what is queued runs as one step on any number of workers, whatever it is, and a client that
//! queues without end, or leaves, takes nothing with it.
use crate::client::{Client, Stream, config, engines, request, start, start_at_noon};
use base::random::Random;
use server::{Config, OutputLimit, OutputLimits};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The integers that an array of bulk strings holds.
fn numbers(raw: &str) -> Vec<i64> {
    raw.lines().filter_map(|line| line.parse().ok()).collect()
}

/// A field of the line of CLIENT LIST of the client of this name.
fn field_of(client: &mut Client, name: &str, field: &str) -> String {
    let list = client.ask("CLIENT LIST");
    let line = list.lines().find(|line| line.contains(&format!(" name={name} "))).expect("it is listed");
    let mut values = line.split(' ').filter_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    values.next().expect("a field of that name").to_owned()
}

/// What comes in one piece is queued together as far as it can be.
#[test]
fn requests_that_come_at_once_are_queued_as_those_that_come_one_by_one() {
    let server = start(Config { worker_threads: 1, ..config() });
    let mut other = Client::connect(&server);
    let talks = [
        "MULTI|SET a 1|GET a|GET|EXEC",
        "MULTI|SET a 1|NOSUCH|GET a|EXEC",
        "MULTI|SET a 1|GET a|MULTI|INCR a|EXEC|GET a",
        "MULTI|SET a 1|CONFIG GET port|OBJECT ENCODING a|OBJECT|GET a|EXEC",
        "MULTI|SET a 1|INCR a|WATCH a|INCR a|DISCARD|GET a",
        "MULTI|SET a 1|CLIENT REPLY SKIP|INCR a|INCR a|EXEC|GET a",
        "CLIENT REPLY OFF|MULTI|SET a 1|INCR a|CLIENT REPLY ON|EXEC|GET a",
        "CLIENT REPLY SKIP|MULTI|SET a 1|INCR a|EXEC|GET a",
        "MULTI|SELECT 3|SET b x|SELECT 0|SET a 7|EXEC|GET a",
        "MULTI|SUBSCRIBE c|UNSUBSCRIBE c|PING|EXEC|PING",
        "WATCH a|SET a 5|MULTI|INCR a|INCR a|EXEC|GET a",
        "MULTI|EXEC|MULTI|PING|EXEC",
        "MULTI|SET a 1|INCR a|INCR a|RESET|GET a",
    ];
    for talk in talks {
        let requests: String = talk.split('|').map(|request| format!("{request}\r\n")).collect();
        let mut replies = Vec::new();
        for is_one_piece in [false, true] {
            other.check("FLUSHALL", "+OK\r\n");
            let mut client = Client::connect(&server);
            for piece in requests.split_inclusive(|c| c == '\n' && !is_one_piece) {
                client.send(piece.as_bytes());
                // When this is answered the worker has taken in what was sent before.
                other.check("PING", "+PONG\r\n");
            }
            client.stream().finish();
            replies.push(client.rest());
        }
        assert_eq!(replies[0], replies[1], "{talk}");
        assert!(!replies[0].is_empty(), "{talk}");
    }
}

/// A change of settings begins to keep the uses of keys anew, which takes the lock of each shard. A worker in
/// the middle of a transaction holds many.
#[test]
fn settings_change_while_a_transaction_holds_the_shards_of_its_keys() {
    const ROUNDS: usize = 40;
    const KEYS: usize = 1000;
    let server = start(config());
    let (mut client, mut other) = (Client::connect(&server), Client::connect(&server));
    other.check("CONFIG SET maxmemory-policy allkeys-lfu", "+OK\r\n");
    let requests: String = (0..KEYS).map(|n| format!("INCR k{n}\r\nPING\r\n")).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                other.check("CONFIG SET maxmemory-policy allkeys-lru", "+OK\r\n");
                other.check("CONFIG SET maxmemory-policy allkeys-lfu", "+OK\r\n");
            }
        });
        for round in 1..=ROUNDS {
            client.send(format!("MULTI\r\n{requests}EXEC\r\n").as_bytes());
            let replies = format!(":{round}\r\n+PONG\r\n").repeat(KEYS);
            let queued = "+QUEUED\r\n".repeat(2 * KEYS);
            client.expect(&format!("+OK\r\n{queued}*{}\r\n{replies}", 2 * KEYS));
        }
        is_over.store(true, Relaxed);
    });
}

#[test]
fn no_worker_sees_a_part_of_a_transaction() {
    const ACCOUNTS: usize = 16;
    const ROUNDS: usize = 150;
    const SEED: u64 = 7;
    let server = start(Config { worker_threads: 4, ..config() });
    let mut client = Client::connect(&server);
    let all: String = (0..ACCOUNTS).map(|n| format!(" account{n}")).collect();
    for n in 0..ACCOUNTS {
        client.check(&format!("SET account{n} 1000"), "+OK\r\n");
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (mut client, mut random) = (Client::connect(&server), Random::new(SEED + thread));
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let [from, to, amount] = [ACCOUNTS, ACCOUNTS, 100].map(|n| random.below(n as u64));
                    // Now and then a queue that needs all gates.
                    let more = if random.below(20) == 0 { "KEYS nothing*\r\n" } else { "PING\r\n" };
                    client.send(
                        format!(
                            "MULTI\r\nDECRBY account{from} {amount}\r\n{more}INCRBY account{to} {amount}\r\nEXEC\r\n"
                        )
                        .as_bytes(),
                    );
                    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
                    client.expect("*3\r\n:");
                    client.bulk();
                    client.expect(if more.starts_with('K') { "*0\r\n:" } else { "+PONG\r\n:" });
                    client.bulk();
                }
            });
        }
        for reader in 0..3 {
            let (mut client, all) = (Client::connect(&server), &all);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let sum = match reader {
                        0 => numbers(&client.raw(&format!("MGET{all}"))).iter().sum::<i64>(),
                        _ => {
                            let gets: String = (0..ACCOUNTS).map(|n| format!("GET account{n}\r\n")).collect();
                            client.send(format!("MULTI\r\n{gets}EXEC\r\n").as_bytes());
                            client.expect("+OK\r\n");
                            client.expect(&"+QUEUED\r\n".repeat(ACCOUNTS));
                            client.expect(&format!("*{ACCOUNTS}\r\n"));
                            (0..ACCOUNTS).map(|_| client.bulk().parse::<i64>().unwrap()).sum::<i64>()
                        }
                    };
                    assert_eq!(sum, 1000 * ACCOUNTS as i64);
                }
            });
        }
    });
}

#[test]
fn a_queue_shows_in_the_list_of_clients_and_counts_until_it_is_gone() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("CLIENT SETNAME a", "+OK\r\n");
    let fields = ["flags", "multi", "multi-mem", "cmd"];
    let mut shown = || fields.map(|field| field_of(&mut b, "a", field));
    assert_eq!(shown()[..3], ["N", "-1", "0"]);
    let idle: u64 = field_of(&mut Client::connect(&server), "a", "tot-mem").parse().unwrap();
    let fill = |a: &mut Client| {
        a.check("MULTI", "+OK\r\n");
        (0..100).for_each(|_| a.check(&format!("SET k {}", "x".repeat(1000)), "+QUEUED\r\n"));
    };
    fill(&mut a);
    let now = shown();
    assert_eq!([&now[0], &now[1], &now[3]], ["x", "100", "set"]);
    let bytes: u64 = now[2].parse().unwrap();
    assert!((100_000..250_000).contains(&bytes), "{bytes}");
    let total: u64 = field_of(&mut Client::connect(&server), "a", "tot-mem").parse().unwrap();
    assert!(total >= idle + bytes, "{total}");
    a.send(b"CLIENT INFO\r\nEXEC\r\n");
    a.expect("+QUEUED\r\n*101\r\n");
    a.expect(&"+OK\r\n".repeat(100));
    let inside = a.bulk();
    assert!(inside.contains(" flags=x ") && inside.contains(" multi=101 "), "{inside}");
    assert_eq!(shown()[..3], ["N", "-1", "0"]);
    for end in ["DISCARD", "RESET"] {
        fill(&mut a);
        a.raw(end);
        a.check("CLIENT SETNAME a", "+OK\r\n");
        assert_eq!(shown()[..3], ["N", "-1", "0"], "{end}");
    }
}

#[test]
fn a_queue_beyond_the_limit_of_the_query_buffer_ends_its_client() {
    for io_engine in engines() {
        let server = start(Config { io_engine, client_query_buffer_bytes_max: 1 << 20, ..config() });
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        a.send(b"MULTI\r\n");
        let set = request(&["SET", "k", &"x".repeat(10_000)]);
        for _ in 0..200 {
            if !a.try_send(&set) {
                break;
            }
        }
        let rest = a.rest();
        assert!(rest.matches("QUEUED").count() < 106, "{}", rest.len());
        b.check("EXISTS k", ":0\r\n");
        assert_eq!(b.info("client_query_buffer_limit_disconnections"), "1");
        b.wait_for_info("connected_clients", "1");
    }
}

#[test]
fn the_client_with_the_longest_queue_goes_when_clients_take_too_much() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("MULTI", "+OK\r\n");
    let set = request(&["SET", "k", &"x".repeat(10_000)]);
    (0..200).for_each(|_| {
        a.send(&set);
        a.expect("+QUEUED\r\n");
    });
    b.check("CONFIG SET maxmemory-clients 1mb", "+OK\r\n");
    a.expect_end();
    assert_eq!(b.info("evicted_clients"), "1");
    b.check("PING", "+PONG\r\n");
}

#[test]
fn a_reply_past_the_output_limit_ends_its_client_after_all_has_run() {
    let normal = OutputLimit { hard_bytes: 1 << 20, ..OutputLimit::default() };
    let limits = OutputLimits { normal, ..OutputLimits::default() };
    for io_engine in engines() {
        let server = start(Config { io_engine, client_output_buffer: limits, ..config() });
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        b.check("SETRANGE long 99999 x", ":100000\r\n");
        let gets = "GET long\r\n".repeat(1000);
        a.send(
            format!("MULTI\r\nINCR n\r\n{gets}INCR n\r\nCLIENT REPLY OFF\r\nINCR n\r\nEXEC\r\n").as_bytes(),
        );
        let rest = a.rest();
        assert!(rest.len() < 100_000, "{}", rest.len());
        b.wait_for("GET n", "3");
        assert_eq!(b.info("client_output_buffer_limit_disconnections"), "1");
    }
}

#[test]
fn who_leaves_or_is_killed_between_multi_and_exec_has_done_nothing() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
        b.check("CLIENT SETNAME b", "+OK\r\n");
        for client in [&mut a, &mut b] {
            client.send(b"MULTI\r\nSET k 1\r\n");
            client.expect("+OK\r\n+QUEUED\r\n");
        }
        drop(a);
        let id = field_of(&mut c, "b", "id");
        c.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
        b.expect_end();
        c.wait_for_info("connected_clients", "1");
        c.check("EXISTS k", ":0\r\n");
    }
}

/// The reads that are left out for a client that has gone may be what breaks its transaction.
#[test]
fn a_client_that_is_gone_runs_its_transaction_only_if_all_was_accepted() {
    let server = start(Config { worker_threads: 1, ..config() });
    let mut watcher = Client::connect(&server);
    for (middle, expected) in [("GET k", "2"), ("GET", "1")] {
        watcher.check("SET k 1", "+OK\r\n");
        // Others have their turn after a millisecond, by which it has gone.
        let busy = "SETRANGE big 1048575 x\r\n".repeat(50);
        let mut client = Client::connect(&server);
        client.send(
            format!("{busy}MULTI\r\nSET k 2\r\n{middle}\r\nEXEC\r\nSET done{expected} 1\r\n").as_bytes(),
        );
        drop(client);
        watcher.wait_for(&format!("EXISTS done{expected}"), ":1");
        watcher.check("GET k", &format!("$1\r\n{expected}\r\n"));
    }
}

#[test]
fn replies_that_are_not_wanted_are_left_out_of_a_transaction_as_outside() {
    let cases = [
        ("MULTI|CLIENT REPLY SKIP|PING|EXEC|PING|ECHO a", "+OK|+QUEUED|+QUEUED|*2|+PONG|$1|a"),
        ("MULTI|CLIENT REPLY OFF|PING|CLIENT REPLY ON|EXEC|PING", "+OK|+QUEUED|+QUEUED|+QUEUED|*3|+OK|+PONG"),
        ("CLIENT REPLY OFF|MULTI|PING|CLIENT REPLY ON|ECHO a|EXEC|PING", "+OK|$1|a|+PONG"),
        ("MULTI|CLIENT REPLY SKIP|EVAL 'return 1' 0|EXEC|PING|ECHO a", "+OK|+QUEUED|+QUEUED|*2|:1|$1|a"),
        ("CLIENT REPLY SKIP|MULTI|PING|EXEC", "+QUEUED|*1|+PONG"),
        ("MULTI|CLIENT REPLY SKIP|CLIENT REPLY SKIP|EXEC|PING|ECHO b", "+OK|+QUEUED|+QUEUED|*2|$1|b"),
        ("CLIENT REPLY OFF|EXEC|MULTI|NOSUCH|EXEC|CLIENT REPLY ON", "+OK"),
        ("MULTI|CLIENT KILL TYPE normal SKIPME no|INCR killed|EXEC|PING", "+OK|+QUEUED|+QUEUED|*2|:1"),
    ];
    for (requests, replies) in cases {
        let server = start(config());
        let mut client = Client::connect(&server);
        let lines = |text: &str| text.split('|').map(|line| format!("{line}\r\n")).collect::<String>();
        client.send(lines(requests).as_bytes());
        if !requests.contains("KILL") {
            client.send(b"QUIT\r\n");
        }
        let end = if requests.contains("KILL") { "" } else { "+OK\r\n" };
        assert_eq!(client.rest(), lines(replies) + end, "{requests}");
        let ran = if requests.contains("INCR") { ":1\r\n" } else { ":0\r\n" };
        Client::connect(&server).check("EXISTS killed", ran);
    }
}

#[test]
fn each_request_of_a_transaction_is_counted_and_logged_when_it_runs() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    client.check("SLOWLOG RESET", "+OK\r\n");
    client.send(b"MULTI\r\nSET k v\r\nGET k\r\nINCR k\r\nGET\r\nDISCARD\r\n");
    client.send(b"MULTI\r\nSET k v\r\nGET k\r\nINCR k\r\nKEYS nothing\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    client.expect("-ERR wrong number of arguments for 'get' command\r\n+OK\r\n");
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n$1\r\nv\r\n");
    client.expect("-ERR value is not an integer or out of range\r\n*0\r\n");
    let mut counts = |command: &str| {
        let line = client.info(&format!("cmdstat_{command}"));
        let of = |field: &str| {
            let mut values = line.split(',').filter_map(|word| word.strip_prefix(field)?.strip_prefix('='));
            values.next().expect("a field").parse::<u64>().unwrap()
        };
        (of("calls"), of("rejected_calls"), of("failed_calls"))
    };
    assert_eq!(counts("multi"), (2, 0, 0));
    assert_eq!(counts("set"), (1, 0, 0));
    assert_eq!(counts("get"), (1, 1, 0));
    assert_eq!(counts("incr"), (1, 0, 1));
    assert_eq!((counts("exec"), counts("discard")), ((1, 0, 0), (1, 0, 0)));
    let log = client.raw("SLOWLOG GET 20");
    let places: Vec<usize> =
        ["KEYS", "INCR", "GET", "SET", "MULTI"].iter().map(|name| log.find(name).expect(name)).collect();
    assert!(places.is_sorted(), "the newest first: {log}");
    assert!(!log.contains("EXEC"), "{log}");
}

#[test]
fn a_watcher_sees_the_requests_of_a_transaction_when_they_run() {
    let server = start(Config { worker_threads: 1, ..config() });
    let [mut watcher, mut client] = [(); 2].map(|()| Client::connect(&server));
    watcher.check("MONITOR", "+OK\r\n");
    client.send(b"MULTI\r\nSELECT 3\r\nSET k v\r\nSELECT 0\r\nEXEC\r\n");
    client.expect("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n+OK\r\n+OK\r\n");
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let line = watcher.bulk().trim_end().to_owned();
        let (_, rest) = line.split_once('[').expect("a line of MONITOR");
        let (place, words) = rest.split_once("] ").expect("a source and words");
        seen.push(format!("{} {words}", place.split(' ').next().unwrap()));
    }
    assert_eq!(
        seen,
        ["0 \"MULTI\"", "3 \"SELECT\" \"3\"", "3 \"SET\" \"k\" \"v\"", "0 \"SELECT\" \"0\"", "0 \"EXEC\""]
    );
}

#[test]
fn a_pause_of_writes_holds_back_an_exec_that_would_write() {
    let (server, time) = start_at_noon(Config { worker_threads: 2, ..config() });
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    a.send(b"MULTI\r\nSET k 1\r\n");
    a.expect("+OK\r\n+QUEUED\r\n");
    c.check("CLIENT PAUSE 100 WRITE", "+OK\r\n");
    b.send(b"MULTI\r\nGET k\r\nEXEC\r\n");
    b.expect("+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    a.send(b"GET k\r\nEXEC\r\n");
    a.expect("+QUEUED\r\n");
    c.wait_for_info("blocked_clients", "1");
    c.check("EXISTS k", ":0\r\n");
    time.advance(Duration::from_millis(100));
    a.expect("*2\r\n+OK\r\n$1\r\n1\r\n");
}

#[test]
fn memory_is_looked_for_when_a_request_is_queued_and_again_when_it_runs() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    let refused = "OOM command not allowed when used memory > 'maxmemory'.\r\n";
    b.check("CONFIG SET maxmemory 1", "+OK\r\n");
    a.check("MULTI", "+OK\r\n");
    a.check("GET k", "+QUEUED\r\n");
    a.check("SET k 1", &format!("-{refused}"));
    a.check("EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
    b.check("CONFIG SET maxmemory 0", "+OK\r\n");
    a.send(b"MULTI\r\nSET k 1\r\n");
    a.expect("+OK\r\n+QUEUED\r\n");
    b.check("CONFIG SET maxmemory 1", "+OK\r\n");
    a.check("EXEC", &format!("-EXECABORT Transaction discarded because of: {refused}"));
    a.check("EXEC", "-ERR EXEC without MULTI\r\n");
    a.send(b"MULTI\r\nGET k\r\nEXEC\r\n");
    a.expect("+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
    b.check("CONFIG SET maxmemory 0", "+OK\r\n");
}

#[test]
fn a_password_that_is_set_meanwhile_is_asked_for_only_of_those_who_come_later() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("MULTI", "+OK\r\n");
    b.check("CONFIG SET requirepass secret", "+OK\r\n");
    a.check("SET k 1", "+QUEUED\r\n");
    a.check("EXEC", "*1\r\n+OK\r\n");
    let mut late = Client::connect(&server);
    late.check("MULTI", "-NOAUTH Authentication required.\r\n");
    late.check("EXEC", "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n");
}

#[test]
fn a_long_queue_runs_whole_and_locks_each_shard_once() {
    let server = start(Config { worker_threads: 2, ..config() });
    let mut client = Client::connect(&server);
    const COUNT: usize = 100_000;
    client.check("MULTI", "+OK\r\n");
    let mut requests = Vec::new();
    (0..COUNT).for_each(|n| requests.extend_from_slice(format!("SET k{n} {n}\r\n").as_bytes()));
    let part = requests.len() / 20;
    // It reads what it is answered, so that neither side waits for the other.
    let mut sent = 0;
    let mut queued = 0;
    while sent < requests.len() {
        let end = (sent + part).min(requests.len());
        let end = end + requests[end..].iter().position(|b| *b == b'\n').map_or(0, |at| at + 1);
        client.send(&requests[sent..end]);
        let lines = requests[sent..end].iter().filter(|b| **b == b'\n').count();
        client.expect(&"+QUEUED\r\n".repeat(lines));
        (sent, queued) = (end, queued + lines);
    }
    assert_eq!(queued, COUNT);
    client.send(b"EXEC\r\n");
    client.expect(&format!("*{COUNT}\r\n"));
    client.expect(&"+OK\r\n".repeat(COUNT));
    client.check("DBSIZE", &format!(":{COUNT}\r\n"));
    client.check("GET k99999", "$5\r\n99999\r\n");
}

/// What is left to be written as the client reads is written at once within EXEC: on another thread.
#[test]
fn long_replies_of_a_transaction_keep_nobody_waiting() {
    let server = start(config());
    let mut client = Client::connect(&server);
    for n in 0..400 {
        client.check(&format!("RPUSH l e{n}"), &format!(":{}\r\n", n + 1));
        client.check(&format!("SADD s e{n}"), ":1\r\n");
        client.check(&format!("HSET h e{n} {n}"), ":1\r\n");
        client.check(&format!("ZADD z {n} e{n}"), ":1\r\n");
        client.raw(&format!("XADD x {}-1 f {n}", n + 1));
    }
    let long = "LRANGE l 0 -1,LRANGE l -390 398,SMEMBERS s,HGETALL h,HKEYS h,HVALS h,ZRANGE z 0 -1 WITHSCORES,ZRANGE z \
                (5 inf BYSCORE,ZRANGE z + - BYLEX REV,ZREVRANGE z 0 350,ZRANGEBYSCORE z -inf inf LIMIT 9 \
                1000,ZREVRANGEBYSCORE z inf -inf,ZRANGEBYLEX z - +,ZREVRANGEBYLEX z + -,XRANGE x - +,XREVRANGE x + - \
                COUNT 399,XREAD STREAMS x 0";
    let short = "LRANGE l 0 50,LRANGE l -40 -1,LRANGE l 350 -1,ZRANGE z 10 90,ZRANGE z 0 90 BYSCORE,ZRANGEBYSCORE z \
                 -inf inf LIMIT 0 50,XRANGE x - + COUNT 20,XRANGE x 5 90,LRANGE none 0 -1,ZRANGE z 0 no,SMEMBERS \
                 none,XREAD COUNT 5 STREAMS x 0";
    let lent = |client: &mut Client| client.info("lent_requests").parse::<u64>().expect("a number");
    let run = |client: &mut Client, requests: &[&str]| {
        client.check("MULTI", "+OK\r\n");
        requests.iter().for_each(|request| client.check(request, "+QUEUED\r\n"));
        client.raw("EXEC")
    };
    for (requests, are_long) in [(long, true), (short, false)] {
        for request in requests.split(',') {
            let alone = client.raw(request);
            let before = lent(&mut client);
            assert_eq!(run(&mut client, &[request]), format!("*1\r\n{alone}"), "{request}");
            assert_eq!(lent(&mut client) - before, u64::from(are_long), "{request}");
            client.raw("HELLO 3");
            let alone = client.raw(request);
            // What it answers is what was there at its place in the queue.
            let all = ["DEL copy", "COPY l copy", request, "RENAME copy other", "DEL l", "RENAME other l"];
            let expected = format!("*6\r\n:0\r\n:1\r\n{alone}+OK\r\n:1\r\n+OK\r\n");
            assert_eq!(run(&mut client, &all), expected, "{request}");
            client.raw("HELLO 2");
        }
    }
    for request in ["SRANDMEMBER s -400", "HRANDFIELD h -400 WITHVALUES", "ZRANDMEMBER z -400"] {
        let before = lent(&mut client);
        assert!(run(&mut client, &[request]).starts_with("*1\r\n*"), "{request}");
        assert_eq!(lent(&mut client) - before, 1, "{request}");
    }
}

/// A counter that clients raise by reading and writing it, each time under WATCH until nobody was between.
#[test]
fn a_watched_key_that_others_write_is_never_overwritten() {
    const CLIENTS: u64 = 4;
    const ROUNDS: u64 = 100;
    let server = start(Config { worker_threads: 4, ..config() });
    let mut client = Client::connect(&server);
    client.check("MSET a 0 b 0", "+OK\r\n");
    std::thread::scope(|scope| {
        for thread in 0..CLIENTS {
            let mut client = Client::connect(&server);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Now and then the whole keyspace is taken, where the watch is looked at too.
                    let more = if (round + thread).is_multiple_of(10) { "KEYS none*\r\n" } else { "" };
                    let queued = 2 + more.len() / 12;
                    loop {
                        client.check("WATCH a b", "+OK\r\n");
                        let next = client.ask("GET a").parse::<u64>().unwrap() + 1;
                        client.send(
                            format!("MULTI\r\nSET a {next}\r\nSET b {next}\r\n{more}EXEC\r\n").as_bytes(),
                        );
                        client.expect("+OK\r\n");
                        client.expect(&"+QUEUED\r\n".repeat(queued));
                        if client.bulk() == format!("*{queued}\r\n") {
                            client.expect("+OK\r\n+OK\r\n");
                            client.expect(if more.is_empty() { "" } else { "*0\r\n" });
                            break;
                        }
                    }
                }
            });
        }
    });
    let sum = (CLIENTS * ROUNDS).to_string();
    assert_eq!((client.ask("GET a"), client.ask("GET b")), (sum.clone(), sum));
    assert_eq!(
        (client.info("watching_clients"), client.info("total_watched_keys")),
        ("0".into(), "0".into())
    );
}

#[test]
fn watched_keys_show_in_the_list_of_clients_and_are_gone_with_them() {
    let server = start(config());
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    a.check("CLIENT SETNAME a", "+OK\r\n");
    b.check("WATCH k", "+OK\r\n");
    a.check("WATCH k l k", "+OK\r\n");
    a.check("SELECT 1", "+OK\r\n");
    a.check("WATCH k", "+OK\r\n");
    let counts = |c: &mut Client| (c.info("watching_clients"), c.info("total_watched_keys"));
    assert_eq!(counts(&mut c), ("2".into(), "3".into()));
    assert_eq!(field_of(&mut c, "a", "watch"), "3");
    c.check("SET l 1", "+OK\r\n");
    assert_eq!(counts(&mut c), ("1".into(), "1".into()));
    assert_eq!((field_of(&mut c, "a", "flags"), field_of(&mut c, "a", "watch")), ("d".into(), "0".into()));
    a.check("MULTI", "+OK\r\n");
    assert_eq!(field_of(&mut c, "a", "flags"), "xd");
    a.check("GET k", "+QUEUED\r\n");
    assert_eq!(field_of(&mut c, "a", "multi"), "0");
    a.check("EXEC", "*-1\r\n");
    assert_eq!(field_of(&mut c, "a", "flags"), "N");
    a.check("WATCH x y", "+OK\r\n");
    drop(a);
    drop(b);
    c.wait_for_info("watching_clients", "0");
    assert_eq!(counts(&mut c), ("0".into(), "0".into()));
    // The ears are closed: a write tells nobody, and a watch of the same key begins anew.
    c.check("SET x 1", "+OK\r\n");
    c.send(b"WATCH x\r\nMULTI\r\nPING\r\nEXEC\r\n");
    c.expect("+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+PONG\r\n");
}

#[test]
fn a_watched_key_that_expires_is_seen_whoever_removes_it() {
    for pause in [false, true] {
        let (server, time) = start_at_noon(config());
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        b.check("SET k 1 PX 100", "+OK\r\n");
        a.check("WATCH k", "+OK\r\n");
        a.check("MULTI", "+OK\r\n");
        a.check("PING", "+QUEUED\r\n");
        if pause {
            // Nothing expires while writes are held back.
            b.check("CLIENT PAUSE 100000 WRITE", "+OK\r\n");
        }
        time.advance(Duration::from_millis(100));
        a.check("EXEC", "*-1\r\n");
    }
}

#[test]
fn a_hundred_thousand_watched_keys_count_as_memory_and_are_forgotten() {
    let server = start(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.check("CLIENT SETNAME a", "+OK\r\n");
    let idle: u64 = field_of(&mut b, "a", "tot-mem").parse().unwrap();
    for first in (0..100_000).step_by(1000) {
        let keys: Vec<String> = (first..first + 1000).map(|n| format!("k{n}")).collect();
        let words: Vec<&str> = std::iter::once("WATCH").chain(keys.iter().map(String::as_str)).collect();
        a.send(&request(&words));
        a.expect("+OK\r\n");
    }
    assert_eq!(field_of(&mut b, "a", "watch"), "100000");
    let bytes = field_of(&mut b, "a", "tot-mem").parse::<u64>().unwrap() - idle;
    assert!(bytes > 10_000_000, "{bytes}");
    b.check("SET other 1", "+OK\r\n");
    b.check("SET k99999 1", "+OK\r\n");
    a.send(b"MULTI\r\nPING\r\nEXEC\r\n");
    a.expect("+OK\r\n+QUEUED\r\n*-1\r\n");
    assert_eq!(field_of(&mut b, "a", "tot-mem").parse::<u64>().unwrap(), idle);
    assert_eq!(b.info("total_watched_keys"), "0");
}
