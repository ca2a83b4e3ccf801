//! docs/commands.md: every command by topic, from the table.
use crate::commands::families::FAMILIES;
use crate::core::registry::{Registry, Row};
use crate::state::config::contents;
use command::{Arg, ArgKind, Group};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A group of commands as the reference shows it, in the order of [`TOPICS`].
struct Topic {
    group: Group,
    title: &'static str,
    /// What the commands of the group are for, in a sentence.
    about: &'static str,
}

const fn topic(group: Group, title: &'static str, about: &'static str) -> Topic {
    Topic { group, title, about }
}

const TOPICS: [Topic; 16] = [
    topic(Group::Generic, "Keys", "What works on keys of every type: existence, names, expiry, scans."),
    topic(Group::String, "Strings", "Text, bytes and numbers: one value a key."),
    topic(Group::Bitmap, "Bits", "Strings as arrays of bits, and as integers of any width."),
    topic(Group::List, "Lists", "Elements in order, pushed and popped at both ends: queues, timelines."),
    topic(Group::Hash, "Hashes", "Fields with a value each, and with deadlines of their own: objects."),
    topic(Group::Set, "Sets", "Members without an order, each once; intersections, unions, differences."),
    topic(Group::SortedSet, "Sorted sets", "Members in the order of their scores: leader boards, indexes."),
    topic(Group::Geo, "Geography", "Members with a longitude and a latitude, kept in sorted sets."),
    topic(
        Group::Stream,
        "Streams",
        "Entries in the order in which they were added, read by groups of consumers.",
    ),
    topic(
        Group::Hyperloglog,
        "HyperLogLogs",
        "How many different elements there were, to within a hundredth, in 12 KB at most.",
    ),
    topic(Group::Transactions, "Transactions", "Several commands as one."),
    topic(Group::Scripting, "Scripts and functions", "Programs that run in the server."),
    topic(Group::Pubsub, "Publish and subscribe", "Messages to all who listen at this moment."),
    topic(
        Group::Connection,
        "Connections",
        "What a client says about itself, and what it may know of others.",
    ),
    topic(Group::Server, "The server", "Looking into it, its settings, and its end."),
    topic(Group::Cluster, "Cluster", "Several servers as one."),
];

/// The reference of all commands, as Markdown.
pub fn markdown() -> String {
    let registry = Registry::new(FAMILIES);
    let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in registry.all().filter(|row| row.subcommands.is_empty()) {
        groups.entry(row.doc.group.name()).or_default().push(row);
    }
    let mut out = String::from(INTRODUCTION);
    let is_there = |topic: &&Topic| groups.contains_key(topic.group.name());
    let _ = writeln!(out, "\n{}", contents(TOPICS.iter().filter(is_there).map(|topic| topic.title)));
    for Topic { group, title, about } in &TOPICS {
        let Some(mut rows) = groups.remove(group.name()) else { continue };
        rows.sort_by(|a, b| a.full_name.cmp(&b.full_name));
        let _ = write!(out, "\n## {title}\n\n{about}\n\n| command | what it does | cost |\n|---|---|---|\n");
        for row in rows {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} |",
                usage(row),
                cell(row.doc.summary),
                cell(row.doc.complexity)
            );
        }
    }
    out
}

const INTRODUCTION: &str = "# Commands

Generated from the program's tables of commands by `cargo xtask docs`; do not edit.

Square brackets hold what may be left out, `|` stands between alternatives, `...` says that something may be \
repeated. A command of Redis that is not here is not there yet, and is answered as an unknown one; \
what differs is in [differences.md](differences.md).
";

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A command with its arguments, as in "SET key value [NX | XX]"; bars are escaped for a table.
fn usage(row: &Row) -> String {
    let mut out = row.full_name.replace('|', " ").to_ascii_uppercase();
    for arg in row.doc.args {
        out.push(' ');
        out.push_str(&argument(arg));
    }
    cell(&out)
}

fn argument(arg: &Arg) -> String {
    let value = value(arg);
    let mut text = match (arg.token, arg.kind) {
        (Some(""), ArgKind::PureToken) => "\"\"".to_string(),
        (Some(token), ArgKind::PureToken) => token.to_string(),
        (Some(token), _) => format!("{token} {value}"),
        (None, _) => value.clone(),
    };
    if arg.multiple {
        let again = if arg.multiple_token { text.clone() } else { value };
        let _ = write!(text, " [{again} ...]");
    }
    if arg.optional { format!("[{text}]") } else { text }
}

fn value(arg: &Arg) -> String {
    let inner = |separator| arg.args.iter().map(argument).collect::<Vec<_>>().join(separator);
    match arg.kind {
        ArgKind::OneOf if arg.optional => inner(" | "),
        ArgKind::OneOf => format!("({})", inner(" | ")),
        ArgKind::Block => inner(" "),
        _ => arg.display.unwrap_or(arg.name).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammar_is_written_as_people_read_it() {
        const FLAG: Arg = Arg::one_of("c", &[Arg::word("nx", "NX"), Arg::word("xx", "XX")]).optional();
        for (arg, text) in [
            (Arg::key("key", 0).many(), "key [key ...]"),
            (FLAG, "[NX | XX]"),
            (Arg::int("count").after("COUNT").optional(), "[COUNT count]"),
            (Arg::word("nothing", ""), "\"\""),
            (Arg::str("p").after("PREFIX").many_with_token(), "PREFIX p [PREFIX p ...]"),
        ] {
            assert_eq!(argument(&arg), text);
        }
    }

    #[test]
    fn every_command_is_in_the_reference() {
        let reference = markdown();
        for row in Registry::new(FAMILIES).all().filter(|r| r.subcommands.is_empty()) {
            let name = row.full_name.replace('|', " ").to_ascii_uppercase();
            assert!(reference.contains(&format!("| `{name}")), "{name}");
        }
    }
}
