//! The dump file and the process: what a start, a signal, a failing disk and a kill leave of the data.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

#[test]
fn a_kill_while_a_snapshot_is_written_leaves_the_last_one() {
    let mut home = Home::new("kill");
    home.start(&["--save", "", "--rdb-key-save-delay", "0"]);
    assert_eq!(home.told("SET a 1\r\nDEBUG POPULATE 2000\r\nSAVE"), "+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    let before = std::fs::read(home.dump()).unwrap();
    let slow = home.told("CONFIG SET rdb-key-save-delay 10000\r\nSET a 2\r\nBGSAVE");
    assert_eq!(slow, "+OK\r\n+OK\r\n+Background saving started\r\n+OK\r\n");
    home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
    home.signal("-KILL");
    assert_eq!(home.end(), None);
    assert!(std::fs::read(home.dump()).unwrap() == before, "the file is as it was");
    assert_eq!(home.left_over(), 1, "what was written of the next");
    home.start(&["--save", ""]);
    assert_eq!(home.left_over(), 0, "the start has removed it");
    assert_eq!(home.told("GET a\r\nDBSIZE"), "$1\r\n1\r\n:2001\r\n+OK\r\n");
}

#[test]
fn a_signal_saves_if_there_are_save_points_or_it_is_told_to() {
    for (options, is_saved) in [
        (["--save", "3600 1", "--shutdown-on-sigterm", "default"], true),
        (["--save", "3600 1", "--shutdown-on-sigterm", "nosave"], false),
        (["--save", "", "--shutdown-on-sigterm", "default"], false),
        (["--save", "", "--shutdown-on-sigterm", "save"], true),
    ] {
        let mut home = Home::new("term");
        home.start(&options);
        assert_eq!(home.told("SET a 1"), "+OK\r\n+OK\r\n");
        home.signal("-TERM");
        assert_eq!(home.end(), Some(0), "{}", home.log());
        assert_eq!(home.dump().exists(), is_saved, "{options:?}");
        home.start(&["--save", ""]);
        let found = if is_saved { "$1\r\n1\r\n+OK\r\n" } else { "$-1\r\n+OK\r\n" };
        assert_eq!(home.told("GET a"), found, "{options:?}");
        assert_eq!(home.left_over(), 0);
    }
}

#[test]
fn what_a_start_has_loaded_counts_as_data_and_not_as_what_an_empty_server_needs() {
    for appends in ["yes", "no"] {
        let mut home = Home::new("loaded");
        let options = ["--save", "3600 1", "--appendonly", appends];
        home.start(&options);
        assert_eq!(home.told("SETRANGE k 20000000 x\r\nSHUTDOWN SAVE"), ":20000001\r\n");
        home.end();
        home.start(&options);
        let memory = home.told("INFO memory");
        let field = |name: &str| {
            let value = memory.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            value.and_then(|value| value.parse::<u64>().ok()).unwrap()
        };
        let (startup, data) = (field("used_memory_startup"), field("used_memory_dataset"));
        assert!(startup > 0 && data > 10_000_000 && startup < data / 2, "{memory}");
    }
}

/// What the log says of a signal that has been taken in.
const TAKEN_IN: &str = "scheduling shutdown...";

#[test]
fn a_signal_after_one_that_could_not_save_asks_again() {
    let mut home = Home::new("again");
    home.start(&["--save", "3600 1"]);
    // No file can take the place of a folder.
    std::fs::create_dir(home.dump()).unwrap();
    assert_eq!(home.told("SET a 1"), "+OK\r\n+OK\r\n");
    for count in 1..=2 {
        home.signal("-INT");
        home.wait_for("failure", |home| {
            (home.log().matches("Errors trying to shut down").count() == count).then_some(())
        });
    }
    assert_eq!(home.told("GET a"), "$1\r\n1\r\n+OK\r\n");
    std::fs::remove_dir(home.dump()).unwrap();
    home.signal("-INT");
    assert_eq!(home.end(), Some(0), "{}", home.log());
    assert!(home.dump().exists(), "{}", home.log());
}

#[test]
fn a_second_sigint_ends_the_process_at_once_whatever_it_is_doing() {
    // The save of a thousand seconds is asked for by the first signal itself, by another, or by SHUTDOWN.
    for first in ["-INT", "-TERM", "SHUTDOWN"] {
        let mut home = Home::new("insist");
        home.start(&["--save", "3600 1", "--rdb-key-save-delay", "1000000"]);
        assert_eq!(home.told("DEBUG POPULATE 1000"), "+OK\r\n+OK\r\n");
        let mut client = UnixStream::connect(home.path.join("s")).unwrap();
        match first {
            "SHUTDOWN" => client.write_all(b"SHUTDOWN\r\n").unwrap(),
            signal => home.signal(signal),
        }
        home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
        if first == "SHUTDOWN" {
            home.signal("-INT");
            home.wait_for("first signal", |home| home.log().contains(TAKEN_IN).then_some(()));
        }
        home.signal("-INT");
        assert_eq!(home.end(), Some(1), "{first}: {}", home.log());
        assert!(home.log().contains("You insist... exiting now."), "{first}: {}", home.log());
        assert_eq!(home.left_over(), 0, "{first}");
        assert!(!home.dump().exists(), "{first}");
    }
}

#[test]
fn what_a_signal_asks_for_while_a_script_runs_can_be_aborted_or_insisted_on() {
    let mut home = Home::new("busy");
    home.start(&["--save", "", "--busy-reply-threshold", "1"]);
    let mut client = UnixStream::connect(home.path.join("s")).unwrap();
    client.write_all(b"EVAL \"while true do end\" 0\r\n").unwrap();
    home.wait_for("busy script", |home| home.told("GET a").starts_with("-BUSY").then_some(()));
    let aborts = |home: &Home| home.told("SHUTDOWN ABORT");
    assert_eq!(aborts(&home), "-ERR No shutdown in progress.\r\n+OK\r\n");
    for (count, signal) in [(1, "-TERM"), (2, "-INT")] {
        home.signal(signal);
        home.wait_for("signal", |home| (home.log().matches(TAKEN_IN).count() == count).then_some(()));
        assert_eq!(aborts(&home), "+OK\r\n+OK\r\n", "{signal}");
        assert_eq!(aborts(&home), "-ERR No shutdown in progress.\r\n+OK\r\n", "{signal}");
    }
    assert_eq!(home.told("SCRIPT KILL"), "+OK\r\n+OK\r\n");
    home.wait_for("end of the script", |home| (home.told("GET a") == "$-1\r\n+OK\r\n").then_some(()));
    client.write_all(b"EVAL \"while true do end\" 0\r\n").unwrap();
    home.wait_for("busy script", |home| home.told("GET a").starts_with("-BUSY").then_some(()));
    home.signal("-INT");
    home.wait_for("signal", |home| (home.log().matches(TAKEN_IN).count() == 3).then_some(()));
    home.signal("-INT");
    assert_eq!(home.end(), Some(1), "{}", home.log());
}

#[test]
fn a_shutdown_that_cannot_save_is_refused_unless_it_is_forced() {
    let mut home = Home::new("force");
    home.start(&["--save", ""]);
    // No file can take the place of a folder.
    std::fs::create_dir(home.dump()).unwrap();
    let refused = home.told("SET a 1\r\nSHUTDOWN SAVE\r\nGET a");
    assert_eq!(refused, "+OK\r\n-ERR Errors trying to SHUTDOWN. Check logs.\r\n$1\r\n1\r\n+OK\r\n");
    assert_eq!(home.left_over(), 0);
    assert_eq!(home.ask("SHUTDOWN SAVE FORCE\r\n").as_deref(), Some(""));
    assert_eq!(home.end(), Some(0), "{}", home.log());
    assert_eq!(home.left_over(), 0);
}

#[test]
fn writes_are_refused_from_a_failed_snapshot_to_the_next_that_is_written() {
    let mut home = Home::new("misconf");
    home.start(&["--save", "3600 1000000"]);
    std::fs::create_dir(home.dump()).unwrap();
    assert_eq!(home.told("SET a 1\r\nBGSAVE"), "+OK\r\n+Background saving started\r\n+OK\r\n");
    home.wait_for_info("rdb_last_bgsave_status:err\r\n");
    for line in ["SET a 2", "PING", "DEL a"] {
        let refused = home.told(line);
        assert!(refused.starts_with("-MISCONF ") && refused.ends_with("\r\n+OK\r\n"), "{line}: {refused}");
    }
    assert_eq!(home.told("GET a"), "$1\r\n1\r\n+OK\r\n");
    assert_eq!(home.left_over(), 0);
    std::fs::remove_dir(home.dump()).unwrap();
    assert_eq!(home.told("BGSAVE"), "+Background saving started\r\n+OK\r\n");
    home.wait_for_info("rdb_last_bgsave_status:ok\r\n");
    assert_eq!(home.told("SET a 2\r\nPING"), "+OK\r\n+PONG\r\n+OK\r\n");
}

#[test]
fn a_file_that_cannot_be_loaded_ends_the_start_and_stays_as_it_is() {
    let mut home = Home::new("bad");
    home.start(&["--save", ""]);
    assert_eq!(home.told("SET a 1\r\nSAVE"), "+OK\r\n+OK\r\n+OK\r\n");
    let whole = std::fs::read(home.dump()).unwrap();
    home.signal("-KILL");
    home.end();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    for bad in [&whole[..whole.len() - 3], &whole[..9], b"REDIS", b"", b"*1\r\n$4\r\nPING\r\n", &changed] {
        std::fs::write(home.dump(), bad).unwrap();
        std::fs::remove_file(home.path.join("log")).unwrap();
        home.launch(&["--save", "3600 1"]);
        assert_eq!(home.end(), Some(1), "{bad:?}: {}", home.log());
        assert!(home.log().contains("# Fatal error loading the DB from "), "{bad:?}: {}", home.log());
        assert!(std::fs::read(home.dump()).unwrap() == bad, "{bad:?}");
    }
    std::fs::remove_file(home.dump()).unwrap();
    std::fs::create_dir(home.dump()).unwrap();
    home.launch(&["--save", "3600 1"]);
    assert_eq!(home.end(), Some(1));
    assert!(home.log().contains("dump.rdb: it is not a regular file. Exiting."), "{}", home.log());
    std::fs::remove_dir(home.dump()).unwrap();
    // Nobody writes into this pipe: who opened it would wait for ever.
    assert!(Command::new("mkfifo").arg(home.dump()).status().unwrap().success());
    home.launch(&["--save", "3600 1"]);
    assert_eq!(home.end(), Some(1));
    assert_eq!(home.log().matches("it is not a regular file").count(), 2);
}

#[test]
fn requests_are_refused_while_the_file_is_loaded_and_the_end_is_at_once() {
    let mut home = Home::new("loading");
    home.start(&["--save", ""]);
    assert_eq!(home.told("DEBUG POPULATE 20000\r\nSAVE"), "+OK\r\n+OK\r\n+OK\r\n");
    let whole = std::fs::read(home.dump()).unwrap();
    home.signal("-KILL");
    home.end();
    for by_signal in [false, true] {
        // More than a minute, if it were not ended.
        home.launch(&["--save", "3600 1", "--key-load-delay", "10000"]);
        home.wait_for("loading", |home| home.ask("QUIT\r\n"));
        let refused = "-LOADING Redis is loading the dataset in memory\r\n";
        assert_eq!(home.told("PING\r\nGET a\r\nSET a 1"), format!("{}+OK\r\n", refused.repeat(3)));
        let info = home.told("INFO persistence");
        assert!(info.contains("\r\nloading:1\r\n") && info.contains("\r\nloading_total_bytes:"), "{info}");
        match by_signal {
            true => home.signal("-TERM"),
            false => assert_eq!(home.ask("SHUTDOWN NOSAVE\r\n").as_deref(), Some("")),
        }
        assert_eq!(home.end(), Some(0), "{}", home.log());
        assert!(std::fs::read(home.dump()).unwrap() == whole, "half of the data does not replace the file");
    }
}

/// How long the last start in this log took, as far as the hour tells.
fn start_ms(log: &str) -> u32 {
    let at = |what: &str| {
        let line = log.lines().rev().find(|line| line.contains(what)).unwrap();
        let time = line.split_whitespace().find(|word| word.contains('.')).unwrap();
        time.split([':', '.'])
            .skip(1)
            .zip([60_000, 1_000, 1])
            .map(|(n, unit)| n.parse::<u32>().unwrap() * unit)
            .sum()
    };
    let (began, ready): (u32, u32) = (at("Server initialized"), at("Ready to accept"));
    (ready + 3_600_000 - began) % 3_600_000
}

/// As with Redis: programs that start a server wait until its port is open, and ask at once.
#[test]
fn who_asks_while_little_data_is_loaded_waits_and_is_answered() {
    for appends in ["no", "yes"] {
        let mut home = Home::new("little");
        let options = ["--save", "3600 1", "--appendonly", appends];
        home.start(&options);
        assert_eq!(home.told("SET a 1\r\nSHUTDOWN SAVE"), "+OK\r\n");
        home.end();
        for _ in 0..5 {
            home.launch(&options);
            let answer = home.wait_for("answer", |home| home.ask("GET a\r\nQUIT\r\n"));
            home.wait_for_info("\r\nloading:0\r\n");
            let log = home.log();
            assert_eq!(home.ask("SHUTDOWN NOSAVE\r\n").as_deref(), Some(""));
            home.end();
            // A machine may be so busy that it is told of after all.
            let is_late = answer.starts_with("-LOADING") && start_ms(&log) >= 90;
            assert!(is_late || answer == "$1\r\n1\r\n+OK\r\n", "{answer}{log}");
        }
    }
}

#[test]
fn what_is_written_during_a_snapshot_is_in_the_next_and_others_are_served_meanwhile() {
    let mut home = Home::new("moment");
    home.start(&["--save", "", "--rdb-key-save-delay", "1000000"]);
    assert_eq!(home.told("SET a 1\r\nDEBUG POPULATE 500"), "+OK\r\n+OK\r\n+OK\r\n");
    let mut waits = UnixStream::connect(home.path.join("s")).unwrap();
    waits.write_all(b"SAVE\r\nQUIT\r\n").unwrap();
    home.wait_for("snapshot", |home| {
        (home.left_over() == 1 && home.told("SET a 2\r\nSET b 2") == "+OK\r\n+OK\r\n+OK\r\n").then_some(())
    });
    let busy = home.told("SAVE\r\nCONFIG SET rdb-key-save-delay 0");
    assert!(busy.starts_with("-ERR Background save already in progress\r\n"), "{busy}");
    let mut answer = String::new();
    waits.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "+OK\r\n+OK\r\n");
    assert_eq!(home.left_over(), 0);
    assert_eq!(home.told("DEBUG RELOAD NOSAVE\r\nGET a\r\nGET b"), "+OK\r\n$1\r\n1\r\n$-1\r\n+OK\r\n");
    assert_eq!(
        home.told("SET a 3\r\nSAVE\r\nDEBUG RELOAD NOSAVE\r\nGET a"),
        "+OK\r\n+OK\r\n+OK\r\n$1\r\n3\r\n+OK\r\n"
    );
}

