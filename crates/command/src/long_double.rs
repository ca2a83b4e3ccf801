//! INCRBYFLOAT's numbers, and timeouts in seconds: the 80-bit floating point of x86 (a 64-bit mantissa),
//! because clients see its rounding.
//!
//! ```text
//! value = mantissa * 2^exponent     mantissa: its top bit is set, or zero
//! ```
//!
//! `0.1` is `0xCCCCCCCCCCCCCCCD * 2^-67`; three of them add up to what prints as `0.3`. A number is read as
//! C's `strtold` reads it (decimal or hexadecimal, rounded to the nearest, ties to even), added with one
//! rounding, and written with 17 decimals, trailing zeros cut off, as `%.17Lf` does. Numbers too small to
//! show in 17 decimals keep their full precision here, where the processor's would become subnormal: which no
//! number that is written can show.
use crate::big::Big;
use base::text::{I64Text, write_digits_back};

/// How many decimals are written.
const DECIMALS: usize = 17;
const DECIMAL_UNIT: u64 = 100_000_000_000_000_000;
/// Room for a sign, the whole number of a mantissa, the point and the decimals. Larger numbers grow it.
const TEXT_BYTES: usize = 1 + 20 + 1 + DECIMALS;
/// `mantissa * 2^EXPONENT_MAX` is the largest finite number.
const EXPONENT_MAX: i64 = 16_384 - 64;
/// Half of the smallest subnormal is `2^HALF_OF_LEAST`: that much or less reads as zero, which is an error.
const HALF_OF_LEAST: i64 = -16_446;
/// Longer texts are no numbers to Redis.
const TEXT_LEN_MAX: usize = 5 * 1024 - 1;
/// Decimal exponents beyond this overflow or vanish whatever the digits say (there are fewer of them than
/// this).
const EXPONENT_CLAMP: i64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LongDouble {
    is_negative: bool,
    size: Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Finite {
        mantissa: u64,
        exponent: i64,
    },
    /// An infinity, or the sum of two opposite infinities. Neither is ever written.
    Infinite,
}

impl LongDouble {
    pub(crate) const ZERO: LongDouble =
        LongDouble { is_negative: false, size: Size::Finite { mantissa: 0, exponent: 0 } };

    pub(crate) fn from_i64(n: i64) -> LongDouble {
        rounded(n < 0, u128::from(n.unsigned_abs()), 0, false)
    }

    /// The number that the whole of `text` says. None where it is none, is NaN, or lies outside the range of
    /// finite numbers, however it is written; "inf" is one.
    pub(crate) fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let size = match digits {
            [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(rest)?,
            _ if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") => {
                return Some(LongDouble { is_negative, size: Size::Infinite });
            }
            _ => parse_decimal(digits)?,
        };
        in_range(size).then_some(LongDouble { is_negative, size })
    }

    pub(crate) fn is_finite(self) -> bool {
        matches!(self.size, Size::Finite { .. })
    }

    /// The sum with one rounding, to 64 bits and to the nearest even, as the processor makes it. Anything
    /// with an infinity in it is infinite here: neither infinity nor NaN is ever written, and the caller
    /// refuses both with the same words.
    pub(crate) fn add(self, other: LongDouble) -> LongDouble {
        let (Size::Finite { mantissa: m, exponent: e }, Size::Finite { mantissa: n, exponent: f }) =
            (self.size, other.size)
        else {
            return LongDouble { is_negative: self.is_negative, size: Size::Infinite };
        };
        if m == 0 {
            return other;
        }
        if n == 0 {
            return self;
        }
        if (e, m) < (f, n) { other.add_smaller(self) } else { self.add_smaller(other) }
    }

    /// `other` is not the larger in size, and neither is zero or infinite.
    fn add_smaller(self, other: LongDouble) -> LongDouble {
        let (Size::Finite { mantissa: m, exponent: e }, Size::Finite { mantissa: n, exponent: f }) =
            (self.size, other.size)
        else {
            return self;
        };
        // 63 guard bits below the mantissa, one bit above it for the carry.
        let large = u128::from(m) << 63;
        let (small, is_inexact) = shifted_right(u128::from(n) << 63, e - f);
        let sum = match self.is_negative == other.is_negative {
            true => large + small,
            // The bits that were shifted out make the true difference a little smaller, so one is taken off,
            // and the sticky bit says that something is left above.
            false => large - small - u128::from(is_inexact),
        };
        rounded(self.is_negative, sum, e - 63, is_inexact)
    }

    /// A thousand times this number with one rounding, as the processor makes it, and that up to the next
    /// whole number. None where it is larger than an i64 can be; what is smaller is the least of them.
    pub(crate) fn thousandfold_rounded_up(self) -> Option<i64> {
        let beyond = if self.is_negative { Some(i64::MIN) } else { None };
        let Size::Finite { mantissa, exponent } = self.size else { return beyond };
        match rounded_size(u128::from(mantissa) * 1000, exponent, false) {
            Size::Finite { mantissa, exponent } if exponent < 0 => {
                let (whole, has_fraction) = shifted_right(u128::from(mantissa), -exponent);
                // Less than 2^63, because the exponent is negative.
                match self.is_negative {
                    true => Some(-(whole as i64)),
                    false => i64::try_from(whole + u128::from(has_fraction)).ok(),
                }
            }
            Size::Finite { mantissa: 0, .. } => Some(0),
            _ => beyond,
        }
    }

    /// The text that is stored and replied. None where the number is not finite.
    pub(crate) fn to_text(self) -> Option<String> {
        let Size::Finite { mantissa, exponent } = self.size else { return None };
        let mut text = String::with_capacity(TEXT_BYTES);
        match u32::try_from(exponent) {
            Ok(shift) => {
                let mut whole = Big::from_u64(mantissa);
                whole.shift_left(shift);
                text.push_str(if self.is_negative && mantissa > 0 { "-" } else { "" });
                text.push_str(&whole.to_decimal());
            }
            Err(_) => {
                let (whole, fraction) = decimal_parts(mantissa, exponent.unsigned_abs());
                text.push_str(if self.is_negative && (whole, fraction) != (0, 0) { "-" } else { "" });
                push_decimal(&mut text, whole, fraction);
            }
        }
        Some(text)
    }
}

