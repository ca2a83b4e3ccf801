//! Publish and subscribe over several connections and workers: who gets what, in which order, and what
//! becomes of those who do not read, leave, or ask for too much.
use crate::client::{Client, bulk, config, engines, request, start, start_at_noon};
use base::random::Random;
use server::{Config, MemoryShare, OutputLimit, OutputLimits, Running};
use std::time::Duration;

fn message(channel: &str, text: &str) -> String {
    format!("*3\r\n$7\r\nmessage\r\n{}{}", bulk(channel), bulk(text))
}

fn confirmed(word: &str, name: &str, count: usize) -> String {
    format!("*3\r\n{}{}:{count}\r\n", bulk(word), bulk(name))
}

/// In RESP3.
fn pushed(text: &str) -> String {
    text.replacen('*', ">", 1)
}

fn speak_resp3(client: &mut Client) {
    assert!(client.raw("HELLO 3").starts_with('%'));
}

/// A server of several workers, each of which has clients.
fn several() -> Running {
    start(Config { worker_threads: 4, ..config() })
}

#[test]
fn everybody_on_every_worker_gets_what_is_published() {
    for io_engine in engines() {
        let server = start(Config { worker_threads: 4, io_engine, ..config() });
        let mut publisher = Client::connect(&server);
        let mut listeners: Vec<Client> = (0..40).map(|_| Client::connect(&server)).collect();
        for (n, client) in listeners.iter_mut().enumerate() {
            if n % 2 == 0 {
                speak_resp3(client);
            }
            client.send(b"SUBSCRIBE news\r\n");
            client.read(confirmed("subscribe", "news", 1).len());
        }
        publisher.check("PUBLISH news flash", ":40\r\n");
        for (n, client) in listeners.iter_mut().enumerate() {
            let text = message("news", "flash");
            client.expect(&if n % 2 == 0 { pushed(&text) } else { text });
        }
    }
}

/// While the worker is busy `tells` arrives from one client, then from the one that listens what ends that.
fn leave_in_the_same_turn(server: &Running, (listens, tells, leaves): (&str, &str, &str), expected: &str) {
    let (mut busy, mut teller) = (Client::connect(server), Client::connect(server));
    let mut client = Client::connect(server);
    speak_resp3(&mut client);
    client.send(format!("{listens}\r\nPING heard\r\n").as_bytes());
    while client.read(1) != b"d" {}
    client.read(2);
    if leaves == "EXEC" {
        client.check("MULTI", "+OK\r\n");
        client.check("UNSUBSCRIBE c", "+QUEUED\r\n");
    }
    busy.send(b"DEBUG SLEEP 0.02\r\n");
    std::thread::sleep(Duration::from_millis(3));
    teller.send(format!("{tells}\r\n").as_bytes());
    std::thread::sleep(Duration::from_millis(1));
    client.send(format!("{leaves}\r\n").as_bytes());
    teller.expect(if tells.starts_with("SET") { "+OK\r\n" } else { ":1\r\n" });
    client.expect(expected);
    busy.expect("+OK\r\n");
}

