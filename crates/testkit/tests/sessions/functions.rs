//! Libraries of functions as several clients see them: a function that runs for long, one whose client has
//! left, a server that ends meanwhile; libraries without end, many of them, and payloads that are none.
use crate::lent::{figure, wait_until};
use base::random::Random;
use disk::rdb::{VERSION_WRITTEN, seal};
use server::Config;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

/// How often it is asked at most whether something has come about.
const ROUNDS: usize = 10_000_000;

/// Two workers, so that one answers while another waits. A function is slow at once.
fn server() -> InProcess {
    InProcess::start(Config { worker_threads: 2, busy_reply_threshold_ms: 1, ..InProcess::config() })
}

fn call(client: &mut RespClient, words: &[&str]) -> Value {
    client.call(words).unwrap()
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned()
}

/// The text of the answer.
fn told(client: &mut RespClient, request: &str) -> String {
    text(&call(client, &request.split(' ').collect::<Vec<_>>()))
}

fn load(client: &mut RespClient, code: &str) -> String {
    text(&call(client, &["FUNCTION", "LOAD", code]))
}

/// A library with a function of the same name.
fn library(name: &str, body: &str) -> String {
    format!("#!lua name={name}\nredis.register_function('{name}', function(keys, args) {body} end)")
}

fn parts(value: Value) -> Vec<Value> {
    match value {
        Value::Aggregate(_, parts) => parts,
        other => panic!("{other:?}"),
    }
}

/// A function that runs for long: its name, and the words that have called it.
type Slow = (String, Vec<String>);

/// What FUNCTION STATS tells: what runs, and how many libraries and functions there are.
fn stats(client: &mut RespClient) -> (Option<Slow>, (String, String)) {
    let mut all = parts(call(client, &["FUNCTION", "STATS"]));
    let engine = parts(parts(all.swap_remove(3)).swap_remove(1));
    let running = match all.swap_remove(1) {
        Value::Aggregate(_, running) => {
            let command = parts(running[3].clone()).iter().map(text).collect();
            Some((text(&running[1]), command))
        }
        _ => None,
    };
    (running, (text(&engine[1]), text(&engine[3])))
}

/// Asks until a function runs for long.
fn await_slow(client: &mut RespClient) -> Slow {
    (0..ROUNDS).find_map(|_| stats(client).0).expect("a function runs")
}

const BUSY: &str = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// Sends a call that does not end.
fn spin(server: &InProcess, words: &[&str]) -> RespClient {
    let mut client = server.client().unwrap();
    client.send(words).unwrap();
    client
}

#[test]
fn a_function_that_runs_for_long_is_shown_and_killed() {
    let server = server();
    let (mut observer, mut other) = (server.client().unwrap(), server.client().unwrap());
    load(&mut observer, &library("spin", "while true do end"));
    let mut waiting = spin(&server, &["FCALL", "Spin", "1", "k", "two words"]);
    let command = ["FCALL", "Spin", "1", "k", "two words"].map(str::to_string).to_vec();
    assert_eq!(await_slow(&mut observer), ("spin".to_string(), command));
    for refused in [
        "GET k",
        "FUNCTION LIST",
        "FUNCTION LOAD x",
        "FUNCTION HELP",
        "FCALL spin 0",
        "EVAL return 0",
        "SCRIPT KILL",
    ] {
        assert_eq!(told(&mut other, refused), BUSY, "{refused}");
    }
    assert_eq!(told(&mut other, "FUNCTION KILL"), "OK");
    let killed = "ERR Script killed by user with SCRIPT KILL... script: spin, on @user_function:2.";
    assert_eq!(text(&waiting.receive().unwrap()), killed);
    assert_eq!(stats(&mut observer).0, None);
    assert_eq!(told(&mut waiting, "FUNCTION KILL"), "NOTBUSY No scripts in execution right now.");
    assert_eq!(told(&mut waiting, "SET k v"), "OK");
}

#[test]
fn functions_and_scripts_are_killed_by_their_own_commands() {
    let server = server();
    let mut observer = server.client().unwrap();
    let script = "redis.call('ping') while true do end";
    let mut waiting = spin(&server, &["EVAL", script, "0"]);
    let busy = BUSY.replace("FUNCTION", "SCRIPT");
    let is_busy = (0..ROUNDS).any(|_| told(&mut observer, "GET k") == busy);
    assert!(is_busy);
    assert_eq!(told(&mut observer, "FUNCTION KILL"), busy);
    assert_eq!(told(&mut observer, "FUNCTION STATS"), busy);
    assert_eq!(told(&mut observer, "SCRIPT KILL"), "OK");
    assert!(text(&waiting.receive().unwrap()).starts_with("ERR Script killed by user with SCRIPT KILL... "));
}

