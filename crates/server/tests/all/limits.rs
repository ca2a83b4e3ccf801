//! Clients that take more than their share.
use crate::client::{Client, bulk, config, engines, request, start};
use server::{Config, OutputLimit, OutputLimits, Running};

#[test]
fn clients_beyond_maxclients_are_told_so() {
    let server = start(Config { maxclients: 3, ..config() });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server)).collect();
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG\r\n"));
    assert_eq!(Client::connect(&server).rest(), "-ERR max number of clients reached\r\n");
    clients.pop();
    clients[0].wait_for("CONFIG GET nosuch", "*0");
    for _ in 0..1000 {
        let mut next = Client::connect(&server);
        if next.try_send(b"PING\r\n") && next.read(1) == b"+" {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the place of a client that left stays taken");
}

#[test]
fn a_lower_maxclients_turns_new_clients_away_and_keeps_the_old_ones() {
    let server = start(config());
    let mut clients = [(); 3].map(|()| Client::connect(&server));
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG\r\n"));
    clients[0].check("CONFIG SET maxclients 1", "+OK\r\n");
    let received = clients[0].info("total_connections_received");
    assert_eq!(Client::connect(&server).rest(), "-ERR max number of clients reached\r\n");
    clients.iter_mut().for_each(|client| client.check("PING", "+PONG\r\n"));
    assert_eq!(clients[0].info("rejected_connections"), "1");
    assert_eq!(clients[0].info("total_connections_received"), received, "as in Redis");
    clients[0].check("CONFIG SET maxclients 4", "+OK\r\n");
    Client::connect(&server).check("PING", "+PONG\r\n");
}

fn limited(normal: OutputLimit) -> Running {
    let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
    start(Config { client_output_buffer, ..config() })
}

/// Asks for this many megabytes of replies without reading them. Returns whether the server
/// took all the requests.
fn ask_for_megabytes(client: &mut Client, count: usize) -> bool {
    let mut setup = request(&["SETRANGE", "mb", "1048575", "x"]);
    setup.extend(request(&["GET", "mb"]).repeat(count));
    client.try_send(&setup)
}

#[test]
fn a_client_that_reads_nothing_is_closed_at_the_hard_limit() {
    let server = limited(OutputLimit { hard_bytes: 8 << 20, soft_bytes: 0, soft_s: 0 });
    let mut client = Client::connect(&server);
    client.check("PING", "+PONG\r\n");
    ask_for_megabytes(&mut client, 64);
    let mut other = Client::connect(&server);
    other.wait_for_info("connected_clients", "1");
    assert_eq!(other.info("client_output_buffer_limit_disconnections"), "1");
}

#[test]
fn a_client_that_sends_all_before_it_reads_gets_all_its_replies() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        assert!(ask_for_megabytes(&mut client, 40));
        // More than socket buffers hold, so that the last of it is taken only when the client is served
        // unread.
        let filler = "y".repeat(100_000);
        (0..200).for_each(|_| client.send(&request(&["ECHO", &filler])));
        client.expect(":1048576\r\n");
        let len = bulk(&"x".repeat(1 << 20)).len();
        for _ in 0..40 {
            assert!(client.read(len).starts_with(b"$1048576\r\n"));
        }
        (0..200).for_each(|_| client.expect(&bulk(&filler)));
        client.check("PING", "+PONG\r\n");
    }
}

#[test]
fn requests_that_waited_for_a_slow_reader_are_answered_as_they_were_sent() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.send(&request(&["SETRANGE", "mb", "1048575", "x"]));
    // Inline requests with quotes, binary arguments, and an unfinished one at the end.
    client.send(&request(&["GET", "mb"]).repeat(20));
    client.send(b"ECHO \"a \\x41\\r\\n\"\r\n*2\r\n$4\r\nECHO\r\n$6\r\n\r\n$1\r\n\r\n");
    client.send(b"\r\nECHO");
    client.expect(":1048576\r\n");
    let len = bulk(&"x".repeat(1 << 20)).len();
    (0..20).for_each(|_| drop(client.read(len)));
    client.expect("$5\r\na A\r\n\r\n$6\r\n\r\n$1\r\n\r\n");
    client.send(b" done\r\n");
    client.expect("$4\r\ndone\r\n");
}

#[test]
fn a_request_larger_than_the_query_buffer_limit_ends_its_connection() {
    let server = start(Config { client_query_buffer_bytes_max: 1 << 20, ..config() });
    let mut client = Client::connect(&server);
    client.try_send(b"*2\r\n$4\r\nECHO\r\n$3000000\r\n");
    client.try_send(&vec![b'x'; 2_000_000]);
    client.expect_end();
    assert_eq!(Client::connect(&server).info("client_query_buffer_limit_disconnections"), "1");
}

#[test]
fn a_large_argument_arrives_whole() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        let large: String = (0..20_000_000).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
        client.send(&request(&["SET", "large", &large]));
        client.expect("+OK\r\n");
        client.check("GET large", &bulk(&large));
    }
}

/// As in Redis 8.0.2. RENAME needs no memory, so it makes the key ready.
#[test]
fn a_request_that_waits_is_refused_when_its_key_comes_while_memory_is_full() {
    const REFUSED: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let server = start(config());
    let [mut a, mut b, mut c, mut d] = [(); 4].map(|()| Client::connect(&server));
    b.send(b"BLMOVE l moved LEFT RIGHT 0\r\n");
    d.wait_for_info("blocked_clients", "1");
    c.send(b"BRPOPLPUSH l moved 0\r\n");
    d.wait_for_info("blocked_clients", "2");
    a.send(b"BLPOP l 0\r\n");
    d.wait_for_info("blocked_clients", "3");
    d.check("RPUSH source v w", ":2\r\n");
    d.check("CONFIG SET maxmemory 1", "+OK\r\n");
    d.check("RENAME source l", "+OK\r\n");
    b.expect(REFUSED);
    c.expect(REFUSED);
    a.expect("*2\r\n$1\r\nl\r\n$1\r\nv\r\n");
    d.check("LRANGE l 0 -1", "*1\r\n$1\r\nw\r\n");
    d.check("EXISTS moved", ":0\r\n");
    assert!(d.ask("INFO commandstats").contains("cmdstat_blmove:calls=1,"), "it ran once, to wait");
    assert!(d.ask("INFO commandstats").contains("rejected_calls=1,"), "and was refused once");
}
