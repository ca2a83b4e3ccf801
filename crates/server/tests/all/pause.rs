//! CLIENT PAUSE: who is held back, for how long, and what becomes of those who do not wait.
use crate::client::{Client, NOON_MS, bulk, config, engines, request, start, start_at_noon};
use server::Config;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const FOREVER_MS: &str = "99999999999";

fn pause_writes(client: &mut Client) {
    client.check(&format!("CLIENT PAUSE {FOREVER_MS} WRITE"), "+OK\r\n");
}

/// A client on each worker, and one more.
fn clients(server: &server::Running) -> [Client; 3] {
    [(); 3].map(|()| Client::connect(server))
}

#[test]
fn writes_wait_until_the_pause_ends_and_reads_do_not() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let [mut a, mut b, mut c] = clients(&server);
        a.check("SET k old", "+OK\r\n");
        pause_writes(&mut a);
        b.send(b"GET k\r\nSET k new\r\nGET k\r\n");
        c.send(b"GET k\r\nRPUSH l x\r\n");
        b.expect(&bulk("old"));
        c.expect(&bulk("old"));
        a.wait_for_info("blocked_clients", "2");
        a.check("EXISTS k l", ":1\r\n");
        b.send(b"GET k\r\n");
        a.check("CLIENT UNPAUSE", "+OK\r\n");
        b.expect(&format!("+OK\r\n{}", bulk("new")));
        c.expect(":1\r\n");
        b.expect(&bulk("new"));
        assert_eq!(a.info("blocked_clients"), "0");
    }
}

#[test]
fn a_transaction_that_reads_much_does_not_wait() {
    let (server, _time) = start_at_noon(config());
    let [mut a, mut b, _] = clients(&server);
    let members: Vec<String> = (0..40_000).map(|n| format!("member:{n}")).collect();
    a.check(&format!("SADD s {}", members.join(" ")), ":40000\r\n");
    pause_writes(&mut a);
    b.check("MULTI", "+OK\r\n");
    b.check("SINTERCARD 2 s s", "+QUEUED\r\n");
    b.check("SCARD s", "+QUEUED\r\n");
    b.check("EXEC", "*2\r\n:40000\r\n:40000\r\n");
}

/// A script whose first line says that it does not write is held back as little as a read.
#[test]
fn scripts_that_promise_not_to_write_do_not_wait() {
    let server = start(config());
    let [mut a, mut b, mut c] = clients(&server);
    let call = |name: &str, text: &str| request(&[name, text, "0"]);
    a.send(&request(&["SCRIPT", "LOAD", "#!lua flags=no-writes\nreturn 2"]));
    a.expect(&bulk("ae33f9227913b24d053a555637f98260b23bd3a3"));
    pause_writes(&mut a);
    a.send(&call("EVAL", "#!lua flags=no-writes\nreturn 1"));
    a.expect(":1\r\n");
    a.send(&call("EVALSHA", "ae33f9227913b24d053a555637f98260b23bd3a3"));
    a.expect(":2\r\n");
    // Not on the thread of scripts either.
    let lasts = "for i = 1, 3000000 do end return 3";
    a.send(&call("EVAL_RO", lasts));
    a.expect(":3\r\n");
    a.send(&call("EVAL", &format!("#!lua flags=no-writes\n{lasts}")));
    a.expect(":3\r\n");
    b.send(&call("EVAL", "#!lua\nreturn 1"));
    c.send(&call("EVAL", "return 1"));
    a.wait_for_info("blocked_clients", "2");
    a.check("CLIENT UNPAUSE", "+OK\r\n");
    b.expect(":1\r\n");
    c.expect(":1\r\n");
}

#[test]
fn one_that_is_paused_by_its_own_pipeline_goes_on_where_it_stopped() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, _] = clients(&server);
    a.send(b"SET k 1\r\nCLIENT PAUSE 1000 WRITE\r\nGET k\r\nSET k 2\r\nGET k\r\n");
    a.expect("+OK\r\n+OK\r\n$1\r\n1\r\n");
    b.wait_for_info("blocked_clients", "1");
    time.advance(Duration::from_secs(1));
    a.expect("+OK\r\n$1\r\n2\r\n");
}

