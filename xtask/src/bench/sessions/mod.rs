//! Server CPU of what happens between clients: PUBLISH to a thousand who listen, one after the other and as a
//! stream, PUBLISH where a thousand patterns are subscribed to of which one matches, transactions of five
//! commands, and elements handed over to clients that wait for them. Also how long others wait while messages
//! go to thousands (`waits`). The servers take turns, and a turn ends when everything has arrived; what
//! counts is the median over the turns, and the median of the ratios within rounds. How much of it is the
//! kernel's is known of all turns together only.
mod audience;
mod hand_over;
mod publish;
mod transactions;
mod waits;

use super::Options;
use super::anysize::median;
use super::server::{CpuReading, Server};
use std::io::{self, Read};
use std::net::TcpStream;

const ROUNDS: usize = 40;
const DEPTHS: [usize; 2] = [1, 16];
const TEXT: [u8; 32] = [b'm'; 32];

/// The clients of one server.
trait Talk {
    /// Does so many of what is measured, so many of them sent together, and reads everything that comes of
    /// it. Returns how many they were.
    fn take_turn(&mut self, count: usize, depth: usize) -> Result<usize, String>;
}

struct Case {
    name: &'static str,
    /// What is counted.
    unit: &'static str,
    /// So many of them are a turn.
    count: usize,
    connect: fn(u16) -> Result<Box<dyn Talk>, String>,
}

const CASES: [Case; 5] = [
    Case { name: "publish-1000", unit: "PUBLISH", count: 64, connect: publish::to_many },
    Case { name: "publish-stream", unit: "PUBLISH", count: 256, connect: publish::stream_to_many },
    Case { name: "publish-patterns", unit: "PUBLISH", count: 8000, connect: publish::by_pattern },
    Case { name: "exec-5", unit: "transaction", count: 4000, connect: transactions::connect },
    Case { name: "hand-over", unit: "element", count: 4000, connect: hand_over::connect },
];

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    name == waits::NAME || CASES.iter().any(|case| case.name == name)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let servers: Result<Vec<Server>, String> =
        options.servers.iter().map(|spec| Server::start(spec, None)).collect();
    let servers = servers?;
    for case in CASES.iter().filter(|case| options.wants(case.name)) {
        for depth in DEPTHS {
            let rounds = options.rounds.unwrap_or(ROUNDS);
            compare(&servers, case, depth, rounds)?;
        }
    }
    if options.wants(waits::NAME) {
        servers.iter().try_for_each(|server| waits::measure(server, options.rounds.unwrap_or(ROUNDS)))?;
    }
    Ok(())
}

fn compare(servers: &[Server], case: &Case, depth: usize, rounds: usize) -> Result<(), String> {
    let talks: Result<Vec<_>, String> = servers.iter().map(|server| (case.connect)(server.port)).collect();
    let mut talks = talks?;
    let mut times_us = vec![Vec::new(); servers.len()];
    let mut sums = vec![CpuReading::default(); servers.len()];
    for round in 0..=rounds {
        for at in 0..servers.len() {
            // The servers take turns in being first.
            let at = if round % 2 == 0 { at } else { servers.len() - 1 - at };
            let before = servers[at].cpu();
            let count = talks[at].take_turn(case.count, depth)?;
            let after = servers[at].cpu();
            // The first round only warms the caches.
            if round > 0 {
                times_us[at].push((after.us() - before.us()) / count as f64);
                sums[at] = sums[at].with(before, after);
            }
        }
    }
    for ((server, theirs), sum) in servers.iter().zip(&times_us).zip(sums) {
        let mut ratios: Vec<f64> = times_us[0].iter().zip(theirs).map(|(ours, them)| ours / them).collect();
        let (time_us, ratio) = (median(&mut theirs.clone()), median(&mut ratios));
        let (Case { name, unit, .. }, server) = (case, &server.name);
        let all = sum.since(CpuReading::default());
        let kernel = 100.0 * all.system_us / (all.user_us + all.system_us);
        println!(
            "{name:17} P={depth:<3} {server:12} {time_us:9.2} us a {unit}, {kernel:2.0}% the kernel's; \
             sardine/it {ratio:.2}"
        );
    }
    Ok(())
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn failed(error: &io::Error) -> String {
    format!("bench: a client: {error}")
}

/// An array of words as it comes over the wire.
fn array(words: &[&str]) -> String {
    let bulk = |word: &&str| format!("${}\r\n{word}\r\n", word.len());
    format!("*{}\r\n", words.len()) + &words.iter().map(bulk).collect::<String>()
}

/// Reads so many bytes and leaves them; fewer are an error.
fn read(stream: &mut TcpStream, len: usize) -> io::Result<()> {
    match io::copy(&mut stream.take(len as u64), &mut io::sink())? {
        read if read == len as u64 => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_the_server_sends_it() {
        assert_eq!(array(&["message", "c", "hi"]), "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
    }
}
