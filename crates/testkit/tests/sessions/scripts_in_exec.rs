//! EXEC of a queue with scripts, which a worker runs beside what others do, takes back and runs again: it is
//! one step, happens once, and is told of as if each of its requests had come by itself.
use crate::lent::figure;
use server::Config;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

fn server(worker_threads: usize) -> InProcess {
    InProcess::start(Config { worker_threads, ..InProcess::config() })
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned()
}

fn say(client: &mut RespClient, line: &str) -> String {
    text(&client.call(&line.split(' ').collect::<Vec<&str>>()).unwrap())
}

fn count(client: &mut RespClient, name: &str) -> u64 {
    figure(client, name).parse().unwrap()
}

/// Sends a queue, and returns the replies of its requests; None if a watched key has changed.
fn exec(client: &mut RespClient, queue: &[&[&str]]) -> Option<Vec<Value>> {
    assert_eq!(say(client, "MULTI"), "OK");
    for request in queue {
        assert_eq!(text(&client.call(request).unwrap()), "QUEUED", "{request:?}");
    }
    match client.call(&["EXEC"]).unwrap() {
        Value::Aggregate(b'*', replies) => Some(replies),
        Value::Null(_) => None,
        other => panic!("{other:?}"),
    }
}

const INCR: &str = "return redis.call('incr', ARGV[1])";
const PUSH: &str = "return redis.call('rpush', KEYS[1] or ARGV[1], ARGV[#ARGV])";

/// One may take too long all the same, where the system is busy.
fn assert_few_are_lent(client: &mut RespClient, before: u64) {
    assert!(count(client, "lent_scripts") < before + 10, "on the thread of scripts");
    assert_eq!(count(client, "alone_scripts"), 0);
}

#[test]
fn a_queue_of_scripts_and_other_commands_runs_beside_others() {
    let server = server(2);
    let mut client = server.client().unwrap();
    let library = "#!lua name=lib\nredis.register_function('add', \
        function(keys, args) return redis.call('incrby', keys[1], args[1]) end)";
    assert_eq!(text(&client.call(&["FUNCTION", "LOAD", library]).unwrap()), "lib");
    for n in 1..=50_u64 {
        let value = n.to_string();
        let replies = exec(
            &mut client,
            &[
                &["EVAL", INCR, "0", "n"],
                &["HSET", "hash", &value, "v"],
                &["EVAL", PUSH, "1", "list", &value],
                &["FCALL", "add", "1", "sum", &value],
                &["LPUSH", "hash", "wrong"],
                &["BLPOP", "nothing", "0"],
                &["PUBLISH", "news", &value],
                &["EVAL", "return {KEYS[1], redis.call('llen', 'list')}", "1", "k"],
            ],
        );
        let replies = replies.unwrap();
        let sum = (n * (n + 1) / 2).to_string();
        assert_eq!([0, 1, 2, 3].map(|at| text(&replies[at])), [&*value, "1", &value, &sum]);
        assert!(text(&replies[4]).starts_with("WRONGTYPE"), "{:?}", replies[4]);
        assert!(matches!(replies[5], Value::Null(_)) && text(&replies[6]) == "0");
        let Value::Aggregate(_, last) = &replies[7] else { panic!("an array") };
        assert_eq!([text(&last[0]), text(&last[1])], ["k", &value]);
    }
    assert_few_are_lent(&mut client, 1);
    let stats = say(&mut client, "INFO commandstats");
    for (name, calls) in
        [("incr", "50"), ("hset", "50"), ("rpush", "50"), ("llen", "50"), ("eval", "150"), ("fcall", "50")]
    {
        assert!(stats.contains(&format!("cmdstat_{name}:calls={calls},")), "{name}: {stats}");
    }
    let wrong = stats.lines().find(|line| line.starts_with("cmdstat_lpush:")).unwrap();
    assert!(wrong.contains("calls=50,") && wrong.ends_with("failed_calls=50"), "{wrong}");
    assert!(say(&mut client, "INFO errorstats").contains("errorstat_WRONGTYPE:count=50"));
}