#[test]
fn a_function_that_has_written_is_ended_with_the_server_only() {
    let server = server();
    let mut observer = server.client().unwrap();
    load(&mut observer, &library("spin", "redis.call('set', keys[1], 1) while true do end"));
    let mut waiting = spin(&server, &["FCALL", "spin", "1", "k"]);
    await_slow(&mut observer);
    for kill in ["FUNCTION KILL", "SCRIPT KILL"] {
        assert!(told(&mut observer, kill).starts_with("UNKILLABLE "), "{kill}");
    }
    assert!(stats(&mut observer).0.is_some());
    observer.send(&["SHUTDOWN", "NOSAVE"]).unwrap();
    assert!(observer.receive().is_err(), "the connection ends without an answer");
    assert!(waiting.receive().is_err());
}

#[test]
fn the_function_of_a_client_that_has_left_goes_on_until_it_is_killed() {
    let server = server();
    let mut observer = server.client().unwrap();
    load(&mut observer, &library("spin", "while true do end"));
    let waiting = spin(&server, &["FCALL", "spin", "0"]);
    await_slow(&mut observer);
    drop(waiting);
    await_slow(&mut observer);
    assert_eq!(told(&mut observer, "FUNCTION KILL"), "OK");
    // It ends when it is asked next, and nobody is told.
    let answer = (0..ROUNDS)
        .map(|_| told(&mut observer, "FUNCTION DELETE spin"))
        .find(|told| !told.starts_with("BUSY "));
    assert_eq!(answer.as_deref(), Some("OK"));
    assert_eq!(told(&mut observer, "SET k v"), "OK");
}

#[test]
fn a_library_whose_code_does_not_end_is_not_loaded_and_nothing_is_lost() {
    let server = server();
    let mut client = server.client().unwrap();
    load(&mut client, &library("a", "return 1"));
    let endless = "#!lua name=a\nredis.register_function('b', function() end) while true do end";
    let refused = "ERR Error registering functions: ERR FUNCTION LOAD timeout";
    assert_eq!(text(&call(&mut client, &["FUNCTION", "LOAD", "REPLACE", endless])), refused);
    let payload = [&b"\xF5\x40"[..], &[endless.len() as u8], endless.as_bytes()].concat();
    let payload = seal(payload, VERSION_WRITTEN);
    let restored = client.call(&[&b"FUNCTION"[..], b"RESTORE", &payload, b"FLUSH"]).unwrap();
    assert_eq!(text(&restored), refused);
    assert_eq!(told(&mut client, "FCALL a 0"), "1");
    assert_eq!(told(&mut client, "FCALL b 0"), "ERR Function not found");
}

#[test]
fn a_thousand_libraries_are_kept_over_a_reload_and_go_with_a_flush() {
    let server = server();
    let mut client = server.client().unwrap();
    for n in 0..1_000 {
        let name = format!("l{n}");
        assert_eq!(load(&mut client, &library(&name, &format!("return {n}"))), name);
    }
    for _ in 0..2 {
        assert_eq!(stats(&mut client).1, ("1000".into(), "1000".into()));
        for n in (0..1_000).step_by(37) {
            assert_eq!(told(&mut client, &format!("FCALL L{n} 0")), n.to_string());
        }
        assert_eq!(told(&mut client, "DEBUG RELOAD"), "OK");
    }
    let dump = call(&mut client, &["FUNCTION", "DUMP"]);
    assert_eq!(told(&mut client, "FUNCTION FLUSH"), "OK");
    assert_eq!(stats(&mut client).1, ("0".into(), "0".into()));
    // Workers end their interpreters ten times a second.
    server.time.advance(std::time::Duration::from_millis(200));
    wait_until(&mut client, |client| {
        let info = told(client, "INFO memory");
        let gone = ["number_of_functions", "used_memory_functions", "used_memory_vm_functions"];
        gone.iter().all(|gone| info.contains(&format!("\r\n{gone}:0\r\n")))
    });
    let restored = client.call(&[b"FUNCTION", &b"RESTORE"[..], dump.text().unwrap()]).unwrap();
    assert_eq!(text(&restored), "OK");
    assert_eq!(stats(&mut client).1, ("1000".into(), "1000".into()));
}

