//! Which folders of a crate may import which: the layers inside a crate, as `layers` has those between crates.
use super::circles::{self, Module};
use super::source::Source;
use super::{Complaint, layers};
use std::collections::BTreeSet;

/// A folder of a crate and the others of it that it may name. A folder without a row may name all.
struct Folder {
    in_crate: &'static str,
    name: &'static str,
    below: &'static [&'static str],
}

const FOLDERS: [Folder; 2] = [
    Folder { in_crate: "server", name: "state", below: &[] },
    // What workers share still holds what the folder `service` starts.
    Folder { in_crate: "server", name: "core", below: &["state", "service"] },
];

pub(crate) fn check(sources: &[Source]) -> Vec<Complaint> {
    let crates: BTreeSet<&str> = FOLDERS.iter().map(|folder| folder.in_crate).collect();
    crates.into_iter().flat_map(|name| check_crate(sources, name)).collect()
}

fn check_crate(sources: &[Source], name: &str) -> Vec<Complaint> {
    let imports = circles::imports(sources, name);
    // A file at the top of a crate is in no folder, nor are the modules of which it is made.
    let is_folder = |folder: &str| imports.keys().any(|module| module.len() > 1 && module[0] == folder);
    let mut complaints = Vec::new();
    for folder in FOLDERS.iter().filter(|folder| folder.in_crate == name) {
        for (module, others) in imports.iter().filter(|(module, _)| module[0] == folder.name) {
            let is_wrong = |other: &&Module| {
                let first = other[0].as_str();
                first != folder.name && is_folder(first) && !folder.below.contains(&first)
            };
            let path = circles::file_path(sources, name, module);
            complaints.extend(others.iter().filter(is_wrong).map(|other| {
                Complaint::whole(&path, layers::wrong_edge(&module.join("/"), &other.join("/")))
            }));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(file, text)| Source::new(&format!("crates/server/src/{file}"), text))
            .collect();
        check(&sources).into_iter().map(|complaint| complaint.path).collect()
    }

    #[test]
    fn a_folder_names_only_those_below_it() {
        let files = [
            ("state/clock.rs", "use super::log::Log;\nuse crate::commands::info::INFO;\n"),
            ("state/log.rs", "#[cfg(test)]\nmod tests {\n    use crate::core::call::Call;\n}\nfn f() {}\n"),
            ("core/call.rs", "use crate::state::clock::Clock;\nfn f() { crate::service::start::g(); }\n"),
            ("core/dispatch.rs", "fn f() { crate::commands::info::g(); }\n"),
            ("commands/info.rs", "use crate::core::call::Call;\nuse crate::state::log::Log;\n"),
            ("service/defrag.rs", "use crate::commands::info::INFO;\nuse crate::core::call::Call;\n"),
            ("start.rs", "use crate::commands::info::INFO;\n"),
        ];
        assert_eq!(
            refused(&files),
            ["crates/server/src/state/clock.rs", "crates/server/src/core/dispatch.rs"]
        );
    }
}
