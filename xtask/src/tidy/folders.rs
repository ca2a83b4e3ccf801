//! Which folders of a crate may import which: the layers inside a crate, as `layers` has those between
//! crates.
use super::circles::{self, Module};
use super::source::Source;
use super::{Complaint, layers};
use std::collections::BTreeSet;

/// A folder of a crate and the others of it that it may name, or single files of others. A folder without a
/// row may name all.
struct Folder {
    in_crate: &'static str,
    name: &'static str,
    below: &'static [&'static str],
}

/// The server's files outside its folders, those that start it, may name all of them. The structures of
/// `pack` (map, list, sorted, integers, log) are made of its lower folders and know nothing of each other,
/// but that a sorted set keeps the members of long runs of one score in a map.
const FOLDERS: [Folder; 22] = [
    Folder { in_crate: "server", name: "state", below: &[] },
    Folder { in_crate: "server", name: "core", below: &["state"] },
    Folder { in_crate: "server", name: "commands", below: &["core", "state"] },
    Folder { in_crate: "server", name: "worker", below: &["core", "state"] },
    Folder { in_crate: "server", name: "service", below: &["core", "state"] },
    Folder { in_crate: "pack", name: "classic", below: &[] },
    Folder { in_crate: "pack", name: "memory", below: &[] },
    Folder { in_crate: "pack", name: "code", below: &["memory"] },
    Folder { in_crate: "pack", name: "tree", below: &["memory", "code"] },
    Folder { in_crate: "pack", name: "map", below: &["memory", "code", "tree"] },
    Folder { in_crate: "pack", name: "list", below: &["classic", "memory", "code", "tree"] },
    Folder { in_crate: "pack", name: "sorted", below: &["memory", "code", "tree", "map"] },
    Folder { in_crate: "pack", name: "integers", below: &["memory", "code", "tree"] },
    Folder { in_crate: "pack", name: "log", below: &["classic", "memory", "code", "tree"] },
    // A type knows no other type; what all of them need stands at the top of the crate.
    Folder { in_crate: "store", name: "list", below: &["keyspace"] },
    Folder { in_crate: "store", name: "hash", below: &["keyspace", "expiry"] },
    Folder { in_crate: "store", name: "set", below: &["keyspace"] },
    // ZUNIONSTORE and its like read plain sets too.
    Folder { in_crate: "store", name: "zset", below: &["keyspace", "set/image", "set/tree"] },
    Folder { in_crate: "store", name: "stream", below: &["keyspace"] },
    // Fields of hashes fall due as keys do.
    Folder { in_crate: "store", name: "expiry", below: &["keyspace", "hash/due", "hash/image"] },
    Folder { in_crate: "store", name: "eviction", below: &["keyspace", "expiry"] },
    Folder { in_crate: "store", name: "keyspace", below: &["expiry", "eviction", "hash/due"] },
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
                let is_below =
                    folder.below.contains(&first) || folder.below.contains(&other.join("/").as_str());
                first != folder.name && is_folder(first) && !is_below
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
        refused_in("server", files)
    }

    fn refused_in(name: &str, files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(file, text)| Source::new(&format!("crates/{name}/src/{file}"), text))
            .collect();
        check(&sources).into_iter().map(|complaint| complaint.path).collect()
    }

    #[test]
    fn a_folder_names_only_those_below_it() {
        let files = [
            ("state/clock.rs", "use super::log::Log;\nuse crate::commands::info::INFO;\n"),
            ("state/log.rs", "#[cfg(test)]\nmod tests {\n    use crate::core::call::Call;\n}\nfn f() {}\n"),
            ("core/call.rs", "use crate::state::clock::Clock;\nfn f() { crate::service::start::g(); }\n"),
            ("core/dispatch/mod.rs", "fn f() { crate::commands::info::g(); }\n"),
            ("commands/info.rs", "use crate::core::call::Call;\nuse crate::state::log::Log;\n"),
            ("service/start.rs", "use crate::core::call::Call;\n"),
            ("start.rs", "use crate::commands::info::INFO;\nuse crate::service::start::g;\n"),
        ];
        assert_eq!(
            refused(&files),
            ["state/clock.rs", "core/call.rs", "core/dispatch/mod.rs"]
                .map(|file| format!("crates/server/src/{file}"))
        );
    }

    #[test]
    fn commands_worker_and_service_name_core_and_state_and_not_each_other() {
        let folders = ["commands", "worker", "service"];
        for folder in folders {
            for other in ["core", "state", "commands", "worker", "service"] {
                let files = [
                    (format!("{folder}/a.rs"), format!("use crate::{other}::b::B;\n")),
                    (format!("{other}/b.rs"), "fn f() {}\n".to_owned()),
                ];
                let files = files.each_ref().map(|(file, text)| (file.as_str(), text.as_str()));
                let is_refused = other != folder && folders.contains(&other);
                assert_eq!(refused(&files).len(), usize::from(is_refused), "{folder} names {other}");
            }
        }
    }

    #[test]
    fn a_folder_may_name_single_files_of_another() {
        let files = [
            ("set/tree.rs", "pub(crate) struct SetTree;\n"),
            ("set/edit.rs", "use super::tree::SetTree;\n"),
            ("zset/copy.rs", "use crate::set::tree::SetTree;\n"),
            ("zset/api.rs", "use crate::set::edit::SetMut;\n"),
            ("list/api.rs", "use crate::zset::copy::ZSetCopy;\nuse crate::edit::Edit;\n"),
            ("edit.rs", "pub(crate) struct Edit;\n"),
        ];
        assert_eq!(
            refused_in("store", &files),
            ["crates/store/src/list/api.rs", "crates/store/src/zset/api.rs"]
        );
    }
}
