//! Long replies, written piece by piece: others are served meanwhile, memory holds one piece, and every reply
//! is whole.
use crate::client::{Client, Stream, bulk, config, engines, request, start, start_at_noon};
use server::{Config, MemoryShare, OutputLimit, OutputLimits, Running};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const ENDLESS: &str = "-1152921504606846976";
/// Enough to fill what a socket holds many times over.
const MANY: usize = 3_000_000;
/// What a client that does not read may be owed, about: its allowance and a piece.
const OWED_BYTES_MAX: u64 = 2 << 20;

/// One worker, so that a client which keeps it busy keeps all others waiting.
fn one_worker() -> Config {
    Config { worker_threads: 1, ..config() }
}

/// All members, fields, values and scores have one byte, so that the length of a reply is known.
fn fill(client: &mut Client) {
    client.check("SADD set a b", ":2\r\n");
    client.check("HSET hash a 1 b 2", ":2\r\n");
    client.check("ZADD zset 1 a 2 b", ":2\r\n");
}

/// Reads an array of so many elements, each of which must be one of these, all of one length.
fn read_all(client: &mut Client, header: &str, count: usize, elements: &[&str]) {
    const ELEMENTS_AT_ONCE: usize = 10_000;
    client.expect(header);
    let len = elements[0].len();
    let mut seen = vec![0; elements.len()];
    for first in (0..count).step_by(ELEMENTS_AT_ONCE) {
        let bytes = client.read(len * ELEMENTS_AT_ONCE.min(count - first));
        for element in bytes.chunks(len) {
            let which = elements.iter().position(|known| known.as_bytes() == element);
            let which = which.unwrap_or_else(|| panic!("{:?} after {first}", element.escape_ascii()));
            seen[which] += 1;
        }
    }
    assert!(seen.iter().all(|times| *times > 0), "{seen:?}");
}

/// A field of this client's line in CLIENT LIST.
fn listed(client: &mut Client, id: &str, field: &str) -> u64 {
    let line = client.ask(&format!("CLIENT LIST ID {id}"));
    let found = line.split(' ').find_map(|word| word.strip_prefix(field)?.strip_prefix('='));
    found.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {field} in {line}"))
}

fn id_of<S: Stream>(client: &mut Client<S>) -> String {
    client.raw("CLIENT ID").trim_start_matches(':').trim().to_owned()
}

/// Waits until as much is ready for a client that does not read as it may be owed.
fn wait_until_paused(other: &mut Client, id: &str) {
    while listed(other, id, "omem") < 1 << 20 {
        std::thread::yield_now();
    }
}

#[test]
fn others_are_served_while_a_reply_without_end_is_written() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..one_worker() });
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        fill(&mut b);
        for command in ["SRANDMEMBER set", "HRANDFIELD hash", "ZRANDMEMBER zset"] {
            a.send(&request(&format!("{command} {ENDLESS}").split(' ').collect::<Vec<_>>()));
            (0..1000).for_each(|_| b.check("PING", "+PONG\r\n"));
            a.expect("*1152921504606846976\r\n");
            assert_eq!(a.read(7 * 1_000_000).len(), 7_000_000);
            b.check("SADD set a", ":0\r\n");
            a = Client::connect(&server);
        }
        drop(a);
        b.wait_for_info("connected_clients", "1");
    }
}

#[test]
fn every_reply_in_pieces_has_as_many_elements_as_it_announced() {
    let server = start(config());
    let mut client = Client::connect(&server);
    fill(&mut client);
    let names = ["$1\r\na\r\n", "$1\r\nb\r\n"];
    let pairs = ["$1\r\na\r\n$1\r\n1\r\n", "$1\r\nb\r\n$1\r\n2\r\n"];
    let nested = ["*2\r\n$1\r\na\r\n$1\r\n1\r\n", "*2\r\n$1\r\nb\r\n$1\r\n2\r\n"];
    let scored = ["*2\r\n$1\r\na\r\n,1\r\n", "*2\r\n$1\r\nb\r\n,2\r\n"];
    for count in [999, 1000, 1001, 200_000] {
        let (one, two) = (format!("*{count}\r\n"), format!("*{}\r\n", 2 * count));
        let check = |client: &mut Client, line: &str, header: &str, elements: &[&str]| {
            let words: Vec<String> =
                line.replace('#', &format!("-{count}")).split(' ').map(Into::into).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            client.send(&[request(&["ECHO", "x"]), request(&words), request(&["PING"])].concat());
            client.expect("$1\r\nx\r\n");
            read_all(client, header, count, elements);
            client.expect("+PONG\r\n");
        };
        for hello in ["HELLO 2", "HELLO 3"] {
            client.raw(hello);
            check(&mut client, "SRANDMEMBER set #", &one, &names);
            check(&mut client, "HRANDFIELD hash #", &one, &names);
            check(&mut client, "ZRANDMEMBER zset #", &one, &names);
            let (header, of_hash, of_zset) =
                if hello == "HELLO 2" { (&two, pairs, pairs) } else { (&one, nested, scored) };
            check(&mut client, "HRANDFIELD hash # WITHVALUES", header, &of_hash);
            check(&mut client, "ZRANDMEMBER zset # WITHSCORES", header, &of_zset);
        }
    }
}

