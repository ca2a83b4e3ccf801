//! EXEC of requests that take long, which runs on another thread as one step, with one worker.
use crate::lent::{
    MANY, all_in_exec, await_lent, call, figure, fill_all, fill_stream, listener, server, text, wait_until,
    words,
};
use crate::lent_writes::{REQUESTS, fill_more, told};
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

/// Queues these requests, and has EXEC wait for its thread.
fn hold_exec(server: &InProcess, client: &mut RespClient, requests: &[&str]) {
    call(client, "MULTI");
    for request in requests {
        assert_eq!(text(&call(client, request)), "QUEUED");
    }
    server.server.hold_lent(true);
    client.send(&["EXEC"]).unwrap();
    await_lent(server, "EXEC");
}

fn replies(value: Value) -> Vec<Value> {
    match value {
        Value::Aggregate(_, replies) => replies,
        other => panic!("{other:?}"),
    }
}

fn digest(client: &mut RespClient) -> String {
    text(&call(client, "DEBUG DIGEST"))
}

#[test]
fn what_exec_does_elsewhere_is_what_it_would_do_at_once() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut listener = listener(&server);
    let reads = ["SUNION set other", "XREAD STREAMS stream none stream 0 0 7", "ZINTERCARD 2 zset ather"];
    for request in REQUESTS.into_iter().chain(reads) {
        let queue = ["SET extra 1", "INCR extra", request, "TYPE d", "LPUSH set x", "EXISTS d nothing extra"];
        let counted = |other: &mut RespClient| {
            ["rdb_changes_since_last_save", "keyspace_hits", "keyspace_misses", "total_error_replies"]
                .map(|name| figure(other, name).parse::<i64>().unwrap())
        };
        let begin = |other: &mut RespClient, listener: &mut RespClient| {
            call(other, "FLUSHALL");
            fill_more(other);
            if request.starts_with('X') {
                fill_stream(other);
            }
            call(other, "SET d before");
            call(other, "CONFIG RESETSTAT");
            told(listener, other);
            (digest(other), counted(other))
        };
        let (before, start) = begin(&mut other, &mut listener);
        let expected = all_in_exec(&mut one, &queue);
        let counts = counted(&mut other).iter().zip(start).map(|(now, then)| now - then).collect::<Vec<_>>();
        let (events, after) = (told(&mut listener, &mut other), digest(&mut other));
        let (again, start) = begin(&mut other, &mut listener);
        assert_eq!(again, before);
        hold_exec(&server, &mut one, &queue);
        assert_eq!(digest(&mut other), before, "nothing of {request} is seen yet");
        server.server.hold_lent(false);
        assert!(replies(one.receive().unwrap()) == expected, "{request}");
        let now = counted(&mut other).iter().zip(start).map(|(now, then)| now - then).collect::<Vec<_>>();
        assert_eq!(now, counts, "{request}");
        assert_eq!(told(&mut listener, &mut other), events, "{request}");
        assert_eq!(digest(&mut other), after, "{request}");
        assert_eq!(figure(&mut other, "lent_requests"), "1");
        let stats = [figure(&mut other, "cmdstat_incr"), figure(&mut other, "cmdstat_lpush")];
        assert!(stats[0].starts_with("calls=1,") && stats[1].ends_with("failed_calls=1"), "{stats:?}");
        let stats = figure(&mut other, "cmdstat_exec");
        assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=0"), "{stats}");
    }
}

/// OBJECT tells nobody that a key is missing, and hides nothing that others have looked for.
#[test]
fn what_other_requests_look_for_in_vain_is_told() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut listener = listener(&server);
    call(&mut other, "CONFIG SET notify-keyspace-events EAm");
    fill_all(&mut other);
    told(&mut listener, &mut other);
    hold_exec(
        &server,
        &mut one,
        &["GET missing", "OBJECT ENCODING none", "SUNIONSTORE d set other", "GET gone"],
    );
    server.server.hold_lent(false);
    assert_eq!(replies(one.receive().unwrap()).len(), 4);
    let misses: Vec<String> =
        told(&mut listener, &mut other).into_iter().filter(|event| event.contains("keymiss")).collect();
    assert!(misses.len() == 2 && misses[0].contains("missing") && misses[1].contains("gone"), "{misses:?}");
}

