//! What comes in from a connection: how much of it runs at a time, and what becomes of it when the client
//! leaves.
use crate::client::{Client, bulk, config, engines, request, start, start_at_noon};
use server::{Config, OutputLimit, OutputLimits, Running};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// One worker, which all clients share.
fn alone() -> Config {
    Config { worker_threads: 1, ..config() }
}

/// The calls of a command so far.
fn calls(client: &mut Client, command: &str) -> u64 {
    let info = client.info(&format!("cmdstat_{command}"));
    info.trim_start_matches("calls=").split(',').next().unwrap().parse().unwrap()
}

/// A client whose socket, closed, resets the connection, because it has not read what has arrived there.
fn reckless(server: &Running) -> TcpStream {
    let mut stream = TcpStream::connect(server.addresses[0]).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    stream.peek(&mut [0]).unwrap();
    stream
}

#[test]
fn a_long_pipeline_lets_others_have_their_turn() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut busy, mut many, mut other] = [(); 3].map(|()| Client::connect(&server));
        other.check("PING", "+PONG\r\n");
        // While the worker sleeps both arrive, and it finds them together.
        busy.send(&request(&["DEBUG", "SLEEP", "0.3"]));
        many.send(&request(&["DEBUG", "SLEEP", "0.01"]).repeat(100));
        assert!(calls(&mut other, "debug") < 50, "the other client had to wait for the whole pipeline");
        (0..100).for_each(|_| many.expect("+OK\r\n"));
    }
}

#[test]
fn inline_requests_with_quotes_run_once_and_in_order_however_often_they_are_interrupted() {
    let server = start(alone());
    let mut client = Client::connect(&server);
    let mut expected = String::new();
    for n in 0..50 {
        client.send(format!("APPEND k \"{n}\\x2c\"\r\nDEBUG SLEEP 0.002\r\nECHO 'a \"{n}\"'\r\n").as_bytes());
        let text: String = (0..=n).map(|i| format!("{i},")).collect();
        expected += &format!(":{}\r\n+OK\r\n{}", text.len(), bulk(&format!("a \"{n}\"")));
    }
    client.expect(&expected);
}

#[test]
fn what_a_dead_client_has_sent_is_not_run_for_nobody() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut busy, mut other] = [(); 2].map(|()| Client::connect(&server));
        other.check("SET k v", "+OK\r\n");
        let mut dead = reckless(&server);
        busy.send(&request(&["DEBUG", "SLEEP", "0.3"]));
        // Each of them takes a turn of its own, and all of them would take two seconds.
        let slow = [request(&["DEBUG", "SLEEP", "0.002"]), request(&["GET", "k"])].concat().repeat(1000);
        dead.write_all(&slow).unwrap();
        drop(dead);
        other.wait_for_info("connected_clients", "2");
        assert!(calls(&mut other, "get") < 900, "the rest of the pipeline ran");
    }
}

#[test]
fn writes_that_have_arrived_with_slow_requests_are_not_lost_with_their_client() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut busy, mut other] = [(); 2].map(|()| Client::connect(&server));
        other.check("PING", "+PONG\r\n");
        let mut dead = reckless(&server);
        busy.send(&request(&["DEBUG", "SLEEP", "0.2"]));
        let all = [
            request(&["DEBUG", "SLEEP", "0.05"]),
            request(&["GET", "k"]),
            request(&["SELECT", "3"]),
            request(&["SET", "k", "v"]),
        ];
        dead.write_all(&all.concat()).unwrap();
        drop(dead);
        other.wait_for_info("connected_clients", "2");
        other.check("SELECT 3", "+OK\r\n");
        other.check("GET k", "$1\r\nv\r\n");
    }
}

/// They run in turns, as if their client were still connected.
#[test]
fn the_last_requests_of_one_who_has_left_make_nobody_wait_for_all_of_them() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut busy, mut other] = [(); 2].map(|()| Client::connect(&server));
        other.check("PING", "+PONG\r\n");
        let mut dead = reckless(&server);
        busy.send(&request(&["DEBUG", "SLEEP", "0.2"]));
        let slow = request(&["DEBUG", "SLEEP", "0.01"]).repeat(100);
        dead.write_all(&[slow, request(&["SET", "k", "v"])].concat()).unwrap();
        drop(dead);
        let mut before = calls(&mut other, "debug");
        while before < 101 {
            let now = calls(&mut other, "debug");
            assert!(now - before < 50, "it waited for {} requests of a dead client", now - before);
            before = now;
        }
        other.wait_for_info("connected_clients", "2");
        other.check("GET k", "$1\r\nv\r\n");
    }
}

/// A client that is paused, because it does not read a large value, in the middle of a request with a large
/// argument.
fn paused_amid_a_large_request(server: &Running, other: &mut Client) -> TcpStream {
    other.check("SETRANGE large 40000000 x", ":40000001\r\n");
    let mut stream = reckless(server);
    let argument = "x".repeat(17_000);
    let amid = format!("*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$17000\r\n{argument}\r\n");
    stream.write_all(&[request(&["GET", "large"]), amid.into_bytes()].concat()).unwrap();
    while sum_of(&other.ask("CLIENT LIST"), "qbuf") < 17_000 {}
    // In a later turn the worker has checked how much of the replies is unread.
    other.check("PING", "+PONG\r\n");
    stream
}

