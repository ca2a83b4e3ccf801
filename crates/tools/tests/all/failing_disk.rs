//! A server whose disk fails: nothing that was acknowledged is lost, writes are refused meanwhile, and all
//! goes on by itself when the disk works again.
//!
//! The disk fails where the server calls the system (`DEBUG DISK`), or in earnest: folders that are taken
//! away or replaced. A limit on the size of files is in `append_only.rs`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::cell::Cell;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const OK: &str = "+OK\r\n";

/// A client that stays.
pub(crate) struct Client {
    stream: UnixStream,
    replies: BufReader<UnixStream>,
}

impl Client {
    pub(crate) fn new(home: &Home) -> Client {
        let stream = UnixStream::connect(home.path.join("s")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client { replies: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    }

    pub(crate) fn reply(&mut self) -> String {
        let mut line = String::new();
        self.replies.read_line(&mut line).unwrap();
        line
    }

    /// The reply, if it comes before `is_over`.
    pub(crate) fn reply_until(&mut self, is_over: impl Fn() -> bool) -> Option<String> {
        self.stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        let mut line = String::new();
        while self.replies.read_line(&mut line).is_err() {
            if is_over() {
                return None;
            }
        }
        Some(line)
    }

    pub(crate) fn has_no_reply(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let read = self.stream.read(&mut [0; 1]);
        self.stream.set_nonblocking(false).unwrap();
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// Kills the server and starts it again: what the disk has.
pub(crate) fn restarted(home: &mut Home, options: &[&str], line: &str) -> String {
    home.signal("-KILL");
    home.end();
    home.start(options);
    home.told(line)
}

pub(crate) fn set_disk(home: &Home, fault: &str) {
    assert_eq!(home.told(&format!("DEBUG DISK {fault}")), format!("{OK}{OK}"));
}

#[test]
fn where_memory_and_disk_both_refuse_a_write_it_is_told_of_the_memory() {
    let mut home = Home::new("oom-and-misconf");
    home.start(&["--save", "3600 1"]);
    std::fs::create_dir(home.path.join("dump.rdb")).unwrap();
    home.told("SET k v\r\nCONFIG RESETSTAT");
    assert_eq!(home.told("SAVE"), format!("-ERR\r\n{OK}"));
    let told = home.told("INFO everything");
    assert!(told.contains("errorstat_ERR:count=1\r\n"), "{told}");
    let save = told.lines().find(|line| line.starts_with("cmdstat_save:")).unwrap();
    assert!(save.contains("calls=1,") && save.ends_with("failed_calls=1"), "{save}");
    home.told("BGSAVE");
    home.wait_for_info("rdb_last_bgsave_status:err\r\n");
    let script = |flags: &str| format!("EVAL \"{flags}return redis.call('SET', 'k', 'v')\" 0");
    let (declared, plain) = (script("#!lua\\n"), script(""));
    let begins = |request: &str, code: &str| {
        let told = home.told(request);
        assert!(told.starts_with(code), "{request}: {told}");
    };
    for request in ["SET k v", &declared, &plain] {
        begins(request, "-MISCONF");
    }
    home.told("CONFIG SET maxmemory 1");
    for request in ["SET k v", &declared] {
        begins(request, "-OOM");
    }
    // What a script calls is looked at in another order, and what takes no memory at all.
    begins(&plain, "-MISCONF");
    begins("DEL k", "-MISCONF");
}

/// While the file cannot be written to.
fn is_refused(home: &Home, why: &str) {
    home.wait_for_info("aof_last_write_status:err\r\n");
    home.wait_for("refusal", |home| {
        let refused = format!("-MISCONF Errors writing to the AOF file: {why}\r\n");
        (home.told("SET other 1\r\nGET nothing\r\nPING") == format!("{refused}$-1\r\n{refused}{OK}"))
            .then_some(())
    });
}

const FAULTS: [(&str, &str); 3] = [
    ("FULL", "No space left on device"),
    ("BROKEN", "Input/output error"),
    ("FORGETFUL", "Input/output error"),
];

#[test]
fn replies_wait_with_always_until_the_disk_works_again() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    for (fault, why) in FAULTS {
        let mut home = Home::new("fails-always");
        home.start(&options);
        let mut client = Client::new(&home);
        client.send("RPUSH l 1");
        assert_eq!(client.reply(), ":1\r\n");
        set_disk(&home, fault);
        client.send("RPUSH l 2");
        is_refused(&home, why);
        assert!(client.has_no_reply(), "{fault}");
        client.send("RPUSH l 3");
        assert_eq!(home.told("LLEN l"), format!(":2\r\n{OK}"));
        set_disk(&home, "OK");
        assert_eq!(client.reply(), ":2\r\n");
        assert!(client.reply().starts_with("-MISCONF "));
        home.wait_for_info("aof_last_write_status:ok\r\n");
        client.send("RPUSH l 4");
        assert_eq!(client.reply(), ":3\r\n");
        assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":3\r\n{OK}"), "{fault}");
        assert!(home.log().contains("AOF write error looks solved"), "{}", home.log());
    }
}

#[test]
fn while_a_write_waits_for_the_disk_waits_of_others_end_as_ever() {
    let mut home = Home::new("waits-end");
    home.start(&["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--dbfilename", ""]);
    home.told("SET a 1");
    let mut clients: [Client; 6] = std::array::from_fn(|_| Client::new(&home));
    let [writer, blocked, reader, other, unblocked, saving] = &mut clients;
    unblocked.send("CLIENT ID");
    let id = unblocked.reply().trim_start_matches(':').to_string();
    unblocked.send("BLPOP none 0");
    blocked.send("BLPOP none 2");
    home.wait_for("clients that wait", |home| {
        home.told("INFO clients").contains("blocked_clients:2\r\n").then_some(())
    });
    set_disk(&home, "FULL");
    writer.send("SET b 1");
    home.wait_for_info("aof_last_write_status:err\r\n");
    reader.send("XREAD BLOCK 100 STREAMS none 0");
    other.send("WAIT 1 100");
    saving.send("SAVE");
    assert_eq!(home.told(&format!("CLIENT UNBLOCK {id}")), format!(":1\r\n{OK}"));
    let waited = [blocked, reader, other, unblocked, saving].map(Client::reply);
    assert_eq!(waited, ["*-1\r\n", "*-1\r\n", ":0\r\n", "*-1\r\n", "-ERR\r\n"]);
    assert!(writer.has_no_reply());
    set_disk(&home, "OK");
    assert_eq!(writer.reply(), OK);
}

#[test]
fn a_file_that_may_have_a_gap_begins_anew_and_others_go_on() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
    for (fault, why) in FAULTS {
        let mut home = Home::new("fails-everysec");
        home.start(&options);
        set_disk(&home, fault);
        assert_eq!(home.told("RPUSH l 1"), format!(":1\r\n{OK}"));
        is_refused(&home, why);
        set_disk(&home, "OK");
        home.wait_for_info("aof_last_write_status:ok\r\n");
        if fault == "FORGETFUL" {
            home.wait_for_info("aof_rewrites:1\r\n");
            assert!(home.log().contains("may be missing: it begins anew"), "{}", home.log());
        }
        // WAITAOF waits for what its own connection has written.
        let on_disk = format!(":2\r\n*2\r\n:1\r\n:0\r\n{OK}");
        home.wait_for("write", |home| (home.told("RPUSH l 2\r\nWAITAOF 1 0 0") == on_disk).then_some(()));
        assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":2\r\n{OK}"), "{fault}");
    }
}

