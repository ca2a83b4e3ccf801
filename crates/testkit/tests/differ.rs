//! A short run of the differential runner: random streams of requests to real redis-servers, whichever are
//! there, and to a server in this process. `cargo xtask differ` runs it for longer.
use pack::arena::Arena;
use pack::counted::Counted;
use server::{Clock, Config, Log, Running};
use testkit::differ::users::Users;
use testkit::differ::{Differ, Talks, raw};
use testkit::in_process::InProcess;
use testkit::redis_server::{RedisServer, skip_without};
use testkit::resp_client::RespClient;
use testkit::resp_value::Value;

/// As in the program: only data in the arena can move.
#[global_allocator]
static HEAP: Counted<Arena<std::alloc::System>> = Counted(Arena(std::alloc::System));

/// About ten thousand requests, some seconds.
const STREAM_COUNT: u64 = 80;
/// Fixed: with other seeds each time the test could fail though nothing has changed. Long runs draw others.
const FIRST_SEED: u64 = 1_000_000;

#[test]
fn random_streams_are_answered_as_the_installed_redis_server_answers_them() {
    match RedisServer::installed().unwrap() {
        Some(redis) => compare(&redis),
        None => skip_without("redis-server"),
    }
}

#[test]
fn random_streams_are_answered_as_the_unpacked_redis_server_answers_them() {
    // Not every machine has it, and none must.
    if let Some(redis) = RedisServer::unpacked().unwrap() {
        compare(&redis);
    }
}

/// Talks of several connections, some seconds.
const TALK_COUNT: u64 = 110;
const TALKERS: usize = 4;

#[test]
fn several_connections_are_answered_as_the_unpacked_redis_server_answers_them() {
    let Some(redis) = RedisServer::unpacked().unwrap() else { return };
    let sardine = sardine(Config::default().databases);
    talk(&Talks::new(sardine.addresses[0].into(), redis.address(), &[], TALKERS).unwrap());
}

#[test]
fn a_restless_server_talks_with_several_connections_as_a_real_one_does() {
    let Some(redis) = RedisServer::unpacked().unwrap() else { return };
    let sardine = sardine(Config::default().databases);
    sardine.make_restless(FIRST_SEED);
    let talks = Talks::new(sardine.addresses[0].into(), redis.address(), &[], TALKERS).unwrap();
    talk(&talks.with_other_keys());
}

/// The comparison itself: it must not ask for anything to which two real servers do not keep.
#[test]
fn a_real_server_talks_like_another() {
    match (RedisServer::installed().unwrap(), RedisServer::installed().unwrap()) {
        (Some(one), Some(other)) => {
            talk(&Talks::new(one.address(), other.address(), &[], TALKERS).unwrap());
        }
        _ => skip_without("redis-server"),
    }
}

fn talk(talks: &Talks) {
    let (mut requests, mut unasked, mut blocked, mut executed, mut aborted) = (0, 0, 0, 0, 0);
    for seed in FIRST_SEED..FIRST_SEED + TALK_COUNT {
        let talked = talks.play(seed).expect("the peer answers");
        requests += talked.request_count;
        unasked += talked.unasked_count;
        blocked += talked.blocked_count;
        executed += talked.transaction_count;
        aborted += talked.aborted_count;
        if let Some(difference) = talked.difference {
            panic!("seed {seed}\n{}", talks.shrink(&difference).expect("the peer answers"));
        }
    }
    assert!(requests > 2_000, "only {requests} requests were compared");
    let has = |name, found: bool| found || !talks.knows(name);
    assert!(
        has("subscribe", unasked > 100)
            && has("blpop", blocked > 50)
            && has("multi", executed > 50)
            && has("watch", aborted > 5),
        "{unasked} values unasked, {blocked} requests waited, {executed} transactions, {aborted} aborted"
    );
}

/// Streams of rules of users, some three thousand requests.
const USER_STREAM_COUNT: u64 = 25;

#[test]
fn random_users_may_do_what_they_may_at_a_real_server() {
    let Some(redis) = RedisServer::unpacked().unwrap() else { return };
    let sardine = sardine(Config::default().databases);
    let mut users = Users::connect(sardine.addresses[0].into(), redis.address()).unwrap();
    for seed in FIRST_SEED..FIRST_SEED + USER_STREAM_COUNT {
        let outcome = users.play(seed).expect("both answer");
        if let Some(difference) = outcome.difference {
            panic!("seed {seed}\n{difference}");
        }
        assert!(outcome.request_count > 50, "{}", outcome.request_count);
    }
}

/// Streams of bytes that need not be requests.
const RAW_STREAM_COUNT: u64 = 500;

