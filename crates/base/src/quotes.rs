//! One line into words, by the quoting rules of Redis's configuration files and inline commands: "..." knows
//! \n \r \t \b \a \xHH and \ before anything else; '...' knows only \'; a closing quote must be followed by a
//! space or the end.

/// The words of `line`; None where quotes do not close.
pub fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    let mut rest = skip_spaces(line);
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = skip_spaces(take_word(rest, &mut word)?);
        all.push(word);
    }
    Some(all)
}

fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let count = text.iter().take_while(|b| is_space(**b)).count();
    &text[count..]
}

fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let Some((&b, tail)) = rest.split_first() {
        match b {
            b'"' => return ends_here(take_double(tail, word)?),
            b'\'' => return ends_here(take_single(tail, word)?),
            b if is_space(b) => return Some(rest),
            b => word.push(b),
        }
        rest = tail;
    }
    Some(rest)
}

/// What follows a closing quote must be a space or the end.
fn ends_here(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|b| is_space(*b)).then_some(rest)
}

/// Reads up to the closing quote, and returns what stands behind it.
fn take_double<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                rest = tail;
            }
            [b'\\', b, tail @ ..] => {
                word.push(unescaped(*b));
                rest = tail;
            }
            [b, tail @ ..] => {
                word.push(*b);
                rest = tail;
            }
            [] => return None,
        }
    }
}

/// Takes the rest of a word in single quotes, and returns what follows it; None if the closing quote is
/// missing.
fn take_single<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', tail @ ..] => return Some(tail),
            [b'\\', b'\'', tail @ ..] => {
                word.push(b'\'');
                rest = tail;
            }
            [b, tail @ ..] => {
                word.push(*b);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn unescaped(b: u8) -> u8 {
    match b {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'a' => 7,
        other => other,
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

/// `text` in double quotes, so that [`words`] gives it back.
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for b in text {
        match b {
            b'"' | b'\\' => out.extend([b'\\', *b]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            7 => out.extend(b"\\a"),
            8 => out.extend(b"\\b"),
            b' '..=b'~' => out.push(*b),
            _ => out.extend(format!("\\x{b:02x}").bytes()),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn check(line: &str, expect: &[&[u8]]) {
        let words = words(line.as_bytes()).unwrap();
        assert_eq!(words.iter().map(Vec::as_slice).collect::<Vec<_>>(), expect, "{line}");
    }

    #[test]
    fn quotes_hold_spaces_and_escapes() {
        check("a  b\tc ", &[b"a", b"b", b"c"]);
        check(
            r#"name "two words" '' "\x41\n\"" 'it\'s \n'"#,
            &[b"name", b"two words", b"", b"A\n\"", b"it's \\n"],
        );
        check(r#"pre"quoted""#, &[b"prequoted"]);
        check("", &[]);
    }

    #[test]
    fn quotes_that_do_not_close_are_refused() {
        for line in [r#"a "b"#, "a 'b", r#"a "b"c"#, "'a'b", r#"a "\"#] {
            assert_eq!(words(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn any_bytes_split_without_panic_and_quoted_ones_come_back() {
        let mut random = Random::new(7);
        for round in 0..20_000 {
            let len = random.below(12);
            let bytes: Vec<u8> = (0..len).map(|_| b"\"'\\x4 an\n\0\xff"[random.below(11) as usize]).collect();
            let _ = words(&bytes);
            assert_eq!(words(&quoted(&bytes)), Some(vec![bytes]), "round {round}");
        }
    }
}
