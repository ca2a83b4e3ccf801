//! `sardine check` on files that a real redis-server wrote, and on what damage makes of them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::scratch::Scratch;

/// The exit status and what was printed.
fn check(program: &Path, words: &[&Path]) -> (i32, String) {
    let output = Command::new(program).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn sardine(file: &Path) -> (i32, String) {
    check(Path::new(env!("CARGO_BIN_EXE_sardine")), &[Path::new("check"), file])
}

/// A dump file of keys of all types; None without a redis-server.
fn dump(folder: &Path) -> Option<PathBuf> {
    let Some(server) = RedisServer::installed().unwrap() else {
        skip_without("redis-server");
        return None;
    };
    let mut client = RespClient::connect(&server.address()).unwrap();
    let requests = [
        "SET plain value",
        "SET passing value PX 1",
        "SET staying value EX 1000",
        "RPUSH list a b c",
        "SADD set 1 2 3",
        "SADD names a b",
        "HSET hash field value",
        "ZADD zset 1 a 2.5 b",
        "XADD stream 1-1 field value",
        "SELECT 9",
        "SET other value",
    ];
    client.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"]).unwrap();
    for request in requests {
        client.call(&request.split(' ').collect::<Vec<_>>()).unwrap();
    }
    client.call(&["SAVE"]).unwrap();
    let path = folder.join("dump.rdb");
    fs::copy(server.folder().join("dump.rdb"), &path).unwrap();
    Some(path)
}

#[test]
fn a_good_file_is_shown_with_what_is_in_it() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let (status, text) = sardine(&path);
    assert_eq!(status, 0, "{text}");
    for line in [
        "RDB version 10\n",
        "redis-ver: ",
        "keys: 10\n",
        "with a deadline: 2 (1 have expired)",
        "string: 4\n",
        "set: 2 with 5 elements",
        "zset: 1 with 2 elements",
        "stream: 1 with 1 elements",
        "and its checksum is right",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let link = folder.path().join("redis-check-rdb");
    symlink(env!("CARGO_BIN_EXE_sardine"), &link).unwrap();
    assert_eq!(check(&link, &[&path]), (status, text));
}

#[test]
fn no_cut_and_no_changed_byte_passes_for_good() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let good = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged.rdb");
    let step = good.len() / 12;
    for at in (0..good.len()).step_by(step) {
        fs::write(&damaged, &good[..at]).unwrap();
        let (status, text) = sardine(&damaged);
        assert_eq!(status, 1, "cut at {at}: {text}");
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        fs::write(&damaged, &bytes).unwrap();
        let (status, text) = sardine(&damaged);
        assert_eq!(status, 1, "changed at {at}: {text}");
    }
}

