//! Circles of imports inside a crate: files of which each can be reached from each other by following what
//! they name of the crate. None of them can be read or tested without all others, so tidy prints the largest
//! of every crate and refuses one that is too large.
use super::Complaint;
use super::source::Source;
use std::collections::{BTreeMap, BTreeSet};

/// Where a file stands in its crate: `["config", "table"]`; the crate's root has no words.
pub(crate) type Module = Vec<String>;

/// The files of one crate, and for each the others that it names.
pub(crate) type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The most files that a circle may have.
const FILES_MAX: usize = 12;

/// Prints the size of the largest circle of every crate, and complains of those that are too large.
pub(crate) fn check(sources: &[Source]) -> Vec<Complaint> {
    let crates: BTreeSet<&str> = sources.iter().filter_map(Source::crate_name).collect();
    let circles = crates.into_iter().map(|name| (name, largest(&imports(sources, name)).len()));
    let circles: Vec<(&str, usize)> = circles.filter(|(_, files)| *files > 1).collect();
    let figures: Vec<String> = circles.iter().map(|(name, files)| format!("{name} {files}")).collect();
    println!("largest circles of imports: {} files ({FILES_MAX})", figures.join(", "));
    let too_large = circles.iter().filter(|(_, files)| *files > FILES_MAX);
    too_large.map(|(name, files)| complaint(name, *files)).collect()
}

fn complaint(name: &str, files: usize) -> Complaint {
    let message = format!(
        "{files} files import each other in a circle, at most {FILES_MAX} may: none of them can be read or tested alone"
    );
    Complaint::whole(&format!("crates/{name}"), message)
}

/// Tests and the root, which declares the others, are no part of a circle.
pub(crate) fn imports(sources: &[Source], name: &str) -> Imports {
    let prefix = format!("crates/{name}/src/");
    let is_used = |source: &&Source| source.lines.iter().any(|line| !line.is_test);
    let files: BTreeMap<Module, &Source> = sources
        .iter()
        .filter(is_used)
        .filter_map(|source| Some((module(source.path.strip_prefix(&prefix)?), source)))
        .filter(|(module, _)| !module.is_empty())
        .collect();
    let root = sources.iter().find(|source| source.path == format!("{prefix}lib.rs"));
    let exports = root.map(|root| exports(root, &files)).unwrap_or_default();
    let named = |module: &Module, source: &Source| {
        let words = words(source);
        let paths = paths(&words);
        let file_of = |path: &Vec<&str>| file_of(path, module, &files).or_else(|| exported(path, &exports));
        paths.iter().filter_map(file_of).filter(|file| file != module).collect()
    };
    files.iter().map(|(module, source)| (module.clone(), named(module, source))).collect()
}

/// What the root hands on, and the file of each: `pub use state::log::Log`.
fn exports(root: &Source, files: &BTreeMap<Module, &Source>) -> BTreeMap<String, Module> {
    let words = words(root);
    let paths = paths(&words);
    let export = |path: &Vec<&str>| {
        let file = file_of(path, &Module::new(), files)?;
        Some((path.last()?.to_string(), file))
    };
    paths.iter().filter_map(export).collect()
}

/// The file of what a path names by way of the root: `crate::Log`.
fn exported(path: &[&str], exports: &BTreeMap<String, Module>) -> Option<Module> {
    match path {
        ["crate", name, ..] => exports.get(*name).cloned(),
        _ => None,
    }
}

/// Where the file is that is this module.
pub(crate) fn file_path(sources: &[Source], name: &str, of: &Module) -> String {
    let prefix = format!("crates/{name}/src/");
    let is_it = |source: &&Source| source.path.strip_prefix(&prefix).is_some_and(|file| module(file) == *of);
    sources
        .iter()
        .find(is_it)
        .map_or_else(|| format!("{prefix}{}", of.join("/")), |source| source.path.clone())
}

/// `config/table.rs` and `config/table/mod.rs` are both `config::table`.
fn module(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let words = path.split('/').filter(|word| !["lib", "main", "mod"].contains(word));
    words.map(str::to_string).collect()
}

/// The code's words and the signs of which paths are made.
fn words(source: &Source) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for line in source.lines.iter().filter(|line| !line.is_test) {
        let mut is_in_word = false;
        for c in line.code.chars() {
            let is_part = c.is_alphanumeric() || c == '_';
            let goes_on = is_part && is_in_word || c == ':' && words.last().is_some_and(|word| word == ":");
            match words.last_mut() {
                Some(word) if goes_on => word.push(c),
                _ if !c.is_whitespace() => words.push(c.to_string()),
                _ => {}
            }
            is_in_word = is_part;
        }
    }
    words
}

/// Every path of at least two words, those of groups (`a::{b, c::d}`) one by one.
fn paths(words: &[String]) -> Vec<Vec<&str>> {
    let (mut paths, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let is_start = is_name(&words[at]) && words.get(at + 1).is_some_and(|word| word == "::");
        at = match is_start {
            // `pub(in crate::config)` says who may import, and imports nothing.
            true if words[..at].ends_with(&["(".into(), "in".into()]) => {
                path(words, at, &[], &mut Vec::new())
            }
            true => path(words, at, &[], &mut paths),
            false => at + 1,
        };
    }
    paths
}

