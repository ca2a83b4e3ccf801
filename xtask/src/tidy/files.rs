//! Rules about files as wholes: how they open, how long they are, what they are called, what is left over in
//! them.
use super::Complaint;
use super::source::{Source, has_word};

/// A file longer than this is two subjects.
const LINES_MAX: usize = 900;

/// Files that are longer, each with the reason.
const LONG_FILES: [(&str, &str); 0] = [];

pub(crate) fn opener(source: &Source) -> Vec<Complaint> {
    let opens = source.lines.first().is_some_and(|line| line.text.starts_with("//!") && line.text.len() > 4);
    let message = "no //! opener: a file says first what it is, for someone who has not seen it";
    if opens { Vec::new() } else { vec![Complaint::new(source, 0, message)] }
}

pub(crate) fn length(source: &Source) -> Vec<Complaint> {
    let is_listed = LONG_FILES.iter().any(|(path, _)| *path == source.path);
    if source.lines.len() <= LINES_MAX || is_listed {
        return Vec::new();
    }
    let message = format!(
        "{} lines, {LINES_MAX} at most: one subject a file; split it, or give the reason in tidy's list of long files",
        source.lines.len()
    );
    vec![Complaint::whole(&source.path, message)]
}

/// Names that say nothing about what is inside, so that everything ends up there.
const EMPTY_NAMES: [&str; 9] =
    ["util", "utils", "utility", "helper", "helpers", "common", "misc", "manager", "stuff"];

pub(crate) fn name(source: &Source) -> Vec<Complaint> {
    let parts = source.path.trim_end_matches(".rs").split('/');
    let empty = parts.flat_map(|part| part.split(['_', '-'])).find(|word| EMPTY_NAMES.contains(word));
    let complaint = |word| {
        let message = format!("called {word:?}: the name is the subject, and this one takes in everything");
        Complaint::whole(&source.path, message)
    };
    empty.map(complaint).into_iter().collect()
}

/// Files that stand beside the folder of their own modules: everything that belongs to a module is in one
/// place.
pub(crate) fn beside_folder(sources: &[Source]) -> Vec<Complaint> {
    let has_folder = |source: &&Source| {
        let folder = format!("{}/", source.path.trim_end_matches(".rs"));
        sources.iter().any(|other| other.path.starts_with(&folder))
    };
    let message = "a file beside the folder of its modules: it goes into it, as mod.rs";
    sources.iter().filter(has_folder).map(|source| Complaint::whole(&source.path, message)).collect()
}

/// Marks of unfinished work, spelled so that this file does not contain them.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const LEFTOVER_MACROS: [&str; 3] = [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];

pub(crate) fn leftovers(source: &Source) -> Vec<Complaint> {
    let mark = |line: &super::source::Line| {
        let in_text = LEFTOVERS.into_iter().find(|mark| has_word(&line.text, mark));
        in_text.or_else(|| LEFTOVER_MACROS.into_iter().find(|mark| line.code.contains(*mark)))
    };
    let lines = source.lines.iter().enumerate();
    let found = lines.filter_map(|(at, line)| mark(line).map(|mark| (at, mark)));
    found
        .map(|(at, mark)| {
            let message = format!("{mark}: nothing is left for later in the source; do it, or open an issue");
            Complaint::new(source, at, message)
        })
        .collect()
}

/// Folders and hosts of the machine that the code was written on: none of them exists for a reader. Cut in
/// two so that this file does not contain them.
const MACHINE_TEXTS: [(&str, &str); 6] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("/ho", "me/"),
    ("/Us", "ers/"),
    ("arti", "factory"),
    ("/tmp/tar", "get"),
];

pub(crate) fn machine_paths(path: &str, text: &str) -> Vec<Complaint> {
    let texts = MACHINE_TEXTS.map(|(a, b)| format!("{a}{b}"));
    let mut complaints = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let found = texts.iter().find(|needle| contains_path(line, needle));
        complaints.extend(found.map(|needle| Complaint {
            path: path.to_string(),
            line: at + 1,
            message: format!("{needle:?}: a path or host of one machine means nothing on another"),
        }));
    }
    complaints
}

/// An absolute path starts where no path goes on: `a/work/b` names a folder of the repository.
fn contains_path(line: &str, needle: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    line.match_indices(needle).any(|(at, _)| !needle.starts_with('/') || !line[..at].ends_with(goes_on))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_file_opens_with_what_it_is() {
        check(opener, "crates/base/src/a.rs", "//! Integers as text.\nfn a() {}\n", &[]);
        check(opener, "crates/base/src/a.rs", "fn a() {}\n", &[1]);
        check(opener, "crates/base/src/a.rs", "//!\nfn a() {}\n", &[1]);
        check(opener, "crates/base/src/a.rs", "", &[1]);
    }

    #[test]
    fn a_file_has_nine_hundred_lines_at_most() {
        check(length, "crates/base/src/a.rs", &"x\n".repeat(900), &[]);
        check(length, "crates/base/src/a.rs", &"x\n".repeat(901), &[0]);
    }

    #[test]
    fn a_file_is_called_by_its_subject() {
        check(name, "crates/base/src/timing_wheel.rs", "", &[]);
        check(name, "crates/base/src/utils.rs", "", &[0]);
        check(name, "crates/base/src/list_helpers.rs", "", &[0]);
        check(name, "crates/common/src/lib.rs", "", &[0]);
    }

    #[test]
    fn a_module_and_its_children_are_one_folder() {
        let beside = |paths: &[&str]| {
            let sources: Vec<Source> = paths.iter().map(|path| Source::new(path, "")).collect();
            beside_folder(&sources).into_iter().map(|complaint| complaint.path).collect::<Vec<_>>()
        };
        assert_eq!(beside(&["base/src/a/mod.rs", "base/src/a/b.rs", "base/src/ab.rs"]), [""; 0]);
        assert_eq!(beside(&["base/src/a.rs", "base/src/a/b.rs"]), ["base/src/a.rs"]);
    }

    #[test]
    fn nothing_is_left_for_later() {
        check(leftovers, "a.rs", "fn todo_list() {} // things to do\nlet s = \"todo!\";\n", &[]);
        let bad = format!("// {}: later\nfn a() {{ {}() }}\n", LEFTOVERS[0], LEFTOVER_MACROS[0]);
        check(leftovers, "a.rs", &bad, &[1, 2]);
    }

    #[test]
    fn no_machine_is_named() {
        assert!(machine_paths("a.md", "see crates/work/b and ../work/x\nor /tmp/x\n").is_empty());
        let bad = MACHINE_TEXTS.map(|(a, b)| format!("see {a}{b}x\n")).concat();
        assert_eq!(machine_paths("a.md", &bad).len(), MACHINE_TEXTS.len());
    }
}
