//! docs/commands.md: every command by group, from the table.
use crate::registry::{Registry, Row};
use command::{Arg, ArgKind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The reference of all commands, as Markdown.
pub fn markdown() -> String {
    let registry = Registry::new();
    let mut groups: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in registry.all().filter(|row| row.subcommands.is_empty()) {
        groups.entry(row.doc.group.name()).or_default().push(row);
    }
    let mut out = String::from(
        "# Commands\n\nGenerated from the tables of commands by `cargo xtask docs`; do not edit.\n",
    );
    for (group, mut rows) in groups {
        rows.sort_by(|a, b| a.full_name.cmp(&b.full_name));
        let _ = write!(out, "\n## {group}\n\n| command | what it does | cost |\n|---|---|---|\n");
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

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// "SET key value [NX | XX]", bars escaped for a table.
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
            (Arg::str("p").after("PREFIX").many_with_token(), "PREFIX p [PREFIX p ...]"),
        ] {
            assert_eq!(argument(&arg), text);
        }
    }

    #[test]
    fn every_command_is_in_the_reference() {
        let reference = markdown();
        for row in Registry::new().all().filter(|r| r.subcommands.is_empty()) {
            let name = row.full_name.replace('|', " ").to_ascii_uppercase();
            assert!(reference.contains(&format!("| `{name}")), "{name}");
        }
    }
}
