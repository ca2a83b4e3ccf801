//! Requests that write very much and run on other threads, with one worker: what others see and may do until
//! what they have written is put in its place, and what becomes of them when somebody was there before.
use crate::lent::{
    MANY, await_lent, call, figure, fill, fill_all, fill_stream, hold, in_exec, listener, server, text,
    wait_until, words,
};
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

/// What everybody is told of until this moment.
pub(crate) fn told(listener: &mut RespClient, other: &mut RespClient) -> Vec<String> {
    call(other, "PUBLISH end x");
    let mut all = Vec::new();
    loop {
        let Value::Aggregate(_, parts) = listener.receive().unwrap() else { panic!("a message") };
        match text(&parts[2]).as_str() {
            "end" => return all,
            channel => all.push(format!("{channel} {}", text(&parts[3]))),
        }
    }
}

/// Each takes long.
pub(crate) const REQUESTS: [&str; 45] = [
    "SUNIONSTORE d set other",
    "SUNIONSTORE set set other",
    "SINTERSTORE d set set",
    "SDIFFSTORE d set other set",
    "SDIFFSTORE other set other",
    "ZUNIONSTORE d 2 zset ather WEIGHTS 1 2",
    "ZINTERSTORE d 2 zset ather",
    "ZDIFFSTORE zset 2 zset none",
    "ZRANGESTORE d zset 1 -2",
    "ZREMRANGEBYRANK zset 1 -2",
    "ZREMRANGEBYSCORE zset -inf +inf",
    "ZPOPMIN zset 1000",
    "ZPOPMAX zset 100000",
    "ZMPOP 2 none zset MAX COUNT 1000",
    "GEOSEARCHSTORE d places FROMLONLAT 10 10 BYRADIUS 5000 km",
    "GEORADIUS places 10 10 5000 km STOREDIST d",
    "SORT list STORE d",
    "SORT list STORE list",
    "LREM same 0 e1",
    "LREM same -100000 e2",
    "LINSERT long BEFORE 77 x",
    "LTRIM long 7000 7005",
    "LPOP list 1000",
    "RPOP list 100000",
    "LMPOP 1 list RIGHT COUNT 1000",
    "BITOP XOR d bits more",
    "BITOP NOT bits bits",
    "SUNIONSTORE d set list",
    "XTRIM stream MAXLEN 3",
    "XTRIM stream MAXLEN ~ 3 LIMIT 100000",
    "XAUTOCLAIM stream group two 0 0 COUNT 1000",
    "XAUTOCLAIM stream group two 1000000 0 COUNT 1000",
    "XGROUP DELCONSUMER stream group one",
    "XGROUP DESTROY stream held",
    "XTRIM stream MINID 5990-3",
    "XTRIM stream MINID ~ 5990-3 LIMIT 0",
    "XADD stream MAXLEN 3 999999-1 field value",
    "XADD stream DELREF MAXLEN = 3 999999-* field value",
    "XADD stream NOMKSTREAM MAXLEN ~ 3 LIMIT 100000 999999-1 field value",
    "XADD stream MINID 5990-3 999999-1 a 1 b 2 c 3",
    "XADD stream MINID ~ 5990-3 LIMIT 0 999999-1 field value",
    "XREADGROUP GROUP group two STREAMS stream >",
    "XREADGROUP GROUP group one COUNT 1000 BLOCK 0 STREAMS stream 7",
    "BLMPOP 0 2 none list RIGHT COUNT 1000",
    "BZMPOP 7 2 none zset MAX COUNT 1000",
];

/// The data of these requests.
pub(crate) fn fill_more(client: &mut RespClient) {
    fill_all(client);
    fill(client, "SADD digits", (0..MANY).map(|n| n.to_string()));
    let entries = (0..MANY).flat_map(|n| [format!("e{}", n % 3)]);
    fill(client, "RPUSH same", entries);
    call(client, &format!("SETBIT more {} 1", MANY * 10_000 + 9));
}

/// The value as RESTORE wants it, after this many other words.
fn restore(client: &mut RespClient, key: &str) -> Vec<Vec<u8>> {
    let payload = call(client, &format!("DUMP {key}")).text().unwrap().to_vec();
    vec![b"RESTORE".to_vec(), b"d".to_vec(), b"0".to_vec(), payload]
}

