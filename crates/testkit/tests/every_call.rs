//! A disk that fails at one call of the system, whichever it is: the first that a save makes, or the second,
//! and so on to the last; likewise when the append-only file begins, is appended to and begins anew, and when
//! a server starts. Each of them fails once, or is the first of all that fail until the disk is mended.
//!
//! After each: what clients are told is what Redis would tell them, what was acknowledged is in the folder as
//! a kill at that moment would leave it, all goes on by itself once the disk works, and no file is left that
//! nobody needs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
use disk::aof::manifest::Manifest;
use server::{
    AppendSync, Appending, Clock, Config, DiskAct, DiskWatch, Log, Running, SavePoint, SimulatedTime,
    Snapshots,
};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;
use testkit::in_process::InProcess;
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;
use testkit::scratch::Scratch;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// How the disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One call does.
    Once,
    /// From that call on it has no room: of a write it takes a half. What makes room works.
    Full,
    /// From that call on nothing works.
    Broken,
}

const WAYS: [Way; 3] = [Way::Once, Way::Full, Way::Broken];

impl Way {
    /// What the system says.
    fn why(self) -> &'static str {
        if self == Way::Full { "No space left on device" } else { "Input/output error" }
    }
}

/// See the file's opener.
#[derive(Default)]
struct Failing(Mutex<Option<Plan>>);

struct Plan {
    way: Way,
    /// So many calls work first.
    left: u64,
    /// What has failed first.
    failed: Option<String>,
}

impl Failing {
    /// From here on the call of this number fails.
    fn arm(&self, (way, number): (Way, u64)) {
        *self.0.lock().unwrap() = Some(Plan { way, left: number, failed: None });
    }

    /// What has failed first, if the plan has come true so far.
    fn first(&self) -> Option<String> {
        self.0.lock().unwrap().as_ref()?.failed.clone()
    }

    /// From here on nothing fails.
    fn mend(&self) {
        *self.0.lock().unwrap() = None;
    }
}

impl DiskWatch for Failing {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        let len = if let DiskAct::Write(_, bytes) = act { bytes.len() } else { 0 };
        let mut plan = self.0.lock().unwrap();
        let Some(plan) = plan.as_mut() else { return Ok(len) };
        let makes_room = matches!(act, DiskAct::Cut(..) | DiskAct::Remove(_));
        if plan.way == Way::Full && makes_room || plan.way == Way::Once && plan.failed.is_some() {
            return Ok(len);
        }
        if plan.left > 0 {
            plan.left -= 1;
            return Ok(len);
        }
        plan.failed.get_or_insert_with(|| shown(act));
        match plan.way {
            Way::Full if len > 1 => Ok(len / 2),
            Way::Full => Err(io::Error::from_raw_os_error(ENOSPC)),
            Way::Once | Way::Broken => Err(io::Error::from_raw_os_error(EIO)),
        }
    }

    fn after(&self, _: DiskAct<'_>) {}
}

/// For people.
fn shown(act: DiskAct<'_>) -> String {
    match act {
        DiskAct::Write(path, bytes) => format!("a write of {} bytes to {}", bytes.len(), path.display()),
        other => format!("{other:?}"),
    }
}

/// A server on such a disk.
struct Live {
    folder: Scratch,
    server: Running,
    time: SimulatedTime,
    disk: Arc<Failing>,
    client: RespClient,
    /// How many numbers were pushed to the list `l`, and told so.
    pushed: usize,
}

/// A server starts in this folder. An error says why it does not.
fn start(config: &Config, folder: &Path, disk: &Arc<Failing>) -> Result<(Running, SimulatedTime), String> {
    let (clock, time) = Clock::simulated(base::Millis(1_780_000_000_000));
    let config = Config { dir: folder.into(), logfile: Some(folder.join("log")), ..config.clone() };
    let log = Log::open(&config, clock.clone()).map_err(|error| error.0)?;
    let running = server::start_when(config, clock, log, |_| {}).map_err(|error| error.to_string())?;
    running.watch_disk(disk.clone());
    running.load().map_err(|error| error.to_string())?;
    Ok((running, time))
}