/// `mantissa / 2^shift` as a whole number and units of the 17th decimal, ties to even; `shift` is not 0.
fn decimal_parts(mantissa: u64, shift: u64) -> (u64, u64) {
    if shift >= 128 {
        return (0, 0);
    }
    let whole = if shift < 64 { mantissa >> shift } else { 0 };
    let units = halved(u128::from(mantissa) * u128::from(DECIMAL_UNIT), shift as u32);
    // At most one unit, which is where the last decimal was rounded up; this is how a division is avoided.
    match (units - u128::from(whole) * u128::from(DECIMAL_UNIT)) as u64 {
        DECIMAL_UNIT => (whole + 1, 0),
        fraction => (whole, fraction),
    }
}

/// Appends the number, without the zeros at its end.
fn push_decimal(text: &mut String, whole: u64, fraction: u64) {
    let mut digits = [b'0'; DECIMALS + 1];
    digits[0] = b'.';
    write_digits_back(&mut digits[1..], fraction);
    let zeros = digits[1..].iter().rev().take_while(|digit| **digit == b'0').count();
    let shown = if zeros == DECIMALS { 0 } else { digits.len() - zeros };
    let mut scratch = I64Text::new();
    let whole = scratch.format_u64(whole);
    text.extend(whole.iter().chain(&digits[..shown]).copied().map(char::from));
}

/// `n / 2^shift` rounded to the nearest, ties to even; `shift` is 1 to 127.
fn halved(n: u128, shift: u32) -> u128 {
    let (quotient, rest) = (n >> shift, n & ((1 << shift) - 1));
    let half = 1 << (shift - 1);
    quotient + u128::from(rest > half || rest == half && quotient & 1 == 1)
}

/// `n >> shift`, and whether bits were lost.
fn shifted_right(n: u128, shift: i64) -> (u128, bool) {
    match u32::try_from(shift) {
        Ok(shift) if shift < 128 => (n >> shift, n != (n >> shift) << shift),
        _ => (0, n != 0),
    }
}

/// `n * 2^exponent` as the nearest number with 64 bits, ties to even. `is_sticky` says that the true value
/// lies a little above `n`; then `n` has more than 64 bits.
fn rounded(is_negative: bool, n: u128, exponent: i64, is_sticky: bool) -> LongDouble {
    LongDouble { is_negative, size: rounded_size(n, exponent, is_sticky) }
}

