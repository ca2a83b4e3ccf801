//! Hundreds of clients at once, most of them badly behaved.
use crate::client::{Client, bulk, config, engines, request, start};
use base::random::Random;
use server::{Config, Running};

const CLIENTS: usize = 300;

#[test]
fn clients_that_connect_pipeline_stall_and_vanish_leave_a_healthy_server() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let seed = u64::from(std::process::id());
        let mut random = Random::new(seed);
        println_seed(seed);
        for round in 0..3 {
            let clients: Vec<Client> = (0..CLIENTS).map(|_| misbehave(&server, &mut random)).collect();
            let mut good = Client::connect(&server);
            good.check("ECHO still", &bulk("still"));
            good.check(&format!("SET round {round}"), "+OK\r\n");
            drop(clients);
            good.check("GET round", &bulk(&round.to_string()));
        }
        Client::connect(&server).wait_for_info("connected_clients", "1");
    }
}

#[allow(clippy::disallowed_macros, reason = "shown when the test fails, to repeat it")]
fn println_seed(seed: u64) {
    println!("seed {seed}");
}

fn misbehave(server: &Running, random: &mut Random) -> Client {
    let mut client = Client::connect(server);
    let pipeline: Vec<u8> = (0..random.below(50)).flat_map(|n| one(n, random)).collect();
    match random.below(4) {
        0 => {}
        // Sends half a request and then nothing.
        1 => client.send(&pipeline[..pipeline.len() / 2]),
        // Sends all requests and never reads a reply.
        2 => client.send(&pipeline),
        // Sends as much as it can without reading.
        _ => {
            client.send(&pipeline);
            client.finish();
        }
    }
    client
}

fn one(n: u64, random: &mut Random) -> Vec<u8> {
    let key = format!("key:{}", random.below(1000));
    match n % 4 {
        0 => request(&["SET", &key, &"x".repeat(random.below(5000) as usize)]),
        1 => request(&["GET", &key]),
        2 => request(&["NOSUCHCOMMAND", &key]),
        _ => b"PING\r\n".to_vec(),
    }
}

#[test]
fn writes_over_many_shards_and_flushes_do_not_wait_for_each_other_forever() {
    let server = start(Config { worker_threads: 3, ..config() });
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::connect(server);
                for round in 0..300 {
                    let keys: Vec<String> =
                        (0..20).map(|i| format!("k:{}", (round * 7 + i * 13 + writer) % 100)).collect();
                    let mut args = vec!["MSET"];
                    args.extend(keys.iter().flat_map(|key| [key.as_str(), "v"]));
                    client.send(&request(&args));
                    client.expect("+OK\r\n");
                }
            });
        }
        for _ in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::connect(server);
                (0..200).for_each(|_| client.check("FLUSHALL", "+OK\r\n"));
            });
        }
    });
    let mut client = Client::connect(&server);
    client.check("FLUSHALL", "+OK\r\n");
    client.check("DBSIZE", ":0\r\n");
}

#[test]
fn a_multiple_write_is_seen_whole_or_not_at_all() {
    let server = start(Config { worker_threads: 3, ..config() });
    let keys: Vec<String> = (0..30).map(|i| format!("k:{i}")).collect();
    let get = request(&std::iter::once("MGET").chain(keys.iter().map(String::as_str)).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for writer in ["a", "b"] {
            let (server, keys) = (&server, &keys);
            scope.spawn(move || {
                let pairs = keys.iter().flat_map(|key| [key.as_str(), writer]);
                let set = request(&std::iter::once("MSET").chain(pairs).collect::<Vec<_>>());
                let mut client = Client::connect(server);
                (0..300).for_each(|_| {
                    client.send(&set);
                    client.expect("+OK\r\n");
                });
            });
        }
        let mut reader = Client::connect(&server);
        reader.send(&request(
            &std::iter::once("MSET").chain(keys.iter().flat_map(|k| [k.as_str(), "a"])).collect::<Vec<_>>(),
        ));
        reader.expect("+OK\r\n");
        for _ in 0..300 {
            reader.send(&get);
            let reply = String::from_utf8(reader.read(5 + 30 * 7)).unwrap();
            let count = reply.matches("\r\na\r\n").count();
            assert!(count == 0 || count == 30, "some of one writer, some of the other: {reply:?}");
        }
    });
}

