//! docs/settings.md and the sample configuration file, from the table.
use super::Config;
use super::setting::{Change, Kind, Setting};
use super::table::SETTINGS;
use std::fmt::Write;

/// The reference of all settings, as Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Settings\n\nGenerated from the table in `crates/server/src/config/table.rs` by `cargo xtask docs`; do not edit.\n\n\
         A setting is a line of the configuration file (`port 7000`), an option of the command line (`--port 7000`), and a \
         name for `CONFIG GET` and, where the table says so, `CONFIG SET`.\n\n\
         | setting | default | values | CONFIG SET | what it does |\n|---|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let _ = writeln!(
            out,
            "| `{}`{} | {} | {} | {} | {} |",
            setting.name,
            setting.alias.map_or(String::new(), |a| format!(", `{a}`")),
            default_text(setting),
            values(&setting.kind),
            change(setting.change),
            setting.doc,
        );
    }
    out
}

/// sardine.conf: every setting, documented, commented out at its default.
pub fn sample_file() -> String {
    let mut out = String::from(
        "# Sardine's settings. Every line below shows a default; remove the `#` to change it.\n\
         # Units: 1k is 1000 bytes, 1kb 1024, and so on for m, mb, g and gb.\n\
         # `include /path/other.conf` reads another file in place.\n",
    );
    for setting in SETTINGS {
        out.push('\n');
        for line in wrapped(setting.doc) {
            let _ = writeln!(out, "# {line}");
        }
        let value = match setting.default_doc {
            Some(text) => format!("<{text}>"),
            None => default_value(setting),
        };
        let value = if value.is_empty() { "\"\"".into() } else { value };
        let _ = writeln!(out, "# {} {value}", setting.name);
    }
    out
}

fn default_value(setting: &Setting) -> String {
    String::from_utf8_lossy(&setting.render(&Config::default())).into_owned()
}

fn default_text(setting: &Setting) -> String {
    match (setting.default_doc, default_value(setting)) {
        (Some(text), _) => text.into(),
        (None, value) if value.is_empty() => "empty".into(),
        (None, value) => format!("`{value}`"),
    }
}

fn values(kind: &Kind) -> String {
    match kind {
        Kind::Bool { .. } => "`yes`, `no`".into(),
        Kind::Int { min, max, .. } => format!("{min} to {max}"),
        Kind::Mode { .. } => "octal, 0 to 777".into(),
        Kind::Memory { min, .. } => format!("bytes, from {min}"),
        Kind::Word { words, .. } => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Kind::Text { .. } => "text".into(),
        Kind::List { .. } => "words".into(),
    }
}

fn change(change: Change) -> &'static str {
    match change {
        Change::Anytime => "yes",
        Change::AtStart => "no",
        Change::Protected => "where `enable-protected-configs` allows it",
    }
}

/// Lines of at most about 100 letters.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        if lines.last().is_some_and(|l| l.len() + word.len() > 98) {
            lines.push(String::new());
        }
        let line = lines.last_mut().expect("it starts with one line and only grows");
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_in_the_reference_and_the_sample_file() {
        let (reference, sample) = (markdown(), sample_file());
        for setting in SETTINGS {
            assert!(reference.contains(&format!("| `{}`", setting.name)));
            assert!(sample.contains(&format!("\n# {} ", setting.name)));
        }
    }

    #[test]
    fn the_sample_file_loads_once_its_defaults_are_uncommented() {
        for line in sample_file().lines().filter_map(|l| l.strip_prefix("# ")) {
            let is_setting = SETTINGS.iter().any(|s| line.starts_with(&format!("{} ", s.name)));
            if is_setting && !line.contains('<') {
                let args = [b"-".to_vec()];
                crate::config::Source::from_args(&args).load(&mut line.as_bytes()).unwrap();
            }
        }
    }
}