#[test]
fn a_disk_that_fails_while_the_file_begins_anew_leaves_what_was_there() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    for (fault, _) in FAULTS {
        let mut home = Home::new("fails-rewrite");
        home.start(&options);
        home.told("RPUSH l 1\r\nDEBUG POPULATE 5000\r\nCONFIG SET rdb-key-save-delay 10000\r\nBGREWRITEAOF");
        home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
        assert_eq!(home.told("RPUSH l 2"), format!(":2\r\n{OK}"));
        set_disk(&home, fault);
        assert_eq!(home.told("CONFIG SET rdb-key-save-delay 0"), format!("{OK}{OK}"));
        home.signal("-KILL");
        home.end();
        home.start(&options);
        assert_eq!(home.told("LLEN l"), format!(":2\r\n{OK}"), "{fault}");
        set_disk(&home, fault);
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_last_bgrewrite_status:err\r\n");
        assert_eq!(home.left_over(), 0);
        set_disk(&home, "OK");
        home.told("BGREWRITEAOF");
        home.wait_for_info("aof_last_bgrewrite_status:ok\r\n");
        assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":2\r\n{OK}"), "{fault}");
    }
}

/// How long the files are whose names contain this.
fn length(home: &Home, part: &str) -> u64 {
    let entries = std::fs::read_dir(home.path.join("appendonlydir")).unwrap();
    let entries = entries.map(|entry| entry.unwrap());
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.contains(part)));
    named.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// By that a server decides when to try again.
