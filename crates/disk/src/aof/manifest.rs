//! The manifest of an append-only file: a line for each file, in the order in which they are read.
//!
//! ```text
//! # sum 5f1c0e2a9d3b4c77 of what follows
//! file appendonly.aof.3.base.rdb seq 3 type b
//! file appendonly.aof.3.incr.aof seq 3 type i
//! file "name with spaces.2.incr.aof" seq 2 type h startoffset 8
//! ```
//!
//! Type `b` is the base, of which there is one at most; `i` are increments, whose numbers ascend; `h` are
//! files that were replaced and wait to be removed. Lines with `#` say nothing. Words that are not known are
//! kept out: Redis 8 writes `startoffset` and `endoffset`, which count what replicas were sent.
//!
//! A letter decides whether a file is read or removed, so the first line has the sum of all others (the
//! checksum of dump files). Redis takes it for a comment, and leaves it out when it writes the list itself.
use crate::checksum::checksum;
use base::quotes::{quoted, words};
use base::text::parse_i64;

/// A longer line is refused.
const LINE_BYTES_MAX: usize = 1024;
const TOO_LONG: &str = "The AOF manifest file contains too long line";
/// The line with the sum: what stands before it and behind it.
const SUM: (&str, &str) = ("# sum ", " of what follows\n");
const OTHER_SUM: &str = "The lines below are not those that this sum was made of: the file was cut or changed. \
    Without this line they are taken as they are";

/// Which files there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    pub base: Option<Part>,
    /// In the order in which they are read.
    pub increments: Vec<Part>,
    /// Files that are not needed any more.
    pub history: Vec<Part>,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// In the folder of the manifest.
    pub name: Vec<u8>,
    /// Of the base, or of the increment.
    pub number: u64,
}

/// Which file a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Base,
    History,
    Increment,
}

/// What is wrong with a manifest, and in which line, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManifestError {
    pub line: usize,
    pub what: &'static str,
}

impl Manifest {
    /// Reads the text of a manifest.
    pub fn parse(text: &[u8]) -> Result<Manifest, ManifestError> {
        const EMPTY: &str = "Found an empty AOF manifest";
        if text.starts_with(SUM.0.as_bytes()) && sum_line(rest_of(text)).as_bytes() != first_line(text) {
            return Err(ManifestError { line: 1, what: OTHER_SUM });
        }
        let mut manifest = Manifest::default();
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if text.is_empty() {
            return Err(ManifestError { line: 1, what: EMPTY });
        }
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let done = if line.len() >= LINE_BYTES_MAX {
                Err(TOO_LONG)
            } else if line.starts_with(b"#") {
                Ok(())
            } else {
                part_of(line).and_then(|(sort, part)| match line_of(&part, 'b').len() > LINE_BYTES_MAX {
                    // In quotes a name may be four times as long; what is read can be written and read again.
                    true => Err(TOO_LONG),
                    false => manifest.add(sort, part),
                })
            };
            done.map_err(|what| ManifestError { line: index + 1, what })?;
        }
        // Whoever wrote it had some data.
        if manifest.base.is_none() && manifest.increments.is_empty() {
            return Err(ManifestError { line: 1, what: EMPTY });
        }
        Ok(manifest)
    }

    fn add(&mut self, sort: Sort, part: Part) -> Result<(), &'static str> {
        match sort {
            Sort::Base if self.base.is_some() => return Err("Found duplicate base file information"),
            Sort::Base => self.base = Some(part),
            Sort::History => self.history.push(part),
            Sort::Increment if self.increments.last().is_some_and(|last| last.number >= part.number) => {
                return Err("Found a non-monotonic sequence number");
            }
            Sort::Increment => self.increments.push(part),
        }
        Ok(())
    }

    /// The text of the manifest.
    pub fn text(&self) -> Vec<u8> {
        let lines =
            [(&self.base.clone().into_iter().collect(), 'b'), (&self.history, 'h'), (&self.increments, 'i')];
        let mut text = Vec::new();
        for (parts, sort) in lines {
            parts.iter().for_each(|part| text.extend(line_of(part, sort)));
        }
        [sum_line(&text).into_bytes(), text].concat()
    }

    /// All files that it lists.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.base.iter().chain(&self.increments).chain(&self.history)
    }
}

/// The line in front of these.
fn sum_line(lines: &[u8]) -> String {
    format!("{}{:016x}{}", SUM.0, checksum(lines), SUM.1)
}

/// The first line with its end.
fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
    &text[..end]
}

fn rest_of(text: &[u8]) -> &[u8] {
    &text[first_line(text).len()..]
}

/// The line about a file, with its end.
fn line_of(part: &Part, sort: char) -> Vec<u8> {
    let rest = format!(" seq {} type {sort}\n", part.number);
    [b"file ", &shown(&part.name)[..], rest.as_bytes()].concat()
}

/// A name, in quotes where it needs them.
fn shown(name: &[u8]) -> Vec<u8> {
    let needs = |byte: &u8| !byte.is_ascii_graphic() || matches!(byte, b'"' | b'\'' | b'\\');
    if name.is_empty() || name.iter().any(needs) { quoted(name) } else { name.to_vec() }
}