#[test]
fn what_is_written_elsewhere_is_what_would_have_been_written_at_once() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut listener = listener(&server);
    let many: String = (0..MANY).map(|n| format!(" new{n}")).collect();
    let gone: String = (0..MANY).map(|n| format!(" set{n}")).collect();
    let popped_all = format!("SPOP set {}", 2 * MANY);
    let (added, removed) = (format!("SADD d{many}"), format!("SREM set{gone}"));
    let whole = [popped_all.as_str(), added.as_str(), removed.as_str()];
    for request in REQUESTS.into_iter().chain(whole) {
        let begin = |other: &mut RespClient, listener: &mut RespClient| {
            call(other, "FLUSHALL");
            fill_more(other);
            if request.starts_with('X') {
                fill_stream(other);
            }
            call(other, "SET d before");
            if request.starts_with("SADD") {
                call(other, "DEL d");
            }
            told(listener, other);
            text(&call(other, "DEBUG DIGEST"))
        };
        let before = begin(&mut other, &mut listener);
        let changes =
            |other: &mut RespClient| -> u64 { figure(other, "rdb_changes_since_last_save").parse().unwrap() };
        let start = changes(&mut other);
        let mut expected = in_exec(&mut writer, request);
        let made = changes(&mut other) - start;
        let (events, digest) = (told(&mut listener, &mut other), text(&call(&mut other, "DEBUG DIGEST")));
        assert_eq!(begin(&mut other, &mut listener), before);
        let start = changes(&mut other);
        hold(&server, &mut writer, request);
        assert_eq!(text(&call(&mut other, "DEBUG DIGEST")), before, "nothing of {request} is seen yet");
        server.server.hold_lent(false);
        let mut answered = writer.receive().unwrap();
        if request.starts_with("SPOP") {
            answered.sort();
            expected.sort();
        }
        assert!(answered == expected, "{request}: {answered:?} {expected:?}");
        assert_eq!(text(&call(&mut other, "DEBUG DIGEST")), digest, "{request}");
        assert_eq!(told(&mut listener, &mut other), events, "{request}");
        assert_eq!(changes(&mut other) - start, made, "{request}");
    }
}

#[test]
fn a_value_is_restored_elsewhere_as_it_would_be_here() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_more(&mut other);
    for key in ["set", "zset", "list", "hash", "digits"] {
        let request = restore(&mut other, key);
        server.server.hold_lent(true);
        writer.send(&request).unwrap();
        await_lent(&server, "RESTORE");
        assert_eq!(text(&call(&mut other, "EXISTS d")), "0");
        server.server.hold_lent(false);
        assert_eq!(text(&writer.receive().unwrap()), "OK");
        let digests = call(&mut other, &format!("DEBUG DIGEST-VALUE d {key}")).lines();
        assert_eq!(digests[1], digests[2], "{key}");
        call(&mut other, "DEL d");
    }
}

#[test]
fn what_is_known_of_the_use_of_a_value_is_restored_with_it() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_more(&mut other);
    let request = restore(&mut other, "set");
    let cases = [
        ("allkeys-lfu", ["FREQ", "77"], "OBJECT FREQ d", "77"),
        ("allkeys-lfu", ["IDLETIME", "1000"], "OBJECT FREQ d", "5"),
        ("allkeys-lru", ["IDLETIME", "1000"], "OBJECT IDLETIME d", "1000"),
        ("allkeys-lru", ["FREQ", "77"], "OBJECT IDLETIME d", "0"),
        ("noeviction", ["IDLETIME", "1000"], "OBJECT IDLETIME d", "1000"),
    ];
    for (policy, option, question, expected) in cases {
        call(&mut other, &format!("CONFIG SET maxmemory-policy {policy}"));
        let option = option.map(|word| word.as_bytes().to_vec());
        let request: Vec<Vec<u8>> = request.iter().cloned().chain(option).collect();
        call(&mut other, "DEL d");
        server.server.hold_lent(true);
        writer.send(&request).unwrap();
        await_lent(&server, "RESTORE");
        server.server.hold_lent(false);
        assert_eq!(text(&writer.receive().unwrap()), "OK");
        assert_eq!(text(&call(&mut other, question)), expected, "{policy} {:?}", request.last());
    }
}

#[test]
fn who_waits_for_a_group_that_is_removed_elsewhere_is_told_so() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    let (mut waiter, mut adder) = (server.client().unwrap(), server.client().unwrap());
    fill_stream(&mut other);
    waiter.send(&words("XREADGROUP GROUP held two BLOCK 0 STREAMS stream >")).unwrap();
    wait_until(&mut other, |other| figure(other, "blocked_clients") == "1");
    hold(&server, &mut writer, "XGROUP DESTROY stream held");
    adder.send(&words("XADD stream 999999-1 field value")).unwrap();
    assert_eq!(text(&call(&mut other, "XLEN nothing")), "0");
    server.server.hold_lent(false);
    assert_eq!(text(&writer.receive().unwrap()), "1");
    assert!(text(&waiter.receive().unwrap()).starts_with("NOGROUP"), "it is told before anything is added");
    assert_eq!(text(&adder.receive().unwrap()), "999999-1");
    assert!(text(&call(&mut other, "XPENDING stream held")).starts_with("NOGROUP"));
}

