//! A Rust file as the rules see it: its lines, each with its code apart from its comments, and which lines
//! are tests.
//!
//! This is no parser. It knows what hides text from the compiler (comments, strings, character literals) and
//! blanks it, so that a rule may search code for a word and braces may be counted. That is enough for every
//! rule, and it does not break when the language grows.

/// One file.
pub(crate) struct Source {
    /// From the repository's root, with `/`.
    pub(crate) path: String,
    pub(crate) lines: Vec<Line>,
    /// Its strings, in their order.
    pub(crate) literals: Vec<Literal>,
}

/// A string of either kind, as it is spelled between its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// The index of the line on which it begins.
    pub(crate) line: usize,
    pub(crate) text: String,
}

pub(crate) struct Line {
    pub(crate) text: String,
    /// The text with comments and the insides of strings blanked.
    pub(crate) code: String,
    pub(crate) is_test: bool,
    /// Whether a string begins here or goes on from above.
    has_string: bool,
}

impl Line {
    pub(crate) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether the line is nothing but a comment.
    pub(crate) fn is_comment(&self) -> bool {
        !self.is_blank() && self.code.trim().is_empty() && !self.has_string
    }

    /// Whether `word` stands in the code, not inside another word.
    pub(crate) fn has_word(&self, word: &str) -> bool {
        has_word(&self.code, word)
    }
}

/// Whether `word` stands in `text` as a word of its own.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

/// Folders and files that no user runs: tests, what they are compared with, and what measures.
const TEST_PARTS: [&str; 8] =
    ["tests", "tests.rs", "benches", "examples", "testkit", "fuzz", "bench", "model.rs"];

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let (code, literals) = split(text);
        let is_test_file = path.split('/').any(|part| TEST_PARTS.contains(&part));
        let lines = text.lines().zip(code.lines());
        let lines = lines.map(|(text, code)| Line {
            text: text.into(),
            code: code.into(),
            is_test: is_test_file,
            has_string: false,
        });
        let mut lines: Vec<Line> = lines.collect();
        for literal in &literals {
            let count = 1 + literal.text.matches('\n').count();
            lines.iter_mut().skip(literal.line).take(count).for_each(|line| line.has_string = true);
        }
        let mut source = Source { path: path.to_string(), lines, literals };
        source.mark_test_modules();
        source
    }

    /// The crate's folder name, for files of `crates/NAME/`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The part of the workspace that the file belongs to: a crate's name, or the first folder of its path.
    pub(crate) fn part(&self) -> &str {
        self.crate_name().or_else(|| self.path.split('/').next()).unwrap_or_default()
    }

    fn mark_test_modules(&mut self) {
        let is_mark = |line: &Line| line.code.trim() == "#[cfg(test)]";
        let starts: Vec<usize> = (0..self.lines.len()).filter(|at| is_mark(&self.lines[*at])).collect();
        for start in starts {
            let end = self.item_end(start).map_or(start, |(end, _)| end);
            self.lines[start..=end].iter_mut().for_each(|line| line.is_test = true);
        }
    }

    /// The files that this one declares as `#[cfg(test)] mod name;`, with or without a `#[path]`.
    pub(crate) fn test_files(&self) -> Vec<String> {
        let (beside, file) = self.path.rsplit_once('/').unwrap_or_default();
        let below = match file {
            "lib.rs" | "main.rs" | "mod.rs" => beside.to_string(),
            _ => format!("{beside}/{}", file.trim_end_matches(".rs")),
        };
        let mut files = Vec::new();
        for line in self.lines.iter().filter(|line| line.is_test) {
            let text = line.text.trim();
            if let Some(name) = text.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                files.extend([format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")]);
            } else if let Some(path) =
                text.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]"))
            {
                files.push(format!("{beside}/{path}"));
            }
        }
        files
    }

    /// The line on which the item that starts at or below `start` ends, and how.
    pub(crate) fn item_end(&self, start: usize) -> Option<(usize, End)> {
        let (mut depth, mut nested) = (0_usize, 0_usize);
        for (at, line) in self.lines.iter().enumerate().skip(start) {
            for byte in line.code.bytes() {
                match byte {
                    b'{' => depth += 1,
                    b'}' if depth == 1 => return Some((at, End::Block)),
                    b'}' => depth = depth.saturating_sub(1),
                    b'(' | b'[' => nested += 1,
                    b')' | b']' => nested = nested.saturating_sub(1),
                    b';' if depth == 0 && nested == 0 => return Some((at, End::Semicolon)),
                    _ => {}
                }
            }
        }
        None
    }
}

/// What an item ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Block,
    Semicolon,
}

/// `text` with comments, strings and character literals replaced by spaces, line ends where they are; and the
/// strings.
fn split(text: &str) -> (String, Vec<Literal>) {
    let mut mask =
        Mask { bytes: text.as_bytes(), out: text.as_bytes().to_vec(), at: 0, line: 0, literals: Vec::new() };
    while mask.at < mask.bytes.len() {
        mask.step();
    }
    // Whole literals are blanked, so no character is cut in two.
    (String::from_utf8_lossy(&mask.out).into_owned(), mask.literals)
}

struct Mask<'a> {
    bytes: &'a [u8],
    out: Vec<u8>,
    at: usize,
    /// How many lines end before `at`.
    line: usize,
    literals: Vec<Literal>,
}

