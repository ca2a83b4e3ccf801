//! Patterns and texts of any bytes. Where a pattern has neither classes nor escapes a table of all beginnings
//! says whether it matches.
use base::glob::{matches, matches_ignore_case};

/// The table is the product of both.
const LEN_MAX: usize = 200;

/// The first byte says where the pattern ends.
pub(super) fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let (pattern, text) = rest.split_at(rest.len().min(usize::from(*first)));
    let text = &text[..text.len().min(LEN_MAX)];
    let (is_match, is_match_folded) = (matches(pattern, text), matches_ignore_case(pattern, text));
    if !pattern.iter().any(|byte| matches!(byte, b'[' | b'\\')) {
        assert_eq!(
            is_match,
            by_table(pattern, text),
            "{:?} {:?}",
            pattern.escape_ascii(),
            text.escape_ascii()
        );
        let (pattern, text) = (pattern.to_ascii_lowercase(), text.to_ascii_lowercase());
        assert_eq!(is_match_folded, by_table(&pattern, &text));
    }
}

fn by_table(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    // Whether what was read of the pattern matches the first `n` bytes.
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for mark in pattern {
        let before = reached.clone();
        match mark {
            b'*' => (1..reached.len()).for_each(|n| reached[n] |= reached[n - 1]),
            _ => {
                reached[0] = false;
                (1..before.len()).for_each(|n| {
                    reached[n] = before[n - 1] && (*mark == b'?' || *mark == text[n - 1]);
                });
            }
        }
    }
    reached[text.len()]
}