/// Each is short beside what takes long; together they are not.
#[test]
fn many_requests_of_many_words_run_elsewhere_together() {
    const MEMBERS: usize = if cfg!(debug_assertions) { 10 } else { 100 };
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    for (requests, lent) in [(1, "0"), (MANY / 10, "1")] {
        let queue: Vec<String> = (0..requests)
            .flat_map(|request| {
                let number = |n: usize| request * MEMBERS + n;
                let members: String = (0..MEMBERS).map(|n| format!(" m{}", number(n))).collect();
                let scores: String = (0..MEMBERS).map(|n| format!(" {n} m{}", number(n))).collect();
                [format!("ZADD z{scores}"), format!("SADD s{members}"), format!("SET k{request} 1")]
            })
            .collect();
        let queue: Vec<&str> = queue.iter().map(String::as_str).collect();
        call(&mut other, "FLUSHALL");
        for request in &queue {
            call(&mut one, request);
        }
        let expected = digest(&mut other);
        call(&mut other, "FLUSHALL");
        call(&mut other, "CONFIG RESETSTAT");
        for request in ["MULTI"].iter().chain(&queue) {
            call(&mut one, request);
        }
        assert_eq!(replies(call(&mut one, "EXEC")).len(), queue.len());
        assert_eq!((digest(&mut other), &*figure(&mut other, "lent_requests")), (expected, lent));
    }
}

#[test]
fn others_go_on_meanwhile_and_who_would_change_a_key_waits() {
    let server = server();
    let (mut one, mut other, mut third) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    hold_exec(&server, &mut one, &["SUNIONSTORE d set other", "SET extra 1"]);
    third.send(&words("INCR extra")).unwrap();
    assert_eq!(text(&call(&mut other, "EXISTS d extra")), "0");
    call(&mut other, "SET elsewhere 1");
    server.server.hold_lent(false);
    assert_eq!(replies(one.receive().unwrap()).len(), 2);
    assert_eq!(text(&third.receive().unwrap()), "2");
    assert_eq!(text(&call(&mut other, "SCARD d")), (2 * MANY).to_string());
}

#[test]
fn a_watched_key_that_changes_meanwhile_makes_it_do_nothing() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    for (change, is_null) in [("SET watched 2", true), ("SET elsewhere 1", false), ("FLUSHALL", true)] {
        call(&mut other, "FLUSHALL");
        fill_all(&mut other);
        call(&mut other, "SET watched 1");
        call(&mut one, "WATCH watched");
        hold_exec(&server, &mut one, &["SUNIONSTORE d set other", "SET extra 1"]);
        call(&mut other, change);
        server.server.hold_lent(false);
        assert_eq!(!matches!(one.receive().unwrap(), Value::Aggregate(..)), is_null, "{change}");
        assert_eq!(text(&call(&mut other, "EXISTS d extra")), if is_null { "0" } else { "2" });
        assert_eq!(figure(&mut other, "watching_clients"), "0");
    }
}

#[test]
fn it_runs_again_where_a_key_has_changed_and_in_the_end_where_its_keys_are() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    let change = |other: &mut RespClient, n: usize| {
        call(other, &format!("EVAL return(redis.call('SADD','set','new{n}')) 0"));
    };
    hold_exec(&server, &mut one, &["SUNIONSTORE d set other", "SCARD set"]);
    change(&mut other, 0);
    server.server.hold_lent(false);
    let answered = replies(one.receive().unwrap());
    assert_eq!(
        answered.iter().map(text).collect::<Vec<_>>(),
        [(2 * MANY + 1).to_string(), (MANY + 1).to_string()]
    );
    hold_exec(&server, &mut one, &["SUNIONSTORE d set other", "SCARD set"]);
    let mut count = MANY + 1;
    for n in 1..8 {
        change(&mut other, n);
        count += 1;
        server.server.hold_lent(false);
        while server.server.waiting_lent() > 0 {
            std::thread::yield_now();
        }
        server.server.hold_lent(true);
        call(&mut other, "PING");
        // It is back in the queue, unless it was too quick for this test or has run for the last time.
        for _ in 0..2000 {
            if server.server.waiting_lent() > 0 {
                break;
            }
            call(&mut other, "PING");
        }
        if server.server.waiting_lent() == 0 {
            break;
        }
    }
    server.server.hold_lent(false);
    let answered = replies(one.receive().unwrap());
    assert_eq!(text(&answered[1]), count.to_string());
    assert_eq!(text(&call(&mut other, "SCARD d")), (count + MANY).to_string());
    assert_eq!(figure(&mut other, "watching_clients"), "0");
}

