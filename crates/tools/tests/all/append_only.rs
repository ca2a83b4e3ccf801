//! The append-only file and the process: kills under load, a disk that takes no more, files of redis-server
//! and for it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use base::random::Random;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use testkit::kills::{Keep, Options, run};
use testkit::redis_server::skip_without;
use testkit::resp_client::request;

/// How often a server is killed. `cargo xtask kills` does so for long.
const KILLS: u64 = 12;

#[allow(clippy::disallowed_macros, reason = "a run tells its figures")]
fn survives_kills(keep: Keep) {
    let options = Options {
        server: vec![env!("CARGO_BIN_EXE_sardine").into()],
        kills: KILLS,
        keep,
        workers: 3,
        seed: u64::from(std::process::id()),
        is_large: false,
    };
    match run(&options) {
        Ok(report) => println!("{keep:?}: {report}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_was_acknowledged_with_always_survives_kills() {
    survives_kills(Keep::Always);
}

#[test]
fn what_was_acknowledged_with_everysec_survives_kills() {
    survives_kills(Keep::EverySecond);
}

#[test]
fn what_was_saved_survives_kills() {
    survives_kills(Keep::Dump);
}

#[test]
fn a_kill_while_the_file_begins_anew_loses_nothing_and_the_next_start_clears_up() {
    let mut home = Home::new("kill-rewrite");
    let options = ["--save", "", "--appendonly", "yes"];
    home.start(&options);
    let begun = home.told("DEBUG POPULATE 5000\r\nSET a 1\r\nBGREWRITEAOF");
    assert!(begun.contains("started"), "{begun}");
    home.wait_for_info("aof_rewrites:1\r\n");
    home.wait_for_info("aof_rewrite_in_progress:0\r\n");
    let slow = home.told("CONFIG SET rdb-key-save-delay 10000\r\nBGREWRITEAOF");
    assert!(slow.contains("started"), "{slow}");
    home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
    // It goes to the next increment, of which the base is not written.
    assert_eq!(home.told("SET a 2\r\nSET b 2\r\nWAITAOF 1 0 0").matches("+OK").count(), 3);
    home.signal("-KILL");
    home.end();
    assert_eq!(home.left_over(), 1);
    home.start(&options);
    assert_eq!(home.left_over(), 0);
    assert_eq!(home.told("GET a\r\nGET b\r\nDBSIZE"), "$1\r\n2\r\n$1\r\n2\r\n:5002\r\n+OK\r\n");
}

#[test]
fn a_server_whose_file_was_asked_for_and_has_nothing_yet_does_not_end() {
    let mut home = Home::new("begins");
    home.start(&["--save", ""]);
    home.told("DEBUG POPULATE 3000\r\nCONFIG SET rdb-key-save-delay 10000");
    for _ in 0..5 {
        let found = home.told("CONFIG SET appendonly yes\r\nSHUTDOWN");
        assert!(found.contains("-ERR Errors trying to SHUTDOWN"), "{found}");
        home.told("CONFIG SET appendonly no");
        home.wait_for_info("aof_enabled:0\r\n");
    }
}

#[test]
fn the_file_follows_the_working_directory_when_it_begins_anew() {
    let mut home = Home::new("follows");
    let other = home.path.join("other").display().to_string();
    std::fs::create_dir(&other).unwrap();
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    home.start(&[&options[..], &["--enable-protected-configs", "local"]].concat());
    assert_eq!(home.told("RPUSH l 1").as_str(), ":1\r\n+OK\r\n");
    assert_eq!(home.told(&format!("CONFIG SET dir {other}\r\nRPUSH l 2")), "+OK\r\n:2\r\n+OK\r\n");
    assert!(!home.path.join("other/appendonlydir").exists());
    assert!(home.told("BGREWRITEAOF").contains("started"));
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.told("RPUSH l 3"), ":3\r\n+OK\r\n");
    home.signal("-KILL");
    home.end();
    home.start(&options);
    assert_eq!(home.told("LLEN l"), ":2\r\n+OK\r\n");
    home.signal("-KILL");
    home.end();
    let absolute = |name: &str| home.path.join(name).display().to_string();
    let (socket, log) = (absolute("s"), absolute("log"));
    home.start(&[&options[..], &["--dir", &other, "--unixsocket", &socket, "--logfile", &log]].concat());
    assert_eq!(home.told("LLEN l"), ":3\r\n+OK\r\n");
}

#[test]
fn a_disk_that_takes_no_more_refuses_writes_and_loses_nothing() {
    for sync in ["always", "everysec"] {
        let mut home = Home::new("full");
        home.start(&["--save", "", "--appendonly", "yes", "--appendfsync", sync]);
        let pid = home.child_id();
        let limit = |bytes: &str| {
            let option = format!("--fsize={bytes}:");
            let status = Command::new("prlimit").args(["--pid", &pid, &option]).status();
            assert!(status.unwrap().success());
        };
        assert_eq!(home.told("RPUSH l 1"), ":1\r\n+OK\r\n");
        limit("3000");
        // Some fit; with `always` the reply to the first that does not is kept until it does.
        let mut stream = UnixStream::connect(home.path.join("s")).unwrap();
        for number in 2..200 {
            stream.write_all(format!("RPUSH l {number}\r\n").as_bytes()).unwrap();
        }
        home.wait_for_info("aof_last_write_status:err\r\n");
        home.wait_for("refusal", |home| {
            let told = home.told("RPUSH other 1\r\nGET nothing\r\nPING");
            let refused = "-MISCONF Errors writing to the AOF file: File too large\r\n";
            (told == format!("{refused}$-1\r\n{refused}+OK\r\n")).then_some(())
        });
        limit("unlimited");
        home.wait_for_info("aof_last_write_status:ok\r\n");
        stream.write_all(b"QUIT\r\n").unwrap();
        let replies = BufReader::new(stream).lines().map_while(Result::ok);
        let acknowledged = 1 + replies.filter(|line| line.starts_with(':')).count();
        assert!(acknowledged > 1, "{sync}");
        assert!(home.log().contains("AOF write error looks solved"), "{}", home.log());
        home.wait_for_info("aof_pending_bio_fsync:0\r\n");
        let len = home.told("LLEN l\r\nDEL other");
        home.signal("-KILL");
        home.end();
        home.start(&["--save", "", "--appendonly", "yes"]);
        assert_eq!(home.told("LLEN l\r\nDEL other"), len, "{sync}");
        assert!(len.starts_with(&format!(":{acknowledged}\r\n")), "{sync}: {len}, {acknowledged}");
    }
}

/// Commands of all types, as lines.
fn mixed(random: &mut Random, count: usize) -> String {
    let mut lines = String::new();
    for _ in 0..count {
        let (key, a, b) = (random.below(20), random.below(50), random.below(1000));
        let line = match random.below(12) {
            0 => format!("SET s{key} {b}"),
            1 => format!("APPEND s{key} {a}"),
            2 => format!("RPUSH l{key} {a} {b}"),
            3 => format!("LPOP l{key}"),
            4 => format!("HSET h{key} f{a} {b}"),
            5 => format!("SADD t{key} {a} m{b}"),
            6 => format!("SPOP t{key}"),
            7 => format!("ZADD z{key} {b} m{a}"),
            8 => format!("XADD x{key} * f {b}"),
            9 => format!("EXPIRE s{key} 1000"),
            10 => format!("INCRBYFLOAT n{key} 0.1"),
            _ => format!("DEL l{key}"),
        };
        lines.push_str(&line);
        lines.push_str("\r\n");
    }
    lines
}

/// The digest of the data, once it is loaded: while it loads, redis-server 7.0 answers with another.
fn digest_of(port: u16) -> String {
    for _ in 0..6000 {
        let info = ask_port(port, "INFO persistence\r\nQUIT\r\n").unwrap_or_default();
        if info.contains("\r\nloading:0\r\n") {
            return ask_port(port, "DEBUG DIGEST\r\nQUIT\r\n").unwrap();
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    panic!("it does not load the files");
}

fn ask_port(port: u16, lines: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(lines.as_bytes()).ok()?;
    std::io::read_to_string(stream).ok()
}

#[test]
fn redis_server_loads_our_files_and_we_load_those_of_redis_server() {
    if Command::new("redis-server").arg("--version").output().is_err() {
        return skip_without("redis-server");
    }
    let mut home = Home::new("peer");
    let mut random = Random::new(7);
    let options = ["--save", "", "--appendonly", "yes"];
    home.start(&options);
    home.told(&mixed(&mut random, 500));
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    home.told(&mixed(&mut random, 500));
    let ours = home.told("DEBUG DIGEST");
    home.ask("SHUTDOWN\r\n");
    assert_eq!(home.end(), Some(0));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("redis-server");
    command.current_dir(&home.path).stdout(Stdio::null()).args(["--port", &port.to_string()]);
    command.args(options).args(["--enable-debug-command", "local", "--bind", "127.0.0.1"]);
    let mut peer = command.spawn().unwrap();
    let theirs = digest_of(port);
    assert_eq!(theirs, ours, "it has what we had");
    ask_port(port, &format!("{}QUIT\r\n", mixed(&mut random, 500)));
    let theirs = digest_of(port);
    ask_port(port, "SHUTDOWN\r\n");
    assert!(peer.wait().unwrap().success());
    home.start(&options);
    assert_eq!(home.told("DEBUG DIGEST"), theirs, "we have what it had: {}", home.log());
}

/// A redis-server that goes on with the append-only file in this folder.
struct RedisServer<'h> {
    home: &'h Home,
    child: Child,
}

impl RedisServer<'_> {
    fn start<'h>(program: &str, home: &'h Home, options: &[&str]) -> Option<RedisServer<'h>> {
        let mut command = Command::new(program);
        command.current_dir(&home.path).stdout(Stdio::null()).args(options);
        command.args(["--port", "0", "--unixsocket", "peer", "--enable-debug-command", "local"]);
        let server = RedisServer { home, child: command.spawn().ok()? };
        home.wait_for("peer", |_| {
            server.ask("INFO persistence").filter(|info| info.contains("\r\nloading:0"))
        });
        Some(server)
    }

    fn ask(&self, lines: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.home.path.join("peer")).ok()?;
        stream.write_all(format!("{lines}\r\nQUIT\r\n").as_bytes()).ok()?;
        std::io::read_to_string(stream).ok()
    }

    fn told(&self, lines: &str) -> String {
        self.ask(lines).unwrap()
    }

    fn rewrite(&self) {
        self.told("BGREWRITEAOF");
        self.home.wait_for("rewrite", |_| {
            let info = self.told("INFO persistence");
            let is_done =
                info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0");
            is_done.then_some(())
        });
    }

    fn stop(mut self) {
        self.ask("SHUTDOWN");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for RedisServer<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a base of commands has to make.
const GROUPS: &str = "XGROUP CREATE read g 0 MKSTREAM\r\nXADD read 5-5 a b\r\nXADD read 6-6 a b\r\n\
    XREADGROUP GROUP g reader COUNT 1 STREAMS read >\r\nXGROUP CREATECONSUMER read g idle\r\n\
    XGROUP CREATE empty g $ MKSTREAM\r\nSET late v PXAT 33000000000000\r\nZADD z -inf a inf b 2.5 c\r\n\
    SELECT 3\r\nSET other 1\r\nSELECT 0";
/// And where the peer is of the version whose digests and commands ours are.
const OF_8: &str =
    "HSET timed a 1 b 2 c 3\r\nHPEXPIREAT timed 33000000000000 FIELDS 2 a b\r\nZADD z 1e300 d 0.1 e";
const LIBRARY: &str =
    "FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('f', function() return 1 end)\"";
const LOOK: &str = "DEBUG DIGEST\r\nXPENDING read g\r\nXPENDING empty g\r\nPEXPIRETIME late";

#[test]
fn a_file_of_commands_alone_goes_from_server_to_server_and_back() {
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/redis-8.0.2/redis-server");
    for program in ["redis-server", unpacked] {
        let mut home = Home::new("commands");
        if Command::new(program).arg("--version").output().is_err() {
            // Not every machine has the unpacked one, and none must.
            if program != unpacked {
                skip_without(program);
            }
            continue;
        }
        let mut random = Random::new(11);
        let options = ["--save", "", "--appendonly", "yes", "--aof-use-rdb-preamble", "no"];
        home.start(&options);
        home.told(&mixed(&mut random, 3000));
        home.told(GROUPS);
        if program == unpacked {
            home.told(OF_8);
        }
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_rewrites:1\r\n");
        assert!(home.path.join("appendonlydir/appendonly.aof.1.base.aof").exists());
        let ours = home.told(LOOK);
        home.ask("SHUTDOWN\r\n");
        assert_eq!(home.end(), Some(0));

        let peer = RedisServer::start(program, &home, &options).unwrap();
        assert_eq!(peer.told(LOOK), ours, "it has what we had");
        peer.told(&format!("{LIBRARY}\r\n{}", mixed(&mut random, 3000)));
        peer.rewrite();
        peer.told(&mixed(&mut random, 100));
        let theirs = peer.told(LOOK);
        peer.stop();

        home.start(&options);
        assert_eq!(home.told(LOOK), theirs, "we have what it had: {}", home.log());
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_rewrites:1\r\n");
        home.signal("-KILL");
        home.end();
        home.start(&options);
        assert_eq!(home.told(LOOK), theirs, "{}", home.log());
        home.ask("SHUTDOWN\r\n");
        home.end();

        let peer = RedisServer::start(program, &home, &options).unwrap();
        assert_eq!(peer.told(LOOK), theirs);
        assert!(peer.told("FUNCTION LIST").contains("library_name"), "libraries are kept");
        peer.stop();
    }
}

/// Redis before 5 wrote EVAL itself. It was not refused when it was run first.
#[test]
fn neither_memory_nor_time_keeps_a_script_of_a_file_from_running() {
    let mut home = Home::new("script-of-file");
    let script =
        "redis.call('SET', 'x', string.rep('x', 100000)) for i = 1, 1000000 do end redis.call('SET', 'y', 1)";
    let promising = "#!lua\nredis.call('SET', 'z', 1)";
    let file = [script, script, promising].map(|script| request(&["EVAL", script, "0"])).concat();
    std::fs::write(home.path.join("appendonly.aof"), file).unwrap();
    home.start(&["--save", "", "--appendonly", "yes", "--maxmemory", "1", "--busy-reply-threshold", "1"]);
    assert_eq!(
        home.told("STRLEN x\r\nGET y\r\nGET z\r\nSLOWLOG LEN"),
        ":100000\r\n$1\r\n1\r\n$1\r\n1\r\n:0\r\n+OK\r\n"
    );
}

#[test]
fn a_script_of_a_file_that_does_not_end_keeps_neither_clients_nor_signals_waiting() {
    let mut home = Home::new("endless-script-of-file");
    let file = request(&["EVAL", "redis.call('SET', 'x', 1) while true do end", "0"]);
    std::fs::write(home.path.join("appendonly.aof"), &file).unwrap();
    home.launch(&["--save", "", "--appendonly", "yes", "--busy-reply-threshold", "10"]);
    home.wait_for("answer", |home| home.ask("GET x\r\nQUIT\r\n")?.starts_with("-LOADING").then_some(()));
    home.signal("-TERM");
    home.end();
    assert_eq!(std::fs::read(home.path.join("appendonlydir/appendonly.aof")).unwrap(), file);
}

/// Nothing is evicted between two requests of a transaction: the removal would stand in the file before what
/// the transaction has written, and what was evicted would be there again.
#[test]
fn what_is_evicted_after_a_transaction_with_a_script_does_not_come_back() {
    const KEYS: usize = 3000;
    let mut options = vec!["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    options.extend(["--maxmemory-policy", "allkeys-random", "--worker-threads", "2", "--maxmemory", "6mb"]);
    let mut home = Home::new("evicted-in-exec");
    home.start(&options);
    let mut set = vec!["MSET".to_owned()];
    (0..KEYS).for_each(|n| set.extend([format!("key{n}"), "v".repeat(n % 90)]));
    let set = String::from_utf8(request(&set)).unwrap();
    let script = String::from_utf8(request(&["EVAL", "return redis.call('incr', 'count')", "0"])).unwrap();
    for round in 0..6 {
        // So few bytes of a request bring a megabyte.
        let grow = format!("SETRANGE big{round} 1000000 x");
        let told = home.told(&format!("MULTI\r\n{set}{grow}\r\n{script}EXEC"));
        assert!(told.contains("*3\r\n+OK\r\n:1000001\r\n:"), "{told}");
    }
    home.told("CONFIG SET maxmemory 0");
    assert!(!home.told("INFO stats").contains("evicted_keys:0\r\n"));
    let digest = home.told("DEBUG DIGEST");
    home.signal("-KILL");
    home.end();
    options.truncate(options.len() - 2);
    home.start(&options);
    assert_eq!(home.told("DEBUG DIGEST"), digest);
}

/// A dump at the beginning of the file says how long ago each key was used, and so does RESTORE behind it.
#[test]
fn when_keys_were_used_is_known_after_a_start_from_the_file() {
    const KEYS: usize = 40;
    let options = ["--save", "", "--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"];
    let mut home = Home::new("idle-times");
    home.start(&options);
    // DUMP of the integer 1.
    let payload = "\"\\x00\\xc0\\x01\\n\\x00&x\\xe7\\xb6\\xd1\\x01\\x11\\xfc\"";
    let keys = || (0..KEYS).map(|n| (n, n % 5 * 1000));
    let restore = |(n, idle): (usize, usize)| format!("RESTORE key{n} 0 {payload} IDLETIME {idle}\r\n");
    assert_eq!(home.told(&keys().map(restore).collect::<String>()), "+OK\r\n".repeat(KEYS) + "+OK\r\n");
    // A key that is restored while uses are put in order may count as used now.
    let are_known = |home: &Home| {
        let told = home.told(&keys().map(|(n, _)| format!("OBJECT IDLETIME key{n}\r\n")).collect::<String>());
        let idle: Vec<usize> = told.lines().filter_map(|line| line.strip_prefix(':')?.parse().ok()).collect();
        let known = keys().zip(&idle).filter(|((_, then), now)| now.abs_diff(*then) <= 100 + then / 4);
        assert!(known.count() >= KEYS * 3 / 4, "{idle:?}");
    };
    are_known(&home);
    for _ in ["increment", "base"] {
        home.ask("SHUTDOWN\r\n");
        home.end();
        home.start(&options);
        are_known(&home);
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_rewrites:1\r\n");
    }
}