#[test]
fn who_was_counted_gets_the_message_though_it_leaves_in_the_same_turn() {
    let push = |words: &[&str]| {
        let bulks: String = words.iter().map(|word| bulk(word)).collect();
        format!(">{}\r\n{bulks}", words.len())
    };
    let left = |word, name| format!(">3\r\n{}{}:0\r\n", bulk(word), bulk(name));
    let invalid = format!(">2\r\n{}*1\r\n{}", bulk("invalidate"), bulk("k"));
    let message = push(&["message", "c", "m"]);
    let ended = format!("*1\r\n{}", left("unsubscribe", "c"));
    let set = "SUBSCRIBE __keyevent@0__:set";
    let publish = "PUBLISH c m";
    let (tracks, off) = ("CLIENT TRACKING ON\r\nGET k", "CLIENT TRACKING OFF");
    for io_engine in engines() {
        let server = start(Config { worker_threads: 1, io_engine, ..config() });
        Client::connect(&server).check("CONFIG SET notify-keyspace-events KEA", "+OK\r\n");
        for (steps, told, end) in [
            (("SUBSCRIBE c", publish, "UNSUBSCRIBE"), &message, &*left("unsubscribe", "c")),
            (("SUBSCRIBE c", publish, "EXEC"), &message, &ended),
            (
                ("PSUBSCRIBE c*", publish, "PUNSUBSCRIBE"),
                &push(&["pmessage", "c*", "c", "m"]),
                &left("punsubscribe", "c*"),
            ),
            (
                ("SSUBSCRIBE c", "SPUBLISH c m", "SUNSUBSCRIBE"),
                &push(&["smessage", "c", "m"]),
                &left("sunsubscribe", "c"),
            ),
            (("SUBSCRIBE c", publish, "RESET"), &message, "+RESET\r\n"),
            (("SUBSCRIBE c", publish, "QUIT"), &message, "+OK\r\n"),
            ((set, "SET k 1", "QUIT"), &push(&["message", &set[10..], "k"]), "+OK\r\n"),
            ((tracks, "SET k 2", off), &invalid, "+OK\r\n"),
            (("CLIENT TRACKING ON BCAST", "SET k 3", "RESET"), &invalid, "+RESET\r\n"),
        ] {
            for _ in 0..3 {
                leave_in_the_same_turn(&server, steps, &format!("{told}{end}"));
            }
        }
    }
}

/// HELLO is in the pipeline of what it hears, and users change in it.
#[test]
fn a_client_is_told_in_the_protocol_and_by_the_order_of_its_pipeline() {
    let server = start(Config { worker_threads: 1, ..config() });
    let invalid = format!(">2\r\n{}*1\r\n{}", bulk("invalidate"), bulk("k"));
    for (requests, expected) in [
        (
            "CLIENT TRACKING ON\r\nGET k\r\nSET k 1\r\nPING\r\n",
            format!("+OK\r\n_\r\n+OK\r\n{invalid}+PONG\r\n"),
        ),
        (
            "CLIENT TRACKING ON\r\nGET k\r\nACL SETUSER zz on\r\nSET k 2\r\nGET k\r\nPING\r\n",
            format!("+OK\r\n$1\r\n1\r\n+OK\r\n+OK\r\n{invalid}$1\r\n2\r\n+PONG\r\n"),
        ),
        (
            "SUBSCRIBE c\r\nPUBLISH c m\r\nPING\r\n",
            format!(
                "{}:1\r\n{}+PONG\r\n",
                pushed(&confirmed("subscribe", "c", 1)),
                pushed(&message("c", "m"))
            ),
        ),
    ] {
        let mut client = Client::connect(&server);
        client.send(format!("HELLO 3\r\n{requests}").as_bytes());
        assert!(client.raw_reply().starts_with('%'));
        client.expect(&expected);
    }
}

