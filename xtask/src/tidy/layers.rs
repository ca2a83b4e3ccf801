//! Which crate may import which (ARCHITECTURE.md draws it), and what each layer does without.
use super::Complaint;
use super::source::Source;

/// A crate and the crates of ours that it may know.
struct Layer {
    name: &'static str,
    below: &'static [&'static str],
}

const LAYERS: [Layer; 12] = [
    Layer { name: "base", below: &[] },
    Layer { name: "resp", below: &["base"] },
    Layer { name: "lua", below: &["base"] },
    Layer { name: "script", below: &["base", "resp", "lua"] },
    Layer { name: "pack", below: &["base"] },
    Layer { name: "net", below: &["base"] },
    Layer { name: "store", below: &["base", "pack"] },
    Layer { name: "disk", below: &["base", "resp", "pack", "store"] },
    Layer { name: "command", below: &["base", "resp", "store", "disk"] },
    Layer { name: "server", below: &["base", "resp", "pack", "net", "store", "disk", "command", "script"] },
    Layer {
        name: "testkit",
        below: &["base", "resp", "pack", "net", "store", "disk", "command", "script", "server"],
    },
    Layer {
        name: "tools",
        below: &["base", "resp", "pack", "net", "store", "disk", "command", "script", "server"],
    },
];

fn layer(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}

fn may_not_know(name: &str, other: &str) -> bool {
    let is_ours = layer(other).is_some() && other != name;
    is_ours && layer(name).is_none_or(|layer| !layer.below.contains(&other))
}

/// The reason in the message, whichever way the edge is found.
pub(super) fn wrong_edge(name: &str, other: &str) -> String {
    format!(
        "{name} imports {other}: layers import downwards only, so that each can be read and tested without those above"
    )
}

/// Checks `[dependencies]` of a crate's manifest; what only its tests use is free.
pub(crate) fn manifest(path: &str, text: &str) -> Vec<Complaint> {
    let Some(name) = path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml")) else {
        return Vec::new();
    };
    let mut complaints = Vec::new();
    if layer(name).is_none() {
        complaints
            .push(Complaint::whole(path, format!("crate {name} has no place in tidy's list of layers")));
    }
    let mut section = String::new();
    for (at, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            section = line.trim().to_string();
        }
        let dependency = line.split(['=', '.']).next().unwrap_or_default().trim();
        let is_use = section.ends_with("dependencies]") && !section.contains("dev-dependencies");
        if is_use && may_not_know(name, dependency) {
            complaints.push(Complaint {
                path: path.to_string(),
                line: at + 1,
                message: wrong_edge(name, dependency),
            });
        }
    }
    complaints
}

/// Checks the paths that start with a crate's name. Cargo would refuse most; it does not where the
/// manifest is wrong too.
pub(crate) fn imports(source: &Source) -> Vec<Complaint> {
    let Some(name) = source.crate_name() else { return Vec::new() };
    let mut complaints = Vec::new();
    for (at, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.is_test) {
        let Some(path) = line.code.trim().strip_prefix("use ").or(line.code.trim().strip_prefix("pub use "))
        else {
            continue;
        };
        let first = path.trim_start_matches("::").split(|c: char| !(c.is_alphanumeric() || c == '_')).next();
        if let Some(other) = first.filter(|other| may_not_know(name, other)) {
            complaints.push(Complaint::new(source, at, wrong_edge(name, other)));
        }
    }
    complaints
}

/// The layers whose results depend on their arguments only.
const PURE: [&str; 5] = ["base", "resp", "pack", "store", "command"];

/// What they do without, and why.
const ABSENCES: [(&str, &str); 13] = [
    ("std::fs", "does no I/O: disk and server do"),
    ("std::net", "does no I/O: net does"),
    ("std::process", "does no I/O: server does"),
    ("std::env", "reads no environment: server's settings do"),
    ("std::io::std", "does no I/O: the server logs"),
    ("thread::spawn", "starts no threads: server does"),
    ("Instant::now", "reads no clock: time is an argument, so that tests move it"),
    ("SystemTime::now", "reads no clock: time is an argument, so that tests move it"),
    ("thread_local!", "keeps no global: state is an argument, so that two servers fit one process"),
    ("OnceLock", "keeps no global: state is an argument, so that two servers fit one process"),
    ("LazyLock", "keeps no global: state is an argument, so that two servers fit one process"),
    ("static mut ", "keeps no global: state is an argument, so that two servers fit one process"),
    ("println!", "prints nothing: the server logs"),
];