#[test]
fn one_who_leaves_amid_a_large_request_while_its_replies_wait_harms_nobody() {
    for io_engine in engines() {
        let (server, _time) = start_at_noon(Config { io_engine, ..alone() });
        let mut other = Client::connect(&server);
        drop(paused_amid_a_large_request(&server, &mut other));
        other.wait_for_info("connected_clients", "1");
        other.check("GET k", "$-1\r\n");
    }
}

#[test]
fn the_last_requests_of_one_who_has_left_take_no_room_from_the_replies_of_others() {
    for io_engine in engines() {
        let (server, time) = start_at_noon(Config { io_engine, ..config() });
        // The first and the third are one worker's.
        let [mut waiting, mut other] = [(); 2].map(|()| Client::connect(&server));
        waiting.send(b"WAIT 1 1000\r\n");
        other.wait_for_info("blocked_clients", "1");
        drop(paused_amid_a_large_request(&server, &mut other));
        other.wait_for_info("connected_clients", "2");
        for _ in 0..100 {
            time.advance(Duration::from_millis(10));
            other.check("PING", "+PONG\r\n");
        }
        waiting.expect(":0\r\n");
        waiting.check("PING", "+PONG\r\n");
    }
}

#[test]
fn one_who_ends_its_side_before_its_command_waits_is_forgotten() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
        other.check("PING", "+PONG\r\n");
        // The connection ends while its requests are still being run in turns.
        client.send(&[request(&["DEBUG", "SLEEP", "0.05"]).repeat(4), request(&["WAIT", "1", "0"])].concat());
        client.finish();
        other.wait_for_info("connected_clients", "1");
    }
}

#[test]
fn a_pipeline_of_a_client_that_has_ended_its_side_runs_to_its_end() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let mut client = Client::connect(&server);
        client.send(&[request(&["DEBUG", "SLEEP", "0.002"]), request(&["INCR", "n"])].concat().repeat(100));
        client.finish();
        let expected: String = (1..=100).map(|n| format!("+OK\r\n:{n}\r\n")).collect();
        assert_eq!(client.rest(), expected);
    }
}

#[test]
fn the_hard_output_limit_holds_for_clients_that_are_about_to_be_closed() {
    for (io_engine, end) in engines()
        .into_iter()
        .flat_map(|engine| [&b"*1\r\nfoo\r\n"[..], b"QUIT\r\n", b"POST\r\n"].map(|end| (engine, end)))
    {
        let normal = OutputLimit { hard_bytes: 20 << 20, soft_bytes: 0, soft_s: 0 };
        let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
        let (server, time) = start_at_noon(Config { client_output_buffer, io_engine, ..alone() });
        let mut other = Client::connect(&server);
        other.check("SETRANGE mb 1048575 x", ":1048576\r\n");
        let mut greedy = Client::connect(&server);
        greedy.send(&[request(&["GET", "mb"]).repeat(400), end.to_vec()].concat());
        let mut largest = 0;
        while other.info("connected_clients") != "1" {
            largest = largest.max(other.info("mem_clients_normal").parse().unwrap());
            time.advance(Duration::from_millis(100));
        }
        assert!(largest < 40 << 20, "{largest} bytes of replies waited");
        assert_eq!(other.info("client_output_buffer_limit_disconnections"), "1");
    }
}

#[test]
fn the_soft_output_limit_holds_for_a_client_that_has_quit() {
    for io_engine in engines() {
        let normal = OutputLimit { hard_bytes: 0, soft_bytes: 1 << 20, soft_s: 5 };
        let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
        let (server, time) = start_at_noon(Config { client_output_buffer, io_engine, ..alone() });
        let mut other = Client::connect(&server);
        other.check("SETRANGE mb 1048575 x", ":1048576\r\n");
        let mut greedy = Client::connect(&server);
        greedy.send(&[request(&["GET", "mb"]).repeat(30), request(&["QUIT"])].concat());
        while !other.ask("INFO commandstats").contains("cmdstat_quit:calls=1,") {
            time.advance(Duration::from_millis(100));
        }
        assert_eq!(other.info("connected_clients"), "2");
        time.advance(Duration::from_secs(6));
        other.wait_for_info("connected_clients", "1");
        assert_eq!(other.info("client_output_buffer_limit_disconnections"), "1");
    }
}

#[test]
fn memory_follows_what_has_arrived_and_not_what_was_announced() {
    let server = start(alone());
    let mut other = Client::connect(&server);
    let before: u64 = other.info("mem_clients_normal").parse().unwrap();
    let mut liars: Vec<Client> = (0..5).map(|_| Client::connect(&server)).collect();
    for liar in &mut liars {
        liar.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$500000000\r\nabcde");
    }
    while other.ask("CLIENT LIST").matches(" qbuf=37 ").count() < 5 {}
    liars.iter_mut().for_each(|liar| liar.send(&[b'x'; 3000]));
    while other.ask("CLIENT LIST").matches(" qbuf=3037 ").count() < 5 {}
    let after: u64 = other.info("mem_clients_normal").parse().unwrap();
    assert!(after - before < 5 * 32_000, "{} bytes for 15 KB", after - before);
    let list = other.ask("CLIENT LIST");
    let sum: u64 = ["qbuf", "qbuf-free", "argv-mem"].iter().map(|name| sum_of(&list, name)).sum();
    assert!(sum > 5 * 3037 && sum <= after, "{list}");
}

