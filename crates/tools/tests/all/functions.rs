//! Libraries of functions and the disk: in dump files and append-only files, over kills, to redis-server and
//! back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::process::{Child, Command, Stdio};
use testkit::redis_server::skip_without;

/// Where `cargo xtask peers` puts the version that is the specification.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/redis-8.0.2/redis-server");

/// Loads a library with one function of the same name, which returns this.
fn load(name: &str, value: u32) -> String {
    format!(
        "FUNCTION LOAD REPLACE \"#!lua name={name}\\nredis.register_function{{function_name='{name}', \
         callback=function(keys) redis.call('set', 'by', '{name}') return {value} end, \
         description='of {name}', flags={{'allow-oom'}}}}\""
    )
}

const FOUND: &str = "FCALL a 0\r\nFCALL b 0\r\nFCALL c 0\r\nFUNCTION STATS";

/// What [`FOUND`] finds: these values.
fn found(values: [u32; 3]) -> String {
    let count = values.iter().filter(|value| **value > 0).count();
    let called = values.map(|value| match value {
        0 => "-ERR Function not found\r\n".to_string(),
        value => format!(":{value}\r\n"),
    });
    let counts = format!("$15\r\nlibraries_count\r\n:{count}\r\n$15\r\nfunctions_count\r\n:{count}\r\n");
    let stats =
        format!("*4\r\n$14\r\nrunning_script\r\n$-1\r\n$7\r\nengines\r\n*2\r\n$3\r\nLUA\r\n*4\r\n{counts}");
    format!("{}{stats}+OK\r\n", called.concat())
}

fn kill(home: &mut Home) {
    home.signal("-KILL");
    home.end();
}

#[test]
fn libraries_are_in_dump_files() {
    let mut home = Home::new("functions-dump");
    home.start(&["--save", ""]);
    let before =
        home.told(&format!("{}\r\n{}\r\nSET k v\r\nSAVE\r\n{}", load("a", 1), load("b", 2), load("c", 3)));
    assert_eq!(before, "$1\r\na\r\n$1\r\nb\r\n+OK\r\n+OK\r\n$1\r\nc\r\n+OK\r\n");
    kill(&mut home);
    home.start(&["--save", "3600 1"]);
    assert_eq!(home.told(FOUND), found([1, 2, 0]), "{}", home.log());
    assert!(home.told("FUNCTION LIST LIBRARYNAME a").contains("\r\n$4\r\nof a\r\n"));
    // Loading a library is a change, which a signal saves.
    home.told(&format!("FUNCTION DELETE a\r\n{}", load("c", 3)));
    home.signal("-TERM");
    assert_eq!(home.end(), Some(0), "{}", home.log());
    home.start(&["--save", ""]);
    assert_eq!(home.told(FOUND), found([0, 2, 3]));
}

#[test]
fn libraries_are_in_append_only_files() {
    let mut home = Home::new("functions-append");
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    home.start(&options);
    home.told(&format!("{}\r\n{}\r\nFUNCTION DELETE a", load("a", 1), load("b", 2)));
    kill(&mut home);
    home.start(&options);
    assert_eq!(home.told(FOUND), found([0, 2, 0]), "{}", home.log());
    assert_eq!(home.told("BGREWRITEAOF"), "+Background append only file rewriting started\r\n+OK\r\n");
    home.wait_for_info("aof_rewrites:1\r\n");
    home.told(&format!("MULTI\r\n{}\r\nSET k v\r\n{}\r\nEXEC", load("b", 20), load("c", 3)));
    kill(&mut home);
    home.start(&options);
    assert_eq!(home.told(FOUND), found([0, 20, 3]), "{}", home.log());
    for again in ["DEBUG LOADAOF", "DEBUG RELOAD"] {
        assert_eq!(home.told(&format!("{again}\r\n{FOUND}")), format!("+OK\r\n{}", found([0, 20, 3])));
    }
    home.told(&format!("FUNCTION FLUSH\r\n{}", load("a", 7)));
    kill(&mut home);
    home.start(&options);
    assert_eq!(home.told(FOUND), found([7, 0, 0]), "{}", home.log());
    assert_eq!(home.told("GET by"), "$1\r\na\r\n+OK\r\n", "what a function has written is kept too");
}