/// The file that a line is about.
fn part_of(line: &[u8]) -> Result<(Sort, Part), &'static str> {
    const INVALID: &str = "Invalid AOF manifest file format";
    let words = words(line).filter(|words| words.len() >= 6 && words.len() % 2 == 0).ok_or(INVALID)?;
    let (mut name, mut number, mut sort) = (None, None, None);
    for pair in words.chunks_exact(2) {
        let value = &pair[1];
        match pair[0].to_ascii_lowercase().as_slice() {
            // Two lines have become one.
            b"file" if name.is_some() => return Err(INVALID),
            b"file" if value.contains(&b'/') => return Err("File can't be a path, just a filename"),
            b"file" => name = Some(value.clone()),
            b"seq" => number = parse_i64(value).and_then(|number| u64::try_from(number).ok()),
            b"type" => {
                sort = Some(match value.as_slice() {
                    b"b" => Sort::Base,
                    b"h" => Sort::History,
                    b"i" => Sort::Increment,
                    _ => return Err("Unknown AOF file type"),
                });
            }
            _ => {}
        }
    }
    let number = number.filter(|number| *number > 0).ok_or(INVALID)?;
    let name = name.filter(|name| !name.is_empty()).ok_or(INVALID)?;
    Ok((sort.ok_or(INVALID)?, Part { name, number }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn part(name: &str, number: u64) -> Part {
        Part { name: name.into(), number }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let manifest = Manifest {
            base: Some(part("a.1.base.rdb", 1)),
            increments: vec![part("a b.3.incr.aof", 3), part("it's.4.incr.aof", 4)],
            history: vec![part("a.1.incr.aof", 1)],
        };
        let text = manifest.text();
        assert_eq!(Manifest::parse(&text), Ok(manifest), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn manifests_of_redis_are_read() {
        let text = "# two files\nfile \"app end.aof.3.base.rdb\" seq 3 type b\n\
                    FILE \"app end.aof.3.incr.aof\" SEQ 3 TYPE i startoffset 8\n";
        let manifest = Manifest::parse(text.as_bytes()).unwrap();
        assert_eq!(manifest.base, Some(part("app end.aof.3.base.rdb", 3)));
        assert_eq!(manifest.increments, [part("app end.aof.3.incr.aof", 3)]);
    }

    #[test]
    fn no_byte_of_it_is_cut_or_changed_unnoticed() {
        let manifest = Manifest {
            base: Some(part("a.aof.2.base.rdb", 2)),
            increments: vec![part("a.aof.3.incr.aof", 3), part("a.aof.4.incr.aof", 4)],
            history: vec![part("a.aof.2.incr.aof", 2)],
        };
        let mut text = manifest.text();
        for len in 0..text.len() {
            // The last end of a line may be missing, in files of Redis.
            assert!(Manifest::parse(&text[..len]).is_err(), "{len}");
        }
        for at in 0..text.len() {
            for bit in 0..8 {
                text[at] ^= 1 << bit;
                // In the first line it may be a comment then, and all others are whole.
                let found = Manifest::parse(&text);
                assert!(found.is_err() || found == Ok(manifest.clone()), "bit {bit} of {at}");
                text[at] ^= 1 << bit;
            }
        }
        let by_hand = rest_of(&text);
        assert_eq!(Manifest::parse(by_hand), Ok(manifest), "without the sum, as Redis writes it");
        let joined = by_hand.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte });
        assert!(Manifest::parse(&joined.collect::<Vec<u8>>()).is_err());
        assert!(Manifest::parse(b"# nothing\nfile a seq 1 type h\n").is_err(), "no data is listed");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let long = format!("#{}", "x".repeat(1100));
        for (text, line, what) in [
            ("", 1, "Found an empty AOF manifest"),
            ("file a seq 1 type i\n\n", 2, "Invalid AOF manifest file format"),
            ("file a seq 1 type", 1, "Invalid AOF manifest file format"),
            ("file a seq 0 type i", 1, "Invalid AOF manifest file format"),
            ("file a seq x type i", 1, "Invalid AOF manifest file format"),
            ("file a/b seq 1 type i", 1, "File can't be a path, just a filename"),
            ("file a seq 1 type x", 1, "Unknown AOF file type"),
            ("file a seq 1 type b\nfile b seq 2 type b", 2, "Found duplicate base file information"),
            ("file a seq 2 type i\nfile b seq 2 type i", 2, "Found a non-monotonic sequence number"),
            (&long, 1, "The AOF manifest file contains too long line"),
        ] {
            assert_eq!(Manifest::parse(text.as_bytes()), Err(ManifestError { line, what }), "{text}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_in_quotes_is_refused_when_it_is_read() {
        for (len, is_read) in [(200, true), (240, true), (260, false)] {
            let mut text = b"file ".to_vec();
            text.extend(std::iter::repeat_n(0xff, len));
            text.extend(b" seq 1 type b");
            let found = Manifest::parse(&text);
            assert_eq!(found.is_ok(), is_read, "{len}");
            found.into_iter().for_each(|found| assert_eq!(Manifest::parse(&found.text()), Ok(found)));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused() {
        let mut random = Random::new(3);
        let pieces = ["file ", "a", "seq ", "1 ", "type ", "b", "i ", "\n", "\"", "#", "/", "\\x", " "];
        for _ in 0..20_000 {
            let text: String = (0..random.below(20)).map(|_| pieces[random.below(13) as usize]).collect();
            if let Ok(manifest) = Manifest::parse(text.as_bytes()) {
                assert_eq!(Manifest::parse(&manifest.text()), Ok(manifest), "{text:?}");
            }
        }
    }
}