/// What a worker runs itself: libraries without variables that change, whose functions take no time.
const STATELESS: [&str; 4] = [
    "local function up(key) return redis.call('INCR', key) end \
     redis.register_function('f', function(keys) return up(keys[1]) end)",
    "local by, name = 1, 'INCRBY' \
     redis.register_function('f', function(keys, args) local n = by n = n + 0 return redis.call(name, keys[1], n) end)",
    "redis.register_function{function_name='f', callback=function() return redis.call('INCR', 'undeclared') end}",
    "local function each(list, use) for _, one in ipairs(list) do use(one) end end \
     redis.register_function('f', function(keys) \
         local n = 0 each(keys, function(k) n = redis.call('INCR', k) end) return n end)",
];
/// The others are run where their variables are.
const STATEFUL: [&str; 4] = [
    "local n = 0 redis.register_function('f', function() n = n + 1 return n end)",
    "local seen = {n=0} redis.register_function('f', function() seen.n = seen.n + 1 return seen.n end)",
    "local function counter() local n = 0 return function() n = n + 1 return n end end \
     local next = counter() redis.register_function('f', function() return next() end)",
    "local n = 0 local function up() n = n + 1 end local function show() up() return n end \
     redis.register_function('f', function() return show() end)",
];

/// Two clients of two workers call the same function by turns, and it counts.
#[test]
fn functions_without_variables_run_on_workers_and_others_where_those_are() {
    const CALLS: u64 = 200;
    for (libraries, is_lent) in [(STATELESS, false), (STATEFUL, true)] {
        for code in libraries {
            let server = InProcess::start(Config { worker_threads: 2, ..InProcess::config() });
            let (mut one, mut other) = (server.client().unwrap(), server.client().unwrap());
            load(&mut one, &format!("#!lua name=l\n{code}"));
            let before: u64 = figure(&mut one, "lent_scripts").parse().unwrap();
            for n in 1..=CALLS {
                let client = if n % 3 == 0 { &mut one } else { &mut other };
                assert_eq!(told(client, "FCALL f 1 key"), n.to_string(), "{code}");
            }
            let lent: u64 = figure(&mut one, "lent_scripts").parse().unwrap();
            // The restless mode gives up what workers run, now and then.
            assert_eq!(lent - before == CALLS, is_lent, "{code}");
        }
    }
}

/// A library of this version, whose function answers with it: run by workers, or where its variables are.
fn versioned(version: u64) -> String {
    let (variable, body) = match version % 3 {
        0 => (format!("local v = {version}"), "return v".to_owned()),
        1 => ("local n = 0".to_owned(), format!("n = n + 1 return {version}")),
        _ => (String::new(), format!("return {version}")),
    };
    let function = format!("function(keys) redis.call('INCR', keys[1]) {body} end");
    format!("#!lua name=v\n{variable} redis.register_function('v', {function})")
}