#[test]
fn what_the_files_take_is_known_after_a_rewrite_that_has_failed_and_after_a_start() {
    let options = ["--save", "", "--appendonly", "yes", "--enable-debug-command", "local"];
    let mut home = Home::new("sizes");
    home.start(&options);
    home.told(&format!("SET long {}\r\nDEBUG POPULATE 200\r\nBGREWRITEAOF", "x".repeat(50_000)));
    home.wait_for_info("aof_rewrites:1\r\n");
    let is_counted = |home: &Home| {
        home.wait_for("sizes", |home| {
            let files = length(home, ".rdb") + length(home, ".incr.");
            (home.number("aof_current_size") == files).then_some(files)
        })
    };
    let at_begin = is_counted(&home);
    assert_eq!(home.number("aof_base_size"), at_begin);
    for round in 0..2 {
        home.told(&format!("SET long {}\r\nCONFIG SET rdb-key-save-delay 100000", "y".repeat(50_000)));
        home.told("BGREWRITEAOF");
        home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
        set_disk(&home, "FULL");
        home.told("CONFIG SET rdb-key-save-delay 0");
        home.wait_for_info("aof_rewrite_in_progress:0\r\n");
        home.wait_for_info("aof_last_bgrewrite_status:err\r\n");
        set_disk(&home, "OK");
        home.wait_for("write", |home| home.told("SET a 1").starts_with("+OK").then_some(()));
        assert!(is_counted(&home) > at_begin + 50_000 * (round + 1));
        assert_eq!(home.number("aof_base_size"), at_begin);
    }
    home.signal("-KILL");
    home.end();
    home.start(&options);
    is_counted(&home);
    assert_eq!(home.number("aof_base_size"), length(&home, ".rdb"));
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.number("aof_base_size"), is_counted(&home));
}

#[test]
fn what_is_acknowledged_by_a_slow_disk_is_in_files_that_count() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut home = Home::new("stuck");
    home.start(&options);
    let mut clients = [Client::new(&home), Client::new(&home)];
    set_disk(&home, "STUCK");
    clients[0].send("RPUSH l 1");
    home.wait_for("write", |home| (home.told("LLEN l") == format!(":1\r\n{OK}")).then_some(()));
    // The file begins anew behind the back of whoever writes, and once more.
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    clients[1].send("RPUSH l 2");
    home.wait_for("write", |home| (home.told("LLEN l") == format!(":2\r\n{OK}")).then_some(()));
    home.told("DEBUG POPULATE 5000\r\nCONFIG SET rdb-key-save-delay 10000\r\nBGREWRITEAOF");
    home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
    assert!(clients.iter_mut().all(Client::has_no_reply));
    set_disk(&home, "OK");
    assert_eq!((clients[0].reply().as_str(), clients[1].reply().as_str()), (":1\r\n", ":2\r\n"));
    assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":2\r\n{OK}"));
}

