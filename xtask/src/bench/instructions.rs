//! User instructions a request, counted by callgrind: the same whatever else the machine does, where processor time on a shared machine
//! differs by a tenth from run to run. They leave out the kernel, caches and the processor's guesses, so they tell what an edit did to the
//! code, not how fast a server is.
//!
//! Each server runs twice from scratch, with few requests and with more; what it takes to start, to fill and to end is in both, and
//! falls out of the difference.

use super::Options;
use super::redis_benchmark::Load;
use super::server::{Server, Spec};
use crate::shell::target;

const TESTS: [&str; 4] = ["set", "get", "lpush", "rpop"];
const DEPTH: u32 = 16;
const KEYSPACE: &str = "100000";
/// Of the two runs.
const REQUESTS: [u64; 2] = [20_000, 50_000];
/// What a test reads or removes is there beforehand.
const FILL_REQUESTS: u64 = 60_000;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let all: Vec<String> = TESTS.map(String::from).to_vec();
    for test in if options.names.is_empty() { &all } else { &options.names } {
        let mut cells = Vec::new();
        for spec in &options.servers {
            let [few, many] = [count(spec, test, REQUESTS[0])?, count(spec, test, REQUESTS[1])?];
            let each = many.saturating_sub(few) / (REQUESTS[1] - REQUESTS[0]);
            cells.push(format!("{} {each}", spec.name));
        }
        println!("{test:11} P={DEPTH} user instructions a request: {}", cells.join(" | "));
    }
    Ok(())
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
    match test {
        "get" => load("set", FILL_REQUESTS)?,
        "lpop" | "rpop" => load("lpush", FILL_REQUESTS)?,
        "spop" => load("sadd", FILL_REQUESTS)?,
        "zpopmin" => load("zadd", FILL_REQUESTS)?,
        _ => {}
    }
    load(test, requests)?;
    // The connection is closed instead of an answer; the count is written when the server has ended by itself.
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
