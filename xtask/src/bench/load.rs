//! redis-benchmark's own tests at depths 1 to 1000, the servers taking turns: throughput, the server's
//! processor time a request, latency. Values of 64 bytes, keys from ten thousand million, so that hardly any
//! comes twice.
//!
//! With one thread the server has a processor and the load another; with more the whole machine is shared.
use super::Options;
use super::chart::{Bar, Base, Better, Chart, Drawing};
use super::parts::{Part, label};
use super::progress::Progress;
use super::redis_benchmark::{Load, Report};
use super::server::{Cpu, Server};

/// The test, the command that it needs, and what fills its key beforehand.
const TESTS: [(&str, &str, Option<&str>); 16] = [
    ("ping_mbulk", "PING", None),
    ("set", "SET", None),
    ("get", "GET", Some("set")),
    ("incr", "INCR", None),
    ("lpush", "LPUSH", None),
    ("rpush", "RPUSH", None),
    ("lpop", "LPOP", Some("lpush")),
    ("rpop", "RPOP", Some("lpush")),
    ("sadd", "SADD", None),
    ("hset", "HSET", None),
    ("spop", "SPOP", Some("sadd")),
    ("zadd", "ZADD", None),
    ("zpopmin", "ZPOPMIN", Some("zadd")),
    ("lrange_100", "LRANGE", Some("lpush")),
    ("lrange_600", "LRANGE", Some("lpush")),
    ("mset", "MSET", None),
];
const DEPTHS: [u32; 7] = [1, 5, 10, 20, 50, 100, 1000];
const QUICK_DEPTHS: [u32; 3] = [1, 20, 1000];
const KEYSPACE: &str = "9999999999";
/// Deeper, the replies in flight of all connections would fill the memory of the machine.
const LRANGE_DEPTH_MAX: u32 = 100;

/// How much is measured.
struct Extent {
    depths: &'static [u32],
    rounds: usize,
    /// How long one run takes, about.
    seconds: f64,
    /// Requests of the run that tells how fast a server is.
    requests_first: u64,
}

const FULL: Extent = Extent { depths: &DEPTHS, rounds: 3, seconds: 1.5, requests_first: 30_000 };
const QUICK: Extent = Extent { depths: &QUICK_DEPTHS, rounds: 1, seconds: 0.05, requests_first: 3_000 };

/// Medians of a server's rounds.
#[derive(Clone, Copy, Default)]
struct Sample {
    report: Report,
    /// Microseconds a request.
    cpu: Cpu,
}

/// Whether there is a test of this name.
pub(super) fn knows(name: &str) -> bool {
    TESTS.iter().any(|(test, ..)| *test == name)
}

pub(crate) fn run(options: &Options) -> Result<Part, String> {
    let cores = (options.threads == 1).then_some("0");
    let servers =
        options.servers.iter().map(|s| Server::start(s, cores)).collect::<Result<Vec<Server>, String>>()?;
    let labels: Vec<String> = servers.iter().map(label).collect();
    let tests = known_tests(&servers[0], options)?;
    let depths_of = |test: &str| {
        let deepest = if test.starts_with("lrange") { LRANGE_DEPTH_MAX } else { u32::MAX };
        extent(options).depths.iter().copied().filter(move |depth| *depth <= deepest)
    };
    let mut progress = Progress::new(tests.iter().map(|(test, _)| depths_of(test).count()).sum());
    let mut charts = Vec::new();
    for (test, fill) in tests {
        let mut rows = Vec::new();
        for depth in depths_of(test) {
            progress.step(&format!("{test}, {depth} at once"));
            rows.push((depth, compare(&servers, test, fill, depth, options)?));
        }
        charts.extend(draw(test, &labels, &rows));
    }
    let method = format!(
        "redis-benchmark with 50 connections, -d 64 -r {KEYSPACE}; {}; medians of {} rounds, the servers taking turns.",
        match options.threads {
            1 => "one thread a server, on a processor of its own".to_string(),
            threads => format!("{threads} threads a server"),
        },
        extent(options).rounds
    );
    Ok(Part { name: "load", title: "Throughput, CPU, latency", method, is_quick: options.is_quick, charts })
}

/// The one of a quick or a full run, as far as the command line does not say otherwise.
fn extent(options: &Options) -> Extent {
    let extent = if options.is_quick { QUICK } else { FULL };
    Extent {
        rounds: options.rounds.unwrap_or(extent.rounds),
        seconds: options.seconds.unwrap_or(extent.seconds),
        ..extent
    }
}

/// The tests that were asked for and whose command Sardine has.
fn known_tests(
    sardine: &Server,
    options: &Options,
) -> Result<Vec<(&'static str, Option<&'static str>)>, String> {
    let mut client = sardine.client()?;
    let mut tests = Vec::new();
    for (test, command, fill) in TESTS {
        if options.wants(test) && client.knows(command)? {
            tests.push((test, fill));
        }
    }
    Ok(tests)
}

