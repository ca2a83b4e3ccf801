//! Clients that keep copies of values, on several workers: who is told of a change, and of what.
use server::Config;
use std::time::Duration;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

fn server() -> InProcess {
    InProcess::start(Config { worker_threads: 4, ..InProcess::config() })
}

fn call(client: &mut RespClient, request: &str) -> Value {
    client.call(&request.split(' ').collect::<Vec<_>>()).unwrap()
}

/// A client that speaks RESP3 and has said this.
fn tracker(server: &InProcess, how: &str) -> RespClient {
    let mut client = server.client().unwrap();
    call(&mut client, "HELLO 3");
    assert_eq!(texts(&call(&mut client, how)), ["OK"]);
    client
}

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Aggregate(_, parts) => parts.iter().flat_map(texts).collect(),
        other => vec![String::from_utf8_lossy(other.text().unwrap_or_default()).into_owned()],
    }
}

fn id(client: &mut RespClient) -> String {
    texts(&call(client, "CLIENT ID")).remove(0)
}

fn figure(client: &mut RespClient, name: &str) -> u64 {
    let Value::Blob(_, text) = call(client, "INFO everything") else { panic!("INFO is text") };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.parse().unwrap()
}

/// Asks until this is so; each question takes a turn of the server's loop.
fn wait_until(observer: &mut RespClient, mut is_so: impl FnMut(&mut RespClient) -> bool) {
    const ROUNDS: usize = 100_000;
    assert!((0..ROUNDS).any(|_| is_so(observer)));
}

#[test]
fn a_thousand_clients_that_have_read_a_key_are_told_once_each() {
    const CLIENTS: u64 = 1000;
    let server = server();
    let mut writer = server.client().unwrap();
    call(&mut writer, "SET key 1");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| tracker(&server, "CLIENT TRACKING ON")).collect();
    for client in &mut clients {
        call(client, "GET key");
        call(client, "STRLEN key");
    }
    assert_eq!(figure(&mut writer, "tracking_clients"), CLIENTS);
    assert_eq!(figure(&mut writer, "tracking_total_keys"), 1);
    assert_eq!(figure(&mut writer, "tracking_total_items"), CLIENTS);
    call(&mut writer, "SET key 2");
    call(&mut writer, "SET key 3");
    assert_eq!(figure(&mut writer, "tracking_total_items"), 0);
    for client in &mut clients {
        assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "key"]);
        assert_eq!(texts(&call(client, "PING")), ["PONG"], "once");
    }
}

#[test]
fn another_client_is_told_in_place_of_one_until_it_is_gone() {
    let server = server();
    let (mut writer, mut target) = (server.client().unwrap(), server.client().unwrap());
    let target_id = id(&mut target);
    let mut client = tracker(&server, &format!("CLIENT TRACKING ON REDIRECT {target_id}"));
    assert_eq!(texts(&call(&mut client, "CLIENT GETREDIR")), [&target_id[..]]);
    call(&mut target, "SUBSCRIBE __redis__:invalidate");
    call(&mut client, "GET key");
    call(&mut writer, "SET key 1");
    assert_eq!(texts(&target.receive().unwrap()), ["message", "__redis__:invalidate", "key"]);
    call(&mut client, "GET key");
    call(&mut writer, &format!("CLIENT KILL ID {target_id}"));
    call(&mut writer, "SET key 2");
    assert_eq!(texts(&client.receive().unwrap()), ["tracking-redir-broken", &target_id]);
    let info = texts(&call(&mut client, "CLIENT TRACKINGINFO"));
    assert_eq!(info, ["flags", "on", "broken_redirect", "redirect", &target_id, "prefixes"]);
    let line = texts(&call(&mut client, "CLIENT INFO")).remove(0);
    assert!(line.contains("flags=tR ") && line.contains(&format!("redir={target_id} ")), "{line}");
    call(&mut client, "CLIENT TRACKING ON");
    call(&mut client, "GET key");
    call(&mut writer, "SET key 3");
    assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "key"]);
}

