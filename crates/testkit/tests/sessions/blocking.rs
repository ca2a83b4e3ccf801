//! Commands that wait for a key, on several workers: who is served, in which order, and what ends a waiting.
use server::Config;
use std::time::Duration;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

const WORKERS: usize = 4;
/// How often something is asked that is about to be so.
const ROUNDS: usize = 200_000;

fn server() -> InProcess {
    InProcess::start(Config { worker_threads: WORKERS, ..InProcess::config() })
}

/// A request, its words parted by blanks.
fn words(request: &str) -> Vec<&str> {
    request.split(' ').collect()
}

fn call(client: &mut RespClient, request: &str) -> Value {
    client.call(&words(request)).unwrap()
}

/// The texts of a reply, one behind the other.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Aggregate(_, parts) => parts.iter().flat_map(texts).collect(),
        other => vec![String::from_utf8_lossy(other.text().unwrap_or(b"(null)")).into_owned()],
    }
}

/// How many clients wait, as INFO says. A client is known to wait when this has risen.
fn waiting(observer: &mut RespClient) -> u64 {
    figure(observer, "clients", "blocked_clients")
}

fn figure(observer: &mut RespClient, section: &str, name: &str) -> u64 {
    let Value::Blob(_, text) = observer.call(&["INFO", section]).unwrap() else { panic!("INFO is text") };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.parse().unwrap()
}

/// Asks until so many wait; each question takes a turn of the server's loop.
fn wait_for(observer: &mut RespClient, count: u64) {
    assert!((0..ROUNDS).any(|_| waiting(observer) == count), "{count} clients wait");
}

/// Asks until no key is waited for: a client that is killed leaves its queues when its worker closes it.
fn wait_until_no_key_is_waited_for(observer: &mut RespClient) {
    let is_none = |_| figure(observer, "clients", "total_blocking_keys") == 0;
    assert!((0..ROUNDS).any(is_none), "no key is waited for");
}

/// Sends requests that wait, one after the other.
fn let_wait(server: &InProcess, observer: &mut RespClient, requests: &[&str]) -> Vec<RespClient> {
    let before = waiting(observer);
    let send = |(index, request): (usize, &&str)| {
        let mut client = server.client().unwrap();
        client.send(&words(request)).unwrap();
        wait_for(observer, before + index as u64 + 1);
        client
    };
    requests.iter().enumerate().map(send).collect()
}

#[test]
fn who_waited_first_on_any_worker_is_served_first() {
    let server = server();
    let mut pusher = server.client().unwrap();
    let requests =
        ["BLPOP list 0", "BRPOP list 0", "BLMPOP 0 1 list LEFT COUNT 2", "BLMOVE list to LEFT RIGHT 0"];
    let mut clients = let_wait(&server, &mut pusher, &requests);
    call(&mut pusher, "RPUSH list 1 2 3 4 5 6");
    let expected = [vec!["list", "1"], vec!["list", "6"], vec!["list", "2", "3"], vec!["4"]];
    for (client, expected) in clients.iter_mut().zip(expected) {
        assert_eq!(texts(&client.receive().unwrap()), expected);
    }
    assert_eq!(texts(&call(&mut pusher, "LRANGE list 0 -1")), ["5"]);
    assert_eq!(texts(&call(&mut pusher, "LRANGE to 0 -1")), ["4"]);
    assert_eq!(figure(&mut pusher, "clients", "total_blocking_keys"), 0);
}

#[test]
fn a_push_serves_one_of_many_and_the_rest_keep_their_order() {
    const CLIENTS: usize = 200;
    let server = server();
    let mut pusher = server.client().unwrap();
    let mut clients = let_wait(&server, &mut pusher, &["BLPOP a b c 0"; CLIENTS]);
    for (turn, client) in clients.iter_mut().enumerate() {
        let key = ["a", "b", "c"][turn % 3];
        call(&mut pusher, &format!("RPUSH {key} {turn}"));
        assert_eq!(texts(&client.receive().unwrap()), [key.to_owned(), turn.to_string()]);
    }
    wait_for(&mut pusher, 0);
    wait_until_no_key_is_waited_for(&mut pusher);
}