/// Reads one path and returns where it ends.
fn path<'w>(words: &'w [String], start: usize, front: &[&'w str], paths: &mut Vec<Vec<&'w str>>) -> usize {
    let (mut path_words, mut at) = (front.to_vec(), start);
    while let Some(word) = words.get(at) {
        if is_name(word) {
            path_words.push(word);
            at += 1;
        } else if word == "{" && at > start {
            return group(words, at + 1, &path_words, paths);
        } else {
            break;
        }
        match words.get(at) {
            Some(word) if word == "::" => at += 1,
            _ => break,
        }
    }
    paths.push(path_words);
    at.max(start + 1)
}

/// Reads what stands in braces behind a path and returns where that ends.
fn group<'w>(words: &'w [String], start: usize, front: &[&'w str], paths: &mut Vec<Vec<&'w str>>) -> usize {
    let mut at = start;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "}" => return at + 1,
            "," => at += 1,
            _ => at = path(words, at, front, paths),
        }
    }
    at
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The file that a path written in `module` leads to: the longest beginning of it that is one.
fn file_of(path: &[&str], module: &Module, files: &BTreeMap<Module, &Source>) -> Option<Module> {
    let ups = path.iter().take_while(|word| **word == "super").count();
    let (front, rest) = match *path.first()? {
        "crate" => (&[][..], &path[1..]),
        "self" => (&module[..], &path[1..]),
        "super" => (&module[..module.len().checked_sub(ups)?], &path[ups..]),
        _ => (&module[..], path),
    };
    let mut words: Module = front.to_vec();
    words.extend(rest.iter().map(|word| word.to_string()));
    let is_relative = !matches!(path.first(), Some(&("crate" | "self" | "super")));
    let least = if is_relative { module.len() + 1 } else { 1 };
    (least..=words.len()).rev().map(|len| words[..len].to_vec()).find(|front| files.contains_key(front))
}

fn largest(imports: &Imports) -> BTreeSet<Module> {
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        imports.keys().map(|module| (module, reached(module, imports))).collect();
    let circle = |module: &Module| -> BTreeSet<Module> {
        let others = reached[module].iter().filter(|other| reached[other].contains(module));
        others.cloned().collect()
    };
    imports.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

/// All files to which the imports of one lead, itself if they lead back.
fn reached(start: &Module, imports: &Imports) -> BTreeSet<Module> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(module) = next.pop() {
        for other in imports.get(module).into_iter().flatten() {
            if reached.insert(other.clone()) {
                next.push(other);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> =
            files.iter().map(|(file, text)| Source::new(&format!("crates/store/src/{file}"), text)).collect();
        largest(&imports(&sources, "store")).iter().map(|module| module.join("/")).collect()
    }

    #[test]
    fn files_that_lead_back_to_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::A; pub use c::C;"),
            ("a.rs", "use crate::b::B;\nfn f() {}\n"),
            ("b.rs", "fn f() { super::c::g(); }\n"),
            ("c.rs", "use crate::{\n    a::{self, A},\n    d::D,\n};\n"),
            ("d.rs", "use std::fmt;\n// use crate::a::A;\npub(in crate::a) fn f() {}\n"),
        ];
        assert_eq!(circle(&files), ["a", "b", "c"]);
        assert!(circle(&files[..3]).is_empty());
    }

    #[test]
    fn what_the_root_hands_on_leads_to_its_file() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::{A, c::C};"),
            ("a/mod.rs", "use crate::b::B;\n"),
            ("a/c.rs", "fn f() {}\n"),
            ("b.rs", "use crate::{A, C};\n"),
        ];
        assert_eq!(circle(&files), ["a", "b"]);
        let files = [files[0], files[1], files[2], ("b.rs", "use crate::C;\n")];
        assert!(circle(&files).is_empty());
    }

    #[test]
    fn a_parent_that_uses_its_child_and_the_child_that_uses_it_are_a_circle() {
        let files = [
            ("a/mod.rs", "mod b;\nfn f() { b::g(); }\n"),
            ("a/b.rs", "use super::F;\n#[cfg(test)]\nmod tests {\n    use crate::c::C;\n}\n"),
            ("c.rs", "use crate::a::b::B;\n"),
        ];
        assert_eq!(circle(&files), ["a", "a/b"]);
    }

    #[test]
    fn a_circle_of_more_files_than_it_may_have_is_refused() {
        let circle_of = |name: &str, files: usize| -> Vec<Source> {
            let text = |at: usize| format!("use crate::f{}::F;\n", (at + 1) % files);
            let path = |at: usize| format!("crates/{name}/src/f{at}.rs");
            (0..files).map(|at| Source::new(&path(at), &text(at))).collect()
        };
        for name in ["base", "server"] {
            assert!(check(&circle_of(name, FILES_MAX)).is_empty(), "{name}");
            assert_eq!(check(&circle_of(name, FILES_MAX + 1)).len(), 1, "{name}");
        }
    }

    #[test]
    fn what_lies_deeper_is_found_by_the_longest_path() {
        let files = [("a.rs", "use crate::b::c::C;"), ("b.rs", "use crate::a::A;"), ("b/c.rs", "fn f() {}")];
        assert!(circle(&files).is_empty());
    }
}
