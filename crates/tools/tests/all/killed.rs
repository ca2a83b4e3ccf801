//! What was answered and not written yet when the server is killed (`disk::aof::tail`). The disk is stuck in
//! these tests, so that nothing is written at all, until the process is gone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::check::check_and_say;
use crate::failing_disk::{Client, restarted, set_disk};
use crate::home::Home;
use std::cell::Cell;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const OK: &str = "+OK\r\n";
const OPTIONS: [&str; 6] = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
const COMPLETED: &str = "bytes of the append-only file: they are appended";

fn started(name: &str) -> Home {
    let mut home = Home::new(name);
    home.start(&OPTIONS);
    // From here on the server knows how long its files are.
    assert_eq!(home.told("SET first 1\r\nWAITAOF 1 0 0"), format!("{OK}*2\r\n:1\r\n:0\r\n{OK}"));
    home
}

#[test]
fn what_was_answered_is_there_after_a_kill_whatever_it_was() {
    let mut home = started("killed");
    set_disk(&home, "STUCK");
    let mut waiter = Client::new(&home);
    waiter.send("BLPOP jobs 0");
    home.wait_for("client that waits", |home| {
        home.told("INFO clients").contains("blocked_clients:1\r\n").then_some(())
    });
    home.told("RPUSH jobs one two\r\nSADD s a b c\r\nSPOP s 2\r\nINCRBYFLOAT f 0.5\r\nSET gone 1 PX 1");
    assert_eq!(waiter.reply(), "*2\r\n");
    home.told("MULTI\r\nINCR n\r\nSELECT 3\r\nSET three 1\r\nEXEC\r\nSET other 1");
    home.told("EVAL \"redis.call('SET', KEYS[1], 1) redis.call('INCR', 'undeclared')\" 1 declared");
    home.told("SELECT 5\r\nEVAL \"redis.call('SET', KEYS[1], 1)\" 1 five");
    let ask = "LRANGE jobs 0 -1\r\nSCARD s\r\nGET f\r\nEXISTS gone\r\nMGET n declared undeclared\r\nSELECT 3\r\nMGET \
               three other\r\nSELECT 5\r\nGET five";
    home.wait_for("end of a key", |home| home.told("EXISTS gone").starts_with(":0").then_some(()));
    let before = home.told(ask);
    assert!(before.starts_with("*1\r\n$3\r\ntwo\r\n:1\r\n$3\r\n0.5\r\n:0\r\n*3\r\n$1\r\n1\r\n"), "{before}");
    assert_eq!(restarted(&mut home, &OPTIONS, ask), before);
    assert!(home.log().contains(COMPLETED), "{}", home.log());
    // What was appended is a part of the file from then on.
    assert_eq!(restarted(&mut home, &OPTIONS, ask), before);
    assert_eq!(home.log().matches(COMPLETED).count(), 1);
    assert!(home.path.join("appendonlydir/appendonly.aof.tail").exists());
    home.told("SHUTDOWN");
    assert_eq!(home.end(), Some(0));
    assert!(!home.path.join("appendonlydir/appendonly.aof.tail").exists());
}

fn second() -> i64 {
    server::Clock::real().now().0 / 1000
}

/// Nobody knows when that was answered which is in the tail.
#[test]
fn who_goes_back_in_time_leaves_out_what_was_answered_last() {
    let mut home = Home::new("killed-back");
    let options = [&OPTIONS[..], &["--aof-timestamp-enabled", "yes"]].concat();
    home.start(&options);
    home.told("SET key old\r\nWAITAOF 1 0 0");
    let folder = home.path.join("appendonlydir");
    let manifest = folder.join("appendonly.aof.manifest").display().to_string();
    let then = second();
    home.wait_for("next second", |_| (second() > then).then_some(()));
    set_disk(&home, "STUCK");
    assert_eq!(home.told("SET key new"), format!("{OK}{OK}"));
    // Not while a server appends.
    let link = home.path.join("link.aof");
    std::os::unix::fs::symlink(folder.join("appendonly.aof.1.incr.aof"), &link).unwrap();
    for words in [["--to-timestamp", "1", &manifest], ["--to-timestamp", "1", link.to_str().unwrap()]] {
        let (status, text) = check_and_say(&words, "y\n");
        assert!(status == 1 && text.contains("a server, or another check, uses its folder"), "{text}");
    }
    home.signal("-KILL");
    home.end();
    let (status, text) = check_and_say(&[&manifest], "");
    assert!(status == 0 && text.contains("the next start appends what they"), "{text}");
    let (status, text) = check_and_say(&["--to-timestamp", &(second() + 100).to_string(), &manifest], "");
    assert!(status == 0 && text.contains("the next start appends what they"), "{text}");
    let words = ["--to-timestamp", &then.to_string(), &manifest];
    let (status, text) = check_and_say(&words, "n\n");
    assert!(status == 1 && text.contains("the next start appends what it has"), "{text}");
    std::fs::write(folder.join("appendonly.aof.tail.left-out-1"), "of another time").unwrap();
    let (status, text) = check_and_say(&words, "y\n");
    assert!(status == 0 && text.contains("It is left out"), "{text}");
    assert!(folder.join("appendonly.aof.tail.left-out-2").exists());
    home.start(&options);
    assert_eq!(home.told("GET key"), format!("$3\r\nold\r\n{OK}"));
}

