//! Many clients change few keys at once, while time passes and keys go by themselves; then the journal is
//! replayed, one command after the other, into an empty server whose time stands still. If the numbers of
//! records are the order of execution for every key, both servers hold the same.
use crate::differ::journal::{data, replay};
use crate::in_process::InProcess;
use crate::journal::Tap;
use crate::resp_client::{RespClient, request};
use base::random::Random;
use server::Config;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// How hard the weather is.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    pub seed: u64,
    pub workers: usize,
    pub clients: u64,
    /// How many requests each client sends.
    pub requests: u64,
    /// Memory is short: keys are evicted.
    pub evicts: bool,
    /// Whoever comes across a key or field that has expired removes it; nobody else does.
    pub expires_on_sight: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Weathered {
    pub journal_bytes: usize,
    /// What the two servers hold otherwise: what the first has, and what the second has.
    pub differences: Vec<(String, String)>,
    /// What was answered by errors when it was replayed.
    pub errors: Vec<String>,
}

/// Requests that are sent at once.
const BATCH: u64 = 16;

impl Storm {
    pub fn weather(self) -> io::Result<Weathered> {
        let config = Config { worker_threads: self.workers, ..InProcess::config() };
        let storm = InProcess::start(config.clone());
        if self.evicts {
            let mut client = storm.client()?;
            client.call(&["CONFIG", "SET", "maxmemory-policy", "allkeys-random"])?;
        }
        let tap = Tap::open(&storm.server)?;
        if self.expires_on_sight {
            storm.client()?.call(&["DEBUG", "SET-ACTIVE-EXPIRE", "0"])?;
        }
        self.blow(&storm)?;
        look_at_all(&storm)?;
        let address = storm.address();
        let first = data(&address)?;
        let journal = tap.take(&storm.server);
        tap.close(&storm.server);
        let copy = InProcess::start(Config { worker_threads: 1, ..config });
        let errors = replay(&copy.address(), &journal)?;
        let mut second = data(&copy.address())?;
        second.resize(second.len().max(first.len()), String::new());
        let differences = first.into_iter().zip(second).filter(|(first, second)| first != second).collect();
        Ok(Weathered { journal_bytes: journal.len(), differences, errors })
    }

    /// All clients at once, and time passing.
    fn blow(self, storm: &InProcess) -> io::Result<()> {
        let mut admin = storm.client()?;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let clients: Vec<_> = (0..self.clients)
                .map(|number| scope.spawn(move || self.client(number, &mut storm.client()?)))
                .collect();
            let time = scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    storm.time.advance(Duration::from_millis(1));
                    thread::yield_now();
                }
            });
            let mut outcome = Ok(());
            // Whoever waits for an element when all others have gone gets one.
            while !clients.iter().all(|client| client.is_finished()) && outcome.is_ok() {
                outcome = admin
                    .call(&["LPUSH", "l:0", "x"])
                    .and_then(|_| admin.call(&["RPUSH", "l:1", "y"]))
                    .map(drop);
                if self.evicts {
                    outcome = outcome.and_then(|()| squeeze(&mut admin));
                }
                thread::yield_now();
            }
            is_over.store(true, Relaxed);
            for client in clients {
                outcome = outcome.and(client.join().expect("a client does not panic"));
            }
            time.join().expect("time does not panic");
            outcome
        })
    }

    fn client(self, number: u64, client: &mut RespClient) -> io::Result<()> {
        let mut random = Random::new(self.seed.wrapping_mul(1_000_003).wrapping_add(number));
        let mut sent = 0;
        while sent < self.requests {
            let (mut wire, mut count) = (Vec::new(), 0);
            for _ in 0..=random.below(BATCH) {
                for line in step(&mut random) {
                    let words: Vec<&str> = line.split(' ').collect();
                    wire.extend(request(&words));
                    count += 1;
                }
            }
            client.send_bytes(&wire)?;
            for _ in 0..count {
                client.receive()?;
            }
            sent += count;
        }
        Ok(())
    }
}

/// Time stands still; whatever has expired is come across.
fn look_at_all(storm: &InProcess) -> io::Result<()> {
    let mut client = storm.client()?;
    for db in ["0", "1"] {
        client.call(&["SELECT", db])?;
        client.call(&["SCAN", "0", "COUNT", "100000"])?;
        for hash in 0..4 {
            client.call(&["HGETALL", &format!("h:{hash}")])?;
        }
    }
    Ok(())
}

/// Takes memory away for a moment, so that some keys go.
fn squeeze(admin: &mut RespClient) -> io::Result<()> {
    admin.call(&["CONFIG", "SET", "maxmemory", "1mb"])?;
    admin.call(&["SET", "s:0", "squeezed"])?;
    admin.call(&["CONFIG", "SET", "maxmemory", "0"])?;
    Ok(())
}