/// What a script reads behind what it has written is remembered: also where a worker could have taken it
/// back.
#[test]
fn what_a_script_has_read_last_is_what_its_client_tracks() {
    let server = start(Config { worker_threads: 2, ..config() });
    let mut other = Client::connect(&server);
    let invalid = format!(">2\r\n{}*1\r\n{}", bulk("invalidate"), bulk("k"));
    let (set, get) = ("redis.call('set', KEYS[1], 1) ", "redis.call('get', KEYS[1]) ");
    let long = "for i = 1, 3000000 do end ";
    for (how, script, is_told_itself, is_told_later) in [
        ("ON", [set, get, ""], false, true),
        ("ON NOLOOP", [set, get, ""], false, true),
        ("ON NOLOOP", [set, get, long], false, true),
        ("ON", [get, set, get], true, true),
        ("ON NOLOOP", [get, set, get], false, true),
        ("ON", [get, set, ""], true, false),
        ("ON NOLOOP", [get, set, ""], false, false),
        ("ON", [get, "redis.call('dbsize') ", set], true, false),
    ] {
        for in_transaction in [false, true] {
            let mut client = Client::connect(&server);
            speak_resp3(&mut client);
            client.check(&format!("CLIENT TRACKING {how}"), "+OK\r\n");
            let mut requests = request(&["EVAL", &(script.concat() + "return 'done'"), "1", "k"]);
            let mut expected = bulk("done");
            if in_transaction {
                requests = [&b"MULTI\r\n"[..], &requests, b"EXEC\r\n"].concat();
                expected = format!("+OK\r\n+QUEUED\r\n*1\r\n{expected}");
            }
            client.send(&requests);
            client.expect(&expected);
            client.send(b"PING\r\n");
            client.expect(&format!("{}+PONG\r\n", if is_told_itself { &*invalid } else { "" }));
            other.check("SET k 2", "+OK\r\n");
            other.check("DEL k", ":1\r\n");
            client.send(b"ECHO end\r\n");
            client.expect(&format!("{}{}", if is_told_later { &*invalid } else { "" }, bulk("end")));
        }
    }
}

/// A client that listens is interrupted to be told: what follows goes by the rules of that moment.
#[test]
fn a_client_that_is_told_of_its_own_messages_loses_a_right_when_it_is_said_to() {
    let server = start(Config { worker_threads: 2, ..config() });
    let mut admin = Client::connect(&server);
    admin.check("ACL SETUSER u on nopass +@all ~* &*", "+OK\r\n");
    for _ in 0..200 {
        let mut client = Client::connect(&server);
        speak_resp3(&mut client);
        client.check("AUTH u x", "+OK\r\n");
        client.check("SUBSCRIBE c", &pushed(&confirmed("subscribe", "c", 1)));
        client.send("PUBLISH c m\r\nINCR count\r\n".repeat(40).as_bytes());
        admin.send(b"ACL SETUSER u -incr\r\nGET count\r\n");
        admin.expect("+OK\r\n");
        let count = admin.bulk();
        client.send(b"PING end\r\n");
        while client.raw_reply() != bulk("end") {}
        assert_eq!(admin.ask("GET count"), count);
        admin.check("ACL SETUSER u +incr", "+OK\r\n");
    }
}

#[test]
fn a_client_gets_its_own_message_behind_the_reply_and_before_the_next_one() {
    let server = several();
    let mut client = Client::connect(&server);
    speak_resp3(&mut client);
    client.check("SUBSCRIBE a", &pushed(&confirmed("subscribe", "a", 1)));
    for _ in 0..100 {
        client.send(b"PUBLISH a 1\r\nPING\r\nPUBLISH a 2\r\nUNSUBSCRIBE a\r\nPUBLISH a 3\r\nSUBSCRIBE a\r\n");
        let (one, two) = (pushed(&message("a", "1")), pushed(&message("a", "2")));
        let (left, came) =
            (pushed(&confirmed("unsubscribe", "a", 0)), pushed(&confirmed("subscribe", "a", 1)));
        client.expect(&format!(":1\r\n{one}+PONG\r\n:1\r\n{two}{left}:0\r\n{came}"));
    }
}

#[test]
fn who_knows_that_something_was_published_has_got_it_before_the_next_reply() {
    let server = several();
    let mut listeners: Vec<Client> = (0..8).map(|_| Client::connect(&server)).collect();
    let mut publisher = Client::connect(&server);
    for client in &mut listeners {
        client.check("SUBSCRIBE c", &confirmed("subscribe", "c", 1));
    }
    for n in 0..200 {
        publisher.check(&format!("PUBLISH c {n}"), ":8\r\n");
        for client in &mut listeners {
            client.check("PING", &format!("{}*2\r\n$4\r\npong\r\n$0\r\n\r\n", message("c", &n.to_string())));
        }
    }
}