/// While libraries are replaced, deleted and flushed a call is of one that was there since it was sent, is
/// answered with an error if there was none, and has happened once if it is answered.
#[test]
fn a_call_is_of_the_library_that_is_there_whoever_runs_it() {
    const VERSIONS: u64 = 150;
    let server = InProcess::start(Config { worker_threads: 3, ..InProcess::config() });
    let (oldest, newest, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let call_and_count = &|key: &str| {
        let (mut client, mut answered) = (server.client().unwrap(), 0);
        while !is_over.load(SeqCst) {
            let from = oldest.load(SeqCst);
            let reply = told(&mut client, &format!("FCALL v 1 {key}"));
            match reply.parse::<u64>() {
                Ok(version) => {
                    assert!((from..=newest.load(SeqCst)).contains(&version), "{version} from {from} on");
                    answered += 1;
                }
                Err(_) => assert_eq!(reply, "ERR Function not found"),
            }
        }
        assert_eq!(told(&mut client, &format!("GET {key}")).parse().unwrap_or(0), answered);
    };
    std::thread::scope(|scope| {
        for key in ["a", "b", "c"] {
            scope.spawn(move || call_and_count(key));
        }
        let mut client = server.client().unwrap();
        for version in 1..=VERSIONS {
            match version % 10 {
                3 => drop(call(&mut client, &["FUNCTION", "FLUSH"])),
                7 => drop(call(&mut client, &["FUNCTION", "DELETE", "v"])),
                _ => {}
            }
            newest.store(version, SeqCst);
            assert_eq!(text(&call(&mut client, &["FUNCTION", "LOAD", "REPLACE", &versioned(version)])), "v");
            oldest.store(version, SeqCst);
        }
        is_over.store(true, SeqCst);
    });
}

#[test]
fn variables_of_a_library_last_until_it_is_loaded_again() {
    let server = server();
    let mut client = server.client().unwrap();
    let count = "#!lua name=n\nlocal n = 0 redis.register_function('n', function() n = n + 1 return n end)";
    let next = |client: &mut RespClient| told(client, "FCALL n 0");
    load(&mut client, count);
    assert_eq!((next(&mut client), next(&mut client)), ("1".into(), "2".into()));
    load(&mut client, &library("other", "return 1"));
    call(&mut client, &["FUNCTION", "LOAD", "REPLACE", "#!lua name=n\nnothing()"]);
    let dump = call(&mut client, &["FUNCTION", "DUMP"]);
    assert_eq!(next(&mut client), "3", "nothing of this has changed it");
    for words in [&["FUNCTION", "LOAD", "REPLACE", count][..], &["DEBUG", "RELOAD"]] {
        call(&mut client, words);
        assert_eq!((next(&mut client), next(&mut client)), ("1".into(), "2".into()), "{words:?}");
    }
    for policy in ["REPLACE", "FLUSH"] {
        let restore = [b"FUNCTION", &b"RESTORE"[..], dump.text().unwrap(), policy.as_bytes()];
        assert_eq!(text(&client.call(&restore).unwrap()), "OK");
        assert_eq!((next(&mut client), next(&mut client)), ("1".into(), "2".into()), "{policy}");
    }
}

#[test]
fn a_transaction_that_subscribes_calls_functions_and_changes_libraries_too() {
    let server = InProcess::start(Config { worker_threads: 2, ..InProcess::config() });
    let mut client = server.client().unwrap();
    load(&mut client, &library("a", "return redis.call('incr', keys[1])"));
    assert_eq!(told(&mut client, "FCALL a 1 n"), "1");
    call(&mut client, &["MULTI"]);
    call(&mut client, &["SUBSCRIBE", "c"]);
    call(&mut client, &["FCALL", "a", "1", "n"]);
    call(&mut client, &["FUNCTION", "LOAD", "REPLACE", &library("a", "return 7")]);
    call(&mut client, &["FCALL", "a", "0"]);
    let replies = parts(call(&mut client, &["EXEC"]));
    assert_eq!(replies[1..].iter().map(text).collect::<Vec<_>>(), ["2", "a", "7"]);
    let mut other = server.client().unwrap();
    assert_eq!((told(&mut other, "FCALL a 0"), told(&mut other, "GET n")), ("7".into(), "2".into()));
}

#[test]
fn code_that_is_nested_deeply_is_loaded_from_a_file_too() {
    let server = server();
    let mut client = server.client().unwrap();
    let nested = format!("return {}1{}", "(".repeat(180), ")".repeat(180));
    assert_eq!(load(&mut client, &library("deep", &nested)), "deep");
    assert_eq!(told(&mut client, "DEBUG RELOAD"), "OK");
    assert_eq!(told(&mut client, "FCALL deep 0"), "1");
}

#[test]
fn restoring_any_bytes_changes_all_libraries_or_none() {
    let server = server();
    let mut client = server.client().unwrap();
    for name in ["a", "b", "c"] {
        load(&mut client, &library(name, "return {1, 'x'}"));
    }
    let whole = call(&mut client, &["FUNCTION", "DUMP"]).text().unwrap().to_vec();
    let body = &whole[..whole.len() - 10];
    let mut random = Random::new(3);
    let (mut restored, mut refused) = (0, 0);
    for round in 0..3_000 {
        let mut bytes = body.to_vec();
        for _ in 0..=random.below(2) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let policy = ["APPEND", "REPLACE", "FLUSH"][random.below(3) as usize];
        let before = call(&mut client, &["FUNCTION", "LIST", "WITHCODE"]);
        let payload = seal(bytes, VERSION_WRITTEN);
        let restore = [b"FUNCTION", &b"RESTORE"[..], &payload, policy.as_bytes()];
        match text(&client.call(&restore).unwrap()).as_str() {
            "OK" => restored += 1,
            why => {
                refused += 1;
                let after = call(&mut client, &["FUNCTION", "LIST", "WITHCODE"]);
                assert_eq!(after, before, "round {round}: {why}");
            }
        }
    }
    assert!(restored > 0 && refused > 1_000, "{restored} restored, {refused} refused");
}
