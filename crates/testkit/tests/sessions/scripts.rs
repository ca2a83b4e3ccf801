//! Scripts that run for long, and scripts that a worker begins and takes back: what other clients see
//! meanwhile, and that everything happens once.
use crate::lent::{MANY, figure, wait_until};
use server::Config;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use testkit::in_process::InProcess;
use testkit::resp_client::{RespClient, request};
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

const ENDLESS: &str = "while true do end";
const BUSY: &str = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

fn server(worker_threads: usize) -> InProcess {
    let mut config = Config { worker_threads, ..InProcess::config() };
    config.busy_reply_threshold_ms = 1;
    InProcess::start(config)
}

fn call(client: &mut RespClient, words: &[&str]) -> Value {
    client.call(words).unwrap()
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned()
}

fn say(client: &mut RespClient, line: &str) -> String {
    text(&say_whole(client, line))
}

fn say_whole(client: &mut RespClient, line: &str) -> Value {
    call(client, &line.split(' ').collect::<Vec<&str>>())
}

/// Asks until the answer begins so.
fn wait_for(client: &mut RespClient, line: &str, beginning: &str) {
    const ROUNDS: usize = 1_000_000;
    assert!((0..ROUNDS).any(|_| say(client, line).starts_with(beginning)), "{line}: {beginning}");
}

/// Has a client call a script, and waits until it is known to run for long.
fn run(runner: &mut RespClient, observer: &mut RespClient, script: &str) {
    runner.send(&["EVAL", script, "0"]).unwrap();
    wait_for(observer, "PING", "BUSY");
}

#[test]
fn a_script_that_runs_for_long_is_killed_and_others_are_told_to_wait() {
    for workers in [1, 2] {
        let server = server(workers);
        let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
        assert_eq!(say(&mut other, "SET k v"), "OK");
        assert_eq!(say(&mut other, "SCRIPT KILL"), "NOTBUSY No scripts in execution right now.");
        run(&mut runner, &mut other, ENDLESS);
        for line in [
            "GET k",
            "FLUSHALL",
            "KEYS *",
            "EVAL x 0",
            "INFO",
            "SHUTDOWN",
            "SHUTDOWN SAVE",
            "SCRIPT EXISTS x",
        ] {
            assert_eq!(say(&mut other, line), BUSY, "{line}");
        }
        // Whoever asks for everything before it is known to be slow does not wait for its end either.
        assert_eq!(say(&mut other, "MULTI"), "OK");
        assert_eq!(say(&mut other, "GET k"), BUSY);
        assert!(say(&mut other, "EXEC").starts_with("EXECABORT"));
        assert_eq!(say(&mut other, "RESET"), "RESET");
        assert_eq!(say(&mut other, "WATCH k"), "OK");
        let mut late = server.client().unwrap();
        assert_eq!(say(&mut late, "GET k"), BUSY, "a new client");
        assert_eq!(say(&mut other, "SCRIPT KILL"), "OK");
        let reply = text(&runner.receive().unwrap());
        assert!(reply.starts_with("ERR Script killed by user with SCRIPT KILL..."), "{reply}");
        assert_eq!(say(&mut other, "GET k"), "v");
        assert_eq!(say(&mut runner, "GET k"), "v");
        assert_eq!(say(&mut other, "SCRIPT KILL"), "NOTBUSY No scripts in execution right now.");
    }
}

