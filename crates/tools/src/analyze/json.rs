//! A report for other programs, and as a page that shows itself.
use crate::analyze::report::Report;
use crate::tally::Tally;
use serde_json::{Value, json};

/// The page has no other part than this file and the report in it.
const PAGE: &str = include_str!("page.html");
const PLACE: &str = "\"REPORT\"";

pub(crate) fn of(report: &Report) -> Value {
    let named = |rows: Vec<(&str, Tally)>| -> Vec<Value> {
        rows.into_iter().map(|(name, tally)| row(name, tally)).collect()
    };
    let prefixes: Vec<Value> = report
        .by_prefix()
        .into_iter()
        .map(|(name, tally, kinds)| {
            let mut row = row(name, tally);
            row["types"] = kinds.iter().map(|(kind, tally)| (kind.to_string(), json!(tally.bytes))).collect();
            row
        })
        .collect();
    let biggest: Vec<Value> = report
        .biggest()
        .into_iter()
        .map(|(bytes, db, name, kind, len)| {
            let name = name.escape_ascii().to_string();
            json!({ "name": name, "db": db, "type": kind, "length": len, "bytes": bytes })
        })
        .collect();
    json!({
        "source": report.source,
        "writer": report.writer,
        "keys": report.total.keys,
        "elements": report.total.elements,
        "expired": report.expired,
        "unread": report.unread,
        "sample": report.sample,
        "looked_at": report.looked_at,
        "source_bytes": report.source_bytes,
        "source_key_bytes": report.source_key_bytes,
        "sardine_bytes": report.sardine_bytes,
        "beside_keys_bytes": report.beside_keys_bytes(),
        "types": named(report.kinds.iter().map(|(kind, tally)| (*kind, *tally)).collect()),
        "prefixes": prefixes,
        "sizes": named(report.by_size()),
        "expiries": named(report.by_expiry()),
        "idle": named(report.by_idle()),
        "biggest": biggest,
    })
}

fn row(name: &str, tally: Tally) -> Value {
    json!({ "name": name, "keys": tally.keys, "elements": tally.elements, "bytes": tally.bytes })
}

/// The page. Names come from anybody, so nothing in them may end the script.
pub(crate) fn page(report: &Report) -> String {
    PAGE.replacen(PLACE, &of(report).to_string().replace('<', "\\u003c"), 1)
}
