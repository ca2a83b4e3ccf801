//! Glob patterns as Redis matches them (KEYS, SCAN MATCH, PSUBSCRIBE, CONFIG GET):
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any bytes, none included |
//! | `?` | one byte |
//! | `[abc]`, `[a-c]`, `[c-a]`, `[^a]` | one byte in the class, or not in it; `\` escapes inside |
//! | `\x` | `x` itself |
//!
//! A class that nothing closes ends with the pattern. Two oddities are kept because programs meet them: an
//! empty text is matched by the empty pattern only, not by `*` (KEYS and SCAN treat a lone `*` apart), and
//! under case folding an escaped byte inside a class still compares exactly.
//!
//! Redis recurses at each star, which takes exponential time without its counter-measures. Here a mismatch
//! goes back to the last star only: more bytes that an earlier star could take, the later one can take as
//! well. So the cost is at most the length of the pattern times that of the text.

/// Whether the case of ASCII letters counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Exact,
    Folded,
}

impl Case {
    /// Whether two bytes match each other.
    fn same(self, a: u8, b: u8) -> bool {
        match self {
            Case::Exact => a == b,
            Case::Folded => a.eq_ignore_ascii_case(&b),
        }
    }

    /// The byte itself, or its lower-case form where case does not count.
    fn fold(self, byte: u8) -> u8 {
        match self {
            Case::Exact => byte,
            Case::Folded => byte.to_ascii_lowercase(),
        }
    }
}

/// Whether `pattern` matches the whole of `text`. Linear or quadratic, never exponential.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_case(pattern, text, Case::Exact)
}

/// The same with ASCII letters of either case taken as equal (CONFIG GET, COMMAND LIST).
pub fn matches_ignore_case(pattern: &[u8], text: &[u8]) -> bool {
    matches_case(pattern, text, Case::Folded)
}

fn matches_case(pattern: &[u8], text: &[u8], case: Case) -> bool {
    match text.is_empty() {
        true => pattern.is_empty(),
        false => matches_with_stars(pattern, text, |pattern, byte| match_one(pattern, byte, case)),
    }
}

/// Whether `pattern`, in which a star stands for any bytes, matches the whole of `text`. `match_one` matches
/// a byte against the pattern's first element, which is no star, and returns what follows that element; None
/// if the byte does not match.
#[inline]
pub(crate) fn matches_with_stars(
    mut pattern: &[u8],
    mut text: &[u8],
    match_one: impl Fn(&[u8], u8) -> Option<&[u8]>,
) -> bool {
    // Where to go on after a mismatch: pattern and text behind the last star, which then takes one byte more.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            if rest.is_empty() {
                return true;
            }
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        let step = match text.split_first() {
            Some((byte, rest)) => match_one(pattern, *byte).map(|pattern| (pattern, rest)),
            None if pattern.is_empty() => return true,
            // The text has ended before the pattern: a star that took more bytes would leave even fewer.
            None => return false,
        };
        match (step, retry) {
            (Some(next), _) => (pattern, text) = next,
            (None, Some((behind, from))) => {
                let from = &from[1..];
                retry = Some((behind, from));
                (pattern, text) = (behind, from);
            }
            (None, None) => return false,
        }
    }
}

/// Matches `byte` against the pattern's first element, which is no star. Returns what follows that element;
/// `None` if the byte does not match.
fn match_one(pattern: &[u8], byte: u8, case: Case) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', class @ ..] => match_class(class, byte, case),
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => case.same(*literal, byte).then_some(rest),
    }
}

/// Matches `byte` against a class; `class` is what follows its `[`. Returns what follows the class; `None` if
/// the byte does not match.
fn match_class(class: &[u8], byte: u8, case: Case) -> Option<&[u8]> {
    let (mut class, negated) = match class {
        [b'^', rest @ ..] => (rest, true),
        _ => (class, false),
    };
    let mut is_member = false;
    loop {
        let (hit, rest) = match class {
            [b'\\', literal, rest @ ..] => (*literal == byte, rest),
            [b']', rest @ ..] => return (is_member != negated).then_some(rest),
            [] => return (is_member != negated).then_some(class),
            [low, b'-', high, rest @ ..] => (in_range(*low, *high, byte, case), rest),
            [literal, rest @ ..] => (case.same(*literal, byte), rest),
        };
        is_member |= hit;
        class = rest;
    }
}