#[test]
fn a_library_that_cannot_be_loaded_ends_the_start_and_the_file_stays() {
    let mut home = Home::new("functions-bad");
    home.start(&["--save", "", "--rdbcompression", "no", "--rdbchecksum", "no"]);
    home.told(&format!("{}\r\nSAVE", load("a", 1)));
    kill(&mut home);
    let mut file = std::fs::read(home.dump()).unwrap();
    let at = file.windows(8).position(|bytes| bytes == b"callback").unwrap();
    file[at..at + 8].copy_from_slice(b"(allback");
    std::fs::write(home.dump(), &file).unwrap();
    home.launch(&["--save", "3600 1"]);
    assert_eq!(home.end(), Some(1));
    assert!(home.log().contains("Failed loading library, Error compiling function: "), "{}", home.log());
    assert!(std::fs::read(home.dump()).unwrap() == file);
}

/// A redis-server in the folder and on the socket of a home.
struct Peer(Child);

impl Peer {
    fn start(home: &Home, program: &str, options: &[&str]) -> Peer {
        let mut command = Command::new(program);
        command.current_dir(&home.path).stdout(Stdio::null()).args(["--port", "0", "--unixsocket", "s"]);
        let peer = Peer(command.args(options).spawn().unwrap());
        home.wait_for("answer", |home| {
            (home.ask("GET nothing\r\nQUIT\r\n")? == "$-1\r\n+OK\r\n").then_some(())
        });
        peer
    }

    fn end(mut self, home: &Home, how: &str) {
        home.ask(&format!("{how}\r\n"));
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Libraries go to a redis-server and come back, by files that these options have both write.
fn exchange(name: &str, program: &str, options: &[&str], how: &str) {
    if Command::new(program).arg("--version").output().is_err() {
        // Not every machine has the one that is unpacked.
        if program != UNPACKED {
            skip_without(program);
        }
        return;
    }
    let mut home = Home::new(name);
    home.start(options);
    home.told(&format!("{}\r\n{}\r\n{}", load("a", 1), load("b", 2), load("a", 10)));
    if options.contains(&"--appendonly") {
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_rewrites:1\r\n");
    }
    home.ask(&format!("{how}\r\n"));
    assert_eq!(home.end(), Some(0), "{}", home.log());
    let peer = Peer::start(&home, program, options);
    assert_eq!(home.told(FOUND), found([10, 2, 0]));
    home.told(&format!("FUNCTION DELETE a\r\n{}\r\nSET of peer", load("c", 3)));
    let listed = home.told("FUNCTION LIST WITHCODE LIBRARYNAME c");
    peer.end(&home, how);
    home.start(options);
    assert_eq!(home.told(FOUND), found([0, 2, 3]), "{}", home.log());
    assert_eq!(home.told("GET of\r\nGET by"), "$4\r\npeer\r\n$1\r\nc\r\n+OK\r\n");
    assert_eq!(home.told("FUNCTION LIST WITHCODE LIBRARYNAME c"), listed);
}

#[test]
fn dump_files_with_libraries_go_to_redis_server_and_come_back() {
    for (name, program) in [("functions-dump-7", "redis-server"), ("functions-dump-8", UNPACKED)] {
        exchange(name, program, &["--save", ""], "SHUTDOWN SAVE");
    }
}

#[test]
fn append_only_files_with_libraries_go_to_redis_server_and_come_back() {
    for (name, program) in [("functions-append-7", "redis-server"), ("functions-append-8", UNPACKED)] {
        for preamble in ["yes", "no"] {
            let options = ["--save", "", "--appendonly", "yes", "--aof-use-rdb-preamble", preamble];
            exchange(name, program, &options, "SHUTDOWN");
        }
    }
}
