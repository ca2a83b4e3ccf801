//! Sends the same random requests to a server that runs and to the data commands of this build, in both protocols, and stops at the
//! first replies that differ. The server is emptied first, and `list-max-listpack-size` is set.
//!
//! ```text
//! cargo run -p testkit --example differ -- 127.0.0.1:6379 SEED COUNT
//! ```
use base::Millis;
use resp::Protocol;
use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use store::Fill;
use testkit::bare::Bare;
use testkit::random_command::RandomCommands;
use testkit::resp_value::Value;
use testkit::socket_peer::SocketPeer;
use testkit::transcript::Peer;

/// What answers with an order, a size or a choice of its own.
const SKIPPED: [&str; 8] = [
    "scan",
    "keys",
    "randomkey",
    "object|help",
    "object|idletime",
    "memory|help",
    "memory|layout",
    "memory|usage",
];
const TIMES: [&str; 4] = ["TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"];
/// The clocks are compared this often, in requests.
const SYNC_EVERY: u64 = 50;
/// So many requests before a difference are shown.
const HISTORY_LEN: usize = 60;

/// `list-max-listpack-size`, by the seed.
const FILLS: [(&str, Fill); 3] =
    [("-2", Fill::Bytes(8192)), ("4", Fill::Entries(4)), ("-1", Fill::Bytes(4096))];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, seed, count] = &args[..] else {
        return Err("ADDRESS SEED COUNT".into());
    };
    let (address, seed, count): (SocketAddr, u64, u64) = (address.parse()?, seed.parse()?, count.parse()?);
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut peer = SocketPeer::connect(&address.into())?;
        let mut bare = Bare::new(4, seed);
        let (size, fill) = FILLS[(seed % FILLS.len() as u64) as usize];
        bare.settings_mut().list.fill = fill;
        peer.call("A", protocol, &["CONFIG", "SET", "list-max-listpack-size", size].map(|word| word.into()));
        let skips =
            |name: &str| SKIPPED.contains(&name) || name.starts_with("flush") && seed.is_multiple_of(2);
        let mut requests = RandomCommands::new(seed, skips);
        let mut history: VecDeque<String> = VecDeque::new();
        for step in 0..count {
            if step.is_multiple_of(SYNC_EVERY) {
                bare.set_now(clock(&mut peer)?);
            }
            let request = requests.request();
            if is_known_to_differ(&request) {
                continue;
            }
            let theirs = peer.call("A", protocol, &request);
            let ours = bare.call("A", protocol, &request);
            history.push_back(format!("{:?} -> {}", lossy(&request), ours.lines()[0]));
            if history.len() > HISTORY_LEN {
                history.pop_front();
            }
            if !agree(&request[0], &theirs, &ours) {
                history.iter().for_each(|line| eprintln!("{line}"));
                report(step, &request, &theirs, &ours);
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// SET's IFEQ is Valkey's. LSET of Redis 8.0.2 cuts its index to 32 bits, so that 2^63 - 1 is the last element.
fn is_known_to_differ(request: &[Vec<u8>]) -> bool {
    match &request[0][..] {
        b"SET" => request.iter().any(|word| word == b"IFEQ"),
        b"LSET" => request.get(2).is_some_and(|index| index.len() > 10),
        _ => false,
    }
}

fn clock(peer: &mut SocketPeer) -> Result<Millis, Box<dyn Error>> {
    let Value::Aggregate(_, parts) = peer.call("clock", Protocol::Resp2, &[b"TIME".to_vec()]) else {
        return Err("TIME is an array".into());
    };
    let part = |index: usize| {
        let text = parts.get(index).and_then(Value::text).unwrap_or_default();
        base::text::parse_i64(text).ok_or("TIME is two numbers")
    };
    Ok(Millis(part(0)? * 1000 + part(1)? / 1000))
}

fn agree(name: &[u8], theirs: &Value, ours: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Line(b':', text) => base::text::parse_i64(text),
        _ => None,
    };
    let is_time = TIMES.iter().any(|time| time.as_bytes() == name);
    match (is_time, number(theirs), number(ours)) {
        (true, Some(theirs), Some(ours)) => theirs.abs_diff(ours) < 3_000 && (theirs < 0) == (ours < 0),
        _ => theirs == ours,
    }
}

/// The beginning of a request, to be shown.
fn lossy(request: &[Vec<u8>]) -> Vec<String> {
    request.iter().take(12).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

fn report(step: u64, request: &[Vec<u8>], theirs: &Value, ours: &Value) {
    eprintln!("request {step} ({} arguments): {:?}", request.len(), lossy(request));
    eprintln!(
        "  theirs: {}\n  ours:   {}",
        theirs.lines().join("\n          "),
        ours.lines().join("\n          ")
    );
}