/// Publishers on several workers write to several channels; every listener listens to all of them, by name or
/// by a pattern.
#[test]
fn a_channel_has_one_order_for_all_and_each_publisher_its_own_order_for_everybody() {
    for seed in 0..4 {
        let server = several();
        let mut listeners: Vec<Client> = (0..6).map(|_| Client::connect(&server)).collect();
        for (n, client) in listeners.iter_mut().enumerate() {
            client.send(if n % 2 == 0 { b"SUBSCRIBE c0 c1 c2\r\n" } else { b"PSUBSCRIBE c*\r\n" });
            (0..if n % 2 == 0 { 3 } else { 1 }).for_each(|_| drop(client.raw_reply()));
        }
        let orders = std::thread::scope(|scope| {
            for publisher in 0..4 {
                let client = Client::connect(&server);
                scope.spawn(move || publish_numbers(client, seed, publisher));
            }
            listeners.iter_mut().map(|client| received(client, 4 * MESSAGES)).collect::<Vec<_>>()
        });
        assert!(orders.iter().all(|order| *order == orders[0]), "seed {seed}: one order for all");
    }
}

const MESSAGES: u64 = 300;

/// Publishes its number and a growing one to channels at random, some at a time.
fn publish_numbers(mut client: Client, seed: u64, publisher: u64) {
    let mut random = Random::new(seed * 10 + publisher);
    let mut sent = 0;
    while sent < MESSAGES {
        let count = (1 + random.below(20)).min(MESSAGES - sent);
        let mut wire = Vec::new();
        for n in sent..sent + count {
            let channel = format!("c{}", random.below(3));
            wire.extend(request(&["PUBLISH", &channel, &format!("{publisher} {n}")]));
        }
        client.send(&wire);
        client.expect(&":6\r\n".repeat(count as usize));
        sent += count;
    }
}

/// The next messages by their channels; each publisher's have to be in its order.
fn received(client: &mut Client, count: u64) -> [Vec<String>; 3] {
    let (mut next, mut by_channel) = ([0; 4], [const { Vec::new() }; 3]);
    for _ in 0..count {
        let got = client.raw_reply();
        let words: Vec<&str> = got.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
        let [.., channel, text] = words[..] else { panic!("{got:?}") };
        let (publisher, n) = text.split_once(' ').unwrap();
        let publisher: usize = publisher.parse().unwrap();
        assert_eq!(n.parse::<u64>().unwrap(), next[publisher], "its own order");
        next[publisher] += 1;
        by_channel[channel[1..].parse::<usize>().unwrap()].push(text.to_owned());
    }
    by_channel
}

#[test]
fn subscriptions_are_confirmed_even_where_no_replies_are_wanted() {
    let server = several();
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.send(b"CLIENT REPLY OFF\r\nECHO x\r\nSUBSCRIBE c d\r\nPING\r\n");
    a.expect(&(confirmed("subscribe", "c", 1) + &confirmed("subscribe", "d", 2)));
    b.check("PUBLISH c m", ":1\r\n");
    a.expect(&message("c", "m"));
    a.send(b"UNSUBSCRIBE\r\nCLIENT REPLY ON\r\nUNSUBSCRIBE\r\nCLIENT REPLY SKIP\r\nUNSUBSCRIBE\r\nPING\r\n");
    a.expect(&(confirmed("unsubscribe", "c", 1) + &confirmed("unsubscribe", "d", 0)));
    let nothing = "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n";
    a.expect(&format!("+OK\r\n{nothing}{nothing}+PONG\r\n"));
}