#[test]
fn what_is_acknowledged_while_the_disk_takes_long_to_sync_outlives_the_process() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
    let mut home = Home::new("slow");
    home.start(&options);
    let mut client = Client::new(&home);
    set_disk(&home, "SLOW");
    // Until one has to wait, because the disk has not had the first for a second.
    let is_held_back = || home.told("INFO persistence").contains("aof_delayed_fsync:1\r\n");
    let mut pushed = 0;
    let acknowledged = loop {
        client.send("RPUSH l 1");
        match client.reply_until(is_held_back) {
            Some(reply) => pushed += 1 + u64::from(reply != format!(":{}\r\n", pushed + 1)) * 1_000_000,
            None => break pushed,
        }
    };
    assert!((1..1_000_000).contains(&acknowledged), "{acknowledged}");
    home.wait_for_info("aof_buffer_length:0\r\n");
    assert_eq!(home.told("LLEN l"), format!(":{acknowledged}\r\n{OK}"), "reads go on");
    assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":{acknowledged}\r\n{OK}"));

    // And what was held back goes on when the disk does.
    let mut client = Client::new(&home);
    set_disk(&home, "SLOW");
    home.told("RPUSH l 2");
    home.wait_for_info("aof_delayed_fsync:1\r\n");
    client.send("RPUSH l 3\r\nWAITAOF 1 0 0");
    assert!(client.has_no_reply());
    set_disk(&home, "OK");
    assert_eq!(client.reply(), format!(":{}\r\n", acknowledged + 2));
    assert_eq!((client.reply().as_str(), client.reply().as_str()), ("*2\r\n", ":1\r\n"));
    assert_eq!(client.reply(), ":0\r\n");
    // Or when nobody wants to wait for it any more.
    set_disk(&home, "SLOW");
    home.told("RPUSH l 4");
    home.wait_for_info("aof_delayed_fsync:2\r\n");
    client.send("RPUSH l 5");
    assert!(client.has_no_reply());
    assert_eq!(home.told("CONFIG SET appendfsync no"), format!("{OK}{OK}"));
    assert_eq!(client.reply(), format!(":{}\r\n", acknowledged + 4));
    home.wait_for_info("aof_buffer_length:0\r\n");
    assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":{}\r\n{OK}", acknowledged + 4));
}

#[test]
fn a_sync_that_takes_long_and_then_fails_has_nobody_wait_who_does_not_write() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
    let mut home = Home::new("slow-fails");
    home.start(&options);
    let mut client = Client::new(&home);
    set_disk(&home, "SLOW");
    home.told("RPUSH l 1");
    home.wait_for_info("aof_delayed_fsync:1\r\n");
    client.send("PUBLISH nobody x");
    assert!(client.has_no_reply());
    set_disk(&home, "BROKEN");
    assert_eq!(client.reply(), ":0\r\n");
    is_refused(&home, "Input/output error");
    set_disk(&home, "OK");
    home.wait_for_info("aof_last_write_status:ok\r\n");
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.told("RPUSH l 2"), format!(":2\r\n{OK}"));
}

#[test]
fn what_is_not_synced_while_a_snapshot_is_written_is_answered_and_not_confirmed() {
    let mut options = vec!["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    options.extend(["--no-appendfsync-on-rewrite", "yes"]);
    let mut home = Home::new("rests");
    home.start(&options);
    home.told("DEBUG POPULATE 5000\r\nCONFIG SET rdb-key-save-delay 10000\r\nBGSAVE");
    home.wait_for_info("rdb_bgsave_in_progress:1\r\n");
    // The same connection's write and WAITAOF.
    assert_eq!(home.told("RPUSH l 1\r\nWAITAOF 1 0 50"), format!(":1\r\n*2\r\n:0\r\n:0\r\n{OK}"));
    let mut client = Client::new(&home);
    client.send("RPUSH l 2\r\nWAITAOF 1 0 0");
    assert_eq!(client.reply(), ":2\r\n");
    assert_eq!(home.told("CONFIG SET rdb-key-save-delay 0"), format!("{OK}{OK}"));
    assert_eq!((client.reply().as_str(), client.reply().as_str()), ("*2\r\n", ":1\r\n"));
    assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":2\r\n{OK}"));
}