#[test]
fn a_client_that_is_killed_or_leaves_meanwhile_has_done_it_all_the_same() {
    let server = server();
    let mut other = server.client().unwrap();
    for is_killed in [true, false] {
        call(&mut other, "FLUSHALL");
        fill_all(&mut other);
        let mut one = server.client().unwrap();
        let id = text(&call(&mut one, "CLIENT ID"));
        call(&mut one, "WATCH watched");
        hold_exec(&server, &mut one, &["SUNIONSTORE d set other", "SET extra 1"]);
        match is_killed {
            true => drop(call(&mut other, &format!("CLIENT KILL ID {id}"))),
            false => drop(one),
        }
        server.server.hold_lent(false);
        wait_until(&mut other, |other| text(&call(other, "EXISTS d extra")) == "2");
        wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
        assert_eq!(figure(&mut other, "watching_clients"), "0");
    }
}

#[test]
fn a_request_of_very_many_words_has_it_run_elsewhere() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    let many = |command: &str| command.to_owned() + &(0..MANY).map(|n| format!(" e{n}")).collect::<String>();
    let queue = [many("SADD new"), many("RPUSH pushed"), many("SMISMEMBER new")];
    hold_exec(&server, &mut one, &queue.each_ref().map(String::as_str));
    assert_eq!(text(&call(&mut other, "EXISTS new pushed")), "0");
    server.server.hold_lent(false);
    let answered = replies(one.receive().unwrap());
    assert_eq!([&answered[0], &answered[1]].map(text), [MANY.to_string(), MANY.to_string()]);
    assert_eq!(replies(answered[2].clone()).iter().filter(|found| text(found) == "1").count(), MANY);
    assert_eq!(text(&call(&mut other, "LLEN pushed")), MANY.to_string());
}

#[test]
fn a_restricted_user_has_it_run_elsewhere_unless_a_request_is_not_allowed_any_more() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    call(&mut other, "CONFIG RESETSTAT");
    call(&mut other, "ACL SETUSER some on >secret ~set ~other ~d ~list +@all -get");
    call(&mut one, "AUTH some secret");
    let queue = ["SUNIONSTORE d set other", "SORT list", "SCARD d"];
    hold_exec(&server, &mut one, &queue);
    // What is changed now is about what comes: it runs by the rules that it was looked at with.
    call(&mut other, "ACL SETUSER some -scard");
    server.server.hold_lent(false);
    assert_eq!(text(&replies(one.receive().unwrap())[2]), (2 * MANY).to_string());
    call(&mut one, "MULTI");
    for request in &queue[..2] {
        assert_eq!(text(&call(&mut one, request)), "QUEUED");
    }
    call(&mut other, "ACL SETUSER some resetkeys ~set ~other ~d");
    let answered = replies(call(&mut one, "EXEC"));
    assert_eq!(text(&answered[0]), (2 * MANY).to_string());
    assert!(text(&answered[1]).starts_with("NOPERM"), "{:?}", answered[1]);
    let log = replies(replies(call(&mut other, "ACL LOG")).remove(0));
    assert!(log.iter().any(|field| text(field) == "list"), "{log:?}");
    assert_eq!(figure(&mut other, "lent_requests"), "1");
}

/// The keys that a client is told of until this moment.
fn pushed(client: &mut RespClient) -> Vec<String> {
    client.send(&["PING"]).unwrap();
    let mut all = Vec::new();
    loop {
        match client.receive().unwrap() {
            Value::Aggregate(b'>', parts) => all.extend(replies(parts[1].clone()).iter().map(text)),
            reply if text(&reply) == "PONG" => return all,
            _ => {}
        }
    }
}