/// One that asks for commands in a loop takes some milliseconds until it hears that it is to end.
#[test]
#[allow(clippy::disallowed_methods, reason = "how long others wait for it is the server's own time")]
fn who_comes_after_the_kill_waits_for_the_end_of_the_script() {
    for workers in [1, 3] {
        let server = server(workers);
        let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
        let mut third = server.client().unwrap();
        assert_eq!(say(&mut third, "SET k v"), "OK");
        for _ in 0..5 {
            run(&mut runner, &mut other, "while true do pcall(redis.call, 'GET', 'x') end");
            let killed = Instant::now();
            assert_eq!(say(&mut other, "SCRIPT KILL"), "OK");
            for client in [&mut other, &mut third] {
                let reply = say(client, "GET k");
                if reply == BUSY {
                    // The machine is so loaded that the end was waited for in vain.
                    assert!(killed.elapsed() >= Duration::from_millis(50), "it is not waited for");
                    wait_for(client, "GET k", "v");
                } else {
                    assert_eq!(reply, "v");
                }
            }
            assert!(text(&runner.receive().unwrap()).starts_with("ERR Script killed"));
        }
    }
}

/// A batch that has come in beside a slow script has no gates, also when that ends meanwhile: a shutdown that
/// saved then would lose what others write. Here none can save, since there is no folder.
#[test]
fn a_shutdown_behind_the_kill_is_refused_where_it_would_save() {
    let folder = Scratch::new("no-gates").unwrap();
    let config = Config { worker_threads: 2, dir: folder.path().into(), ..InProcess::config() };
    let server = InProcess::start(Config { busy_reply_threshold_ms: 1, ..config });
    drop(folder);
    let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
    let mut refused = 0;
    for _ in 0..20 {
        run(&mut runner, &mut other, "while true do end");
        // One packet, which is one batch, unless the machine is so loaded that its turn is over before.
        other.send_bytes(b"SCRIPT KILL\r\nGET k\r\nSHUTDOWN SAVE\r\n").unwrap();
        let [killed, got, shut_down] = [(); 3].map(|()| text(&other.receive().unwrap()));
        assert_eq!(killed, "OK");
        assert!(got == BUSY || got.is_empty(), "{got}");
        assert!(shut_down == BUSY || shut_down.starts_with("ERR Errors trying to SHUTDOWN"), "{shut_down}");
        refused += usize::from(got == BUSY && shut_down == BUSY);
        assert!(text(&runner.receive().unwrap()).starts_with("ERR Script killed"));
    }
    assert!(refused > 0, "it saved each time");
}

#[test]
fn who_wanted_everything_before_a_script_was_slow_hears_that_it_is() {
    let server = InProcess::start(Config { worker_threads: 2, ..InProcess::config() });
    let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
    assert_eq!(say(&mut other, "CONFIG SET busy-reply-threshold 300"), "OK");
    runner.send(&["EVAL", ENDLESS, "0"]).unwrap();
    // It waits for the gates, before or after they are ajar.
    let reply = say(&mut other, "FLUSHALL");
    if reply == "OK" {
        wait_for(&mut other, "FLUSHALL", "BUSY");
    } else {
        assert_eq!(reply, BUSY);
    }
    assert_eq!(say(&mut other, "SCRIPT KILL"), "OK");
    assert!(text(&runner.receive().unwrap()).starts_with("ERR Script killed"));
}

#[test]
fn a_script_that_has_written_cannot_be_killed_and_shutdown_nosave_ends_the_server() {
    let server = server(1);
    let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
    run(&mut runner, &mut other, "redis.call('set', 'k', 'v') while true do end");
    assert!(say(&mut other, "SCRIPT KILL").starts_with("UNKILLABLE"));
    assert_eq!(say(&mut other, "GET k"), BUSY);
    other.send(&["SHUTDOWN", "NOSAVE"]).unwrap();
    assert!(other.receive().is_err(), "the connection is closed");
    assert_eq!(server.server.wait(), 0);
}

