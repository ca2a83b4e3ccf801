//! What the names of keys have in common: `user:1042:cart` and `user:7:mail` both have the prefix `user:#:`.
//!
//! A name's prefix goes up to its second separator, or to the first if there is no other. Numbers, and words
//! of 16 and more hexadecimal digits, become `#`. A name without separator is its own prefix, so folded;
//! where nothing is folded it counts with the other single names.

const SEPARATORS: [u8; 4] = *b":/.|";
const PARTS_MAX: usize = 2;
const HEX_DIGITS_MIN: usize = 16;
pub(crate) const SINGLE: &str = "(single names)";

/// The prefix that a name counts with.
pub(crate) fn prefix(name: &[u8]) -> String {
    let ends = name.iter().enumerate().filter(|(_, byte)| SEPARATORS.contains(byte)).map(|(at, _)| at + 1);
    match ends.take(PARTS_MAX).last() {
        Some(end) => folded(&name[..end]),
        None => {
            let whole = folded(name);
            if whole.contains('#') { whole } else { SINGLE.into() }
        }
    }
}

fn folded(name: &[u8]) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|byte| SEPARATORS.contains(byte)) {
        let is_word = part.len() >= HEX_DIGITS_MIN
            && part.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-' || SEPARATORS.contains(byte));
        if is_word {
            out.push('#');
            part.last()
                .filter(|byte| SEPARATORS.contains(byte))
                .into_iter()
                .for_each(|end| out.push(*end as char));
            continue;
        }
        for byte in part {
            match byte {
                b'0'..=b'9' if out.ends_with('#') => {}
                b'0'..=b'9' => out.push('#'),
                b' '..=b'~' => out.push(*byte as char),
                _ => out.push('?'),
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_share_a_prefix() {
        let cases = [
            ("user:1042:cart", "user:#:"),
            ("user:1042", "user:"),
            ("cache.page./home", "cache.page."),
            ("session:0123456789abcdef:x", "session:#:"),
            ("item77", "item#"),
            ("config", SINGLE),
        ];
        for (name, expected) in cases {
            assert_eq!(prefix(name.as_bytes()), expected);
        }
    }
}