#[test]
fn keys_that_it_names_can_be_read_meanwhile_and_changed_afterwards() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut third = server.client().unwrap();
    fill_all(&mut other);
    call(&mut other, "SET d before");
    hold(&server, &mut writer, "SUNIONSTORE d set other");
    third.send(&["SADD", "set", "new"]).unwrap();
    assert_eq!(text(&call(&mut other, "SCARD set")), MANY.to_string(), "who reads does not wait");
    assert_eq!(text(&call(&mut other, "GET d")), "before");
    call(&mut other, "SADD elsewhere 1");
    assert_eq!(text(&call(&mut other, "SISMEMBER set new")), "0", "who changes a key waits");
    server.server.hold_lent(false);
    assert_eq!(text(&writer.receive().unwrap()), (2 * MANY).to_string());
    assert_eq!(text(&third.receive().unwrap()), "1");
    assert_eq!(text(&call(&mut other, "SCARD set")), (MANY + 1).to_string());
    assert_eq!(text(&call(&mut other, "SCARD d")), (2 * MANY).to_string());
}

#[test]
fn it_runs_again_where_a_key_has_changed_that_could_not_be_held_back() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    for (change, expected) in [
        ("FLUSHALL", 0),
        ("SWAPDB 0 1", 0),
        ("EVAL return(redis.call('SADD','set','new')) 0", 2 * MANY + 1),
        ("EVAL return(redis.call('DEL','other')) 0", MANY),
    ] {
        call(&mut other, "FLUSHALL");
        fill_all(&mut other);
        hold(&server, &mut writer, "SUNIONSTORE d set other");
        let changed = call(&mut other, change);
        assert!(!matches!(changed, Value::Line(b'-', _)), "{change}: {changed:?}");
        server.server.hold_lent(false);
        assert_eq!(text(&writer.receive().unwrap()), expected.to_string(), "{change}");
        assert_eq!(text(&call(&mut other, "SCARD d")), expected.to_string(), "{change}");
    }
}

/// Requests that take long and may wait, what takes all away from each before it is put in its place, and
/// what answers it then.
const MAY_WAIT: [(&str, &str, &str); 3] = [
    ("BLMPOP 0 2 none list LEFT COUNT 1000", "FLUSHALL", "RPUSH none zz"),
    ("BZMPOP 0 2 zset none MIN COUNT 1000", "EVAL return(redis.call('DEL','zset')) 0", "ZADD none 1 zz"),
    (
        "XREADGROUP GROUP group two BLOCK 0 STREAMS stream >",
        "EVAL return(redis.call('XGROUP','SETID','stream','group','$')) 0",
        "XADD stream 999999-1 field zz",
    ),
];

/// Has a client send such a request, and begin to wait for its keys.
fn begin_to_wait(server: &InProcess, writer: &mut RespClient, other: &mut RespClient, number: usize) {
    let (request, empty, _) = MAY_WAIT[number];
    call(other, "FLUSHALL");
    fill_all(other);
    fill_stream(other);
    hold(server, writer, request);
    let emptied = call(other, empty);
    assert!(!matches!(emptied, Value::Line(b'-', _)), "{empty}: {emptied:?}");
    assert_eq!(figure(other, "blocked_clients"), "0");
    server.server.hold_lent(false);
    wait_until(other, |other| figure(other, "blocked_clients") == "1");
}

#[test]
fn one_that_finds_nothing_when_it_is_to_be_put_in_its_place_waits() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    for (number, (request, _, fill)) in MAY_WAIT.into_iter().enumerate() {
        begin_to_wait(&server, &mut writer, &mut other, number);
        writer.send(&["ECHO", "behind"]).unwrap();
        call(&mut other, fill);
        let answered = format!("{:?}", writer.receive().unwrap());
        assert!(answered.contains("[122, 122]"), "{request} is answered with what came: {answered}");
        assert_eq!(text(&writer.receive().unwrap()), "behind", "{request}");
        assert_eq!(figure(&mut other, "blocked_clients"), "0");
        assert_eq!(figure(&mut other, "total_blocking_keys"), "0");
    }
}

