//! DEBUG DIGEST of the same random data here and in a real redis-server.
use base::random::Random;
use server::{Clock, Config, Log};
use testkit::in_process::InProcess;
use testkit::redis_server::RedisServer;
use testkit::resp_client::RespClient;

/// The sums are those of this version: others write scores otherwise.
const UNPACKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/peers/redis-8.0.2/redis-server");
const ROUNDS: u64 = 30;
const REQUESTS: u64 = 200;

/// Whole, short, long, tiny, huge, infinite.
fn score(random: &mut Random) -> String {
    let whole = random.next_u64() as i64 >> random.below(64);
    let power = 10_f64.powi(random.below(25) as i32 - 8);
    match random.below(6) {
        0 => whole.to_string(),
        1 => (whole as f64 / power).to_string(),
        2 => power.to_string(),
        3 => ["inf", "-inf", "-0", "0.1", "1e300", "1e15", "5e-324"][random.below(7) as usize].to_owned(),
        _ => {
            let any = f64::from_bits(random.next_u64());
            if any.is_nan() { "0.3".to_owned() } else { format!("{any:e}") }
        }
    }
}

fn request(random: &mut Random) -> Vec<String> {
    let kind = random.below(6);
    let key =
        format!("{}:{}", ["string", "list", "set", "hash", "zset", "stream"][kind as usize], random.below(4));
    let text = |random: &mut Random| match random.below(3) {
        0 => random.below(1000).to_string(),
        1 => format!("{:x}", random.next_u64()),
        _ => "m".repeat(random.below(100) as usize),
    };
    let (a, b) = (text(random), text(random));
    let words: Vec<String> = match kind {
        0 => vec!["SET".into(), key, a],
        1 => vec!["RPUSH".into(), key, a, b],
        2 => vec!["SADD".into(), key, a, b],
        3 => vec!["HSET".into(), key, a, b],
        4 => vec!["ZADD".into(), key, score(random), a, score(random), b],
        _ => vec!["XADD".into(), key, format!("{}-1", random.next_u64() >> 8), a, b],
    };
    match random.below(40) {
        0 => vec!["PEXPIRE".into(), words[1].clone(), "100000000".into()],
        1 => vec!["SELECT".into(), random.below(3).to_string()],
        2 => vec!["DEL".into(), words[1].clone()],
        _ => words,
    }
}

#[test]
fn the_digest_of_random_data_is_that_of_redis() {
    // Not every machine has it, and none must.
    let Some(redis) = RedisServer::start_program(&[UNPACKED]).unwrap() else { return };
    let config = Config { worker_threads: 2, ..InProcess::config() };
    let sardine = server::start(config, Clock::real(), Log::silent()).unwrap();
    let mut theirs = RespClient::connect(&redis.address()).unwrap();
    let mut ours = RespClient::connect(&sardine.addresses[0].into()).unwrap();
    for seed in 0..ROUNDS {
        let mut random = Random::new(seed);
        let mut both = |words: &[String]| (ours.call(words).unwrap(), theirs.call(words).unwrap());
        both(&["FLUSHALL".into()]);
        let mut last = Vec::new();
        for _ in 0..REQUESTS {
            last = request(&mut random);
            both(&last);
        }
        let (a, b) = both(&["DEBUG".into(), "DIGEST".into()]);
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "seed {seed}, the last request {last:?}");
    }
}