#[test]
fn what_a_served_request_writes_serves_the_next() {
    const LINKS: usize = 100;
    let server = server();
    let mut pusher = server.client().unwrap();
    let requests: Vec<String> = (0..LINKS).map(|n| format!("BLMOVE k{n} k{} LEFT RIGHT 0", n + 1)).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let clients = let_wait(&server, &mut pusher, &requests);
    call(&mut pusher, "RPUSH k0 x");
    for mut client in clients {
        assert_eq!(texts(&client.receive().unwrap()), ["x"]);
    }
    assert_eq!(texts(&call(&mut pusher, &format!("LRANGE k{LINKS} 0 -1"))), ["x"]);
}

#[test]
fn a_waiting_ends_when_its_time_is_over_and_takes_nothing_afterwards() {
    let server = server();
    let mut pusher = server.client().unwrap();
    let mut clients = let_wait(&server, &mut pusher, &["BLPOP k 0.05", "BZPOPMIN k 0.06", "BLPOP k 0"]);
    server.time.advance(Duration::from_millis(49));
    assert_eq!(waiting(&mut pusher), 3);
    server.time.advance(Duration::from_millis(1));
    assert_eq!(texts(&clients[0].receive().unwrap()), ["(null)"]);
    server.time.advance(Duration::from_millis(10));
    assert_eq!(texts(&clients[1].receive().unwrap()), ["(null)"]);
    call(&mut pusher, "RPUSH k 1");
    assert_eq!(texts(&clients[2].receive().unwrap()), ["k", "1"]);
    assert_eq!(texts(&call(&mut clients[0], "PING")), ["PONG"]);
}

#[test]
fn clients_that_leave_are_killed_or_unblocked_lose_nothing_for_the_others() {
    let server = server();
    let mut pusher = server.client().unwrap();
    let mut others: Vec<RespClient> = (0..3).map(|_| server.client().unwrap()).collect();
    let ids: Vec<String> =
        others.iter_mut().map(|client| texts(&call(client, "CLIENT ID")).remove(0)).collect();
    for (index, client) in others.iter_mut().enumerate() {
        client.send(&words("BLPOP k 0")).unwrap();
        wait_for(&mut pusher, index as u64 + 1);
    }
    let mut last = let_wait(&server, &mut pusher, &["BLPOP k 0"]);
    drop(others.remove(0));
    wait_for(&mut pusher, 3);
    call(&mut pusher, &format!("CLIENT KILL ID {}", ids[1]));
    call(&mut pusher, &format!("CLIENT UNBLOCK {} ERROR", ids[2]));
    let error = others[1].receive().unwrap();
    assert!(texts(&error)[0].starts_with("UNBLOCKED"), "{error:?}");
    call(&mut pusher, "RPUSH k 1");
    assert_eq!(texts(&last[0].receive().unwrap()), ["k", "1"]);
    wait_until_no_key_is_waited_for(&mut pusher);
}

#[test]
fn every_element_reaches_one_client_while_all_workers_push_and_pop() {
    const CLIENTS: usize = 8;
    const JOBS: usize = 500;
    let server = server();
    let address = server.address();
    let popped = std::thread::scope(|scope| {
        let poppers: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let address = address.clone();
                scope.spawn(move || {
                    let mut client = RespClient::connect(&address).unwrap();
                    let keys = if n % 2 == 0 { "a b c" } else { "c b a" };
                    let mut got = Vec::new();
                    loop {
                        let element = texts(&call(&mut client, &format!("BLPOP {keys} 0"))).remove(1);
                        if element == "end" {
                            return got;
                        }
                        got.push(element);
                    }
                })
            })
            .collect();
        let pushers: Vec<_> = (0..CLIENTS)
            .map(|n| {
                let address = address.clone();
                scope.spawn(move || {
                    let mut client = RespClient::connect(&address).unwrap();
                    for job in 0..JOBS {
                        let key = ["a", "b", "c"][(n + job) % 3];
                        call(&mut client, &format!("LPUSH {key} {n}:{job}"));
                    }
                })
            })
            .collect();
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        let mut ender = RespClient::connect(&address).unwrap();
        let has_jobs = |ender: &mut RespClient| {
            ["a", "b", "c"].iter().any(|key| texts(&call(ender, &format!("LLEN {key}"))) != ["0"])
        };
        while has_jobs(&mut ender) {}
        (0..CLIENTS).for_each(|_| drop(call(&mut ender, "RPUSH a end")));
        poppers.into_iter().flat_map(|popper| popper.join().unwrap()).collect::<Vec<_>>()
    });
    let unique: std::collections::BTreeSet<&String> = popped.iter().collect();
    assert_eq!((popped.len(), unique.len()), (CLIENTS * JOBS, CLIENTS * JOBS));
}

