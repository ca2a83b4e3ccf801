//! A command's name stands in its row. Whatever else depends on the command is a field of the row: code that
//! compares names is found by nobody who adds a command, or renames one.
//!
//! A family's file or folder may name its own commands, and the words that their grammars take (GET is a
//! command, and an option of SET). Files that families share may name words of any grammar. Elsewhere in the
//! crates that run commands no text is a command's name.
use super::Complaint;
use super::source::{Literal, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Which family a file belongs to; None for files that families share.
type Family<'p> = Option<&'p str>;

/// `reference` is docs/commands.md, which is generated from the rows.
pub(crate) fn check(sources: &[Source], reference: &str) -> Vec<Complaint> {
    let names = names(reference);
    if names.is_empty() {
        return vec![Complaint::whole("docs/commands.md", "no command's name was found in its tables")];
    }
    let families: Vec<(&Source, Family<'_>)> =
        sources.iter().filter_map(|source| Some((source, family(&source.path)?))).collect();
    let mut declared: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (source, family) in &families {
        let words = source.literals.iter().filter(|literal| is_declaration(source, literal));
        declared.entry(family.unwrap_or_default()).or_default().extend(words.map(|word| word.text.as_str()));
    }
    let is_declared = |path: &str, family: Family<'_>, word: &str| match family {
        Some(family) => declared[family].contains(word),
        None => path.starts_with("crates/command/") && declared.values().any(|words| words.contains(word)),
    };
    let mut complaints = Vec::new();
    for (source, family) in families {
        let texts = source.literals.iter().filter(|literal| !source.lines[literal.line].is_test);
        let foreign = texts
            .filter(|text| is_name(&names, &text.text) && !is_declared(&source.path, family, &text.text));
        complaints.extend(foreign.map(|literal| {
            let message = format!(
                "{:?} is another family's command: what depends on a command is a field of its row",
                literal.text
            );
            Complaint::new(source, literal.line, message)
        }));
    }
    complaints
}

/// The first words of the rows of the reference's tables.
fn names(reference: &str) -> BTreeSet<&str> {
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split([' ', '`']).next()).collect()
}

/// A name in upper case, or with a subcommand as statistics spell it (`client|list`).
fn is_name(names: &BTreeSet<&str>, text: &str) -> bool {
    let is_full_name = |(container, _): (&str, &str)| names.contains(&*container.to_ascii_uppercase());
    names.contains(text) || text.split_once('|').is_some_and(is_full_name)
}

/// None for files of crates that do not run commands.
fn family(path: &str) -> Option<Family<'_>> {
    if let Some(path) = path.strip_prefix("crates/command/src/") {
        return Some(path.split_once('/').map(|(folder, _)| folder));
    }
    let path = path.strip_prefix("crates/server/src/")?;
    let file = path.strip_prefix("commands/").map(|file| file.split('/').next().unwrap_or(file));
    Some(file)
}

/// The name of a row, or a word of its grammar.
fn is_declaration(source: &Source, literal: &Literal) -> bool {
    let line = &source.lines[literal.line].code;
    ["name:", "Arg::", ".after("].iter().any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFERENCE: &str = "| `GET key` | a | b |\n| `SET key [GET]` | a | b |\n| `CLIENT LIST` | a | b |\n";

    fn refused(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        check(&sources, REFERENCE).into_iter().map(|it| format!("{}:{}", it.path, it.line)).collect()
    }

    const STRINGS: (&str, &str) = (
        "crates/command/src/string/set.rs",
        "const SET: Command = Command {\n    name: \"SET\",\n};\nfn a() {\n    f(\"SET\", b\"GET\");\n}\n\
         const WORD: Arg = Arg::word(\"get\", \"GET\");\n",
    );

    #[test]
    fn a_family_names_its_own_commands_and_its_options() {
        assert_eq!(refused(&[STRINGS]), [""; 0]);
        let bits = ("crates/command/src/bits/field.rs", "fn a() {\n    f(b\"SET\");\n}\n");
        assert_eq!(refused(&[STRINGS, bits]), ["crates/command/src/bits/field.rs:2"]);
    }

    #[test]
    fn elsewhere_no_command_is_named() {
        let text = "fn a() {\n    f(\"SET\");\n    f(\"client|list\");\n    f(\"set\");\n}\n// \"SET\"\n";
        let inside = |path| refused(&[STRINGS, (path, text)]);
        for path in ["crates/server/src/core/dispatch/mod.rs", "crates/server/src/commands/info/mod.rs"] {
            assert_eq!(inside(path), [2, 3].map(|line| format!("{path}:{line}")));
        }
        assert_eq!(inside("crates/resp/src/parser.rs"), [""; 0]);
        let shared = ("crates/command/src/cursor.rs", "fn a() {\n    f(\"GET\");\n    f(\"CLIENT\");\n}\n");
        assert_eq!(refused(&[STRINGS, shared]), ["crates/command/src/cursor.rs:3"]);
        let test = ("crates/server/src/core/registry.rs", "#[cfg(test)]\nmod tests {\n    X(\"SET\");\n}\n");
        assert_eq!(refused(&[STRINGS, test]), [""; 0]);
    }
}
