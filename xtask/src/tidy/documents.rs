//! Rules about the documents: what they name is there. Files move, and a page that sends its reader to where
//! something was is worse than none.
use super::Complaint;
use crate::shell::root;

/// Where paths of the repository begin.
const FOLDERS: [&str; 6] = ["crates/", "xtask/", "tests/", "docs/", "bench/", "fuzz/"];
/// Crates that some pages name without `crates/` before them.
const CRATES: [&str; 9] = ["base", "resp", "pack", "net", "store", "command", "server", "tools", "testkit"];

/// Links and paths of a Markdown file that lead nowhere.
pub(crate) fn dead_paths(path: &str, text: &str) -> Vec<Complaint> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let (mut complaints, mut is_code) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if is_code {
            continue;
        }
        let links = links(line).map(|link| (link, format!("{folder}/{link}")));
        let paths = spans(line).filter_map(|span| Some((span, place(span)?)));
        for (name, place) in links.chain(paths) {
            if !root().join(place.trim_start_matches('/')).exists() {
                complaints.push(Complaint {
                    path: path.to_string(),
                    line: at + 1,
                    message: format!(
                        "{name}: is not there (any more); a document sends its reader to what exists"
                    ),
                });
            }
        }
    }
    complaints
}

/// Where the links of a line lead, those to other sites and within the page left out, without the headings
/// they name.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains(':'))
}

/// What stands between backticks.
fn spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The place in the repository that a span names, if it is a path.
fn place(span: &str) -> Option<String> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if !span.chars().all(is_path) {
        return None;
    }
    let of_crate = span.split_once('/').is_some_and(|(name, rest)| {
        CRATES.contains(&name) && ["src", "tests", "examples"].iter().any(|folder| rest.starts_with(folder))
    });
    match of_crate {
        true => Some(format!("crates/{span}")),
        false => FOLDERS.iter().any(|folder| span.starts_with(folder)).then(|| span.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        dead_paths(path, text).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn a_link_leads_to_a_file() {
        let good = "[a](docs/README.md#a), [b](#b), [c](https://example.org/x)\n![d](docs/anysize.svg)\n";
        assert_eq!(lines("README.md", good), [0; 0]);
        assert_eq!(lines("README.md", "\n[a](docs/nowhere.md)\n"), [2]);
        assert_eq!(lines("docs/README.md", "[a](../README.md)\n[b](README.md)\n[c](docs/README.md)\n"), [3]);
    }

    #[test]
    fn a_path_between_backticks_exists() {
        let good =
            "`crates/pack/src/lib.rs`, `pack/src/lib.rs`, `xtask/src`, `crates/*/src`, `target/x`, `a/b`\n";
        assert_eq!(lines("docs/README.md", good), [0; 0]);
        assert_eq!(
            lines("README.md", "`crates/pack/src/gone.rs`\n`pack/src/gone.rs`\n`docs/gone.md`\n"),
            [1, 2, 3]
        );
        assert_eq!(lines("README.md", "```\nls `crates/gone`\n```\n`crates/gone`\n"), [4]);
    }
}