#[test]
fn a_broken_value_is_named_with_its_key() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let mut bytes = fs::read(&path).unwrap();
    // Behind the name and the length of the listpack stand its own length and number of elements.
    let at = bytes.windows(4).position(|part| part == b"zset").unwrap() + 4;
    bytes[at + 1] = 0xFF;
    fs::write(&path, &bytes).unwrap();
    let (status, text) = sardine(&path);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("BROKEN: the value of 'zset' in database 0"), "{text}");
    let (status, text) = check_and_say(&["--fix", &path.to_string_lossy()], "y\n");
    assert!(status == 1 && text.contains("A dump file cannot be mended"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was written");
}

const SET: &str = "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n";

/// Checks with these words, and says yes or no to what is asked.
pub(crate) fn check_and_say(words: &[&str], answer: &str) -> (i32, String) {
    use std::io::Write;
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sardine"));
    command.arg("check").args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may not ask, and be gone by now.
    let _ = child.stdin.take().unwrap().write_all(answer.as_bytes());
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn an_append_only_file_is_checked_and_what_is_wrong_at_its_end_is_cut_off() {
    let folder = Scratch::new("check").unwrap();
    let path = |name: &str| folder.path().join(name);
    let manifest = "file a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n";
    fs::write(path("a.manifest"), manifest).unwrap();
    fs::write(path("a.1.incr.aof"), SET).unwrap();
    let whole = format!("{SET}#TS:100\r\n{SET}#TS:200\r\n{SET}");
    fs::write(path("a.2.incr.aof"), &whole).unwrap();
    let shown = path("a.manifest").display().to_string();
    let (status, text) = check_and_say(&[&shown], "");
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("2 files") && text.contains("3 commands"), "{text}");
    for (rest, why) in [
        ("*3\r\n$3\r\nSE", "the file ends too early"),
        ("*1\r\n$5\r\nMULTI\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n1\r\n", "a transaction has no end"),
        ("nothing\r\n", "Expected prefix '*'"),
    ] {
        let broken = format!("{whole}{rest}");
        fs::write(path("a.2.incr.aof"), &broken).unwrap();
        let (status, text) = check_and_say(&[&shown], "y\n");
        assert!(status == 1 && text.contains(why) && text.contains(&whole.len().to_string()), "{text}");
        let (status, text) = check_and_say(&["--fix", &shown], "n\n");
        assert!(status == 1 && text.contains("Nothing was changed"), "{text}");
        assert_eq!(fs::read_to_string(path("a.2.incr.aof")).unwrap(), broken);
        let (status, text) = check_and_say(&["--fix", &shown], "y\n");
        assert_eq!(status, 0, "{text}");
        assert_eq!(fs::read_to_string(path("a.2.incr.aof")).unwrap(), whole);
    }
    let (status, text) = check_and_say(&["--to-timestamp", "150", &shown], "y\n");
    assert_eq!(status, 0, "{text}");
    assert_eq!(fs::read_to_string(path("a.2.incr.aof")).unwrap(), format!("{SET}#TS:100\r\n{SET}"));
    fs::write(path("a.1.incr.aof"), &SET[1..]).unwrap();
    let (status, text) = check_and_say(&["--fix", &shown], "y\n");
    assert!(status == 1 && text.contains("Only the end of the last file"), "{text}");
    fs::write(path("a.manifest"), "file a/b seq 1 type i\n").unwrap();
    assert_eq!(check_and_say(&[&shown], "").0, 1);
}

/// A list of two files; each entry of theirs is the second in which it was written.
fn of_times(folder: &Path) -> (String, [PathBuf; 2]) {
    let manifest = folder.join("a.manifest");
    fs::write(&manifest, "file a.1.incr.aof seq 1 type i\nfile a.2.incr.aof seq 2 type i\n").unwrap();
    let files = [1, 2].map(|number| folder.join(format!("a.{number}.incr.aof")));
    for (file, times) in files.iter().zip([100..103, 103..106]) {
        fs::write(file, times.map(|time| format!("#TS:{time}\r\n{SET}")).collect::<String>()).unwrap();
    }
    (manifest.display().to_string(), files)
}

#[test]
fn only_the_last_file_goes_back_to_a_time_and_never_to_nothing() {
    let folder = Scratch::new("times").unwrap();
    let (manifest, files) = of_times(folder.path());
    let before = files.clone().map(|file| fs::read_to_string(file).unwrap());
    for (time, why) in
        [("99", "Files follow"), ("101", "Files follow"), ("102", "It has nothing that was written before.")]
    {
        for fix in [&["--fix"][..], &[]] {
            let words = [fix, &["--to-timestamp", time, &manifest]].concat();
            let (status, text) = check_and_say(&words, "y\ny\n");
            assert!(
                status == 1 && text.contains(why) && text.contains("Nothing was changed"),
                "{time}: {text}"
            );
            assert_eq!(files.clone().map(|file| fs::read_to_string(file).unwrap()), before, "{time}");
        }
    }
    // So it is with a file that no list names.
    let (status, text) = check_and_say(&["--to-timestamp", "102", files[1].to_str().unwrap()], "y\n");
    assert!(status == 1 && text.contains("It has nothing that was written before."), "{text}");
    for (time, entries) in [("200", 3), ("105", 3), ("104", 2), ("103", 1)] {
        let (status, text) = check_and_say(&["--to-timestamp", time, &manifest], "y\n");
        assert_eq!(status, 0, "{time}: {text}");
        let uncut = text.matches("It has nothing that was written later: nothing is cut.").count();
        assert_eq!(uncut, if entries == 3 { 2 } else { 1 }, "{time}: {text}");
        let len = before[1].len() / 3 * entries;
        assert_eq!(fs::read_to_string(&files[1]).unwrap(), before[1][..len], "{time}");
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), before[0], "{time}");
    }
}

