//! Requests: multibulk and inline, incremental over any split of the bytes.
//!
//! ```text
//! *2\r\n  $3\r\n  GET\r\n  $5\r\n  key:1\r\n     multibulk: arguments of any bytes behind their lengths
//! GET key:1\r\n                                  inline: one line, see inline.rs
//! ```
//!
//! A connection's parser is in one of three states, told apart by `args_left` and `bulk_len`: between
//! requests; before an argument's header; before an argument's bytes. All it keeps is relative to the start
//! of the unfinished request, so the owner of the buffer may move the bytes as long as it passes the new
//! start.
//!
//! Two habits of Redis are kept, because what clients get away with depends on them. The byte behind a CR and
//! the two bytes behind an argument are taken for the line's end without a look. And no line's end is found
//! behind a NUL, so a line with one is never complete, and an error once it is too long.
//!
//! On the path of every request: nothing is allocated but room in the caller's list of spans, and, for a
//! request of which a part has yet to come, a list of the arguments that are there.
use crate::inline::split_plain;
use crate::{ProtocolError, Span, split_line};
use std::hint::cold_path;

/// What a client may send.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long an argument may be: `proto-max-bulk-len`.
    pub bulk_len_bytes_max: u64,
    /// How many arguments a request may have.
    pub arg_count_max: u64,
    /// How long an inline request or a header may be whose end has not come.
    pub inline_len_bytes_max: usize,
    /// Whether the client has authenticated, or need not. Until then [`UNAUTHENTICATED_ARGS_MAX`] and
    /// [`UNAUTHENTICATED_BULK_BYTES_MAX`] hold as well.
    pub is_authenticated: bool,
}

/// Enough for AUTH and HELLO, too little to fill the memory with.
const UNAUTHENTICATED_ARGS_MAX: u64 = 10;
const UNAUTHENTICATED_BULK_BYTES_MAX: u64 = 16 * 1024;

/// A line that has its end may be longer than the limit by this much. It is how many bytes Redis reads at a
/// time, because it checks the length only after a read.
const INLINE_GRACE_BYTES: usize = 16 * 1024;

/// `*9`
const PLAIN_COUNT_BYTES: usize = 2;
const LINE_END: &[u8] = b"\r\n";

/// Room is made for at most so many arguments at once, however many the header announces.
const RESERVE_MAX: usize = 1024;

/// Redis's own defaults.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            bulk_len_bytes_max: 512 * 1024 * 1024,
            arg_count_max: i32::MAX as u64,
            inline_len_bytes_max: 64 * 1024,
            is_authenticated: true,
        }
    }
}

/// What a call of the parser found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// One request: its spans were appended, and `*at` moved behind it.
    Request(Framing),
    /// All bytes are read and the request is not complete. `wanted` bytes more are known to be needed (0:
    /// unknown), so that the reader can reserve room for a large argument once.
    Incomplete { wanted: usize },
}

/// Whether a request's bytes are known to be just those that its arguments have as an array of bulk strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// They are. The request has one to nine arguments of at most 999 bytes.
    Canonical,
    /// They may be, or may not: it is inline, say, or a line of it ends otherwise.
    Unknown,
}

/// The state between two reads of one connection.
#[derive(Debug, Default)]
pub struct Parser {
    /// Arguments of the unfinished multibulk request still to come; 0 between requests.
    args_left: usize,
    /// How far that request has been read, from its start.
    read: usize,
    /// The length of the argument whose header is read and whose bytes are not.
    bulk_len: Option<usize>,
    /// The arguments of that request which have come, relative to its start. Empty where requests come as a
    /// whole.
    early_spans: Vec<Span>,
}

/// What stood at the start of a request.
enum Start {
    Multibulk,
    Inline,
    /// An inline request with quotes, which is still to be decoded.
    Quoted,
    Empty,
    Incomplete,
}