#[test]
fn a_reply_in_pieces_is_of_the_moment_of_its_command() {
    let server = start(one_worker());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    let members: Vec<String> = (10_000..30_000).map(|n| format!("old:{n}")).collect();
    for part in members.chunks(1000) {
        b.send(&request(
            &["SADD", "set"].into_iter().chain(part.iter().map(String::as_str)).collect::<Vec<_>>(),
        ));
        b.bulk();
    }
    a.send(&request(&["SRANDMEMBER", "set", "-1000000"]));
    let id = (1..)
        .map(|n| n.to_string())
        .find(|id| b.ask(&format!("CLIENT LIST ID {id}")).contains("cmd=srandmember"));
    let id = id.unwrap();
    wait_until_paused(&mut b, &id);
    b.check("SREM set old:10000", ":1\r\n");
    b.check("SADD set new", ":1\r\n");
    b.check("DEL set", ":1\r\n");
    b.check("SET set x", "+OK\r\n");
    a.expect("*1000000\r\n");
    for _ in 0..1_000_000 {
        let element = a.read("$9\r\nold:10000\r\n".len());
        assert!(element.starts_with(b"$9\r\nold:"), "{}", element.escape_ascii());
    }
    a.check("PING", "+PONG\r\n");
}

#[test]
fn a_client_that_does_not_read_is_owed_little_and_what_it_sends_meanwhile_runs_afterwards() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..one_worker() });
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        fill(&mut b);
        let id = id_of(&mut a);
        a.send(&request(&["SRANDMEMBER", "set", &format!("-{MANY}")]));
        // It blocks until much of it is received: far more than sockets hold.
        const SETS: usize = 200_000;
        let sets = request(&["SET", "key", &"x".repeat(100)]).repeat(SETS);
        a.send(&sets);
        a.send(&request(&["INCR", "number"]));
        wait_until_paused(&mut b, &id);
        assert!(listed(&mut b, &id, "omem") < OWED_BYTES_MAX);
        b.check("EXISTS key number", ":0\r\n");
        read_all(&mut a, &format!("*{MANY}\r\n"), MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
        assert!(a.read(5 * SETS).chunks(5).all(|reply| reply == b"+OK\r\n"));
        a.expect(":1\r\n");
        b.check("EXISTS key number", ":2\r\n");
        b.wait_for_info("connected_clients", "2");
    }
}

#[test]
fn a_client_that_is_sent_a_long_reply_is_idle_since_its_last_piece() {
    let (server, time) = start_at_noon(one_worker());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    // The times of clients are those of the steady clock, whatever the other one shows.
    time.jump(3_600_000);
    fill(&mut b);
    let id = id_of(&mut a);
    a.send(&request(&["SRANDMEMBER", "set", &format!("-{MANY}")]));
    wait_until_paused(&mut b, &id);
    time.advance(Duration::from_secs(3));
    assert_eq!(listed(&mut b, &id, "idle"), 3);
}

