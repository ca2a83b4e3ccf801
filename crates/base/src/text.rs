//! Integers as text and back, exactly as Redis reads and writes them: no sign but `-`, no leading zero, no
//! spaces, the whole of `i64` or `u64`. So a text that parses is the only text of its number, which is what
//! lets a packed leaf keep the number and forget the text. ([`parse_as_c`] alone takes other texts too.)
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

/// So many digits lie in a word.
const WORD_DIGITS: usize = short::WORD_BYTES;

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

/// `text` as C reads a whole text as a number, as Redis does with some settings: spaces, a sign and zeros
/// may come first, no text is 0, and what is too far from 0 is the last number.
pub fn parse_as_c(text: &[u8]) -> Option<i64> {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
    let spaces = text.iter().take_while(|byte| is_space(byte)).count();
    let (is_negative, digits) = match &text[spaces..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return text.is_empty().then_some(0);
    }
    let step = |n: i64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        Some(n.saturating_mul(10).saturating_add(if is_negative { -digit } else { digit }))
    };
    digits.iter().try_fold(0, step)
}

/// `text` as a `u64`, if it is the canonical decimal text of one.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    let (first, rest) = text.split_first()?;
    if !first.is_ascii_digit() || (*first == b'0' && !rest.is_empty()) || text.len() > SAFE_DIGITS + 1 {
        return None;
    }
    if text.len() <= WORD_DIGITS {
        return parse_word(text);
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

/// The value of one to eight decimal digits, all at once: they lie in one word, of which first neighbouring
/// digits are joined, then neighbouring pairs, then fours.
#[inline]
fn parse_word(text: &[u8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; WORD_DIGITS]);
    const ABOVE_NINE: u64 = u64::from_le_bytes([0x80 - 10; WORD_DIGITS]);
    const HIGHEST_BITS: u64 = u64::from_le_bytes([0x80; WORD_DIGITS]);
    // The last digit is in the highest byte, and before the first come zeros.
    let unused = 8 * (WORD_DIGITS - text.len());
    let digits = (short::word(text) << unused) ^ (ZEROS << unused);
    if (digits.wrapping_add(ABOVE_NINE) | digits) & HIGHEST_BITS != 0 {
        return None;
    }
    let pairs = (10 * digits + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (100 * pairs + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((10_000 * fours + (fours >> 32)) & 0xffff_ffff)
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
#[inline]
pub fn append_i64(out: &mut Vec<u8>, n: i64) {
    match n {
        0..WORD_END => append_word(out, n as u64),
        _ => short::append(out, I64Text::new().format(n)),
    }
}

/// From here on numbers have more digits than lie in a word.
const WORD_END: i64 = 10_i64.pow(WORD_DIGITS as u32);

/// Appends the text of a number of one to eight digits. They are made all at once in a word: the number is
/// parted in two fours of digits, these in pairs, and these in digits, the first in the lowest byte.
#[inline]
fn append_word(out: &mut Vec<u8>, n: u64) {
    const ZEROS: u64 = u64::from_le_bytes([b'0'; WORD_DIGITS]);
    const HIGHEST_BYTE: u64 = 0xff << 56;
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    // Below 10,000, n * 10,486 >> 20 is n / 100; below 100, n * 103 >> 10 is n / 10.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - 10 * tens) << 8);
    // A zero has one digit.
    let unused = (digits | HIGHEST_BYTE).trailing_zeros() / 8;
    let text = (digits | ZEROS) >> (8 * unused);
    short::append_word(out, text, WORD_DIGITS - unused as usize);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_c_reads_as_a_number_is_one() {
        for (text, number) in [
            ("", 0),
            ("7", 7),
            ("007", 7),
            ("+1", 1),
            (" \t\n\x0B-0", 0),
            (" -12", -12),
            ("9223372036854775807", i64::MAX),
            ("9223372036854775808", i64::MAX),
            ("-99999999999999999999", i64::MIN),
        ] {
            assert_eq!(parse_as_c(text.as_bytes()), Some(number), "{text:?}");
        }
        for text in [" ", "-", "+", "+-1", "1 ", "1a", "0x1", "- 1", "\u{a0}1"] {
            assert_eq!(parse_as_c(text.as_bytes()), None, "{text:?}");
        }
    }

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
        let mut appended = b"n".to_vec();
        append_i64(&mut appended, n);
        assert_eq!(appended[1..], *text.as_bytes());
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

    #[test]
    fn every_number_of_few_digits_survives_a_round_trip() {
        (-100_000..=100_000).for_each(check_i64);
        (0..WORD_END).step_by(9_973).for_each(check_i64);
    }

    #[test]
    fn no_byte_but_a_digit_is_one_wherever_it_stands() {
        for len in 1..=SAFE_DIGITS {
            for at in 0..len {
                for byte in 0..=u8::MAX {
                    let mut text = vec![b'1'; len];
                    text[at] = byte;
                    let is_number = byte.is_ascii_digit() && (byte != b'0' || at > 0 || len == 1);
                    assert_eq!(parse_u64(&text).is_some(), is_number, "{text:?}");
                }
            }
        }
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
