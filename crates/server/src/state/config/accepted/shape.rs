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

/// `proc-title-template`: names in braces, of those that there are.
pub(super) fn title_template(text: &str) -> Result<(), &'static str> {
    const NAMES: [&str; 7] =
        ["title", "listen-addr", "server-mode", "port", "tls-port", "unixsocket", "config-file"];
    let wrong = "template format is invalid or contains unknown variables";
    if text.is_empty() {
        return Err(wrong);
    }
    let mut parts = text.split('{');
    parts.next();
    for part in parts {
        let (name, _) = part.split_once('}').ok_or(wrong)?;
        if !NAMES.contains(&name) {
            return Err(wrong);
        }
    }
    Ok(())
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
}