/// Whether `byte` lies between the two ends of a class's range.
fn in_range(low: u8, high: u8, byte: u8, case: Case) -> bool {
    // The ends are put in order before their case is folded, as Redis does.
    let (low, high) = (low.min(high), low.max(high));
    (case.fold(low)..=case.fold(high)).contains(&case.fold(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expect: bool) {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expect, "{pattern:?} against {text:?}");
    }

    #[test]
    fn the_documented_patterns_match() {
        check("h?llo", "hello", true);
        check("h?llo", "hllo", false);
        check("h*llo", "hllo", true);
        check("h*llo", "heeeello", true);
        check("h[ae]llo", "hallo", true);
        check("h[ae]llo", "hillo", false);
        check("h[^e]llo", "hallo", true);
        check("h[^e]llo", "hello", false);
        check("h[a-b]llo", "hbllo", true);
        check("h[b-a]llo", "hallo", true);
        check("h\\?llo", "h?llo", true);
        check("h\\?llo", "hello", false);
        check("*", "anything", true);
        check("a**b", "ab", true);
        check("a*", "a", true);
        check("", "", true);
        check("", "a", false);
    }

    #[test]
    fn unfinished_elements_mean_what_redis_takes_them_for() {
        check("[", "x", false);
        check("[^", "x", true);
        check("[a", "a", true);
        check("[^a", "a", false);
        check("[a-", "-", true);
        check("[a-]", "b", false);
        check("[a-]", "^", true);
        check("[\\", "\\", true);
        check("[\\]]", "]", true);
        check("[]a]", "a]", false);
        check("\\", "\\", true);
        check("a\\", "a\\", true);
    }

    #[test]
    fn an_empty_text_is_matched_by_the_empty_pattern_only() {
        check("*", "", false);
        check("**", "", false);
        check("a*", "", false);
    }

    #[test]
    fn folding_spares_escaped_bytes_in_classes() {
        assert!(matches_ignore_case(b"MaxMem*", b"maxmemory"));
        assert!(matches_ignore_case(b"[A-C]x", b"bX"));
        assert!(matches_ignore_case(b"[M]", b"m"));
        assert!(!matches_ignore_case(b"[\\M]", b"m"));
        assert!(matches_ignore_case(b"\\M", b"m"));
        assert!(!matches(b"M", b"m"));
    }

    #[test]
    fn many_stars_end_soon() {
        let pattern = "a*".repeat(500) + "b";
        check(&pattern, &"a".repeat(20_000), false);
        let pattern = "*a".repeat(300);
        check(&pattern, &"a".repeat(2_000), true);
    }

    /// The naive twin: a star tries every length.
    fn naive(pattern: &[u8], text: &[u8], case: Case) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', rest @ ..] if rest.iter().all(|b| *b == b'*') => true,
            [b'*', rest @ ..] => (0..=text.len()).any(|n| naive(rest, &text[n..], case)),
            _ => match text {
                [] => false,
                [byte, rest @ ..] => {
                    match_one(pattern, *byte, case).is_some_and(|pattern| naive(pattern, rest, case))
                }
            },
        }
    }

    proptest! {
        #[test]
        fn the_search_agrees_with_its_definition(
            pattern in "[abAB*?\\[\\]^\\\\-]{0,10}",
            text in "[abcAB\\]^-]{1,10}",
        ) {
            for case in [Case::Exact, Case::Folded] {
                prop_assert_eq!(
                    matches_case(pattern.as_bytes(), text.as_bytes(), case),
                    naive(pattern.as_bytes(), text.as_bytes(), case)
                );
            }
        }

        #[test]
        fn any_bytes_are_matched_without_panic(pattern: Vec<u8>, text: Vec<u8>) {
            matches(&pattern, &text);
            matches_ignore_case(&pattern, &text);
        }
    }
}