#[test]
fn a_reload_amid_a_snapshot_gives_it_up_and_writes_one_of_its_own() {
    let mut home = Home::new("reload");
    home.start(&["--save", "", "--rdb-key-save-delay", "1000000"]);
    assert_eq!(home.told("DEBUG POPULATE 1000\r\nBGSAVE").matches('+').count(), 3);
    home.wait_for("snapshot", |home| (home.left_over() == 1).then_some(()));
    assert_eq!(home.told("CONFIG SET rdb-key-save-delay 0\r\nSET a 1\r\nDEBUG RELOAD"), "+OK\r\n".repeat(4));
    assert!(home.told("INFO persistence").contains("rdb_saves:1\r\n"));
    assert_eq!(home.told("GET a\r\nDBSIZE"), "$1\r\n1\r\n:1001\r\n+OK\r\n");
    // The other would replace it with older data.
    assert!(home.told("INFO persistence").contains("rdb_bgsave_in_progress:0\r\n"));
    assert_eq!(home.left_over(), 0);
    assert_eq!(home.told("DEBUG RELOAD NOSAVE\r\nGET a"), "+OK\r\n$1\r\n1\r\n+OK\r\n");
    assert_eq!(home.told("CONFIG RESETSTAT"), "+OK\r\n+OK\r\n");
    assert!(home.told("INFO persistence").contains("rdb_saves:0\r\n"));
}

