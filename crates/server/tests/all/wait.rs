//! WAIT and WAITAOF without a replica and without a file: who is answered when, and what becomes
//! of clients that leave.
use crate::client::{Client, config, engines, start, start_at_noon};
use server::Config;
use std::time::Duration;

fn id_of(client: &mut Client) -> String {
    let info = client.ask("CLIENT INFO");
    let id = info.strip_prefix("txt:").unwrap_or(&info).split(' ').next();
    id.and_then(|id| id.strip_prefix("id=")).expect("a line of CLIENT LIST").to_owned()
}

#[test]
fn a_wait_is_answered_when_its_time_is_over_and_others_are_served_meanwhile() {
    for io_engine in engines() {
        let (server, time) = start_at_noon(Config { io_engine, worker_threads: 1, ..config() });
        let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
        a.send(b"SET k 1\r\nWAIT 1 100\r\nGET k\r\nWAITAOF 0 3 50\r\nGET k\r\n");
        a.expect("+OK\r\n");
        c.send(b"WAIT 1 99\r\n");
        b.wait_for_info("blocked_clients", "2");
        b.check("SET k 2", "+OK\r\n");
        time.advance(Duration::from_millis(99));
        c.expect(":0\r\n");
        assert_eq!(b.info("blocked_clients"), "1");
        a.send(b"PING\r\n");
        time.advance(Duration::from_millis(1));
        a.expect(":0\r\n$1\r\n2\r\n");
        b.wait_for_info("blocked_clients", "1");
        time.advance(Duration::from_millis(50));
        a.expect("*2\r\n:0\r\n:0\r\n$1\r\n2\r\n+PONG\r\n");
        assert_eq!(b.info("blocked_clients"), "0");
    }
}

#[test]
fn no_timeout_ends_early() {
    const MS: u64 = 4;
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let mut client = Client::connect(&server);
        // Somewhere in a millisecond each time: what ends by the count of whole ones may end early.
        for _ in 0..40 {
            for (request, reply) in [
                ("BLPOP l 0.004", "*-1\r\n"),
                ("XREAD BLOCK 4 STREAMS x $", "*-1\r\n"),
                ("WAIT 1 4", ":0\r\n"),
            ] {
                #[allow(clippy::disallowed_methods, reason = "it is real time that must have passed")]
                let before = std::time::Instant::now();
                client.check(request, reply);
                let passed = before.elapsed();
                assert!(passed >= Duration::from_millis(MS), "{request} is over after {passed:?}");
            }
        }
    }
}

#[test]
fn nobody_waits_for_no_replica_or_with_wrong_arguments() {
    let server = start(config());
    let mut client = Client::connect(&server);
    client.check("WAIT 0 0", ":0\r\n");
    client.check("WAIT -1 0", ":0\r\n");
    client.check("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n");
    client.check("WAIT 1 -1", "-ERR timeout is negative\r\n");
    client.check("WAIT 1 9223372036854775807", "-ERR timeout is out of range\r\n");
}

#[test]
fn a_wait_without_an_end_lasts_until_somebody_ends_it() {
    let (server, time) = start_at_noon(config());
    // On different workers.
    let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
    let ids = [&mut a, &mut c].map(id_of);
    a.send(b"WAIT 1 0\r\nPING\r\n");
    c.send(b"WAITAOF 0 1 0\r\nPING\r\n");
    b.wait_for_info("blocked_clients", "2");
    time.advance(Duration::from_secs(1_000_000));
    b.check("PING", "+PONG\r\n");
    assert_eq!(b.info("blocked_clients"), "2");
    b.check(&format!("CLIENT UNBLOCK {}", ids[0]), ":1\r\n");
    b.check(&format!("CLIENT UNBLOCK {} ERROR", ids[1]), ":1\r\n");
    b.check(&format!("CLIENT UNBLOCK {}", ids[1]), ":0\r\n");
    a.expect(":0\r\n+PONG\r\n");
    c.expect("-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n+PONG\r\n");
    assert!(b.info("cmdstat_wait").ends_with(",failed_calls=0"));
    assert!(b.info("cmdstat_waitaof").ends_with(",failed_calls=1"), "it was answered with an error");
    b.check(&format!("CLIENT UNBLOCK {}", ids[0]), ":0\r\n");
    b.check("CLIENT UNBLOCK 0", ":0\r\n");
}