#[test]
fn keys_that_change_names_and_databases_on_all_workers_are_neither_lost_nor_doubled() {
    const KEYS: u64 = 40;
    let server = start(Config { worker_threads: 3, ..config() });
    let mut client = Client::connect(&server);
    (0..KEYS).for_each(|n| client.check(&format!("SET k:{n} {n}"), "+OK\r\n"));
    std::thread::scope(|scope| {
        for mover in 0..5 {
            let server = &server;
            scope.spawn(move || {
                let (mut client, mut random) = (Client::connect(server), Random::new(mover));
                for _ in 0..400 {
                    let (from, to) = (random.below(2 * KEYS), random.below(2 * KEYS));
                    client.ask(&format!("SELECT {}", random.below(2)));
                    client.ask(&match random.below(8) {
                        0 => "SWAPDB 0 1".to_owned(),
                        1..=4 => format!("RENAMENX k:{from} k:{to}"),
                        _ => format!("MOVE k:{from} {}", random.below(2)),
                    });
                }
            });
        }
    });
    let mut values = Vec::new();
    for db in 0..2 {
        client.check(&format!("SELECT {db}"), "+OK\r\n");
        let found = (0..2 * KEYS).map(|n| client.ask(&format!("GET k:{n}")));
        values.extend(found.filter_map(|text| text.parse::<u64>().ok()));
    }
    values.sort_unstable();
    assert!(values.iter().copied().eq(0..KEYS), "{values:?}");
}

#[test]
fn a_sort_by_other_keys_sees_all_of_them_at_one_instant() {
    let server = start(Config { worker_threads: 3, ..config() });
    let mut client = Client::connect(&server);
    let elements: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    let all = |first: &[&str]| first.iter().map(|word| (*word).to_owned()).chain(elements.clone()).collect();
    let push: Vec<String> = all(&["RPUSH", "l"]);
    client.send(&request(&push.iter().map(String::as_str).collect::<Vec<_>>()));
    client.expect(":20\r\n");
    std::thread::scope(|scope| {
        for weight in ["1", "2"] {
            let (server, elements) = (&server, &elements);
            scope.spawn(move || {
                let pairs = elements.iter().flat_map(|n| [format!("w_{n}"), weight.to_owned()]);
                let words: Vec<String> = std::iter::once("MSET".to_owned()).chain(pairs).collect();
                let set = request(&words.iter().map(String::as_str).collect::<Vec<_>>());
                let mut client = Client::connect(server);
                for _ in 0..200 {
                    client.send(&set);
                    client.expect("+OK\r\n");
                }
            });
        }
        for _ in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let mut client = Client::connect(server);
                client.wait_for("EXISTS w_0", ":1");
                for _ in 0..200 {
                    client.send(b"SORT l BY w_* GET w_*\r\n");
                    client.expect("*20\r\n");
                    let weights: Vec<String> = (0..20).map(|_| client.bulk()).collect();
                    assert!(weights.iter().all(|weight| *weight == weights[0]), "{weights:?}");
                }
            });
        }
    });
}

/// The list is long enough to be written on another thread; what has been sent behind it runs behind it.
#[test]
fn a_long_list_of_clients_has_all_of_them_and_holds_nobody_up() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut all: Vec<Client> = (0..40).map(|_| Client::connect(&server)).collect();
        for (n, client) in all.iter_mut().enumerate() {
            client.check(&format!("CLIENT SETNAME n{n}"), "+OK\r\n");
        }
        let first = &mut all[0];
        first.send(b"SET k 1\r\nCLIENT LIST\r\nINCR k\r\nCLIENT KILL TYPE pubsub\r\n");
        first.expect("+OK\r\n");
        let list = first.bulk();
        first.expect(":2\r\n:0\r\n");
        assert_eq!(list.lines().count(), 40);
        for n in 0..40 {
            assert_eq!(list.matches(&format!(" name=n{n} ")).count(), 1, "{n}");
        }
        let own = list.lines().find(|line| line.contains(" name=n0 ")).unwrap();
        assert!(own.contains(" cmd=client|list ") && own.contains(" flags=N "), "{own}");
        first.send(b"MULTI\r\nCLIENT LIST\r\nEXEC\r\n");
        first.expect("+OK\r\n+QUEUED\r\n*1\r\n");
        assert_eq!(first.bulk().lines().count(), 40);
    }
}