fn connect(server: &Running) -> RespClient {
    RespClient::connect(&server.addresses[0].into()).unwrap()
}

/// With save points, and with an append-only file or without.
fn config(sync: Option<AppendSync>) -> Config {
    let append = Appending {
        is_wanted: sync.is_some(),
        sync: sync.unwrap_or(AppendSync::Always),
        ..Appending::default()
    };
    let points = Some(vec![SavePoint { seconds: 3600, changes: 1_000_000 }]);
    Config {
        worker_threads: 2,
        append,
        snapshots: Snapshots { points, ..Snapshots::default() },
        ..InProcess::config()
    }
}

impl Live {
    fn start(config: &Config) -> Live {
        let (folder, disk) = (Scratch::new("every").unwrap(), Arc::new(Failing::default()));
        let (server, time) = start(config, folder.path(), &disk).unwrap();
        let client = connect(&server);
        Live { folder, server, time, disk, client, pushed: 0 }
    }

    /// With some data.
    fn begin(config: &Config) -> Live {
        let mut live = Live::start(config);
        live.fill();
        if config.append.is_wanted {
            assert_eq!(live.told("WAITAOF 1 0 0"), WRITTEN);
        }
        live
    }

    /// The reply to a request.
    fn told(&mut self, line: &str) -> String {
        told(&mut self.client, line)
    }

    /// Some data of every type, and a string that takes several writes.
    fn fill(&mut self) {
        for line in FILLING {
            assert!(!self.told(line).starts_with('-'), "{line}");
        }
        let mut random = base::random::Random::new(5);
        let long: Vec<u8> = (0..300_000).map(|_| random.next_u64() as u8).collect();
        self.client.call(&[b"SET", b"long".as_slice(), &long]).unwrap();
    }

    /// One more number comes to the list.
    fn push(&mut self) {
        self.pushed += 1;
        let line = format!("RPUSH l {}", self.pushed);
        assert_eq!(self.told(&line), format!(":{}", self.pushed));
    }

    /// Waits until INFO has this line, and lets time pass meanwhile if `moves` says so.
    fn wait_for(&mut self, line: &str, moves: Option<Duration>) {
        for _ in 0..20_000 {
            if self.told("INFO persistence").contains(line) {
                return;
            }
            moves.into_iter().for_each(|by| self.time.advance(by));
            sleep(Duration::from_millis(1));
        }
        panic!("no {line}: {}\n{}", self.told("INFO persistence"), self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Whether it keeps the folder of its append-only file from others.
    fn is_claimed(&self) -> bool {
        let folder = fs::File::open(self.folder.path().join("appendonlydir"));
        folder.is_ok_and(|folder| folder.try_lock().is_err())
    }

    /// What a kill at this moment would leave.
    fn left_by_a_kill(&self) -> Scratch {
        let copy = Scratch::new("copy").unwrap();
        copy_folder(self.folder.path(), copy.path());
        copy
    }
}

const FILLING: [&str; 9] = [
    "SET s text",
    "RPUSH list a b 1 2",
    "SADD set 1 2 3",
    "SADD names a b c",
    "HSET hash f v g w",
    "HEXPIRE hash 100000 FIELDS 1 f",
    "ZADD zset 1 a 2.5 b",
    "XADD stream 1-1 f v",
    "XGROUP CREATE stream group 0",
];
/// What WAITAOF says of what the disk has.
const WRITTEN: &str = "*2   :1   :0";
/// The keys of that.
const KEYS: &str = "DEBUG DIGEST-VALUE s list set names hash zset stream long";

fn told(client: &mut RespClient, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let value = client.call(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
    match value {
        Value::Line(..) | Value::Aggregate(..) => value.lines().join(" "),
        _ => String::from_utf8_lossy(value.text().unwrap_or_default()).into_owned(),
    }
}

/// Copies files and folders, but for the log.
fn copy_folder(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let (path, target) = {
            let entry = entry.unwrap();
            (entry.path(), to.join(entry.file_name()))
        };
        match path.is_dir() {
            true => {
                fs::create_dir(&target).unwrap();
                copy_folder(&path, &target);
            }
            false if path.ends_with("log") => {}
            false => drop(fs::copy(&path, &target).unwrap()),
        }
    }
}

/// What is there of a folder's data: the digests of its keys, and the length of the list.
fn found_in(folder: &Path, config: &Config) -> (String, usize) {
    let (server, _) = start(config, folder, &Arc::default()).unwrap_or_else(|why| panic!("{why}"));
    let found = found_on(&mut connect(&server));
    let (names, needed) = (names(folder), needed(folder));
    // What a rewrite has left that failed is of the names that the next one takes.
    let rest: Vec<_> =
        names.difference(&needed).filter(|name| !name.starts_with("appendonly.aof.")).collect();
    assert!(rest.is_empty(), "a start leaves nothing that nobody needs: {rest:?}");
    server.stop();
    found
}

fn found_on(client: &mut RespClient) -> (String, usize) {
    (told(client, KEYS), told(client, "LLEN l").trim_start_matches(':').parse().unwrap())
}

/// All files in a folder and below.
fn names(folder: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true => all.extend(names(&path)),
            false => drop(all.insert(name)),
        }
    }
    all.remove("log");
    // It is there where it could be made.
    all.remove("appendonly.aof.tail");
    all
}

