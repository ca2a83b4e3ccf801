//! Processor time a request, the servers taking turns of some 50 ms: what `speed` measures in seconds, finer.
//!
//! On a shared machine the same server takes 9 us for a request now and 14 a moment later. Runs of seconds,
//! of which `speed` takes the medians, so differ by a tenth. Here the clients stay connected, every round
//! gives each server a turn, and what counts is the median of the ratios within rounds, with the interval in
//! which 90% of such medians lie: about a hundredth with the usual 200 rounds. A process may be faster than
//! another of the same program as long as it lives, because of the memory that it happened to get, so a run
//! has several of each.
use super::Options;
use super::anysize::median;
use super::client::append_request;
use super::crowd::{CLIENTS, Crowd, Turn};
use super::server::Server;
use super::speed;
use base::random::Random;

const TESTS: [&str; 4] = ["set", "get", "lpush", "rpop"];
const DEPTHS: [usize; 3] = [1, 16, 100];
const ROUNDS: usize = 200;
/// How often the servers are started anew, each time in the opposite order.
const STARTS: usize = 4;
/// Requests of a turn at depth 1. In a turn of fewer most of the time would go to its start, when the caches
/// hold what another server has left, and to its end.
const REQUESTS: usize = 4_000;
const DEPTH_MAX: usize = 16;
/// The list that RPOP empties is filled once in so many rounds.
const REFILL_ROUNDS: usize = 20;
const KEYSPACE: u64 = 1_000_000;
/// So many SETs come before those that are measured, of which about one in five creates a key at first.
const SETS_BEFORE: u64 = 1_500_000;
const KEY: &[u8] = b"key:000000000000";
const VALUE: [u8; 64] = [b'x'; 64];
const RESAMPLES: usize = 400;

/// Whether there is a test of this name.
pub(super) fn knows(name: &str) -> bool {
    request(name).is_ok()
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    super::server::pin_this("1")?;
    let all: Vec<String> = TESTS.map(String::from).to_vec();
    let tests = if options.names.is_empty() { &all } else { &options.names };
    let cases = tests.iter().flat_map(|test| DEPTHS.map(|depth| (test, depth)));
    let mut figures: Vec<_> = cases.map(|case| (case, vec![Vec::new(); options.servers.len()])).collect();
    let rounds = options.rounds.unwrap_or(ROUNDS).div_ceil(STARTS);
    let mut random = Random::new(1);
    for number in 0..STARTS {
        let mut servers = Vec::new();
        for at in 0..options.servers.len() {
            let at = if number % 2 == 0 { at } else { options.servers.len() - 1 - at };
            servers.push((at, Server::start(&options.servers[at], Some("0"))?));
        }
        servers.sort_by_key(|(at, _)| *at);
        let servers: Vec<Server> = servers.into_iter().map(|(_, server)| server).collect();
        for ((test, depth), times_us) in &mut figures {
            compare(&servers, (test, *depth), (rounds, times_us), &mut random)?;
        }
    }
    let names: Vec<&str> = options.servers.iter().map(|spec| spec.name.as_str()).collect();
    for ((test, depth), times_us) in &figures {
        println!("{test:6} P={depth:<4} {}", cells(&names, times_us, &mut random).join(" | "));
    }
    Ok(())
}

fn compare(
    servers: &[Server],
    (test, depth): (&str, usize),
    (rounds, times_us): (usize, &mut [Vec<f64>]),
    random: &mut Random,
) -> Result<(), String> {
    servers.iter().try_for_each(|server| match test {
        "set" => speed::fill(server, test, SETS_BEFORE),
        _ => speed::prepare(server, test),
    })?;
    let crowds: Result<Vec<Crowd>, String> =
        servers.iter().map(|server| Crowd::connect(server.port)).collect();
    let mut crowds = crowds?;
    let requests = REQUESTS * depth.min(DEPTH_MAX);
    for round in 0..=rounds {
        for at in 0..servers.len() {
            // The servers take turns in being first.
            let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
            if test == "rpop" && round % REFILL_ROUNDS == 0 {
                let requests = requests * REFILL_ROUNDS + CLIENTS * depth;
                turn(&mut crowds[at], "lpush", (requests, 100), random)?;
            }
            let before = servers[at].cpu_us();
            let sent = turn(&mut crowds[at], test, (requests, depth), random)?;
            let time_us = (servers[at].cpu_us() - before) / sent as f64;
            // The first round only warms the caches.
            if round > 0 {
                times_us[at].push(time_us);
            }
        }
    }
    Ok(())
}