#[test]
fn a_transaction_with_a_script_is_one_step_and_can_be_killed() {
    let server = server(2);
    let (mut runner, mut other) = (server.client().unwrap(), server.client().unwrap());
    assert_eq!(say(&mut runner, "MULTI"), "OK");
    assert_eq!(text(&call(&mut runner, &["EVAL", ENDLESS, "0"])), "QUEUED");
    assert_eq!(say(&mut runner, "SET k v"), "QUEUED");
    runner.send(&["EXEC"]).unwrap();
    wait_for(&mut other, "GET k", "BUSY");
    assert_eq!(say(&mut other, "SCRIPT KILL"), "OK");
    let Value::Aggregate(b'*', replies) = runner.receive().unwrap() else { panic!("EXEC answers an array") };
    assert!(text(&replies[0]).starts_with("ERR Script killed"));
    assert_eq!(text(&replies[1]), "OK");
    assert_eq!(say(&mut other, "GET k"), "v");
    // What a client listens to does not leave its worker, so this one runs there, for so long only.
    for line in ["MULTI", "SUBSCRIBE news"] {
        call(&mut runner, &line.split(' ').collect::<Vec<&str>>());
    }
    assert_eq!(text(&call(&mut runner, &["EVAL", ENDLESS, "0"])), "QUEUED");
    let Value::Aggregate(b'*', replies) = call(&mut runner, &["EXEC"]) else {
        panic!("EXEC answers an array")
    };
    assert!(text(&replies[1]).starts_with("ERR Script killed"));
    assert_eq!(say(&mut other, "PUBLISH news x"), "1");
}

#[test]
fn a_client_that_leaves_has_its_scripts_run_and_an_endless_one_can_be_killed() {
    let server = server(1);
    let mut other = server.client().unwrap();
    let mut leaver = TcpStream::connect(server.server.addresses[0]).unwrap();
    let count = request(&["EVAL", "redis.call('incr', 'n') return redis.call('publish', 'c', 'm')", "0"]);
    leaver.write_all(&count.repeat(50)).unwrap();
    drop(leaver);
    wait_for(&mut other, "GET n", "50");
    let mut leaver = TcpStream::connect(server.server.addresses[0]).unwrap();
    leaver.write_all(&request(&["EVAL", ENDLESS, "0"])).unwrap();
    drop(leaver);
    wait_for(&mut other, "PING", "BUSY");
    assert_eq!(say(&mut other, "SCRIPT KILL"), "OK");
    wait_for(&mut other, "PING", "PONG");
}

/// Changes values of all types, old ones and new ones, and then cannot go on where it was begun.
const CHANGES: &str = "redis.call('append', 's', 'x') redis.call('rpush', 'l', 'x') redis.call('hset', 'h', 'f', 'x') \
    redis.call('sadd', 't', 'x') redis.call('zadd', 'z', 1, 'x') redis.call('xadd', 'q', '9-*', 'f', 'x') \
    redis.call('incr', 'new') redis.call('del', 'gone') redis.call('rename', 'from', 'to') \
    redis.call('expire', 's', 1000) redis.call('persist', 'v') redis.call('set', 'v', 'y') \
    redis.call('lpop', 'short') redis.call('select', 1) redis.call('incr', 'new') redis.call('select', 0) ";

/// How a script ends that has made those changes, and how often it is then lent to the thread of scripts:
/// those that are not run alone on the worker, or are done at once.
const ENDINGS: [(&str, u32); 9] = [
    ("return redis.call('publish', 'c', 'm')", 0),
    ("redis.call('move', 's', 2) redis.call('select', 2) return redis.call('move', 's', 0)", 1),
    ("local i = 0 while i < 3000000 do i = i + 1 end return i", 1),
    ("redis.log(redis.LOG_WARNING, 'x') return 1", 0),
    ("return redis.call('keys', '*')", 0),
    ("return redis.call('scan', 0)", 0),
    ("for i = 1, 20 do redis.call('get', 'undeclared' .. i) end return 1", 0),
    ("return redis.call('dbsize')", 0),
    ("return 1", 0),
];

#[test]
fn what_a_worker_takes_back_happens_once() {
    changes_happen_once(call);
}

