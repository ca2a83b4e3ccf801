//! Server CPU of SET, of MSET of three, and of GET of strings of 10 KB to 4 MB: pages, pictures and
//! serialized objects in a cache.
//! A few clients send one request at a time, each for one of some keys drawn at random, which all hold a
//! string of that size already. The servers take turns, and what counts is the median of the ratios within
//! rounds.
use super::Options;
use super::client::append_request;
use super::crowd::{Crowd, Turn};
use super::server::Server;
use super::turns::cells;
use base::random::Random;

const SIZES: [(&str, usize); 6] = [
    ("10k", 10 << 10),
    ("30k", 30 << 10),
    ("100k", 100 << 10),
    ("300k", 300 << 10),
    ("1m", 1 << 20),
    ("4m", 4 << 20),
];
const COMMANDS: [&str; 3] = ["set", "mset", "get"];
const CLIENTS: usize = 4;
const ROUNDS: usize = 20;
/// Bytes of the strings that are sent or read in a turn.
const TURN_BYTES: usize = 48 << 20;
const KEYS: u64 = 32;

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    let known = |command, size| names_of(command, size).iter().any(|known| known == name);
    COMMANDS.iter().any(|command| SIZES.iter().any(|(size, _)| known(command, size)))
}

/// By which names a case may be asked for: its own, or what it has in common with others.
fn names_of(command: &str, size: &str) -> [String; 3] {
    [format!("{command}-{size}"), size.into(), command.into()]
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    super::server::pin_this("1")?;
    let servers: Result<Vec<Server>, String> =
        options.servers.iter().map(|spec| Server::start(spec, Some("0"))).collect();
    let servers = servers?;
    let crowds: Result<Vec<Crowd>, String> =
        servers.iter().map(|server| Crowd::of(CLIENTS, server.port)).collect();
    let mut crowds = crowds?;
    let labels: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let mut random = Random::new(1);
    for (size, bytes) in SIZES {
        for command in COMMANDS {
            let names = names_of(command, size);
            if !names.iter().any(|name| options.wants(name)) {
                continue;
            }
            let mut times_us = vec![Vec::new(); servers.len()];
            for server in &servers {
                fill(server, bytes)?;
            }
            for round in 0..=options.rounds.unwrap_or(ROUNDS) {
                for at in 0..servers.len() {
                    let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
                    let time_us = turn(&servers[at], &mut crowds[at], (command, bytes), &mut random)?;
                    // The first round only warms the caches.
                    if round > 0 {
                        times_us[at].push(time_us);
                    }
                }
            }
            println!("{:8} {}", names[0], cells(&labels, &times_us, &mut random).join(" | "));
        }
    }
    Ok(())
}

/// Puts a string under every key.
fn fill(server: &Server, bytes: usize) -> Result<(), String> {
    let (mut client, value) = (server.client()?, vec![b'x'; bytes]);
    for number in 0..KEYS {
        client.call(&[b"SET", key(number).as_bytes(), &value])?;
    }
    Ok(())
}

fn key(number: u64) -> String {
    format!("page:{number:02}")
}

/// Microseconds of the server's CPU a request.
fn turn(
    server: &Server,
    crowd: &mut Crowd,
    (command, bytes): (&str, usize),
    random: &mut Random,
) -> Result<f64, String> {
    let value = vec![b'y'; bytes];
    let mut write = |out: &mut Vec<u8>| {
        let mut draw = || key(random.below(KEYS));
        let key = draw();
        match command {
            "mset" => {
                let [second, third] = [draw(), draw()];
                let (second, third) = (second.as_bytes(), third.as_bytes());
                append_request(out, &[b"MSET", key.as_bytes(), &value, second, &value, third, &value]);
            }
            "set" => append_request(out, &[b"SET", key.as_bytes(), &value]),
            _ => append_request(out, &[b"GET", key.as_bytes()]),
        }
    };
    let before = server.cpu_us();
    let sent = crowd.take_turn(&mut Turn { requests: TURN_BYTES / bytes, depth: 1, write: &mut write })?;
    Ok((server.cpu_us() - before) / sent as f64)
}