/// A read by a client that looks 500 times for its reply, for 10 ms each.
fn reads_go_on(home: &Home) {
    let (mut reader, looks) = (Client::new(home), Cell::new(0));
    reader.send("GET there");
    let reply = reader.reply_until(|| looks.replace(looks.get() + 1) == 500);
    assert_eq!(reply.as_deref(), Some("$1\r\n"), "{}", home.log());
}

#[test]
fn while_a_disk_hangs_the_file_moves_or_ends_and_reads_go_on() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let options = [&options[..], &["--enable-protected-configs", "local"]].concat();
    for moves in [true, false] {
        let mut home = Home::new("hangs");
        home.start(&options);
        home.told("SET there 1");
        set_disk(&home, "STUCK");
        let mut writer = Client::new(&home);
        writer.send("SET behind 1");
        home.wait_for("write", |home| home.told("EXISTS behind").starts_with(":1").then_some(()));
        let folder = home.path.join("other");
        std::fs::create_dir_all(&folder).unwrap();
        if moves {
            home.told(&format!("CONFIG SET dir {}\r\nBGREWRITEAOF", folder.display()));
            home.wait_for("folder", |home| {
                home.log().contains("The append-only file moves to").then_some(())
            });
        } else {
            home.told("CONFIG SET appendonly no");
            home.wait_for("order", |home| {
                home.log().contains("Turning the append-only file off").then_some(())
            });
        }
        for _ in 0..50 {
            reads_go_on(&home);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(writer.has_no_reply());
        set_disk(&home, "OK");
        assert_eq!(writer.reply(), OK);
        home.wait_for_info(if moves { "aof_rewrites:1\r\n" } else { "aof_enabled:0\r\n" });
        if moves {
            home.signal("-KILL");
            std::fs::remove_dir_all(home.path.join("appendonlydir")).unwrap();
            std::fs::rename(folder.join("appendonlydir"), home.path.join("appendonlydir")).unwrap();
        }
        let found = restarted(&mut home, &options, "MGET there behind");
        assert_eq!(found, format!("*2\r\n$1\r\n1\r\n$1\r\n1\r\n{OK}"), "{moves}");
    }
}

/// The end of an increment that is cut off for another attempt was not safe at any time, and the tail knows.
#[test]
fn what_was_kept_back_and_is_answered_when_the_settings_change_outlives_the_process() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    for (fault, why) in FAULTS {
        let mut home = Home::new("cut-off");
        home.start(&options);
        // The lanes begin again from their first byte now and then.
        home.told(&format!("{}RPUSH l 1", format!("SET long {}\r\n", "x".repeat(50_000)).repeat(4)));
        set_disk(&home, "FORGETFUL");
        let mut client = Client::new(&home);
        client.send("RPUSH l 2");
        is_refused(&home, "Input/output error");
        set_disk(&home, fault);
        home.wait_for("attempt", |home| home.told("SET other 1").contains(why).then_some(()));
        assert!(client.has_no_reply());
        assert_eq!(home.told("CONFIG SET appendfsync everysec"), format!("{OK}{OK}"));
        assert_eq!(client.reply(), ":2\r\n");
        assert_eq!(
            restarted(&mut home, &options, "LLEN l"),
            format!(":2\r\n{OK}"),
            "{fault}: {}",
            home.log()
        );
    }
}

/// One request after the other, until nobody wants more. Returns how many.
fn write_on(home: &Home, is_over: &AtomicBool) -> u64 {
    let (mut client, mut count) = (Client::new(home), 0);
    while !is_over.load(Relaxed) {
        client.send("INCR written");
        assert!(client.reply().starts_with(':'));
        count += 1;
    }
    count
}

#[test]
fn a_disk_that_begins_to_hang_as_the_file_ends_stops_nobody() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
    let (mut home, is_over) = (Home::new("hangs-at-the-end"), AtomicBool::new(false));
    home.start(&options);
    home.told("SET there 1");
    let home = &home;
    let written: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3).map(|_| scope.spawn(|| write_on(home, &is_over))).collect();
        for round in 0..20 {
            let mut admin = Client::new(home);
            admin.send("CONFIG SET appendonly no");
            assert_eq!(admin.reply(), OK);
            std::thread::sleep(Duration::from_micros(100 * (round % 8)));
            set_disk(home, "STUCK");
            (0..5).for_each(|_| reads_go_on(home));
            set_disk(home, "OK");
            home.wait_for_info("aof_enabled:0\r\n");
            home.told("CONFIG SET appendonly yes");
            home.wait_for_info(&format!("aof_rewrites:{}\r\n", round + 1));
        }
        is_over.store(true, Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    let length = written.to_string().len();
    let expected = format!("${length}\r\n{written}\r\n{OK}");
    assert_eq!(home.told("GET written"), expected);
}

