//! The build matrix: the same source built in different ways, measured side by side, all of them against the
//! release profile. One thing is changed at a time; `--full` builds every combination.
use super::Options;
use super::builds;
use super::chart::{Bar, Base, Better, Chart, Drawing};
use super::parts::Part;
use super::progress::Progress;
use super::redis_benchmark::Load;
use super::server::{Cpu, Server, Spec};
use super::variants::{self, BASE, Variant};
use std::collections::BTreeMap;
use std::path::PathBuf;

const TESTS: [&str; 5] = ["set", "get", "lpush", "rpop", "lrange_100"];
const DEPTHS: [u32; 2] = [1, 50];

struct Built {
    name: String,
    program: PathBuf,
}

/// Requests a second, and the server's time a request, of every round.
type Rounds = Vec<(f64, Cpu)>;

/// Whether there is a build of this name.
pub(super) fn knows(name: &str) -> bool {
    [variants::star(), variants::product()].concat().iter().any(|variant| variant.name == name)
}

pub(crate) fn run(options: &Options) -> Result<Part, String> {
    let (built, left_out) = build_all(options)?;
    let rounds = if options.is_quick { 1 } else { 5 };
    let mut progress = Progress::new(rounds * TESTS.len() * DEPTHS.len());
    // By test, depth and build.
    let mut measured: BTreeMap<(usize, u32, usize), Rounds> = BTreeMap::new();
    let requests = |depth: u32| {
        if options.is_quick {
            3_000
        } else if depth == 1 {
            60_000
        } else {
            600_000
        }
    };
    for round in 0..rounds {
        for (t, test) in TESTS.into_iter().enumerate() {
            for depth in DEPTHS {
                progress.step(&format!("round {} of {rounds}: {test}, {depth} at once", round + 1));
                for (b, build) in built.iter().enumerate() {
                    let sample = one(build, test, depth, requests(depth) / if t == 4 { 10 } else { 1 })?;
                    measured.entry((t, depth, b)).or_default().push(sample);
                }
            }
        }
    }
    let mut charts = vec![sizes(&built)?];
    for depth in DEPTHS {
        charts.push(chart(depth, "server CPU a request", "us", Better::Less, &built, &measured));
        charts.push(chart(depth, "throughput", "requests/s", Better::More, &built, &measured));
    }
    let method = format!(
        "One worker thread on a processor of its own, redis-benchmark on another; medians of {rounds} rounds, \
         the builds taking turns. `release` is what users get; each other build differs from it as its name \
         says.{left_out}"
    );
    Ok(Part { name: "matrix", title: "Ways to build it", method, is_quick: options.is_quick, charts })
}

/// All that can be built here, and what is said of the others.
fn build_all(options: &Options) -> Result<(Vec<Built>, String), String> {
    let mut chosen = if options.is_full { variants::product() } else { variants::star() };
    let is_wanted = |v: &Variant| v.name == BASE || options.names.contains(&v.name);
    if let Some(name) = options.names.iter().find(|name| !chosen.iter().any(|v| v.name == **name)) {
        return Err(format!("bench: '{name}' is one of the builds of --full"));
    }
    chosen.retain(|variant| options.names.is_empty() || is_wanted(variant));
    let can_profile = builds::profdata().is_some();
    let mut left_out = String::new();
    if !can_profile && chosen.iter().any(|variant| variant.is_profiled) {
        left_out = " Profile-guided builds are missing: the toolchain has no llvm-profdata \
                    (rustup component add llvm-tools)."
            .into();
        println!("{}", left_out.trim());
    }
    chosen.retain(|variant| can_profile || !variant.is_profiled);
    let mut progress = Progress::new(chosen.len());
    let mut built = Vec::new();
    for variant in chosen {
        progress.step(&format!("building {}", variant.name));
        built.push(Built { program: builds::build(&variant)?, name: variant.name });
    }
    Ok((built, left_out))
}

/// One run on a fresh server, so that no build profits from what another left.
fn one(build: &Built, test: &str, depth: u32, requests: u64) -> Result<(f64, Cpu), String> {
    let server = Server::start(&Spec::sardine(&build.program, 1, "")?, Some("0"))?;
    let load = |test, depth, requests| Load { test, depth, requests, keyspace: "1000000", threads: 1 };
    match test {
        "get" => load("set", 50, requests).run(&server).map(drop)?,
        "rpop" | "lrange_100" => load("lpush", 50, requests).run(&server).map(drop)?,
        _ => {}
    }
    let before = server.cpu();
    let report = load(test, depth, requests).run(&server)?;
    Ok((report.rate, server.cpu().since(before).per(requests)))
}

fn chart(
    depth: u32,
    title: &str,
    unit: &'static str,
    better: Better,
    built: &[Built],
    measured: &BTreeMap<(usize, u32, usize), Rounds>,
) -> Chart {
    let mut bars = Vec::new();
    for (b, build) in built.iter().enumerate() {
        for (t, test) in TESTS.into_iter().enumerate() {
            let Some(rounds) = measured.get(&(t, depth, b)) else { continue };
            let (rate, cpu) = median(rounds);
            bars.push(Bar {
                group: build.name.clone(),
                series: test.to_uppercase(),
                value: if better == Better::More { rate } else { cpu.user_us + cpu.system_us },
                parts: vec![("user".into(), cpu.user_us), ("system".into(), cpu.system_us)],
                parts_unit: "us a request",
            });
        }
    }
    let section =
        if depth == 1 { "One request at a time".into() } else { format!("{depth} requests at once") };
    Chart {
        section,
        title: title.into(),
        unit,
        better,
        axis: "build",
        base: Base::Group(BASE.into()),
        drawing: Drawing::Bars,
        bars,
    }
}

fn median(rounds: &Rounds) -> (f64, Cpu) {
    let of = |figure: fn(&(f64, Cpu)) -> f64| {
        let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    (of(|s| s.0), Cpu { user_us: of(|s| s.1.user_us), system_us: of(|s| s.1.system_us) })
}

/// How large the programs are.
fn sizes(built: &[Built]) -> Result<Chart, String> {
    let bar = |build: &Built| {
        let file = std::fs::metadata(&build.program).map_err(|e| format!("bench: {}: {e}", build.name))?;
        Ok(Bar {
            group: build.name.clone(),
            series: "program".into(),
            value: file.len() as f64 / 1e6,
            parts: Vec::new(),
            parts_unit: "",
        })
    };
    Ok(Chart {
        section: "Size".into(),
        title: "the program with its line tables".into(),
        unit: "MB",
        better: Better::Less,
        axis: "build",
        base: Base::Group(BASE.into()),
        drawing: Drawing::Bars,
        bars: built.iter().map(bar).collect::<Result<Vec<Bar>, String>>()?,
    })
}