/// The mantissa is what stands in the upper 64 bits once the topmost bit is at the top; the lower 64 decide
/// the rounding. Rounding up may carry out of the mantissa, which then is a power of two.
fn rounded_size(n: u128, exponent: i64, is_sticky: bool) -> Size {
    const HALF: u64 = 1 << 63;
    if n == 0 {
        return Size::Finite { mantissa: 0, exponent: 0 };
    }
    let zeros = n.leading_zeros();
    let n = n << zeros;
    let (mantissa, rest) = ((n >> 64) as u64, n as u64);
    let exponent = exponent + 64 - i64::from(zeros);
    let rounds_up = rest > HALF || rest == HALF && (is_sticky || mantissa & 1 == 1);
    let (mantissa, exponent) = match mantissa.checked_add(u64::from(rounds_up)) {
        Some(mantissa) => (mantissa, exponent),
        None => (HALF, exponent + 1),
    };
    if exponent > EXPONENT_MAX { Size::Infinite } else { Size::Finite { mantissa, exponent } }
}

/// Whether `strtold` reads a number of this size without a range error.
fn in_range(size: Size) -> bool {
    match size {
        Size::Infinite => false,
        Size::Finite { mantissa: 0, .. } => true,
        Size::Finite { mantissa, exponent } => (exponent + 63, mantissa) > (HALF_OF_LEAST, 1 << 63),
    }
}

/// Digits with at most one point, then nothing or an exponent that `marker` announces.
struct Parts<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Parts<'a> {
    fn split(text: &'a [u8], marker: u8, is_digit: fn(&u8) -> bool) -> Option<Parts<'a>> {
        let (whole, rest) = split_digits(text, is_digit);
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => split_digits(rest, is_digit),
            rest => (&b""[..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [first, exponent @ ..] if first.eq_ignore_ascii_case(&marker) => parse_exponent(exponent)?,
            _ => return None,
        };
        let has_digits = !whole.is_empty() || !fraction.is_empty();
        has_digits.then_some(Parts { whole, fraction, exponent })
    }

    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.whole.iter().chain(self.fraction).copied()
    }
}

/// The digits in front, and what follows them.
fn split_digits(text: &[u8], is_digit: fn(&u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|b| is_digit(b)).count())
}

/// The exponent, clamped where only its sign still matters. None where it has no digits.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0, |n: i64, d| (n * 10 + i64::from(d - b'0')).min(EXPONENT_CLAMP));
    Some(if is_negative { -size } else { size })
}

fn parse_decimal(text: &[u8]) -> Option<Size> {
    let parts = Parts::split(text, b'e', u8::is_ascii_digit)?;
    parse_short(&parts).or_else(|| parse_long(&parts))
}

/// So many digits always fit 128 bits.
const SHORT_DIGITS_MAX: usize = 38;
/// The powers of five that fit 64 bits, from 5^0 on.
const FIVES: [u64; 28] = {
    let mut fives = [1; 28];
    let mut power = 1;
    while power < fives.len() {
        fives[power] = 5 * fives[power - 1];
        power += 1;
    }
    fives
};

/// A number as people write them: few digits, few of them behind the point, and no exponent that adds zeros.
/// Its digits fit a machine word or two, and so does the power of ten that they are divided by; what follows
/// is two divisions of the processor. None where it is another one.
fn parse_short(parts: &Parts<'_>) -> Option<Size> {
    if parts.whole.len() + parts.fraction.len() > SHORT_DIGITS_MAX {
        return None;
    }
    let power = usize::try_from(parts.fraction.len() as i64 - parts.exponent).ok()?;
    let five = *FIVES.get(power)?;
    Some(short_quotient(joined(parts), five, power as i64))
}

/// The digits as one number; there are at most [`SHORT_DIGITS_MAX`] of them.
fn joined(parts: &Parts<'_>) -> u128 {
    /// So many digits fit 64 bits, whose multiplication takes a fraction of the time.
    const WORD_DIGITS: usize = 19;
    [parts.whole, parts.fraction].iter().flat_map(|digits| digits.chunks(WORD_DIGITS)).fold(0, |n, digits| {
        let (word, unit) = digits
            .iter()
            .fold((0, 1_u64), |(word, unit), digit| (word * 10 + u64::from(digit - b'0'), unit * 10));
        n * u128::from(unit) + u128::from(word)
    })
}

