//! How late keys vanish: a million keys get deadlines spread over some seconds, and the count of keys is
//! compared with the count of deadlines that have not passed.
//!
//! The clock is read before the count is asked for: the way to the server shortens what is measured by less
//! than a millisecond, and a key that goes meanwhile counts as on time.

use super::Options;
use super::client::Client;
use super::server::Server;
use std::time::{SystemTime, UNIX_EPOCH};

const SPREAD_MS: i64 = 10_000;
/// Time to load before the first deadline.
const HEAD_START_MS: i64 = 20_000;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let keys = options.keys.unwrap_or(1_000_000) as i64;
    for spec in &options.servers {
        let server = Server::start(spec, None)?;
        let mut client = server.client()?;
        let start = now_ms() + HEAD_START_MS;
        load(&mut client, keys, start)?;
        if now_ms() >= start {
            return Err(format!("bench: {} took too long to load {keys} keys", server.name));
        }
        let late = watch(&mut client, keys, start)?;
        let at = |q: f64| late[((late.len() - 1) as f64 * q) as usize];
        println!(
            "{:10} {keys} keys over {SPREAD_MS} ms, {} samples: late by p50 {} ms, p99 {} ms, p99.9 {} ms, max {} ms",
            server.name,
            late.len(),
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
    Ok(())
}

/// Key `i` goes at this time: in an order that has nothing to do with its name.
fn deadline(i: i64, keys: i64, start: i64) -> i64 {
    start + i * SPREAD_MS / keys
}

fn load(client: &mut Client, keys: i64, start: i64) -> Result<(), String> {
    for i in 0..keys {
        let at = deadline(i, keys, start).to_string();
        client.pipe(&[b"SET", format!("session:{i:08x}").as_bytes(), b"x", b"PXAT", at.as_bytes()], 256)?;
    }
    client.flush()
}

/// Server and benchmark run on one machine, so they read the same clock.
#[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)
}

/// For each sample, by how many milliseconds the oldest key that is still there is past its deadline; sorted.
fn watch(client: &mut Client, keys: i64, start: i64) -> Result<Vec<i64>, String> {
    let mut late = Vec::new();
    loop {
        let now = now_ms();
        let alive = client.call_int(&[b"DBSIZE"])?;
        if now > start + SPREAD_MS + 5_000 || (alive == 0 && now > start + SPREAD_MS) {
            break;
        }
        if now >= start && alive > 0 {
            late.push((now - deadline(keys - alive, keys, start)).max(0));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    late.sort_unstable();
    if late.is_empty() { Err("bench: no samples".into()) } else { Ok(late) }
}