/// A message may say why the copies are not valid any more, so it comes behind that.
#[test]
fn who_is_told_of_a_flush_in_place_of_another_is_told_before_what_is_published_behind_it() {
    let server = server();
    let mut writer = server.client().unwrap();
    for (nth, protocol) in [2, 3].repeat(100).into_iter().enumerate() {
        // Those who came before may not have left yet.
        let channel = format!("news-{nth}");
        let (mut target, mut client) = (server.client().unwrap(), server.client().unwrap());
        call(&mut target, &format!("HELLO {protocol}"));
        let told = format!("CLIENT TRACKING ON REDIRECT {}", id(&mut target));
        assert_eq!(texts(&call(&mut client, &told)), ["OK"]);
        for channel in [&channel, "__redis__:invalidate"] {
            call(&mut target, &format!("SUBSCRIBE {channel}"));
        }
        for request in ["MULTI", "FLUSHDB", &format!("PUBLISH {channel} emptied")] {
            call(&mut writer, request);
        }
        assert_eq!(texts(&call(&mut writer, "EXEC")), ["OK", "1"]);
        let null =
            [&["invalidate", ""][..], &["message", "__redis__:invalidate", ""]][usize::from(protocol == 2)];
        assert_eq!(texts(&target.receive().unwrap()), null);
        assert_eq!(texts(&target.receive().unwrap()), ["message", &channel, "emptied"]);
    }
}

#[test]
fn null_is_in_the_protocol_that_the_client_speaks_at_the_end_of_its_transaction() {
    let server = server();
    for (before, after, null) in [(2, 3, b'_'), (3, 2, b'$')] {
        let (mut target, mut client) = (tracker(&server, "CLIENT SETNAME target"), server.client().unwrap());
        call(&mut client, &format!("HELLO {before}"));
        call(&mut client, &format!("CLIENT TRACKING ON REDIRECT {}", id(&mut target)));
        for request in ["MULTI", "FLUSHALL", &format!("HELLO {after}"), "FLUSHALL", "EXEC"] {
            call(&mut client, request);
        }
        for _ in 0..2 {
            let told = target.receive().unwrap().lines();
            assert!(
                told[1].ends_with(" invalidate") && told[2].trim_start().as_bytes()[0] == null,
                "{told:?}"
            );
        }
    }
}

#[test]
fn beyond_the_bound_of_the_table_keys_are_forgotten_and_their_readers_told() {
    let server = server();
    let mut writer = server.client().unwrap();
    let mut client = tracker(&server, "CLIENT TRACKING ON");
    call(&mut writer, "CONFIG SET tracking-table-max-keys 100");
    let mut told = Vec::new();
    for n in 0..1000 {
        call(&mut writer, &format!("SET key:{n} 1"));
        client.send(&["GET", &format!("key:{n}")]).unwrap();
        loop {
            match client.receive().unwrap() {
                Value::Blob(..) => break,
                push => told.push(texts(&push).remove(1)),
            }
        }
    }
    wait_until(&mut writer, |writer| figure(writer, "tracking_total_keys") == 100);
    client.send(&["PING"]).unwrap();
    loop {
        match client.receive().unwrap() {
            Value::Line(b'+', _) => break,
            push => told.push(texts(&push).remove(1)),
        }
    }
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), 900, "each key that was forgotten, by its name");
    // One that is not in the keyspace has no name: everything is to be forgotten.
    call(&mut writer, "CONFIG SET tracking-table-max-keys 1");
    call(&mut client, "CLIENT TRACKING OFF");
    call(&mut writer, "FLUSHALL");
    call(&mut client, "CLIENT TRACKING ON");
    client.send(&["EXISTS", "one", "two"]).unwrap();
    let mut replies = [texts(&client.receive().unwrap()), texts(&client.receive().unwrap())];
    replies.sort();
    assert_eq!(replies, [vec!["0"], vec!["invalidate", ""]]);
}

#[test]
fn a_client_that_does_not_read_what_it_is_told_is_closed_at_its_limit() {
    let server = server();
    let mut writer = server.client().unwrap();
    let limit = ["CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0"];
    assert_eq!(texts(&writer.call(&limit).unwrap()), ["OK"]);
    let _deaf = tracker(&server, "CLIENT TRACKING ON BCAST");
    let value = "v".repeat(10_000);
    wait_until(&mut writer, |writer| {
        // The name of the key is long, and so is what its reader is told.
        writer.call(&["SET", &value, "1"]).unwrap();
        figure(writer, "tracking_clients") == 0
    });
    assert_eq!(figure(&mut writer, "tracking_total_prefixes"), 0);
}

