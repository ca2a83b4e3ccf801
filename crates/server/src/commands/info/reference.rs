//! docs/metrics.md, from the table.
use super::metric::{Kind, Metric, Read, Unit};
use super::sections::{SECTIONS, Section, Sort};
use crate::state::config::contents;
use std::fmt::Write;

/// The reference of all metrics, as Markdown.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    let _ = writeln!(out, "\n{}", contents(SECTIONS.iter().map(|section| section.title)));
    SECTIONS.iter().for_each(|section| write_section(&mut out, section));
    out
}

const INTRODUCTION: &str = "# Metrics

Generated from the program's table of metrics by `cargo xtask docs`; do not edit.

`INFO` answers them as text, section by section; `INFO memory stats` only these sections, `INFO everything` all. \
Names are those of Redis, so that monitoring which reads Redis reads Sardine. A counter only grows while the server \
runs, unless `CONFIG RESETSTAT` sets it back to 0, as it does with those \
that Redis sets back; a gauge goes up and down. Where a name holds a word in angle brackets there is one field \
for each such thing, and its value is several figures: `cmdstat_get:calls=3,usec=2,...`.
";

fn write_section(out: &mut String, section: &Section) {
    let _ = writeln!(out, "\n## {}\n\n{}", section.title, section.about);
    if section.sort == Sort::Long {
        let _ = writeln!(out, "Shown where it is asked for, and by `INFO everything`.");
    }
    let (constant, live): (Vec<&Metric>, Vec<&Metric>) =
        section.rows.iter().partition(|metric| metric.constant.is_some());
    if !live.is_empty() {
        let _ = writeln!(out, "\n| field | kind | unit | what it tells |\n|---|---|---|---|");
        live.iter().for_each(|metric| write_metric(out, metric));
    }
    if !constant.is_empty() {
        let _ = writeln!(
            out,
            "\nAlways the same:\n\n| field | what it would tell | why it does not |\n|---|---|---|"
        );
        for metric in constant {
            let because = metric.constant.unwrap_or_default();
            let _ = writeln!(out, "| {} | {} | {because} |", column(metric), metric.help);
        }
    }
}

fn write_metric(out: &mut String, metric: &Metric) {
    match &metric.read {
        Read::One(_) => row(out, &column(metric), metric.kind, metric.unit, metric.help),
        Read::Each { label, cells, .. } => {
            let name = format!("`{}<{label}>`", metric.name);
            let _ = writeln!(out, "| {name} | | | {} |", metric.help);
            for cell in *cells {
                row(out, &format!("{name}: `{}`", cell.name), cell.kind, cell.unit, cell.help);
            }
        }
    }
}

fn row(out: &mut String, name: &str, kind: Kind, unit: Unit, help: &str) {
    let _ = writeln!(out, "| {name} | {} | {} | {help} |", kind_name(kind), unit_name(unit));
}

fn column(metric: &Metric) -> String {
    let human = if metric.is_human_too { format!(", `{}_human`", metric.name) } else { String::new() };
    format!("`{}`{human}", metric.name)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Text => "text",
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::None => "",
        Unit::Bytes => "bytes",
        Unit::KibibytesPerSecond => "KiB a second",
        Unit::PerSecond => "a second",
        Unit::Percent => "percent",
        Unit::Days => "days",
        Unit::Seconds => "seconds",
        Unit::Milliseconds => "milliseconds",
        Unit::Microseconds => "microseconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_is_in_the_reference_once_and_with_a_sentence() {
        let (reference, mut names) = (markdown(), BTreeSet::new());
        for metric in SECTIONS.iter().flat_map(|section| section.rows) {
            assert!(names.insert(metric.name), "{} is there twice", metric.name);
            assert!(metric.help.ends_with('.') && metric.constant.is_none_or(|why| why.ends_with('.')));
            let name = match metric.read {
                Read::One(_) => format!("| {} |", column(metric)),
                Read::Each { label, .. } => format!("| `{}<{label}>` |", metric.name),
            };
            let rows = reference.lines().filter(|line| line.starts_with(&name)).count();
            assert_eq!(rows, 1, "{name}");
        }
        assert!(names.len() > 150);
    }
}