#[test]
fn nothing_is_left_of_subscribers_that_leave_are_killed_or_start_afresh() {
    let server = several();
    let mut other = Client::connect(&server);
    let before = other.info("mem_clients_normal");
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let mut clients: Vec<Client> = (0..60).map(|_| Client::connect(&server)).collect();
        for client in &mut clients {
            let names: Vec<String> = (0..1 + random.below(3000)).map(|n| format!("c{n}")).collect();
            let words: Vec<&str> = names.iter().map(String::as_str).collect();
            for command in ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"] {
                client.send(&request(&[&[command], &words[..]].concat()));
            }
            // Some leave before they have been answered.
            if random.below(2) == 0 {
                (0..3 * names.len()).for_each(|_| drop(client.raw_reply()));
            }
            if random.below(4) == 0 {
                client.send(b"RESET\r\n");
            }
        }
        other.send(b"CLIENT KILL TYPE PUBSUB SKIPME YES\r\n");
        other.raw_reply();
        drop(clients);
        other.wait_for_info("connected_clients", "1");
        for field in ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"] {
            other.wait_for_info(field, "0");
        }
        other.check("PUBSUB CHANNELS", "*0\r\n");
        assert_eq!(other.info("pubsub_clients"), "0");
        assert_eq!(other.info("mem_clients_normal"), before, "seed {seed}");
        other.check("PUBLISH c1 m", ":0\r\n");
    }
}

fn limited(pubsub: OutputLimit) -> Config {
    let client_output_buffer = OutputLimits { pubsub, ..OutputLimits::default() };
    Config { client_output_buffer, ..config() }
}

#[test]
fn a_subscriber_that_does_not_read_is_closed_at_the_hard_limit_and_others_get_all() {
    for io_engine in engines() {
        let limit = OutputLimit { hard_bytes: 4 << 20, soft_bytes: 0, soft_s: 0 };
        let server = start(Config { io_engine, ..limited(limit) });
        let [mut slow, mut fast, mut publisher] = [(); 3].map(|()| Client::connect(&server));
        for client in [&mut slow, &mut fast] {
            client.check("SUBSCRIBE c", &confirmed("subscribe", "c", 1));
        }
        let text = "x".repeat(100_000);
        let mut most = 0;
        for n in 0.. {
            publisher.send(&request(&["PUBLISH", "c", &text]));
            let receivers = publisher.bulk();
            fast.expect(&message("c", &text));
            let list = publisher.ask("CLIENT LIST TYPE PUBSUB");
            let owed =
                list.lines().filter_map(|line| line.split(" omem=").nth(1)?.split(' ').next()?.parse().ok());
            most = owed.max().unwrap_or(0).max(most);
            if receivers == ":1\r\n" {
                break;
            }
            assert!(n < 1000, "it is never closed");
        }
        assert!(most < (4 << 20) + 100_000, "{most} bytes were kept for it");
        assert_eq!(publisher.info("client_output_buffer_limit_disconnections"), "1");
        publisher.check("PUBLISH c last", ":1\r\n");
        fast.expect(&message("c", "last"));
    }
}

