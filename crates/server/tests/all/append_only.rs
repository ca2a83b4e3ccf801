//! The append-only file, with the server in this process: what is loaded from files that are whole, cut,
//! damaged, or of an older form, and who waits for the disk.
use crate::client::{Client, bulk, config, request, start};
use base::random::Random;
use server::{AppendSync, Appending, Clock, Config, Log, Running};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder of a test's own, gone when the test ends.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("sardine-append-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// With an append-only file of these bytes.
    pub(crate) fn holding(name: &str, bytes: &[u8]) -> Folder {
        let folder = Folder::new(name);
        folder.write(&[(MANIFEST, ONE), (FIRST, bytes)]);
        folder
    }

    pub(crate) fn config(&self, sync: AppendSync) -> Config {
        let append = Appending { is_wanted: true, sync, ..Appending::default() };
        Config { dir: self.0.clone(), append, worker_threads: 1, shard_bits: 2, ..config() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join("appendonlydir").join(name)
    }

    /// Makes the files of an append-only file.
    pub(crate) fn write(&self, files: &[(&str, &[u8])]) {
        let _ = std::fs::remove_dir_all(self.0.join("appendonlydir"));
        std::fs::create_dir(self.0.join("appendonlydir")).unwrap();
        for (name, bytes) in files {
            std::fs::write(self.file(name), bytes).unwrap();
        }
    }

    pub(crate) fn start(&self) -> Result<Running, String> {
        self.start_with(self.config(AppendSync::EverySecond))
    }

    pub(crate) fn start_with(&self, config: Config) -> Result<Running, String> {
        server::start(config, Clock::real(), Log::silent()).map_err(|error| error.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) const MANIFEST: &str = "appendonly.aof.manifest";
pub(crate) const FIRST: &str = "appendonly.aof.1.incr.aof";
pub(crate) const SECOND: &str = "appendonly.aof.2.incr.aof";
pub(crate) const ONE: &[u8] = b"file appendonly.aof.1.incr.aof seq 1 type i\n";
const TWO: &[u8] =
    b"file appendonly.aof.1.incr.aof seq 1 type i\nfile appendonly.aof.2.incr.aof seq 2 type i\n";

pub(crate) fn command(words: &str) -> Vec<u8> {
    request(&words.split(' ').collect::<Vec<_>>())
}

/// A list of numbers, whose length says how many commands were run.
pub(crate) fn pushes(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| command(&format!("RPUSH l {number}"))).collect()
}

pub(crate) fn len(server: &Running) -> usize {
    let mut client = Client::connect(server);
    client.send(b"LLEN l\r\n");
    let mut reply = String::new();
    while !reply.ends_with('\n') {
        reply.push(char::from(client.read(1)[0]));
    }
    reply.trim().trim_start_matches(':').parse().unwrap()
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn a_file_that_was_cut_anywhere_gives_its_whole_commands_and_goes_on_behind_them() {
    let folder = Folder::new("cut");
    let (one, whole) = (pushes(1).len(), pushes(4));
    for cut in 0..=whole.len() {
        folder.write(&[(MANIFEST, ONE), (FIRST, &whole[..cut])]);
        let server = folder.start().unwrap();
        assert_eq!(len(&server), cut / one, "cut at {cut}");
        Client::connect(&server).check("RPUSH l more", &format!(":{}\r\n", cut / one + 1));
        server.stop();
        let server = folder.start().unwrap();
        assert_eq!(len(&server), cut / one + 1, "cut at {cut}");
    }
}

/// A worker may take such a field for present a moment longer than the snapshot; what it does to it then is
/// not to make a field that has no deadline, when the file is loaded.
#[test]
fn a_base_has_fields_that_are_past_their_deadline_and_not_removed_yet() {
    for begins_with_dump in [true, false] {
        let folder = Folder::new("overdue");
        let config = folder.config(AppendSync::Always);
        let append = Appending { begins_with_dump, ..config.append };
        let (clock, time) = Clock::simulated(base::Millis(1_780_000_000_000));
        let server = server::start(Config { append, ..config }, clock, Log::silent()).unwrap();
        let mut client = Client::connect(&server);
        client.check("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n");
        client.check("HSET h overdue 1", ":1\r\n");
        client.check("HPEXPIRE h 10 FIELDS 1 overdue", "*1\r\n:1\r\n");
        time.advance(Duration::from_millis(20));
        client.check("HLEN other", ":0\r\n");
        client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        let name = if begins_with_dump { "appendonly.aof.1.base.rdb" } else { "appendonly.aof.1.base.aof" };
        while !folder.file(name).exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(read(&folder.file(name)).windows(7).any(|bytes| bytes == b"overdue"), "{name}");
        server.stop();
        let (clock, time) = Clock::simulated(base::Millis(1_780_000_000_020));
        let server = server::start(folder.config(AppendSync::Always), clock, Log::silent()).unwrap();
        let mut client = Client::connect(&server);
        client.check("HGETALL h", "*0\r\n");
        time.advance(Duration::from_millis(1));
        client.check("DBSIZE", ":0\r\n");
    }
}

/// Behind FLUSHDB the deadline of a field was known to its own shard only, and nobody looked for it.
#[test]
fn a_field_whose_deadline_has_passed_goes_after_a_load_whatever_was_flushed_before() {
    let now = 1_780_000_000_000_i64;
    let folder = Folder::new("flushed");
    let lines = [
        format!("SET later v PXAT {}", now + 100_000_000),
        "SELECT 1".into(),
        "FLUSHDB".into(),
        "SELECT 0".into(),
        "HSET h f v".into(),
        format!("HPEXPIREAT h {} FIELDS 1 f", now - 5),
    ];
    folder.write(&[(MANIFEST, ONE), (FIRST, &lines.map(|line| command(&line)).concat())]);
    let (clock, _) = Clock::simulated(base::Millis(now));
    let config = Config { shard_bits: 0, ..folder.config(AppendSync::EverySecond) };
    let server = server::start(config, clock, Log::silent()).unwrap();
    let mut client = Client::connect(&server);
    // Each request is a turn of the worker, at which what is due goes.
    let is_there = |client: &mut Client| {
        client.send(b"EXISTS h\r\n");
        client.read(4)[1] == b'1'
    };
    assert!((0..1000).any(|_| !is_there(&mut client)));
    client.check("DBSIZE", ":1\r\n");
}

#[test]
fn a_transaction_without_its_end_is_taken_back() {
    let folder = Folder::new("transaction");
    let open = [pushes(2), command("MULTI"), command("DEL l"), command("SET a 1")].concat();
    for rest in [&b""[..], b"*3\r\n$3\r\nSE"] {
        folder.write(&[(MANIFEST, ONE), (FIRST, &[&open[..], rest].concat())]);
        let server = folder.start().unwrap();
        assert_eq!(len(&server), 2);
        server.stop();
        assert_eq!(read(&folder.file(FIRST)), pushes(2));
    }
    let whole = [&open[..], &command("EXEC")].concat();
    folder.write(&[(MANIFEST, ONE), (FIRST, &whole)]);
    assert_eq!(len(&folder.start().unwrap()), 0);
}

#[test]
fn a_cut_end_is_refused_where_it_may_not_be_or_another_file_follows() {
    let folder = Folder::new("refused");
    let cut = &pushes(3)[..pushes(3).len() - 2];
    folder.write(&[(MANIFEST, ONE), (FIRST, cut)]);
    let mut strict = folder.config(AppendSync::EverySecond);
    strict.append.may_be_truncated = false;
    let why = folder.start_with(strict).err().unwrap();
    assert!(why.contains("Unexpected end of file reading the append only file"), "{why}");
    folder.write(&[(MANIFEST, TWO), (FIRST, cut), (SECOND, &pushes(1))]);
    let why = folder.start().err().unwrap();
    assert!(why.contains("it is not the last file") && why.contains(&pushes(2).len().to_string()), "{why}");
    assert_eq!(read(&folder.file(FIRST)), cut, "nothing was changed");
    // No crash leaves a base like that, even where nothing was appended behind it.
    let based = b"file base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n";
    folder.write(&[(MANIFEST, &based[..]), ("base.aof", cut), (FIRST, b"")]);
    let why = folder.start().err().unwrap();
    assert!(why.contains("base.aof") && why.contains("it is not the last file"), "{why}");
    assert_eq!(read(&folder.file("base.aof")), cut, "nothing was changed");
}

#[test]
fn whatever_is_damaged_is_told_with_its_place_and_takes_no_other_command_along() {
    let folder = Folder::new("damaged");
    let queued = [command("MULTI"), command("RPUSH l 2"), command("RPUSH l 3"), command("EXEC")].concat();
    let whole = [&pushes(2)[..], b"#TS:1780000000\r\n", &queued, &command("RPUSH l 4")].concat();
    let mut refused = 0;
    for (at, bit) in (0..whole.len()).flat_map(|at| [(at, at % 8), (at, (at + 3) % 8), (at, (at + 6) % 8)]) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
        match folder.start() {
            // Another word, key or element, or the end of the last command is missing.
            Ok(server) => assert!(len(&server) >= 4, "bit {bit} of byte {at}"),
            Err(why) => {
                assert!(why.contains(FIRST) && why.contains("at byte"), "{at}: {why}");
                assert_eq!(read(&folder.file(FIRST)), bytes, "it is left as it is");
                refused += 1;
            }
        }
    }
    assert!(refused > whole.len() / 4, "{refused}");
}

/// Commands of one key, of several, of none, and transactions, on few keys of two databases.
fn mixed(random: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in 0..count {
        let (a, b) = (random.below(24), random.below(24));
        let text = match random.below(24) {
            0 => format!("RENAME n{a} n{b}"),
            1 => format!("DEL n{a} t{b} l{a}"),
            2 => format!("SELECT {}", a % 2),
            3 => format!("COPY n{a} n{b} REPLACE"),
            4 => format!("LMOVE l{a} l{b} LEFT RIGHT"),
            5 if a == 0 => "FLUSHDB".into(),
            5 => {
                bytes.extend(
                    [command("MULTI"), command(&format!("APPEND t{a} <")), command(&format!("INCR n{b}"))]
                        .concat(),
                );
                "EXEC".into()
            }
            6..12 => format!("APPEND t{a} {number},"),
            12..18 => format!("RPUSH l{a} {number}"),
            18 => format!("SET n{a} {number}"),
            _ => format!("INCRBY n{a} {number}"),
        };
        bytes.extend(command(&text));
    }
    bytes
}

#[test]
fn several_threads_load_what_one_thread_loads() {
    let folder = Folder::new("threads");
    for seed in 0..12 {
        let bytes = mixed(&mut Random::new(seed), 3_000);
        folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
        let mut digests = Vec::new();
        for worker_threads in [1, 2, 5] {
            let server =
                folder.start_with(Config { worker_threads, ..folder.config(AppendSync::No) }).unwrap();
            let mut client = Client::connect(&server);
            client.send(b"DEBUG DIGEST\r\n");
            digests.push(client.read(43));
        }
        assert!(
            digests[0][1..41] != [b'0'; 40] && digests.iter().all(|digest| *digest == digests[0]),
            "{seed}"
        );
    }
    let bytes = [mixed(&mut Random::new(1), 50), command("RPUSH l"), mixed(&mut Random::new(2), 50)].concat();
    folder.write(&[(MANIFEST, ONE), (FIRST, &bytes)]);
    let refusals = [1, 4].map(|worker_threads| {
        let config = Config { worker_threads, ..folder.config(AppendSync::No) };
        folder.start_with(config).err().unwrap()
    });
    assert!(
        refusals[0].contains("Wrong number of arguments for 'RPUSH'") && refusals[0] == refusals[1],
        "{refusals:?}"
    );
}

#[test]
fn a_list_of_files_that_is_cut_or_changed_anywhere_is_refused_or_means_the_same() {
    let folder = Folder::new("list");
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("RPUSH l 1 2 3", ":3\r\n");
    client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
    client.wait_for_info("aof_rewrites", "1");
    client.check("RPUSH l 4", ":4\r\n");
    server.stop();
    let files = || {
        let entries = std::fs::read_dir(folder.0.join("appendonlydir")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<std::collections::BTreeSet<_>>()
    };
    let (whole, before) = (read(&folder.file(MANIFEST)), files());
    let cuts = (0..whole.len()).map(|len| whole[..len].to_vec());
    let changes = (0..whole.len()).map(|at| {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        changed
    });
    let mut refused = 0;
    for text in cuts.chain(changes) {
        std::fs::write(folder.file(MANIFEST), &text).unwrap();
        match folder.start() {
            Ok(server) => assert_eq!(len(&server), 4, "{}", String::from_utf8_lossy(&text)),
            Err(why) => {
                assert!(why.contains(MANIFEST), "{why}");
                refused += 1;
            }
        }
        assert_eq!(files(), before, "no file is removed or made");
    }
    assert!(refused > whole.len(), "{refused}");
    std::fs::write(folder.file(MANIFEST), whole).unwrap();
    assert_eq!(len(&folder.start().unwrap()), 4);
}

#[test]
fn a_base_that_is_cut_or_changed_anywhere_is_refused_and_stays() {
    let folder = Folder::new("base");
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    client.check("RPUSH l 1 2 3", ":3\r\n");
    client.check("SET a 1 PXAT 33000000000000", "+OK\r\n");
    client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
    client.wait_for_info("aof_rewrites", "1");
    server.stop();
    let base = folder.file("appendonly.aof.1.base.rdb");
    let whole = read(&base);
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        for bytes in [&whole[..at], &changed] {
            std::fs::write(&base, bytes).unwrap();
            match folder.start() {
                Ok(_) => panic!("cut or changed at {at}"),
                Err(why) => assert!(why.contains("appendonly.aof.1.base.rdb"), "{why}"),
            }
            assert!(read(&base) == bytes);
        }
    }
}

#[test]
fn files_that_are_listed_and_wrong_are_refused() {
    let folder = Folder::new("wrong");
    for (files, expected) in [
        (&[(MANIFEST, &b"file a/b seq 1 type i\n"[..])][..], "line 1: File can't be a path"),
        (&[(MANIFEST, b"")], "Found an empty AOF manifest"),
        (&[(MANIFEST, ONE)], FIRST),
        (&[(MANIFEST, ONE), (FIRST, b"SET a 1\r\n")], "Bad file format"),
        (&[(MANIFEST, ONE), (FIRST, b"*2\r\n$7\r\nNOTHING\r\n$1\r\na\r\n")], "Unknown command 'NOTHING'"),
        (&[(MANIFEST, ONE), (FIRST, b"*2\r\n$6\r\nSELECT\r\n$2\r\n99\r\n")], "There is no database '99'"),
        (&[(MANIFEST, ONE), (FIRST, b"*1\r\n$6\r\nSELECT\r\n")], "Wrong number of arguments for 'SELECT'"),
        (&[(MANIFEST, ONE), (FIRST, b"*2\r\n$3\r\nset\r\n$1\r\na\r\n")], "number of arguments for 'set'"),
        (&[(MANIFEST, ONE), (FIRST, b"*2\r\n$8\r\nFUNCTION\r\n$1\r\na\r\n")], "command 'FUNCTION'"),
        (
            &[
                (MANIFEST, ONE),
                (FIRST, b"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nSET\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n"),
            ],
            "Wrong number of arguments for 'SET' reading the append only file (in the transaction at byte 0)",
        ),
        (&[(MANIFEST, ONE), (FIRST, b"*3\rx$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n")], "Bad file format"),
        (&[(MANIFEST, ONE), (FIRST, b"*3\r\n$3\rxSET\r\n$1\r\na\r\n$1\r\nb\r\n")], "Bad file format"),
        (&[(MANIFEST, ONE), (FIRST, b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r-")], "Bad file format"),
        (&[(MANIFEST, ONE), (FIRST, b"*3\r\n$3\r\nSET\r\n$1\r\naxx$1\r\nb\r\n")], "Bad file format"),
        (&[(MANIFEST, b"file x.rdb seq 1 type b\n"), ("x.rdb", b"REDIS0010\xfa")], "x.rdb"),
    ] {
        folder.write(files);
        let why = folder.start().err().unwrap();
        assert!(why.contains(expected), "{why}");
    }
    folder.write(&[(MANIFEST, ONE)]);
    std::fs::create_dir(folder.file(FIRST)).unwrap();
    assert!(folder.start().err().unwrap().contains("it is not a regular file"));
}

#[test]
fn a_file_of_before_redis_7_is_taken_over() {
    let folder = Folder::new("single");
    std::fs::write(folder.0.join("appendonly.aof"), pushes(3)).unwrap();
    let server = folder.start().unwrap();
    Client::connect(&server).check("RPUSH l more", ":4\r\n");
    server.stop();
    assert!(!folder.0.join("appendonly.aof").exists());
    assert_eq!(read(&folder.file("appendonly.aof")), pushes(3));
    let server = folder.start().unwrap();
    assert_eq!(len(&server), 4);
    // With a dump file in front, which is what the first base of the next rewrite is.
    Client::connect(&server).check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
    Client::connect(&server).wait_for_info("aof_rewrites", "1");
    server.stop();
    let base = std::fs::read_dir(folder.0.join("appendonlydir")).unwrap().map(|entry| entry.unwrap().path());
    let base = base.into_iter().find(|path| path.display().to_string().ends_with(".rdb")).unwrap();
    let mixed = [read(&base), command("SELECT 0"), command("RPUSH l after")].concat();
    std::fs::remove_dir_all(folder.0.join("appendonlydir")).unwrap();
    std::fs::write(folder.0.join("appendonly.aof"), mixed).unwrap();
    assert_eq!(len(&folder.start().unwrap()), 5);
    // A crash when it was listed and not moved.
    let single = b"file appendonly.aof seq 1 type b\n";
    folder.write(&[(MANIFEST, single)]);
    std::fs::write(folder.0.join("appendonly.aof"), pushes(2)).unwrap();
    assert_eq!(len(&folder.start().unwrap()), 2);
}

/// A crash in the middle of a transaction: Redis cuts off half a command, and goes on behind the others.
#[test]
fn a_transaction_that_was_left_open_ends_with_the_next_one() {
    let words = |lines: &[&str]| lines.iter().flat_map(|line| command(line)).collect::<Vec<_>>();
    let left = ["MULTI", "RPUSH l 1", "SELECT 0", "RPUSH l 2"];
    let next = ["MULTI", "RPUSH l 3", "EXEC", "RPUSH l 4", "EXEC", "RPUSH l 5"];
    let folder = Folder::holding("open", &words(&[&left[..], &next].concat()));
    for _ in 0..2 {
        assert_eq!(len(&folder.start().unwrap()), 5);
    }
    // What no EXEC follows is not run, and is cut off.
    let folder = Folder::holding("left", &words(&[&["RPUSH l 0"][..], &left, &next[..2]].concat()));
    assert_eq!(len(&folder.start().unwrap()), 1);
    assert_eq!(read(&folder.file(FIRST)), words(&["RPUSH l 0"]));
}

/// Redis writes `= 1` for what `~ 1000` came to, and leaves the LIMIT behind it, which no client may send.
#[test]
fn what_was_checked_when_it_was_first_run_is_not_checked_again() {
    let commands = [
        "XADD s MAXLEN = 1 LIMIT 100 1-1 f v",
        "XADD s MINID = 1 LIMIT 5 2-1 f v",
        "XADD s 3-1 f v",
        "XTRIM s MAXLEN = 2 LIMIT 5",
        // By a limit of before.
        "APPEND long 0123456789012345678901234",
        "APPEND long 0123456789",
        "SETRANGE long 35 01234",
        "SETBIT bits 800 1",
    ];
    let folder = Folder::holding("checked", &commands.map(command).concat());
    let mut config = folder.config(AppendSync::EverySecond);
    config.store.proto_max_bulk_len_bytes = 30;
    let server = folder.start_with(config).unwrap();
    let mut client = Client::connect(&server);
    client.check("XLEN s", ":2\r\n");
    client.check("STRLEN long", ":40\r\n");
    client.check("STRLEN bits", ":101\r\n");
    let error = "-ERR syntax error, LIMIT cannot be used without the special ~ option\r\n";
    client.check("XTRIM s MAXLEN = 2 LIMIT 5", error);
    let error = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    client.check("APPEND long 0", error);
}

#[test]
fn commands_that_fail_when_they_are_loaded_are_told_in_the_log() {
    let mut commands = command("SET a 1");
    (0..12).for_each(|_| commands.extend(command("RPUSH a 1")));
    commands.extend(command("SET b 1"));
    let folder = Folder::holding("failing", &commands);
    let log_file = folder.0.join("log");
    let config = Config { logfile: Some(log_file.clone()), ..folder.config(AppendSync::EverySecond) };
    let log = Log::open(&config, Clock::real()).unwrap();
    let server = server::start(config, Clock::real(), log).map_err(|error| error.to_string()).unwrap();
    Client::connect(&server).check("MGET a b", "*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
    server.stop();
    let log = std::fs::read_to_string(log_file).unwrap();
    let line = "This server is sending an error to its AOF-loading-client: 'WRONGTYPE Operation against a key \
                holding the wrong kind of value' after processing the command 'rpush'";
    assert_eq!(log.matches(line).count(), 10, "{log}");
    assert!(log.contains("12 of the commands in the append-only file could not be run"), "{log}");
}

/// Where it was left out, the next file would lack it.
#[test]
fn a_command_that_there_is_no_memory_for_keeps_the_server_from_starting() {
    for words in ["SETRANGE k 4611686018427387904 x", "SETBIT k 9223372036854775807 1"] {
        let commands = [command("SET k abc"), command(words), command("SET after 1")].concat();
        let folder = Folder::holding("no-memory", &commands);
        for worker_threads in [1, 2] {
            let why = folder.start_with(Config { worker_threads, ..folder.config(AppendSync::Always) });
            let name = words.split(' ').next().unwrap();
            let expected = format!("Not enough memory for '{name}' reading the append only file (at byte ");
            assert!(why.as_ref().is_err_and(|why| why.contains(&expected)), "{:?}", why.err());
            assert_eq!(read(&folder.file(FIRST)), commands);
        }
    }
}

#[test]
fn waitaof_tells_of_the_disk_where_there_is_a_file() {
    let folder = Folder::new("waitaof");
    let server = start(folder.config(AppendSync::EverySecond));
    let mut client = Client::connect(&server);
    client.check("SET a 1", "+OK\r\n");
    client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
    client.check("WAITAOF 1 1 20", "*2\r\n:1\r\n:0\r\n");
    client.check("CONFIG SET appendonly no", "+OK\r\n");
    let error = "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.\r\n";
    client.check("WAITAOF 1 0 0", error);
    client.check("WAITAOF 0 0 0", "*2\r\n:0\r\n:0\r\n");
    client.check("WAITAOF 0 1 20", "*2\r\n:0\r\n:0\r\n");
}

#[test]
fn what_was_left_to_the_system_is_put_on_the_disk_when_the_settings_change_to_that() {
    for sync in ["everysec", "always"] {
        let folder = Folder::new(&format!("change-to-{sync}"));
        let server = start(folder.config(AppendSync::No));
        let mut client = Client::connect(&server);
        client.check("SET a 1", "+OK\r\n");
        client.wait_for_info("aof_pending_bio_fsync", "1");
        client.check(&format!("CONFIG SET appendfsync {sync}"), "+OK\r\n");
        client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
    }
}

#[test]
fn clients_that_wait_in_vain_for_the_disk_go_on_and_leave_nothing() {
    let folder = Folder::new("vain");
    let server = start(folder.config(AppendSync::No));
    let mut client = Client::connect(&server);
    for n in 0..20 {
        client.send(format!("SET a {n}\r\nWAITAOF 1 0 1\r\n").as_bytes());
        client.expect("+OK\r\n*2\r\n:0\r\n:0\r\n");
        let mut leaves = Client::connect(&server);
        leaves.send(b"SET b 1\r\nWAITAOF 1 0 0\r\n");
        leaves.expect("+OK\r\n");
        client.wait_for_info("blocked_clients", "1");
        drop(leaves);
        client.wait_for_info("blocked_clients", "0");
    }
    client.check("CONFIG SET appendfsync everysec", "+OK\r\n");
    client.check("SET a last", "+OK\r\n");
    client.check("WAITAOF 1 0 0", "*2\r\n:1\r\n:0\r\n");
}

#[test]
fn what_a_server_has_started_with_can_be_turned_off() {
    let folder = Folder::new("off");
    let server = start(folder.config(AppendSync::EverySecond));
    let mut client = Client::connect(&server);
    client.check("RPUSH l 1", ":1\r\n");
    client.check("CONFIG SET appendonly no", "+OK\r\n");
    // Once it is off, another server may have the folder.
    let second = loop {
        match folder.start() {
            Ok(second) => break second,
            Err(why) => assert!(why.contains("another server uses the folder"), "{why}"),
        }
    };
    client.check("RPUSH l 2", ":2\r\n");
    assert_eq!(len(&second), 1);
    second.stop();
    assert_eq!(len(&folder.start().unwrap()), 1, "nothing was appended");
}

#[test]
fn it_is_turned_on_and_off_while_the_server_runs() {
    let folder = Folder::new("switch");
    let mut off = folder.config(AppendSync::EverySecond);
    off.append.is_wanted = false;
    let server = folder.start_with(off).unwrap();
    let mut client = Client::connect(&server);
    for round in 1..=3 {
        client.check("RPUSH l x", &format!(":{round}\r\n"));
        client.check("CONFIG SET appendonly yes", "+OK\r\n");
        // It begins, or has not been turned off yet.
        client.wait_for_info("aof_rewrite_in_progress", "0");
        client.check("CONFIG SET appendonly no appendfsync always", "+OK\r\n");
        assert_eq!(client.info("aof_enabled"), "0");
        client.check("CONFIG SET appendonly yes", "+OK\r\n");
        client.check("CONFIG SET appendonly no", "+OK\r\n");
        client.check("CONFIG SET appendfsync everysec", "+OK\r\n");
        assert_eq!(client.info("aof_last_bgrewrite_status"), "ok");
    }
    client.check("RPUSH l y", ":4\r\n");
    client.check("CONFIG SET appendonly yes", "+OK\r\n");
    client.wait_for_info("aof_rewrite_in_progress", "0");
    client.check("RPUSH l z", ":5\r\n");
    server.stop();
    assert_eq!(len(&folder.start().unwrap()), 5);
}

#[test]
fn a_rewrite_keeps_what_comes_meanwhile_and_removes_what_was_before() {
    let folder = Folder::new("rewrite");
    let server = start(Config { worker_threads: 2, ..folder.config(AppendSync::EverySecond) });
    let mut client = Client::connect(&server);
    client.check("DEBUG POPULATE 200", "+OK\r\n");
    client.check("CONFIG SET rdb-key-save-delay 1000", "+OK\r\n");
    for round in 1..=3 {
        client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        let error = "-ERR Background append only file rewriting already in progress\r\n";
        client.check("BGREWRITEAOF", error);
        client.wait_for_info("aof_rewrite_in_progress", "1");
        client.wait_for_info("current_save_keys_total", if round == 1 { "200" } else { "201" });
        for _ in 0..10 {
            client.send(b"RPUSH l x\r\n");
            while client.read(1) != b"\n" {}
        }
        client.wait_for_info("aof_rewrites", &round.to_string());
    }
    let names = || {
        let entries = std::fs::read_dir(folder.0.join("appendonlydir")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let parts = ["appendonly.aof.3.base.rdb", "appendonly.aof.4.incr.aof", MANIFEST];
    assert_eq!(names(), [&parts[..], &["appendonly.aof.tail"]].concat());
    server.stop();
    assert_eq!(names(), parts);
    let server = folder.start().unwrap();
    assert_eq!(len(&server), 30);
    Client::connect(&server).check("DBSIZE", ":201\r\n");
}

/// Whoever writes may see later than the end of the rewrite that it has begun.
#[test]
fn the_length_at_the_last_rewrite_is_not_that_of_files_that_have_gone() {
    let folder = Folder::new("base-size");
    let server = start(Config { worker_threads: 2, ..folder.config(AppendSync::No) });
    let mut client = Client::connect(&server);
    for round in 1..=40 {
        (0..10).for_each(|_| client.check(&format!("SET x {}", "x".repeat(20_000)), "+OK\r\n"));
        client.check("SET x short", "+OK\r\n");
        client.check("BGREWRITEAOF", "+Background append only file rewriting started\r\n");
        client.wait_for_info("aof_rewrites", &round.to_string());
        let base = client.info("aof_base_size");
        assert!(base.parse::<u64>().unwrap() < 1000, "round {round}: {base}");
    }
}

#[test]
fn two_servers_never_append_to_the_same_files() {
    let folder = Folder::new("two");
    let server = folder.start().unwrap();
    let why = folder.start().err().unwrap();
    assert!(why.contains("another server uses the folder"), "{why}");
    let mut off = folder.config(AppendSync::EverySecond);
    off.append.is_wanted = false;
    let second = folder.start_with(off).unwrap();
    let mut client = Client::connect(&second);
    client.check("CONFIG SET appendonly yes", "+OK\r\n");
    client.wait_for_info("aof_last_bgrewrite_status", "err");
    // When the first has gone the second has the files, which are replaced.
    Client::connect(&server).check("RPUSH l x", ":1\r\n");
    server.stop();
    client.wait_for_info("aof_last_bgrewrite_status", "ok");
    client.check("RPUSH l y", ":1\r\n");
    second.stop();
    assert_eq!(len(&folder.start().unwrap()), 1);
    assert!(folder.file("appendonly.aof.2.incr.aof").exists() && !folder.file(FIRST).exists());
}

#[test]
fn a_file_of_times_is_written_and_read() {
    let folder = Folder::new("times");
    let mut timed = folder.config(AppendSync::EverySecond);
    timed.append.has_times = true;
    let server = folder.start_with(timed).unwrap();
    Client::connect(&server).check("RPUSH l x", ":1\r\n");
    server.stop();
    assert!(read(&folder.file(FIRST)).starts_with(b"#TS:"));
    assert_eq!(len(&folder.start().unwrap()), 1);
}

/// Requests that count, the replies to them, and what the counters `a` and `b` of this client come to. Files
/// begin among the first of them, so that what is lost or doubled there is in no later snapshot.
fn counting(client: usize, round: usize) -> (Vec<u8>, usize, [u64; 2]) {
    let (a, b) = (format!("a{client}"), format!("b{client}"));
    let (mut batch, mut replies, mut counts) = (Vec::new(), 0, [0, 0]);
    let mut add = |words: &[&str]| {
        batch.extend(request(words));
        replies += 1;
    };
    for step in 0..2000 {
        let is_early = step < 200;
        match (step * 7 + round * 13 + client) % 100 {
            0 if is_early => add(&["BGREWRITEAOF"]),
            1 => add(&["CONFIG", "SET", "appendfsync", ["always", "everysec", "no"][step % 3]]),
            2..4 => {
                add(&["MULTI"]);
                add(&["INCR", &b]);
                add(if is_early { &["BGREWRITEAOF"] } else { &["PING"] });
                add(&["INCR", &b]);
                add(&["EXEC"]);
                counts[1] += 2;
            }
            4..7 => {
                add(&["EVAL", "redis.call('INCR', ARGV[1]) return redis.call('INCR', KEYS[1])", "1", &b, &b]);
                counts[1] += 2;
            }
            _ => {
                add(&["INCR", &a]);
                counts[0] += 1;
            }
        }
    }
    (batch, replies, counts)
}

#[test]
fn files_that_begin_within_batches_and_transactions_have_each_record_once() {
    for round in 0..8 {
        let folder = Folder::new(&format!("cuts-{round}"));
        let config = || Config { worker_threads: 3, ..folder.config(AppendSync::EverySecond) };
        let server = folder.start_with(config()).unwrap();
        let mut clients: Vec<_> = (0..3).map(|_| Client::connect(&server)).collect();
        let sent: Vec<_> = (0..3).map(|number| counting(number, round)).collect();
        clients.iter_mut().zip(&sent).for_each(|(client, (batch, ..))| client.send(batch));
        for (client, (_, replies, _)) in clients.iter_mut().zip(&sent) {
            (0..*replies).for_each(|_| drop(client.raw_reply()));
        }
        clients[0].wait_for_info("aof_rewrite_in_progress", "0");
        drop(clients);
        server.stop();
        let server = folder.start_with(config()).unwrap();
        let mut client = Client::connect(&server);
        for (number, (_, _, [a, b])) in sent.iter().enumerate() {
            let values = format!("*2\r\n{}{}", bulk(&a.to_string()), bulk(&b.to_string()));
            client.check(&format!("MGET a{number} b{number}"), &values);
        }
    }
}

/// Words are written before their command has run, and from where they arrived where they are framed as the
/// file frames them: so between those come requests that are framed otherwise, that change nothing, and that
/// come to something else.
#[test]
fn however_requests_were_sent_the_file_has_what_they_came_to_in_their_order() {
    let folder = Folder::new("framing");
    let server = folder.start().unwrap();
    let mut client = Client::connect(&server);
    let (long, wide) = (format!("SET long {}", "x".repeat(1000)), format!("DEL{}", " none".repeat(12)));
    let sent: [(&[u8], &[u8]); 14] = [
        (&command("SET a 1"), &command("SET a 1")),
        (b"*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2..", &command("SET b 2")),
        (&command("SETNX a 2"), b""),
        (b"*3\r.$3\r\nSET\r\n$1\r\nc\r\n$1\r\n3\r\n", &command("SET c 3")),
        (b"*3\r\n$3\r\nSET\r\n$1\r\nd..$1\r\n4\r\n", &command("SET d 4")),
        (&command("INCRBYFLOAT f 1.50"), &command("SET f 1.5 KEEPTTL")),
        (b"SET  e  5\r\n", &command("SET e 5")),
        (b"set 'g' \"6\"\r\n", &command("set g 6")),
        (&command("GETDEL none"), b""),
        (&command("LPUSH a x"), b""),
        (&command(&long), &command(&long)),
        (&command(&wide), b""),
        (&command("GETDEL a"), &command("DEL a")),
        (&command("RPUSH list 10"), &command("RPUSH list 10")),
    ];
    client.send(&sent.iter().flat_map(|(request, _)| request.iter().copied()).collect::<Vec<u8>>());
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
    let replies = format!(
        "+OK\r\n+OK\r\n:0\r\n+OK\r\n+OK\r\n$3\r\n1.5\r\n+OK\r\n+OK\r\n$-1\r\n{wrong_type}+OK\r\n:0\r\n$1\r\n1\r\n:1\r\n"
    );
    assert_eq!(String::from_utf8_lossy(&client.read(replies.len())), replies);
    server.stop();
    let recorded = sent.iter().map(|(_, recorded)| *recorded);
    let file: Vec<u8> = [&command("SELECT 0")[..]].into_iter().chain(recorded).collect::<Vec<_>>().concat();
    assert_eq!(String::from_utf8_lossy(&read(&folder.file(FIRST))), String::from_utf8_lossy(&file));
}

/// A reader of the journal that does nothing with it.
struct Idle;

impl disk::journal::Reader for Idle {
    fn take(&mut self, _: &[disk::journal::Run<'_>]) {}

    fn pause(&mut self) -> Option<std::time::Duration> {
        None
    }
}

/// A worker keeps all gates behind a script that ran alone, and what comes next is recorded under them. When
/// it gives them back everything is published, so nothing of it comes after the journal has ended and begun
/// anew.
#[test]
fn the_journal_ends_and_begins_between_any_two_requests_that_follow_scripts() {
    const ROUNDS: usize = 60;
    let server = start(config());
    let script = "EVAL \"return redis.call('SET', 'undeclared', 1)\" 0\r\n";
    let sets: String = (0..15).map(|n| format!("SET k{n} v\r\n")).collect();
    // The gates go a millisecond after they were taken, before the script that comes then.
    let requests = format!("{script}{sets}").repeat(40);
    std::thread::scope(|scope| {
        let clients = [(); 2].map(|()| {
            let mut client = Client::connect(&server);
            let requests = &requests;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    client.send(requests.as_bytes());
                    client.expect(&"+OK\r\n".repeat(40 * 16));
                }
            })
        });
        while !clients.iter().all(|client| client.is_finished()) {
            let reader = server.read_journal(Box::new(Idle)).unwrap();
            server.end_journal(reader);
        }
    });
}