/// Those that have to be there: a dump file, the list of an append-only file, and what it lists.
fn needed(folder: &Path) -> BTreeSet<String> {
    let mut all: BTreeSet<String> =
        folder.join("dump.rdb").exists().then(|| "dump.rdb".into()).into_iter().collect();
    if let Ok(text) = fs::read(folder.join("appendonlydir/appendonly.aof.manifest")) {
        let manifest = Manifest::parse(&text).unwrap();
        assert!(manifest.history.is_empty(), "{manifest:?}");
        all.insert("appendonly.aof.manifest".into());
        all.extend(manifest.parts().map(|part| String::from_utf8_lossy(&part.name).into_owned()));
    }
    all
}

/// For each call that `act` makes, on a server of its own for each way: it fails, and `look` looks at what
/// has come of it while the disk fails, and mends it. `act` arms the disk, and returns when all that it has
/// begun has ended. Returns how many calls have failed.
fn fail_every_call<R>(
    begin: impl Fn() -> Live,
    act: impl Fn(&mut Live, (Way, u64)) -> R,
    look: impl Fn(&mut Live, (Way, &str), R),
) -> u64 {
    let mut calls = 0;
    for way in WAYS {
        let live = &mut begin();
        for number in 0.. {
            let result = act(live, (way, number));
            let Some(first) = live.disk.first() else { break };
            look(live, (way, &format!("{way:?}, call {number}: {first}")), result);
            live.disk.mend();
            calls += 1;
        }
    }
    calls
}

