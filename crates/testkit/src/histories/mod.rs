//! Histories: clients on threads of their own send random requests to a server with several workers, all at
//! once, and every request is kept with the times at which it was sent and answered. Afterwards a checker
//! looks for an order of all requests that explains every answer and respects these times.
//!
//! ```text
//! A  |--- SET k 1 ---|        |-- GET k = 2 --|
//! B        |-- GET k = 1 --|
//! C             |--- SET k 2 ---|                      SET 1, GET 1, SET 2, GET 2
//! ```
//!
//! Single keys are checked by search (`linearizability`). Transactions carry a number that INCR gives them
//! inside EXEC, so that their order is known and only has to be held against what they read (`bank`). Times
//! are ticks of one counter. What is sent follows from a seed; how the threads interleave does not, so a
//! failure is told with the history that shows it.
mod bank;
mod linearizability;

use crate::resp_client::{Address, RespClient};
use crate::resp_value::Value;
use base::random::Random;
use linearizability::{Asked, Deed, Kind};
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::scope;

/// How much one round does.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub clients: usize,
    /// How many requests each client sends on each single key, and how many transactions.
    pub requests: usize,
}

/// What a round has checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub requests: usize,
    pub transactions: usize,
    /// Transactions that a watched key stopped, and that were tried again.
    pub aborted: usize,
    pub snapshots: usize,
}

/// One counter for all clients: what was answered before another was sent has the smaller tick.
#[derive(Default)]
struct Clock(AtomicU64);

impl Clock {
    fn tick(&self) -> u64 {
        self.0.fetch_add(1, SeqCst)
    }
}

/// Which commands the server has: a history is made of those.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    pub blocks: bool,
    pub transacts: bool,
}

impl Abilities {
    /// Asks the server.
    pub fn of(address: &Address) -> io::Result<Abilities> {
        let mut client = RespClient::connect(address)?;
        let mut has = |name: &str| -> io::Result<bool> {
            let told = client.call(&["COMMAND", "INFO", name])?;
            Ok(matches!(&told, Value::Aggregate(_, rows) if matches!(rows[..], [Value::Aggregate(..)])))
        };
        Ok(Abilities { blocks: has("BLPOP")?, transacts: has("WATCH")? && has("EXEC")? })
    }
}

/// Empties the server, plays one round and checks it. The outer error is the connection's, the inner one what
/// cannot be explained.
pub fn play(address: &Address, seed: u64, size: Size) -> io::Result<Result<Checked, String>> {
    let abilities = Abilities::of(address)?;
    RespClient::connect(address)?.call(&["FLUSHALL"])?;
    let mut checked = Checked::default();
    for kind in Kind::ALL {
        let history = play_key(address, seed, size, kind, abilities)?;
        checked.requests += history.len();
        if let Err(why) = linearizability::check(kind, &history) {
            return Ok(Err(format!("seed {seed}: {why}")));
        }
    }
    if abilities.transacts {
        match bank::play(address, seed, size)?.check() {
            Ok(bank) => {
                checked.transactions += bank.transactions;
                checked.aborted += bank.aborted;
                checked.snapshots += bank.snapshots;
            }
            Err(why) => return Ok(Err(format!("seed {seed}: {why}"))),
        }
    }
    Ok(Ok(checked))
}

/// All clients on one key.
fn play_key(
    address: &Address,
    seed: u64,
    size: Size,
    kind: Kind,
    abilities: Abilities,
) -> io::Result<Vec<Asked>> {
    let (clock, start) = (Clock::default(), Barrier::new(size.clients));
    let parts = scope(|scope| {
        let clients: Vec<_> = (0..size.clients)
            .map(|number| {
                let (clock, start) = (&clock, &start);
                scope.spawn(move || -> io::Result<Vec<Asked>> {
                    let connected = RespClient::connect(address);
                    start.wait();
                    let mut client = connected?;
                    let mut random =
                        Random::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    (0..size.requests)
                        .map(|_| {
                            let deed = Deed::draw(kind, &mut random, abilities.blocks);
                            let sent = clock.tick();
                            let answer = client.call(&deed.words(kind.key()))?;
                            Ok(Asked { client: number, sent, answered: clock.tick(), deed, answer })
                        })
                        .collect()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    let mut history = Vec::new();
    for part in parts {
        history.extend(part?);
    }
    Ok(history)
}
