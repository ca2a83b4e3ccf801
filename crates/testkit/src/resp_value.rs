//! A reply as a tree that keeps its type marks, and as the lines in which transcripts hold it:
//!
//! ```text
//! *2\r\n$3\r\nfoo\r\n:1\r\n        *2
//!                                    $3 foo
//!                                    :1
//! ```
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+`, `-`, `:`, `,`, `#`, `(`: one line of text. `_` too, its text empty.
    Line(u8, Vec<u8>),
    /// `$`, `=`, `!`: bytes after their length.
    Blob(u8, Vec<u8>),
    /// `$-1` and `*-1`: RESP2's nulls, by their mark.
    Null(u8),
    /// `*`, `~`, `>`, and `%` with keys and values in turn.
    Aggregate(u8, Vec<Value>),
}

impl Value {
    /// The first value of `wire` and where it ends; None where more is to come.
    pub fn parse(wire: &[u8]) -> io::Result<Option<(Value, usize)>> {
        let mut at = 0;
        Ok(parse_at(wire, &mut at)?.map(|value| (value, at)))
    }

    /// The lines of a transcript.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.append_lines(0, &mut lines);
        lines
    }

    fn append_lines(&self, depth: usize, lines: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        match self {
            Value::Line(mark, text) => lines.push(format!("{indent}{}{}", *mark as char, escape(text))),
            Value::Blob(mark, bytes) if bytes.is_empty() => lines.push(format!("{indent}{}0", *mark as char)),
            Value::Blob(mark, bytes) => {
                lines.push(format!("{indent}{}{} {}", *mark as char, bytes.len(), escape(bytes)));
            }
            Value::Null(mark) => lines.push(format!("{indent}{}-1", *mark as char)),
            Value::Aggregate(mark, elements) => {
                let count = if *mark == b'%' { elements.len() / 2 } else { elements.len() };
                lines.push(format!("{indent}{}{count}", *mark as char));
                elements.iter().for_each(|element| element.append_lines(depth + 1, lines));
            }
        }
    }

    /// Sorts the elements of every array and set in it, and maps by their keys: for replies whose order is
    /// nobody's promise.
    pub fn sort(&mut self) {
        if let Value::Aggregate(mark, elements) = self {
            elements.iter_mut().for_each(Value::sort);
            let width = if *mark == b'%' { 2 } else { 1 };
            let mut parts: Vec<Vec<Value>> = elements.chunks(width).map(<[Value]>::to_vec).collect();
            parts.sort_by_key(|part| part[0].lines());
            *elements = parts.concat();
        }
    }

    /// The text of a line or blob.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Value::Line(_, text) | Value::Blob(_, text) => Some(text),
            Value::Null(_) | Value::Aggregate(..) => None,
        }
    }
}

fn parse_at(wire: &[u8], at: &mut usize) -> io::Result<Option<Value>> {
    let Some(end) = wire[*at..].windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &wire[*at..*at + end];
    *at += end + 2;
    let (mark, text) = line.split_first().ok_or_else(|| broken(line))?;
    match mark {
        b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Ok(Some(Value::Line(*mark, text.to_vec()))),
        b'$' | b'=' | b'!' => parse_blob(wire, at, *mark, number(text)?),
        b'*' | b'~' | b'>' | b'%' => parse_aggregate(wire, at, *mark, number(text)?),
        _ => Err(broken(line)),
    }
}

fn parse_blob(wire: &[u8], at: &mut usize, mark: u8, len: i64) -> io::Result<Option<Value>> {
    let Ok(len) = usize::try_from(len) else { return Ok(Some(Value::Null(mark))) };
    let Some(bytes) = wire.get(*at..*at + len) else { return Ok(None) };
    match wire.get(*at + len..*at + len + 2) {
        None => return Ok(None),
        Some(b"\r\n") => {}
        Some(end) => return Err(broken(end)),
    }
    *at += len + 2;
    Ok(Some(Value::Blob(mark, bytes.to_vec())))
}

fn parse_aggregate(wire: &[u8], at: &mut usize, mark: u8, count: i64) -> io::Result<Option<Value>> {
    let Ok(count) = usize::try_from(count) else { return Ok(Some(Value::Null(mark))) };
    let count = if mark == b'%' { count * 2 } else { count };
    let mut elements = Vec::new();
    for _ in 0..count {
        let Some(element) = parse_at(wire, at)? else { return Ok(None) };
        elements.push(element);
    }
    Ok(Some(Value::Aggregate(mark, elements)))
}

fn number(text: &[u8]) -> io::Result<i64> {
    base::text::parse_i64(text).ok_or_else(|| broken(text))
}

fn broken(line: &[u8]) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no reply of RESP: {}", escape(line)))
}

/// Printable text as it is, other bytes and the backslash as `\xNN`, also spaces at either end, which editors
/// eat.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (i, byte) in bytes.iter().enumerate() {
        let is_inside = i > 0 && i + 1 < bytes.len();
        match byte {
            b'\\' => text.push_str("\\x5c"),
            b' ' if is_inside => text.push(' '),
            b if b.is_ascii_graphic() => text.push(*b as char),
            b => text.push_str(&format!("\\x{b:02x}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_read_from_any_prefix_only_when_whole() {
        let wire = b"*3\r\n$3\r\nfoo\r\n%1\r\n+a\r\n:1\r\n$-1\r\n";
        for len in 0..wire.len() {
            assert_eq!(Value::parse(&wire[..len]).unwrap(), None, "{len}");
        }
        let (value, len) = Value::parse(wire).unwrap().unwrap();
        assert_eq!(len, wire.len());
        assert_eq!(value.lines(), ["*3", "  $3 foo", "  %1", "    +a", "    :1", "  $-1"]);
    }

    #[test]
    fn bytes_that_no_editor_keeps_are_escaped() {
        assert_eq!(escape(b" a \\ \xff\r\n"), "\\x20a \\x5c \\xff\\x0d\\x0a");
    }

    #[test]
    fn a_map_is_sorted_by_its_keys() {
        let (mut value, _) = Value::parse(b"%2\r\n+b\r\n:1\r\n+a\r\n:2\r\n").unwrap().unwrap();
        value.sort();
        assert_eq!(value.lines(), ["%2", "  +a", "  :2", "  +b", "  :1"]);
    }

    #[test]
    fn sorting_reaches_arrays_inside_but_keeps_pairs_together() {
        let wire = b"*2\r\n:2\r\n*2\r\n:9\r\n:1\r\n";
        let (mut value, _) = Value::parse(wire).unwrap().unwrap();
        value.sort();
        assert_eq!(value.lines(), ["*2", "  *2", "    :1", "    :9", "  :2"]);
    }
}
