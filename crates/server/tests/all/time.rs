//! What happens as time goes by. Time is moved, not waited for.
use crate::client::{Client, REMOVED_AFTER, config, start_at_noon};
use server::{Config, OutputLimit, OutputLimits};
use std::time::Duration;

#[test]
fn idle_clients_are_closed_after_the_timeout() {
    let (server, time) = start_at_noon(Config { timeout_s: 10, ..config() });
    let (mut idle, mut busy) = (Client::connect(&server), Client::connect(&server));
    idle.check("PING", "+PONG\r\n");
    for _ in 0..12 {
        time.advance(Duration::from_secs(1));
        busy.check("PING", "+PONG\r\n");
    }
    idle.expect_end();
    busy.check("PING", "+PONG\r\n");
}

#[test]
fn keys_go_when_their_time_comes_without_being_looked_at() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    for i in 0..1000 {
        client.check(&format!("SET k:{i} v PX {}", 1000 + i), "+OK\r\n");
    }
    time.advance(Duration::from_millis(1499) + REMOVED_AFTER);
    client.wait_for("DBSIZE", ":500");
    time.advance(Duration::from_millis(501));
    client.wait_for("DBSIZE", ":0");
    assert_eq!(client.info("expired_keys"), "1000");
}

#[test]
fn fields_that_a_deadline_in_the_past_removes_count_as_expired() {
    let (server, _time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    for (command, removed) in [
        ("HPEXPIREAT h 1 FIELDS 3 a a none", 1),
        ("HEXPIRE h 0 FIELDS 2 a b", 2),
        ("HPEXPIREAT h 1 GT FIELDS 2 a b", 0),
        ("HGETEX h PXAT 1 FIELDS 2 a none", 1),
        ("HSETEX h PXAT 1 FIELDS 3 a 1 d 2 d 3", 3),
        ("HDEL h a", 0),
    ] {
        client.check("CONFIG RESETSTAT", "+OK\r\n");
        client.raw("HSET h a 1 b 2 c 3");
        client.raw(command);
        assert_eq!(client.info("expired_subkeys"), removed.to_string(), "{command}");
    }
}

#[test]
fn a_hash_whose_fields_are_all_past_their_time_is_not_dumped() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    let fields: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    for count in [1, 300] {
        let values: Vec<String> = fields[..count].iter().map(|field| format!("{field} v")).collect();
        client.raw(&format!("HSET h {}", values.join(" ")));
        client.raw(&format!("HPEXPIRE h 10 FIELDS {count} {}", fields[..count].join(" ")));
        client.check("CLIENT PAUSE 1000 WRITE", "+OK\r\n");
        time.advance(Duration::from_millis(20));
        client.check("DUMP h", "$-1\r\n");
        client.check("CLIENT UNPAUSE", "+OK\r\n");
        client.wait_for("EXISTS h", ":0");
    }
}

#[test]
fn a_key_past_its_time_is_gone_for_whoever_looks() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    client.check("SET k v PX 100", "+OK\r\n");
    time.advance(Duration::from_millis(99));
    client.check("EXISTS k", ":1\r\n");
    time.advance(Duration::from_millis(1));
    client.check("EXISTS k", ":0\r\n");
}

