//! Settings of Redis whose mechanism Sardine does not have, or does not need: their values are checked,
//! remembered and shown by CONFIG GET, so that existing configuration files load and tools find what they ask
//! for.
//!
//! That is only right where nobody is misled. A row whose value promises something (durability, access
//! control, another server's copy) carries a [`Promise`]: the one value that is true here, and whether any
//! other is refused or warned of. A setting becomes real by taking its row out of here and writing one in
//! `table.rs`.
mod rows;
mod shape;

pub(super) use rows::{GROUPS, UNLISTED};
pub(super) use shape::Shape;

use super::setting;
use super::setting::{Change, Kind, Outcome, Setting, Words};
use super::values::Config;
use std::collections::BTreeMap;

/// The values that were given, by the setting's name; what is not here has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted(BTreeMap<&'static str, Vec<u8>>);

/// Rows that have no effect for the same reason.
pub(super) struct Group {
    pub(super) title: &'static str,
    /// A sentence: why its settings change nothing.
    pub(super) because: &'static str,
    pub(super) rows: &'static [Setting],
}

/// What a value of an accepted setting would mean to somebody who relies on it.
pub(super) struct Promise {
    /// The one value that is true here.
    pub(super) kept: &'static str,
    /// What becomes of any other.
    pub(super) otherwise: Otherwise,
    pub(super) why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    /// Never accepted.
    Refused,
    /// Accepted from files and the command line, with a line in the log; refused by CONFIG SET.
    Warned,
}

/// One row: a name, when it may change, its values and its default.
const fn row(name: &'static str, change: Change, shape: Shape, default: &'static str) -> Setting {
    Setting {
        name,
        alias: None,
        change,
        kind: Kind::Accepted { shape, default, promise: None },
        doc: "",
        when: "",
        default_doc: None,
        is_secret: false,
    }
}

impl Setting {
    /// With an older name.
    const fn or(self, alias: &'static str) -> Setting {
        Setting { alias: Some(alias), ..self }
    }

    /// Only `kept` is true; any other value is refused.
    const fn only(self, kept: &'static str, why: &'static str) -> Setting {
        self.promising(Promise { kept, otherwise: Otherwise::Refused, why })
    }

    /// Only `kept` is true; any other value is warned of.
    const fn but(self, kept: &'static str, why: &'static str) -> Setting {
        self.promising(Promise { kept, otherwise: Otherwise::Warned, why })
    }

    const fn promising(self, promise: Promise) -> Setting {
        let kind = match self.kind {
            Kind::Accepted { shape, default, .. } => {
                Kind::Accepted { shape, default, promise: Some(promise) }
            }
            other => other,
        };
        Setting { kind, ..self }
    }

    /// Why the value in force is not true; None where it is.
    pub(crate) fn untrue(&self, config: &Config) -> Option<&'static str> {
        match &self.kind {
            Kind::Accepted { promise: Some(promise), .. }
                if self.render(config) != promise.kept.as_bytes() =>
            {
                Some(promise.why)
            }
            _ => None,
        }
    }
}

impl Accepted {
    pub(super) fn value(&self, name: &str, default: &str) -> Vec<u8> {
        self.0.get(name).cloned().unwrap_or_else(|| default.into())
    }

    /// Keeps the value that `words` give if they have the shape; `present` is the value that they add to,
    /// where the setting is repeated.
    pub(super) fn set(&mut self, setting: &Setting, present: &[u8], words: Words<'_>) -> Outcome {
        let Kind::Accepted { shape, promise, .. } = &setting.kind else { return Ok(()) };
        let value = shape.read(present, words)?;
        if let Some(Promise { kept, otherwise: Otherwise::Refused, why }) = promise
            && value != kept.as_bytes()
        {
            return Err(format!("not supported: {why}"));
        }
        self.0.insert(setting.name, value);
        Ok(())
    }
}

impl Config {
    /// A line for the log for each setting that was accepted though its value will not come true.
    pub fn warnings(&self) -> Vec<String> {
        let warn = |s: &'static Setting| {
            let why = s.untrue(self)?;
            Some(format!("WARNING: '{} {}' has no effect: {why}", s.name, shown(&s.render(self))))
        };
        setting::all().filter_map(warn).collect()
    }
}

impl Config {
    /// A line for each setting that was given and has no effect, below the reason of its group.
    pub fn without_effect(&self) -> Vec<String> {
        let of_group = |group: &'static Group| {
            let given = group.rows.iter().filter(|s| self.accepted.0.contains_key(s.name));
            let mut lines: Vec<String> =
                given.map(|s| format!("  {} {}", s.name, shown(&s.render(self)))).collect();
            if !lines.is_empty() {
                lines.insert(0, group.because.into());
            }
            lines
        };
        GROUPS.iter().flat_map(of_group).collect()
    }
}

fn shown(value: &[u8]) -> String {
    if value.is_empty() { "\"\"".into() } else { String::from_utf8_lossy(value).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::config::setting::find;

    fn set(config: &mut Config, name: &str, value: &str) -> Outcome {
        find(name.as_bytes()).unwrap().set_from_one(config, value.as_bytes())
    }

    #[test]
    fn values_are_remembered_and_older_names_are_the_same_setting() {
        let mut config = Config::default();
        set(&mut config, "slave-read-only", "NO").unwrap();
        assert_eq!(config.value("replica-read-only").unwrap(), b"no");
        set(&mut config, "hash-max-ziplist-value", "1kb").unwrap();
        assert_eq!(config.value("hash-max-listpack-value").unwrap(), b"1024");
    }

    #[test]
    fn a_promise_that_cannot_be_kept_is_refused_or_warned_of() {
        let mut config = Config::default();
        let refused = set(&mut config, "cluster-enabled", "yes").unwrap_err();
        assert!(refused.starts_with("not supported: "), "{refused}");
        assert_eq!(config.warnings(), Vec::<String>::new());
        set(&mut config, "socket-mark-id", "5").unwrap();
        assert_eq!(config.value("socket-mark-id").unwrap(), b"5");
        assert_eq!(config.warnings().len(), 1);
        assert!(config.warnings()[0].starts_with("WARNING: 'socket-mark-id 5' has no effect: "));
    }
}