#[test]
fn everything_waits_until_its_time_is_over_on_every_worker() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, mut c] = clients(&server);
    a.check("CLIENT PAUSE 5000", "+OK\r\n");
    for client in [&mut a, &mut b, &mut c] {
        client.send(&request(&["INFO", "server"]));
        // What is refused is refused at once.
        client.send(b"CLIENT UNPAUSE\r\n");
    }
    for _ in 0..5 {
        time.advance(Duration::from_secs(1));
    }
    for client in [&mut a, &mut b, &mut c] {
        let info = client.bulk();
        let when_us = info.lines().find_map(|line| line.strip_prefix("server_time_usec:")).unwrap();
        assert_eq!(when_us, ((NOON_MS + 5000) * 1000).to_string());
        client.expect("+OK\r\n");
    }
}

#[test]
fn what_is_refused_anyway_does_not_wait() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, _] = clients(&server);
    a.check("CLIENT PAUSE 100 ALL", "+OK\r\n");
    b.send(b"NOSUCH\r\nGET\r\nPING\r\n");
    b.expect("-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    b.expect("-ERR wrong number of arguments for 'get' command\r\n");
    time.advance(Duration::from_millis(100));
    b.expect("+PONG\r\n");
}

#[test]
fn the_later_end_of_two_pauses_counts_and_the_stricter_mode() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, mut c] = clients(&server);
    a.check("CLIENT PAUSE 1000 WRITE", "+OK\r\n");
    b.check("CLIENT PAUSE 100 WRITE", "+OK\r\n");
    c.send(b"SET k v\r\n");
    a.wait_for_info("blocked_clients", "1");
    time.advance(Duration::from_millis(999));
    assert_eq!(a.info("blocked_clients"), "1");
    b.check("CLIENT PAUSE 100 ALL", "+OK\r\n");
    time.advance(Duration::from_millis(100));
    c.expect("+OK\r\n");
    a.check("PING", "+PONG\r\n");
}

#[test]
fn no_key_is_removed_while_writes_are_paused_though_none_is_seen_past_its_time() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, _] = clients(&server);
    for i in 0..100 {
        a.check(&format!("SET k:{i} v PX 1000"), "+OK\r\n");
    }
    a.check("CLIENT PAUSE 5000 WRITE", "+OK\r\n");
    time.advance(Duration::from_millis(2000));
    for client in [&mut a, &mut b] {
        client.check("GET k:7", "$-1\r\n");
        client.check("EXISTS k:7 k:8", ":0\r\n");
        client.check("KEYS *", "*0\r\n");
        client.check("DBSIZE", ":100\r\n");
    }
    assert_eq!(a.info("expired_keys"), "0");
    time.advance(Duration::from_millis(3000));
    a.wait_for("DBSIZE", ":0");
    assert_eq!(a.info("expired_keys"), "100");
}

#[test]
fn expiry_goes_on_when_the_pause_is_ended_early() {
    let (server, time) = start_at_noon(config());
    let [mut a, _, _] = clients(&server);
    a.check("SET k v PX 100", "+OK\r\n");
    pause_writes(&mut a);
    time.advance(Duration::from_millis(200));
    a.check("DBSIZE", ":1\r\n");
    a.check("CLIENT UNPAUSE", "+OK\r\n");
    a.wait_for("DBSIZE", ":0");
}