fn compare(
    servers: &[Server],
    test: &str,
    fill: Option<&str>,
    depth: u32,
    options: &Options,
) -> Result<Vec<Sample>, String> {
    let extent = extent(options);
    let run = |server: &Server, requests: u64| -> Result<Sample, String> {
        if let Some(fill) = fill {
            Load { test: fill, depth: 50, requests, keyspace: KEYSPACE, threads: 1 }.run(server)?;
        }
        let before = server.cpu();
        let report =
            Load { test, depth, requests, keyspace: KEYSPACE, threads: options.threads }.run(server)?;
        Ok(Sample { report, cpu: server.cpu().since(before).per(requests) })
    };
    let mut requests = Vec::new();
    for server in servers {
        empty(server)?;
        let first = run(server, extent.requests_first)?;
        requests.push(((first.report.rate * extent.seconds) as u64).max(u64::from(depth) * 50));
    }
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
    for _ in 0..extent.rounds {
        for (i, server) in servers.iter().enumerate() {
            samples[i].push(run(server, requests[i])?);
        }
    }
    servers.iter().try_for_each(empty)?;
    Ok(samples.iter().map(|rounds| median(rounds)).collect())
}

/// Waits a little, so that what is freed in the background is not counted with what comes next.
fn empty(server: &Server) -> Result<(), String> {
    server.client()?.call(&[b"FLUSHALL"])?;
    std::thread::sleep(std::time::Duration::from_millis(50));
    Ok(())
}

/// The median of each figure by itself.
fn median(rounds: &[Sample]) -> Sample {
    let of = |figure: fn(&Sample) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Sample {
        report: Report {
            rate: of(|s| s.report.rate),
            p50: of(|s| s.report.p50),
            p95: of(|s| s.report.p95),
            p99: of(|s| s.report.p99),
            max: of(|s| s.report.max),
        },
        cpu: Cpu { user_us: of(|s| s.cpu.user_us), system_us: of(|s| s.cpu.system_us) },
    }
}

/// What a figure is of a sample, and what it opens into.
struct Figure {
    title: &'static str,
    unit: &'static str,
    better: Better,
    value: fn(&Sample) -> f64,
    parts: fn(&Sample) -> Vec<(String, f64)>,
    parts_unit: &'static str,
}

const FIGURES: [Figure; 3] = [
    Figure {
        title: "throughput",
        unit: "requests/s",
        better: Better::More,
        value: |sample| sample.report.rate,
        parts: |sample| {
            let (user, system) = (sample.cpu.user_us, sample.cpu.system_us);
            let elsewhere = (1e6 / sample.report.rate - user - system).max(0.0);
            parts(&[("server, user", user), ("server, system", system), ("client and waiting", elsewhere)])
        },
        parts_unit: "us a request",
    },
    Figure {
        title: "server CPU a request",
        unit: "us",
        better: Better::Less,
        value: |sample| sample.cpu.user_us + sample.cpu.system_us,
        parts: |sample| parts(&[("user", sample.cpu.user_us), ("system", sample.cpu.system_us)]),
        parts_unit: "us",
    },
    Figure {
        title: "latency, 99th percentile",
        unit: "ms",
        better: Better::Less,
        value: |sample| sample.report.p99,
        parts: |sample| {
            let Report { p50, p95, p99, max, .. } = sample.report;
            parts(&[
                ("half", p50),
                ("more for 95%", p95 - p50),
                ("more for 99%", p99 - p95),
                ("more for all", max - p99),
            ])
        },
        parts_unit: "ms",
    },
];

fn parts(named: &[(&str, f64)]) -> Vec<(String, f64)> {
    named.iter().map(|(name, value)| (name.to_string(), *value)).collect()
}

fn draw(test: &str, labels: &[String], rows: &[(u32, Vec<Sample>)]) -> Vec<Chart> {
    let chart = |figure: &Figure| {
        let bar = |depth: u32, label: &String, sample: &Sample| Bar {
            group: depth.to_string(),
            series: label.clone(),
            value: (figure.value)(sample),
            parts: (figure.parts)(sample),
            parts_unit: figure.parts_unit,
        };
        let of_row = |(depth, samples): &(u32, Vec<Sample>)| -> Vec<Bar> {
            labels.iter().zip(samples).map(|(label, sample)| bar(*depth, label, sample)).collect()
        };
        Chart {
            section: test.to_uppercase(),
            title: figure.title.into(),
            unit: figure.unit,
            better: figure.better,
            axis: "depth",
            base: Base::of(labels),
            drawing: Drawing::Bars,
            bars: rows.iter().flat_map(of_row).collect(),
        }
    };
    FIGURES.iter().map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rate: f64) -> Sample {
        Sample {
            report: Report { rate, p50: 1.0, p95: 2.0, p99: 4.0, max: 8.0 },
            cpu: Cpu { user_us: 3.0, system_us: 1.0 },
        }
    }

    #[test]
    fn medians_are_taken_of_each_figure() {
        let median = median(&[sample(5.0), sample(1.0), sample(3.0)]);
        assert_eq!((median.report.rate, median.cpu.user_us), (3.0, 3.0));
    }

    #[test]
    fn the_parts_of_a_bar_add_up_to_it() {
        let labels = ["sardine".to_string(), "redis".to_string()];
        let charts = draw("set", &labels, &[(10, vec![sample(1e5), sample(5e4)])]);
        assert_eq!(charts.len(), 3);
        let sum = |bar: &Bar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
        assert_eq!(sum(&charts[0].bars[0]), 10.0, "100,000 requests a second are 10 us each");
        assert_eq!(sum(&charts[1].bars[1]), charts[1].bars[1].value);
        assert_eq!(charts[2].bars[0].parts[2], ("more for 99%".to_string(), 2.0));
    }
}
