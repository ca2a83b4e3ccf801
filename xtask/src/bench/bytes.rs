//! Bytes per element: RSS before and after a load, one fresh process for each server and case.

use super::Options;
use super::chart::{Base, Better, Chart, Drawing};
use super::data_sets::{CASES, Case};
use super::memory::{Cost, measure};
use super::parts::{Part, label};
use super::progress::Progress;
use super::server::Server;

/// Whether there is a case of this name.
pub(super) fn knows(name: &str) -> bool {
    CASES.iter().any(|case| case.name == name)
}

pub(crate) fn run(options: &Options) -> Result<Part, String> {
    let labels = labels(options)?;
    let columns = |cells: &[String]| cells.iter().map(|c| format!("{c:>16}")).collect::<String>();
    println!("{:24} {:>9} {:>9}  {}", "case", "elements", "payload", columns(&labels));
    let cases = known_cases(options)?;
    let (mut progress, mut bars) = (Progress::new(cases.len()), Vec::new());
    for case in cases {
        progress.step(case.name);
        let depth = if case.name.starts_with("list_blobs") { 64 } else { 256 };
        let measured = options.servers.iter().map(|spec| measure(spec, case.settings, depth, &case.load));
        let costs = measured.collect::<Result<Vec<Cost>, String>>()?;
        let cells: Vec<String> = costs.iter().map(|cost| format!("{:.2}", cost.each())).collect();
        let (elements, payload) = (costs[0].elements, costs[0].payload as f64 / costs[0].elements as f64);
        progress.print(&format!("{:24} {elements:9} {payload:9.2}  {}", case.name, columns(&cells)));
        bars.extend(labels.iter().zip(&costs).map(|(label, cost)| cost.bar(case.name, label)));
    }
    let chart = |title: &str, family: &str| Chart {
        section: "Resident memory".into(),
        title: title.into(),
        unit: "bytes an element",
        better: Better::Less,
        axis: "case",
        base: Base::of(&labels),
        drawing: Drawing::Bars,
        bars: bars.iter().filter(|bar| bar.group.starts_with(family)).cloned().collect(),
    };
    let mut charts = vec![
        chart("strings", "str_"),
        chart("lists of ids", "list_ids"),
        chart("lists of integers", "list_ints"),
        chart("lists of words", "list_words"),
        chart("lists of 2.5 KB elements", "list_blobs"),
        chart("hashes of five fields", "hash_small"),
        chart("large hashes", "hash_one"),
        chart("values in hashes of a thousand", "hash_user"),
        chart("sets", "set_"),
        chart("sorted sets", "zset_"),
        chart("streams of five short fields", "stream_"),
    ];
    charts.retain(|chart| !chart.bars.is_empty());
    Ok(Part {
        name: "bytes",
        title: "Bytes an element",
        method: "A fresh process for each bar; RSS before and after the load.".into(),
        is_quick: options.is_quick,
        charts,
    })
}

/// The cases that were asked for, without those whose commands Sardine does not have.
fn known_cases(options: &Options) -> Result<Vec<&'static Case>, String> {
    let server = Server::start(&options.servers[0], None)?;
    let mut client = server.client()?;
    let mut known = Vec::new();
    for case in CASES.iter().filter(|case| is_wanted(case, options)) {
        if client.knows(case.command)? {
            known.push(case);
        } else {
            println!("  ({} has no {}: {} is left out)", server.name, case.command, case.name);
        }
    }
    Ok(known)
}

/// Whether a case is measured: if it was named or none was, and only the smallest ones in a quick run.
fn is_wanted(case: &Case, options: &Options) -> bool {
    const QUICK: [&str; 5] = ["str_user_ts", "str_16_64", "list_words", "hash_one_10k", "zset_500"];
    match options.names.is_empty() {
        true => !options.is_quick || QUICK.contains(&case.name),
        false => options.wants(case.name),
    }
}

/// The servers' names with their versions.
pub(crate) fn labels(options: &Options) -> Result<Vec<String>, String> {
    options.servers.iter().map(|spec| Server::start(spec, None).map(|server| label(&server))).collect()
}
