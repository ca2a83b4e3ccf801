//! Settings that involve the system: what the kernel refuses, addresses, several writers at once, the
//! password.
use crate::client::{Client, config, engines, request, start, start_at_noon};
use server::{Clock, Config, Log, Running};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[test]
fn a_keepalive_longer_than_the_kernel_knows_shuts_nobody_out() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        for seconds in [32_767, 32_768, i32::MAX] {
            client.check(&format!("CONFIG SET tcp-keepalive {seconds}"), "+OK\r\n");
            Client::connect(&server).check("PING", "+PONG\r\n");
        }
    }
}

/// A client that watches everything, and the server's time: a client that asks much and reads little is not
/// idle.
#[test]
fn one_that_reads_slowly_or_watches_is_not_idle() {
    for io_engine in engines() {
        let (server, time) =
            start_at_noon(Config { io_engine, timeout_s: 10, worker_threads: 1, ..config() });
        let (mut idle, mut busy) = (Client::connect(&server), Client::connect(&server));
        idle.check("PING", "+PONG\r\n");
        let mut monitor = Client::connect(&server);
        monitor.check("MONITOR", "+OK\r\n");
        let mut slow = Client::connect(&server);
        slow.check("SETRANGE k 41943039 x", ":41943040\r\n");
        slow.send(&request(&["GET", "k"]));
        slow.expect("$41943040\r\n");
        let mut left = (40 << 20) + 2;
        for _ in 0..25 {
            time.advance(Duration::from_secs(1));
            busy.check("PING", "+PONG\r\n");
            busy.check("PING", "+PONG\r\n");
            let part = left.min(1 << 20);
            slow.read(part);
            left -= part;
        }
        slow.read(left);
        slow.check("PING", "+PONG\r\n");
        idle.expect_end();
        monitor.read(1);
        assert!(busy.ask("CLIENT LIST").contains(" flags=O "));
    }
}

#[test]
fn one_that_reads_nothing_any_more_is_idle() {
    let (server, time) = start_at_noon(Config { timeout_s: 10, worker_threads: 1, ..config() });
    let (mut stuck, mut busy) = (Client::connect(&server), Client::connect(&server));
    stuck.check("SETRANGE k 41943039 x", ":41943040\r\n");
    stuck.send(&request(&["GET", "k"]));
    stuck.expect("$41943040\r\n");
    for _ in 0..200 {
        time.advance(Duration::from_secs(1));
        if busy.info("connected_clients") == "1" {
            return;
        }
    }
    panic!("it is still connected");
}

/// Moves the server to a free port outside the range from which the system chooses, so that a port which was
/// left for a moment is still free afterwards.
fn moved(client: &mut Client) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(389).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        if client.ask(&format!("CONFIG SET port {port}")).trim() == "+OK" {
            return port;
        }
    }
}

#[test]
fn one_address_twice_is_refused_and_changes_nothing() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        let port = moved(&mut client);
        for bind in ["127.0.0.1 127.0.0.1", "127.0.0.1 -127.0.0.1", "127.0.0.2 127.0.0.1 127.0.0.2"] {
            let set = request(&["CONFIG", "SET", "bind", bind]);
            client.send(&set);
            client.expect(
                "-ERR CONFIG SET failed (possibly related to argument 'bind') - \
                 Failed to bind to specified addresses.\r\n",
            );
            client.check("CONFIG GET bind", "*2\r\n$4\r\nbind\r\n$9\r\n127.0.0.1\r\n");
            Client::to((Ipv4Addr::LOCALHOST, port).into()).check("PING", "+PONG\r\n");
        }
        let next = Config {
            bind: vec!["127.0.0.1".into(), "127.0.0.1".into()],
            port: port.wrapping_add(1).max(1024),
            picks_port: false,
            ..config()
        };
        let error = server::start(next, Clock::real(), Log::silent()).err().map(|e| e.to_string());
        assert!(error.is_some_and(|e| e.starts_with("Failed listening on port ")));
    }
}

#[test]
fn the_port_may_change_twice_in_one_pipeline_and_back() {
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 3, ..config() });
        let mut client = Client::connect(&server);
        for _ in 0..20 {
            let [away, home] = [(); 2].map(|()| moved(&mut client));
            let set = |port: u16| request(&["CONFIG", "SET", "port", &port.to_string()]);
            client.send(&[set(away), set(home), set(away), set(home)].concat());
            client.expect("+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
            Client::to((Ipv4Addr::LOCALHOST, home).into()).check("PING", "+PONG\r\n");
        }
    }
}

/// Clients that have been answered once: those that still wait to be let in are dropped with their address.
fn served(server: &Running, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect(server)).collect();
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG\r\n"));
    clients
}