#[test]
fn save_points_write_the_file_by_themselves() {
    let mut home = Home::new("points");
    home.start(&["--save", ""]);
    assert_eq!(home.told("CONFIG SET save \"1 1\"\r\nSET a 1"), "+OK\r\n+OK\r\n+OK\r\n");
    home.wait_for("file", |home| home.dump().exists().then_some(()));
    home.wait_for_info("rdb_changes_since_last_save:0\r\n");
    home.signal("-KILL");
    home.end();
    home.start(&["--save", ""]);
    assert_eq!(home.told("GET a"), "$1\r\n1\r\n+OK\r\n");
}

#[test]
fn what_happens_to_the_client_or_the_folder_during_a_snapshot_does_not_change_where_it_goes() {
    let mut home = Home::new("during");
    home.start(&["--save", "", "--rdb-key-save-delay", "1000000", "--enable-protected-configs", "local"]);
    std::fs::create_dir(home.path.join("other")).unwrap();
    assert_eq!(home.told("SET a 1\r\nDEBUG POPULATE 300"), "+OK\r\n+OK\r\n+OK\r\n");
    // The client that waits goes away; the snapshot is of the data as it was when it was asked for.
    let mut leaves = UnixStream::connect(home.path.join("s")).unwrap();
    leaves.write_all(b"SAVE\r\n").unwrap();
    home.wait_for("snapshot", |home| (home.left_over() == 1).then_some(()));
    drop(leaves);
    let other = home.path.join("other").display().to_string();
    let moved = format!("FLUSHDB ASYNC\r\nCONFIG SET dir {other}\r\nCONFIG SET rdb-key-save-delay 0");
    assert_eq!(home.told(&moved), "+OK\r\n".repeat(4));
    home.wait_for("file", |home| home.dump().exists().then_some(()));
    home.wait_for_info("rdb_saves:1\r\n");
    assert!(!home.path.join("other/dump.rdb").exists());
    home.signal("-KILL");
    home.end();
    home.start(&["--save", ""]);
    assert_eq!(home.told("GET a\r\nDBSIZE"), "$1\r\n1\r\n:301\r\n+OK\r\n");
}

