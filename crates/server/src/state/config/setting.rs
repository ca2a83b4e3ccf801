//! What a setting is: its name, what values it takes, when it may change, and how it is read from and written
//! to a [`Config`]. The error texts are Redis's.
use super::accepted::{GROUPS, Promise, Shape, UNLISTED};
use super::limits::MemoryShare;
use super::persistence_rows;
use super::table::TOPICS;
use super::values::{Config, ConfigError};
use std::sync::LazyLock;

/// A value in pieces: the words of a line, or of the one argument of CONFIG SET.
pub(super) type Words<'a> = &'a [&'a [u8]];

/// What a setter returns; the error is the text behind "- " in the reply of CONFIG SET.
pub(super) type Outcome = Result<(), String>;

/// One row of the table.
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// An older name, shown by CONFIG GET as one of its own.
    pub(super) alias: Option<&'static str>,
    pub(crate) change: Change,
    pub(super) kind: Kind,
    /// What the setting does, for the reference and the sample file.
    pub(super) doc: &'static str,
    /// When somebody would change it; empty for one that changes nothing here.
    pub(super) when: &'static str,
    /// Shown in the reference instead of the default where that depends on the machine.
    pub(super) default_doc: Option<&'static str>,
    /// No log, report or MONITOR shows its value.
    pub(crate) is_secret: bool,
}

/// When a setting may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// By CONFIG SET.
    Anytime,
    /// Only by the file and the command line.
    AtStart,
    /// By CONFIG SET where `enable-protected-configs` allows it.
    Protected,
}

/// The values that a setting takes, with its getter and setter.
pub(super) enum Kind {
    Bool {
        get: fn(&Config) -> bool,
        set: fn(&mut Config, bool) -> Outcome,
    },
    Int {
        min: i64,
        max: i64,
        get: fn(&Config) -> i64,
        set: fn(&mut Config, i64) -> Outcome,
    },
    /// Written in octal.
    Mode {
        get: fn(&Config) -> u32,
        set: fn(&mut Config, u32) -> Outcome,
    },
    /// Bytes, with units.
    Memory {
        min: u64,
        max: u64,
        get: fn(&Config) -> u64,
        set: fn(&mut Config, u64) -> Outcome,
    },
    /// Bytes with units, or a part in percent.
    MemoryOrPercent {
        get: fn(&Config) -> MemoryShare,
        set: fn(&mut Config, MemoryShare),
    },
    /// One of these words; getter and setter take its index.
    Word {
        words: &'static [&'static str],
        get: fn(&Config) -> usize,
        set: fn(&mut Config, usize) -> Outcome,
    },
    Text {
        get: fn(&Config) -> Vec<u8>,
        set: fn(&mut Config, &[u8]) -> Outcome,
    },
    /// Several words.
    List {
        get: fn(&Config) -> Vec<u8>,
        set: fn(&mut Config, Words<'_>) -> Outcome,
    },
    /// Several words, in any number of lines. `set` replaces what lines before have said, `add` adds to it.
    Lines {
        get: fn(&Config) -> Vec<u8>,
        set: fn(&mut Config, Words<'_>) -> Outcome,
        add: fn(&mut Config, Words<'_>) -> Outcome,
    },
    /// Kept and shown, without effect (see [`super::accepted`]).
    Accepted {
        shape: Shape,
        default: &'static str,
        promise: Option<Promise>,
    },
}

/// The settings that have an effect, topic by topic.
pub(super) fn settings() -> impl Iterator<Item = &'static Setting> {
    TOPICS.iter().flat_map(|topic| topic.rows)
}

/// The settings that patterns find, those that have an effect first, by name.
pub(crate) fn listed() -> impl Iterator<Item = &'static Setting> {
    static BY_NAME: LazyLock<Vec<&Setting>> = LazyLock::new(|| {
        let mut all: Vec<_> = settings().collect();
        all.sort_by_key(|setting| setting.name);
        all
    });
    BY_NAME.iter().copied().chain(GROUPS.iter().flat_map(|group| group.rows))
}

/// All settings, also those that `CONFIG GET *` leaves out.
pub(super) fn all() -> impl Iterator<Item = &'static Setting> {
    listed().chain(UNLISTED).chain(persistence_rows::UNLISTED)
}

/// The setting of this name or alias, in any case. It goes through all of them.
pub(crate) fn find(name: &[u8]) -> Option<&'static Setting> {
    all().find(|s| s.names().any(|n| n.as_bytes().eq_ignore_ascii_case(name)))
}