#[test]
fn one_entry_goes_to_one_of_many_consumers_and_the_others_wait_on() {
    const CONSUMERS: usize = 700;
    let server = server();
    let mut pusher = server.client().unwrap();
    call(&mut pusher, "XGROUP CREATE s g $ MKSTREAM");
    let requests: Vec<String> =
        (0..CONSUMERS).map(|n| format!("XREADGROUP GROUP g c{n} BLOCK 0 STREAMS s >")).collect();
    let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
    let mut clients = let_wait(&server, &mut pusher, &requests);
    for client in clients.iter_mut().take(3) {
        let id = texts(&call(&mut pusher, "XADD s * f v")).remove(0);
        assert_eq!(texts(&client.receive().unwrap()), ["s", &id, "f", "v"]);
    }
    wait_for(&mut pusher, CONSUMERS as u64 - 3);
    // A group that is gone ends the waiting of all.
    call(&mut pusher, "XGROUP DESTROY s g");
    for client in &mut clients[3..] {
        assert!(texts(&client.receive().unwrap())[0].starts_with("NOGROUP"));
    }
    assert_eq!(figure(&mut pusher, "clients", "total_blocking_keys_on_nokey"), 0);
}

#[test]
fn a_request_may_name_very_many_keys_some_of_them_often() {
    const KEYS: usize = 50_000;
    let server = server();
    let mut pusher = server.client().unwrap();
    let mut request = vec!["BLPOP".to_owned()];
    request.extend((0..KEYS).map(|n| format!("k{}", n % (KEYS / 2))));
    request.push("0".to_owned());
    let mut client = server.client().unwrap();
    for round in 0..2 {
        client.send(&request).unwrap();
        wait_for(&mut pusher, 1);
        assert_eq!(figure(&mut pusher, "clients", "total_blocking_keys"), KEYS as u64 / 2);
        call(&mut pusher, &format!("RPUSH k{round} x"));
        assert_eq!(texts(&client.receive().unwrap()), [format!("k{round}"), "x".to_owned()]);
        assert_eq!(figure(&mut pusher, "clients", "total_blocking_keys"), 0);
    }
}

/// What `$` means is found out for each of them.
#[test]
fn a_request_that_names_a_hundred_thousand_streams_waits_like_any_other() {
    const STREAMS: usize = 100_000;
    let server = server();
    let mut pusher = server.client().unwrap();
    call(&mut pusher, "XADD s7 1-1 f v");
    let mut request: Vec<String> = words("XREAD BLOCK 0 STREAMS").into_iter().map(str::to_owned).collect();
    request.extend((0..STREAMS).map(|n| format!("s{n}")));
    request.extend((0..STREAMS).map(|_| "$".to_owned()));
    let mut client = server.client().unwrap();
    client.send(&request).unwrap();
    wait_for(&mut pusher, 1);
    // To try the whole request for each of its keys would take longer than anybody waits for a reply.
    call(&mut pusher, "SWAPDB 0 3");
    call(&mut pusher, "SWAPDB 0 3");
    call(&mut pusher, "FLUSHDB");
    call(&mut pusher, "XADD s7 1-2 f w");
    assert_eq!(texts(&client.receive().unwrap()), ["s7", "1-2", "f", "w"]);
    assert_eq!(figure(&mut pusher, "clients", "total_blocking_keys"), 0);
}

#[test]
fn another_type_under_the_key_serves_nobody_until_it_is_a_list() {
    let server = server();
    let mut pusher = server.client().unwrap();
    let mut clients =
        let_wait(&server, &mut pusher, &["BLPOP k 0", "BZPOPMAX k 0", "XREAD BLOCK 0 STREAMS k $"]);
    call(&mut pusher, "SET k v");
    call(&mut pusher, "RENAME k other");
    call(&mut pusher, "ZADD k 1 a 2 b");
    assert_eq!(texts(&clients[1].receive().unwrap()), ["k", "b", "2"]);
    call(&mut pusher, "DEL k");
    call(&mut pusher, "XADD k 1-1 f v");
    assert_eq!(texts(&clients[2].receive().unwrap()), ["k", "1-1", "f", "v"]);
    call(&mut pusher, "RPUSH list 1 2");
    call(&mut pusher, "COPY list k REPLACE");
    assert_eq!(texts(&clients[0].receive().unwrap()), ["k", "1"]);
}