#[test]
fn prefixes_count_in_the_memory_of_their_client_and_are_given_back() {
    let server = server();
    let mut client = tracker(&server, "CLIENT TRACKING ON BCAST PREFIX first");
    let total = |client: &mut RespClient| -> u64 {
        let line = texts(&call(client, "CLIENT INFO")).remove(0);
        let at = line.find("tot-mem=").unwrap() + "tot-mem=".len();
        line[at..].split(' ').next().unwrap().parse().unwrap()
    };
    let before = total(&mut client);
    let prefixes: Vec<String> = (0..10_000).map(|n| format!("prefix:{n}:")).collect();
    let mut request = vec!["CLIENT", "TRACKING", "ON", "BCAST"];
    prefixes.iter().for_each(|prefix| request.extend(["PREFIX", prefix]));
    client.call(&request).unwrap();
    assert_eq!(figure(&mut client, "tracking_total_prefixes"), 10_001);
    assert!(total(&mut client) > before + 1_000_000);
    call(&mut client, "CLIENT TRACKING OFF");
    assert_eq!(figure(&mut client, "tracking_total_prefixes"), 0);
    assert!(total(&mut client) < before + 100_000);
}

#[test]
fn nobody_is_heard_any_more_when_the_last_that_tracked_has_gone() {
    let server = server();
    let mut writer = server.client().unwrap();
    let mut client = tracker(&server, "CLIENT TRACKING ON");
    let request: Vec<String> = (0..10_000).map(|n| format!("key:{n}")).collect();
    let mut words = vec!["MGET"];
    words.extend(request.iter().map(|key| &key[..]));
    client.call(&words).unwrap();
    assert_eq!(figure(&mut writer, "tracking_total_keys"), 10_000);
    assert!(figure(&mut writer, "tracking_table_bytes") > 90_000);
    drop(client);
    wait_until(&mut writer, |writer| figure(writer, "tracking_table_bytes") == 0);
    assert_eq!(figure(&mut writer, "tracking_total_keys"), 0);
    assert_eq!(figure(&mut writer, "tracking_clients"), 0);
}

#[test]
fn a_client_is_not_told_of_a_change_that_its_own_first_read_makes() {
    let server = server();
    let mut writer = server.client().unwrap();
    let mut client = tracker(&server, "CLIENT TRACKING ON");
    call(&mut writer, "PFADD sketch");
    // It keeps what it has counted in the value.
    call(&mut client, "PFCOUNT sketch");
    assert_eq!(texts(&call(&mut client, "PING")), ["PONG"]);
    call(&mut writer, "PFADD sketch a");
    assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "sketch"], "it was remembered");
    call(&mut client, "MULTI");
    call(&mut client, "PFCOUNT sketch");
    call(&mut client, "EXEC");
    assert_eq!(texts(&call(&mut client, "PING")), ["PONG"]);
    call(&mut writer, "DEL sketch");
    assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "sketch"]);
}

#[test]
fn a_client_that_reads_with_patterns_is_told_of_the_key_that_it_sorts() {
    let server = server();
    let mut writer = server.client().unwrap();
    let mut client = tracker(&server, "CLIENT TRACKING ON");
    for request in ["SORT_RO list BY weight_*", "SORT_RO list BY nosort GET value_*"] {
        call(&mut client, request);
        call(&mut writer, "RPUSH list 1");
        assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "list"], "{request}");
    }
    call(&mut client, "SORT list BY weight_*");
    call(&mut writer, "DEL list");
    assert_eq!(texts(&call(&mut client, "PING")), ["PONG"], "SORT may store, and is no read");
}

#[test]
fn clients_that_track_prefixes_hear_of_all_keys_of_a_transaction_at_once() {
    let server = server();
    let mut writer = server.client().unwrap();
    // Other workers end batches meanwhile.
    let mut others: Vec<RespClient> = (0..4).map(|_| server.client().unwrap()).collect();
    let mut client = tracker(&server, "CLIENT TRACKING ON BCAST PREFIX key:");
    let keys: Vec<String> = (0..100).map(|n| format!("key:{n:02}")).collect();
    for _ in 0..100 {
        writer.send(&["MULTI"]).unwrap();
        keys.iter().for_each(|key| writer.send(&["SET", key, "1"]).unwrap());
        writer.send(&["EXEC"]).unwrap();
        others.iter_mut().for_each(|other| other.send(&["PING"]).unwrap());
        others.iter_mut().for_each(|other| drop(other.receive().unwrap()));
        (0..keys.len() + 2).for_each(|_| drop(writer.receive().unwrap()));
        assert_eq!(texts(&client.receive().unwrap())[1..], keys);
    }
}