#[test]
fn a_save_that_fails_at_any_call_is_told_and_leaves_a_whole_file() {
    for (line, refusal) in [
        ("SAVE", "-ERR"),
        ("SHUTDOWN SAVE", "-ERR Errors trying to SHUTDOWN. Check logs."),
        ("DEBUG RELOAD", "-ERR"),
    ] {
        let begin = || {
            let mut live = Live::begin(&config(None));
            live.push();
            assert_eq!(live.told("SAVE"), "+OK");
            live
        };
        let act = |live: &mut Live, plan| {
            live.disk.arm(plan);
            live.client.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
            live.client.receive().ok().map(|reply| reply.lines().join(" "))
        };
        let look = |live: &mut Live, (way, what): (Way, &str), reply: Option<String>| {
            assert_eq!(reply.as_deref(), Some(refusal), "{line}, {what}: {}", live.log());
            let all = live.told(KEYS);
            let (digests, pushed) = found_in(live.left_by_a_kill().path(), &config(None));
            assert!(
                digests == all && pushed + 1 >= live.pushed,
                "{line}, {what}: {pushed} of {}",
                live.pushed
            );
            // Whoever asked was told; nobody else is refused anything.
            live.push();
            if way != Way::Broken {
                assert_eq!(names(live.folder.path()), needed(live.folder.path()), "{line}, {what}");
            }
            live.disk.mend();
            assert_eq!(live.told("SAVE"), "+OK", "{line}, {what}");
            assert_eq!(found_in(live.left_by_a_kill().path(), &config(None)), (all, live.pushed));
        };
        // For three ways: made, written a few times, synced, named, the name synced.
        assert!(fail_every_call(begin, act, look) >= 3 * 7, "{line}");
    }
}

#[test]
fn a_snapshot_that_fails_at_any_call_refuses_writes_until_one_is_written() {
    let act = |live: &mut Live, plan| {
        live.push();
        live.disk.arm(plan);
        assert_eq!(live.told("BGSAVE"), "+Background saving started");
        live.wait_for("rdb_bgsave_in_progress:0\r\n", None);
    };
    let look = |live: &mut Live, (way, what): (Way, &str), ()| {
        live.wait_for("rdb_last_bgsave_status:err\r\n", None);
        for line in ["RPUSH l x", "PING"] {
            let told = live.told(line);
            assert!(
                told.starts_with("-MISCONF Redis is configured to save RDB snapshots, but"),
                "{what}: {told}"
            );
        }
        let all = found_on(&mut live.client);
        assert_eq!(all.1, live.pushed, "{what}");
        if way != Way::Broken {
            assert_eq!(names(live.folder.path()), needed(live.folder.path()), "{what}");
        }
        live.disk.mend();
        assert_eq!(live.told("BGSAVE"), "+Background saving started");
        live.wait_for("rdb_last_bgsave_status:ok\r\n", None);
        live.push();
        assert_eq!(found_in(live.left_by_a_kill().path(), &config(None)), all, "{what}");
    };
    assert!(fail_every_call(|| Live::begin(&config(None)), act, look) >= 3 * 7);
}

#[test]
fn data_is_deleted_whatever_becomes_of_the_file_that_is_to_be_empty() {
    let act = |live: &mut Live, plan| {
        live.fill();
        live.disk.arm(plan);
        assert_eq!(live.told("FLUSHALL"), "+OK");
    };
    let look = |live: &mut Live, (_, what): (Way, &str), ()| {
        assert_eq!(live.told("DBSIZE"), ":0", "{what}");
        live.disk.mend();
        assert_eq!((live.told("SET a 1"), live.told("SAVE")), ("+OK".into(), "+OK".into()), "{what}");
        assert_eq!(names(live.folder.path()), needed(live.folder.path()), "{what}");
    };
    assert!(fail_every_call(|| Live::start(&config(None)), act, look) >= 3 * 5);
}

