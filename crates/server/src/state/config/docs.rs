//! docs/settings.md and the sample configuration file, from the table.
use super::accepted::{GROUPS, Otherwise, Promise, Shape};
use super::setting::{Change, Kind, Setting};
use super::table::TOPICS;
use super::values::Config;
use std::fmt::Write;

/// The reference of all settings, as Markdown.
pub fn markdown() -> String {
    let mut out = String::from(INTRODUCTION);
    let titles = TOPICS.iter().map(|topic| topic.title).chain([WITHOUT_EFFECT]);
    let _ = writeln!(out, "\n{}", contents(titles));
    for topic in TOPICS {
        let _ = writeln!(out, "\n## {}\n\n{}\n", topic.title, topic.about);
        out.push_str("| setting | default | values | CONFIG SET | what it does, and when to change it |\n");
        out.push_str("|---|---|---|---|---|\n");
        topic.rows.iter().for_each(|setting| setting_row(&mut out, setting));
    }
    let _ = writeln!(out, "\n## {WITHOUT_EFFECT}\n\n{ACCEPTED_MARKDOWN}");
    for group in GROUPS {
        let _ = writeln!(
            out,
            "\n### {}\n\n{}\n\n| setting | default | values | CONFIG SET |\n|---|---|---|---|",
            group.title, group.because
        );
        group.rows.iter().for_each(|setting| accepted_row(&mut out, setting));
    }
    out
}

const INTRODUCTION: &str = "# Settings

Generated from the program's table of settings by `cargo xtask docs`; do not edit.

A setting is a line of the configuration file (`port 7000`), an option of the command line (`--port 7000`), and a \
name for `CONFIG GET` and, where the table says so, `CONFIG SET`. \
[sardine.conf](../sardine.conf) has them all as a file to edit.
";

const WITHOUT_EFFECT: &str = "Accepted without effect";

const ACCEPTED_MARKDOWN: &str = "Redis has these settings and Sardine has no use for them, or not yet. They are \
checked, remembered and shown, so that existing configuration files load. Where a value would promise what is not \
kept, the table says so: such a value is refused, or, in files and on the command line, accepted with a warning in \
the log.";

fn setting_row(out: &mut String, setting: &Setting) {
    let (default, values, change) = (default_text(setting), values(&setting.kind), change(setting.change));
    let (doc, when) = (setting.doc, setting.when);
    let _ = writeln!(out, "| {} | {default} | {values} | {change} | {doc} *{when}* |", names(setting));
}

fn accepted_row(out: &mut String, setting: &Setting) {
    let (default, values, change) = (default_text(setting), values(&setting.kind), change(setting.change));
    let promise = promise_text(&setting.kind);
    let _ = writeln!(out, "| {} | {default} | {values}{promise} | {change} |", names(setting));
}

fn names(setting: &Setting) -> String {
    setting.names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Links to the headings of a page, in one line.
pub(crate) fn contents<'t>(titles: impl Iterator<Item = &'t str>) -> String {
    let link = |title: &str| {
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect();
        format!("[{title}](#{anchor})")
    };
    titles.map(link).collect::<Vec<_>>().join(" · ")
}

fn promise_text(kind: &Kind) -> String {
    let Kind::Accepted { promise: Some(Promise { kept, otherwise, why }), .. } = kind else {
        return String::new();
    };
    let kept = if kept.is_empty() { "the empty value".into() } else { format!("`{kept}`") };
    match otherwise {
        Otherwise::Refused => format!("; only {kept}: {why}"),
        Otherwise::Warned => format!("; other than {kept} with a warning: {why}"),
    }
}

/// sardine.conf: every setting, documented, commented out at its default.
pub fn sample_file() -> String {
    let mut out = String::from(
        "# Sardine's settings. A line such as `# port 6379` is a setting and its default: remove the `#` to change\n\
         # it. What stands between < and > is no value but says where the default comes from.\n\
         # Units: 1k is 1000 bytes, 1kb 1024, and so on for m, mb, g and gb.\n\
         # `include /path/other.conf` reads another file in place.\n",
    );
    for topic in TOPICS {
        heading(&mut out, topic.title, topic.about);
        for setting in topic.rows {
            out.push('\n');
            comment(&mut out, setting.doc);
            comment(&mut out, setting.when);
            if let Some(alias) = setting.alias {
                let _ = writeln!(out, "# Its other name is {alias}.");
            }
            let _ = writeln!(out, "# {}", sample_line(setting));
        }
    }
    heading(&mut out, WITHOUT_EFFECT, ACCEPTED_SAMPLE);
    for group in GROUPS {
        let _ = writeln!(out, "\n# {}", group.because);
        for setting in group.rows {
            let _ = writeln!(out, "# {}", sample_line(setting));
        }
        let aliases = |s: &Setting| s.alias.map(|alias| format!("{alias} for {}", s.name));
        let aliases: Vec<String> = group.rows.iter().filter_map(aliases).collect();
        if !aliases.is_empty() {
            comment(&mut out, &format!("Other names: {}.", aliases.join(", ")));
        }
    }
    out
}

