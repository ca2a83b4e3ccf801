//! Throughput and server CPU per request by redis-benchmark, the servers taking turns, medians of the rounds.
//!
//! With one thread the server has a processor and the load another; with more the whole machine is shared.

use super::Options;
use super::redis_benchmark::{self, Load};
use super::server::Server;

const TESTS: [&str; 6] = ["set", "get", "incr", "lpush", "rpop", "lrange_100"];
const DEPTHS: [u32; 3] = [1, 16, 100];
const ROUNDS: usize = 5;
const KEYSPACE: &str = "1000000";

/// One redis-benchmark run: requests a second, server CPU in microseconds a request.
type Sample = (f64, f64);

/// Whether there is a test of this name.
pub(super) fn knows(name: &str) -> bool {
    redis_benchmark::knows(name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let cores = (options.threads == 1).then_some("0");
    let servers =
        options.servers.iter().map(|s| Server::start(s, cores)).collect::<Result<Vec<Server>, String>>()?;
    let all: Vec<String> = TESTS.map(String::from).to_vec();
    for test in if options.names.is_empty() { &all } else { &options.names } {
        for depth in DEPTHS {
            compare(&servers, test, depth, options)?;
        }
    }
    Ok(())
}

fn compare(servers: &[Server], test: &str, depth: u32, options: &Options) -> Result<(), String> {
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
    let mut requests = Vec::new();
    for server in servers {
        prepare(server, test)?;
        let (rate, _) = bench(server, test, depth, if depth == 1 { 30_000 } else { 100_000 }, options)?;
        requests.push((rate * 1.5).max(20_000.0) as u64);
    }
    for _ in 0..ROUNDS {
        for (i, server) in servers.iter().enumerate() {
            samples[i].push(bench(server, test, depth, requests[i], options)?);
        }
    }
    let medians: Vec<Sample> = samples.iter_mut().map(|s| (median(s, |x| x.0), median(s, |x| x.1))).collect();
    // The last server is the peer that ratios refer to.
    let base = medians[medians.len() - 1];
    let cell = |(server, (rate, cpu)): (&Server, &Sample)| {
        let ratios = format!("x{:.2}, cpu x{:.2}", rate / base.0, cpu / base.1);
        format!("{} {:7.1}k/s {cpu:6.2}us ({ratios})", server.name, rate / 1e3)
    };
    let cells: Vec<String> = servers.iter().zip(&medians).map(cell).collect();
    println!("{test:11} P={depth:<4} {}", cells.join(" | "));
    Ok(())
}

pub(super) fn prepare(server: &Server, test: &str) -> Result<(), String> {
    let mut client = server.client()?;
    match test {
        "get" => fill(server, "set", 300_000),
        "rpop" => fill(server, "lpush", 500_000),
        "lrange_100" => fill(server, "lpush", 1_000),
        _ => client.call(&[b"FLUSHALL"]).map(drop),
    }
}

pub(super) fn fill(server: &Server, test: &str, requests: u64) -> Result<(), String> {
    server.client()?.call(&[b"FLUSHALL"])?;
    Load { test, depth: 16, requests, keyspace: KEYSPACE, threads: 1 }.run(server).map(drop)
}

fn bench(
    server: &Server,
    test: &str,
    depth: u32,
    requests: u64,
    options: &Options,
) -> Result<Sample, String> {
    let before = server.cpu_us();
    let report = Load { test, depth, requests, keyspace: KEYSPACE, threads: options.threads }.run(server)?;
    Ok((report.rate, (server.cpu_us() - before) / requests as f64))
}

fn median(samples: &mut [Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.sort_by(|a, b| of(a).total_cmp(&of(b)));
    of(&samples[samples.len() / 2])
}