#[test]
fn what_a_worker_takes_back_of_a_transaction_of_scripts_happens_once() {
    changes_happen_once(|client, request| {
        call(client, &["MULTI"]);
        for request in [&["EVAL", "redis.call('incrby', KEYS[1], 1) return 1", "1", "before"], request] {
            assert_eq!(text(&call(client, request)), "QUEUED");
        }
        let Value::Aggregate(b'*', mut replies) = call(client, &["EXEC"]) else { panic!("an array") };
        assert_eq!(say(client, "GET before"), "1");
        replies.remove(1)
    });
}

fn changes_happen_once(run: impl Fn(&mut RespClient, &[&str]) -> Value) {
    let server = server(2);
    let (mut client, mut listener) = (server.client().unwrap(), server.client().unwrap());
    for (ending, lent) in ENDINGS {
        // One that is done at once is lent all the same where the system takes the processor away meanwhile.
        let is_as_expected = (0..200).any(|_| {
            let times = times_lent(&mut client, &mut listener, &run, ending);
            assert!(times >= lent, "it was not lent: after {ending}");
            times == lent
        });
        assert!(is_as_expected, "never done at once: {ending}");
    }
}

/// How often the changes with this ending went to the thread of scripts, after a look at all that they have
/// caused.
fn times_lent(
    client: &mut RespClient,
    listener: &mut RespClient,
    run: impl Fn(&mut RespClient, &[&str]) -> Value,
    ending: &str,
) -> u32 {
    call(client, &["FLUSHALL"]);
    for line in [
        "SET s a",
        "RPUSH l a",
        "HSET h a 1",
        "SADD t a",
        "ZADD z 5 a",
        "XADD q 1-1 f v",
        "SET gone 1",
        "SET from 1",
        "SET v 1 EX 1000",
        "RPUSH short only",
        "CONFIG SET notify-keyspace-events KEA",
        "CONFIG RESETSTAT",
    ] {
        call(client, &line.split(' ').collect::<Vec<&str>>());
    }
    call(listener, &["PSUBSCRIBE", "__keyevent@*"]);
    let script = format!("{CHANGES}{ending}");
    let mut request = vec!["EVAL", &script, "12"];
    request.extend("new gone from to s v short l h t z q".split(' '));
    let reply = run(client, &request);
    assert!(!matches!(reply, Value::Line(b'-', _)), "{reply:?}");
    for (line, expected) in [
        ("GET s", "ax"),
        ("LLEN l", "2"),
        ("HLEN h", "2"),
        ("SCARD t", "2"),
        ("ZCARD z", "2"),
        ("XLEN q", "2"),
        ("GET new", "1"),
        ("EXISTS gone from short", "0"),
        ("GET to", "1"),
        ("TTL v", "-1"),
        ("GET v", "y"),
    ] {
        assert_eq!(say(client, line), expected, "{line} after {ending}");
    }
    assert_eq!(say(client, "SELECT 1"), "OK");
    assert_eq!(say(client, "GET new"), "1");
    assert_eq!(say(client, "SELECT 0"), "OK");
    let info = say(client, "INFO commandstats");
    assert!(info.contains("cmdstat_append:calls=1,"), "{info}");
    assert!(info.contains("cmdstat_incr:calls=2,"), "{info}");
    let lent = figure(client, "lent_scripts").parse().unwrap();
    let events = told(client, listener);
    let count = |event: &str| events.iter().filter(|told| told.ends_with(event)).count();
    for event in ["append s", "rpush l", "hset h", "sadd t", "zadd z", "xadd q", "del gone", "rename_to to"] {
        assert_eq!(count(event), 1, "{event} after {ending}: {events:?}");
    }
    lent
}

