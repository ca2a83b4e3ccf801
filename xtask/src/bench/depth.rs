//! Whether the length of a list shows: server CPU of LINDEX at the head and in the middle, and of LPOP and
//! RPOP, on lists of 1,000 to 10 million elements.

use super::Options;
use super::client::Client;
use super::server::Server;

const LENGTHS: [u64; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
const REQUESTS: usize = 20_000;
const ROUNDS: usize = 5;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    for spec in &options.servers {
        let server = Server::start(spec, Some("0"))?;
        for length in LENGTHS.into_iter().filter(|l| *l <= options.keys.unwrap_or(10_000_000)) {
            let mut client = server.client()?;
            load(&mut client, length)?;
            let cost = |args: &[&[u8]]| -> Result<f64, String> { cpu_per_request(&server, args) };
            let head = cost(&[b"LINDEX", b"list", b"0"])?;
            let middle = cost(&[b"LINDEX", b"list", (length / 2).to_string().as_bytes()])?;
            let ends = (pop_push(&server, "LPOP", "LPUSH")?, pop_push(&server, "RPOP", "RPUSH")?);
            println!(
                "{:10} {length:9} elements: LINDEX 0 {head:.2}us, middle {middle:.2}us (x{:.2}); \
                 LPOP+LPUSH {:.2}us, RPOP+RPUSH {:.2}us",
                server.name,
                middle / head,
                ends.0,
                ends.1
            );
        }
    }
    Ok(())
}

fn load(client: &mut Client, length: u64) -> Result<(), String> {
    client.call(&[b"DEL", b"list"])?;
    let value = |i: u64| format!("element:{i:08}").into_bytes();
    for first in (0..length).step_by(500) {
        let values: Vec<Vec<u8>> = (first..length.min(first + 500)).map(value).collect();
        let mut args: Vec<&[u8]> = vec![b"RPUSH", b"list"];
        args.extend(values.iter().map(Vec::as_slice));
        client.pipe(&args, 16)?;
    }
    client.flush()
}

/// The median over the rounds of the server's microseconds a request, pipelined by 100.
fn cpu_per_request(server: &Server, args: &[&[u8]]) -> Result<f64, String> {
    measured(server, &[args])
}

/// A pop and the push that puts an element back: the length stays.
fn pop_push(server: &Server, pop: &str, push: &str) -> Result<f64, String> {
    measured(server, &[&[pop.as_bytes(), b"list"], &[push.as_bytes(), b"list", b"element:00000000"]])
}

fn measured(server: &Server, requests: &[&[&[u8]]]) -> Result<f64, String> {
    let mut client = server.client()?;
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        let before = server.cpu_us();
        for i in 0..REQUESTS {
            client.pipe(requests[i % requests.len()], 100)?;
        }
        client.flush()?;
        costs.push((server.cpu_us() - before) / REQUESTS as f64 * requests.len() as f64);
    }
    costs.sort_by(f64::total_cmp);
    Ok(costs[ROUNDS / 2])
}