/// Whether the value of the setting of this name is a secret; None where there is no such setting.
pub(crate) fn is_secret(name: &[u8]) -> Option<bool> {
    find(name).map(|setting| setting.is_secret)
}

impl Setting {
    /// This setting with its value marked as a secret (see `is_secret`).
    pub(super) const fn secret(self) -> Setting {
        Setting { is_secret: true, ..self }
    }

    /// Its name, and its older name if it has one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// The value as CONFIG GET shows it.
    pub(crate) fn render(&self, config: &Config) -> Vec<u8> {
        match &self.kind {
            Kind::Bool { get, .. } => if get(config) { "yes" } else { "no" }.into(),
            Kind::Int { get, .. } => get(config).to_string().into(),
            Kind::Mode { get, .. } => format!("{:o}", get(config)).into(),
            Kind::Memory { get, .. } => get(config).to_string().into(),
            Kind::MemoryOrPercent { get, .. } => get(config).render().into(),
            Kind::Word { words, get, .. } => words[get(config)].into(),
            Kind::Text { get, .. } | Kind::List { get, .. } | Kind::Lines { get, .. } => get(config),
            Kind::Accepted { default, .. } => config.accepted.value(self.name, default),
        }
    }

    /// Sets it from one argument, as CONFIG SET has it. A list is split at spaces. The error is Redis's text.
    pub(crate) fn set_from_one(&self, config: &mut Config, value: &[u8]) -> Outcome {
        match &self.kind {
            Kind::List { set, .. } | Kind::Lines { set, .. } => {
                let words = self.words_of(value);
                set(config, if value.is_empty() { &[] } else { &words })
            }
            Kind::Accepted { .. } => config.accepted.set(self, b"", &self.words_of(value)),
            _ => self.set_scalar(config, self.read_part(value)),
        }
    }

    /// What Redis reads of a word: most values end at the first NUL, as strings in C do.
    fn read_part<'a>(&self, word: &'a [u8]) -> &'a [u8] {
        const WHOLE: [&str; 4] = [
            "cluster-announce-human-nodename",
            "latency-tracking-info-percentiles",
            "masterauth",
            "requirepass",
        ];
        let is_whole = match self.kind {
            Kind::Int { .. } | Kind::MemoryOrPercent { .. } => true,
            Kind::Accepted { shape: Shape::Int { .. }, .. } => true,
            _ => WHOLE.contains(&self.name),
        };
        if is_whole { word } else { until_nul(word) }
    }

    /// Whether a value may be several words.
    pub(super) fn takes_words(&self) -> bool {
        matches!(
            self.kind,
            Kind::List { .. } | Kind::Lines { .. } | Kind::Accepted { shape: Shape::Words(_), .. }
        )
    }

    /// The words of one argument, where this is a setting of several.
    fn words_of<'a>(&self, value: &'a [u8]) -> Vec<&'a [u8]> {
        let words = value.split(|b| *b == b' ').map(|word| self.read_part(word));
        if self.takes_words() { words.collect() } else { vec![self.read_part(value)] }
    }

    /// Sets it from the words of a line.
    pub(super) fn set_from_words(&self, config: &mut Config, words: Words<'_>) -> Outcome {
        let parts: Vec<&[u8]> = words.iter().map(|word| self.read_part(word)).collect();
        match (&self.kind, words) {
            (Kind::Accepted { .. }, [one]) => self.accept_line(config, &self.words_of(one)),
            (Kind::Accepted { .. }, _) => self.accept_line(config, &parts),
            (Kind::List { .. }, [one]) => self.set_from_one(config, one),
            (Kind::List { set, .. }, _) => set(config, &parts),
            (Kind::Lines { add, .. }, [one]) => add(config, &self.words_of(one)),
            (Kind::Lines { add, .. }, _) => add(config, &parts),
            (_, [_]) => self.set_scalar(config, parts[0]),
            _ => Err("wrong number of arguments".into()),
        }
    }

    /// A line adds to those before it, where a setting is repeated.
    fn accept_line(&self, config: &mut Config, words: Words<'_>) -> Outcome {
        let present = self.render(config);
        config.accepted.set(self, &present, words)
    }

    /// Sets it from one word.
    fn set_scalar(&self, config: &mut Config, value: &[u8]) -> Outcome {
        match &self.kind {
            Kind::Bool { set, .. } => set(config, boolean(value)?),
            Kind::Int { min, max, set, .. } => set(config, integer(value, *min, *max)?),
            Kind::Mode { set, .. } => set(config, mode(value)?),
            Kind::Memory { min, max, set, .. } => set(config, bounded_memory(value, *min, *max)?),
            Kind::MemoryOrPercent { set, .. } => {
                set(config, MemoryShare::parse(value)?);
                Ok(())
            }
            Kind::Word { words, set, .. } => set(config, word(value, words)?),
            Kind::Text { set, .. } => set(config, value),
            Kind::List { set, .. } | Kind::Lines { set, .. } => set(config, &[value]),
            Kind::Accepted { .. } => config.accepted.set(self, b"", &[value]),
        }
    }
}

