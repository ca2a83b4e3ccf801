//! Ids as text: `ms-seq`, or `ms` alone; `-` and `+` for the least and the greatest; `(` in front of one that
//! does not belong to the interval.
//!
//! Redis reads each of the two numbers twice: as an integer in its one spelling, and where that fails as C's
//! `strtoull` does, which takes blanks and signs in front. What clients send by chance must mean the same
//! here.
use crate::Error;
use base::text::{I64Text, parse_i64};
use resp::Reply;
use store::Id;

/// A longer text is no id.
const TEXT_BYTES_MAX: usize = 127;

/// The sequence of an id for XADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`: the time that it is.
    Auto,
    /// `ms-*`: the next one of that millisecond.
    InMs(u64),
    Given(Id),
}

/// An id that stands for itself; without a sequence it has `seq`.
pub(super) fn strict(text: &[u8], seq: u64) -> Result<Id, Error> {
    parse(text, seq).ok_or_else(Error::invalid_stream_id)
}

/// As [`strict`], but None where the text is no id.
pub(super) fn parse(text: &[u8], missing_seq: u64) -> Option<Id> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    match text.iter().position(|byte| *byte == b'-') {
        None => Some(Id { ms: number(text)?, seq: missing_seq }),
        Some(dash) => Some(Id { ms: number(&text[..dash])?, seq: number(&text[dash + 1..])? }),
    }
}

pub(super) fn new(text: &[u8]) -> Result<NewId, Error> {
    if text == b"*" {
        return Ok(NewId::Auto);
    }
    match text.strip_suffix(b"-*") {
        Some(ms) if !ms.contains(&b'-') && text.len() <= TEXT_BYTES_MAX => {
            number(ms).map(NewId::InMs).ok_or_else(Error::invalid_stream_id)
        }
        _ => strict(text, 0).map(NewId::Given),
    }
}

/// An id, or `-` and `+` for the first and the last that there can be.
pub(super) fn any(text: &[u8]) -> Result<Id, Error> {
    match text {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        text => strict(text, 0),
    }
}

/// The first id of an interval.
pub(super) fn start(text: &[u8]) -> Result<Id, Error> {
    let (id, is_excluded) = bound(text, 0)?;
    if !is_excluded {
        return Ok(id);
    }
    id.next().ok_or_else(Error::interval_start_excludes_all)
}

/// The last id of an interval.
pub(super) fn end(text: &[u8]) -> Result<Id, Error> {
    let (id, is_excluded) = bound(text, u64::MAX)?;
    if !is_excluded {
        return Ok(id);
    }
    id.prev().ok_or_else(Error::interval_end_excludes_all)
}

/// A bound, and whether it is excluded.
fn bound(text: &[u8], missing_seq: u64) -> Result<(Id, bool), Error> {
    match text {
        b"-" => Ok((Id::MIN, false)),
        b"+" => Ok((Id::MAX, false)),
        [b'(', rest @ ..] if !rest.is_empty() => Ok((strict(rest, missing_seq)?, true)),
        _ => Ok((strict(text, missing_seq)?, false)),
    }
}

fn number(text: &[u8]) -> Option<u64> {
    match parse_i64(text) {
        Some(n) => u64::try_from(n).ok(),
        None => c_number(text),
    }
}

/// As `strtoull` with base 10, where it reads all of the text.
fn c_number(text: &[u8]) -> Option<u64> {
    let blanks = text.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == 0x0B).count();
    let (is_negative, digits) = match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() {
        return None;
    }
    let mut n = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        n = n.checked_mul(10).filter(|_| digit < 10)?.checked_add(u64::from(digit))?;
    }
    Some(if is_negative { n.wrapping_neg() } else { n })
}

/// Replies an id as a bulk string.
pub(super) fn reply(reply: &mut Reply, id: Id) {
    let mut text = [0; 41];
    let len = write(&mut text, id, b'-');
    reply.bulk(&text[..len]);
}

/// An id as text.
pub(super) fn text(id: Id) -> Vec<u8> {
    let mut text = [0; 41];
    let len = write(&mut text, id, b'-');
    text[..len].to_vec()
}

fn write(text: &mut [u8; 41], id: Id, between: u8) -> usize {
    let mut number = I64Text::new();
    let ms = number.format_u64(id.ms);
    let at = ms.len();
    text[..at].copy_from_slice(ms);
    text[at] = between;
    let seq = number.format_u64(id.seq);
    text[at + 1..at + 1 + seq.len()].copy_from_slice(seq);
    at + 1 + seq.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = |ms, seq| Some(Id { ms, seq });
        let cases: [(&str, Option<Id>); 16] = [
            ("1-2", id(1, 2)),
            ("1", id(1, 9)),
            ("18446744073709551615-18446744073709551615", id(u64::MAX, u64::MAX)),
            ("18446744073709551616", None),
            ("007-+1", id(7, 1)),
            (" 1- 2", id(1, 2)),
            ("1--0", id(1, 0)),
            ("1--5", None),
            ("", None),
            ("-", None),
            ("-1", None),
            ("1-", None),
            ("1-2-3", None),
            ("+", None),
            ("1 -2", None),
            ("x", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes(), 9), expected, "{text:?}");
        }
        assert_eq!(parse(&[b'0'; 128], 0), None);
    }

    #[test]
    fn bounds_may_be_open() {
        assert_eq!(start(b"(1-1"), Ok(Id { ms: 1, seq: 2 }));
        assert_eq!(end(b"(1"), Ok(Id { ms: 1, seq: u64::MAX - 1 }));
        assert_eq!(end(b"(1-0"), Ok(Id { ms: 0, seq: u64::MAX }));
        assert!(start(b"(18446744073709551615-18446744073709551615").is_err() && end(b"(0-0").is_err());
        assert!(start(b"(-").is_err() && start(b"(").is_err());
    }
}
