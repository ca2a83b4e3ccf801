//! Processor time of single operations, Sardine's beside a peer's: every family, small values and large
//! ones, what is common and what is rare, so that an operation that costs too much is seen before somebody
//! has a workload of it.
//!
//! The servers take turns as in `turns`. For each operation the data is made anew on each server, a first
//! turn tells how many requests take about the same time, and what counts is the median of the ratios within
//! rounds. Each line is printed when it was measured; in the end the worst are printed again, worst first.
use super::Options;
use super::anysize::median;
use super::client::{Client, append_request};
use super::crowd::{Crowd, Turn};
use super::server::{Server, Spec};
use base::random::Random;
use operations::{FILLS, OPERATIONS, Operation};

mod operations;

const ROUNDS: usize = 9;
const QUICK_ROUNDS: usize = 1;
const DEPTH: usize = 32;
/// Processor time of a turn.
const TURN_US: f64 = 60_000.0;
/// The requests of the first turn, before it is known how long one takes.
const FIRST_REQUESTS: usize = 1_600;
const REQUESTS_MAX: usize = 200_000;
/// Requests of the data that are sent together.
const FILL_DEPTH: usize = 100;
/// How many of the worst operations are printed again in the end.
const WORST: usize = 15;
/// Stands for a number of twelve digits, drawn anew for each request.
const DRAWN: &[u8] = b"000000000000";

/// Whether there is an operation of this name.
pub(super) fn knows(name: &str) -> bool {
    OPERATIONS.iter().any(|operation| operation.name.starts_with(name))
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let chosen: Vec<&Operation> =
        OPERATIONS.iter().filter(|operation| is_wanted(operation, options)).collect();
    let (sardine, peer) = match options.servers.as_slice() {
        [sardine, .., peer] => (sardine, peer),
        _ => return Err("bench: ops compares with a peer, and there is none".into()),
    };
    let start = |spec: &Spec| Server::start(spec, Some("0"));
    let servers = [start(sardine)?, start(peer)?];
    super::server::pin_this("1")?;
    let rounds = options.rounds.unwrap_or(if options.is_quick { QUICK_ROUNDS } else { ROUNDS });
    let mut ratios = Vec::new();
    for operation in chosen {
        let mut times_us = measure(&servers, operation, rounds)?;
        let [own, theirs] = &mut times_us;
        let mut all: Vec<f64> = own.iter().zip(theirs.iter()).map(|(own, theirs)| own / theirs).collect();
        let (ratio, own, theirs) = (median(&mut all), median(own), median(theirs));
        println!("{:22} {:8.2}us  {} {theirs:8.2}us  x{ratio:.2}", operation.name, own, peer.name);
        ratios.push((operation.name, ratio));
    }
    println!("\n{}", summary(ratios));
    Ok(())
}

/// Whether an operation is measured: if its name begins with a word of the command line, or there is none.
fn is_wanted(operation: &Operation, options: &Options) -> bool {
    options.names.is_empty() || options.names.iter().any(|name| operation.name.starts_with(name.as_str()))
}

/// The operations, worst first, and the median of all of them.
fn summary(mut ratios: Vec<(&str, f64)>) -> String {
    ratios.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut values: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
    let over = values.iter().filter(|ratio| **ratio > 0.9).count();
    let (count, middle) = (values.len(), median(&mut values));
    let worst: Vec<String> =
        ratios.iter().take(WORST).map(|(name, ratio)| format!("{name} {ratio:.2}")).collect();
    format!("worst: {}\nmedian x{middle:.2}, {over} of {count} over 0.9", worst.join(", "))
}

/// Processor time of a request, for each server and round.
fn measure(servers: &[Server; 2], operation: &Operation, rounds: usize) -> Result<[Vec<f64>; 2], String> {
    let mut crowds = Vec::new();
    for server in servers {
        prepare(server, operation)?;
        crowds.push(Crowd::connect(server.port)?);
    }
    let mut random = Random::new(1);
    let mut requests = FIRST_REQUESTS;
    let mut times_us = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        let mut longest_us: f64 = 0.0;
        for at in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            if operation.consumes {
                fill(servers[at].port, operation.data)?;
            }
            let before = servers[at].cpu_us();
            let sent = turn(&mut crowds[at], operation, requests, &mut random)?;
            let time_us = (servers[at].cpu_us() - before) / sent as f64;
            longest_us = longest_us.max(time_us);
            if round > 0 {
                times_us[at].push(time_us);
            }
        }
        // The first round warms the caches, and tells how many requests make a turn.
        if round == 0 && !operation.consumes {
            requests = ((TURN_US / longest_us) as usize).clamp(FIRST_REQUESTS / 8, REQUESTS_MAX);
        }
    }
    Ok(times_us)
}