#[test]
fn a_file_without_times_cannot_go_back_to_one() {
    let folder = Scratch::new("timeless").unwrap();
    let path = folder.path().join("a.aof");
    fs::write(&path, SET).unwrap();
    let (status, text) = check_and_say(&["--to-timestamp", "5", path.to_str().unwrap()], "y\n");
    assert!(status == 0 && text.contains("It has no timestamps: nothing is cut."), "{text}");
    assert_eq!(fs::read_to_string(&path).unwrap(), SET);
}

#[test]
fn what_is_no_data_is_called_so() {
    let folder = Scratch::new("letter").unwrap();
    let path = folder.path().join("letter.txt");
    fs::write(&path, "Dear all").unwrap();
    let (status, text) = sardine(&path);
    assert!(status == 1 && text.contains("is neither a dump file nor an append-only file"), "{text}");
    let (status, text) = sardine(&folder.path().join("nothing.rdb"));
    assert!(status == 1 && text.ends_with("No such file or directory\n"), "{text}");
}

#[test]
fn an_increment_is_commands_whatever_it_begins_with() {
    let folder = Scratch::new("zeros").unwrap();
    let (manifest, files) = of_times(folder.path());
    for start in [&[0; 50][..], b"REDIS0010", b"file x seq 1 type i\n", b"x"] {
        fs::write(&files[1], start).unwrap();
        let (status, text) = check_and_say(&[&manifest], "");
        assert!(
            status == 1 && text.contains("Expected prefix '*' (at byte 0). It is good up to byte 0."),
            "{text}"
        );
        let (status, text) = check_and_say(&["--fix", &manifest], "y\n");
        assert_eq!(status, 0, "{text}");
        assert_eq!(fs::read(&files[1]).unwrap(), b"");
        assert_eq!(check_and_say(&[&manifest], "").0, 0);
    }
}

#[test]
fn commands_behind_a_dump_file_are_checked_too() {
    let folder = Scratch::new("check").unwrap();
    let Some(path) = dump(folder.path()) else { return };
    let dump = fs::read(&path).unwrap();
    fs::write(&path, [&dump[..], SET.as_bytes()].concat()).unwrap();
    let shown = path.display().to_string();
    let (status, text) = check_and_say(&[&shown], "");
    assert!(status == 0 && text.contains("1 command,"), "{text}");
    fs::write(&path, [&dump[..], SET.as_bytes(), b"*1"].concat()).unwrap();
    assert_eq!(check_and_say(&["--fix", &shown], "y\n").0, 0);
    assert_eq!(fs::read(&path).unwrap(), [&dump[..], SET.as_bytes()].concat());
}

/// A reader may close the pipe at once, and the output may go to a disk that is full. A file is cut only
/// where the question could be asked.
#[test]
fn what_is_printed_may_be_lost() {
    let folder = Scratch::new("printed").unwrap();
    let path = folder.path().join("a.aof");
    let whole = b"*1\r\n$4\r\nPING\r\n";
    let broken = [&whole[..], b"*2\r\n$3\r\nG"].concat();
    for (content, option, pipe_status) in [(&whole[..], "", 0), (&broken, "", 1), (&broken, "--fix", 1)] {
        fs::write(&path, content).unwrap();
        let check = format!("{} check {option} {}", env!("CARGO_BIN_EXE_sardine"), path.display());
        for (line, status) in [
            (format!("{{ sleep 0.1; yes y | {check}; echo $? >&2; }} | true"), pipe_status),
            (format!("yes y | {check} > /dev/full; echo $? >&2"), 1),
        ] {
            let told = Command::new("bash").args(["-c", &line]).output().unwrap();
            let text = String::from_utf8(told.stderr).unwrap();
            assert_eq!(text.lines().last(), Some(status.to_string().as_str()), "{line}: {text}");
            assert!(!text.contains("panicked"), "{line}: {text}");
            assert!(fs::read(&path).unwrap() == content, "{line}");
        }
    }
}