impl Parser {
    /// A parser between two requests. Allocates nothing.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Parses the next request of `buffer[*at..]`, where `*at` is where the last request ended. Appends its
    /// spans, which are relative to `buffer`, to `spans`; requests without arguments, such as an empty line,
    /// are passed over.
    ///
    /// On `Incomplete` `*at` is where the unfinished request starts. Call again with that start and more
    /// bytes: none is read twice but those of the last unfinished line. In between the buffer may move or
    /// lose what is before `*at`, and `spans` may be emptied.
    ///
    /// After an error nothing is appended, and the connection is to be closed: where the next request would
    /// begin is not known.
    ///
    /// The buffer is written to only to decode the quotes of an inline request, inside that request.
    pub fn parse(
        &mut self,
        buffer: &mut [u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Parsed, ProtocolError> {
        match self.parse_plain(buffer, at, spans, limits)? {
            Some(parsed) => Ok(parsed),
            None => self.parse_quoted(buffer, at, spans),
        }
    }

    /// As [`Parser::parse`], but never writes to the buffer, so that what was parsed may be parsed again.
    /// Returns None, and takes nothing, where the next request is one for [`Parser::parse_quoted`]. It has
    /// callers off the path of requests too, for whose sake the compiler would leave it out of line.
    #[inline(always)]
    pub fn parse_plain(
        &mut self,
        buffer: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Option<Parsed>, ProtocolError> {
        if self.args_left == 0
            && let Some(end) = plain_request(&buffer[*at..], *at, spans, limits)
        {
            *at += end;
            return Ok(Some(Parsed::Request(Framing::Canonical)));
        }
        while self.args_left == 0 {
            match self.start(buffer, at, spans, limits)? {
                Start::Multibulk | Start::Empty => {}
                Start::Inline => return Ok(Some(Parsed::Request(Framing::Unknown))),
                Start::Quoted => {
                    cold_path();
                    return Ok(None);
                }
                Start::Incomplete => return Ok(Some(Parsed::Incomplete { wanted: 0 })),
            }
        }
        let request = &buffer[*at..];
        if !self.early_spans.is_empty() {
            cold_path();
            return self.resume(request, at, spans, limits).map(Some);
        }
        let first = spans.len();
        spans.reserve(self.args_left.min(RESERVE_MAX));
        let parsed = self.read_args(request, *at, spans, limits);
        if let Ok(Parsed::Request(_)) = parsed {
            *at += std::mem::take(&mut self.read);
        } else {
            cold_path();
            self.early_spans.extend(spans.drain(first..).map(|s| Span { start: s.start - *at, len: s.len }));
        }
        parsed.map(Some)
    }

    /// Parses the inline request with quotes at which [`Parser::parse_plain`] has stopped; its line is there
    /// as a whole. It is decoded where it lies, so its line cannot be parsed again.
    #[cold]
    pub fn parse_quoted(
        &mut self,
        buffer: &mut [u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
    ) -> Result<Parsed, ProtocolError> {
        let rest = &mut buffer[*at..];
        let end = memchr::memchr(b'\n', rest).expect("parse_plain has found the line's end");
        let first = spans.len();
        let len = without_cr(&rest[..end]).len();
        split_line(&mut rest[..len], spans).inspect_err(|_| spans.truncate(first))?;
        spans[first..].iter_mut().for_each(|span| span.start += *at);
        *at += end + 1;
        Ok(Parsed::Request(Framing::Unknown))
    }

    /// How many bytes it has allocated for the arguments of an unfinished request.
    pub fn room_bytes(&self) -> usize {
        self.early_spans.capacity() * size_of::<Span>()
    }

    /// Goes on with a request of which some arguments are read.
    #[cold]
    fn resume(
        &mut self,
        request: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Parsed, ProtocolError> {
        let mut early = std::mem::take(&mut self.early_spans);
        let parsed = self.read_args(request, 0, &mut early, limits)?;
        if let Parsed::Request(_) = parsed {
            // They may be millions, and are most often all that there is.
            if *at > 0 {
                early.iter_mut().for_each(|span| span.start += *at);
            }
            match spans.is_empty() {
                true => *spans = early,
                false => spans.append(&mut early),
            }
            *at += std::mem::take(&mut self.read);
        } else {
            self.early_spans = early;
        }
        Ok(parsed)
    }

    /// Reads as many of the arguments as are there. `origin` is where `request` starts in what the spans
    /// count from.
    #[inline(always)]
    fn read_args(
        &mut self,
        request: &[u8],
        origin: usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Parsed, ProtocolError> {
        let (mut read, mut left) = (self.read, self.args_left);
        let mut pending = self.bulk_len.take();
        let mut wanted = 0;
        while left > 0 {
            if pending.is_none() {
                let bytes = &request[read..];
                let (len, header) = match plain_bulk_header(bytes, limits) {
                    Some(header) => header,
                    None => {
                        cold_path();
                        match bulk_header(bytes, limits)? {
                            Some(header) => header,
                            None => break,
                        }
                    }
                };
                read += header;
                pending = Some(len);
            }
            let len = pending.unwrap_or_default();
            let end = read.saturating_add(len).saturating_add(2);
            if end > request.len() {
                cold_path();
                wanted = end - request.len();
                break;
            }
            spans.push(Span { start: origin + read, len });
            (read, left, pending) = (end, left - 1, None);
        }
        (self.read, self.args_left, self.bulk_len) = (read, left, pending);
        let is_whole = left == 0;
        Ok(if is_whole { Parsed::Request(Framing::Unknown) } else { Parsed::Incomplete { wanted } })
    }

    /// Reads the first line of a request, and all of an inline one.
    #[inline]
    fn start(
        &mut self,
        buffer: &[u8],
        at: &mut usize,
        spans: &mut Vec<Span>,
        limits: &Limits,
    ) -> Result<Start, ProtocolError> {
        match buffer.get(*at) {
            None => Ok(Start::Incomplete),
            Some(b'*') => self.start_multibulk(&buffer[*at..], at, limits),
            Some(_) => start_inline(&buffer[*at..], at, spans, limits),
        }
    }

    /// Reads the header of a multibulk request.
    #[inline(always)]
    fn start_multibulk(
        &mut self,
        request: &[u8],
        at: &mut usize,
        limits: &Limits,
    ) -> Result<Start, ProtocolError> {
        let (count, len) = match plain_multibulk_header(request, limits) {
            Some(header) => header,
            None => {
                cold_path();
                match multibulk_header(request, limits)? {
                    Some(header) => header,
                    None => return Ok(Start::Incomplete),
                }
            }
        };
        if count == 0 {
            cold_path();
            *at += len;
            return Ok(Start::Empty);
        }
        self.args_left = count;
        self.read = len;
        Ok(Start::Multibulk)
    }
}

/// Parses a multibulk request that is there as a whole, is framed canonically, and has one to nine arguments
/// of at most 999 bytes, as nearly all are: appends its spans, and returns its length. None for all others,
/// of which nothing is taken. `origin` is where `request` starts in what the spans count from.
#[inline(always)]
fn plain_request(request: &[u8], origin: usize, spans: &mut Vec<Span>, limits: &Limits) -> Option<usize> {
    let [b'*', count @ b'1'..=b'9', ..] = *request else { return None };
    let count = usize::from(count - b'0');
    if count as u64 > limits.arg_count_max {
        return None;
    }
    // Each header is looked at together with the end of the line before it.
    let (first, mut end) = (spans.len(), PLAIN_COUNT_BYTES);
    spans.resize(first + count, Span { start: 0, len: 0 });
    for span in &mut spans[first..] {
        let Some((start, len)) =
            plain_bulk(request, end).filter(|(_, len)| *len as u64 <= limits.bulk_len_bytes_max)
        else {
            cold_path();
            spans.truncate(first);
            return None;
        };
        *span = Span { start: origin + start, len };
        end = start + len;
    }
    if request.get(end..end + LINE_END.len()) != Some(LINE_END) {
        cold_path();
        spans.truncate(first);
        return None;
    }
    Some(end + LINE_END.len())
}

/// Where the bulk string begins whose header follows the end of a line at `at`, and how long it is. None
/// where that is not a header of one to three digits, as short as can be, or not all there.
#[inline(always)]
fn plain_bulk(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let text = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    let digit = |index: u32| (text >> (8 * index) & 0xff).wrapping_sub(u64::from(b'0'));
    let is_framed = |mask: u64, frame: &[u8; 8]| text & mask == u64::from_le_bytes(*frame);
    if is_framed(0x0000_ffff_00ff_ffff, b"\r\n$\0\r\n\0\0") {
        let len = digit(3);
        (len <= 9).then(|| (at + 6, len as usize))
    } else if is_framed(0x00ff_ff00_00ff_ffff, b"\r\n$\0\0\r\n\0") {
        let (tens, ones) = (digit(3), digit(4));
        (tens.wrapping_sub(1) <= 8 && ones <= 9).then(|| (at + 7, (tens * 10 + ones) as usize))
    } else if is_framed(0xffff_0000_00ff_ffff, b"\r\n$\0\0\0\r\n") {
        let (hundreds, tens, ones) = (digit(3), digit(4), digit(5));
        let are_digits = hundreds.wrapping_sub(1) <= 8 && tens <= 9 && ones <= 9;
        are_digits.then(|| (at + 8, (hundreds * 100 + tens * 10 + ones) as usize))
    } else {
        None
    }
}

/// Reads an inline request, if its line is there as a whole.
#[inline(never)]
fn start_inline(
    rest: &[u8],
    at: &mut usize,
    spans: &mut Vec<Span>,
    limits: &Limits,
) -> Result<Start, ProtocolError> {
    let is_line_end = |at: &usize| rest[*at] == b'\n';
    let Some(end) = memchr::memchr2(b'\n', 0, rest).filter(is_line_end) else {
        let is_too_long = rest.len() > limits.inline_len_bytes_max;
        return if is_too_long { Err(ProtocolError::TooBigInline) } else { Ok(Start::Incomplete) };
    };
    if end >= limits.inline_len_bytes_max + INLINE_GRACE_BYTES {
        return Err(ProtocolError::TooBigInline);
    }
    let line = without_cr(&rest[..end]);
    if memchr::memchr2(b'"', b'\'', line).is_some() {
        return Ok(Start::Quoted);
    }
    let first = spans.len();
    split_plain(line, *at, spans);
    *at += end + 1;
    Ok(if spans.len() == first { Start::Empty } else { Start::Inline })
}

/// A line without the CR before its LF.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// [`multibulk_header`] for counts of at most [`UNAUTHENTICATED_ARGS_MAX`], which nearly all are; None for
/// all others.
#[inline(always)]
fn plain_multibulk_header(bytes: &[u8], limits: &Limits) -> Option<(usize, usize)> {
    plain_header(bytes)
        .filter(|(count, _)| *count as u64 <= UNAUTHENTICATED_ARGS_MAX.min(limits.arg_count_max))
}

/// The number of arguments that `*N\r\n` announces and the header's length; `None` if its end has not come.
#[inline(never)]
fn multibulk_header(bytes: &[u8], limits: &Limits) -> Result<Option<(usize, usize)>, ProtocolError> {
    let Some(line) = header_line(bytes, limits).ok_or(ProtocolError::TooBigMultibulkCount)? else {
        return Ok(None);
    };
    let count = base::text::parse_i64(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
    let count = count.max(0) as u64;
    if count > limits.arg_count_max {
        return Err(ProtocolError::InvalidMultibulkLength);
    }
    if count > UNAUTHENTICATED_ARGS_MAX && !limits.is_authenticated {
        return Err(ProtocolError::UnauthenticatedMultibulkLength);
    }
    Ok(Some((count as usize, line.len() + 2)))
}

/// [`bulk_header`] for lengths of one to three digits, which nearly all are; None for all others.
#[inline(always)]
fn plain_bulk_header(bytes: &[u8], limits: &Limits) -> Option<(usize, usize)> {
    plain_header(bytes)
        .filter(|(bulk_len, _)| bytes[0] == b'$' && *bulk_len as u64 <= limits.bulk_len_bytes_max)
}

/// The length of the argument that `$N\r\n` announces and the header's; `None` if its end has not come.
#[inline(never)]
fn bulk_header(bytes: &[u8], limits: &Limits) -> Result<Option<(usize, usize)>, ProtocolError> {
    let Some(line) = header_line(bytes, limits).ok_or(ProtocolError::TooBigBulkCount)? else {
        return Ok(None);
    };
    let [b'$', digits @ ..] = line else {
        // The line may be empty: then its CR is the byte in question.
        return Err(ProtocolError::ExpectedDollar(bytes[0]));
    };
    let bulk_len = base::text::parse_u64(digits).ok_or(ProtocolError::InvalidBulkLength)?;
    if bulk_len > limits.bulk_len_bytes_max {
        return Err(ProtocolError::InvalidBulkLength);
    }
    if bulk_len > UNAUTHENTICATED_BULK_BYTES_MAX && !limits.is_authenticated {
        return Err(ProtocolError::UnauthenticatedBulkLength);
    }
    let bulk_len = usize::try_from(bulk_len).map_err(|_| ProtocolError::InvalidBulkLength)?;
    Ok(Some((bulk_len, line.len() + 2)))
}

/// The number in a header of one to three digits, and the header's length. None for any other header
/// (unfinished, longer, negative, wrong): the slow functions tell what it is.
#[inline(always)]
fn plain_header(bytes: &[u8]) -> Option<(usize, usize)> {
    let digit = |byte: u8| usize::from(byte.wrapping_sub(b'0'));
    match *bytes {
        [_, a @ b'0'..=b'9', b'\r', _, ..] => Some((digit(a), 4)),
        [_, a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] => Some((digit(a) * 10 + digit(b), 5)),
        [_, a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', _, ..] => {
            Some((digit(a) * 100 + digit(b) * 10 + digit(c), 6))
        }
        _ => None,
    }
}

/// The line up to its CR. The inner `None` says that its end has not come, the outer one that it has no end
/// within as many bytes as are allowed.
fn header_line<'a>(bytes: &'a [u8], limits: &Limits) -> Option<Option<&'a [u8]>> {
    match memchr::memchr2(b'\r', 0, bytes).filter(|at| bytes[*at] == b'\r') {
        Some(end) if end + 2 <= bytes.len() => Some(Some(&bytes[..end])),
        Some(_) => Some(None),
        None => (bytes.len() <= limits.inline_len_bytes_max).then_some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Args, model};
    use proptest::prelude::*;

    /// The requests of a stream that arrives in `pieces`, and the error that ends it. As a server does, drops
    /// what is executed from the buffer and forgets the spans after each read.
    fn parse_pieces(pieces: &[&[u8]], limits: &Limits) -> (model::Requests, Option<ProtocolError>) {
        let (mut parser, mut requests) = (Parser::new(), Vec::new());
        let (mut buffer, mut spans, mut at) = (Vec::new(), Vec::new(), 0);
        for piece in pieces {
            buffer.extend_from_slice(piece);
            loop {
                let first = spans.len();
                match parser.parse(&mut buffer, &mut at, &mut spans, limits) {
                    Err(error) => return (requests, Some(error)),
                    Ok(Parsed::Incomplete { .. }) => break,
                    Ok(Parsed::Request(_)) => {
                        let words = spans[first..].iter().map(|s| buffer[s.start..][..s.len].to_vec());
                        requests.push(words.collect());
                    }
                }
            }
            spans.clear();
            buffer.drain(..std::mem::take(&mut at));
        }
        (requests, None)
    }

    #[track_caller]
    fn check_error(bytes: &[u8], limits: &Limits, expect: Option<ProtocolError>) {
        assert_eq!(
            parse_pieces(&[bytes], limits).1,
            expect,
            "{}",
            bytes[..bytes.len().min(40)].escape_ascii()
        );
        let single: Vec<_> = bytes.chunks(1).collect();
        if bytes.len() < 100 {
            assert_eq!(parse_pieces(&single, limits).1, expect, "a byte at a time: {}", bytes.escape_ascii());
        }
    }

    /// Each of these was sent to Redis 8.0.2 and 7.0.15 by socket.
    #[test]
    fn wrong_streams_are_refused_as_redis_refuses_them() {
        use ProtocolError::*;
        let limits = Limits::default();
        let cases: [(&[u8], Option<ProtocolError>); 22] = [
            (b"*x\r\n", Some(InvalidMultibulkLength)),
            (b"*\r\n", Some(InvalidMultibulkLength)),
            (b"*01\r\n", Some(InvalidMultibulkLength)),
            (b"*+1\r\n", Some(InvalidMultibulkLength)),
            (b"*2147483647\r\n", None),
            (b"*2147483648\r\n", Some(InvalidMultibulkLength)),
            (b"*9223372036854775808\r\n", Some(InvalidMultibulkLength)),
            (b"*1\r\nfoo", None),
            (b"*1\r\nfoo\r\n", Some(ExpectedDollar(b'f'))),
            (b"*1\r\n\xff\r\n", Some(ExpectedDollar(0xff))),
            (b"*1\r\n\r\n", Some(ExpectedDollar(b'\r'))),
            (b"*1\r\n$x\r\n", Some(InvalidBulkLength)),
            (b"*1\r\n$\r\n", Some(InvalidBulkLength)),
            (b"*1\r\n$-1\r\n", Some(InvalidBulkLength)),
            (b"*1\r\n$-0\r\n", Some(InvalidBulkLength)),
            (b"*1\r\n$04\r\nPING\r\n", Some(InvalidBulkLength)),
            (b"*1\r\n$536870912\r\n", None),
            (b"*1\r\n$536870913\r\n", Some(InvalidBulkLength)),
            (b"PING \"a\r\n", Some(UnbalancedQuotes)),
            (b"PING 'a'b\r\n", Some(UnbalancedQuotes)),
            (b"*-5\r\nPING\r\n", None),
            (b"*1\rx$4\rxPINGab", None),
        ];
        for (bytes, expect) in cases {
            check_error(bytes, &limits, expect);
        }
    }

    #[test]
    fn lines_without_an_end_are_refused_beyond_the_limit() {
        use ProtocolError::*;
        let limits = Limits::default();
        check_error(&vec![b'a'; 65_536], &limits, None);
        check_error(&vec![b'a'; 65_537], &limits, Some(TooBigInline));
        check_error(&[b"*".to_vec(), vec![b'1'; 65_536]].concat(), &limits, Some(TooBigMultibulkCount));
        check_error(&[b"*1\r\n$".to_vec(), vec![b'1'; 65_535]].concat(), &limits, None);
        check_error(&[b"*1\r\n$".to_vec(), vec![b'1'; 65_536]].concat(), &limits, Some(TooBigBulkCount));
        check_error(&[vec![b'a'; 81_919], b"\n".to_vec()].concat(), &limits, None);
        check_error(&[vec![b'a'; 81_920], b"\n".to_vec()].concat(), &limits, Some(TooBigInline));
    }

    #[test]
    fn limits_are_tighter_before_authentication() {
        use ProtocolError::*;
        let limits = Limits { is_authenticated: false, ..Limits::default() };
        check_error(b"*10\r\n", &limits, None);
        check_error(b"*11\r\n", &limits, Some(UnauthenticatedMultibulkLength));
        check_error(b"*2147483648\r\n", &limits, Some(InvalidMultibulkLength));
        check_error(b"*1\r\n$16384\r\n", &limits, None);
        check_error(b"*1\r\n$16385\r\n", &limits, Some(UnauthenticatedBulkLength));
        check_error(b"*1\r\n$536870913\r\n", &limits, Some(InvalidBulkLength));
    }

    #[test]
    fn a_large_argument_says_how_much_is_missing() {
        let mut buffer = b"*2\r\n$3\r\nGET\r\n$1000000\r\nabc".to_vec();
        let (mut parser, mut at, mut spans) = (Parser::new(), 0, Vec::new());
        let limits = Limits::default();
        let parsed = parser.parse(&mut buffer, &mut at, &mut spans, &limits);
        assert_eq!(parsed, Ok(Parsed::Incomplete { wanted: 1_000_000 - 3 + 2 }));
        assert!(spans.is_empty() && at == 0, "nothing is handed over before the request is whole");
        buffer.resize(buffer.len() + 999_999, b'x');
        let parsed = parser.parse(&mut buffer, &mut at, &mut spans, &limits);
        assert_eq!(parsed, Ok(Parsed::Request(Framing::Unknown)));
        assert_eq!(spans, [Span { start: 8, len: 3 }, Span { start: 23, len: 1_000_000 }]);
        assert_eq!(at, buffer.len());
    }

    #[test]
    fn empty_requests_are_passed_over() {
        let stream = b"\r\n\n  \r\n*0\r\n*-1\r\nPING\n\r\n*1\r\n$0\r\n\r\n";
        let (requests, error) = parse_pieces(&[stream], &Limits::default());
        assert_eq!((requests, error), (vec![vec![b"PING".to_vec()], vec![b"".to_vec()]], None));
    }

    #[test]
    fn a_request_may_follow_others_in_the_list_of_spans() {
        let mut buffer = b"PING a\r\n*1\r\n$4\r\nPING\r\n".to_vec();
        let (mut parser, mut at, mut spans) = (Parser::new(), 0, Vec::new());
        let limits = Limits::default();
        while let Ok(Parsed::Request(_)) = parser.parse(&mut buffer, &mut at, &mut spans, &limits) {}
        assert_eq!(spans.iter().map(|s| s.start).collect::<Vec<_>>(), [0, 5, 16]);
    }

    /// Words of an inline request, plain and in both kinds of quotes.
    const LINE: &str = "[a-z]{1,5}( [a-z\\\\x0-9]{1,6}| \"[a-z \\\\x0-9]{0,6}z\"| '[a-z ]{0,6}')*\r?\n";

    fn any_request() -> impl Strategy<Value = Vec<u8>> {
        let args = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..6);
        prop_oneof![
            4 => args.prop_map(|args| model::multibulk(&args)),
            1 => LINE.prop_map(String::into_bytes),
            1 => "[a-c\\\\\"' x01nf\\t\u{b}]{0,14}\r?\n".prop_map(String::into_bytes),
            1 => prop::sample::select(vec![b"\r\n".to_vec(), b"*0\r\n".to_vec(), b"*-1\r\n".to_vec(), b" \n".to_vec()]),
        ]
    }

    /// Streams that are nearly right: valid requests with some bytes replaced.
    fn any_stream() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::sample::select(b"*$\r\n0123-x\"'\\ ".to_vec());
        let noise = prop::collection::vec((any::<prop::sample::Index>(), noise), 0..3);
        (prop::collection::vec(any_request(), 1..8), noise).prop_map(|(requests, noise)| {
            let mut stream = requests.concat();
            for (at, byte) in noise {
                let at = at.index(stream.len());
                stream[at] = byte;
            }
            stream
        })
    }

    fn cut(stream: &[u8], cuts: Vec<prop::sample::Index>) -> Vec<&[u8]> {
        let mut ends: Vec<_> = cuts.iter().map(|c| c.index(stream.len() + 1)).collect();
        ends.sort_unstable();
        ends.push(stream.len());
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| &stream[start..*end]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn any_split_gives_the_requests_that_the_naive_parser_finds(
            stream in any_stream(),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let limits = Limits::default();
            let expect = model::parse_all(&stream, &limits);
            prop_assert_eq!(&parse_pieces(&[&stream], &limits), &expect);
            prop_assert_eq!(&parse_pieces(&cut(&stream, cuts), &limits), &expect);
            let bytes: Vec<_> = stream.chunks(1).collect();
            prop_assert_eq!(&parse_pieces(&bytes, &limits), &expect);
        }

        /// Requests are recorded as they were sent, so what is lent as framed must read as what has run.
        #[test]
        fn a_request_that_is_lent_as_it_was_sent_is_the_array_of_its_words(stream in any_stream()) {
            let (mut parser, mut at, mut spans) = (Parser::new(), 0, Vec::new());
            let (mut buffer, limits) = (stream, Limits::default());
            let mut first = 0;
            while let Ok(Parsed::Request(framing)) = parser.parse(&mut buffer, &mut at, &mut spans, &limits) {
                let args = Args::new(&buffer, &spans[std::mem::replace(&mut first, spans.len())..]);
                let words: Vec<_> = args.iter_from(0).map(<[u8]>::to_vec).collect();
                let canonical = model::multibulk(&words);
                if let Some(framed) = args.framed(framing) {
                    prop_assert_eq!(framed, &canonical);
                }
                prop_assert_eq!(args.framed(Framing::Unknown).is_some(), buffer[..at].ends_with(&canonical));
                let is_plain = framing == Framing::Canonical;
                prop_assert!(!is_plain || args.framed(Framing::Unknown) == args.framed(framing));
            }
        }

        #[test]
        fn garbage_never_panics(stream in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"*$\r\n\n0129-\"'\\x ".to_vec())], 0..200,
        )) {
            let limits = Limits { inline_len_bytes_max: 64, bulk_len_bytes_max: u64::MAX, ..Limits::default() };
            let chunks: Vec<_> = stream.chunks(7).collect();
            parse_pieces(&chunks, &limits);
        }
    }
}