#[test]
fn a_subscriber_over_the_soft_limit_is_closed_when_its_time_is_over_though_nobody_sends_anything() {
    let limit = OutputLimit { hard_bytes: 0, soft_bytes: 1 << 20, soft_s: 5 };
    let (server, time) = start_at_noon(limited(limit));
    let [mut slow, mut publisher] = [(); 2].map(|()| Client::connect(&server));
    slow.check("SUBSCRIBE c", &confirmed("subscribe", "c", 1));
    let text = "x".repeat(100_000);
    let mut owed = 0;
    while owed < 2 << 20 {
        publisher.send(&request(&["PUBLISH", "c", &text]));
        publisher.expect(":1\r\n");
        let list = publisher.ask("CLIENT LIST TYPE PUBSUB");
        owed = list.split(" omem=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    }
    time.advance(Duration::from_millis(4000));
    publisher.check("PUBLISH c more", ":1\r\n");
    assert_eq!(publisher.info("pubsub_clients"), "1");
    for _ in 0..4 {
        time.advance(Duration::from_millis(1000));
        publisher.check("PING", "+PONG\r\n");
    }
    publisher.wait_for_info("pubsub_clients", "0");
    publisher.check("PUBLISH c more", ":0\r\n");
}

#[test]
fn subscriptions_count_in_the_memory_of_their_client_and_are_ended_by_its_limit() {
    let server = start(Config { maxmemory_clients: MemoryShare::Bytes(8 << 20), ..config() });
    let [mut greedy, mut modest, mut other] = [(); 3].map(|()| Client::connect(&server));
    modest.check("SUBSCRIBE c0", &confirmed("subscribe", "c0", 1));
    let total = |client: &mut Client| -> u64 {
        let list = client.ask("CLIENT LIST TYPE PUBSUB");
        list.split(" tot-mem=").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
    };
    assert!(total(&mut other) > 200);
    for first in (0..1_000_000).step_by(1000) {
        let names: Vec<String> = (first..first + 1000).map(|n| format!("channel:{n}")).collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        if !greedy.try_send(&request(&[&["SUBSCRIBE"], &words[..]].concat())) {
            break;
        }
    }
    other.wait_for_info("evicted_clients", "1");
    other.wait_for_info("pubsub_clients", "1");
    other.wait_for_info("pubsub_channels", "1");
    other.check("PUBLISH c0 m", ":1\r\n");
    modest.expect(&message("c0", "m"));
}

#[test]
fn a_subscriber_is_never_idle() {
    let (server, time) = start_at_noon(Config { timeout_s: 10, ..config() });
    let [mut listener, mut other] = [(); 2].map(|()| Client::connect(&server));
    listener.check("SUBSCRIBE c", &confirmed("subscribe", "c", 1));
    let mut idle = Client::connect(&server);
    idle.check("PING", "+PONG\r\n");
    for _ in 0..30 {
        time.advance(Duration::from_millis(1000));
        other.check("PING", "+PONG\r\n");
    }
    idle.expect_end();
    other.check("PUBLISH c m", ":1\r\n");
    listener.expect(&message("c", "m"));
}

#[test]
fn a_hundred_thousand_patterns_do_not_keep_publishers_waiting() {
    let server = several();
    let mut listener = Client::connect(&server);
    let shapes: [fn(usize) -> String; 4] =
        [|n| format!("a*{n}"), |n| format!("*a{n}*"), |n| format!("a*a*a*a*a*b{n}"), |n| format!("?*{n}*z")];
    for first in (0..100_000).step_by(1000) {
        let names: Vec<String> = (first..first + 1000).map(|n| shapes[n % 4](n)).collect();
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        listener.send(&request(&[&["PSUBSCRIBE"], &words[..]].concat()));
        (0..1000).for_each(|_| drop(listener.raw_reply()));
    }
    let mut publisher = Client::connect(&server);
    let long = "a".repeat(1000);
    for _ in 0..20 {
        publisher.check(&format!("PUBLISH {long} m"), ":0\r\n");
    }
    publisher.check("PUBLISH a:4 m", ":1\r\n");
    assert!(listener.raw_reply().starts_with("*4\r\n$8\r\npmessage\r\n$3\r\na*4\r\n"));
}

#[test]
fn messages_that_come_while_a_long_reply_is_written_come_behind_it() {
    let server = several();
    let [mut reader, mut other] = [(); 2].map(|()| Client::connect(&server));
    let element = "e".repeat(1000);
    for _ in 0..20 {
        let words = vec![element.as_str(); 1000];
        other.send(&request(&[&["RPUSH", "l"], &words[..]].concat()));
        other.bulk();
    }
    speak_resp3(&mut reader);
    reader.check("SUBSCRIBE c", &pushed(&confirmed("subscribe", "c", 1)));
    reader.send(&request(&["LRANGE", "l", "0", "-1"]));
    reader.expect("*20000\r\n");
    other.check("PUBLISH c m", ":1\r\n");
    for _ in 0..20_000 {
        reader.expect(&bulk(&element));
    }
    reader.expect(&pushed(&message("c", "m")));
}

/// Clients that listen to c.
fn listeners(server: &Running, count: usize) -> Vec<Client> {
    let mut listeners: Vec<Client> = (0..count).map(|_| Client::connect(server)).collect();
    for client in &mut listeners {
        client.check("SUBSCRIBE c", &confirmed("subscribe", "c", 1));
    }
    listeners
}

/// Publishers go on before a message has left to all of its receivers, and messages join others that wait.
#[test]
fn publishers_that_run_ahead_of_many_receivers_leave_every_order_as_it_is() {
    for io_engine in engines() {
        let server = start(Config { worker_threads: 2, io_engine, ..config() });
        let mut listeners = listeners(&server, 60);
        std::thread::scope(|scope| {
            for publisher in 0..3 {
                let mut client = Client::connect(&server);
                scope.spawn(move || {
                    (0..200).for_each(|n| client.check(&format!("PUBLISH c {publisher}-{n}"), ":60\r\n"));
                });
            }
        });
        let orders: Vec<Vec<String>> =
            listeners.iter_mut().map(|client| (0..600).map(|_| client.raw_reply()).collect()).collect();
        assert!(orders.iter().all(|order| *order == orders[0]), "one order for all");
        for publisher in 0..3 {
            let own = orders[0].iter().filter(|text| text.contains(&format!("\n{publisher}-")));
            let expected = (0..200).map(|n| message("c", &format!("{publisher}-{n}")));
            assert!(own.eq(expected.collect::<Vec<_>>().iter()), "its own order");
        }
    }
}

/// Each message is more to all receivers together than may be owed to them before publishers are held back.
#[test]
fn publishers_that_are_held_back_go_on_and_others_are_served_meanwhile() {
    const RECEIVERS: usize = 20;
    for io_engine in engines() {
        let limit = OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_s: 0 };
        let server = start(Config { worker_threads: 2, io_engine, ..limited(limit) });
        let text = "x".repeat(2 << 20);
        let expected = &message("c", &text);
        let mut listeners = listeners(&server, RECEIVERS);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let (mut client, wire) = (Client::connect(&server), request(&["PUBLISH", "c", &text]));
                scope.spawn(move || {
                    client.send(&wire.repeat(3));
                    client.expect(&format!(":{RECEIVERS}\r\n").repeat(3));
                });
            }
            for client in &mut listeners {
                scope.spawn(move || (0..6).for_each(|_| client.expect(expected)));
            }
            let mut other = Client::connect(&server);
            (0..100).for_each(|_| other.check("PING", "+PONG\r\n"));
        });
    }
}