/// `digits / (five * 2^power)`, where `five` is 5^power, by the 96 bits or so of the quotient that come out
/// of dividing what is left of a first division once more. Rounding needs 65, and whether anything follows.
fn short_quotient(digits: u128, five: u64, power: i64) -> Size {
    const MORE_BITS: u32 = 32;
    if digits == 0 {
        return Size::Finite { mantissa: 0, exponent: 0 };
    }
    // With both topmost bits at the top the quotient has 64 or 65 bits.
    let (digit_zeros, five_zeros) = (digits.leading_zeros(), five.leading_zeros());
    let (number, divisor) = (digits << digit_zeros, u128::from(five << five_zeros));
    let high = number / divisor;
    let rest = (number - high * divisor) << MORE_BITS;
    let low = rest / divisor;
    let exponent = i64::from(five_zeros) - i64::from(digit_zeros) - power - i64::from(MORE_BITS);
    rounded_size(high << MORE_BITS | low, exponent, low * divisor != rest)
}

/// Exact until the one rounding at the end: all digits count, however many there are. The multiplications
/// grow with the number, but a text is never longer than 5 KB.
fn parse_long(parts: &Parts<'_>) -> Option<Size> {
    let mut digits = Big::from_u64(0);
    let mut count = 0;
    for digit in parts.digits() {
        count += i64::from(count > 0 || digit != b'0');
        digits.multiply_add(10, u32::from(digit - b'0'));
    }
    let exponent = parts.exponent - parts.fraction.len() as i64;
    if count == 0 {
        return Some(Size::Finite { mantissa: 0, exponent: 0 });
    }
    // The number of digits alone may show that the number is out of range, which saves the arithmetic of huge
    // powers.
    match count + exponent {
        5_000.. => Some(Size::Infinite),
        ..-5_000 => None,
        _ if exponent >= 0 => {
            digits.multiply_by_power_of_ten(exponent as u32);
            let (top, shift, is_sticky) = digits.top_bits();
            Some(rounded_size(top, i64::from(shift), is_sticky))
        }
        _ => Some(long_quotient(digits, exponent.unsigned_abs() as u32)),
    }
}

/// `digits / 10^power`, by the 68 bits of the quotient that rounding needs.
fn long_quotient(mut rest: Big, power: u32) -> Size {
    const STEPS: u32 = 68;
    let mut divisor = Big::from_u64(1);
    divisor.multiply_by_power_of_ten(power);
    // Once both have the same number of bits, `rest / divisor` lies between a half and two.
    let (rest_bits, divisor_bits) = (rest.bits(), divisor.bits());
    rest.shift_left(divisor_bits.saturating_sub(rest_bits));
    divisor.shift_left(rest_bits.saturating_sub(divisor_bits));
    let mut quotient: u128 = 0;
    for _ in 0..STEPS {
        quotient <<= 1;
        if rest.try_subtract(&divisor) {
            quotient |= 1;
        }
        rest.shift_left(1);
    }
    let exponent = i64::from(rest_bits) - i64::from(divisor_bits) - i64::from(STEPS - 1);
    rounded_size(quotient, exponent, !rest.is_zero())
}