/// The kernel may take a moment to let go of the address.
#[test]
fn a_killed_server_can_be_started_again_at_once_at_its_address() {
    let mut home = Home::new("same-port");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    for _ in 0..6 {
        home.start(&["--save", "", "--port", &port]);
        let clients: Vec<_> =
            (0..20).map(|_| TcpStream::connect(format!("127.0.0.1:{port}")).unwrap()).collect();
        home.signal("-KILL");
        home.end();
        drop(clients);
    }
    assert!(!home.log().contains("Failed listening"), "{}", home.log());
}

#[test]
fn a_reply_waits_where_the_tail_has_no_room_and_so_do_those_behind_it() {
    let mut home = started("exposed");
    let mut clients = [Client::new(&home), Client::new(&home)];
    set_disk(&home, "STUCK");
    let value = "v".repeat(5 << 20);
    clients[0].send(&format!("*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n${}\r\n{value}", value.len()));
    home.wait_for("value", |home| {
        (home.told("STRLEN large") == format!(":{}\r\n{OK}", value.len())).then_some(())
    });
    // What comes behind it may depend on it.
    clients[1].send("APPEND large w");
    home.wait_for("write", |home| {
        (home.told("STRLEN large") == format!(":{}\r\n{OK}", value.len() + 1)).then_some(())
    });
    assert!(clients.iter_mut().all(Client::has_no_reply));
    set_disk(&home, "OK");
    assert_eq!(clients[0].reply(), OK);
    assert_eq!(clients[1].reply(), format!(":{}\r\n", value.len() + 1));
    set_disk(&home, "STUCK");
    clients[1].send("APPEND large x");
    assert_eq!(clients[1].reply(), format!(":{}\r\n", value.len() + 2));
    let found = restarted(&mut home, &OPTIONS, "STRLEN large\r\nGETRANGE large -3 -1");
    assert_eq!(found, format!(":{}\r\n$3\r\nvwx\r\n{OK}", value.len() + 2));
}

#[test]
fn what_was_answered_while_the_file_begins_anew_is_there_after_a_kill() {
    for is_whole in [false, true] {
        let mut home = started("killed-anew");
        set_disk(&home, "STUCK");
        assert_eq!(home.told("SET before 1"), format!("{OK}{OK}"));
        if !is_whole {
            home.told("DEBUG POPULATE 3000\r\nCONFIG SET rdb-key-save-delay 10000");
        }
        // The writer does not come to the next file, to which a part of this belongs.
        assert!(home.told("BGREWRITEAOF").contains("started"));
        if is_whole {
            home.wait_for_info("aof_rewrites:1\r\n");
        } else {
            home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
        }
        assert_eq!(home.told("SET behind 1\r\nSELECT 2\r\nSET two 1"), OK.repeat(4));
        let found = restarted(&mut home, &OPTIONS, "MGET before behind\r\nSELECT 2\r\nGET two");
        assert_eq!(found, format!("*2\r\n$1\r\n1\r\n$1\r\n1\r\n{OK}$1\r\n1\r\n{OK}"), "{is_whole}");
        assert!(home.log().contains(COMPLETED), "{}", home.log());
    }
}

#[test]
fn a_file_that_begins_at_run_time_has_a_tail_from_then_on() {
    let mut home = Home::new("killed-on");
    home.start(&["--save", ""]);
    let tail = home.path.join("appendonlydir/appendonly.aof.tail");
    for on in [true, false, true] {
        home.told(&format!("SET a 1\r\nCONFIG SET appendonly {}", if on { "yes" } else { "no" }));
        home.wait_for("tail", |home| {
            let is_on = home.told("INFO persistence").contains("aof_enabled:1\r\n");
            (tail.exists() == on && is_on == on).then_some(())
        });
    }
    home.told("SET b 1\r\nWAITAOF 1 0 0");
    set_disk(&home, "STUCK");
    home.told("SET c 1");
    assert_eq!(restarted(&mut home, &OPTIONS, "DBSIZE"), format!(":3\r\n{OK}"));
}