/// A heading that is easily seen when the file is scrolled, and the sentence below it.
fn heading(out: &mut String, title: &str, about: &str) {
    let _ = writeln!(out, "\n{:#<98}\n", format!("########## {title} "));
    comment(out, about);
}

fn comment(out: &mut String, text: &str) {
    wrapped(text).iter().for_each(|line| {
        let _ = writeln!(out, "# {line}");
    });
}

const ACCEPTED_SAMPLE: &str = "Redis has the settings below and Sardine has no use for them, or not yet: they are \
accepted without effect so that existing files load. docs/settings.md has their values.";

fn sample_line(setting: &Setting) -> String {
    let value = match setting.default_doc {
        Some(text) => format!("<{text}>"),
        None => default_value(setting),
    };
    let is_one_word = !value.is_empty() && (setting.takes_words() || !value.contains(' '));
    match setting.default_doc.is_some() || is_one_word {
        true => format!("{} {value}", setting.name),
        false => format!("{} \"{value}\"", setting.name),
    }
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
        Kind::Int { min, max, .. } => range(*min, *max),
        Kind::Mode { .. } => "octal, 0 to 777".into(),
        Kind::Memory { min, .. } => format!("bytes, from {min}"),
        Kind::MemoryOrPercent { .. } => "bytes, or `0%` to `100%`".into(),
        Kind::Word { words, .. } => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Kind::Text { .. } => "text".into(),
        Kind::List { .. } | Kind::Lines { .. } => "words".into(),
        Kind::Accepted { shape, .. } => shape_values(shape),
    }
}

/// The bounds of an integer. An upper bound that every number keeps is left out.
fn range(min: i64, max: i64) -> String {
    if max == i64::MAX { format!("from {min}") } else { format!("{min} to {max}") }
}

fn shape_values(shape: &Shape) -> String {
    match shape {
        Shape::Bool => "`yes`, `no`".into(),
        Shape::Int { min, max } => range(*min, *max),
        Shape::Memory { min, .. } => format!("bytes, from {min}"),
        Shape::Word(words) => words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(", "),
        Shape::Text | Shape::Checked(_) => "text".into(),
        Shape::Words(_) => "words".into(),
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
    use crate::state::config::setting::listed;

    #[test]
    fn every_setting_is_in_the_reference_and_the_sample_file() {
        let (reference, sample) = (markdown(), sample_file());
        for setting in listed() {
            assert!(reference.contains(&format!("| `{}`", setting.name)));
            assert!(sample.contains(&format!("\n# {} ", setting.name)));
            assert!(setting.alias.is_none_or(|alias| sample.contains(alias)), "{}", setting.name);
        }
    }

    #[test]
    fn topics_stand_in_their_order_with_a_link_to_each() {
        let (reference, sample) = (markdown(), sample_file());
        let places: Vec<_> = TOPICS.iter().map(|t| reference.find(&format!("\n## {}\n", t.title))).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?}");
        assert!(reference.contains("[Memory limit and eviction](#memory-limit-and-eviction)"));
        assert!(TOPICS.iter().all(|topic| sample.contains(&format!("\n########## {} ##", topic.title))));
    }

    #[test]
    fn the_sample_file_loads_once_its_defaults_are_uncommented() {
        for line in sample_file().lines().filter_map(|l| l.strip_prefix("# ")) {
            let is_setting = listed().any(|s| line.starts_with(&format!("{} ", s.name)));
            if is_setting && !line.contains('<') {
                let args = [b"-".to_vec()];
                crate::state::config::Source::from_args(&args).load(&mut line.as_bytes()).unwrap();
            }
        }
    }
}