/// Also where a script is taken back, messages and events come once, and in the order in which it has caused
/// them.
#[test]
fn what_scripts_leave_in_memory_goes_by_itself() {
    let server = server(2);
    let mut client = server.client().unwrap();
    // Threads look ten times a second.
    let used = |client: &mut RespClient| {
        server.time.advance(Duration::from_millis(100));
        figure(client, "used_memory_vm_eval").parse::<u64>().unwrap()
    };
    // One that runs on the thread of scripts, and what a worker keeps of those that it runs itself.
    let long = "local t = {} for i = 1, 200000 do t[i] = string.rep('y', 100) .. i end return #t";
    assert_eq!(text(&call(&mut client, &["EVAL", long, "0"])), "200000");
    wait_until(&mut client, |client| used(client) < 4 << 20);
    for n in 0..40 {
        let script = format!("return #string.rep('{n}', 4000000)");
        let len = 4_000_000 * n.to_string().len();
        assert_eq!(text(&call(&mut client, &["EVAL", &script, "0"])), len.to_string());
    }
    wait_until(&mut client, |client| used(client) < 4 << 20);
    assert!(used(&mut client) > 0, "the interpreters are there");
    assert_eq!(say(&mut client, "SCRIPT FLUSH"), "OK");
    wait_until(&mut client, |client| used(client) == 0);
}

#[test]
fn what_a_script_publishes_comes_once_and_in_its_order_among_events() {
    let server = server(2);
    let (mut client, mut listener) = (server.client().unwrap(), server.client().unwrap());
    call(&mut client, &["CONFIG", "SET", "notify-keyspace-events", "KEA"]);
    for pattern in ["__keyevent@*", "news*"] {
        call(&mut listener, &["PSUBSCRIBE", pattern]);
    }
    let script = "local n = redis.call('publish', 'news', 'one') redis.call('incr', KEYS[1]) \
        redis.call('incr', KEYS[1]) redis.call('publish', 'other', 'nobody') \
        n = n + redis.call('publish', 'news2', 'two') redis.call('del', KEYS[1]) \
        redis.call('spublish', 'news', 'nobody') ";
    for ending in ["return n", "redis.call('move', 'none', 9) return n"] {
        let script = format!("{script}{ending}");
        for _ in 0..3 {
            assert_eq!(text(&call(&mut client, &["EVAL", &script, "1", "k"])), "2", "{ending}");
            let mut heard = || {
                let Value::Aggregate(_, parts) = listener.receive().unwrap() else { panic!("an array") };
                format!("{} {}", text(&parts[2]), text(&parts[3]))
            };
            let heard: Vec<String> = (0..5).map(|_| heard()).collect();
            let event = |name: &str| format!("__keyevent@0__:{name} k");
            let expected =
                ["news one".into(), event("incrby"), event("incrby"), "news2 two".into(), event("del")];
            assert_eq!(heard, expected, "{ending}");
        }
    }
}