/// What has to wait while a worker has too much to deliver, and what must not: after these requests of
/// another client and of the one that is looked at, its last one.
#[test]
fn what_adds_to_much_that_is_to_be_delivered_waits_until_it_is_and_all_else_goes_on() {
    let tracking = &["HELLO 3", "CLIENT TRACKING ON"][..];
    let events = &["CONFIG SET notify-keyspace-events KEA"][..];
    let monitor = &["MONITOR"][..];
    let queued = |own: &'static [&'static str; 2]| &own[..];
    let cases: [(&[&str], &[&str], &str, bool); 16] = [
        (&[], &[], "PUBLISH c x", true),
        (&[], &[], "SPUBLISH c x", true),
        (&[], &[], "SUBSCRIBE c", false),
        (&[], &[], "EXISTS k", false),
        (&[], &[], "SET k v", false),
        (&[], queued(&["MULTI", "PUBLISH c x"]), "EXEC", true),
        (&[], queued(&["MULTI", "SET k v"]), "EXEC", false),
        (events, &[], "SET k v", true),
        (events, &[], "EXISTS k", false),
        (events, queued(&["MULTI", "DEL k"]), "EXEC", true),
        (events, queued(&["MULTI", "EXISTS k"]), "EXEC", false),
        (tracking, &[], "SET k v", true),
        (tracking, &[], "EXISTS k", false),
        (monitor, &[], "EXISTS k", true),
        (monitor, queued(&["MULTI", "EXISTS k"]), "EXEC", true),
        (monitor, &[], "CONFIG GET port", false),
    ];
    for (before, own, line, waits) in cases {
        // One worker: what a client has sent before another one's request has been looked at before that.
        let server = start(Config { worker_threads: 1, ..config() });
        let [mut other, mut asked, mut client] = [(); 3].map(|()| Client::connect(&server));
        before.iter().for_each(|line| drop(other.raw(line)));
        own.iter().for_each(|line| drop(client.raw(line)));
        server.congest(true);
        client.send(&request(&line.split(' ').collect::<Vec<_>>()));
        (0..10).for_each(|_| drop(asked.raw("CONFIG GET save")));
        assert_eq!(client.has_received(), !waits, "{line} after {before:?} and {own:?}");
        server.congest(false);
        assert!(!client.raw_reply().starts_with('-'), "{line} after {before:?} and {own:?}");
    }
}

