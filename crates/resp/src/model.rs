//! The naive twin of the parser: reads a whole stream at once, the way the protocol's description reads, with no state
//! between calls and no care for speed.
use crate::{Limits, ProtocolError, Span, split_line};

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
    let end = stream.iter().position(|b| *b == b'\r')? + 2;
    let line = stream.get(..end)?;
    *stream = &stream[end..];
    Some(line)
}

/// The number on a line, which still has its end.
fn number(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line.get(..line.len().checked_sub(2)?)?).ok()?;
    text.parse().ok().filter(|n: &i64| n.to_string() == text)
}

fn parse_inline(stream: &mut &[u8]) -> Result<Option<Vec<Vec<u8>>>, ProtocolError> {
    let Some(end) = stream.iter().position(|b| *b == b'\n') else { return Ok(None) };
    let mut line = stream[..end].to_vec();
    *stream = &stream[end + 1..];
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    let mut spans: Vec<Span> = Vec::new();
    split_line(&mut line, &mut spans)?;
    Ok(Some(spans.iter().map(|s| line[s.start..][..s.len].to_vec()).collect()))
}
