//! What the values of accepted settings look like: each is checked with Redis's words and kept as CONFIG GET
//! shows it.
use crate::state::config::setting::{Words, boolean, bounded_memory, integer, word};

/// The form of the values of an accepted setting.
pub(in crate::state::config) enum Shape {
    Bool,
    Int {
        min: i64,
        max: i64,
    },
    Memory {
        min: u64,
        max: u64,
    },
    Word(&'static [&'static str]),
    Text,
    /// One word, which this function checks.
    Checked(fn(&str) -> Result<(), &'static str>),
    /// Any number of words: what they mean together with what was there before.
    Words(fn(&[u8], Words<'_>) -> Result<Vec<u8>, String>),
}

impl Shape {
    /// The value as it is shown. `present` is empty but for lines of settings that are repeated.
    pub(super) fn read(&self, present: &[u8], words: Words<'_>) -> Result<Vec<u8>, String> {
        if let Shape::Words(read) = self {
            return read(present, words);
        }
        let [value] = words else { return Err("wrong number of arguments".into()) };
        Ok(match self {
            Shape::Bool => if boolean(value)? { "yes" } else { "no" }.into(),
            Shape::Int { min, max } => integer(value, *min, *max)?.to_string().into(),
            Shape::Memory { min, max } => bounded_memory(value, *min, *max)?.to_string().into(),
            Shape::Word(words) => words[word(value, words)?].into(),
            Shape::Checked(check) => {
                check(&String::from_utf8_lossy(value))?;
                value.to_vec()
            }
            Shape::Text | Shape::Words(_) => value.to_vec(),
        })
    }
}

/// `replicaof`: nobody, or a host and a port.
pub(super) fn primary(_: &[u8], words: Words<'_>) -> Result<Vec<u8>, String> {
    if let [b""] = words {
        return Ok(Vec::new());
    }
    let [host, port] = words else { return Err("wrong number of arguments".into()) };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Vec::new());
    }
    match base::text::parse_i64(port) {
        Some(0..=65_535) => Ok(words.join(&b' ')),
        _ => Err("Invalid master port".into()),
    }
}

/// `proc-title-template`: names in braces, of those that there are, and something that is more than spaces.
/// Two braces stand for one.
pub(super) fn title_template(text: &str) -> Result<(), &'static str> {
    const SHOWN: [&str; 5] = ["listen-addr", "port", "tls-port", "unixsocket", "config-file"];
    /// They stand for nothing: the title is taken to be empty while the template is checked, as in Redis.
    const EMPTY: [&str; 2] = ["title", "server-mode"];
    let wrong = "template format is invalid or contains unknown variables";
    let (mut rest, mut is_something) = (text, false);
    while let Some((before, behind)) = rest.split_once('{') {
        is_something |= before.contains(|c| c != ' ');
        if let Some(behind) = behind.strip_prefix('{') {
            (rest, is_something) = (behind, true);
            continue;
        }
        let (name, behind) = behind.split_once('}').ok_or(wrong)?;
        if !SHOWN.contains(&name) && !EMPTY.contains(&name) {
            return Err(wrong);
        }
        is_something |= SHOWN.contains(&name);
        rest = behind;
    }
    is_something |= rest.contains(|c| c != ' ');
    if is_something { Ok(()) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shape: &Shape, text: &str) -> Result<String, String> {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        shape.read(b"", &words).map(|v| String::from_utf8(v).unwrap())
    }

    #[test]
    fn values_are_shown_as_redis_shows_them() {
        for (shape, text, shown) in [
            (Shape::Bool, "YES", Ok("yes")),
            (Shape::Memory { min: 0, max: 9999 }, "2kb", Ok("2048")),
            (Shape::Words(primary), "NO one", Ok("")),
            (Shape::Words(primary), "1.2.3.4 x", Err("Invalid master port")),
            (Shape::Checked(title_template), "{title}-{port}", Ok("{title}-{port}")),
        ] {
            assert_eq!(read(&shape, text), shown.map(Into::into).map_err(Into::into), "{text}");
        }
    }

    #[test]
    fn a_template_has_names_that_there_are_and_shows_something() {
        for text in ["x", "{port}", " {config-file} ", "{title}x", "{{x}}", "{{", "{title} {listen-addr}"] {
            assert_eq!(title_template(text), Ok(()), "{text}");
        }
        for text in ["", "  ", "{title}", " {title} {server-mode}", "{nope}", "x{title", "{", "{}", "{{{x}"] {
            assert!(title_template(text).is_err(), "{text}");
        }
    }
}
