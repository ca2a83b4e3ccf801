//! `cargo xtask tidy`: the rules for this repository that a machine can check, each with its reason in the
//! message. A rule of single files is a function from a file to complaints, with a good and a bad snippet
//! beside it, and a row in [`RULES`]; the rules that look at several files are called by [`run`].
mod circles;
mod command_names;
mod documents;
mod error_texts;
mod figures;
mod files;
mod folders;
mod functions;
mod layers;
mod safety;
mod source;
mod widths;

use crate::docs;
use crate::shell::{Outcome, root};
use source::Source;
use std::collections::BTreeSet;
use std::process::Command;

/// What is wrong where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Complaint {
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    message: String,
}

impl Complaint {
    fn new(source: &Source, index: usize, message: impl Into<String>) -> Complaint {
        Complaint { path: source.path.clone(), line: index + 1, message: message.into() }
    }

    fn whole(path: &str, message: impl Into<String>) -> Complaint {
        Complaint { path: path.to_string(), line: 0, message: message.into() }
    }
}

type Rule = fn(&Source) -> Vec<Complaint>;

const RULES: [Rule; 12] = [
    error_texts::elsewhere,
    files::opener,
    files::length,
    files::name,
    files::leftovers,
    functions::length,
    layers::imports,
    layers::absences,
    safety::unsafety,
    safety::unwraps,
    widths::comments,
    widths::code,
];

pub(crate) fn run() -> Outcome {
    let paths = tracked()?;
    let mut complaints = Vec::new();
    let mut sources = Vec::new();
    for path in &paths {
        let Ok(bytes) = std::fs::read(root().join(path)) else { continue };
        let Ok(text) = String::from_utf8(bytes) else { continue };
        complaints.extend(files::machine_paths(path, &text));
        match path.rsplit('.').next() {
            Some("rs") => sources.push(Source::new(path, &text)),
            Some("toml") => complaints.extend(layers::manifest(path, &text)),
            Some("md") => complaints.extend(documents::dead_paths(path, &text)),
            _ => {}
        }
    }
    mark_test_files(&mut sources);
    complaints.extend(sources.iter().flat_map(|source| RULES.iter().flat_map(move |rule| rule(source))));
    complaints.extend(docs::stale().into_iter().map(|(path, message)| Complaint::whole(path, message)));
    complaints.extend(files::beside_folder(&sources));
    complaints.extend(figures::check(&sources));
    complaints.extend(folders::check(&sources));
    complaints.extend(circles::check(&sources));
    let reference = std::fs::read_to_string(root().join("docs/commands.md")).unwrap_or_default();
    complaints.extend(command_names::check(&sources, &reference));
    report(complaints)
}

/// The files that git tracks or would track; build output and ignored files are left out.
fn tracked() -> Result<Vec<String>, String> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(arguments).current_dir(root()).output();
    let output = output.map_err(|e| format!("git ls-files: {e}"))?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let paths: BTreeSet<String> =
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect();
    Ok(paths.into_iter().collect())
}

/// A file that its parent declares under `#[cfg(test)]` is a test from its first line.
fn mark_test_files(sources: &mut [Source]) {
    let declared: Vec<String> = sources.iter().flat_map(Source::test_files).collect();
    for source in sources.iter_mut().filter(|s| declared.contains(&s.path)) {
        source.lines.iter_mut().for_each(|line| line.is_test = true);
    }
}

fn report(mut complaints: Vec<Complaint>) -> Outcome {
    complaints.sort();
    for Complaint { path, line, message } in &complaints {
        match line {
            0 => println!("{path}: {message}"),
            line => println!("{path}:{line}: {message}"),
        }
    }
    match complaints.len() {
        0 => Ok(()),
        n => Err(format!("tidy has {n} complaints")),
    }
}

/// Runs one rule over a snippet and compares the lines it complains about.
#[cfg(test)]
#[track_caller]
fn check(rule: Rule, path: &str, text: &str, expect: &[usize]) {
    let complaints = rule(&Source::new(path, text));
    let lines: Vec<usize> = complaints.iter().map(|c| c.line).collect();
    assert_eq!(lines, expect, "{complaints:?}");
}