/// The sum of a field of CLIENT LIST.
fn sum_of(list: &str, name: &str) -> u64 {
    let fields = list.split([' ', '\n']).filter_map(|field| field.split_once('='));
    fields.filter(|(key, _)| *key == name).map(|(_, value)| value.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_client_without_the_password_is_answered_as_far_as_its_replies_need_no_memory() {
    const REFUSED: &str = "-NOAUTH Authentication required.\r\n";
    for io_engine in engines() {
        let server = start(Config { requirepass: b"secret".to_vec(), io_engine, ..alone() });
        let mut stranger = Client::connect(&server);
        for _ in 0..20 {
            stranger.send(&b"PING\r\n".repeat(400));
            stranger.expect(&REFUSED.repeat(400));
        }
        let mut other = Client::connect(&server);
        other.check("AUTH secret", "+OK\r\n");
        for _ in 0..5 {
            // It is closed with the first of what is received at a time; on a machine so slow that a turn
            // ends before that is much, when the system keeps no more for a client that does not read.
            let mut flood = Client::connect(&server);
            let unknown = format!("{} {}\r\n", "x".repeat(128), "y".repeat(120));
            flood.try_send(&unknown.as_bytes().repeat(60_000));
            assert!(flood.rest().len() < 60_000 * unknown.len());
        }
        other.wait_for_info("connected_clients", "2");
        assert_eq!(other.info("client_output_buffer_limit_disconnections"), "5");
    }
}

#[test]
fn what_follows_reset_is_parsed_as_from_one_who_has_not_said_the_password() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..alone() });
    let mut client = Client::connect(&server);
    client.check("AUTH secret", "+OK\r\n");
    let large = request(&["ECHO", &"x".repeat(20_000)]);
    client.send(&[request(&["RESET"]), large].concat());
    assert_eq!(client.rest(), "+RESET\r\n-ERR Protocol error: unauthenticated bulk length\r\n");
}

#[test]
fn one_who_needs_no_password_any_more_may_leave_as_much_unread_as_others() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..alone() });
    let [mut client, mut other] = [(); 2].map(|()| Client::connect(&server));
    client.check("PING", "-NOAUTH Authentication required.\r\n");
    other.check("AUTH secret", "+OK\r\n");
    other.send(b"CONFIG SET requirepass \"\"\r\n");
    other.expect("+OK\r\n");
    let text = "x".repeat(200);
    client.send(&request(&["ECHO", &text]).repeat(1000));
    client.expect(&bulk(&text).repeat(1000));
}

#[test]
fn what_a_client_was_owed_before_reset_is_no_reason_to_close_it() {
    let server = start(Config { requirepass: b"secret".to_vec(), ..alone() });
    let mut client = Client::connect(&server);
    client.check("AUTH secret", "+OK\r\n");
    let text = "x".repeat(40_000);
    client.check(&format!("SET k {text}"), "+OK\r\n");
    // The parser stops in front of an inline request with quotes, so it is parsed after RESET has run.
    client.send(b"GET k\r\nRESET\r\nAUTH \"secret\"\r\nPING\r\n");
    client.expect(&format!("{}+RESET\r\n+OK\r\n+PONG\r\n", bulk(&text)));
}

#[test]
fn nothing_is_left_of_a_client_that_subscribes_with_its_last_words() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..alone() });
        let [mut busy, mut other] = [(); 2].map(|()| Client::connect(&server));
        other.check("PING", "+PONG\r\n");
        for command in ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"] {
            let before = other.info("mem_clients_normal");
            let mut dead = reckless(&server);
            busy.send(&request(&["DEBUG", "SLEEP", "0.1"]));
            let all = [
                // Each takes a turn of its own: by the last of them it is known to have gone.
                request(&["DEBUG", "SLEEP", "0.005"]).repeat(5),
                request(&["MULTI"]),
                request(&[command, "a", "b", "c"]),
                request(&["INCR", "done"]),
                request(&["EXEC"]),
            ];
            dead.write_all(&all.concat()).unwrap();
            drop(dead);
            busy.expect("+OK\r\n");
            other.wait_for_info("connected_clients", "2");
            for field in ["pubsub_channels", "pubsub_patterns", "pubsubshard_channels", "pubsub_clients"] {
                other.wait_for_info(field, "0");
            }
            other.check("PUBLISH a m", ":0\r\n");
            other.check("SPUBLISH a m", ":0\r\n");
            other.wait_for_info("mem_clients_normal", &before);
        }
        assert_eq!(other.ask("GET done"), "3", "all of it has run");
    }
}