/// Waits until the thread that writes the file has come to a disk that is stuck, which it looks at every
/// millisecond. A file that is turned off before that is done with what was written so far at once.
fn wait_for_stuck_thread(home: &Home) {
    let looks = |_: &Home| {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", home.child_id())).unwrap();
        let statuses =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
        let status = statuses.into_iter().find(|status| status.contains("sardine-journal"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    let before = home.wait_for("thread", looks);
    home.wait_for("stuck thread", |home| looks(home).filter(|looks| *looks >= before + 20));
}

/// Whoever turns the file off waits for the gates meanwhile, which the script has.
#[test]
fn a_reply_that_waits_for_the_disk_does_not_wait_for_a_script_too() {
    const SCRIPT: &str = "EVAL \"while true do end\" 0";
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    let mut home = Home::new("beside-a-script");
    home.start(&options);
    home.told("CONFIG SET busy-reply-threshold 10");
    let mut runs = Client::new(&home);
    let killed = |runs: &mut Client| {
        home.wait_for("script", |home| home.told("SCRIPT KILL").starts_with("+OK").then_some(()));
        assert!(runs.reply().contains("SCRIPT KILL"));
    };
    // What has taken long once is not attempted again, but has all gates from its beginning.
    runs.send(SCRIPT);
    killed(&mut runs);
    set_disk(&home, "STUCK");
    let mut writers = [Client::new(&home), Client::new(&home)];
    writers[0].send("RPUSH l 1");
    home.wait_for("write", |home| home.told("LLEN l").starts_with(":1").then_some(()));
    wait_for_stuck_thread(&home);
    home.told("CONFIG SET appendonly no");
    home.wait_for("order", |home| home.log().contains("Turning the append-only file off").then_some(()));
    writers[1].send("RPUSH l 2");
    home.wait_for("write", |home| home.told("LLEN l").starts_with(":2").then_some(()));
    runs.send(&format!("DEBUG DISK OK\r\n{SCRIPT}"));
    assert_eq!(runs.reply(), OK);
    let looks = Cell::new(0);
    for (writer, expected) in writers.iter_mut().zip([":1\r\n", ":2\r\n"]) {
        let reply = writer.reply_until(|| looks.replace(looks.get() + 1) == 500);
        assert_eq!(reply.as_deref(), Some(expected));
    }
    killed(&mut runs);
    home.wait_for_info("aof_enabled:0\r\n");
    assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":2\r\n{OK}"));
}

/// What is written then is in no file before the next one has begun.
#[test]
fn a_file_that_is_wanted_again_while_it_ends_has_nothing_of_what_is_written_meanwhile() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec"];
    let mut home = Home::new("wanted-again");
    home.start(&options);
    let on_disk = |yes: u8| format!("*2\r\n:{yes}\r\n:0\r\n");
    assert_eq!(home.told("SET a 1\r\nWAITAOF 1 0 0"), format!("{OK}{}{OK}", on_disk(1)));
    set_disk(&home, "SLOW");
    home.told("SET b 1\r\nCONFIG SET appendonly no");
    home.wait_for("end", |home| home.log().contains("Turning the append-only file off").then_some(()));
    std::thread::sleep(Duration::from_millis(100));
    home.told("CONFIG SET appendonly yes");
    assert_eq!(home.told("SET c 1\r\nWAITAOF 1 0 200"), format!("{OK}{}{OK}", on_disk(0)));
    assert!(home.told("SHUTDOWN").starts_with("-ERR Errors trying to SHUTDOWN"));
    set_disk(&home, "OK");
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.told("SET d 1\r\nWAITAOF 1 0 0"), format!("{OK}{}{OK}", on_disk(1)));
    assert_eq!(restarted(&mut home, &options, "EXISTS a b c d"), format!(":4\r\n{OK}"));
}