#[test]
fn what_is_acknowledged_is_on_the_disk_whichever_call_fails_that_appends() {
    let act = |live: &mut Live, plan| {
        live.pushed += 1;
        live.disk.arm(plan);
        let line = format!("RPUSH l {}", live.pushed);
        live.client.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
        let mut other = connect(&live.server);
        loop {
            if let Some(reply) = live.client.try_receive().unwrap() {
                return Some(reply.lines().join(" "));
            }
            if told(&mut other, "INFO persistence").contains("aof_last_write_status:err") {
                return None;
            }
            sleep(Duration::from_millis(1));
        }
    };
    let look = |live: &mut Live, (way, what): (Way, &str), reply: Option<String>| {
        let expected = format!(":{}", live.pushed);
        if way != Way::Once {
            assert_eq!(reply, None, "{what}: it is not on the disk");
            let mut other = connect(&live.server);
            let refused = format!("-MISCONF Errors writing to the AOF file: {}", way.why());
            assert_eq!(told(&mut other, "RPUSH l x"), refused, "{what}");
            assert_eq!(told(&mut other, "LLEN l"), expected, "{what}");
            assert!(live.client.try_receive().unwrap().is_none(), "{what}");
        }
        live.disk.mend();
        let reply = reply.unwrap_or_else(|| live.client.receive().unwrap().lines().join(" "));
        assert_eq!(reply, expected, "{what}");
        live.wait_for("aof_last_write_status:ok\r\n", None);
        live.push();
        let found = found_in(live.left_by_a_kill().path(), &config(Some(AppendSync::Always)));
        assert_eq!(found, found_on(&mut live.client), "{what}");
    };
    // It is written and synced.
    let begin = || Live::begin(&config(Some(AppendSync::Always)));
    assert_eq!(fail_every_call(begin, act, look), 3 * 2);
}

/// Begins the file anew, and waits for the end of that.
fn rewrite(live: &mut Live) {
    let told = live.told("BGREWRITEAOF");
    assert_eq!(told, "+Background append only file rewriting started");
    live.wait_for("aof_rewrite_in_progress:0\r\n", None);
}

#[test]
fn a_file_that_begins_anew_and_fails_at_any_call_has_all_that_was_acknowledged() {
    for (sync, begins_with_dump) in
        [(AppendSync::Always, true), (AppendSync::Always, false), (AppendSync::EverySecond, true)]
    {
        let append = Appending { begins_with_dump, ..config(Some(sync)).append };
        let config = Config { append, ..config(Some(sync)) };
        let act = |live: &mut Live, plan| {
            live.disk.arm(plan);
            rewrite(live);
        };
        let look = |live: &mut Live, (way, what): (Way, &str), ()| {
            let what = &format!("{sync:?}, {begins_with_dump}, {what}");
            let acknowledged = live.pushed;
            live.pushed += 1;
            let line = format!("RPUSH l {}", live.pushed);
            live.client.send(&line.split(' ').collect::<Vec<_>>()).unwrap();
            let all = {
                let mut other = connect(&live.server);
                told(&mut other, KEYS)
            };
            let (digests, pushed) = found_in(live.left_by_a_kill().path(), &config);
            assert_eq!(digests, all, "{what}");
            assert!(
                sync != AppendSync::Always || pushed >= acknowledged,
                "{what}: {pushed} of {acknowledged}"
            );
            let is_written = way == Way::Once;
            live.disk.mend();
            let reply = live.client.receive().unwrap().lines().join(" ");
            assert!(
                reply == format!(":{}", live.pushed) || !is_written && sync != AppendSync::Always,
                "{what}: {reply}"
            );
            live.wait_for("aof_last_write_status:ok\r\n", None);
            rewrite(live);
            live.wait_for("aof_last_bgrewrite_status:ok\r\n", None);
            assert_eq!(names(live.folder.path()), needed(live.folder.path()), "{what}");
            live.wait_for("aof_buffer_length:0\r\n", None);
            assert_eq!(found_in(live.left_by_a_kill().path(), &config), found_on(&mut live.client), "{what}");
        };
        // A new increment, the list that has it, the base, the list that has that, and what goes.
        assert!(fail_every_call(|| Live::begin(&config), act, look) >= 3 * 20);
    }
}

