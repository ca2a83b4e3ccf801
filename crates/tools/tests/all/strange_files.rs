//! Files that are none, or somebody else's: links, devices, pipes and folders in the place of the dump file
//! and of the parts of an append-only file; files that may not be read or written; files that change while
//! they are read; two servers in one folder. A server either does not start and says why, and leaves
//! everything as it was, or loses nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use crate::home::Home;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::resp_client::request;

const OK: &str = "+OK\r\n";
const APPENDS: [&str; 6] = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
const SAVES: [&str; 2] = ["--save", "3600 1000000"];
/// Somebody without rights, on every system.
const NOBODY: u32 = 65534;

/// What may be in the place of a file.
const STRANGE: [&str; 7] = ["/dev/null", "/dev/full", "/dev/zero", "itself", "nowhere", "a pipe", "a folder"];

fn put(what: &str, path: &Path) {
    match what {
        "itself" => symlink(path, path).unwrap(),
        "a pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "a folder" => fs::create_dir(path).unwrap(),
        target => symlink(target, path).unwrap(),
    }
}

/// All that is in a folder: what it is, how long and where it leads.
fn seen(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, Option<PathBuf>)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let about = fs::symlink_metadata(&path).unwrap();
        if about.is_dir() {
            all.extend(seen(&path));
        }
        let is_ours = path.file_name().is_some_and(|name| name != "log" && name != "s");
        if is_ours {
            let len = if about.is_dir() { 0 } else { about.len() };
            all.insert(path.clone(), (about.mode(), len, fs::read_link(&path).ok()));
        }
    }
    all
}

/// A start that has to fail, for this reason, and changes nothing.
fn is_refused(home: &mut Home, options: &[&str], why: &str, what: &str) {
    let before = seen(&home.path);
    let _ = fs::remove_file(home.path.join("log"));
    home.launch(options);
    assert_eq!(home.end(), Some(1), "{what}: {}", home.log());
    assert!(home.log().contains("# Fatal error") && home.log().contains(why), "{what}: {}", home.log());
    assert_eq!(seen(&home.path), before, "{what}");
}

fn ended(home: &mut Home) {
    home.signal("-KILL");
    home.end();
}

fn why_not(what: &str) -> &'static str {
    match what {
        "itself" => "Too many levels of symbolic links",
        "nowhere" => "No such file or directory",
        _ => "it is not a regular file",
    }
}

#[test]
fn no_dump_file_is_read_that_is_no_file_and_a_link_to_one_is_replaced() {
    for what in STRANGE.into_iter().filter(|what| *what != "nowhere") {
        let mut home = Home::new("strange-dump");
        put(what, &home.dump());
        is_refused(&mut home, &SAVES, why_not(what), what);
    }
    let mut home = Home::new("linked-dump");
    home.start(&SAVES);
    assert_eq!(home.told("SET a 1\r\nSAVE"), OK.repeat(3));
    ended(&mut home);
    let real = home.path.join("real");
    fs::rename(home.dump(), &real).unwrap();
    symlink("real", home.dump()).unwrap();
    let before = fs::read(&real).unwrap();
    home.start(&SAVES);
    assert_eq!(home.told("GET a\r\nSET a 2\r\nSAVE"), format!("$1\r\n1\r\n{}", OK.repeat(3)));
    assert!(!home.dump().is_symlink() && fs::read(&real).unwrap() == before, "as in Redis");
    ended(&mut home);
    // As in Redis a link to nothing is as good as no file.
    fs::remove_file(home.dump()).unwrap();
    symlink("nowhere", home.dump()).unwrap();
    home.start(&SAVES);
    assert_eq!(home.told("DBSIZE"), format!(":0\r\n{OK}"));
}