#[test]
fn a_file_that_only_begins_is_given_up_while_the_disk_hangs() {
    let mut home = Home::new("hangs-at-the-beginning");
    home.start(&["--save", ""]);
    home.told("SET there 1\r\nDEBUG POPULATE 300000");
    for _ in 0..10 {
        home.told("CONFIG SET appendonly yes");
        home.wait_for_info("aof_rewrite_in_progress:1\r\n");
        home.told("SET a 0");
        home.told("DEBUG DISK STUCK\r\nSET a 1\r\nCONFIG SET appendonly no");
        (0..5).for_each(|_| reads_go_on(&home));
        assert_eq!(home.told("SET a 2"), format!("{OK}{OK}"));
        set_disk(&home, "OK");
        home.wait_for_info("aof_rewrite_in_progress:0\r\n");
    }
    home.told("CONFIG SET appendonly yes");
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.told("SET a 3\r\nWAITAOF 1 0 0"), format!("{OK}*2\r\n:1\r\n:0\r\n{OK}"));
}

#[test]
fn a_folder_that_was_taken_away_is_made_again() {
    let options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
    for replacement in [None, Some("a folder"), Some("a file")] {
        let mut home = Home::new("folder");
        home.start(&options);
        assert_eq!(home.told("RPUSH l 1"), format!(":1\r\n{OK}"));
        let folder = home.path.join("appendonlydir");
        std::fs::rename(&folder, home.path.join("elsewhere")).unwrap();
        match replacement {
            None => {}
            Some("a folder") => std::fs::create_dir(&folder).unwrap(),
            Some(_) => {
                std::fs::write(&folder, "").unwrap();
                home.told("BGREWRITEAOF");
                home.wait_for_info("aof_last_bgrewrite_status:err\r\n");
                std::fs::remove_file(&folder).unwrap();
            }
        }
        home.told("RPUSH l 2\r\nBGREWRITEAOF");
        home.wait_for_info("aof_rewrites:1\r\n");
        assert_eq!(home.told("RPUSH l 3"), format!(":3\r\n{OK}"));
        assert_eq!(restarted(&mut home, &options, "LLEN l"), format!(":3\r\n{OK}"), "{replacement:?}");
    }
}

#[test]
fn a_snapshot_that_fails_refuses_writes_until_one_is_written() {
    let mut home = Home::new("fails-save");
    let folder = home.path.join("data");
    std::fs::create_dir(&folder).unwrap();
    home.start(&["--save", "3600 1000000", "--enable-protected-configs", "local"]);
    assert_eq!(home.told(&format!("CONFIG SET dir {}", folder.display())), format!("{OK}{OK}"));
    for fault in ["FULL", "BROKEN", "FORGETFUL", "folder"] {
        match fault {
            "folder" => std::fs::remove_dir_all(&folder).unwrap(),
            fault => set_disk(&home, fault),
        }
        assert_eq!(home.told("SET a 1\r\nBGSAVE"), format!("{OK}+Background saving started\r\n{OK}"));
        home.wait_for_info("rdb_last_bgsave_status:err\r\n");
        assert_eq!(home.told("SAVE"), format!("-ERR\r\n{OK}"));
        let told = home.told("SET a 2\r\nGET a");
        assert!(told.starts_with("-MISCONF ") && told.ends_with(&format!("$1\r\n1\r\n{OK}")), "{told}");
        match fault {
            "folder" => std::fs::create_dir(&folder).unwrap(),
            _ => set_disk(&home, "OK"),
        }
        assert!(std::fs::read_dir(&folder).unwrap().all(|entry| entry.unwrap().file_name() == "dump.rdb"));
        home.told("BGSAVE");
        home.wait_for_info("rdb_last_bgsave_status:ok\r\n");
        assert_eq!(home.told("SET a 2"), format!("{OK}{OK}"));
    }
}