#[test]
fn a_stream_that_comes_to_be_wakes_a_read_that_then_meets_another_key_of_the_wrong_type() {
    let server = server();
    let mut writer = server.client().unwrap();
    let mut readers = let_wait(&server, &mut writer, &["XREAD BLOCK 0 STREAMS a b $ $"]);
    call(&mut writer, "SET a 1");
    assert_eq!(waiting(&mut writer), 1, "nothing of its type has come");
    call(&mut writer, "XGROUP CREATE b g $ MKSTREAM");
    let text = texts(&readers[0].receive().unwrap()).remove(0);
    assert!(text.starts_with("WRONGTYPE"), "{text}");
}

#[test]
fn who_waits_is_served_when_a_pause_is_over_that_began_with_the_push() {
    let server = server();
    let mut observer = server.client().unwrap();
    for (mode, end) in [("WRITE", "CLIENT UNPAUSE"), ("ALL", "PING"), ("WRITE", "PING")] {
        let length = if end == "PING" { 50 } else { 100_000 };
        let mut waiters = let_wait(&server, &mut observer, &["BLPOP key 0", "BLPOP key 0"]);
        for request in ["MULTI", &format!("CLIENT PAUSE {length} {mode}"), "RPUSH key a b"] {
            call(&mut observer, request);
        }
        assert_eq!(texts(&call(&mut observer, "EXEC")), ["OK", "2"]);
        if end != "PING" {
            assert_eq!(texts(&call(&mut observer, "LRANGE key 0 -1")), ["a", "b"], "nothing changes");
            assert_eq!(waiting(&mut observer), 2);
            call(&mut observer, end);
        }
        server.time.advance(Duration::from_millis(60));
        for (waiter, element) in waiters.iter_mut().zip(["a", "b"]) {
            assert_eq!(texts(&waiter.receive().unwrap()), ["key", element]);
        }
        assert_eq!(texts(&call(&mut observer, "EXISTS key")), ["0"]);
    }
}

#[test]
fn data_that_is_loaded_again_is_new_to_those_who_watch_it_or_keep_copies() {
    let server = server();
    let (mut watcher, mut keeper, mut other) =
        (server.client().unwrap(), server.client().unwrap(), server.client().unwrap());
    call(&mut other, "SET key value");
    call(&mut watcher, "WATCH key");
    for request in ["HELLO 3", "CLIENT TRACKING ON", "GET key"] {
        call(&mut keeper, request);
    }
    assert_eq!(texts(&call(&mut other, "DEBUG RELOAD")), ["OK"]);
    for request in ["MULTI", "PING"] {
        call(&mut watcher, request);
    }
    assert_eq!(texts(&call(&mut watcher, "EXEC")), ["(null)"]);
    assert_eq!(texts(&keeper.receive().unwrap()), ["invalidate", ""]);
}

#[test]
fn what_is_refused_in_any_case_is_not_held_back_by_a_pause() {
    let server = server();
    let [mut queueing, mut listening, mut other] = std::array::from_fn(|_| server.client().unwrap());
    call(&mut queueing, "MULTI");
    call(&mut listening, "SUBSCRIBE c");
    call(&mut other, "CLIENT PAUSE 100000 ALL");
    let refused = texts(&call(&mut queueing, "SAVE")).remove(0);
    assert_eq!(refused, "ERR Command not allowed inside a transaction");
    for request in ["SET k v", "GET k", "EXEC"] {
        let refused = texts(&call(&mut listening, request)).remove(0);
        assert!(refused.contains("only (P|S)SUBSCRIBE"), "{request}: {refused}");
    }
    server.time.advance(Duration::from_millis(100_001));
    assert!(texts(&call(&mut queueing, "EXEC")).remove(0).starts_with("EXECABORT"));
}