#[test]
fn a_tail_that_is_lost_under_the_server_is_made_anew_and_kills_nobody() {
    for way in ["cut", "removed", "renamed", "replaced"] {
        let mut home = started("lost-tail");
        let folder = home.path.join("appendonlydir");
        let (tail, other) = (folder.join("appendonly.aof.tail"), folder.join("other"));
        match way {
            "cut" => std::fs::File::options().write(true).open(&tail).unwrap().set_len(0).unwrap(),
            "removed" => std::fs::remove_file(&tail).unwrap(),
            "renamed" => std::fs::rename(&tail, &other).unwrap(),
            _ => {
                std::fs::copy(&tail, &other).unwrap();
                std::fs::rename(&other, &tail).unwrap();
            }
        }
        let count = Cell::new(0);
        home.wait_for("word of it", |home| {
            count.set(count.get() + 1);
            assert_eq!(home.told("INCR n"), format!(":{}\r\n{OK}", count.get()));
            home.log().contains("The append-only file has a new tail").then_some(())
        });
        // One of its two slots has the number of a file once it knows how long that is.
        home.wait_for("new tail", |_| {
            let bytes = std::fs::read(&tail).ok().filter(|bytes| bytes.len() > 2048)?;
            (bytes[64] > 0 || bytes[1024] > 0).then_some(())
        });
        let count = count.get() + 1;
        let on_disk = format!(":{count}\r\n*2\r\n:1\r\n:0\r\n{OK}");
        assert_eq!(home.told("INCR n\r\nWAITAOF 1 0 0"), on_disk);
        set_disk(&home, "STUCK");
        assert_eq!(home.told("INCR n"), format!(":{}\r\n{OK}", count + 1), "{way}");
        let length = (count + 1).to_string().len();
        let found = restarted(&mut home, &OPTIONS, "GET n");
        assert_eq!(found, format!("${length}\r\n{}\r\n{OK}", count + 1), "{way}: {}", home.log());
    }
}

#[test]
fn a_tail_that_could_not_be_made_is_made_when_it_can_be_also_where_nobody_writes() {
    let mut home = Home::new("no-tail");
    let tail = home.path.join("appendonlydir/appendonly.aof.tail");
    std::fs::create_dir_all(tail.join("in-its-way")).unwrap();
    home.start(&OPTIONS);
    assert_eq!(home.told("SET first 1"), OK.repeat(2));
    let told = || home.log().matches("Can't make the tail of the append-only file").count();
    assert_eq!(told(), 1, "{}", home.log());
    std::fs::remove_dir_all(&tail).unwrap();
    home.wait_for("tail", |home| home.log().contains("has a new tail").then_some(()));
    assert_eq!(told(), 1, "{}", home.log());
    home.wait_for("tail that counts", |_| {
        let bytes = std::fs::read(&tail).ok().filter(|bytes| bytes.len() > 2048)?;
        (bytes[64] > 0 || bytes[1024] > 0).then_some(())
    });
    set_disk(&home, "STUCK");
    assert_eq!(home.told("SET second 1"), OK.repeat(2));
    assert_eq!(restarted(&mut home, &OPTIONS, "DBSIZE"), format!(":2\r\n{OK}"));
}

#[test]
fn the_tail_of_another_server_that_begins_where_the_folder_was_is_left_alone() {
    let mut home = started("renamed-folder");
    let folder = home.path.join("appendonlydir");
    std::fs::rename(&folder, home.path.join("elsewhere")).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let tail = folder.join("appendonly.aof.tail");
    std::fs::write(&tail, "of another").unwrap();
    home.wait_for("word of it", |home| {
        home.told("INCR n");
        home.log().contains("The tail of the append-only file was removed").then_some(())
    });
    // It is looked for once a second.
    for _ in 0..15 {
        home.told("INCR n");
        std::thread::park_timeout(Duration::from_millis(100));
    }
    assert_eq!(std::fs::read_to_string(&tail).unwrap(), "of another", "{}", home.log());
    home.signal("-TERM");
    home.end();
    assert_eq!(std::fs::read_to_string(&tail).unwrap(), "of another", "{}", home.log());
}

#[test]
fn a_tail_is_not_used_where_somebody_else_has_written_to_the_file() {
    let mut home = started("foreign");
    set_disk(&home, "STUCK");
    home.told("SET b 1");
    home.signal("-KILL");
    home.end();
    let file = home.path.join("appendonlydir/appendonly.aof.1.incr.aof");
    let other =
        [std::fs::read(&file).unwrap(), b"*3\r\n$3\r\nSET\r\n$5\r\nother\r\n$1\r\n1\r\n".to_vec()].concat();
    std::fs::write(&file, &other).unwrap();
    home.start(&OPTIONS);
    assert_eq!(home.told("MGET first b other"), format!("*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n{OK}"));
    assert!(home.log().contains("is not used: somebody else has written"), "{}", home.log());
}

