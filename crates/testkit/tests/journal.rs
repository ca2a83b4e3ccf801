//! What the journal says, compared with the append-only file of a real server, and replayed.
use disk::journal::{Reader, Run};
use server::{Clock, Config, Log, Running};
use std::sync::{Arc, Mutex};
use std::thread;
use testkit::differ::journal::{Journals, replay};
use testkit::in_process::InProcess;
use testkit::journal::{AofFile, Tap, effects};
use testkit::journal_script::{compare, shown};
use testkit::journal_storm::Storm;
use testkit::redis_server::RedisServer;
use testkit::resp_client::{Address, RespClient};

/// Some seconds. `cargo xtask differ --journal` plays more, with other seeds.
const STREAM_COUNT: u64 = 60;
const FIRST_SEED: u64 = 2_000_000;

fn sardine(workers: usize) -> Running {
    let config = Config { worker_threads: workers, ..InProcess::config() };
    server::start(config, Clock::real(), Log::silent()).expect("loopback has a free port")
}

#[test]
fn random_streams_are_recorded_as_the_unpacked_redis_server_records_them() {
    // Not every machine has it, and none must.
    let Some(redis) = RedisServer::unpacked_with(&AofFile::ARGUMENTS).unwrap() else { return };
    let sardine = sardine(2);
    let file = AofFile::of(&redis).unwrap();
    let mut journals = Journals::new(&sardine, (redis.address(), file), &[]).unwrap();
    let mut effect_count = 0;
    for seed in FIRST_SEED..FIRST_SEED + STREAM_COUNT {
        let played = journals.play(seed).unwrap();
        effect_count += played.effect_count;
        if let Some((name, told)) = played.difference {
            panic!("seed {seed}: {name} is recorded otherwise\n{told}");
        }
        let copy = self::sardine(1);
        let errors = replay(&copy.addresses[0].into(), &played.journal).unwrap();
        assert_eq!(errors, [] as [String; 0], "seed {seed}");
        let missing = journals.missing_in(&copy).unwrap();
        assert!(missing.is_empty() || played.has_settings, "seed {seed}: {missing:?}");
    }
    assert!(effect_count > 1000, "{effect_count}");
}

#[test]
fn what_many_clients_do_at_once_is_recorded_in_the_order_in_which_it_was_done() {
    for (seed, workers, evicts) in [(1, 1, false), (2, 4, false), (3, 3, true), (4, 2, false)] {
        let expires_on_sight = seed != 3;
        let storm = Storm { seed, workers, clients: 8, requests: 3_000, evicts, expires_on_sight };
        let weathered = storm.weather().unwrap();
        assert_eq!(weathered.errors, [] as [String; 0], "{storm:?}");
        assert_eq!(weathered.differences, [] as [(String, String); 0], "{storm:?}");
        assert!(weathered.journal_bytes > 100_000, "{storm:?}: {}", weathered.journal_bytes);
    }
}

#[test]
fn transactions_and_clients_that_wait_are_recorded_as_the_unpacked_redis_server_records_them() {
    let Some(redis) = RedisServer::unpacked_with(&AofFile::ARGUMENTS).unwrap() else { return };
    let differences = compare(CONVERSATION, &sardine(2), &redis).unwrap();
    // Redis does not say that a consumer was created which was given nothing.
    let unknown: Vec<&String> = differences.iter().filter(|told| !told.contains("CREATECONSUMER")).collect();
    assert!(
        unknown.is_empty(),
        "{}",
        unknown.iter().map(|told| told.as_str()).collect::<Vec<_>>().join("\n")
    );
}

/// What Redis writes where its own clock or chance decide, so that it cannot be asked here.
#[test]
fn what_time_and_chance_do_is_recorded_as_what_it_came_to() {
    let server = InProcess::start(Config { worker_threads: 1, ..InProcess::config() });
    let tap = Tap::open(&server.server).unwrap();
    let mut client = server.client().unwrap();
    let mut db = 0;
    for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (request, expected) = line.split_once('|').unwrap();
        match request.trim().strip_prefix('=') {
            Some(ms) => server.time.advance(std::time::Duration::from_millis(ms.parse().unwrap())),
            None => drop(client.call(&request.split_whitespace().collect::<Vec<_>>()).unwrap()),
        }
        let bytes = tap.take(&server.server);
        let told = shown(&effects(&bytes, &mut db)).replace("0> ", "");
        if request.trim() != "=100" && request.trim() != "GET k" {
            assert_eq!(told, expected.trim(), "{line}");
        }
    }
}

