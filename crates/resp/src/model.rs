//! The naive twin of the parser: reads a whole stream at once, the way the protocol's description reads, with
//! no state between calls and no care for speed.
use crate::{Limits, ProtocolError};

pub(crate) type Requests = Vec<Vec<Vec<u8>>>;

/// A request as clients write it.
pub(crate) fn multibulk(args: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend(format!("${}\r\n", arg.len()).bytes());
        out.extend_from_slice(arg);
        out.extend(b"\r\n");
    }
    out
}

/// The complete requests that `stream` holds, and the error at which reading it ends.
pub(crate) fn parse_all(mut stream: &[u8], limits: &Limits) -> (Requests, Option<ProtocolError>) {
    let mut requests = Vec::new();
    loop {
        match parse_one(&mut stream, limits) {
            Ok(None) => return (requests, None),
            Ok(Some(args)) if args.is_empty() => {}
            Ok(Some(args)) => requests.push(args),
            Err(error) => return (requests, Some(error)),
        }
    }
}

fn parse_one(stream: &mut &[u8], limits: &Limits) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
    match stream.first() {
        None => Ok(None),
        Some(b'*') => parse_multibulk(stream, limits),
        Some(_) => parse_inline(stream),
    }
}

fn parse_multibulk(stream: &mut &[u8], limits: &Limits) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
    let Some(header) = take_line(stream) else { return Ok(None) };
    let count = number(&header[1..])
        .filter(|n| *n <= limits.arg_count_max as i64)
        .ok_or(ProtocolError::InvalidMultibulkLength)?;
    let mut args = Vec::new();
    for _ in 0..count {
        let Some(header) = take_line(stream) else { return Ok(None) };
        if header[0] != b'$' {
            return Err(ProtocolError::ExpectedDollar(header[0]));
        }
        let len = number(&header[1..])
            .filter(|n| (0..=limits.bulk_len_bytes_max as i64).contains(n))
            .ok_or(ProtocolError::InvalidBulkLength)? as usize;
        if stream.len() < len + 2 {
            return Ok(None);
        }
        args.push(stream[..len].to_vec());
        *stream = &stream[len + 2..];
    }
    Ok(Some(args))
}

/// The next line with its CR and the byte behind it.
fn take_line<'a>(stream: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = line_end(stream, b'\r')? + 2;
    let line = stream.get(..end)?;
    *stream = &stream[end..];
    Some(line)
}

/// Where the line ends; nowhere behind a NUL.
fn line_end(stream: &[u8], end: u8) -> Option<usize> {
    let before_nul = stream.split(|b| *b == 0).next()?;
    before_nul.iter().position(|b| *b == end)
}

/// The number on a line, which still has its end.
fn number(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line.get(..line.len().checked_sub(2)?)?).ok()?;
    text.parse().ok().filter(|n: &i64| n.to_string() == text)
}

fn parse_inline(stream: &mut &[u8]) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
    let Some(end) = line_end(stream, b'\n') else { return Ok(None) };
    let line = stream[..end].strip_suffix(b"\r").unwrap_or(&stream[..end]);
    *stream = &stream[end + 1..];
    split(line).map(Some).ok_or(ProtocolError::UnbalancedQuotes)
}

/// The words of a line, each in a buffer of its own; `None` if a quote is open or closes inside a word.
fn split(mut line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let is_space = |b: u8| b == b' ' || (9..=13).contains(&b);
    let mut words = Vec::new();
    loop {
        while line.first().is_some_and(|b| is_space(*b)) {
            line = &line[1..];
        }
        if line.is_empty() {
            return Some(words);
        }
        let plain = line.iter().position(|b| b" \t\r\n\"'".contains(b)).unwrap_or(line.len());
        let (mut word, rest) = (line[..plain].to_vec(), &line[plain..]);
        line = match rest.first() {
            Some(quote @ (b'"' | b'\'')) => {
                let rest = unquote(*quote, &rest[1..], &mut word)?;
                rest.first().is_none_or(|b| is_space(*b)).then_some(rest)?
            }
            _ => rest,
        };
        words.push(word);
    }
}

/// Decodes up to the closing quote; what is behind it.
fn unquote<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, len) = match (quote, rest) {
            (_, [byte, tail @ ..]) if *byte == quote => return Some(tail),
            (b'"', [b'\\', b'x', high, low, ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let text = String::from_utf8_lossy(&rest[2..4]).into_owned();
                (u8::from_str_radix(&text, 16).ok()?, 4)
            }
            (b'"', [b'\\', byte, ..]) => {
                let names = b"n\nr\rt\tb\x08a\x07";
                (names.chunks(2).find(|pair| pair[0] == *byte).map_or(*byte, |pair| pair[1]), 2)
            }
            (b'\'', [b'\\', b'\'', ..]) => (b'\'', 2),
            (_, [byte, ..]) => (*byte, 1),
            (_, []) => return None,
        };
        word.push(byte);
        rest = &rest[len..];
    }
}