/// A hexadecimal digit is four binary ones, and the exponent counts those.
fn parse_hexadecimal(text: &[u8]) -> Option<Size> {
    let parts = Parts::split(text, b'p', u8::is_ascii_hexdigit)?;
    let mut digits = Big::from_u64(0);
    for digit in parts.digits() {
        digits.multiply_add(16, (digit as char).to_digit(16)?);
    }
    let (top, shift, is_sticky) = digits.top_bits();
    let exponent = parts.exponent - 4 * parts.fraction.len() as i64;
    Some(rounded_size(top, i64::from(shift) + exponent, is_sticky))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    fn sum(a: &str, b: &str) -> String {
        let (a, b) = (LongDouble::parse(a.as_bytes()).unwrap(), LongDouble::parse(b.as_bytes()).unwrap());
        a.add(b).to_text().unwrap()
    }

    #[test]
    fn sums_print_as_redis_prints_them() {
        assert_eq!(sum("10.50", "0.1"), "10.6");
        assert_eq!(sum("5.0e3", "2.0e2"), "5200");
        assert_eq!(sum("0", "0.1"), "0.1");
        assert_eq!(sum("3", "1.000000000000000005"), "4.00000000000000001");
        assert_eq!(sum("-5", "5"), "0");
        assert_eq!(sum("0", "-0.000000000000000001"), "0");
        assert_eq!(sum("0x1.8p3", "0x.8"), "12.5");
        assert_eq!(sum("1e20", "1"), "100000000000000000000");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", " 1", "1 ", "1e", "e1", ".", "-", "+-1", "0x", "nan", "1e5000", "1e-5000", "1,5", "--1"]
        {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn infinities_are_numbers_that_are_never_written() {
        for text in ["inf", "-Infinity", "+INF"] {
            assert_eq!(LongDouble::parse(text.as_bytes()).unwrap().to_text(), None, "{text:?}");
        }
        let large = LongDouble::parse(b"1.18e4932").unwrap();
        assert_eq!(large.add(large).to_text(), None);
    }

    #[test]
    fn the_largest_and_the_least_number_are_read() {
        assert!(LongDouble::parse(b"1.18973149535723176502e+4932").is_some());
        assert!(LongDouble::parse(b"1.18973149535723176509e+4932").is_none());
        assert!(LongDouble::parse(b"1e-4950").is_some());
        assert!(LongDouble::parse(b"1e-4951").is_none());
        assert!(LongDouble::parse(b"0e99999999999999999999").is_some());
    }

    /// The number by the way for any number of digits, and by the one for few, if it is one of those.
    fn both_ways(text: &str) -> (Option<Size>, Option<Size>) {
        let parts = Parts::split(text.as_bytes(), b'e', u8::is_ascii_digit).unwrap();
        (parse_long(&parts), parse_short(&parts))
    }

    #[test]
    fn numbers_of_few_digits_are_those_that_exact_arithmetic_finds() {
        let mut short = 0;
        for seed in 0..40_000 {
            let mut random = Random::new(seed);
            let power = random.below(FIVES.len() as u64) as usize;
            // One in three lies half-way between two numbers of 64 bits, or right beside that.
            let tie = (u128::from(random.next_u64()) << 1 | 1) * u128::from(FIVES[power.min(26)]);
            let n = match random.below(3) {
                0 => tie + u128::from(random.below(3)) - 1,
                1 => u128::from(random.next_u64() >> random.below(64)),
                _ => (u128::from(random.next_u64()) << 62 | 1) >> random.below(126),
            };
            let digits = format!("{n:0width$}", width = 1 + random.below(38) as usize);
            let point = digits.len().saturating_sub(power);
            let text = format!("{}.{}", &digits[..point], &digits[point..]);
            let text = if random.below(4) == 0 { format!("{text}e-{}", random.below(12)) } else { text };
            let (long, found) = both_ways(&text);
            assert!(found.is_none() || found == long, "seed {seed}: {text}: {found:?}, not {long:?}");
            short += u64::from(found.is_some());
        }
        assert!(short > 20_000, "{short} numbers of few digits");
        for text in
            ["1e1", "0.1e-27", "0.0000000000000000000000000001", "123456789012345678901234567890123456789"]
        {
            assert_eq!(both_ways(text).1, None, "{text}");
        }
    }

    #[test]
    fn decimals_are_those_of_a_division() {
        for seed in 0..20_000 {
            let mut random = Random::new(seed);
            let mantissa = random.next_u64() | 1 << 63;
            let mantissa = if random.below(3) == 0 { u64::MAX - random.below(300) } else { mantissa };
            let shift = 1 + random.below(130);
            let scaled = u128::from(mantissa) * u128::from(DECIMAL_UNIT);
            let units = if shift < 128 { halved(scaled, shift as u32) } else { 0 };
            let (whole, fraction) = (units / u128::from(DECIMAL_UNIT), units % u128::from(DECIMAL_UNIT));
            let expected = format!("{whole}.{fraction:017}");
            let number = |is_negative| {
                let size = Size::Finite { mantissa, exponent: -(shift as i64) };
                LongDouble { is_negative, size }.to_text().unwrap()
            };
            let expected = expected.trim_end_matches('0').trim_end_matches('.');
            assert_eq!(number(false), expected, "seed {seed}: {mantissa} / 2^{shift}");
            let sign = if expected == "0" { "" } else { "-" };
            assert_eq!(number(true), format!("{sign}{expected}"), "seed {seed}");
        }
    }

    /// Recorded from the peer: random numbers of every size and form, and texts that are none.
    const PEER: &str = include_str!("facts/incrbyfloat_8_0_2.txt");

    #[test]
    fn sums_are_those_of_redis_to_the_last_digit() {
        for case in PEER.lines().filter(|line| !line.starts_with('#')) {
            let [value, increment, expected] = case.split('\t').collect::<Vec<_>>()[..] else {
                panic!("three fields: {case}")
            };
            let sum = LongDouble::parse(value.as_bytes())
                .zip(LongDouble::parse(increment.as_bytes()))
                .map_or("-ERR value is not a valid float".to_owned(), |(a, b)| a.add(b).to_text().unwrap());
            assert_eq!(sum, expected, "{value} + {increment}");
        }
    }
}