/// A script that is taken back may have met what had expired before, or have written to it: that is told
/// once, whichever way it goes.
#[test]
fn what_expires_in_a_script_that_is_taken_back_is_told_once() {
    let server = server(2);
    let (mut client, mut listener) = (server.client().unwrap(), server.client().unwrap());
    say(&mut client, "DEBUG SET-ACTIVE-EXPIRE 0");
    let reads_first = "redis.call('get', 'k') redis.call('set', 'k', 1) redis.call('hget', 'h', 'f') \
        redis.call('hset', 'h', 'g', 2) redis.call('hget', 'only', 'f') ";
    let writes_first = "redis.call('append', 'k', 1) redis.call('hset', 'h', 'f', 2) redis.call('get', 'o') ";
    let mut run = |script: String| {
        say(&mut client, "CONFIG SET notify-keyspace-events KEA");
        call(&mut listener, &["PSUBSCRIBE", "__keyevent@*"]);
        for request in [
            "FLUSHALL",
            "SET k v PX 1",
            "SET o v PX 1",
            "HSET h f 1 e 1",
            "HPEXPIRE h 1 FIELDS 1 f",
            "HSET only f 1",
            "HPEXPIRE only 1 FIELDS 1 f",
            "XGROUP CREATE short g 0 MKSTREAM",
            "XGROUP CREATE long g 0 MKSTREAM",
            "PEXPIRE short 1",
        ] {
            say_whole(&mut client, request);
        }
        call(&mut client, &["EVAL", "for i = 1, 3000 do redis.call('xadd', 'long', '*', 'f', i) end", "0"]);
        server.time.advance(Duration::from_millis(5));
        assert!(matches!(call(&mut client, &["EVAL", &script, "0"]), Value::Line(b':', _)), "{script}");
        let mut events = told(&mut client, &mut listener);
        events.sort();
        events
    };
    for script in [reads_first, writes_first] {
        let expected = run(format!("{script} return 1"));
        let expired = expected.iter().filter(|event| event.contains("expired")).count();
        assert_eq!(expired, 3, "{expected:?}");
        for ending in ["redis.call('move', 'none', 9) return 1", "return redis.call('dbsize')"] {
            assert_eq!(run(format!("{script}{ending}")), expected, "{script}{ending}");
        }
    }
    // Whether it takes long is found out by looking into both streams.
    let events = run("redis.pcall('xreadgroup', 'group', 'g', 'c', 'streams', 'long', 'short', '>', '>') \
        return 1"
        .to_owned());
    assert_eq!(events.iter().filter(|event| event.ends_with(":expired short")).count(), 1, "{events:?}");
}

/// A SCAN of a script stays on the worker, unless it takes long or meets what has expired, which it removes.
#[test]
fn a_script_that_scans_stays_on_its_worker_unless_it_removes_something_or_takes_long() {
    let server = server(2);
    let (mut client, mut listener) = (server.client().unwrap(), server.client().unwrap());
    for line in ["CONFIG SET notify-keyspace-events KEA", "DEBUG SET-ACTIVE-EXPIRE 0", "SET gone v PX 5"] {
        assert_eq!(say(&mut client, line), "OK", "{line}");
    }
    let fill = "for i = 1, 50 do redis.call('set', KEYS[1] .. i, 'v') end";
    let scan = "redis.call('incr', 'n') local found, c = 0, '0' repeat local r = redis.call('scan', c, 'count', 10) \
        c = r[1] found = found + #r[2] until c == '0' return found";
    let lent = |client: &mut RespClient| figure(client, "lent_scripts").parse::<u32>().unwrap();
    call(&mut client, &["EVAL", fill, "1", "key"]);
    let before = lent(&mut client);
    for _ in 0..3 {
        assert_eq!(text(&call(&mut client, &["EVAL", scan, "0"])), "52");
    }
    // Where the system takes the processor away meanwhile it is lent all the same.
    assert!(lent(&mut client) - before < 3);
    server.time.advance(Duration::from_millis(5));
    call(&mut listener, &["PSUBSCRIBE", "__keyevent@*"]);
    assert_eq!(text(&call(&mut client, &["EVAL", scan, "0"])), "51");
    assert_eq!(say(&mut client, "DBSIZE"), "51");
    assert_eq!(say(&mut client, "GET n"), "4");
    let events = told(&mut client, &mut listener);
    assert_eq!(events, ["__keyevent@0__:incrby n", "__keyevent@0__:expired gone"]);
    // Of so many keys at once a server with assertions thinks that they take long.
    call(&mut client, &["EVAL", &fill.replace("50", "200"), "1", "other"]);
    let (before, all) = (lent(&mut client), scan.replace("10)", "1000)"));
    assert_eq!(text(&call(&mut client, &["EVAL", &all, "0"])), "251");
    assert_eq!(lent(&mut client) - before, 1);
    assert_eq!(say(&mut client, "GET n"), "5");
}

