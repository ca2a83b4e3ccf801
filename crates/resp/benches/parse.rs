//! What it costs to parse a request and to write a reply: `cargo bench -p resp` (seconds). Prints nanoseconds
//! a request, best of several rounds, and, where valgrind is installed, instructions a request.
//!
//! Run as a test (`cargo test --benches`) it makes one short round, to stay alive.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints"
)]
use resp::{Limits, Parsed, Parser, Protocol, Reply};
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

/// Requests that arrive in one read.
const BATCH: usize = 100;

struct Case {
    name: &'static str,
    run: fn(rounds: usize),
}

const CASES: [Case; 4] = [
    Case { name: "parse GET key:000000000001", run: |rounds| parse(&["GET", "key:000000000001"], rounds) },
    Case {
        name: "parse SET, 64-byte value",
        run: |rounds| parse(&["SET", "key:000000000001", &"x".repeat(64)], rounds),
    },
    Case {
        name: "parse HSET of 5 fields",
        run: |rounds| {
            let fields = ["a", "10", "bb", "20", "ccc", "30", "dddd", "40", "eeeee", "50"];
            parse(&[&["HSET", "user:1000"], &fields[..]].concat(), rounds);
        },
    },
    Case { name: "write a bulk reply of 64 bytes", run: write },
];

fn parse(args: &[&str], rounds: usize) {
    let mut request = format!("*{}\r\n", args.len());
    args.iter().for_each(|arg| request += &format!("${}\r\n{arg}\r\n", arg.len()));
    let mut buffer = request.repeat(BATCH).into_bytes();
    let (mut parser, mut spans, limits) = (Parser::new(), Vec::new(), Limits::default());
    for _ in 0..rounds {
        let mut at = 0;
        spans.clear();
        let mut count = 0;
        while let Ok(Parsed::Request(_)) = parser.parse(black_box(&mut buffer), &mut at, &mut spans, &limits)
        {
            count += 1;
        }
        assert_eq!((count, at), (BATCH, buffer.len()));
        black_box(&spans);
    }
}

fn write(rounds: usize) {
    let mut reply = Reply::new(Protocol::Resp2);
    let value = [b'x'; 64];
    for _ in 0..rounds {
        reply.out.clear();
        for _ in 0..BATCH {
            reply.bulk(black_box(&value));
        }
        black_box(&reply.out);
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|a| a == "--case") {
        Some(at) => {
            let index: usize = args[at + 1].parse().expect("--case INDEX ROUNDS");
            (CASES[index].run)(args[at + 2].parse().expect("--case INDEX ROUNDS"));
        }
        None if args.iter().any(|a| a == "--bench") => CASES.iter().enumerate().for_each(report),
        None => CASES.iter().for_each(|case| (case.run)(1)),
    }
}

fn report((index, case): (usize, &Case)) {
    const ROUNDS: usize = 5_000;
    let best = (0..7).map(|_| {
        let start = Instant::now();
        (case.run)(ROUNDS);
        start.elapsed()
    });
    let ns = best.min().unwrap_or_default().as_nanos() as f64 / (ROUNDS * BATCH) as f64;
    let instructions = match (count_instructions(index, 1), count_instructions(index, 21)) {
        (Some(few), Some(many)) => format!("{:.0} instructions", (many - few) / (20 * BATCH) as f64),
        _ => "instructions not counted: no valgrind here".to_string(),
    };
    println!("{:<32} {ns:>6.1} ns  {instructions}", case.name);
}

/// Runs this program's `case` under callgrind, which counts the same on every machine.
fn count_instructions(case: usize, rounds: usize) -> Option<f64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["--case", &case.to_string(), &rounds.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