fn prepare(server: &Server, operation: &Operation) -> Result<(), String> {
    let mut client = server.client()?;
    client.call(&[b"FLUSHALL"])?;
    fill(server.port, operation.data)
}

/// Makes the data of this name.
fn fill(port: u16, data: &str) -> Result<(), String> {
    if data.is_empty() {
        return Ok(());
    }
    let (_, make) = FILLS.iter().find(|(name, _)| *name == data).ok_or(format!("bench: no data '{data}'"))?;
    let mut client = Client::connect(port).map_err(|e| format!("bench: cannot connect: {e}"))?;
    make(&mut |words: &[String]| {
        let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
        client.pipe(&words, FILL_DEPTH)
    })?;
    client.flush()
}

fn turn(
    crowd: &mut Crowd,
    operation: &Operation,
    requests: usize,
    random: &mut Random,
) -> Result<usize, String> {
    let requests_in_turn: Vec<_> = operation.request.split(" ; ").map(request).collect();
    let (mut next, mut digits) = (0, DRAWN.to_vec());
    let mut write = |out: &mut Vec<u8>| {
        let (request, places) = &requests_in_turn[next % requests_in_turn.len()];
        let start = out.len();
        out.extend_from_slice(request);
        for place in places {
            if next.is_multiple_of(requests_in_turn.len()) {
                draw(&mut digits, operation.keys, random);
            }
            out[start + place..][..DRAWN.len()].copy_from_slice(&digits);
        }
        next += 1;
    };
    crowd.take_turn(&mut Turn { requests, depth: DEPTH, write: &mut write })
}

/// The request, and where numbers are drawn in it.
fn request(text: &str) -> (Vec<u8>, Vec<usize>) {
    let values = [("100B", "v".repeat(100)), ("300B", "w".repeat(300)), ("10KB", "x".repeat(10_000))];
    let text = values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value));
    let drawn = String::from_utf8_lossy(DRAWN);
    let text = repeated(&text);
    let words: Vec<String> = text.split_whitespace().map(|word| word.replace('#', &drawn)).collect();
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let mut request = Vec::new();
    append_request(&mut request, &words);
    let is_drawn = |at: &usize| request[*at..].starts_with(DRAWN);
    let mut places = Vec::new();
    let mut at = 0;
    while at < request.len() {
        if is_drawn(&at) {
            places.push(at);
            at += DRAWN.len();
        } else {
            at += 1;
        }
    }
    (request, places)
}

/// `[some words]*9` at the end of a request are nine times these words.
fn repeated(text: &str) -> String {
    let parts = text.split_once('[').and_then(|(head, tail)| Some((head, tail.split_once("]*")?)));
    let Some((head, (words, times))) = parts else { return text.to_owned() };
    let times = times.parse().expect("a number stands behind the words");
    format!("{head}{}", format!("{words} ").repeat(times))
}

fn draw(digits: &mut [u8], below: u64, random: &mut Random) {
    let mut number = random.below(below.max(1));
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own_and_data_that_there_is() {
        for (index, operation) in OPERATIONS.iter().enumerate() {
            assert!(
                OPERATIONS[..index].iter().all(|other| other.name != operation.name),
                "{}",
                operation.name
            );
            let is_made = FILLS.iter().any(|(name, _)| *name == operation.data);
            assert!(operation.data.is_empty() || is_made, "{}", operation.data);
            assert!(operation.keys > 0 || !operation.request.contains('#'), "{}", operation.name);
        }
    }

    #[test]
    fn numbers_are_drawn_where_a_request_has_a_mark() {
        let (request, places) = request("SET key:# 100B #");
        let text = String::from_utf8(request.clone()).unwrap();
        let value = "v".repeat(100);
        let expected = format!(
            "*4\r\n$3\r\nSET\r\n$16\r\nkey:000000000000\r\n$100\r\n{value}\r\n$12\r\n000000000000\r\n"
        );
        assert_eq!((text, places.len()), (expected, 2));
        let mut digits = DRAWN.to_vec();
        draw(&mut digits, 1_000, &mut Random::new(1));
        assert!(digits.starts_with(b"000000000") && digits != DRAWN);
    }

    #[test]
    fn the_summary_begins_with_the_worst() {
        let text = summary(vec![("a", 0.5), ("b", 1.5), ("c", 0.7)]);
        assert_eq!(text, "worst: b 1.50, c 0.70, a 0.50\nmedian x0.70, 1 of 3 over 0.9");
    }
}
