//! Bytes an element and server CPU an operation against the number of elements: the pictures of README.md and
//! docs/benchmarks.md.
//!
//! Redis has to choose for each collection between a packed block and a pointer structure; its two extremes
//! are measured, one server with limits that nothing passes ("compact") and one with limits of 0 ("fast").
//! The compact one stops early: its work grows with the length of the block, and so does the time to fill it.
//!
//! Sizes are powers of four from 16 on, to a million or as far as `--keys` says. Bytes are RSS in a fresh
//! process that holds keys of that size until there are enough elements to be seen. Times are medians of
//! rounds in which the servers take turns on one processor with the same requests; small collections are
//! several keys, so that what is added does not change their size by much before it is removed again.
mod picture;
mod subject;

use super::Options;
use super::bytes::labels;
use super::chart::{Bar, Base, Better, Chart, Drawing};
use super::client::Client;
use super::data_sets::{Send, Setting};
use super::memory::{configure, measure};
use super::parts::Part;
use super::progress::Progress;
use super::server::{Server, Spec};
use base::random::Random;
use picture::Picture;
use std::path::Path;
use subject::{Draw, Operation, SUBJECTS, Subject};

const LEAST: u64 = 16;
const DEFAULT_MOST: u64 = 1 << 20;
const QUICK_MOST: u64 = 1 << 10;
/// The largest compact collection; filling a larger one takes minutes.
const COMPACT_MOST: u64 = 1 << 14;
/// Elements of all keys together in a process whose bytes are counted.
const BYTES_ELEMENTS: u64 = 1_000_000;
const QUICK_BYTES_ELEMENTS: u64 = 40_000;
/// Elements of all keys together that one operation works on, at least.
const TIME_ELEMENTS_MIN: u64 = 1_024;
/// Requests that are in flight, and that are undone at once.
const DEPTH: u64 = 100;
/// Server time of one measurement.
const ROUND_US: f64 = 60_000.0;
const QUICK_ROUND_US: f64 = 3_000.0;
const ROUNDS: usize = 5;

const COMPACT: &[Setting<'static>] = &[
    ("hash-max-listpack-entries", "1000000000"),
    ("hash-max-listpack-value", "1000000"),
    ("set-max-listpack-entries", "1000000000"),
    ("set-max-listpack-value", "1000000"),
    ("zset-max-listpack-entries", "1000000000"),
    ("zset-max-listpack-value", "1000000"),
];
const FAST: &[Setting<'static>] = &[
    ("hash-max-listpack-entries", "0"),
    ("set-max-listpack-entries", "0"),
    ("zset-max-listpack-entries", "0"),
];

/// A server in one of its settings.
struct Contender {
    spec: Spec,
    label: String,
    settings: &'static [Setting<'static>],
    is_compact: bool,
}

impl Contender {
    /// How large a collection it is measured with; streams have no compact setting.
    fn takes(&self, subject: &Subject, size: u64) -> bool {
        !self.is_compact || subject.has_compact_form && size <= COMPACT_MOST
    }
}

/// Whether there is a collection of this name.
pub(super) fn knows(name: &str) -> bool {
    SUBJECTS.iter().any(|subject| subject.name == name)
}

pub(crate) fn run(options: &Options) -> Result<Part, String> {
    let contenders = contenders(options)?;
    let subjects = known_subjects(&contenders[0], options)?;
    let sizes = sizes(options);
    let steps = subjects.iter().map(|subject| (1 + subject.operations.len()) * sizes.len()).sum();
    let mut progress = Progress::new(steps);
    let mut charts = bytes(&contenders, &subjects, &sizes, options, &mut progress)?;
    charts.extend(times(&contenders, &subjects, &sizes, options, &mut progress)?);
    let part = Part {
        name: "anysize",
        title: "Any size",
        method: format!(
            "Bytes: RSS of a fresh process that holds collections of this size. Time: server CPU an operation, \
             {DEPTH} at once, medians of {} rounds, the servers taking turns on one processor. Compact: listpack \
             limits that nothing passes, up to {COMPACT_MOST} elements. Fast: limits of 0. Streams have one form.",
            rounds(options)
        ),
        is_quick: options.is_quick,
        charts,
    };
    save_picture(&part, &options.out)?;
    Ok(part)
}