#[test]
fn one_that_leaves_or_is_killed_while_it_waits_never_runs_its_command() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let [mut a, mut b, mut c] = clients(&server);
        pause_writes(&mut a);
        let id = b.ask("CLIENT ID").trim_start_matches(':').trim().to_owned();
        b.send(b"SET b 1\r\n");
        c.send(b"SET c 1\r\n");
        a.wait_for_info("blocked_clients", "2");
        assert!(a.ask(&format!("CLIENT LIST ID {id}")).contains(" flags=b db=0 "));
        assert!(a.ask(&format!("CLIENT LIST ID {id}")).contains(" cmd=set "));
        a.check(&format!("CLIENT KILL ID {id}"), ":1\r\n");
        b.expect_end();
        drop(c);
        a.wait_for_info("connected_clients", "1");
        assert_eq!(a.info("blocked_clients"), "0");
        a.check("CLIENT UNPAUSE", "+OK\r\n");
        a.check("EXISTS b c", ":0\r\n");
    }
}

#[test]
fn all_that_is_sent_while_a_client_waits_is_run_in_order_afterwards() {
    for io_engine in engines() {
        let server = start(Config { io_engine, ..config() });
        let [mut a, mut b, _] = clients(&server);
        pause_writes(&mut a);
        b.send(b"SET n 0\r\n");
        a.wait_for_info("blocked_clients", "1");
        let increments = request(&["INCR", "n"]).repeat(20_000);
        b.send(&increments);
        a.check("CLIENT UNPAUSE", "+OK\r\n");
        b.expect("+OK\r\n");
        (1..=20_000).for_each(|n| b.expect(&format!(":{n}\r\n")));
    }
}

#[test]
fn a_large_argument_arrives_whole_though_its_client_waits() {
    let server = start(config());
    let [mut a, mut b, _] = clients(&server);
    let large = "x".repeat(3_000_000);
    let whole = request(&["SET", "large", &large]);
    let (first, second) = whole.split_at(1_000_000);
    pause_writes(&mut a);
    b.send(b"SET k v\r\n");
    a.wait_for_info("blocked_clients", "1");
    b.send(first);
    a.check("CLIENT UNPAUSE", "+OK\r\n");
    b.send(second);
    b.expect("+OK\r\n+OK\r\n");
    a.check("STRLEN large", ":3000000\r\n");
}

#[test]
fn waiting_is_not_idling() {
    let (server, time) = start_at_noon(Config { timeout_s: 10, ..config() });
    let [mut a, mut b, _] = clients(&server);
    pause_writes(&mut a);
    b.send(b"SET k v\r\n");
    a.wait_for_info("blocked_clients", "1");
    for _ in 0..20 {
        time.advance(Duration::from_secs(1));
        a.check("PING", "+PONG\r\n");
    }
    a.check("CLIENT UNPAUSE", "+OK\r\n");
    b.expect("+OK\r\n");
}

#[test]
fn one_that_has_waited_longer_than_it_may_idle_goes_on() {
    let (server, time) = start_at_noon(Config { timeout_s: 10, worker_threads: 1, ..config() });
    let [mut a, mut b, _] = clients(&server);
    a.check("CLIENT PAUSE 15000 WRITE", "+OK\r\n");
    b.send(b"SET k v\r\n");
    a.wait_for_info("blocked_clients", "1");
    time.advance(Duration::from_secs(8));
    a.check("PING", "+PONG\r\n");
    time.advance(Duration::from_secs(8));
    b.expect("+OK\r\n");
}

#[test]
fn one_that_is_held_back_is_not_unblocked() {
    let server = start(config());
    let [mut a, mut b, _] = clients(&server);
    let id = b.ask("CLIENT ID").trim_start_matches(':').trim().to_owned();
    pause_writes(&mut a);
    b.send(b"SET k v\r\n");
    a.wait_for_info("blocked_clients", "1");
    a.check(&format!("CLIENT UNBLOCK {id}"), ":0\r\n");
    a.check(&format!("CLIENT UNBLOCK {id} ERROR"), ":0\r\n");
    a.check("CLIENT UNPAUSE", "+OK\r\n");
    b.expect("+OK\r\n");
}