#[test]
fn one_that_waits_after_all_is_answered_when_its_time_is_over_behind_what_was_pushed() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    for request in ["HELLO 3", "CLIENT TRACKING ON", "GET list2"] {
        call(&mut writer, request);
    }
    fill_all(&mut other);
    hold(&server, &mut writer, "BLMPOP 0.25 1 list LEFT COUNT 1000");
    for change in ["SET list2 1", "FLUSHALL"] {
        call(&mut other, change);
    }
    server.server.hold_lent(false);
    wait_until(&mut other, |other| figure(other, "blocked_clients") == "1");
    let pushed = format!("{:?}", writer.receive().unwrap());
    assert!(pushed.contains("Aggregate(62"), "an invalidation comes at once: {pushed}");
    server.time.advance(std::time::Duration::from_millis(250));
    loop {
        match writer.receive().unwrap() {
            Value::Aggregate(b'>', _) => {}
            last => break assert_eq!(last, Value::Line(b'_', Vec::new())),
        }
    }
    assert_eq!(figure(&mut other, "blocked_clients"), "0");
}

#[test]
fn one_that_waits_after_all_takes_nothing_when_its_client_has_gone() {
    let server = server();
    let mut other = server.client().unwrap();
    for (number, is_killed) in [(0, true), (0, false), (1, true), (2, false)] {
        let mut writer = server.client().unwrap();
        let id = text(&call(&mut writer, "CLIENT ID"));
        let (request, empty, _) = MAY_WAIT[number];
        call(&mut other, "FLUSHALL");
        fill_all(&mut other);
        fill_stream(&mut other);
        hold(&server, &mut writer, request);
        match is_killed {
            true => drop(call(&mut other, &format!("CLIENT KILL ID {id}"))),
            false => drop(writer),
        }
        call(&mut other, empty);
        server.server.hold_lent(false);
        wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
        wait_until(&mut other, |other| figure(other, "total_blocking_keys") == "0");
        call(&mut other, "DEL none");
        assert_eq!(text(&call(&mut other, "RPUSH none a")), "1", "{request}");
        assert_eq!(text(&call(&mut other, "LLEN none")), "1", "nobody has taken it: {request}");
    }
}

#[test]
fn who_wants_no_reply_gets_none_from_one_that_waits_after_all() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    writer.send(&["CLIENT", "REPLY", "SKIP"]).unwrap();
    begin_to_wait(&server, &mut writer, &mut other, 0);
    call(&mut other, "RPUSH none a");
    assert_eq!(text(&call(&mut writer, "EXISTS none")), "0", "it was served, and says nothing");
}

/// Has every worker begin a turn, so that none goes on with one that began before the clock was moved.
fn see_the_time(server: &InProcess) {
    let mut clients: Vec<RespClient> = (0..12).map(|_| server.client().unwrap()).collect();
    for client in &mut clients {
        (0..2).for_each(|_| assert_eq!(text(&call(client, "PING")), "PONG"));
    }
}

#[test]
fn a_key_that_expires_meanwhile_is_not_there() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    call(&mut other, "PEXPIRE other 300");
    hold(&server, &mut writer, "SUNIONSTORE d set other");
    server.time.advance(std::time::Duration::from_millis(300));
    see_the_time(&server);
    server.server.hold_lent(false);
    assert_eq!(text(&writer.receive().unwrap()), MANY.to_string());
}

#[test]
fn who_waits_watches_or_keeps_a_copy_hears_of_it_when_it_is_in_its_place() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    let (mut waiter, mut watcher) = (server.client().unwrap(), server.client().unwrap());
    let mut keeper = server.client().unwrap();
    fill_all(&mut other);
    call(&mut keeper, "HELLO 3");
    call(&mut keeper, "CLIENT TRACKING ON");
    call(&mut keeper, "EXISTS d");
    waiter.send(&words("BZPOPMIN d 0")).unwrap();
    wait_until(&mut other, |other| figure(other, "blocked_clients") == "1");
    call(&mut watcher, "WATCH d");
    hold(&server, &mut writer, "ZUNIONSTORE d 2 zset ather");
    assert!(matches!(in_exec(&mut watcher, "PING"), Value::Line(..)), "nothing has changed yet");
    call(&mut watcher, "WATCH d");
    server.server.hold_lent(false);
    assert_eq!(text(&writer.receive().unwrap()), MANY.to_string());
    let Value::Aggregate(_, popped) = waiter.receive().unwrap() else { panic!("it is served") };
    assert_eq!(text(&popped[1]), "m0");
    assert_eq!(text(&call(&mut other, "ZCARD d")), (MANY - 1).to_string());
    let Value::Aggregate(b'>', told) = keeper.receive().unwrap() else { panic!("it is told") };
    assert_eq!(text(&told[0]), "invalidate");
    call(&mut watcher, "MULTI");
    call(&mut watcher, "PING");
    assert!(!matches!(call(&mut watcher, "EXEC"), Value::Aggregate(..)));
}