#[test]
fn who_is_told_in_place_of_another_is_told_before_the_reply_that_waited_for_the_key() {
    const TARGETS: usize = 8;
    let server = server();
    let mut writer = server.client().unwrap();
    // Most of them are on another worker than the client that tracks.
    for _ in 0..TARGETS {
        let mut target = tracker(&server, "CLIENT TRACKING OFF");
        let target_id = id(&mut target);
        let mut client = tracker(&server, &format!("CLIENT TRACKING ON REDIRECT {target_id}"));
        call(&mut client, "LLEN list");
        target.send(&["BLPOP", "list", "0"]).unwrap();
        wait_until(&mut writer, |writer| figure(writer, "blocked_clients") == 1);
        call(&mut writer, "RPUSH list x");
        assert_eq!(texts(&target.receive().unwrap()), ["invalidate", "list"]);
        assert_eq!(texts(&target.receive().unwrap()), ["list", "x"]);
    }
}

/// Whether a client that tracks keys so, and has sent this, is told that `key` has changed.
fn is_told_of_key(server: &InProcess, how: &str, requests: &[Vec<&str>]) -> bool {
    let mut client = tracker(server, &format!("CLIENT TRACKING ON {how}"));
    for request in requests {
        client.call(request).unwrap();
    }
    call(&mut server.client().unwrap(), "SET key 2");
    client.send(&["PING"]).unwrap();
    matches!(client.receive().unwrap(), Value::Aggregate(..))
}

#[test]
fn client_caching_is_about_all_that_a_script_reads_and_nothing_behind_it() {
    const READ: &str = "return redis.call('get', KEYS[1] or 'key')";
    const LONG: &str = "for i = 1, 1000000 do end return redis.call('get', KEYS[1])";
    const ALONE: &str = "redis.call('dbsize') return redis.call('get', KEYS[1])";
    let server = server();
    let library = "#!lua name=lib\nredis.register_function{function_name='read', flags={'no-writes'}, \
                   callback=function(keys) return redis.call('get', keys[1]) end}";
    server.client().unwrap().call(&["FUNCTION", "LOAD", library]).unwrap();
    let scripts: [&dyn Fn(&'static str) -> Vec<&'static str>; 6] = [
        &|key| vec!["EVAL", READ, "1", key],
        &|key| if key == "key" { vec!["EVAL", READ, "0"] } else { vec!["EVAL", READ, "1", key] },
        &|key| vec!["EVAL_RO", LONG, "1", key],
        &|key| vec!["EVAL", ALONE, "1", key],
        &|key| vec!["FCALL", "read", "1", key],
        &|key| vec!["FCALL_RO", "read", "1", key],
    ];
    for (how, says) in [("OPTIN", "YES"), ("OPTOUT", "NO")] {
        let (is_in, says) = (how == "OPTIN", vec!["CLIENT", "CACHING", says]);
        for (number, script) in scripts.iter().enumerate() {
            let tell = |requests: &[Vec<&str>]| is_told_of_key(&server, how, requests);
            let (multi, exec, get) = (vec!["MULTI"], vec!["EXEC"], vec!["GET", "key"]);
            assert_eq!(tell(&[says.clone(), script("key")]), is_in, "{how} {number}");
            assert_eq!(tell(&[says.clone(), script("other"), get.clone()]), !is_in, "{how} {number}, behind");
            let queued = [says.clone(), multi.clone(), script("key"), exec.clone()];
            assert_eq!(tell(&queued), is_in, "{how} {number} in EXEC");
            let behind = [says.clone(), multi, script("other"), exec, get];
            assert_eq!(tell(&behind), !is_in, "{how} {number}, behind EXEC");
        }
    }
}

#[test]
fn client_caching_lasts_as_long_as_a_read_waits() {
    let server = server();
    let mut writer = server.client().unwrap();
    for (how, says, is_told) in [("OPTIN", "YES", true), ("OPTOUT", "NO", false)] {
        let mut client = tracker(&server, &format!("CLIENT TRACKING ON {how}"));
        for ending in ["XADD stream * a b", "CLIENT UNBLOCK"] {
            call(&mut client, &format!("CLIENT CACHING {says}"));
            let client_id = id(&mut client);
            client.send(&["XREAD", "BLOCK", "0", "STREAMS", "stream", "$"]).unwrap();
            wait_until(&mut writer, |writer| figure(writer, "blocked_clients") == 1);
            let is_served = ending != "CLIENT UNBLOCK";
            call(&mut writer, &if is_served { ending.into() } else { format!("{ending} {client_id}") });
            if is_served && is_told {
                assert_eq!(
                    texts(&client.receive().unwrap()),
                    ["invalidate", "stream"],
                    "read before it waited"
                );
            }
            client.receive().unwrap();
            call(&mut writer, "XADD stream * c d");
            if is_told {
                assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "stream"], "{ending}");
            }
            assert_eq!(texts(&call(&mut client, "PING")), ["PONG"], "{how}, {ending}");
            call(&mut client, "GET key");
            call(&mut writer, "SET key 1");
            if !is_told {
                assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "key"], "behind it");
            }
            assert_eq!(texts(&call(&mut client, "PING")), ["PONG"], "{how}, behind {ending}");
        }
    }
}

