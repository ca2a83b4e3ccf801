//! Whether the size of the data stops anyone: while one connection loads keys by pipelines, flushes them and
//! loads them again, the server's own histogram of command times is read (LATENCY HISTOGRAM), and another
//! connection times PING.
//!
//! The server's figures tell what commands cost by the clock, and the clock goes on while the machine has
//! taken the processor away. So the worker has a processor to itself: all else, the load, the probe and the
//! server's other threads, shares the others. What is still taken from it is told three ways: the worker's
//! wait for its processor as the kernel counts it, the time that the hypervisor stole, and the gaps that a
//! loop without any work sees on the same processor before and after (`hiccups.rs`). The probe's figures tell
//! what a client sees; the same probe on an idle server stands beside them.

use super::Options;
use super::client::{Answer, Client};
use super::hiccups;
use super::server::{Server, Spec};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The processor that only the worker runs on.
pub(super) const WORKER_CORE: &str = "0";
const HICCUP_SECONDS: u64 = 20;

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let keys = options.keys.unwrap_or(20_000_000);
    for spec in &options.servers {
        one(spec, keys)?;
    }
    Ok(())
}

fn one(spec: &Spec, keys: u64) -> Result<(), String> {
    let server = Server::start(spec, None)?;
    let gaps_before = hiccups::of_processor(WORKER_CORE, HICCUP_SECONDS)?;
    let worker = server.isolate_worker(WORKER_CORE)?;
    let idle = probed(&server, || {
        std::thread::sleep(Duration::from_secs(5));
        Ok(())
    })?;
    let mut client = server.client()?;
    let before = Taken::read(worker);
    let busy = probed(&server, || {
        load(&mut client, keys)?;
        client.call(&[b"FLUSHALL"])?;
        load(&mut client, keys)
    })?;
    let taken = Taken::read(worker);
    println!("{}: {keys} keys loaded, flushed, loaded again", server.name);
    println!(
        "  worker: {} times sent off its processor, {:.1} ms in its queue; {} ms stolen from processor {WORKER_CORE}",
        taken.preemptions - before.preemptions,
        (taken.queued_ns - before.queued_ns) as f64 / 1e6,
        (taken.stolen_ticks - before.stolen_ticks) * 10
    );
    println!("  gaps of an idle loop there, {HICCUP_SECONDS} s: {gaps_before}");
    println!("  PING of another client, idle: {}", summary(idle));
    println!("  PING of another client, busy: {}", summary(busy));
    for command in ["set", "flushall"] {
        let answer = client.call(&[b"LATENCY", b"HISTOGRAM", command.as_bytes()]);
        println!("  {command}: {}", answer.map_or_else(|e| e, |a| histogram(&a)));
    }
    drop(server);
    println!(
        "  gaps of an idle loop there, {HICCUP_SECONDS} s: {}",
        hiccups::of_processor(WORKER_CORE, HICCUP_SECONDS)?
    );
    Ok(())
}

/// What kept the worker from its processor so far.
struct Taken {
    queued_ns: u64,
    preemptions: u64,
    stolen_ticks: u64,
}

impl Taken {
    fn read(worker: u32) -> Taken {
        let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
        let word =
            |line: &str, n: usize| line.split_whitespace().nth(n).and_then(|w| w.parse().ok()).unwrap_or(0);
        let line =
            |text: &str, name: &str| text.lines().find(|l| l.starts_with(name)).unwrap_or("").to_string();
        let status = read(format!("/proc/{worker}/status"));
        Taken {
            queued_ns: word(&read(format!("/proc/{worker}/schedstat")), 1),
            preemptions: word(&line(&status, "nonvoluntary_ctxt_switches"), 1),
            stolen_ticks: word(&line(&read("/proc/stat".into()), &format!("cpu{WORKER_CORE} ")), 8),
        }
    }
}

fn load(client: &mut Client, keys: u64) -> Result<(), String> {
    for i in 0..keys {
        client.pipe(&[b"SET", format!("key:{i:012}").as_bytes(), b"value"], 64)?;
    }
    client.flush()
}

/// Round trips of PING in microseconds while `work` runs.
pub(super) fn probed(server: &Server, work: impl FnOnce() -> Result<(), String>) -> Result<Vec<u64>, String> {
    let done = AtomicBool::new(false);
    let mut probe = server.client()?;
    std::thread::scope(|scope| {
        let times = scope.spawn(|| {
            let mut times = Vec::new();
            while !done.load(Ordering::Relaxed) {
                #[allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
                let start = Instant::now();
                if probe.call(&[b"PING"]).is_err() {
                    break;
                }
                times.push(start.elapsed().as_micros() as u64);
                std::thread::sleep(Duration::from_micros(500));
            }
            times
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let times = times.join().map_err(|_| "bench: the probe failed".to_string())?;
        worked.map(|()| times)
    })
}

pub(super) fn summary(mut times: Vec<u64>) -> String {
    times.sort_unstable();
    let at = |q: f64| times.get(((times.len().max(1) - 1) as f64 * q) as usize).copied().unwrap_or(0);
    let over = times.iter().filter(|t| **t > 1_000).count();
    format!(
        "{} samples, p50 {} us, p99 {} us, p99.9 {} us, max {} us, over 1 ms: {over}",
        times.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    )
}

/// "3 calls: 1 <=66us, 2 <=8us" from LATENCY HISTOGRAM's cumulative counts: what each power of two holds by
/// itself, the longest first.
pub(super) fn histogram(answer: &Answer) -> String {
    let Answer::Many(parts) = answer else { return "no histogram".into() };
    let Some(Answer::Many(fields)) = parts.get(1) else { return "no histogram".into() };
    let (Some(Answer::Int(calls)), Some(Answer::Many(pairs))) = (fields.get(1), fields.get(3)) else {
        return "no histogram".into();
    };
    let number = |a: &Answer| if let Answer::Int(n) = a { *n } else { 0 };
    let mut before = 0;
    let cells = pairs.chunks_exact(2).map(|p| {
        let sum = number(&p[1]);
        format!("{} <={}us", sum - std::mem::replace(&mut before, sum), number(&p[0]))
    });
    let cells: Vec<String> = cells.collect();
    format!("{calls} calls: {}", cells.into_iter().rev().collect::<Vec<_>>().join(", "))
}