#[test]
fn a_client_that_is_killed_or_leaves_meanwhile_has_written_all_the_same() {
    let server = server();
    let mut other = server.client().unwrap();
    for is_killed in [true, false] {
        fill_all(&mut other);
        call(&mut other, "DEL d");
        let mut writer = server.client().unwrap();
        let id = text(&call(&mut writer, "CLIENT ID"));
        hold(&server, &mut writer, "SUNIONSTORE d set other");
        match is_killed {
            true => drop(call(&mut other, &format!("CLIENT KILL ID {id}"))),
            false => drop(writer),
        }
        server.server.hold_lent(false);
        wait_until(&mut other, |other| text(&call(other, "SCARD d")) == (2 * MANY).to_string());
        wait_until(&mut other, |other| figure(other, "connected_clients") == "1");
    }
}

#[test]
fn nothing_is_put_in_its_place_while_clients_are_paused() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    hold(&server, &mut writer, "SUNIONSTORE d set other");
    call(&mut other, "CLIENT PAUSE 100000 WRITE");
    server.server.hold_lent(false);
    for _ in 0..1_000 {
        assert_eq!(text(&call(&mut other, "EXISTS d")), "0");
    }
    call(&mut other, "CLIENT UNPAUSE");
    assert_eq!(text(&writer.receive().unwrap()), (2 * MANY).to_string());
}

#[test]
fn it_is_counted_once_and_its_lookups_too() {
    let server = server();
    let (mut writer, mut other) = (server.client().unwrap(), server.client().unwrap());
    fill_all(&mut other);
    call(&mut other, "CONFIG RESETSTAT");
    hold(&server, &mut writer, "SUNIONSTORE d set other none");
    call(&mut other, "EVAL return(redis.call('SADD','set','new')) 0");
    server.server.hold_lent(false);
    writer.receive().unwrap();
    assert_eq!(figure(&mut other, "lent_requests"), "1");
    assert_eq!(figure(&mut other, "keyspace_hits"), "2", "though it has run twice");
    assert_eq!(figure(&mut other, "keyspace_misses"), "1");
    let stats = figure(&mut other, "cmdstat_sunionstore");
    assert!(stats.starts_with("calls=1,") && stats.ends_with("failed_calls=0"), "{stats}");
    assert!(matches!(call(&mut writer, "SUNIONSTORE d set other list"), Value::Line(b'-', _)));
    let stats = figure(&mut other, "cmdstat_sunionstore");
    assert!(stats.starts_with("calls=2,") && stats.ends_with("failed_calls=1"), "{stats}");
    call(&mut other, "SADD set more");
}

#[test]
fn a_server_ends_while_something_is_written_elsewhere() {
    let server: InProcess = server();
    let mut writer = server.client().unwrap();
    fill_all(&mut writer);
    hold(&server, &mut writer, "SUNIONSTORE d set other");
    drop(server);
    assert!(writer.receive().is_err());
}

/// A queue of which somebody takes what is at an end.
#[test]
fn a_search_that_ends_near_an_end_of_a_long_list_stays_on_its_worker() {
    let server = server();
    let mut client = server.client().unwrap();
    fill(&mut client, "RPUSH long", (0..5 * MANY).map(|n| format!("element:{n}")));
    let last = 5 * MANY - 1;
    for near in [
        "LPOS long element:3".to_string(),
        "LPOS long element:3 RANK 1 COUNT 1".to_string(),
        format!("LPOS long element:{last} RANK -1"),
        "LREM long 1 element:0".to_string(),
        format!("LREM long -1 element:{last}"),
        "LINSERT long BEFORE element:5 new".to_string(),
    ] {
        call(&mut client, "CONFIG RESETSTAT");
        assert_ne!(text(&call(&mut client, &near)), "-1", "{near}");
        assert_eq!(figure(&mut client, "lent_requests"), "0", "{near}");
    }
    for far in [
        "LPOS long element:3 RANK -1".to_string(),
        "LPOS long element:4 COUNT 0".to_string(),
        "LPOS long element:4 RANK 2".to_string(),
        format!("LREM long 1 element:{}", last - 1),
        "LREM long 0 element:1".to_string(),
        "LREM long -1 element:6".to_string(),
        format!("LINSERT long BEFORE element:{} new", last - 9),
    ] {
        call(&mut client, "CONFIG RESETSTAT");
        call(&mut client, &far);
        assert_eq!(figure(&mut client, "lent_requests"), "1", "{far}");
    }
}
