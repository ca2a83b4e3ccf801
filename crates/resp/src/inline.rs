//! Requests as a person types them: words between blanks, quoted as in redis-cli.
//!
//! | written | means |
//! |---|---|
//! | `a b` | two words; blanks are space, tab, CR, LF, and before a word or behind a quote VT and FF too |
//! | `"a b"` | one word; `\n \r \t \b \a` and `\xHH` are bytes, `\` before anything else is that |
//! | `'a b'` | one word; only `\'` is special |
//! | `fo"o b"` | one word: a quote may open inside a word; a blank or the end must follow its close |
//!
//! A word is never longer than what was written, so it is decoded in place: its bytes move to the front of
//! the room it was written in, and nothing is allocated.
use crate::{ProtocolError, Span};

/// Splits `line` (without its line end) into words, decoded in place, whose spans are relative to the line.
pub fn split_line(line: &mut [u8], spans: &mut Vec<Span>) -> Result<(), ProtocolError> {
    let mut read = 0;
    loop {
        read += line[read..].iter().take_while(|b| is_space(**b)).count();
        if read == line.len() {
            return Ok(());
        }
        let mut word = Word { line, start: read, read, write: read };
        word.decode()?;
        spans.push(Span { start: word.start, len: word.write - word.start });
        read = word.read;
    }
}

/// [`split_line`] for a line without quotes. `origin` is added to the start of each span.
pub(crate) fn split_plain(line: &[u8], origin: usize, spans: &mut Vec<Span>) {
    let mut read = 0;
    loop {
        read += line[read..].iter().take_while(|b| is_space(**b)).count();
        if read == line.len() {
            return;
        }
        let len = line[read..].iter().take_while(|b| !ends_word(**b)).count();
        spans.push(Span { start: origin + read, len });
        read += len;
    }
}

/// Whether a byte ends a word that is not quoted.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// C's `isspace` in the plain locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// One word being decoded: `read` is ahead of `write`, or at it.
struct Word<'a> {
    line: &'a mut [u8],
    start: usize,
    read: usize,
    write: usize,
}

impl Word<'_> {
    /// Decodes the word up to the blank or quote that ends it, or the line's end.
    fn decode(&mut self) -> Result<(), ProtocolError> {
        while let Some(byte) = self.take() {
            match byte {
                blank if ends_word(blank) => return Ok(()),
                b'"' => return self.decode_double_quoted(),
                b'\'' => return self.decode_single_quoted(),
                _ => self.put(byte),
            }
        }
        Ok(())
    }

    /// Goes on behind a `"`, up to the one that closes it.
    fn decode_double_quoted(&mut self) -> Result<(), ProtocolError> {
        loop {
            match self.take().ok_or(ProtocolError::UnbalancedQuotes)? {
                b'"' => return self.close(),
                b'\\' => {
                    let byte = self.take_escape();
                    self.put(byte);
                }
                byte => self.put(byte),
            }
        }
    }

    /// Goes on behind a `'`, up to the one that closes it.
    fn decode_single_quoted(&mut self) -> Result<(), ProtocolError> {
        loop {
            match self.take().ok_or(ProtocolError::UnbalancedQuotes)? {
                b'\'' => return self.close(),
                b'\\' if self.peek() == Some(b'\'') => {
                    self.read += 1;
                    self.put(b'\'');
                }
                byte => self.put(byte),
            }
        }
    }

    /// The byte that an escape stands for, of which the backslash has been read. At the end of the line it is
    /// a backslash, and the quote stays open.
    fn take_escape(&mut self) -> u8 {
        if let [b'x', high, low, ..] = self.line[self.read..]
            && let (Some(high), Some(low)) = ((high as char).to_digit(16), (low as char).to_digit(16))
        {
            self.read += 3;
            return (high << 4 | low) as u8;
        }
        match self.take() {
            None => b'\\',
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'b') => 0x08,
            Some(b'a') => 0x07,
            Some(byte) => byte,
        }
    }

    /// A quote has closed: a blank or the line's end must follow.
    fn close(&self) -> Result<(), ProtocolError> {
        match self.peek() {
            Some(byte) if !is_space(byte) => Err(ProtocolError::UnbalancedQuotes),
            _ => Ok(()),
        }
    }

    /// The next byte, without taking it.
    fn peek(&self) -> Option<u8> {
        self.line.get(self.read).copied()
    }

    /// Takes the next byte.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.read += 1;
        Some(byte)
    }

    /// Appends a byte to the decoded word.
    fn put(&mut self, byte: u8) {
        debug_assert!(self.write < self.read, "a word is never longer than it was written");
        self.line[self.write] = byte;
        self.write += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words between bars, or "error".
    #[track_caller]
    fn check(line: &[u8], expect: &[u8]) {
        let mut line = line.to_vec();
        let mut spans = Vec::new();
        let words = match split_line(&mut line, &mut spans) {
            Err(_) => b"error".to_vec(),
            Ok(()) => {
                let words: Vec<_> = spans.iter().map(|s| &line[s.start..][..s.len]).collect();
                words.join(&b'|')
            }
        };
        assert_eq!(words, expect, "{} instead of {}", words.escape_ascii(), expect.escape_ascii());
    }

    #[test]
    fn blanks_separate_words() {
        check(b"", b"");
        check(b"  \t ", b"");
        check(b"PING", b"PING");
        check(b"  set  a\tb \r", b"set|a|b");
        check(b"\x0bPING\x0c", b"PING\x0c");
        check(b"PING a\x0bb", b"PING|a\x0bb");
        check(b"PING a\0b", b"PING|a\0b");
    }

    #[test]
    fn double_quotes_keep_blanks_and_decode_escapes() {
        check(b"PING \"a b\"", b"PING|a b");
        check(b"PING \"\\x41\\n\\xzz\\q\"", b"PING|A\nxzzq");
        check(b"PING \"\\r\\t\\b\\a\\\\\\\"\"", b"PING|\r\t\x08\x07\\\"");
        check(b"PING \"\\xfF\\x4\" x", b"PING|\xffx4|x");
        check(b"\"\" x", b"|x");
        check(b"PING fo\"o b\"", b"PING|foo b");
        check(b"PING \"a\"\x0bx", b"PING|a|x");
    }

    #[test]
    fn single_quotes_keep_everything_but_their_own_escape() {
        check(b"PING 'a\\'b\\n'", b"PING|a'b\\n");
        check(b"PING '\"' ''", b"PING|\"|");
    }

    #[test]
    fn open_quotes_and_quotes_that_close_inside_a_word_are_refused() {
        for line in [
            &b"PING \"a"[..],
            b"PING 'a",
            b"PING 'a'b",
            b"PING \"a\"b",
            b"PING \"a\\",
            b"PING \"a\\\"",
            b"'a\\'",
        ] {
            check(line, b"error");
        }
    }
}