pub(super) fn turn(
    crowd: &mut Crowd,
    test: &str,
    (requests, depth): (usize, usize),
    random: &mut Random,
) -> Result<usize, String> {
    let mut write = drawn(test, random)?;
    crowd.take_turn(&mut Turn { requests, depth, write: &mut write })
}

/// Appends a request of this test, each time with another key.
pub(super) fn drawn(test: &str, random: &mut Random) -> Result<impl FnMut(&mut Vec<u8>), String> {
    let request = request(test)?;
    let key_at = request.windows(KEY.len()).position(|bytes| bytes == KEY);
    Ok(move |out: &mut Vec<u8>| {
        out.extend_from_slice(&request);
        if let Some(key_at) = key_at {
            let end = out.len() - request.len() + key_at + KEY.len();
            draw_key(&mut out[..end], random);
        }
    })
}

/// What redis-benchmark sends in the test of this name, with a key still to be drawn.
fn request(test: &str) -> Result<Vec<u8>, String> {
    let words: &[&[u8]] = match test {
        "set" => &[b"SET", KEY, &VALUE],
        "get" => &[b"GET", KEY],
        "incr" => &[b"INCR", b"counter"],
        "lpush" => &[b"LPUSH", b"mylist", &VALUE],
        "rpop" => &[b"RPOP", b"mylist"],
        other => return Err(format!("bench: turns has no test called '{other}'")),
    };
    let mut out = Vec::new();
    append_request(&mut out, words);
    Ok(out)
}

/// Writes a number over the digits at the end.
pub(super) fn draw_key(key: &mut [u8], random: &mut Random) {
    let mut number = random.below(KEYSPACE);
    for digit in key.iter_mut().rev().take_while(|byte| byte.is_ascii_digit()) {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The text of a figure for each server; the last server is the peer that ratios refer to.
pub(super) fn cells(names: &[&str], times_us: &[Vec<f64>], random: &mut Random) -> Vec<String> {
    let base = &times_us[times_us.len() - 1];
    let cell = |(name, times): (&&str, &Vec<f64>)| {
        let mut ratios: Vec<f64> = times.iter().zip(base).map(|(own, peer)| own / peer).collect();
        let (low, high) = interval(&ratios, random);
        let (time_us, ratio) = (median(&mut times.clone()), median(&mut ratios));
        format!("{name} {time_us:6.2}us (cpu x{ratio:.3}, {low:.3} to {high:.3})")
    };
    names.iter().zip(times_us).map(cell).collect()
}

/// Where 90% of the medians of samples of the same size lie.
fn interval(values: &[f64], random: &mut Random) -> (f64, f64) {
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = values.iter().map(|_| values[random.below(values.len() as u64) as usize]);
            median(&mut drawn.collect::<Vec<f64>>())
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    (medians[RESAMPLES / 20], medians[RESAMPLES - 1 - RESAMPLES / 20])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_redis_benchmark() {
        assert_eq!(request("rpop").unwrap(), b"*2\r\n$4\r\nRPOP\r\n$6\r\nmylist\r\n");
        assert_eq!(request("get").unwrap(), b"*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n");
        assert!(request("lrange_100").is_err());
        let mut key = KEY.to_vec();
        draw_key(&mut key, &mut Random::new(1));
        assert!(key.starts_with(b"key:000000") && key != KEY, "{key:?}");
    }

    #[test]
    fn the_interval_holds_the_median_and_is_narrow_where_values_are_alike() {
        let mut values: Vec<f64> = (0..100).map(|n| 0.9 + f64::from(n % 10) / 1000.0).collect();
        let (low, high) = interval(&values, &mut Random::new(3));
        let median = median(&mut values);
        assert!(low <= median && median <= high && high - low < 0.006, "{low} {median} {high}");
    }
}