/// Sardine, and the newest Redis twice, or the last peer that was named.
fn contenders(options: &Options) -> Result<Vec<Contender>, String> {
    let labels = labels(options)?;
    let (sardine, peers) = options.servers.split_first().ok_or("bench: no server")?;
    let is_redis = |at: &usize| peers[*at].name == "redis";
    let newest = (0..peers.len()).rev().find(is_redis).or(peers.len().checked_sub(1));
    let peer = newest.ok_or("bench: anysize wants a peer to compare with")?;
    let contender = |at: usize, form: &str, settings, is_compact| Contender {
        spec: if at == 0 { sardine.clone() } else { peers[at - 1].clone() },
        label: format!("{}{form}", labels[at]),
        settings,
        is_compact,
    };
    Ok(vec![
        contender(0, "", &[], false),
        contender(peer + 1, ", compact", COMPACT, true),
        contender(peer + 1, ", fast", FAST, false),
    ])
}

/// The collections that were asked for and whose commands Sardine has.
fn known_subjects(sardine: &Contender, options: &Options) -> Result<Vec<&'static Subject>, String> {
    let server = Server::start(&sardine.spec, None)?;
    let mut client = server.client()?;
    let mut known = Vec::new();
    for subject in SUBJECTS {
        if options.wants(subject.name) && client.knows(subject.command)? {
            known.push(subject);
        }
    }
    Ok(known)
}

fn sizes(options: &Options) -> Vec<u64> {
    let most = options.keys.unwrap_or(if options.is_quick { QUICK_MOST } else { DEFAULT_MOST });
    std::iter::successors(Some(LEAST), |size| Some(size * 4)).take_while(|size| *size <= most).collect()
}

fn rounds(options: &Options) -> usize {
    options.rounds.unwrap_or(if options.is_quick { 1 } else { ROUNDS })
}

fn bytes(
    contenders: &[Contender],
    subjects: &[&'static Subject],
    sizes: &[u64],
    options: &Options,
    progress: &mut Progress,
) -> Result<Vec<Chart>, String> {
    let wanted = if options.is_quick { QUICK_BYTES_ELEMENTS } else { BYTES_ELEMENTS };
    let mut charts = Vec::new();
    for subject in subjects {
        let mut bars = Vec::new();
        for size in sizes {
            progress.step(&format!("{}: bytes, {size} elements", subject.name));
            let load = |send: Send<'_>| {
                (0..wanted.div_ceil(*size)).try_for_each(|key| fill(subject, key, *size, send))
            };
            for contender in contenders.iter().filter(|contender| contender.takes(subject, *size)) {
                let cost = measure(&contender.spec, contender.settings, 8, &load)?;
                bars.push(cost.bar(&size.to_string(), &contender.label));
            }
        }
        charts.push(chart("Bytes an element", subject.name, "bytes", contenders, bars));
    }
    Ok(charts)
}

/// Sends a collection of `size` elements.
fn fill(subject: &Subject, key: u64, size: u64, send: Send<'_>) -> Result<(), String> {
    let mut draw = Draw { key: subject.key(key), size, random: Random::new(key), count: 0 };
    for start in (0..size).step_by(100) {
        let elements = start..size.min(start + 100);
        for request in (subject.fill)(&mut draw, elements.clone()) {
            let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            send(&words, 0)?;
        }
    }
    // The elements count with the last request, whatever their number in each.
    send(&[b"EXISTS", draw.key.as_bytes()], size)
}

