//! Integers as text and back, exactly as Redis reads and writes them: no sign but `-`, no leading zero, no
//! spaces, the whole of `i64` or `u64`. So a text that parses is the only text of its number, which is what
//! lets a packed leaf keep the number and forget the text.
//!
//! On the path of every request: but for [`hex`] nothing here allocates or goes through `core::fmt`.

use crate::short;

/// The numbers "00" to "99" as text: two digits are written for each division.
const TWO_DIGITS: [u8; 200] = {
    let mut digits = [0; 200];
    let mut n = 0;
    while n < 100 {
        digits[2 * n] = b'0' + (n / 10) as u8;
        digits[2 * n + 1] = b'0' + (n % 10) as u8;
        n += 1;
    }
    digits
};

/// Any number of this many digits fits a `u64`, so the loop over them needs no check for overflow.
const SAFE_DIGITS: usize = 19;

/// Two lower-case hexadecimal digits for each byte. It allocates, so it is for no request's path.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// `text` as an `i64`, if it is the canonical decimal text of one ("-0", "007", "+1", " 1" are not).
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text {
        [b'-', digits @ ..] => match parse_u64(digits)? {
            0 => None,
            n if n <= 1 << 63 => Some((n as i64).wrapping_neg()),
            _ => None,
        },
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// `text` as a `u64`, if it is the canonical decimal text of one.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let (first, rest) = text.split_first()?;
    if !first.is_ascii_digit() || (*first == b'0' && !rest.is_empty()) || text.len() > SAFE_DIGITS + 1 {
        return None;
    }
    let (safe, last) = text.split_at(text.len().min(SAFE_DIGITS));
    let mut n = 0_u64;
    for byte in safe {
        n = n * 10 + digit(*byte)?;
    }
    match last {
        [] => Some(n),
        [byte, ..] => n.checked_mul(10)?.checked_add(digit(*byte)?),
    }
}

/// The value of a decimal digit.
fn digit(byte: u8) -> Option<u64> {
    let value = byte.wrapping_sub(b'0');
    (value < 10).then_some(u64::from(value))
}

/// The length of the decimal text of `n`.
pub fn i64_len(n: i64) -> usize {
    u64_len(n.unsigned_abs()) + usize::from(n < 0)
}

/// The length of the decimal text of `n`.
pub fn u64_len(n: u64) -> usize {
    n.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// A buffer that holds the text of any `i64` or `u64`.
#[derive(Clone, Copy, Debug)]
pub struct I64Text([u8; 20]);

impl Default for I64Text {
    fn default() -> I64Text {
        I64Text::new()
    }
}

impl I64Text {
    /// A buffer without a text yet. Allocates nothing.
    #[inline]
    pub const fn new() -> I64Text {
        I64Text([0; 20])
    }

    /// The decimal text of `n`.
    #[inline]
    pub fn format(&mut self, n: i64) -> &[u8] {
        let mut start = self.write(n.unsigned_abs());
        if n < 0 {
            start -= 1;
            self.0[start] = b'-';
        }
        &self.0[start..]
    }

    /// The decimal text of `n`.
    pub fn format_u64(&mut self, n: u64) -> &[u8] {
        let start = self.write(n);
        &self.0[start..]
    }

    /// Writes the digits of `n` against the buffer's end; returns where they start.
    fn write(&mut self, n: u64) -> usize {
        write_digits_back(&mut self.0, n)
    }
}

/// Writes the decimal text of `n` against the end of `bytes`, which have room for it; returns where it
/// starts.
#[inline]
pub fn write_digits_back(bytes: &mut [u8], mut n: u64) -> usize {
    let mut start = bytes.len();
    while n >= 100 {
        start -= 2;
        put_two_digits(bytes, start, (n % 100) as usize);
        n /= 100;
    }
    if n >= 10 {
        start -= 2;
        put_two_digits(bytes, start, n as usize);
    } else {
        start -= 1;
        bytes[start] = b'0' + n as u8;
    }
    start
}

/// Writes two digits.
#[inline]
pub fn put_two_digits(bytes: &mut [u8], start: usize, number: usize) {
    bytes[start..start + 2].copy_from_slice(&TWO_DIGITS[2 * number..2 * number + 2]);
}

/// Appends the decimal text of `n`.
pub fn append_i64(out: &mut Vec<u8>, n: i64) {
    short::append(out, I64Text::new().format(n));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_byte_is_two_digits() {
        assert_eq!(hex(b"\x00\x0f\xa0\xff"), "000fa0ff");
        assert_eq!(hex(b""), "");
    }

    #[test]
    fn only_canonical_texts_are_integers() {
        for text in
            ["", "-", "-0", "007", "00", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "--1", "1-", "\u{0661}"]
        {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
            assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn the_ends_of_the_range_are_integers_and_their_neighbours_are_not() {
        assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_u64(b"18446744073709551616"), None);
        assert_eq!(parse_u64(b"99999999999999999999"), None);
        assert_eq!(parse_u64(b"100000000000000000000"), None);
        assert_eq!(parse_u64(b"-1"), None);
    }

    fn check_i64(n: i64) {
        let text = n.to_string();
        assert_eq!(I64Text::new().format(n), text.as_bytes());
        assert_eq!(i64_len(n), text.len());
        assert_eq!(parse_i64(text.as_bytes()), Some(n));
    }

    #[test]
    fn every_power_of_ten_and_two_and_its_neighbours_survive_a_round_trip() {
        for power in (0..19).map(|e| 10_i64.pow(e)).chain((0..63).map(|e| 1_i64 << e)) {
            for n in [power - 1, power, power + 1] {
                check_i64(n);
                check_i64(-n);
            }
        }
        check_i64(i64::MAX);
        check_i64(i64::MIN);
    }

    proptest! {
        #[test]
        fn integers_survive_a_round_trip(n: i64, shift in 0..64_u32) {
            check_i64(n >> shift);
            let unsigned = (n as u64) >> shift;
            let text = unsigned.to_string();
            let mut buffer = I64Text::new();
            prop_assert_eq!(buffer.format_u64(unsigned), text.as_bytes());
            prop_assert_eq!(u64_len(unsigned), text.len());
            prop_assert_eq!(parse_u64(text.as_bytes()), Some(unsigned));
        }

        #[test]
        fn a_text_is_an_integer_only_if_it_is_what_the_integer_prints(text in "[-+ 0-9]{0,21}") {
            let naive = text.parse::<i64>().ok().filter(|n| n.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), naive);
            let naive = text.parse::<u64>().ok().filter(|n| n.to_string() == text);
            prop_assert_eq!(parse_u64(text.as_bytes()), naive);
        }
    }
}