/// Of a hash only some fields are removed at once. Whoever reads the journal has the others still when a
/// command finds them absent.
#[test]
fn a_field_past_its_deadline_goes_before_it_is_written_though_very_many_are() {
    const HASHES: usize = 20;
    let config = || Config { worker_threads: 1, ..InProcess::config() };
    let (server, copy) = (InProcess::start(config()), InProcess::start(config()));
    let tap = Tap::open(&server.server).unwrap();
    let [mut client, mut reader] = [&server, &copy].map(|server| server.client().unwrap());
    let mut say = |request: &str| client.call(&request.split(' ').collect::<Vec<_>>()).unwrap();
    let fields: Vec<String> = (0..400).map(|n| format!("f{n}")).collect();
    say("DEBUG SET-ACTIVE-EXPIRE 0");
    for hash in 0..HASHES {
        say(&format!("HSET h{hash} {} 7", fields.join(" 7 ")));
        say(&format!("HPEXPIRE h{hash} 10 FIELDS {} {}", fields.len(), fields.join(" ")));
    }
    server.time.advance(std::time::Duration::from_millis(20));
    for hash in 0..HASHES {
        say(&format!("HINCRBY h{hash} f0 1"));
        say(&format!("HDEL h{hash} f1"));
        say(&format!("HSETNX h{hash} f1 2"));
        say(&format!("HINCRBYFLOAT h{hash} f2 0.5"));
        say(&format!("HSETEX h{hash} FNX FIELDS 1 f3 3"));
    }
    let errors = replay(&copy.address(), &tap.take(&server.server)).unwrap();
    assert_eq!(errors, [] as [String; 0]);
    for hash in 0..HASHES {
        for request in [format!("HMGET h{hash} f0 f1 f2 f3"), format!("HTTL h{hash} FIELDS 4 f0 f1 f2 f3")] {
            let read = reader.call(&request.split(' ').collect::<Vec<_>>()).unwrap();
            assert_eq!(read, say(&request), "{request}");
        }
    }
}

/// A reader that takes nothing until it is let.
struct Stuck(Arc<Mutex<u64>>);

impl Reader for Stuck {
    fn take(&mut self, runs: &[Run<'_>]) {
        *self.0.lock().expect("nobody panics who holds it") += runs[runs.len() - 1].end - runs[0].first;
    }

    fn pause(&mut self) -> Option<std::time::Duration> {
        None
    }
}

#[test]
fn writers_wait_for_a_reader_that_has_fallen_behind_and_those_who_read_do_not() {
    const VALUES: u64 = 80;
    let server = sardine(2);
    let taken = Arc::new(Mutex::new(0));
    let id = server.read_journal(Box::new(Stuck(Arc::clone(&taken)))).unwrap();
    let address: Address = server.addresses[0].into();
    let mut reader = RespClient::connect(&address).unwrap();
    let mut len =
        || reader.call(&["DBSIZE"]).unwrap().lines().join("").trim_start_matches(':').parse::<u64>().unwrap();
    let held = taken.lock().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut writer = RespClient::connect(&address).unwrap();
            let value = vec![b'x'; 1 << 20];
            for index in 0..VALUES {
                let set = writer.call(&[b"SET".as_slice(), format!("k{index}").as_bytes(), &value]).unwrap();
                assert_eq!(set.text(), Some(&b"OK"[..]));
            }
        });
        // 32 MB wait for the reader; one more was on its way, or two.
        while len() < 32 {}
        assert!((0..2_000).all(|_| len() <= 35), "{}", len());
        drop(held);
    });
    assert_eq!(len(), VALUES);
    server.end_journal(id);
    assert_eq!(*taken.lock().unwrap(), VALUES);
}

/// What `compare` understands.
const CONVERSATION: &str = "
    A MULTI
    A SET a 1
    A SET b 2
    A EXEC
    A MULTI
    A GET a
    A INCR a
    A EXEC
    A MULTI
    A GET a
    A EXEC
    A MULTI
    A SET a 1
    A SELECT 3
    A SET a 2
    A INCRBYFLOAT a 0.5
    A SELECT 0
    A DEL b
    A EXEC
    A MULTI
    A SET k text
    A INCR k
    A SET b 1
    A EXEC
    A MULTI
    A PUBLISH c m
    A SET a 1
    A EXEC
    A PUBLISH c m
    A MULTI
    A SPOP none
    A FLUSHALL
    A EXEC
    A MULTI
    A SET a 1
    A DISCARD
    A MULTI
    A SET a 1
    A RESET
    A SET a 2
    A MULTI
    A KEYS *
    A SET a 3
    A EXEC
    B WATCH a
    A SET a 4
    B MULTI
    B SET a 5
    B EXEC
    B~ BLPOP l1 l2 0
    A RPUSH l2 a
    B!
    B~ BLPOP l1 l2 0
    A MULTI
    A RPUSH l2 a b c
    A SET q 1
    A EXEC
    B!
    A DEL l2
    B~ BLMOVE l1 l2 left Right 0
    C~ BRPOP l2 0
    A RPUSH l1 a
    B!
    C!
    B~ BRPOPLPUSH l1 l1 0
    A LPUSH l1 x
    B!
    B~ BZPOPMIN z1 z2 0
    A ZADD z1 1 a
    B!
    B~ BLMPOP 0 2 l3 l4 LEFT COUNT 2
    A RPUSH l3 1 2 3
    B!
    B~ BZMPOP 0 2 z1 z2 MAX COUNT 2
    A ZADD z2 1 a 2 b 3 c
    B!
    A XGROUP CREATE st g $ MKSTREAM
    B~ XREADGROUP GROUP g c BLOCK 0 STREAMS st >
    C~ XREADGROUP GROUP g d BLOCK 0 STREAMS st >
    A XADD st 1-1 f v
    B!
    A XADD st 1-2 f v
    C!
    A XREADGROUP GROUP g e STREAMS st 0
    A XCLAIM st g e 0 1-1
    A XCLAIM st g e 0 1-2 JUSTID LASTID 5-0
    A XDEL st 1-1
    A XAUTOCLAIM st g f 0 0
    A XGROUP SETID st g 0
    A XREADGROUP GROUP g e NOACK STREAMS st >
    B~ BLPOP moved 0
    A SELECT 1
    A RPUSH moved a
    A MOVE moved 0
    B!
    B~ BLPOP swapped 0
    A RPUSH swapped a
    A SWAPDB 0 1
    B!
    A MULTI
    A SWAPDB 1 0
    A SET here 1
    A EXEC
    A FLUSHDB
    A FLUSHDB ASYNC
    A COPY none other DB 2
    A SET here 1
    A COPY here here DB 2
    A SELECT 2
    A GETDEL here