impl Config {
    /// The value of a setting as CONFIG GET shows it; None where there is no such setting.
    pub fn value(&self, name: &str) -> Option<Vec<u8>> {
        find(name.as_bytes()).map(|s| s.render(self))
    }

    /// A line for each setting that differs from its default, without those that are secret: for crash
    /// reports.
    pub(crate) fn told_in_reports(&self) -> String {
        let defaults = Config::default();
        let differs = |s: &&Setting| !s.is_secret && s.render(self) != s.render(&defaults);
        let line = |s: &Setting| format!("{} {}\n", s.name, String::from_utf8_lossy(&s.render(self)));
        all().filter(differs).map(line).collect()
    }

    /// Sets one setting as a line of the file would, also those that only the start may set.
    pub fn set(&mut self, name: &str, value: &[u8]) -> Result<(), ConfigError> {
        let found = find(name.as_bytes())
            .ok_or_else(|| ConfigError("Bad directive or wrong number of arguments".into()))?;
        found.set_from_one(self, value).map_err(ConfigError)
    }
}

/// The text up to its first NUL.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|b| *b == 0).next().unwrap_or_default()
}

/// `yes` or `no`, in any case.
pub(super) fn boolean(value: &[u8]) -> Result<bool, String> {
    if value.eq_ignore_ascii_case(b"yes") {
        Ok(true)
    } else if value.eq_ignore_ascii_case(b"no") {
        Ok(false)
    } else {
        Err("argument must be 'yes' or 'no'".into())
    }
}

/// An integer between these bounds, both included.
pub(super) fn integer(value: &[u8], min: i64, max: i64) -> Result<i64, String> {
    let n = base::text::parse_i64(value).ok_or("argument couldn't be parsed into an integer")?;
    if (min..=max).contains(&n) { Ok(n) } else { Err(out_of_range(min, max)) }
}

fn out_of_range(min: impl std::fmt::Display, max: impl std::fmt::Display) -> String {
    format!("argument must be between {min} and {max} inclusive")
}

/// The permissions of a file, in octal.
fn mode(value: &[u8]) -> Result<u32, String> {
    let parsed = std::str::from_utf8(value).ok().and_then(|s| u32::from_str_radix(s, 8).ok());
    let mode = parsed.ok_or("argument couldn't be parsed as an octal number")?;
    if mode <= 0o777 { Ok(mode) } else { Err("argument must be between 0 and 777 inclusive".into()) }
}

/// Bytes with an optional unit, between these bounds.
pub(super) fn bounded_memory(value: &[u8], min: u64, max: u64) -> Result<u64, String> {
    let n = memory(value).ok_or("argument must be a memory value")?;
    if (min..=max).contains(&n) { Ok(n) } else { Err(out_of_range(min, max)) }
}

/// Bytes with an optional unit: `k` is 1000, `kb` 1024, and so on to `gb`. An empty text is 0, as in Redis.
pub(super) fn memory(value: &[u8]) -> Option<u64> {
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, unit) = value.split_at(digits);
    let scale: u64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1_000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    // A number that does not fit becomes the greatest one: the bounds of the setting decide about it.
    let add = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(number.iter().fold(0, add).saturating_mul(scale))
}

/// The index of a word among these, in any case.
pub(super) fn word(value: &[u8], words: &'static [&'static str]) -> Result<usize, String> {
    words
        .iter()
        .position(|w| w.as_bytes().eq_ignore_ascii_case(value))
        .ok_or_else(|| format!("argument(s) must be one of the following: {}", words.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_units_are_decimal_without_b_and_binary_with() {
        for (text, bytes) in
            [("", 0), ("7", 7), ("7b", 7), ("1k", 1000), ("1kB", 1024), ("2M", 2_000_000), ("2mb", 2 << 20)]
        {
            assert_eq!(memory(text.as_bytes()), Some(bytes), "{text}");
        }
        for text in ["-1", "1tb", "1.5gb", "x"] {
            assert_eq!(memory(text.as_bytes()), None, "{text}");
        }
        for text in ["99999999999999999999", "18446744073709551615kb"] {
            assert_eq!(memory(text.as_bytes()), Some(u64::MAX), "{text}");
        }
    }
}