#[test]
fn a_client_that_has_sent_all_gets_all_of_its_reply_and_is_closed() {
    let server = start(one_worker());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    fill(&mut b);
    a.send(&[request(&["SRANDMEMBER", "set", &format!("-{MANY}")]), request(&["INCR", "number"])].concat());
    a.finish();
    (0..100).for_each(|_| b.check("PING", "+PONG\r\n"));
    read_all(&mut a, &format!("*{MANY}\r\n"), MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
    a.expect(":1\r\n");
    a.expect_end();
}

#[test]
fn a_client_that_is_killed_dies_or_outlives_the_server_in_the_middle_leaves_nothing() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..one_worker() });
        let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| Client::connect(&server));
        fill(&mut b);
        let id = id_of(&mut a);
        let endless = request(&["SRANDMEMBER", "set", ENDLESS]);
        [&mut a, &mut c, &mut d].into_iter().for_each(|client| client.send(&endless));
        wait_until_paused(&mut b, &id);
        b.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
        assert!(a.rest().starts_with("*1152921504606846976\r\n"));
        c.expect("*1152921504606846976\r\n");
        drop(c);
        b.wait_for_info("connected_clients", "2");
        b.check("DEL set", ":1\r\n");
        drop(server);
        assert!(d.rest().starts_with("*1152921504606846976\r\n"));
    }
}

#[test]
fn a_client_that_wants_no_reply_waits_for_none() {
    let server = start(one_worker());
    let mut client = Client::connect(&server);
    fill(&mut client);
    let endless = request(&["SRANDMEMBER", "set", ENDLESS]);
    client.send(&[request(&["CLIENT", "REPLY", "SKIP"]), endless.clone(), request(&["PING"])].concat());
    client.expect("+PONG\r\n");
    let wire = [request(&["CLIENT", "REPLY", "OFF"]), endless.repeat(3), request(&["CLIENT", "REPLY", "ON"])];
    client.send(&wire.concat());
    client.expect("+OK\r\n");
    client.check("PING", "+PONG\r\n");
}