#[test]
fn what_a_client_that_keeps_copies_has_read_there_is_remembered() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    call(&mut one, "HELLO 3");
    call(&mut one, "CLIENT TRACKING ON");
    call(&mut one, "SCARD d");
    call(&mut other, "CONFIG RESETSTAT");
    hold_exec(&server, &mut one, &["SORT list STORE d", "SUNION set other", "GET none"]);
    call(&mut other, "SET elsewhere 1");
    server.server.hold_lent(false);
    assert_eq!(replies(one.receive().unwrap()).len(), 3);
    assert_eq!(pushed(&mut one), ["d"], "it had read it before");
    for (change, told) in
        [("SET none 1", vec!["none"]), ("SADD set x", vec!["set"]), ("DEL d elsewhere", vec![])]
    {
        call(&mut other, change);
        assert_eq!(pushed(&mut one), told, "{change}");
    }
    // A queue that changes nothing.
    hold_exec(&server, &mut one, &["SUNION set other", "GET none"]);
    server.server.hold_lent(false);
    assert_eq!(replies(one.receive().unwrap()).len(), 2);
    call(&mut other, "SET none 2");
    call(&mut other, "SADD other x");
    assert_eq!(pushed(&mut one), ["none", "other"], "it has read both");
    // A script is not held back: what it changes is read anew, and remembered anew.
    hold_exec(&server, &mut one, &["SUNION set other", "SET d 1"]);
    call(&mut other, "EVAL return(redis.call('SADD','set','y')) 0");
    server.server.hold_lent(false);
    assert_eq!(replies(replies(one.receive().unwrap()).remove(0)).len(), 2 * MANY + 2);
    call(&mut other, "SADD set z");
    assert!(pushed(&mut one).ends_with(&["set".to_owned()]));
    assert_eq!(figure(&mut other, "lent_requests"), "3");
    // These run where the keys are: what is told of depends on what comes first.
    for queue in [["SUNION set other", "SADD set new"], ["SADD set newer", "SUNION set other"]] {
        for request in ["MULTI", queue[0], queue[1], "EXEC"] {
            one.send(&words(request)).unwrap();
        }
    }
    assert_eq!(pushed(&mut one), ["set"], "what was read before it was changed");
    assert_eq!(figure(&mut other, "lent_requests"), "3");
}

#[test]
fn it_is_one_record_of_the_append_only_file() {
    let server = server();
    let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
    call(&mut other, "CONFIG SET appendonly yes");
    wait_until(&mut other, |other| figure(other, "aof_rewrite_in_progress") == "0");
    fill_more(&mut other);
    let queue = ["SET extra 1", "SUNIONSTORE d set other", "EXPIRE extra 1000", "SPOP d 7", "LPOP list 1000"];
    hold_exec(&server, &mut one, &queue);
    call(&mut other, "SET elsewhere 1");
    server.server.hold_lent(false);
    assert_eq!(replies(one.receive().unwrap()).len(), queue.len());
    let before = digest(&mut other);
    assert_eq!(text(&call(&mut other, "DEBUG LOADAOF")), "OK");
    assert_eq!(digest(&mut other), before);
}

#[test]
fn a_client_that_waits_is_served_behind_it() {
    let server = server();
    let (mut one, mut other, mut waiter) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    waiter.send(&words("BLPOP pushed 0")).unwrap();
    wait_until(&mut other, |other| figure(other, "blocked_clients") == "1");
    hold_exec(
        &server,
        &mut one,
        &["SINTERSTORE d set set", "RPUSH pushed a b", "LLEN pushed", "BLPOP none 0"],
    );
    server.server.hold_lent(false);
    let answered = replies(one.receive().unwrap());
    assert_eq!(text(&answered[2]), "2");
    assert_eq!(text(&replies(waiter.receive().unwrap())[1]), "a");
    assert_eq!(text(&call(&mut other, "LLEN pushed")), "1");
}

#[test]
fn what_needs_more_than_its_keys_has_it_run_where_these_are() {
    let server = server();
    let mut one = server.client().unwrap();
    fill_all(&mut one);
    call(&mut one, "CONFIG SET maxmemory-policy allkeys-lfu lfu-log-factor 0 lfu-decay-time 0");
    call(&mut one, "CONFIG RESETSTAT");
    for (request, expected) in [
        ("COPY set away DB 1", "1"),
        ("MOVE list 1", "1"),
        ("OBJECT FREQ d", "7"),
        ("PING", "PONG"),
        ("MULTI", ""),
    ] {
        call(&mut one, "MULTI");
        call(&mut one, "SINTERSTORE d set set");
        if request != "MULTI" {
            assert_eq!(text(&call(&mut one, request)), "QUEUED");
        }
        let answered = replies(call(&mut one, "EXEC"));
        assert_eq!(text(&answered[0]), MANY.to_string(), "{request}");
        assert_eq!(answered.get(1).map(text).unwrap_or_default(), expected, "{request}");
    }
    assert_eq!(figure(&mut one, "lent_requests"), "1", "the last alone");
    call(&mut one, "SELECT 1");
    assert_eq!(text(&call(&mut one, "SCARD away")), MANY.to_string());
    assert_eq!(text(&call(&mut one, "LLEN list")), MANY.to_string());
}
