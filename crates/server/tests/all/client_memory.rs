//! `maxmemory-clients`: who is closed when clients take too much together; and what INFO says of their
//! buffers.
use crate::client::{Client, bulk, config, engines, request, start, start_at_noon};
use server::{Config, MemoryShare, Running};
use std::time::Duration;

fn limited(bytes: u64) -> Running {
    start(Config { maxmemory_clients: MemoryShare::Bytes(bytes), ..config() })
}

/// Sends this much of a larger request; the server keeps it and waits for the rest.
fn fill(client: &mut Client, bytes: usize) {
    client.send(format!("*2\r\n$4\r\nECHO\r\n${}\r\n", 64 << 20).as_bytes());
    client.try_send(&vec![b'x'; bytes]);
}

#[test]
fn those_that_take_most_are_closed_until_the_others_fit() {
    let server = limited(3 << 20);
    let [mut a, mut small, mut large, mut larger] = [(); 4].map(|()| Client::connect(&server));
    a.check("PING", "+PONG\r\n");
    fill(&mut small, 500_000);
    fill(&mut large, 1_000_000);
    fill(&mut larger, 2_000_000);
    larger.expect_end();
    a.wait_for_info("connected_clients", "3");
    assert_eq!(a.info("evicted_clients"), "1");
    let mut another = Client::connect(&server);
    fill(&mut another, 2_500_000);
    another.expect_end();
    small.send(b"x");
    large.send(b"x");
    a.wait_for_info("connected_clients", "3");
    assert_eq!(a.info("evicted_clients"), "2");
    a.check("CONFIG RESETSTAT", "+OK\r\n");
    assert_eq!(a.info("evicted_clients"), "0");
}

/// Nobody could raise it.
#[test]
fn a_limit_in_which_nobody_fits_lets_clients_in() {
    let server = limited(1);
    for _ in 0..3 {
        Client::connect(&server).check("PING", "+PONG\r\n");
    }
    let mut client = Client::connect(&server);
    client.check("CONFIG SET maxmemory-clients 500", "+OK\r\n");
    client.check("CONFIG GET maxmemory-clients", "*2\r\n$17\r\nmaxmemory-clients\r\n$3\r\n500\r\n");
    fill(&mut client, 500_000);
    client.expect_end();
    Client::connect(&server).check("CONFIG SET maxmemory-clients 0", "+OK\r\n");
}

#[test]
fn one_that_asked_for_no_evict_stays_and_others_go_for_it() {
    let server = limited(1 << 20);
    let [mut a, mut spared, mut other] = [(); 3].map(|()| Client::connect(&server));
    a.check("CLIENT NO-EVICT on", "+OK\r\n");
    spared.check("CLIENT NO-EVICT on", "+OK\r\n");
    other.check("PING", "+PONG\r\n");
    fill(&mut spared, 4 << 20);
    other.expect_end();
    a.wait_for_info("connected_clients", "2");
    assert_eq!(a.info("evicted_clients"), "1");
}

#[test]
fn replies_that_nobody_reads_count() {
    let server = limited(8 << 20);
    let [mut a, mut greedy] = [(); 2].map(|()| Client::connect(&server));
    greedy.check("SETRANGE mb 1048575 x", ":1048576\r\n");
    greedy.try_send(&request(&["GET", "mb"]).repeat(64));
    a.wait_for_info("connected_clients", "1");
    assert_eq!(a.info("evicted_clients"), "1");
}

#[test]
fn a_part_of_no_limit_is_no_limit() {
    let server = start(Config { maxmemory_clients: MemoryShare::Percent(1), ..config() });
    let mut client = Client::connect(&server);
    let large = "x".repeat(2 << 20);
    client.send(&request(&["ECHO", &large]));
    client.expect(&bulk(&large));
    client.check("CONFIG SET maxmemory 100mb", "+OK\r\n");
    client.check("CONFIG GET maxmemory-clients", "*2\r\n$17\r\nmaxmemory-clients\r\n$2\r\n1%\r\n");
    fill(&mut client, 2 << 20);
    client.rest();
    assert_eq!(Client::connect(&server).info("evicted_clients"), "1");
}