fn times(
    contenders: &[Contender],
    subjects: &[&'static Subject],
    sizes: &[u64],
    options: &Options,
    progress: &mut Progress,
) -> Result<Vec<Chart>, String> {
    let mut bars: Vec<Vec<Bar>> = subjects.iter().flat_map(|s| s.operations).map(|_| Vec::new()).collect();
    for size in sizes {
        let mut at = 0;
        for subject in subjects {
            let takes = |contender: &&Contender| contender.takes(subject, *size);
            let contenders: Vec<&Contender> = contenders.iter().filter(takes).collect();
            let mut runners = contenders.iter().map(|c| Runner::start(c)).collect::<Result<Vec<_>, _>>()?;
            for runner in &mut runners {
                runner.fill(subject, *size)?;
            }
            for operation in subject.operations {
                progress.step(&format!("{}, {size} elements", operation.name));
                let costs = compare(&mut runners, subject, operation, *size, options)?;
                let bar = |(contender, us): (&&Contender, &f64)| Bar {
                    group: size.to_string(),
                    series: contender.label.clone(),
                    value: *us,
                    parts: Vec::new(),
                    parts_unit: "us",
                };
                bars[at].extend(contenders.iter().zip(&costs).map(bar));
                at += 1;
            }
        }
    }
    let names = subjects.iter().flat_map(|subject| subject.operations).map(|operation| operation.name);
    let draw = |(name, bars)| chart("Server CPU an operation", name, "us", contenders, bars);
    Ok(names.zip(bars).map(draw).collect())
}

/// A running server with one client.
struct Runner {
    server: Server,
    client: Client,
}

impl Runner {
    fn start(contender: &Contender) -> Result<Runner, String> {
        let server = Server::start(&contender.spec, Some("0"))?;
        let mut client = server.client()?;
        configure(&server, &mut client, contender.settings)?;
        Ok(Runner { client, server })
    }

    /// The keys that the operations work on.
    fn fill(&mut self, subject: &Subject, size: u64) -> Result<(), String> {
        for key in 0..keys_of(size) {
            fill(subject, key, size, &mut |words, _| self.client.pipe(words, DEPTH as usize))?;
        }
        self.client.flush()
    }

    /// Microseconds of server time for `batches` times [`DEPTH`] requests; what they added is removed without
    /// being counted.
    fn run(
        &mut self,
        subject: &Subject,
        operation: &Operation,
        size: u64,
        batches: u64,
        random: Random,
    ) -> Result<f64, String> {
        let mut draw = Draw { key: String::new(), size, random, count: 0 };
        let mut us = 0.0;
        for _ in 0..batches {
            let mut undo = Vec::new();
            let before = self.server.cpu_us();
            for _ in 0..DEPTH {
                draw.key = subject.key(draw.random.below(keys_of(size)));
                draw.count += 1;
                self.send(&(operation.request)(&mut draw))?;
                undo.extend(operation.undo.map(|undo| undo(&mut draw)));
            }
            self.client.flush()?;
            us += self.server.cpu_us() - before;
            undo.iter().try_for_each(|request| self.send(request))?;
            self.client.flush()?;
        }
        Ok(us)
    }

    fn send(&mut self, request: &[Vec<u8>]) -> Result<(), String> {
        let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
        self.client.pipe(&words, usize::MAX)
    }
}

fn keys_of(size: u64) -> u64 {
    (TIME_ELEMENTS_MIN / size).max(1)
}

/// Microseconds an operation on each server.
fn compare(
    runners: &mut [Runner],
    subject: &Subject,
    operation: &Operation,
    size: u64,
    options: &Options,
) -> Result<Vec<f64>, String> {
    let target = if options.is_quick { QUICK_ROUND_US } else { ROUND_US };
    let mut batches = Vec::new();
    for runner in runners.iter_mut() {
        let us = runner.run(subject, operation, size, 2, Random::new(0))? / 2.0;
        batches.push(((target / us.max(1.0)) as u64).clamp(2, 2_000));
    }
    let mut rounds_us: Vec<Vec<f64>> = vec![Vec::new(); runners.len()];
    for round in 0..rounds(options) as u64 {
        for (at, runner) in runners.iter_mut().enumerate() {
            let us = runner.run(subject, operation, size, batches[at], Random::new(round + 1))?;
            rounds_us[at].push(us / (batches[at] * DEPTH) as f64);
        }
    }
    Ok(rounds_us.iter_mut().map(|us| median(us)).collect())
}

pub(super) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn chart(section: &str, title: &str, unit: &'static str, contenders: &[Contender], bars: Vec<Bar>) -> Chart {
    Chart {
        section: section.into(),
        title: title.into(),
        unit,
        better: Better::Less,
        axis: "elements",
        base: Base::Series(contenders[contenders.len() - 1].label.clone()),
        drawing: Drawing::Curves,
        bars,
    }
}

/// The picture for the README, beside the figures.
fn save_picture(part: &Part, folder: &Path) -> Result<(), String> {
    let section = |title: &str| part.charts.iter().filter(|chart| chart.section == title).collect::<Vec<_>>();
    let is_shown = |chart: &&Chart| SUBJECTS.iter().any(|subject| subject.is_pictured(&chart.title));
    let bytes = section("Bytes an element").into_iter().filter(is_shown).collect();
    let times = section("Server CPU an operation").into_iter().filter(is_shown).collect();
    let path = folder.join("anysize.svg");
    let failed = |e: std::io::Error| format!("bench: {}: {e}", path.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    std::fs::write(&path, Picture { bytes, times }.svg()).map_err(failed)?;
    println!("wrote {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_collections_are_several_keys_so_that_a_batch_changes_none_by_much() {
        assert_eq!([16, 64, 1_024, 1 << 20].map(keys_of), [64, 16, 1, 1]);
    }

    #[test]
    fn every_request_of_a_subject_names_its_key() {
        for subject in SUBJECTS {
            let mut draw = Draw { key: subject.key(3), size: 200, random: Random::new(1), count: 7 };
            let mut requests = (subject.fill)(&mut draw, 100..200);
            for operation in subject.operations {
                requests.push((operation.request)(&mut draw));
                requests.extend(operation.undo.map(|undo| undo(&mut draw)));
            }
            let key = subject.key(3).into_bytes();
            assert!(requests.iter().all(|request| request[1] == key), "{}", subject.name);
        }
    }
}