#[test]
fn a_file_that_is_turned_on_and_fails_at_any_call_begins_when_the_disk_works() {
    let on = config(Some(AppendSync::Always));
    let act = |live: &mut Live, plan| {
        assert_eq!(live.told("CONFIG SET appendonly no"), "+OK");
        // It is off when the folder may be used by others.
        while live.is_claimed() {
            sleep(Duration::from_millis(1));
        }
        live.disk.arm(plan);
        let told = live.told("CONFIG SET appendonly yes appendfsync always");
        live.wait_for("aof_rewrite_in_progress:0\r\n", None);
        told
    };
    let look = |live: &mut Live, (_, what): (Way, &str), reply: String| {
        if reply != "+OK" {
            assert!(reply.contains("Unable to turn on AOF. Check server logs."), "{what}: {reply}");
            live.wait_for("aof_last_bgrewrite_status:err\r\n", None);
            live.push();
            live.disk.mend();
            assert_eq!(live.told("CONFIG SET appendonly yes appendfsync always"), "+OK", "{what}");
        }
        live.disk.mend();
        live.wait_for("aof_last_bgrewrite_status:ok\r\n", Some(Duration::from_millis(200)));
        live.wait_for("aof_rewrite_in_progress:0\r\n", None);
        live.push();
        assert_eq!(live.told("WAITAOF 1 0 0"), WRITTEN, "{what}");
        rewrite(live);
        assert_eq!(names(live.folder.path()), needed(live.folder.path()), "{what}");
        assert_eq!(found_in(live.left_by_a_kill().path(), &on), found_on(&mut live.client), "{what}");
    };
    assert!(fail_every_call(|| Live::begin(&config(None)), act, look) >= 3 * 15);
}

/// A folder as a killed server has left it, and what must be found in it.
struct Left {
    name: &'static str,
    folder: Scratch,
    config: Config,
    found: (String, usize),
}

impl Left {
    fn by(name: &'static str, live: &mut Live, config: &Config) -> Left {
        let found = found_on(&mut live.client);
        Left { name, folder: live.left_by_a_kill(), config: config.clone(), found }
    }
}

/// Nothing; a file whose end was cut, with a list that has files which go, and files that were never
/// finished; the one file of before Redis 7; a dump file.
fn left_by_others() -> Vec<Left> {
    let on = &config(Some(AppendSync::Always));
    let nothing = Left::by("nothing", &mut Live::start(&config(None)), on);
    let mut live = Live::start(on);
    live.fill();
    rewrite(&mut live);
    (0..5).for_each(|_| live.push());
    let cut = Left::by("cut", &mut live, on);
    let folder = cut.folder.path().join("appendonlydir");
    let list = folder.join("appendonly.aof.manifest");
    let manifest = Manifest::parse(&fs::read(&list).unwrap()).unwrap();
    let parts = [manifest.base.as_ref().unwrap(), manifest.increments.last().unwrap()];
    let [base, last] = parts.map(|part| folder.join(String::from_utf8_lossy(&part.name).into_owned()));
    let single = Left {
        name: "single",
        folder: Scratch::new("single").unwrap(),
        config: on.clone(),
        found: cut.found.clone(),
    };
    let both = [fs::read(base).unwrap(), fs::read(&last).unwrap()].concat();
    fs::write(single.folder.path().join("appendonly.aof"), both).unwrap();
    fs::write(&last, [fs::read(&last).unwrap(), b"*3\r\n$5\r\nRPUSH\r\n$1".to_vec()].concat()).unwrap();
    let old = disk::aof::manifest::Part { name: b"old.aof".into(), number: 1 };
    fs::write(folder.join("old.aof"), "").unwrap();
    fs::write(list, Manifest { history: vec![old], ..manifest }.text()).unwrap();
    fs::write(folder.join("temp-77-1.rdb"), "REDIS").unwrap();
    let mut live = Live::start(&config(None));
    live.fill();
    live.push();
    live.told("SAVE");
    let dump = Left::by("dump", &mut live, &config(None));
    fs::write(dump.folder.path().join("temp-77-1.rdb"), "REDIS").unwrap();
    vec![nothing, cut, single, dump]
}