#[test]
fn a_client_with_noloop_is_told_of_fields_that_its_own_reads_find_past_their_deadline() {
    let server = server();
    let mut writer = server.client().unwrap();
    call(&mut writer, "DEBUG SET-ACTIVE-EXPIRE 0");
    let mut client = tracker(&server, "CLIENT TRACKING ON BCAST NOLOOP");
    // One of which a field is left, and one that goes with its last field.
    for fields in ["f 1 g 1", "f 1"] {
        call(&mut writer, &format!("HSET hash {fields}"));
        call(&mut writer, "HPEXPIRE hash 10 FIELDS 1 f");
        for _ in 0..2 {
            assert_eq!(texts(&client.receive().unwrap()), ["invalidate", "hash"]);
        }
        server.time.advance(Duration::from_millis(20));
        client.send(&["HGET", "hash", "f"]).unwrap();
        let replies = [(); 2].map(|()| texts(&client.receive().unwrap()));
        assert!(replies.contains(&vec!["invalidate".into(), "hash".into()]), "{fields}: {replies:?}");
        call(&mut client, "HSET hash h 1");
        assert_eq!(texts(&call(&mut client, "PING")), ["PONG"], "its own write");
    }
}

/// Each reader keeps copies and drops those that it is told of; the writer increases numbers. When all is
/// quiet no copy may differ from what the server has.
#[allow(clippy::disallowed_methods, reason = "readers and writers run at the same time")]
#[test]
fn copies_that_nobody_was_told_of_are_true() {
    const KEYS: u64 = 50;
    let seed = 77;
    let server = server();
    let readers: Vec<_> = (0..4_u64)
        .map(|reader| {
            let how = if reader == 3 { "CLIENT TRACKING ON BCAST" } else { "CLIENT TRACKING ON" };
            let mut client = tracker(&server, how);
            std::thread::spawn(move || {
                let mut random = base::random::Random::new(seed + reader);
                let mut copies = std::collections::BTreeMap::new();
                for _ in 0..3000 {
                    let key = format!("key:{}", random.below(KEYS));
                    if copies.contains_key(&key) {
                        client.send(&["PING"]).unwrap();
                    } else {
                        client.send(&["GET", &key]).unwrap();
                    }
                    loop {
                        match client.receive().unwrap() {
                            Value::Line(b'+', _) => break,
                            push @ Value::Aggregate(..) => {
                                texts(&push)[1..].iter().for_each(|key| drop(copies.remove(key)));
                            }
                            value => {
                                copies.insert(key, value);
                                break;
                            }
                        }
                    }
                }
                (client, copies)
            })
        })
        .collect();
    let writers: Vec<_> = (0..2_u64)
        .map(|writer| {
            let mut client = server.client().unwrap();
            std::thread::spawn(move || {
                let mut random = base::random::Random::new(seed + 100 + writer);
                for _ in 0..3000 {
                    call(&mut client, &format!("INCR key:{}", random.below(KEYS)));
                }
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    for reader in readers {
        let (mut client, mut copies) = reader.join().unwrap();
        // What was posted before is delivered before a second PING is answered.
        for _ in 0..2 {
            client.send(&["PING"]).unwrap();
            loop {
                match client.receive().unwrap() {
                    Value::Line(b'+', _) => break,
                    push => texts(&push)[1..].iter().for_each(|key| drop(copies.remove(key))),
                }
            }
        }
        for (key, copy) in copies {
            client.send(&["GET", &key]).unwrap();
            assert_eq!(client.receive().unwrap(), copy, "{key}, seed {seed}");
        }
    }
}
