//! RESP requests from any bytes: a stream parses to the same requests however it is cut, every argument lies
//! inside the buffer, and requests written as multibulk parse to themselves.
//!
//! The first byte says how long the pieces are; the rest is the stream.
use resp::{Limits, Parsed, Parser, ProtocolError};

type Requests = Vec<Vec<Vec<u8>>>;

/// Low enough that a fuzzer reaches them. Lines have no limit, since that one counts what has arrived: it is
/// the only one that a cut may move.
const LIMITS: Limits = Limits {
    bulk_len_bytes_max: 1 << 12,
    arg_count_max: 64,
    inline_len_bytes_max: usize::MAX / 2,
    is_authenticated: true,
};

pub(super) fn run(data: &[u8]) {
    let Some((piece, stream)) = data.split_first() else { return };
    let whole = parse(stream, usize::MAX, &LIMITS);
    let pieces = parse(stream, usize::from(*piece) + 1, &LIMITS);
    assert_eq!(whole, pieces, "a cut changes the requests");
    let again = whole.0.iter().flat_map(|args| multibulk(args)).collect::<Vec<u8>>();
    assert_eq!(
        parse(&again, usize::MAX, &Limits::default()),
        (whole.0, None),
        "a request does not survive being written again"
    );
}

fn parse(stream: &[u8], piece: usize, limits: &Limits) -> (Requests, Option<ProtocolError>) {
    let (mut parser, mut requests) = (Parser::new(), Vec::new());
    let (mut buffer, mut spans, mut at) = (Vec::new(), Vec::new(), 0);
    for bytes in stream.chunks(piece) {
        buffer.extend_from_slice(bytes);
        loop {
            spans.clear();
            match parser.parse(&mut buffer, &mut at, &mut spans, limits) {
                Err(error) => return (requests, Some(error)),
                Ok(Parsed::Incomplete { .. }) => break,
                Ok(Parsed::Request(_)) => {
                    assert!(!spans.is_empty(), "a request has a name");
                    requests.push(spans.iter().map(|s| buffer[s.start..][..s.len].to_vec()).collect());
                }
            }
        }
        buffer.drain(..std::mem::take(&mut at));
    }
    (requests, None)
}

fn multibulk(args: &[Vec<u8>]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        out.extend(format!("${}\r\n", arg.len()).bytes());
        out.extend_from_slice(arg);
        out.extend(b"\r\n");
    }
    out
}