/// A table is made of all of a reply, so one that is long takes long also where it would be sent by and by.
#[test]
fn a_script_that_reads_very_much_runs_on_the_thread_of_scripts_from_the_first() {
    let server = server(1);
    let mut client = server.client().unwrap();
    let fill = "for i = 1, tonumber(ARGV[1]) do redis.call('rpush', KEYS[1], i) end";
    call(&mut client, &["EVAL", fill, "1", "list", &MANY.to_string()]);
    let read = "return #redis.call('lrange', KEYS[1], 0, ARGV[1])";
    for (last, length, times) in [("9", 10, 0), ("-1", MANY, 1)] {
        say(&mut client, "CONFIG RESETSTAT");
        assert_eq!(text(&call(&mut client, &["EVAL", read, "1", "list", last])), length.to_string());
        assert_eq!(figure(&mut client, "lent_scripts"), times.to_string());
    }
}

/// What cannot be taken back out of a log is told it once.
#[test]
fn logs_are_told_once_of_what_a_script_does_that_is_taken_back() {
    let server = server(2);
    let mut admin = server.client().unwrap();
    for request in ["CONFIG SET commandlog-reply-larger-than 1000", "ACL SETUSER u on nopass ~* +@all -incr"]
    {
        say(&mut admin, request);
    }
    say(&mut admin, &format!("SET long {}", "x".repeat(2_000)));
    let mut client = server.client().unwrap();
    say(&mut client, "AUTH u x");
    let script = "redis.call('set', KEYS[1], 1) redis.pcall('incr', KEYS[1]) local n = #redis.call('get', 'long') \
        redis.call('move', 'none', 9) return n";
    assert_eq!(text(&call(&mut client, &["EVAL", script, "1", "k"])), "2000");
    assert_eq!(say(&mut admin, "COMMANDLOG LEN large-reply"), "1");
    let Value::Aggregate(_, refusals) = say_whole(&mut admin, "ACL LOG") else { panic!("an array") };
    assert_eq!(refusals.len(), 1);
    assert_eq!(figure(&mut admin, "acl_access_denied_cmd"), "1");
}

/// The events that the listener has been told, each with its key; nobody is told any more.
fn told(client: &mut RespClient, listener: &mut RespClient) -> Vec<String> {
    call(client, &["CONFIG", "SET", "notify-keyspace-events", ""]);
    listener.send(&["PUNSUBSCRIBE"]).unwrap();
    let mut events = Vec::new();
    loop {
        let Value::Aggregate(_, parts) = listener.receive().unwrap() else { panic!("an array") };
        if text(&parts[0]) == "punsubscribe" {
            return events;
        }
        events.push(parts.iter().skip(2).map(text).collect::<Vec<String>>().join(" "));
    }
}

/// What a script has not declared is locked when it reaches for it, so others go on; only what is about all
/// keys, or very many, is not.
#[test]
fn scripts_that_reach_for_keys_run_beside_others() {
    let server = server(2);
    let mut client = server.client().unwrap();
    let reach = "local n = redis.call('incr', ARGV[1] .. ':n') redis.call('rpush', 'to' .. n, redis.call('get', 'x')) \
        redis.call('select', 3) return redis.call('incr', 'n')";
    call(&mut client, &["SET", "x", "1"]);
    for n in 1..=50 {
        assert_eq!(text(&call(&mut client, &["EVAL", reach, "1", "declared", "some"])), n.to_string());
    }
    let count = |client: &mut RespClient, name: &str| figure(client, name).parse::<u32>().unwrap();
    assert_eq!(count(&mut client, "alone_scripts"), 0);
    // One may take too long, where the system is busy.
    assert!(count(&mut client, "lent_scripts") < 10, "nor on the thread of scripts");
    assert_eq!(say(&mut client, "GET some:n"), "50");
    assert!(say(&mut client, "CLIENT INFO").contains(" db=0 "), "a script selects for itself");
    let many = "local k = {} for i = 1, 40 do k[i] = 'many:' .. i end return #redis.call('mget', unpack(k))";
    for (script, answer) in [("return redis.call('dbsize')", "52"), (many, "40")] {
        let [alone, lent] = ["alone_scripts", "lent_scripts"].map(|name| count(&mut client, name));
        assert_eq!(text(&call(&mut client, &["EVAL", script, "0"])), answer);
        let is_alone = count(&mut client, "alone_scripts") == alone + 1;
        assert!(is_alone || count(&mut client, "lent_scripts") == lent + 1, "{script}");
    }
}