#[test]
fn random_bytes_are_answered_and_refused_as_redis_does() {
    // Older ones read longer lines.
    let Some(redis) = RedisServer::unpacked().unwrap() else { return };
    let config = Config { worker_threads: 1, ..InProcess::config() };
    let sardine = server::start(config, Clock::real(), Log::silent()).expect("loopback has a free port");
    let (ours, theirs) = (sardine.addresses[0].into(), redis.address());
    let mut controls = [&ours, &theirs].map(|address| raw::Control::connect(address).unwrap());
    let (mut closed_count, mut long_count) = (0, 0);
    for seed in FIRST_SEED..FIRST_SEED + RAW_STREAM_COUNT {
        let pieces = raw::stream(seed);
        let got = raw::play(&ours, &mut controls[0], &pieces).unwrap();
        let expected = raw::play(&theirs, &mut controls[1], &pieces).unwrap();
        assert!(
            got == expected,
            "seed {seed}: {:?}\n{}\nand not {}\nclosed: {}, {}",
            pieces.iter().map(|piece| shown(piece)).collect::<Vec<_>>(),
            shown(&got.replies),
            shown(&expected.replies),
            got.is_closed,
            expected.is_closed
        );
        closed_count += u64::from(got.is_closed);
        long_count += u64::from(got.replies.len() > 20);
    }
    assert!(
        closed_count > RAW_STREAM_COUNT / 10 && closed_count < RAW_STREAM_COUNT * 3 / 4,
        "{closed_count}"
    );
    assert!(long_count > RAW_STREAM_COUNT / 2, "{long_count}");
}

/// Enough of it to tell.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(600)].escape_ascii().to_string()
}

#[test]
fn a_restless_server_answers_random_streams_as_a_real_one_does() {
    match RedisServer::installed().unwrap() {
        Some(redis) => {
            let sardine = sardine(Config::default().databases);
            sardine.make_restless(FIRST_SEED);
            compare_with(&sardine, &redis);
            assert_unrest(&sardine);
        }
        None => skip_without("redis-server"),
    }
}

/// Waits until restless mode has done each of its deeds at least once. Huge pages are left out: the kernel
/// may refuse them.
fn assert_unrest(sardine: &Running) {
    const QUESTIONS_MAX: usize = 1_000_000;
    let mut client = RespClient::connect(&sardine.addresses[0].into()).expect("it listens");
    let mut undone = || -> Vec<String> {
        let Value::Aggregate(_, told) = client.call(&["DEBUG", "RESTLESS"]).expect("an answer") else {
            panic!("a map")
        };
        assert_eq!(told.len(), 14);
        let is_undone = |pair: &&[Value]| pair[1] == Value::Line(b':', b"0".to_vec());
        let name = |pair: &[Value]| String::from_utf8_lossy(pair[0].text().unwrap_or_default()).into_owned();
        told.chunks_exact(2).filter(is_undone).map(name).filter(|name| name != "united").collect()
    };
    assert!((0..QUESTIONS_MAX).any(|_| undone().is_empty()), "{:?}", undone());
}

fn compare(redis: &RedisServer) {
    compare_with(&sardine(Config::default().databases), redis);
}

fn compare_with(sardine: &Running, redis: &RedisServer) {
    let differ = Differ::new(sardine.addresses[0].into(), redis.address(), &[]).expect("both servers answer");
    let (mut request_count, mut error_count) = (0, 0);
    for seed in FIRST_SEED..FIRST_SEED + STREAM_COUNT {
        let played = differ.play(seed).expect("the peer answers");
        request_count += played.request_count;
        error_count += played.error_count;
        if let Some(difference) = played.difference {
            let shortest = differ.shrink(&difference).expect("the peer answers");
            panic!("seed {seed}: {} is answered otherwise\n{shortest}", difference.subject);
        }
    }
    assert!(request_count > 5_000, "only {request_count} requests were compared");
    assert!(
        error_count * 3 < request_count,
        "{error_count} of {request_count} were errors, which test little"
    );
}

#[test]
fn a_server_that_answers_otherwise_is_found_and_told_in_a_few_requests() {
    let (ours, theirs) = (sardine(3), sardine(16));
    let differ = Differ::new(ours.addresses[0].into(), theirs.addresses[0].into(), &[]).unwrap();
    let difference = differ.play(1).unwrap().difference.expect("there is no fourth database");
    let shortest = differ.shrink(&difference).unwrap().to_string();
    assert!(shortest.lines().count() < 12 && shortest.contains("# Sardine: -ERR"), "{shortest}");
}

#[test]
fn random_streams_cause_the_events_that_they_cause_at_a_real_server() {
    // Older ones tell other events.
    let Some(redis) = RedisServer::unpacked().unwrap() else { return };
    let sardine = sardine(Config::default().databases);
    let differ = Differ::new(sardine.addresses[0].into(), redis.address(), &[]).expect("both servers answer");
    let mut event_count = 0;
    for seed in FIRST_SEED..FIRST_SEED + STREAM_COUNT {
        let heard = differ.play_events(seed).expect("both answer");
        event_count += heard.event_count;
        if let Some(difference) = heard.difference {
            let shortest = differ.shrink_events(difference).expect("both answer");
            panic!("seed {seed}: {} causes other events\n{shortest}", shortest.subject);
        }
    }
    assert!(event_count > 1_000, "only {event_count} events were compared");
}

/// With shards and workers enough for their mistakes to show.
fn sardine(databases: u16) -> Running {
    let config = Config { shard_bits: 8, worker_threads: 2, databases, ..InProcess::config() };
    server::start(config, Clock::real(), Log::silent()).expect("loopback has a free port")
}