/// Some requests that belong together: most often one.
fn step(random: &mut Random) -> Vec<String> {
    match random.below(60) {
        0..6 => {
            let mut lines = vec!["MULTI".to_owned()];
            for _ in 0..random.below(6) {
                lines.push(single(random));
            }
            lines.push(if random.below(8) == 0 { "DISCARD" } else { "EXEC" }.to_owned());
            lines
        }
        6 => vec![format!("SELECT {}", random.below(2)), single(random)],
        7 => vec![
            ["FLUSHDB", "FLUSHALL ASYNC", "SWAPDB 0 1", "KEYS *", "RESET", "SCAN 0 COUNT 50"]
                [random.below(6) as usize]
                .to_owned(),
        ],
        _ => vec![single(random)],
    }
}

/// One request. Times to live are some moments of the storm's time.
fn single(random: &mut Random) -> String {
    let n = random.below(4);
    let (m, value, ttl) = (random.below(4), random.below(20), 1 + random.below(200));
    let timeout = ["0.001", "0.05"][random.below(2) as usize];
    match random.below(48) {
        0 => format!("SET s:{n} {value} PX {ttl}"),
        1 => format!("SET s:{n} {value}"),
        2 => format!("INCR s:{n}"),
        3 => format!("APPEND s:{n} {value}"),
        4 => format!("INCRBYFLOAT s:{n} 1.5"),
        5 => format!("GETEX s:{n} PX {ttl}"),
        6 => format!("GETDEL s:{n}"),
        7 => format!("PEXPIRE {}:{n} {ttl}", ["s", "l", "t", "h", "z", "x"][m as usize]),
        8 => format!("PERSIST t:{n}"),
        9 => format!("LPUSH l:{n} {value} {m}"),
        10 => format!("RPUSH l:{n} {value}"),
        11 => format!("RPOP l:{n}"),
        12 => format!("LMOVE l:{n} l:{m} LEFT RIGHT"),
        13 => format!("BLPOP l:{n} l:{m} {timeout}"),
        14 => format!("BLMOVE l:{n} l:{m} RIGHT LEFT {timeout}"),
        15 => format!("BLMPOP {timeout} 2 l:{n} l:{m} LEFT COUNT 2"),
        16 => format!("LMPOP 2 l:{n} l:{m} RIGHT COUNT 3"),
        17 => format!("LTRIM l:{n} 0 30"),
        18 => format!("SADD t:{n} {value} a{value} b{m}"),
        19 => format!("SPOP t:{n}"),
        20 => format!("SPOP t:{n} {m}"),
        21 => format!("SMOVE t:{n} t:{m} {value}"),
        22 => format!("SUNIONSTORE t:{n} t:{m} t:0"),
        23 => format!("HSET h:{n} f{value} {m} g {value}"),
        24 => format!("HINCRBYFLOAT h:{n} f{value} 0.5"),
        25 => format!("HPEXPIRE h:{n} {ttl} FIELDS 2 f{value} g"),
        26 => format!("HGETEX h:{n} PX {ttl} FIELDS 1 f{value}"),
        27 => format!("HGETALL h:{n}"),
        28 => format!("HSETEX h:{n} PX {ttl} FIELDS 1 f{value} {m}"),
        29 => format!("HDEL h:{n} f{value} g"),
        30 => format!("ZADD z:{n} {value} a{value} {m} b"),
        31 => format!("ZPOPMIN z:{n}"),
        32 => format!("BZPOPMAX z:{n} z:{m} {timeout}"),
        33 => format!("ZMPOP 2 z:{n} z:{m} MIN COUNT 2"),
        34 => format!("ZUNIONSTORE z:{n} 2 z:{m} t:{n}"),
        35 => format!("XADD x:{n} MAXLEN ~ 20 * f {value}"),
        36 => format!("XGROUP CREATE x:{n} g 0 MKSTREAM"),
        37 => format!("XREADGROUP GROUP g c{m} COUNT 2 STREAMS x:{n} >"),
        38 => format!("XREADGROUP GROUP g c{m} BLOCK 1 STREAMS x:{n} >"),
        39 => format!("XAUTOCLAIM x:{n} g c{m} 0 0 COUNT 3"),
        40 => format!("RENAME s:{n} s:{m}"),
        41 => format!("COPY t:{n} t:{m} REPLACE"),
        42 => format!("MOVE l:{n} 1"),
        43 => format!("DEL s:{n} h:{m} x:{n}"),
        44 => format!("MGET s:{n} s:{m} s:0"),
        45 => format!("SORT t:{n} ALPHA STORE l:{m}"),
        46 => format!("MSET s:{n} {value} s:{m} {value}"),
        _ => format!("SORT l:{n} BY nosort GET s:* STORE l:{m}"),
    }
}