/// Others hold a shard that the script reaches for after it has written, or want one that it holds: it is
/// taken back and begins anew, and what it does happens once and in one step.
#[test]
fn scripts_that_are_in_each_other_s_way_run_once_each_and_one_after_the_other() {
    const CALLS: usize = 1_000;
    let server = server(3);
    let (mut first, is_over) = (server.client().unwrap(), AtomicBool::new(false));
    call(&mut first, &[&["RPUSH", "long"][..], &["x"; 4_000]].concat());
    call(&mut first, &["CONFIG", "SET", "appendonly", "yes"]);
    // Each writes to one of two keys, then to the other, and then looks at one that is often locked.
    let script = "local n = redis.call('incr', ARGV[1]) if redis.call('incr', ARGV[2]) ~= n then return -1 end \
        redis.call('rpush', 'log', redis.call('llen', 'long') + n) return n";
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = server.client().unwrap();
            while !is_over.load(Relaxed) {
                assert_eq!(text(&call(&mut other, &["LPOS", "long", "none"])), "");
            }
        });
        let run = |names: [&str; 2]| {
            let mut client = server.client().unwrap();
            for _ in 0..CALLS {
                assert_ne!(text(&call(&mut client, &["EVAL", script, "0", names[0], names[1]])), "-1");
            }
        };
        let runners = [["left", "right"], ["right", "left"]].map(|names| scope.spawn(move || run(names)));
        runners.into_iter().for_each(|runner| runner.join().unwrap());
        is_over.store(true, Relaxed);
    });
    for (request, answer) in [("GET left", 2 * CALLS), ("GET right", 2 * CALLS), ("LLEN log", 2 * CALLS)] {
        assert_eq!(say(&mut first, request), answer.to_string());
    }
    let Value::Aggregate(_, log) = call(&mut first, &["LRANGE", "log", "0", "-1"]) else {
        panic!("an array")
    };
    let expected = (1..=2 * CALLS).map(|n| (4_000 + n).to_string());
    assert!(log.iter().map(text).eq(expected), "one after the other");
    // In the file they are in the same order.
    let digest = say(&mut first, "DEBUG DIGEST");
    assert_eq!(say(&mut first, "DEBUG LOADAOF"), "OK");
    assert_eq!(say(&mut first, "DEBUG DIGEST"), digest);
}

/// Those who wait need a shard that other workers hold much of the time, so a script often cannot serve them
/// under its own locks.
#[test]
fn a_script_serves_those_who_wait_for_its_keys_though_others_hold_the_shards_that_they_need() {
    const PUSHES: usize = 2_000;
    const KEPT: usize = 4_000;
    let server = server(3);
    let mut pusher = server.client().unwrap();
    call(&mut pusher, &[&["RPUSH", "to"][..], &["x"; KEPT]].concat());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut other = server.client().unwrap();
                while !is_over.load(Relaxed) {
                    assert_eq!(text(&call(&mut other, &["LPOS", "to", "none"])), "");
                }
            });
        }
        for number in 0..PUSHES {
            let from = format!("from{}", number % 8);
            let mut waiter = server.client().unwrap();
            waiter.send(&["BLMOVE", &from, "to", "LEFT", "RIGHT", "0"]).unwrap();
            let value = number.to_string();
            let script = "return redis.call('rpush', KEYS[1], ARGV[1])";
            call(&mut pusher, &["EVAL", script, "1", &from, &value]);
            assert_eq!(text(&waiter.receive().unwrap()), value);
        }
        is_over.store(true, Relaxed);
    });
}