#[test]
fn a_client_over_the_soft_output_limit_is_closed_when_its_seconds_are_over() {
    let normal = OutputLimit { hard_bytes: 0, soft_bytes: 4 << 20, soft_s: 5 };
    let client_output_buffer = OutputLimits { normal, ..OutputLimits::default() };
    let (server, time) = start_at_noon(Config { client_output_buffer, ..config() });
    let mut slow = Client::connect(&server);
    slow.check("SETRANGE mb 1048575 x", ":1048576\r\n");
    slow.send(&crate::client::request(&["GET", "mb"]).repeat(60));
    let mut other = Client::connect(&server);
    other.check("PING", "+PONG\r\n");
    time.advance(Duration::from_secs(3));
    other.check("PING", "+PONG\r\n");
    for _ in 0..200 {
        time.advance(Duration::from_secs(1));
        if other.info("connected_clients") == "1" {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it is still connected");
}

#[test]
fn time_tells_the_clock_to_the_microsecond() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    client.check("TIME", "*2\r\n$10\r\n1800000000\r\n$1\r\n0\r\n");
    time.advance(Duration::from_millis(1_234));
    client.check("TIME", "*2\r\n$10\r\n1800000001\r\n$6\r\n234000\r\n");
}

/// By an hour ahead and by two back: WAIT, idle clients and ages in CLIENT LIST go by the time that passes.
#[test]
fn a_clock_that_jumps_ends_no_wait_and_closes_no_idle_client_and_makes_no_wait_longer() {
    const HOUR_MS: i64 = 3_600_000;
    let (server, time) = start_at_noon(Config { timeout_s: 60, worker_threads: 1, ..config() });
    let [mut waits, mut idle, mut client] = [(); 3].map(|()| Client::connect(&server));
    idle.check("PING", "+PONG\r\n");
    for (jump_ms, age) in [(HOUR_MS, " age=1 "), (-2 * HOUR_MS, " age=2 ")] {
        waits.send(b"WAIT 1 1000\r\n");
        client.wait_for_info("blocked_clients", "1");
        time.jump(jump_ms);
        // Each is a turn of the one worker.
        for _ in 0..3 {
            client.check("PING", "+PONG\r\n");
        }
        assert_eq!(client.info("blocked_clients"), "1");
        time.advance(Duration::from_millis(1_000));
        waits.expect(":0\r\n");
        idle.check("PING", "+PONG\r\n");
        assert!(client.ask("CLIENT INFO").contains(age));
    }
}

#[test]
fn a_clock_put_back_by_half_a_second_removes_no_key_before_its_time() {
    let (server, time) = start_at_noon(Config { worker_threads: 1, ..config() });
    let mut client = Client::connect(&server);
    client.check("SET first v PX 10", "+OK\r\n");
    time.advance(Duration::from_secs(1) + REMOVED_AFTER);
    client.wait_for("DBSIZE", ":0");
    time.jump(-500);
    for n in 0..1_000 {
        client.check(&format!("SET k:{n} v PX {}", 100 + n % 4 * 100), "+OK\r\n");
    }
    time.advance(REMOVED_AFTER);
    for left in [750, 500, 250, 0] {
        time.advance(Duration::from_millis(99));
        client.wait_for("DBSIZE", &format!(":{}", left + 250));
        time.advance(Duration::from_millis(1));
        client.wait_for("DBSIZE", &format!(":{left}"));
    }
}

#[test]
fn a_pause_lasts_as_long_as_it_was_asked_to_though_the_clock_jumps() {
    const HOUR_MS: i64 = 3_600_000;
    let (server, time) = start_at_noon(config());
    let [mut paused, mut client] = [(); 2].map(|()| Client::connect(&server));
    client.check("SET volatile v PX 100", "+OK\r\n");
    time.advance(Duration::from_millis(99));
    client.check("CLIENT PAUSE 1000 WRITE", "+OK\r\n");
    paused.send(b"INCR n\r\n");
    client.wait_for_info("blocked_clients", "1");
    for jump_ms in [HOUR_MS, -2 * HOUR_MS, HOUR_MS] {
        time.jump(jump_ms);
        for _ in 0..3 {
            client.check("PING", "+PONG\r\n");
        }
        assert_eq!(client.info("blocked_clients"), "1");
        client.check("DBSIZE", ":1\r\n");
        time.advance(Duration::from_millis(333));
    }
    time.advance(Duration::from_millis(1));
    paused.expect(":1\r\n");
    client.wait_for("DBSIZE", ":1");
    client.check("EXISTS n volatile", ":1\r\n");
}

#[test]
fn keys_past_their_deadline_go_when_a_pause_is_over_though_nobody_asks() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    client.check("SET volatile v PX 100", "+OK\r\n");
    client.check("CLIENT PAUSE 1000 WRITE", "+OK\r\n");
    time.advance(Duration::from_millis(999));
    client.check("DBSIZE", ":1\r\n");
    time.jump(-3_600_000);
    time.advance(Duration::from_millis(1));
    // By the clock that was set back it is due in an hour.
    client.check("DBSIZE", ":1\r\n");
    time.jump(3_600_000);
    client.wait_for("DBSIZE", ":0");
}

#[test]
fn the_time_that_the_server_is_up_passes_though_the_clock_is_set() {
    let (server, time) = start_at_noon(config());
    let mut client = Client::connect(&server);
    for (jump_ms, uptime_s, uptime_days) in [(-7_200_000, "86405", "1"), (36_000_000, "172810", "2")] {
        time.jump(jump_ms);
        time.advance(Duration::from_secs(86_405));
        client.wait_for_info("uptime_in_seconds", uptime_s);
        assert_eq!(client.info("uptime_in_days"), uptime_days);
    }
}

/// A command waits while another runs alone. What it sets then lasts from when it runs, and what has expired
/// meanwhile is gone.
#[test]
fn a_command_that_has_waited_for_another_runs_in_the_time_of_afterwards() {
    let (server, time) = start_at_noon(config());
    let mut other = Client::connect(&server);
    other.check("SET old 1 PX 5000", "+OK\r\n");
    let mut waiters: Vec<Client> = (0..4).map(|_| Client::connect(&server)).collect();
    waiters.iter_mut().for_each(|waiter| waiter.check("PING", "+PONG\r\n"));
    server.while_alone(|| {
        for (n, waiter) in waiters.iter_mut().enumerate() {
            let queue = format!("MULTI\r\nSET m:{n} 1 PX 5000\r\nEXEC\r\n");
            waiter.send(format!("SET k:{n} 1 PX 5000\r\nEXISTS old\r\n{queue}").as_bytes());
        }
        // Most probably they have arrived then, and their workers wait.
        std::thread::park_timeout(Duration::from_millis(50));
        time.advance(Duration::from_secs(10));
    });
    for (n, waiter) in waiters.iter_mut().enumerate() {
        waiter.expect("+OK\r\n:0\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        other.check(&format!("PTTL k:{n}"), ":5000\r\n");
        other.check(&format!("PTTL m:{n}"), ":5000\r\n");
    }
}
