//! How long the machine itself takes a processor away: a loop that only reads the clock, and the gaps that
//! it sees. What a server on the same processor shows beyond this is its own doing; what it shows up to
//! this is the machine's.
//!
//! `hiccups` prints the gaps of some seconds (`--seconds S`). Other benchmarks run it as a process of its
//! own, pinned to the processor that they measure.

use super::Options;
use std::process::Command;
use std::time::{Duration, Instant};

const SECONDS: f64 = 20.0;
/// Shorter gaps are what an interrupt takes.
const NOTED_US_MIN: u128 = 128;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    println!("{}", summary(&watch(Duration::from_secs_f64(options.seconds.unwrap_or(SECONDS)))));
    Ok(())
}

/// Runs `hiccups` as another process on one processor. Returns what it printed.
pub(super) fn of_processor(core: &str, seconds: u64) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("bench: hiccups: {e}");
    let program = std::env::current_exe().map_err(failed)?;
    let output = Command::new("taskset")
        .args(["-c", core])
        .arg(program)
        .args(["bench", "hiccups", "--seconds", &seconds.to_string()])
        .output()
        .map_err(failed)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// The gaps, by the power of two in microseconds that they are below.
fn watch(time: Duration) -> Vec<u64> {
    let mut gaps = vec![0; 24];
    #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    let (start, mut last) = (Instant::now(), Instant::now());
    while last.duration_since(start) < time {
        #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
        let now = Instant::now();
        let gap_us = now.duration_since(last).as_micros();
        if gap_us >= NOTED_US_MIN {
            let class = (gap_us.ilog2() + 1) as usize;
            gaps[class.min(23)] += 1;
        }
        last = now;
    }
    gaps
}

fn summary(gaps: &[u64]) -> String {
    let cells = gaps.iter().enumerate().rev().filter(|(_, count)| **count > 0);
    let cells: Vec<String> = cells.map(|(class, count)| format!("{count} <={}us", 1 << class)).collect();
    if cells.is_empty() { "no gap over 128us".into() } else { cells.join(", ") }
}