#[test]
fn one_that_monitors_is_not_held_back() {
    let (server, time) = start_at_noon(config());
    let [mut a, mut b, _] = clients(&server);
    b.check("MONITOR", "+OK\r\n");
    a.check("CLIENT PAUSE 1000 ALL", "+OK\r\n");
    b.check("PING", "+PONG\r\n");
    a.send(b"PING\r\n");
    time.advance(Duration::from_secs(1));
    a.expect("+PONG\r\n");
}

/// Of clients on one worker: each waits for the pause that has stopped it, and not for one that began since
/// and does not concern it.
#[test]
fn one_that_a_pause_has_stopped_goes_on_when_that_pause_ends_whatever_pause_begins_then() {
    for _ in 0..10 {
        let server = start(Config { worker_threads: 1, ..config() });
        let [mut a, mut b, mut c] = clients(&server);
        let [mut watcher, mut other, _] = clients(&server);
        // A client in MONITOR is never held back, so it can end a pause of all commands.
        watcher.check("MONITOR", "+OK\r\n");
        other.check("MONITOR", "+OK\r\n");
        a.check(&format!("CLIENT PAUSE {FOREVER_MS} ALL"), "+OK\r\n");
        b.send(b"GET k\r\n");
        while !other.ask("INFO clients").contains("blocked_clients:1") {}
        // While this request keeps the worker busy, the requests of the next batch arrive.
        watcher.send(b"DEBUG SLEEP 0.02\r\n");
        watcher.send(b"CLIENT UNPAUSE\r\n");
        watcher.send(format!("CLIENT PAUSE {FOREVER_MS} WRITE\r\n").as_bytes());
        c.send(b"SET c v\r\n");
        b.expect("$-1\r\n");
    }
}

/// Also by those that were about to begin, and waited until they would be alone, while the pause began.
#[test]
fn nothing_is_written_between_the_answer_to_a_pause_and_its_end() {
    let server = start(Config { worker_threads: 3, ..config() });
    let eval = |script: &str| request(&["EVAL", script, "0"]);
    let alone = eval("redis.call('incr', 'n') return redis.call('dbsize')");
    let on_its_thread = eval("redis.call('incr', 'n') redis.call('move', 'none', 9) return 1");
    let exec = b"MULTI\r\nINCR n\r\nKEYS none\r\nEXEC\r\n".to_vec();
    let writes = [(&*alone, 1), (&alone, 1), (&on_its_thread, 1), (&exec, 4), (&exec, 4)];
    let pause = format!("CLIENT PAUSE {FOREVER_MS} WRITE");
    check_that_writes_rest(&server, "SELECT 0", &writes, [&pause, "CLIENT UNPAUSE"]);
}

/// Clients that have said this first send such writes again and again, which raise `n` and have so many
/// replies. Nothing is
/// written between the answer to the request that stops them and the one that lets them go on.
pub(crate) fn check_that_writes_rest(
    server: &server::Running,
    greeting: &str,
    writes: &[(&[u8], usize)],
    [stop, go_on]: [&str; 2],
) {
    let is_over = &AtomicBool::new(false);
    let mut admin = Client::connect(server);
    admin.check("SET n 0", "+OK\r\n");
    std::thread::scope(|scope| {
        for (writes, replies) in writes.iter().copied() {
            scope.spawn(move || {
                let mut client = Client::connect(server);
                client.check(greeting, "+OK\r\n");
                while !is_over.load(Relaxed) {
                    client.send(writes);
                    (0..replies).for_each(|_| drop(client.raw_reply()));
                }
            });
        }
        for round in 0..200 {
            admin.check(stop, "+OK\r\n");
            let before = admin.ask("GET n");
            (0..10).for_each(|_| admin.check("PING", "+PONG\r\n"));
            let after = admin.ask("GET n");
            admin.check(go_on, "+OK\r\n");
            if before != after {
                is_over.store(true, Relaxed);
                panic!("round {round}: {before} {after}");
            }
            while admin.ask("GET n") == after {}
        }
        is_over.store(true, Relaxed);
    });
}