#[test]
fn the_largest_buffers_of_the_last_seconds_are_told() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    fill(&mut b, 100_000);
    let header = "*2\r\n$4\r\nECHO\r\n$67108864\r\n".len();
    // All of it has arrived: the room for it is there as soon as a part has.
    let arrived = format!(" qbuf={} ", header + 100_000);
    while !a.ask("CLIENT LIST").contains(&arrived) {}
    time.advance(Duration::from_millis(100));
    let peak = wait_for_peak(&mut a);
    assert!((100_000 + header..200_000).contains(&peak), "{peak}");
    drop(b);
    a.wait_for_info("connected_clients", "1");
    time.advance(Duration::from_secs(7));
    a.wait_for_info("client_recent_max_input_buffer", &peak.to_string());
    time.advance(Duration::from_secs(2));
    a.wait_for_info("client_recent_max_input_buffer", "0");
}

/// The largest query buffer, its room included, as soon as the server shows one.
fn wait_for_peak(client: &mut Client) -> usize {
    loop {
        let peak = client.info("client_recent_max_input_buffer").parse().unwrap();
        if peak > 0 {
            return peak;
        }
    }
}

#[test]
fn names_that_a_client_gives_itself_count_and_are_given_back() {
    let server = limited(4 << 20);
    let [mut a, mut greedy, mut other] = [(); 3].map(|()| Client::connect(&server));
    let total = |client: &mut Client| client.info("mem_clients_normal").parse::<usize>().unwrap();
    let before = total(&mut a);
    let name = "n".repeat(1 << 20);
    for words in [&["CLIENT", "SETNAME", &name][..], &["CLIENT", "SETINFO", "lib-ver", &name]] {
        other.send(&request(words));
        other.expect("+OK\r\n");
    }
    assert!((2 << 20..3 << 20).contains(&(total(&mut a) - before)));
    other.send(b"RESET\r\nCLIENT SETINFO lib-ver 1\r\n");
    other.expect("+RESET\r\n+OK\r\n");
    assert!(total(&mut a) - before < 1000);
    for words in [&["HELLO", "3", "SETNAME", &name][..], &["CLIENT", "SETINFO", "LIB-NAME", &name]] {
        greedy.try_send(&request(words));
        let _ = greedy.raw_reply();
    }
    let large = "n".repeat(5 << 20);
    greedy.try_send(&request(&["CLIENT", "SETNAME", &large]));
    greedy.try_send(b"PING\r\n");
    let _ = greedy.rest();
    a.wait_for_info("connected_clients", "2");
    assert_eq!(a.info("evicted_clients"), "1");
}

/// A message to many leaves buffers for the next one. They are not data, and go when there is none.
#[test]
fn buffers_to_send_from_count_as_buffers_and_are_given_back() {
    const LISTENERS: usize = 40;
    const BYTES: i64 = 10_000;
    for io_engine in engines() {
        let (server, time) = start_at_noon(Config { worker_threads: 1, io_engine, ..config() });
        let mut asks = Client::connect(&server);
        let mut listeners: Vec<Client> = (0..LISTENERS).map(|_| Client::connect(&server)).collect();
        listeners.iter_mut().for_each(|client| drop(client.raw("SUBSCRIBE c")));
        let text = "x".repeat(BYTES as usize);
        let mut buffers = || -> i64 { asks.info("mem_not_counted_for_evict").parse().unwrap() };
        let before = buffers();
        let mut publisher = Client::connect(&server);
        publisher.check(&format!("PUBLISH c {text}"), &format!(":{LISTENERS}\r\n"));
        let message = format!("*3\r\n{}{}{}", bulk("message"), bulk("c"), bulk(&text));
        listeners.iter_mut().for_each(|client| client.expect(&message));
        let (after, all) = (buffers(), LISTENERS as i64 * BYTES);
        assert!(after - before > all / 2, "{io_engine:?}: {before}, then {after}");
        // Those that were needed since the tick before the last one stay.
        for _ in 0..3 {
            time.advance(Duration::from_millis(100));
            publisher.check("PING", "+PONG\r\n");
        }
        let idle = buffers();
        assert!(idle - before < all / 4, "{io_engine:?}: {before}, then {after}, then {idle}");
    }
}
