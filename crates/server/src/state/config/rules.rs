//! Rules of users, put together from words.

/// The words of a request or a line as rules: a selector in parentheses may be several words. If a
/// parenthesis is not closed, the error is the place of the selector's first word.
pub(crate) fn merged<'w>(words: impl Iterator<Item = &'w [u8]>) -> Result<Vec<Vec<u8>>, usize> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, word) in words.enumerate() {
        if open.is_some() {
            let selector = rules.last_mut().expect("the open selector is the last rule");
            selector.push(b' ');
            selector.extend_from_slice(word.split(|b| *b == 0).next().unwrap_or_default());
        } else {
            rules.push(word.to_vec());
        }
        let begins = open.is_none() && word.first() == Some(&b'(');
        let ends = word.last() == Some(&b')');
        open = match open {
            None if begins && !ends => Some(at),
            Some(_) if ends => None,
            same => same,
        };
    }
    open.map_or(Ok(rules), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parentheses_join_words_until_one_ends_with_their_end() {
        let all = |line: &str| merged(line.split(' ').map(str::as_bytes)).map(|rules| rules.join(&b','));
        for (line, rules) in [
            ("on (+get ~a) ~b", Ok("on,(+get ~a),~b")),
            ("(+get) (~a (b) )", Ok("(+get),(~a (b),)")),
            ("a)", Ok("a)")),
            ("on (+get ~a", Err(1)),
            ("(", Err(0)),
        ] {
            assert_eq!(all(line), rules.map(|text| text.as_bytes().to_vec()), "{line}");
        }
    }
}
