//! A report as text for a terminal.
use crate::analyze::report::Report;
use crate::tally::{Tally, shown_bytes};
use std::fmt::Write;

const PREFIXES_SHOWN: usize = 25;
const NAME_CHARS_MAX: usize = 44;
/// A sample of fewer keys says little of the others.
const FEW_KEYS: u64 = 1000;

pub(crate) fn of(report: &Report) -> String {
    let mut out = String::new();
    head(report, &mut out);
    let kinds: Vec<_> = report.kinds.iter().map(|(kind, tally)| (*kind, *tally)).collect();
    table(&mut out, "By type", &kinds);
    let prefixes: Vec<_> = report.by_prefix().into_iter().map(|(name, tally, _)| (name, tally)).collect();
    table(&mut out, "By prefix", &prefixes[..prefixes.len().min(PREFIXES_SHOWN)]);
    if prefixes.len() > PREFIXES_SHOWN {
        let _ = writeln!(out, "  and {} more (all of them with --json)", prefixes.len() - PREFIXES_SHOWN);
    }
    table(&mut out, "By size", &report.by_size());
    table(&mut out, "By expiry", &report.by_expiry());
    table(&mut out, "Not used for", &report.by_idle());
    if report.total.keys > 0 {
        let of_what = if report.sample > 1 { " of those looked at" } else { "" };
        let _ = writeln!(out, "\nBiggest keys{of_what}");
    }
    for (bytes, db, name, kind, len) in report.biggest() {
        let name = short(&name.escape_ascii().to_string());
        let unit = if *kind == "string" { "bytes" } else { "elements" };
        let _ = writeln!(
            out,
            "  {name:<NAME_CHARS_MAX$} {:>10}  {kind}, {len} {unit}, db {db}",
            shown_bytes(*bytes)
        );
    }
    out
}

fn head(report: &Report, out: &mut String) {
    let _ = writeln!(out, "{} ({})", report.source, report.writer);
    let _ = writeln!(out, "  keys looked at      {:>12}", report.looked_at);
    if report.sample > 1 {
        let few = if report.looked_at < FEW_KEYS { ", and they are few: all of it is rough" } else { "" };
        let note = format!("(all that follows is multiplied by that{few})");
        let _ = writeln!(out, "  which is one in     {:>12}  {note}", report.sample);
    }
    if report.expired > 0 {
        let _ = writeln!(out, "  expired, left out   {:>12}", report.expired);
    }
    if report.unread > 0 {
        let _ = writeln!(out, "  NOT READ            {:>12}  ({})", report.unread, report.why_unread);
    }
    if let Some(bytes) = report.source_bytes {
        let _ = writeln!(out, "  used by the source  {:>12}", shown_bytes(bytes));
    }
    let _ = writeln!(out, "  in Sardine          {:>12}{}", shown_bytes(report.sardine_bytes), share(report));
    if report.total.keys > 0 {
        let bytes = shown_bytes(report.beside_keys_bytes());
        let _ = writeln!(
            out,
            "  of it beside keys   {bytes:>12}  (nodes, wheels of deadlines: the rows below leave it out)"
        );
    }
}

/// The two figures, compared.
fn share(report: &Report) -> String {
    match report.source_bytes {
        Some(bytes) if bytes > 0 => {
            format!("  ({:.0}% of the source)", report.sardine_bytes as f64 / bytes as f64 * 100.0)
        }
        _ => String::new(),
    }
}

fn table(out: &mut String, title: &str, rows: &[(&str, Tally)]) {
    if rows.iter().all(|(_, tally)| tally.keys == 0) {
        return;
    }
    let _ = writeln!(out, "\n{title:<46} {:>10} {:>12} {:>10}", "keys", "elements", "bytes");
    for (name, tally) in rows.iter().filter(|(_, tally)| tally.keys > 0) {
        let (name, bytes) = (short(name), shown_bytes(tally.bytes));
        let _ =
            writeln!(out, "  {name:<NAME_CHARS_MAX$} {:>10} {:>12} {bytes:>10}", tally.keys, tally.elements);
    }
}

fn short(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS_MAX - 3) {
        Some((end, _)) if name.chars().count() > NAME_CHARS_MAX => format!("{}...", &name[..end]),
        _ => name.to_string(),
    }
}