/// Files that may have something all the same, each with the reason.
const EXCEPTIONS: [(&str, &str, &str); 6] = [
    ("crates/pack/src/memory/arena/stripes.rs", "thread_local!", "an allocator is the process's by nature"),
    ("crates/pack/src/memory/arena/passing.rs", "thread_local!", "an allocator is the process's by nature"),
    (
        "crates/pack/src/memory/twins.rs",
        "thread_local!",
        "a drop has no argument in which to look for a twin",
    ),
    (
        "crates/store/src/keyspace/locked.rs",
        "OnceLock",
        "a field of the keyspace, filled when it is first needed",
    ),
    ("crates/pack/src/memory/counted.rs", "thread_local!", "an allocator is the process's by nature"),
    (
        "crates/pack/src/list/compressed.rs",
        "thread_local!",
        "a codec's scratch tables: no result depends on them, and every read of a leaf would carry them",
    ),
];

fn is_excepted(source: &Source, text: &str) -> bool {
    EXCEPTIONS.iter().any(|(path, excepted, _)| *path == source.path && *excepted == text)
}

pub(crate) fn absences(source: &Source) -> Vec<Complaint> {
    let Some(name) = source.crate_name().filter(|name| PURE.contains(name)) else {
        return main_elsewhere(source);
    };
    let mut complaints = main_elsewhere(source);
    for (at, line) in source.lines.iter().enumerate().filter(|(_, line)| !line.is_test) {
        let found = ABSENCES.iter().find(|(text, _)| line.code.contains(text) && !is_excepted(source, text));
        complaints.extend(
            found.map(|(text, reason)| {
                Complaint::new(source, at, format!("{}: {name} {reason}", text.trim()))
            }),
        );
    }
    complaints
}

/// Only tools has a program.
fn main_elsewhere(source: &Source) -> Vec<Complaint> {
    if matches!(source.crate_name(), None | Some("tools")) {
        return Vec::new();
    }
    let lines = source.lines.iter().enumerate();
    let mains = lines.filter(|(_, line)| !line.is_test && line.code.starts_with("fn main("));
    mains
        .map(|(at, _)| {
            Complaint::new(source, at, "a program: only tools has main, so that there is one binary")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn manifests_name_lower_layers_only() {
        let good = "[package]\nname = \"store\"\n[dependencies]\nbase.workspace = true\npack = { path = \"x\" }\n\
                    [dev-dependencies]\nresp.workspace = true\n";
        assert!(manifest("crates/store/Cargo.toml", good).is_empty());
        let bad = "[dependencies]\nbase.workspace = true\nresp.workspace = true\nserver = { path = \"x\" }\n";
        let lines: Vec<usize> = manifest("crates/store/Cargo.toml", bad).iter().map(|c| c.line).collect();
        assert_eq!(lines, [3, 4]);
        assert_eq!(manifest("crates/extra/Cargo.toml", "").len(), 1);
        assert!(manifest("Cargo.toml", "[workspace.dependencies]\nserver = { path = \"x\" }\n").is_empty());
    }

    #[test]
    fn uses_name_lower_layers_only() {
        check(imports, "crates/store/src/a.rs", "use base::Item;\nuse crate::server;\nuse std::net;\n", &[]);
        check(imports, "crates/store/src/a.rs", "use resp::Reply;\npub use server::Config;\n", &[1, 2]);
        check(imports, "crates/store/src/a.rs", "#[cfg(test)]\nmod tests {\n    use resp::Reply;\n}\n", &[]);
        check(imports, "xtask/src/a.rs", "use server::Config;\n", &[]);
    }

    #[test]
    fn pure_layers_read_no_clock_and_keep_no_global() {
        check(absences, "crates/store/src/a.rs", "// Instant::now is for others\nlet t = now;\n", &[]);
        let bad = "let t = Instant::now();\nthread_local! {}\nuse std::fs;\n";
        check(absences, "crates/store/src/a.rs", bad, &[1, 2, 3]);
        check(absences, "crates/server/src/a.rs", bad, &[]);
        check(absences, "crates/pack/src/memory/arena/stripes.rs", bad, &[1, 3]);
    }

    #[test]
    fn only_tools_has_main() {
        check(absences, "crates/tools/src/main.rs", "fn main() {}\n", &[]);
        check(absences, "crates/server/src/a.rs", "fn main() {}\n", &[1]);
        check(absences, "crates/resp/benches/a.rs", "fn main() {}\n", &[]);
    }
}