#[test]
fn from_the_moment_that_a_file_counts_what_is_answered_is_there_after_a_kill() {
    for _ in 0..5 {
        let mut home = Home::new("killed-begins");
        home.start(&["--save", ""]);
        home.told("SET first 1\r\nCONFIG SET appendonly yes");
        let manifest = home.path.join("appendonlydir/appendonly.aof.manifest");
        let (mut client, mut count, mut more) = (Client::new(&home), 0, 20);
        while more > 0 {
            client.send("INCR n");
            count += 1;
            assert_eq!(client.reply(), format!(":{count}\r\n"));
            more -= u32::from(manifest.exists());
        }
        assert_eq!(restarted(&mut home, &OPTIONS, "MGET first n"), {
            let count = count.to_string();
            format!("*2\r\n$1\r\n1\r\n${}\r\n{count}\r\n{OK}", count.len())
        });
    }
}

#[test]
fn while_the_file_moves_either_folder_has_what_was_answered() {
    let mut home = Home::new("killed-moves");
    let other = home.path.join("other");
    std::fs::create_dir(&other).unwrap();
    home.start(&[&OPTIONS[..], &["--enable-protected-configs", "local"]].concat());
    home.told("SET first 1\r\nDEBUG POPULATE 3000\r\nCONFIG SET rdb-key-save-delay 1000");
    home.told(&format!("CONFIG SET dir {}\r\nBGREWRITEAOF", other.display()));
    let new = other.join("appendonlydir");
    home.wait_for("new file", |_| {
        let entries = std::fs::read_dir(&new).ok()?;
        let mut names = entries.map(|entry| entry.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with("temp-")).then_some(())
    });
    set_disk(&home, "STUCK");
    let (mut client, mut count) = (Client::new(&home), 0);
    // Until nothing is answered any more, because both folders count and neither gets it.
    loop {
        client.send("INCR n");
        let polls = std::cell::Cell::new(0);
        let is_over = || polls.replace(polls.get() + 1) > 100;
        match client.reply_until(is_over) {
            Some(reply) => count += u32::from(reply == format!(":{}\r\n", count + 1)),
            None => break,
        }
        if count == 10 {
            home.told("CONFIG SET rdb-key-save-delay 0");
        }
    }
    assert!(count >= 10 && !new.join("appendonly.aof.manifest").exists());
    let found = restarted(&mut home, &OPTIONS, "GET n");
    let found: u32 = found.lines().nth(1).and_then(|line| line.parse().ok()).unwrap();
    assert!(found == count || found == count + 1, "{found} of {count}");
}

#[test]
fn whatever_lies_in_the_place_of_the_tail_the_server_starts() {
    for name in ["folder", "pipe", "link", "empty", "garbage"] {
        let mut home = started("strange-tail");
        home.told("SHUTDOWN");
        home.end();
        let tail = home.path.join("appendonlydir/appendonly.aof.tail");
        match name {
            "folder" => std::fs::create_dir(&tail).unwrap(),
            "pipe" => nix::unistd::mkfifo(&tail, nix::sys::stat::Mode::S_IRUSR).unwrap(),
            "link" => std::os::unix::fs::symlink("/dev/zero", &tail).unwrap(),
            "empty" => std::fs::write(&tail, "").unwrap(),
            _ => std::fs::write(&tail, "SARDTAILxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx").unwrap(),
        }
        home.start(&OPTIONS);
        assert_eq!(home.told("GET first\r\nSET b 1"), format!("$1\r\n1\r\n{OK}{OK}"), "{name}");
        assert_eq!(home.log().contains("is not used"), name != "empty", "{name}: {}", home.log());
        assert_eq!(home.log().contains("Can't make the tail"), name == "folder", "{name}: {}", home.log());
    }
}

#[test]
fn a_message_waits_for_no_file() {
    let home = started("message");
    let mut clients = [Client::new(&home), Client::new(&home)];
    set_disk(&home, "STUCK");
    let value = "v".repeat(5 << 20);
    clients[0].send(&format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}", value.len()));
    home.wait_for("value", |home| {
        (home.told("STRLEN k") == format!(":{}\r\n{OK}", value.len())).then_some(())
    });
    clients[1].send("PUBLISH nobody x");
    assert_eq!(clients[1].reply(), ":0\r\n");
    assert!(clients[0].has_no_reply());
    set_disk(&home, "OK");
    assert_eq!(clients[0].reply(), OK);
}