#[test]
fn nobody_gets_in_by_an_address_that_was_left() {
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 4, ..config() });
        let mut clients = served(&server, 8);
        let mut left = moved(&mut clients[0]);
        for round in 0..200 {
            let port = moved(&mut clients[round % 8]);
            // One that gets in all the same would be served.
            let late = TcpStream::connect((Ipv4Addr::LOCALHOST, left));
            assert!(late.is_err(), "round {round}: port {left}");
            // Another program may have the port.
            drop(TcpListener::bind((Ipv4Addr::LOCALHOST, left)).unwrap());
            left = port;
        }
        for round in 0..100 {
            let (to, from) = if round % 2 == 0 { (2, 1) } else { (1, 2) };
            clients[round % 8].check(&format!("CONFIG SET bind 127.0.0.{to}"), "+OK\r\n");
            let late = TcpStream::connect((Ipv4Addr::new(127, 0, 0, from), left));
            assert!(late.is_err(), "round {round}: bind 127.0.0.{from}");
        }
    }
}

/// A port that was just left can be listened on again at once, though the listener may still be closing.
#[test]
fn several_clients_may_change_the_port_to_and_fro() {
    for io_engine in engines() {
        let server = start(Config { io_engine, worker_threads: 3, ..config() });
        let mut clients = served(&server, 6);
        let ports = [(); 3].map(|()| moved(&mut clients[0]));
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    for port in ports.into_iter().cycle().take(150) {
                        client.check(&format!("CONFIG SET port {port}"), "+OK\r\n");
                    }
                });
            }
        });
        let port = moved(&mut clients[0]);
        Client::to((Ipv4Addr::LOCALHOST, port).into()).check("PING", "+PONG\r\n");
    }
}

#[test]
fn a_server_that_listens_nowhere_does_not_start() {
    let nowhere = [
        Config { port: 0, picks_port: false, ..config() },
        Config { port: 7000, picks_port: false, bind: Vec::new(), ..config() },
    ];
    for config in nowhere {
        let error = server::start(config, Clock::real(), Log::silent()).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some("Configured to not listen anywhere, exiting."));
    }
}

/// What a file says of a setting.
fn line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

#[test]
fn settings_of_several_clients_at_once_are_all_in_force_and_all_in_the_file() {
    const NAMES: [&str; 4] =
        ["timeout", "slowlog-max-len", "latency-monitor-threshold", "hash-max-listpack-entries"];
    let folder = std::env::temp_dir().join(format!("sardine-writers-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a.conf");
    let server = start(Config { file: Some(file.clone()), worker_threads: 4, ..config() });
    let mut clients: Vec<Client> = NAMES.iter().map(|_| Client::connect(&server)).collect();
    for round in 1_000..1_150 {
        let barrier = Barrier::new(NAMES.len());
        std::thread::scope(|scope| {
            for (client, name) in clients.iter_mut().zip(NAMES) {
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    client.check(&format!("CONFIG SET {name} {round}"), "+OK\r\n");
                    client.check("CONFIG REWRITE", "+OK\r\n");
                });
            }
        });
        let text = std::fs::read_to_string(&file).unwrap();
        for name in NAMES {
            assert_eq!(line(&text, name), Some(&*round.to_string()), "{name} in round {round}: {text}");
        }
    }
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(left, 1, "no file but the configuration is left");
}

fn with_password(server: &Running) -> Client {
    let mut client = Client::connect(server);
    client.check("AUTH old", "+OK\r\n");
    client
}

#[test]
fn when_there_is_no_password_any_more_those_who_are_connected_are_served() {
    let server = start(Config { requirepass: b"old".to_vec(), ..config() });
    let mut stranger = Client::connect(&server);
    stranger.check("PING", "-NOAUTH Authentication required.\r\n");
    let mut admin = with_password(&server);
    let take = ["CONFIG", "SET", "requirepass", ""];
    admin.send(&request(&take));
    admin.expect("+OK\r\n");
    stranger.check("PING", "+PONG\r\n");
    assert!(stranger.raw("HELLO 2").starts_with("-NOAUTH HELLO must be called"));
    let large = "x".repeat(3 << 20);
    stranger.send(&request(&["SET", "large", &large]));
    stranger.expect("+OK\r\n");
    // The stranger never said a password, so a new one asks it for that. The guest came while there was
    // none, and stays let in.
    let mut guest = Client::connect(&server);
    guest.check("PING", "+PONG\r\n");
    admin.check("CONFIG SET requirepass new", "+OK\r\n");
    stranger.check("PING", "-NOAUTH Authentication required.\r\n");
    guest.check("PING", "+PONG\r\n");
    admin.check("PING", "+PONG\r\n");
}
