//! Whether a large reply stops anyone: while one client reads a reply of many elements, again and
//! again, another times PING.
//!
//! The worker has a processor to itself, as in `stalls`, and the two clients share the others: what the
//! reader takes from the other client shows in both servers that are compared. The list has `--keys`
//! elements, the other collections a fifth of that.

use super::Options;
use super::server::{Server, Spec};
use super::stalls::{WORKER_CORE, probed, summary};

const KEYS: u64 = 10_000_000;
/// The others' part of the list.
const SHARE: u64 = 5;
/// Elements of one request while data is loaded.
const AT_ONCE: u64 = 500;
const ROUNDS: usize = 5;

/// What fills a key, a request of it, and what is read then.
const CASES: [(&str, &str, &str); 6] = [
    ("RPUSH list", "element:#", "LRANGE list 0 -1"),
    ("SADD set", "member:#", "SMEMBERS set"),
    ("HSET hash", "field:# value:#", "HGETALL hash"),
    ("ZADD zset", "# member:#", "ZRANGE zset 0 -1"),
    ("", "", "ZREVRANGE zset 0 -1 WITHSCORES"),
    ("SET string", "", "MGET string*1000"),
];

/// Whether there is a request of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.iter().any(|(_, _, read)| read.starts_with(name))
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    options.servers.iter().try_for_each(|spec| one(spec, options))
}

fn one(spec: &Spec, options: &Options) -> Result<(), String> {
    let server = Server::start(spec, None)?;
    server.isolate_worker(WORKER_CORE)?;
    let idle = probed(&server, || {
        std::thread::sleep(std::time::Duration::from_secs(2));
        Ok(())
    })?;
    println!("{}: PING of another client, idle: {}", server.name, summary(idle));
    let keys = options.keys.unwrap_or(KEYS);
    for (index, (fill, element, read)) in CASES.into_iter().enumerate() {
        load(&server, fill, element, if index == 0 { keys } else { keys / SHARE })?;
        let is_wanted = options.names.is_empty() || options.names.iter().any(|name| read.starts_with(name));
        if !is_wanted {
            continue;
        }
        let request = words(read);
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        let (mut reader, mut bytes, before) = (server.client()?, 0, server.cpu());
        let times = probed(&server, || {
            for _ in 0..options.rounds.unwrap_or(ROUNDS) {
                bytes = reader.call_unread(&request)?;
            }
            Ok(())
        })?;
        let cpu = server.cpu().since(before).per(options.rounds.unwrap_or(ROUNDS) as u64);
        let cpu_ms = (cpu.user_us + cpu.system_us) / 1e3;
        println!("  {read}, {} MB, {cpu_ms:.0} ms of processor each: {}", bytes >> 20, summary(times));
    }
    Ok(())
}

/// `KEY*N` is the key so many times.
fn words(line: &str) -> Vec<Vec<u8>> {
    let repeated = line.split(' ').flat_map(|word| {
        let (word, times) = word.split_once('*').unwrap_or((word, "1"));
        std::iter::repeat_n(word.as_bytes().to_vec(), times.parse().unwrap_or(1))
    });
    repeated.collect()
}

/// `#` is the element's number. Where there is no element, one string of 1 MB.
fn load(server: &Server, fill: &str, element: &str, count: u64) -> Result<(), String> {
    let mut client = server.client()?;
    if fill.is_empty() {
        return Ok(());
    }
    if element.is_empty() {
        let mut request = words(fill);
        request.push(vec![b'x'; 1 << 20]);
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        return client.call(&request).map(drop);
    }
    for first in (0..count).step_by(AT_ONCE as usize) {
        let mut request = words(fill);
        for n in first..count.min(first + AT_ONCE) {
            request.extend(words(&element.replace('#', &n.to_string())));
        }
        let request: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        client.pipe(&request, 8)?;
    }
    client.flush()
}