#[test]
fn flushall_gives_up_the_snapshot_and_empties_the_file_where_there_are_save_points() {
    for (points, is_emptied) in [("3600 1000", true), ("", false)] {
        let mut home = Home::new("flushall");
        home.start(&["--save", points, "--rdb-key-save-delay", "1000"]);
        assert_eq!(home.told("SET a 1\r\nSAVE\r\nDEBUG POPULATE 3000\r\nBGSAVE").matches("+").count(), 5);
        assert_eq!(home.told("FLUSHALL"), "+OK\r\n+OK\r\n");
        home.wait_for_info("rdb_bgsave_in_progress:0\r\n");
        assert_eq!(home.left_over(), 0);
        home.signal("-KILL");
        home.end();
        home.start(&["--save", ""]);
        let left = if is_emptied { ":0\r\n+OK\r\n" } else { ":1\r\n+OK\r\n" };
        assert_eq!(home.told("DBSIZE"), left);
    }
}

#[test]
fn servers_that_share_a_folder_and_end_amid_snapshots_leave_a_whole_file() {
    let mut home = Home::new("race");
    for round in 0..4 {
        home.start(&["--save", "3600 1", "--rdb-key-save-delay", "100"]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
        command.env_remove("NOTIFY_SOCKET").current_dir(&home.path).args(["--port", "0", "--save", ""]);
        let mut second = command.args(["--unixsocket", "s2", "--logfile", "log2"]).spawn().unwrap();
        let mut stream = home.wait_for("second", |home| UnixStream::connect(home.path.join("s2")).ok());
        stream.write_all(b"SAVE\r\nSHUTDOWN SAVE\r\n").unwrap();
        let line = format!("FLUSHALL ASYNC\r\nDEBUG POPULATE {}\r\nBGSAVE\r\n", 500 + round);
        let mut streams: Vec<_> = (0..3).map(|_| UnixStream::connect(home.path.join("s")).unwrap()).collect();
        streams.iter_mut().for_each(|stream| stream.write_all(line.as_bytes()).unwrap());
        let _ = stream.read_to_end(&mut Vec::new());
        assert_eq!(second.wait().unwrap().code(), Some(0));
        home.wait_for("keys", |home| (!home.told("DBSIZE").starts_with(":0\r\n")).then_some(()));
        assert_eq!(home.ask("SHUTDOWN\r\n").as_deref(), Some(""));
        assert_eq!(home.end(), Some(0), "{}", home.log());
        assert_eq!(home.left_over(), 0);
    }
    home.start(&["--save", ""]);
    let size = home.told("DBSIZE");
    assert!(size != ":0\r\n+OK\r\n", "{size}");
}