impl Mask<'_> {
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        let len = match rest {
            [b'/', b'/', ..] => find(rest, b"\n").unwrap_or(rest.len()),
            [b'/', b'*', ..] => block_comment_len(rest),
            [b'"', ..] => string_len(rest),
            [b'r', b'"' | b'#', ..] if !self.is_inside_word() => {
                raw_string_len(&rest[1..]).map_or(0, |n| n + 1)
            }
            [b'b', b'r', b'"' | b'#', ..] if !self.is_inside_word() => {
                raw_string_len(&rest[2..]).map_or(0, |n| n + 2)
            }
            [b'\'', ..] => char_len(rest),
            _ => 0,
        };
        if len > 0 && matches!(rest[0], b'"' | b'r' | b'b') {
            let text = String::from_utf8_lossy(&rest[..len]);
            let text = text.trim_start_matches(['b', 'r']).trim_matches('#');
            let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
            self.literals.push(Literal { line: self.line, text: text.to_string() });
        }
        let end = (self.at + len).max(self.at + 1);
        self.out[self.at..self.at + len].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b' ');
        self.line += self.bytes[self.at..end].iter().filter(|b| **b == b'\n').count();
        self.at = end;
    }

    fn is_inside_word(&self) -> bool {
        self.at > 0 && (self.bytes[self.at - 1].is_ascii_alphanumeric() || self.bytes[self.at - 1] == b'_')
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes.windows(needle.len()).position(|window| window == needle)
}

fn block_comment_len(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

fn string_len(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `#"..."#` with any number of `#`; `None` if it is none (`r#type` is a name).
fn raw_string_len(rest: &[u8]) -> Option<usize> {
    let hashes = rest.iter().take_while(|b| **b == b'#').count();
    if rest.get(hashes) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
    let inside = &rest[hashes + 1..];
    Some(find(inside, &close).map_or(rest.len(), |at| hashes + 1 + at + close.len()))
}

/// The length of a character literal; 0 for a lifetime.
fn char_len(rest: &[u8]) -> usize {
    match rest {
        [_, b'\\', _, tail @ ..] => find(tail, b"'").map_or(rest.len(), |at| at + 4),
        [_, b'\'', ..] => 0,
        [_, tail @ ..] => match tail.iter().take(5).position(|b| *b == b'\'') {
            Some(at) if std::str::from_utf8(&tail[..at]).is_ok_and(|s| s.chars().count() == 1) => at + 2,
            _ => 0,
        },
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of `text`, word by word.
    #[track_caller]
    fn check(text: &str, expect: &str) {
        let masked = split(text).0;
        assert_eq!(masked.len(), text.len(), "nothing moves");
        assert_eq!(masked.lines().count(), text.lines().count(), "lines stay");
        assert_eq!(masked.split_whitespace().collect::<Vec<_>>().join(" "), expect);
    }

    #[test]
    fn comments_strings_and_characters_are_blanked() {
        check("a // b\nc", "a c");
        check("a /* x /* y */ \n z */ b", "a b");
        check(r#"f("a\"b{", x)"#, "f( , x)");
        check("r#\"{\"}\"# r#type", "r#type");
        check("br\"{\" b\"}\" x", "b x");
        check("'{' b'\\'' '\\u{1}' 'é' &'a str 'b: loop", "b &'a str 'b: loop");
    }

    #[test]
    fn strings_are_kept_with_their_lines() {
        let text =
            "a(\"x\\\"y\");\n// \"no\"\nb(b\"z\", 'c', \"two\nlines\", r#\"\"q\"\"#, \"\");\nr(\"last\");\n";
        let literals = Source::new("a.rs", text).literals;
        let literals: Vec<(usize, &str)> = literals.iter().map(|it| (it.line, it.text.as_str())).collect();
        let expected = [(0, "x\\\"y"), (2, "z"), (2, "two\nlines"), (3, "\"q\""), (3, ""), (4, "last")];
        assert_eq!(literals, expected);
    }

    #[test]
    fn a_line_of_a_string_is_no_comment() {
        let source = Source::new("a.rs", "f(\n\"a\n  // b\n  c\"); // d\n/* e\n f */\n  /// g\n\n");
        let marks: Vec<bool> = source.lines.iter().map(Line::is_comment).collect();
        assert_eq!(marks, [false, false, false, false, true, true, true, false]);
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("x.unsafe_code(unsafe)", "unsafe"));
        assert!(!has_word("unsafe_code", "unsafe"));
    }

    #[test]
    fn test_modules_are_marked_to_their_closing_brace() {
        let source = Source::new(
            "crates/base/src/a.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n",
        );
        let marks: Vec<bool> = source.lines.iter().map(|l| l.is_test).collect();
        assert_eq!(marks, [false, true, true, true, true, false]);
        assert_eq!(source.crate_name(), Some("base"));
    }

    #[test]
    fn a_declaration_under_cfg_test_marks_itself_only() {
        let source = Source::new("crates/base/src/a.rs", "#[cfg(test)]\nmod model;\nfn c() {}\n");
        assert!(!source.lines[2].is_test && source.lines[1].is_test);
        assert_eq!(source.test_files(), ["crates/base/src/a/model.rs", "crates/base/src/a/model/mod.rs"]);
        let source = Source::new(
            "crates/base/src/a.rs",
            "#[cfg(test)]\n#[path = \"a_tests.rs\"]\nmod tests;\nfn c() {}\n",
        );
        assert_eq!(source.test_files()[0], "crates/base/src/a_tests.rs");
        assert!(source.lines[2].is_test && !source.lines[3].is_test);
    }
}
