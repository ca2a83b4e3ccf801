//! User instructions a request, counted by callgrind: the same whatever else the machine does, where
//! processor time on a shared machine differs by a tenth from run to run. They leave out the kernel, caches
//! and the processor's guesses, so they tell what an edit did to the code, not how fast a server is.
//!
//! Each server runs twice from scratch, with few requests and with more; what it takes to start, to fill and
//! to end is in both, and falls out of the difference.

use super::Options;
use super::redis_benchmark::{self, Load};
use super::server::{Server, Spec};
use crate::shell::target;

/// Tests of redis-benchmark.
const TESTS: [&str; 4] = ["set", "get", "lpush", "rpop"];

/// Edits of one collection, which redis-benchmark has only of large ones.
struct Edit {
    name: &'static str,
    /// What is there beforehand, and how many times it is sent. `#` is the number of the round.
    fill: (&'static str, u64),
    /// The requests, each sent once a round.
    requests: &'static [&'static str],
}

const fn small(name: &'static str, fill: &'static str, requests: &'static [&'static str]) -> Edit {
    Edit { name, fill: (fill, 1), requests }
}

/// An edit of a collection that lies outside its entry, because it is filled with so many elements.
const fn large(name: &'static str, fill: &'static str, requests: &'static [&'static str]) -> Edit {
    Edit { name, fill: (fill, 10_000), requests }
}

const EDITS: [Edit; 21] = [
    small("push+pop-small", "RPUSH k a b c d", &["LPUSH k value:#", "RPOP k"]),
    large("lset-large", "RPUSH k element:#", &["LSET k 5000 other:#"]),
    large(
        "linsert+lrem-large",
        "RPUSH k element:#",
        &["LINSERT k BEFORE element:50 value", "LREM k 1 value"],
    ),
    large("lrange-large", "RPUSH k element:#", &["LRANGE k 5000 5099"]),
    small("hset-small", "HSET k a 1 b 2 c 3", &["HSET k b value:#"]),
    large("hset-large", "HSET k field:# value", &["HSET k field:# other:#"]),
    small("hincrby-small", "HSET k a 1 b 2 c 3", &["HINCRBY k b 1"]),
    large("hincrby-large", "HSET k field:# 1", &["HINCRBY k field:# 1"]),
    small("hset+hdel-small", "HSET k a 1 b 2 c 3", &["HSET k d value", "HDEL k d"]),
    large("hset+hdel-large", "HSET k field:# 1", &["HSET k d value", "HDEL k d"]),
    small("sadd-there", "SADD k a b c d", &["SADD k c"]),
    small("sadd+srem-small", "SADD k a b c d", &["SADD k member", "SREM k member"]),
    large("sadd+srem-large", "SADD k member:#", &["SADD k member", "SREM k member"]),
    small("sadd+spop-small", "SADD k a b c d", &["SADD k member:#", "SPOP k"]),
    small("zadd-small", "ZADD k 1 a 2 b 3 c", &["ZADD k # b"]),
    large("zadd-large", "ZADD k 1 member:#", &["ZADD k # member:#"]),
    small("zincrby-small", "ZADD k 1 a 2 b 3 c", &["ZINCRBY k 1 b"]),
    small("zadd+zrem-small", "ZADD k 1 a 2 b 3 c", &["ZADD k 2 member", "ZREM k member"]),
    large("zadd+zrem-large", "ZADD k 1 member:#", &["ZADD k 2 member", "ZREM k member"]),
    large("xadd", "XADD k * field value", &["XADD k * field value:#"]),
    // What `sessions exec-5` sends; a transaction is seven requests.
    large(
        "exec-5",
        "SET session:# value",
        &[
            "MULTI",
            "SET session:# mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm",
            "GET session:#",
            "HSET profile:# last login",
            "SADD seen:# today",
            "EXPIRE session:# 1800",
            "EXEC",
        ],
    ),
];

const DEPTH: u32 = 16;
const KEYSPACE: &str = "100000";
/// Requests of the two runs.
const REQUESTS: [u64; 2] = [20_000, 50_000];
/// What a test reads or removes is there beforehand.
const FILL_REQUESTS: u64 = 60_000;

/// Whether there is a test of this name.
pub(super) fn knows(name: &str) -> bool {
    EDITS.iter().any(|edit| edit.name == name) || redis_benchmark::knows(name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let all = TESTS.into_iter().chain(EDITS.iter().map(|edit| edit.name));
    let all: Vec<String> = all.map(String::from).collect();
    for test in if options.names.is_empty() { &all } else { &options.names } {
        let mut cells = Vec::new();
        for spec in &options.servers {
            let [few, many] = [count(spec, test, REQUESTS[0])?, count(spec, test, REQUESTS[1])?];
            let each = many.saturating_sub(few) / (REQUESTS[1] - REQUESTS[0]);
            cells.push(format!("{} {each}", spec.name));
        }
        println!("{test:15} P={DEPTH} user instructions per request: {}", cells.join(" | "));
    }
    Ok(())
}

impl Edit {
    fn run(&self, server: &Server, requests: u64) -> Result<(), String> {
        let mut client = server.client()?;
        let mut send = |request: &str, round: u64| {
            let text = request.replace('#', &format!("{:06}", round % self.fill.1.max(1_000)));
            let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
            // Whole rounds are sent together, so a transaction arrives as one.
            client.pipe(&words, (DEPTH as usize).next_multiple_of(self.requests.len()))
        };
        (0..self.fill.1).try_for_each(|round| send(self.fill.0, round))?;
        for round in 0..requests / self.requests.len() as u64 {
            self.requests.iter().try_for_each(|request| send(request, round))?;
        }
        client.flush()
    }
}

/// All that the server executes, from its start to its end.
fn count(spec: &Spec, test: &str, requests: u64) -> Result<u64, String> {
    let folder = target("bench");
    let failed = |e: std::io::Error| format!("bench: {}: {e}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let (log, out) = (folder.join("callgrind.log"), folder.join("callgrind.out"));
    let watched = spec.under(&[
        "valgrind",
        "--tool=callgrind",
        &format!("--log-file={}", log.display()),
        &format!("--callgrind-out-file={}", out.display()),
    ]);
    let mut server = Server::start(&watched, None)?;
    let load = |test: &str, requests| {
        Load { test, depth: DEPTH, requests, keyspace: KEYSPACE, threads: 1 }.run(&server).map(drop)
    };
    match EDITS.iter().find(|edit| edit.name == test) {
        Some(edit) => edit.run(&server, requests)?,
        None => {
            match test {
                "get" => load("set", FILL_REQUESTS)?,
                "lpop" | "rpop" => load("lpush", FILL_REQUESTS)?,
                "spop" => load("sadd", FILL_REQUESTS)?,
                "zpopmin" => load("zadd", FILL_REQUESTS)?,
                _ => {}
            }
            load(test, requests)?;
        }
    }
    // The connection is closed instead of an answer; the count is written when the server has ended by
    // itself.
    let _ = server.client().and_then(|mut client| client.call(&[b"SHUTDOWN", b"NOSAVE"]));
    server.wait()?;
    let text = std::fs::read_to_string(&log).map_err(failed)?;
    let _ = std::fs::remove_file(&out);
    collected(&text).ok_or_else(|| format!("bench: callgrind counted nothing for {}: {text}", spec.name))
}

/// "==7== Collected : 4711"
fn collected(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_callgrinds_log() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 4711\n==7== \n"), Some(4711));
        assert_eq!(collected("==7== killed\n"), None);
    }
}