#[test]
fn one_that_leaves_or_is_killed_while_it_waits_is_forgotten() {
    for io_engine in engines() {
        let (server, time) = start_at_noon(Config { io_engine, ..config() });
        let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
        let id = id_of(&mut c);
        a.send(b"WAIT 1 0\r\n");
        c.send(b"WAIT 1 50\r\n");
        b.wait_for_info("blocked_clients", "2");
        drop(a);
        b.wait_for_info("blocked_clients", "1");
        b.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
        c.expect_end();
        b.wait_for_info("connected_clients", "1");
        time.advance(Duration::from_millis(100));
        b.check("PING", "+PONG\r\n");
        assert_eq!(b.info("blocked_clients"), "0");
    }
}

#[test]
fn what_a_client_sends_while_it_waits_is_kept_however_it_is_cut() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.send(b"WAIT 1 10\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nab");
    b.wait_for_info("blocked_clients", "1");
    a.send(b"cde\r\n*2\r\n$3\r\nGET\r\n$1\r\n");
    b.check("EXISTS k", ":0\r\n");
    time.advance(Duration::from_millis(10));
    a.expect(":0\r\n+OK\r\n");
    a.send(b"k\r\n");
    a.expect("$5\r\nabcde\r\n");
    // The protocol error is answered after the reply of WAIT.
    a.send(b"WAIT 1 10\r\n*x\r\n");
    b.wait_for_info("blocked_clients", "1");
    time.advance(Duration::from_millis(10));
    a.expect(":0\r\n-ERR Protocol error: invalid multibulk length\r\n");
    a.expect_end();
}

#[test]
fn a_client_that_wants_no_replies_gets_none_late() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b] = [(); 2].map(|()| Client::connect(&server));
    a.send(b"CLIENT REPLY OFF\r\nWAIT 1 10\r\nCLIENT REPLY ON\r\n");
    b.wait_for_info("blocked_clients", "1");
    assert_eq!(b.info("blocked_clients"), "1");
    time.advance(Duration::from_millis(10));
    a.expect("+OK\r\n");
    a.send(b"CLIENT REPLY SKIP\r\nWAIT 1 10\r\nPING\r\n");
    b.wait_for_info("blocked_clients", "1");
    time.advance(Duration::from_millis(10));
    a.expect("+PONG\r\n");
}

#[test]
fn one_that_has_sent_much_and_leaves_while_it_waits_is_forgotten_at_once() {
    for io_engine in engines() {
        let (server, _time) = start_at_noon(Config { io_engine, ..config() });
        let mut b = Client::connect(&server);
        for front in ["WAIT 1 0\r\n", "CLIENT PAUSE 1000000 WRITE\r\nSET k v\r\n"] {
            let mut a = Client::connect(&server);
            a.send(front.as_bytes());
            b.wait_for_info("blocked_clients", "1");
            a.send(&b"SET k v\r\n".repeat(200_000));
            drop(a);
            b.wait_for_info("connected_clients", "1");
            assert_eq!(b.info("blocked_clients"), "0");
        }
        b.check("CLIENT UNPAUSE", "+OK\r\n");
        b.check("EXISTS k", ":0\r\n");
    }
}

#[test]
fn one_that_waits_may_send_as_much_as_anybody_whose_request_is_not_whole() {
    for io_engine in engines() {
        let (server, time) =
            start_at_noon(Config { io_engine, client_query_buffer_bytes_max: 4 << 20, ..config() });
        let [mut a, mut b, mut c] = [(); 3].map(|()| Client::connect(&server));
        [&mut a, &mut c].into_iter().for_each(|client| client.send(b"WAIT 1 100\r\n"));
        b.wait_for_info("blocked_clients", "2");
        a.send(&b"INCR n\r\n".repeat(400_000));
        while c.try_send(&b"INCR m\r\n".repeat(100_000)) {}
        b.wait_for_info("client_query_buffer_limit_disconnections", "1");
        time.advance(Duration::from_millis(100));
        a.expect(":0\r\n");
        (1..=400_000).for_each(|n| a.expect(&format!(":{n}\r\n")));
        b.check("EXISTS m", ":0\r\n");
    }
}
