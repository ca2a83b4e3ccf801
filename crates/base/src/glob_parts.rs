//! The bytes that a glob pattern demands as they are: how every text begins and ends that it matches, and
//! what stands in between. An index over many patterns finds by them those few that may match a text.
//!
//! ```text
//! news.*.sport[12]!   prefix "news."   inner ".sport"   suffix "!"
//! ```
//!
//! A pattern without `*`, `?` and `[` matches one text, which is its prefix and its suffix.

/// See the file's opener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    pub prefix: Vec<u8>,
    pub suffix: Vec<u8>,
    /// Those that are neither, in order; none is empty.
    pub inner: Vec<Vec<u8>>,
}

impl Parts {
    /// The parts of a pattern, read as `glob::matches` reads it.
    pub fn of(pattern: &[u8]) -> Parts {
        let (mut literals, mut literal) = (Vec::new(), Vec::new());
        let mut rest = pattern;
        while let [first, behind @ ..] = rest {
            rest = match (first, behind) {
                (b'*' | b'?', _) => {
                    literals.push(std::mem::take(&mut literal));
                    behind
                }
                (b'[', _) => {
                    literals.push(std::mem::take(&mut literal));
                    behind_class(behind)
                }
                (b'\\', [escaped, behind @ ..]) => {
                    literal.push(*escaped);
                    behind
                }
                (byte, _) => {
                    literal.push(*byte);
                    behind
                }
            };
        }
        let mut literals = literals.into_iter();
        let prefix = literals.next().unwrap_or_else(|| literal.clone());
        Parts { prefix, suffix: literal, inner: literals.filter(|literal| !literal.is_empty()).collect() }
    }
}

/// What follows a class whose `[` stands before `class`.
fn behind_class(class: &[u8]) -> &[u8] {
    let mut class = class.strip_prefix(b"^").unwrap_or(class);
    loop {
        class = match class {
            [] => return class,
            [b'\\', _, rest @ ..] => rest,
            [b']', rest @ ..] => return rest,
            [_, b'-', _, rest @ ..] | [_, rest @ ..] => rest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glob::matches;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, prefix: &str, inner: &[&str], suffix: &str) {
        let inner = inner.iter().map(|literal| literal.as_bytes().to_vec()).collect();
        let parts = Parts { prefix: prefix.into(), suffix: suffix.into(), inner };
        assert_eq!(Parts::of(pattern.as_bytes()), parts, "{pattern:?}");
    }

    #[test]
    fn a_pattern_demands_how_a_text_begins_ends_and_what_it_has() {
        check("news.*.sport[12]!", "news.", &[".sport"], "!");
        check("*", "", &[], "");
        check("a*", "a", &[], "");
        check("*a", "", &[], "a");
        check("*a*", "", &["a"], "");
        check("exact", "exact", &[], "exact");
        check("a\\*b", "a*b", &[], "a*b");
        check("a\\", "a\\", &[], "a\\");
        check("x[a-]y]z", "x", &[], "z");
        check("x[^]y]z", "x", &[], "y]z");
        check("x[\\]]y", "x", &[], "y");
        check("", "", &[], "");
    }

    proptest! {
        #[test]
        fn what_matches_has_the_parts(
            pattern in "[abAB*?\\[\\]^\\\\-]{0,10}",
            text in "[abcAB*?\\]\\[^\\\\-]{1,8}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            let parts = Parts::of(pattern);
            if matches(pattern, text) {
                prop_assert!(text.starts_with(&parts.prefix), "{parts:?}");
                prop_assert!(text.ends_with(&parts.suffix), "{parts:?}");
                for inner in &parts.inner {
                    prop_assert!(text.windows(inner.len()).any(|part| part == inner), "{parts:?}");
                }
            }
        }

        #[test]
        fn any_bytes_have_parts(pattern: Vec<u8>) {
            Parts::of(&pattern);
        }
    }
}