";

/// Requests and their effects. The time is 1780000000000 until it is moved on by so many milliseconds.
const TABLE: &str = "
    SET k v PX 50              | SET k v PXAT 1780000000050
    =100                       |
    GET k                      |
    SADD t a b c d             | SADD t a b c d
    SET k v EX 1               | SET k v PXAT 1780000001100
    DEBUG SET-ACTIVE-EXPIRE 0  |
    =2000                      |
    SET k w                    | MULTI; DEL k; SET k w; EXEC
    MSET a 1 b 2               | MSET a 1 b 2
    PEXPIRE a 1                | PEXPIREAT a 1780000002101
    PEXPIRE b 1                | PEXPIREAT b 1780000002101
    =5                         |
    MGET a b                   | MULTI; DEL a; DEL b; EXEC
    HSET h f 1 g 2             | HSET h f 1 g 2
    HPEXPIRE h 1 FIELDS 1 f    | HPEXPIREAT h 1780000002106 FIELDS 1 f
    =5                         |
    HGET h f                   | HDEL h f
    HPEXPIRE h 1 FIELDS 1 g    | HPEXPIREAT h 1780000002111 FIELDS 1 g
    EXPIRE h 100               | PEXPIREAT h 1780000102110
    =5                         |
    HSET h i 3                 | MULTI; HDEL h g; HSET h i 3; EXEC
    HPEXPIRE h 1000 FIELDS 1 i | HPEXPIREAT h 1780000003115 FIELDS 1 i
    HINCRBYFLOAT h i 0.5       | HSETEX h KEEPTTL FIELDS 1 i 3.5
    CONFIG SET lazyfree-lazy-expire yes |
    SET k v PX 1               | SET k v PXAT 1780000002116
    =5                         |
    EXISTS k                   | UNLINK k
    SET k v                    | SET k v
    GETEX k PXAT 1             | UNLINK k
    SET k v PX 1               | SET k v PXAT 1780000002121
    =5                         |
    MULTI                      |
    GET k                      |
    INCR n                     |
    EXEC                       | MULTI; UNLINK k; INCR n; EXEC
    SPOP t 10                  | DEL t
    SADD t a                   | SADD t a
    SPOP t                     | SREM t a
    HSET e f 1                 | HSET e f 1
    HPEXPIRE e 1 FIELDS 1 f    | HPEXPIREAT e 1780000002126 FIELDS 1 f
    EXPIRE e 100               | PEXPIREAT e 1780000102125
    =5                         |
    HINCRBY e f 1              | MULTI; HDEL e f; HINCRBY e f 1; EXEC
    HPEXPIRE e 1 FIELDS 1 f    | HPEXPIREAT e 1780000002131 FIELDS 1 f
    =5                         |
    HDEL e f                   | HDEL e f
    HSET e g 1                 | HSET e g 1
    XADD u 1-1 a 1             | XADD u 1-1 a 1
    XGROUP CREATE u g 0        | XGROUP CREATE u g 0
    XREADGROUP GROUP g c STREAMS u > | MULTI; XCLAIM u g c 0 1-1 TIME 1780000002135 RETRYCOUNT 1 FORCE JUSTID \
        LASTID 1-1; XGROUP SETID u g 1-1 ENTRIESREAD 1; EXEC
    XDEL u 1-1                 | XDEL u 1-1
    XDELEX u ACKED IDS 1 1-1   |
    XDELEX u DELREF IDS 1 1-1  | XDELEX u DELREF IDS 1 1-1
    XDELEX u DELREF IDS 1 1-1  |
";