#[test]
fn a_pause_does_not_stop_a_reply_that_has_begun() {
    let server = start(one_worker());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    fill(&mut b);
    let id = id_of(&mut a);
    a.send(&[request(&["SRANDMEMBER", "set", &format!("-{MANY}")]), request(&["INCR", "number"])].concat());
    wait_until_paused(&mut b, &id);
    b.check("CLIENT PAUSE 1000000 WRITE", "+OK\r\n");
    read_all(&mut a, &format!("*{MANY}\r\n"), MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
    b.wait_for_info("blocked_clients", "1");
    b.check("CLIENT UNPAUSE", "+OK\r\n");
    a.expect(":1\r\n");
}

#[test]
fn lines_for_a_client_that_watches_come_behind_its_reply() {
    let server = start(one_worker());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    fill(&mut b);
    let id = id_of(&mut a);
    a.check("MONITOR", "+OK\r\n");
    a.send(&request(&["SRANDMEMBER", "set", &format!("-{MANY}")]));
    let mut line = Vec::new();
    while listed(&mut b, &id, "omem") < 1 << 20 {
        std::thread::yield_now();
    }
    b.check("SET watched key", "+OK\r\n");
    // Lines may stand before the reply, never in it.
    while !line.ends_with(format!("*{MANY}\r\n").as_bytes()) {
        line.extend(a.read(1));
    }
    read_all(&mut a, "", MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
    line.clear();
    while !line.ends_with(b"\"SET\" \"watched\" \"key\"\r\n") {
        line.extend(a.read(1));
    }
}

#[test]
fn a_reply_in_pieces_is_one_call_of_its_command_in_all_that_counts() {
    let server = start(one_worker());
    let mut client = Client::connect(&server);
    fill(&mut client);
    client.check("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n");
    client.check("SLOWLOG RESET", "+OK\r\n");
    client.check("CONFIG RESETSTAT", "+OK\r\n");
    client.send(&request(&["SRANDMEMBER", "set", &format!("-{MANY}")]));
    read_all(&mut client, &format!("*{MANY}\r\n"), MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
    let log = client.raw("SLOWLOG GET -1");
    assert_eq!(log.matches("SRANDMEMBER").count(), 1, "{log}");
    let stats = client.info("cmdstat_srandmember");
    assert!(stats.starts_with("calls=1,"), "{stats}");
    let usec: u64 = stats.split(',').find_map(|word| word.strip_prefix("usec=")?.parse().ok()).unwrap();
    // So many draws take longer than the turn in which the command ran.
    assert!(usec > 10_000, "{stats}");
    let latency = client.raw("LATENCY HISTOGRAM srandmember");
    assert!(latency.contains("calls\r\n:1\r\n"), "{latency}");
    let histogram: Vec<&str> = latency.lines().filter(|line| line.starts_with(':')).collect();
    assert!(histogram[1][1..].parse::<u64>().unwrap() > 10_000, "{latency}");
}

fn with_hard_limit(hard_bytes: u64) -> Running {
    let normal = OutputLimit { hard_bytes, ..OutputLimit::default() };
    start(Config { client_output_buffer: OutputLimits { normal, ..OutputLimits::default() }, ..one_worker() })
}

#[test]
fn a_client_that_reads_gets_a_reply_of_many_times_its_output_limit() {
    for hard_bytes in [100_000, 1 << 20] {
        let server = with_hard_limit(hard_bytes);
        let mut client = Client::connect(&server);
        fill(&mut client);
        client.send(&request(&["SRANDMEMBER", "set", &format!("-{MANY}")]));
        read_all(&mut client, &format!("*{MANY}\r\n"), MANY, &["$1\r\na\r\n", "$1\r\nb\r\n"]);
        const LEN: usize = 40_000;
        for first in (0..LEN).step_by(1000) {
            let ends = ["x".repeat(100), "y".repeat(100)];
            let elements = ends.iter().cycle().take(1000).map(String::as_str);
            client.send(&request(&["RPUSH", "list"].into_iter().chain(elements).collect::<Vec<_>>()));
            client.expect(&format!(":{}\r\n", first + 1000));
        }
        client.send(&request(&["LRANGE", "list", "0", "-1"]));
        let elements = ["x", "y"].map(|end| bulk(&end.repeat(100)));
        read_all(&mut client, &format!("*{LEN}\r\n"), LEN, &[&elements[0], &elements[1]]);
        client.check("PING", "+PONG\r\n");
        assert_eq!(client.info("client_output_buffer_limit_disconnections"), "0");
    }
}

#[test]
fn clients_that_do_not_read_stay_below_what_all_may_take_together() {
    let server = start(Config { maxmemory_clients: MemoryShare::Bytes(16 << 20), ..one_worker() });
    let mut other = Client::connect(&server);
    fill(&mut other);
    let mut readers: Vec<Client> = (0..4).map(|_| Client::connect(&server)).collect();
    for reader in &mut readers {
        let id = id_of(reader);
        reader.send(&request(&["ZRANDMEMBER", "zset", ENDLESS]));
        wait_until_paused(&mut other, &id);
    }
    assert_eq!(other.info("evicted_clients"), "0");
    let clients_bytes: u64 = other.info("mem_clients_normal").parse().unwrap();
    assert!(clients_bytes < 4 * OWED_BYTES_MAX, "{clients_bytes}");
}

/// Lines of MONITOR behind an unfinished reply are in no socket's queue yet, but the client is owed them.
#[test]
fn a_client_that_watches_and_reads_nothing_is_closed_for_the_lines_behind_its_reply() {
    for io_engine in engines() {
        let normal = OutputLimit { hard_bytes: 4 << 20, ..OutputLimit::default() };
        let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
        let server = start(Config { io_engine, client_output_buffer, ..one_worker() });
        let (_a, mut b) = watcher_that_does_not_read(&server);
        let long = "x".repeat(10_000);
        (0..1000).for_each(|_| b.check(&format!("SET key {long}"), "+OK\r\n"));
        b.wait_for_info("client_output_buffer_limit_disconnections", "1");
        b.wait_for_info("connected_clients", "1");
    }
}

#[test]
fn lines_behind_a_reply_count_against_the_soft_limit_for_as_long_as_they_wait() {
    let normal = OutputLimit { hard_bytes: 0, soft_bytes: 4 << 20, soft_s: 10 };
    let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
    let (server, time) = start_at_noon(Config { client_output_buffer, ..one_worker() });
    let (_a, mut b) = watcher_that_does_not_read(&server);
    let long = "x".repeat(10_000);
    (0..1000).for_each(|_| b.check(&format!("SET key {long}"), "+OK\r\n"));
    for _ in 0..9 {
        time.advance(Duration::from_secs(1));
        b.check("PING", "+PONG\r\n");
    }
    assert_eq!(b.info("client_output_buffer_limit_disconnections"), "0");
    time.advance(Duration::from_secs(2));
    b.wait_for_info("client_output_buffer_limit_disconnections", "1");
}

/// In the middle of a reply, with another client.
fn watcher_that_does_not_read(server: &Running) -> (Client, Client) {
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(server));
    fill(&mut b);
    let id = id_of(&mut a);
    a.check("MONITOR", "+OK\r\n");
    a.send(&request(&["SRANDMEMBER", "set", ENDLESS]));
    wait_until_paused(&mut b, &id);
    (a, b)
}

/// So many elements of each kind of value, more than a Unix socket and an allowance hold.
const ELEMENTS: usize = 150_000;

fn element(n: usize) -> String {
    format!("element:{n:07}")
}

/// A list, a set of texts, one of integers, a hash, one of integers, a sorted set, one of equal scores.
fn fill_large(client: &mut Client) {
    for first in (0..ELEMENTS).step_by(1000) {
        let all = first..first + 1000;
        let mut add = |head: &[&str], words: &mut dyn FnMut(usize) -> Vec<String>| {
            let words: Vec<String> = all.clone().flat_map(words).collect();
            let words = head.iter().copied().chain(words.iter().map(String::as_str));
            client.send(&request(&words.collect::<Vec<_>>()));
            client.bulk();
        };
        add(&["RPUSH", "list"], &mut |n| vec![element(n)]);
        add(&["SADD", "set"], &mut |n| vec![element(n)]);
        add(&["SADD", "ints"], &mut |n| vec![(n * 3).to_string()]);
        add(&["HSET", "hash"], &mut |n| vec![element(n), n.to_string()]);
        add(&["HSET", "pairs"], &mut |n| vec![n.to_string(), (n * 3).to_string()]);
        add(&["ZADD", "zset"], &mut |n| vec![n.to_string(), element(n)]);
        add(&["ZADD", "lex"], &mut |n| vec!["0".to_owned(), element(n)]);
    }
}

/// Changes all of a value: its ends, its middle, elements in place; and then the type of the key.
fn spoil_large(client: &mut Client) {
    let change = |client: &mut Client, line: &str| {
        client.send(&request(&line.split(' ').collect::<Vec<_>>()));
        client.bulk();
    };
    for n in [0, 1, 2, 40_000, ELEMENTS / 2, ELEMENTS - 1] {
        let (name, triple) = (element(n), 3 * n);
        for line in [
            format!("LSET list {n} changed"),
            format!("SREM set {name}"),
            format!("SADD set new:{n}"),
            format!("SREM ints {triple}"),
            format!("HSET hash {name} changed"),
            format!("HDEL pairs {n}"),
            format!("HSET pairs {} {n}", n + ELEMENTS),
            format!("ZADD zset {} {name}", ELEMENTS - n),
            format!("ZREM lex {name}"),
            "RPOP list".to_owned(),
            "LPUSH list new".to_owned(),
        ] {
            change(client, &line);
        }
    }
    for key in ["list", "set", "ints", "hash", "pairs", "zset", "lex"] {
        change(client, &format!("DEL {key}"));
        change(client, &format!("RPUSH {key} another"));
    }
}

/// Reads as many bytes as these texts take as bulk strings, in whatever order they come.
fn read_words<S: Stream>(client: &mut Client<S>, expected: &[String]) -> Vec<String> {
    let wire_bytes = expected.iter().map(|text| bulk(text).len()).sum();
    let wire = String::from_utf8(client.read(wire_bytes)).unwrap();
    wire.lines().skip(1).step_by(2).map(Into::into).collect()
}

/// A command, the header of its reply, its elements, and whether their order is told.
type Whole = (&'static str, String, Vec<String>, bool);

fn whole_replies() -> Vec<Whole> {
    let names: Vec<String> = (0..ELEMENTS).map(element).collect();
    let turned: Vec<String> = names.iter().rev().cloned().collect();
    let numbers: Vec<String> = (0..ELEMENTS).map(|n| n.to_string()).collect();
    let triples: Vec<String> = (0..ELEMENTS).map(|n| (3 * n).to_string()).collect();
    let both = |left: &[String], right: &[String]| -> Vec<String> {
        left.iter().zip(right).flat_map(|(left, right)| [left.clone(), right.clone()]).collect()
    };
    let one = format!("*{ELEMENTS}\r\n");
    let two = format!("*{}\r\n", 2 * ELEMENTS);
    let middle = names[1000..ELEMENTS - 1000].to_vec();
    let of_middle = format!("*{}\r\n", middle.len());
    vec![
        ("LRANGE list 0 -1", one.clone(), names.clone(), true),
        ("LRANGE list 1000 -1001", of_middle.clone(), middle.clone(), true),
        ("SMEMBERS set", one.clone(), names.clone(), false),
        ("SMEMBERS ints", one.clone(), triples.clone(), false),
        ("SRANDMEMBER set 1000000000", one.clone(), names.clone(), false),
        ("HKEYS hash", one.clone(), names.clone(), false),
        ("HVALS hash", one.clone(), numbers.clone(), false),
        ("HGETALL pairs", two.clone(), both(&numbers, &triples), true),
        ("HKEYS pairs", one.clone(), numbers.clone(), true),
        ("ZRANGE zset 0 -1", one.clone(), names.clone(), true),
        ("ZRANGE zset 0 -1 WITHSCORES", two.clone(), both(&names, &numbers), true),
        ("ZREVRANGE zset 0 -1", one.clone(), turned.clone(), true),
        ("ZRANGEBYSCORE zset -inf +inf LIMIT 1000 148000", of_middle.clone(), middle.clone(), true),
        ("ZREVRANGEBYSCORE zset +inf -inf", one.clone(), turned.clone(), true),
        ("ZRANGEBYLEX lex - +", one.clone(), names.clone(), true),
        ("ZRANDMEMBER zset 1000000000", one, turned, true),
    ]
}

#[test]
fn a_reply_of_a_whole_value_is_of_the_moment_of_its_command_and_takes_little_memory() {
    let path = std::env::temp_dir().join(format!("sardine-pieces-{}", std::process::id()));
    let server = start(Config { unixsocket: Some(path.clone()), ..one_worker() });
    let mut other = Client::connect(&server);
    let replies = whole_replies();
    fill_large(&mut other);
    // Such sockets hold 200 KB, whatever the machine.
    let mut readers: Vec<_> =
        replies.iter().map(|_| Client::over(UnixStream::connect(&path).unwrap())).collect();
    for (reader, (command, ..)) in readers.iter_mut().zip(&replies) {
        let id = id_of(reader);
        reader.send(&request(&command.split(' ').collect::<Vec<_>>()));
        wait_until_paused(&mut other, &id);
        assert!(listed(&mut other, &id, "omem") < OWED_BYTES_MAX, "{command}");
    }
    spoil_large(&mut other);
    for (reader, (command, header, elements, is_ordered)) in readers.iter_mut().zip(replies) {
        reader.expect(&header);
        let (mut seen, mut elements) = (read_words(reader, &elements), elements);
        if !is_ordered {
            seen.sort_unstable();
            elements.sort_unstable();
        }
        let wrong = seen.iter().zip(&elements).find(|(seen, wanted)| seen != wanted);
        assert_eq!((command, wrong), (command, None));
        reader.check("PING", "+PONG\r\n");
    }
    other.wait_for_info("lazyfree_pending_objects", "0");
}

/// A value that is kept only for a client that does not read counts as owed to that client.
#[test]
fn a_client_that_alone_keeps_a_large_value_in_memory_is_closed_at_its_limit() {
    for (command, kind) in [("SRANDMEMBER", "SADD"), ("HRANDFIELD", "HSET"), ("ZRANDMEMBER", "ZADD")] {
        let normal = OutputLimit { hard_bytes: 2 << 20, ..OutputLimit::default() };
        let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
        let (server, time) = start_at_noon(Config { client_output_buffer, ..one_worker() });
        let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
        for first in (0..150_000).step_by(1000) {
            let element = |n: i32| match kind {
                "SADD" => vec![format!("member:{n}")],
                _ => vec![n.to_string(), format!("member:{n}")],
            };
            let elements: Vec<String> = (first..first + 1000).flat_map(element).collect();
            let words = [kind, "key"].into_iter().chain(elements.iter().map(String::as_str));
            b.send(&request(&words.collect::<Vec<_>>()));
            b.expect(":1000\r\n");
        }
        let id = id_of(&mut a);
        a.send(&request(&[command, "key", ENDLESS]));
        wait_until_paused(&mut b, &id);
        let ticks = |b: &mut Client| {
            for _ in 0..20 {
                time.advance(Duration::from_millis(100));
                b.check("PING", "+PONG\r\n");
            }
        };
        // Of a value that is written a part becomes the client's alone.
        b.check(&format!("{kind} key 0.5 other"), if kind == "SADD" { ":2\r\n" } else { ":1\r\n" });
        ticks(&mut b);
        assert!(listed(&mut b, &id, "omem") < OWED_BYTES_MAX, "{command}");
        assert_eq!(b.info("client_output_buffer_limit_disconnections"), "0", "{command}");
        b.check("DEL key", ":1\r\n");
        // What the key itself had is freed by another thread.
        for _ in 0..1000 {
            if b.info("connected_clients") == "1" {
                break;
            }
            ticks(&mut b);
        }
        assert_eq!(b.info("client_output_buffer_limit_disconnections"), "1", "{command}");
    }
}

const ENTRIES: usize = 30_000;

fn array(elements: impl ExactSizeIterator<Item = String>) -> String {
    format!("*{}\r\n{}", elements.len(), elements.collect::<String>())
}

fn stream_entry(n: usize) -> String {
    format!("*2\r\n{}*2\r\n{}{}", bulk(&format!("{n}-1")), bulk("field"), bulk(&element(n).repeat(4)))
}

fn fill_named(client: &mut Client) {
    for n in 1..=ENTRIES {
        client.send(&request(&["XADD", "stream", &format!("{n}-1"), "field", &element(n).repeat(4)]));
        client.bulk();
    }
    for n in 0..20 {
        client.check(&format!("SET string:{n} {}", element(n).repeat(1000)), "+OK\r\n");
        client.check(&format!("HSET hash field:{n} {}", element(n).repeat(1000)), ":1\r\n");
    }
    client
        .check("RPUSH string:3 no", "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    client.check("RPUSH none a", ":1\r\n");
}

#[test]
fn entries_strings_and_values_that_are_named_are_of_the_moment_of_their_command_too() {
    let path = std::env::temp_dir().join(format!("sardine-named-{}", std::process::id()));
    let server = start(Config { unixsocket: Some(path.clone()), ..one_worker() });
    let mut other = Client::connect(&server);
    fill_named(&mut other);
    let chosen: Vec<usize> = (0..2000).map(|n| n * 7 % 21).collect();
    let text = |n: &usize| if *n < 20 { bulk(&element(*n).repeat(1000)) } else { "$-1\r\n".to_owned() };
    let named = |head: &str, name: &str| {
        head.split(' ').map(Into::into).chain(chosen.iter().map(|n| format!("{name}:{n}"))).collect()
    };
    let line = |line: &str| -> Vec<String> { line.split(' ').map(Into::into).collect() };
    let mut strings: Vec<String> = named("MGET", "string");
    strings.push("none".to_owned());
    let of_strings =
        array(chosen.iter().map(text).chain(["$-1\r\n".to_owned()]).collect::<Vec<_>>().into_iter());
    let all = |order: &mut dyn Iterator<Item = usize>| {
        array(order.map(stream_entry).collect::<Vec<_>>().into_iter())
    };
    let cases: Vec<(Vec<String>, String)> = vec![
        (strings, of_strings),
        (named("HMGET hash", "field"), array(chosen.iter().map(text))),
        (line("XRANGE stream - +"), all(&mut (1..=ENTRIES))),
        (line("XREVRANGE stream + -"), all(&mut (1..=ENTRIES).rev())),
        (line("XRANGE stream 100 (29900-1 COUNT 29000"), all(&mut (100..29_100))),
        (line("XREVRANGE stream (29900-1 (100-1 COUNT 1000000"), all(&mut (101..29_900).rev())),
    ];
    let mut readers: Vec<_> =
        cases.iter().map(|_| Client::over(UnixStream::connect(&path).unwrap())).collect();
    for (reader, (words, _)) in readers.iter_mut().zip(&cases) {
        let id = id_of(reader);
        reader.send(&request(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        wait_until_paused(&mut other, &id);
        assert!(listed(&mut other, &id, "omem") < OWED_BYTES_MAX, "{}", words[0]);
    }
    for n in 0..20 {
        other.send(&request(&["APPEND", &format!("string:{n}"), "more"]));
        other.bulk();
        other.check(&format!("HSET hash field:{n} new"), ":0\r\n");
        other.check(&format!("XDEL stream {}-1", 200 + n), ":1\r\n");
    }
    other.check("XADD stream 1000000-1 field new", &bulk("1000000-1"));
    other.check("DEL string:1 hash stream", ":3\r\n");
    for (reader, (words, expected)) in readers.iter_mut().zip(cases) {
        let seen = String::from_utf8(reader.read(expected.len())).unwrap();
        let wrong = seen.lines().zip(expected.lines()).position(|(seen, wanted)| seen != wanted);
        assert_eq!((&words[0], wrong), (&words[0], None));
        reader.check("PING", "+PONG\r\n");
    }
}