#[test]
fn a_message_reaches_those_who_are_killed_behind_it() {
    for io_engine in engines() {
        let server = start(Config { worker_threads: 1, io_engine, ..config() });
        let mut listeners = listeners(&server, 60);
        let mut publisher = Client::connect(&server);
        publisher.send(b"PUBLISH c bye\r\nCLIENT KILL TYPE pubsub\r\n");
        publisher.expect(":60\r\n:60\r\n");
        for client in &mut listeners {
            assert_eq!(client.rest(), message("c", "bye"));
        }
    }
}

/// A worker that tells its clients something in the middle of a turn (UNSUBSCRIBE has it do so) answers those
/// who have waited before that.
#[test]
fn who_waited_is_answered_before_it_is_told_of_what_came_later() {
    let server = start(Config { worker_threads: 1, ..config() });
    let [mut waits, mut tells, mut asks] = [(); 3].map(|()| Client::connect(&server));
    asks.check("CONFIG SET notify-keyspace-events Ez", "+OK\r\n");
    [&mut waits, &mut tells].into_iter().for_each(speak_resp3);
    let id = waits.ask("CLIENT ID").trim_start_matches(':').to_owned();
    waits.check("PSUBSCRIBE __key*", &pushed(&confirmed("psubscribe", "__key*", 1)));
    waits.check("SUBSCRIBE c", &pushed(&confirmed("subscribe", "c", 2)));
    let event = |name: &str| {
        let words = ["pmessage", "__key*", &format!("__keyevent@0__:{name}"), "z"];
        format!(">4\r\n{}", words.map(bulk).concat())
    };
    let popped = format!("*3\r\n{}{},1\r\n", bulk("z"), bulk("a"));
    let told = pushed(&message("c", "late"));
    let unblock = format!("CLIENT UNBLOCK {id}\r\nPUBLISH c late");
    for (lines, replies, expected) in [
        ("ZADD z 1 a", ":1\r\n".to_owned(), [event("zadd"), popped, event("zpopmin")].concat()),
        (&unblock, format!(":1\r\n:2\r\n{told}"), format!("_\r\n{told}")),
    ] {
        tells.check("SUBSCRIBE c", &pushed(&confirmed("subscribe", "c", 1)));
        waits.send(b"BZPOPMIN z 0\r\n");
        asks.wait_for_info("blocked_clients", "1");
        tells.send(format!("{lines}\r\nUNSUBSCRIBE c\r\n").as_bytes());
        tells.expect(&[replies, pushed(&confirmed("unsubscribe", "c", 0))].concat());
        waits.expect(&expected);
    }
}
