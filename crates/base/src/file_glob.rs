//! Glob patterns as shells and glob(3) match them with the names of files. They differ from those of Redis's
//! commands ([`crate::glob`]) in their classes:
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any bytes, none included |
//! | `?` | one byte |
//! | `[abc]`, `[a-c]`, `[!a]`, `[^a]`, `[[:digit:]]` | one byte in the class, or not in it |
//! | `[]a]`, `[a-]` | a bracket that comes first and a dash that comes last stand for themselves |
//! | `[abc` | itself: nothing closes the class |
//! | `\x` | `x` itself, in a class too |
//!
//! Classes are of bytes, ranges go by the values of bytes: no locale is looked at.
use crate::glob::matches_with_stars;

/// Whether `pattern` matches the whole of `name`. Neither has a slash.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    matches_with_stars(pattern, name, match_one)
}

/// Matches `byte` against the pattern's first element, which is no star. Returns what follows that element;
/// `None` if the byte does not match.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    if let [b'[', class @ ..] = pattern
        && let Some((is_hit, rest)) = match_class(class, byte)
    {
        return is_hit.then_some(rest);
    }
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        _ => literal(pattern).and_then(|(literal, rest)| (literal == byte).then_some(rest)),
    }
}

/// Whether `byte` is in a class, and what follows the class; `class` is what follows its opening bracket.
/// None if nothing closes it.
fn match_class(class: &[u8], byte: u8) -> Option<(bool, &[u8])> {
    let (mut class, is_negated) = match class {
        [b'!' | b'^', rest @ ..] => (rest, true),
        _ => (class, false),
    };
    let (mut is_member, mut is_first) = (false, true);
    loop {
        if let ([b']', rest @ ..], false) = (class, is_first) {
            return Some((is_member != is_negated, rest));
        }
        is_first = false;
        if let Some((holds, rest)) = named(class) {
            is_member |= holds(&byte);
            class = rest;
            continue;
        }
        let (low, rest) = literal(class)?;
        let (high, rest) = match rest {
            [b'-', end @ ..] if !end.starts_with(b"]") => literal(end)?,
            _ => (low, rest),
        };
        is_member |= (low..=high).contains(&byte);
        class = rest;
    }
}

/// A byte that stands for itself, and what follows it.
fn literal(pattern: &[u8]) -> Option<(u8, &[u8])> {
    match pattern {
        [] | [b'\\'] => None,
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => Some((*literal, rest)),
    }
}

/// Whether a byte is in a class that has a name.
type Holds = fn(&u8) -> bool;

/// The classes that have names.
const NAMED: [(&str, Holds); 12] = [
    ("[:alnum:]", u8::is_ascii_alphanumeric),
    ("[:alpha:]", u8::is_ascii_alphabetic),
    ("[:blank:]", |byte| b" \t".contains(byte)),
    ("[:cntrl:]", u8::is_ascii_control),
    ("[:digit:]", u8::is_ascii_digit),
    ("[:graph:]", u8::is_ascii_graphic),
    ("[:lower:]", u8::is_ascii_lowercase),
    ("[:print:]", |byte| (b' '..=b'~').contains(byte)),
    ("[:punct:]", u8::is_ascii_punctuation),
    ("[:space:]", |byte| b" \t\n\r\x0B\x0C".contains(byte)),
    ("[:upper:]", u8::is_ascii_uppercase),
    ("[:xdigit:]", u8::is_ascii_hexdigit),
];

/// The class whose name comes next, and what follows it.
fn named(class: &[u8]) -> Option<(Holds, &[u8])> {
    NAMED.iter().find_map(|(name, holds)| Some((*holds, class.strip_prefix(name.as_bytes())?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_match_as_in_a_shell() {
        for (pattern, names, others) in [
            ("*", &["", "a", "a.b"][..], &[][..]),
            ("*.conf", &["a.conf", ".conf", "a.conf.conf"], &["a.conf.bak", "conf"]),
            ("?.conf", &["a.conf"], &[".conf", "ab.conf"]),
            ("a*b*c", &["abc", "axbxbc"], &["abcx", "acb"]),
            ("[ab]x", &["ax", "bx"], &["cx", "x"]),
            ("[a-c]", &["a", "b", "c"], &["d", "-"]),
            ("[c-a]", &[], &["a", "b", "c", "-"]),
            ("[!a]x", &["bx", "!x"], &["ax"]),
            ("[^a]x", &["bx", "^x"], &["ax"]),
            ("[a!]", &["a", "!"], &["b"]),
            ("[]a]", &["]", "a"], &["b", "]a"]),
            ("[!]a]", &["b"], &["]", "a"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[-a]", &["a", "-"], &["b"]),
            ("[ab", &["[ab"], &["a", "b"]),
            ("[", &["["], &["a"]),
            ("[!", &["[!"], &["a"]),
            ("x[", &["x["], &["x"]),
            ("[\\]a]", &["]", "a"], &["\\"]),
            ("[a\\-c]", &["a", "-", "c"], &["b"]),
            ("\\*", &["*"], &["a", "\\*"]),
            ("\\[a]", &["[a]"], &["a"]),
            ("[[:digit:]]*", &["1", "1a"], &["a", ":]"]),
            ("[![:alpha:]_]", &["1", "["], &["a", "_"]),
            ("", &[""], &["a"]),
            ("a\\", &[], &["a\\", "a"]),
        ] {
            for name in names {
                assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
            for name in others {
                assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
            }
        }
    }
}