/// Neither a limit of memory, while there is room, nor rules that let it run change how it runs.
#[test]
fn a_queue_runs_beside_others_below_the_limit_of_memory_and_for_users_with_rules() {
    let server = server(2);
    let (mut admin, mut client) = (server.client().unwrap(), server.client().unwrap());
    for request in ["CONFIG SET maxmemory 1gb", "ACL SETUSER u on nopass ~a* &* +@all -append"] {
        assert_eq!(say(&mut admin, request), "OK");
    }
    assert_eq!(say(&mut client, "AUTH u x"), "OK");
    let queue: [&[&str]; 2] = [&["EVAL", INCR, "0", "a"], &["SET", "ab", "1"]];
    for n in 1..=20 {
        assert_eq!(text(&exec(&mut client, &queue).unwrap()[0]), n.to_string());
    }
    assert_few_are_lent(&mut admin, 0);
    // What its scripts may not do is refused, and told the log once.
    let refused = "redis.call('set', 'a2', 1) return redis.pcall('append', 'a2', 'x')";
    let replies = exec(&mut client, &[&["EVAL", INCR, "0", "a"], &["EVAL", refused, "0"]]).unwrap();
    assert_eq!(text(&replies[0]), "21");
    assert!(text(&replies[1]).contains("permission"), "{:?}", replies[1]);
    let Value::Aggregate(_, refusals) = admin.call(&["ACL", "LOG"]).unwrap() else { panic!("an array") };
    assert_eq!(refusals.len(), 1);
    // Rules that have changed since it was queued are about each request.
    assert_eq!(say(&mut client, "MULTI"), "OK");
    for request in queue {
        assert_eq!(text(&client.call(request).unwrap()), "QUEUED");
    }
    assert_eq!(say(&mut admin, "ACL SETUSER u -set"), "OK");
    let Value::Aggregate(_, replies) = client.call(&["EXEC"]).unwrap() else { panic!("an array") };
    assert_eq!(text(&replies[0]), "22");
    assert!(text(&replies[1]).starts_with("NOPERM"), "{:?}", replies[1]);
}

#[test]
fn a_queue_of_scripts_does_not_run_if_a_watched_key_has_changed() {
    let server = server(2);
    let (mut client, mut other) = (server.client().unwrap(), server.client().unwrap());
    let queue: [&[&str]; 2] = [&["EVAL", INCR, "0", "n"], &["INCR", "m"]];
    for (change, runs) in [("GET k", true), ("SET k 2", false), ("FLUSHALL", false), ("GET k", true)] {
        assert_eq!(say(&mut other, "SET k 1"), "OK");
        assert_eq!(say(&mut client, "WATCH k other"), "OK");
        say(&mut other, change);
        assert_eq!(exec(&mut client, &queue).is_some(), runs, "{change}");
        // It is watched no more.
        say(&mut other, "SET k 3");
        assert!(exec(&mut client, &queue).is_some());
    }
    // One that is past its deadline has changed too.
    say(&mut other, "DEBUG SET-ACTIVE-EXPIRE 0");
    say(&mut other, "SET k 1 PX 100");
    assert_eq!(say(&mut client, "WATCH k"), "OK");
    server.time.advance(std::time::Duration::from_millis(200));
    assert!(exec(&mut client, &queue).is_none());
}

/// Scripts of queues reach for keys that other queues hold, and all of them for one that is often locked.
#[test]
fn queues_that_are_in_each_other_s_way_run_once_each_and_one_after_the_other() {
    const CALLS: usize = 500;
    let server = server(3);
    let (mut first, is_over) = (server.client().unwrap(), AtomicBool::new(false));
    first.call(&[&["RPUSH", "long"][..], &["x"; 4_000]].concat()).unwrap();
    assert_eq!(say(&mut first, "CONFIG SET appendonly yes"), "OK");
    // While it begins, DEBUG LOADAOF is refused.
    while count(&mut first, "aof_rewrite_in_progress") > 0 {}
    let script = "local n = redis.call('llen', 'long') \
        return redis.call('rpush', 'log', redis.call('get', ARGV[1]) + n)";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = server.client().unwrap();
            while !is_over.load(Relaxed) {
                assert_eq!(say(&mut other, "LPOS long none"), "");
            }
        });
        let run = |names: [&str; 2]| {
            let mut client = server.client().unwrap();
            for _ in 0..CALLS {
                let replies = exec(
                    &mut client,
                    &[&["INCR", names[0]], &["EVAL", INCR, "0", names[1]], &["EVAL", script, "0", names[0]]],
                );
                let replies: Vec<String> = replies.unwrap().iter().map(text).collect();
                assert!(replies.iter().all(|reply| *reply == replies[0]), "{replies:?}");
            }
        };
        let runners = [["left", "right"], ["right", "left"]].map(|names| scope.spawn(move || run(names)));
        runners.into_iter().for_each(|runner| runner.join().unwrap());
        is_over.store(true, Relaxed);
    });
    let Value::Aggregate(_, log) = first.call(&["LRANGE", "log", "0", "-1"]).unwrap() else {
        panic!("an array")
    };
    assert!(log.iter().map(text).eq((1..=2 * CALLS).map(|n| (4_000 + n).to_string())));
    // In the file they are in the same order.
    let digest = say(&mut first, "DEBUG DIGEST");
    assert_eq!(say(&mut first, "DEBUG LOADAOF"), "OK");
    assert_eq!(say(&mut first, "DEBUG DIGEST"), digest);
}