/// A folder with an append-only file of a base and an increment.
fn with_append_only_file(name: &str) -> (Home, [PathBuf; 3]) {
    let mut home = Home::new(name);
    home.start(&APPENDS);
    home.told("SET a 1\r\nBGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    assert_eq!(home.told("RPUSH l 1 2 3"), format!(":3\r\n{OK}"));
    ended(&mut home);
    let folder = home.path.join("appendonlydir");
    let names = ["appendonly.aof.manifest", "appendonly.aof.1.base.rdb", "appendonly.aof.2.incr.aof"];
    (home, names.map(|name| folder.join(name)))
}

#[test]
fn no_part_of_an_append_only_file_is_read_that_is_no_file() {
    let (mut home, parts) = with_append_only_file("strange-append");
    let aside = home.path.join("aside");
    for part in &parts {
        for what in STRANGE {
            fs::rename(part, &aside).unwrap();
            put(what, part);
            is_refused(&mut home, &APPENDS, why_not(what), &format!("{what} as {}", part.display()));
            if part.is_dir() && !part.is_symlink() { fs::remove_dir(part) } else { fs::remove_file(part) }
                .unwrap();
            fs::rename(&aside, part).unwrap();
        }
    }
    // Links to whole files are read, and what is appended goes where they lead.
    for part in &parts {
        let name = part.file_name().unwrap().to_str().unwrap();
        fs::rename(part, home.path.join(name)).unwrap();
        symlink(home.path.join(name), part).unwrap();
    }
    home.start(&APPENDS);
    assert_eq!(home.told("RPUSH l 4"), format!(":4\r\n{OK}"));
    ended(&mut home);
    home.start(&APPENDS);
    assert_eq!(home.told("LLEN l\r\nGET a"), format!(":4\r\n$1\r\n1\r\n{OK}"));
}

#[test]
fn the_folder_of_an_append_only_file_may_be_a_link_to_one_and_nothing_else() {
    let (mut home, _) = with_append_only_file("strange-folder");
    let (folder, aside) = (home.path.join("appendonlydir"), home.path.join("aside"));
    fs::rename(&folder, &aside).unwrap();
    for what in STRANGE.into_iter().filter(|what| *what != "a folder") {
        put(what, &folder);
        let why = match what {
            "itself" | "nowhere" => why_not(what),
            _ => "Not a directory",
        };
        is_refused(&mut home, &APPENDS, why, what);
        fs::remove_file(&folder).unwrap();
    }
    symlink("aside", &folder).unwrap();
    home.start(&APPENDS);
    assert_eq!(home.told("LLEN l\r\nGET a"), format!(":3\r\n$1\r\n1\r\n{OK}"));
    assert!(folder.is_symlink());
}

#[test]
fn files_whose_list_is_lost_are_not_written_over() {
    let (mut home, [list, base, increment]) = with_append_only_file("lost-list");
    let aside = home.path.join("aside");
    fs::rename(&list, &aside).unwrap();
    let before = [&base, &increment].map(|path| fs::read(path).unwrap());
    home.start(&APPENDS);
    assert_eq!(home.told("DBSIZE"), format!(":0\r\n{OK}"), "as in Redis");
    assert!(home.log().contains("There is no list of the append-only file's files"), "{}", home.log());
    home.told("SET b 1\r\nBGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    ended(&mut home);
    let kept = |path: &Path| PathBuf::from(format!("{}.unlisted-1", path.display()));
    assert!([&base, &increment].map(|path| fs::read(kept(path)).unwrap()) == before);
    // Whoever finds the list has all.
    [&base, &increment].iter().for_each(|path| fs::rename(kept(path), path).unwrap());
    fs::rename(&aside, &list).unwrap();
    home.start(&APPENDS);
    assert_eq!(home.told("LLEN l\r\nGET a"), format!(":3\r\n$1\r\n1\r\n{OK}"));
}

/// Whether tests run as somebody who may do everything; then a server can run as somebody who may not.
fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn files_that_may_not_be_read_or_written_end_the_start_and_saves_fail() {
    if !is_root() {
        return;
    }
    let (mut home, [list, base, increment]) = with_append_only_file("denied");
    let folder = home.path.join("appendonlydir");
    home.user = Some(NOBODY);
    fs::remove_file(home.path.join("s")).unwrap();
    let set = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    set(&home.path, 0o777);
    for (path, mode) in
        [(&list, 0o600), (&base, 0o600), (&increment, 0o600), (&increment, 0o444), (&folder, 0o755)]
    {
        [&list, &base, &increment].iter().for_each(|path| set(path, 0o666));
        set(&folder, 0o777);
        set(path, mode);
        is_refused(&mut home, &APPENDS, "Permission denied", &format!("{} {mode:o}", path.display()));
    }
    [&list, &base, &increment].iter().for_each(|path| set(path, 0o666));
    set(&folder, 0o777);
    home.start(&APPENDS);
    assert_eq!(home.told("LLEN l"), format!(":3\r\n{OK}"));
    // The folder is taken away while it runs: what is appended goes on, nothing begins anew.
    set(&folder, 0o555);
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_last_bgrewrite_status:err\r\n");
    assert_eq!(home.told("RPUSH l 4"), format!(":4\r\n{OK}"));
    set(&folder, 0o777);
    home.told("BGREWRITEAOF");
    home.wait_for_info("aof_last_bgrewrite_status:ok\r\n");
    ended(&mut home);
    home.start(&APPENDS);
    assert_eq!(home.told("LLEN l"), format!(":4\r\n{OK}"));
    ended(&mut home);

    let mut home = Home::new("denied-dump");
    set(&home.path, 0o777);
    home.user = Some(NOBODY);
    home.start(&SAVES);
    assert_eq!(home.told("SET a 1\r\nSAVE"), OK.repeat(3));
    // A file of somebody else is replaced, if the folder is ours.
    chown(home.dump(), Some(0), Some(0)).unwrap();
    assert_eq!(home.told("SET a 2\r\nSAVE"), OK.repeat(3));
    assert_eq!(fs::metadata(home.dump()).unwrap().uid(), NOBODY);
    set(&home.path, 0o555);
    assert_eq!(home.told("BGSAVE"), format!("+Background saving started\r\n{OK}"));
    home.wait_for_info("rdb_last_bgsave_status:err\r\n");
    assert!(home.told("SET a 3").starts_with("-MISCONF "));
    assert_eq!(home.told("SAVE"), format!("-ERR\r\n{OK}"));
    set(&home.path, 0o777);
    home.told("BGSAVE");
    home.wait_for_info("rdb_last_bgsave_status:ok\r\n");
    assert_eq!(home.told("SET a 3"), OK.repeat(2));
    ended(&mut home);
    set(&home.dump(), 0o000);
    is_refused(&mut home, &SAVES, "Permission denied", "a dump file that may not be read");
}

#[test]
fn a_file_that_changes_while_it_is_loaded_ends_the_start() {
    let (mut home, [.., increment]) = with_append_only_file("changing");
    home.start(&APPENDS);
    let value = "x".repeat(100_000);
    for at in 0..30 {
        // Not in a line: of one that long it is enough to see a part for a protocol error.
        let set = String::from_utf8(request(&["SET", &format!("k{at}"), &value])).unwrap();
        assert_eq!(home.told(&set).lines().next(), Some("+OK"));
    }
    ended(&mut home);
    let whole = fs::read(&increment).unwrap();
    let slowly = [&APPENDS[..], &["--key-load-delay", "60000"]].concat();
    for len in [2_000_000, whole.len() as u64 + 10] {
        fs::write(&increment, &whole).unwrap();
        fs::remove_file(home.path.join("log")).unwrap();
        home.launch(&slowly);
        // A length that has changed before the file is opened is simply its length.
        home.wait_for("part of the file", |home| {
            let info = home.ask("INFO persistence\r\nQUIT\r\n")?;
            let loaded = info.lines().find_map(|line| line.strip_prefix("loading_loaded_bytes:"))?;
            (loaded.parse::<u64>().ok()? > 100_000).then_some(())
        });
        fs::File::options().write(true).open(&increment).unwrap().set_len(len).unwrap();
        assert_eq!(home.end(), Some(1), "{}", home.log());
        // It is seen where the file ends, or in what was added.
        let reasons = ["somebody changes it", "Bad file format"];
        assert!(reasons.iter().any(|why| home.log().contains(why)), "{len}: {}", home.log());
        assert_eq!(fs::metadata(&increment).unwrap().len(), len, "nothing is cut or appended");
    }
}

/// Starts a server that reads its files slowly, cuts one of them to this length when `mark` is in the log,
/// and expects that the start ends for this reason, with nothing written.
fn is_refused_when_cut(home: &mut Home, options: &[&str], mark: &str, (cut, len): (&Path, u64), why: &str) {
    let _ = fs::remove_file(home.path.join("log"));
    home.launch(&[options, &["--key-load-delay", "50000"]].concat());
    home.wait_for(mark, |home| home.log().contains(mark).then_some(()));
    fs::File::options().write(true).open(cut).unwrap().set_len(len).unwrap();
    // Neither by a panic nor by a signal.
    assert_eq!(home.end(), Some(1), "{len}: {}", home.log());
    let fatal = format!("Fatal error loading {why}");
    assert!(
        home.log().contains(&fatal) && home.log().contains("the file ends too early (at byte "),
        "{len}: {}",
        home.log()
    );
    assert_eq!(fs::metadata(cut).unwrap().len(), len, "nothing is cut or appended");
}

#[test]
fn a_dump_file_that_shrinks_while_it_is_read_ends_the_start() {
    let mut home = Home::new("shrinking-dump");
    let plain = [&SAVES[..], &["--rdbcompression", "no"]].concat();
    home.start(&plain);
    // Keys too large for a batch are loaded one by one by the thread that reads the file.
    assert_eq!(home.told("DEBUG POPULATE 30 large 600000\r\nSAVE"), OK.repeat(3));
    ended(&mut home);
    let (dump, whole) = (home.dump(), fs::read(home.dump()).unwrap());
    for checksum in ["yes", "no"] {
        let options = [&plain[..], &["--rdbchecksum", checksum]].concat();
        for len in [0, 5, 2_000_000, 8_000_000] {
            fs::write(&dump, &whole).unwrap();
            is_refused_when_cut(&mut home, &options, "Loading RDB of version", (&dump, len), "the DB from");
        }
    }
    // Whoever puts the file back has all.
    fs::write(&dump, &whole).unwrap();
    home.start(&plain);
    assert_eq!(home.told("DBSIZE\r\nSTRLEN large:29"), format!(":30\r\n:600000\r\n{OK}"));
    ended(&mut home);

    // The same as the base of an append-only file.
    let (mut home, [_, base, _]) = with_append_only_file("shrinking-base");
    let plain = [&APPENDS[..], &["--rdbcompression", "no"]].concat();
    home.start(&plain);
    home.told("DEBUG POPULATE 30 large 600000\r\nBGREWRITEAOF");
    home.wait_for_info("aof_rewrites:1\r\n");
    ended(&mut home);
    let base = base.with_file_name("appendonly.aof.2.base.rdb");
    let whole = fs::read(&base).unwrap();
    for len in [0, 2_000_000] {
        fs::write(&base, &whole).unwrap();
        let why = "the append only file";
        is_refused_when_cut(&mut home, &plain, "Loading RDB of version", (&base, len), why);
    }
    fs::write(&base, &whole).unwrap();
    home.start(&plain);
    assert_eq!(home.told("DBSIZE\r\nSTRLEN large:29"), format!(":32\r\n:600000\r\n{OK}"));
}

#[test]
fn a_second_server_in_the_folder_of_a_first_disturbs_nothing() {
    let (mut home, _) = with_append_only_file("second");
    home.start(&APPENDS);
    let folder = home.path.join("appendonlydir");
    let mut second = Home::new("second-other");
    let dir = home.path.to_str().unwrap().to_owned();
    let log = second.path.join("log").to_str().unwrap().to_owned();
    let socket = second.path.join("s").to_str().unwrap().to_owned();
    let there = ["--dir", &dir, "--logfile", &log, "--unixsocket", &socket];
    let before = seen(&folder);
    second.launch(&[&there[..], &APPENDS].concat());
    assert_eq!(second.end(), Some(1));
    assert!(second.log().contains("another server uses the folder"), "{}", second.log());
    assert_eq!(seen(&folder), before);
    // One that only saves may share a folder, as in Redis: each replaces the dump file as a whole.
    home.told("CONFIG SET rdb-key-save-delay 100000\r\nDEBUG POPULATE 500\r\nBGSAVE");
    home.wait_for("new file", |home| (home.left_over() == 1).then_some(()));
    second.start(&[&there[..], &SAVES].concat());
    assert_eq!(home.left_over(), 1, "the other's file is not taken for one that was left");
    assert_eq!(second.told("SET second 1\r\nSAVE"), OK.repeat(3));
    home.told("CONFIG SET rdb-key-save-delay 0");
    home.wait_for_info("rdb_bgsave_in_progress:0\r\n");
    home.wait_for_info("rdb_last_bgsave_status:ok\r\n");
    assert_eq!(home.left_over(), 0);
    ended(&mut second);
    second.start(&[&there[..], &SAVES].concat());
    assert_eq!(second.told("LLEN l\r\nEXISTS second"), format!(":3\r\n:0\r\n{OK}"), "the last one counts");
    assert_eq!(home.told("LLEN l"), format!(":3\r\n{OK}"));
}