#[test]
fn a_start_that_fails_at_any_call_loses_nothing() {
    for Left { name, folder: left, config, found } in left_by_others() {
        for way in WAYS {
            for number in 0.. {
                let (folder, disk) = (Scratch::new("start").unwrap(), Arc::new(Failing::default()));
                copy_folder(left.path(), folder.path());
                disk.arm((way, number));
                let started = start(&config, folder.path(), &disk);
                let Some(first) = disk.first() else { break };
                let what = format!("{name}, {way:?}, call {number}: {first}");
                disk.mend();
                let mut pushed = found.1;
                if let Ok((server, time)) = started {
                    let client = connect(&server);
                    let mut live = Live { folder, server, time, disk, client, pushed };
                    live.push();
                    (pushed, _) = (live.pushed, live.told("SAVE"));
                    let copy = live.left_by_a_kill();
                    assert_eq!(found_in(copy.path(), &config), (found.0.clone(), pushed), "{what}");
                } else {
                    assert_eq!(found_in(folder.path(), &config), (found.0.clone(), pushed), "{what}");
                }
            }
        }
    }
}

/// A disk that is waited for whenever it is to keep something, until it is let go.
#[derive(Default)]
struct Stuck {
    is_stuck: Mutex<bool>,
    let_go: std::sync::Condvar,
}

impl DiskWatch for Stuck {
    fn before(&self, act: DiskAct<'_>) -> io::Result<usize> {
        if let DiskAct::Sync(_) = act {
            let is_stuck = self.is_stuck.lock().unwrap();
            drop(self.let_go.wait_while(is_stuck, |is_stuck| *is_stuck).unwrap());
        }
        Ok(if let DiskAct::Write(_, bytes) = act { bytes.len() } else { 0 })
    }

    fn after(&self, _: DiskAct<'_>) {}
}

/// What is acknowledged while the disk is busy would be lost with the machine, so with `everysec` that may be
/// no more than of a second.
#[test]
fn writes_wait_for_a_sync_that_takes_more_than_a_second_and_reads_do_not() {
    let (folder, disk) = (Scratch::new("stuck").unwrap(), Arc::new(Stuck::default()));
    let (clock, time) = Clock::simulated(base::Millis(1_780_000_000_000));
    let config = Config { dir: folder.path().into(), ..config(Some(AppendSync::EverySecond)) };
    let server = server::start_when(config, clock, Log::silent(), |_| {}).unwrap();
    server.watch_disk(disk.clone());
    server.load().unwrap();
    let [mut writer, mut reader] = [connect(&server), connect(&server)];
    *disk.is_stuck.lock().unwrap() = true;
    let mut acknowledged = 0;
    // Each is answered until the disk has been busy for long enough.
    let is_held = (0..20_000).any(|_| {
        writer.send(&["RPUSH", "l", "x"]).unwrap();
        for _ in 0..2000 {
            if writer.try_receive().unwrap().is_some() {
                acknowledged += 1;
                time.advance(Duration::from_millis(100));
                sleep(Duration::from_millis(1));
                return false;
            }
            sleep(Duration::from_millis(1));
        }
        true
    });
    assert!(is_held, "{acknowledged} writes are acknowledged, and none is on the disk");
    assert_eq!(told(&mut reader, "LLEN l"), format!(":{acknowledged}"));
    *disk.is_stuck.lock().unwrap() = false;
    disk.let_go.notify_all();
    for _ in 0..20_000 {
        if let Some(reply) = writer.try_receive().unwrap() {
            assert_eq!(reply.lines().join(" "), format!(":{}", acknowledged + 1));
            assert_eq!(told(&mut writer, "RPUSH l x"), format!(":{}", acknowledged + 2));
            assert!(told(&mut reader, "INFO persistence").contains("aof_delayed_fsync:1\r\n"));
            return;
        }
        time.advance(Duration::from_millis(100));
        sleep(Duration::from_millis(1));
    }
    panic!("the writer waits for ever");
}