/// Clients that wait are served when all of the queue has run, and find what it has left.
#[test]
fn those_who_wait_for_keys_are_served_behind_the_queue() {
    let server = server(2);
    let (mut client, mut waiter) = (server.client().unwrap(), server.client().unwrap());
    for ending in ["return 1", "redis.call('move', 'none', 9)", "return redis.call('dbsize')"] {
        waiter.send(&["BLMOVE", "from", "to", "LEFT", "RIGHT", "0"]).unwrap();
        while count(&mut client, "blocked_clients") == 0 {}
        let replies = exec(
            &mut client,
            &[
                &["EVAL", PUSH, "0", "from", "first"],
                &["LPUSH", "from", "second"],
                &["EVAL", ending, "0"],
                &["LLEN", "from"],
            ],
        );
        assert_eq!(text(&replies.unwrap()[3]), "2", "{ending}");
        assert_eq!(text(&waiter.receive().unwrap()), "second", "{ending}");
        assert_eq!(say(&mut client, "RPOP from"), "first");
        assert_eq!(say(&mut client, "LPOP to"), "second");
    }
}

/// What would take long to run, or to take back, goes to the thread of scripts, and happens once.
#[test]
fn a_queue_that_is_long_in_any_way_runs_on_the_thread_of_scripts() {
    let server = server(2);
    let mut client = server.client().unwrap();
    let members: Vec<String> = (0..1_000).flat_map(|n| [n.to_string(), format!("m{n}")]).collect();
    for name in ["z1", "z2"] {
        let mut words = vec!["ZADD", name];
        words.extend(members.iter().map(String::as_str));
        client.call(&words).unwrap();
    }
    let long = "x".repeat(1_100_000);
    let many: Vec<String> = std::iter::once("DEL".into()).chain((0..3_000).map(|n| n.to_string())).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let union = ["ZUNIONSTORE", "to", "2", "z1", "z2"];
    let set = ["SET", "big", &long];
    let read: &[&str] = &["EVAL", "return redis.call('exists', 'to', 'big')", "0"];
    for (queue, answer) in [
        (vec![&set[..], read], "1"),
        (vec![&many[..], read], "1"),
        (std::iter::repeat_n(&union[..], 31).chain([read]).collect(), "2"),
    ] {
        let lent = count(&mut client, "lent_scripts");
        let replies = exec(&mut client, &queue).unwrap();
        assert_eq!((replies.len(), &*text(&replies[queue.len() - 1])), (queue.len(), answer));
        assert_eq!(count(&mut client, "lent_scripts"), lent + 1, "{}", queue[0][0]);
    }
    assert_eq!(say(&mut client, "COMMANDLOG LEN large-request"), "1");
}

/// A queue may begin with much that its last script has to have run alone for.
#[test]
fn a_queue_with_a_script_that_runs_alone_does_so_from_its_beginning() {
    let server = server(2);
    let mut client = server.client().unwrap();
    let wants_all = "return redis.call('dbsize')";
    for n in 1..=40 {
        let [alone, lent] = ["alone_scripts", "lent_scripts"].map(|name| count(&mut client, name));
        let replies = exec(&mut client, &[&["EVAL", INCR, "0", "n"], &["EVAL", wants_all, "0"]]).unwrap();
        assert_eq!([text(&replies[0]), text(&replies[1])], [n.to_string(), "1".into()]);
        let [alone, lent] = [("alone_scripts", alone), ("lent_scripts", lent)]
            .map(|(name, before)| count(&mut client, name) - before);
        assert!(alone + lent >= 1, "it needs all");
    }
    // The other one is as it was.
    let alone = count(&mut client, "alone_scripts");
    assert_eq!(text(&exec(&mut client, &[&["EVAL", INCR, "0", "n"]]).unwrap()[0]), "41");
    assert_eq!(count(&mut client, "alone_scripts"), alone);
}
